"""Power of the exact test: the smallest detectable excess of an audit, and the runs that a given excess needs.

The critical number of hits on x is found from p-values at a few likely counts of y, or at all of them where hits are
rare, and the power is summed over both counts. `alternatives` defines the event for which the power is stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from ..claims.claim import Claim, ParametricClaim
from ..errors import OptionError
from .alternatives import Alternative, event_of, power_at
from .binomial_tails import Array, upper_tail
from .count_ordering import arcsine_angle, critical_hits
from .counts import Counts, check_alpha
from .joint_test import largest_strength, p_value, rough_p_value

_MOST_RUNS = 10**12
# Alternating rounds for event and excess, which start from the normal approximation and stop if it is near enough.
_ROUNDS, _NEAR_ENOUGH, _LARGEST = 4, 0.1, 1e3
_FEW = 8.0  # standard deviation of the hits below which single hits matter
_FEW_NODES, _NODES, _CORNER_NODES = 30, 3, 13  # counts of y at which the test is run
_FLAT = 0.05  # range of the ellipse sizes above which the claim may have a corner
_LIKELY = 3.0  # standard deviations of Y that the nodes span
_NEAR = 24.0  # standard errors around q that a p-value at a likely y needs
_MOST_Z = 64.0  # size of an ellipse that no count clears


def power_of_test(claim: Claim, runs_x: int, runs_y: int, q: Alternative, excess: float, *, alpha: float) -> float:
    """Return the probability that the exact test refutes the claim if the strength is `excess` above it.

    The event has probability `q` on y and, on x, the largest probability that the claim with strength + `excess`
    allows; or it is that of another `Alternative`. The result is within .02 of the true power, and within .01 at power
    .95. It is too low by up to .05 in two cases: a dozen hits on y with a boundary as steep as that of ε = 4, and a
    hundred runs with a boundary that has no closed form. Probabilities outside (0, 1) and a negative excess raise an
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
    guess = 0.0
    if not isinstance(q, float):
        guess = largest_strength(lambda excess: event_of(claim, excess, q).clearance < aim, limit, tolerance=1e-3)
    for _ in range(_ROUNDS):  # the event depends on the excess, and the excess on the event
        rate = event_of(claim, min(guess, 0.999 * limit, _LARGEST), q).q
        found = _Power.of(claim, runs_x, runs_y, rate, alpha)
        excess = _excess_found(claim, found, rate, q, power)
        if isinstance(q, float) or excess == math.inf or abs(excess - guess) < _NEAR_ENOUGH * guess:
            break
        guess = excess
    return max(excess, 1e-12)  # for a power of alpha or less, every excess suffices


def _excess_found(claim: Claim, found: _Power, rate: float, q: Alternative, power: float) -> float:
    """Return the smallest excess found with this power, for an event of fixed probability `rate` on y."""
    limit = claim.max_strength - claim.strength
    excess = largest_strength(lambda excess: found.at(*power_at(claim, excess, rate, q)) < power, limit, tolerance=1e-4)
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

    critical: Array
    mass: Array
    runs_x: int

    @classmethod
    def of(cls, claim: Claim, runs_x: int, runs_y: int, q: float, alpha: float) -> _Power:
        ends = np.unique(np.round(np.linspace(*_range_of_hits(runs_y, q, 6.0, 20.0), 500)))
        at_most = upper_tail((runs_y - ends)[None], runs_y, np.array([1.0 - q]), np.array([q]))[0]
        middle = np.floor(0.5 * (ends + np.append(ends[0], ends[:-1] + 1.0)))
        critical = _critical(_tabulated(claim, runs_x, runs_y, q), runs_x, runs_y, q, alpha, middle)
        return cls(critical, np.diff(at_most, prepend=0.0), runs_x)

    def at(self, p: float, p_rest: float) -> float:
        """Return the power if the event has this probability on x."""
        found = upper_tail(self.critical[None], self.runs_x, np.array([p]), np.array([p_rest]))[0]
        return float(min((found * self.mass).sum(), 1.0))


