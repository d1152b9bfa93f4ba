"""Attributes replaced while a run is recorded, and put back whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from .registered import Patch
from .tape import active_tape

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


def recorded(original: Callable[..., Any], own: Callable[..., Any], seed: str | None = None) -> Callable[..., Any]:
    """Return a function that stands for `original`: while a run is recorded it calls `own` instead.

    Calls from other threads are counted and not recorded. `seed` is the parameter of the seed that the tape notes.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        tape = active_tape()
        if tape is None or tape.is_foreign():
            if tape is not None:
                tape.foreign_calls += 1
            return original(*args, **kwargs)
        if seed is not None:
            tape.note_seed(args[0] if args else kwargs.get(seed))
        return own(*args, **kwargs)

    return call
