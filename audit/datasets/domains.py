"""What the datasets of a mechanism can be: where a search for the worst pair looks."""

from __future__ import annotations

import math
import numbers
from abc import ABC
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from ..errors import DatasetError

Floats = npt.NDArray[np.float64]

_CORNERS = 4  # rows that stand for all in patterns: any more, and the pairs outgrow what a search can try


class Domain(ABC):  # noqa: B024  # what its kinds share is what they are for
    """A set of datasets, described well enough to draw neighbours from it."""


@dataclass(frozen=True, slots=True)
class Answers(Domain):
    """Vectors of query answers, shape (n_answers,), each in [low, high]; a single number where `n_answers` is None.

    Neighbours are `Within` a distance, or any two (`Local`).

    Parameters
    ----------
    n_answers : int, optional
    low, high : float
        The least and the largest answer, finite.
    integer : bool
        Whether answers are whole numbers.

    Raises
    ------
    DatasetError
        For ranges that are empty or infinite, or fewer than one answer.
    """

    n_answers: int | None = None
    low: float = 0.0
    high: float = 2.0
    integer: bool = False

    def __post_init__(self) -> None:
        if self.n_answers is not None:
            _check_whole("n_answers", self.n_answers, "answers; None stands for a single number, not in a vector")
        _check_range(self.low, self.high, integer=self.integer)

    @property
    def width(self) -> float:
        """How far an answer can move."""
        return self.high - self.low

    def build(self, answers: Floats) -> Any:
        """The dataset with these answers, shape (n,): an array, or one number."""
        values = np.rint(answers).astype(np.int64) if self.integer else answers
        return values.copy() if self.n_answers is not None else values[0].item()


@dataclass(frozen=True, slots=True)
class Values(Domain):
    """One value of a finite set: what a person holds in the local model, or any other datasets that can be listed.

    Neighbours are any two (`Local`), or those at the stated distance under another adjacency.
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _in_order("values", self.values))
        if len(self.values) < 2:
            raise DatasetError(f"values={self.values!r:.60} make no pair; list two or more.", values=self.values)


@dataclass(frozen=True, slots=True)
class Rows(Domain):
    """Collections of rows, each one of `values`, or a number (or tuple of numbers) between low and high.

    Neighbours are by `AddRemove`, `Replace` or `UserLevel`.

    Parameters
    ----------
    values : tuple
        Every row there can be; empty where rows are numbers.
    low, high : float or tuple of float
        Of numbers: the least and the largest, in each column where rows are tuples.
    most : int
        Rows of a dataset at most.
    form : {"list", "array", "frame"}
        What the mechanism is given: a list, a numpy array or a pandas data frame.
    columns : tuple of str
        Names of the columns of a frame; of a list, its rows then are dicts with these keys.
    integer : bool
        Whether numbers are whole.
    rows_per_user : int, optional
        For `UserLevel`: rows that one user can own, `most` by default. Where the numbers of a row name its user, users
        are the whole numbers of that column's range.

    Raises
    ------
    DatasetError
        For ranges that are empty or infinite, no row, or columns that do not fit the rows.

    Examples
    --------
    >>> from dpaudit.audit.datasets.domains import Rows
    >>> Rows(low=(0, 0.0), high=(9, 50.0), form="list", columns=("user", "paid")).build([(3, 20.0)])
    [{'user': 3, 'paid': 20.0}]
    """

    values: tuple[Any, ...] = ()
    low: float | tuple[float, ...] = 0.0
    high: float | tuple[float, ...] = 1.0
    most: int = 5
    form: Literal["list", "array", "frame"] = "list"
    columns: tuple[str, ...] = ()
    integer: bool = False
    rows_per_user: int | None = None

    def __post_init__(self) -> None:
        for name in ("values", "columns"):
            object.__setattr__(self, name, _in_order(name, getattr(self, name)))
        for name in ("low", "high"):
            end = getattr(self, name)
            object.__setattr__(self, name, tuple(end) if isinstance(end, (list, np.ndarray)) else end)
        _check_whole("most", self.most, "rows")
        if self.rows_per_user is not None:
            _check_whole("rows_per_user", self.rows_per_user, "rows")
        if self.form not in ("list", "array", "frame"):
            raise DatasetError(f'form={self.form!r} is unknown; use "list", "array" or "frame".', form=self.form)
        if isinstance(self.low, tuple) != isinstance(self.high, tuple) or (
            isinstance(self.low, tuple) and len(self.low) != len(cast(tuple[float, ...], self.high))
        ):
            raise DatasetError(
                f"low={self.low!r} and high={self.high!r} differ in form; use two numbers, or two tuples "
                "of one length.",
                low=self.low,
                high=self.high,
            )
        for low, high in zip(*self.ranges, strict=True):
            _check_range(low, high, integer=self.integer)
        width = len(self.corners()[0]) if isinstance(self.corners()[0], (tuple, dict)) else 1
        if self.columns and (len(self.columns) != width or self.form == "array"):
            raise DatasetError(
                f"columns={self.columns!r} do not fit rows of {width} in the form of {self.form!r}; name as many as a "
                'row has, in a "list" (of dicts) or a "frame".',
                columns=self.columns,
            )

    @property
    def ranges(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The low ends of all columns, and the high ends."""
        low, high = ((end,) if not isinstance(end, tuple) else end for end in (self.low, self.high))
        return low, high

    def corners(self) -> tuple[Any, ...]:
        """The rows that stand for all in patterns, the most different first: extremes, or the first of the values."""
        if self.values:
            return (self.values[0], *self.values[:0:-1])[:_CORNERS]
        ends = list(zip(*self.ranges, strict=True))
        opposite = [tuple(low for low, _ in ends), tuple(high for _, high in ends)]
        others = [corner for corner in islice(product(*ends), 2 * _CORNERS) if corner not in opposite]
        return tuple(self._row(corner) for corner in dict.fromkeys([*opposite, *others][:_CORNERS]))

    def draw(self, rng: np.random.Generator) -> Any:
        """A row: one of the values, or numbers each at an end, in the middle or anywhere."""
        if self.values:
            return self.values[int(rng.integers(len(self.values)))]
        shares = np.where(
            rng.random(len(self.ranges[0])) < 0.5, rng.integers(0, 3, len(self.ranges[0])) / 2, rng.random()
        )
        low, high = (np.array(end, dtype=np.float64) for end in self.ranges)
        return self._row((low + shares * (high - low)).tolist())

    def _row(self, parts: Iterable[float]) -> Any:
        row = tuple((math.floor if self.integer else float)(number) for number in parts)
        return row if isinstance(self.low, tuple) else row[0]

    def build(self, rows: Sequence[Any]) -> Any:
        """The dataset with these rows, in the form that the mechanism takes."""
        if self.form == "list":
            if self.columns and not isinstance(self.corners()[0], dict):
                return [dict(zip(self.columns, row if isinstance(row, tuple) else (row,), strict=True)) for row in rows]
            return list(rows)
        # Another row keeps the type of the columns where there is none.
        padded = [*rows, rows[-1] if rows else self.corners()[0]]
        if self.form == "array":
            return np.array(padded)[:-1]
        try:
            import pandas as pd
        except ImportError as error:
            raise DatasetError('form="frame" needs pandas; install it, or use "list" or "array".') from error
        return pd.DataFrame(padded, columns=list(self.columns) or None).iloc[:-1]


