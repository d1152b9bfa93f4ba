"""The direction in which a claim is tested: from the dataset on which the event was likelier in the pilot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..claims.claim import Claim
from .counts import Counts

Direction = Literal["x", "y"]
"""The dataset on which an event is likelier."""


@dataclass(frozen=True, slots=True)
class Directed:
    """A claim and the counts of an event, both with the likelier dataset first.

    Attributes
    ----------
    claim : Claim
        That bounds the event's probability on the likelier dataset by the one on the other.
    counts : Counts
        With the likelier dataset in place of x.
    """

    claim: Claim
    counts: Counts


def directed(claim: Claim, counts: Counts, likelier_on: Direction) -> Directed:
    """A claim and counts on x and y in the direction of an event."""
    return Directed(claim, counts) if likelier_on == "x" else Directed(claim.reversed(), counts.swapped())
