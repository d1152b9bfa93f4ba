"""Rows that are exposed more often than claimed."""

from __future__ import annotations

from dataclasses import dataclass

from ....audit.claims.claim import ApproxDP, check_number
from ...local.name_and_shame import NameAndShame
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class TwiceExposed(Twin):
    """Each row exposed with probability 2δ where δ is claimed: (0, 2δ)-DP.

    In practice, δ is taken for a constant of the program and spent on each of the two halves of a report. The bug shows
    where a row is replaced, and in the number of people exposed.
    """

    delta: float

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0, 0.5, "each row is exposed with twice this probability", closed=False)

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # a field elsewhere
        """0: the claim allows for exposure only."""
        return 0.0

    @property
    def runs_as(self) -> NameAndShame:
        return NameAndShame(2 * self.delta)

    @property
    def claim(self) -> ApproxDP:
        return NameAndShame(self.delta).claim
