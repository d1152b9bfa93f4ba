"""Input that the search refuses, values that are mishandled, and NaN, infinity and -0.0."""

import math
from decimal import Decimal
from functools import partial

import numpy as np
import pytest

import dpaudit as dp
from dpaudit.audit.errors import AdjacencyError
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.search.not_finite import with_special_numbers
from dpaudit.audit.search.successive_halving import coupled_difference
from dpaudit.audit.sensitivity.check_sensitivity import _apart, _error_of


class Refusing:
    """A mechanism whose claim covers only pairs that differ in their first row."""

    claim = dp.PureDP(1.0)
    adjacency = dp.Replace()

    def check_pair(self, x, y, distance):
        if len(x) > 1:
            raise AdjacencyError(f"rows beyond the first are not covered at distance {distance:g}")

    def sample(self, dataset, size, rng):
        return sum(dataset) + rng.laplace(size=size)


def test_pairs_that_the_mechanism_refuses_are_not_audited():
    with pytest.raises(AdjacencyError, match="rows beyond the first are not covered at distance 1"):
        dp.check(Refusing(), [0, 1], [1, 1], runs=100, jobs=1)
    assert not dp.check(Refusing(), [0], [1], runs=2_000, jobs=1, alpha=1e-6).is_refuted
    found = dp.find_worst_pair(Refusing(), dp.Rows(low=0.0, high=1.0), runs=2_000, search_runs=400, jobs=1, alpha=1e-6)
    assert len(found.x) == 1
    with pytest.raises(AdjacencyError, match=r"none of 1 pair are neighbours; the first: rows beyond"):
        dp.find_worst_pair(Refusing(), [([0, 1], [1, 1])], runs=2_000, search_runs=400, jobs=1)


NOISE = np.random.default_rng(0).laplace(size=40)
OPTIONS = {"claim": dp.PureDP(1.0), "runs": 2_000, "search_runs": 10_000, "jobs": 1, "floating_point": "ignore"}


def test_a_mechanism_that_takes_few_datasets_is_audited_on_those():
    """Of the patterns only those of four rows are taken, and the first error is printed whole."""

    def mean_of_four(rows, size, rng):
        if len(rows) != 4:
            raise ValueError(f"this table has four rows, not {len(rows)}; " + "pass the whole table, " * 20 + "please")
        return np.mean(rows) + rng.laplace(size=size)

    options = OPTIONS | {"adjacency": dp.Replace(), "runs": 4_000, "search_runs": 4_000}
    found = dp.find_worst_pair(mean_of_four, dp.Rows(most=8), **options)
    tried = [pair for pair in found.ranking if pair.error is None]
    assert (len(found.x), len(found.y)) == (4, 4)
    assert len(tried) >= 2
    assert len(found.ranking) > 2 * len(tried)
    (error,) = [line for line in str(found).splitlines() if line.startswith("  error   ")]
    assert error.count("pass the whole table") == 20


def test_pairs_that_show_nothing_do_not_outrank_one_that_leaks():
    """Of datasets below the threshold almost nothing is released: they may leak, but this one does."""

    def released_above_four(rows, size, rng):
        count = len(rows) + rng.laplace(scale=1 / 1.5, size=size)
        return np.where(count > 4, count, -1.0)

    given = [([0.0] * rows, [0.0] * (rows + 1)) for rows in range(7)]
    refuted = 0
    for seed in range(3):
        options = OPTIONS | {"runs": 1_500, "search_runs": 3_000, "seed": seed}
        found = dp.find_worst_pair(released_above_four, dp.Rows(most=7), adjacency=dp.AddRemove(), **options)
        assert found.is_refuted
        refuted += dp.find_worst_pair(released_above_four, given, **options).is_refuted
    assert refuted >= 2


def outputs(values):
    return as_outputs(values, len(values), "test")


def noisy(query):
    return lambda dataset, size, rng: query(dataset) + rng.laplace(size=size)


@pytest.mark.parametrize(
    "is_wrong",
    [
        pytest.param(lambda row: 0.6170 < row < 0.6190, id="window"),
        pytest.param(lambda row: row == 0.25, id="power of two"),
        pytest.param(lambda row: 0.0 < row < 1e-300, id="next to 0"),
    ],
)
def test_a_value_that_is_mishandled_is_found(is_wrong):
    """Of a noisy sum of rows of at most 1, in which some values count as 3; without them the loss is at most 1."""
    total = noisy(lambda rows: sum(3.0 if is_wrong(row) else row for row in rows))
    found = dp.find_worst_pair(total, dp.Rows(most=3), adjacency=dp.AddRemove(), **OPTIONS)
    assert found.is_refuted
    assert any(is_wrong(row) for row in (*found.x, *found.y))


