"""All cases, and what their tests are designed to reject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .case import Case, ClosenessCase
from .closeness import gaussian_closeness_cases, laplace_closeness_cases
from .counts_and_sums import count_cases, sum_cases
from .means_and_deviations import deviation_cases, mean_cases
from .quantiles_and_bounds import bounds_cases, quantile_cases

REJECTED: Final = {
    "count": "distance 1.175 times the sensitivity",
    "bounded sum": "distance 1.185 times the sensitivity",
    "long bounded sum": "distance 1.185 times the sensitivity",
    "bounded mean": "distance 1.375 times the sensitivity",
    "standard deviation": "distance 2 times the sensitivity",
    "quantiles": "1.05 ε",
    "approximate bounds": "1.01 ε",
    "Laplace closeness": "variance 1.0625 times that of the law",
    "Gaussian closeness": "variance 1.0625 times that of the law",
}
"""Smallest fault that one vote of a file's tests is designed to reject, with probability about .9; the files also name
larger failure probabilities, shifts and other laws."""


def dp_cases() -> Iterator[Case]:
    """Yield the cases of the aggregations, file by file."""
    yield from count_cases()
    yield from sum_cases(whole=False)
    yield from sum_cases(whole=True)
    yield from mean_cases()
    yield from deviation_cases()
    yield from quantile_cases()
    yield from bounds_cases()


def closeness_cases() -> Iterator[ClosenessCase]:
    """Yield the cases of the law of the noise."""
    yield from laplace_closeness_cases()
    yield from gaussian_closeness_cases()
