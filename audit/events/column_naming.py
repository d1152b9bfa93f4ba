"""Names of columns in events, scores and partitions: "mean_age ≥ 41.2" where outputs without names have coordinates.

Only their texts depend on names. So events are learned and counted without them, and named when they are reported.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from .events import Scored

Named = TypeVar("Named")
_FIELD = "column_names"


def with_names(value: Named, names: tuple[str, ...]) -> Named:
    """Return a dataclass with names wherever it, or a dataclass in it, has the field `column_names`.

    Examples
    --------
    >>> from dpaudit.audit.events.events import Intervals
    >>> from dpaudit.audit.events.scores import Weighted
    >>> print(with_names(Scored(Weighted((0.0, 1.0)), Intervals(((2.5, 4.0),))), ("count", "mean")))
    2.5 ≤ mean ≤ 4
    """
    if not names or not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    if isinstance(value, Scored):  # the intervals are of the score, and not of a column
        return dataclasses.replace(value, score=with_names(value.score, names))
    changes: dict[str, Any] = {}
    for name in (field.name for field in dataclasses.fields(value)):
        held = getattr(value, name)
        if name == _FIELD:
            changes[name] = names
        elif dataclasses.is_dataclass(held):
            changes[name] = with_names(held, names)
        elif isinstance(held, tuple) and held and all(map(dataclasses.is_dataclass, held)):
            changes[name] = tuple(with_names(each, names) for each in held)
    return dataclasses.replace(value, **changes)


def names_in(value: Any) -> tuple[str, ...]:
    """Return the names of columns in a dataclass such as an event; empty if it has none.

    Examples
    --------
    >>> from dpaudit.audit.events.events import Intervals
    >>> names_in(with_names(Intervals(((2.5, 4.0),)), ("mean",))), names_in(Intervals(((2.5, 4.0),)))
    (('mean',), ())
    """
    if isinstance(value, tuple):
        return next(filter(None, map(names_in, value)), ()) if all(map(dataclasses.is_dataclass, value)) else ()
    if not dataclasses.is_dataclass(value):
        return ()
    own: tuple[str, ...] = getattr(value, _FIELD, ())
    held = (getattr(value, field.name) for field in dataclasses.fields(value))
    return own or next(filter(None, map(names_in, held)), ())