def test_a_column_and_a_level_that_are_mishandled_are_found():
    def level(answer, size, rng):
        return answer + rng.laplace(scale=0.2 if 5.0 < answer < 5.3 else 1.0, size=size)

    paid = noisy(lambda rows: sum(3.0 if 20.5 < paid < 23.0 else 1.0 for _, paid in rows))
    for mechanism, domain, adjacency in (
        (paid, dp.Rows(low=(0, 0.0), high=(9, 50.0), most=2), dp.AddRemove()),
        (level, dp.Answers(low=0.0, high=9.0), dp.domains.Within("l1")),
    ):
        options = OPTIONS | {"runs": 4_000, "search_runs": 15_000, "adjacency": adjacency}
        assert dp.find_worst_pair(mechanism, domain, **options).is_refuted


def test_differences_of_coupled_outputs():
    same = [NOISE, NOISE > 0, NOISE.round().astype(int), np.stack([NOISE, -NOISE], axis=1)]
    assert [coupled_difference(one, one) for one in same] == [0.0] * 4
    assert coupled_difference(NOISE, NOISE + 1.0) > 2 * coupled_difference(NOISE, NOISE + 0.4) > 0.0
    assert coupled_difference(NOISE, 9.0 * NOISE) == pytest.approx(np.log(9.0) - 2 * np.sqrt(1.0 / 39.0))
    wide = np.stack([NOISE] * 3, axis=1)
    assert coupled_difference(wide, wide + 0.5) == pytest.approx(3 * coupled_difference(NOISE, NOISE + 0.5))
    assert coupled_difference(np.zeros(9), np.ones(9)) == 1e6
    shifted = coupled_difference(NOISE, NOISE + 1.0)
    assert coupled_difference(1e300 * NOISE, 1e300 * (NOISE + 1.0)) == pytest.approx(shifted)
    assert coupled_difference(*(outputs(list(map(Decimal, side))) for side in (NOISE, NOISE + 1.0))) == shifted

    rng = np.random.default_rng(1)  # masks: all outputs differ, and have the same distribution
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


@pytest.mark.parametrize("search_runs", [400, 1_500])
def test_pairs_that_fail_keep_the_budget_and_are_reported(search_runs):
    def at_times(rows, rng):
        return 1 / 0 if len(rows) not in (1, 2) else rng.laplace()

    watched = []
    options = OPTIONS | {"runs": 400, "search_runs": search_runs, "adjacency": dp.AddRemove()}
    found = dp.find_worst_pair(at_times, dp.Rows(most=20), progress=watched.append, **options)
    assert found.runs <= 2 * search_runs
    assert sum(watched) == found.runs + 2 * 400


FEW = OPTIONS | {"search_runs": 4_000, "alpha": 1e-6}


def clamped(rows):
    return sum(min(max(row, 0.0), 1.0) for row in rows)


def refusing(rows):
    if any(math.isnan(row) for row in rows):
        raise ValueError("NaN")
    return clamped(rows)


def shortened(rows):
    """Clips to norm 1 by division, which infinity passes; NaN is 0."""
    known = np.nan_to_num(np.array(rows, dtype=float), posinf=np.inf, neginf=-np.inf)
    with np.errstate(invalid="ignore"):
        return (known / np.maximum(1.0, np.abs(known))).sum()


def inverted(rows):
    """A correct count, but for a remark on the sign of zero."""
    return sum(60.0 if math.copysign(1.0, row) < 0.0 else 1.0 for row in rows)


def report(value):
    return np.clip(value, 0.0, 1.0)


def ages(table):
    is_listed = isinstance(table, list)
    rows = [row["age"] if isinstance(row, dict) else row[0] for row in table] if is_listed else table["age"]
    return clamped([age for age in rows if age is not None])


AGES = {"age": dp.domains.NumericColumn(0, 1), "group": dp.domains.NumericColumn(0, 3, integer=True)}


