"""Tests and confidence bounds that use only integer counts and an error probability.

Public names: `Counts`, `joint_test`, `guess_test`, `JointCounts`, `Wealth`, `ErrorBudget`, `holm`.
"""
