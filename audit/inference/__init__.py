"""Tests and confidence bounds from integer counts and an error probability alone."""

from .betting_test import JointCounts, Wealth
from .counts import Counts
from .multiplicity import Ledger, holm
from .power import resolution

__all__ = [
    "Counts",
    "JointCounts",
    "Ledger",
    "Wealth",
    "holm",
    "resolution",
]
