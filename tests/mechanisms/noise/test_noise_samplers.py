"""Noise samplers. Random tests use fixed seeds; each has a false-alarm probability of at most 1e-7."""

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.audit.errors import DatasetError
from dpaudit.mechanisms import GeometricLaw
from dpaudit.mechanisms import noise_samplers as noise

RUNS = 400_000
ALARM = 1e-7


def counts_are_off(counts, probabilities, runs, alarm):
    """Return whether a cell's count is outside its exact binomial limits; false-alarm probability ≤ `alarm`."""
    each = alarm / (2 * len(counts))
    low, high = stats.binom.ppf(each, runs, probabilities), stats.binom.isf(each, runs, probabilities)
    return bool(np.any((counts < low) | (counts > high)))


@pytest.mark.parametrize(
    ("fill", "law"),
    [(noise.fill_laplace, stats.laplace), (noise.fill_gaussian, stats.norm), (noise.fill_exponential, stats.expon)],
)
def test_standard_laws(fill, law):
    out = np.empty(RUNS)
    fill(out, np.random.default_rng(1))
    cells = np.histogram(law.cdf(out), bins=50, range=(0, 1))[0]
    assert not counts_are_off(cells, np.full(50, 1 / 50), RUNS, ALARM)


def test_the_check_of_counts_sees_a_scale_wrong_by_a_twentieth():
    out = 1.05 * noise.standard_laplace(RUNS, np.random.default_rng(1))
    cells = np.histogram(stats.laplace.cdf(out), bins=50, range=(0, 1))[0]
    assert counts_are_off(cells, np.full(50, 1 / 50), RUNS, ALARM)


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3])
def test_two_sided_geometric_is_exact_zero_included(scale):
    law = GeometricLaw(0, math.exp(-1 / scale))
    k = np.arange(-30, 31)
    draws = noise.two_sided_geometric(scale, RUNS, np.random.default_rng(2))
    assert draws.dtype == np.int64
    counts = (draws == k[:, None]).sum(axis=1)
    assert not counts_are_off(counts, np.exp(law.log_density(k)), RUNS, ALARM)


def test_two_sided_geometric_events_follow_from_the_exponential():
    """The magnitude is at least k if and only if E ≥ k/scale − ln(2/(1+r)), with probability 2rᵏ/(1+r)."""
    for scale in (0.05, 1.0, 2.0**30):
        r = math.exp(-1 / scale)
        for k in (1, 2, 50):
            threshold = k / scale - math.log(2 / (1 + r))
            assert threshold >= 0
            assert math.exp(-threshold) == pytest.approx(2 * r**k / (1 + r), rel=1e-12)


@pytest.mark.parametrize("n_outcomes", [1, 2, 5, 300])
def test_draw_indices(n_outcomes):
    probabilities = np.random.default_rng(3).dirichlet(np.ones(n_outcomes))
    draws = noise.draw_indices(probabilities, RUNS, np.random.default_rng(4))
    counts = np.bincount(draws, minlength=n_outcomes)
    assert len(counts) == n_outcomes
    assert not counts_are_off(counts, probabilities, RUNS, ALARM)


def test_draw_indices_skips_what_is_impossible():
    draws = noise.draw_indices([0.0, 0.5, 0.0, 0.5, 0.0], 10_000, np.random.default_rng(5))
    assert set(draws.tolist()) == {1, 3}


@pytest.mark.parametrize("scale", [1e-9, 0.3, 1.0, 1.5, 2.0, 12345.678])
def test_the_grid_is_a_power_of_two_of_the_stated_size(scale):
    step = noise.grid_step(scale)
    assert math.frexp(step)[0] == 0.5
    assert 2.0**-21 < step / scale <= 2.0**-20


@pytest.mark.parametrize("answer", [0.0, 1.0, 10.1, -3.3e-7, 1e9 + 0.123456789, 2.0**30])
def test_rounding_is_to_the_nearest_grid_point_of_the_exact_sum(answer):
    values = np.random.default_rng(6).laplace(size=2000)
    step = noise.grid_step(1.0)
    outputs = noise.round_to_grid(values.copy(), 1.0, answer)
    multiples = outputs / step
    assert np.array_equal(multiples, np.rint(multiples))
    # In units of the step: the answer splits exactly, and noise and remainder add with 30 spare bits.
    whole = round(answer / step)
    expected = whole + np.rint(values / step + (answer / step - whole))
    assert np.array_equal(multiples, expected)


def test_rounding_leaves_no_signed_zero():
    outputs = noise.round_to_grid(np.array([-1e-12, 1e-12, -0.0]), 1.0)
    assert not np.signbit(outputs).any()


def test_low_bits_do_not_tell_the_answer():
    """The lowest set bit is never below the grid, where raw doubles distinguish the answers 0 and 1."""

    def lowest_exponents(outputs):
        mantissa, exponent = np.frexp(outputs[outputs != 0])
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        return exponent - 53 + np.log2((whole & -whole).astype(np.float64))

    raw = [lowest_exponents(a + noise.standard_laplace(50_000, np.random.default_rng(7))) for a in (0.0, 1.0)]
    assert (raw[0] < -53).mean() > 1.5 * (raw[1] < -53).mean()
    for answer in (0.0, 1.0):
        outputs = noise.laplace_on_grid(answer, 1.0, 50_000, np.random.default_rng(8))
        assert lowest_exponents(outputs).min() == math.log2(noise.grid_step(1.0))


@pytest.mark.parametrize("answer", [2.0**32, -1e300, math.nan, math.inf])
def test_answers_beyond_the_grid_are_refused(answer):
    with pytest.raises(
        DatasetError,
        match=r"too large for a double to resolve .*, the grid step of .* 1; use answers within",
    ):
        noise.round_to_grid(np.zeros(3), 1.0, answer)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, noise.PIECE, noise.PIECE + 1])
def test_any_size(size):
    rng = np.random.default_rng(9)
    assert noise.random_signs(size, rng).shape == (size,)
    assert noise.standard_laplace(size, rng).shape == (size,)
    assert noise.two_sided_geometric(1.0, size, rng).shape == (size,)
    assert noise.draw_indices([0.5, 0.5], size, rng).shape == (size,)
    assert noise.gaussian_on_grid(0.0, 1.0, size, rng).shape == (size,)
