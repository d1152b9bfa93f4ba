"""Exact probabilities of events under known laws, and the best event there is, by change of measure.

Outputs are drawn on x and on y in equal numbers. Weighed by their densities over the mean of the two, every output says
something of both datasets with a weight of at most 2: so the probability of an event on one dataset is had from outputs
on the other, where it may never be hit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ....audit.events.events import Event
from ....audit.procedures.epsilon_lower import epsilon_lower

Array = npt.NDArray[np.float64]

_BLOCK = 100_000
_THRESHOLDS = 400  # of the likelihood ratio that are compared by a formula, and the best few of them exactly
_COMPARED = 8
_LEAST_RUNS = 50  # that estimate an event's probabilities: rarer ones, and rarer complements, are not looked at
_NEVER = 1e-12  # a probability that is rounding
_SAME = 1e-9  # nats, between losses that differ by rounding


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Of an event on the likelier dataset, p, and on the other, q."""

    p: float
    q: float

    @classmethod
    def of(cls, on_x: float, on_y: float) -> Probabilities:
        """Of an event with these probabilities, or nearly these."""
        p, q = max(on_x, on_y), min(on_x, on_y)
        return cls(min(p, 1.0), q if q > _NEVER else 0.0)

    def expected_bound(self, runs: int, alpha: float) -> float:
        """The lower bound on epsilon when the hits in `runs` runs on each dataset are as expected."""
        hits = [round(runs * rate) for rate in (self.p, self.q)]
        return epsilon_lower(hits[0], runs, hits[1], runs, alpha=alpha)


def event_probabilities(mechanism: Any, x: Any, y: Any, event: Event, *, runs: int, seed: int) -> Probabilities:
    """An event's probabilities, the likelier dataset's first, from `runs` outputs on each dataset."""
    inside, outside = np.zeros(2), np.zeros(2)
    for outputs, loss in _outputs(mechanism, x, y, runs, seed):
        weights, hit = np.array([expit(loss), expit(-loss)]), event.contains(outputs)
        inside += weights[:, hit].sum(axis=1)
        outside += weights[:, ~hit].sum(axis=1)
    # Sums over the runs, not over all weights: where the ratio is constant its error is nil.
    found = [Probabilities.of(*(side / runs).tolist()) for side in (inside, outside)]
    return max(found, key=lambda one: one.p * (1 - one.p) - one.q * (1 - one.q))


def best_event(mechanism: Any, x: Any, y: Any, *, audit_runs: int, alpha: float, runs: int, seed: int) -> Probabilities:
    """Of all events {likelihood ratio ≥ t}, for x and for y, the one with the largest bound to be expected."""
    loss = np.concatenate([part for _, part in _outputs(mechanism, x, y, runs, seed)])
    found = [option for side in (loss, -loss) for option in _options(side, runs, audit_runs, alpha)]
    return max(found, key=lambda option: option.expected_bound(audit_runs, alpha))


def _options(loss: Array, runs: int, audit_runs: int, alpha: float) -> list[Probabilities]:
    """The events with a large loss that look best; the likelier ones are complements of those of the other side."""
    loss = np.sort(loss)[::-1]
    p, q = (weights.cumsum() / runs for weights in (expit(loss), expit(-loss)))
    with np.errstate(invalid="ignore"):  # infinite losses are equal as well
        ends = np.flatnonzero(np.diff(loss) < -_SAME)  # equal ratios belong to one event
    ends = ends[(ends >= _LEAST_RUNS) & (ends < len(loss) - _LEAST_RUNS)]
    ends = ends[p[ends] * (1 - p[ends]) >= q[ends] * (1 - q[ends])]
    if len(ends) == 0:  # the two laws are one
        return [Probabilities(0.5, 0.5)]
    wanted = np.geomspace(_LEAST_RUNS, len(loss), _THRESHOLDS)
    ends = ends[np.unique(np.minimum(np.searchsorted(ends, wanted), len(ends) - 1))]
    # Roughly: a normal limit for the ratio, half a hit for none.
    spare = 0.5 / audit_runs
    error = np.sqrt((1 - p[ends]) / (p[ends] * audit_runs) + 1 / ((q[ends] + spare) * audit_runs))
    rough = np.log(p[ends] / (q[ends] + spare)) - 1.3 * error
    return [Probabilities.of(float(p[i]), float(q[i])) for i in ends[np.argsort(-rough)[:_COMPARED]]]


def _outputs(mechanism: Any, x: Any, y: Any, runs: int, seed: int) -> Iterator[tuple[Any, Array]]:
    """Blocks of outputs with their log-likelihood ratio of x against y, `runs` on each dataset."""
    laws = mechanism.law(x), mechanism.law(y)
    rng = np.random.default_rng(seed)
    for dataset in (x, y):
        left = runs
        while left > 0:
            outputs = mechanism.sample(dataset, min(left, _BLOCK), rng)
            left -= len(outputs)
            yield outputs, log_ratio(*(law.log_density(outputs) for law in laws))


def log_ratio(on_x: Array, on_y: Array) -> Array:
    """The log-likelihood ratio; infinite where one of the two cannot be."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(on_y), np.inf, np.where(np.isneginf(on_x), -np.inf, on_x - on_y))
