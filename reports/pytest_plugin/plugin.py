"""The pytest plugin: a fixture for audits, an error budget for the session, a summary, baselines.

Every pytest session loads this module if the library is installed, so it imports pytest alone; the library is imported
when a test first requests the fixture.
"""

from __future__ import annotations

import ast
import inspect
import secrets
import tempfile
import textwrap
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from ...audit.errors import AuditError
from ...audit.files import regular
from .session import DEFAULTS, HELP, AuditSession, Failed, Settings, setting_from_text, with_lock

if TYPE_CHECKING:
    from .fixture import DPAudit

# Tests chosen by their sources: those that request a fixture, and those that concern changed files.
#
# A test requests a fixture by its parameters and those of its fixtures, as pytest knows them, or while it runs, with
# `getfixturevalue` of a request. It is left out only if neither the test nor its fixtures can do so: they have no
# request, or their code uses it only for what is known not to lead to the fixture.
#
# A test concerns a changed file if its file changed, or imports a changed module through any others. Imports are read
# from the sources, those inside functions included. Modules that a program imports by a name that it computes are not
# seen.

_SAFE = frozenset(
    ("addfinalizer", "cls", "config", "fixturename", "function", "keywords", "module", "param", "path", "scope")
)  # attributes of a request that do not lead to another fixture
_HIDDEN = {"eval", "exec", "locals", "vars", "globals"}  # functions that find a request without its name
_OF_HOOKS = {"getfixturevalue", "_request"}


def requesting(items: Sequence[pytest.Item], fixture: str) -> list[pytest.Item]:
    """Return the tests that request the fixture, or may request it while they run."""
    if items and _hooks_may_request(items[0].config):
        return list(items)
    known = dict[Any, set[str] | None]()
    return [item for item in items if _may_request(item, fixture, known)]


def _may_request(item: pytest.Item, fixture: str, known: dict[Any, set[str] | None]) -> bool:
    """Whether a test may request a fixture: by a name that is not seen, or by those of its fixtures and their code."""
    waiting, names = [*getattr(item, "fixturenames", ())], set[str]()
    sources: list[Any] = ["".join(each.source for each in getattr(getattr(item, "dtest", None), "examples", ()))]
    if "request" in getattr(getattr(item, "_fixtureinfo", None), "argnames", ()):
        sources.append(item.obj)  # type: ignore[attr-defined]  # a function's
    given = getattr(getattr(item, "callspec", None), "params", {})
    if "LazyFixture" in str([type(part).__name__ for value in given.values() for part in _parts(value)]):
        return True
    while waiting or sources:
        if sources:
            if (source := sources.pop()) not in known:
                known[source] = _requested(source)
            if (found := known[source]) is None:
                return True
            waiting += found
        elif (name := waiting.pop()) not in names:
            names.add(name)
            manager = item.session._fixturemanager
            for each in manager.getfixturedefs(name, item) or ():
                waiting += each.argnames
                if "request" in each.argnames and not each.func.__module__.startswith("_pytest."):
                    sources.append(each.func)
    return fixture in names


