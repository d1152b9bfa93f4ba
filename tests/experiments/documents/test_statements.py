"""Statements about drawn outputs: refuted where they are false, rarely where they are true, and open with few runs."""

import math
from functools import partial

import pytest
from scipy import stats

from dpaudit import Verdict
from dpaudit.experiments.documents.definition import (
    equal_rows,
    independent_rows,
    loss_tail,
    nobody_exposed,
    number_exposed,
    posterior_ratio,
)
from dpaudit.experiments.statements.exponential_statements import (
    candidate_probability,
    fitted_slope,
    loss_halves,
    more_often,
    utility_tail,
)
from dpaudit.experiments.statements.gaussian_statements import attained_delta, noise_scale
from dpaudit.experiments.statements.laplace_statements import cdf_distance
from dpaudit.experiments.statements.renyi_statements import divergence
from dpaudit.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    NameAndShame,
    RandomisedResponseFold,
    gaussian_loss_tail,
)
from dpaudit.mechanisms.faulty import ExponentialMissingFactorTwo, TwiceExposed

ONE, FAR = ExponentialMechanism(1.0), ExponentialMechanism(100.0)
GAUSSIAN, LAPLACE = GaussianMechanism(1.0, 0.01), LaplaceMechanism(0.5)
HALVES = (0.0, 0.0, 0.0), (1.0, -1.0, 0.0)
TAIL = gaussian_loss_tail(0.5, GaussianMechanism(0.5, 0.05).scale)
FOLD = 5 * math.log(2 * math.cosh(0.45) / (2 * math.cosh(0.15)))
ODDS = 1 / (1 + math.exp(-0.5))
FALSE = [
    partial(loss_halves, ExponentialMissingFactorTwo(1.0), *HALVES, 0.5),
    partial(fitted_slope, ExponentialMechanism(0.8), (0.0, 2.0, 4.0), 0.3),
    partial(fitted_slope, ExponentialMechanism(0.8), (0.0, 2.0, 4.0), 0.6),
    partial(more_often, ONE, (0.0, 1.0, 2.0), 1, 2),
    partial(number_exposed, TwiceExposed(0.1), 5, 0.1),
    partial(nobody_exposed, NameAndShame(0.1), 5, 0.9**5 + 0.05),
    partial(loss_tail, GaussianMechanism(0.5, 0.05), 1.3 * TAIL, 1.0),
    partial(noise_scale, GAUSSIAN, 0.0, 1.15 * GAUSSIAN.scale),
    partial(noise_scale, GAUSSIAN, 0.0, GAUSSIAN.scale / 1.15),
    partial(cdf_distance, LaplaceMechanism(1.0), LAPLACE, 0.0),
]
TRUE = [  # and with how many runs
    (partial(loss_halves, ONE, *HALVES, 0.5), 400),
    (partial(fitted_slope, ONE, (0.0, 1.0, 3.0), 0.5), 400),
    (partial(more_often, ONE, (1.0, 1.0, 2.0), 0, 1), 400),
    (partial(candidate_probability, ONE, (0.0, 1.0), 1, ODDS, ODDS), 400),
    (partial(number_exposed, NameAndShame(0.1), 5, 0.1), 400),
    (partial(nobody_exposed, NameAndShame(0.1), 5, 0.9**5), 400),
    (partial(noise_scale, GAUSSIAN, 0.0, GAUSSIAN.scale), 50),
    (partial(cdf_distance, LAPLACE, LAPLACE, 0.0), 500),
    (partial(divergence, RandomisedResponseFold(0.3, 5), 0, 1, 2.0, FOLD), 2_000),
    (partial(posterior_ratio, independent_rows(0.7), 0.7), 5_000),
    (partial(posterior_ratio, equal_rows(1.0), 2.0), 5_000),
]
FEW = [
    (partial(fitted_slope, ONE, (0.0, 1.0), 0.5), 10),
    (partial(more_often, FAR, (0.0, 0.0, 9.0), 0, 1), 10),
    (partial(loss_halves, FAR, (0.0, 0.0, 9.0), (1.0, 0.0, 9.0), 50.0), 10),
    (partial(candidate_probability, FAR, (0.0, 9.0), 0, 0.0, 0.1), 10),
    (partial(utility_tail, FAR, (0.0, 9.0), 100.0, (1.0,), 1), 10),
    (partial(attained_delta, GaussianMechanism(1.0, 1e-5), 0.0, 1.0), 10_000),
    (partial(cdf_distance, LAPLACE, LAPLACE, 0.0), 500),
    (partial(loss_tail, GaussianMechanism(1.0, 1e-5), 0.0, 1e-5), 1),
    (partial(number_exposed, TwiceExposed(5e-4), 20, 5e-4), 1),
    (partial(nobody_exposed, TwiceExposed(5e-4), 20, 0.99), 1),
    (partial(posterior_ratio, independent_rows(1.0), 1.0), 1),
]


def name_of(measure):
    return measure.func.__name__


@pytest.mark.parametrize("measure", FALSE, ids=name_of)
def test_false_statements_are_refuted(measure):
    assert measure(runs=50_000, alpha=1e-8, seed=1).verdict is Verdict.REFUTED


@pytest.mark.evidence
@pytest.mark.parametrize(("measure", "runs"), TRUE, ids=[name_of(measure) for measure, _ in TRUE])
def test_true_statements_are_refuted_no_more_often_than_allowed(measure, runs):
    """Of 200 checks at alpha .1 the number of refuted ones is below a binomial limit of 1e-8."""
    refuted = sum(measure(runs=runs, alpha=0.1, seed=seed).is_refuted for seed in range(200))
    assert refuted <= stats.binom.isf(1e-8, 200, 0.1)


@pytest.mark.parametrize(("measure", "runs"), FEW, ids=[name_of(measure) for measure, _ in FEW])
def test_statements_without_hits_are_inconclusive(measure, runs):
    assert measure(runs=runs, alpha=1e-6, seed=1).verdict is Verdict.INCONCLUSIVE
