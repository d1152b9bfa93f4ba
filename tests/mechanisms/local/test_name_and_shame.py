"""Name and shame: exactly (0, delta)-DP, no pure guarantee, and the number of people exposed.

Random tests have a false-alarm probability of 1e-8 each.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.claims.claim import ApproxDP
from dpaudit.audit.errors import OptionError
from dpaudit.mechanisms import NameAndShame, exact_delta, exact_epsilon
from dpaudit.mechanisms.faulty import TwiceExposed
from dpaudit.mechanisms.local.name_and_shame import HIDDEN

ALARM = 1e-8
ROWS, NEIGHBOUR = [7, 0, 7], [7, 0, 8]


def test_every_output_has_its_probability():
    """Enumerate independent coins, one per person."""
    law = NameAndShame(0.3).law(ROWS)
    total = 0.0
    for exposed in itertools.product((False, True), repeat=3):
        output = [row if is_exposed else HIDDEN for row, is_exposed in zip(ROWS, exposed, strict=True)]
        expected = math.prod(0.3 if is_exposed else 0.7 for is_exposed in exposed)
        assert math.exp(law.log_density(output)) == pytest.approx(expected, rel=1e-12)
        total += expected
    assert total == pytest.approx(1.0)
    assert law.log_density([7, 7, 7]) == -math.inf


@pytest.mark.parametrize("delta", [1e-9, 0.01, 0.3])
def test_the_claim_is_exact_for_a_replaced_row(delta):
    mechanism = NameAndShame(delta)
    law, moved = mechanism.law(ROWS), mechanism.law(NEIGHBOUR)
    assert mechanism.claim == ApproxDP(0.0, delta)
    for epsilon in (0.0, 1.0, 50.0):
        assert exact_delta(law, moved, epsilon) == pytest.approx(delta, rel=1e-12)
    assert exact_epsilon(law, moved) == math.inf
    assert exact_epsilon(law, moved, delta) == pytest.approx(0.0, abs=1e-12)  # attained, hence covered
    assert exact_epsilon(law, moved, delta * (1 + 1e-9)) == pytest.approx(0.0, abs=1e-12)
    assert exact_epsilon(law, mechanism.law(ROWS)) == 0.0


def test_two_replaced_rows_lose_both_deltas():
    """1 − (1 − δ)² at any epsilon, by hand over the sixteen pairs of coins."""
    mechanism = NameAndShame(0.3)
    law, other = mechanism.law([1, 2]), mechanism.law([3, 4])
    shown = [[row if coin else HIDDEN for row, coin in zip((1, 2), coins, strict=True)] for coins in np.ndindex(2, 2)]
    p, q = np.exp(law.log_density(shown)), np.exp(other.log_density(shown))
    assert np.maximum(p - math.e * q, 0).sum() == pytest.approx(1 - 0.7**2)
    with pytest.raises(OptionError, match="no closed form"):
        exact_delta(law, other, 1.0)


def test_people_are_exposed_independently():
    """The counts of all eight outcomes are within exact binomial limits."""
    runs, law = 100_000, NameAndShame(0.2).law(ROWS)
    outputs = NameAndShame(0.2).sample(ROWS, runs, np.random.default_rng(2))
    seen = 0
    for exposed in itertools.product((False, True), repeat=3):
        output = [row if is_exposed else HIDDEN for row, is_exposed in zip(ROWS, exposed, strict=True)]
        hits = int((outputs == output).all(axis=1).sum())
        limits = stats.binom(runs, math.exp(law.log_density(output)))
        assert limits.ppf(ALARM / 16) <= hits <= limits.isf(ALARM / 16)
        seen += hits
    assert seen == runs


def test_twice_the_delta_breaks_the_claim_and_keeps_the_truth():
    twin = TwiceExposed(0.1)
    law, moved = twin.law(ROWS), twin.law(NEIGHBOUR)
    assert (twin.claim, twin.truth) == (ApproxDP(0.0, 0.1), ApproxDP(0.0, 0.2))
    assert exact_delta(law, moved, 0.0) == pytest.approx(0.2, rel=1e-12)
    assert str(twin) == "TwiceExposed(delta=0.1)"
    outputs = twin.sample(ROWS, 100_000, np.random.default_rng(4))
    hits = stats.binom(300_000, 0.2)
    assert hits.ppf(ALARM / 2) <= (outputs != HIDDEN).sum() <= hits.isf(ALARM / 2)


def test_rows_may_be_numbers_of_any_kind():
    for rows in ([3.0, 4.0], np.array([3, 4]), (True, False), [0, 2**52]):
        outputs = NameAndShame(0.999).sample(rows, 50, np.random.default_rng(1))
        assert outputs.dtype == np.int64
        assert set(outputs.ravel().tolist()) <= {HIDDEN, *map(int, rows)}
