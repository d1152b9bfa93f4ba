"""Tests of the library: each audit fails by chance with probability at most 1e-5, and then in every session."""

from functools import partial

import pytest
from survey import noisy_count, noisy_total

from dpaudit import AddRemove, PureDP, Rows


def test_noisy_count(dp_audit):
    """Audit on a given pair."""
    dp_audit(partial(noisy_count, epsilon=1.0), [31.0, 64.0], [31.0], claim=PureDP(1.0), adjacency=AddRemove())


@pytest.mark.dp_audit(detect=0.1, search_runs=10_000, floating_point="ignore")
def test_noisy_total(dp_audit):
    """Audit on the worst pair that a search finds, with enough runs to detect an excess of 0.1."""
    mechanism = partial(noisy_total, epsilon=1.0)
    dp_audit(mechanism, neighbours=Rows(low=0.0, high=120.0, most=3), claim=PureDP(1.0), adjacency=AddRemove())
