"""Number of runs that an audit needs to detect a given excess, for the event that a first pilot chooses.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ..claims.claim import Claim
from ..distinguishers.choice import Choice, directed_shares
from ..distinguishers.learned_partition import plain_events
from ..errors import OptionError
from ..inference.boundary_test import Counts, directed
from ..inference.guess_test import Guesses, coins_for
from ..inference.outcome_test import most_outcomes
from ..options import LEAST_RUNS
from ..power.alternatives import Alternative, AsLikely, GaussianNoise, event_of
from ..power.joint_test_power import power_of_test, runs_needed
from ..random_streams import Stream, seed_of
from ..results.audit_result import FINAL_SHARE, RESERVE_SHARE, Settings
from ..sampling.block_plan import MemoryPart, Plan, main_runs, pilot_runs, with_pilot
from .detectable_excess import (
    SHARE,
    UNKNOWN,
    detectable_sequentially,
    guessed,
    is_gaussian,
    may_detect,
    power_of_the_test,
    shows_divergence,
)
from .pilot import run_pilot

_FIRST, _MOST = 2_000, 10**9
_GROWTH = 1.1
_MARGIN = 0.96  # planned for slightly less than the request, since the event's frequency is only known at the end
_ERRORS = (-2.0, 2.0)  # deviations of that frequency, in standard errors, for which the runs have to suffice too


def runs_for(plan: Plan, settings: Settings, resolution: float, *, sequential: bool) -> int:
    """Runs on each dataset with which an audit detects an excess of `resolution` with the power of the settings.

    An event is chosen on a small pilot, and again on the pilot of an audit of the size found; the second event decides.
    The outputs drawn here have their own seed and are not used again. A sequential audit is sized for its final test.

    Raises
    ------
    OptionError
        If 10⁹ runs are not enough.
    """
    plan = replace(
        plan,
        seed=seed_of(plan.seed, Stream.SIZING),
        memory=None if plan.memory is None else MemoryPart(plan.memory, "sizing"),
    )
    claim, power, of_alpha = settings.claim, power_of_the_test(settings.power), FINAL_SHARE if sequential else 1.0
    needed, excess, share, alpha = _FIRST, _MARGIN * resolution, 0.0, settings.alpha
    alternatives: list[Alternative] = []
    for _ in range(2):
        pilot = run_pilot(plan, claim, needed, settings.alpha, bits=settings.bits is True, both=True)
        net = plain_events(pilot.x, pilot.y, most_outcomes(settings.net_alpha(of_alpha)))
        choice, share = pilot.choice, pilot.runs / needed
        in_reserve = (choice.opposite is not None) + (choice.bold is not None)
        alpha = settings.event_alpha(of_alpha, has_net=net is not None) * (1 - RESERVE_SHARE * in_reserve)
        if choice.pilot_hits_x == choice.pilot_hits_y == 0:  # outputs never vary: nothing to plan for
            return _FIRST
        tested = directed(claim, choice.pilot_counts, choice.likelier_on).claim
        alternatives, q = [], choice.pilot_counts.hits_y / choice.pilot_runs
        if claim.divergence_slopes and is_gaussian(tested, _directed_counts(claim, choice), excess):
            level = settings.divergence_alpha(alpha, show_more=True)
            needed = _by_divergence(claim, excess, alpha=level, power=settings.power)
            continue
        if choice.opposite is not None:
            main = _by_guesses(claim, _guesses(choice), excess, alpha=alpha, power=settings.power)
        else:
            alternatives = _alternatives(claim, choice, excess)
            main = runs_needed(tested, alternatives[0], resolution=excess, power=power, alpha=alpha)
            q = event_of(tested, excess, alternatives[0]).q
        needed = max(with_pilot(main, q), LEAST_RUNS)
        if pilot.runs > pilot_runs(needed):  # a rare event needs a longer pilot
            needed = max(needed, math.ceil(main / (1.0 - share)))
        _check_size(needed, resolution)
    deep = share if share > pilot_runs(needed) / needed else 0.0
    while not all(_power(tested, needed, deep, each, excess, alpha) >= power for each in alternatives):
        needed = math.ceil(needed * _GROWTH)
        _check_size(needed, resolution)
    return needed


def enough_for(settings: Settings) -> Callable[[Choice, int], bool]:
    """Stopping rule of a sequential audit: whether it detects the requested excess with this event and runs."""
    wanted = math.inf if settings.resolution is None else settings.resolution
    errors = {"alpha": settings.alpha, "power": settings.power}

    def is_enough(choice: Choice, runs: int) -> bool:
        held = directed(settings.claim, choice.pilot_counts, choice.likelier_on)
        return (
            may_detect(held.claim, held.counts, runs, wanted, **errors)
            and detectable_sequentially(held.claim, held.counts, runs, UNKNOWN, **errors).excess <= wanted
        )

    return is_enough


def _guesses(choice: Choice) -> Guesses:
    """Guesses in the pilot by both events, with two standard errors fewer right ones than there were."""
    assert choice.opposite is not None
    runs = 2 * min(choice.pilot_runs, choice.opposite.pilot_runs)
    first, second = (directed_shares(each) for each in (choice, choice.opposite))
    right, wrong = (0.5 * runs * (one + other) for one, other in zip(first, second, strict=True))
    fewer = max(1.0 - 2.0 / math.sqrt(max(right, 1.0)), 0.25)
    return Guesses(right=math.ceil(fewer * right), wrong=math.ceil(fewer * wrong), runs=runs)


def _directed_counts(claim: Claim, choice: Choice) -> Counts:
    return directed(claim, choice.pilot_counts, choice.likelier_on).counts


def _fewest(detects: Callable[[int], bool], excess: float) -> int:
    """Fewest runs, to a percent, with which the excess is detected."""
    low, high = LEAST_RUNS, 2 * LEAST_RUNS
    while not detects(high):
        low, high = high, 2 * high
        _check_size(high, excess)
    while high > 1.01 * low + 1:
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if detects(middle) else (middle, high)
    return high


def _by_divergence(claim: Claim, excess: float, *, alpha: float, power: float) -> int:
    """Runs on each dataset with which Gaussian noise of this excess is detected in bins, to a percent."""

    def detects(runs: int) -> bool:
        known = pilot_runs(runs)
        main = runs - known
        return shows_divergence(claim, excess, known, main, main, alpha=alpha, power=power)

    return _fewest(detects, excess)


def _by_guesses(claim: Claim, guesses: Guesses, excess: float, *, alpha: float, power: float) -> int:
    """Main runs on each dataset with which guesses as frequent as these detect the excess, to a percent."""

    def detects(main: int) -> bool:
        runs = coins_for(main)
        expected = Guesses(
            right=round(guesses.right * runs / guesses.runs),
            wrong=round(guesses.wrong * runs / guesses.runs),
            runs=runs,
        )
        return guessed(claim, expected, 2 * main, UNKNOWN, alpha=alpha, power=power).excess <= excess

    return _fewest(detects, excess)


def _alternatives(claim: Claim, choice: Choice, excess: float) -> list[Alternative]:
    """The planned event, and events within the uncertainty of its frequencies."""
    runs = choice.pilot_runs
    tested = directed(claim, choice.pilot_counts, choice.likelier_on)
    if is_gaussian(tested.claim, tested.counts, excess):
        return [GaussianNoise(SHARE)]
    p, q = ((side + 0.5) / (runs + 1.0) for side in (tested.counts.hits_x, tested.counts.hits_y))
    moved = [[rate + z * math.sqrt(rate * (1 - rate) / runs) for rate in (p, q)] for z in (0.0, *_ERRORS)]
    return [AsLikely(*rates) for rates in moved if all(0.0 < rate < 1.0 for rate in rates)]


def _power(claim: Claim, runs: int, deep: float, alternative: Alternative, excess: float, alpha: float) -> float:
    longest = max(runs - main_runs(runs, event_of(claim, excess, alternative).q), math.ceil(deep * runs))
    return power_of_test(claim, runs - longest, runs - longest, alternative, excess, alpha=alpha)


def _check_size(runs: int, resolution: float) -> None:
    if runs > _MOST:
        raise OptionError(
            f"resolution={resolution:g} takes more than {_MOST:,} runs; use a coarser resolution, or set runs=.",
            resolution=resolution,
        )
