"""Experiments on the exponential mechanism and on noisy max: exact values, statements and figures.

Random tests state their limits.
"""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpaudit import Verdict
from dpaudit.audit.distribution_checks.check_slope import fit_slope
from dpaudit.audit.errors import DatasetError
from dpaudit.audit.records.suite import Entry
from dpaudit.experiments.documents.exponential_mechanism import (
    EPSILON,
    UTILITIES,
    centrality,
    experiments,
    levels,
    patients,
    revenue,
)
from dpaudit.experiments.statements.exponential_statements import (
    candidate_probability,
    fitted_slope,
    loss_halves,
    more_often,
    utility_tail,
)
from dpaudit.experiments.statements.figures import halves_figure, slopes_figure
from dpaudit.mechanisms import (
    PUMPKIN_BIDS,
    ExponentialMechanism,
    PostedPriceAuction,
    ReportNoisyMax,
    Revenue,
    exact_epsilon,
)

SLOPES_FIGURE = partial(slopes_figure, epsilon=EPSILON, utilities=UTILITIES)
CASES = [case for experiment in experiments() for case in experiment.cases]
BY_NAME = {case.name: case for case in CASES}
CHECK = {"runs": 50_000, "alpha": 1e-6, "seed": 5}


def test_halves_cover_the_parts_of_the_exact_loss():
    """Intervals cover ±1/scale for the numerators and the ratio of the weights' sums for the normaliser."""
    x, y = (0.0, 0.0, 1.0, 0.0), (1.0, -1.0, 0.0, 0.0)
    for mechanism in (ExponentialMechanism(1.5), ExponentialMechanism(1.5, monotone=True)):
        own, normaliser = mechanism.loss_parts(x, y)
        points = loss_halves(mechanism, x, y, 0.75, **CHECK).points
        truths = [normaliser, own[1], own[0]]  # the moves in ascending order
        assert [point.at.split()[-1] for point in points] == ["normaliser", "-1", "+1"]
        for point, truth in zip(points, truths, strict=True):
            assert point.lower < truth < point.upper
            assert point.upper - point.lower < 0.3
            assert (point.low, point.high) == (-0.75, 0.75)


def test_halves_need_a_fixed_candidate():
    with pytest.raises(DatasetError, match="keep one candidate in place"):
        loss_halves(ExponentialMechanism(1.0), (0.0, 0.0), (1.0, -1.0), 0.5, **CHECK)


def test_slope_is_that_of_the_multinomial_likelihood():
    """The score Σ n_r (u_r − mean under the fit) is zero, and the curvature determines the width of the interval."""
    u = np.array([0.0, 0.5, 2.0, 3.5])
    result = fitted_slope(ExponentialMechanism(0.8), tuple(u), 0.4, **CHECK)
    fit, *pairs = result.points
    counts = _counts(result, u)
    weights = np.exp(fit.estimate * u)
    mean = weights @ u / weights.sum()
    assert counts @ u / counts.sum() == pytest.approx(mean, rel=1e-9)
    sd = 1 / math.sqrt(counts.sum() * (weights @ (u - mean) ** 2 / weights.sum()))
    assert fit.upper - fit.lower == pytest.approx(2 * math.sqrt(2 * math.log(2 / 5e-7)) * sd, rel=0.02)
    assert result.verdict is Verdict.NOT_REFUTED
    none = fitted_slope(ExponentialMechanism(4.0), (0.0, 5.0, 9.0), 2.0, runs=10, alpha=1e-6, seed=1)
    assert none.points[0].lower == -math.inf, "without hits"
    assert [pair.at for pair in pairs] == [f"utilities {low:g} and 3.5" for low in u[:-1]]
    for pair in result.points:
        assert pair.lower < 0.4 < pair.upper
        assert pair.lower < pair.estimate < pair.upper


@pytest.mark.parametrize("runs", [5, 40])
@pytest.mark.parametrize("slope", [0.1, 1.0, 3.0])
def test_slope_interval_has_at_least_its_stated_coverage(runs, slope):
    """Enumerate all counts of two candidates."""
    u, alpha, missed = np.array([0.0, 1.0]), 0.05, 0.0
    chances = stats.binom(runs, 1 / (1 + math.exp(-slope))).pmf(np.arange(runs + 1))
    for hits, chance in enumerate(chances):
        found = fit_slope(u, np.array([runs - hits, hits]), alpha)
        missed += chance * (not found["lower"] <= slope <= found["upper"])
    assert missed <= alpha


def _counts(result, u):
    """Recover the counts from the slopes of the pairs, which are odds against the best candidate."""
    odds = np.array([math.exp(pair.estimate * (low - u[-1])) for pair, low in zip(result.points[1:], u, strict=False)])
    return CHECK["runs"] * np.array([*odds, 1.0]) / (odds.sum() + 1)


def test_a_nonlinear_curve_is_refuted_at_its_average_slope():
    """With exponential noise the fitted slope alone would not refute linearity."""
    u, noisy = (0.0, 1.0, 2.0, 3.0), ReportNoisyMax(2.0, noise="exponential")
    slope = fitted_slope(noisy, u, 1.0, **CHECK).points[0].estimate
    result = fitted_slope(noisy, u, slope, **CHECK)
    assert not result.points[0].is_outside
    assert result.is_refuted


