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
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit import AddRemove, ApproxDP, PureDP, Verdict
from dpaudit.audit.claims.claim import claim_at
from dpaudit.experiments.cases.experiment import AuditCase, StatementCase
from dpaudit.experiments.documents.laplace_composition import EPSILON, experiments
from dpaudit.experiments.statements.laplace_statements import AtEveryDistance, cdf_distance, exact_distance
from dpaudit.mechanisms import FiniteLaw, GroupTightMechanism, LaplaceLaw, LaplaceMechanism, exact_epsilon
from dpaudit.mechanisms.faulty import AnswerInTheBranchLaplace, MixedUniformsLaplace

ALARM = 1e-8
CASES = [case for experiment in experiments() for case in experiment.cases]
BY_NAME = {case.name: case for case in CASES}


def test_statements_are_true_by_the_exact_distances_in_true_versions_alone():
    for case in CASES:
        if isinstance(case, StatementCase):
            assert (case.exact > 1e-9) == (case.expected is Verdict.REFUTED), case.name


def test_two_deltas_are_exact():
    """Compare with the explicit joint law of both bits."""
    bits = GroupTightMechanism(EPSILON, 0.05, start=0.05), GroupTightMechanism(EPSILON / 2, 0.02, start=0.1)
    tables = [[bit.law(n).log_probabilities for bit in bits] for n in (1, 2)]
    laws = [FiniteLaw(tuple(map(sum, itertools.product(*table)))) for table in tables]
    case = BY_NAME["L4-two-deltas"]
    assert case.claim == ApproxDP(1.5 * EPSILON, 0.07)
    assert case.exact == pytest.approx(exact_epsilon(*laws, 0.07), rel=1e-9)


@given(*3 * [st.lists(st.integers(0, 3), max_size=6)], st.randoms())
@settings(derandomize=True, deadline=None, max_examples=20)
def test_the_distance_is_the_size_of_the_symmetric_difference(r, s, t, order):
    """The distance counts rows in only one of the datasets; neighbours, at distance 1, differ by one row."""
    rows = AddRemove()
    counted = Counter(r), Counter(s)
    assert rows.distance(r, s) == sum(abs(counted[0][value] - counted[1][value]) for value in range(4))
    assert rows.distance(r, s) == rows.distance(s, r)
    assert rows.distance(r, t) <= rows.distance(r, s) + rows.distance(s, t)
    assert rows.distance(r, order.sample(r, len(r))) == 0
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


def test_distance_from_a_wrong_law():
    wrong = cdf_distance(LaplaceMechanism(1.0), LaplaceMechanism(0.5), 0.0, runs=20_000, alpha=ALARM, seed=1)
    exact = exact_distance(LaplaceLaw(0.0, 1.0), LaplaceLaw(0.0, 2.0), -40, 40)
    assert wrong.points[0].lower < exact < wrong.points[0].upper


def test_exact_distances_have_closed_forms():
    """1 − e^{−d/2} for a shift of d scales; 1/8 for scales 1 and 2, where e^{−z} = e^{−z/2}/2 at z = 2 ln 2."""
    shifted = exact_distance(LaplaceLaw(0.0, 1.0), LaplaceLaw(1.0, 1.0), -39.5, 40.5)
    assert shifted == pytest.approx(1 - math.exp(-0.5), rel=1e-6)
    assert exact_distance(LaplaceLaw(0.0, 1.0), LaplaceLaw(0.0, 2.0), -40, 40) == pytest.approx(1 / 8, rel=1e-4)
    for answer in (0.0, 3.0):
        for twin in (AnswerInTheBranchLaplace(0.5), MixedUniformsLaplace(0.5)):
            right = LaplaceLaw(answer, 2.0)
            assert exact_distance(twin.law(answer), right, answer - 80, answer + 80) == pytest.approx(0.5, abs=1e-9)
