"""Aggregations of rows by the published algorithms of Google's library of differential privacy."""

from .approximate_bounds import ApproximateBounds
from .bounded_moments import BoundedMoments, noisy_moments
from .noisy_answers import NoisyAnswers
from .tree_counts import noisy_tree_counts

__all__ = ["NoisyAnswers", "noisy_moments", "BoundedMoments", "noisy_tree_counts", "ApproximateBounds"]
