"""Health checks: the runs are independent, and the datasets differ and do not change.

Public names: `Finding`, `HealthCheck`, `Snapshot`, `take_snapshot`.
"""
