"""The fitted log-likelihood ratio: exact where ramps can say it, and shrunken ratios of outcomes without an order."""

import math

import numpy as np
import pytest
from scipy import integrate
from scipy.special import expit

from dpaudit.audit.portfolio.curve import _fit, expected_log_ratio, shrunken_log_ratios

AT = np.linspace(-3.0, 4.0, 71)


def fit_log_ratio(at, count_x, count_y, *, sloped=False):
    """The ratio of the ramps with knots in their best places, about which the expected ratio is taken."""
    return _fit(at, count_x, count_y, sloped)[0].log_ratio


def counts(ratio, total=1e6):
    """Expected counts on x and y in cells of equal pooled mass with this log ratio."""
    share = 1 / (1 + np.exp(-ratio))
    return share * total / len(ratio), (1 - share) * total / len(ratio)


@pytest.mark.parametrize(
    "ratio",
    [
        pytest.param(np.clip(1 - 2 * AT, -1, 1), id="laplace"), pytest.param(0.5 - AT, id="gaussian"),
        pytest.param(np.where(AT < 0.55, 0.7, -0.7), id="step"),
        pytest.param(np.clip(AT, 0, 1) - np.clip(AT, 2, 3), id="two-ramps"), pytest.param(np.zeros(71), id="equal"),
    ],
)  # fmt: skip
def test_what_ramps_can_say_is_found(ratio):
    fitted = fit_log_ratio(AT, *counts(ratio))
    assert fitted == pytest.approx(ratio, abs=5e-3)
    if ratio[0] == 1.0:  # plateaus are exactly flat
        assert max(np.ptp(fitted[AT <= -0.05]), np.ptp(fitted[AT >= 1.05])) < 1e-9


def test_noise_alone_gives_no_ramp():
    """Equal distributions at 10,000 outputs: a step costs the BIC 18; where noise pays for one it is a small one."""
    for seed in range(5):
        counts = np.random.default_rng(seed).poisson(70, size=(2, 71)).astype(float)
        assert np.ptp(fit_log_ratio(AT, *counts)) < 0.5


@pytest.mark.parametrize(
    ("at", "x", "y"),
    [
        pytest.param([0.0, 1.0], [5.0, 0.0], [0.0, 5.0], id="separated"),
        pytest.param([-1e300, 0.0, 1e300], [1.0, 3.0, 9.0], [9.0, 3.0, 1.0], id="huge"),
        pytest.param([0.0, 5e-324, 1.0], [1.0, 3.0, 9.0], [9.0, 3.0, 1.0], id="tiny"),
        pytest.param(list(range(400)), [1.0] * 400, [0.0] * 400, id="only-x"),
    ],
)
def test_hard_cells_give_finite_ratios(at, x, y):
    with np.errstate(over="ignore"):
        fitted = fit_log_ratio(np.array(at, dtype=float), np.array(x), np.array(y))
    assert np.isfinite(fitted).all()


def test_cells_that_separate_the_two_sides_have_a_finite_ratio():
    """Slopes grow without end there, and ramps between neighbouring cells are nearly one another."""
    rng = np.random.default_rng(0)
    for trial in range(4):
        at = np.unique(rng.normal(size=rng.integers(2, 40)) * 10.0 ** rng.integers(-6, 7))
        is_x = rng.random(len(at)) < 0.5
        counts = rng.integers(1, 10_000, len(at)).astype(np.float64)
        cells = at, counts * is_x, counts * ~is_x
        ratio, expected = (each(*cells, sloped=bool(trial % 2)) for each in (fit_log_ratio, expected_log_ratio))
        assert np.isfinite(ratio).all()
        assert np.abs(expected).max() <= 11.0 * (np.abs(ratio).max() + 1.0), "each of five ramps moves within the range"


def test_the_expected_ratio_falls_short_of_the_plateau_near_an_uncertain_knot():
    """Many counts say where the knot is; few leave it between its neighbours, and plateaus far away are kept."""
    truth = np.where(AT < 0.55, 0.7, -0.7)
    many, few = (expected_log_ratio(AT, *counts(truth, total)) for total in (1e6, 1e3))
    assert many == pytest.approx(truth, abs=0.02)
    beside = np.flatnonzero(AT < 0.55)[-1]
    assert few[beside] < 0.6 < few[0] < 0.8
    assert -0.8 < few[-1] < -0.6


# Ratios of outcomes without an order.


def test_one_deviation_is_the_posterior_mean():
    """If nearly all outcomes deviate alike, the estimate is the posterior mean under a normal prior."""
    rng, deviation = np.random.default_rng(0), 0.3
    own = rng.normal(0, deviation, 20_000)
    counts = rng.integers(20, 200, len(own))
    on_x = rng.binomial(counts, expit(own)).astype(float)
    found = shrunken_log_ratios(on_x, counts - on_x)
    for place in range(3):

        def weight(u, a=on_x[place], n=counts[place]):
            likelihood = a * math.log(expit(u)) + (n - a) * math.log1p(-expit(u))
            return math.exp(likelihood + n / 2 - ((u / deviation) ** 2) / 2)

        total = integrate.quad(weight, -5, 5, epsabs=0)[0]
        mean = integrate.quad(lambda u, weight=weight: u * weight(u), -5, 5, epsabs=0)[0] / total
        assert found[place] == pytest.approx(mean, abs=0.2 * deviation)
    assert np.mean((found - own) ** 2) < 0.9 * np.mean((np.log((on_x + 0.5) / (counts - on_x + 0.5)) - own) ** 2)


def test_estimates_are_between_zero_and_counts_and_turn_with_the_sides():
    on_x, on_y = np.random.default_rng(1).integers(0, 50, (2, 300)).astype(float)
    found = shrunken_log_ratios(on_x, on_y)
    raw = np.log(np.maximum(on_x, 1e-9) / np.maximum(on_y, 1e-9))
    assert np.all(found * raw >= -1e-9)
    assert np.all(np.abs(found) <= np.abs(raw) + 1e-9)
    assert shrunken_log_ratios(on_y, on_x) == pytest.approx(-found, abs=1e-6)


def test_one_odd_outcome_keeps_its_ratio_and_the_rest_are_equal():
    counts = np.full(300, 400.0)
    on_x = np.random.default_rng(2).binomial(counts.astype(int), 0.5).astype(float)
    on_x[7] = 330.0
    found = shrunken_log_ratios(on_x, counts - on_x)
    assert found[7] > 0.95 * math.log(330 / 70)
    assert np.std(np.delete(found, 7)) < 0.4 * np.std(np.log(on_x / (counts - on_x)))