def _parts(value: Any) -> list[Any]:
    """The values in nested containers."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else None
    return [value] if inner is None else [part for each in inner for part in _parts(each)]


def _requested(source: Any) -> set[str] | None:
    """Names of the fixtures that a function, or the text of a doctest, requests while it runs; None if not known.

    They are known if the request is used for its attributes alone, and to call `getfixturevalue` with a text.
    """
    try:
        text = source if isinstance(source, str) else textwrap.dedent(inspect.getsource(source))
        tree = ast.parse(text)
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if hasattr(source, "__wrapped__"):  # code around the function has its arguments, too
        return None
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and _last(node) in _HIDDEN:
            return None
        if not isinstance(node, ast.Name) or node.id not in ("request", "getfixture"):
            continue
        used = above[node] if node.id == "request" else node
        attribute, outer = _last(used) if isinstance(used, ast.expr) else "", above.get(used)
        if attribute in ("getfixturevalue", "getfixture") and isinstance(outer, ast.Call) and outer.func is used:
            given = [*outer.args, *(each.value for each in outer.keywords)]
            if len(given) != 1 or not isinstance(given[0], ast.Constant):
                return None
            names.add(str(given[0].value))
            continue
        if isinstance(used, ast.Call) and _last(used.func) in ("getattr", "hasattr") and used.args[0] is node:
            attribute = str(getattr(used.args[1], "value", ""))
        is_of_node = attribute == "node" and isinstance(outer, ast.Attribute) and not outer.attr.startswith("_")
        if attribute not in _SAFE and not is_of_node:
            return None
    return names


def _hooks_may_request(config: pytest.Config) -> bool:
    """Whether a hook of the project, for example in a conftest file, may request fixtures for any test."""
    manager = config.pluginmanager
    hooks = [
        implementation.function
        for plugin in manager.get_plugins()
        for caller in manager.get_hookcallers(plugin) or ()
        for implementation in caller.get_hookimpls()
        if implementation.plugin is plugin
    ]
    return any(_mentions(hook, set()) for hook in hooks if not _is_installed(hook))


def _is_installed(function: Any) -> bool:
    """Whether a function is part of pytest, this library or another installed library."""
    code = getattr(function, "__code__", None)
    is_known = function.__module__.partition(".")[0] in ("_pytest", "xdist", _PACKAGE)
    return code is None or is_known or "site-packages" in Path(code.co_filename).parts


def _mentions(function: Any, seen: set[Any]) -> bool:
    """Whether a function, or one that it names, has a word by which hooks request fixtures."""
    seen.add(function)
    waiting, words = [function.__code__], set[str]()
    while waiting:
        code = waiting.pop()
        words |= {*code.co_names, *(each for each in code.co_consts if isinstance(each, str))}
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    named = [function.__globals__[name] for name in words & function.__globals__.keys()]
    named += [getattr(each, word, None) for each in named if isinstance(each, ModuleType) for word in words]
    called = {each for each in named if isinstance(each, FunctionType) and not _is_installed(each)} - seen
    return bool(words & _OF_HOOKS) or any(_mentions(each, seen) for each in called)


def _last(node: ast.expr) -> str:
    """The last part of a dotted name; empty for other expressions."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def concerned(tests: Iterable[Path], changed: Iterable[Path], root: Path) -> set[Path]:
    """Return the files of `tests` that concern a changed file; only files below `root` are followed."""
    for cached in (_imported, _top_level):  # files of an earlier call may have changed
        cached.cache_clear()
    altered, root = {path.resolve() for path in changed}, root.resolve()
    return {test for test in tests if not altered.isdisjoint(_reached(test.resolve(), root))}


def _reached(test: Path, root: Path) -> set[Path]:
    """A test file, the conftest files that apply to it, and the modules that they import, directly or not."""
    folders = [folder for folder in test.parents if folder.is_relative_to(root)]
    waiting = [test, *(folder / "conftest.py" for folder in folders)]
    reached: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting += [path for path in _imported(file) if path.is_relative_to(root)]
    return reached


@cache
def _imported(file: Path) -> frozenset[Path]:
    """Files of the modules and packages that a source names in its imports."""
    try:
        tree = ast.parse(regular(file).read_bytes())
    except (OSError, SyntaxError, ValueError):  # a missing conftest, or a file that a test could not import either
        return frozenset()
    found: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.update(_absolute(alias.name.split(".")))
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            for alias in node.names:
                if node.level > len(file.parents):  # an import from above the root of the disk
                    continue
                if node.level:
                    found.update(_inside([file.parents[node.level - 1]], [*parts, alias.name]))
                else:
                    found.update(_absolute([*parts, alias.name]))
        elif isinstance(node, ast.Assign) and "pytest_plugins" in map(_last, node.targets):
            for name in ast.walk(node.value):
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found.update(_absolute(name.value.split(".")))
    return frozenset(found)


def _absolute(parts: list[str]) -> Iterator[Path]:
    files, folders = _top_level(parts[0])
    yield from files
    yield from _inside(folders, parts[1:])


