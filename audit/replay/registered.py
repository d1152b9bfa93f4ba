"""The noise primitives that a replay records: each family names its patches, which a library's adapter may register."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Patch:
    """An attribute that is replaced while a run is recorded."""

    owner: Any
    name: str
    replacement: Any


@dataclass(frozen=True, slots=True)
class PrimitiveFamily:
    """Noise primitives of one library; patched only if the process has imported its module."""

    module: str
    patches: Callable[[int], Iterable[Patch]]
    """From the seed of the run to the patches."""


_FAMILIES: Final[dict[str, PrimitiveFamily]] = {}


def register_primitives(name: str, module: str, patches: Callable[[int], Iterable[Patch]]) -> None:
    """Add a family of primitives under this name, or replace it."""
    _FAMILIES[name] = PrimitiveFamily(module, patches)


def registered_names() -> tuple[str, ...]:
    """Return the names of all families."""
    return tuple(_FAMILIES)


def imported_families(names: Iterable[str]) -> list[PrimitiveFamily]:
    """Return those of the named families whose modules are imported."""
    return [_FAMILIES[name] for name in names if _FAMILIES[name].module in sys.modules]
