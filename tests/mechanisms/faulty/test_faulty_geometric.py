"""A table of geometric noise with one wrong weight: its frequencies, and what it guarantees."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import PureDP
from dpaudit.audit.errors import ClaimError
from dpaudit.mechanisms import GeometricMechanism
from dpaudit.mechanisms.faulty import MisprintedTableGeometric


@pytest.mark.parametrize(("epsilon", "factor", "place"), [(0.5, 1.2, 2), (1.0, 3.0, 0), (0.1, 1.0, -7)])
def test_frequencies_are_those_of_the_table(epsilon, factor, place):
    """Of nine outcomes in 100,000 runs; this test fails by chance with probability 2e-8."""
    mechanism, runs = MisprintedTableGeometric(epsilon, factor, place, query=len), 100_000
    outputs = mechanism.sample([1] * 5, runs, np.random.default_rng(3))
    assert outputs.dtype == np.int64
    right = np.exp(GeometricMechanism(epsilon).law(0).log_density(np.arange(-400, 401)))
    weights = np.where(np.arange(-400, 401) == place, factor, 1.0) * right
    for noise in range(place - 4, place + 5):
        share = weights[noise + 400] / weights.sum()
        low, high = binom.ppf(1e-9, runs, share), binom.isf(1e-9, runs, share)
        assert low <= np.count_nonzero(outputs == 5 + noise) <= high


def test_one_outcome_breaks_the_claim():
    mechanism = MisprintedTableGeometric(0.5, 1.2, 2)
    assert mechanism.claim == PureDP(0.5)
    assert mechanism.truth == PureDP(0.5 + math.log(1.2))
    assert str(mechanism) == "MisprintedTableGeometric(epsilon=0.5, factor=1.2, place=2)"


@pytest.mark.parametrize("options", [{"factor": 0.5}, {"place": 1_000}, {"factor": math.nan}, {"epsilon": 0.0}])
def test_impossible_tables(options):
    with pytest.raises(ClaimError):
        MisprintedTableGeometric(**({"epsilon": 0.5} | options))
