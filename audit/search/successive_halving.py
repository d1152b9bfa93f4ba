"""Pairs on trial, by successive halving: each round keeps the better half and spends as much as the others.

A pair has a pilot, which grows while the pair is among the best, and a score. All pairs run with the same random
numbers, and outputs are drawn once on each dataset.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from ..clock import now
from ..errors import AuditError, StoreError
from ..events.events import Event
from ..events.outputs import (
    Outputs,
    as_numbers,
    as_vectors,
    is_real,
    merge,
    outcome_key,
    outcome_list,
    row_keys,
    vector_width,
)
from ..health.event_checks import are_same
from ..inference.binomial_tails import ROUNDING
from ..portfolio.choice import Choice, choose_among, expected_excess
from ..portfolio.columns import cuts_of
from ..procedures.fixed_size import EarlierDraws, check_blocks, refuse_if_all_raised
from ..random_streams import Stream, seed_of
from ..sampling.block_plan import SIDES, Plan
from ..sampling.draw import draw_pilot, plan_blocks
from ..sampling.pilot_and_batch_sizes import pilot_runs
from ..sampling.sampler import Sampler
from ..store.sqlite_store import Store, StorePart
from ..store.store_settings import sources, terms
from .candidates import LEAST_SCORED, Candidate, Pool
from .climb import AROUND, DEPTH, MOST, MOST_FAILED, Places

# Score a pair of datasets: the expected lower bound of its best event, with a standard error, from a pilot.

# Standard errors subtracted when events are chosen. Each value finds another kind of event, from common events to rare
# events with small counts on one dataset. Runs that did not serve for the choice judge them.
_PENALTIES = (4.0, 2.0, 1.0)
# An excess of at most this many standard errors counts as 0, and a larger excess of an event is shrunk less the larger
# it is.
_STEADY, _OPTIMISTIC = 2.0, 1.0
_CERTAIN = 1e-3  # smallest standard error, as a share of the score or of the claim's parameter


@dataclass(frozen=True, slots=True)
class PairScore:
    """What a pilot says of a pair: the bound that an audit should give, in units of the claim's privacy parameter."""

    value: float  # of the best event; 0 if no event of a positive bound was found
    error: float  # standard error of the value
    optimistic: float  # the largest value, less the part that one standard error explains: rare events count too
    choice: Choice | None = None  # the most promising event, with its counts in the half that did not choose it
    chance: float = 0.0  # standard error of the bound of an audit with this event


def score_pair(x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, *, bits: bool = False) -> PairScore:
    """Estimate the bound that `runs` runs give on the best event of a pair.

    Events are chosen on one half of the pilot and judged on the other, both ways; the results are averaged. A bound v
    with standard error s counts as the positive part of v (1 − (c s/v)²), so that certain bounds shrink least. The best
    event has the largest with c = 2; with c = 1 rare events count too. The outputs on x and on y are equally many, and
    may share their random numbers run by run (`relative_error`). `bits` states whether the audit tests low bits.

    References
    ----------
    Efron & Morris (1973), Stein's estimation rule and its competitors (the positive part, and limited translation).
    """
    half = len(x) // 2
    halves = [(x[:half], y[:half]), (x[half : 2 * half], y[half : 2 * half])]
    found = [_judged(*halves[i], *halves[1 - i], claim, runs, alpha, bits) for i in range(2)]
    useful = [[one for one in seen if one.value > 0.0] or [_Judged(0.0, claim.parameter)] for seen in found]
    best = [max(seen, key=lambda one: _promise(one, claim.parameter)) for seen in useful]
    optimistic = [max((_shrunk(one, _OPTIMISTIC) for one in seen), default=0.0) for seen in found]
    value = sum(one.value for one in best) / 2
    least = _CERTAIN * max(abs(value), claim.parameter)
    error = max(math.hypot(*(one.error for one in best)) / 2, least)
    leader = max(best, key=lambda one: _promise(one, claim.parameter))
    return PairScore(value, error, sum(optimistic) / 2, leader.choice, leader.alone * math.sqrt(half / runs))


