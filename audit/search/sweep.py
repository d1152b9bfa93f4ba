"""Sweeps: pairs that differ in one number, run a few times each with the same random numbers.

A row value that is mishandled, such as a power of two, a value next to an end of the range or one in a narrow window,
shows in the outputs of a handful of coupled runs: they differ by more than those of its neighbours. A line is swept at
hundreds of numbers, and again between the places where the outputs differ most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count, islice

from .candidates import Candidate, Line
from .coupled_draws import CoupledDraws
from .pool import Pool
from .trial import Judge, Trial

_SHARE = 10  # one execution in ten of a search is for sweeps
_RUNS = 8  # of each pair
_MOST, _LEAST = 1_024, 16  # numbers of a line
_AROUND, _DEPTH = 3, 5  # places that are bisected, and how often
_BISECTION = 4 * _RUNS * _AROUND * _DEPTH  # most executions: on each side of a place, on x and on y
_KEPT, _TOGETHER = 4, 8  # pairs of a line, and of all lines, that join the search
_WORSE = 1.02  # least difference of their outputs, as a share of the largest at the ends
_POWERS, _QUANTILES = 8, 10
_SLOW = 0.2  # seconds for a pair from which workers are worth the effort to ask them
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def swept(pool: Pool, judge: Judge, budget: int) -> tuple[list[Candidate], int]:
    """Return pairs of the lines of a domain whose outputs differ most, and the executions that it took to find them.

    Parameters
    ----------
    budget : int
        Executions of the search, of which a tenth may be used.
    """
    least = 2 * _RUNS * _LEAST + _BISECTION
    lines = list(islice(pool.source.lines(), budget // (_SHARE * least)))
    draws, jobs, numbers = CoupledDraws(), judge.jobs, count()
    judge = replace(judge, draws=draws, jobs=1, what="place")
    found: list[tuple[float, Candidate]] = []
    for number, line in enumerate(lines, start=1):
        started = time.perf_counter()
        trial = Trial(line.at(line.high), next(numbers))
        if pool.is_possible(trial.candidate):
            trial.extend([_RUNS], judge, is_coupled=True, is_scored=False)
        is_slow = time.perf_counter() - started > _SLOW
        places = _Places(line, pool, replace(judge, jobs=jobs) if is_slow else judge, numbers)
        found += _worst_of(places, number * budget // (_SHARE * len(lines)))
    found.sort(key=lambda one: -one[0])
    return [candidate for _, candidate in found[:_TOGETHER]], draws.executions


def _worst_of(places: _Places, most: int) -> list[tuple[float, Candidate]]:
    """Return the pairs of a line whose outputs differ by more than those at its ends, and how many times as much.

    The line is swept, and then bisected between the places where outputs differ most, up to a total of `most`
    executions.
    """
    line, draws = places.line, places.judge.draws
    for number in islice(_numbers(line.low, line.high), _MOST):
        if draws.executions >= most - _BISECTION:
            break
        places.visit(number)
    for _ in range(_DEPTH):
        for number in places.peaks()[:_AROUND]:
            places.visit_around(number)
    usual = max(places.differences.get(end, 0.0) for end in (line.low, line.high))
    worse = [number for number in places.peaks() if places.differences[number] > _WORSE * usual]
    return [
        (places.differences[number] / usual if usual > 0.0 else math.inf, places.pairs[number])
        for number in worse[:_KEPT]
    ]


@dataclass(slots=True)
class _Places:
    """The numbers of a line that have been visited, with the differences of the outputs there."""

    line: Line
    pool: Pool
    judge: Judge
    numbers: Iterator[int]  # of all pairs swept, for the store
    differences: dict[float, float] = field(default_factory=dict)
    pairs: dict[float, Candidate] = field(default_factory=dict)
    _keys: set[Hashable] = field(default_factory=set)

    def visit(self, number: float) -> None:
        """Run the pair at this number a few times, if it is possible and none of those before."""
        candidate = self.line.at(number)
        if candidate.key in self._keys or not self.pool.is_possible(candidate):
            return
        self._keys.add(candidate.key)
        trial = Trial(candidate, next(self.numbers))
        trial.extend([_RUNS], self.judge, is_coupled=True, is_scored=False)
        if trial.error is None:
            self.differences[number], self.pairs[number] = trial.difference, candidate
        if len(self.pairs) > 1:  # most have a dataset in common
            first, *_, last = self.pairs.values()
            self.judge.draws.keep({*(first.ends or ()), *(last.ends or ())})

    def visit_around(self, number: float) -> None:
        """Visit the middle between a number and the next one on each side."""
        numbers = sorted(self.differences)
        place = numbers.index(number)
        for other in numbers[max(place - 1, 0) : place] + numbers[place + 1 : place + 2]:
            self.visit((number + other) / 2.0)

    def peaks(self) -> list[float]:
        """Return the numbers at which outputs differ more than at the next ones on each side, the largest first."""
        numbers = sorted(self.differences)
        heights = [-math.inf, *(self.differences[number] for number in numbers), -math.inf]
        peaks = [
            (-height, number)
            for before, height, after, number in zip(heights, heights[1:], heights[2:], numbers, strict=False)
            if before < height >= after
        ]
        return [number for _, number in sorted(peaks)]


def _numbers(low: float, high: float) -> Iterator[float]:
    """Yield the ends of a range, numbers next to them, powers of two, quantiles, and then numbers between them."""
    width = high - low
    yield from (low, high, math.nextafter(low, math.inf), math.nextafter(high, -math.inf), 0.0)
    yield from (end for share in (1e-6, 1e-3) for end in (low + share * width, high - share * width))
    largest = math.frexp(max(abs(low), abs(high)))[1]
    powers = [sign * math.ldexp(1.0, largest - k) for k in range(1, _POWERS + 1) for sign in (1, -1)]
    yield from (power for power in powers if low < power < high)
    yield from (low + part / _QUANTILES * width for part in range(1, _QUANTILES))
    yield from (low + (number * _GOLDEN % 1.0) * width for number in count(1))
