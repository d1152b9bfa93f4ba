"""The shape of the tree: which folder may import which, names of files, and their length."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("audit", "mechanisms", "experiments", "reports", "tests")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
LIBRARY = [path for path in FILES if path.relative_to(ROOT).parts[0] != "tests"]

ALLOWED = {
    "audit": {"audit"},
    "mechanisms": {"mechanisms", "audit"},
    "reports": {"reports", "audit"},
    "experiments": {"experiments", "reports", "mechanisms", "audit"},
}


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
                    found.add(parts[1:])
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


def imports_of(path: Path) -> set[tuple[str, ...]]:
    return imported(path.read_text(encoding="utf-8"), path.relative_to(ROOT).parts[:-1])


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    allowed = ALLOWED[path.relative_to(ROOT).parts[0]]
    assert {name[0] for name in imports_of(path)} <= allowed


@pytest.mark.parametrize("path", sorted((ROOT / "audit" / "inference").glob("*.py")), ids=lambda path: path.name)
def test_inference_sees_claims_and_counts_only(path):
    for name in imports_of(path):
        assert name[:2] in {("audit", "claims"), ("audit", "errors"), ("audit", "inference")}, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_named_for_what_they_hold_and_are_short(path):
    assert path.stem not in {"utils", "util", "helpers", "helper", "misc", "common"}
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


def test_nothing_else_lies_at_the_root():
    assert [path.name for path in ROOT.glob("*.py")] == ["__init__.py"]


def test_no_public_name_hides_a_folder():
    import dpaudit

    assert not set(dpaudit.__all__) & set(FOLDERS)
    assert not set(dpaudit.__all__) & {path.stem for path in (ROOT / "audit").glob("*.py")} - {"check"}
    assert all(hasattr(dpaudit, name) for name in dpaudit.__all__)


@pytest.mark.parametrize(
    ("source", "package", "found"),
    [
        ("from ..mechanisms import noise", ("audit",), ("mechanisms", "noise")),
        ("from .. import reports", ("audit",), ("reports",)),
        ("from ...reports.html import page", ("audit", "inference"), ("reports", "html", "page")),
        ("from .claims import Claim", ("audit",), ("audit", "claims", "Claim")),
        ("import dpaudit.reports.html", ("audit",), ("reports", "html")),
        ("from dpaudit import mechanisms", ("audit",), ("mechanisms",)),
        ("def f():\n    from ..experiments import cli", ("audit",), ("experiments", "cli")),
    ],
)
def test_the_reader_of_imports_sees_them(source, package, found):
    """The wrong twin: every way to import from the wrong side is found."""
    assert imported(source, package) == {found}
