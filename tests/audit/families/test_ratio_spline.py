"""The fitted log-likelihood ratio: exact where ramps can say it, never a failure where they cannot."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.audit.families.ratio_spline import fit_log_ratio

AT = np.linspace(-3.0, 4.0, 71)


def hits(ratio, total=1e6):
    """Expected counts on x and y in cells of equal pooled mass with this log ratio."""
    share = 1 / (1 + np.exp(-ratio))
    return share * total / len(ratio), (1 - share) * total / len(ratio)


@pytest.mark.parametrize(
    "ratio",
    [
        pytest.param(np.clip(1 - 2 * AT, -1, 1), id="laplace"),
        pytest.param(0.5 - AT, id="gaussian"),
        pytest.param(np.where(AT < 0.55, 0.7, -0.7), id="step"),
        pytest.param(np.clip(AT, 0, 1) - np.clip(AT, 2, 3), id="two-ramps"),
        pytest.param(np.zeros(71), id="equal"),
    ],
)
def test_what_ramps_can_say_is_found(ratio):
    assert fit_log_ratio(AT, *hits(ratio)) == pytest.approx(ratio, abs=5e-3)


def test_a_plateau_is_exactly_flat():
    fitted = fit_log_ratio(AT, *hits(np.clip(1 - 2 * AT, -1, 1)))
    assert np.ptp(fitted[AT <= -0.05]) < 1e-9
    assert np.ptp(fitted[AT >= 1.05]) < 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_gives_no_ramp(seed):
    """Equal laws at 10,000 outputs: a step costs the BIC 18; where noise pays for one it is a small one."""
    counts = np.random.default_rng(seed).poisson(70, size=(2, 71)).astype(float)
    assert np.ptp(fit_log_ratio(AT, *counts)) < 0.5


@pytest.mark.parametrize(
    ("at", "x", "y"),
    [
        pytest.param([0.0, 1.0], [5.0, 0.0], [0.0, 5.0], id="separated"),
        pytest.param([0.0], [5.0], [5.0], id="one-cell"),
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
    for trial in range(30):
        at = np.unique(rng.normal(size=rng.integers(2, 40)) * 10.0 ** rng.integers(-6, 7))
        is_x = rng.random(len(at)) < 0.5
        hits = rng.integers(1, 10_000, len(at)).astype(np.float64)
        ratio = fit_log_ratio(at, hits * is_x, hits * ~is_x, sloped=bool(trial % 2))
        assert np.isfinite(ratio).all()
