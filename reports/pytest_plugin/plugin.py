"""The pytest plugin: a fixture for audits, an error budget for the session, a summary, baselines.

Every pytest session loads this module if the library is installed, so it imports only pytest; the library is imported
when a test first requests the fixture.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from ...audit.errors import AuditError
from .session import DEFAULTS, HELP, AuditSession, Failed, Settings, setting_from_text

if TYPE_CHECKING:
    from .fixture import DPAudit

_SESSION = pytest.StashKey[AuditSession]()
_PASSED = pytest.StashKey[bool]()
_CHOICE = pytest.StashKey[str]()
_FIXTURE = "dp_audit"
_PACKAGE = __name__.partition(".")[0]
_MARKER = (
    "dp_audit(audits=1, expect=None, accepted=None, until=None, up_to=None, **options): audits is the number of audits "
    "in this test, for the error budget. expect is their verdict, such as refuted. accepted is the reason to accept a "
    "refutation until a day and up to a bound; such an audit makes all runs. options are those of check. "
    "Precedence: call, marker, command line, configuration file."
)


@contextmanager
def _usage(start: str = "", remedy: str = "") -> Iterator[None]:
    """Report what is wrong as a mistake in the use of pytest; the remedy is for errors of the library."""
    try:
        yield
    except (ValueError, AuditError) as error:
        raise pytest.UsageError(f"{start}{error}{remedy if isinstance(error, AuditError) else ''}") from error


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line and of the configuration file."""
    group = parser.getgroup(_FIXTURE, "audits of differential privacy (fixture dp_audit)")
    for name, text in HELP.items():
        shown = f"{text} (default: {DEFAULTS[name]})" if DEFAULTS[name] is not None else text
        group.addoption(f"--dp-audit-{name}", dest=f"dp_audit_{name}", metavar=name.upper(), help=f"{shown}.")
        parser.addini(f"dp_audit_{name}", f"{shown}.")
    for name, metavar, text in (
        ("report", "PATH", "Write the results to PATH, which ends in .json, .html or .md."),
        ("save", "NAME", "Save the results as baseline NAME, or to a path that ends in .json."),
        ("compare", "NAME", "Fail if results differ from baseline NAME, or from a file that ends in .json."),
        ("store", "DIR", "Keep the draws of unfinished audits in DIR; the next session continues them."),
        ("scripts", "DIR", "Write a script for every violation to DIR; it has the rows of both datasets."),
    ):
        group.addoption(f"--dp-audit-{name}", metavar=metavar, help=text)
    explain = "Replay the pair of every refuted audit, however long that takes; the report has its calls."
    group.addoption("--dp-audit-explain", action="store_true", help=explain)
    group.addoption("--dp-audit-skip", action="store_true", help="Skip the tests that use dp_audit.")
    group.addoption("--dp-audit-only", action="store_true", help="Run only tests that can request dp_audit.")
    parser.addini("dp_audit_store", "Folder for the draws of unfinished audits (default: none).", default="")
    folder = "dp_audit_baselines"
    parser.addini(folder, f"Folder of the baselines (default: {folder}).", default=folder)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings and create the session's state."""
    config.addinivalue_line("markers", _MARKER)
    values: dict[str, Any] = {}
    for name in DEFAULTS:
        text = config.getoption(f"dp_audit_{name}") or config.getini(f"dp_audit_{name}")
        with _usage():
            values[name] = setting_from_text(name, text) if text else DEFAULTS[name]
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if values["seed"] == "random":
        values["seed"] = worker.get("dp_audit_seed") or secrets.randbits(32)
    report = _path(config, "dp_audit_report")
    if report is not None and report.suffix not in (".json", ".html", ".md"):
        raise pytest.UsageError(f"--dp-audit-report={report.name}: use a name that ends in .json, .html or .md.")
    config.stash[_SESSION] = session = AuditSession(
        settings=Settings(**values),
        baselines=config.rootpath / config.getini("dp_audit_baselines"),
        report=report,
        scripts=_path(config, "dp_audit_scripts"),
        store=_path(config, "dp_audit_store", config.getini("dp_audit_store")),
        explain=config.getoption("dp_audit_explain"),
        save=config.getoption("dp_audit_save"),
        compare=config.getoption("dp_audit_compare"),
        n_workers=int(worker.get("workercount", 1)),
        is_worker=bool(worker),
    )
    for baseline in filter(None, (session.save, session.compare)):
        with _usage():
            session.baseline_path(baseline)
    config.pluginmanager.register(_Watch(session), "dp_audit_watch")


