"""Adjacency relations: which datasets are neighbours, and the distance between two datasets."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np

from ..errors import AdjacencyError, DatasetError, OptionError
from ..events.outputs import outcome_key
from ..options import as_number, check_fields, is_whole
from ..printing import counted, did_you_mean, shorten
from .contents import distance_of
from .description import difference, edges_of, entry_difference, nodes_of
from .rows import (
    UNKNOWN,
    as_numpy,
    as_rows,
    columns_by_name,
    is_array,
    is_column_of_rows,
    is_frame,
    is_graph,
    is_missing,
    row_key,
    row_keys,
    row_list,
    rows_apart,
    rows_between,
    rows_only,
    symmetric_difference,
    tables_of,
    without_common_ends,
)


class Adjacency(ABC):
    """A relation between datasets, given by a distance; neighbours are at distance 1.

    Attributes
    ----------
    unit : str
        The unit that a guarantee at distance 1 protects, in a few words; empty if unknown.
    """

    unit: ClassVar[str] = ""
    words: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.words or repr(self)

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
        """Return the measured distance of the pair; raise an `AdjacencyError` if it is not the stated distance."""
        measured = self.distance(x, y)
        if self.holds(measured, distance):
            return measured
        found = "at no finite distance" if math.isinf(measured) else f"at distance {measured:.6g}"
        way_out = "" if measured in (0, math.inf) else ", or distance= to audit the claim at that distance"
        hint = on_tuples(x) or on_tuples(y)
        raise AdjacencyError(
            f"the pair is {found} under {self}, not at {distance:g}: {self.difference(x, y)}; pass another pair"
            f"{way_out}.{f' {hint}.' if hint else ''}",
            measured=measured,
            distance=distance,
        )


def on_tuples(dataset: Any) -> str:
    """Return how to pass a table whose columns would count as rows, such as [X, y]; empty for other datasets."""
    is_short = isinstance(dataset, (tuple, list)) and len(dataset) > 1 and columns_by_name(dataset) is None
    if not is_short or not all(map(is_column_of_rows, dataset)):
        return ""
    if isinstance(dataset, list) and len({np.shape(part) if is_array(part) else None for part in dataset}) == 1:
        return ""
    return (
        f"Each of the {len(dataset):,} parts of the {type(dataset).__name__} counts as one row; pass features and "
        "labels as a tuple of arrays of one length, (X, y)"
    )


@dataclass(frozen=True, slots=True, repr=False)
class RowAdjacency(Adjacency):
    """A relation between collections of rows, or between dictionaries of several of them."""

    tables: bool | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_fields(self, AdjacencyError)

    def __repr__(self) -> str:
        given = sorted(fields(self), key=lambda each: bool(each.kw_only))
        said = ((each.name, getattr(self, each.name)) for each in given if getattr(self, each.name) is not each.default)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said)})"

    def distance(self, x: Any, y: Any) -> float:
        pairs = tables_of(x, y, self.tables)
        return math.inf if pairs is None else float(self._between(pairs))

    def difference(self, x: Any, y: Any) -> str:
        return difference(x, y, self.tables)

    @abstractmethod
    def _between(self, pairs: dict[Any, tuple[Any, Any]]) -> float:
        """Return the distance of datasets of these tables."""


@dataclass(frozen=True, slots=True, repr=False)
class _RowByRow(RowAdjacency):
    """A relation whose distance is the sum of those of all tables; `ordered` is explained in each."""

    ordered: bool = field(default=False, kw_only=True)

    def _between(self, pairs: dict[Any, tuple[Any, Any]]) -> float:
        return sum(self._apart(*pair) for pair in pairs.values())

    @abstractmethod
    def _apart(self, x: Any, y: Any) -> float: ...


@dataclass(frozen=True, slots=True, repr=False)
class AddRemove(_RowByRow):
    """Datasets that differ by one row added or removed; the distance is the size of the symmetric difference.

    Datasets are compared as multisets, so the order of rows does not matter. A tuple of arrays of one length, such as
    features and labels (X, y), is a table with one column for each array; in a list of arrays, each array is a row.

    Parameters
    ----------
    tables : bool, optional
        Whether a dictionary holds several tables (True), of which one has a row more, or the columns of one table
        (False). By default it holds tables if all its values are data frames or lists of dictionaries.
    ordered : bool
        Whether rows are compared in their order: the distance is the fewest insertions and deletions of a row.

    See Also
    --------
    Replace : Neighbours of equal size.
    UserLevel : All rows of one user.

    References
    ----------
    Dwork & Roth (2014), Section 2.3: ‖x − y‖₁ of the histograms. Crochemore et al. (2001), A fast and practical
    bit-vector algorithm for the longest common subsequence problem.

    Examples
    --------
    >>> from dpaudit import AddRemove
    >>> AddRemove().distance([1, 2, 3], [3, 1])
    1.0
    >>> AddRemove(tables=True).distance({"a": [1, 2], "b": [5]}, {"a": [1], "b": [5]})
    1.0
    >>> AddRemove().distance([1, 2], [2, 1]), AddRemove(ordered=True).distance([1, 2], [2, 1])
    (0.0, 2.0)
    """

    unit: ClassVar[str] = "one row"

    def __str__(self) -> str:
        return "insert/delete one row, in order" if self.ordered else "add/remove one row"

    def _apart(self, x: Any, y: Any) -> float:
        return _edits(*rows_between(x, y, row_keys)) if self.ordered else sum(rows_apart(x, y))


def _edits(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return the fewest insertions and deletions that turn `a` into `b`: all rows but a longest common subsequence."""
    places, free = defaultdict[Any, int](int), (1 << len(a)) - 1
    for place, row in enumerate(a):
        places[row] |= 1 << place
    for row in b:  # the zeros of `free` are the ends of a longest common subsequence so far
        matched = free & places.get(row, 0)
        free = (free + matched) | (free - matched)
    return len(b) - len(a) + 2 * (free & ((1 << len(a)) - 1)).bit_count()


