"""Statements about Gaussian noise: its delta, its standard deviation, and one bit of its outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP
from ...audit.events.outputs import Outputs
from ...audit.inference.binomial_tails import probability_limits
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import FiniteDistribution
from ..cases.simulate import blocks, event_counts


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
    return StatementResult(
        statement=f"The claimed delta is attained at epsilon {claim.epsilon:g}.",
        quantity="delta",
        points=(Point(estimate=(p - factor * q) / runs, lower=lower, upper=upper, low=claim.delta, high=claim.delta),),
        alpha=alpha,
        method="exact limits of both probabilities (Clopper-Pearson), half of alpha each",
        runs=runs,
        seed=seed,
        largest_width=claim.delta,
    )


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
    return StatementResult(
        statement="The noise has the calibrated standard deviation.",
        quantity="standard deviation",
        points=(Point(estimate=math.sqrt(total / freedom), lower=lower, upper=upper, low=stated, high=stated),),
        alpha=alpha,
        method="exact limits of a Gaussian variance (chi-square)",
        runs=runs,
        seed=seed,
        largest_width=stated / 10,
    )
