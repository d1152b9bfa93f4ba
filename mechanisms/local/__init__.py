"""Mechanisms of the local model, in which each person randomises their own value."""

from .frequency_oracles import *
from .randomised_response import *

__all__ = [
    "LocalGaussianMechanism", "Interval", "Ball", "RandomisedResponse", "NameAndShame", "RandomisedResponseFold",
    "UpAndDown", "UnaryEncoding", "ThresholdedHistogram", "LocalHashing", "SubsetSelection", "HadamardResponse",
    "MemoisedBits", "MemoisedResponse",
]  # fmt: skip
