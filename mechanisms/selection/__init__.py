"""Mechanisms that select a candidate."""

from .exponential import ExponentialMechanism
from .noisy_max import ReportNoisyMax
from .permute_and_flip import PermuteAndFlip
from .posted_price_auction import PUMPKIN_BIDS, PostedPriceAuction, Revenue
from .sparse_vector import NoisyThreshold, SparseVector

__all__ = [
    "ExponentialMechanism",
    "ReportNoisyMax",
    "PermuteAndFlip",
    "PostedPriceAuction",
    "PUMPKIN_BIDS",
    "Revenue",
    "SparseVector",
    "NoisyThreshold",
]