def _check_event(q: Alternative) -> None:
    if isinstance(q, float):
        _check_probability("q", q)


def _check_probability(name: str, value: float) -> None:
    if not 0.0 < value < 1.0:
        raise OptionError(f"{name}={value!r} is not inside (0, 1); use 0 < {name} < 1.", **{name: value})


def _range_of_hits(runs: int, q: float, deviations: float, more: float) -> tuple[float, float]:
    reach = deviations * math.sqrt(runs * q * (1.0 - q)) + more
    return max(0.0, math.floor(runs * q - reach)), min(float(runs), math.ceil(runs * q + reach))


def _critical(claim: Claim, n: int, m: int, q: float, alpha: float, y: Array) -> Array:
    """Return the critical number of hits on x for every number y of hits on y; n + 1 where no number is refuted.

    The test is run at some y. In between, the size of the ellipse that just clears the claim is interpolated: it varies
    near a corner of the claim and is nearly constant elsewhere.
    """
    p, rest = claim.max_power(q)
    is_few_x, is_few_y = (math.sqrt(variance) < _FEW for variance in (n * float(p) * float(rest), m * q * (1.0 - q)))
    is_few = is_few_x or is_few_y
    likely = _range_of_hits(m, q, _LIKELY, 1.0)
    edge = _Edge.of(claim, n, m, alpha, [likely[0], round(m * q), likely[1]] if is_few else [round(m * q)])
    size = edge.size_where_few if is_few_x else edge.size
    found: dict[float, float] = {}
    for number in (_FEW_NODES,) if is_few else (_NODES, _CORNER_NODES):
        z = edge.usual
        for node in np.round(np.linspace(*likely, number)).tolist():
            z = found[node] = found[node] if node in found else size(int(node), min(z, 2.0 * edge.usual))
        if np.ptp(list(found.values())) < _FLAT:
            break
    nodes = sorted(found)
    z_at = np.interp(y, nodes, [found[node] for node in nodes])
    return critical_hits(y, n, m, claim, z_at)  # type: ignore[arg-type]  # a z for each y


