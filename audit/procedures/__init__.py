"""The audits themselves, one module for each function that users call, and what they share."""

from .check_equivalence import assert_same_distribution, check_same_distribution

__all__ = [
    "check_same_distribution",
    "assert_same_distribution",
]
