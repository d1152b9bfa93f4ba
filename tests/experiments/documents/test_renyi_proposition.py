"""Experiments on Rényi divergences of compositions and on Proposition 4.

Random tests have a false-alarm probability of 1e-8 each unless they state another limit.
"""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpaudit import NFoldComposition, Verdict
from dpaudit.audit.errors import OptionError
from dpaudit.experiments.cases.experiment import StatementCase, exact_strength
from dpaudit.experiments.documents.renyi_proposition import FOLDS, experiments, laplace_divergence
from dpaudit.experiments.statements.figures import EVENTS
from dpaudit.experiments.statements.renyi_statements import (
    LaplaceFold,
    divergence,
    events_of_all_sizes,
)
from dpaudit.experiments.suite.run_suite import run_experiments
from dpaudit.mechanisms import (
    LaplaceLaw,
    LaplaceMechanism,
    RandomisedResponse,
    RandomisedResponseFold,
    UpAndDown,
)

ALPHA = 1e-6
ALARM = 1e-8
CASES = [case for experiment in experiments() for case in experiment.cases]
BY_NAME = {case.name: case for case in CASES}


def test_statements_are_true_by_the_exact_numbers_in_true_versions_alone():
    for case in CASES:
        if isinstance(case, StatementCase) and case.exact is not None:
            stated = float(case.claimed.split()[-1])
            assert (case.exact > stated) == (case.expected is Verdict.REFUTED), case.name


@pytest.mark.parametrize(
    ("name", "epsilon", "n"),
    [
        ("R1-response-1-order-2", 0.3, 1),
        ("R1-response-10-order-2", 0.3, 10),
        ("R1-response-100-order-2", 0.1, 100),
        ("R1-one-more-response-1", 0.5, 2),
        ("R1-one-more-response-4", 0.5, 5),
    ],
)
def test_exact_divergence_of_randomised_response(name, epsilon, n):
    truth = 1 / (1 + math.exp(-epsilon))
    one = math.log(truth**2 / (1 - truth) + (1 - truth) ** 2 / truth)
    assert BY_NAME[name].exact == pytest.approx(n * one, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "epsilon", "n"), [("R1-laplace-1-order-2", 0.3, 1), ("R1-one-more-laplace-1", 0.5, 2)]
)
def test_exact_divergence_of_laplace_noise(name, epsilon, n):
    """Mironov (2017), Proposition 6, at order 2: ln(2/3 e^ε + 1/3 e^{−2ε})."""
    one = math.log(2 / 3 * math.exp(epsilon) + 1 / 3 * math.exp(-2 * epsilon))
    assert BY_NAME[name].exact == pytest.approx(n * one, rel=1e-12)


def test_the_proof_needs_the_tight_constant():
    """Erratum 6: by Proposition 10, ln p ≤ (a − 1)/a (D_a − L) for L = ln 1/q; the proof takes a = √(L/n)/ε."""
    for epsilon, n, log_inverse in itertools.product((0.02, 0.1, 0.7), (1, 10, 400), np.geomspace(0.01, 300, 23)):
        root = epsilon * math.sqrt(n * log_inverse)

        def exponent(order, factor, epsilon=epsilon, n=n, log_inverse=log_inverse):
            return (order - 1) / order * (factor * order * n * epsilon**2 - log_inverse)

        printed, claimed = math.sqrt(log_inverse / n) / epsilon, 2 * root - log_inverse
        found = exponent(printed, factor=2)
        assert found == pytest.approx(3 * root - log_inverse - 2 * epsilon**2 * n, rel=1e-9, abs=1e-9)
        if abs(log_inverse / (4 * epsilon**2 * n) - 1) > 1e-6:
            assert (found > claimed) == (log_inverse > 4 * epsilon**2 * n)
        if log_inverse >= epsilon**2 * n:  # case I, where the orders are above 1
            assert exponent(math.sqrt(2) * printed, factor=0.5) <= math.sqrt(2) * root - log_inverse <= claimed


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("n", [1, 3, 10, 100])
def test_proposition_four_holds_up_to_twice_the_number(n, epsilon):
    """The exact strength over all events; 4n mechanisms with a small epsilon break the proposition."""
    claim = NFoldComposition(epsilon, n)
    for k in (n, 2 * n):
        fold = RandomisedResponseFold(epsilon, k)
        assert exact_strength(claim, fold.law(0), fold.law(1)) < epsilon
    if epsilon <= 0.1:
        fold = RandomisedResponseFold(epsilon, 4 * n)
        assert exact_strength(claim, fold.law(0), fold.law(1)) > 1.1 * epsilon


@pytest.mark.parametrize(
    ("mechanism", "exact"),
    [
        (RandomisedResponseFold(0.3, 5), 5 * math.log(2 * math.cosh(0.45) / (2 * math.cosh(0.15)))),
        (LaplaceFold(0.3, 5), laplace_divergence(LaplaceFold(0.3, 5), 2.0)),
    ],
    ids=["response", "laplace"],
)
@pytest.mark.evidence
def test_divergence_is_a_lower_bound_near_the_truth(mechanism, exact):
    measure = partial(divergence, mechanism, 0, 1, 2.0)
    result = measure(exact, runs=200_000, alpha=ALARM, seed=3)
    (point,) = result.points
    assert result.verdict is Verdict.NOT_REFUTED
    assert 0.85 * exact < point.lower < point.estimate
    assert point.estimate == pytest.approx(exact, rel=0.05)
    assert measure(0.8 * exact, runs=200_000, alpha=ALARM, seed=3).verdict is Verdict.REFUTED


