"""How many outputs are held at a time: a bound in bytes, for vectors and texts of megabytes."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from ..errors import MechanismError
from .outputs import Outputs

KEPT = 1 << 27
"""Bytes of outputs on each side that are kept to learn from: what is learned takes several times as much."""

BLOCK = 1 << 25
"""Bytes of the outputs of a block."""

_HELD = 1 << 30  # bytes of outputs that are held at all, where their number cannot be chosen
_LEAST = 32  # runs on each side that have to fit
_LOOKED_AT = 8  # outputs of a block, to know the size of all


def bytes_of_one(outputs: Outputs) -> int:
    """Bytes of an output, on average.

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
    """With its parts, each once."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    parts: Iterable[Any] = value if isinstance(value, (tuple, frozenset)) else _attributes(value)
    return sys.getsizeof(value) + sum(_bytes_of_object(part, seen) for part in parts)


def _attributes(value: Any) -> list[Any]:
    """The attributes of an object; of a number, a text or a class none."""
    if isinstance(value, (type, str, bytes, int, float)) or type(value).__module__ == "builtins":
        return []
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name) for name in slots if hasattr(value, name))]


def most_kept(size: int, name: str) -> int:
    """How many outputs of so many bytes are kept on each side.

    Raises
    ------
    MechanismError
        Where these would be too few to learn anything from.
    """
    if size * _LEAST > KEPT:
        raise MechanismError(
            f"an output of {name} takes {with_unit(size)}, and fewer than {_LEAST} of them fit into the "
            f"{with_unit(KEPT)} that an audit keeps of each dataset to learn from; return a part or a summary of it.",
            mechanism=name,
            bytes=size,
        )
    return KEPT // size


def refuse_too_much(held: int, name: str) -> None:
    """A `MechanismError` where outputs that are to be held together take too many bytes."""
    if held > _HELD:
        raise MechanismError(
            f"the outputs of {name} that were to be held together take more than {with_unit(_HELD)}; ask for fewer "
            "runs, or return a part or a summary of an output.",
            mechanism=name,
            bytes=held,
        )


def note_of_cut(kept: int, wanted: int, size: int) -> tuple[str, ...]:
    """What a reader should know where fewer runs were kept than usual."""
    if kept >= wanted:
        return ()
    return (
        f"an output takes {with_unit(size)}, so events were learned from {kept:,} runs on each dataset and not from "
        f"{wanted:,}; a part or a summary of the output may show more",
    )


def with_unit(size: int) -> str:
    """A number of bytes in its largest unit.

    Examples
    --------
    >>> with_unit(999), with_unit(1 << 27), with_unit(1_500_000)
    ('999 bytes', '128 MiB', '1.43 MiB')
    """
    for unit, words in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {words}"
    return f"{size} bytes"
