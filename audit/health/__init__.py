"""Checks that the runs are independent and that the datasets stay as they were."""

from .dataset_checks import Snapshot, take_snapshot
from .findings import Finding, HealthCheck

__all__ = [
    "Finding",
    "HealthCheck",
    "Snapshot",
    "take_snapshot",
]
