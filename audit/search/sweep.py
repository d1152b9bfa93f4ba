"""Sweeps: pairs that differ in one number, run a few times each with the same random numbers.

A row value that is mishandled, such as a power of two, a value next to an end of the range or one in a narrow window,
shows in the outputs of a handful of coupled runs: they differ by more than those of its neighbours. A line is swept at
hundreds of numbers, and again between the places where the outputs differ most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, islice

from ..clock import now
from .candidates import Candidate
from .coupled_draws import CoupledDraws
from .places import MOST, Places, numbers_between
from .pool import Pool
from .trial import Judge, Trial

_SHARE = 10  # one execution in ten of a search is for sweeps
_RUNS = 8  # of each pair
_LEAST = 16  # numbers of a line for which it is worth a sweep
_AROUND, _DEPTH = 3, 5  # places that are bisected, and how often
_BISECTION = 4 * _RUNS * _AROUND * _DEPTH  # most executions: on each side of a place, on x and on y
_KEPT, _TOGETHER = 4, 8  # pairs of a line, and of all lines, that join the search
_WORSE = 1.02  # least difference of their outputs, as a share of the largest at the ends
_SLOW = 0.2  # seconds for a pair from which workers are worth the effort to ask them


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
        started = now()
        trial = Trial(line.at(line.high), next(numbers))
        if pool.is_possible(trial.candidate):
            trial.extend([_RUNS], judge, is_coupled=True, is_scored=False)
        is_slow = now() - started > _SLOW
        runs = _Runs(pool, replace(judge, jobs=jobs) if is_slow else judge, numbers)
        found += _worst_of(Places(line, runs.difference), draws, number * budget // (_SHARE * len(lines)))
    found.sort(key=lambda one: -one[0])
    return [candidate for _, candidate in found[:_TOGETHER]], draws.executions


def _worst_of(places: Places, draws: CoupledDraws, most: int) -> list[tuple[float, Candidate]]:
    """Return the pairs of a line whose outputs differ by more than those at its ends, and how many times as much.

    The line is swept, and then bisected between the places where outputs differ most, up to a total of `most`
    executions.
    """
    line = places.line
    for number in islice(numbers_between(line.low, line.high), MOST):
        if draws.executions >= most - _BISECTION:
            break
        places.visit(number)
    for _ in range(_DEPTH):
        for number in places.peaks()[:_AROUND]:
            places.visit_around(number)
    usual = max(places.heights.get(end, 0.0) for end in (line.low, line.high))
    worse = [number for number in places.peaks() if places.heights[number] > _WORSE * usual]
    return [
        (places.heights[number] / usual if usual > 0.0 else math.inf, places.pairs[number]) for number in worse[:_KEPT]
    ]


@dataclass(slots=True)
class _Runs:
    """Measures pairs by a few coupled runs: how far their outputs are apart."""

    pool: Pool
    judge: Judge
    numbers: Iterator[int]  # of all pairs swept, for the store
    _first: Candidate | None = None  # most pairs of a line have a dataset in common with it

    def difference(self, candidate: Candidate) -> float | None:
        """Return the difference of the outputs; None if the pair is not possible, or the mechanism fails on it."""
        if not self.pool.is_possible(candidate):
            return None
        trial = Trial(candidate, next(self.numbers))
        trial.extend([_RUNS], self.judge, is_coupled=True, is_scored=False)
        if trial.error is not None:
            return None
        self._first = self._first or candidate
        self.judge.draws.keep({*(self._first.ends or ()), *(candidate.ends or ())})
        return trial.difference
