"""Exact laws of outputs, and the exact privacy loss between two laws."""

from .divergences import *
from .laws import *
from .released_values import *

__all__ = [
    "Law", "ScalarLaw", "LaplaceLaw", "GaussianLaw", "GeometricLaw", "FiniteLaw", "DiscreteLaw", "ProductLaw",
    "ChainLaw", "RowLaw", "SubsetLaw", "ComparedValuesLaw", "FreshValuesLaw", "hockey_stick",
    "exact_delta", "exact_epsilon", "exact_renyi",
]  # fmt: skip