@pytest.mark.parametrize("mechanism", [RandomisedResponseFold(0.1, 10), LaplaceMechanism(0.1)], ids=str)
@pytest.mark.evidence
def test_events_cover_their_probabilities(mechanism):
    """Each pair of intervals holds the exact (q, p) of one half-line."""
    claim = NFoldComposition(0.1, 10)
    result = events_of_all_sizes(mechanism, 0, 1, claim, runs=50_000, alpha=ALARM, seed=2)
    ends = np.arange(11) if isinstance(mechanism, RandomisedResponseFold) else np.linspace(-90, 20, 50_001)
    p, q = (np.asarray(mechanism.law(bit).cdf(ends)) for bit in (0, 1))
    on_y, on_x = result.points[::2], result.points[1::2]
    assert len(on_y) == len(on_x) >= 5
    for two, one in zip(on_y, on_x, strict=True):
        holds = (two.lower <= q) & (q <= two.upper) & (one.lower <= p) & (p <= one.upper)
        assert holds.any()
        assert one.high == float(claim.max_power(two.upper)[0])
        assert two.allowed == "nothing stated"
    assert on_y[0].estimate < 0.02 < 0.4 < on_y[-1].estimate
    shares = [point.estimate for point in on_y]
    assert shares == sorted(set(shares))
    assert result.worst in on_x


def test_events_of_too_many_mechanisms_cross_the_boundary():
    few, many = (
        events_of_all_sizes(
            RandomisedResponseFold(0.1, k), 0, 1, NFoldComposition(0.1, 10), runs=100_000, alpha=ALARM, seed=2
        )
        for k in (10, 90)
    )
    assert (few.verdict, many.verdict) == (Verdict.NOT_REFUTED, Verdict.REFUTED)
    with pytest.raises(OptionError, match="gave only one output on 1, so no event can be chosen"):
        events_of_all_sizes(RandomisedResponse(40.0), 0, 1, NFoldComposition(40.0, 1), runs=10, alpha=0.1, seed=0)


def test_the_sum_of_clipped_answers_is_the_privacy_loss():
    """The log density ratio of a row of answers is ε(n − 2·sum), a function of the sum."""
    answers = np.random.default_rng(1).normal(scale=3, size=(200, 7))
    loss = (LaplaceLaw(0.0, 1 / 0.3).log_density(answers) - LaplaceLaw(1.0, 1 / 0.3).log_density(answers)).sum(axis=1)
    assert loss == pytest.approx(0.3 * (7 - 2 * np.clip(answers, 0, 1).sum(axis=1)), abs=1e-12)


@pytest.mark.parametrize(
    ("value", "is_adaptive", "total"),
    [(0, False, 0), (1, False, 10), (0.25, False, 2.5), (99, False, 10), (3, True, 6), (-99, True, 0), (99, True, 10)],
)
def test_a_laplace_fold_without_noise_is_the_sum_of_its_questions(value, is_adaptive, total):
    """At 3 the search rises to 3 and then alternates, 1 + 1 + 1 + 0 + 1 + 0 + …; noise of scale 1e-6 is negligible."""
    fold = LaplaceFold(1e6, 10, is_adaptive)
    assert fold.sample(value, 20, np.random.default_rng(1)) == pytest.approx([total] * 20, abs=1e-3)


@pytest.mark.evidence
def test_a_laplace_fold_of_one_is_a_clipped_laplace_answer():
    fold, runs = LaplaceFold(0.5, 1), 20_000
    outputs = fold.sample(1, runs, np.random.default_rng(1))
    law = LaplaceLaw(1.0, 2.0)
    for hits, probability in (
        (np.sum(outputs == 0), law.cdf(0.0)),
        (np.sum(outputs == 1), law.sf(1.0)),
        (np.sum(outputs <= 0.5), law.cdf(0.5)),
    ):
        low, high = (edge(ALARM / 6, runs, probability) for edge in (stats.binom.ppf, stats.binom.isf))
        assert low <= hits <= high
    assert outputs.min() == 0
    assert outputs.max() == 1


def test_adaptive_questions_change_with_the_answers():
    """Values within the thresholds lose less than values beyond, so that the law differs from that of the fold."""
    search, fold = UpAndDown(0.1, 10), RandomisedResponseFold(0.1, 10)
    assert search.law(11).log_probabilities == pytest.approx(fold.law(1).log_probabilities)
    assert np.abs(search.law(4).probabilities - fold.law(1).probabilities).max() > 1e-3
    assert BY_NAME["R3-response-adaptive-10"].exact < BY_NAME["R3-response-beyond-10"].exact


@pytest.mark.evidence
def test_figure_shows_every_event():
    row = replace(experiments()[2], cases=tuple(case for case in CASES if case.name in EVENTS))
    suite = run_experiments([row], alpha=ALPHA, seed=0, runs=2000)
    figure = experiments()[2].draw(suite.entries)
    assert [axes.get_title() for axes in figure.axes] == [f"n = {n}" for n in FOLDS]
    shown = [bars for axes in figure.axes for bars in axes.containers]
    assert len(shown) == len(EVENTS)
    assert sum(len(bars[0].get_xdata()) for bars in shown) == sum(len(e.result.points) // 2 for e in suite.entries)
    boundary = figure.axes[1].lines[0]
    q, p = (values[100] for values in boundary.get_data())
    assert p == pytest.approx(q * math.exp(0.2 * math.sqrt(10 * math.log(1 / q))))
