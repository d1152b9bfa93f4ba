"""The search for the pair of datasets on which a mechanism leaks most."""

from .find_worst_pair import WorstPair

__all__ = [
    "WorstPair",
]