@dataclass(frozen=True, slots=True)
class _Edge:
    """The edge of the exact test's rejection region, as ellipses of z standard errors that just clear the claim."""

    claim: Claim
    n: int
    m: int
    alpha: float
    surplus: tuple[Sequence[float], Sequence[float]]  # hits on y, and the excess of the rough quantiles there

    @classmethod
    def of(cls, claim: Claim, n: int, m: int, alpha: float, some_y: Sequence[float]) -> _Edge:
        """Calibrate rough p-values by exact p-values at some y; the ratio of the two is nearly constant."""
        edge, surplus = cls(claim, n, m, alpha, ((0,), (0.0,))), []
        for hits_y in map(int, some_y):
            hits_x = min(edge._hits(hits_y, edge.usual), n)
            exact = p_value(Counts(hits_x=hits_x, runs_x=n, hits_y=hits_y, runs_y=m), claim, alpha=alpha)
            surplus.append(edge._excess(hits_x, hits_y) - float(ndtri(min(exact, 1 - 1e-12)) - ndtri(alpha)))
        return replace(edge, surplus=(some_y, surplus))

    @property
    def usual(self) -> float:
        return max(float(-ndtri(self.alpha)), 0.5)

    def size(self, hits_y: int, z: float) -> float:
        """Find the size by Newton's method: the quantile of the p-value falls by nearly 1 as z grows by 1."""
        for _ in range(8):
            hits = self._hits(hits_y, z)
            excess = self._excess(min(hits, self.n), hits_y)
            if hits >= self.n and excess > 0:
                return _MOST_Z
            per_hit = 0.5 / max(self._hits(hits_y, z + 0.25) - self._hits(hits_y, z - 0.25), 1)
            z = max(z + min(max(excess, -0.5), 0.5) + 0.5 * per_hit, 0.0)  # hits are rounded up by ½ on average
            if abs(excess) < 0.1:
                break
        return z

    def size_where_few(self, hits_y: int, z: float) -> float:
        """Return the middle of the sizes that lead to the critical number of hits on x."""
        low, high, low_value, high_value = -1, self.n + 1, math.nan, math.nan
        at, step = min(self._hits(hits_y, z), self.n), 1
        while high - low > 1:
            value = self._excess(at, hits_y)
            if value <= 0:
                high, high_value = at, value
            else:
                low, low_value = at, value
            if math.isnan(low_value):
                at, step = high - step, 3 * step
            elif math.isnan(high_value):
                at, step = low + step, 3 * step
            else:  # the quantile is nearly linear in the hits; shrink the bracket by at least a tenth
                at = low + round(min(max(low_value / (low_value - high_value), 0.1), 0.9) * (high - low))
            at = min(max(at, low + 1), high - 1)
        return 0.5 * (self._largest(hits_y, low) + self._largest(hits_y, high))

    def _largest(self, hits_y: int, hits_x: int) -> float:
        return largest_strength(lambda z: self._hits(hits_y, z) <= hits_x, _MOST_Z, tolerance=1e-4)

    def _hits(self, hits_y: int, z: float) -> int:
        return int(critical_hits(np.array([float(hits_y)]), self.n, self.m, self.claim, z)[0])

    def _excess(self, hits_x: int, hits_y: int) -> float:
        counts = Counts(hits_x=hits_x, runs_x=self.n, hits_y=hits_y, runs_y=self.m)
        p = rough_p_value(counts, self.claim, alpha=self.alpha)
        return float(ndtri(min(p, 1 - 1e-12)) - ndtri(self.alpha) - np.interp(hits_y, *self.surplus))


@dataclass(frozen=True, slots=True, eq=False)
class _Tabulated(ParametricClaim):
    """A claim's family near one q, on the arcsine scale: linear between grid points and in the strength."""

    angle: Array
    power: Array  # of the member of strength `origin`
    rise: Array  # per unit of strength
    origin: float
    own: float
    limit: float

    strength_name, _strength_field = "strength", "own"
    has_closed_form = True  # the table is as cheap as a formula

    @property
    def max_strength(self) -> float:
        return self.limit

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        table = self.power + (self.own - self.origin) * self.rise
        found = np.clip(np.interp(arcsine_angle(q, q_complement), self.angle, table), 0.0, math.pi / 2)
        return np.sin(found) ** 2, np.cos(found) ** 2

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        raise NotImplementedError  # the table serves p-values, which need the boundary only


def _tabulated(claim: Claim, n: int, m: int, q: float) -> Claim:
    """Return the claim with a boundary that is cheap near `q`; a claim with a closed form is returned as it is."""
    if claim.has_closed_form:
        return claim
    middle, unit = math.asin(math.sqrt(q)), 0.5 / math.sqrt(m)
    angle = np.unique(np.clip(middle + _NEAR * unit * np.linspace(-1.0, 1.0, 1201), 0.0, math.pi / 2))
    inside, outside = np.sin(angle) ** 2, np.cos(angle) ** 2
    power = arcsine_angle(*claim.max_power(inside, outside))
    # A second member, about a standard error away, gives the slope of the boundary in the strength.
    above = min(float(np.interp(middle, angle, power)) + 0.5 / math.sqrt(n), 0.5 * math.pi - 1e-9)
    reach = claim.strength_of(math.sin(above) ** 2, q, math.cos(above) ** 2, 1.0 - q)
    step = min(max(float(reach) - claim.strength, 1e-6), 1.0, 0.5 * (claim.max_strength - claim.strength))
    further = arcsine_angle(*claim.with_strength(claim.strength + step).max_power(inside, outside))
    return _Tabulated(angle, power, (further - power) / step, claim.strength, claim.strength, claim.max_strength)
