"""Rows that are exposed more often than is said."""

from __future__ import annotations

from dataclasses import dataclass

from ....audit.claims.claim import check_number
from ....audit.claims.pure_approx_gaussian import ApproxDP
from ...local.name_and_shame import NameAndShame
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class TwiceExposed(Twin):
    """Exposes each row with probability 2·delta, said to be delta: (0, 2·delta)-DP.

    In practice delta is taken for a whole report of two halves, and spent on each. Shows where a row is replaced, and
    in the number of people exposed.
    """

    delta: float

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0, 0.5, "each row is exposed with twice this probability", closed=False)

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # a field elsewhere
        """0: exposure is all that the claim allows for."""
        return 0.0

    @property
    def runs_as(self) -> NameAndShame:
        return NameAndShame(2 * self.delta)

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(0.0, self.delta)

    @property
    def truth(self) -> ApproxDP:
        return ApproxDP(0.0, 2 * self.delta)
