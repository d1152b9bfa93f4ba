"""Tests and confidence bounds from integer counts and an error probability alone.

Public names: `Counts`, `JointCounts`, `Wealth`, `resolution`, `Ledger`, `holm`, `joint_test`.
"""
