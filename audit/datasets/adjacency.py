"""Adjacency relations: which datasets are neighbours, and the distance between two datasets."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import numpy as np

from ..errors import AdjacencyError, OptionError
from ..events.outputs import outcome_key
from ..options import as_number, is_whole
from ..printing import did_you_mean, shorten
from .contents import distance_of
from .description import difference, edges_of, entry_difference, nodes_of
from .rows import (
    as_numpy,
    as_rows,
    columns_by_name,
    is_array,
    is_column_of_rows,
    is_frame,
    is_graph,
    rows_apart,
    rows_of,
    symmetric_difference,
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
            hint = on_tuples(x) or on_tuples(y)
            raise AdjacencyError(
                f"the pair is {found} under {self}, not at {distance:g}: {self.difference(x, y)}; pass another pair"
                f"{way_out}.{f' {hint}.' if hint else ''}",
                measured=measured,
                distance=distance,
            )
        return measured


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


@dataclass(frozen=True, slots=True)
class AddRemove(Adjacency):
    """Datasets that differ by one row added or removed; the distance is the size of the symmetric difference.

    Datasets are compared as multisets, so the order of rows does not matter. A tuple of arrays of one length, such as
    features and labels (X, y), is a table with one column for each array; in a list of arrays, each array is a row.

    See Also
    --------
    Replace : Neighbours of equal size.
    UserLevel : All rows of one user.

    References
    ----------
    Dwork & Roth (2014), Section 2.3: ‖x − y‖₁ of the histograms.

    Examples
    --------
    >>> from dpaudit import AddRemove
    >>> AddRemove().distance([1, 2, 3], [3, 1])
    1.0
    """

    words: ClassVar[str] = "add/remove one row"
    unit: ClassVar[str] = "one row"

    def distance(self, x: Any, y: Any) -> float:
        return float(sum(rows_apart(x, y)))


@dataclass(frozen=True, slots=True)
class Replace(Adjacency):
    """Datasets of equal size that differ in one row; the distance is the number of rows to replace.

    See Also
    --------
    AddRemove : One row more or fewer.
    Local : Replacement of the only value.

    Examples
    --------
    >>> from dpaudit import AddRemove, Replace
    >>> Replace().distance([1, 2, 3], [1, 2, 9]), AddRemove().distance([1, 2, 3], [1, 2, 9])
    (1.0, 2.0)
    """

    words: ClassVar[str] = "replace one row"
    unit: ClassVar[str] = "the contents of one row"

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

    See Also
    --------
    AddRemove : One row at a time.

    Examples
    --------
    >>> from dpaudit import UserLevel
    >>> UserLevel(user=0).distance([("ann", 3), ("ann", 5), ("bob", 1)], [("bob", 1)])
    1.0
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


# Relations by name, and the relation that a caller's value means.

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
    """Return the relation: an instance, or a name of `NAMED`; else the `OptionError` says what to write.

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
