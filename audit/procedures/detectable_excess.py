"""The smallest excess that an audit detects with the requested power, and the kind of mechanism it is stated for.

An audit can miss a mechanism that exceeds its claim in two ways: the pilot may choose an event worse than the best one,
and the test may not refute on the chosen event. The pilot has two thirds of the probability of a miss, the test one
third. The excess is stated for an event as frequent as the tested one, on the boundary of the stronger claim, plus what
the pilot's choice loses (`_dilution`): an event that the pilot found has outputs that do not belong to it.

Noise touches the boundary of an (ε, δ) claim at single events only, and a Rényi boundary nowhere. For these claims the
excess is stated for the best event of Gaussian noise, and for an (ε, δ) claim unless the outputs show that the noise is
not Gaussian. If that says nothing, because the excess exceeds `largest_excess` of the claim, it is stated for the event
tested, and for an event of probability 1/2 if so few runs showed no difference that the tested event is a chance find.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
import scipy

from ..claims.claim import Claim
from ..inference.divergence_test import SPARED, telling_divergence
from ..inference.event_test import Counts, largest_parameter
from ..inference.guess_test import Guesses
from ..portfolio.partitions import number_of_bins
from ..power.joint_test_power import (
    Alternative,
    AlternativeEvent,
    AsLikely,
    GaussianNoise,
    detectable_excess,
    equivalent_runs,
    event_of,
    guess_excess,
    sequential_excess,
)
from ..results.audit_result import Basis, OtherDirection
from ..results.verdict import largest_excess
from ..sampling.pilot_and_batch_sizes import late_batches, main_runs

SHARE = 0.75
"""Clearance of a chosen event, or log ratio of one of a learned sum, relative to the best one's: of events chosen for
Gaussian noise, 19 of 20 have .97 of it at a δ of .001 and 2,000 runs, and .68 to .81 at 1e-5 and up to a million runs.
"""
CAUTION = 4.0
"""Standard errors by which early runs have to show an event before it is bet on."""
_LATER = 8.0  # nearly all sequential audits bet on an event after this multiple of the runs that show it (1.7: 80%)
_LATER_KNOWN = 2.0  # the same for outcomes, which have no ends to learn; audits refute from 0.5 to 1
_FAR = 0.8  # share of the standard errors needed by the best test below which nothing is simulated
_ERRORS = 3.0  # standard errors beyond what Gaussian noise could show
_APART = 2.0  # standard errors by which the ratios of two events differ clearly
FEW = 1_000  # runs that need not show a difference, even if there is one to be seen
_DISPLACED = 3.0  # E|argmax(W(t) - |t|/2)|, W a two-sided Brownian motion: 3 (Yao 1987), the error of a change point


@dataclass(frozen=True, slots=True)
class Detectable:
    """The smallest excess that is detected with the requested power; may be infinite."""

    excess: float
    basis: Basis


@dataclass(frozen=True, slots=True)
class Learned:
    """How well the pilot knows the tested events."""

    counts: Counts  # in the pilot runs that chose the event
    ends: int = 0  # finite ends on a score whose values barely recur: 0 for outcomes, 1 for a half-line
    is_discrete: bool = False  # whether outputs recur, so that the noise cannot be Gaussian
    is_learned: bool = False  # whether the event is one of a sum over several columns whose terms were learned


UNKNOWN = Learned(Counts(count_x=0, runs_x=1, count_y=0, runs_y=1))
"""Of an event that loses nothing by its choice."""


def power_of_the_test(power: float) -> float:
    """The power that the test of the chosen event needs for an audit to have this power: .99 for .97."""
    return 1.0 - (1.0 - power) / 3.0


def detectable(claim: Claim, counts: Counts, runs: int, learned: Learned, *, alpha: float, power: float) -> Detectable:
    """Smallest excess that an audit of fixed size detects, of `runs` on each dataset, the pilot's included.

    Claim and counts are in the direction tested.
    """
    main = min(0.5 * (counts.runs_x + counts.runs_y), main_runs(runs, 0.5))
    excess_of = partial(_excess_of, claim, (counts.runs_x, counts.runs_y), runs, main, alpha=alpha, power=power)
    return _of_either(claim, counts, runs, learned, excess_of)


def _excess_of(
    claim: Claim,
    counted: tuple[int, int],
    runs: int,
    main: float,
    alternative: Alternative,
    *,
    alpha: float,
    power: float,
) -> float:
    """The excess that `counted` runs on x and on y detect, fewer where the event is rare and needs a longer pilot.

    `main` are the main runs on each dataset of an audit of `runs`.
    """
    needed = power_of_the_test(power)
    excess = detectable_excess(claim, *counted, alternative, alpha=alpha, power=needed)
    if excess == math.inf:
        return excess
    share = main_runs(runs, event_of(claim, excess, alternative).q) / main
    if share >= 1.0:
        return excess
    runs_x, runs_y = (max(int(share * side), 1) for side in counted)
    return detectable_excess(claim, runs_x, runs_y, alternative, alpha=alpha, power=needed)


def detectable_by_guesses(
    claim: Claim, other: OtherDirection, counts: Counts, runs: int, learned: Learned, *, alpha: float, power: float
) -> Detectable:
    """The same by guesses in both directions.

    `counts` are those of the first event, and `other` has those of the second event, both with the dataset first on
    which the first event is more likely.
    """
    lost = _lost_by_the_weaker(counts, other.counts)
    return guessed(claim, other.guesses, runs, learned, lost, alpha=alpha, power=power)


def guessed(
    claim: Claim, guesses: Guesses, runs: int, learned: Learned, lost: float = 0.0, *, alpha: float, power: float
) -> Detectable:
    """The same for guesses of two events, of which the weaker one costs `lost` of the log likelihood ratio of both."""
    if claim.log_ratio is not None:
        excess = guess_excess(claim, guesses, alpha=alpha, power=power_of_the_test(power))
        return _of_either(claim, guesses.as_counts, runs, learned, lambda _: excess, lost)
    main = equivalent_runs(claim, guesses)
    excess_of = partial(_excess_of, claim, (main, main), runs, main_runs(runs, 0.5), alpha=alpha, power=power)
    return _of_either(claim, guesses.as_counts, runs, learned, excess_of, lost)


def detectable_by_divergence(
    claim: Claim, known: int, runs_x: int, runs_y: int, *, alpha: float, power: float
) -> float:
    """Smallest excess of Gaussian noise that a test of divergences detects; infinite beyond 100 times the claim."""
    unit = max(claim.parameter, 0.1)
    low, high = 1e-6 * unit, 100.0 * unit
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        is_shown = shows_divergence(claim, middle, known, runs_x, runs_y, alpha=alpha, power=power)
        low, high = (low, middle) if is_shown else (middle, high)
    return high if high < 100.0 * unit else math.inf


def shows_divergence(
    claim: Claim, excess: float, known: int, runs_x: int, runs_y: int, *, alpha: float, power: float
) -> bool:
    """Whether a test of divergences detects Gaussian noise that exceeds the claim by so much.

    The bins were learned from `known` runs on each dataset, which also choose the payoffs: what is learned later barely
    pays before the end.
    """
    mu = claim.with_parameter(claim.parameter + excess).gaussian_mu
    assert mu is not None
    needed = float(scipy.special.ndtri(power_of_the_test(power)) - scipy.special.ndtri(SPARED * alpha))
    return telling_divergence(*_gaussian_bins(mu, max(known, 4)), claim, runs_x, runs_y, max(known, 1))[1] >= needed


def _gaussian_bins(mu: float, known: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Probabilities on x and y of the bins that so many runs of Gaussian noise with means mu and 0 make (`learn_bins`).

    The mean of the larger mass and of the log ratio rises evenly over them, from the least to the largest output.
    """
    far = scipy.special.ndtri(1.0 / known)
    grid = np.linspace(min(far, mu - far), max(far, mu - far), 4_000)
    mass = np.cumsum(np.exp(-0.5 * np.minimum(grid**2, (grid - mu) ** 2)))
    position = 0.5 * (mass / mass[-1] + (grid - grid[0]) / np.ptp(grid))
    number = number_of_bins(known)
    edges = np.interp(np.arange(1, number) / number, position, grid)
    p, q = (np.diff(scipy.special.ndtr(edges - mean), prepend=0.0, append=1.0) for mean in (mu, 0.0))
    return np.maximum(p, 1e-300), np.maximum(q, 1e-300)


