"""Tests chosen by their sources: those that request a fixture, and those that concern changed files.

A test requests a fixture by its parameters, or while it runs, with `getfixturevalue`; then its source, or that of a
fixture or function that it names, has the call. A call with a name that is computed may request any fixture.

A test concerns a changed file if its file changed, or imports a changed module through any others. Imports are read
from the sources, those inside functions included. Modules that a program imports by a name that it computes are not
seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_REQUESTS = (
    "getfixturevalue",
    "getfixture",
    "lazy_fixture",
    "lf",
)  # of pytest, its doctests, and pytest-lazy-fixture(s)
_ANY = "*"  # the fixture of a call whose argument is computed


@dataclass(frozen=True, slots=True)
class _Code:
    """What a function, or the code outside functions, requests and names."""

    name: str  # of the function; empty outside functions
    fixture: str  # the name as a fixture; empty for others
    parameters: frozenset[str]
    requested: frozenset[str]
    named: frozenset[str]


def requesting(items: Sequence[pytest.Item], fixture: str, root: Path) -> list[pytest.Item]:
    """Return the tests that request the fixture, or may request it while they run."""
    for cached in (_imported, _top_level, _code_of):
        cached.cache_clear()
    tests = {_function_of(item) for item in items}
    root, known = root.resolve(), dict[Path, tuple[frozenset[str], frozenset[str]]]()
    chosen = []
    for item in items:
        if item.path not in known:
            files = sorted(_reached(item.path.resolve(), root))
            known[item.path] = _ways_to(fixture, [code for file in files for code in _code_of(file)], tests)
        fixtures, functions = known[item.path]
        example = _examples_of(item)
        if (
            fixtures.intersection(getattr(item, "fixturenames", ()))
            or functions & {"", _function_of(item), *example.named}
            or example.requested & {*fixtures, _ANY}
        ):
            chosen.append(item)
    return chosen


def _function_of(item: pytest.Item) -> str:
    return str(getattr(item, "originalname", None) or item.name)


def _ways_to(fixture: str, codes: Sequence[_Code], tests: set[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Names of fixtures and of functions that lead to a fixture; an empty name stands for code that always runs."""
    fixtures, functions = {fixture}, set[str]()
    while True:
        before = len(fixtures) + len(functions)
        for code in codes:
            if code.requested & {*fixtures, _ANY} or code.named & functions - tests:
                functions.add("" if code.name.startswith("pytest_") else code.name)
                fixtures |= {code.fixture} - {""}
            elif code.fixture and code.parameters & fixtures:
                fixtures.add(code.fixture)
        if len(fixtures) + len(functions) == before:
            return frozenset(fixtures), frozenset(functions)


def _examples_of(item: pytest.Item) -> _Code:
    """The code of a doctest."""
    source = "".join(example.source for example in getattr(getattr(item, "dtest", None), "examples", ()))
    try:
        return _code("", "", frozenset(), [ast.parse(source)])
    except SyntaxError:  # which the doctest itself will show
        return _code("", "", frozenset(), [])


@cache
def _code_of(file: Path) -> tuple[_Code, ...]:
    """The functions of a source, methods included, and its code outside functions."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # as in _imported
        return ()
    aliases = {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    found, outside, waiting = [], list[ast.AST](), list[ast.AST](tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inputs = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            parameters = frozenset(each.arg for each in inputs)
            found.append(_code(node.name, _name_as_fixture(node), parameters, [node], aliases))
        elif isinstance(node, (ast.ClassDef, ast.If, ast.Try, ast.With)):
            waiting += ast.iter_child_nodes(node)
        else:
            outside.append(node)
    return (*found, _code("", "", frozenset(), outside, aliases))


def _name_as_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    for decorator in node.decorator_list:
        if "fixture" in ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator):
            names = [each.value for each in getattr(decorator, "keywords", ()) if each.arg == "name"]
            return str(getattr(names[0], "value", _ANY)) if names else node.name
    return ""


def _code(
    name: str, fixture: str, parameters: frozenset[str], nodes: list[Any], aliases: dict[str, str] | None = None
) -> _Code:
    requested, named, read = set[str](), set[str](), set[int]()
    for node in (part for each in nodes for part in ast.walk(each)):
        if isinstance(node, ast.Call) and _last(node.func) in _REQUESTS:
            read.add(id(node.func))
            given = [*node.args, *(each.value for each in node.keywords)]
            is_text = len(given) == 1 and isinstance(given[0], ast.Constant)
            requested.add(str(given[0].value) if is_text else _ANY)  # type: ignore[attr-defined]  # a constant's
        elif isinstance(node, (ast.Name, ast.Attribute)):
            named.add(_last(node))
            if _last(node) == _REQUESTS[0] and id(node) not in read:  # passed on, to be called elsewhere
                requested.add(_ANY)
        elif isinstance(node, ast.Constant) and node.value == _REQUESTS[0]:  # the same, by getattr
            requested.add(_ANY)
    named |= {aliases[each] for each in named & aliases.keys()} if aliases else set()
    return _Code(name, fixture, parameters, frozenset(requested), frozenset(named))


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
