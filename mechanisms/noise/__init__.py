"""Mechanisms that add noise to a query's answer."""

from .binomial import BinomialLaw, BinomialMechanism
from .discrete_gaussian import DiscreteGaussianLaw, DiscreteGaussianMechanism
from .gaussian import (
    GaussianMechanism,
    analytic_gaussian_scale,
    classical_gaussian_scale,
    gaussian_delta,
    gaussian_loss_tail,
)
from .gaussian_vector import GaussianVectorLaw, VectorGaussianMechanism
from .geometric import GeometricMechanism
from .graph_statistics import DegreeHistogramMechanism, EdgeCountMechanism
from .histogram import HistogramMechanism
from .inverse_cdf import LaplaceByInverseCDF, inverse_laplace_cdf, open_uniform
from .laplace import LaplaceMechanism
from .rare_leak import LeakyLaplaceLaw, RareLeakLaplace

__all__ = [
    "LaplaceMechanism",
    "LaplaceByInverseCDF",
    "inverse_laplace_cdf",
    "open_uniform",
    "GeometricMechanism",
    "GaussianMechanism",
    "VectorGaussianMechanism",
    "DiscreteGaussianMechanism",
    "BinomialMechanism",
    "HistogramMechanism",
    "analytic_gaussian_scale",
    "classical_gaussian_scale",
    "gaussian_delta",
    "gaussian_loss_tail",
    "RareLeakLaplace",
    "EdgeCountMechanism",
    "DegreeHistogramMechanism",
    "GaussianVectorLaw",
    "DiscreteGaussianLaw",
    "BinomialLaw",
    "LeakyLaplaceLaw",
]
