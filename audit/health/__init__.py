"""Checks that the runs are independent and that the datasets stay as they were.

Public names: `Finding`, `HealthCheck`, `Snapshot`, `take_snapshot`.
"""
