"""Docstrings of the public names: what numpydoc's validator asks, and a method and its source for every audit."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import dpaudit

ROOTS = ("accountants", "adapters", "claims", "counts", "domains", "errors", "exact", "noise", "results", "training")
TOP_LEVEL = [name for name in dpaudit.__all__ if inspect.isfunction(getattr(dpaudit, name))]
OFF = {
    "ES01"  # an extended summary: most names need no second paragraph
}
OFF_BELOW = {
    "SA01",  # "See Also" of a method is that of its class; the names beside a class are in its module's docstring
    "EX01",  # a method without an example is shown by that of its class, and a result by that of its function
}
"""Off for methods, and for classes that are not at the top level."""
OFF_FOR_METHODS = OFF_BELOW | {
    "PR01",  # a method of a line explains its parameters in that line
    "RT01",  # and what it returns
}
KNOWN = {"dpaudit.settings": {"PR02"}}  # its options are the fields of `Options`, which its signature does not repeat
WITHOUT_METHOD = {"save", "load"}
"""Functions at the top level that read and write files, so no method and no source belongs to them."""


@functools.cache
def public() -> dict[str, Any]:
    """Public names, each where a user finds it first, with what they name."""
    found: dict[int, tuple[str, Any]] = {}
    for module in ("dpaudit", *(f"dpaudit.{name}" for name in ROOTS)):
        held = importlib.import_module(module)
        for name in held.__all__:
            found.setdefault(id(value := getattr(held, name)), (f"{module}.{name}", value))
    return dict(found.values())


def ours(kind: type) -> list[type]:
    """A class, and those of this package above it."""
    return [each for each in kind.__mro__ if each.__module__.startswith("dpaudit")]


def members(kind: type) -> Iterator[str]:
    """Public methods and properties, but for those of a public base, and overriding ones that have its docstring."""
    methods = (property, classmethod, staticmethod, functools.cached_property)
    for name in sorted({name for each in ours(kind) for name in vars(each) if not name.startswith("_")}):
        definers = [each for each in ours(kind) if name in vars(each)]
        member = vars(definers[0])[name]
        is_method = inspect.isfunction(member) or isinstance(member, methods)
        is_inherited = definers[0] is not kind and definers[0] in public().values()
        documented = [each for each in definers if vars(each)[name].__doc__]
        if is_method and not is_inherited and documented[:1] in ([], [definers[0]]):
            yield name


def undocumented(kind: type) -> set[str]:
    """Arguments of a class that neither its Parameters nor its Attributes list, nor those of a base.

    Results are made by the library and read by users, so their fields are Attributes. A class without a constructor
    of its own, such as an error or an Enum, has that of its base.
    """
    if "__init__" not in vars(kind):
        return set()
    documents = [NumpyDocString(inspect.cleandoc(each.__doc__ or "")) for each in ours(kind)]
    listed = {
        name
        for document in documents
        for section in ("Parameters", "Attributes")
        for parameter in document[section]
        for name in parameter.name.replace("*", "").split(", ")
    }
    return {*inspect.signature(kind).parameters} - listed


def findings(name: str, value: Any) -> Iterator[tuple[str, str, str]]:
    """What the validator finds in a public name and its members: name, code and sentence."""
    is_below = name.count(".") > 1 and inspect.isclass(value)
    for code, sentence in validate(name)["errors"]:
        if not (is_below and code in OFF_BELOW) and not (inspect.isclass(value) and code == "PR01"):
            yield name, code, sentence
    if inspect.isclass(value):
        if missing := undocumented(value):
            yield name, "PR01", f"{sorted(missing)} not documented"
        for member in members(value):
            for code, sentence in validate(f"{name}.{member}")["errors"]:
                if code not in OFF_FOR_METHODS:
                    yield f"{name}.{member}", code, sentence


def test_docstrings_follow_numpydoc():
    names = public()
    assert len(names) > 100
    assert sum(len([*members(value)]) for value in names.values() if inspect.isclass(value)) > 150
    found = [
        f"{where}: {code} {sentence}"
        for name, value in names.items()
        for where, code, sentence in findings(name, value)
        if code not in OFF | KNOWN.get(where, set())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", [name for name in TOP_LEVEL if name not in WITHOUT_METHOD])
def test_functions_state_what_they_assume_and_where_it_is_from(name):
    document = NumpyDocString(inspect.getdoc(getattr(dpaudit, name)))
    assert [section for section in ("Returns", "Raises", "Notes", "References") if not document[section]] == []


@pytest.mark.parametrize("module", ROOTS)
def test_modules_list_their_names(module):
    held = getattr(dpaudit, module)
    lines = held.__doc__.partition("\n\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == held.__all__
    assert all(len(line.split()) > 1 and getattr(held, line.split()[0]) is not None for line in lines)
