"""What an audit of a given size can find, and the size it takes to find a given excess over the claim."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ..claims import Claim
from ..errors import OptionError
from .binomial import Array, upper_tail
from .counts import Counts, check_alpha
from .joint import critical_hits, largest_strength, rough_p_value

_MOST_RUNS = 10**12


def power_of_test(claim: Claim, runs_x: int, runs_y: int, q: float, excess: float, *, alpha: float) -> float:
    """Probability that the exact test refutes the claim when the strength is `excess` above it.

    The event has probability `q` on y and, on x, the largest that the claim with strength + `excess` allows. The
    critical counts are scaled to one exact p-value near the expected counts. So the power stated is a little below the
    true one, .01 at 10⁵ runs and up to .15 at 20, and at most .03 above it.

    Raises
    ------
    OptionError
        For probabilities outside (0, 1), or a negative excess.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> 0.9 < power_of_test(PureDP(1.0), 100_000, 100_000, 0.18, 0.025, alpha=0.05) < 0.96
    True
    """
    check_alpha(alpha)
    _check_probability("q", q)
    if not excess >= 0.0:
        raise OptionError(f"excess={excess!r} is below the claim; use 0 or more.", excess=excess)
    found = _Power.of(claim, runs_x, runs_y, q, alpha)
    return 0.0 if found is None else found.at(claim, excess)


def resolution(claim: Claim, runs_x: int, runs_y: int, q: float, *, alpha: float, power: float = 0.95) -> float:
    """Smallest excess of the claim's strength that the exact test finds with probability `power`.

    The event has probability `q` on y and, when the excess is s, the largest probability on x that the claim with
    strength + s allows.

    Parameters
    ----------
    claim : Claim
        The claim tested.
    runs_x, runs_y : int
        Runs on each dataset.
    q : float
        Probability of the event on y, in (0, 1), such as an estimate from pilot runs.
    alpha, power : float
        Error probability of the test, and probability of refuting, both in (0, 1).

    Returns
    -------
    float
        In the units of the claim's strength; infinite where no excess is found with that power.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> 0.01 < resolution(PureDP(1.0), 100_000, 100_000, 0.18, alpha=0.05) < 0.03
    True
    """
    check_alpha(alpha)
    _check_probability("q", q)
    _check_probability("power", power)
    found = _Power.of(claim, runs_x, runs_y, q, alpha)
    if found is None:
        return math.inf
    return largest_strength(
        lambda excess: found.at(claim, excess) < power, claim.max_strength - claim.strength, tolerance=1e-4
    )


def runs_needed(claim: Claim, q: float, *, resolution: float, power: float = 0.95, alpha: float) -> int:
    """Fewest runs on each dataset, to a hundredth, with which the exact test finds an excess with probability `power`.

    Parameters
    ----------
    claim, q, alpha, power
        As in `resolution`; runs that choose the event come on top.
    resolution : float
        The excess to be found, in the units of the claim's strength.

    Raises
    ------
    OptionError
        If 10¹² runs would not do, or the claim's family has no member so far above the claim.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> 1.4e5 < runs_needed(PureDP(1.0), 0.18, resolution=0.02, alpha=0.05) < 1.8e5
    True
    """
    check_alpha(alpha)
    _check_probability("q", q)
    _check_probability("power", power)
    if not 0.0 < resolution < claim.max_strength - claim.strength:
        raise OptionError(
            f"resolution={resolution!r} names no stronger member of the family of {claim}; use a positive excess "
            f"below {claim.max_strength - claim.strength:g}.",
            resolution=resolution,
        )

    def is_enough(runs: int) -> bool:
        found = _Power.of(claim, runs, runs, q, alpha)
        return found is not None and found.at(claim, resolution) >= power

    low, high = 1, 64
    while not is_enough(high):
        low, high = high, 4 * high
        if high > _MOST_RUNS:
            raise OptionError(
                f"resolution={resolution:g} takes more than {_MOST_RUNS:,} runs on each dataset with an event of "
                f"probability {q:.3g}; use a coarser one.",
                resolution=resolution,
            )
    while high > max(low + 1, 1.01 * low):
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def best_q(claim: Claim, *, resolution: float) -> float:
    """The probability on y at which an excess takes the fewest runs, by the normal approximation.

    For planning before any run: no event can do better, whatever the mechanism.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> round(best_q(PureDP(1.0), resolution=0.01), 2)
    0.27
    """
    angle = np.linspace(0.0, math.pi / 2, 4001)[1:-1]
    q, q_rest = np.sin(angle) ** 2, np.cos(angle) ** 2
    at, at_rest = claim.max_power(q, q_rest)
    above, above_rest = claim.with_strength(claim.strength + resolution).max_power(q, q_rest)
    # Distance of the two boundaries in standard errors of p and of q, at its slope.
    rise = np.where(above < 0.5, above - at, at_rest - above_rest)
    slope = np.gradient(at, q)
    spread = np.sqrt(at * at_rest + slope**2 * q * q_rest)
    clear = np.where(spread > 0, rise / np.maximum(spread, 1e-300), 0.0)
    return float(q[int(np.argmax(clear))])


@dataclass(frozen=True, slots=True)
class _Power:
    """The critical hits on x for each likely number of hits on y, and how likely those are."""

    critical: Array
    mass: Array
    q: float
    runs_x: int

    @classmethod
    def of(cls, claim: Claim, runs_x: int, runs_y: int, q: float, alpha: float) -> _Power | None:
        """None where no count refutes the claim."""
        z = _calibrated_z(claim, runs_x, runs_y, q, alpha)
        if z is None:
            return None
        reach = 9.0 * math.sqrt(runs_y * q * (1 - q)) + 40.0
        first, last = max(0.0, math.floor(runs_y * q - reach)), min(float(runs_y), math.ceil(runs_y * q + reach))
        ends = np.unique(np.floor(np.linspace(first, last, 400)))
        critical = critical_hits(ends, runs_x, runs_y, claim, z)
        at_most = upper_tail((runs_y - ends)[None], runs_y, np.array([1.0 - q]), np.array([q]))[0]
        return cls(critical, np.diff(at_most, prepend=0.0), q, runs_x)

    def at(self, claim: Claim, excess: float) -> float:
        p, rest = claim.with_strength(claim.strength + excess).max_power(self.q)
        found = upper_tail(self.critical[None], self.runs_x, np.atleast_1d(p), np.atleast_1d(rest))[0]
        return float((found * self.mass).sum())


def _check_probability(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise OptionError(f"{name}={value!r} plans nothing; use a probability inside (0, 1).", **{name: value})


def _calibrated_z(claim: Claim, runs_x: int, runs_y: int, q: float, alpha: float) -> float | None:
    """The ellipse size at which the exact p-value reaches alpha near the expected counts; None if no count does."""
    hits_y, target = round(runs_y * q), float(ndtri(alpha))

    def excess(hits_x: int) -> float:
        """Normal quantile of the p-value less that of alpha: nearly linear, at most 0 where refuted."""
        counts = Counts(hits_x=hits_x, runs_x=runs_x, hits_y=hits_y, runs_y=runs_y)
        return float(ndtri(min(rough_p_value(counts, claim, alpha=alpha), 1 - 1e-12))) - target

    here = np.array([float(hits_y)])

    def hits_at(z: float) -> float:
        return float(critical_hits(here, runs_x, runs_y, claim, z)[0])

    z = max(-target, 0.5)
    low, high = int(hits_at(0.0)) - 1, runs_x
    if excess(high) > 0:
        return None
    at, step = min(int(hits_at(1.05 * z)), runs_x), 1 + int(0.1 * (hits_at(1.05 * z) - low))
    low_value = high_value = math.nan
    while high - low > max(1.0, 0.01 * math.sqrt(high)):
        value = excess(at)
        if value <= 0:
            high, high_value = at, value
        else:
            low, low_value = at, value
        if math.isnan(low_value):
            at, step = high - step, 3 * step
        elif math.isnan(high_value):
            at, step = low + step, 3 * step
        else:  # interpolate, and a little over to land on the other side
            share = low_value / (low_value - high_value)
            at = low + round(share * (high - low) + (0.003 if value > 0 else -0.003) * math.sqrt(high))
        if not low < at < high:
            at = (low + high) // 2
    return largest_strength(lambda size: hits_at(size) <= high, 50.0, tolerance=1e-4)
