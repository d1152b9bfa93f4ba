"""Gaussian and binomial noise: calibration, laws and samplers.

Random tests use fixed seeds; each of the eight here has a false-alarm probability of at most 1e-7.
"""

import itertools
import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting import get_sigma_gaussian
from dp_accounting.pld import privacy_loss_mechanism
from scipy import stats

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.noise.gaussian import LARGEST_SIGMA, MOST_FLIPS, discrete_gaussian
from dpaudit.mechanisms.noise_samplers import grid_step

# Calibration of Gaussian noise against sixty digits and an independent accountant.

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


# Gaussian noise on vectors and in the local model: exact divergences, clipping, and the need for clipping.

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


def test_query_is_applied_of_gaussian_vector():
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
    mechanism, twin = m.LocalGaussianMechanism(1.0, 1e-5, domain), faulty.UnclippedLocalGaussian(1.0, 1e-5, domain)
    assert m.exact_delta(mechanism.law(x), mechanism.law(y), 1.0) == pytest.approx(1e-5, rel=1e-8)
    assert m.exact_delta(twin.law(x), twin.law(y), 1.0) > 0.5
    assert twin.truth is None
    assert twin.claim == mechanism.claim


def test_unclipped_values_inside_the_domain_are_safe():
    twin = faulty.UnclippedLocalGaussian(1.0, 1e-5, m.Interval(-1, 3))
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


# The discrete Gaussian: law and delta against mpmath sums and another accountant, the sampler against the law.

ALARM = 1e-8


RUNS = 400_000


def probabilities(sigma, reach):
    """Return Pr[k] for k = −reach … reach, by summation with forty digits."""
    with mpmath.workdps(40):
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(-reach, reach + 1)]
        total = mpmath.fsum(weights)
        return [weight / total for weight in weights]


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.0, 3.3, 20.0])
def test_law_is_the_normalised_weights(sigma):
    reach = math.ceil(15 * sigma) + 2
    expected = probabilities(sigma, reach)
    law, k = m.DiscreteGaussianLaw(5, sigma), np.arange(-reach, reach + 1) + 5
    np.testing.assert_allclose(np.exp(law.log_density(k)), [float(p) for p in expected], rtol=1e-11)
    with mpmath.workdps(40):
        above = [float(mpmath.fsum(expected[i + 1 :])) for i in range(len(expected) - 1)]
        up_to = [float(mpmath.fsum(expected[: i + 1])) for i in range(len(expected) - 1)]
    # For smaller tails, the mass beyond the reach is visible.
    np.testing.assert_allclose(law.sf(k[:-1]), above, rtol=1e-11, atol=1e-45)
    np.testing.assert_allclose(law.cdf(k[:-1]), up_to, rtol=1e-11, atol=1e-45)
    np.testing.assert_allclose(law.cdf(k) + law.sf(k), 1.0, rtol=1e-15)


def test_law_between_and_beyond_the_integers():
    law = m.DiscreteGaussianLaw(0, 1.0)
    assert law.log_density([0.5, math.inf]).tolist() == [-math.inf, -math.inf]
    assert law.cdf(0.5) == law.cdf(0.0)
    assert law.cdf([-math.inf, -1e9, 1e9, math.inf]).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert law.sf([-math.inf, math.inf]).tolist() == [1.0, 0.0]


def test_wide_law_is_the_normal_one():
    law, normal = m.DiscreteGaussianLaw(3, LARGEST_SIGMA), m.GaussianLaw(3, LARGEST_SIGMA)
    k = np.linspace(-5, 5, 11).round() * 1e4
    np.testing.assert_allclose(law.cdf(k), normal.cdf(k + 0.5), rtol=1e-8)
    np.testing.assert_allclose(law.log_density(k), normal.log_density(k), rtol=1e-12)


