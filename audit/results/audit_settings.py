"""The settings of an audit, known before any output is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from ..claims.claim import Claim
from ..inference.joint_test import LEAST_ALPHA, check_test_alpha
from ..options import Bits
from ..sampling.provenance import Provenance
from .audit_result import Pair

# Shares of alpha for the cells and for the net of plain events, if they are counted; the event test has the rest.
_CELL_SHARE, _NET_SHARE = 0.1, 0.05
_SMALLER_SHARE = 0.1  # of event and divergence test together, for the one that shows less in the pilot
RESERVE_SHARE = 0.05
"""Share of the event test's alpha for each direction alone, half of it for either, and for a bold event."""
FINAL_SHARE = 0.5
"""Share of alpha for the final test of a sequential audit; the bets have the rest."""


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

    def check_shares(self, share: float = 1.0, cells: int = 0) -> None:
        """Refuse an alpha of which the exact test has too small a part, before the first run."""
        part = self.event_alpha(share, has_cells=cells > 0, has_net=False)
        if self.claim.divergence_slopes:
            part -= self.divergence_alpha(part, show_more=False)
        check_test_alpha(self.alpha, part / self.alpha)

    @property
    def cell_alpha(self) -> float:
        """Error probability of the cell intervals, if cells are counted."""
        return _CELL_SHARE * self.alpha

    def net_alpha(self, share: float = 1.0) -> float:
        """Error probability of the tests of the net, where it is counted, in a `share` of alpha."""
        return _NET_SHARE * share * self.alpha

    def event_alpha(self, share: float = 1.0, *, has_cells: bool = False, has_net: bool) -> float:
        """Error probability of the event test and, if there is one, the divergence test in a `share` of alpha."""
        return share * self.alpha * (1 - _CELL_SHARE * has_cells - _NET_SHARE * has_net)

    def divergence_alpha(self, alpha: float, *, show_more: bool) -> float:
        """Error probability of the divergence test, of the `alpha` that it has together with the event test.

        Nine tenths if the pilot's bins show more than its event, unless too little would be left for an exact test.
        """
        is_large = show_more and _SMALLER_SHARE * alpha > LEAST_ALPHA
        return alpha * (1 - _SMALLER_SHARE if is_large else _SMALLER_SHARE)

    def bet_alpha(self, *, has_final: bool) -> float:
        """Error probability of the bets of a sequential audit."""
        return self.alpha * (1 - FINAL_SHARE) if has_final else self.alpha
