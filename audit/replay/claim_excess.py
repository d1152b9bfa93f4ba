"""Whether a loss, or a pair of laws, goes beyond a claim.

Both answers are one-sided. A pair of laws goes beyond a claim if an event has p > B(q) (`strength_needed`, a lower
bound). A loss of at most ε, composed with a Gaussian μ, stays within a claim if its boundary lies below the claim's
(`is_within`, from an upper bound).

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from ..claims.claim import ApproxDP, Array, Claim, GaussianDP, GroupClaim, PureDP
from ..claims.mironov_propositions import ProbabilityPreservation
from ..claims.privacy_profile import PrivacyProfile, TradeOffCurve
from ..claims.renyi import RenyiDP, ZeroConcentratedDP
from .laws import Law, gaussian_mu, worst_loss

SLACK: Final = 1e-9
"""Relative excess that counts as rounding."""
_OF_EVENTS: Final = (PureDP, ApproxDP, GaussianDP, PrivacyProfile, TradeOffCurve, ProbabilityPreservation)
"""Claims that hold if every event keeps the claim's boundary."""
_COMPARED: Final = 8  # events whose strength at a distance is found by bisection
_TAILS: Final = np.concatenate([np.geomspace(1e-12, 0.02, 120), np.linspace(0.02, 0.98, 193)[1:-1]])
_POINTS: Final = 20_000
_TANGENTS: Final = 1e-13  # relative: rounding
_HALF: Final = np.geomspace(1e-12, 0.5, 400)
_Q: Final = np.concatenate([_HALF, 1.0 - _HALF[-2::-1]])
_Q_REST: Final = np.concatenate([1.0 - _HALF, _HALF[-2::-1]])
_Z: Final = np.concatenate([ndtri(_HALF), -ndtri(_HALF[-2::-1])])
"""False-positive rates with their complements and normal quantiles, none of which loses digits near 1."""


def strength_needed(claim: Claim, x: Law, y: Law) -> float | None:
    """Return a strength that the claim must have to allow both laws; None if none is found.

    It is exact for pure claims and for normal laws, up to rounding, and a lower bound for others: the best of many
    half-lines, intervals, or sets of outcomes. For independent draws under other claims it is that of one draw.
    """
    mu, worst = gaussian_mu(x, y), worst_loss(x, y)
    if mu == 0.0 or worst == 0.0:
        return 0.0
    if mu == math.inf:
        return math.inf  # a scale of 0
    if claim.log_ratio is not None and worst is not None:
        return worst
    if mu is not None and math.isfinite(mu):
        if isinstance(claim, (RenyiDP, ZeroConcentratedDP)):
            return _order(claim) * mu * mu / 2.0
        if isinstance(claim, GaussianDP):
            return mu
        return _largest(claim, ndtr(_Z + mu), ndtr(-_Z - mu), _Q, _Q_REST)
    if not (x.is_known and x.name == y.name and x.shape == y.shape and not x.after) or worst is None:
        return None
    if math.prod(x.shape) != 1:
        x, y = _farthest(x, y)
    events = _outcomes(x, y) if x.name == "discrete" else _events(x, y)
    return None if events is None else max(_largest(claim, *events), _largest(claim, *events[2:], *events[:2]))


def _largest(claim: Claim, p: Array, p_rest: Array, q: Array, q_rest: Array) -> float:
    """Return the largest strength that an event needs, with probabilities that are smaller by more than rounding.

    Where an event has exactly the claim's δ on one side and 0 on the other, any digit more would need an infinite ε.
    """
    forward = _strengths(claim, p * (1.0 - SLACK), q, p_rest + SLACK * p, q_rest)
    backward = _strengths(claim.reversed(), q * (1.0 - SLACK), p, q_rest + SLACK * q, p_rest)
    found = np.concatenate([np.ravel(forward), np.ravel(backward)])
    return float(np.max(found[~np.isnan(found)], initial=0.0))


