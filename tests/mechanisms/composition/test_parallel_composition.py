"""Parallel composition: a row loses exactly the epsilon of its part; overlapping parts and moving rows lose two."""

import itertools

import numpy as np
import pytest

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP, PureDP
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms.faulty import OverlappingPartCounts, PartCountsForReplace

AGES = [3.0, 18.0, 20.0, 64.0, 65.0, 99.0]
EPSILONS = (0.1, 0.5, 0.2)
BY_AGE = m.ParallelComposition(
    [m.GeometricMechanism(epsilon, query=len) for epsilon in EPSILONS], m.IntervalOf((18, 65))
)


def loss(mechanism, x, y):
    return m.exact_epsilon(mechanism.law(x), mechanism.law(y))


def test_every_number_is_in_one_interval():
    part = m.IntervalOf((18, 65))
    assert [part(age) for age in (-np.inf, 17.9, 18, 64.9, 65, np.inf)] == [0, 0, 1, 1, 2, 2]
    assert [m.IntervalOf(())(age) for age in (-1, 1)] == [0, 0]


def test_each_mechanism_sees_the_rows_of_its_part():
    assert [law.location for law in BY_AGE.law(AGES).marginals] == [1, 3, 2]
    assert [law.location for law in BY_AGE.law([]).marginals] == [0, 0, 0]
    sure = m.ParallelComposition([m.GeometricMechanism(40.0, query=len)] * 3, m.IntervalOf((18, 65)))
    assert sure.sample(np.array(AGES), 5, np.random.default_rng(1)).tolist() == [[1, 3, 2]] * 5


@pytest.mark.parametrize(("age", "epsilon"), list(zip((5.0, 40.0, 80.0), EPSILONS, strict=True)))
def test_a_row_added_or_removed_loses_the_epsilon_of_its_part(age, epsilon):
    assert BY_AGE.claim == PureDP(max(EPSILONS))
    assert loss(BY_AGE, AGES, [*AGES, age]) == pytest.approx(epsilon, rel=1e-12)
    assert loss(BY_AGE, [*AGES, age], AGES) == pytest.approx(epsilon, rel=1e-12)


def test_a_row_that_changes_its_part_loses_both_epsilons():
    for (i, old), (j, new) in itertools.combinations(enumerate((5.0, 40.0, 80.0)), 2):
        assert loss(BY_AGE, [*AGES, old], [*AGES, new]) == pytest.approx(EPSILONS[i] + EPSILONS[j], rel=1e-12)
    assert loss(BY_AGE, [*AGES, 20.0], [*AGES, 30.0]) == 0.0


def test_approximate_parts_give_the_largest_delta():
    parts = [m.LaplaceMechanism(2.0, query=len), m.GaussianMechanism(1.0, 1e-5, query=len)]
    assert m.ParallelComposition(parts, m.IntervalOf((18,))).claim == ApproxDP(2.0, 1e-5)


def test_a_row_at_a_shared_edge_counts_twice():
    twin = OverlappingPartCounts(0.5, (0, 18, 65, 120))
    assert (twin.claim, twin.truth) == (PureDP(0.5), PureDP(1.0))
    assert [law.location for law in twin.law(AGES).marginals] == [2, 4, 2]
    assert loss(twin, AGES, [*AGES, 65.0]) == pytest.approx(1.0, rel=1e-12)
    assert loss(twin, AGES, [*AGES, 40.0]) == pytest.approx(0.5, rel=1e-12)  # here the bug has no effect
    assert loss(twin, AGES, [*AGES, 0.0]) == pytest.approx(0.5, rel=1e-12)
    assert loss(twin, AGES, [*AGES, 121.0]) == 0.0


def test_counts_of_parts_lose_twice_where_a_row_moves():
    twin = PartCountsForReplace(0.5, (18, 65))
    assert (twin.claim, twin.truth) == (PureDP(0.5), PureDP(1.0))
    assert loss(twin, [*AGES, 5.0], [*AGES, 80.0]) == pytest.approx(1.0, rel=1e-12)
    assert loss(twin, AGES, [*AGES, 80.0]) == pytest.approx(0.5, rel=1e-12)  # the relation for which it was right


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: m.ParallelComposition((), len), ClaimError, "mechanisms=() composes nothing"),
        (lambda: m.IntervalOf((3, 3)), ClaimError, "edges=(3, 3) do not define intervals; use numbers in"),
        (lambda: m.IntervalOf((np.nan,)), ClaimError, "do not define intervals"),
        (lambda: m.ParallelComposition(BY_AGE.mechanisms[:2], m.IntervalOf((18, 65))).law(AGES), DatasetError,
         "part(65.0)=2 is not one of the 2 parts; return a part in range(2)"),
        (lambda: OverlappingPartCounts(0.5, (0, 1)), ClaimError, "number of edges=2 is not allowed"),
        (lambda: OverlappingPartCounts(0, (0, 1, 2)), ClaimError, "epsilon=0 is not allowed"),
        (lambda: PartCountsForReplace(0.5, ()), ClaimError, "number of edges=0 is not allowed"),
        (lambda: PartCountsForReplace(0.5, (2, 1)), ClaimError, "do not define intervals"),
    ],
)  # fmt: skip
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)
