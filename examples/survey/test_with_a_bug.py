"""This test fails on purpose; the README shows its output."""

from functools import partial

import pytest
from survey_with_a_bug import noisy_total

from dpaudit import AddRemove, PureDP, Rows


@pytest.mark.dp_audit(detect=0.1, search_runs=10_000, floating_point="ignore")
def test_noisy_total(dp_audit):
    mechanism = partial(noisy_total, epsilon=1.0)
    dp_audit(mechanism, neighbours=Rows(low=0.0, high=120.0, most=3), claim=PureDP(1.0), adjacency=AddRemove())
