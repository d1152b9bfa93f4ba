"""Gaussian noise on vectors and in the local model: exact divergences, clipping, and the need for clipping."""

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP
from dpaudit.audit.errors import DatasetError, OptionError
from dpaudit.mechanisms.faulty import UnclippedLocalGaussian
from dpaudit.mechanisms.noise_samplers import grid_step

CORNERS = [(1.5, 2.0, 0.0), (-1.5, -2.0, 0.0)]  # 5 apart


def test_density_is_the_multivariate_normal_one():
    law = m.GaussianVectorLaw((1.0, -2.0, 0.5), 1.7)
    rows = np.random.default_rng(1).normal(size=(20, 3)) * 5
    expected = stats.multivariate_normal.logpdf(rows, mean=[1.0, -2.0, 0.5], cov=1.7**2 * np.eye(3))
    np.testing.assert_allclose(law.log_density(rows), expected, rtol=1e-12)
    np.testing.assert_allclose(law.log_density(rows[0]), expected[0], rtol=1e-12)
    assert [marginal.location for marginal in law.marginals] == [1.0, -2.0, 0.5]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_noise_is_tight_at_the_sensitivity_whatever_the_direction_and_dimension(epsilon):
    mechanism = m.VectorGaussianMechanism(epsilon, 1e-5, sensitivity=5.0)
    assert mechanism.claim == ApproxDP(epsilon, 1e-5)
    for x, y in (CORNERS, [(0.0,), (5.0,)], [(0.0,) * 25, (1.0,) * 25]):
        assert m.exact_delta(mechanism.law(x), mechanism.law(y), epsilon) == pytest.approx(1e-5, rel=1e-8)
        assert m.exact_epsilon(mechanism.law(x), mechanism.law(y), 1e-5) == pytest.approx(epsilon, rel=1e-8)
    # A pair that moves every coordinate by the sensitivity is five times as far apart.
    assert m.exact_delta(mechanism.law((0.0,) * 25), mechanism.law((5.0,) * 25), epsilon) > 100 * 1e-5


def test_delta_is_the_integral_over_the_plane():
    """Return the hockey stick of two laws in the plane, summed over a fine grid."""
    x, y = m.GaussianVectorLaw((0.0, 0.0), 1.0), m.GaussianVectorLaw((0.6, 0.8), 1.0)
    side = np.linspace(-8, 9, 1701)
    plane = np.stack(np.meshgrid(side, side), axis=-1)
    excess = np.exp(x.log_density(plane)) - math.exp(0.5) * np.exp(y.log_density(plane))
    expected = float(np.maximum(excess, 0.0).sum() * (side[1] - side[0]) ** 2)
    assert m.exact_delta(x, y, 0.5) == pytest.approx(expected, rel=1e-4)


def test_outputs_are_on_the_grid_of_every_dataset():
    mechanism = m.VectorGaussianMechanism(1.0, 1e-5)
    outputs = mechanism.sample((0.1, math.pi, -1e5), 1000, np.random.default_rng(2))
    assert outputs.shape == (1000, 3)
    assert np.all(np.remainder(outputs, grid_step(mechanism.scale)) == 0)


def test_query_is_applied():
    mechanism = m.VectorGaussianMechanism(1.0, 0.1, query=lambda rows: np.mean(rows, axis=0))
    assert mechanism.law([[1.0, 2.0], [3.0, 6.0]]).location == (2.0, 4.0)


@pytest.mark.parametrize("answer", [1.0, [], [[1.0, 2.0]], ["a", "b"], [1.0, math.nan], [math.inf], None])
def test_answers_that_are_no_vectors_are_refused(answer):
    with pytest.raises(DatasetError, match="is not a vector of finite numbers; use a query"):
        m.VectorGaussianMechanism(1.0, 0.1).sample(answer, 1, np.random.default_rng())