@dataclass(frozen=True, slots=True, repr=False)
class Replace(_RowByRow):
    """Datasets of equal size that differ in one row; the distance is the number of rows to replace.

    Parameters
    ----------
    tables : bool, optional
        Whether a dictionary holds several tables, as in `AddRemove`; each keeps its size.
    ordered : bool
        Whether rows are compared in their order: the distance is the number of places that differ.

    See Also
    --------
    AddRemove : One row more or fewer.
    ZeroOut : Replacement by a null record.
    Local : Replacement of the only value.

    Examples
    --------
    >>> from dpaudit import AddRemove, Replace
    >>> Replace().distance([1, 2, 3], [1, 2, 9]), AddRemove().distance([1, 2, 3], [1, 2, 9])
    (1.0, 2.0)
    """

    unit: ClassVar[str] = "the contents of one row"

    def __str__(self) -> str:
        return "replace one row, in place" if self.ordered else "replace one row"

    def _apart(self, x: Any, y: Any) -> float:
        if not self.ordered:
            only_x, only_y = (list(only.elements()) for only in rows_only(x, y))
            return self._steps(only_x, only_y) if len(only_x) == len(only_y) else math.inf
        a, b = rows_between(x, y, row_keys)
        if len(a) != len(b):
            return math.inf
        return sum(self._steps([one], [other]) for one, other in zip(a, b, strict=True) if one != other)

    def _steps(self, only_x: list[Any], only_y: list[Any]) -> float:
        """Return the number of steps from rows with these keys to as many others."""
        return len(only_x)


