"""What is measured of normal noise: the delta that it spends, its standard deviation, and one bit of its outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from ...audit.claims.pure_approx_gaussian import ApproxDP
from ...audit.events.outputs import Outputs
from ...audit.inference.binomial_tails import clopper_pearson
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import FiniteLaw
from ..cases.simulate import blocks, event_hits


@dataclass(frozen=True, slots=True)
class IsBelow:
    """Whether an output of the mechanism is at most the threshold: post-processing, so it keeps every claim."""

    mechanism: Any
    threshold: float

    def __str__(self) -> str:
        return f"{self.mechanism} <= {self.threshold:.4g}"

    def law(self, dataset: Any) -> FiniteLaw:
        """The exact law of 0, above the threshold, and 1."""
        law = self.mechanism.law(dataset)
        with np.errstate(divide="ignore"):
            return FiniteLaw((float(np.log(law.sf(self.threshold))), float(np.log(law.cdf(self.threshold)))))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        below: npt.NDArray[np.bool_] = self.mechanism.sample(dataset, size, rng) <= self.threshold
        return below


def loss_threshold(low: float, high: float, scale: float, epsilon: float) -> float:
    """Where the privacy loss of the answer `low` against `high` is epsilon under normal noise; it is more below."""
    return (low + high) / 2 - epsilon * scale**2 / (high - low)


def attained_delta(mechanism: Any, x: Any, y: Any, *, runs: int, alpha: float, seed: int) -> StatementResult:
    """Pr_x[S] − e^ε Pr_y[S] for the event S where the exact laws' privacy loss exceeds ε, against the claimed delta.

    No event has more (Neyman-Pearson), so a claim whose delta is attained is the best possible at its epsilon.
    """
    claim: ApproxDP = mechanism.claim
    law_x, law_y = mechanism.law(x), mechanism.law(y)

    def best_event(outputs: Outputs) -> Any:
        return law_x.log_density(outputs) - law_y.log_density(outputs) > claim.epsilon

    p, q = (
        int(event_hits(mechanism, dataset, best_event, runs, seed=seed, stream=stream)[0])
        for stream, dataset in enumerate((x, y))
    )
    (p_low, _), (p_high, _) = clopper_pearson(p, runs, alpha=alpha / 2)
    (q_low, _), (q_high, _) = clopper_pearson(q, runs, alpha=alpha / 2)
    factor = math.exp(claim.epsilon)
    return StatementResult(
        statement=f"the claimed delta is attained at epsilon {claim.epsilon:g}",
        quantity="delta",
        points=(
            Point(
                estimate=(p - factor * q) / runs,
                lower=p_low - factor * q_high,
                upper=p_high - factor * q_low,
                low=claim.delta,
                high=claim.delta,
            ),
        ),
        alpha=alpha,
        method="exact limits of both probabilities (Clopper-Pearson), half of alpha each",
        runs=runs,
        seed=seed,
        largest_width=claim.delta,
    )


def noise_scale(mechanism: Any, dataset: Any, stated: float, *, runs: int, alpha: float, seed: int) -> StatementResult:
    """The standard deviation of normal noise around the exact answer, against the stated one.

    The sum of squares over σ² has the chi-square law, so the limits are exact; that outputs are rounded to a grid of
    2⁻²⁰ σ changes the variance by less than 1e-13 of it.
    """
    answer = np.asarray(mechanism.law(dataset).location)
    total = math.fsum(
        float(np.square(np.asarray(outputs) - answer).sum())
        for outputs in blocks(mechanism, dataset, runs, seed=seed, stream=0)
    )
    freedom = runs * answer.size
    return StatementResult(
        statement="the noise has the calibrated standard deviation",
        quantity="standard deviation",
        points=(
            Point(
                estimate=math.sqrt(total / freedom),
                lower=math.sqrt(total / float(chi2.isf(alpha / 2, freedom))),
                upper=math.sqrt(total / float(chi2.ppf(alpha / 2, freedom))),
                low=stated,
                high=stated,
            ),
        ),
        alpha=alpha,
        method="exact limits of a normal law's variance (chi-square)",
        runs=runs,
        seed=seed,
        largest_width=stated / 10,
    )
