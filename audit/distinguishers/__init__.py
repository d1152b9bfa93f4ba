"""Learning from pilot outputs which event tells two datasets apart."""

from .event_choice import Choice, choose_event
from .event_families import Family

__all__ = [
    "Choice",
    "Family",
    "choose_event",
]
