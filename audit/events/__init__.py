"""Outputs, the scores computed from them, and the events and partitions that scores define."""

from .events import Event, Intervals
from .outputs import Outputs, Raised
from .partitions import Partition
from .scores import Score

__all__ = [
    "Event",
    "Intervals",
    "Outputs",
    "Partition",
    "Raised",
    "Score",
]