def detectable_sequentially(
    claim: Claim, counts: Counts, runs: int, learned: Learned, *, alpha: float, power: float
) -> Detectable:
    """The same for a sequential audit; the counts are in runs that the event was not learned from."""
    later = _LATER_KNOWN if learned.is_discrete else _LATER
    learned = replace(learned, ends=0, is_learned=False)  # learned again and again, from all runs

    def bet_on(event: AlternativeEvent) -> list[int]:
        return late_batches(runs, learned_after(claim, event, later=later))

    def excess_of(alternative: Alternative) -> float:
        return sequential_excess(claim, bet_on, alternative, alpha=alpha, power=power_of_the_test(power))

    return _of_either(claim, counts, runs, learned, excess_of, may_be_common=False)


def may_detect(claim: Claim, counts: Counts, runs: int, excess: float, *, alpha: float, power: float) -> bool:
    """Whether a sequential audit may detect the excess: a quick check by a single test of all runs."""
    if claim.parameter + excess >= claim.max_parameter:
        return True
    apart = float(scipy.special.ndtri(power_of_the_test(power)) - scipy.special.ndtri(alpha))
    least = max(apart, 0.2) / math.sqrt(runs)
    alternatives: list[Alternative] = [_as_likely(counts)]
    if claim.gaussian_mu is not None:
        alternatives.append(GaussianNoise(SHARE))
    return any(event_of(claim, excess, each).clearance > _FAR * least for each in alternatives)


