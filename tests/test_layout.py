"""The shape of the tree: the order of subpackages, names of files, their length and grain, and constants."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
FEWEST_LINES, MOST_LINES = 150, 900
SHORT_FILES, CONSTANTS = 34, 447
"""Files below the fewest lines, and numeric constants of `audit`. Each number may only fall."""
PACKAGES = ["audit", "mechanisms", "reports", "experiments"]
SUBPACKAGES = [
    "audit.printing", "audit.errors", "audit.clock", "audit.extras", "audit.files", "audit.options",
    "audit.settings", "audit.known_options", "audit.floating_point_errors", "audit.random_streams",
    "audit.progress", "audit.claims", "audit.events", "audit.datasets", "audit.inference", "audit.guesses",
    "audit.power", "audit.portfolio", "audit.sampling", "audit.health", "audit.results", "audit.records",
    "audit.store", "audit.replay", "audit.exact", "audit.procedures", "audit.canaries", "audit.search",
    "audit.sensitivity", "audit.distribution_checks", "audit.training", "audit.accounting", "audit.sentences",
    "mechanisms.noise_samplers", "mechanisms.queries", "mechanisms.distributions",
    "mechanisms.noise", "mechanisms.selection", "mechanisms.local", "mechanisms.composition",
    "mechanisms.aggregates", "mechanisms.synthetic", "mechanisms.faulty.flaw", "mechanisms.faulty.calibration",
    "mechanisms.faulty.noise", "mechanisms.faulty.selection", "mechanisms.faulty.local",
    "mechanisms.faulty.composition", "mechanisms.faulty.synthetic", "mechanisms.faulty", "mechanisms.adapters",
    "mechanisms.training", "mechanisms.faulty.training", "reports.plain_text", "reports.figures", "reports.pages",
    "reports.formats", "reports.pytest_plugin", "reports.cli", "experiments.cases", "experiments.statements",
    "experiments.documents", "experiments.suite", "experiments.catalogue", "experiments.published",
    "experiments.libraries", "experiments.library_suites", "experiments.benchmarks",
]  # fmt: skip
"""Files and folders in their order: each imports from those before it, and from itself."""
APART = {("audit.portfolio", "audit.sampling"), ("audit.search", "audit.distribution_checks")}
"""Neighbours in the order that do not import each other either."""


@functools.cache
def parsed(path: Path) -> ast.Module:
    """A module, which all tests of it parse once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(source: ast.Module, package: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Modules of the project that a source imports, anywhere in it, as paths from the root of the package.

    `package` is the folder of the importing file, from the root. Names imported from a module are given with it, as
    they may be modules themselves; TYPE_CHECKING blocks count like any other.
    """
    found = set()
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = tuple(alias.name.split("."))
                if parts[0] == "dpaudit":
                    found.add(parts[1:] or parts)
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                base = package[: len(package) - node.level + 1]
                assert node.level <= len(package) + 1, "an import from outside the package"
            elif module[:1] == ("dpaudit",):
                base, module = (), module[1:]
            else:
                continue
            found |= {(*base, *module, alias.name) for alias in node.names}
    return found


def subpackage_of(module: tuple[str, ...]) -> str | None:
    """The innermost subpackage of a module; None of a whole package, such as `mechanisms`."""
    parts = [".".join(module[:size]) for size in range(len(module), 0, -1)]
    return next((part for part in parts if part in SUBPACKAGES), None)


def backward(module: tuple[str, ...], names: set[tuple[str, ...]]) -> list[str]:
    """The imports of a module that run against the order of subpackages."""
    own, found = subpackage_of(module), []
    for name in sorted(names):
        subpackage = subpackage_of(name)
        if own is None or subpackage == own:
            continue
        if name[0] not in PACKAGES:  # a public name of the whole package, which loads everything
            is_before = False
        elif subpackage is None:  # the public names of a package
            is_before = PACKAGES.index(name[0]) < PACKAGES.index(module[0])
        else:
            is_before = SUBPACKAGES.index(subpackage) < SUBPACKAGES.index(own) and (subpackage, own) not in APART
        if not is_before:
            found.append(f"{'.'.join(module)} imports {'.'.join(name)}")
    return found


FILES = sorted(path for top in PACKAGES for path in (ROOT / top).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MODULES = {
    parts[:-1] if parts[-1] == "__init__" else parts: path
    for path in FILES
    for parts in [path.relative_to(ROOT).with_suffix("").parts]
}


@functools.cache
def names_of_modules() -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """What each module imports; every process that collects tests would parse all sources for a constant."""
    return {module: imported(parsed(path), path.relative_to(ROOT).parts[:-1]) for module, path in MODULES.items()}


def test_imports_follow_the_order_of_subpackages():
    assert [line for module, names in names_of_modules().items() for line in backward(module, names)] == []
    assert sorted(module for module in MODULES if subpackage_of(module) is None) == sorted((top,) for top in PACKAGES)


def test_no_circle_of_modules():
    graph = nx.DiGraph()
    for module, names in names_of_modules().items():
        targets = {name if name in MODULES else name[:-1] for name in names}
        graph.add_edges_from((module, target) for target in targets if target in MODULES and target != module)
    assert [circle for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []


def test_reports_know_no_mechanism_and_inference_sees_claims_and_counts_only():
    """But for the command line, which runs programs with an adapter."""
    inference = {("audit", name) for name in ("claims", "errors", "inference", "options", "printing")}
    for module, names in names_of_modules().items():
        if module[0] == "reports":
            known = {"audit", "reports"} | ({"mechanisms"} if module == ("reports", "cli", "audit_commands") else set())
            assert {name[0] for name in names} <= known, module
        if module[:2] == ("audit", "inference"):
            assert {name[:2] for name in names} <= inference, module


def test_installed_modules_import_none_that_is_not_installed():
    (found,) = re.findall(r"^EVIDENCE = (\(.*\))$", (ROOT / "setup.py").read_text(encoding="utf-8"), re.M)
    evidence = [tuple(name.split(".")) for name in ast.literal_eval(found)]
    assert [
        (module, name)
        for module, names in names_of_modules().items()
        for name in names
        if module[:2] not in evidence and name[:2] in evidence
    ] == []


def test_no_private_name_leaves_its_module():
    assert [
        (module, name) for module, names in names_of_modules().items() for name in names if name[-1].startswith("_")
    ] == []


def test_every_room_says_what_it_is_for():
    for path in FILES:
        if path.name == "__init__.py":
            assert "." in (ast.get_docstring(parsed(path)) or ""), path


def test_the_public_names_of_a_room_are_in_it():
    """A subpackage's docstring lists them: importing them there would load all of it for every part."""
    named = 0
    for path in FILES:
        text = ast.get_docstring(parsed(path)) or ""
        if path.name == "__init__.py" and "Public names: " in text:
            held = "".join(part.read_text(encoding="utf-8") for part in path.parent.glob("*.py") if part != path)
            for name in re.findall(r"`(\w+)`", text.partition("Public names: ")[2]):
                assert re.search(rf"^(class|def) {name}\b|^{name}\b.* = ", held, re.MULTILINE), (path, name)
                named += 1
    assert named > 60


def test_a_file_holds_a_whole_idea():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES + TESTS}
    assert {path.stem for path in lines} & {"utils", "util", "helpers", "helper", "misc", "common"} == set()
    assert [path for path, length in lines.items() if length > MOST_LINES] == []
    short = [str(path.relative_to(ROOT)) for path in FILES if path.name != "__init__.py" and lines[path] < FEWEST_LINES]
    assert len(short) <= SHORT_FILES, short


