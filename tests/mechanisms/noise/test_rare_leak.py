"""A rare leak: the law with its atom is exactly (epsilon, delta)-DP, without a pure guarantee.

The random test has a false-alarm probability of 1e-8.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.audit.claims.claim import ApproxDP
from dpaudit.audit.errors import OptionError
from dpaudit.mechanisms import RareLeakLaplace, exact_delta, exact_epsilon, hockey_stick
from dpaudit.mechanisms.noise.rare_leak import OFFSET
from dpaudit.mechanisms.noise_samplers import grid_step

ALARM = 1e-8
MECHANISM = RareLeakLaplace(0.5, 0.01, sensitivity=2.0)


def test_claim_and_name():
    assert MECHANISM.claim == ApproxDP(0.5, 0.01)
    assert str(MECHANISM) == "RareLeakLaplace(epsilon=0.5, delta=0.01, sensitivity=2)"


def test_law_is_a_mixture():
    law, noise = MECHANISM.law(3.0), stats.laplace(3.0, 4.0)
    points = np.array([-20.0, 3.0, 900.0, OFFSET + 2.9, OFFSET + 3.0, OFFSET + 40.0])
    is_passed = points >= OFFSET + 3.0
    np.testing.assert_allclose(law.cdf(points), 0.99 * noise.cdf(points) + 0.01 * is_passed, rtol=1e-12)
    np.testing.assert_allclose(law.sf(points), 0.99 * noise.sf(points) + 0.01 * ~is_passed, rtol=1e-12)
    assert law.log_density(OFFSET + 3.0) == pytest.approx(math.log(0.01))
    assert law.log_density(5.0) == pytest.approx(math.log(0.99) + noise.logpdf(5.0))


@pytest.mark.parametrize(("x", "y", "epsilon"), [(0.0, 2.0, 0.0), (0.0, 2.0, 0.3), (0.0, 2.0, 0.5), (0.0, 6.0, 0.5)])
def test_delta_is_the_positive_part_of_the_difference(x, y, epsilon):
    """By quadrature of the densities, plus the whole atom unless the other law has it."""
    p, q = stats.laplace(x, 4.0).pdf, stats.laplace(y, 4.0).pdf

    def excess(z):
        return 0.99 * max(0.0, p(z) - math.exp(epsilon) * q(z))

    stops = [-200, x, (x + y) / 2 - epsilon * 4 / 2, y, 200]
    exact = math.fsum(integrate.quad(excess, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(stops))
    found = hockey_stick(MECHANISM.law(x), MECHANISM.law(y), epsilon)
    assert found == pytest.approx(exact + 0.01, rel=1e-9)


def test_claim_is_exact_and_no_smaller_delta_helps():
    law, moved = MECHANISM.law(0.0), MECHANISM.law(2.0)
    assert exact_delta(law, moved, 0.5) == pytest.approx(0.01, rel=1e-12)
    assert exact_epsilon(law, moved, 0.01) == pytest.approx(0.5, rel=1e-12)
    assert exact_epsilon(law, moved) == exact_epsilon(law, moved, 0.0099) == math.inf
    assert exact_epsilon(law, moved, 0.999) == 0.0
    assert exact_epsilon(law, MECHANISM.law(0.0)) == 0.0  # both leak the same point
    assert exact_delta(law, MECHANISM.law(0.0), 0.0) == 0.0


@pytest.mark.parametrize("delta", [0.011, 0.05, 0.3])
def test_epsilon_and_delta_are_inverse(delta):
    law, moved = MECHANISM.law(0.0), MECHANISM.law(5.0)
    epsilon = exact_epsilon(law, moved, delta)
    assert epsilon > 0
    assert exact_delta(law, moved, epsilon) == pytest.approx(delta, rel=1e-9)


def test_leaks_are_as_rare_as_said_and_tell_the_answer():
    runs = 200_000
    outputs = MECHANISM.sample(1.3, runs, np.random.default_rng(1))
    is_leak = outputs > 500.0
    hits = stats.binom(runs, 0.01)
    assert hits.ppf(ALARM / 2) <= is_leak.sum() <= hits.isf(ALARM / 2)
    assert set(outputs[is_leak].tolist()) == {OFFSET + 1.3}
    assert np.all(outputs[~is_leak] % grid_step(4.0) == 0)


def test_other_noise_does_not_compare():
    with pytest.raises(OptionError, match="no closed form"):
        exact_epsilon(MECHANISM.law(0.0), RareLeakLaplace(0.5, 0.02, sensitivity=2.0).law(0.0))
    with pytest.raises(OptionError, match="no closed form"):
        exact_epsilon(MECHANISM.law(0.0), RareLeakLaplace(0.5, 0.01).law(0.0))
