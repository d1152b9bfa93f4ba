"""Probabilities of events under known laws, and the best possible event, by change of measure.

Outputs are drawn on x and on y in equal numbers. Weighted by its density over the mean of the two densities, every
output estimates probabilities on both datasets with a weight of at most 2. The probability of an event on one dataset
is therefore estimated from outputs on the other as well, even if the event never occurs on the first.
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
_THRESHOLDS = 400  # thresholds of the likelihood ratio that are compared by a formula
_COMPARED = 8  # thresholds with the best formula values, which are compared exactly
_LEAST_RUNS = 50  # outputs in an event and in its complement; rarer events are left out
_NEVER = 1e-12  # smaller probabilities are rounding errors
_SAME = 1e-9  # nats; losses that differ by less are equal up to rounding


@dataclass(frozen=True, slots=True)
class Probabilities:
    """Probabilities of an event: p on the likelier dataset and q on the other."""

    p: float
    q: float

    @classmethod
    def of(cls, on_x: float, on_y: float) -> Probabilities:
        """Return the probabilities in order, with rounding errors removed."""
        p, q = max(on_x, on_y), min(on_x, on_y)
        return cls(min(p, 1.0), q if q > _NEVER else 0.0)

    def expected_bound(self, runs: int, alpha: float) -> float:
        """Return the lower bound on ε at the expected hits of `runs` runs on each dataset."""
        hits = [round(runs * rate) for rate in (self.p, self.q)]
        return epsilon_lower(hits[0], runs, hits[1], runs, alpha=alpha)


def event_probabilities(mechanism: Any, x: Any, y: Any, event: Event, *, runs: int, seed: int) -> Probabilities:
    """Return the probabilities of an event or its complement, estimated from `runs` outputs on each dataset."""
    found = [Probabilities.of(*side.tolist()) for side in event_rates(mechanism, x, y, event, runs=runs, seed=seed)]
    return max(found, key=lambda one: one.p * (1 - one.p) - one.q * (1 - one.q))


def event_rates(mechanism: Any, x: Any, y: Any, event: Event, *, runs: int, seed: int) -> tuple[Array, Array]:
    """Return the probabilities of an event on x and on y, and those of its complement, each of shape (2,)."""
    inside, outside = np.zeros(2), np.zeros(2)
    for outputs, loss in _outputs(mechanism, x, y, runs, seed):
        weights, hit = np.array([expit(loss), expit(-loss)]), event.contains(outputs)
        inside += weights[:, hit].sum(axis=1)
        outside += weights[:, ~hit].sum(axis=1)
    # Divided by the runs, not by the sum of the weights: the error is zero where the ratio is constant.
    return inside / runs, outside / runs


def best_event(mechanism: Any, x: Any, y: Any, *, audit_runs: int, alpha: float, runs: int, seed: int) -> Probabilities:
    """Return the event {likelihood ratio ≥ t}, for x or for y, with the largest expected bound."""
    loss = np.concatenate([part for _, part in _outputs(mechanism, x, y, runs, seed)])
    found = [option for side in (loss, -loss) for option in _options(side, runs, audit_runs, alpha)]
    return max(found, key=lambda option: option.expected_bound(audit_runs, alpha))


def _options(loss: Array, runs: int, audit_runs: int, alpha: float) -> list[Probabilities]:
    """Return the most promising events with a large loss; likelier events are complements of such events."""
    loss = np.sort(loss)[::-1]
    p, q = (weights.cumsum() / runs for weights in (expit(loss), expit(-loss)))
    with np.errstate(invalid="ignore"):  # infinite losses are equal
        ends = np.flatnonzero(np.diff(loss) < -_SAME)  # outputs of equal ratio belong to the same event
    ends = ends[(ends >= _LEAST_RUNS) & (ends < len(loss) - _LEAST_RUNS)]
    ends = ends[p[ends] * (1 - p[ends]) >= q[ends] * (1 - q[ends])]
    if len(ends) == 0:  # both laws are equal
        return [Probabilities(0.5, 0.5)]
    wanted = np.geomspace(_LEAST_RUNS, len(loss), _THRESHOLDS)
    ends = ends[np.unique(np.minimum(np.searchsorted(ends, wanted), len(ends) - 1))]
    # Approximate bound: a normal limit for the log ratio, with half a hit in place of zero.
    spare = 0.5 / audit_runs
    error = np.sqrt((1 - p[ends]) / (p[ends] * audit_runs) + 1 / ((q[ends] + spare) * audit_runs))
    rough = np.log(p[ends] / (q[ends] + spare)) - 1.3 * error
    return [Probabilities.of(float(p[i]), float(q[i])) for i in ends[np.argsort(-rough)[:_COMPARED]]]


def _outputs(mechanism: Any, x: Any, y: Any, runs: int, seed: int) -> Iterator[tuple[Any, Array]]:
    """Yield blocks of outputs with their log-likelihood ratios of x against y, `runs` outputs on each dataset."""
    laws = mechanism.law(x), mechanism.law(y)
    rng = np.random.default_rng(seed)
    for dataset in (x, y):
        left = runs
        while left > 0:
            outputs = mechanism.sample(dataset, min(left, _BLOCK), rng)
            left -= len(outputs)
            yield outputs, log_ratio(*(law.log_density(outputs) for law in laws))


def log_ratio(on_x: Array, on_y: Array) -> Array:
    """Return the log-likelihood ratio; infinite where one density is zero."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(on_y), np.inf, np.where(np.isneginf(on_x), -np.inf, on_x - on_y))
