"""Power of the exact tests of one event and of guesses: the smallest detectable excess, and the runs that it needs.

The power is summed over both counts, given the critical numbers of hits on x (`critical_curve`). `alternatives` defines
the event for which the power is stated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc, ndtri

from ..claims.claim import Claim
from ..errors import OptionError
from ..inference.binomial_tails import Array, upper_tail
from ..inference.boundary_test import check_alpha, largest_strength, root_from_below
from ..inference.guess_test import Guesses
from .alternatives import Alternative, event_of, events_of, power_at
from .critical_curve import critical_curve, likely_hits

_MOST_RUNS = 10**12
# Alternating rounds for event and excess, which start from the normal approximation and stop if it is near enough.
_ROUNDS, _NEAR_ENOUGH, _LARGEST = 4, 0.1, 1e3
_SIZE = 64.0  # makes the first step of a search proportional to the surplus
_NEARNESS = 1e-4  # relative accuracy of a resolution
_BLOCKS = 500  # of hits on y
_KNOWN = 3.0  # standard deviations of Y in which a curve is reused for another rate


def power_of_test(claim: Claim, runs_x: int, runs_y: int, q: Alternative, excess: float, *, alpha: float) -> float:
    """Return the probability that the exact test refutes the claim if the strength is `excess` above it.

    The event has probability `q` on y and, on x, the largest probability that the claim with strength + `excess`
    allows; or it is that of another `Alternative`. The result is within .02 of the true power, and within .01 at power
    .95. It is off by up to .05 for some hundred runs with a boundary that has no closed form, and by up to .15 for
    many times more runs on one dataset than on the other. Probabilities outside (0, 1) and a negative excess raise an
    `OptionError`.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> 0.9 < power_of_test(PureDP(1.0), 100_000, 100_000, 0.18, 0.025, alpha=0.05) < 0.96
    True
    """
    check_alpha(alpha)
    _check_event(q)
    if not excess >= 0.0:
        raise OptionError(f"excess={excess!r} is below the claim; use 0 or more.", excess=excess)
    at = event_of(claim, excess, q)
    return _Power.of(claim, runs_x, runs_y, at.q, alpha).at(at.p, at.p_rest)


def resolution(claim: Claim, runs_x: int, runs_y: int, q: Alternative, *, alpha: float, power: float = 0.95) -> float:
    """Return the smallest excess of the claim's strength that the exact test finds with probability `power`.

    The result is in the units of the claim's strength, and infinite if no excess is found with that power.

    Parameters
    ----------
    claim : Claim
        The claim tested.
    runs_x, runs_y : int
        Runs on each dataset.
    q : float, AsLikely or GaussianNoise
        The event: its probability on y, in (0, 1), for example estimated from pilot runs, with the largest probability
        on x that the stronger claim allows; or an observed event; or, for claims with a `gaussian_mu`, the best event
        of Gaussian noise.
    alpha, power : float
        Error probability and power of the test, both in (0, 1).

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> 0.01 < resolution(PureDP(1.0), 100_000, 100_000, 0.18, alpha=0.05) < 0.03
    True
    """
    check_alpha(alpha)
    _check_event(q)
    _check_probability("power", power)
    limit = claim.max_strength - claim.strength
    aim = max(float(ndtri(power) - ndtri(alpha)), 0.2) / math.sqrt(min(runs_x, runs_y))
    events, guess, found = events_of(claim, q), 0.0, None
    if not isinstance(q, float):
        guess = root_from_below(lambda excess: events(excess).clearance / aim - 1.0, limit, 1.0, _SIZE, nearness=1e-3)
    for _ in range(_ROUNDS):  # the event depends on the excess, and the excess on the event
        rate = events(min(guess, 0.999 * limit, _LARGEST)).q
        if found is None or not found.covers(rate):
            found = _Power.of(claim, runs_x, runs_y, rate, alpha)
        excess = _excess_found(claim, found.at_rate(rate), rate, q, power, guess)
        if isinstance(q, float) or excess == math.inf or abs(excess - guess) < _NEAR_ENOUGH * guess:
            break
        guess = excess
    return max(excess, 1e-12)  # for a power of alpha or less, every excess suffices


def _excess_found(claim: Claim, found: _Power, rate: float, q: Alternative, power: float, guess: float) -> float:
    """Return the smallest excess found with this power, for an event of fixed probability `rate` on y."""
    limit, target = claim.max_strength - claim.strength, float(ndtri(power))

    def surplus(excess: float) -> float:
        """Return the normal quantile of the power minus the requested one; it is nearly linear in the excess."""
        return float(ndtri(np.clip(found.at(*power_at(claim, excess, rate, q)), 1e-15, 1.0 - 1e-15))) - target

    excess = root_from_below(surplus, limit, min(guess or 1.0, _LARGEST), _SIZE, nearness=_NEARNESS)
    return math.inf if excess >= 0.999 * limit else excess


def runs_needed(claim: Claim, q: Alternative, *, resolution: float, power: float = 0.95, alpha: float) -> int:
    """Return the fewest runs on each dataset with which the exact test finds an excess with probability `power`.

    The result has a relative accuracy of 1%, apart from the error of `power_of_test`. With few hits the power is not
    quite monotone in the runs, and slightly more runs than the result may have less power.

    Parameters
    ----------
    claim, q, alpha, power
        As in `resolution`; the runs of the pilot are additional.
    resolution : float
        The excess to detect, in the units of the claim's strength.

    Raises
    ------
    OptionError
        If more than 10¹² runs are needed, or the claim's family has no member with this excess.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> 1.4e5 < runs_needed(PureDP(1.0), 0.18, resolution=0.02, alpha=0.05) < 1.8e5
    True
    """
    check_alpha(alpha)
    _check_event(q)
    _check_probability("power", power)
    if not 0.0 < resolution < claim.max_strength - claim.strength:
        raise OptionError(
            f"resolution={resolution!r} is not a possible excess over {claim}; use a number above 0 and below "
            f"{claim.max_strength - claim.strength:g}.",
            resolution=resolution,
        )
    z = float(-ndtri(alpha))
    aim = max(float(ndtri(power)) + z, 0.2)
    low, high, further = 0.0, math.inf, 0.003
    event = event_of(claim, resolution, q)
    at = (aim / max(event.clearance, 1e-9)) ** 2
    while high > max(low + 1.0, 1.01 * low):
        at = float(round(min(max(at, low + 1.0), high - 1.0, _MOST_RUNS)))
        reached = _Power.of(claim, int(at), int(at), event.q, alpha).at(event.p, event.p_rest)
        # The normal quantile of the power grows like the root of the runs; step slightly beyond the predicted number.
        gain = min(max(aim / max(float(ndtri(min(max(reached, 1e-9), 1 - 1e-9))) + z, 0.2 * aim), 0.5), 2.0) ** 2
        if reached >= power:
            high, at = at, at * min(gain, 1.0) / (1.0 + further)
        elif at < _MOST_RUNS:
            low, at = at, at * max(gain, 1.0) * (1.0 + further)
        else:
            raise OptionError(
                f"resolution={resolution:g} needs more than {_MOST_RUNS:,} runs on each dataset with an event of "
                f"probability {event.q:.3g}; use a larger resolution.",
                resolution=resolution,
            )
        further *= 2.0
        if low > 0.0 and high < math.inf:
            share = (high / low) ** 0.1
            at = min(max(at, low * share), high / share)
    return int(high)


@dataclass(frozen=True, slots=True)
class _Power:
    """Critical numbers of hits on x for blocks of hits on y, and the probabilities of the blocks."""

    runs_x: int
    runs_y: int
    ends: Array
    critical: Array
    mass: Array
    known: tuple[float, float]  # hits on y between which the critical numbers are accurate

    @classmethod
    def of(cls, claim: Claim, runs_x: int, runs_y: int, q: float, alpha: float) -> _Power:
        ends = np.unique(np.round(np.linspace(*likely_hits(runs_y, q, 6.0, 20.0), _BLOCKS)))
        middle = np.floor(0.5 * (ends + np.append(ends[0], ends[:-1] + 1.0)))
        critical = critical_curve(claim, runs_x, runs_y, q, alpha, middle)
        return cls(runs_x, runs_y, ends, critical, _mass(ends, runs_y, q), likely_hits(runs_y, q))

    def covers(self, q: float) -> bool:
        """Return whether the likely hits on y at another rate are among those at which the curve was computed."""
        low, high = likely_hits(self.runs_y, q, _KNOWN, 0.0)
        return self.known[0] <= low and high <= self.known[1]

    def at_rate(self, q: float) -> _Power:
        """Return the power for another rate on y."""
        return replace(self, mass=_mass(self.ends, self.runs_y, q))

    def at(self, p: float, p_rest: float) -> float:
        """Return the power if the event has this probability on x."""
        found = upper_tail(self.critical[None], self.runs_x, np.array([p]), np.array([p_rest]))[0]
        return float(min((found * self.mass).sum(), 1.0))


def _mass(ends: Array, runs: int, q: float) -> Array:
    at_most = upper_tail((runs - ends)[None], runs, np.array([1.0 - q]), np.array([q]))[0]
    return np.diff(at_most, prepend=0.0)


def _check_event(q: Alternative) -> None:
    if isinstance(q, float):
        _check_probability("q", q)


def _check_probability(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise OptionError(f"{name}={value!r} is not inside (0, 1); use 0 < {name} < 1.", **{name: value})


def guess_resolution(claim: Claim, guesses: Guesses, *, alpha: float, power: float) -> float:
    """Return the smallest excess of a claim with a `log_ratio` that the test finds with probability `power`.

    The alternative keeps the frequency of right guesses, and those of wrong ones fall as the excess grows; the number
    of guesses is taken as its mean. Infinite if no excess is found with that power.
    """
    each, unit = claim.log_ratio, claim.with_strength(1.0).log_ratio
    if each is None or unit is None:
        raise OptionError(f"{claim} is not a limit on the log likelihood ratio alone.", claim=claim)
    right = guesses.right + 0.5
    usual = 1.0 / (1.0 + math.exp(-each))

    def is_missed(excess: float) -> bool:
        likelier = 1.0 / (1.0 + math.exp(-(each + excess * unit)))
        made = round(right / likelier)
        return _more(_exceeded(alpha, made, usual), made, likelier) < power

    found = largest_strength(is_missed, 700.0 / unit, tolerance=1e-4)
    return math.inf if found >= 0.99 * 700.0 / unit else max(found, 1e-12)


def _more(hits: int, runs: int, p: float) -> float:
    """Return the probability of more than this many hits."""
    return float(betainc(hits + 1.0, runs - hits, p)) if hits < runs else 0.0


def _exceeded(alpha: float, runs: int, p: float) -> int:
    """Return the fewest hits that are exceeded with probability at most `alpha`; scipy.stats takes long to import."""
    low, high = -1, runs
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _more(middle, runs, p) <= alpha else (middle, high)
    return high


def equivalent_runs(claim: Claim, guesses: Guesses) -> int:
    """Return with how many runs on each dataset hits in independent runs would show as small an excess as the guesses.

    Right and wrong guesses exclude each other, which adds to the variance of the distance from the boundary.
    """
    w = (guesses.wrong + 0.5) / (guesses.runs + 1.0)
    near = 1e-3 * min(w, 1.0 - w)
    power, _ = claim.max_power(np.array([w - near, w, w + near]))
    c, slope = min(float(power[1]), 1.0 - w), float(power[2] - power[0]) / (2.0 * near)
    apart = c * (1.0 - c) + slope**2 * w * (1.0 - w)
    return max(1, int(guesses.runs * apart / (apart + 2.0 * slope * c * w)))
