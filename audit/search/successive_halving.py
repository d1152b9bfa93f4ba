"""Successive halving of candidate pairs: each round keeps the better half and spends as much as the others."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, islice

from ..clock import now
from ..sampling.pilot_and_batch_sizes import pilot_runs
from .candidates import Candidate, Pool
from .climb import AROUND, DEPTH, MOST, MOST_FAILED, ROUNDING, Places
from .trial import CoupledDraws, Judge, Trial

# Sweeps: pairs that differ in one number, run a few times each with the same random numbers.
#
# A row value that is mishandled, such as a power of two, a value next to an end of the range or one in a narrow
# window, shows in the outputs of a handful of coupled runs: they differ by more than those of its neighbours. A line
# is swept at hundreds of numbers, and again between the places where the outputs differ most.

SHARE = 10
"""One execution in ten of a search is for sweeps, and one in ten for simpler pairs."""
_RUNS = 8  # of each pair
_BISECTION = 4 * _RUNS * AROUND * DEPTH  # most executions: on each side of a place, on x and on y
_TOGETHER = 8  # pairs of all lines that join the search
_SLOW = 0.2  # seconds for a pair from which workers are worth the effort to ask them


def swept(pool: Pool, judge: Judge, budget: int) -> tuple[list[Candidate], int]:
    """Return pairs of the lines of a domain whose outputs differ most, and the executions that it took to find them.

    A line has at least half as many executions for its sweep as for bisection.
    """
    lines = list(islice(pool.source.lines(), 2 * budget // (SHARE * 3 * _BISECTION)))
    draws, jobs, numbers = CoupledDraws(), judge.jobs, count()
    judge = replace(judge, draws=draws, jobs=1, what="place")
    found: list[tuple[float, Candidate]] = []
    for number, line in enumerate(lines, start=1):
        started = now()
        trial = Trial(line.at(line.high), next(numbers))
        if pool.is_possible(trial.candidate):
            trial.extend([_RUNS], judge, is_coupled=True, is_scored=False)
        is_slow = now() - started > _SLOW
        measure = _differences(pool, replace(judge, jobs=jobs) if is_slow else judge, numbers)
        found += _worst_of(Places(line, measure), draws, number * budget // (SHARE * len(lines)))
    found.sort(key=lambda one: -one[0])
    return [candidate for _, candidate in found[:_TOGETHER]], draws.executions


def _worst_of(places: Places, draws: CoupledDraws, most: int) -> list[tuple[float, Candidate]]:
    """Return the pairs of a line whose outputs differ by more than those at its ends, and how many times as much."""
    places.sweep(MOST, lambda: draws.executions < most - _BISECTION)
    usual = max(places.heights.get(end, 0.0) for end in (places.line.low, places.line.high))
    worse = [number for number in places.peaks() if places.heights[number] > usual * (1.0 + ROUNDING)]
    return [
        (places.heights[number] / usual if usual > 0.0 else math.inf, places.pairs[number]) for number in worse[:AROUND]
    ]


def _differences(pool: Pool, judge: Judge, numbers: Iterator[int]) -> Callable[[Candidate], float | None]:
    """Return how to measure how far outputs are apart; None of an impossible pair, or one that fails."""
    first: Candidate | None = None  # most pairs of a line have a dataset in common with it

    def difference(candidate: Candidate) -> float | None:
        nonlocal first
        if not pool.is_possible(candidate):
            return None
        trial = Trial(candidate, next(numbers))
        trial.extend([_RUNS], judge, is_coupled=True, is_scored=False)
        if trial.error is not None:
            return None
        first = first or candidate
        judge.draws.keep({*(first.ends or ()), *(candidate.ends or ())})
        return trial.difference

    return difference


# How long the pilots of a round are.

LEAST_SCORED = 100
"""Fewest runs on each dataset that score one of many pairs by its best event; fewer say how far outputs are apart."""

_MOST_PILOT = 2 * pilot_runs(sys.maxsize)  # half as many independent runs are the longest pilot of an audit


def first_pilot(budget: int, pairs: int, datasets: int) -> int:
    """Return the runs of the first pilots on each dataset."""
    if pairs == 1:
        return min(max(budget // 2, 1), _MOST_PILOT)
    wanted = budget / (datasets * rounds_left(pairs, LEAST_SCORED) + (pairs == 2))
    return min(max(int(wanted), 1), _MOST_PILOT)


def is_scored(pairs: int, pilot: int) -> bool:
    """Whether pilots are long enough to score pairs; the last two are scored in any case."""
    return pilot >= LEAST_SCORED or pairs <= 2


def survivors(pairs: int, pilot: int) -> int:
    """Return how many pairs survive a round: a half, or a quarter of those that are not scored."""
    return -(-pairs // 2) if is_scored(pairs, pilot) else max(-(-pairs // 4), 2)


def rounds_left(pairs: int, pilot: int) -> int:
    """Return the number of rounds until a single pair is left, if pilots double."""
    rounds = 0
    while pairs > 1:
        pairs, pilot, rounds = survivors(pairs, pilot), 2 * pilot, rounds + 1
    return rounds


def next_pilot(left: float, pairs: int, pilot: int, drawn: Sequence[int]) -> int:
    """Return the runs of the next pilots, after those of `pilot` runs; each dataset of the round has had `drawn`.

    Every round of `pairs` spends an equal share of the executions that are left. The last one leaves enough for half as
    many independent runs on the pair that is chosen.
    """
    rounds = rounds_left(pairs, pilot)
    wanted = (left / rounds + sum(drawn)) / (len(drawn) + (rounds == 1))
    return min(int(wanted), _MOST_PILOT)


_SURE = 1.645  # standard errors above the claim that refute it with 95% power


def halve(
    pool: Pool, judge: Judge, budget: int, tell: Callable[[Trial], None], given: Sequence[Candidate] | None = None
) -> tuple[list[Trial], int, int]:
    """Return all tried pairs, the number of patterns left out, and that of executions.

    The best pair comes first, unless all were skipped; only this one still has its outputs. `budget` executions, on all
    datasets, are spent. `tell` sees the leading pair after each round. The initial pairs are those `given`, best first,
    or those of the pool.

    References
    ----------
    Karnin, Koren & Somekh (2013), Almost optimal exploration in multi-armed bandits (sequential halving).
    """
    if given is None:
        places, spent = swept(pool, judge, budget)
        budget -= spent
        first, left = pool.first(budget, places)
    else:
        first, left, spent = list(given), [], 0
    is_coupled, kept = len(first) > 1, len(first)
    datasets = _drawn([Trial(candidate, number) for number, candidate in enumerate(first)])
    pilots = [first_pilot(budget, kept, len(datasets))] if first else []
    trials, untried = _begun(pool, judge, first, left, pilots, budget // 2, is_coupled=is_coupled)
    running = trials[:]
    while True:
        finalists = [trial for trial in running if trial.error is None]
        kept = survivors(kept, pilots[-1]) if kept > 1 else 1
        running = _survivors(finalists, kept, judge.claim.parameter)
        if running:
            tell(min(running, key=Trial.rank))
        if kept == 1 or not running:
            break
        for trial in finalists:
            if trial not in running:
                trial.forget()
        judge.draws.keep({end for trial in running for end in trial.ends})
        pilot = next_pilot(budget - judge.draws.executions, kept, pilots[-1], _drawn(running))
        if pilot > pilots[-1]:
            pilots.append(pilot)
        for trial in running:
            trial.extend(pilots, judge, is_coupled=is_coupled, is_scored=is_scored(kept, pilots[-1]))
    order = sorted(trials, key=lambda t: (t not in running, t.error is not None, -t.runs, *t.rank()))
    plain = _pattern_for(order[0], finalists, judge.claim.parameter) if order else None
    judge.draws.keep(set())
    for trial in trials:
        if trial is not plain:
            trial.forget()
    return sorted(order, key=lambda t: t is not plain), untried, spent + judge.draws.executions


def _drawn(trials: list[Trial]) -> list[int]:
    """Return the runs that each dataset of some pairs has had."""
    runs: dict[Hashable, int] = {}
    for trial in trials:
        for end in trial.ends:
            runs[end] = max(runs.get(end, 0), trial.runs)
    return list(runs.values())


def _begun(
    pool: Pool,
    judge: Judge,
    first: list[Candidate],
    left: list[Candidate],
    pilots: list[int],
    most: int,
    *,
    is_coupled: bool,
) -> tuple[list[Trial], int]:
    """Return the trials of the first round, and the number of patterns left out.

    A pair on which the mechanism fails is replaced by a pattern that was left out, or else by a random pair: a domain
    of which the mechanism takes a part has pairs enough. No pair is replaced after `most` executions, or
    if the mechanism fails on all of many.
    """
    trials: list[Trial] = []
    candidates = chain(first, left)
    while sum(trial.error is None for trial in trials) < len(first):
        if len(trials) >= len(first) and (judge.draws.executions >= most or len(trials) >= MOST_FAILED):
            break
        candidate = next(chain(candidates, pool.drawn(1)), None)
        if candidate is None:
            break
        trial = Trial(candidate, len(trials))
        trial.extend(pilots, judge, is_coupled=is_coupled, is_scored=is_scored(len(first), pilots[-1]))
        trials.append(trial)
    return trials, max(len(left) - max(len(trials) - len(first), 0), 0)


def _survivors(trials: list[Trial], count: int, parameter: float) -> list[Trial]:
    """Return the best trials: after every two by merit one by bold score, because rare events show late.

    After every one by the difference of its outputs, if runs are too few for a score, one in the order in which pairs
    were tried: large differences need not be losses, and the patterns that most often reveal a bug come early. The pair
    of which a replay shows most stays to the end. The last trial is the leader for a claim of this privacy parameter.
    """
    if count == 1:
        return [_leader(trials, parameter)] if trials else []
    by_merit = sorted(trials, key=Trial.rank)
    by_boldness = sorted(trials, key=lambda trial: -trial.bold)
    each = 2 if any(trial.score for trial in trials) else 1
    turns = [part for place, one in enumerate(by_boldness) for part in (*by_merit[each * place :][:each], one)]
    kept = list(dict.fromkeys(turns))[:count]
    promising = max(trials, key=lambda trial: trial.candidate.promise, default=None)
    if promising is not None and promising.candidate.promise > 0.0 and promising not in kept:
        kept[-1] = promising
    return kept


def _leader(trials: list[Trial], parameter: float) -> Trial:
    """Return the trial to audit; of those within one deviation of it that of which a replay shows most.

    It has the largest merit of those on which the claim is surely refuted, or else of all. A merit of 1.4 with a
    deviation of 0.4 may be chance where another pair exceeds a claim of 1 by 0.03 with a deviation of 0.015.
    """
    best = min(trials, key=lambda trial: (not _is_sure(trial, parameter), trial.rank()))
    rivals = [
        trial
        for trial in trials
        if trial.candidate.promise > best.candidate.promise
        and abs(best.merit - trial.merit) <= math.hypot(best.deviation, trial.deviation)
        and _is_sure(trial, parameter) >= _is_sure(best, parameter)
    ]
    return max(rivals, key=lambda trial: trial.candidate.promise, default=best)


def _pattern_for(leader: Trial, finalists: list[Trial], parameter: float) -> Trial:
    """Return the best pattern that is about as good as the leader, or else the leader.

    Its merit, and unless the claim is surely refuted on it its merit less the deviation, is at most the smaller
    deviation of both below the leader's. Among pairs of about equal merit a pattern is more likely to be the worst.
    """

    def is_near(trial: Trial) -> bool:
        below, near = leader.merit - trial.merit, min(leader.deviation, trial.deviation)
        is_as_certain = _is_sure(trial, parameter) or below + trial.deviation - leader.deviation <= near
        return below <= near and is_as_certain

    equals = [
        trial
        for trial in finalists
        if trial.candidate.is_pattern
        and trial.runs == leader.runs
        and trial.rank()[0] == leader.rank()[0]
        and is_near(trial)
    ]
    return min(equals, key=Trial.rank, default=leader)


def _is_sure(trial: Trial, parameter: float) -> bool:
    """Whether an audit of the pair refutes the claim with 95% power, if its merit is what its runs say."""
    error = math.hypot(trial.deviation, 0.0 if trial.score is None else trial.score.chance)
    return trial.merit > parameter and trial.merit - parameter >= _SURE * error
