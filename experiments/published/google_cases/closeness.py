"""Cases of the law of the noise.

Source: laplace_closeness_test_cases and gaussian_closeness_test_cases in proto/testing of google/differential-privacy.
The cases of both files that differ in one parameter from the first are written here by that parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .case import LN3, ClosenessCase

_ANSWERS = {
    "Small positive raw input": 1.0,
    "Large positive raw input": 1e6,
    "Very large positive raw input": 1e12,
    "Small negative raw input": -1.0,
    "Large negative raw input": -1e6,
    "Very large negative raw input": -1e12,
    "Fractional positive raw input": 6.48074069840786023096,
    "Fractional negative raw input": -125773.181179024284936,
}
# Name, epsilon, L₀ and L∞ sensitivity, tolerance, exponent of the granularity.
_LAPLACE = (
    ("Default parameters", LN3, 1, 1.0, 0.00065, -8),
    ("Low l_inf sensitivity", LN3, 1, 0.05, 0.00075, -12),
    ("Very low l_inf sensitivity", LN3, 1, 0.0005, 0.00075, -18),
    ("High l_inf sensitivity", LN3, 1, 10.0, 0.00075, -4),
    ("Very high l_inf sensitivity", LN3, 1, 1_000.0, 0.00075, 2),
    ("High l_0 sensitivity", LN3, 2, 1.0, 0.00075, -6),
    ("Very high l_0 sensitivity", LN3, 500, 1.0, 0.00075, 2),
    ("Small epsilon", 0.01, 1, 1.0, 0.00075, -1),
    ("Very small epsilon", 1e-6, 1, 1.0, 0.00065, 13),
    ("Large epsilon", 2 * LN3, 1, 1.0, 0.00075, -8),
    ("Very large epsilon", 5.0, 1, 1.0, 0.00065, -10),
)
# Name, epsilon, delta, L₀ and L∞ sensitivity, variance, tolerance, exponent of the granularity.
_DEFAULT_VARIANCE: Final = 11.73597717285156
_GAUSSIAN = (
    ("Default parameters", LN3, 1e-5, 1, 1.0, _DEFAULT_VARIANCE, 0.00065, -7),
    ("Low l_inf sensitivity", LN3, 1e-5, 1, 0.05, 0.029339942932129, 0.00075, -10),
    ("Very low l_inf sensitivity", LN3, 1e-5, 1, 0.0005, 0.000002933994293, 0.0016, -14),
    ("High l_inf sensitivity", LN3, 1e-5, 1, 2.0, 46.94390869140625, 0.00065, -6),
    ("Very high l_inf sensitivity", LN3, 1e-5, 1, 250.0, 733498.5733032227, 0.00055, 1),
    ("High l_0 sensitivity", LN3, 1e-5, 2, 1.0, 23.47195434570314, 0.00065, -6),
    ("Very high l_0 sensitivity", LN3, 1e-5, 1_000, 1.0, 11735.97717285156, 0.00055, -2),
    ("Small epsilon", 0.01, 1e-5, 1, 1.0, 59475.015625, 0.0007, 0),
    ("Very small epsilon", 1e-6, 1e-5, 1, 1.0, 1447650304.0, 0.005, 14),
    ("Large epsilon", 2 * LN3, 1e-5, 1, 1.0, 3.363498687744140, 0.00065, -8),
    ("Very large epsilon", 5.0, 1e-5, 1, 1.0, 0.795824289321899, 0.00065, -9),
    ("Small delta", LN3, 1e-6, 1, 1.0, 15.00049209594727, 0.00065, -6),
    ("Very small delta", LN3, 1e-10, 1, 1.0, 28.76478576660156, 0.00075, -6),
    ("Large delta", LN3, 1e-4, 1, 1.0, 8.605972290039062, 0.00055, -7),
    ("Very large delta", LN3, 1e-3, 1, 1.0, 5.668491363525391, 0.00065, -7),
)


def laplace_closeness_cases() -> Iterator[ClosenessCase]:
    """Yield the 19 cases of Laplace noise, whose variance is 2(L₀ L∞/ε)²."""
    settings = [(*setting, 0.0) for setting in _LAPLACE]
    settings += [(name, *_LAPLACE[0][1:], answer) for name, answer in _ANSWERS.items()]
    for name, epsilon, partitions, change, tolerance, exponent, answer in settings:
        yield ClosenessCase(
            file="Laplace closeness",
            name=name,
            epsilon=epsilon,
            partitions=partitions,
            change=change,
            answer=answer,
            variance=2 * (partitions * change / epsilon) ** 2,
            tolerance=tolerance,
            granularity=2.0**exponent,
        )


def gaussian_closeness_cases() -> Iterator[ClosenessCase]:
    """Yield the 23 cases of Gaussian noise."""
    settings = [(*setting, 0.0) for setting in _GAUSSIAN]
    settings += [(name, *_GAUSSIAN[0][1:], answer) for name, answer in _ANSWERS.items()]
    for name, epsilon, delta, partitions, change, variance, tolerance, exponent, answer in settings:
        yield ClosenessCase(
            file="Gaussian closeness",
            name=name,
            epsilon=epsilon,
            delta=delta,
            partitions=partitions,
            change=change,
            answer=answer,
            variance=variance,
            tolerance=tolerance,
            granularity=2.0**exponent,
        )
