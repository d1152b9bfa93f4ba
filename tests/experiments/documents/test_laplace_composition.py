"""Experiments on Laplace noise by the inverse CDF, on distances and on composition.

Random tests have a false-alarm probability of 1e-8 each.
"""

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpaudit import AddRemove, ApproxDP, PureDP, Verdict
from dpaudit.audit.claims.claim import claim_at
from dpaudit.experiments.cases.experiment import AuditCase, StatementCase
from dpaudit.experiments.documents.laplace_composition import DOCUMENT, EPSILON, experiments
from dpaudit.experiments.statements.laplace_statements import AtEveryDistance, cdf_distance, exact_distance
from dpaudit.mechanisms import FiniteLaw, GroupTightMechanism, LaplaceLaw, LaplaceMechanism, exact_epsilon
from dpaudit.mechanisms.faulty import AnswerInTheBranchLaplace, MixedUniformsLaplace

ALARM = 1e-8
CASES = [case for experiment in experiments() for case in experiment.cases]
BY_NAME = {case.name: case for case in CASES}


def test_rows_and_document():
    assert [experiment.id for experiment in experiments()] == ["L1", "L2", "L3", "L4", "L5", "L6"]
    assert {experiment.document for experiment in experiments()} == {DOCUMENT}
    assert len(BY_NAME) == len(CASES)


def test_statements_are_true_by_the_exact_distances_in_true_versions_alone():
    for case in CASES:
        if isinstance(case, StatementCase):
            assert (case.exact > 1e-9) == (case.expected is Verdict.REFUTED), case.name


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("L1-second-branch", 0.5),  # half of all draws are elsewhere
        ("L1-mixed", 0.5),
        ("L2-two-removed", 2 * EPSILON),
        ("L2-exchanged", 2 * EPSILON),
        ("L3-group-4", 4 * EPSILON),
        ("L4-two-counts", 1.5 * EPSILON),
        ("L4-adaptive", 1 + EPSILON),
        ("L4-reuse", math.inf),
        ("L4-reuse-unseen", EPSILON),
        ("L4-charged-once", 4 * EPSILON),
        ("L5-disjoint", EPSILON),
        ("L5-overlapping", 2 * EPSILON),
        ("L5-replace", 2 * EPSILON),
        ("L6-part-0", 0.25),
        ("L6-part-1", 1.0),
        ("L6-part-2", 0.5),
    ],
)
def test_exact_numbers(name, exact):
    assert BY_NAME[name].exact == pytest.approx(exact, rel=1e-9)


