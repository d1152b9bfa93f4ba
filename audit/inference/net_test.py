"""A net of plain events, such as single outcomes and intervals: each is tested on its own part of alpha.

A pilot can rank the outcomes of a sampler only roughly: an outcome that is wrong by ten standard errors of the whole
audit is wrong by two in a pilot of a twentieth, and two happen by chance. The counts of the main runs need no ranking:
an event that the pilot did not see costs only its part of alpha. The parts sum to 1 and are fixed before the runs, so
the union bound applies. Only the tests that may refute are run: leaving out the others can only lower both error
probabilities.

Proof: docs/proofs/choices.md

References
----------
Genovese, Roeder & Wasserman (2006), False discovery control with p-value weighting, Section 3 (weighted Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from ..claims.claim import Claim
from .binomial_tails import Array
from .event_test import LEAST_ALPHA, Counts, Direction, arcsine_angle, directed, joint_test_beside

EventCounts: TypeAlias = npt.NDArray[np.int64] | Array
_DIRECTIONS: tuple[Direction, ...] = ("x", "y")
_EXACT = 5  # exact tests that are made: those with the largest rough bounds (docs/decisions/0025-limits.md)
# Events whose rough bounds are computed, those that exceed their levels' quantiles by most:
# docs/decisions/0025-limits.md.
_NEAR = 400
# Share of its level's quantile by which an event exceeds the claim that is worth a closer look:
# docs/decisions/0025-limits.md.
_SHORT_OF = 0.8
_ANGLES = np.linspace(0.0, math.pi / 2, 9)[:, None]


@dataclass(frozen=True, slots=True)
class NetTest:
    """The event with the largest bound among all events of a net."""

    index: int
    more_likely_on: Direction
    counts: Counts
    pvalue: float  # smallest alpha at which the tests of all events refute the claim; at most 1
    bound: float  # on the privacy parameter, at confidence 1 − alpha for all events together


def net_test(
    count_x: npt.NDArray[np.int64],
    count_y: npt.NDArray[np.int64],
    runs_x: int,
    runs_y: int,
    claim: Claim,
    weights: Array,
    *,
    alpha: float,
    known: float = 0.0,
) -> NetTest | None:
    """Test the claim on every event, in both directions; None if no event comes near to a bound.

    Counts have the shape (events,), in runs from which neither the events nor their weights were learned. The weights,
    shape (2, events), are each event's part of `alpha` in the direction of x and of y, together at most 1. The claim is
    for events that are more likely on x, its reverse for the others. If no bound exceeds the `known` one, of another
    test, the bound is 0 and the event the one that comes nearest.
    """
    levels = alpha * weights
    is_tested = levels > LEAST_ALPHA
    z = np.where(is_tested, -scipy.special.ndtri(np.where(is_tested, levels, 0.5)), np.inf)
    sides = (count_x, count_y, runs_x, runs_y, claim), (count_y, count_x, runs_y, runs_x, claim.reversed())
    tried: list[tuple[float, int, int]] = []
    for way, (p, q, n, m, directed_claim) in enumerate(sides):
        is_apart = is_tested[way] & (p / n > q / m + 3.0 * np.sqrt(p / n**2 + q / m**2))
        # No boundary lies below q, so the standard error of p alone leaves few events whose clearance is computed.
        may_clear = (np.arcsin(np.sqrt(p / n)) - _angle_of_q(q, m)) * 2.0 * math.sqrt(n) > _SHORT_OF * z[way]
        near = np.flatnonzero(is_apart | may_clear)
        clear = clearance(p[near], q[near], n, m, directed_claim)
        is_near = is_apart[near] | (clear > _SHORT_OF * z[way, near])
        near, clear = near[is_near], clear[is_near]
        near = near[np.argsort(z[way, near] - clear, kind="stable")[:_NEAR]]
        rough = rough_bound(p[near], q[near], n, m, directed_claim, z[way, near])
        tried += [(bound, way, place) for bound, place in zip(rough.tolist(), near.tolist(), strict=True)]
    best: NetTest | None = None
    pvalue = 1.0
    for rough_one, way, place in sorted(tried, key=lambda one: -one[0])[:_EXACT]:
        if best is not None and rough_one <= known:  # almost no exact bound exceeds its rough one
            break
        counts = Counts(count_x=int(count_x[place]), runs_x=runs_x, count_y=int(count_y[place]), runs_y=runs_y)
        held, weight = directed(claim, counts, _DIRECTIONS[way]), float(weights[way, place])
        own, bound = joint_test_beside(held.counts, held.claim, weight, known, alpha=float(levels[way, place]))
        if best is None or bound > claim.parameter:  # that of the largest rough bound, and of what refutes
            pvalue = min(pvalue, own / weight)
        if best is None or bound > known:
            best = NetTest(place, _DIRECTIONS[way], counts, 1.0, bound)
        known = max(known, bound)
    return None if best is None else replace(best, pvalue=pvalue)


def clearance(
    count_p: EventCounts, count_q: EventCounts, n: int | EventCounts, m: int | EventCounts, claim: Claim
) -> Array:
    """Return the standard errors by which frequencies of p exceed the boundary at those of q, on the arcsine scale."""
    error_p, error_q = 0.5 / np.sqrt(n), 0.5 / np.sqrt(m)
    angle = _angle_of_q(count_q, m)
    here, beside = (
        arcsine_angle(*claim.max_power(np.sin(at) ** 2, np.cos(at) ** 2))
        for at in (angle, np.minimum(angle + error_q, math.pi / 2))
    )
    return np.asarray((np.arcsin(np.sqrt(count_p / n)) - here) / np.hypot(error_p, beside - here))


def _angle_of_q(count_q: EventCounts, m: int | EventCounts) -> Array:
    return np.asarray(np.arcsin(np.sqrt((count_q + 0.5) / (m + 1.0))))


def rough_bound(
    count_p: EventCounts,
    count_q: EventCounts,
    n: int | EventCounts,
    m: int | EventCounts,
    claim: Claim,
    z: Array | float,
    *,
    quickly: bool = False,
) -> Array:
    """Return the parameter that counts exceed by z standard errors, by the ellipse on the arcsine scale; −∞ for none.

    The claim is in the direction of the events, and counts on the more likely dataset come first. `quickly` takes one
    point of the ellipse, whose privacy parameter is at least the smallest one.
    """
    angles = _ANGLES[len(_ANGLES) // 2, None] if quickly else _ANGLES
    p = np.arcsin(np.sqrt(count_p / n)) - 0.5 * z / np.sqrt(n) * np.sin(angles)
    q = _angle_of_q(count_q, m) + 0.5 * z / np.sqrt(m) * np.cos(angles)
    p, q = np.maximum(p, 0.0), np.minimum(q, math.pi / 2)
    found = claim.rough_parameter_of(np.sin(p) ** 2, np.sin(q) ** 2, np.cos(p) ** 2, np.cos(q) ** 2).min(axis=0)
    return np.where(np.isnan(found), -math.inf, found)
