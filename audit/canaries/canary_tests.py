"""The tests of one training run: by bets, by counts, by Steinke's bound, and under a whole trade-off curve.

Each gives the largest probability that a mechanism which keeps the claim has guesses as good as these. The rejection
regions of a test are nested, so every privacy parameter that it refutes may be refuted at once: the bound is the
largest one.

Proof: docs/proofs/canaries.md
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from ..claims.claim import ApproxDP, Claim, GaussianDP, PureDP, excess_delta
from ..claims.privacy_profile import PrivacyProfile
from ..errors import OptionError
from ..guesses.canary_guesses import (
    MOST,
    CanaryGuesses,
    CanaryTest,
    GuessLimit,
    count_tail,
    is_impossible,
    line,
    right_tail,
    steinke_tail,
)
from ..guesses.guess_bets import bets_tail, largest_refuted
from ..inference.binomial_tails import Array
from ..inference.event_test import NEARNESS, check_test_alpha
from ..known_options import with_known_options
from ..options import is_whole
from ..printing import shorten

# F⁻¹ of a claim: the least rate of incorrect guesses for a rate of right ones, by canary.
#
# The inverse of a boundary is one minus the reversed claim's boundary at one minus the power. A boundary that is not a
# simple formula is evaluated once on a grid. F⁻¹ is convex, so between two points it lies above the chords on both
# sides, continued: the larger of them is used, which never refutes more than F⁻¹ itself, and is exact for polygons.

_SPACING = 0.01  # of the grid, in log-odds (docs/decisions/0025-limits.md)
_NEAR_ONE = 1.0 - 1e-6  # powers nearer to 1 are computed one by one


def least_wrong(claim: Claim, guesses: CanaryGuesses, lowest: float, highest: float = 1.0) -> Callable[[float], float]:
    """Return F⁻¹, fast for rates of correct guesses from `lowest` to `highest`."""
    prior = 1.0 if guesses.answer == "both" else guesses.prior
    reverse = claim if guesses.answer == "out" else claim.reversed()
    least = _formula(claim) or _on_grid(reverse, min(lowest / prior, 0.5), min(highest / prior, _NEAR_ONE))
    if guesses.answer == "both":
        return least
    return lambda rate: (1.0 - prior) * least(min(rate / prior, 1.0))


def _formula(claim: Claim) -> Callable[[float], float] | None:
    """The inverse of a boundary with a simple formula, the same in both directions; subclasses may have another one."""
    if type(claim) is GaussianDP:
        mu = claim.mu
        return lambda power: float(ndtr(ndtri(power) - mu))
    if type(claim) is PureDP or type(claim) is ApproxDP:
        delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
        more, less = math.exp(min(claim.epsilon, 700.0)), math.exp(-claim.epsilon)
        return lambda power: max(less * (power - delta), 1.0 - delta - more * (1.0 - power), 0.0)
    return None


def _on_grid(reverse: Claim, lowest: float, highest: float) -> Callable[[float], float]:
    low, high = float(logit(lowest)) - _SPACING, float(logit(highest)) + 2.0 * _SPACING
    size = math.ceil((high - low) / _SPACING)
    odds = np.linspace(low, high, size)
    power, rest = expit(odds), expit(-odds)
    values: Array = reverse.max_power(rest, power)[1]
    steps = np.where(power[:-1] < 0.5, np.diff(power), -np.diff(rest))
    slopes: list[float] = (np.diff(values) / steps).tolist()
    at: list[float] = power.tolist()
    least: list[float] = values.tolist()

    def found(rate: float) -> float:
        left = bisect_right(at, rate) - 1
        if not 1 <= left < size - 2:
            return float(reverse.max_power(max(1.0 - rate, 0.0), min(rate, 1.0))[1])
        below = least[left] + slopes[left - 1] * (rate - at[left])
        return max(below, least[left + 1] - slopes[left + 1] * (at[left + 1] - rate))

    return found


_LEVELS = np.concatenate([np.linspace(0.0, 8.0, 49), np.linspace(8.5, 40.0, 64)])  # ε of lines above a curve
_BELOW = 24  # privacy parameters below the claim that are tried for a bound (docs/decisions/0025-limits.md)
_LEAST_TAIL = 1e-12  # p-values are not computed below


def has_lines(claim: Claim) -> bool:
    """Whether (ε, δ) lines above the claim are known, as bets and counts need them."""
    return isinstance(claim, (PureDP, ApproxDP, GaussianDP, PrivacyProfile))


def _lines(claim: Claim) -> list[tuple[float, float]]:
    """(ε, δ) pairs that the claim implies in both directions."""
    if isinstance(claim, PureDP):
        return [(claim.epsilon, 0.0)]
    if isinstance(claim, ApproxDP):
        # Lines of larger ε are implied as well; where δ costs much they may refute what the claim's own line does not.
        more = _LEVELS[claim.epsilon < _LEVELS] if claim.delta else ()
        return [(claim.epsilon, claim.delta), *((float(epsilon), claim.delta) for epsilon in more)]
    if isinstance(claim, PrivacyProfile):
        return [(e, min(d + claim.excess, 1.0)) for e, d in zip(claim.epsilons, claim.deltas, strict=True)]
    assert isinstance(claim, GaussianDP), "has_lines"
    return list(_gaussian_lines(claim.mu))


@lru_cache(maxsize=1 << 10)
def _gaussian_lines(mu: float) -> tuple[tuple[float, float], ...]:
    if mu == 0.0:
        return ((0.0, 0.0),)
    # δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) is the excess of the event that attains it.
    claim, found = GaussianDP(mu), []
    for epsilon in _LEVELS:
        z = mu / 2 - epsilon / mu
        q = float(ndtr(z - mu))
        p, rest = claim.max_power(q)
        delta = excess_delta(epsilon, p, rest, np.asarray(q), np.asarray(1.0 - q))
        found.append((float(epsilon), min(max(float(delta), 0.0) * (1.0 + 1e-9) + 1e-15, 1.0)))
    return tuple(found)


def guess_limits(claim: Claim, guesses: CanaryGuesses) -> list[GuessLimit]:
    """Lines above the rate of correct guesses, for a claim with `has_lines`."""
    both = guesses.answer == "both"
    return [line(epsilon, delta, probability=guesses.prior, both=both) for epsilon, delta in _lines(claim)]


def tail(test: CanaryTest, claim: Claim, guesses: CanaryGuesses) -> float:
    """Largest probability of guesses as good as these, if the claim holds; at least 1e-12."""
    if test.kind == "f-dp":
        return _recursion_tail(test, claim, guesses)
    return max(_line_tail(test, claim, guesses, enough=_LEAST_TAIL), _LEAST_TAIL)


def _line_tail(test: CanaryTest, claim: Claim, guesses: CanaryGuesses, *, enough: float) -> float:
    """The smallest bound that a line gives, or the first one that is at most `enough`."""
    smallest = 1.0
    for each in sorted(guess_limits(claim, guesses), key=lambda limit: limit.log_odds):
        without_slips, bound = _tails(test, guesses, each, smallest)
        smallest = min(smallest, bound)
        if smallest <= enough or without_slips >= smallest:  # more likely for larger log-odds, so no bound is smaller
            break
    return smallest


def _tails(test: CanaryTest, guesses: CanaryGuesses, limit: GuessLimit, smallest: float) -> tuple[float, float]:
    """Probability of guesses as good as these without slips, and the bound with them."""
    if test.kind == "betting":
        if (slip := limit.slip(guesses.canaries)) >= smallest:
            return 0.0, 1.0
        kept = tuple(number for number in guesses.numbers if number <= test.guesses)
        found = largest_refuted(guesses.correct[: len(kept)], kept, test.alpha)
        walk = bets_tail(found, kept, test.alpha, limit.log_odds)
        return walk, walk + slip
    right = guesses.correct_among(test.guesses)
    without = right_tail(right, test.guesses, limit)
    if without >= smallest:
        return without, 1.0
    bound = count_tail if test.kind == "counts" else steinke_tail
    return without, bound(right, test.guesses, guesses.canaries, limit)


def _inverse(test: CanaryTest, claim: Claim, guesses: CanaryGuesses, least_tail: float) -> Callable[[float], float]:
    """F⁻¹ for the rates that the recursion meets from this tail on."""
    lowest = max(guesses.correct_among(test.guesses), 1) / guesses.canaries * least_tail
    return least_wrong(claim, guesses, lowest, test.guesses / guesses.canaries)


def _recursion_tail(test: CanaryTest, claim: Claim, guesses: CanaryGuesses) -> float:
    right = guesses.correct_among(test.guesses)
    inverse = _inverse(test, claim, guesses, _LEAST_TAIL)
    low, high = math.log(_LEAST_TAIL), 0.0  # possible at low, impossible at high
    if not is_impossible(1.0 - 1e-12, right, test.guesses, guesses.canaries, inverse):
        return 1.0
    while high - low > NEARNESS:
        middle = 0.5 * (low + high)
        if is_impossible(math.exp(middle), right, test.guesses, guesses.canaries, inverse):
            high = middle
        else:
            low = middle
    return math.exp(high)


def refutes(test: CanaryTest, claim: Claim, guesses: CanaryGuesses) -> bool:
    """Whether the test refutes the claim at its share of alpha."""
    if test.alpha < _LEAST_TAIL:
        return False
    if test.kind == "f-dp":
        right = guesses.correct_among(test.guesses)
        inverse = _inverse(test, claim, guesses, test.alpha)
        return is_impossible(test.alpha, right, test.guesses, guesses.canaries, inverse)
    return _line_tail(test, claim, guesses, enough=test.alpha) <= test.alpha


def refuted_parameter(test: CanaryTest, claim: Claim, guesses: CanaryGuesses) -> float:
    """Return a parameter of the claim's family that the test refutes, about the largest one; 0 if there is none."""

    def is_refuted(parameter: float) -> bool:
        return refutes(test, claim.with_parameter(parameter), guesses)

    own = claim.parameter
    if is_refuted(own):
        low, step = own, 0.05 * max(own, 1e-3 if claim.max_parameter <= 1.0 else 1.0)
        while (high := min(low + step, claim.max_parameter * (1.0 - 1e-9))) > low and is_refuted(high):
            low, step = high, 2.0 * step
            if low > 1e3:
                return low
    else:
        # δ pays for less as ε grows, so bets and counts may refute a claim between others that they do not refute.
        tried = own * (1.0 - np.arange(1, _BELOW + 1) / _BELOW) if own and test.kind != "f-dp" else [0.0] * (own > 0.0)
        found = next((float(s) for s in tried if is_refuted(float(s))), None)
        if found is None:
            return 0.0
        low, high = found, own if test.kind == "f-dp" else found + own / _BELOW
    while high - low > 1e-6 * max(high, 1e-6):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


