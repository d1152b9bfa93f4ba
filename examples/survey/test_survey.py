"""The library's tests: each audit may fail by chance with probability 1e-5, and always or never so."""

from functools import partial

import pytest
from survey import noisy_count, noisy_total

from dpaudit import AddRemove, PureDP, Rows


def test_noisy_count(dp_audit):
    """On a pair that we name."""
    dp_audit(partial(noisy_count, epsilon=1.0), [31.0, 64.0], [31.0], claim=PureDP(1.0), adjacency=AddRemove())


@pytest.mark.dp_audit(resolution=0.1, search_runs=10_000, bits=False)
def test_noisy_total(dp_audit):
    """On the worst pair that a search finds, with as many runs as an excess of 0.1 takes to be seen."""
    mechanism = partial(noisy_total, epsilon=1.0)
    dp_audit(mechanism, neighbours=Rows(low=0.0, high=120.0, most=3), claim=PureDP(1.0), adjacency=AddRemove())
