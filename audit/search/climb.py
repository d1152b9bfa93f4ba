"""Search for the largest pair, where the size of a pair is known exactly as soon as it is computed.

The size is the change of a query, or the loss that a replay shows. So every pair is compared once, and the search
climbs from the largest pairs: by sweeps of each of their numbers, and by random variations.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import count, islice
from typing import Final, Generic, TypeVar

from ..inference.binomial_tails import ROUNDING
from .candidates import Candidate, Line, Pool

# The numbers of a line of pairs: which to visit, and where something is largest.
#
# Values next to the ends of a range and powers of two come first, because they are often mishandled. Then the golden
# section fills the range evenly, in turns with round numbers, and bisection refines the neighbourhood of
# what is largest.

MOST: Final = 1_152  # most numbers of a line of a domain that are visited before bisection
AROUND: Final = 3  # places that are bisected, and groups of pairs that are varied
DEPTH: Final = 5  # bisections of places (docs/decisions/0025-limits.md)
_POWERS, _ROUND = 8, 128  # powers of two, and most round numbers (docs/decisions/0025-limits.md)
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(slots=True)
class Places:
    """The numbers of a line that have been visited, with the height of the pair at each."""

    line: Line
    measure: Callable[[Candidate], float | None]  # None of a pair that is not possible or cannot be measured
    heights: dict[float, float] = field(default_factory=dict)
    pairs: dict[float, Candidate] = field(default_factory=dict)
    _keys: set[Hashable] = field(default_factory=set)

    def sweep(self, most: int, has_room: Callable[[], bool]) -> None:
        """Visit at most so many numbers while there is room, and bisect between the largest."""
        for number in islice(numbers_between(self.line.low, self.line.high), most):
            if not has_room():
                break
            self.visit(number)
        for _ in range(DEPTH):
            for number in self.peaks()[:AROUND]:
                self.visit_around(number)

    def visit(self, number: float) -> None:
        """Measure the pair at this number, unless it equals a pair before."""
        candidate = self.line.at(number)
        if candidate.key in self._keys:
            return
        self._keys.add(candidate.key)
        height = self.measure(candidate)
        if height is not None:
            self.heights[number], self.pairs[number] = height, candidate

    def visit_around(self, number: float) -> None:
        """Visit the middle between a number and the next one on each side."""
        numbers = sorted(self.heights)
        place = numbers.index(number)
        for other in numbers[max(place - 1, 0) : place] + numbers[place + 1 : place + 2]:
            self.visit((number + other) / 2.0)

    def peaks(self) -> list[float]:
        """Return the numbers at which the height is larger than at the next ones on each side, the largest first."""
        numbers = sorted(self.heights)
        heights = [-math.inf, *(self.heights[number] for number in numbers), -math.inf]
        peaks = [
            (-height, number)
            for before, height, after, number in zip(heights, heights[1:], heights[2:], numbers, strict=False)
            if before < height >= after
        ]
        return [number for _, number in sorted(peaks)]


def _round_numbers(low: float, high: float) -> Iterator[float]:
    """Yield the multiples of a power of ten in a range, from a dozen to 128 of them: where code has its thresholds."""
    if not 0.0 < high - low < math.inf:
        return
    digits = -math.ceil(math.log10(high - low) - math.log10(_ROUND))
    ends = (Fraction(end) * Fraction(10) ** digits for end in (low, high))
    first, last = next(ends), next(ends)
    yield from (float(number / Fraction(10) ** digits) for number in range(math.ceil(first), math.floor(last) + 1))


def numbers_between(low: float, high: float) -> Iterator[float]:
    """Yield the ends of a range, numbers next to them, powers of two, and then numbers everywhere."""
    width = high - low
    yield from (low, high, math.nextafter(low, math.inf), math.nextafter(high, -math.inf))
    yield from (0.0,) if low < 0.0 < high else ()
    yield from (end for share in (1e-6, 1e-3) for end in (low + share * width, high - share * width))
    largest = math.frexp(max(abs(low), abs(high)))[1]
    powers = [sign * math.ldexp(1.0, largest - k) for k in range(1, _POWERS + 1) for sign in (1, -1)]
    yield from (power for power in powers if low < power < high)
    evenly = (low + (number * _GOLDEN % 1.0) * width for number in count(1))
    yield from (number for pair in zip(evenly, _round_numbers(low, high), strict=False) for number in pair)
    yield from evenly


MOST_FAILED = 200  # pairs on which a mechanism fails, after which no other is tried if it runs on none
KEPT = 0.97  # share of the size of a pair that a simpler pair must have
_MOST_LINES = 8  # of a domain, and near a pair; so many turns without a new pair show that a domain is exhausted
_NUMBERS_NEAR = 48  # of a line near a pair
_MOVES = 12  # random pairs of a turn, and variations of each pair that is varied
_SIMPLER = 150  # simpler pairs that are compared in each of two passes
_FOR_SIMPLER = 0.05  # share of the budget that is left for them


@dataclass(frozen=True, slots=True)
class Sized:
    """A pair with its size; an infinite one ends the search."""

    candidate: Candidate
    size: float


Pair = TypeVar("Pair", bound=Sized)


@dataclass(slots=True, kw_only=True)
class Climb(ABC, Generic[Pair]):
    """A search that compares as many pairs as a budget allows, of which it has `used` a part."""

    pool: Pool
    most: int  # the budget
    pairs: int = 0  # that were compared
    failed: int = 0
    first_error: str = ""
    largest: Pair | None = None  # the first of the largest size
    leaders: dict[Hashable, Pair] = field(default_factory=dict)  # the largest of each group of similar pairs
    is_exhausted: bool = False  # whether the source had no other pairs
    _swept: dict[Hashable, float] = field(default_factory=dict)  # the size from which lines were swept, by group

    @property
    @abstractmethod
    def used(self) -> int: ...

    @abstractmethod
    def compare(self, candidate: Candidate) -> Pair | None:
        """Return the pair with its size; None if it cannot be compared."""

    @property
    def tried(self) -> int:
        return self.pairs + self.failed

    def has_room(self, share: float) -> bool:
        """Whether less than this share of the budget has been used, and not all pairs fail."""
        return self.used < share * self.most and (self.pairs > 0 or self.failed < MOST_FAILED)

    def run(self) -> None:
        """Compare pairs until the budget is spent or no pairs are left; each stage gets an equal share."""
        patterns = self.pool.patterns(self.most, has_staircases=True)
        whole = 1.0 - min(_FOR_SIMPLER, 2 * _SIMPLER / self.most)
        stages: list[Callable[[float], object]] = [partial(self._compare, patterns), self._sweep_lines, self._turns]
        for number, stage in enumerate(stages, start=1):
            stage(whole * number / len(stages))
        self._compare(patterns, whole)
        self.is_exhausted = self._goes_on(whole)

    def _sweep_lines(self, share: float) -> None:
        """Sweep the lines of the domain up to a share of the budget; each has an equal part of what is left of it."""
        lines = list(islice(self.pool.source.lines(), _MOST_LINES))
        for n_left, line in zip(range(len(lines), 0, -1), lines, strict=True):
            used = self.used / self.most
            self._sweep(line, MOST, used + (share - used) / n_left)

    def _turns(self, share: float) -> None:
        """Sweep and vary the leaders of the largest groups, and the best of some random pairs, while there are new."""
        idle = 0
        while self._goes_on(share) and idle < _MOST_LINES:
            before = self.tried
            order = sorted(self.leaders.values(), key=lambda pair: -pair.size)[:AROUND]
            drawn = self._compare(self.pool.drawn(_MOVES), share)
            for pair in [*order, *([drawn] if drawn is not None else [])]:
                for line in self._lines_near(pair):
                    self._sweep(line, _NUMBERS_NEAR, share)
                self._compare(self.pool.moves(pair.candidate, _MOVES), share, drifts=True)
            idle = 0 if self.tried > before else idle + 1

    def simpler(self, pair: Pair, least: float) -> Pair:
        """Return the simplest pair of at least this size."""
        most = self.tried + _SIMPLER

        def accept(candidate: Candidate) -> Pair | None:
            simpler = self.compare(candidate)
            return simpler if simpler is not None and simpler.size >= least else None

        def has_room() -> bool:
            return self.has_room(1.0) and self.tried < most

        return self.pool.simplest(pair.candidate, accept, has_room, self.most) or pair

    def _goes_on(self, share: float) -> bool:
        is_unbounded = self.largest is not None and math.isinf(self.largest.size)
        return self.has_room(share) and not is_unbounded

    def _compare(self, candidates: Iterable[Candidate], share: float, *, drifts: bool = False) -> Pair | None:
        """Compare pairs up to a share of the budget; return the largest of them."""
        best: Pair | None = None
        rest: Iterator[Candidate] = iter(candidates)
        while self._goes_on(share) and (candidate := next(rest, None)) is not None:
            found = self._compared(candidate, drifts=drifts)
            if found is not None and (best is None or found.size > best.size):
                best = found
        return best

    def _compared(self, candidate: Candidate, *, drifts: bool = False) -> Pair | None:
        """Compare a pair; it leads its group if it is larger than the others, or, if it drifts, as large."""
        found = self.compare(candidate)
        if found is None:
            return None
        size, leader = found.size, self.leaders.get(candidate.group)
        if leader is None or size > leader.size or (drifts and size == leader.size):
            self.leaders[candidate.group] = found
        if self.largest is None or size > self.largest.size * (1.0 + ROUNDING):
            self.largest = found
        return found

    def _sweep(self, line: Line, most: int, share: float) -> None:
        """Compare the pairs of a line, and bisect it between the largest."""

        def size(candidate: Candidate) -> float | None:
            if not self._goes_on(share) or not self.pool.is_possible(candidate):
                return None
            found = self._compared(candidate)
            return None if found is None else found.size

        reserved = 2 * AROUND * DEPTH / self.most
        Places(line, size).sweep(most, lambda: self._goes_on(share - reserved))

    def _lines_near(self, pair: Pair) -> list[Line]:
        """Return lines near a pair: all of the first that is so large in its group, one at random of the others."""
        lines = [line.varied() for line in islice(self.pool.source.lines_near(pair.candidate), _MOST_LINES)]
        group, size = pair.candidate.group, pair.size
        if size > self._swept.get(group, -1.0) * (1.0 + ROUNDING):
            self._swept[group] = size
            return lines
        return [lines[int(self.pool.rng.integers(len(lines)))]] if lines else []
