"""Randomised response."""

import itertools
import math

import numpy as np
import pytest

from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import DatasetError
from dpaudit.mechanisms import RandomisedResponse, exact_epsilon


@pytest.mark.parametrize("k", [2, 3, 17])
def test_law_is_kept_truth_and_even_lies(k):
    e = math.exp(0.9)
    for value in range(k):
        expected = np.full(k, 1 / (e + k - 1))
        expected[value] = e / (e + k - 1)
        np.testing.assert_allclose(RandomisedResponse(0.9, k).law(value).probabilities, expected, rtol=1e-13)


@pytest.mark.parametrize("k", [2, 5])
def test_every_pair_attains_the_claim(k):
    mechanism = RandomisedResponse(1.3, k)
    assert mechanism.claim == PureDP(1.3)
    for x, y in itertools.permutations(range(k), 2):
        assert exact_epsilon(mechanism.law(x), mechanism.law(y)) == pytest.approx(1.3, rel=1e-14)


@pytest.mark.parametrize("dataset", [-1, 3, 0.5, "yes", None])
def test_values_outside_the_menu_are_refused(dataset):
    with pytest.raises(DatasetError, match="is not one of the k=3 values; use a whole number from 0 to 2"):
        RandomisedResponse(1, k=3).law(dataset)
