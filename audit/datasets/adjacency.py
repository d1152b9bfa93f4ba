"""Adjacency relations: which datasets are neighbours, and the distance between two datasets."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import AdjacencyError
from ..events.named_parts import is_foreign_array
from ..events.outputs import outcome_key
from ..options import as_number, is_whole
from ..printing import shorten
from .description import difference, entry_difference
from .rows import as_numpy, as_rows, is_frame, rows_apart, rows_of, without_common_ends

FloatArray: TypeAlias = npt.NDArray[np.float64]
_WHOLE = 2.0**53  # doubles represent every whole number up to here


class Adjacency(ABC):
    """A relation between datasets, given by a distance; neighbours are at distance 1.

    Attributes
    ----------
    unit : str
        The unit that a guarantee at distance 1 protects, in a few words; empty if unknown.
    """

    unit: ClassVar[str] = ""

    @abstractmethod
    def distance(self, x: Any, y: Any) -> float:
        """Return the distance between two datasets; infinite if no number of steps leads from one to the other."""

    def holds(self, measured: float, distance: float) -> bool:
        """Return whether a measured distance agrees with the stated distance."""
        return measured == distance

    def difference(self, x: Any, y: Any) -> str:
        """Describe the difference between two datasets."""
        return difference(x, y)

    def check(self, x: Any, y: Any, distance: float) -> float:
        """Return the measured distance of the pair.

        Raises
        ------
        AdjacencyError
            With the difference, if the measured distance is not the stated distance.
        """
        measured = self.distance(x, y)
        if not self.holds(measured, distance):
            found = "at no finite distance" if math.isinf(measured) else f"at distance {measured:.6g}"
            way_out = "" if measured in (0, math.inf) else ", or distance= to audit the claim at that distance"
            raise AdjacencyError(
                f"the pair is {found} under {self}, not at {distance:g}: {self.difference(x, y)}; pass another pair"
                f"{way_out}.{f' {on_tuples(x)}.' if on_tuples(x) else ''}",
                measured=measured,
                distance=distance,
            )
        return measured


def on_tuples(dataset: Any) -> str:
    """Return how to pass a table that is written as a tuple of arrays, such as (X, y); empty for other datasets."""
    if not isinstance(dataset, (tuple, list)) or len(dataset) < 2 or not all(map(_is_array, dataset)):
        return ""
    return (
        f"A {type(dataset).__name__} of arrays counts as one row for each array: for features and labels pass one "
        "array with the labels as its last column, or a dictionary of columns"
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or is_foreign_array(value)


@dataclass(frozen=True, slots=True)
class AddRemove(Adjacency):
    """Datasets that differ by one row added or removed; the distance is the size of the symmetric difference.

    Datasets are compared as multisets, so the order of rows does not matter.

    References
    ----------
    Dwork & Roth (2014), Section 2.3: ‖x − y‖₁ of the histograms.
    """

    unit: ClassVar[str] = "one row"

    def __str__(self) -> str:
        return "add/remove one row"

    def distance(self, x: Any, y: Any) -> float:
        return float(sum(rows_apart(x, y)))


@dataclass(frozen=True, slots=True)
class Replace(Adjacency):
    """Datasets of equal size that differ in one row; the distance is the number of rows to replace."""

    unit: ClassVar[str] = "the contents of one row"

    def __str__(self) -> str:
        return "replace one row"

    def distance(self, x: Any, y: Any) -> float:
        only_x, only_y = rows_apart(x, y)
        return float(only_x) if only_x == only_y else math.inf


@dataclass(frozen=True, slots=True)
class UserLevel(Adjacency):
    """Datasets that differ by all rows of one user, added or removed; changing a user's rows takes two steps.

    Parameters
    ----------
    user : str or int
        Column (of a data frame), key (of dict rows) or position (in tuple rows and arrays) of the user.
    """

    user: str | int

    unit: ClassVar[str] = "all rows of one user"

    def __post_init__(self) -> None:
        if not (isinstance(self.user, str) or is_whole(self.user)):
            raise AdjacencyError(
                f"user={shorten(self.user)} is not a column; use its name, or its position in a row.", user=self.user
            )

    def __str__(self) -> str:
        return f"add/remove all rows of one user ({self.user})"

    def distance(self, x: Any, y: Any) -> float:
        x, y = as_rows(x), as_rows(y)
        one_sided = set(self._users(x)) ^ set(self._users(y))
        if not is_frame(x) or not is_frame(y) or list(x.columns) == list(y.columns):
            x, y = without_common_ends(x, y)
        a, b = self._by_user(x), self._by_user(y)
        changed = [user for user in (a.keys() | b.keys()) - one_sided if rows_of(a[user]) != rows_of(b[user])]
        return float(len(one_sided) + 2 * len(changed))

    def _by_user(self, dataset: Any) -> defaultdict[Hashable, list[Any]]:
        rows = dataset.to_dict("records") if is_frame(dataset) else dataset
        found = defaultdict[Hashable, list[Any]](list)
        for user, row in zip(self._users(dataset), rows, strict=True):
            found[user].append(row)
        return found

    def _users(self, dataset: Any) -> list[Hashable]:
        """Return the user of each row."""
        if is_frame(dataset) and self.user in dataset.columns:
            return [self._key_of(user) for user in dataset[self.user].tolist()]
        rows = dataset.to_dict("records") if is_frame(dataset) else dataset
        return [self._key_of(self._user_of(row)) for row in rows]

    def _key_of(self, user: Any) -> Hashable:
        key: Hashable = outcome_key(user)
        try:
            hash(key)
        except TypeError as error:
            raise AdjacencyError(
                f"user={self.user!r} holds {shorten(user)}, which cannot identify a user; use a number or a string.",
                user=self.user,
            ) from error
        return key

    def _user_of(self, row: Any) -> Any:
        try:
            return row[self.user]
        except (KeyError, IndexError, TypeError) as error:
            raise AdjacencyError(
                f"user={self.user!r} is not in the row {shorten(row)}; name the column or position of the user.",
                user=self.user,
            ) from error


@dataclass(frozen=True, slots=True)
class Local(Adjacency):
    """The local model: a dataset is one person's value, and any two values are neighbours."""

    unit: ClassVar[str] = "one person's value"

    def __str__(self) -> str:
        return "any two values (local model)"

    def distance(self, x: Any, y: Any) -> float:
        return 1.0

    def difference(self, x: Any, y: Any) -> str:
        return entry_difference(x, y)