@pytest.mark.parametrize("sigma", [0.4, 1.0, 2.5, 12.0])
@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, 20.0])
def test_delta_is_the_sum_of_what_exceeds(sigma, shift, epsilon):
    masses = probabilities(sigma, math.ceil(30 * sigma) + shift)
    p, q = masses[shift:], masses[:-shift]
    with mpmath.workdps(40):
        factor = mpmath.exp(mpmath.mpf(epsilon))
        expected = float(mpmath.fsum(max(a - factor * b, mpmath.mpf(0)) for a, b in zip(p, q, strict=True)))
    law_x, law_y = m.DiscreteGaussianLaw(0, sigma), m.DiscreteGaussianLaw(shift, sigma)
    assert m.hockey_stick(law_x, law_y, epsilon) == pytest.approx(expected, rel=1e-10, abs=1e-100)
    assert m.hockey_stick(law_y, law_x, epsilon) == m.hockey_stick(law_x, law_y, epsilon)
    if 1e-250 < expected < 0.999:
        found = m.exact_epsilon(law_x, law_y, expected)
        assert found == pytest.approx(epsilon, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("sigma", [1.0, 2.0, 5.5])
@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_delta_agrees_with_another_accountant(sigma, sensitivity, epsilon):
    from dp_accounting.pld.privacy_loss_mechanism import DiscreteGaussianPrivacyLoss

    other = DiscreteGaussianPrivacyLoss(sigma, sensitivity=sensitivity, truncation_bound=math.ceil(14 * sigma))
    mechanism = m.DiscreteGaussianMechanism(sigma, epsilon, sensitivity=sensitivity)
    assert mechanism.delta == pytest.approx(other.get_delta_for_epsilon(epsilon), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0])
def test_answers_nearer_than_the_sensitivity_are_harder_to_tell_apart(sigma):
    laws = [m.DiscreteGaussianLaw(shift, sigma) for shift in range(6)]
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        deltas = [m.exact_delta(laws[0], law, epsilon) for law in laws]
        assert deltas == sorted(deltas)


def test_claim_is_exact_at_the_sensitivity():
    mechanism = m.DiscreteGaussianMechanism(sigma=3.0, epsilon=0.5, sensitivity=2, query=len)
    assert mechanism.claim == ApproxDP(0.5, mechanism.delta)
    x, y = mechanism.law([1] * 4), mechanism.law([1] * 2)
    assert m.exact_delta(x, y, 0.5) == mechanism.delta
    assert m.exact_epsilon(x, y, mechanism.delta) == pytest.approx(0.5, rel=1e-10)
    assert m.exact_epsilon(x, y, 0.0) == math.inf
    assert m.exact_epsilon(x, x, 0.0) == 0.0


def is_off(draws, law):
    """Return whether Pearson's test on cells of 20 or more expected draws rejects, at level about ALARM."""
    k = np.arange(law.location - 200, law.location + 201)
    expected = RUNS * np.exp(law.log_density(k))
    inside = expected >= 20
    counts = (
        (draws[:, None] == k[inside]).sum(axis=0)
        if inside.sum() < 8
        else np.bincount(np.clip(draws - k[inside][0] + 1, 0, inside.sum() + 1), minlength=inside.sum() + 2)[1:-1]
    )
    counts, expected = np.append(counts, RUNS - counts.sum()), np.append(expected[inside], 0.0)
    expected[-1] = RUNS - expected.sum()
    statistic = float(((counts - expected) ** 2 / np.maximum(expected, 20.0)).sum())
    return statistic > stats.chi2.isf(ALARM, len(counts) - 1)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 0.999, 1.0, 2.7, 11.0, 40.0])
def test_sampler_follows_the_law(sigma):
    assert not is_off(discrete_gaussian(sigma, RUNS, np.random.default_rng(1)), m.DiscreteGaussianLaw(0, sigma))


