"""The results that audits return.

Public names: `AuditResult`, `CanaryResult`, `CellCounts`, `Equivalence`, `EquivalenceResult`, `FixedSizeResult`,
`Point`, `SequentialResult`, `StatementResult`, `Verdict`, `WorstPair`.
"""