def test_two_deltas_are_exact():
    """Compare with the explicit joint law of both bits."""
    bits = GroupTightMechanism(EPSILON, 0.05, start=0.05), GroupTightMechanism(EPSILON / 2, 0.02, start=0.1)
    tables = [[bit.law(n).log_probabilities for bit in bits] for n in (1, 2)]
    laws = [FiniteLaw(tuple(map(sum, itertools.product(*table)))) for table in tables]
    case = BY_NAME["L4-two-deltas"]
    assert case.claim == ApproxDP(1.5 * EPSILON, 0.07)
    assert case.exact == pytest.approx(exact_epsilon(*laws, 0.07), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_the_size_of_the_symmetric_difference(seed):
    """The distance counts rows in only one of the datasets; neighbours, at distance 1, differ by one row."""
    rng = np.random.default_rng(seed)
    rows = AddRemove()
    r, s, t = (rng.integers(0, 4, size=rng.integers(0, 7)).tolist() for _ in range(3))
    counted = Counter(r), Counter(s)
    assert rows.distance(r, s) == sum(abs(counted[0][value] - counted[1][value]) for value in range(4))
    assert rows.distance(r, s) == rows.distance(s, r)
    assert rows.distance(r, t) <= rows.distance(r, s) + rows.distance(s, t)
    assert rows.distance(r, rng.permutation(r).tolist()) == 0
    assert rows.distance(r, [*r, 3]) == rows.distance([*r, 3], r) == 1
    as_sets = set(r), set(s)
    assert rows.distance(*(sorted(one) for one in as_sets)) == len(as_sets[0] ^ as_sets[1])


def test_pairs_are_as_far_apart_as_their_cases_say():
    for case in CASES:
        if isinstance(case, AuditCase):
            measured = case.adjacency.check(case.x, case.y, case.distance)  # raises an error for other distances
            if isinstance(case.adjacency, AddRemove):
                counted = Counter(case.x), Counter(case.y)
                assert measured == ((counted[0] - counted[1]) + (counted[1] - counted[0])).total(), case.name


def test_a_claim_at_every_distance():
    same = AtEveryDistance(PureDP(0.5))
    assert claim_at(same, 1) == claim_at(same, 7) == PureDP(0.5)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Return these outputs repeatedly."""

    outputs: tuple[float, ...]

    def sample(self, dataset, size, rng):
        return np.resize(self.outputs, size)


def test_distance_of_given_outputs():
    """Compare four outputs with SciPy; NaN counts as above every number."""
    right = LaplaceMechanism(1.0)
    measure = partial(cdf_distance, right=right, dataset=0.0, runs=4, alpha=0.5, seed=0)
    outputs = (-1.0, 0.5, 0.5, 2.0)
    (point,) = measure(Fixed(outputs)).points
    assert point.estimate == pytest.approx(stats.kstest(outputs, "laplace").statistic, rel=1e-12)
    assert point.upper - point.estimate == pytest.approx(math.sqrt(math.log(4) / 8), rel=1e-12)
    for odd in (math.nan, math.inf):
        (point,) = measure(Fixed((0.0, odd, odd, odd))).points
        assert point.estimate == pytest.approx(0.75)  # a quarter of the outputs is finite
    (point,) = measure(Fixed((-math.inf, 0.0, 0.0, 1.0))).points
    assert point.estimate == pytest.approx(0.25, abs=0.01)
    assert point.lower == 0.0


@pytest.mark.evidence
def test_distance_has_its_stated_coverage():
    """Of 400 intervals at alpha .1 the number without 0 is below a binomial limit; a wrong law is refuted."""
    mechanism = LaplaceMechanism(0.5)
    missed = sum(
        cdf_distance(mechanism, mechanism, 0.0, runs=500, alpha=0.1, seed=seed).is_refuted for seed in range(400)
    )
    assert missed <= stats.binom.isf(ALARM, 400, 0.1)
    wrong = cdf_distance(LaplaceMechanism(1.0), mechanism, 0.0, runs=20_000, alpha=ALARM, seed=1)
    exact = exact_distance(LaplaceLaw(0.0, 1.0), LaplaceLaw(0.0, 2.0), -40, 40)
    assert wrong.is_refuted
    assert wrong.points[0].lower < exact < wrong.points[0].upper


def test_distance_is_inconclusive_with_few_runs():
    mechanism = LaplaceMechanism(0.5)
    assert cdf_distance(mechanism, mechanism, 0.0, runs=500, alpha=ALARM, seed=1).verdict is Verdict.INCONCLUSIVE


def test_exact_distances_have_closed_forms():
    """1 − e^{−d/2} for a shift of d scales; 1/8 for scales 1 and 2, where e^{−z} = e^{−z/2}/2 at z = 2 ln 2."""
    shifted = exact_distance(LaplaceLaw(0.0, 1.0), LaplaceLaw(1.0, 1.0), -39.5, 40.5)
    assert shifted == pytest.approx(1 - math.exp(-0.5), rel=1e-6)
    assert exact_distance(LaplaceLaw(0.0, 1.0), LaplaceLaw(0.0, 2.0), -40, 40) == pytest.approx(1 / 8, rel=1e-4)
    for answer in (0.0, 3.0):
        for twin in (AnswerInTheBranchLaplace(0.5), MixedUniformsLaplace(0.5)):
            right = LaplaceLaw(answer, 2.0)
            assert exact_distance(twin.law(answer), right, answer - 80, answer + 80) == pytest.approx(0.5, abs=1e-9)
