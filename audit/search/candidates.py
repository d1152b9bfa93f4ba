"""Candidates for the worst pair of datasets, and their sources."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..datasets.adjacency import Adjacency
from ..datasets.description import edges_of, summarise
from ..datasets.domains import Domain
from ..datasets.rows import is_frame, is_graph
from ..errors import AuditError, OptionError, described
from ..printing import shorten


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for the worst pair."""

    label: str  # description of the pair
    x: Any = field(repr=False, compare=False)
    y: Any = field(repr=False, compare=False)
    parts: Any = field(default=None, repr=False, compare=False)  # components, for the source to vary
    ends: tuple[Hashable, Hashable] | None = None  # equal for equal datasets, x and y; None if unknown
    group: Hashable = None  # equal for pairs that are likely to lose about as much
    size: float = 0.0  # of two pairs that seem to lose as much, the smaller is easier to read
    promise: float = 0.0  # the loss that a replay shows, which decides among pairs whose runs show nothing
    is_promised: bool = False  # whether the caller states that it is a pair of neighbours
    is_pattern: bool = False  # whether it is an initial pattern, neither random nor a variation

    @property
    def key(self) -> Hashable:
        """Equal for equal pairs, in either order; None if unknown."""
        return None if self.ends is None else frozenset(self.ends)

    @property
    def summary(self) -> str:
        """The datasets, on one line."""
        return f"x = {show(self.x)}, y = {show(self.y)}"


@dataclass(frozen=True, slots=True)
class Line:
    """Pairs that differ in one number alone, such as the value of a row, from `low` to `high`."""

    low: float
    high: float
    at: Callable[[float], Candidate]


class PairSource(ABC):
    """A source of candidates, which need not be neighbours: the caller checks each."""

    has_many = False
    """Whether a search fills the executions that it may make with random pairs, as its patterns are few of many."""

    @abstractmethod
    def patterns(self) -> Iterator[Candidate]:
        """Yield the initial pairs, those that most often reveal a bug first; perhaps without end."""

    def staircases(self) -> Iterator[Candidate]:
        """Yield further initial pairs for a search that can try many: rows at one end of a range, then at the other."""
        return iter(())

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        """Yield random pairs, without end or none."""
        return iter(())

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        """Yield random variations of a pair, without end or none."""
        return iter(())

    def lines(self) -> Iterator[Line]:
        """Yield lines of pairs to sweep, or none."""
        return iter(())

    def lines_near(self, candidate: Candidate) -> Iterator[Line]:
        """Yield lines of pairs that differ from a pair in one number, or none."""
        return iter(())

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield simplifications of a pair, the largest first; none, or finitely many in a row."""
        return iter(())

    def is_allowed(self, candidate: Candidate) -> bool:
        """Whether both datasets are in the domain."""
        return True


def reason_against(candidate: Candidate, adjacency: Adjacency | None, distance: float) -> str | None:
    """Return why a candidate is not a pair of neighbours at this distance, or None if it is."""
    if adjacency is None:
        return None
    try:
        adjacency.check(candidate.x, candidate.y, distance)
    except AuditError as error:
        return str(error)
    return None


def varied(candidate: Candidate, how: str) -> str:
    """Return the label of a variation: the label of the first pair, and the last change."""
    return f"{candidate.label.split(' (variation: ')[0]} (variation: {how})"


def whole_distance(distance: float, what: str) -> int:
    """Return the distance as an integer number of steps; raise an `OptionError` if it is not one."""
    if distance != math.floor(distance):
        raise OptionError(f"distance={distance!r} is not a number of {what}; use an integer.", distance=distance)
    return int(distance)


def may_show_data(domain: Any, *, keep_datasets: bool) -> bool:
    """Whether a search may show its datasets: the caller asks for them, or the search has invented them."""
    return keep_datasets or (isinstance(domain, Domain) and not domain.lists_values)


def text_of_error(error: BaseException, dataset: Any, *, shows_data: bool) -> str:
    """Return an exception on a dataset, with the message and the contents if they may be shown."""
    return f"{described(error, shows_data=shows_data)} on {shown(dataset, shows_data=shows_data)}"


def shown(dataset: Any, *, shows_data: bool) -> str:
    """Return a dataset's contents on one line if they may be shown, else its type and size."""
    return show(dataset) if shows_data else summarise(dataset)


def show(dataset: Any) -> str:
    """Return a dataset's contents on one short line, for datasets that the search invented, which are not secret."""
    if is_graph(dataset):
        edges = sorted("-".join(map(str, sorted(ends, key=str))) for ends, _ in edges_of(dataset))
        text = f"{dataset.number_of_nodes()} nodes, {' '.join(edges) or 'no edge'}"
        return text if len(text) <= 80 else text[:79] + "…"
    if isinstance(dataset, np.ndarray):
        return shorten(dataset.tolist())
    if is_frame(dataset):
        return shorten([tuple(row) for row in dataset.itertuples(index=False, name=None)])
    return shorten(dataset)
