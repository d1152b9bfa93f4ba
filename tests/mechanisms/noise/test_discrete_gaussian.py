"""The discrete Gaussian: law and delta against mpmath sums and another accountant, the sampler against the law.

Random tests use fixed seeds; each of the eight here has a false-alarm probability of at most 1e-7.
"""

import math
import sys

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP
from dpaudit.audit.errors import DatasetError, OptionError
from dpaudit.mechanisms.noise.discrete_gaussian import LARGEST_SIGMA, discrete_gaussian

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