def parts(sources: dict[tuple[str, ...], str], imports: dict[tuple[str, ...], set[tuple[str, ...]]]) -> list[str]:
    """The modules with a single importer, which lies in their folder and could hold them.

    A module stays apart if both together were longer than a file, if it is imported late, or if the first line of its
    docstring says why it is "kept apart".
    """
    importers: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, names in imports.items():
        for target in {name if name in sources else name[:-1] for name in names} - {module}:
            importers.setdefault(target, set()).add(module)
    found = []
    for module, source in sources.items():
        importer, *others = importers.get(module, {()})
        is_apart = importer[:-1] != module[:-1] or ", kept apart because " in source.partition("\n")[0]
        if others or importer not in sources or is_apart:
            continue
        at_once = [node for node in ast.parse(sources[importer]).body if isinstance(node, ast.ImportFrom)]
        names = imported(ast.Module(at_once, []), importer[:-1])
        fits = source.count("\n") + sources[importer].count("\n") <= MOST_LINES
        if fits and module in names | {name[:-1] for name in names}:
            found.append(f"{'.'.join(module)} is a part of {'.'.join(importer)}")
    return found


def test_a_module_with_one_importer_is_a_part_of_it():
    texts = {module: path.read_text(encoding="utf-8") for module, path in MODULES.items() if path.stem != "__init__"}
    assert parts(texts, names_of_modules()) == []


