"""A ladder of insufficient noise: counts, sums and means with a known share of the noise that their claims take.

Google's stochastic tester of differential privacy was shown to work on mechanisms with 50% to 99% of the noise.

References
----------
Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson (2020), Differentially private SQL with bounded user
contribution (the stochastic tester).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove
from ...audit.datasets.domains import Rows
from ...mechanisms import GaussianMechanism, LaplaceMechanism, exact_epsilon
from .bounded_mean import BoundedMean
from .entry import Entry
from .noisy_quotients import rows_as_numbers

EPSILON: Final = 1.0
DELTA: Final = 0.01
"""Of the Gaussian claims."""
RATIOS: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Advertised over implemented epsilon: the share of the noise that is added."""
LOWER: Final = -1.0
UPPER: Final = 1.0

_SIZES: Final = (*range(1, 11), 12, 14, 17, 20, 25, 30, 40, 60, 80, 100, 120)
_SOUND_SIZE: Final = 5


@dataclass(frozen=True, slots=True)
class BoundedSum:
    """The query that adds up the rows, each clipped to [lower, upper]."""

    lower: float = LOWER
    upper: float = UPPER

    def __call__(self, dataset: Any) -> float:
        return float(np.clip(rows_as_numbers(dataset), self.lower, self.upper).sum())


def entries() -> list[Entry]:
    """The ladder, from half of the noise to all of it, for each of five mechanisms."""
    return [make(ratio) for make in (_count, _sum, _mean, _gaussian_count, _gaussian_sum) for ratio in RATIOS]


def _count(ratio: float) -> Entry:
    return _entry("count", LaplaceMechanism(EPSILON / ratio, query=len), ratio)


def _sum(ratio: float) -> Entry:
    return _entry("sum", LaplaceMechanism(EPSILON / ratio, max(-LOWER, UPPER), BoundedSum()), ratio)


def _gaussian_count(ratio: float) -> Entry:
    return _entry("Gaussian count", GaussianMechanism(EPSILON / ratio, DELTA, query=len), ratio)


def _gaussian_sum(ratio: float) -> Entry:
    mechanism = GaussianMechanism(EPSILON / ratio, DELTA, max(-LOWER, UPPER), query=BoundedSum())
    return _entry("Gaussian sum", mechanism, ratio)


def _mean(ratio: float) -> Entry:
    """A row at the lower bound is added, and the event is a mean at the upper one.

    Its loss is below the implemented epsilon E, E − ln(1 + E/(3 + (n − 1)E)) with n rows whose sum is 1 at most: near E
    for many rows, where the event is rare. So the number of rows is the one where the excess over the claim stands out
    most from the noise of the hits.
    """
    mechanism = BoundedMean(EPSILON / ratio, LOWER, UPPER)

    def pair(n_rows: int) -> tuple[list[float], list[float]]:
        x = ([UPPER, LOWER] * n_rows)[:n_rows]
        return x, [*x, LOWER]

    def loss(n_rows: int) -> tuple[float, float]:
        """With the log-probability of the event on y."""
        log_x, log_y = (float(mechanism.law(rows).log_density(UPPER)) for rows in pair(n_rows))
        return log_x - log_y, log_y

    def excess_in_deviations(n_rows: int) -> float:
        exact, log_y = loss(n_rows)
        return (exact - EPSILON) * math.exp(log_y / 2)

    n_rows = max(_SIZES, key=excess_in_deviations) if ratio < 1 else _SOUND_SIZE
    x, y = pair(n_rows)
    return _entry("mean", mechanism, ratio, x, y, loss(n_rows)[0])


def _entry(
    name: str,
    mechanism: LaplaceMechanism | GaussianMechanism | BoundedMean,
    ratio: float,
    x: Any = (UPPER, UPPER),
    y: Any = (UPPER,),
    exact: float | None = None,
) -> Entry:
    is_gaussian = isinstance(mechanism, GaussianMechanism)
    if exact is None:
        exact = exact_epsilon(mechanism.law(x), mechanism.law(y), DELTA if is_gaussian else 0.0)
    claim = ApproxDP(EPSILON, DELTA) if is_gaussian else PureDP(EPSILON)
    noise = "all of the noise" if ratio == 1 else f"{ratio:.0%} of the noise"
    return Entry(
        name=f"{name} {ratio:.2f}",
        mechanism=mechanism,
        claim=claim,
        is_broken=exact > EPSILON * (1 + 1e-9),
        adjacency=AddRemove(),
        domain=Rows(low=LOWER, high=UPPER, most=max(5, len(x), len(y))),
        x=list(x),
        y=list(y),
        exact=exact,
        note=f"{noise}; exact at the claimed delta" if is_gaussian else noise,
    )
