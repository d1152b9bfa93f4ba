"""Experiments on the analytic Gaussian mechanism: exact values, statements and the figure."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpaudit import Verdict
from dpaudit.audit.inference.binomial_tails import clopper_pearson
from dpaudit.experiments.documents.analytic_gaussian import experiments
from dpaudit.experiments.statements.figures import SCALES, scales_figure
from dpaudit.experiments.statements.gaussian_statements import IsBelow, attained_delta, loss_threshold, noise_scale
from dpaudit.experiments.suite.run_suite import run_experiments
from dpaudit.mechanisms import (
    GaussianLaw,
    GaussianMechanism,
    Interval,
    LocalGaussianMechanism,
    VectorGaussianMechanism,
    exact_delta,
)

ALPHA = 1e-6
CASES = [case for experiment in experiments() for case in experiment.cases]
BY_NAME = {case.name: case for case in CASES}


def test_attained_delta_counts_the_best_half_line():
    """Compare with a count of the same outputs on the half-line where the density ratio exceeds e^ε."""
    mechanism, runs = GaussianMechanism(0.7, 0.02), 50_000
    found = attained_delta(mechanism, 0.0, 1.0, runs=runs, alpha=1e-3, seed=4)
    edge = 0.5 - 0.7 * mechanism.scale**2
    assert loss_threshold(0.0, 1.0, mechanism.scale, 0.7) == pytest.approx(edge)
    point = found.points[0]
    best = GaussianLaw(0, mechanism.scale).cdf(edge) - math.exp(0.7) * GaussianLaw(1, mechanism.scale).cdf(edge)
    assert float(best) == pytest.approx(0.02, rel=1e-8)
    assert point.lower < 0.02 < point.upper
    assert (point.low, point.high) == (0.02, 0.02)
    # The width is that of two Clopper-Pearson intervals at the expected counts.
    shares = [float(GaussianLaw(mean, mechanism.scale).cdf(edge)) for mean in (0, 1)]
    (p_low, _), (p_high, _) = clopper_pearson(round(shares[0] * runs), runs, alpha=5e-4)
    (q_low, _), (q_high, _) = clopper_pearson(round(shares[1] * runs), runs, alpha=5e-4)
    expected = p_high - p_low + math.exp(0.7) * (q_high - q_low)
    assert point.upper - point.lower == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("mechanism", "dataset", "n_coordinates"),
    [
        (GaussianMechanism(1.0, 0.01), 3.0, 1),
        (VectorGaussianMechanism(1.0, 0.01), (1.0, -2.0, 1e5), 3),
        (LocalGaussianMechanism(1.0, 0.01, Interval(0, 1)), 5.0, 1),
    ],
    ids=["number", "vector", "local"],
)
def test_noise_scale_is_the_chi_square_interval(mechanism, dataset, n_coordinates):
    """The interval has the chi-square width for 5000 runs, covers the scale, and excludes scales 15% off."""
    measure = partial(noise_scale, mechanism, dataset, runs=5000, alpha=1e-3, seed=3)
    result = measure(mechanism.scale)
    point = result.points[0]
    assert result.verdict is Verdict.NOT_REFUTED
    assert point.lower < point.estimate < point.upper
    freedom = 5000 * n_coordinates
    expected = math.sqrt(stats.chi2.isf(5e-4, freedom) / stats.chi2.ppf(5e-4, freedom))
    assert point.upper / point.lower == pytest.approx(expected, rel=1e-9)


def test_one_bit_of_the_outputs_has_the_whole_delta():
    """On the best half-line the bit has the whole delta, on other half-lines less."""
    mechanism = GaussianMechanism(1.0, 0.01)
    best = loss_threshold(0.0, 1.0, mechanism.scale, 1.0)

    def excess(threshold):
        p, q = (float(mechanism.law(answer).cdf(threshold)) for answer in (0.0, 1.0))
        return p - math.e * q

    assert excess(best) == pytest.approx(exact_delta(mechanism.law(0.0), mechanism.law(1.0), 1.0), rel=1e-9)
    assert max(excess(best - 0.1), excess(best + 0.1)) < excess(best)
    bits = IsBelow(mechanism, best).sample(0.0, 1000, np.random.default_rng(1))
    outputs = mechanism.sample(0.0, 1000, np.random.default_rng(1))
    assert np.array_equal(bits, outputs <= best)
    bit = IsBelow(mechanism, best)
    assert exact_delta(bit.law(0.0), bit.law(1.0), 1.0) == pytest.approx(excess(best), rel=1e-9)
    assert str(IsBelow(mechanism, best)) == f"{mechanism} <= {best:.4g}"


@pytest.mark.evidence
def test_figure_shows_every_measured_scale():
    measured = replace(experiments()[2], cases=tuple(case for case in CASES if case.name in SCALES))
    suite = run_experiments([measured], alpha=ALPHA, seed=0, runs=2000)
    figure = scales_figure(suite.entries)
    (axes,) = figure.axes
    assert len(axes.containers) == len(SCALES)  # one error bar each
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[-1] == "calibrated"
    assert len(labels) == 4
    ratio = dict(zip(*axes.lines[0].get_data(), strict=True))  # the first curve is above 1 for epsilon below 1
    assert all(value > 1 for epsilon, value in ratio.items() if epsilon < 0.95)
    assert min(value for epsilon, value in ratio.items() if 1.05 < epsilon <= 1.1) < 0.8
