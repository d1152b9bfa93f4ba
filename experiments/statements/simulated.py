"""Statements that need more than the counts of one event: blocks of outputs, probabilities, and Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP
from ...audit.errors import OptionError
from ...audit.events.outputs import Outputs
from ...audit.inference.binomial_tails import probability_limits
from ...audit.results.statement_result import Point, StatementResult
from ...audit.sampling.sampler import as_sampler
from ...mechanisms import FiniteDistribution

_BLOCK = 1 << 17


def blocks(mechanism: Any, dataset: Any, runs: int, *, seed: int, stream: int) -> Iterator[Outputs]:
    """Yield blocks with `runs` independent outputs in total; different streams are independent."""
    if runs < 1:
        raise OptionError(f"runs={runs!r} is not a number of runs; use 1 or more.", runs=runs)
    sampler = as_sampler(mechanism, None)
    for number, first in enumerate(range(0, runs, _BLOCK)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, number)))
        yield sampler.draw(dataset, min(_BLOCK, runs - first), rng)


def outcome_counts(
    mechanism: Any, dataset: Any, n_outcomes: int, runs: int, *, seed: int, stream: int = 0
) -> npt.NDArray[np.int64]:
    """Return how often each of the outcomes 0 … n_outcomes − 1 occurred, shape (n_outcomes,)."""
    total = np.zeros(n_outcomes, dtype=np.int64)
    for outputs in blocks(mechanism, dataset, runs, seed=seed, stream=stream):
        total += np.bincount(np.asarray(outputs, dtype=np.int64), minlength=n_outcomes)
    return total


def event_counts(
    mechanism: Any,
    dataset: Any,
    events: Callable[[Outputs], npt.NDArray[np.bool_]],
    runs: int,
    *,
    seed: int,
    stream: int = 0,
) -> npt.NDArray[np.int64]:
    """Return the counts of each event; `events` maps a block to booleans, shape (block,) or (block, n_events)."""
    total: Any = 0
    for outputs in blocks(mechanism, dataset, runs, seed=seed, stream=stream):
        total = total + events(outputs).sum(axis=0, dtype=np.int64)
    return np.atleast_1d(np.asarray(total, dtype=np.int64))


# Results of statements about probabilities, with exact Clopper-Pearson limits.


def proportion(
    counts: int,
    trials: int,
    alpha: float,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    unit: float = 1.0,
    at: str = "",
) -> Point:
    """Return `unit` times the share of counts with its limits; `low` and `high` are the stated range."""
    lower, upper = probability_limits(counts, trials, alpha=alpha)
    estimate = unit * counts / max(trials, 1)
    return Point(at=at, estimate=estimate, lower=unit * lower, upper=unit * upper, low=low, high=high)


def result_of(
    statement: str,
    quantity: str,
    points: Iterable[Point],
    method: str,
    run: tuple[int, float, int],
    largest_width: float = math.inf,
) -> StatementResult:
    """Return the result of a statement, whose run is (runs, alpha, seed)."""
    given: dict[str, Any] = dict(zip(("runs", "alpha", "seed"), run, strict=True))
    given |= {"points": tuple(points), "largest_width": largest_width}
    return StatementResult(statement=statement, quantity=quantity, method=method, **given)


EXACT_LIMITS: Final = "exact limits of a probability (Clopper-Pearson)"


def proportion_result(
    statement: str,
    quantity: str,
    stated: tuple[float, float],
    counts: int,
    run: tuple[int, float, int],
    largest_width: float,
    *,
    trials: int | None = None,
    method: str = EXACT_LIMITS,
) -> StatementResult:
    """Return the result for one probability, whose trials are the runs unless `trials` is given."""
    point = proportion(counts, run[0] if trials is None else trials, run[1], low=stated[0], high=stated[1])
    return result_of(statement, quantity, (point,), method, run, largest_width)


@dataclass(frozen=True, slots=True)
class IsBelow:
    """Report whether the output of a mechanism is at most the threshold: post-processing, which keeps every claim."""

    mechanism: Any
    threshold: float

    def __str__(self) -> str:
        return f"{self.mechanism} <= {self.threshold:.4g}"

    def distribution(self, dataset: Any) -> FiniteDistribution:
        """Return the exact distribution of the bit: 0 above the threshold, 1 up to it."""
        distribution = self.mechanism.distribution(dataset)
        with np.errstate(divide="ignore"):
            return FiniteDistribution(
                (float(np.log(distribution.sf(self.threshold))), float(np.log(distribution.cdf(self.threshold))))
            )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        below: npt.NDArray[np.bool_] = self.mechanism.sample(dataset, size, rng) <= self.threshold
        return below


def loss_threshold(low: float, high: float, scale: float, epsilon: float) -> float:
    """Return the output at which the privacy loss of the answer `low` against `high` is epsilon; it is larger below."""
    return (low + high) / 2 - epsilon * scale**2 / (high - low)


def attained_delta(mechanism: Any, x: Any, y: Any, *, runs: int, alpha: float, seed: int) -> StatementResult:
    """Check that Pr_x[S] − e^ε Pr_y[S] equals the claimed delta, where S is the event of a privacy loss above ε.

    No event has a larger difference (Neyman-Pearson), so an attained delta is the smallest possible at its epsilon.
    """
    claim: ApproxDP = mechanism.claim
    distribution_x, distribution_y = mechanism.distribution(x), mechanism.distribution(y)

    def best_event(outputs: Outputs) -> Any:
        return distribution_x.log_density(outputs) - distribution_y.log_density(outputs) > claim.epsilon

    p, q = (
        int(event_counts(mechanism, dataset, best_event, runs, seed=seed, stream=stream)[0])
        for stream, dataset in enumerate((x, y))
    )
    (p_low, p_high), (q_low, q_high) = (probability_limits(counts, runs, alpha=alpha / 2) for counts in (p, q))
    factor = math.exp(claim.epsilon)
    lower, upper = p_low - factor * q_high, p_high - factor * q_low
    points = [Point(estimate=(p - factor * q) / runs, lower=lower, upper=upper, low=claim.delta, high=claim.delta)]
    statement = f"The claimed delta is attained at epsilon {claim.epsilon:g}."
    method = "exact limits of both probabilities (Clopper-Pearson), half of alpha each"
    return result_of(statement, "delta", points, method, (runs, alpha, seed), claim.delta)


def noise_scale(mechanism: Any, dataset: Any, stated: float, *, runs: int, alpha: float, seed: int) -> StatementResult:
    """Check that the standard deviation of Gaussian noise around the exact answer equals the stated one.

    The limits are exact, because the sum of squares over σ² is chi-square distributed. Rounding to a grid of 2⁻²⁰ σ
    changes the variance by a relative error below 1e-13.
    """
    from scipy.stats import chi2  # takes long to import

    answer = np.asarray(mechanism.distribution(dataset).location)
    total = math.fsum(
        float(np.square(np.asarray(outputs) - answer).sum())
        for outputs in blocks(mechanism, dataset, runs, seed=seed, stream=0)
    )
    freedom = runs * answer.size
    lower, upper = (math.sqrt(total / float(tail(alpha / 2, freedom))) for tail in (chi2.isf, chi2.ppf))
    points = [Point(estimate=math.sqrt(total / freedom), lower=lower, upper=upper, low=stated, high=stated)]
    statement = "The noise has the calibrated standard deviation."
    method = "exact limits of a Gaussian variance (chi-square)"
    return result_of(statement, "standard deviation", points, method, (runs, alpha, seed), stated / 10)
