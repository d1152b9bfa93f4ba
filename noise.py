"""Noise: its distributions, and checks of samples against them.

NoiseDistribution   base of the distributions that `check_noise` tests
LaplaceNoise        Laplace noise
GaussianNoise       Gaussian noise
GeometricNoise      two-sided geometric noise
GumbelNoise         Gumbel noise
ExponentialNoise    exponential noise
Distribution        the distribution that a `noise_primitive` states for the replay
check_independence  whether the coordinates of an output are independent
check_slope         how log probabilities grow with a utility, ε/2 for the exponential mechanism
"""

from .audit.distribution_checks.check_independence import check_independence
from .audit.distribution_checks.check_slope import check_slope
from .audit.distribution_checks.noise_distributions import (
    ExponentialNoise,
    GaussianNoise,
    GeometricNoise,
    GumbelNoise,
    LaplaceNoise,
    NoiseDistribution,
)
from .audit.replay.distributions import Distribution

__all__ = [
    "NoiseDistribution",
    "LaplaceNoise",
    "GaussianNoise",
    "GeometricNoise",
    "GumbelNoise",
    "ExponentialNoise",
    "Distribution",
    "check_independence",
    "check_slope",
]