def _strengths(claim: Claim, p: Array, q: Array, p_rest: Array, q_rest: Array) -> Array:
    """Return the strengths that the events need; at a distance, where each is a bisection, of the most promising."""
    if isinstance(claim, GroupClaim):
        events = np.broadcast_arrays(p, q, p_rest, q_rest)
        with np.errstate(all="ignore"):
            rough = np.nan_to_num(claim.rough_strength_of(*events), nan=-np.inf)
        best = np.argsort(-rough)[:_COMPARED]
        p, q, p_rest, q_rest = (each[best] for each in events)
    return claim.strength_of(p, q, p_rest, q_rest)


def _farthest(x: Law, y: Law) -> tuple[Law, Law]:
    """Return both laws of the draw whose location moved farthest in scales, or of the first draw without locations."""
    a, b, scale = x.location, y.location, x.scale
    if x.name == "discrete" or a is None or b is None or scale is None:
        return tuple(Law(law.name, law.parameters) for law in (x, y))  # type: ignore[return-value]
    with np.errstate(all="ignore"):
        at = int(np.nanargmax(np.abs(a - b).reshape(-1) / scale.reshape(-1)))
    laws = []
    for law in (x, y):
        held = {"location": law.location, "scale": law.scale}
        laws.append(Law(law.name, {name: float(np.ravel(each)[at]) for name, each in held.items() if each is not None}))
    return laws[0], laws[1]


def _outcomes(x: Law, y: Law) -> tuple[Array, Array, Array, Array] | None:
    """Return p, 1 − p, q, 1 − q of the sets of outcomes of largest ratio: by Neyman and Pearson none does better."""
    p, q = (np.asarray(law.parameters["probabilities"], dtype=np.float64) for law in (x, y))
    if p.shape != q.shape:
        return None
    with np.errstate(all="ignore"):
        order = np.argsort(-np.where(p == q, 1.0, p / q))
    p, q = p[order], q[order]
    return np.cumsum(p), np.cumsum(p[::-1])[::-1] - p, np.cumsum(q), np.cumsum(q[::-1])[::-1] - q


def _events(x: Law, y: Law) -> tuple[Array, Array, Array, Array] | None:
    """Return p, 1 − p, q, 1 − q of half-lines and of intervals about the location of x."""
    if x.scale is not None and not (np.all(x.scale > 0.0) and y.scale is not None and np.all(y.scale > 0.0)):
        return None
    a, b = x.frozen(), y.frozen()
    with np.errstate(all="ignore"):
        ends = [each for law in (a, b) for each in (*np.ravel(law.ppf(_TAILS)), *np.ravel(law.isf(_TAILS)))]
        cuts = np.unique(np.array(ends)[np.isfinite(ends)])
        middle = float(np.ravel(a.median())[0])
        radii = np.unique(np.abs(cuts - middle))
        columns = []
        for law in (a, b):
            outside = law.cdf(middle - radii) + law.sf(middle + radii)
            columns += [np.concatenate([law.cdf(cuts), outside]), np.concatenate([law.sf(cuts), 1.0 - outside])]
    return columns[0], columns[1], columns[2], columns[3]