@with_known_options()
def epsilon_from_guesses(
    correct: int, guesses: int, canaries: int | None = None, *, delta: float = 0.0, alpha: float = 0.05
) -> float:
    """Return a lower bound on ε at `delta`, with confidence 1 − alpha, from guesses of which canaries are in.

    Each canary was put in or left out by an independent toss of a fair coin. The number of guesses was fixed before the
    scores were seen; which canaries are guessed, and whether "in" or "out", may depend on everything but the inclusion
    bits. The bound is exact: it cannot be larger if nothing but these numbers is known.

    Parameters
    ----------
    correct, guesses : int
        Correct guesses, and all guesses.
    canaries : int, optional
        All canaries, guessed or not, since each may be the one on which δ is spent; not needed where `delta` is 0.
    delta : float
        In [0, 1).
    alpha : float
        Above 1e-9.

    Returns
    -------
    float
        In nats; 0 if nothing is refuted.

    Raises
    ------
    OptionError
        For numbers that do not fit.

    See Also
    --------
    check_canaries : The audit, which chooses the guesses.
    plan_canaries : What so many canaries can show.

    References
    ----------
    docs/proofs/canaries.md, theorem 2. Steinke, Nasr & Jagielski (2023), Theorem 5.2, give a smaller bound.

    Examples
    --------
    >>> from dpaudit.counts import epsilon_from_guesses
    >>> round(epsilon_from_guesses(100, 100, 100_000, delta=1e-5), 3)
    3.423
    """
    check_test_alpha(alpha)
    claim = ApproxDP(0.0, delta)
    if canaries is None and delta > 0.0:
        raise OptionError(
            f"with delta={delta!r} the bound depends on the number of all canaries, guessed or not; pass canaries "
            "(canaries=guesses if all were guessed).",
            delta=delta,
        )
    total = guesses if canaries is None else canaries
    if not all(map(is_whole, (correct, guesses, total))) or not 0 <= correct <= guesses <= total <= MOST or guesses < 1:
        raise OptionError(
            f"correct={shorten(correct)}, guesses={shorten(guesses)} and canaries={shorten(total)} do not fit; use "
            f"whole numbers with 0 <= correct <= guesses <= canaries <= {MOST:,}, and at least one guess.",
            correct=correct,
            guesses=guesses,
            canaries=total,
        )
    counted = CanaryGuesses(canaries=int(total), numbers=(int(guesses),), correct=(int(correct),))
    return refuted_parameter(CanaryTest("counts", int(guesses), alpha), claim, counted)
