"""Protocol between audit and program: request lines, and answers as JSON or as raw numbers after a JSON header."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.errors import DatasetError

_FORMATS = {"float64": np.dtype("<f8"), "int64": np.dtype("<i8")}
_SHOWN = 60  # characters of an answer or of a command's word in a message
_MOST_WORDS = 8  # of a command in a message
_RULE = "answer one JSON array, or a header and raw numbers; write everything else to standard error"


class AnswerError(Exception):
    """Answer that breaks the protocol.

    Attributes
    ----------
    what, when, way_out : str
        What the program did, before which event (with a leading space, or empty), and the remedy.
    has_ended : bool
        Whether the program closed a pipe, and so has probably ended.
    """

    def __init__(self, what: str, way_out: str = _RULE, *, when: str = "", has_ended: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.when = when
        self.way_out = way_out
        self.has_ended = has_ended


def request_line(dataset: Any, runs: int, seed: int) -> bytes:
    """Return the request for a block of runs: one line of ASCII, with the keys runs, seed and dataset in this order.

    Arrays and tuples become JSON arrays, and numpy numbers become numbers. Numbers that are not finite are written as
    answers may write them: NaN, Infinity and -Infinity, although JSON lacks them.

    Raises
    ------
    DatasetError
        If JSON cannot hold a value; the message says where in the dataset it is.

    Examples
    --------
    >>> request_line(np.array([1, 2]), 1000, 7)
    b'{"runs": 1000, "seed": 7, "dataset": [1, 2]}\\n'
    """
    try:
        plain = _plain(dataset, "dataset")
        return json.dumps({"runs": runs, "seed": seed, "dataset": plain}).encode("ascii") + b"\n"
    except RecursionError as error:
        raise DatasetError("the dataset is nested too deeply for JSON, or holds itself; flatten it.") from error


def _plain(value: Any, where: str) -> Any:
    """Return the value in types that JSON has."""
    if isinstance(value, np.ndarray):
        is_plain = value.dtype.kind in "biuf"
        value = value.tolist()
        if is_plain and not isinstance(value, np.generic):
            return value
    elif isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_plain(part, f"{where}[{i}]") for i, part in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(part, f"{where}[{key!r}]") for key, part in value.items()}
    kind = f"a {type(value).__name__}" + (" with keys other than strings" if isinstance(value, Mapping) else "")
    raise DatasetError(
        f"{where} is {kind}, which JSON cannot hold; use numbers, strings, None, lists, and dicts with string keys "
        '(for a data frame, frame.to_dict("records")).',
        where=where,
        type=type(value).__name__,
    )


def read_array(line: bytes, runs: int) -> list[Any] | npt.NDArray[Any]:
    """Return the outputs in a line that is a JSON array, one per run; raise an `AnswerError` for any other line.

    NaN, Infinity and -Infinity are accepted although JSON lacks them, because many JSON writers produce them.
    """
    outputs = _parsed(line)
    if not isinstance(outputs, list):
        raise AnswerError(f"answered {shown(line)}, which is not an array")
    if len(outputs) != runs:
        raise AnswerError(f"answered {len(outputs)} outputs", "answer one output per requested run")
    return np.array(outputs) if _is_plain(outputs) else outputs


def _is_plain(outputs: list[Any]) -> bool:
    """Return whether the outputs are numbers of one type, or vectors of these, so that an array can hold them."""
    if set(map(type, outputs)) == {list} and len(set(map(len, outputs))) == 1:
        outputs = list(chain.from_iterable(outputs))
    kinds = set(map(type, outputs))
    return kinds == {float} or (kinds == {int} and max(map(abs, outputs)) < 2**62)


def read_header(line: bytes, runs: int) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return type and shape of the raw numbers after a header; raise an `AnswerError` for any other header."""
    header = _parsed(line, objects=True)
    if not isinstance(header, dict) or header.keys() != {"format", "shape"} or header["format"] not in list(_FORMATS):
        raise AnswerError(
            f"answered the header {shown(line)}",
            f'use {{"format": "float64", "shape": [{runs}]}}, or "int64", or the shape [{runs}, n_coords]',
        )
    shape = header["shape"]
    is_shape = isinstance(shape, list) and len(shape) in (1, 2) and all(type(n) is int and n >= 0 for n in shape)
    if not is_shape or shape[0] != runs:
        raise AnswerError(f"answered the shape {str(shape)[:_SHOWN]}", f"use [{runs}] or [{runs}, n_coords]")
    return _FORMATS[header["format"]], tuple(shape)


def _parsed(line: bytes, *, objects: bool = False) -> Any:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise AnswerError(f"answered {shown(line)}, which is not UTF-8") from error
    try:
        return json.loads(text, object_pairs_hook=None if objects else _refuse)
    except RecursionError as error:
        raise AnswerError(f"answered {shown(line)}, which is nested too deeply") from error
    except ValueError as error:  # not JSON, or a number with thousands of digits
        raise AnswerError(f"answered {shown(line)}, which is not JSON ({str(error)[:_SHOWN]})") from error


def _refuse(pairs: list[tuple[str, Any]]) -> Any:
    raise AnswerError("answered an object as an output", "write an object as an array, or as a string of JSON")


def shown_words(command: Sequence[str]) -> str:
    """Return a command for a message, with long words and long lists of words cut short."""
    words = [word if len(word) <= _SHOWN else f"{word[:_SHOWN]}…" for word in command]
    return repr(words if len(words) <= _MOST_WORDS else [*words[:_MOST_WORDS], "…"])


def shown(content: bytes | bytearray) -> str:
    """Return the start of a program's output for a message, escaped and on one line."""
    text = content[: 4 * _SHOWN].decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
