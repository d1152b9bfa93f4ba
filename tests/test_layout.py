"""The shape of the tree: the order of rooms, names of files, and their length."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections import Counter
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES, MOST_MODULES = 800, 22
PACKAGES = ["audit", "mechanisms", "reports", "experiments"]
ROOMS = [
    "audit.errors", "audit.clock", "audit.extras", "audit.printing", "audit.files", "audit.options", "audit.settings",
    "audit.known_options", "audit.floating_point_errors", "audit.random_streams", "audit.progress",
    "audit.claims", "audit.events", "audit.datasets", "audit.inference", "audit.guesses", "audit.power",
    "audit.families", "audit.distinguishers", "audit.sampling",
    "audit.health", "audit.results", "audit.records", "audit.store",
    "audit.procedures", "audit.canaries", "audit.replay", "audit.search", "audit.sensitivity",
    "audit.distribution_checks",
    "mechanisms.noise_samplers", "mechanisms.queries",
    "mechanisms.laws", "mechanisms.noise", "mechanisms.selection", "mechanisms.local", "mechanisms.composition",
    "mechanisms.aggregates", "mechanisms.synthetic",
    "mechanisms.faulty.flaw", "mechanisms.faulty.calibration", "mechanisms.faulty.noise",
    "mechanisms.faulty.selection", "mechanisms.faulty.local", "mechanisms.faulty.composition",
    "mechanisms.faulty.synthetic", "mechanisms.faulty", "mechanisms.adapters", "mechanisms.training",
    "mechanisms.faulty.training",
    "reports.libraries", "reports.plain_text", "reports.cautions", "reports.source_places",
    "reports.figures", "reports.pages", "reports.formats", "reports.pytest_plugin",
    "experiments.cases", "experiments.statements", "experiments.documents", "experiments.suite",
    "experiments.catalogue", "experiments.published.google_cases", "experiments.published", "experiments.libraries",
    "experiments.library_suites",
    "experiments.bench.core", "experiments.bench.inference", "experiments.bench.detection", "experiments.bench.peers",
    "experiments.bench.regression", "experiments.bench.reports", "experiments.bench.scale", "experiments.bench.faults",
    "experiments.bench.replays", "experiments.bench.canaries",
    "experiments.bench", "experiments.cli",
]  # fmt: skip
"""Files and folders in their order: each imports from those before it, and from itself."""
APART = {("audit.distinguishers", "audit.sampling"), ("audit.search", "audit.distribution_checks")}
"""Neighbours in the order that do not import each other either."""


def imported(source: str, package: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Modules of the project that a source imports, anywhere in it, as paths from the root of the package.

    `package` is the folder of the importing file, from the root. Names imported from a module are given with it, as
    they may be modules themselves; TYPE_CHECKING blocks count like any other.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
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


def room_of(module: tuple[str, ...]) -> str | None:
    """The innermost room of a module; None of a whole package, such as `mechanisms`."""
    parts = [".".join(module[:size]) for size in range(len(module), 0, -1)]
    return next((part for part in parts if part in ROOMS), None)


def backward(module: tuple[str, ...], names: set[tuple[str, ...]]) -> list[str]:
    """The imports of a module that run against the order of rooms."""
    own, found = room_of(module), []
    for name in sorted(names):
        room = room_of(name)
        if own is None or room == own:
            continue
        if name[0] not in PACKAGES:  # a public name of the whole package, which loads everything
            is_before = False
        elif room is None:  # the public names of a package
            is_before = PACKAGES.index(name[0]) < PACKAGES.index(module[0])
        else:
            is_before = ROOMS.index(room) < ROOMS.index(own) and (room, own) not in APART
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
    return {
        module: imported(path.read_text(encoding="utf-8"), path.relative_to(ROOT).parts[:-1])
        for module, path in MODULES.items()
    }


def test_imports_follow_the_order_of_rooms():
    assert [line for module, names in names_of_modules().items() for line in backward(module, names)] == []
    assert sorted(module for module in MODULES if room_of(module) is None) == sorted((top,) for top in PACKAGES)


def test_reports_know_no_mechanism():
    for module, names in names_of_modules().items():
        assert module[0] != "reports" or {name[0] for name in names} <= {"audit", "reports"}, module


def test_no_circle_of_modules():
    graph = nx.DiGraph()
    for module, names in names_of_modules().items():
        targets = {name if name in MODULES else name[:-1] for name in names}
        graph.add_edges_from((module, target) for target in targets if target in MODULES and target != module)
    assert [circle for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []


def test_inference_sees_claims_and_counts_only():
    for module, names in names_of_modules().items():
        if module[:2] == ("audit", "inference"):
            known = {("audit", room) for room in ("claims", "errors", "inference", "options", "printing")}
            assert {name[:2] for name in names} <= known


def test_no_private_name_leaves_its_module():
    assert [
        (module, name) for module, names in names_of_modules().items() for name in names if name[-1].startswith("_")
    ] == []


def test_every_room_says_what_it_is_for():
    for path in FILES:
        if path.name == "__init__.py":
            assert "." in (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""), path


def test_the_public_names_of_a_room_are_in_it():
    """A room's docstring lists them: importing them there would load the whole room for every part of it."""
    named = 0
    for path in FILES:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if path.name == "__init__.py" and "Public names: " in text:
            held = "".join(part.read_text(encoding="utf-8") for part in path.parent.glob("*.py") if part != path)
            for name in re.findall(r"`(\w+)`", text.partition("Public names: ")[2]):
                assert re.search(rf"^(class|def) {name}\b|^{name}\b.* = ", held, re.MULTILINE), (path, name)
                named += 1
    assert named > 60


