"""Generators of synthetic tables."""

from .noisy_bins import NoisyBins
from .noisy_marginals import NoisyMarginals

__all__ = ["NoisyBins", "NoisyMarginals"]
