"""Exact audits of discrete code: its distribution on a pair, computed by running it down every branch.

Public names: `distribution`, with the results `ExactDistribution` and `ExactResult`.
"""
