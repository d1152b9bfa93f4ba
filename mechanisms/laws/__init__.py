"""Exact laws of outputs, and the exact privacy loss between two laws."""

from .chain_law import ChainLaw
from .discrete_law import DiscreteLaw
from .divergences import Law, ScalarLaw, exact_delta, exact_epsilon, hockey_stick
from .laws import FiniteLaw, GaussianLaw, GeometricLaw, LaplaceLaw
from .product import ProductLaw
from .released_values import ComparedValuesLaw, FreshValuesLaw
from .renyi import exact_renyi
from .row_law import RowLaw
from .subset_law import SubsetLaw
from .transcripts import TranscriptLaw

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