@pytest.mark.parametrize("sigma", [0.5, 2.7, 11.0])
def test_the_test_sees_a_sigma_wrong_by_a_fiftieth_and_a_rounded_normal(sigma):
    rng, law = np.random.default_rng(2), m.DiscreteGaussianLaw(0, sigma)
    assert is_off(discrete_gaussian(1.02 * sigma, RUNS, rng), law)
    if sigma < 1:  # rounding adds 1/12 to the variance
        assert is_off(np.rint(rng.normal(scale=sigma, size=RUNS)).astype(np.int64), law)


def test_moments_of_wide_noise():
    """Mean and second moment of 4·10⁵ draws, each within 5.9 standard errors (two-sided 4e-9)."""
    draws = discrete_gaussian(LARGEST_SIGMA, RUNS, np.random.default_rng(3)) / LARGEST_SIGMA
    assert abs(draws.mean()) < 5.9 / math.sqrt(RUNS)
    assert abs((draws**2).mean() - 1) < 5.9 * math.sqrt(2 / RUNS)


@pytest.mark.parametrize(("shift", "sigma", "delta"), [(370, 10.0, 0.01), (900, 10.0, 0.01), (380, 10.0, 1e-5)])
def test_epsilon_of_laws_far_apart_is_nearly_that_of_normal_noise(shift, sigma, delta):
    """The smaller probabilities underflow."""
    exact = m.exact_epsilon(m.DiscreteGaussianLaw(0, sigma), m.DiscreteGaussianLaw(shift, sigma), delta)
    normal = m.exact_epsilon(m.GaussianLaw(0, sigma), m.GaussianLaw(shift, sigma), delta)
    assert exact == pytest.approx(normal, rel=0.01)


def test_no_delta_rounds_to_a_pure_claim():
    mechanism = m.DiscreteGaussianMechanism(1.0, 60.0)
    assert mechanism.claim.delta == sys.float_info.min


def test_laws_of_different_sigma_are_not_compared():
    with pytest.raises(OptionError, match="no closed form"):
        m.exact_delta(m.DiscreteGaussianLaw(0, 1.0), m.DiscreteGaussianLaw(0, 2.0), 1.0)
    with pytest.raises(OptionError, match="sigma=0"):
        m.DiscreteGaussianLaw(0, 0.0)


def test_answers_have_to_be_whole():
    with pytest.raises(DatasetError, match="not a whole number"):
        m.DiscreteGaussianMechanism(1.0, 1.0).law(0.5)


# Binomial noise: law and delta against integers and fractions; the conformance test covers the sampler.


def masses(n):
    """Pr[heads = 0 … n], exactly."""
    return [Fraction(math.comb(n, k), 2**n) for k in range(n + 1)]


@pytest.mark.parametrize("n", [2, 10, 100, 400])
def test_law_is_the_binomial_one(n):
    law, k = m.BinomialLaw(5, n), np.arange(n + 1) - n // 2 + 5
    exact = masses(n)
    up_to = list(itertools.accumulate(exact))
    np.testing.assert_allclose(np.exp(law.log_density(k)), [float(p) for p in exact], rtol=1e-11)
    np.testing.assert_allclose(law.cdf(k), [float(p) for p in up_to], rtol=1e-11)
    np.testing.assert_allclose(law.sf(k), [float(1 - p) for p in up_to], rtol=1e-11)