@dataclass(frozen=True, slots=True)
class _Judged:
    """The expected bound of an event on runs that did not choose it, with its standard error."""

    value: float
    error: float
    alone: float = 0.0  # the standard error if the runs on x and y were independent
    choice: Choice | None = None  # with its counts in these runs


def _promise(event: _Judged, parameter: float) -> float:
    """Return what an event is likely to show: its value if certain, else the mean under a normal prior around 0."""
    parameter, error = min(parameter, 1e150), min(event.error, 1e150)  # whose squares are doubles
    prior = parameter**2 / (parameter**2 + error**2) if parameter else 0.0
    return max(_shrunk(event, _STEADY), prior * event.value)


def _shrunk(event: _Judged, errors: float) -> float:
    return event.value * max(1.0 - (errors * event.error / event.value) ** 2, 0.0) if event.value > 0 else 0.0


def _judged(
    chosen_x: Outputs, chosen_y: Outputs, x: Outputs, y: Outputs, claim: Claim, runs: int, alpha: float, bits: bool
) -> list[_Judged]:
    """Return the expected bounds, with standard errors, of a few events that are chosen on the first two samples."""
    cuts = cuts_of(chosen_x, chosen_y, bits=bits)
    chosen = choose_among(cuts, claim, runs, alpha, _PENALTIES)
    if not chosen:
        return []
    scale = relative_error(chosen[0].event, chosen_x, chosen_y)
    if scale < 1.0:
        chosen += choose_among(cuts, claim, runs, alpha, [scale * penalty for penalty in _PENALTIES])
    judged = []
    for event, more_likely_on in dict.fromkeys((choice.event, choice.more_likely_on) for choice in chosen):
        counted = Choice(event, more_likely_on, event.count(x), event.count(y), len(x))
        value, *less = (
            claim.parameter + expected_excess(counted, claim, runs, alpha, penalty=penalty)
            for penalty in (0.0, relative_error(event, x, y), 1.0)
        )
        if value > -math.inf:
            unknown = max(abs(value), claim.parameter)
            error, alone = (value - one if one > -math.inf else unknown for one in less)
            judged.append(_Judged(value, error, alone, counted))
    return judged


# How much the outputs on x and on y differ, run by run with the same random numbers: which of many pairs to run more.

Floats = npt.NDArray[np.float64]

_LARGEST = 1e6  # where outputs on one dataset never vary


def coupled_difference(x: Outputs, y: Outputs) -> float:
    """Return how far two samples are apart that share their random numbers run by run; 0 if they do not differ.

    For numbers, the sum over coordinates of the mean shift in units of the spread, and of the change of the log spread,
    each less two standard errors: that of the shift is 0 for added noise, and that of the spread is the one of
    independent runs. For other outputs, and in addition for whole numbers and numbers that are not finite, half the
    triangular discrimination (Topsøe 2000) of the outcomes beyond the part that chance explains.
    """
    if (numbers := _as_numbers(x, y)) is None:
        return _discrimination(x, y)
    finite_x, finite_y = (np.isfinite(side) for side in numbers)
    both = finite_x.all(axis=1) & finite_y.all(axis=1)
    apart = _apart(numbers[0][both], numbers[1][both])
    if not both.all():  # which numbers are infinite or NaN
        apart += _discrimination(np.where(finite_x, 0.0, numbers[0]), np.where(finite_y, 0.0, numbers[1]))
    return apart + (_discrimination(x, y) if x.dtype.kind in "biu" or y.dtype.kind in "biu" else 0.0)


def _as_numbers(x: Outputs, y: Outputs) -> tuple[Floats, Floats] | None:
    """Return the outputs as vectors, shape (runs, width); None unless all are numbers, or vectors of one width."""
    sides = (x, y)
    if all(side.ndim == 1 and (side.dtype != object or all(map(is_real, side))) for side in sides):
        if all(side.dtype.kind in "biufO" for side in sides):
            with np.errstate(over="ignore"):
                return as_numbers(x).astype(np.float64)[:, None], as_numbers(y).astype(np.float64)[:, None]
        return None
    width = vector_width(x, y)
    if width is None:
        return None
    return as_vectors(x, width).astype(np.float64), as_vectors(y, width).astype(np.float64)