def test_files_are_short_and_folders_small():
    for path in FILES + TESTS:
        assert path.stem not in {"utils", "util", "helpers", "helper", "misc", "common"}, path
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, path
    sizes = Counter(path.parent for path in FILES + TESTS if path.name != "__init__.py")
    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def listed_in_the_guide(heading: str) -> list[str]:
    """The lines of the first list under a heading of the guide."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    return text.partition("```text\n")[2].partition("```")[0].splitlines()


def test_the_guide_lists_the_subpackages_in_their_order():
    lines = [line.removeprefix(" ") for line in listed_in_the_guide("Layout")]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [*PACKAGES, "tests"]
    of_audit = itertools.takewhile(lambda line: line.startswith(" "), lines[1:])
    folders = [room.removeprefix("audit.") for room in ROOMS if room.startswith("audit.")]
    assert [line.split()[0] for line in of_audit] == [name for name in folders if (ROOT / "audit" / name).is_dir()]


def test_the_call_path_in_the_guide_is_one_of_imports():
    path = [Path(line.split()[0]).with_suffix("").parts for line in listed_in_the_guide("Call path of one audit")]
    assert 8 <= len(path) <= 15
    assert all(module in MODULES for module in path)
    for place, module in enumerate(path[1:], 1):
        imports = set().union(*(names_of_modules()[earlier] for earlier in path[:place]))
        assert module in {name[: len(module)] for name in imports}, module


def test_nothing_else_lies_at_the_root():
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_no_public_name_hides_a_folder():
    import dpaudit

    assert not set(dpaudit.__all__) & {module[0] for module in MODULES}
    assert all(hasattr(dpaudit, name) for name in dpaudit.__all__)


@pytest.mark.parametrize(
    ("source", "package", "found"),
    [
        ("from ..mechanisms import noise", ("audit",), ("mechanisms", "noise")),
        ("from .. import reports", ("audit",), ("reports",)),
        ("from ...reports.pages import html", ("audit", "inference"), ("reports", "pages", "html")),
        ("from .claim import Claim", ("audit", "claims"), ("audit", "claims", "claim", "Claim")),
        ("import dpaudit.reports.pages", ("audit",), ("reports", "pages")),
        ("from dpaudit import mechanisms", ("audit",), ("mechanisms",)),
        ("from .. import PureDP", ("audit",), ("PureDP",)),
        ("import dpaudit", ("audit",), ("dpaudit",)),
        ("def f():\n    from ..experiments import cli", ("audit",), ("experiments", "cli")),
    ],
)
def test_the_reader_of_imports_sees_them(source, package, found):
    """The wrong twin: every way to import from the wrong side is found."""
    assert imported(source, package) == {found}
    if package == ("audit",):
        assert backward(("audit", "claims", "claim"), {found})


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (("audit", "claims", "claim"), ("audit", "events", "outputs", "Outputs")),
        (("audit", "distinguishers", "event_choice"), ("audit", "sampling", "plan", "Plan")),
        (("audit", "sampling", "plan"), ("audit", "distinguishers", "event_choice", "Choice")),
        (("mechanisms", "noise", "laplace"), ("mechanisms", "faulty", "twin", "Twin")),
        (("experiments", "bench", "core", "page"), ("experiments", "bench", "all_pages", "PAGES")),
        (("reports", "pages", "html_page"), ("experiments", "cli", "main", "main")),
        (("audit", "results", "look"), ("mechanisms", "LaplaceMechanism")),
        (("mechanisms", "noise", "laplace"), ("mechanisms", "LaplaceMechanism")),
        (("mechanisms", "noise", "laplace"), ("PureDP",)),
        (("experiments", "cli", "main"), ("dpaudit",)),
    ],
)
def test_an_arrow_that_runs_back_is_found(module, name):
    assert backward(module, {name})
