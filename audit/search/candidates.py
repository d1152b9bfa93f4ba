"""Candidates for the worst pair of datasets: their sources, and those that are neighbours in the domain, each once."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field, replace
from itertools import chain, islice
from operator import length_hint
from typing import Any, TypeVar

import numpy as np

from ..datasets.adjacency import Adjacency
from ..datasets.description import as_code, summarise
from ..datasets.domains import Domain
from ..datasets.rows import as_rows, is_frame, is_graph, symmetric_difference, tables_of
from ..errors import AdjacencyError, AuditError, DatasetError, OptionError, described
from ..events.named_parts import printed
from ..printing import SHOWN, counted, shorten
from ..random_streams import Stream, seed_of


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for the worst pair."""

    label: str  # description of the pair
    x: Any = field(repr=False, compare=False)
    y: Any = field(repr=False, compare=False)
    parts: Any = field(default=None, repr=False, compare=False)  # components, for the source to vary
    ends: tuple[Hashable, ...] | None = None  # of x and of y, equal for equal datasets; None if unknown
    group: Hashable = None  # equal for pairs that are likely to lose about as much
    size: float = 0.0  # of two pairs that seem to lose as much, the smaller is easier to read
    promise: float = 0.0  # the loss that a replay shows, which decides among pairs whose runs show nothing
    is_promised: bool = False  # whether the caller states that it is a pair of neighbours

    @property
    def key(self) -> Hashable:
        """Equal for equal pairs, in either order; None if unknown."""
        return None if self.ends is None else frozenset(self.ends)

    @property
    def summary(self) -> str:
        """The datasets, on one line."""
        return self.in_words(shows_data=True)

    def in_words(self, *, shows_data: bool) -> str:
        """The contents of the datasets if they may be shown, else their types and sizes, on one line."""
        return f"x = {shown(self.x, shows_data=shows_data)}, y = {shown(self.y, shows_data=shows_data)}"


@dataclass(frozen=True, slots=True)
class Line:
    """Pairs that differ in one number alone, such as the value of a row, from `low` to `high`."""

    low: float
    high: float
    at: Callable[[float], Candidate]

    def varied(self) -> Line:
        """Return the line whose pairs have the label of a variation."""
        return replace(self, at=lambda number: varied(self.at(number)))