def _discrimination(x: Outputs, y: Outputs) -> float:
    """Return half the sum of (a − b)²/(a + b) over outcomes with a counts on x and b on y, less its mean by chance.

    For equal distributions (a − b)² has as its mean the runs in which the outcome occurs on one dataset only.
    """
    on_x, on_y = np.split(_outcome_numbers(np.concatenate(merge([x], [y]))), 2)
    most, differ = max(on_x.max(), on_y.max()) + 1, on_x != on_y
    count_x, count_y = (np.bincount(side, minlength=most) for side in (on_x, on_y))
    alone = np.bincount(on_x[differ], minlength=most) + np.bincount(on_y[differ], minlength=most)
    found = float(np.sum(((count_x - count_y) ** 2 - alone) / (count_x + count_y)))
    return max(found, 0.0) / (2.0 * len(on_x))


def _outcome_numbers(outputs: Outputs) -> npt.NDArray[np.int64]:
    """Return numbers from 0 that are equal for equal outputs, shape (runs,)."""
    if outputs.dtype != object:
        return np.unique(row_keys(outputs.reshape(len(outputs), -1)), return_inverse=True)[1]
    numbers: dict[Any, int] = {}
    found = (numbers.setdefault(outcome_key(one), len(numbers)) for one in outcome_list(outputs))
    return np.fromiter(found, dtype=np.int64, count=len(outputs))


