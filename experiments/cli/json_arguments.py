"""JSON in arguments: what is wrong with it, and the likely remedy."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from ...audit.errors import DatasetError

_SHOWN = 60
_NUMBER = re.compile(r"\s*[-+]?[0-9.]+(e[-+]?\d+)?\s*", re.IGNORECASE)
_WORDS = {"True": "true", "False": "false", "None": "null"}


def read_json(text: str, name: str) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    DatasetError
        If the text is not JSON; the error has the position and a remedy.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{name} is not JSON (character {error.pos + 1}: {error.msg}); {_remedy(text, error)}.", name=name
        ) from error
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{name} is not JSON ({error}); use JSON such as [1, 0, 2].", name=name) from error


def shown(text: str) -> str:
    """Return a text in quotes, cut to its beginning."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def quoted_numbers(dataset: Any) -> str:
    """Return how a dataset whose values are all numbers in quotes is written with numbers; empty for any other."""
    texts = list(_leaves(dataset))
    if not texts or not all(isinstance(text, str) and _NUMBER.fullmatch(text) for text in texts):
        return ""
    try:
        numbers = json.dumps(_as_numbers(dataset))
    except ValueError:
        return ""
    return numbers if len(numbers) <= _SHOWN else f"{numbers[:_SHOWN]}…"


def _leaves(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _as_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_numbers(each) for each in value]
    return int(value) if value.strip().lstrip("+-").isdigit() else float(value)


def _remedy(text: str, error: json.JSONDecodeError) -> str:
    """Return the likely remedy: a file, Python in place of JSON, quotes that the shell removed, an open bracket."""
    if not text.strip():
        return "the text is empty; write JSON such as [1, 0, 2]"
    if Path(text).suffix in (".json", ".npy", ".csv"):
        return f"for a file write @{text}"
    try:
        value = ast.literal_eval(text)
        meant = "" if isinstance(value, (int, float, complex)) else json.dumps(value, allow_nan=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        meant = ""
    if 0 < len(meant) <= _SHOWN:
        return f"in JSON this is {meant}"
    if error.msg == "Extra data":
        return "write a dataset of several values as a list, such as [1, 0, 2]"
    if text.count("[") > text.count("]"):
        return "a closing ] is missing"
    if text.count("{") > text.count("}"):
        return "a closing } is missing"
    if re.search(r",\s*[\]}]", text):
        return "remove the comma before the closing bracket"
    if "'" in text:
        return "JSON puts text in double quotes"
    if (word := re.match(r"[^\W\d]\w*", text[error.pos :])) is not None:
        in_json = _WORDS.get(word[0]) or json.dumps(word[0])
        return f"JSON writes {word[0]} as {in_json}; put the whole argument in single quotes"
    return "use JSON such as [1, 0, 2], or @file.json with the @"
