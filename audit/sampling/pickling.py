"""Send a mechanism and its datasets to worker processes, by value if a worker could not import them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any
from uuid import uuid4

import cloudpickle
import numpy as np
import numpy.typing as npt

from ..errors import MechanismError
from .object_identity import is_library

_OPENED: dict[str, Any] = {}  # the last object, by its label
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """A pickled object, in an array because joblib puts large arrays into shared memory."""

    content: npt.NDArray[np.uint8]
    label: str = field(default_factory=lambda: uuid4().hex)  # unique to this parcel
    maker: int = field(default_factory=os.getpid)  # the process that made it

    def open(self) -> Any:
        """Return a new copy of the object."""
        return cloudpickle.loads(self.content.data)

    def open_once(self) -> Any:
        """Return the object, the same one for each call in a process; it does not refer to the shared bytes."""
        with _LOCK:
            if self.label not in _OPENED:
                _OPENED.clear()
                _OPENED[self.label] = self.open()
            return _OPENED[self.label]


def pack(value: Any, parts: list[Any], name: str, *, is_far: bool = False) -> Parcel:
    """Return `value` as a parcel; the modules of `parts` are pickled by value if a worker cannot import them.

    With `is_far`, workers may be on other machines, which have installed packages but not the user's modules.
    """
    return next(pack_each([value], parts, name, is_far=is_far))


def pack_each(values: Iterable[Any], parts: list[Any], name: str, *, is_far: bool = False) -> Iterator[Parcel]:
    """Yield the parcel of each value as in `pack`, after one check of what a worker can import."""
    modules = {module.__name__: module for part in parts for module in _modules(part)}.values()
    unknown = [module for module in modules if not (is_library(module) if is_far else _is_importable(module))]
    for value in values:
        yield Parcel(np.frombuffer(_pickled(value, unknown, name), np.uint8))


def _pickled(value: Any, by_value: list[ModuleType], name: str) -> bytes:
    with ExitStack() as stack:
        for module in by_value:
            if module.__name__ not in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.register_pickle_by_value(module)
                stack.callback(cloudpickle.unregister_pickle_by_value, module)
        try:
            return bytes(cloudpickle.dumps(value))
        except Exception as error:  # a user's __reduce__ may raise anything
            raise MechanismError(
                f"{name} or its datasets cannot be sent to a worker process ({type(error).__name__}: {error}); use "
                "jobs=1, or a vectorised mechanism (a parameter named size), which runs in threads.",
                mechanism=name,
            ) from error


def _modules(part: Any) -> Iterator[ModuleType]:
    """Yield the modules that define an object, the object it wraps, and their types."""
    owners = [part, getattr(part, "func", None), getattr(part, "__self__", None), type(part)]
    owners.append(type(getattr(part, "__self__", None)))
    for owner in owners:
        module = sys.modules.get(getattr(owner, "__module__", None) or "")
        if module is not None and module.__name__ not in ("builtins", "__main__"):
            yield module


def _is_importable(module: ModuleType) -> bool:
    """Whether a fresh interpreter with the same path finds this same module under its name."""
    path, spec, name = None, None, ""
    for part in module.__name__.split("."):
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return False
        path = spec.submodule_search_locations
    return spec is not None and spec.origin == getattr(module, "__file__", None)
