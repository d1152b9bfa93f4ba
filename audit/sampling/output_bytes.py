"""Limits in bytes on the outputs held in memory, for outputs of megabytes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from ..errors import MechanismError
from ..events.outputs import Outputs

KEPT = 1 << 27
"""Bytes of pilot outputs kept on each side; learning takes several times as much memory."""

BLOCK = 1 << 25
"""Bytes of the outputs of a block."""

_HELD = 1 << 30  # bytes of outputs held together, where the number of runs is fixed
_LEAST = 32  # fewest runs on each side that must fit
_LOOKED_AT = 8  # outputs of a block that are measured


def bytes_of_one(outputs: Outputs) -> int:
    """Return the average number of bytes of an output.

    Examples
    --------
    >>> import numpy as np
    >>> bytes_of_one(np.zeros((10, 100)))
    800
    """
    if outputs.dtype != object:
        return max(int(outputs.nbytes) // max(len(outputs), 1), 1)
    some = outputs[:: max(len(outputs) // _LOOKED_AT, 1)]
    return sum(_bytes_of_object(output, set()) for output in some) // max(len(some), 1) + 1


def _bytes_of_object(value: Any, seen: set[int]) -> int:
    """Return the bytes of an object and its parts, counting every part once."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    parts: Iterable[Any] = value if isinstance(value, (tuple, frozenset)) else _attributes(value)
    return sys.getsizeof(value) + sum(_bytes_of_object(part, seen) for part in parts)


def _attributes(value: Any) -> list[Any]:
    """Return the attributes of an object; none for a number, a string or a class."""
    if isinstance(value, (type, str, bytes, int, float)) or type(value).__module__ == "builtins":
        return []
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name) for name in slots if hasattr(value, name))]


def most_kept(size: int, name: str) -> int:
    """Return the number of outputs of `size` bytes kept on each side; raise a `MechanismError` if it is too small."""
    if size * _LEAST > KEPT:
        raise MechanismError(
            f"an output of {name} takes {with_unit(size)}, and fewer than {_LEAST} of them fit into the "
            f"{with_unit(KEPT)} that an audit keeps for each dataset; return a part or a summary of the output.",
            mechanism=name,
            bytes=size,
        )
    return KEPT // size


def refuse_too_much(held: int, name: str) -> None:
    """Raise a `MechanismError` if outputs that must be held together take too many bytes."""
    if held > _HELD:
        raise MechanismError(
            f"the outputs of {name} that must be held together take more than {with_unit(_HELD)}; use fewer runs, or "
            "return a part or a summary of each output.",
            mechanism=name,
            bytes=held,
        )


def note_of_cut(kept: int, wanted: int, size: int) -> tuple[str, ...]:
    """Return a note for the reader if fewer runs than usual were kept."""
    if kept >= wanted:
        return ()
    return (
        f"an output takes {with_unit(size)}, so events were learned from {kept:,} runs on each dataset and not from "
        f"{wanted:,}; a part or a summary of the output may show more",
    )


def with_unit(size: int) -> str:
    """Format a number of bytes in the largest unit that fits.

    Examples
    --------
    >>> with_unit(999), with_unit(1 << 27), with_unit(1_500_000)
    ('999 bytes', '128 MiB', '1.43 MiB')
    """
    for unit, words in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {words}"
    return f"{size} bytes"
