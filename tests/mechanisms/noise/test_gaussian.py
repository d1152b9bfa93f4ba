"""Calibration of Gaussian noise against sixty digits and an independent accountant."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import get_sigma_gaussian
from dp_accounting.pld import privacy_loss_mechanism

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP
from dpaudit.audit.errors import DatasetError

EPSILONS = [1e-6, 1e-4, 0.01, 0.5, 1.0, 1.1, 4.0, 20.0, 100.0]
DELTAS = [1e-300, 1e-100, 1e-30, 1e-10, 1e-6, 1e-5, 0.1, 0.5, 0.9, 1 - 1e-6]


def normal_tail(z):
    return mpmath.erfc(z / mpmath.sqrt(2)) / 2


def exact_gaussian_delta(epsilon, scale, digits):
    """Balle & Wang's formula as written, at sensitivity 1."""
    with mpmath.workdps(digits):
        s, e = mpmath.mpf(scale), mpmath.mpf(epsilon)
        return normal_tail(e * s - 1 / (2 * s)) - mpmath.exp(e) * normal_tail(e * s + 1 / (2 * s))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
def test_analytic_scale_is_the_root_to_a_relative_1e_9(epsilon, delta):
    scale = m.analytic_gaussian_scale(epsilon, delta)
    digits = 60 - 2 * int(math.log10(delta))
    above, below = (exact_gaussian_delta(epsilon, scale * (1 + by), digits) for by in (1e-9, -1e-9))
    assert above < delta < below


@pytest.mark.parametrize("delta", [1e-30, 1e-5, 0.1, 0.9])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0])
def test_the_formulation_of_bao_et_al_has_the_same_solution(epsilon, delta):
    """χ solves erfc(χ) − e^ε erfc(√(χ²+ε)) = 2δ, and σ = S/(√2 (√(χ²+ε) − χ)); here S = √2, as in their program."""
    with mpmath.workdps(80):
        e = mpmath.mpf(epsilon)

        def excess(chi):
            return mpmath.erfc(chi) - mpmath.exp(e) * mpmath.erfc(mpmath.sqrt(chi**2 + e)) - 2 * mpmath.mpf(delta)

        low, high = mpmath.mpf(-20), mpmath.mpf(20)
        assert excess(low) > 0 > excess(high)
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        scale = float(1 / (mpmath.sqrt(low**2 + e) - low))
    assert m.analytic_gaussian_scale(epsilon, delta, sensitivity=math.sqrt(2)) == pytest.approx(scale, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-100, 1e-10, 1e-5, 0.1])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 50.0])
def test_another_calibration_of_the_same_theorem_agrees(epsilon, delta):
    assert m.analytic_gaussian_scale(epsilon, delta) == pytest.approx(get_sigma_gaussian(epsilon, delta), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0])
def test_an_independent_accountant_finds_the_same_delta(epsilon, delta):
    scale = m.analytic_gaussian_scale(epsilon, delta, sensitivity=3.0)
    accountant = privacy_loss_mechanism.GaussianPrivacyLoss(scale, sensitivity=3.0)
    assert accountant.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("scale", [0.2, 1.0, 8.0])
def test_loss_tail_is_the_normal_one(epsilon, scale):
    """The loss at an output z = answer + noise is (z²)/(2σ²) − (z − S)²/(2σ²), a half-line in z."""
    sensitivity = 1.5
    edge = sensitivity / 2 + epsilon * scale**2 / sensitivity  # above it, the loss of N(S, σ²) to N(0, σ²) exceeds ε
    x, y = m.GaussianLaw(sensitivity, scale), m.GaussianLaw(0.0, scale)
    assert x.log_density(edge) - y.log_density(edge) == pytest.approx(epsilon, abs=1e-10)
    assert m.gaussian_loss_tail(epsilon, scale, sensitivity) == pytest.approx(float(x.sf(edge)), rel=1e-10)
    assert m.gaussian_loss_tail(epsilon, scale, sensitivity) >= m.gaussian_delta(epsilon, scale, sensitivity)


def test_loss_exceeds_epsilon_sixteen_times_as_often_as_delta():
    assert m.gaussian_loss_tail(1, m.analytic_gaussian_scale(1, 1e-5)) == pytest.approx(1.61e-4, rel=2e-3)


def test_scale_is_proportional_to_the_sensitivity_and_falls_with_both_parameters():
    assert m.analytic_gaussian_scale(1, 1e-5, 7.0) == pytest.approx(7 * m.analytic_gaussian_scale(1, 1e-5), rel=1e-14)
    by_epsilon = [m.analytic_gaussian_scale(e, 1e-5) for e in EPSILONS]
    by_delta = [m.analytic_gaussian_scale(1, d) for d in DELTAS]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert by_delta == sorted(by_delta, reverse=True)


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0])
def test_the_classical_scale_is_enough_up_to_one(epsilon, delta):
    assert m.classical_gaussian_scale(epsilon, delta) >= m.analytic_gaussian_scale(epsilon, delta)


def test_the_classical_formula_fails_at_ten():
    assert m.gaussian_delta(10, scale=math.sqrt(2 * math.log(1.25 / 0.1)) / 10) == pytest.approx(0.406, abs=5e-4)


def test_newtons_wrong_stop_has_the_stated_delta():
    """χ = 2.0 at epsilon 1 and delta 1e-5 leaves a true delta of 2.1e-4."""
    scale = 1 / (math.sqrt(2) * (math.sqrt(2.0**2 + 1) - 2.0))
    assert m.gaussian_delta(1, scale) == pytest.approx(2.1e-4, rel=0.02)


@pytest.mark.parametrize("calibration", ["analytic", "classical"])
@pytest.mark.parametrize(("x", "y"), [(0, 2.5), (10.0, 7.5), (1, 1.5), (0, 0)])
def test_claim_holds_exactly_and_is_attained_by_the_analytic_one(calibration, x, y):
    mechanism = m.GaussianMechanism(0.8, 1e-6, sensitivity=2.5, calibration=calibration)
    assert mechanism.claim == ApproxDP(0.8, 1e-6)
    found = m.exact_epsilon(mechanism.law(x), mechanism.law(y), 1e-6)
    assert found <= 0.8 * (1 + 1e-9)
    if calibration == "analytic" and abs(x - y) == 2.5:
        assert found == pytest.approx(0.8, rel=1e-8)
        assert m.exact_delta(mechanism.law(x), mechanism.law(y), 0.8) == pytest.approx(1e-6, rel=1e-8)


def test_query_is_applied():
    assert m.GaussianMechanism(1, 0.1, query=len).law([7, 7, 7]).location == 3.0


@pytest.mark.parametrize("dataset", ["three", [1, 2], None, math.nan, np.inf])
def test_answers_that_are_no_numbers_are_refused(dataset):
    with pytest.raises(DatasetError, match="which is not a finite number; use a query"):
        m.GaussianMechanism(1, 0.1).sample(dataset, 1, np.random.default_rng())
