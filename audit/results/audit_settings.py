"""The settings of an audit, known before any output is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from ..claims.claim import Claim
from ..options import Bits
from ..sampling.provenance import Provenance
from .audit_result import Pair

_CELL_SHARE = 0.1  # of alpha, for the cells if they are counted; the event test has the rest


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

    def event_alpha(self, *, has_cells: bool) -> float:
        """Error probability of the event test."""
        return self.alpha * (1 - _CELL_SHARE) if has_cells else self.alpha
