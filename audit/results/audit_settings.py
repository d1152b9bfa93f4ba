"""The settings of an audit, known before any output is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from ..claims.claim import Claim
from ..options import Bits
from ..sampling.provenance import Provenance
from .audit_result import Pair

# Shares of alpha for the cells and for the tests of single outcomes, if they are counted; the event test has the rest.
_CELL_SHARE, _OUTCOME_SHARE = 0.1, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that do not depend on where the outputs come from."""

    claim: Claim
    claim_source: str
    pair: Pair
    alpha: float
    resolution: float | None
    power: float
    name: str
    provenance: Provenance | None
    seed: int
    bits: Bits

    @property
    def cell_alpha(self) -> float:
        """Error probability of the cell intervals, if cells are counted."""
        return _CELL_SHARE * self.alpha

    @property
    def outcome_alpha(self) -> float:
        """Error probability of the tests of single outcomes together, if they are counted."""
        return _OUTCOME_SHARE * self.alpha

    def event_alpha(self, *, has_cells: bool, has_outcomes: bool) -> float:
        """Error probability of the event test."""
        return self.alpha * (1 - _CELL_SHARE * has_cells - _OUTCOME_SHARE * has_outcomes)
