"""Statements about Laplace noise: the distance of its distribution function from the correct one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import LaplaceMechanism, ScalarLaw
from ...mechanisms.noise_samplers import grid_step
from ..cases.simulate import blocks


@dataclass(frozen=True, slots=True)
class AtEveryDistance:
    """Make the claim for neighbours at every distance."""

    claim: Claim

    def __call__(self, distance: float) -> Claim:
        return self.claim


def exact_distance(law: ScalarLaw, other: ScalarLaw, low: float, high: float) -> float:
    """Return the largest distance of two distribution functions, on both sides of 10,001 points and at infinity."""
    points = np.linspace(low, high, 10_001)
    points = np.concatenate([points, np.nextafter(points, -np.inf), [np.finfo(float).max]])
    return float(np.abs(law.cdf(points) - other.cdf(points)).max())


def cdf_distance(
    mechanism: Any, right: LaplaceMechanism, dataset: Any, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that the outputs have the distribution function of the mechanism `right`.

    With probability 1 − alpha the empirical distribution function is everywhere within √(ln(2/alpha)/(2 runs)) of the
    true one (Dvoretzky-Kiefer-Wolfowitz with Massart's constant). This holds for every law, including jumps and NaN,
    which counts as above every number. Rounding to the grid, by at most half a step, changes the function by at most
    its largest slope times half a step.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality.
    """
    law = right.law(dataset)
    outputs = np.concatenate(
        [np.asarray(part, dtype=np.float64) for part in blocks(mechanism, dataset, runs, seed=seed, stream=0)]
    )
    outputs[np.isnan(outputs)] = np.inf
    outputs.sort()
    expected = law.cdf(outputs)
    ranks = np.arange(runs) / runs
    observed = float(max((ranks + 1 / runs - expected).max(), (expected - ranks).max()))
    radius = math.sqrt(math.log(2 / alpha) / (2 * runs))
    lower, rounding = max(0.0, observed - radius), grid_step(right.scale) / (4 * right.scale)
    return StatementResult(
        statement="The outputs have the Laplace distribution function.",
        quantity="largest distance of the distribution functions",
        points=(Point(estimate=observed, lower=lower, upper=observed + radius, low=0.0, high=rounding),),
        alpha=alpha,
        method="Dvoretzky-Kiefer-Wolfowitz with Massart's constant",
        runs=runs,
        seed=seed,
        largest_width=0.02,
    )