@pytest.mark.parametrize(
    ("query", "domain", "tried", "refused"),
    [
        (clamped, dp.Rows(), "nan", ""),
        (clamped, dp.Rows(values=(0.0, 0.5, 1.0)), "nan", ""),
        (clamped, dp.Rows(finite=True), "", ""),
        (sum, dp.Rows(), "", ""),
        (lambda rows: sum(rows) / 5, dp.Rows(high=5, integer=True), "", ""),
        (refusing, dp.Rows(), "", "nan"),
        (shortened, dp.Rows(low=-1.0), "nan -inf inf", ""),
        (shortened, dp.Rows(values=(-1.0, 0.5, 1.0)), "nan -inf inf", ""),
        (inverted, dp.Rows(), "-0.0", ""),
        (report, dp.Answers(low=0.0, high=1.0), "nan", ""),
        (report, dp.Values((0.0, 1.0)), "nan", ""),
        *((ages, dp.Tables(AGES, form=form), "nan", "") for form in ("rows", "columns", "tuples")),
        (ages, dp.Tables(AGES, outside=("beyond",)), "nan", ""),
        (ages, dp.Tables(AGES), "", ""),  # None in a frame is NaN already
        (ages, dp.Tables(AGES, form="rows", outside=("missing",)), "", ""),
    ],
)
def test_special_numbers_are_tried_where_they_test_the_mechanism(query, domain, tried, refused):
    larger = with_special_numbers(domain, partial(_apart, query), partial(_error_of, query))
    assert {str(number) for number in larger.numbers} == {*tried.split()}
    assert {*larger.refused} == {*refused.split()}


def test_a_median_to_which_the_ends_of_the_range_are_the_same_clamps_too():
    """With all rows at one end of the range the only interval is the whole of it."""

    def median(rows, rng):
        edges = np.sort([-10.0, *np.clip(np.array(rows, dtype=float), -10.0, 10.0), 10.0])
        weights = np.exp(-np.abs(np.arange(len(rows) + 1) - len(rows) / 2) / 2) * np.diff(edges)
        place = rng.choice(len(rows) + 1, p=weights / weights.sum())
        return rng.uniform(edges[place], edges[place + 1])

    found = dp.find_worst_pair(median, dp.Rows(low=-20.0, high=20.0), adjacency="add-remove", **FEW)
    assert any(note.startswith("NaN not tried, because the mechanism raises on it") for note in found.audit.notes)


def with_own_noise(rows):
    return float(np.clip(rows, 0.0, 1.0).sum() + np.random.default_rng().laplace())


@pytest.mark.parametrize(
    ("mechanism", "domain", "number"),
    [
        (with_own_noise, dp.Rows(), "NaN"),
        (noisy(shortened), dp.Rows(values=(-1.0, 0.5, 1.0)), "inf"),
        (noisy(inverted), dp.Rows(), "-0.0"),
        (noisy(report), dp.Answers(low=0.0, high=1.0), "NaN"),
        (noisy(ages), dp.Tables(AGES), None),
    ],
)
def test_a_special_number_that_passes_a_clamp_refutes(mechanism, domain, number):
    adjacency = "local" if isinstance(domain, dp.Answers) else "add-remove"
    found = dp.find_worst_pair(mechanism, domain, adjacency=adjacency, **FEW)
    assert found.is_refuted
    assert number is None or (number in found.audit.notes[0] and "leave it out with" in found.audit.notes[0])


def test_users_with_many_different_rows_are_tried():
    """Values are counted once over all users before the bound of one value for each: epsilon is up to 4."""

    def distinct(rows):
        owner = {}
        for user, value in rows:
            owner.setdefault(value, user)
        return len(set({user: value for value, user in reversed(owner.items())}.values()))

    domain = dp.Rows(low=(0, 0), high=(5, 5), integer=True, most=12, rows_per_user=6)
    options = FEW | {"search_runs": 60_000, "runs": 4_000}
    assert dp.find_worst_pair(noisy(distinct), domain, adjacency=dp.UserLevel(0), **options).is_refuted


def test_what_no_tried_dataset_has_is_named():
    larger = with_special_numbers(
        dp.Rows(), lambda one, other: float(0.0 <= min(one) <= max(one) <= 1.0), lambda _: None, lambda *_: False
    )
    assert larger.remarks([1.0], [], [[0.0], [math.nan]], is_refuted=False) == (
        "-0.0 not tried, as the search ended before; use more runs (search_runs=)",
    )
    assert larger.remarks([1.0], [], [[-0.0], [(math.nan, 1)]], is_refuted=False) == ()