def _path(config: pytest.Config, option: str, in_file: str = "") -> Path | None:
    """A path on the command line, relative to the folder in which pytest was started, or one relative to the root."""
    text = config.getoption(option)
    return config.invocation_params.dir / text if text else config.rootpath / in_file if in_file else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the random seed to an xdist worker."""
    node.workerinput["dp_audit_seed"] = node.config.stash[_SESSION].settings.seed


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Look for the libraries of a report and read the baseline, so that a missing one is an error at once."""
    own = session.config.stash[_SESSION]
    if own.report is not None and own.report.suffix == ".html" and not own.is_worker:
        from ..plain_text import require_for_html

        with _usage(f"--dp-audit-report={own.report.name}: "):
            require_for_html()
    with _usage(remedy=" For a baseline: delete the baseline and write it again with --dp-audit-save."):
        own.read_baselines()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Show the seed if it is not the default."""
    seed = config.stash[_SESSION].settings.seed
    return None if seed == DEFAULTS["seed"] else f"dp_audit: seed {seed} (--dp-audit-seed={seed} repeats the draws)"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Reserve every audit's alpha, and refuse a session that could exceed its error budget."""
    session = config.stash[_SESSION]
    session.files |= {_name(item).partition("::")[0] for item in items}
    if config.getoption("dp_audit_only"):
        _leave_out_others(config, items)
    audited = [item for item in items if _FIXTURE in getattr(item, "fixturenames", ())]
    if config.getoption("dp_audit_skip"):
        for item in audited:
            item.add_marker(pytest.mark.skip(reason="--dp-audit-skip"))
        return
    for item in audited:
        options = _marked(item)
        with _usage(f"{item.nodeid}: "):
            audits = options.get("audits", 0 if options.get("exact") else 1)
            session.plan(_name(item), audits, options.get("alpha", session.settings.alpha))
    refusal = session.refusal()
    if refusal and not session.is_worker:  # a worker cannot end the session, so its tests fail
        raise pytest.UsageError(refusal)


