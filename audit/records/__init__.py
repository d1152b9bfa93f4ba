"""Results as files: suites, their JSON format and its schema, and comparison with a baseline."""

from .json_codec import load, save
from .suite import Entry, Suite

__all__ = [
    "Entry",
    "Suite",
    "save",
    "load",
]
