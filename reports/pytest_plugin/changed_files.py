"""Tests that concern changed files: those whose file changed, or imports a changed module through any others.

Imports are read from the sources, those inside functions included. Modules that a program imports by a name that it
computes are not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path


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
        tree = ast.parse(file.read_bytes())
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