def _leave_out_others(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave in `items` the tests that have the fixture, or the marker, or `request`, by which they may ask for it."""

    def may_ask(item: pytest.Item) -> bool:
        ways = {_FIXTURE, "request"} & {*getattr(item, "fixturenames", ())}
        return bool(ways) or item.get_closest_marker(_FIXTURE) is not None

    others = [item for item in items if not may_ask(item)]
    config.stash[_CHOICE] = (
        f"dp_audit: {len(others):,} of {len(items):,} tests cannot request dp_audit and are deselected"
    )
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if may_ask(item)]


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    """Record tests that were left out on purpose."""
    for item in items:
        item.config.stash[_SESSION].left_out.add(_name(item))


class _Watch:
    """Records what tests of workers found, tests that failed or were skipped, and interruptions."""

    def __init__(self, session: AuditSession) -> None:
        self.session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        names = {report.nodeid, report.nodeid.rpartition("@")[0] or report.nodeid}  # with and without an xdist group
        if (found := getattr(report, _FIXTURE, None)) is not None and not self.session.is_worker:
            self.session.take(found)
        if report.skipped:
            self.session.left_out |= names
        if report.failed or hasattr(report, "wasxfail"):
            self.session.red |= names

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if isinstance(excinfo.value, KeyboardInterrupt):
            self.session.interrupted()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Say once a test how long a call in it takes, past the capture of its output."""
    from ...audit.progress import announced_by, to_stderr

    said: list[str] = []

    def tell(fact: str, ways: str) -> None:
        capture = item.config.pluginmanager.getplugin("capturemanager")
        with nullcontext() if capture is None else capture.global_and_fixture_disabled():
            if not said:
                to_stderr(f"\n{_name(item)}: {fact}; runs=, seconds= or --dp-audit-runs=N shortens it\n")
        said.append(fact)

    with announced_by(tell):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that is about to pass or to be skipped, and has lost the failure of an audit."""
    session, name = item.config.stash[_SESSION], _name(item)
    try:
        result = yield
    except pytest.skip.Exception:
        session.skipped(name)
        _fail_if_lost(session, name)
        raise
    _fail_if_lost(session, name)
    return result


def _fail_if_lost(session: AuditSession, name: str) -> None:
    if lost := session.lost(name):
        raise Failed("\n\n".join(lost), pytrace=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that lost the failure of an audit while its fixtures were torn down, or that an audit outlasts."""
    result = yield
    session, name = item.config.stash[_SESSION], _name(item)
    _fail_if_lost(session, name)
    if running := session.still_running(lambda test: test == name):
        raise Failed("\n".join(running), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around the one that knows which failures are expected (xfail)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Record whether a test passed and which failures are reported; end tracebacks of errors in the test's lines."""
    session, name = item.config.stash[_SESSION], _name(item)
    if call.when == "setup":
        session.begins(name)
    if call.excinfo is not None and not item.config.option.fulltrace:
        _end_in_the_test(call.excinfo.value, call.excinfo.tb)
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    if report.failed or hasattr(report, "wasxfail"):
        session.reported(name, call.excinfo and call.excinfo.value)
    if report.when == "teardown" and session.is_in_child:
        setattr(report, _FIXTURE, session.packed(name))
    return report


def _end_in_the_test(error: BaseException, traceback: TracebackType | None) -> None:
    """Cut the last frames, those within the library, if the library raised the error on purpose, and such a cause.

    Other errors keep every frame: they come from the mechanism, or are bugs.
    """
    if not isinstance(error, AuditError):
        return
    if outside := [step for step, is_own in _steps(traceback) if not is_own]:
        outside[-1].tb_next = None
    cause = error.__cause__  # the message says what it was
    if cause is not None and cause.__cause__ is None and any(own for _, own in [*_steps(cause.__traceback__)][-1:]):
        error.__cause__ = None


def _steps(traceback: TracebackType | None) -> Iterator[tuple[TracebackType, bool]]:
    """The frames, the innermost last, and whether each is of the library."""
    while traceback is not None:
        yield traceback, traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE
        traceback = traceback.tb_next


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Show which audits were chosen, and the total error probability of the session's audits."""
    session, chosen = config.stash[_SESSION], config.stash.get(_CHOICE, "")
    return [chosen] * bool(chosen) + [f"dp_audit: {session.statement()}"] * bool(session.planned)


def _marked(item: pytest.Item) -> dict[str, Any]:
    """Options of the markers of a test, its class and its module; the innermost marker takes precedence."""
    options: dict[str, Any] = {}
    for marker in item.iter_markers(_FIXTURE):
        if marker.args:
            raise pytest.UsageError(
                f"{item.nodeid}: the marker dp_audit takes options only by name, such as runs=10_000."
            )
        options = {**marker.kwargs, **options}
    return options


def _name(item: pytest.Item) -> str:
    """The test's id without the suffix for xdist groups."""
    group = item.get_closest_marker("xdist_group")
    if group is None:
        return item.nodeid
    return item.nodeid.removesuffix(f"@{group.kwargs.get('name', group.args[0] if group.args else 'default')}")


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest) -> Iterator[DPAudit]:
    """Audit a mechanism: dp_audit(mechanism, x, y, claim=PureDP(1.0)) fails if the audit is refuted or inconclusive.

    Takes the options of dpaudit.check, or neighbours= instead of x and y with the options of dpaudit.find_worst_pair,
    and returns the result. Audits are sequential by default. dp_audit.check(check_noise, …) runs another check, and
    dp_audit.replay(mechanism, x, y, claim=…) fails if what a noise primitive is given moves too far.
    """
    session = request.config.stash[_SESSION]
    refusal = session.refusal()
    if refusal:
        raise Failed(refusal, pytrace=False)
    if request.config.getoption("dp_audit_skip"):  # requested while the test runs
        pytest.skip("--dp-audit-skip")
    from .fixture import DPAudit

    name = _name(request.node)
    with pytest.MonkeyPatch.context() as patched:
        for kind in _expecting():
            patched.setattr(kind, "__exit__", _noted(kind.__exit__, session))
        yield DPAudit(session, name, request.path, _marked(request.node))
    is_idle = name not in session.finished and not session.still_running(lambda test: test == name)
    if is_idle and request.node.stash.get(_PASSED, False):
        raise Failed("the test requests dp_audit and makes no audit; call dp_audit or drop the fixture", pytrace=False)


def _expecting() -> list[type[Any]]:
    """The context managers with which a test says that it expects an exception."""
    import unittest

    raising, asserting = pytest.raises, unittest.TestCase().assertRaises
    contexts = [type(raising(AssertionError)), type(asserting(AssertionError))]
    groups = getattr(pytest, "RaisesGroup", None)  # since pytest 8.4
    return contexts if groups is None else [*contexts, groups]


def _noted(leave: Callable[..., Any], session: AuditSession) -> Callable[..., Any]:
    """The `__exit__` that also reports to the session which exceptions were expected."""

    def leave_and_note(self: Any, kind: Any, error: BaseException | None, traceback: Any) -> Any:
        __tracebackhide__ = True
        is_expected = leave(self, kind, error, traceback)
        if is_expected:
            session.expected(error)
        return is_expected

    return leave_and_note


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the findings of an xdist worker."""
    found = getattr(node, "workeroutput", {}).get(_FIXTURE)
    if found is not None:
        node.config.stash[_SESSION].take(found)


@pytest.hookimpl(wrapper=True, trylast=True)  # after all hooks, which may audit, and before the summary is printed
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, Any, Any]:
    """Save and compare the results; a comparison can fail a session whose tests passed."""
    try:
        return (yield)
    finally:
        _finish(session, exitstatus)


def _finish(session: pytest.Session, exitstatus: int) -> None:
    own = session.config.stash[_SESSION]
    if own.is_worker:
        session.config.workeroutput[_FIXTURE] = own.packed()  # type: ignore[attr-defined]  # xdist's
        return
    is_green = exitstatus == pytest.ExitCode.OK
    is_whole = (is_green or exitstatus == pytest.ExitCode.TESTS_FAILED) and not session.shouldstop
    given, root = _given(session.config), session.config.rootpath
    if own.finish(is_whole=is_whole, is_green=is_green, given=given, root=root) and is_green:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _given(config: pytest.Config) -> list[str]:
    """The tests selected on the command line, relative to the root; empty for all."""
    base, given = config.invocation_params.dir, []
    for argument in config.args:
        path = (base / argument.split("::")[0]).resolve()
        if path.is_relative_to(config.rootpath):
            rest = "".join(f"::{part}" for part in argument.split("::")[1:])
            relative = path.relative_to(config.rootpath).as_posix()
            given.append("" if relative == "." else relative + rest)
        else:
            given.append("..")  # the start of no test's name
    return [] if "" in given else given


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table of audits and the warnings of tests that passed."""
    lines = config.stash[_SESSION].summary()
    if lines:
        terminalreporter.section("privacy audits")
        for line in lines:
            is_bad = (
                ("✖ refuted" in line and "as expected" not in line)
                or ": the audit of baseline" in line
                or line.startswith("WARNING ")
            )
            terminalreporter.write_line(line, red=is_bad)
