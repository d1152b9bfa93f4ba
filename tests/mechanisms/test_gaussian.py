"""Calibration of Gaussian noise, against sixty digits and an independent accountant."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism

from dpaudit.audit.claims import ApproxDP
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms import (
    GaussianMechanism,
    analytic_gaussian_scale,
    classical_gaussian_scale,
    exact_delta,
    exact_epsilon,
    gaussian_delta,
)

EPSILONS = [1e-4, 0.01, 0.5, 1.0, 4.0, 50.0]
DELTAS = [1e-30, 1e-10, 1e-5, 0.1, 0.9]


def delta_in_sixty_digits(epsilon, scale):
    with mpmath.workdps(60):
        s, e = mpmath.mpf(scale), mpmath.mpf(epsilon)

        def phi(z):
            return mpmath.erfc(-z / mpmath.sqrt(2)) / 2

        return phi(1 / (2 * s) - e * s) - mpmath.exp(e) * phi(-1 / (2 * s) - e * s)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
def test_analytic_scale_is_the_root_to_a_relative_1e_9(epsilon, delta):
    scale = analytic_gaussian_scale(epsilon, delta)
    assert (
        delta_in_sixty_digits(epsilon, scale * (1 + 1e-9)) < delta < delta_in_sixty_digits(epsilon, scale * (1 - 1e-9))
    )


@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0])
def test_an_independent_accountant_finds_the_same_delta(epsilon, delta):
    scale = analytic_gaussian_scale(epsilon, delta, sensitivity=3.0)
    accountant = privacy_loss_mechanism.GaussianPrivacyLoss(scale, sensitivity=3.0)
    assert accountant.get_delta_for_epsilon(epsilon) == pytest.approx(delta, rel=1e-9)


def test_scale_is_proportional_to_the_sensitivity_and_falls_with_both_parameters():
    assert analytic_gaussian_scale(1, 1e-5, 7.0) == pytest.approx(7 * analytic_gaussian_scale(1, 1e-5), rel=1e-14)
    by_epsilon = [analytic_gaussian_scale(e, 1e-5) for e in EPSILONS]
    by_delta = [analytic_gaussian_scale(1, d) for d in DELTAS]
    assert by_epsilon == sorted(by_epsilon, reverse=True)
    assert by_delta == sorted(by_delta, reverse=True)


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0])
def test_the_classical_scale_is_enough_up_to_one(epsilon, delta):
    assert classical_gaussian_scale(epsilon, delta) >= analytic_gaussian_scale(epsilon, delta)


def test_the_classical_formula_fails_at_ten():
    assert gaussian_delta(10, scale=math.sqrt(2 * math.log(1.25 / 0.1)) / 10) == pytest.approx(0.406, abs=5e-4)


def test_newtons_wrong_stop_has_the_stated_delta():
    """χ = 2.0 at epsilon 1 and delta 1e-5 leaves a true delta of 2.1e-4."""
    scale = 1 / (math.sqrt(2) * (math.sqrt(2.0**2 + 1) - 2.0))
    assert gaussian_delta(1, scale) == pytest.approx(2.1e-4, rel=0.02)


@pytest.mark.parametrize("calibration", ["analytic", "classical"])
@pytest.mark.parametrize(("x", "y"), [(0, 2.5), (10.0, 7.5), (1, 1.5), (0, 0)])
def test_claim_holds_exactly_and_is_attained_by_the_analytic_one(calibration, x, y):
    mechanism = GaussianMechanism(0.8, 1e-6, sensitivity=2.5, calibration=calibration)
    assert mechanism.claim == ApproxDP(0.8, 1e-6)
    found = exact_epsilon(mechanism.law(x), mechanism.law(y), 1e-6)
    assert found <= 0.8 * (1 + 1e-9)
    if calibration == "analytic" and abs(x - y) == 2.5:
        assert found == pytest.approx(0.8, rel=1e-8)
        assert exact_delta(mechanism.law(x), mechanism.law(y), 0.8) == pytest.approx(1e-6, rel=1e-8)


def test_query_is_applied():
    assert GaussianMechanism(1, 0.1, query=len).law([7, 7, 7]).location == 3.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: GaussianMechanism(-1, 0.1), "epsilon=-1 is not allowed; use 0 <= epsilon"),
        (lambda: GaussianMechanism(math.nan, 0.1), "epsilon=nan is not allowed"),
        (lambda: GaussianMechanism(math.inf, 0.1), "epsilon=inf is not allowed"),
        (lambda: GaussianMechanism(1, 0), "delta=0 is not allowed; use 0 < delta < 1 (normal noise has no pure"),
        (lambda: GaussianMechanism(1, 1.0), "delta=1.0 is not allowed"),
        (lambda: GaussianMechanism(1, 0.1, sensitivity=0), "sensitivity=0 is not allowed; use 0 < sensitivity"),
        (lambda: GaussianMechanism(1, 0.1, calibration="exact"), "calibration='exact' is unknown; use \"analytic\" or"),
        (lambda: GaussianMechanism(2, 0.1, calibration="classical"), "epsilon=2 is outside the classical theorem; use"),
        (lambda: GaussianMechanism(0, 0.1, calibration="classical"), "epsilon=0 is not allowed; use 0 < epsilon"),
        (lambda: gaussian_delta(1, 0), "scale=0 is not allowed; use 0 < scale"),
        (lambda: gaussian_delta(-1, 1), "epsilon=-1 is not allowed; use 0 <= epsilon"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ClaimError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("dataset", ["three", [1, 2], None, math.nan, np.inf])
def test_answers_that_are_no_numbers_are_refused(dataset):
    with pytest.raises(DatasetError, match="which is not a finite number; use a query"):
        GaussianMechanism(1, 0.1).sample(dataset, 1, np.random.default_rng())
