"""Adjacency relations by name, and the relation that a caller's value means."""

from __future__ import annotations

import re
from typing import Any, Final

from ..errors import OptionError
from ..printing import did_you_mean, shorten
from .adjacency import AddRemove, Adjacency, Local, Replace, Within
from .graph_adjacency import EdgeNeighbours, NodeNeighbours

NAMED: Final[dict[str, Adjacency]] = {
    "add-remove": AddRemove(),
    "replace": Replace(),
    "edge": EdgeNeighbours(),
    "node": NodeNeighbours(),
    "local": Local(),
    "l1": Within("l1"),
    "l2": Within("l2"),
    "linf": Within("linf"),
}
"""Relations without parameters, and answers within 1 in a norm."""

# Names in use elsewhere, with the relation to write instead.
_ELSEWHERE: Final = {
    "unbounded": "AddRemove()",
    "addremoveone": "AddRemove()",
    "symmetric": "AddRemove()",
    "bounded": "Replace()",
    "substitute": "Replace()",
    "swap": "Replace()",
    "change": "Replace()",
    "userlevel": 'UserLevel("column of the user")',
    "user": 'UserLevel("column of the user")',
    "within": 'Within("l1"), Within("l2") or Within("linf")',
    "linfinity": 'Within("linf")',
}


def as_adjacency(value: Any) -> Adjacency:
    """Return the relation: an instance, or a name of `NAMED`.

    Raises
    ------
    OptionError
        For anything else, with the object to write.

    Examples
    --------
    >>> as_adjacency("add-remove")
    AddRemove()
    """
    if isinstance(value, Adjacency):
        return value
    if isinstance(value, str) and value in NAMED:
        return NAMED[value]
    if isinstance(value, type) and issubclass(value, Adjacency):
        instance = _ELSEWHERE.get(value.__name__.lower(), f"{value.__name__}()")
        raise OptionError(f"adjacency={value.__name__} is a class; write adjacency={instance}.", adjacency=value)
    if not isinstance(value, str):
        raise OptionError(
            f"adjacency={shorten(value)} is not an adjacency relation; use an instance such as AddRemove() or "
            'Replace(), or a name such as "add-remove".',
            adjacency=value,
        )
    if (example := _ELSEWHERE.get(re.sub("[^a-z0-9]", "", value.lower()))) is not None:
        raise OptionError(
            f"adjacency={shorten(value)} is not used in dpaudit; write adjacency={example}.", adjacency=value
        )
    meant = did_you_mean(value[:80], NAMED, otherwise=".")
    raise OptionError(
        f"adjacency={shorten(value)} is unknown; use one of {', '.join(NAMED)}, or an instance such as "
        f'UserLevel("user"){meant}',
        adjacency=value,
    )
