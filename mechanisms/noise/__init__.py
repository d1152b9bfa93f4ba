"""Mechanisms that add noise to a query's answer."""

from .gaussian import *
from .laplace import *

__all__ = [
    "LaplaceMechanism", "LaplaceByInverseCDF", "inverse_laplace_cdf", "open_uniform", "GeometricMechanism",
    "GaussianMechanism", "VectorGaussianMechanism", "DiscreteGaussianMechanism", "BinomialMechanism",
    "HistogramMechanism", "analytic_gaussian_scale", "classical_gaussian_scale", "gaussian_delta",
    "gaussian_loss_tail", "RareLeakLaplace", "EdgeCountMechanism", "DegreeHistogramMechanism",
    "GaussianVectorDistribution", "DiscreteGaussianDistribution", "BinomialDistribution",
    "LeakyLaplaceDistribution",
]  # fmt: skip
