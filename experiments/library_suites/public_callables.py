"""Public callables of a library, found by introspection of the installed version."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from .audited_library import PublicCallable


def public_callables(package: str, modules: Iterable[str]) -> tuple[PublicCallable, ...]:
    """Return the public functions and classes of some modules of a package, in alphabetical order.

    Names are those of ``__all__``, or without it all names that do not begin with an underscore and belong to the
    package. An object that several modules hold has the name of the first. A module that does not exist in this version
    has none.
    """
    found: dict[str, Any] = {}
    for module in modules:
        try:
            held = import_module(f"{package}.{module}")
        except ModuleNotFoundError as error:
            if error.name is None or not f"{package}.{module}".startswith(error.name):
                raise
            continue
        said = getattr(held, "__all__", None)
        for name in said or [name for name in vars(held) if not name.startswith("_")]:
            value = getattr(held, name)
            is_own = said is not None or _is_of(value, package, held.__name__)
            is_new = not any(value is one for one in found.values())
            if callable(value) and not inspect.ismodule(value) and is_own and is_new:
                found[f"{module}.{name}"] = value
    return tuple(PublicCallable(name, found[name]) for name in sorted(found))


def _is_of(value: Any, package: str, module: str) -> bool:
    """Return whether an object was made in a module, below it, or in a private or compiled part of its package."""
    home = str(getattr(value, "__module__", "") or "")
    is_private = home.partition(".")[0].lstrip("_") == package and "._" in home
    return home == package or home.startswith(module) or is_private or home.startswith("_")


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function or class without ``*args`` and ``**kwargs``; none if it does not say them."""
    try:
        held = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: one for name, one in held.items() if one.kind not in variable}


def required_of(function: Any) -> set[str]:
    """Return the names of the parameters without a default."""
    return {name for name, one in parameters_of(function).items() if one.default is one.empty}
