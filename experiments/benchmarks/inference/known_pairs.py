"""Pairs of datasets with known output laws, and the largest lower bounds that audits of these pairs can give."""

from __future__ import annotations

import itertools
import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ....audit.claims.claim import Claim, PureDP
from ....audit.events.events import Apart, Event, Intervals, Outcomes
from ....audit.inference.boundary_test import Counts, strength_lower
from ....mechanisms import (
    DiscreteGaussianLaw,
    DiscreteGaussianMechanism,
    ExponentialMechanism,
    FiniteLaw,
    GaussianLaw,
    GaussianMechanism,
    GeometricLaw,
    GeometricMechanism,
    LaplaceLaw,
    LaplaceMechanism,
    RandomisedResponse,
    ScalarLaw,
    exact_epsilon,
)

Array = npt.NDArray[np.float64]

_ANGLES = np.linspace(0.0, math.pi / 2, 17)
_ERROR_SIZES = (0.5, 0.75, 1.0, 1.5)  # of the asymptotic bound that proposes events, in units of z
_REACH, _POINTS = 12.0, 8_001  # grid of half-lines: reach in scales, and number of points


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Mechanism on a pair, with a claim that holds there with equality."""

    name: str
    mechanism: Any
    x: Any
    y: Any
    claim: Claim

    def laws(self) -> tuple[ScalarLaw, ScalarLaw]:
        return self.mechanism.law(self.x), self.mechanism.law(self.y)


def subjects() -> list[Subject]:
    """Return the pairs for the false alarms and the tightness."""
    flat, one_up = (0.0,) * 50, (1.0,) + (-1.0,) * 49  # one candidate up and 49 down
    exponential = ExponentialMechanism(1.0)
    loss = exact_epsilon(exponential.law(flat), exponential.law(one_up))
    tight, rare, whole = GaussianMechanism(1.0, 0.05), GaussianMechanism(1.0, 1e-3), DiscreteGaussianMechanism(2.0, 1.0)
    return [
        Subject(name="laplace", mechanism=LaplaceMechanism(1.0), x=0.0, y=1.0, claim=PureDP(1.0)),
        Subject(name="geometric", mechanism=GeometricMechanism(1.0), x=0, y=1, claim=PureDP(1.0)),
        Subject(name="randomised-response", mechanism=RandomisedResponse(1.0), x=0, y=1, claim=PureDP(1.0)),
        Subject(name="gaussian-0.05", mechanism=tight, x=0.0, y=1.0, claim=tight.claim),
        Subject(name="gaussian-0.001", mechanism=rare, x=0.0, y=1.0, claim=rare.claim),
        Subject(name="discrete-gaussian", mechanism=whole, x=0, y=1, claim=whole.claim),
        Subject(name="exponential", mechanism=exponential, x=flat, y=one_up, claim=PureDP(loss)),
    ]


def probability(event: Event, law: ScalarLaw) -> float:
    """Return the probability of an event that an audit chose.

    The rounding of outputs to a grid is ignored: it moves an edge by half a step, 5e-7 scales.
    """
    match event:
        case Intervals(intervals):  # these laws have numbers only
            return min(1.0, sum(_between(law, low, high) for low, high in intervals))
        case Outcomes(values, others):
            known = [float(value) for value in values if isinstance(value, numbers.Real)]
            listed = float(np.exp(law.log_density(known)).sum()) if known else 0.0
            return max(0.0, 1.0 - listed) if others else min(1.0, listed)
        case Apart(event, other):
            return max(0.0, probability(event, law) - _shared(event, other, law))
        case _:
            raise TypeError(f"no exact probability for {event!r}")


def _shared(event: Event, other: Event, law: ScalarLaw) -> float:
    """Return the probability of an output in both events."""
    match event, other:
        case Outcomes(values, others=True), _:
            return probability(other, law) - _shared(Outcomes(values), other, law)
        case Outcomes(values), _:
            known = [value for value in values if isinstance(value, numbers.Real)]
            is_shared = other.contains(np.array(known, dtype=float))
            return probability(Outcomes(tuple(itertools.compress(known, is_shared))), law)
        case _, Outcomes():
            return _shared(other, event, law)
        case Intervals(first), Intervals(second):
            bounds = ((max(a, c), min(b, d)) for (a, b), (c, d) in itertools.product(first, second))
            return probability(Intervals(tuple((low, high) for low, high in bounds if low <= high)), law)
        case _:
            raise TypeError(f"no exact probability for {event!r} and {other!r}")


def _between(law: ScalarLaw, low: float, high: float) -> float:
    """Return Pr[low ≤ output ≤ high], from the smaller tails."""
    edges = np.array([math.nextafter(low, -math.inf), high])
    tails = law.cdf(edges) if law.cdf(edges[0]) < 0.5 else -law.sf(edges)
    return max(0.0, float(tails[1] - tails[0]))


@dataclass(frozen=True, slots=True)
class Rates:
    """Probabilities of nested events on the likelier side and on the other, and their complements, shape (events,)."""

    p: Array
    p_rest: Array
    q: Array
    q_rest: Array


def best_events(law_p: ScalarLaw, law_q: ScalarLaw) -> Rates:
    """Return all events {likelihood ratio ≥ t}, the best by Neyman and Pearson: half-lines or sets of outcomes."""
    if isinstance(law_p, FiniteLaw):
        p, q = np.exp(law_p.log_probabilities), np.exp(law_q.log_density(np.arange(len(law_p.log_probabilities))))
        with np.errstate(divide="ignore"):
            order = np.argsort(np.log(q) - np.log(p), kind="stable")
        p, q = p[order], q[order]
        after_p, after_q = (np.cumsum(side[::-1])[::-1][1:] for side in (p, q))
        return Rates(np.cumsum(p)[:-1], after_p, np.cumsum(q)[:-1], after_q)
    points = _points(law_p, law_q)
    below = law_p.cdf(points), law_p.sf(points), law_q.cdf(points), law_q.sf(points)
    above = below[1], below[0], below[3], below[2]
    return Rates(*(np.concatenate(sides) for sides in zip(below, above, strict=True)))


def _points(law_p: ScalarLaw, law_q: ScalarLaw) -> Array:
    """Return the ends of half-lines: every integer, or a fine grid that contains both locations."""
    match law_p, law_q:
        case (LaplaceLaw(a, scale), LaplaceLaw(b, _)) | (GaussianLaw(a, scale), GaussianLaw(b, _)):
            grid = scale * _REACH * np.linspace(-1.0, 1.0, _POINTS)
            return np.unique(np.concatenate([a + grid, b + grid]))
        case GeometricLaw(a, ratio), GeometricLaw(b, _):
            return _whole(a, b, -1.0 / math.log(ratio))
        case DiscreteGaussianLaw(a, sigma), DiscreteGaussianLaw(b, _):
            return _whole(a, b, sigma)
        case _:
            raise TypeError(f"no grid for {law_p!r}")


def _whole(a: int, b: int, scale: float) -> Array:
    reach = math.ceil(2 * _REACH * scale)
    return np.arange(min(a, b) - reach, max(a, b) + reach + 1, dtype=np.float64)


def oracle_bound(subject: Subject, runs: int, *, alpha: float) -> float:
    """Return the lower bound of the best event at its expected hits, with every run counted.

    The asymptotic form of the bound proposes events at several error sizes, and the exact test compares them.
    """
    law_x, law_y = subject.laws()
    best = 0.0
    for claim, law_p, law_q in ((subject.claim, law_x, law_y), (subject.claim.reversed(), law_y, law_x)):
        rates = best_events(law_p, law_q)
        proposed = {int(np.argmax(asymptotic_bounds(claim, rates, runs, alpha, size))) for size in _ERROR_SIZES}
        for i in proposed:
            best = max(best, expected_bound(claim, float(rates.p[i]), float(rates.q[i]), runs, runs, alpha=alpha))
    return best


def asymptotic_bounds(claim: Claim, rates: Rates, runs: int, alpha: float, size: float = 1.0) -> Array:
    """Return for each event the largest strength whose boundary avoids the normal ellipse around its rates, or −∞."""
    error = size * max(float(-ndtri(alpha)), 0.1) / (2.0 * math.sqrt(runs))  # a standard error of arcsin √p is 1/(2√n)
    p = np.arctan2(np.sqrt(rates.p), np.sqrt(rates.p_rest)) - error * np.sin(_ANGLES)[:, None]
    q = np.arctan2(np.sqrt(rates.q), np.sqrt(rates.q_rest)) + error * np.cos(_ANGLES)[:, None]
    p, q = np.maximum(p, 0.0), np.minimum(q, math.pi / 2)
    found = claim.strength_of(np.sin(p) ** 2, np.sin(q) ** 2, np.cos(p) ** 2, np.cos(q) ** 2).min(axis=0)
    return np.where(np.isnan(found), -math.inf, found)


def expected_bound(claim: Claim, p: float, q: float, runs_p: int, runs_q: int, *, alpha: float) -> float:
    """Return the bound of the exact test at the expected hits, rounded."""
    counts = Counts(hits_x=round(p * runs_p), runs_x=runs_p, hits_y=round(q * runs_q), runs_y=runs_q)
    return strength_lower(counts, claim, alpha=alpha)
