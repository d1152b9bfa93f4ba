"""The direction of a test, given by the dataset on which the event was likelier in the pilot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..claims.claim import Claim
from .counts import Counts

Direction = Literal["x", "y"]
"""The dataset on which an event is likelier."""


@dataclass(frozen=True, slots=True)
class Directed:
    """A claim and the counts of an event, both with the likelier dataset in place of x."""

    claim: Claim
    counts: Counts


def directed(claim: Claim, counts: Counts, likelier_on: Direction) -> Directed:
    """Return the claim and the counts in the direction of an event."""
    return Directed(claim, counts) if likelier_on == "x" else Directed(claim.reversed(), counts.swapped())
