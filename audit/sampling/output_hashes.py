"""Short hashes that identify blocks, events and datasets, the same in every process."""

from __future__ import annotations

import hashlib
import numbers
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.named_parts import outcome_text, printed
from ..events.outputs import Outputs, is_vector, outcome_key, outcome_list, row_keys

# Marks of stretches of successive outputs, which reveal two blocks that share part of a random stream.
#
# A block keeps the smallest hashes of all its stretches. Two blocks with many common stretches nearly always have one
# of the smallest hashes in common, wherever the stretch lies in each block.

MARKS = 4  # number of marks that a block keeps; a mark of 0 means none

# Outputs of a stretch, at most and at least, and of a block that are hashed, in 30 µs. Somewhere in 300 such blocks two
# stretches of 62 fair coins, or of 16 draws from 15 equally likely values, agree by chance with probability 1e-8.
_LONGEST, _SHORTEST, _LOOKED_AT = 128, 16, 1024
N_LENGTHS = (_LONGEST // _SHORTEST).bit_length()  # number of different lengths of stretches
_ODD, _OTHER_ODD, _BASE = (np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0xD6E8FEB86659FD93))
_HALF = np.uint64(32)


def _powers(base: int) -> npt.NDArray[np.uint64]:
    return np.array([pow(base, power, 1 << 64) for power in range(_LOOKED_AT)], np.uint64)


_POWERS, _INVERSE = _powers(int(_BASE)), _powers(pow(int(_BASE), -1, 1 << 64))


def stretch_length(size: int) -> int:
    """Return the length of stretches in a block of `size` runs: a power of two, at most half the block; 0 for none."""
    length = min(1 << (size // 2).bit_length() >> 1, _LONGEST)
    return length if length >= _SHORTEST else 0


def n_stretches(size: int) -> int:
    """Return the number of stretches that are hashed in a block of `size` runs."""
    length = stretch_length(size)
    return min(size, _LOOKED_AT) - length + 1 if length else 0


def stretch_marks(outputs: Outputs) -> tuple[int, ...]:
    """Return the smallest distinct hashes of stretches of a block, the same in every process, padded with zeros."""
    return _smallest(_codes(outputs[:_LOOKED_AT]), len(outputs))


def _smallest(codes: npt.NDArray[np.uint64], size: int) -> tuple[int, ...]:
    """Return the marks of a block of this size with these codes of its first outputs."""
    length = stretch_length(size)
    if length == 0:
        return (0,) * MARKS
    sums = np.cumsum(codes * _POWERS[: len(codes)])
    found = sums[length - 1 :].copy()
    found[1:] -= sums[:-length]
    found *= _INVERSE[: len(found)]
    found ^= found >> _HALF
    found *= _OTHER_ODD
    least = np.sort(found[:MARKS] if len(found) <= MARKS else np.partition(found, MARKS)[:MARKS])
    marks = dict.fromkeys(least.tolist())
    if len(marks) < MARKS:  # repeated stretches
        marks = dict.fromkeys(np.unique(found)[:MARKS].tolist())
    marks.pop(0, None)
    return (*marks, *[0] * (MARKS - len(marks)))


def _codes(outputs: Outputs) -> npt.NDArray[np.uint64]:
    """Return a number for each output, equal for equal outputs."""
    if outputs.dtype == object:
        return _codes_of_texts(_texts(outputs))
    if outputs.ndim == 2:
        codes = row_keys(outputs)
    elif outputs.dtype == np.float64:
        codes = np.ascontiguousarray(outputs).view(np.uint64)
    else:
        codes = outputs.astype(np.float64).view(np.uint64) if outputs.dtype.kind == "f" else outputs.astype(np.uint64)
    return mixed(codes)


def mixed(codes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return a hash of each number, different for different ones."""
    codes = codes * _ODD
    codes ^= codes >> _HALF
    return np.asarray(codes * _OTHER_ODD)


def _texts(outputs: Outputs) -> list[bytes]:
    """Return the texts of objects, the same in every process."""
    return [outcome_text(output).encode("utf-8", "surrogatepass") for output in outputs.tolist()]


def _codes_of_texts(texts: list[bytes]) -> npt.NDArray[np.uint64]:
    return mixed(np.fromiter(map(zlib.crc32, texts), np.uint64, len(texts)))


FINGERPRINTED = 256  # outputs at the head of a block that are hashed, to recognise the block or its noise


def hashed_keys(outputs: Outputs) -> list[Any]:
    """Return keys of the outputs that are equal whenever fingerprints cannot distinguish the outputs.

    A number, or a tuple of numbers, has the same key in a block of its kind and among objects.
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
        return b"\n".join(_texts(outputs))
    return np.ascontiguousarray(outputs).tobytes()


def fingerprint(outputs: Outputs) -> int:
    """Return a 64-bit hash of the first outputs of a block, the same in every process."""
    return _hash(contents(outputs[:FINGERPRINTED]))


def order_mark(outputs: Outputs) -> int:
    """Return a 64-bit hash of the order of a block's first outputs, or of objects themselves, which have no order."""
    head = outputs[:FINGERPRINTED]
    if head.dtype == object or (head.ndim == 2 and head.shape[1] == 0):
        return fingerprint(head)
    values = head[:, 0] if head.ndim == 2 else head
    return _hash(values.argsort(kind="stable").astype(np.int16).tobytes())


def block_marks(outputs: Outputs, *, with_stretches: bool) -> tuple[int, ...]:
    """Return the fingerprint of a block, the mark of its order, and the marks of its stretches, or zeros."""
    if outputs.dtype == object:  # writing them takes most of the time, so it is done once
        texts = _texts(outputs[: _LOOKED_AT if with_stretches else FINGERPRINTED])
        head = _hash(b"\n".join(texts[:FINGERPRINTED]))
        return head, head, *(_smallest(_codes_of_texts(texts), len(outputs)) if with_stretches else (0,) * MARKS)
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
