"""The results that audits return.

Public names: `AuditResult`, `CanaryResult`, `BinCounts`, `Equivalence`, `EquivalenceResult`, `FixedSizeResult`,
`Point`, `SequentialResult`, `StatementResult`, `Verdict`, `WorstPair`.
"""