def test_laws_that_have_no_divergence_in_closed_form():
    law = m.GaussianVectorLaw((0.0, 0.0), 1.0)
    for other in (m.GaussianVectorLaw((0.0, 0.0), 2.0), m.GaussianVectorLaw((0.0,), 1.0), m.GaussianLaw(0.0, 1.0)):
        with pytest.raises(OptionError, match="no closed form"):
            m.exact_delta(law, other, 1.0)
    with pytest.raises(OptionError, match="number of coordinates=0 is not allowed"):
        m.GaussianVectorLaw((), 1.0)


def test_local_noise_is_that_of_the_diameter():
    number, vector = (
        m.LocalGaussianMechanism(1.0, 1e-5, m.Interval(-1, 3)),
        m.LocalGaussianMechanism(1.0, 1e-5, m.Ball(2.0, 3)),
    )
    assert number.scale == vector.scale == m.analytic_gaussian_scale(1.0, 1e-5, 4.0)
    assert number.claim == vector.claim == ApproxDP(1.0, 1e-5)
    assert number.law(2.5) == m.GaussianMechanism(1.0, 1e-5, 4.0).law(2.5)
    assert vector.law([1.0, 0.5, 0.0]) == m.VectorGaussianMechanism(1.0, 1e-5, 4.0).law([1.0, 0.5, 0.0])


def test_vectors_of_another_length_are_refused_as_the_output_would_tell_it():
    mechanism = m.LocalGaussianMechanism(1.0, 1e-5, m.Ball(1.0, 2))
    with pytest.raises(DatasetError, match="the vector has 3 coordinates, the domain 2"):
        mechanism.sample([1.0, 0.0, 0.0], 1, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("domain", "x", "y"),
    [(m.Interval(-1, 3), -1e9, 40.0), (m.Ball(2.0, 3), (1e200, 1e200, 0.0), (-5.0, -5.0, 0.0))],
    ids=["numbers", "vectors"],
)
def test_clipping_is_what_protects_values_outside_the_domain(domain, x, y):
    mechanism, twin = m.LocalGaussianMechanism(1.0, 1e-5, domain), UnclippedLocalGaussian(1.0, 1e-5, domain)
    assert m.exact_delta(mechanism.law(x), mechanism.law(y), 1.0) == pytest.approx(1e-5, rel=1e-8)
    assert m.exact_delta(twin.law(x), twin.law(y), 1.0) > 0.5
    assert twin.truth is None
    assert twin.claim == mechanism.claim


def test_unclipped_values_inside_the_domain_are_safe():
    twin = UnclippedLocalGaussian(1.0, 1e-5, m.Interval(-1, 3))
    assert m.exact_delta(twin.law(-1.0), twin.law(3.0), 1.0) == pytest.approx(1e-5, rel=1e-8)


def test_clipping_keeps_members_and_the_direction_of_others():
    ball = m.Ball(2.0, 3)
    assert ball([1.0, -1.0, 0.5]) == (1.0, -1.0, 0.5)
    assert m.Ball(2.0, 2)([0.0, 0.0]) == (0.0, 0.0)
    for vector in ([3.0, -4.0], [1e308, 1e308], [1e-300, 5.0], [1.9, 1.9]):
        clipped = np.array(m.Ball(2.0, 2)(vector))
        assert math.hypot(*clipped) == pytest.approx(2.0, rel=1e-14)
        np.testing.assert_allclose(clipped / 2.0, np.array(vector) / math.hypot(*np.divide(vector, 1e200)) / 1e200)
    assert [m.Interval(-1, 3)(value) for value in (-7, 0.5, 8)] == [-1.0, 0.5, 3.0]
    assert (m.Interval(-1, 3).diameter, ball.diameter) == (4, 4.0)


@pytest.mark.parametrize(
    ("domain", "value"), [(m.Interval(0, 1), math.nan), (m.Ball(1.0, 1), [math.nan]), (m.Ball(1.0, 1), 0.5)]
)
def test_values_that_are_no_numbers_or_vectors_are_refused(domain, value):
    with pytest.raises(DatasetError, match="which is not a"):
        m.LocalGaussianMechanism(1.0, 0.1, domain).law(value)
