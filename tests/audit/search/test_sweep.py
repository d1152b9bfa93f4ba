"""Sweeps find row values that are mishandled, and coupled runs show what differs between two datasets."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from dpaudit import AddRemove, Answers, PureDP, Replace, Rows, Within, find_worst_pair
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.search.coupled_difference import coupled_difference

NOISE = np.random.default_rng(0).laplace(size=40)
OPTIONS = {"claim": PureDP(1.0), "runs": 2_000, "search_runs": 10_000, "jobs": 1, "bits": False}


def outputs(values):
    return as_outputs(values, len(values), "test")


def total(is_wrong):
    """A noisy sum of rows of at most 1, in which some values count as 3."""

    def noisy_total(rows, size, rng):
        return sum(3.0 if is_wrong(row) else row for row in rows) + rng.laplace(size=size)

    return noisy_total


@pytest.mark.parametrize(
    "is_wrong",
    [
        pytest.param(lambda row: 0.6170 < row < 0.6190, id="window"),
        pytest.param(lambda row: row == 0.25, id="power of two"),
        pytest.param(lambda row: 0.999 < row < 1.0, id="next to an end"),
        pytest.param(lambda row: 0.0 < row < 1e-300, id="next to the other end"),
    ],
)
def test_a_row_value_that_is_mishandled_is_found(is_wrong):
    found = find_worst_pair(total(is_wrong), Rows(most=3), adjacency=AddRemove(), **OPTIONS)
    assert found.is_refuted
    assert any(is_wrong(row) for row in (*found.x, *found.y))


def test_replaced_rows_are_swept():
    window = total(lambda row: 0.6170 < row < 0.6190)
    assert find_worst_pair(window, Rows(most=3), adjacency=Replace(), **OPTIONS).is_refuted


def test_columns_and_levels_are_swept():
    def paid(rows, size, rng):
        return sum(3.0 if 20.5 < paid < 23.0 else 1.0 for _, paid in rows) + rng.laplace(size=size)

    def level(answer, size, rng):
        return answer + rng.laplace(scale=0.2 if 5.0 < answer < 5.3 else 1.0, size=size)

    options = OPTIONS | {"runs": 4_000, "search_runs": 15_000}
    rows = find_worst_pair(paid, Rows(low=(0, 0.0), high=(9, 50.0), most=2), adjacency=AddRemove(), **options)
    assert rows.is_refuted
    assert find_worst_pair(level, Answers(low=0.0, high=9.0), adjacency=Within("l1"), **options).is_refuted


def test_a_sweep_does_not_depend_on_workers(tmp_path):
    window = total(lambda row: 0.6170 < row < 0.6190)
    options = OPTIONS | {"adjacency": AddRemove(), "runs": 400, "search_runs": 3_000}
    first = find_worst_pair(window, Rows(most=3), **options)
    options["store"] = tmp_path
    assert find_worst_pair(window, Rows(most=3), **options | {"jobs": 2}) == first
    assert find_worst_pair(window, Rows(most=3), **options) == first  # from the store


def test_differences_of_coupled_outputs():
    same = [NOISE, NOISE > 0, NOISE.round().astype(int), np.stack([NOISE, -NOISE], axis=1)]
    assert [coupled_difference(one, one) for one in same] == [0.0] * 4
    assert coupled_difference(NOISE, NOISE + 1.0) > 2 * coupled_difference(NOISE, NOISE + 0.4) > 0.0
    assert coupled_difference(NOISE, 9.0 * NOISE) == pytest.approx(np.log(9.0) - 2 * np.sqrt(1.0 / 39.0))
    wide = np.stack([NOISE] * 3, axis=1)
    assert coupled_difference(wide, wide + 0.5) == pytest.approx(3 * coupled_difference(NOISE, NOISE + 0.5))
    assert coupled_difference(np.zeros(9), np.ones(9)) == 1e6
    assert coupled_difference(1e300 * NOISE, 1e300 * (NOISE + 1.0)) == pytest.approx(
        coupled_difference(NOISE, NOISE + 1.0)
    )
    decimals = [outputs([Decimal(value) for value in side]) for side in (NOISE, NOISE + 1.0)]
    assert coupled_difference(*decimals) == coupled_difference(NOISE, NOISE + 1.0)


def test_outputs_of_one_distribution_are_hardly_apart():
    """Masks: all outputs differ, and have the same distribution."""
    rng = np.random.default_rng(1)
    mask = rng.random(40)
    assert coupled_difference(mask, (mask + 0.37) % 1.0) < 0.1
    assert coupled_difference(rng.integers(50, size=40), rng.integers(50, size=40)) < 0.1
    assert coupled_difference(NOISE, rng.laplace(size=40)) < 0.1


def test_differences_of_other_outputs():
    """Half of the sum of ((a - b)² - runs with the outcome on one dataset only) / (a + b), by runs."""
    assert coupled_difference(outputs(["a"] * 4), outputs(["b"] * 4)) == (2 * (16 - 4) / 4) / 8
    assert coupled_difference(outputs(["a", "a", "a", "b"]), outputs(["a", "b", "b", "b"])) == (2 * (4 - 2) / 4) / 8
    assert coupled_difference(outputs([None, "a"]), outputs(["a", None])) == 0.0
    assert coupled_difference(outputs([(1, 2), (1,), (1,)]), outputs([(1, 2), (2, 2), (2, 2)])) > 0.0
    assert coupled_difference(np.zeros((3, 2)), np.zeros((3, 4))) > 0.0


def test_numbers_that_are_not_finite_are_compared_apart():
    nan = np.where(np.arange(40) < 9, np.nan, NOISE)
    assert coupled_difference(nan, nan) == 0.0
    assert coupled_difference(nan, nan + 1.0) == coupled_difference(NOISE[9:], NOISE[9:] + 1.0)
    assert coupled_difference(nan, np.where(np.isnan(nan), np.inf, nan)) == (2 * (81 - 9) / 9) / 80
    assert coupled_difference(outputs([10**400, 1]), outputs([10**400, 1])) == 0.0
    nothing = np.full(5, np.nan)
    assert coupled_difference(nothing, nothing) == 0.0


def test_pairs_that_never_vary_are_not_left_unscored():
    """Thirty pairs of noise without a leak, one of which is released as it is."""

    def released(pair, size, rng):
        group, value = pair
        return value + (0.0 if group == 25 else 1.0) * rng.laplace(scale=1.5, size=size)

    pairs = [((group, 0.0), (group, 1.0)) for group in range(30)]
    found = find_worst_pair(released, pairs, **OPTIONS | {"search_runs": 3_000})
    assert found.is_refuted
    assert found.x[0] == 25


@pytest.mark.parametrize("search_runs", [400, 1_500])
def test_pairs_that_fail_keep_the_budget_and_are_reported(search_runs):
    def at_times(rows, rng):
        return 1 / 0 if len(rows) not in (1, 2) else rng.laplace()

    watched = []
    options = OPTIONS | {"runs": 400, "search_runs": search_runs, "adjacency": AddRemove()}
    found = find_worst_pair(at_times, Rows(most=20), progress=watched.append, **options)
    assert found.runs <= 2 * search_runs
    assert sum(watched) == found.runs + 2 * 400
