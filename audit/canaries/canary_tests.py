"""The tests of one training run: by bets, by counts, by Steinke's bound, and under a whole trade-off curve.

Each gives the largest probability that a mechanism which keeps the claim has guesses as good as these. The rejection
regions of a test are nested, as each is a limit of one number (T, or the right guesses). So every strength that the
test refutes may be refuted at once, and the bound is the largest one found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from ..claims.claim import Claim
from ..claims.privacy_profile import PrivacyProfile
from ..claims.pure_approx_gaussian import ApproxDP, GaussianDP, PureDP, excess_delta
from ..guesses.canary_guesses import CanaryGuesses, CanaryTest
from ..guesses.guess_bets import bets_tail, largest_refuted
from ..guesses.guess_ceiling import Ceiling, line
from ..guesses.guess_counts import count_tail, steinke_tail
from ..guesses.trade_off_recursion import is_impossible

_LEVELS = np.concatenate([np.linspace(0.0, 8.0, 49), np.linspace(8.5, 40.0, 64)])  # ε of lines above a curve
_HALVINGS = 40
_BELOW = 24  # strengths below the claim that are tried for a bound
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
    if isinstance(claim, GaussianDP):
        return list(_gaussian_lines(claim.mu))
    raise TypeError(f"no lines of {claim!r}")


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


def ceilings(claim: Claim, guesses: CanaryGuesses) -> list[Ceiling]:
    """Lines above the rate of right guesses, for a claim with `has_lines`."""
    both = guesses.said == "both"
    return [line(epsilon, delta, probability=guesses.prior, both=both) for epsilon, delta in _lines(claim)]


def _inverse(claim: Claim, guesses: CanaryGuesses) -> Callable[[float], float]:
    """F⁻¹: the least rate of wrong guesses for a rate of right ones.

    The inverse of a boundary is one minus the reversed claim's boundary at one minus the power.
    """
    reverse = claim if guesses.said == "out" else claim.reversed()

    def least(power: float) -> float:
        if power >= 1.0:
            return float(reverse.max_power(0.0, 1.0)[1])
        return float(reverse.max_power(1.0 - power, power)[1])

    if guesses.said == "both":
        return least
    prior = guesses.prior
    return lambda rate: (1.0 - prior) * least(min(rate / prior, 1.0))


def tail(test: CanaryTest, claim: Claim, guesses: CanaryGuesses) -> float:
    """Largest probability of guesses as good as these, if the claim holds; at least 1e-12."""
    if test.kind == "f-dp":
        return _recursion_tail(test, claim, guesses)
    lines = ceilings(claim, guesses)
    if test.kind == "betting":
        kept = tuple(n for n in guesses.numbers if n <= test.guesses)
        found = largest_refuted(guesses.right[: len(kept)], kept, test.alpha)
        tails = (
            bets_tail(found, kept, test.alpha, each.log_odds) + each.slip(guesses.canaries)
            for each in lines
            if each.slip(guesses.canaries) < 1.0
        )
        return min(max(min(tails, default=1.0), _LEAST_TAIL), 1.0)
    bound = count_tail if test.kind == "counts" else steinke_tail
    right = guesses.right_among(test.guesses)
    return max(min(bound(right, test.guesses, guesses.canaries, each) for each in lines), _LEAST_TAIL)


def _recursion_tail(test: CanaryTest, claim: Claim, guesses: CanaryGuesses) -> float:
    right, inverse = guesses.right_among(test.guesses), _inverse(claim, guesses)
    low, high = math.log(_LEAST_TAIL), 0.0  # possible at low, impossible at high
    if not is_impossible(1.0 - 1e-12, right, test.guesses, guesses.canaries, inverse):
        return 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if is_impossible(math.exp(middle), right, test.guesses, guesses.canaries, inverse):
            high = middle
        else:
            low = middle
    return math.exp(high)


def refutes(test: CanaryTest, claim: Claim, guesses: CanaryGuesses) -> bool:
    """Whether the test refutes the claim at its share of alpha."""
    if test.kind == "f-dp":
        right = guesses.right_among(test.guesses)
        return is_impossible(test.alpha, right, test.guesses, guesses.canaries, _inverse(claim, guesses))
    return tail(test, claim, guesses) <= test.alpha


def refuted_strength(test: CanaryTest, claim: Claim, guesses: CanaryGuesses) -> float:
    """Return a strength of the claim's family that the test refutes, about the largest one; 0 if there is none."""

    def is_refuted(strength: float) -> bool:
        return refutes(test, claim.with_strength(strength), guesses)

    own = claim.strength
    if is_refuted(own):
        low, step = own, 0.05 * max(own, 1e-3 if claim.max_strength <= 1.0 else 1.0)
        while (high := _capped(low + step, claim.max_strength)) > low and is_refuted(high):
            low, step = high, 2.0 * step
            if low > 1e3:
                return low
    else:
        tried = own * (1.0 - np.arange(1, _BELOW + 1) / _BELOW)
        found = next((float(s) for s in tried if is_refuted(float(s))), None)
        if found is None:
            return 0.0
        low, high = found, found + own / _BELOW
    while high - low > 1e-6 * max(high, 1e-6):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def _capped(strength: float, most: float) -> float:
    return min(strength, most * (1.0 - 1e-9)) if math.isfinite(most) else strength