@dataclass(frozen=True, slots=True)
class Within(Adjacency):
    """Query answers (numbers or vectors) within `radius` in a norm; the distance is the norm over the radius.

    A pair that is closer than the stated distance is accepted.

    Parameters
    ----------
    norm : {"l1", "l2", "linf"}
    radius : float
        Positive and finite.
    """

    norm: Literal["l1", "l2", "linf"]
    radius: float = 1.0

    unit: ClassVar[str] = "one step of the answers"

    def __post_init__(self) -> None:
        if not isinstance(self.norm, str) or self.norm not in ("l1", "l2", "linf"):
            raise AdjacencyError(f'norm={shorten(self.norm)} is unknown; use "l1", "l2" or "linf".', norm=self.norm)
        if not 0 < as_number(self.radius) < math.inf:
            raise AdjacencyError(
                f"radius={shorten(self.radius)} is not a radius; use a positive number.", radius=self.radius
            )

    def __str__(self) -> str:
        return f"answers within {self.radius:g} in {self.norm.replace('l', 'L').replace('Linf', 'L∞')}"

    def holds(self, measured: float, distance: float) -> bool:
        return measured <= distance * (1 + 1e-9)

    def difference(self, x: Any, y: Any) -> str:
        return entry_difference(x, y)

    def distance(self, x: Any, y: Any) -> float:
        try:
            a, b = (np.asarray(as_numpy(side), dtype=np.float64) for side in (x, y))
        except (TypeError, ValueError) as error:
            raise AdjacencyError(
                f"a dataset of type {type(x).__name__} is not a vector of answers; {self} compares numbers.",
                type=type(x).__name__,
            ) from error
        if a.shape != b.shape:
            return math.inf
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise AdjacencyError(
                "a dataset holds NaN or an infinite number, so the pair has no distance; use finite numbers.",
                norm=self.norm,
            )
        order = {"l1": 1, "l2": 2, "linf": np.inf}[self.norm]
        moved = np.linalg.norm(_steps(as_numpy(x), as_numpy(y), a, b).ravel(), ord=order) if a.size else 0.0
        return float(moved) / self.radius


def _steps(x: Any, y: Any, a: FloatArray, b: FloatArray) -> FloatArray:
    """Return x − y, in exact integers where whole numbers exceed the precision of doubles."""
    if a.size and max(np.abs(a).max(), np.abs(b).max()) > _WHOLE:
        p, q = np.asarray(x, dtype=object), np.asarray(y, dtype=object)
        if all(isinstance(value, numbers.Integral) for side in (p, q) for value in side.flat):
            exact = [int(one) - int(other) for one, other in zip(p.flat, q.flat, strict=True)]
            return np.array(exact, dtype=np.float64)
    return a - b