def test_law_between_and_beyond_its_outcomes():
    law = m.BinomialLaw(0, 10)
    assert law.log_density([-6, -5.5, 0.5, 6, math.inf]).tolist() == [-math.inf] * 5
    assert law.cdf(0.5) == law.cdf(0.0)
    assert law.cdf([-math.inf, -6, 5, 1e9, math.inf]).tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert law.sf([-math.inf, -6, 5, math.inf]).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_many_coins_keep_the_relative_accuracy():
    law = m.BinomialLaw(0, MOST_FLIPS)
    k = np.array([0, 300, 2000, 5000])
    oracle = stats.binom(MOST_FLIPS, 0.5)
    np.testing.assert_allclose(law.log_density(k), oracle.logpmf(k + MOST_FLIPS // 2), rtol=1e-9)
    np.testing.assert_allclose(law.sf(k), oracle.sf(k + MOST_FLIPS // 2), rtol=1e-9)


@pytest.mark.parametrize("n", [2, 8, 60])
@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_delta_is_the_sum_of_what_exceeds_of_binomial(n, shift, epsilon):
    p, q = masses(n) + [Fraction(0)] * shift, [Fraction(0)] * shift + masses(n)
    factor = Fraction(math.exp(epsilon))
    expected = float(sum(max(a - factor * b, Fraction(0)) for a, b in zip(p, q, strict=True)))
    law_x, law_y = m.BinomialLaw(7, n), m.BinomialLaw(7 + shift, n)
    assert m.hockey_stick(law_x, law_y, epsilon) == pytest.approx(expected, rel=1e-12)
    assert m.hockey_stick(law_y, law_x, epsilon) == m.hockey_stick(law_x, law_y, epsilon)
    ends = float(sum(masses(n)[:shift]))
    if epsilon > 0 and ends < expected < 1:
        assert m.exact_epsilon(law_x, law_y, expected) == pytest.approx(epsilon, rel=1e-9)


def test_delta_covers_the_ends_where_the_loss_is_infinite():
    """The lowest outcome has probability 2⁻ⁿ on one side and 0 on the other: so no finite epsilon holds."""
    law_x, law_y = m.BinomialLaw(0, 8), m.BinomialLaw(1, 8)
    assert m.hockey_stick(law_x, law_y, 500.0) == pytest.approx(2.0**-8, rel=1e-14)
    assert m.exact_epsilon(law_x, law_y, 0.9 * 2.0**-8) == math.inf
    assert m.exact_epsilon(law_x, law_y, 1.1 * 2.0**-8) < 10
    assert m.exact_epsilon(law_x, law_x, 0.0) == 0.0
    assert m.exact_delta(m.BinomialLaw(0, 8), m.BinomialLaw(9, 8), 3.0) == pytest.approx(1.0)  # nothing in common
    assert m.exact_delta(m.BinomialLaw(0, 8), m.BinomialLaw(100, 8), 3.0) == pytest.approx(1.0)


@pytest.mark.parametrize("n", [10, 100])
def test_answers_nearer_than_the_sensitivity_are_harder_to_tell_apart_of_binomial(n):
    laws = [m.BinomialLaw(shift, n) for shift in range(6)]
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        deltas = [m.exact_delta(laws[0], law, epsilon) for law in laws]
        assert deltas == sorted(deltas)


def test_many_coins_are_as_good_as_normal_noise():
    n = 250_000
    mechanism = m.BinomialMechanism(n, epsilon=0.02, sensitivity=5)
    assert mechanism.delta == pytest.approx(m.gaussian_delta(0.02, scale=math.sqrt(n) / 2, sensitivity=5.0), rel=2e-3)


def test_claim_is_exact_at_the_sensitivity_of_binomial():
    mechanism = m.BinomialMechanism(100, epsilon=0.5, sensitivity=2, query=len)
    assert mechanism.claim == ApproxDP(0.5, mechanism.delta)
    x, y = mechanism.law([1] * 4), mechanism.law([1] * 2)
    assert m.exact_delta(x, y, 0.5) == mechanism.delta
    assert m.exact_epsilon(x, y, mechanism.delta) == pytest.approx(0.5, rel=1e-9)


def test_outputs_stay_within_half_the_coins():
    outputs = m.BinomialMechanism(4, 1.0).sample(10, 50_000, np.random.default_rng(1))
    assert np.unique(outputs).tolist() == [8, 9, 10, 11, 12]


def test_no_delta_rounds_to_a_pure_claim_of_binomial():
    mechanism = m.BinomialMechanism(4096, 10.0)
    assert mechanism.claim.delta == sys.float_info.min
    assert m.exact_epsilon(mechanism.law(0), mechanism.law(1)) == math.inf


def test_laws_of_different_numbers_of_coins_are_not_compared():
    with pytest.raises(OptionError, match="no closed form"):
        m.exact_delta(m.BinomialLaw(0, 10), m.BinomialLaw(0, 12), 1.0)
    with pytest.raises(OptionError, match="n_flips=3"):
        m.BinomialLaw(0, 3)


def test_answers_have_to_be_whole_of_binomial():
    with pytest.raises(DatasetError, match="not a whole number"):
        m.BinomialMechanism(10, 1.0).law(0.5)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: m.GaussianMechanism(-1, 0.1), ClaimError, "epsilon=-1 is not allowed; use 0 <= epsilon"),
        (lambda: m.GaussianMechanism(math.nan, 0.1), ClaimError, "epsilon=nan is not allowed"),
        (lambda: m.GaussianMechanism(math.inf, 0.1), ClaimError, "epsilon=inf is not allowed"),
        (
            lambda: m.GaussianMechanism(1, 0),
            ClaimError,
            "delta=0 is not allowed; use 0 < delta < 1 (Gaussian noise has no pure",
        ),
        (lambda: m.GaussianMechanism(1, 1.0), ClaimError, "delta=1.0 is not allowed"),
        (
            lambda: m.GaussianMechanism(1, 0.1, sensitivity=0),
            ClaimError,
            "sensitivity=0 is not allowed; use 0 < sensitivity",
        ),
        (
            lambda: m.GaussianMechanism(1, 0.1, calibration="exact"),
            ClaimError,
            "calibration='exact' is unknown; use \"analytic\" or",
        ),
        (
            lambda: m.GaussianMechanism(2, 0.1, calibration="classical"),
            ClaimError,
            "epsilon=2 is outside the classical theorem; use",
        ),
        (
            lambda: m.GaussianMechanism(0, 0.1, calibration="classical"),
            ClaimError,
            "epsilon=0 is not allowed; use 0 < epsilon",
        ),
        (
            lambda: m.analytic_gaussian_scale(1, 0),
            ClaimError,
            "delta=0 is not allowed; use 0 < delta < 1 (Gaussian noise has no pure",
        ),
        (lambda: m.analytic_gaussian_scale(1, 1.5), ClaimError, "delta=1.5 is not allowed; use 0 < delta < 1"),
        (lambda: m.analytic_gaussian_scale(1, math.nan), ClaimError, "delta=nan is not allowed"),
        (lambda: m.analytic_gaussian_scale(-0.1, 0.1), ClaimError, "epsilon=-0.1 is not allowed; use 0 <= epsilon"),
        (lambda: m.analytic_gaussian_scale(math.nan, 0.1), ClaimError, "epsilon=nan is not allowed"),
        (
            lambda: m.analytic_gaussian_scale(1, 0.1, 0.0),
            ClaimError,
            "sensitivity=0.0 is not allowed; use 0 < sensitivity",
        ),
        (lambda: m.analytic_gaussian_scale(1, 0.1, math.inf), ClaimError, "sensitivity=inf is not allowed"),
        (
            lambda: m.analytic_gaussian_scale(0, 1e-300, 1e9),
            ClaimError,
            "need a standard deviation beyond 1e308; use a larger",
        ),
        (lambda: m.gaussian_loss_tail(-1, 1), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: m.gaussian_loss_tail(1, math.nan), ClaimError, "scale=nan is not allowed"),
        (lambda: m.gaussian_delta(1, 0), ClaimError, "scale=0 is not allowed; use 0 < scale"),
        (lambda: m.gaussian_delta(-1, 1), ClaimError, "epsilon=-1 is not allowed; use 0 <= epsilon"),
        (
            lambda: m.VectorGaussianMechanism(1, 0),
            ClaimError,
            "delta=0 is not allowed; use 0 < delta < 1 (Gaussian noise has no pure",
        ),
        (lambda: m.VectorGaussianMechanism(-1, 0.1), ClaimError, "epsilon=-1 is not allowed"),
        (lambda: m.VectorGaussianMechanism(1, 0.1, sensitivity=0), ClaimError, "sensitivity=0 is not allowed"),
        (lambda: m.LocalGaussianMechanism(1, 1.0, m.Ball(1.0, 1)), ClaimError, "delta=1.0 is not allowed"),
        (
            lambda: m.LocalGaussianMechanism(1, 0.1, (0, 1)),
            ClaimError,
            "domain=(0, 1) is not a domain; use Interval(low, high)",
        ),
        (lambda: faulty.UnclippedLocalGaussian(1, 0.1, 2.0), ClaimError, "domain=2.0 is not a domain"),
        (
            lambda: m.Interval(1, 1),
            ClaimError,
            "low=1 and high=1 bound no interval; use finite numbers with low < high",
        ),
        (lambda: m.Interval(0, math.nan), ClaimError, "high=nan bound no interval"),
        (lambda: m.Interval(-math.inf, 0), ClaimError, "low=-inf and high=0 bound no interval"),
        (lambda: m.Ball(1.0, 0), ClaimError, "n_coords=0 is not a number of coordinates"),
        (lambda: m.Ball(0, 1), ClaimError, "radius=0 is not allowed; use 0 < radius"),
        (lambda: m.Ball(math.inf, 1), ClaimError, "radius=inf is not allowed"),
        (lambda: m.DiscreteGaussianMechanism(0.0, 1.0), ClaimError, "sigma=0.0 is not allowed"),
        (lambda: m.DiscreteGaussianMechanism(math.nan, 1.0), ClaimError, "sigma=nan is not allowed"),
        (lambda: m.DiscreteGaussianMechanism(1e9, 1.0), ClaimError, "sigma=1000000000.0 is too large for a table"),
        (lambda: m.DiscreteGaussianMechanism(0.05, 1.0), ClaimError, "sigma=0.05 gives delta 1 at epsilon=1"),
        (lambda: m.DiscreteGaussianMechanism(1.0, -1.0), ClaimError, "epsilon=-1.0 is not allowed"),
        (lambda: m.DiscreteGaussianMechanism(1.0, 1.0, sensitivity=0), ClaimError, "sensitivity=0 is not allowed"),
        (
            lambda: m.DiscreteGaussianMechanism(1.0, 1.0, sensitivity=1.5),
            ClaimError,
            "sensitivity=1.5 is not a whole number",
        ),
        (lambda: m.BinomialMechanism(0, 1.0), ClaimError, "n_flips=0 is not allowed; use an even number from 2 to"),
        (lambda: m.BinomialMechanism(7, 1.0), ClaimError, "n_flips=7 is not allowed"),
        (lambda: m.BinomialMechanism(2.0**30, 1.0), ClaimError, "n_flips=1073741824.0 is not allowed"),
        (lambda: m.BinomialMechanism(math.nan, 1.0), ClaimError, "n_flips=nan is not allowed"),
        (lambda: m.BinomialMechanism(10, -1.0), ClaimError, "epsilon=-1.0 is not allowed"),
        (lambda: m.BinomialMechanism(10, math.nan), ClaimError, "epsilon=nan is not allowed"),
        (lambda: m.BinomialMechanism(10, 1.0, sensitivity=0), ClaimError, "sensitivity=0 is not allowed"),
        (lambda: m.BinomialMechanism(10, 1.0, sensitivity=1.5), ClaimError, "sensitivity=1.5 is not a whole number"),
        (
            lambda: m.BinomialMechanism(10, 1.0, sensitivity=11),
            ClaimError,
            "n_flips=10 gives delta 1 at epsilon=1, which claims",
        ),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
