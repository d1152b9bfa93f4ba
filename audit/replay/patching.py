"""Attributes replaced while a run is recorded, and put back whatever happens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from .registered import Patch

_ABSENT: Final = object()


@contextmanager
def patched(patches: Iterable[Patch]) -> Iterator[None]:
    """Replace the attributes, and restore them in reverse order; one that was inherited is deleted again."""
    with ExitStack() as undo:
        for patch in patches:
            before = vars(patch.owner).get(patch.name, _ABSENT)
            undo.callback(_restore, patch, before)
            setattr(patch.owner, patch.name, patch.replacement)
        yield


def _restore(patch: Patch, before: Any) -> None:
    if before is _ABSENT:
        if patch.name in vars(patch.owner):
            delattr(patch.owner, patch.name)
    else:
        setattr(patch.owner, patch.name, before)
