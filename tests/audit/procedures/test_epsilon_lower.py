"""Bounds from bare counts: the exact one against those that others use."""

from __future__ import annotations

import math

import pytest
from statsmodels.stats.proportion import confint_proportions_2indep

from dpaudit import epsilon_lower
from dpaudit.audit.errors import OptionError

LARGE = (500_000, 1_000_000, 184_000, 1_000_000)


@pytest.mark.parametrize(("method", "theirs"), [("score", "score"), ("log-ratio", "log")])
def test_ratio_intervals_are_those_of_statsmodels(method, theirs):
    low, _ = confint_proportions_2indep(*LARGE, compare="ratio", method=theirs, alpha=0.1, correction=False)
    assert epsilon_lower(*LARGE, alpha=0.05, method=method) == pytest.approx(math.log(low))


@pytest.mark.parametrize("method", ["score", "log-ratio"])
def test_with_many_hits_the_exact_bound_is_as_good_as_the_approximate_ones(method):
    exact, approximate = epsilon_lower(*LARGE, alpha=0.05), epsilon_lower(*LARGE, alpha=0.05, method=method)
    estimate = math.log(LARGE[0] / LARGE[2])
    assert 1.0 < (estimate - exact) / (estimate - approximate) < 1.06


@pytest.mark.parametrize("method", ["joint", "clopper-pearson", "score", "log-ratio"])
@pytest.mark.parametrize(
    "counts", [(0, 10, 0, 10), (10, 10, 0, 10), (0, 10, 10, 10), (10, 10, 10, 10), (1, 10**10, 0, 10**10)]
)
def test_corner_counts_give_a_bound(method, counts):
    bound = epsilon_lower(*counts, alpha=0.05, method=method)
    assert 0.0 <= bound < math.inf


def test_unknown_or_unfit_methods():
    with pytest.raises(OptionError, match="unknown"):
        epsilon_lower(*LARGE, alpha=0.05, method="wald")
    with pytest.raises(OptionError, match="delta must be 0"):
        epsilon_lower(*LARGE, alpha=0.05, delta=0.1, method="score")
    with pytest.raises(OptionError, match="too large"):
        epsilon_lower(*LARGE, alpha=0.6, method="score")
