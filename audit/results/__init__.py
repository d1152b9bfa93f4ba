"""What audits return.

Public names: `CellCounts`, `Equivalence`, `EquivalenceResult`, `AuditResult`, `Verdict`, `Point`, `StatementResult`.
"""