def learned_after(claim: Claim, event: AlternativeEvent, *, later: float) -> float:
    """Runs after which a sequential audit bets on an event: a few times as many as show that it exceeds the claim.

    Events are compared on half of the runs, by their frequencies less a penalty.
    """
    runs = np.geomspace(32, 1e12, 400)
    away = CAUTION / (2.0 * np.sqrt(runs / 2))
    angle_p = np.maximum(math.atan2(math.sqrt(event.p), math.sqrt(event.p_rest)) - away * math.sqrt(0.5), 0.0)
    angle_q = np.minimum(math.asin(math.sqrt(event.q)) + away * math.sqrt(0.5), math.pi / 2)
    shows = claim.rough_parameter_of(
        np.sin(angle_p) ** 2, np.sin(angle_q) ** 2, np.cos(angle_p) ** 2, np.cos(angle_q) ** 2
    )
    first = float(runs[int(np.argmax(shows > 0.0))]) if (shows > 0.0).any() else math.inf
    return later * first


def is_gaussian(claim: Claim, counts: Counts, excess: float) -> bool:
    """Whether a stated excess is for Gaussian noise: the counts show no more than Gaussian noise of that excess."""
    mu = claim.with_parameter(claim.parameter + excess).gaussian_mu
    if mu is None:
        return False
    p, q = (
        _turned(*side) for side in ((counts.count_x, counts.runs_x, -_ERRORS), (counts.count_y, counts.runs_y, _ERRORS))
    )
    return p <= float(scipy.special.ndtr(scipy.special.ndtri(q) + mu))


def shows_no_difference(counts: Counts) -> bool:
    """Whether the event is as frequent on y as on x, within two standard errors."""
    p, q = counts.count_x / counts.runs_x, counts.count_y / counts.runs_y
    return abs(p - q) <= 2.0 * math.sqrt(p * (1 - p) / counts.runs_x + q * (1 - q) / counts.runs_y)


def _of_either(
    claim: Claim,
    counts: Counts,
    runs: int,
    learned: Learned,
    excess_of: Callable[[Alternative], float],
    lost: float = 0.0,
    *,
    may_be_common: bool = True,
) -> Detectable:
    limit, is_silent = largest_excess(claim), shows_no_difference(counts)
    found = Detectable(math.inf, "gaussian")
    if claim.gaussian_mu is not None and not learned.is_discrete:
        excess = excess_of(GaussianNoise(SHARE))
        if math.isinf(excess) or is_gaussian(claim, counts, excess):
            found = Detectable(excess, "gaussian")
            # Enough runs without a difference say that this pair shows none, so its chance event shows nothing.
            if excess <= limit or (is_silent and runs > FEW):
                return found
        if claim.divergence_slopes:  # no mechanism touches the boundary at an event as the tested one
            return Detectable(excess, "gaussian")
    alternative = _as_likely(counts)
    excess = excess_of(alternative)
    if excess < math.inf:
        event = event_of(claim, excess, alternative)
        excess = _above(claim, excess, event, lost + _dilution(claim, event, counts, learned, lost))
    if excess < found.excess or found.excess == math.inf:
        found = Detectable(excess, "event")
    # A claim of 0 expects that nothing shows, however many the runs.
    if may_be_common and found.excess > limit and is_silent and (runs <= FEW or claim.parameter == 0.0):
        most = min(0.5 * (claim.parameter + claim.max_parameter), sys.float_info.max)
        twice = claim.with_parameter(min(claim.parameter + limit, most))
        half = largest_parameter(lambda q: float(twice.max_power(q)[0]) <= 1.0 - q, 1.0)
        if half > 0.0:
            of_half = excess_of(half)
            if of_half <= limit:
                return Detectable(of_half, "common")
    return found