def is_within(claim: Claim, epsilon: float, mu: float) -> bool:
    """Return whether a loss of at most `epsilon`, composed with Gaussian noise of this `mu`, keeps the claim."""
    if claim.log_ratio is not None:
        return mu == 0.0 and epsilon <= claim.log_ratio * (1.0 + SLACK)
    if epsilon == mu == 0.0:
        return True
    if not (math.isfinite(epsilon) and math.isfinite(mu)):
        return False
    if isinstance(claim, (RenyiDP, ZeroConcentratedDP)):
        order = _order(claim)
        divergence = min(epsilon, order * epsilon * epsilon / 2.0) if isinstance(claim, RenyiDP) else epsilon**2 / 2.0
        return divergence + order * mu * mu / 2.0 <= claim.strength * (1.0 + SLACK)
    if not isinstance(claim.base if isinstance(claim, GroupClaim) else claim, _OF_EVENTS):
        return False  # events show only a part of what such a claim says
    if isinstance(claim, ApproxDP):
        return _keeps_lines([(claim.epsilon, claim.delta)], epsilon, mu)
    if isinstance(claim, PrivacyProfile):
        deltas = [delta + claim.excess for delta in claim.deltas]
        return _keeps_lines(list(zip(claim.epsilons, deltas, strict=True)), epsilon, mu)
    if isinstance(claim, GaussianDP) and epsilon == 0.0:
        return mu <= claim.mu * (1.0 + SLACK)
    return _lies_below(claim, epsilon, mu) and _lies_below(claim.reversed(), epsilon, mu)


def _keeps_lines(lines: list[tuple[float, float]], epsilon: float, mu: float) -> bool:
    """Whether the privacy profile of such a loss lies below these points of one, exactly."""
    return all(_profile(at, epsilon, mu) <= delta * (1.0 + SLACK) for at, delta in lines)


def _profile(at: float, epsilon: float, mu: float) -> float:
    """Return a bound on the δ at ε = `at` of such a loss; the exact worst case if either is 0."""
    if mu == 0.0:
        return max(math.expm1(epsilon - at) / (math.exp(-at) + math.exp(epsilon - at)), 0.0) if epsilon > at else 0.0
    inner = at - epsilon
    first, second = log_ndtr(mu / 2.0 - inner / mu), inner + log_ndtr(-mu / 2.0 - inner / mu)
    return float(max(-math.exp(first) * math.expm1(min(second - first, 0.0)), 0.0))


def _lies_below(claim: Claim, epsilon: float, mu: float) -> bool:
    """Whether the boundary of such a loss lies below that of a claim, up to where it meets its mirror image.

    The boundary Φ(Φ⁻¹(e^ε q) + μ) is concave, so it lies below its tangents; between two points below the two
    tangents. The claim's boundary is concave, so it lies above its chords. Corners of the tangents below the claim's
    boundary therefore show the whole, wherever the claim's own corners are. Far out in the tail, where no double tells
    them apart, the ratio of Gaussian boundaries only falls.
    """
    low, high = -37.0, float(-ndtri(1e-300))
    for _ in range(200):  # to where e^ε q = Φ(z) and 1 − Φ(z + μ) = q
        middle = (low + high) / 2.0
        low, high = (middle, high) if ndtr(-middle - mu) > math.exp(-epsilon) * ndtr(middle) else (low, middle)
    z = np.unique(np.concatenate([np.linspace(-37.0, high, _POINTS), high - np.geomspace(1e-6, 1.0, 400)]))
    own, q = ndtr(z + mu), math.exp(-epsilon) * ndtr(z)
    if mu == 0.0:
        own, q = own[-1:], q[-1:]  # one line, up to its corner
    slope = np.exp(epsilon + (z * z - (z + mu) ** 2) / 2.0)
    with np.errstate(all="ignore"):
        corners = (np.diff(own) - slope[1:] * q[1:] + slope[:-1] * q[:-1]) / (slope[:-1] - slope[1:]) if mu else q[:0]
    corners = np.clip(np.where(np.isfinite(corners), corners, q[1:]), q[:-1], q[1:])
    heights = np.minimum(own[:-1] + slope[: len(corners)] * (corners - q[:-1]), 1.0)
    allowed, _ = claim.max_power(np.append(q, corners), 1.0 - np.append(q, corners))
    return bool(np.all(np.append(own, heights) <= allowed * (1.0 + _TANGENTS)))


def _order(claim: RenyiDP | ZeroConcentratedDP) -> float:
    """The divergence of a Gaussian μ, in the units of the claim's strength, is this times μ²/2."""
    return claim.order if isinstance(claim, RenyiDP) else 1.0
