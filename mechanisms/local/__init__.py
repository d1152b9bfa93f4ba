"""Mechanisms of the local model, in which each person randomises their own value."""

from .local_gaussian import Ball, Interval, LocalGaussianMechanism
from .name_and_shame import NameAndShame
from .randomised_response import RandomisedResponse
from .repeated_response import RandomisedResponseFold, UpAndDown

__all__ = [
    "LocalGaussianMechanism",
    "Interval",
    "Ball",
    "RandomisedResponse",
    "NameAndShame",
    "RandomisedResponseFold",
    "UpAndDown",
]
