"""Neighbours under an OpenDP metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...audit.datasets.adjacency import AddRemove, Adjacency, Local, Replace, Within
from ...audit.events.outputs import outcome_key


def neighbours_under(metric: str, d_in: Any) -> Adjacency | None:
    """Return the relation whose pairs at distance 1 are at most `d_in` apart under the named metric, or None.

    Examples
    --------
    >>> print(neighbours_under("AbsoluteDistance(f64)", 0.5))
    answers within 0.5 in L1
    >>> print(neighbours_under("SymmetricDistance()", 2))
    add/remove one row, up to 2 times
    """
    rows: dict[str, Adjacency] = {
        "SymmetricDistance": AddRemove(),
        "InsertDeleteDistance": InsertDelete(),
        "ChangeOneDistance": Replace(),
        "HammingDistance": Hamming(),
    }
    name = metric.partition("(")[0]
    if name in rows:
        return rows[name] if d_in == 1 else Steps(rows[name], d_in)
    match name:
        case "DiscreteDistance":
            return Local()
        case "AbsoluteDistance" | "L1Distance":
            return Within("l1", d_in)
        case "L2Distance":
            return Within("l2", d_in)
        case "LInfDistance":
            return (Monotonic if "monotonic" in metric else Within)("linf", d_in)
    return None


def _in_order(dataset: Any) -> list[Any]:
    """Return the rows as keys that are equal for equal rows, NaN included."""
    return [outcome_key(tuple(row) if isinstance(row, (list, np.ndarray)) else row) for row in dataset]


@dataclass(frozen=True, slots=True)
class Hamming(Replace):
    """Datasets of equal size that differ in one place; the distance is the number of places, so order matters."""

    unit: ClassVar[str] = "the contents of one row"

    def __str__(self) -> str:
        return "replace one row, in place"

    def distance(self, x: Any, y: Any) -> float:
        if not math.isfinite(Replace.distance(self, x, y)):  # also raises for datasets without rows
            return math.inf
        return float(sum(a != b for a, b in zip(_in_order(x), _in_order(y), strict=True)))


@dataclass(frozen=True, slots=True)
class InsertDelete(AddRemove):
    """Datasets that differ by one inserted or deleted row; the distance is the fewest such steps, so order matters."""

    unit: ClassVar[str] = "one row"

    def __str__(self) -> str:
        return "insert/delete one row, in order"

    def distance(self, x: Any, y: Any) -> float:
        AddRemove.distance(self, x, y)  # raises for datasets without rows
        return float(_edits(_in_order(x), _in_order(y)))


def _edits(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return the fewest insertions and deletions that turn `a` into `b`.

    Myers (1986), An O(ND) difference algorithm: fast for few edits, however long the sequences.
    """
    reach = {1: 0}  # for each diagonal i − j, the farthest place in `a` after this many edits
    for edits in range(len(a) + len(b)):
        for diagonal in range(-edits, edits + 1, 2):
            after_insertion, after_deletion = reach.get(diagonal + 1, -1), reach.get(diagonal - 1, -1) + 1
            i = after_insertion if diagonal == -edits else max(after_insertion, after_deletion)
            while i < len(a) and i - diagonal < len(b) and a[i] == b[i - diagonal]:
                i += 1
            reach[diagonal] = i
            if i >= len(a) and i - diagonal >= len(b):
                return edits
    return len(a) + len(b)


@dataclass(frozen=True, slots=True)
class Monotonic(Within):
    """Answers that all move in the same direction; the distance is infinite if some rise and some fall."""

    unit: ClassVar[str] = "one step of the answers"

    def __str__(self) -> str:
        return f"{Within.__str__(self)}, all rising or all falling"

    def distance(self, x: Any, y: Any) -> float:
        moved = Within.distance(self, x, y)
        if not math.isfinite(moved):
            return moved
        signs = np.sign(np.asarray(x, dtype=np.float64) - np.asarray(y, dtype=np.float64))
        return math.inf if signs.min(initial=0.0) < 0 < signs.max(initial=0.0) else moved


@dataclass(frozen=True, slots=True)
class Steps(Adjacency):
    """Datasets at most `steps` steps of another relation apart."""

    base: Adjacency
    steps: float

    unit: ClassVar[str] = "several rows"

    def __str__(self) -> str:
        return f"{self.base}, up to {self.steps:g} times"

    def holds(self, measured: float, distance: float) -> bool:
        return measured <= distance

    def distance(self, x: Any, y: Any) -> float:
        return self.base.distance(x, y) / self.steps