@dataclass(frozen=True, slots=True, repr=False)
class ZeroOut(Replace):
    """Datasets of equal size, in one of which one record is replaced by a null record.

    The distance is the number of records to replace by the null record, or to put in its place: a record that is
    replaced by another one takes two such steps. It is the adjacency of many proofs of DP-SGD, and REPLACE_SPECIAL in
    dp-accounting.

    Parameters
    ----------
    null : object
        The null record: a row as the datasets hold it, such as ``(0.0, 0.0)``, or a dictionary if rows are such. A
        single number or text stands for rows in which every entry has this value, None for rows without values. In a
        search, rows with texts need a text, None or a whole row.
    tables, ordered : bool
        As in `Replace`.

    See Also
    --------
    Replace : Any other row in its place.
    AddRemove : No row in its place, so the number of rows differs.

    References
    ----------
    Kairouz et al. (2021), Practical and private (deep) learning without sampling or shuffling.
    Ponomareva et al. (2023), How to DP-fy ML.

    Examples
    --------
    >>> from dpaudit import ZeroOut
    >>> ZeroOut().distance([(3.0, 1.0), (2.0, 2.0)], [(0.0, 0.0), (2.0, 2.0)])
    1.0
    >>> ZeroOut().distance([3.0, 2.0], [1.0, 2.0]), ZeroOut(null=None).distance([3.0, 2.0], [None, 2.0])
    (2.0, 1.0)
    """

    null: Any = 0

    def __post_init__(self) -> None:
        RowAdjacency.__post_init__(self)
        if isinstance(self.null, (np.ndarray, np.generic, list)):  # equal to others of the same numbers
            held = self.null if isinstance(self.null, list) else self.null.tolist()
            object.__setattr__(self, "null", tuple(held) if isinstance(held, list) else held)
        try:
            if not _leaves(row_key(self.null)):
                raise DatasetError("it has no entries; pass null=0, null=None, or a row.")
        except DatasetError as error:
            raise AdjacencyError(f"null={shorten(self.null)} is not a record: {error}", null=self.null) from error

    def __str__(self) -> str:
        in_place = ", in place" if self.ordered else ""
        return f"replace one row by the null record {shorten(self.null)}{in_place}"

    def _apart(self, x: Any, y: Any) -> float:
        if isinstance(self.null, dict):  # whose names a frame's rows lack
            x, y = row_list(x), row_list(y)
        elif isinstance(self.null, tuple) and not is_frame(x):  # whose entries are in the order of the rows' names
            rows = (rows for rows in map(as_rows, (x, y)) if isinstance(rows, list) and rows)
            named = self.row_like(next(rows, [None])[0])
            return replace(self, null=named)._apart(x, y) if isinstance(named, dict) else Replace._apart(self, x, y)
        return Replace._apart(self, x, y)

    def _steps(self, only_x: list[Any], only_y: list[Any]) -> float:
        null = _leaves(row_key(self.null))
        rows = map(_leaves, (*only_x, *only_y))
        return sum(row != null and (len(null) > 1 or any(leaf != null[0] for leaf in row)) for row in rows)

    def row_like(self, row: Any) -> Any:
        """Return the null record in the form of a row."""
        if isinstance(self.null, tuple) and isinstance(row, dict) and len(row) == len(self.null):
            return dict(zip(row, self.null, strict=True))
        if isinstance(self.null, (tuple, dict)):
            return self.null
        if isinstance(row, np.ndarray):
            return np.full(row.shape, self.null, dtype=None if self.null is None else row.dtype)
        if isinstance(row, (tuple, list)):
            return type(row)(map(self.row_like, row))
        if isinstance(row, str) and not (isinstance(self.null, str) or is_missing(self.null)):  # code for texts fails
            raise OptionError(
                f"null={shorten(self.null)} cannot take the place of a text; pass null=None, a text, or a whole row.",
                null=self.null,
            )
        return {name: self.row_like(part) for name, part in row.items()} if isinstance(row, dict) else self.null


def _leaves(key: Any) -> list[Any]:
    """Return the entries in the key of a row, those of a dictionary by name; missing ones are all the same."""
    if is_missing(key) or key is UNKNOWN:
        return [UNKNOWN]
    if isinstance(key, tuple) and key[:1] == (dict,):
        key = tuple(part for _, part in sorted(key[1], key=lambda entry: (len(str(entry[0])), str(entry[0]))))  # 2 < 10
    return [leaf for part in key for leaf in _leaves(part)] if isinstance(key, tuple) else [key]