@dataclass(frozen=True, slots=True)
class Graphs(Domain):
    """Undirected networkx graphs of up to `most` nodes, 0, 1, …, none of more than `max_degree` edges.

    Neighbours are by `EdgeNeighbours` or `NodeNeighbours`.

    Parameters
    ----------
    most : int
        Nodes at most, at least 2.
    max_degree : int, optional
        Any degree by default.

    Raises
    ------
    DatasetError
        For fewer than two nodes, or a degree below 1.
    """

    most: int = 6
    max_degree: int | None = None

    def __post_init__(self) -> None:
        _check_whole("most", self.most, "nodes", least=2)
        if self.max_degree is not None:
            _check_whole("max_degree", self.max_degree, "edges of a node")

    @property
    def degree(self) -> int:
        """The largest degree that a node can have."""
        return self.most - 1 if self.max_degree is None else min(self.max_degree, self.most - 1)

    def build(self, nodes: Iterable[int], edges: Iterable[tuple[int, int]]) -> Any:
        """The graph of these nodes and edges."""
        import networkx as nx

        graph: Any = nx.Graph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from(edges)
        return graph


def _check_whole(name: str, value: Any, what: str, *, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise DatasetError(
            f"{name}={value!r} is no number of {what}; use a whole number from {least}.", **{name: value}
        )


def _check_range(low: Any, high: Any, *, integer: bool) -> None:
    are_numbers = isinstance(low, numbers.Real) and isinstance(high, numbers.Real)
    if not are_numbers or not (-math.inf < low < high < math.inf):  # NaN fails
        raise DatasetError(
            f"low={low!r} and high={high!r} hold no range; use finite numbers, low < high.", low=low, high=high
        )
    if integer and (low != math.floor(low) or high != math.floor(high)):
        raise DatasetError(
            f"low={low!r} and high={high!r} are not both whole; use whole ones, or integer=False.", low=low, high=high
        )


def _in_order(name: str, values: Any) -> tuple[Any, ...]:
    """The values in the order given: a seed fixes nothing where they have none."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, set, frozenset)):
        raise DatasetError(f"{name}={values!r:.60} list nothing in order; use a tuple or a list.", **{name: values})
    return tuple(values)
