"""Alternatives for a stated power, events of a mechanism that exceeds its claim; the power of bets on them.

The events of a mechanism of privacy parameter s lie below the boundary B_s; if s is tight, some events come near it.
There are two kinds of alternative:

- *On the boundary*: the event has probability q on y and B_s(q) on x. Laplace noise, randomised response and the
  exponential mechanism have such events for pure claims, and Gaussian noise has such events for μ-GDP.
- *Gaussian noise* that attains s (`Claim.gaussian_mu`), p = Φ(Φ⁻¹(q) + μ). For (ε, δ) it touches the boundary at one
  probability only, which is too small for few runs; for Rényi divergences it touches the boundary nowhere. Its best
  event is the event that clears the claim by the most standard errors.

References
----------
Dong, Roth & Su (2022), Gaussian differential privacy, Section 2.3 (the trade-off function of Gaussian noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from ..claims.claim import Claim
from ..errors import OptionError
from ..inference.betting_test import BETS, WEIGHTS, best_line, log_mean
from ..inference.binomial_tails import Array
from ..inference.event_test import check_alpha, largest_parameter

_LEAST = 1e-15  # probability below which no audit observes an event


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian noise that attains the privacy parameter, with the event that a pilot would choose."""

    share: float = 1.0  # in (0, 1]: the event is the rarest with at least this share of the best event's clearance


@dataclass(frozen=True, slots=True)
class AsLikely:
    """An event on the boundary of the stronger claim that resembles an observed event.

    An excess may come from a larger p or from a smaller q. If the event is rare on both sides, p is kept and q falls as
    the excess grows, so smaller counts show the excess. If its complement is rare, q is kept and p grows. This also
    applies if the stronger claim allows more than half of p at q = 0, as δ does, since then no q shows the excess at
    that p.
    """

    p: float  # observed probability of the event on x, in (0, 1)
    q: float  # the same on y


Alternative: TypeAlias = float | AsLikely | GaussianNoise
"""An event on the boundary of the stronger claim (by its probability on y, or like an observed event), or noise."""


@dataclass(frozen=True, slots=True)
class AlternativeEvent:
    """Probabilities of an event under an alternative, and its clearance of the claim."""

    q: float  # on y
    p: float  # on x
    p_rest: float  # 1 − p
    clearance: float  # distance of p above the claim's boundary at q, in standard errors of one run on each dataset


def event_of(claim: Claim, excess: float, alternative: Alternative) -> AlternativeEvent:
    """Return the event that an audit tests if the privacy parameter is `excess` above the claim."""
    return events_of(claim, alternative)(excess)


def events_of(claim: Claim, alternative: Alternative) -> Callable[[float], AlternativeEvent]:
    """Return `event_of` as a function of the excess; it computes once what does not depend on the excess."""
    all_rates = _Claimed.of(claim, _rates()) if isinstance(alternative, GaussianNoise) else None

    def event(excess: float) -> AlternativeEvent:
        claimed = all_rates or _Claimed.of(claim, _rate_of(claim, excess, alternative))
        p, rest = _power_at(claim, excess, claimed.q, alternative)
        clear = claimed.clearance(p, rest)
        at = int(np.argmax(clear))
        if isinstance(alternative, GaussianNoise):
            at = int(np.argmax(clear >= alternative.share * clear[at])) if clear[at] > 0.0 else at
        return AlternativeEvent(float(claimed.q[at]), float(p[at]), float(rest[at]), float(clear[at]))

    return event


def power_at(claim: Claim, excess: float, q: float, alternative: Alternative) -> tuple[float, float]:
    """Return Pr[M(x) ∈ S] and its complement, for an event of probability `q` on y and parameter `excess` above."""
    p, rest = _power_at(claim, excess, np.array([q]), alternative)
    return float(p[0]), float(rest[0])


def best_q(claim: Claim, *, excess: float) -> float:
    """Return the probability on y at which detecting an excess takes the fewest runs, by the normal approximation.

    For planning before any run. Up to a few percent, no event of any mechanism needs fewer runs, and most need more.
    For (ε, δ) the best event is the corner of the stronger claim, which only randomised response reaches.

    >>> from dpaudit import PureDP
    >>> round(best_q(PureDP(1.0), excess=0.01), 3)
    0.267
    """
    stronger = claim.with_parameter(claim.parameter + excess)
    corner = largest_parameter(lambda q: float(stronger.max_power(q)[0]) <= 1.0 - q, 1.0)  # of (ε, δ), often the best
    q = np.concatenate([[corner] * (corner > 0.0), _rates()])
    return float(q[int(np.argmax(_Claimed.of(claim, q).clearance(*_power_at(claim, excess, q, 0.5))))])


def _rate_of(claim: Claim, excess: float, alternative: Alternative) -> Array:
    match alternative:
        case AsLikely(p, q):
            stronger = claim.with_parameter(claim.parameter + excess)
            if p + q > 1.0 or 2.0 * float(stronger.max_power(0.0)[0]) > p:
                return np.array([q])
            # q solves 1 − q = B(1 − p), the mirror image of the boundary.
            return np.maximum(stronger.max_power(np.array([1.0 - p]), np.array([p]))[1], _LEAST)
        case float():
            return np.array([alternative])
        case GaussianNoise():
            return _rates()  # its event is chosen among them