@dataclass(frozen=True, slots=True, repr=False)
class UserLevel(RowAdjacency):
    """Datasets that differ by all rows of one user, added or removed; changing a user's rows takes two steps.

    Parameters
    ----------
    user : str, int or mapping
        Column (of a data frame), key (of dict rows) or position (in tuple rows and arrays) of the user. For a
        dictionary of several tables, one name of all columns, or the column of each table by its name. The user owns
        rows in all of these tables, linked by this key. Rows of other tables are nobody's and never differ. Rows
        without a user (None, NaN) belong together, as if they were one user's.
    tables : bool, optional
        Whether a dictionary holds several tables, as in `AddRemove`; it does if `user` is a mapping.
    changed_rows : "any" or int, optional
        If given, the user stays and its rows change: "any" for any number of them, or the largest number of rows that
        are replaced, added or removed, in all tables together. The users are the same in both datasets.

    See Also
    --------
    AddRemove : One row at a time.

    Examples
    --------
    >>> from dpaudit import UserLevel
    >>> UserLevel(user=0).distance([("ann", 3), ("ann", 5), ("bob", 1)], [("bob", 1)])
    1.0
    >>> x, y = [("ann", 3), ("ann", 5), ("bob", 1)], [("ann", 4), ("ann", 6), ("bob", 1)]
    >>> UserLevel(0).distance(x, y), UserLevel(0, changed_rows="any").distance(x, y)
    (2.0, 1.0)
    >>> UserLevel(0, changed_rows=1).distance(x, y)
    2.0
    """

    user: str | int | Mapping[str, str | int]
    changed_rows: Literal["any"] | int | None = field(default=None, kw_only=True)

    @property
    def unit(self) -> str:  # type: ignore[override]  # of other relations it is one for all
        """The rows of one user that a guarantee protects."""
        is_any = self.changed_rows in (None, "any")
        return "all rows of one user" if is_any else f"{counted(int(self.changed_rows or 0), 'row')} of one user"

    def __post_init__(self) -> None:
        RowAdjacency.__post_init__(self)
        columns = list(self.user.values()) if isinstance(self.user, Mapping) else [self.user]
        if not columns or not all(isinstance(column, str) or is_whole(column) for column in columns):
            raise AdjacencyError(
                f"user={shorten(self.user)} is not a column; use its name, its position in a row, or a dictionary of "
                "the columns by table.",
                user=self.user,
            )
        k = self.changed_rows
        if not (k is None or (isinstance(k, str) and k == "any") or (is_whole(k) and k >= 1)):
            raise AdjacencyError(
                f'changed_rows={shorten(k)} is not a number of rows; use "any", or a whole number from 1 on.',
                changed_rows=k,
            )
        if isinstance(self.user, Mapping):
            object.__setattr__(self, "tables", True)

    def __str__(self) -> str:
        user = self.user
        column = ", ".join(f"{table}.{name}" for table, name in user.items()) if isinstance(user, Mapping) else user
        match self.changed_rows:
            case None:
                return f"add/remove all rows of one user ({column})"
            case "any":
                return f"change the rows of one user ({column})"
            case k:
                return f"change at most {counted(k, 'row')} of one user ({column})"

    def _between(self, pairs: dict[Any, tuple[Any, Any]]) -> float:
        moved, columns = Counter[Hashable](), self.columns_in(pairs)
        users: tuple[set[Hashable], set[Hashable]] = set(), set()
        for table, pair in pairs.items():
            if (column := columns.get(table)) is None:
                if any(rows_apart(*pair)):
                    return math.inf
                continue
            a, b = map(as_rows, pair)
            for side, rows in zip(users, (a, b), strict=True):
                side.update(_users(rows, column))
            if not is_frame(a) or not is_frame(b) or list(a.columns) == list(b.columns):
                a, b = without_common_ends(a, b)
            in_x, in_y = _by_user(a, column), _by_user(b, column)
            for user in in_x.keys() | in_y.keys():
                moved[user] += max(rows_apart(in_x[user], in_y[user]))
        one_sided = users[0] ^ users[1]
        changed = [rows for user, rows in moved.items() if rows and user not in one_sided]
        match self.changed_rows:
            case None:
                return len(one_sided) + 2 * len(changed)
            case "any":
                return math.inf if one_sided else len(changed)
            case k:
                return math.inf if one_sided else sum(-(-rows // k) for rows in changed)

    def columns_in(self, tables: Mapping[Any, Any]) -> dict[Any, str | int]:
        """Return the column of the user in each table that has one."""
        columns = dict(self.user) if isinstance(self.user, Mapping) else dict.fromkeys(tables, self.user)
        if unknown := [name for name in columns if name not in tables]:
            raise AdjacencyError(
                f"user= names the table {unknown[0]!r}; the datasets have {shorten(list(tables))}, use these names.",
                user=self.user,
            )
        return columns


def _by_user(dataset: Any, column: str | int) -> defaultdict[Hashable, list[Any]]:
    found = defaultdict[Hashable, list[Any]](list)
    for user, row in zip(_users(dataset, column), row_list(dataset), strict=True):
        found[user].append(row)
    return found


def _users(dataset: Any, column: str | int) -> list[Hashable]:
    """Return what identifies the user of each row."""
    is_column = is_frame(dataset) and column in dataset.columns
    keys = []
    for row in dataset[column].tolist() if is_column else row_list(dataset):
        try:
            user = row if is_column else row[column]
        except (KeyError, IndexError, TypeError) as error:
            raise AdjacencyError(
                f"user={column!r} is not in the row {shorten(row)}; name the column or position of the user.",
                user=column,
            ) from error
        keys.append(outcome_key(None if is_missing(user) else user))
        try:
            hash(keys[-1])
        except TypeError as error:
            raise AdjacencyError(
                f"user={column!r} holds {shorten(user)}, which cannot identify a user; use a number or a string.",
                user=column,
            ) from error
    return keys


@dataclass(frozen=True, slots=True)
class Local(Adjacency):
    """The local model: a dataset is one person's value, and any two values are neighbours.

    See Also
    --------
    Replace : The same for datasets of many rows.
    Values : The domain of possible values.

    Examples
    --------
    >>> from dpaudit import Local
    >>> Local().distance("yes", "no")
    1.0
    """

    words: ClassVar[str] = "any two values (local model)"
    unit: ClassVar[str] = "one person's value"

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
        Norm of the difference of the answers.
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
        exact = distance_of(as_numpy(x), as_numpy(y))  # None for texts of numbers
        moved = np.abs(a - b) if exact is None else exact
        return float(np.linalg.norm(moved.ravel(), ord=order)) / self.radius if a.size else 0.0


# Graphs that differ by one edge, or by one node with all its edges.

_SECONDS = 10.0  # for a vertex cover, which is hard in the worst case; 100 nodes with 500 random edges take 2 s


@dataclass(frozen=True, slots=True)
class EdgeNeighbours(Adjacency):
    """Graphs on the same nodes that differ by one edge; the distance is the number of edges in only one graph.

    A dataset is a networkx graph, directed or not, whose nodes are identified by their labels. The attributes of a node
    or an edge are part of it: an edge with another weight is another edge, so changing a weight takes two steps. Graphs
    with different nodes are at an infinite distance.

    References
    ----------
    Hay, Li, Miklau & Jensen (2009), Accurate estimation of the degree distribution of private networks (edge
    differential privacy).

    Examples
    --------
    >>> import networkx as nx
    >>> EdgeNeighbours().distance(nx.cycle_graph(4), nx.path_graph(4))
    1.0
    """

    words: ClassVar[str] = "add/remove one edge"
    unit: ClassVar[str] = "one edge"

    def distance(self, x: Any, y: Any) -> float:
        if _are_of_different_kinds(x, y) or nodes_of(x) != nodes_of(y):
            return math.inf
        return float(symmetric_difference(edges_of(x), edges_of(y)).total())

    def difference(self, x: Any, y: Any) -> str:
        words = difference(x, y)
        if nodes_of(x) == nodes_of(y):
            return words
        return f"{words} (edge neighbours have the same nodes; use graph.add_nodes_from, or NodeNeighbours)"


@dataclass(frozen=True, slots=True)
class NodeNeighbours(Adjacency):
    """Graphs that differ by one node, added or removed with all its edges; all other edges stay.

    The distance is the smallest number of such steps. Changing the edges of a node takes two steps: the node is removed
    and added again. So nodes that are in only one graph count once. Of the common nodes, a smallest set that touches
    every differing edge between common nodes counts twice; this smallest vertex cover is found by integer programming.
    Nodes and edges are compared as for `EdgeNeighbours`.

    References
    ----------
    Kasiviswanathan, Nissim, Raskhodnikova & Smith (2013), Analyzing graphs with node differential privacy.

    Examples
    --------
    >>> import networkx as nx
    >>> NodeNeighbours().distance(nx.star_graph(5), nx.empty_graph(6)), NodeNeighbours().distance(
    ...     nx.complete_graph(5), nx.complete_graph(4)
    ... )
    (2.0, 1.0)
    """

    words: ClassVar[str] = "add/remove one node with its edges"
    unit: ClassVar[str] = "one node with its edges"

    def distance(self, x: Any, y: Any) -> float:
        if _are_of_different_kinds(x, y):
            return math.inf
        nodes_x, nodes_y = nodes_of(x), nodes_of(y)
        one_sided = {node for node, _ in nodes_x} ^ {node for node, _ in nodes_y}
        changed = {node for node, _ in symmetric_difference(nodes_x, nodes_y)} - one_sided
        edges = {frozenset(ends) for ends, _ in symmetric_difference(edges_of(x), edges_of(y))}
        untouched = [edge for edge in edges if not edge & (one_sided | changed)]
        return float(len(one_sided) + 2 * (len(changed) + _smallest_cover(untouched)))


def _are_of_different_kinds(x: Any, y: Any) -> bool:
    for dataset in (x, y):
        if not is_graph(dataset):
            raise AdjacencyError(
                f"a dataset of type {type(dataset).__name__} is not a graph; use a networkx.Graph, or an adjacency for "
                "rows such as AddRemove.",
                type=type(dataset).__name__,
            )
    return bool(x.is_directed() != y.is_directed())


def _smallest_cover(edges: list[frozenset[Any]]) -> int:
    """Return the size of a smallest set of nodes that touches every edge; a loop has only one node."""
    if not edges:
        return 0
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    degrees = Counter(node for edge in edges for node in edge)
    column = {node: j for j, node in enumerate(degrees)}
    places = [(i, column[node]) for i, edge in enumerate(edges) for node in edge]
    where = np.array(places, dtype=np.int32).T  # the solver of SciPy 1.12 takes no longer indices
    touches = csr_array((np.ones(len(places)), where), shape=(len(edges), len(column)))
    each = np.ones(len(column), dtype=np.int64)
    found = milp(
        each,
        integrality=each,
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(touches, lb=1),
        options={"mip_rel_gap": 0.0, "time_limit": _SECONDS},  # the default gap may stop before the optimum
    )
    if found.status != 0 or found.x is None:
        raise AdjacencyError(
            f"the graphs differ in {len(edges):,} edges between common nodes, and their node distance was not found "
            f"in {_SECONDS:g} s; pass graphs that differ less, or no adjacency.",
            n_edges=len(edges),
        )
    return round(float(found.x.sum()))


@dataclass(frozen=True, slots=True)
class SameQuery(Adjacency):
    """Datasets ``(query, data)`` with the same query, which is public, and data that are neighbours.

    Parameters
    ----------
    of : Adjacency or str
        The relation of the data.

    See Also
    --------
    Queries : The domain of such datasets.

    Examples
    --------
    >>> from dpaudit.domains import SameQuery
    >>> relation = SameQuery("add-remove")
    >>> relation.distance(("max", [1, 2]), ("max", [1])), relation.distance(("max", [1, 2]), ("min", [1]))
    (1.0, inf)
    """

    of: Adjacency

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", as_adjacency(self.of))

    def __str__(self) -> str:
        return f"{self.of}, of the data of one query"

    @property
    def unit(self) -> str:  # type: ignore[override]  # that of the relation, and not of the class
        return self.of.unit

    def distance(self, x: Any, y: Any) -> float:
        if not all(isinstance(dataset, tuple) and len(dataset) == 2 for dataset in (x, y)):
            raise AdjacencyError(
                f"x={shorten(x)} and y={shorten(y)} are not both (query, data); pass tuples of two.", adjacency=self
            )
        return self.of.distance(x[1], y[1]) if outcome_key(x[0]) == outcome_key(y[0]) else math.inf

    def holds(self, measured: float, distance: float) -> bool:
        return self.of.holds(measured, distance)

    def difference(self, x: Any, y: Any) -> str:
        if outcome_key(x[0]) != outcome_key(y[0]):
            return f"the queries are {shorten(x[0])} and {shorten(y[0])}"
        return self.of.difference(x[1], y[1])


# Relations by name, and the relation that a caller's value means.

# Without parameters, and answers within 1 in a norm.
NAMED: Final[dict[str, Adjacency]] = {
    "add-remove": AddRemove(),
    "replace": Replace(),
    "zero-out": ZeroOut(),
    "edge": EdgeNeighbours(),
    "node": NodeNeighbours(),
    "local": Local(),
    "l1": Within("l1"),
    "l2": Within("l2"),
    "linf": Within("linf"),
}

# Names in use elsewhere, with the relation to write instead.
_ELSEWHERE: Final = {
    "unbounded": "AddRemove()",
    "addremoveone": "AddRemove()",
    "symmetric": "AddRemove()",
    "bounded": "Replace()",
    "substitute": "Replace()",
    "swap": "Replace()",
    "change": "Replace()",
    "replacespecial": "ZeroOut()",
    "nullout": "ZeroOut()",
    "userlevel": 'UserLevel("column of the user")',
    "user": 'UserLevel("column of the user")',
    "within": 'Within("l1"), Within("l2") or Within("linf")',
    "linfinity": 'Within("linf")',
}


def as_adjacency(value: Any, option: str = "adjacency") -> Adjacency:
    """Return the relation: an instance, or a name of `NAMED`; else the error of the option says what to write."""
    if isinstance(value, Adjacency):
        return value
    if isinstance(value, str) and value in NAMED:
        return NAMED[value]
    if isinstance(value, type) and issubclass(value, Adjacency):
        instance = _ELSEWHERE.get(value.__name__.lower(), f"{value.__name__}()")
        raise OptionError(f"{option}={value.__name__} is a class; write {option}={instance}.", **{option: value})
    if not isinstance(value, str):
        raise OptionError(
            f"{option}={shorten(value)} is not an adjacency relation; use an instance such as AddRemove() or "
            'Replace(), or a name such as "add-remove".',
            **{option: value},
        )
    if (example := _ELSEWHERE.get(re.sub("[^a-z0-9]", "", value.lower()))) is not None:
        raise OptionError(
            f"{option}={shorten(value)} is not used in dpaudit; write {option}={example}.", **{option: value}
        )
    meant = did_you_mean(value[:80], NAMED, otherwise=".")
    raise OptionError(
        f"{option}={shorten(value)} is unknown; use one of {', '.join(NAMED)}, or an instance such as "
        f'UserLevel("user"){meant}',
        **{option: value},
    )
