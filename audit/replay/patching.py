"""Attributes replaced while a run is recorded, and put back whatever happens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from .registered import Patch

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
