"""Select the source of pairs for a domain, an adjacency and a distance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..datasets.adjacency import AddRemove, Adjacency, Local, Replace, UserLevel, Within
from ..datasets.domains import Answers, Domain, Graphs, Rows, Values
from ..datasets.graph_adjacency import EdgeNeighbours, NodeNeighbours
from ..datasets.tables import Tables
from ..errors import AdjacencyError, DatasetError, OptionError
from ..options import is_single
from ..printing import shorten
from .answer_pairs import AnswerPairs
from .candidates import PairSource, whole_distance
from .given_pairs import GeneratedPairs, GivenPairs, ListedPairs, StrategyPairs, is_strategy
from .graph_pairs import GraphPairs
from .row_pairs import RowPairs, TablePairs
from .user_level_pairs import UserPairs

_NEIGHBOURS: dict[type[Domain], str] = {
    Answers: "Within (or Local, for any two)",
    Rows: "AddRemove, Replace or UserLevel",
    Graphs: "EdgeNeighbours or NodeNeighbours",
    Tables: "AddRemove or Replace",
}


def pairs_of(domain: Any, adjacency: Adjacency | None, distance: float, seed: int) -> PairSource:
    """Return the source of pairs for a search.

    Parameters
    ----------
    domain : Domain, Hypothesis strategy, callable or iterable
        A callable makes a pair (x, y) from a random generator; an iterable contains pairs.
    adjacency : Adjacency, optional
        Required for a domain and for a strategy of datasets.
    seed : int
        Random seed for a strategy.

    Raises
    ------
    AdjacencyError, DatasetError
        If the domain has no such neighbours; the message names adjacencies that it has.
    OptionError
        If `domain` is not a domain, or the distance is not a number of steps.
    """
    if isinstance(domain, Domain):
        return _of_domain(domain, adjacency, distance)
    if is_strategy(domain):
        return StrategyPairs(domain, adjacency, distance, seed)
    if callable(domain) and not isinstance(domain, type):
        return GeneratedPairs(domain)
    if isinstance(domain, Iterable) and not isinstance(domain, (str, bytes, dict)) and not is_single(domain):
        return GivenPairs(domain)
    raise OptionError(
        f"domain={shorten(domain)} describes no datasets; use Answers, Values, Rows, Tables or Graphs, a function of a "
        "random generator that makes a pair, an iterable of pairs, or a Hypothesis strategy.",
        domain=domain,
    )


def _of_domain(domain: Domain, adjacency: Adjacency | None, distance: float) -> PairSource:
    if adjacency is None:
        way_out = _NEIGHBOURS.get(type(domain), "Local")
        raise AdjacencyError(f"adjacency=None does not define neighbours; use {way_out}.", adjacency=None)
    match domain, adjacency:
        case Answers(), Within(norm=norm, radius=radius):
            return AnswerPairs(domain, norm, radius * distance)
        case Answers(), Local():
            return AnswerPairs(domain, "linf", domain.width)
        case Values(), _:
            return ListedPairs(domain)
        case Rows(), AddRemove():
            return RowPairs(domain, whole_distance(distance, "rows"), "added")
        case Rows(), Replace():
            return RowPairs(domain, whole_distance(distance, "rows"), "replaced")
        case Rows(), UserLevel(user=user):
            return UserPairs(domain, whole_distance(distance, "users"), user)
        case Tables(), AddRemove():
            return TablePairs(domain, whole_distance(distance, "rows"), "added")
        case Tables(), Replace():
            return TablePairs(domain, whole_distance(distance, "rows"), "replaced")
        case Graphs(), EdgeNeighbours():
            return GraphPairs(domain, whole_distance(distance, "edges"), "edges")
        case Graphs(), NodeNeighbours():
            return GraphPairs(domain, whole_distance(distance, "nodes"), "nodes")
    if type(domain) in _NEIGHBOURS:
        known = "; ".join(f"{kind.__name__}: {names}" for kind, names in _NEIGHBOURS.items())
        raise AdjacencyError(
            f"{type(domain).__name__} have no neighbours by {adjacency}; use a matching adjacency "
            f"({known}; Values: any), or a function that makes pairs.",
            adjacency=adjacency,
        )
    raise DatasetError(
        f"domain={shorten(domain)} is of an unknown kind; use Answers, Values, Rows, Tables or Graphs, or a function "
        "of a random generator that makes a pair.",
        domain=domain,
    )
