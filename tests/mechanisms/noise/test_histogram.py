"""Histograms and product laws: the exact loss of one row under both kinds of neighbours."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import DatasetError, OptionError
from dpaudit.mechanisms.faulty import HalfNoiseHistogram

ROWS = [0, 1, 1, 2]


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
@pytest.mark.parametrize(
    ("sensitivity", "added", "replaced"), [(1, 0.8, 1.6), (2, 0.4, 0.8)], ids=["for-add-remove", "for-replace"]
)
def test_a_row_loses_one_bin_or_two(noise, sensitivity, added, replaced):
    mechanism = m.HistogramMechanism(0.8, k=4, sensitivity=sensitivity, noise=noise)
    assert mechanism.claim == PureDP(0.8)
    law = mechanism.law(ROWS)
    assert m.exact_epsilon(law, mechanism.law([*ROWS, 3])) == pytest.approx(added, rel=1e-12)
    assert m.exact_epsilon(law, mechanism.law(ROWS[:-1])) == pytest.approx(added, rel=1e-12)
    assert m.exact_epsilon(law, mechanism.law([*ROWS[:-1], 3])) == pytest.approx(replaced, rel=1e-12)
    assert m.exact_epsilon(law, mechanism.law(ROWS[::-1])) == 0.0


def test_the_twin_loses_twice_its_claim_where_a_row_is_replaced():
    twin = HalfNoiseHistogram(0.5, k=3)
    found = m.exact_epsilon(twin.law([0, 1]), twin.law([0, 2]))
    assert found == pytest.approx(twin.truth.epsilon, rel=1e-12)
    assert (twin.claim, twin.truth) == (PureDP(0.5), PureDP(1.0))
    assert m.exact_epsilon(twin.law([0, 1]), twin.law([0])) == pytest.approx(0.5, rel=1e-12)  # right for add/remove


def test_bins_hold_the_counts():
    mechanism = m.HistogramMechanism(1.0, k=4)
    assert [law.location for law in mechanism.law(ROWS).marginals] == [1, 2, 1, 0]
    assert [law.location for law in mechanism.law([]).marginals] == [0] * 4
    assert [law.location for law in mechanism.law(np.array([3.0, 3.0])).marginals] == [0, 0, 0, 2]
    whole = m.HistogramMechanism(1.0, k=4, noise="geometric").sample(ROWS, 10, np.random.default_rng(1))
    assert (whole.dtype, whole.shape) == (np.int64, (10, 4))
    assert m.HistogramMechanism(1.0, k=4).sample(ROWS, 10, np.random.default_rng(1)).dtype == np.float64


@pytest.mark.parametrize("rows", [[4], [-1], [0.5], [math.nan], ["a"], 3, [[0, 1]], None])
def test_rows_that_are_no_categories_are_refused(rows):
    with pytest.raises(DatasetError, match=r"is not a list of rows in range\(k=4\); give each row as a whole number"):
        m.HistogramMechanism(1.0, k=4).law(rows)


def coins(*probabilities):
    return m.ProductLaw(tuple(m.FiniteLaw((math.log1p(-p), math.log(p))) for p in probabilities))


def test_product_density_is_the_product():
    law = m.ProductLaw((m.LaplaceLaw(0, 1), m.GaussianLaw(2, 3), m.GeometricLaw(0, 0.5)))
    rows = np.array([[0.3, 1.0, 2], [-4.0, 2.0, 0], [0.0, 0.0, 0.5]])
    expected = stats.laplace.logpdf(rows[:2, 0]) + stats.norm.logpdf(rows[:2, 1], 2, 3) + np.log([1 / 12, 1 / 3])
    np.testing.assert_allclose(law.log_density(rows)[:2], expected, rtol=1e-12)
    assert law.log_density(rows)[2] == -math.inf


def test_product_divergence_against_enumeration():
    """Enumerate the sixteen joint outcomes of four coordinates; the best event is the set with positive excess."""
    law_x, law_y = coins(0.2, 0.5, 0.5, 0.9), coins(0.4, 0.5, 0.3, 0.8)
    outcomes = np.array(list(itertools.product([0, 1], repeat=4)))
    p, q = np.exp(law_x.log_density(outcomes)), np.exp(law_y.log_density(outcomes))
    largest = float(np.log(p / q).max())
    assert law_x.epsilon_from(law_y, 0.0) == pytest.approx(largest, rel=1e-12)
    assert m.hockey_stick(law_x, law_y, largest + 1e-9) == 0.0
    moved = coins(0.2, 0.5, 0.3, 0.9)
    q = np.exp(moved.log_density(outcomes))
    for epsilon in (0.0, 0.1, 0.4):
        expected = np.maximum(0.0, p - math.exp(epsilon) * q).sum()
        assert m.hockey_stick(law_x, moved, epsilon) == pytest.approx(expected, abs=1e-14)
    assert m.exact_epsilon(law_x, moved, 0.05) == pytest.approx(
        m.exact_epsilon(coins(0.5), coins(0.3), 0.05), rel=1e-14
    )


def test_what_no_closed_form_is_known_for_is_refused():
    law_x, law_y = coins(0.2, 0.5), coins(0.4, 0.4)
    for call in (
        lambda: m.exact_delta(law_x, law_y, 0.1),
        lambda: m.exact_epsilon(law_x, law_y, 0.1),
        lambda: m.exact_epsilon(law_x, coins(0.2)),
        lambda: m.exact_epsilon(law_x, m.ProductLaw((m.LaplaceLaw(0, 1), m.LaplaceLaw(0, 1)))),
    ):
        with pytest.raises(OptionError, match="have no closed form for their divergence"):
            call()
    with pytest.raises(OptionError, match="number of marginals=0 is not allowed; use one law or more"):
        m.ProductLaw(())