@cache
def _top_level(name: str) -> tuple[list[Path], list[Path]]:
    """The file of a top-level module, and the folders of a package; nothing is imported."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):  # a module without a spec, such as __main__
        return [], []
    if spec is None or (spec.origin and "site-packages" in Path(spec.origin).parts):
        return [], []
    folders = [Path(folder).resolve() for folder in spec.submodule_search_locations or ()]
    return ([Path(spec.origin).resolve()] if spec.has_location and spec.origin else []), folders


def _inside(folders: list[Path], parts: list[str]) -> Iterator[Path]:
    """Files of the packages along a dotted name, and of the module or package at its end."""
    for folder in folders:
        place = folder
        yield place / "__init__.py"
        for part in parts:
            yield place / f"{part}.py"
            place = place / part
            yield place / "__init__.py"


_SESSION = pytest.StashKey[AuditSession]()
_PASSED = pytest.StashKey[bool]()
_CHOICE = pytest.StashKey[str]()
_NONE_CONCERNED = pytest.StashKey[bool]()
_FIXTURE = "dp_audit"
_PACKAGE = __name__.partition(".")[0]
_MARKER = (
    "dp_audit(audits=1, expect=None, accepted=None, until=None, up_to=None, **options): the number of audits in this "
    "test, for the error budget; the verdict that they must have, such as refuted; a reason to accept a refutation "
    "until a day and up to a bound, for which all runs are made; options of check, such as runs or resolution. "
    "Precedence: call, marker, command line, configuration file."
)


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
    group.addoption("--dp-audit-explain", action="store_true", help="Replay the pair of a refuted audit, line by line.")
    group.addoption("--dp-audit-skip", action="store_true", help="Skip the tests that use dp_audit.")
    group.addoption("--dp-audit-only", action="store_true", help="Run only the tests that use dp_audit.")
    group.addoption(
        "--dp-audit-changed",
        nargs="*",
        metavar="FILE",
        help="Run only those tests of dp_audit whose file is among the files, or imports one of them; none is a pass.",
    )
    parser.addini("dp_audit_store", "Folder for the draws of unfinished audits (default: none).", default="")
    folder = "dp_audit_baselines"
    parser.addini(folder, f"Folder of the baselines (default: {folder}).", default=folder)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings and create the session's state."""
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
    report = _path(config, "dp_audit_report")
    if report is not None and report.suffix not in (".json", ".html", ".md"):
        raise pytest.UsageError(f"--dp-audit-report={report.name}: use a name that ends in .json, .html or .md.")
    config.stash[_SESSION] = session = AuditSession(
        settings=Settings(**values),
        baselines=config.rootpath / config.getini("dp_audit_baselines"),
        report=report,
        scripts=_path(config, "dp_audit_scripts"),
        store=_path(config, "dp_audit_store") or _folder_in_file(config, "dp_audit_store"),
        explain=config.getoption("dp_audit_explain"),
        save=config.getoption("dp_audit_save"),
        compare=config.getoption("dp_audit_compare"),
        n_workers=int(worker.get("workercount", 1)),
        is_worker=bool(worker),
        journal=_folder_of_worker(worker),
    )
    for baseline in (session.save, session.compare):
        try:
            if baseline is not None:
                session.baseline_path(baseline)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(_Watch(session), "dp_audit_watch")


def _path(config: pytest.Config, option: str) -> Path | None:
    """A path on the command line, relative to the folder in which pytest was started."""
    text = config.getoption(option)
    return config.invocation_params.dir / text if text else None


def _folder_of_worker(worker: dict[str, Any]) -> Path | None:
    """The folder in which an xdist worker keeps its journal; None on another machine than the session's."""
    journal = Path(worker["dp_audit_journal"]) if "dp_audit_journal" in worker else None
    if journal is None or not journal.parent.is_dir():
        return None
    return with_lock(journal)


def _with_journal(session: AuditSession) -> Path:
    """The folder of the session's journal, made when it is first needed."""
    if session.journal is None:
        session.journal = with_lock(Path(tempfile.mkdtemp(prefix="dp-audit-")))
    return session.journal


def _folder_in_file(config: pytest.Config, option: str) -> Path | None:
    """A folder in the configuration file, relative to the root of the tests."""
    text = config.getini(option)
    return config.rootpath / text if text else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Send the random seed and the place of its journal to an xdist worker."""
    session = node.config.stash[_SESSION]
    node.workerinput["dp_audit_seed"] = session.settings.seed
    node.workerinput["dp_audit_journal"] = str(_with_journal(session) / node.gateway.id)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Look for the libraries of a report and read the baseline, so that what is missing is an error at once."""
    own = session.config.stash[_SESSION]
    if own.report is not None and own.report.suffix == ".html" and not own.is_worker:
        from ...audit.errors import MissingExtraError
        from ..plain_text import require_for_html

        try:
            require_for_html()
        except MissingExtraError as error:
            raise pytest.UsageError(f"--dp-audit-report={own.report.name}: {error}") from error
    missing = own.missing_baseline()
    if missing is not None:
        raise pytest.UsageError(missing)
    if own.compare is not None or own.save is not None:
        try:
            own.baseline()
            own.check_former()
        except AuditError as error:
            remedy = "delete the baseline and write it again with --dp-audit-save"
            raise pytest.UsageError(f"{error} For a baseline: {remedy}.") from error


