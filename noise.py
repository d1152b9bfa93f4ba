"""Noise: its distributions, and checks of samples against them.

NoiseLaw            base of the distributions that `check_noise` tests
LaplaceNoise        Laplace noise
GaussianNoise       Gaussian noise
GeometricNoise      two-sided geometric noise
GumbelNoise         Gumbel noise
ExponentialNoise    exponential noise
Law                 the distribution that a `noise_primitive` states for the replay
check_independence  whether the coordinates of an output are independent
check_slope         how log probabilities grow with a utility, ε/2 for the exponential mechanism
"""

from .audit.distribution_checks.check_independence import check_independence
from .audit.distribution_checks.check_slope import check_slope
from .audit.distribution_checks.noise_laws import (
    ExponentialNoise,
    GaussianNoise,
    GeometricNoise,
    GumbelNoise,
    LaplaceNoise,
    NoiseLaw,
)
from .audit.replay.laws import Law

__all__ = [
    "NoiseLaw",
    "LaplaceNoise",
    "GaussianNoise",
    "GeometricNoise",
    "GumbelNoise",
    "ExponentialNoise",
    "Law",
    "check_independence",
    "check_slope",
]
