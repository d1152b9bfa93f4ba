"""The results that audits return.

Public names: `AuditResult`, `CellCounts`, `Equivalence`, `EquivalenceResult`, `FixedSizeResult`, `Point`,
`SequentialResult`, `StatementResult`, `Verdict`, `WorstPair`.
"""
