"""Laws that replays state for diffprivlib's mechanisms, which does not need diffprivlib itself."""

from itertools import permutations

import numpy as np
import pytest

from dpaudit.mechanisms.adapters.diffprivlib_primitives import _are_doubles, _permuted_and_flipped


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_permute_and_flip_is_the_mean_over_all_orders(size):
    accepted = np.array([1.0, 0.6, 0.3, 0.6, 0.0, 1e-9])[:size]
    expected = np.zeros(size)
    orders = list(permutations(range(size)))
    for order in orders:
        left = 1.0
        for candidate in order:
            expected[candidate] += left * accepted[candidate] / len(orders)
            left *= 1.0 - accepted[candidate]
    np.testing.assert_allclose(_permuted_and_flipped(accepted), expected, rtol=1e-12, atol=1e-15)


def test_permute_and_flip_of_many_candidates_sums_to_one():
    accepted = np.exp(-np.linspace(0.0, 30.0, 800))
    found = _permuted_and_flipped(accepted)
    assert found.sum() == pytest.approx(1.0, rel=1e-10)
    assert np.all(np.diff(found) <= 1e-15)


def test_probabilities_that_no_double_holds_are_not_compared():
    """exp(-744) and exp(-746) are the smallest double and 0, whose quotient is infinite; the coins have no such end."""
    assert _are_doubles(np.array([0.0, -700.0, -np.inf]))
    assert not _are_doubles(np.array([0.0, -744.0]))
    assert not _are_doubles(np.array([0.0, -746.0]))
