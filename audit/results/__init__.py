"""What audits return."""

from .audit_result import AuditResult, Verdict
from .cell_result import CellCounts
from .equivalence_result import Equivalence, EquivalenceResult
from .statement_result import Point, StatementResult

__all__ = [
    "CellCounts",
    "EquivalenceResult",
    "Equivalence",
    "AuditResult",
    "StatementResult",
    "Point",
    "Verdict",
]