def constants(source: str) -> dict[str, bool]:
    """The names that a module binds to numbers, and whether a comment or a docstring stands at each."""
    body, lines, found = ast.parse(source).body, source.splitlines(), {}
    numeric = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop)
    for node, following in itertools.pairwise([*body, ast.Pass()]):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] * len(target.elts)
            pairs = list(zip(target.elts, values, strict=True))
        said = isinstance(following, ast.Expr) or any("#" in line for line in lines[node.lineno - 1 : node.end_lineno])
        is_explained = said or lines[max(node.lineno - 2, 0)].startswith("#")
        for name, value in pairs:
            kinds = {type(leaf.value) for leaf in ast.walk(value) if isinstance(leaf, ast.Constant)}
            is_number = all(isinstance(part, numeric) for part in ast.walk(value)) and kinds <= {int, float}
            if isinstance(name, ast.Name) and name.id.isupper() and is_number:
                found[name.id] = is_explained
    return found


def test_numbers_in_the_library_have_a_reason():
    found = {path: constants(path.read_text(encoding="utf-8")) for path in FILES if path.is_relative_to(ROOT / "audit")}
    assert sum(map(len, found.values())) <= CONSTANTS
    assert [
        f"{path.stem}.{name}"
        for path, names in found.items()
        for name, is_explained in names.items()
        if not is_explained
    ] == []


def listed_in_the_guide(heading: str) -> list[str]:
    """The lines of the first list under a heading of the guide."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    return text.partition("```text\n")[2].partition("```")[0].splitlines()


def test_the_guide_lists_the_subpackages_in_their_order():
    lines = [line.removeprefix(" ") for line in listed_in_the_guide("Layout")]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [*PACKAGES, "tests", "*.py"]
    of_audit = itertools.takewhile(lambda line: line.startswith(" "), lines[1:])
    folders = [subpackage.removeprefix("audit.") for subpackage in SUBPACKAGES if subpackage.startswith("audit.")]
    assert [line.split()[0] for line in of_audit] == [name for name in folders if (ROOT / "audit" / name).is_dir()]


def test_the_call_path_in_the_guide_is_one_of_imports():
    path = [Path(line.split()[0]).with_suffix("").parts for line in listed_in_the_guide("Call path of one audit")]
    assert 8 <= len(path) <= 15
    assert all(module in MODULES for module in path)
    for place, module in enumerate(path[1:], 1):
        imports = set().union(*(names_of_modules()[earlier] for earlier in path[:place]))
        assert module in {name[: len(module)] for name in imports}, module


def test_the_library_states_the_error_probability_of_every_test():
    """Users may leave alpha out; a test inside an audit that did would have its own, outside of the error budget."""
    tests = {"parameter_lower", "joint_test", "total_variation_upper", "confidence_band", "ratio_intervals",
             "renyi_lower", "epsilon_lower"}  # fmt: skip
    calls = [
        (path, node)
        for path in FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in tests
    ]
    assert len(calls) > 8
    assert [(path, call.lineno) for path, call in calls if "alpha" not in {key.arg for key in call.keywords}] == []
