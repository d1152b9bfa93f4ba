"""The results that audits return.

Public names: `AuditResult`, `CanaryResult`, `BinCounts`, `Equivalence`, `EquivalenceResult`, `ExactVerdict`,
`FixedSizeResult`, `Point`, `ReplayVerdict`, `Result`, `SequentialResult`, `StatementResult`, `Verdict`, `WorstPair`.
"""