def _dilution(claim: Claim, event: AlternativeEvent, counts: Counts, learned: Learned, lost: float) -> float:
    """How much of the event's log likelihood ratio the errors of its ends cost, and those of a learned sum.

    At an end where the share of x among the outputs jumps by j, from 1/2, the best estimate is wrong by 3/(4 j²)
    outputs on average (Yao 1987), and j = tanh(L/2)/2 for a log ratio L. Both ends of an interval are taken as too far
    out. A half-line may end where the ratio does not jump, as that of Laplace noise does, so it loses at most what the
    counts show to be missing; so do half-lines of a learned sum, up to the loss of the worst choices.
    """
    missing = max(_shortfall(claim, counts) - lost, 0.0)
    if learned.ends == 0:
        return 0.0
    p, q = (event.p, event.q) if event.p + event.q <= 1.0 else (1.0 - event.q, event.p_rest)
    if not 0.0 < q < p:
        return 0.0
    ratio = math.log(p / q)
    if learned.is_learned:
        return min((1.0 - SHARE) * ratio, missing)
    seen = learned.counts.count_x + learned.counts.count_y
    if event.p + event.q > 1.0:
        seen = learned.counts.runs_x + learned.counts.runs_y - seen
    outside = learned.ends * _DISPLACED / (math.tanh(0.5 * ratio) ** 2 * max(seen, 1)) * 0.5 * (p + q)
    wide = ratio - math.log((p + outside) / (q + outside))
    return wide if learned.ends > 1 else min(wide, missing)


def _shortfall(claim: Claim, counts: Counts) -> float:
    """By how much the log likelihood ratio of the counts falls short of the claim's boundary; negative beyond it."""
    at = _as_likely(counts)
    p, q = (at.p, at.q) if at.p + at.q <= 1.0 else (1.0 - at.q, 1.0 - at.p)
    allowed = float(claim.max_power(1.0 - p, p)[1])  # the least q
    return math.log(q / allowed) if allowed > 0.0 else math.inf


def _above(claim: Claim, excess: float, event: AlternativeEvent, lost: float) -> float:
    """The excess with which the best event's log likelihood ratio is larger by `lost` than that of the tested one."""
    if lost <= 0.0:
        return excess
    if event.p + event.q <= 1.0:
        p, rest, q = event.p, event.p_rest, event.q * math.exp(-lost)
    else:
        rest, q = event.p_rest * math.exp(-lost), event.q
        p = 1.0 - rest
    found = float(claim.rough_parameter_of(*(np.array([each]) for each in (p, q, rest, 1.0 - q)))[0]) - claim.parameter
    return max(excess, found) if found < 0.99 * (claim.max_parameter - claim.parameter) else math.inf


def _lost_by_the_weaker(counts: Counts, against: Counts) -> float:
    """By how much an event whose ratio is clearly smaller lowers the log likelihood ratio of two events together.

    `against` counts the event of the other direction, both with the dataset first on which the first event is more
    likely.
    """
    first, second = _as_likely(counts), _as_likely(against.swapped())
    ratios = [math.log(each.p / each.q) for each in (first, second)]
    error = math.sqrt(sum(1.0 / (seen + 0.5) for each in (counts, against) for seen in (each.count_x, each.count_y)))
    apart = max(abs(ratios[0] - ratios[1]) - _APART * error, 0.0)
    weaker, other = (first.p, second.p) if ratios[0] < ratios[1] else (second.p, first.p)
    return math.log((other + weaker * math.exp(apart)) / (other + weaker))


def _as_likely(counts: Counts) -> AsLikely:
    """An event with the smoothed frequencies of the counted one."""
    return AsLikely((counts.count_x + 0.5) / (counts.runs_x + 1.0), (counts.count_y + 0.5) / (counts.runs_y + 1.0))


def _turned(counts: int, runs: int, errors: float) -> float:
    """A frequency moved by a number of standard errors on the arcsine scale."""
    angle = math.asin(math.sqrt((counts + 0.375) / (runs + 0.75))) + errors / (2.0 * math.sqrt(runs))
    return math.sin(min(max(angle, 0.0), math.pi / 2)) ** 2
