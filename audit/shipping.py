"""Sending a mechanism and its datasets to worker processes, by value where a worker could not import them."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import cloudpickle

from .errors import MechanismError


@dataclass(frozen=True, slots=True)
class Parcel:
    """An object as bytes, which a worker opens once."""

    content: bytes

    def open(self) -> Any:
        """The object; the same one for equal parcels in one process."""
        return _open(self.content)


@lru_cache(maxsize=8)
def _open(content: bytes) -> Any:
    return cloudpickle.loads(content)


def pack(value: Any, parts: list[Any], name: str) -> Parcel:
    """`value` as a parcel. Functions and types of the modules of `parts` go by value if a worker cannot import them.

    Raises
    ------
    MechanismError
        If something in it cannot be pickled.
    """
    with ExitStack() as stack:
        for module in {module.__name__: module for part in parts for module in _modules(part)}.values():
            if not _is_importable(module) and module.__name__ not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return Parcel(cloudpickle.dumps(value))
        except Exception as error:  # whatever a user's __reduce__ raises
            raise MechanismError(
                f"{name} or its datasets cannot be sent to a worker process ({type(error).__name__}: {error}); use "
                "jobs=1, or a block sampler (a parameter named size), which runs in threads.",
                mechanism=name,
            ) from error


def state_of(function: Any) -> list[bytes]:
    """What copies of a function or an object, and of the variables of its module that it names, would begin with.

    If a run changes it, there is state: a generator of its own, a counter, the second of a pair of numbers. What cannot
    be copied is left out.
    """
    states = []
    for part in (function, *_variables(function)):
        try:
            states.append(pack(part, [part], "").content)
        except MechanismError:
            states.append(b"")
    return states


def _variables(function: Any) -> Iterator[Any]:
    """Values of the variables of a module that a function, a method or an object's call names."""
    while isinstance(function, functools.partial):
        function = function.func
    if not isinstance(function, (FunctionType, MethodType)):
        function = inspect.getattr_static(function, "__call__", None)
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        return
    codes = [function.__code__]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    for name in sorted({name for code in codes for name in code.co_names}):
        value = function.__globals__.get(name)
        if not isinstance(value, (ModuleType, type, FunctionType, BuiltinFunctionType)):
            yield value


def _modules(part: Any) -> Iterator[ModuleType]:
    """The modules in which an object, what it wraps, and its type are defined."""
    owners = [part, getattr(part, "func", None), getattr(part, "__self__", None), type(part)]
    owners.append(type(getattr(part, "__self__", None)))
    for owner in owners:
        module = sys.modules.get(getattr(owner, "__module__", None) or "")
        if module is not None and module.__name__ not in ("builtins", "__main__"):
            yield module


def _is_importable(module: ModuleType) -> bool:
    """Whether a fresh interpreter with the same path finds this very module under its name."""
    path, spec, name = None, None, ""
    for part in module.__name__.split("."):
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return False
        path = spec.submodule_search_locations
    return spec is not None and spec.origin == getattr(module, "__file__", None)
