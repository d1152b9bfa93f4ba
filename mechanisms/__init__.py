"""Reference mechanisms, one family a file, each with its claim and its exact law."""

from .discrete_gaussian import DiscreteGaussianLaw, DiscreteGaussianMechanism
from .exponential import ExponentialMechanism
from .gaussian import GaussianMechanism, analytic_gaussian_scale, classical_gaussian_scale, gaussian_delta
from .geometric import GeometricMechanism
from .laplace import LaplaceMechanism
from .laws import (
    FiniteLaw,
    GaussianLaw,
    GeometricLaw,
    LaplaceLaw,
    Law,
    exact_delta,
    exact_epsilon,
    hockey_stick,
)
from .noisy_max import ReportNoisyMax
from .randomised_response import RandomisedResponse

__all__ = [
    "LaplaceMechanism",
    "GeometricMechanism",
    "GaussianMechanism",
    "DiscreteGaussianMechanism",
    "analytic_gaussian_scale",
    "classical_gaussian_scale",
    "gaussian_delta",
    "RandomisedResponse",
    "ExponentialMechanism",
    "ReportNoisyMax",
    "Law",
    "LaplaceLaw",
    "GaussianLaw",
    "GeometricLaw",
    "DiscreteGaussianLaw",
    "FiniteLaw",
    "hockey_stick",
    "exact_delta",
    "exact_epsilon",
]
