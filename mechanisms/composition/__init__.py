"""Compositions of mechanisms, and group privacy."""

from .group_privacy import GroupPrivacy, GroupTightMechanism, group_delta
from .parallel_composition import IntervalOf, ParallelComposition
from .sequential_composition import AdaptiveComposition, SequentialComposition, advanced_composition, composed

__all__ = [
    "GroupTightMechanism",
    "GroupPrivacy",
    "group_delta",
    "SequentialComposition",
    "AdaptiveComposition",
    "composed",
    "advanced_composition",
    "ParallelComposition",
    "IntervalOf",
]
