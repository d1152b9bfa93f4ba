"""Encode values as bytes and back: a checksum, a line of JSON that describes the values, and the data of arrays."""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

import numpy as np

from ..errors import StoreError
from ..events.outputs import outcome_key
from ..records.json_codec import plain_data, read_data

_KIND = re.compile(r"[<|][biuf][0-9]{1,2}")  # dtypes: booleans, integers, floats
_CHECKED = 8  # bytes of a checksum


def packed(value: Any, place: str = "") -> bytes:
    """Encode numbers, text, outputs, arrays, and lists and tuples of these; the checksum also covers `place`.

    Raise a `StoreError` if an output cannot be restored exactly.
    """
    arrays: list[bytes] = []
    body = json.dumps(_encode(value, arrays), allow_nan=False).encode()
    content = b"".join([body, b"\n", *arrays])
    return checksum(content, place) + content


def unpacked(content: bytes, where: str, place: str = "") -> Any:
    """Decode the value that was packed for this place; tuples become lists.

    Raise a `StoreError` if `packed` did not make the content.
    """
    try:
        if checksum(content[_CHECKED:], place) != content[:_CHECKED]:
            raise ValueError("its checksum differs")
        head, _, rest = content[_CHECKED:].partition(b"\n")
        value, end = _decode(json.loads(head), memoryview(rest), 0)
        if end != len(rest):
            raise ValueError(f"{len(rest) - end} bytes too many")
        return value
    except StoreError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise StoreError(f"{where} is damaged ({type(error).__name__}: {error}); delete the store.") from error


def checksum(content: bytes, place: str) -> bytes:
    """Return a checksum of content and place against disk errors; it does not protect against deliberate changes."""
    key = hashlib.blake2b(place.encode("utf-8", "surrogatepass"), digest_size=32).digest()
    return hashlib.blake2b(content, digest_size=_CHECKED, key=key).digest()


def _encode(value: Any, arrays: list[bytes]) -> Any:
    if isinstance(value, np.ndarray) and value.dtype != object:
        plain = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        arrays.append(plain.tobytes())
        return {"array": plain.dtype.str, "shape": list(plain.shape)}
    if isinstance(value, np.ndarray):
        return {"objects": [_outcome(output) for output in value.tolist()]}
    if isinstance(value, (list, tuple)):
        return [_encode(each, arrays) for each in value]
    if isinstance(value, (int, str)):
        return value
    raise StoreError(f"a {type(value).__name__} cannot be kept.", type=type(value).__name__)


def _outcome(output: Any) -> Any:
    """Return an output as data; raise a `StoreError` if the restored output would count as another."""
    data = plain_data(output)
    if outcome_key(read_data(data)) != outcome_key(output):
        raise StoreError(
            f"an output of type {type(output).__name__} cannot be kept as data; return numbers, text or tuples of "
            "them, or audit without a store.",
            type=type(output).__name__,
        )
    return data


def _decode(value: Any, rest: memoryview, start: int) -> tuple[Any, int]:
    """Return the value, and the offset of the next array."""
    if isinstance(value, list):
        found = []
        for each in value:
            one, start = _decode(each, rest, start)
            found.append(one)
        return found, start
    if not isinstance(value, dict):
        if isinstance(value, (int, str)):
            return value, start
        raise TypeError(f"{type(value).__name__} where a value was expected")
    if "objects" in value:
        outputs = np.empty(len(value["objects"]), dtype=object)
        for place, each in enumerate(value["objects"]):
            outputs[place] = read_data(each)
        return outputs, start
    if not _KIND.fullmatch(value["array"]):  # numpy would parse other names, some as Python
        raise ValueError(f"an array of {value['array'][:20]!r}")
    kind, shape = np.dtype(value["array"]), [int(side) for side in value["shape"]]
    if len(shape) > 2 or min(shape, default=0) < 0:
        raise ValueError(f"an array with shape {shape}")
    end = start + kind.itemsize * math.prod(shape)
    if end > len(rest):
        raise ValueError(f"{end - len(rest)} bytes are missing")
    return np.frombuffer(rest[start:end], kind).reshape(shape).copy(), end
