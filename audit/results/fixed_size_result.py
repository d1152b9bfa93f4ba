"""The result of an audit of fixed size."""

from __future__ import annotations

from dataclasses import dataclass

from .audit_result import AuditResult
from .cell_result import CellCounts


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FixedSizeResult(AuditResult):
    """Result of an audit whose number of runs was fixed before: the event is tested once, on the main runs.

    The bound and the p-value are valid for any number of runs. The counts are those of the main runs: event and
    direction were chosen on the pilot, so the test needs no correction for that choice. If outcomes recur, a tenth of
    alpha tests each of them alone. Where such a test refutes the claim and gives the larger bound, its outcome is the
    result's event, and bound and p-value are corrected for the number of outcomes.

    Attributes
    ----------
    cells : CellCounts, optional
        Main runs in cells of outputs, with intervals and curves. If these exclude the claim, the claim is refuted; if
        they give the largest bound, it is the result's, and the p-value is at most alpha.
    """

    cells: CellCounts | None = None

    @property
    def test_shares(self) -> tuple[tuple[str, float], ...]:
        if self.cells is None:
            return self._shares_of_test("event test", self.alpha)
        of_cells = self.cells.alpha
        return *self._shares_of_test("event test", self.alpha - of_cells), ("cell intervals", of_cells)
