"""Domains: the sets of datasets that a search for the worst pair covers."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt

from ..errors import DatasetError
from ..extras import require
from ..options import as_number, check_fields, is_single, is_whole
from ..printing import shorten

Floats = npt.NDArray[np.float64]

_MOST = 10**6  # most rows, answers, nodes or cells of a dataset that a search builds again and again
_CORNERS = 4  # representative rows in patterns; with more, there are more pairs than a search can try
ODD = 0.15
"""Share of the random rows that have a special number, and of the cells of `Tables` that break their declaration."""


class Domain(ABC):  # noqa: B024  # the kinds of domain share only their purpose
    """A set of datasets from which pairs of neighbours can be drawn."""

    @property
    def lists_values(self) -> bool:
        """Whether datasets consist of values that the caller listed, which may be real, instead of made up ones."""
        return bool(getattr(self, "values", ()))

    def with_numbers(self, numbers: tuple[float, ...]) -> Self:
        """Return the domain in which numbers may also be these, such as NaN."""
        larger = copy(self)
        object.__setattr__(larger, "numbers", numbers)
        return larger


@dataclass(frozen=True, slots=True)
class Answers(Domain):
    """Vectors of query answers, shape (n_answers,), each in [low, high]; a single number if `n_answers` is None.

    Neighbours are `Within` a distance, or any two (`Local`).

    Parameters
    ----------
    n_answers : int, optional
        Number of answers, at least 1.
    low, high : float
        The smallest and the largest answer, finite.
    integer : bool
        Whether answers are whole numbers.
    finite : bool
        Whether a search leaves out special numbers. By default it tries NaN and infinity on a mechanism that clamps
        (`Local` neighbours), and negative zero.

    Raises
    ------
    DatasetError
        For ranges that are empty or infinite, or fewer than one answer.

    See Also
    --------
    Values : A finite list of datasets.
    Rows : Datasets of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import Answers
    >>> Answers(n_answers=2, high=9.0).build(np.array([1.0, 9.0])).tolist()
    [1.0, 9.0]
    """

    n_answers: int | None = None
    low: float = 0.0
    high: float = 2.0
    integer: bool = False
    finite: bool = False
    numbers: tuple[float, ...] = field(default=(), init=False, repr=False, compare=False)  # special ones, of a search

    def __post_init__(self) -> None:
        if self.n_answers is not None:
            check_whole("n_answers", self.n_answers, "answers", "; None is for a single number outside a vector")
        check_fields(self, DatasetError)
        check_range(self.low, self.high, integer=self.integer)

    @property
    def width(self) -> float:
        """Width of the range of an answer."""
        return self.high - self.low

    def build(self, answers: Floats) -> Any:
        """Return the dataset with these answers, shape (n,): an array or one number."""
        values = np.rint(answers).astype(np.int64) if self.integer else answers
        return values.copy() if self.n_answers is not None else values[0].item()


@dataclass(frozen=True, slots=True)
class Values(Domain):
    """A finite list of datasets, such as the possible values of a person in the local model.

    Neighbours are any two of them (`Local`), or those at the stated distance under another adjacency. If they are
    floating-point numbers, a search also tries negative zero, and NaN and infinity if the mechanism clamps, unless they
    are `finite`.

    Parameters
    ----------
    values : tuple
        The datasets, at least two.
    finite : bool
        Whether a search leaves out NaN, infinity and negative zero.

    See Also
    --------
    Answers : Numbers in a range.
    Local : Any two values as neighbours.

    Examples
    --------
    >>> from dpaudit import Local, Values, find_worst_pair
    >>> def response(bit, size, rng):  # tells the truth with probability 3/4
    ...     return bit ^ (rng.random(size) < 0.25)
    >>> found = find_worst_pair(response, Values((0, 1)), claim=1.0, adjacency=Local(), runs=20_000)
    >>> found.verdict.value, found.bound > 1.0  # ln 3 = 1.0986
    ('refuted', True)
    """

    values: tuple[Any, ...]
    finite: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", in_order("values", self.values))
        if len(self.values) < 2:
            raise DatasetError(
                f"values={shorten(self.values)} do not form a pair; list two or more.", values=self.values
            )
        check_fields(self, DatasetError)


@dataclass(frozen=True, slots=True)
class Rows(Domain):
    """Collections of rows; every row is one of `values`, or a number (or tuple of numbers) between low and high.

    Neighbours are defined by `AddRemove`, `Replace` or `UserLevel`.

    Parameters
    ----------
    values : tuple
        All possible rows; empty if rows are numbers.
    low, high : float or tuple of float
        The smallest and the largest number, for each column if rows are tuples.
    most : int
        Largest number of rows of a dataset.
    form : {"list", "array", "frame"}
        Type of the dataset: a list, a numpy array or a pandas data frame.
    columns : tuple of str
        Names of the columns of a frame, or keys of the rows of a list, which are then dicts.
    integer : bool
        Whether numbers are whole.
    rows_per_user : int, optional
        Largest number of rows of one user under `UserLevel`, `most` by default. If a column of numbers holds the user,
        the users are the whole numbers in the range of that column.
    least : int
        Smallest number of rows of a dataset, such as 1 for a mean.
    size : int, optional
        Number of rows of every dataset, where it is public: `least` and `most` at once. Such datasets are neighbours
        by `Replace`.
    finite : bool
        Whether a search leaves out special numbers. By default it also tries rows of NaN and infinity, if rows are
        floating-point numbers and the mechanism clamps them: numbers far beyond the range, on either side, are all the
        same to it. If 0 lies in the range, it tries negative zero.

    Raises
    ------
    DatasetError
        For ranges that are empty or infinite, `most` below 1 or below `least`, or columns that do not fit the rows.

    See Also
    --------
    Tables : Tables with typed columns.
    Answers : Numbers of which only a distance is known.

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
    least: int = 0
    size: int | None = None
    finite: bool = False
    numbers: tuple[float, ...] = field(default=(), init=False, repr=False, compare=False)  # special ones, of a search

    def __post_init__(self) -> None:
        for name in ("values", "columns"):
            object.__setattr__(self, name, in_order(name, getattr(self, name)))
        for name in ("low", "high"):
            end = getattr(self, name)
            object.__setattr__(
                self, name, tuple(end) if isinstance(end, (list, np.ndarray)) and not is_single(end) else end
            )
        take_size(self)
        if self.rows_per_user is not None:
            check_whole("rows_per_user", self.rows_per_user, "rows")
        check_fields(self, DatasetError)
        if not isinstance(self.form, str) or self.form not in ("list", "array", "frame"):
            raise DatasetError(f'form={shorten(self.form)} is unknown; use "list", "array" or "frame".', form=self.form)
        if isinstance(self.low, tuple) != isinstance(self.high, tuple) or (
            isinstance(self.low, tuple) and len(self.low) != len(cast(tuple[float, ...], self.high))
        ):
            raise DatasetError(
                f"low={shorten(self.low)} and high={shorten(self.high)} differ in form; use two numbers, or two tuples "
                "of the same length.",
                low=self.low,
                high=self.high,
            )
        for low, high in zip(*self.ranges, strict=True):
            check_range(low, high, integer=self.integer)
        width = len(self.corners()[0]) if isinstance(self.corners()[0], (tuple, dict)) else 1
        if self.columns and (len(self.columns) != width or self.form == "array"):
            raise DatasetError(
                f"columns={shorten(self.columns)} do not fit rows of {width} in form={self.form!r}; use one name for "
                'each entry of a row, with form="list" (of dicts) or "frame".',
                columns=self.columns,
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, if they have any."""
        return self.columns

    @property
    def ranges(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The low ends and the high ends of all columns."""
        low, high = ((end,) if not isinstance(end, tuple) else end for end in (self.low, self.high))
        return low, high

    def corners(self) -> tuple[Any, ...]:
        """Return the representative rows for patterns, the most different first: extremes, or ends of the values."""
        if self.values:
            return (self.values[0], *self.values[:0:-1])[:_CORNERS]
        ends = list(zip(*self.ranges, strict=True))
        opposite = [tuple(low for low, _ in ends), tuple(high for _, high in ends)]
        others = [corner for corner in islice(product(*ends), 2 * _CORNERS) if corner not in opposite]
        special = [(number,) * len(ends) for number in self.numbers]
        return tuple(map(self.row, [*opposite, *special, *others[: _CORNERS - 2]]))

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw a row: one of the values, or numbers that are at an end, in the middle or uniform in the range."""
        if self.values:
            return self.values[int(rng.integers(len(self.values)))]
        width = len(self.ranges[0])
        shares = np.where(rng.random(width) < 0.5, rng.integers(0, 3, width) / 2, rng.random())
        low, high = (np.array(end, dtype=np.float64) for end in self.ranges)
        parts = (low + shares * (high - low)).tolist()
        if self.numbers and rng.random() < ODD:
            parts[int(rng.integers(width))] = self.numbers[int(rng.integers(len(self.numbers)))]
        return self.row(parts)

    def row(self, parts: Iterable[float]) -> Any:
        """Return the row with these numbers, one for each column."""
        row = tuple((math.floor if self.integer else float)(number) for number in parts)
        return row if isinstance(self.low, tuple) else row[0]

    def build(self, rows: Sequence[Any]) -> Any:
        """Return the dataset with these rows, as a list, array or frame."""
        if self.form == "list":
            if self.columns and not isinstance(self.corners()[0], dict):
                return [dict(zip(self.columns, row if isinstance(row, tuple) else (row,), strict=True)) for row in rows]
            return list(rows)
        # An extra row fixes the types of the columns of a dataset without rows.
        padded = [*rows, rows[-1] if rows else self.corners()[0]]
        if self.form == "array":
            return np.array(padded)[:-1]
        require("pandas", 'form="frame" needs', "pandas")
        import pandas as pd

        return pd.DataFrame(padded, columns=list(self.columns) or None).iloc[:-1]


@dataclass(frozen=True, slots=True)
class Graphs(Domain):
    """Undirected networkx graphs of up to `most` nodes 0, 1, … with degrees of at most `max_degree`.

    Neighbours are defined by `EdgeNeighbours` or `NodeNeighbours`.

    Parameters
    ----------
    most : int
        Largest number of nodes, at least 2.
    max_degree : int, optional
        At least 1; no limit by default.

    Raises
    ------
    DatasetError
        For fewer than two nodes, or a degree below 1.
    """

    most: int = 6
    max_degree: int | None = None

    def __post_init__(self) -> None:
        check_whole("most", self.most, "nodes", least=2)
        if self.max_degree is not None:
            check_whole("max_degree", self.max_degree, "edges at a node")

    @property
    def degree(self) -> int:
        """The largest possible degree of a node."""
        return self.most - 1 if self.max_degree is None else min(self.max_degree, self.most - 1)

    def build(self, nodes: Iterable[int], edges: Iterable[tuple[int, int]]) -> Any:
        """Return the graph of these nodes and edges."""
        require("graphs", "a domain of graphs needs", "networkx")
        import networkx as nx

        graph: Any = nx.Graph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from(edges)
        return graph


def check_whole(name: str, value: Any, what: str, note: str = "", *, least: int = 1) -> None:
    """Raise a `DatasetError` unless the value is a whole number of at least `least`."""
    if not is_whole(value) or not least <= value <= _MOST:
        raise DatasetError(
            f"{name}={shorten(value)} is not a number of {what}; use a whole number from {least} to {_MOST:,}{note}.",
            **{name: value},
        )


def take_size(domain: Any) -> None:
    """Set the numbers of rows to the size, if there is one; raise a `DatasetError` unless they are in order."""
    if domain.size is not None:
        check_whole("size", domain.size, "rows")
        object.__setattr__(domain, "least", domain.size)
        object.__setattr__(domain, "most", domain.size)
    check_whole("most", domain.most, "rows")
    check_whole("least", domain.least, "rows", least=0)
    if domain.least > domain.most:
        raise DatasetError(
            f"least={domain.least} rows are more than most={domain.most}; use a larger most, or size= for a fixed "
            "number.",
            least=domain.least,
            most=domain.most,
        )


def check_range(low: Any, high: Any, *, integer: bool) -> None:
    """Raise a `DatasetError` unless low and high are finite numbers in order, whole ones if `integer`."""
    if not -math.inf < as_number(low) < as_number(high) < math.inf:  # NaN fails
        raise DatasetError(
            f"low={shorten(low)} and high={shorten(high)} do not form a range; use finite numbers, low < high.",
            low=low,
            high=high,
        )
    if integer and (low != math.floor(low) or high != math.floor(high)):
        raise DatasetError(
            f"low={shorten(low)} and high={shorten(high)} are not both whole; use whole numbers or integer=False.",
            low=low,
            high=high,
        )


def in_order(name: str, values: Any) -> tuple[Any, ...]:
    """Return the values as a tuple; unordered values are refused, because a random seed could not reproduce a draw."""
    if is_single(values) or isinstance(values, (str, bytes, set, frozenset)):
        raise DatasetError(f"{name}={shorten(values)} is not an ordered list; use a tuple or a list.", **{name: values})
    return tuple(values)
