"""Exact Rényi divergences against sums, integrals and the limits of small and large orders."""

import math

import numpy as np
import pytest
from scipy import integrate

from dpaudit import mechanisms as m
from dpaudit.audit.errors import OptionError


@pytest.mark.parametrize(
    ("law_x", "law_y", "log_ratio"),
    [
        (m.LaplaceLaw(0.0, 2.0), m.LaplaceLaw(3.0, 2.0), 3 / 2),
        (m.LaplaceLaw(1.0, 0.5), m.LaplaceLaw(0.5, 0.5), 1.0),
        (m.GaussianLaw(0.0, 2.0), m.GaussianLaw(1.0, 2.0), None),
    ],
    ids=["laplace", "laplace-near", "gaussian"],
)
@pytest.mark.parametrize("order", [1.01, 1.5, 2, 7])
def test_renyi_divergences_are_integrals(law_x, law_y, log_ratio, order):
    def integrand(z):
        return math.exp(order * law_x.log_density(z) + (1 - order) * law_y.log_density(z))

    moment = integrate.quad(integrand, -60, 60, points=(0, 0.5, 1, 3), limit=400, epsabs=1e-13)[0]
    found = m.exact_renyi(law_x, law_y, order)
    assert found == pytest.approx(math.log(moment) / (order - 1), rel=1e-7)
    assert found == pytest.approx(m.exact_renyi(law_y, law_x, order), rel=1e-12)
    if log_ratio is not None:
        assert found < log_ratio
        assert m.exact_renyi(law_x, law_y, 1e6) == pytest.approx(log_ratio, rel=1e-4)


@pytest.mark.parametrize("order", [1.1, 2, 20])
@pytest.mark.parametrize("n", [1, 10, 100])
def test_independent_outputs_add_up(n, order):
    one, fold = m.RandomisedResponse(0.3), m.RandomisedResponseFold(0.3, n)
    single = m.exact_renyi(one.law(0), one.law(1), order)
    assert m.exact_renyi(fold.law(0), fold.law(1), order) == pytest.approx(n * single, rel=1e-9)
    laplace = m.LaplaceMechanism(0.3)
    many = m.composed(laplace, n)
    single = m.exact_renyi(laplace.law(0.0), laplace.law(1.0), order)
    assert m.exact_renyi(many.law(0.0), many.law(1.0), order) == pytest.approx(n * single, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0])
def test_epsilon_bounds_the_divergence_of_every_order(epsilon):
    """Mironov (2017), Lemma 1, has 2aε²; Bun & Steinke (2016), Proposition 3.3, the tight aε²/2."""
    for order in (1.001, 1.5, 2, 10, 1000):
        for mechanism, x, y in ((m.RandomisedResponse(epsilon), 0, 1), (m.LaplaceMechanism(epsilon), 0.0, 1.0)):
            found = m.exact_renyi(mechanism.law(x), mechanism.law(y), order)
            assert 0 < found <= min(order * epsilon**2 / 2, epsilon)
    response = m.RandomisedResponse(0.001)
    tight = m.exact_renyi(response.law(0), response.law(1), 3)
    assert tight == pytest.approx(3 * 0.001**2 / 2, rel=1e-5)  # no smaller constant holds


def test_an_impossible_outcome_has_an_infinite_divergence():
    some, all_ = m.FiniteLaw((0.0, -math.inf)), m.FiniteLaw((math.log(0.5), math.log(0.5)))
    assert m.exact_renyi(all_, some, 2) == math.inf
    assert m.exact_renyi(some, all_, 2) == pytest.approx(math.log(2))


@pytest.mark.parametrize("order", [1.3, 2, 5])
def test_finite_laws_by_the_sum_over_outcomes(order):
    """An adaptive search, whose two directions differ."""
    x, y = (m.UpAndDown(0.6, 5).law(value) for value in (0, 3))
    for one, two in ((x, y), (y, x)):
        p, q = one.probabilities, two.probabilities
        moment = float(np.sum(p**order * q ** (1 - order)))
        assert m.exact_renyi(one, two, order) == pytest.approx(math.log(moment) / (order - 1), rel=1e-12)
    assert m.exact_renyi(x, y, order) != pytest.approx(m.exact_renyi(y, x, order), rel=1e-3)


def test_divergences_grow_with_the_order_from_that_of_kullback_and_leibler():
    response, laplace = m.RandomisedResponse(0.7), m.LaplaceMechanism(0.7)
    for law_x, law_y, limit in (
        (response.law(0), response.law(1), 0.7 * math.tanh(0.35)),
        (laplace.law(0.0), laplace.law(1.0), 0.7 - 1 + math.exp(-0.7)),
    ):
        found = [m.exact_renyi(law_x, law_y, order) for order in (1 + 1e-6, 1.5, 2, 4, 64, 1e4)]
        assert found == sorted(found)
        assert found[0] == pytest.approx(limit, rel=1e-5)
        assert found[-1] == pytest.approx(0.7, rel=1e-3)
        assert m.exact_renyi(law_x, law_x, 3) == pytest.approx(0.0, abs=1e-12)


def test_products_of_other_laws_are_refused():
    one, two = m.ProductLaw((m.LaplaceLaw(0, 1),)), m.ProductLaw((m.LaplaceLaw(0, 1), m.LaplaceLaw(0, 1)))
    with pytest.raises(OptionError, match="have no closed form"):
        m.exact_renyi(one, two, 2)


@pytest.mark.parametrize("order", [1, 0.5, math.inf, math.nan])
def test_orders_outside_the_range_are_refused(order):
    with pytest.raises(OptionError, match=r"order=.* is not allowed; use 1 < order < inf"):
        m.exact_renyi(m.LaplaceLaw(0, 1), m.LaplaceLaw(0, 1), order)


@pytest.mark.parametrize(
    ("law_x", "law_y"),
    [
        (m.LaplaceLaw(0, 1), m.LaplaceLaw(0, 2)),
        (m.LaplaceLaw(0, 1), m.GaussianLaw(0, 1)),
        (m.GeometricLaw(0, 0.5), m.GeometricLaw(1, 0.5)),
    ],
    ids=["scales", "kinds", "geometric"],
)
def test_laws_without_a_closed_form_are_refused(law_x, law_y):
    with pytest.raises(OptionError, match="have no closed form"):
        m.exact_renyi(law_x, law_y, 2)