def _rates() -> Array:
    """Return a grid of probabilities that is dense near 0 and near 1."""
    rare = np.geomspace(1e-12, 0.02, 250)
    return np.concatenate([rare, np.linspace(0.02, 0.98, 500), 1.0 - rare[:100:-1]])


def _power_at(claim: Claim, excess: float, q: Array, alternative: Alternative) -> tuple[Array, Array]:
    stronger = claim.with_parameter(claim.parameter + excess)
    if not isinstance(alternative, GaussianNoise):
        return stronger.max_power(q)
    mu = stronger.gaussian_mu
    if mu is None:
        raise OptionError(f"{claim} does not define a Gaussian noise to plan with; use the probability of an event.")
    z = ndtri(q) + mu
    return ndtr(z), ndtr(-z)


@dataclass(frozen=True, slots=True)
class _Claimed:
    """What the claim allows for events of probabilities q on y."""

    q: Array
    at: Array  # on x
    at_rest: Array
    spread: Array  # standard error of one run on each dataset

    @classmethod
    def of(cls, claim: Claim, q: Array) -> _Claimed:
        q_rest = 1.0 - q
        at, at_rest = claim.max_power(q, q_rest)
        near = 1e-6 * q * q_rest
        slope = (claim.max_power(q + near)[0] - claim.max_power(q - near)[0]) / (2.0 * near)
        return cls(q, at, at_rest, np.sqrt(at * at_rest + slope**2 * q * q_rest))

    def clearance(self, p: Array, p_rest: Array) -> Array:
        """Return the distance of events at (p, q) above the claim's boundary, in standard errors of one run."""
        rise = np.where(p < 0.5, p - self.at, self.at_rest - p_rest)
        clear: Array = np.where(self.spread > 0, rise / np.maximum(self.spread, 1e-300), 0.0)
        return clear


# Power of bets on a known event, by simulation, and the smallest excess that they find.

SizesFor: TypeAlias = Callable[[AlternativeEvent], Sequence[int]]
_REPETITIONS = 400  # simulated audits: an error of 3% of the excess where measured


def found_share(
    claim: Claim,
    excess: float,
    sizes: Sequence[int] | SizesFor,
    q: Alternative,
    *,
    alpha: float,
    until: float = 1.0,
) -> float:
    """Return the share of simulated audits that refute the claim; it is within .025 of the true power.

    The event has probability `q` on y and, on x, the largest probability that the claim strengthened by `excess`
    allows; or it is the event of another `Alternative`. The wealth of the other accounts is taken as lost. `sizes` are
    the runs in each batch. The simulation ends as soon as the share `until` is reached.
    """
    rng, event = np.random.default_rng(0), event_of(claim, excess, q)
    p, rate = event.p, event.q
    batches = sizes(event) if callable(sizes) else sizes
    if not batches:
        return 0.0
    line = best_line(claim, p, rate, float(sum(batches)))
    bets = BETS / (line.slope + line.intercept)
    gains = np.array([np.log1p(bets * (value - line.intercept)) for value in (1.0 - line.slope, 1.0, -line.slope, 0.0)])
    log_wealth = np.zeros((_REPETITIONS, len(bets)))
    found = np.zeros(_REPETITIONS, dtype=np.bool_)
    enough = -math.log(alpha)
    for size in batches:
        count_q = rng.binomial(size, rate, _REPETITIONS)
        both = rng.binomial(count_q, p)
        only_p = rng.binomial(size - count_q, p)
        joint = np.stack([both, only_p, count_q - both, size - count_q - only_p], axis=1)
        log_wealth += joint @ gains
        # The largest term bounds the average, so few averages are computed.
        near = np.flatnonzero(~found & (log_wealth >= enough).any(axis=1))
        if len(near):
            found[near] = log_mean(log_wealth[near]) + math.log(WEIGHTS[4][0]) >= enough
            if found.mean() >= until:  # audits that have refuted stay so
                break
    return float(found.mean())


def sequential_excess(
    claim: Claim, sizes: Sequence[int] | SizesFor, q: Alternative, *, alpha: float, power: float
) -> float:
    """Return the smallest excess found with probability `power` (see `found_share`), within 1%; infinite if none is."""
    check_alpha(alpha)
    rate = q if isinstance(q, float) else 0.1
    if not (0.0 < rate < 1.0 and 0.0 < power < 1.0):
        raise OptionError(
            f"q={q!r} or power={power!r} is not inside (0, 1); use values between 0 and 1.", q=q, power=power
        )
    runs = 10_000 if callable(sizes) else sum(sizes)
    limit = claim.max_parameter - claim.parameter
    excess = largest_parameter(
        lambda excess: found_share(claim, excess, sizes, q, alpha=alpha, until=power) < power,
        limit,
        tolerance=1e-2,
        start=4.0 / math.sqrt(runs * rate * (1.0 - rate)),  # about the size of the answer
    )
    return math.inf if excess >= 0.99 * limit else excess