@pytest.mark.parametrize(("n_best", "n_counted"), [(1, 1), (5, 5), (5, 1)])
@pytest.mark.evidence
def test_tail_counts_what_is_below_the_edge(n_best, n_counted):
    """Each point covers the exact tail of the law; t levels lie above the edge for t."""
    mechanism, u, ts = ExponentialMechanism(1.0), levels(n_best, n_counted), (0.0, 2.0, 4.0)
    result = utility_tail(mechanism, u, 1.0, ts, n_counted, **CHECK)
    p = mechanism.law(u).probabilities
    assert len(u) == n_best + 120
    for point, t in zip(result.points, ts, strict=True):
        tail = p[n_best + 20 * int(t) :].sum() * math.exp(t)
        assert tail <= 1
        assert point.lower < tail < point.upper
        assert point.high == 1.0
    assert (utility_tail(mechanism, u, 2.0, ts, n_counted, **CHECK)).is_refuted


def test_nearly_reached_tail_is_within_three_percent_of_the_bound():
    mechanism, u, epsilon, _, n_best = BY_NAME["E6-tail-nearly-reached"].measure.args
    assert (epsilon, n_best) == (mechanism.epsilon, 1)
    assert 0.97 < mechanism.law(u).probabilities[1:].sum() * math.exp(4) <= 1


def test_probability_and_share_have_clopper_pearson_limits():
    """Compare with the limits of the exact test of SciPy on the same counts."""
    mechanism, u = ExponentialMechanism(1.0), (0.0, 1.0, 2.0)
    p = mechanism.law(u).probabilities
    found = candidate_probability(mechanism, u, 1, 0.0, 0.3, **CHECK).points[0]
    exact = stats.binomtest(round(found.estimate * CHECK["runs"]), CHECK["runs"]).proportion_ci(1 - CHECK["alpha"])
    assert (found.lower, found.upper) == pytest.approx(exact, rel=1e-6)
    assert found.lower < p[1] < found.upper
    share = more_often(mechanism, u, 2, 1, **CHECK)
    assert share.points[0].lower < p[2] / (p[1] + p[2]) < share.points[0].upper
    assert share.verdict is Verdict.NOT_REFUTED
    assert not more_often(mechanism, (1.0, 1.0, 2.0), 0, 1, **CHECK).is_refuted  # a tie is allowed either way


def test_utilities_of_the_examples():
    assert [centrality([0, 0, 1, 5], place) for place in (0, 1, 2, 5)] == [-2.0, -1.0, -2.0, -3.0]
    assert patients([("gout",), ("asthma", "gout"), ()], "gout") == 2
    prices = (1.0, 3.0, 3.01, 3.02)
    assert [revenue(list(PUMPKIN_BIDS), price) for price in prices] == Revenue(prices)(PUMPKIN_BIDS).tolist()


def test_the_best_price_is_that_of_four_pumpkins():
    law = PostedPriceAuction(40.0, [cents / 100 for cents in range(1, 501)]).law(PUMPKIN_BIDS)
    assert law.values[law.probabilities.argmax()] == 1.0
    ratio = math.exp(40 * (4.0 - 3.01) / (2 * 5.0))
    assert BY_NAME["E5-best-is-1.00"].exact == pytest.approx(ratio / (1 + ratio))


def test_half_loss_is_refuted_because_of_the_normaliser():
    """The numerators contribute at most ε/2; together with the normaliser the loss is .966."""
    case = BY_NAME["E2-half-loss"]
    own, normaliser = case.mechanism.loss_parts(case.x, case.y)
    assert np.abs(own).max() == case.claim.epsilon
    assert np.abs(own + normaliser).max() == pytest.approx(exact_epsilon(*map(case.mechanism.law, (case.x, case.y))))


def _entries(*names, runs=20_000):
    return [
        Entry(
            name=name,
            experiment=name.split("-")[0],
            result=BY_NAME[name].measure(runs=runs, alpha=1e-3, seed=0),
            expected=BY_NAME[name].expected,
        )
        for name in names
    ]


@pytest.mark.evidence
def test_halves_figure_shows_each_part_with_its_interval():
    entries = _entries("E1-halves", "E1-halves-missing-2")
    (axes,) = halves_figure(entries).axes
    assert len(axes.containers) == 2
    for container, entry in zip(axes.containers, entries, strict=True):
        assert container[0].get_xdata().tolist() == [point.estimate for point in entry.result.points]
    assert [text.get_text() for text in axes.get_yticklabels()] == [point.at for point in entries[0].result.points]
    labels = sorted(text.get_text() for text in axes.get_legend().get_texts())
    assert labels == ["with the factor 2", "without the factor 2", "± epsilon/2"]


@pytest.mark.evidence
def test_slopes_figure_shows_points_on_the_lines_of_the_fits():
    entries = _entries("E3-slope", "E3-slope-missing-2")
    (axes,) = SLOPES_FIGURE(entries).axes
    assert len(axes.containers) == 2
    for container, entry in zip(axes.containers, entries, strict=True):
        x, y = container[0].get_data()
        assert x.tolist() == [utility - max(UTILITIES) for utility in UTILITIES[:-1]]
        pairs = [point.estimate for point in entry.result.points[1:]]
        assert np.asarray(y) == pytest.approx(np.array(pairs) * x)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[:2] == ["slope epsilon/2", "slope epsilon"]
    assert sum("fitted slope" in label for label in labels) == 2


@pytest.mark.parametrize("figure", [halves_figure, SLOPES_FIGURE], ids=["halves", "slopes"])
def test_figures_are_drawn_without_results(figure):
    assert len(figure([]).axes[0].containers) == 0
    few = _entries("E1-halves", "E3-slope-missing-2", runs=20)
    assert len(figure(few).axes) == 1