def pytest_report_header(config: pytest.Config) -> str | None:
    """Show the seed if it is not the default."""
    seed = config.stash[_SESSION].settings.seed
    return None if seed == DEFAULTS["seed"] else f"dp_audit: seed {seed} (--dp-audit-seed={seed} repeats the draws)"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Reserve every audit's alpha, and refuse a session that could exceed its error budget."""
    session = config.stash[_SESSION]
    session.files |= {_name(item).partition("::")[0] for item in items}
    _choose(config, items)
    audited = [item for item in items if _FIXTURE in getattr(item, "fixturenames", ())]
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
    if refusal and not session.is_worker:  # a worker cannot end the session, so its tests fail
        raise pytest.UsageError(refusal)
    session.note()


def _choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave in `items` what the command line asks for."""
    changed = config.getoption("dp_audit_changed")
    if changed is None and not config.getoption("dp_audit_only"):
        return

    audited = requesting(items, _FIXTURE)
    chosen = audited
    config.stash[_CHOICE] = (
        f"dp_audit: {len(items) - len(audited):,} of {len(items):,} tests cannot request dp_audit and are deselected"
    )
    if changed is not None:
        if named := [path for path in changed if "::" in path]:
            raise pytest.UsageError(
                f"--dp-audit-changed takes files, and {named[0]} names a test; put tests before it."
            )
        base = config.invocation_params.dir
        files = concerned({item.path for item in audited}, [base / path for path in changed], config.rootpath)
        chosen = [item for item in audited if item.path in files]
        config.stash[_NONE_CONCERNED] = bool(audited) and not chosen
        config.stash[_CHOICE] = (
            f"dp_audit: {len(chosen):,} of {len(audited):,} tests of dp_audit concern the changed files"
        )
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    """Record tests that were left out on purpose."""
    for item in items:
        item.config.stash[_SESSION].left_out.add(_name(item))


class _Watch:
    """Records skipped tests, also those of workers, as left out on purpose, and interruptions."""

    def __init__(self, session: AuditSession) -> None:
        self.session = session

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        names = {report.nodeid, report.nodeid.rpartition("@")[0] or report.nodeid}  # with and without an xdist group
        if report.skipped:
            self.session.left_out |= names
        if report.failed or hasattr(report, "wasxfail"):
            self.session.red |= names

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if isinstance(excinfo.value, KeyboardInterrupt):
            self.session.interrupted()


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
    session.read_journal()
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
        call.excinfo = _ending_in_the_test(call.excinfo)
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    if report.failed or hasattr(report, "wasxfail"):
        session.reported(name, call.excinfo and call.excinfo.value)
    return report


def _ending_in_the_test(caught: pytest.ExceptionInfo[BaseException]) -> pytest.ExceptionInfo[BaseException]:
    """Return what was caught without the last frames, those within the library, if the library raised on purpose.

    Other errors keep every frame: they come from the mechanism, or are bugs.
    """
    if not isinstance(caught.value, AuditError):
        return caught
    frames: list[TracebackType] = []
    traceback: TracebackType | None = caught.tb
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    while frames and frames[-1].tb_frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frames.pop()
    if not frames:
        return caught
    end: TracebackType | None = None
    for frame in reversed(frames):
        end = TracebackType(end, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return pytest.ExceptionInfo.from_exception(caught.value.with_traceback(end))


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
                f"{item.nodeid}: the marker dp_audit takes options by name alone, such as runs=10_000."
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

    _with_journal(session)
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
    """The `__exit__` that also tells the session which exceptions were expected."""

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
    own.read_journal()
    if own.is_worker:
        session.config.workeroutput[_FIXTURE] = own.packed()  # type: ignore[attr-defined]  # xdist's
        return
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.stash.get(_NONE_CONCERNED, False):
        session.exitstatus = exitstatus = pytest.ExitCode.OK  # no audit concerns the changed files
    is_green = exitstatus == pytest.ExitCode.OK
    is_whole = (is_green or exitstatus == pytest.ExitCode.TESTS_FAILED) and not session.shouldstop
    given, root = _given(session.config), session.config.rootpath
    if own.finish(is_whole=is_whole, is_green=is_green, given=given, root=root) and is_green:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    """Delete the journal."""
    if (session := config.stash.get(_SESSION, None)) is not None:
        session.close_journal()


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