class PairSource(ABC):
    """A source of candidates, which need not be neighbours: the caller checks each."""

    has_many = False  # whether a search fills the runs that it may make with random pairs, as its patterns are few

    @abstractmethod
    def patterns(self) -> Iterator[Candidate]:
        """Yield the initial pairs, those that most often reveal a bug first; perhaps without end, or none."""

    def staircases(self) -> Iterator[Candidate]:
        """Yield further initial pairs for a search that can try many: rows at one end of a range, then at the other."""
        return iter(())

    @abstractmethod
    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        """Yield random pairs, without end or none."""

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        """Yield random variations of a pair without end, with its label or their own."""
        return iter(())

    def lines(self) -> Iterator[Line]:
        return iter(())

    def lines_near(self, candidate: Candidate) -> Iterator[Line]:
        """Yield lines of pairs that differ from a pair in one number."""
        return iter(())

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield finitely many pairs that may be simpler, the largest steps first."""
        return iter(())

    def is_allowed(self, candidate: Candidate) -> bool:
        """Whether both datasets are in the domain."""
        return True


def varied(candidate: Candidate) -> Candidate:
    """Return the pair, which is new, with the label of a variation."""
    mark = " (variation of another pair)"
    object.__setattr__(candidate, "label", f"{candidate.label.removesuffix(mark)}{mark}")  # a copy takes 5 µs
    return candidate


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
    code = None if length_hint(dataset) > 10_000 else as_code(dataset)  # writing more, to cut it, takes seconds
    return shorten(dataset) if code is None else code if len(code) <= SHOWN else f"{code[: SHOWN - 1]}…"


def chunks(size: int) -> Iterator[slice]:
    """Yield the parts of a sequence that a simplification leaves out: all, halves, quarters, …, single items.

    References
    ----------
    Zeller & Hildebrandt (2002), Simplifying and isolating failure-inducing input.
    """
    length = size
    while length:
        yield from (slice(start, start + length) for start in range(0, size, length))
        length //= 2


def complexity(x: Any, y: Any) -> tuple[Any, ...]:
    """Return what is smaller for the simpler of two pairs.

    In this order: entries (rows, or nodes and edges), different cells, cells in which x and y differ, digits and
    letters of the cells, magnitude of the numbers, texts. A number that is not finite has as many digits as a double.
    """
    entries = [_entries(dataset) for dataset in (x, y)]
    in_x, in_y = (Counter((place, printed(cell)) for row in rows for place, cell in enumerate(row)) for rows in entries)
    numbers = [cell for rows in entries for row in rows for cell in row if isinstance(cell, (int, float))]
    finite = [min(abs(number), sys.float_info.max) for number in numbers if -math.inf < number < math.inf]
    digits = sum(count * len(text.removesuffix(".0")) for (_, text), count in (in_x + in_y).items())
    return (
        sum(map(len, entries)),
        len({text for _, text in in_x + in_y}),
        symmetric_difference(in_x, in_y).total(),
        digits + sys.float_info.dig * (len(numbers) - len(finite)),
        sum(finite),
        sorted((in_x + in_y).elements()),
    )


def _entries(dataset: Any) -> list[tuple[Any, ...]]:
    """The rows of a dataset, nodes and edges of a graph, or the dataset itself, each as a tuple of its cells."""
    if isinstance(dataset, dict) and (tables := tables_of(dataset, dataset)) and None not in tables:
        return [(name, *row) for name, (table, _) in tables.items() for row in _entries(table)]
    try:
        rows: Any = [*dataset.nodes, *dataset.edges] if is_graph(dataset) else as_rows(dataset)
    except DatasetError:
        rows = [dataset]
    listed = rows.itertuples(index=False) if is_frame(rows) else rows.tolist() if isinstance(rows, np.ndarray) else rows
    whole = [tuple(row.values()) if isinstance(row, dict) else row for row in listed]
    return [tuple(row) if isinstance(row, (tuple, list)) else (row,) for row in whole]


MANY = 32
"""Pairs with which a search begins, if it has a hundred runs for each and the domain has as many."""
LEAST_SCORED = 100
"""Fewest runs on each dataset that score one of many pairs by its best event."""


def initial_pairs(available: int, budget: int) -> int:
    """Return the number of pairs, out of those available, with which a search of `budget` runs begins.

    With more runs than 32 pairs need, their number and the length of the first pilots grow alike: n pairs that
    have no dataset in common take 2 n log₂ n pilots, whose length is the square root of the budget.
    """
    count = min(available, max(min(MANY, budget // LEAST_SCORED), 2))
    while count < available and 2 * (count + 1) * math.log2(count + 1) <= math.sqrt(budget):
        count += 1
    return count


PairCheck = Callable[[Any, Any, float], Any]
Accepted = TypeVar("Accepted")

# Bounds the time for listing pairs, of which domains with many columns have endlessly many
# (docs/decisions/0025-limits.md).
_MOST_PATTERNS = 1_000
_TRIES = 40  # attempts for each new pair


@dataclass(slots=True)
class Pool:
    """Candidates that are neighbours and in the domain, each once."""

    source: PairSource
    adjacency: Adjacency | None
    distance: float
    seed: InitVar[int]
    check_pair: PairCheck | None = None  # of the mechanism, which may refuse neighbours
    rng: np.random.Generator = field(init=False)
    strangers: list[tuple[Candidate, str]] = field(default_factory=list)  # the caller's, and the first one refused
    seen: set[Hashable] = field(default_factory=set)

    def __post_init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed_of(seed, Stream.PAIRS))

    def first(self, budget: int, places: Sequence[Candidate] = ()) -> tuple[list[Candidate], list[Candidate]]:
        """Return the initial pairs (places of sweeps, patterns, random ones), and the patterns left out.

        Without the places at least a quarter are random.
        """
        patterns = list(self.patterns(_MOST_PATTERNS))
        wanted = max(MANY - len(patterns), len(patterns) // 4)
        if self.source.has_many or not patterns:
            wanted = max(wanted, initial_pairs(_MOST_PATTERNS, budget) - len(patterns))
        most = initial_pairs(len(patterns) + wanted, budget)
        drawn = list(self._some(self.source.random(self.rng), min(wanted, max(most // 4, most - len(patterns)))))
        kept = patterns[: most - len(drawn)]
        return [*self._new(places), *kept, *drawn], patterns[len(kept) :]

    def patterns(self, most: int, *, has_staircases: bool = False) -> Iterator[Candidate]:
        """Yield the new pairs among the first `most` patterns, which may end in staircases."""
        staircases = self.source.staircases() if has_staircases else ()
        return self._new(islice(chain(self.source.patterns(), staircases), most))

    def drawn(self, count: int) -> Iterator[Candidate]:
        """Yield up to `count` new random pairs."""
        return self._some(self.source.random(self.rng), count)

    def moves(self, parent: Candidate, count: int) -> Iterator[Candidate]:
        """Yield up to `count` new variations of a pair."""
        return self._some(map(varied, self.source.moves(parent, self.rng)), count)

    def simplest(
        self,
        candidate: Candidate,
        accept: Callable[[Candidate], Accepted | None],
        has_room: Callable[[], bool],
        runs: float,
    ) -> Accepted | None:
        """Return what `accept` returns of the simplest pair that it accepts, found by greedy simplification.

        The first pair of less complexity for which it does not return None is simplified further. It is called once for
        each pair, while there is room. Pairs are looked at in proportion to the runs that a simplification may make.
        """
        best: Accepted | None = None
        # A row takes 1.2 microseconds (measured), so 20 for each run take no longer than runs of 24 microseconds.
        rows_left = 20.0 * runs
        seen, is_simpler = {candidate.key}, True
        while is_simpler:
            is_simpler, least = False, complexity(candidate.x, candidate.y)
            for simpler in self.source.simpler(candidate):
                rows_left -= max(simpler.size, length_hint(simpler.x) + length_hint(simpler.y), 1)
                if rows_left < 0.0 or not has_room():
                    return best
                if simpler.key in seen or not complexity(simpler.x, simpler.y) < least:
                    continue
                if (simpler.key is not None and len(set(simpler.ends or ())) < 2) or not self.is_possible(simpler):
                    continue
                seen.add(simpler.key)
                accepted = accept(simpler)
                if accepted is not None:
                    best, candidate, is_simpler = accepted, simpler, True
                    break
        return best

    def no_pair(self) -> AdjacencyError:
        """Return the error that explains why there is no pair to try."""
        if self.strangers:
            count = counted(len(self.strangers), "pair")
            return AdjacencyError(f"none of {count} are neighbours; the first: {self.strangers[0][1]}")
        return AdjacencyError("no pair of neighbours was found at this distance; widen the domain, or pass more pairs.")

    def is_possible(self, candidate: Candidate) -> bool:
        """Whether a pair consists of neighbours in the domain."""
        return self.source.is_allowed(candidate) and self._reason_against(candidate) is None

    def _some(self, candidates: Iterator[Candidate], count: int) -> Iterator[Candidate]:
        """Yield up to `count` new candidates, within a limited number of attempts."""
        return islice(self._new(islice(candidates, _TRIES * count)), count)

    def _new(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        for candidate in candidates:
            if candidate.key in self.seen or not self.source.is_allowed(candidate):
                continue
            reason = self._reason_against(candidate)
            if reason is None:
                if candidate.key is not None:
                    self.seen.add(candidate.key)
                yield candidate
            elif candidate.is_promised:
                self.strangers.append((candidate, reason))

    def _reason_against(self, candidate: Candidate) -> str | None:
        """Return why the pair cannot be tried, or None."""
        pair = candidate.x, candidate.y, self.distance
        try:
            if self.adjacency is not None:
                self.adjacency.check(*pair)
        except AuditError as error:
            return str(error)
        try:
            if self.check_pair is not None:
                self.check_pair(*pair)
        except AuditError as error:
            if not self.strangers and not candidate.is_promised:
                self.strangers.append((candidate, str(error)))
            return str(error)
        return None
