"""Exact laws of outputs, and the exact privacy loss between two laws."""

from .divergences import Law, ScalarLaw, exact_delta, exact_epsilon, hockey_stick
from .laws import (
    ChainLaw,
    DiscreteLaw,
    FiniteLaw,
    GaussianLaw,
    GeometricLaw,
    LaplaceLaw,
    ProductLaw,
    RowLaw,
    SubsetLaw,
    TranscriptLaw,
    exact_renyi,
)
from .released_values import ComparedValuesLaw, FreshValuesLaw

__all__ = [
    "Law",
    "ScalarLaw",
    "LaplaceLaw",
    "GaussianLaw",
    "GeometricLaw",
    "FiniteLaw",
    "DiscreteLaw",
    "ProductLaw",
    "ChainLaw",
    "TranscriptLaw",
    "RowLaw",
    "SubsetLaw",
    "ComparedValuesLaw",
    "FreshValuesLaw",
    "hockey_stick",
    "exact_delta",
    "exact_epsilon",
    "exact_renyi",
]
