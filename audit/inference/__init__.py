"""Tests and confidence bounds that use only integer counts and an error probability.

Public names: `Counts`, `JointCounts`, `Wealth`, `resolution`, `Ledger`, `holm`, `joint_test`.
"""
