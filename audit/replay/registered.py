"""The noise primitives that a replay records: each family names its patches, which a library's adapter may register.

Patches are attributes that are replaced while runs are recorded, and always put back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple


class Patch(NamedTuple):
    """An attribute that is replaced while runs are recorded."""

    owner: Any
    name: str
    replacement: Any
    lasts: bool = False  # the replacement is there before and after the runs


class PrimitiveFamily(NamedTuple):
    """Noise primitives of one library; patched only if the process has imported its module."""

    module: str
    patches: Callable[[], Iterable[Patch]]
    states: Callable[[int], Iterable[Patch]]  # from the entropy of a run to its generators in place of global ones


_FAMILIES: Final[dict[str, PrimitiveFamily]] = {}


def register_primitives(
    name: str,
    module: str,
    patches: Callable[[], Iterable[Patch]],
    states: Callable[[int], Iterable[Patch]] = lambda seed: (),
) -> None:
    """Add a family of primitives under this name, or replace it."""
    _FAMILIES[name] = PrimitiveFamily(module, patches, states)


def registered_names() -> tuple[str, ...]:
    """Return the names of all families."""
    return tuple(_FAMILIES)


def imported_families(but: Container[str] = ()) -> list[PrimitiveFamily]:
    """Return the families whose modules are imported, but for those of some names."""
    return [family for name, family in _FAMILIES.items() if name not in but and family.module in sys.modules]


_ABSENT: Final = object()


@contextmanager
def patched(patches: Iterable[Patch]) -> Iterator[None]:
    """Replace the attributes, and restore them in reverse order; one that was inherited is deleted again."""
    done: list[tuple[Patch, Any]] = []
    try:
        for patch in patches:
            done.append((patch, vars(patch.owner).get(patch.name, _ABSENT)))
            setattr(patch.owner, patch.name, patch.replacement)
        yield
    finally:
        for patch, before in reversed(done):
            if before is not _ABSENT:
                setattr(patch.owner, patch.name, before)
            elif patch.name in vars(patch.owner):
                delattr(patch.owner, patch.name)
