"""The pytest plugin: a fixture that audits, an error budget for the session, a summary, baselines.

Loaded by every pytest session of whoever has the library installed, so nothing but pytest is imported here; the
library is when a test first asks for the fixture.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .session import DEFAULTS, HELP, AuditSession, Settings, setting_from_text

if TYPE_CHECKING:
    from .fixture import DPAudit

_SESSION = pytest.StashKey[AuditSession]()
_PASSED = pytest.StashKey[bool]()
_FIXTURE = "dp_audit"
_MARKER = (
    "dp_audit(audits=1, accepted=None, until=None, up_to=None, **options): options of check for the audits of this "
    "test, such as runs, alpha or resolution; how many there are, for the error budget; a finding that is accepted for "
    "a reason, until a day, up to a bound."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line and of the configuration file."""
    group = parser.getgroup(_FIXTURE, "audits of differential privacy (fixture dp_audit)")
    for name, text in HELP.items():
        shown = f"{text}; by default {DEFAULTS[name]}" if DEFAULTS[name] is not None else text
        group.addoption(f"--dp-audit-{name}", dest=f"dp_audit_{name}", metavar=name.upper(), help=f"{shown}.")
        parser.addini(f"dp_audit_{name}", f"{shown}.")
    group.addoption("--dp-audit-report", metavar="PATH", help="Write the results to PATH: .json, .html or .md.")
    group.addoption(
        "--dp-audit-save", metavar="NAME", help="Save the results as the baseline NAME, or to a path in .json."
    )
    group.addoption("--dp-audit-compare", metavar="NAME", help="Fail where results differ from that baseline.")
    group.addoption("--dp-audit-scripts", metavar="DIR", help="Write a script for every violation, without dpaudit.")
    group.addoption("--dp-audit-skip", action="store_true", help="Skip the tests that use the fixture.")
    parser.addini(
        "dp_audit_baselines", "Folder of the baselines; by default dp_audit_baselines.", default="dp_audit_baselines"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Reads the settings, those of baselines too, and opens the session's record."""
    config.addinivalue_line("markers", _MARKER)
    values: dict[str, Any] = {}
    for name in DEFAULTS:
        text = config.getoption(f"dp_audit_{name}") or config.getini(f"dp_audit_{name}")
        try:
            values[name] = setting_from_text(name, text) if text else DEFAULTS[name]
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if values["seed"] == "random":
        values["seed"] = worker.get("dp_audit_seed") or secrets.randbits(32)
    config.stash[_SESSION] = session = AuditSession(
        settings=Settings(**values),
        baselines=config.rootpath / config.getini("dp_audit_baselines"),
        report=_report(config),
        scripts=_path(config, "dp_audit_scripts"),
        save=config.getoption("dp_audit_save"),
        compare=config.getoption("dp_audit_compare"),
        n_workers=int(worker.get("workercount", 1)),
        is_worker=bool(worker),
    )
    for baseline in (session.save, session.compare):
        try:
            if baseline is not None:
                session.baseline_path(baseline)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(_Watch(session), "dp_audit_watch")


def _path(config: pytest.Config, option: str) -> Path | None:
    """A path from the command line, from where pytest was called."""
    text = config.getoption(option)
    return config.invocation_params.dir / text if text else None


def _report(config: pytest.Config) -> Path | None:
    path = _path(config, "dp_audit_report")
    if path is not None and path.suffix not in (".json", ".html", ".md"):
        raise pytest.UsageError(f"--dp-audit-report={path.name}: use a name that ends in .json, .html or .md.")
    return path


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker of xdist the seed that was drawn."""
    node.workerinput["dp_audit_seed"] = node.config.stash[_SESSION].settings.seed


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Reads the baseline, before any test runs: one that is damaged is an error, and never a pass."""
    own = session.config.stash[_SESSION]
    if own.compare is not None:
        from ...audit.errors import AuditError

        try:
            own.baseline()
        except AuditError as error:
            way_out = f"--dp-audit-save={own.compare} writes it anew"
            raise pytest.UsageError(f"--dp-audit-compare: {error} ({way_out})") from error


def pytest_report_header(config: pytest.Config) -> str | None:
    """The seed, where it is not the usual one."""
    seed = config.stash[_SESSION].settings.seed
    return None if seed == DEFAULTS["seed"] else f"dp_audit: seed {seed} (--dp-audit-seed={seed} repeats the draws)"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Charges every audit to the budget, and refuses a session that may exceed it."""
    session = config.stash[_SESSION]
    audited = [item for item in items if _FIXTURE in getattr(item, "fixturenames", ())]
    session.files |= {_name(item).partition("::")[0] for item in items}
    if config.getoption("dp_audit_skip"):
        for item in audited:
            item.add_marker(pytest.mark.skip(reason="--dp-audit-skip"))
        return
    for item in audited:
        options = _marked(item)
        try:
            session.plan(_name(item), options.get("audits", 1), options.get("alpha", session.settings.alpha))
        except ValueError as error:
            raise pytest.UsageError(f"{item.nodeid}: {error}") from error
    refusal = session.refusal()
    if refusal and not session.is_worker:  # a worker cannot end the session: there each test refuses
        raise pytest.UsageError(refusal)


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    """Keeps in mind which tests were left out on purpose."""
    for item in items:
        item.config.stash[_SESSION].left_out.add(_name(item))


class _Watch:
    """Sees the reports of a session, those of workers too: tests that were skipped are left out on purpose."""

    def __init__(self, session: AuditSession) -> None:
        self.session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self.session.left_out.add(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Keeps in mind whether a test passed, for its audits."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


def pytest_report_collectionfinish(config: pytest.Config) -> str | None:
    """The error probability of all audits of the session together."""
    session = config.stash[_SESSION]
    return f"dp_audit: {session.statement()}" if session.planned else None


def _marked(item: pytest.Item) -> dict[str, Any]:
    """Options of the markers of a test, of its class and of its module, the nearest first."""
    options: dict[str, Any] = {}
    for marker in item.iter_markers(_FIXTURE):
        if marker.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker dp_audit takes options by name, such as runs=10_000.")
        options = {**marker.kwargs, **options}
    return options


def _name(item: pytest.Item) -> str:
    """The test's id, without what xdist adds to it for its groups."""
    group = item.get_closest_marker("xdist_group")
    if group is None:
        return item.nodeid
    return item.nodeid.removesuffix(f"@{group.kwargs.get('name', group.args[0] if group.args else 'default')}")


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest) -> Iterator[DPAudit]:
    """Audits a mechanism: dp_audit(mechanism, x, y, claim=PureDP(1.0)); fails where the claim is refuted.

    Takes the options of dpaudit.check, or neighbours= and those of dpaudit.find_worst_pair instead of x and y; returns
    the result. dp_audit.check(check_noise, …) makes another check of the library's. Sequential unless told otherwise.
    """
    session = request.config.stash[_SESSION]
    refusal = session.refusal()
    if refusal:
        pytest.fail(refusal, pytrace=False)
    from .fixture import DPAudit

    audit = DPAudit(session, _name(request.node), request.path, _marked(request.node))
    yield audit
    if audit.calls == 0 and request.node.stash.get(_PASSED, False):
        pytest.fail("the test asks for dp_audit and makes no audit", pytrace=False)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes over what a worker of xdist has found."""
    found = getattr(node, "workeroutput", {}).get(_FIXTURE)
    if found is not None:
        node.config.stash[_SESSION].take(found)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Saves and compares what was found; a comparison may turn a green session red."""
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
    """The tests that the command line asked for, relative to the root; empty where it asked for all."""
    base, given = config.invocation_params.dir, []
    for argument in config.args:
        path = (base / argument.split("::")[0]).resolve()
        if path.is_relative_to(config.rootpath):
            rest = "".join(f"::{part}" for part in argument.split("::")[1:])
            relative = path.relative_to(config.rootpath).as_posix()
            given.append("" if relative == "." else relative + rest)
        else:
            given.append("..")  # no test's name begins so
    return [] if "" in given else given


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """A line for every audit, and the warnings of tests that passed."""
    session = config.stash[_SESSION]
    lines = session.summary()
    if lines:
        terminalreporter.section("privacy audits")
        for line in lines:
            is_bad = "✖ refuted" in line or "has disappeared since" in line or line.startswith("WARNING ")
            terminalreporter.write_line(line, red=is_bad)
