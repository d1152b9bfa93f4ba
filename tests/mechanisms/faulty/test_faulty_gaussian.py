"""Three ways to miscalibrate Gaussian noise: direction and size of the error."""

import math

import numpy as np
import pytest

from dpaudit.audit.claims.claim import ApproxDP
from dpaudit.audit.errors import ClaimError
from dpaudit.mechanisms import analytic_gaussian_scale, exact_delta
from dpaudit.mechanisms.faulty import MisprintedNewtonGaussian, OneForEpsilonGaussian, VarianceAsScaleGaussian
from dpaudit.mechanisms.faulty.noise.faulty_gaussian import misprinted_newton, scale_from_chi, solve_with_one

TWINS = [VarianceAsScaleGaussian, OneForEpsilonGaussian, MisprintedNewtonGaussian]


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.5, 1.0), (1.1, 0.2)])
def test_twins_state_the_true_delta_of_their_noise(kind, epsilon, sensitivity):
    twin = kind(epsilon, 1e-5, sensitivity=sensitivity)
    assert twin.right_scale == analytic_gaussian_scale(epsilon, 1e-5, sensitivity)
    assert twin.law(3.0).scale == twin.scale
    assert twin.claim == ApproxDP(epsilon, 1e-5)
    found = exact_delta(twin.law(0.0), twin.law(sensitivity), epsilon)
    assert twin.truth.delta == pytest.approx(found, rel=1e-9)
    assert twin.truth.epsilon == epsilon
    assert (twin.truth.delta > 1e-5) == (twin.scale < twin.right_scale)


@pytest.mark.parametrize("kind", [OneForEpsilonGaussian, MisprintedNewtonGaussian])
def test_a_wrong_chi_is_independent_of_the_sensitivity(kind):
    assert kind(0.7, 1e-5, sensitivity=7.0).scale == pytest.approx(7 * kind(0.7, 1e-5).scale, rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_right_chi_gives_the_right_scale(epsilon):
    scale = analytic_gaussian_scale(epsilon, 1e-5)
    chi = (epsilon * scale - 1 / (2 * scale)) / math.sqrt(2)
    assert scale_from_chi(chi, epsilon, 1.0) == pytest.approx(scale, rel=1e-12)
    assert 1 / (math.sqrt(2) * (math.sqrt(chi**2 + epsilon) - chi)) == pytest.approx(scale, rel=1e-12)


def test_one_for_epsilon_is_right_at_one_and_over_noised_below():
    assert OneForEpsilonGaussian(1.0, 1e-5).scale == pytest.approx(analytic_gaussian_scale(1.0, 1e-5), rel=1e-9)
    ratios = [OneForEpsilonGaussian(epsilon, 1e-5) for epsilon in (0.1, 0.25, 0.5, 0.9)]
    excess = [twin.scale / twin.right_scale for twin in ratios]
    assert excess == sorted(excess, reverse=True)
    assert excess == pytest.approx([1.355, 1.252, 1.175, 1.063], abs=1e-3)


def test_one_for_epsilon_is_under_noised_just_above_one():
    twin = OneForEpsilonGaussian(1.1, 1e-5)
    assert twin.truth.delta == pytest.approx(3.9e-4, rel=0.01)
    assert twin.scale / twin.right_scale == pytest.approx(0.764, abs=1e-3)


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_a_failed_solver_returns_its_last_iterate(epsilon):
    """The solver finds no solution: the equation is far from met, and the end point depends on the last bits."""
    chi = solve_with_one(epsilon, 1e-5)
    gap = math.erfc(chi) - math.exp(epsilon) * math.erfc(math.sqrt(chi**2 + 1)) - 2e-5
    assert abs(gap) > 0.9e-5
    assert 1.5 < OneForEpsilonGaussian(epsilon, 1e-5).scale / analytic_gaussian_scale(epsilon, 1e-5) < 3.5
    assert solve_with_one(epsilon, 1e-5) == chi


def test_misprinted_newton_stops_near_its_start():
    chi = misprinted_newton(1.0, 1e-5, tolerance=1e-3, most_steps=1000)
    assert 2.0 < chi < 2.0001
    twin = MisprintedNewtonGaussian(1.0, 1e-5)
    assert twin.truth.delta == pytest.approx(2.1e-4, rel=0.01)
    assert twin.scale < 0.81 * twin.right_scale


def test_misprinted_newton_creeps():
    """From 2 the iteration reaches 2.011 in 10⁵ steps; the solution is 2.543."""
    assert misprinted_newton(1.0, 1e-5, tolerance=0.0, most_steps=100_000) == pytest.approx(2.011, abs=5e-4)
    right = (analytic_gaussian_scale(1.0, 1e-5) - 1 / (2 * analytic_gaussian_scale(1.0, 1e-5))) / math.sqrt(2)
    assert right == pytest.approx(2.543, abs=5e-4)


def test_newton_with_the_right_derivative_converges():
    """With the derivative e^ε e^{−χ²−ε} χ/√(χ²+ε) − e^{−χ²} the iteration is sound."""
    chi, epsilon, delta = 2.0, 1.0, 1e-5
    for _ in range(20):
        root = math.sqrt(chi**2 + epsilon)
        gap = math.sqrt(math.pi) / 2 * (math.erfc(chi) - math.exp(epsilon) * math.erfc(root) - 2 * delta)
        chi -= gap / (math.exp(-chi * chi) * (chi / root - 1))
    assert scale_from_chi(chi, epsilon, 1.0) == pytest.approx(analytic_gaussian_scale(epsilon, delta), rel=1e-9)


@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0, 0.1, "epsilon=0 is not allowed; use 0 < epsilon < 700"), (700.0, 0.1, "epsilon=700.0 is not allowed"),
        (math.nan, 0.1, "epsilon=nan is not allowed"), (1.0, 0, "delta=0 is not allowed"),
    ],
)  # fmt: skip
def test_errors(kind, epsilon, delta, message):
    with pytest.raises(ClaimError) as caught:
        kind(epsilon, delta)
    assert message in str(caught.value)


def test_outputs_have_the_wrong_scale():
    """The deviation of 10⁵ outputs is within 5.9 standard errors of the wrong scale (4e-9) and 30 off the right one."""
    twin = OneForEpsilonGaussian(1.1, 1e-5)
    spread = float(np.std(twin.sample(0.0, 100_000, np.random.default_rng(5))))
    assert abs(spread / twin.scale - 1) < 5.9 / math.sqrt(200_000)
    assert abs(spread / twin.right_scale - 1) > 30 / math.sqrt(200_000)
