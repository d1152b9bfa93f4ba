"""Mechanisms of the local model, in which each person randomises their own value."""

from .frequency_oracles import (
    HadamardResponse,
    LocalHashing,
    MemoisedBits,
    MemoisedResponse,
    SubsetSelection,
    ThresholdedHistogram,
    UnaryEncoding,
)
from .randomised_response import (
    Ball,
    Interval,
    LocalGaussianMechanism,
    NameAndShame,
    RandomisedResponse,
    RandomisedResponseFold,
    UpAndDown,
)

__all__ = [
    "LocalGaussianMechanism",
    "Interval",
    "Ball",
    "RandomisedResponse",
    "NameAndShame",
    "RandomisedResponseFold",
    "UpAndDown",
    "UnaryEncoding",
    "ThresholdedHistogram",
    "LocalHashing",
    "SubsetSelection",
    "HadamardResponse",
    "MemoisedBits",
    "MemoisedResponse",
]
