"""Short hashes that identify blocks, events and datasets, the same in every process."""

from __future__ import annotations

import hashlib
import numbers
from typing import Any

import numpy as np

from ..events.outcome_text import outcome_text, printed
from ..events.outputs import Outputs, is_vector, outcome_key, outcome_list
from .stretch_hashes import MARKS, stretch_marks

BLOCK_MARKS = 2 + MARKS
"""Number of marks of a block."""

FINGERPRINTED = 256
"""Outputs at the head of a block that are hashed, to recognise the block or its noise."""


def hashed_keys(outputs: Outputs) -> list[Any]:
    """Return keys of the outputs that are equal whenever fingerprints cannot distinguish the outputs.

    Objects with equal texts have equal keys; a number, or a tuple of numbers, has the same key in a block of its kind
    and among objects.
    """
    values = outcome_list(outputs)
    if outputs.dtype.kind in "biu" or (outputs.dtype.kind == "f" and not np.isnan(outputs).any()):
        return values  # numbers are their own keys, except a NaN
    if outputs.dtype != object:
        return [outcome_key(value) for value in values]
    return [outcome_key(value) if _is_of_numbers(value) else outcome_text(value) for value in values]


def _is_of_numbers(value: Any) -> bool:
    return isinstance(value, numbers.Real) or (type(value) is tuple and is_vector(value, len(value)))


def contents(outputs: Outputs) -> bytes:
    """Return the outputs as bytes: of objects their texts, the same in every process."""
    if outputs.dtype == object:
        return "\n".join(map(outcome_text, outputs.tolist())).encode("utf-8", "surrogatepass")
    return np.ascontiguousarray(outputs).tobytes()


def fingerprint(outputs: Outputs) -> int:
    """Return a 64-bit hash of the first outputs of a block, the same in every process."""
    return _hash(contents(outputs[:FINGERPRINTED]))


def order_mark(outputs: Outputs) -> int:
    """Return a 64-bit hash of the order of a block's first outputs; shifting or scaling all numbers preserves it.

    Vectors are ordered by their first coordinate. Objects have no order and are hashed themselves.
    """
    head = outputs[:FINGERPRINTED]
    if head.dtype == object or (head.ndim == 2 and head.shape[1] == 0):
        return fingerprint(head)
    values = head[:, 0] if head.ndim == 2 else head
    return _hash(values.argsort(kind="stable").astype(np.int16).tobytes())


def block_marks(outputs: Outputs, *, with_stretches: bool) -> tuple[int, ...]:
    """Return the fingerprint of a block, the mark of its order, and the marks of its stretches, or zeros."""
    stretches = stretch_marks(outputs) if with_stretches else (0,) * MARKS
    return fingerprint(outputs), order_mark(outputs), *stretches


def digest(value: Any) -> str:
    """Return a short hash of a dataset or an event, the same in every process; "?" if its text contains an address."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{_hash(f'{value.dtype.str} {value.shape} '.encode() + np.ascontiguousarray(value).tobytes()):016x}"
    with np.printoptions(threshold=2**62, floatmode="unique"):
        text = printed(value)
    return "?" if " at 0x" in text else f"{_hash(text.encode('utf-8', 'surrogatepass')):016x}"


def _hash(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
