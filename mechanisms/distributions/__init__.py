"""Exact distributions of outputs, and the exact privacy loss between two distributions."""

from .distributions import *
from .divergences import *
from .released_values import *

__all__ = [
    "Distribution", "ScalarDistribution", "LaplaceDistribution", "GaussianDistribution", "GeometricDistribution",
    "FiniteDistribution", "DiscreteDistribution", "ProductDistribution", "ChainDistribution", "RowDistribution",
    "SubsetDistribution", "ComparedValuesDistribution", "FreshValuesDistribution", "hockey_stick", "exact_delta",
    "exact_epsilon", "exact_renyi",
]  # fmt: skip
