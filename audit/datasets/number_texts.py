"""Texts of numbers where numbers may have been meant, such as ["1", "2"] from a JSON file."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

_LOOKED_AT = 100  # values that are read


def number_text(values: Iterable[Any]) -> str | None:
    """Return the first value if all of the first values are texts of finite numbers; None if not.

    Examples
    --------
    >>> number_text(["1.5", " 2"]), number_text(["1.5", "x"]), number_text([1.5]), number_text([])
    ('1.5', None, None, None)
    """
    found = list(islice(values, _LOOKED_AT))
    return found[0] if found and all(map(_is_number_text, found)) else None


def _is_number_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
