"""Mechanisms of the local model, in which each person randomises their own value."""

from .frequency_oracles import HadamardResponse, LocalHashing, SubsetSelection
from .local_gaussian import Ball, Interval, LocalGaussianMechanism
from .memoised_reports import MemoisedBits, MemoisedResponse
from .name_and_shame import NameAndShame
from .randomised_response import RandomisedResponse
from .repeated_response import RandomisedResponseFold, UpAndDown
from .unary_encoding import ThresholdedHistogram, UnaryEncoding

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