def _apart(x: Floats, y: Floats) -> float:
    runs = len(x)
    if runs < 2 or x.shape[1] == 0:
        return 0.0
    largest = np.maximum(np.abs(x).max(axis=0), np.abs(y).max(axis=0))
    x, y = (side / np.where(largest > 0.0, largest, 1.0) for side in (x, y))  # huge numbers have no squares
    shifts = y - x
    shift = np.abs(np.mean(shifts, axis=0)) - _STEADY * np.std(shifts, axis=0, ddof=1) / np.sqrt(runs)
    spread_x, spread_y = (np.std(side, axis=0, ddof=1) for side in (x, y))
    spread = np.sqrt((spread_x**2 + spread_y**2) / 2.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        moved = np.where(shift > 0.0, np.minimum(shift / spread, _LARGEST), 0.0)
        change = np.abs(np.log(spread_y / spread_x)) - _STEADY / np.sqrt(runs - 1)
        widened = np.where(spread_x == spread_y, 0.0, np.clip(change, 0.0, _LARGEST))
    return float(np.sum(moved) + np.sum(widened))


# Parts of a pilot that are compared; with smaller counts than parts their spread says nothing:
# docs/decisions/0025-limits.md.
_CHUNKS = 32
_LEAST_ERROR = 0.02  # the smallest error that it can show (docs/decisions/0025-limits.md)


def relative_error(event: Event, x: Outputs, y: Outputs) -> float:
    """Return the standard error of an event's log ratio over that of independent runs; .02 to √2.

    Runs that share their random numbers are mostly counts together on x and y, so their ratio is known better; where
    they are opposite, as for noise whose sign the data turn, it is known worse, by up to √2. The spread of the
    difference between equal parts of the two samples shows by how much. Too small counts show nothing, and give 1.
    """
    size = len(x) // _CHUNKS
    used = _CHUNKS * size
    on_x, on_y = (np.count_nonzero(event.contains(side[:used]).reshape(_CHUNKS, size), axis=1) for side in (x, y))
    count_x, count_y = int(on_x.sum()), int(on_y.sum())
    if min(count_x, count_y) < _CHUNKS or max(count_x, count_y) > used - _CHUNKS:
        return 1.0
    p, q = count_x / used, count_y / used
    variance = float(np.var(on_x / p - on_y / q, ddof=1)) / size
    ratio = math.sqrt(variance / ((1.0 - p) / p + (1.0 - q) / q))
    return min(max(ratio, _LEAST_ERROR), math.sqrt(2.0))


@dataclass(slots=True)
class CoupledDraws:
    """Outputs by dataset, in the steps by which pilots grow, which are the same for all pairs."""

    executions: int = 0  # so far, on all datasets together
    _steps: dict[tuple[Hashable, int], list[list[Outputs]]] = field(default_factory=dict)  # by dataset and block size

    def step(
        self, plan: Plan, ends: tuple[Hashable, ...], number: int, runs: int, first_block: int
    ) -> list[list[Outputs]]:
        """Return the blocks of step `number`, of `runs` runs; draw only those that no other pair has drawn."""
        kept = {end: self._steps.setdefault((end, plan.block), []) for end in ends}
        side_of = dict(zip(ends, SIDES, strict=True))
        missing = {end: side_of[end] for end, steps in kept.items() if len(steps) == number}
        self.executions += runs * len(missing)  # if the mechanism fails, too
        drawn = draw_pilot(plan, runs, first_block=first_block, sides=tuple(missing.values()))
        blocks = dict(zip(SIDES, drawn, strict=True))
        for end, side in missing.items():
            kept[end].append(blocks[side])
        return [kept[end][number] for end in ends]

    def keep(self, ends: set[Hashable]) -> None:
        """Forget all datasets but these."""
        self._steps = {key: steps for key, steps in self._steps.items() if key[0] in ends}


@dataclass(frozen=True, slots=True)
class Judge:
    """Settings by which all candidates are judged."""

    sampler: Sampler
    claim: Claim  # at the distance of the pairs
    runs: int  # of the audit of the chosen pair, like alpha and bits
    alpha: float
    seed: int  # the caller's, from which the seeds of candidates derive
    jobs: int | None
    progress: Callable[[int], None] | None = None  # called with the number of runs just finished
    bits: bool = False  # whether the audit tests low bits
    store: Store | StorePart | None = None  # keeps the draws
    code: str = ""  # hash of the mechanism, for the store
    what: str = "pair"  # for the store
    draws: CoupledDraws = field(default_factory=CoupledDraws)  # of all pairs
    _seen: dict[str, Any] = field(default_factory=dict)  # whether a run changed the mechanism's state, and its sampler

    def plan(self, candidate: Candidate, number: int, *, is_coupled: bool) -> Plan:
        """Return the plan of a candidate's runs: coupled with those of all others, or with a seed from its number."""
        seed = seed_of(self.seed, Stream.COUPLED) if is_coupled else seed_of(self.seed, Stream.TRIALS, number)
        x, y = candidate.x, candidate.y
        drawn_from = {} if self.store is None else sources(self.code, x, y)
        sampler = self._seen.get("sampler", self.sampler)  # one form of outputs for all pairs, which share runs
        plan = plan_blocks(sampler, x, y, seed, self.jobs, is_stateful=self._seen.get("state"))
        plan = replace(plan, is_coupled=is_coupled)
        self._seen["state"], self._seen["sampler"] = plan.is_stateful, plan.sampler
        if self.store is None:
            return plan
        name = f"{self.sampler.name}, {self.what} {number + 1} of the search{'' if is_coupled else ', alone'}"
        return replace(plan, memory=self.store.section(name, drawn_from | terms(plan)))


@dataclass(slots=True, eq=False)
class Trial:
    """A candidate with its pilot so far."""

    candidate: Candidate
    number: int  # determines the seed of independent runs
    runs: int = 0  # on each dataset, in the pilot
    alone: int = 0  # independent runs on each dataset, after the pair was chosen
    score: PairScore | None = None
    difference: float = 0.0  # how far its outputs are apart with common random numbers, for pairs that show nothing
    varies: bool = True  # whether the outputs vary
    error: str | None = None  # why it was skipped
    plan: Plan | None = None
    blocks_x: list[Outputs] = field(default_factory=list)
    blocks_y: list[Outputs] = field(default_factory=list)

    @property
    def ends(self) -> tuple[Hashable, ...]:
        """The datasets x and y; unknown ones are different from all others."""
        return self.candidate.ends or ((self.number, "x"), (self.number, "y"))

    def extend(self, pilots: Sequence[int], judge: Judge, *, is_coupled: bool, is_scored: bool = True) -> None:
        """Extend the pilot to the last of these runs on each dataset, step by step, and update difference and score."""
        before = judge.draws.executions
        try:
            self._draw(pilots, judge, is_coupled=is_coupled)
        except StoreError:  # the pair is not to blame
            raise
        except AuditError as error:
            self.error = str(error)
            self.forget()
        if judge.progress is not None:
            judge.progress(judge.draws.executions - before)
        if self.error is not None:
            return
        x, y = merge(self.blocks_x, self.blocks_y)
        self.difference = coupled_difference(x, y)
        if is_scored:
            self.score = score_pair(x, y, judge.claim, judge.runs, judge.alpha, bits=judge.bits)
        self.varies = not (are_same(x) and are_same(y))

    def _draw(self, pilots: Sequence[int], judge: Judge, *, is_coupled: bool) -> None:
        """Draw the missing runs; refuse blocks of different shapes, and a mechanism that always raises."""
        if self.plan is None:
            self.plan = judge.plan(self.candidate, self.number, is_coupled=is_coupled)
        for step, runs in enumerate(pilots):
            if runs > self.runs:
                blocks = judge.draws.step(self.plan, self.ends, step, runs - self.runs, len(self.blocks_x))
                self.runs = runs
                self.blocks_x += blocks[0]
                self.blocks_y += blocks[1]
        check_blocks(self.blocks_x, self.blocks_y, judge.sampler.is_block, judge.sampler.name)
        refuse_if_all_raised(self.plan, self.blocks_x, self.blocks_y)

    @property
    def value(self) -> float:
        """The bound that an audit should give; 0 for a pair that shows nothing."""
        return 0.0 if self.score is None else max(self.score.value, 0.0)

    @property
    def deviation(self) -> float:
        """The standard error of the score."""
        return 0.0 if self.score is None or self.value == 0.0 else self.score.error

    def excess(self, parameter: float) -> float:
        """The score's excess over a privacy parameter, in standard errors of it and of the audit's bound together."""
        error = math.hypot(self.deviation, 0.0 if self.score is None else self.score.chance)
        if not error:
            return math.inf if self.value > parameter else -math.inf
        return (self.value - parameter) / error

    @property
    def optimistic(self) -> float:
        return -math.inf if self.score is None else self.score.optimistic

    def rank(self) -> tuple[int, float, float, float, float, float]:
        """Smallest for the best pair, by the score; of equal pairs for the smallest datasets.

        Pairs that show a difference come first. Pairs that show none, or were not scored, follow in order of what a
        replay shows of them, or else of the difference of their outputs. Pairs whose outputs never vary come last.
        """
        shows = 0 if self.value > 0.0 else 1 if self.varies or self.score is None else 2
        promise, difference = (self.candidate.promise, self.difference) if shows else (0.0, 0.0)
        of_differences = -float(f"{promise:.2g}"), -float(f"{difference:.2g}")
        return shows, -float(f"{self.value:.3g}"), *of_differences, self.candidate.size, -self.optimistic

    def independent(self, judge: Judge, most: int) -> EarlierDraws | None:
        """Return outputs for the audit of this pair that are independent of its choice; None if it was skipped.

        Half as many as chose the pair, or `most`, are drawn anew, unless it was not chosen among others.
        """
        if self.plan is None or not self.blocks_x:
            return None
        if not self.plan.is_coupled:
            return EarlierDraws(self.plan, self.blocks_x, self.blocks_y)
        more = max(min(self.runs // 2, most), 1)
        self.plan = judge.plan(self.candidate, self.number, is_coupled=False)
        self.blocks_x, self.blocks_y = draw_pilot(self.plan.for_pilot(more), more)
        self.alone = more
        if judge.progress is not None:
            judge.progress(2 * more)
        return EarlierDraws(self.plan, self.blocks_x, self.blocks_y, None if self.score is None else self.score.choice)

    def forget(self) -> None:
        """Discard the outputs."""
        self.blocks_x, self.blocks_y = [], []


# Sweeps: pairs that differ in one number, run a few times each with the same random numbers.
#
# A row value that is mishandled, such as a power of two, a value next to an end of the range or one in a narrow
# window, shows in the outputs of a handful of runs with common random numbers: they differ by more than those of its
# neighbours. A line is swept at hundreds of numbers, and again between the places where the outputs differ most.

SHARE = 10  # one run in ten of a search is for sweeps
_RUNS = 8  # of each pair (docs/decisions/0025-limits.md)
_BISECTION = 4 * _RUNS * AROUND * DEPTH  # most runs: on each side of a place, on x and on y
_TOGETHER = 8  # pairs of all lines that join the search (docs/decisions/0025-limits.md)
_SLOW = 0.2  # seconds for a pair from which workers are worth the effort to ask them


def swept(pool: Pool, judge: Judge, budget: int) -> tuple[list[Candidate], int]:
    """Return pairs of the lines of a domain whose outputs differ most, and the runs that it took to find them.

    A line has at least half as many runs for its sweep as for bisection.
    """
    lines = list(islice(pool.source.lines(), 2 * budget // (SHARE * 3 * _BISECTION)))
    draws, numbers = CoupledDraws(), count()
    judges = {jobs: replace(judge, draws=draws, jobs=jobs, what="place") for jobs in (1, judge.jobs)}
    found: list[tuple[float, Candidate]] = []

    def difference(candidate: Candidate, first: Candidate, jobs: int | None) -> float | None:
        """Return how far outputs are apart; None of an impossible pair, or one that fails."""
        if not pool.is_possible(candidate):
            return None
        trial = Trial(candidate, next(numbers))
        trial.extend([_RUNS], judges[jobs], is_coupled=True, is_scored=False)
        if trial.error is not None:
            return None
        draws.keep({*(first.ends or ()), *(candidate.ends or ())})  # most pairs have a dataset in common with the first
        return trial.difference

    def has_room(most: int) -> bool:
        return draws.executions < most

    for number, line in enumerate(lines, start=1):
        started, most = now(), number * budget // (SHARE * len(lines)) - _BISECTION
        difference(line.at(line.high), line.at(line.low), 1)
        jobs = judge.jobs if now() - started > _SLOW else 1
        places = Places(line, partial(difference, first=line.at(line.low), jobs=jobs))
        places.sweep(MOST, partial(has_room, most))
        usual = max(places.heights.get(end, 0.0) for end in (line.low, line.high))
        worse = [place for place in places.peaks() if places.heights[place] > usual * (1.0 + ROUNDING)]
        for place in worse[:AROUND]:
            found.append((places.heights[place] / usual if usual > 0.0 else math.inf, places.pairs[place]))
    found.sort(key=lambda one: -one[0])
    return [candidate for _, candidate in found[:_TOGETHER]], draws.executions


# How long the pilots of a round are.

_MOST_PILOT = 2 * pilot_runs(sys.maxsize)  # half as many independent runs are the longest pilot of an audit


def first_pilot(budget: int, pairs: int, datasets: int) -> int:
    """Return the runs of the first pilots on each dataset."""
    if pairs == 1:
        return min(max(budget // 2, 1), _MOST_PILOT)
    wanted = budget / (datasets * rounds_left(pairs, LEAST_SCORED) + (pairs == 2))
    return min(max(int(wanted), 1), _MOST_PILOT)


def is_scored(pairs: int, pilot: int) -> bool:
    """Whether pairs have a score, as the last two always do; shorter pilots say how far outputs are apart."""
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

    Every round of `pairs` spends an equal share of the runs that are left. The last one leaves enough for half as
    many independent runs on the pair that is chosen.
    """
    rounds = rounds_left(pairs, pilot)
    wanted = (left / rounds + sum(drawn)) / (len(drawn) + (rounds == 1))
    return min(int(wanted), _MOST_PILOT)


SURE = 1.645  # standard errors above the claim that refute it with 95% power


def halve(
    pool: Pool, judge: Judge, budget: int, tell: Callable[[Trial], None], given: Sequence[Candidate] | None = None
) -> tuple[list[Trial], int, int]:
    """Return all tried pairs, the number of patterns left out, and that of runs.

    The best pair comes first, unless all were skipped; only this one still has its outputs. `budget` runs, on all
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
    trials: list[Trial] = []
    candidates = chain(first, left)
    # A pair on which the mechanism fails is replaced by a pattern that was left out, or else by a random pair: a domain
    # of which the mechanism takes a part has pairs enough. No pair is replaced after half of the budget, or if the
    # mechanism fails on all of many.
    while sum(trial.error is None for trial in trials) < kept:
        if len(trials) >= kept and (judge.draws.executions >= budget // 2 or len(trials) >= MOST_FAILED):
            break
        candidate = next(chain(candidates, pool.drawn(1)), None)
        if candidate is None:
            break
        trial = Trial(candidate, len(trials))
        trial.extend(pilots, judge, is_coupled=is_coupled, is_scored=is_scored(kept, pilots[-1]))
        trials.append(trial)
    untried = max(len(left) - max(len(trials) - len(first), 0), 0)
    running = trials[:]
    while True:
        finalists = [trial for trial in running if trial.error is None]
        kept = survivors(kept, pilots[-1]) if kept > 1 else 1
        running = _survivors(finalists, kept, judge.claim.parameter)
        for trial in finalists:
            if trial not in running:
                trial.forget()
        judge.draws.keep({end for trial in running for end in trial.ends})
        if running:
            tell(min(running, key=Trial.rank))
        if kept == 1 or not running:
            break
        pilot = next_pilot(budget - judge.draws.executions, kept, pilots[-1], _drawn(running))
        if pilot > pilots[-1]:
            pilots.append(pilot)
        for trial in running:
            trial.extend(pilots, judge, is_coupled=is_coupled, is_scored=is_scored(kept, pilots[-1]))
    order = sorted(trials, key=lambda t: (t not in running, t.error is not None, -t.runs, *t.rank()))
    return order, untried, spent + judge.draws.executions


def _drawn(trials: list[Trial]) -> list[int]:
    """Return the runs that each dataset of some pairs has had."""
    runs: dict[Hashable, int] = {}
    for trial in trials:
        for end in trial.ends:
            runs[end] = max(runs.get(end, 0), trial.runs)
    return list(runs.values())


def _survivors(trials: list[Trial], count: int, parameter: float) -> list[Trial]:
    """Return the best trials: after every two by score one by optimistic score, because rare events show late.

    After every one by the difference of its outputs, if runs are too few for a score, one in the order in which pairs
    were tried: large differences need not be losses, and the patterns that most often reveal a bug come early. The pair
    of which a replay shows most stays to the end. The last trial is the leader for a claim of this privacy parameter.
    """
    if count == 1:
        return [_leader(trials, parameter)] if trials else []
    by_merit = sorted(trials, key=Trial.rank)
    by_optimism = sorted(trials, key=lambda trial: -trial.optimistic)
    each = 2 if any(trial.score for trial in trials) else 1
    turns = [part for place, one in enumerate(by_optimism) for part in (*by_merit[each * place :][:each], one)]
    kept = list(dict.fromkeys(turns))[:count]
    promising = max(trials, key=lambda trial: trial.candidate.promise, default=None)
    if promising is not None and promising.candidate.promise > 0.0 and promising not in kept:
        kept[-1] = promising
    return kept


def _leader(trials: list[Trial], parameter: float) -> Trial:
    """Return the trial to audit; of those within one deviation of it that of which a replay shows most.

    It has the largest score of those on which the claim is surely refuted, or else of all. A score of 1.4 with a
    deviation of 0.4 may be chance where another pair exceeds a claim of 1 by 0.03 with a deviation of 0.015.
    """
    best = min(trials, key=lambda trial: (not _is_sure(trial, parameter), trial.rank()))
    rivals = [
        trial
        for trial in trials
        if trial.candidate.promise > best.candidate.promise
        and abs(best.value - trial.value) <= math.hypot(best.deviation, trial.deviation)
        and _is_sure(trial, parameter) >= _is_sure(best, parameter)
    ]
    return max(rivals, key=lambda trial: trial.candidate.promise, default=best)


def _is_sure(trial: Trial, parameter: float) -> bool:
    """Whether an audit of the pair refutes the claim with 95% power, if its score is what its runs say."""
    return trial.excess(parameter) >= SURE
