"""Input that the search refuses, values that are mishandled, and NaN, infinity and -0.0."""

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

import dpaudit as dp
from dpaudit.audit.errors import AdjacencyError, DatasetError, OptionError
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.search.not_finite import with_special_numbers
from dpaudit.audit.search.trial import coupled_difference


def noisy_length(rows, size, rng):
    return len(rows) + rng.laplace(size=size)


def test_options_are_checked_before_the_search():
    drawn = []

    def counted(rows, size, rng):
        drawn.append(size)
        return len(rows) + rng.laplace(size=size)

    wrong = ({"resoluton": 1}, {"power": 2}, {"seconds": 3}, {"ignore": "nonsense"}, {"cells": 4, "sequential": True})
    for options in wrong:
        with pytest.raises(OptionError):
            dp.find_worst_pair(counted, dp.Rows(most=3), claim=dp.PureDP(1.0), adjacency=dp.AddRemove(), **options)
    assert drawn == []


def test_a_generator_that_raises():
    def pairs(rng):
        raise ZeroDivisionError("no pair")

    with pytest.raises(DatasetError, match="raised ZeroDivisionError: no pair on pair 1"):
        dp.find_worst_pair(noisy_length, pairs, claim=dp.PureDP(1.0), runs=6_000, jobs=1)


def test_rows_that_are_not_hashable():
    def total(rows, size, rng):
        return sum(row["a"] for row in rows) + rng.laplace(size=size)

    for adjacency in (dp.AddRemove(), dp.Replace()):
        domain = dp.Rows(values=({"a": 1.0}, {"a": 4.0}), most=3)
        assert dp.find_worst_pair(
            total, domain, claim=dp.PureDP(1.0), adjacency=adjacency, runs=3_000, jobs=1
        ).is_refuted


@pytest.mark.parametrize(
    "domain",
    [
        lambda: dp.Values({"a", "b"}), lambda: dp.Values(5), lambda: dp.Rows(values={"a", "b"}),
        lambda: dp.Rows(low=0.5, high=2.5, integer=True), lambda: dp.Answers(low=None),
        lambda: dp.Answers(low=np.zeros(2), high=np.ones(2)),
    ],
    ids=["set", "number", "rows of a set", "whole between halves", "no number", "arrays"],
)  # fmt: skip
def test_domains_that_are_none(domain):
    with pytest.raises(DatasetError):
        domain()


def test_a_pattern_before_its_equal_variations():
    met = 0
    for seed in range(3):
        options = {"claim": dp.PureDP(1.0), "adjacency": dp.AddRemove(), "runs": 4_000, "jobs": 1, "seed": seed}
        first, *others = dp.find_worst_pair(noisy_length, dp.Rows(most=3), **options).ranking
        longest = [pair for pair in (first, *others) if pair.runs == first.runs]
        most = max(pair.bound for pair in longest)
        patterns = [
            pair
            for pair in longest
            if pair.bound >= 0.95 * most and "variation" not in pair.label and not pair.label.startswith("random")
        ]
        assert not patterns or first in patterns
        met += len(patterns) > 0
    assert met


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


def mean_of_four(rows, size, rng):
    if len(rows) != 4:
        raise ValueError(f"this table has four rows, not {len(rows)}; " + "pass the whole table, " * 20 + "please")
    return np.mean(rows) + rng.laplace(size=size)


@pytest.mark.parametrize(("least", "most", "fixed"), [(3, 6, None), (4, 4, None), (0, 5, 4)])
@pytest.mark.parametrize("adjacency", [dp.AddRemove(), dp.Replace()])
def test_datasets_have_as_many_rows_as_the_domain_says(least, most, fixed, adjacency):
    sizes = set()

    def count(rows, size, rng):
        sizes.add(len(rows))
        return len(rows) + rng.laplace(size=size)

    domain = dp.Rows(least=least, most=most, size=fixed)
    if domain.least == domain.most and isinstance(adjacency, dp.AddRemove):
        with pytest.raises(AdjacencyError, match="datasets of 4 rows each cannot differ by an added or a removed row"):
            dp.find_worst_pair(count, domain, claim=dp.PureDP(1.0), adjacency=adjacency, runs=1_000)
        return
    dp.find_worst_pair(count, domain, claim=dp.PureDP(1.0), adjacency=adjacency, runs=400, search_runs=3_000, jobs=1)
    assert min(sizes) == (fixed or least)
    assert max(sizes) <= (fixed or most)


@pytest.mark.parametrize("wrong", [{"least": 6}, {"least": -1}, {"size": 0}, {"least": 1.5}])
def test_impossible_numbers_of_rows_are_refused(wrong):
    with pytest.raises(DatasetError, match=next(iter(wrong))):
        dp.Rows(**wrong)


def test_a_mechanism_that_takes_few_datasets_is_audited_on_those():
    """Of the patterns only those of four rows are taken, and the first error is printed whole."""
    options = {"claim": dp.PureDP(1.0), "adjacency": dp.Replace(), "runs": 4_000, "search_runs": 4_000, "jobs": 1}
    found = dp.find_worst_pair(mean_of_four, dp.Rows(most=8), **options)
    tried = [pair for pair in found.ranking if pair.error is None]
    assert (len(found.x), len(found.y)) == (4, 4)
    assert len(tried) >= 2
    assert len(found.ranking) > 2 * len(tried)
    (error,) = [line for line in str(found).splitlines() if line.startswith("  error   ")]
    assert error.count("pass the whole table") == 20


def released_above_four(rows, size, rng):
    count = len(rows) + rng.laplace(scale=1 / 1.5, size=size)
    return np.where(count > 4, count, -1.0)


def test_pairs_that_show_nothing_do_not_outrank_one_that_leaks():
    """Of datasets below the threshold hardly anything is released: they may leak, but this one does."""
    given = [([0.0] * rows, [0.0] * (rows + 1)) for rows in range(7)]
    refuted = 0
    for seed in range(5):
        options = {"claim": dp.PureDP(1.0), "runs": 1_500, "search_runs": 3_000, "jobs": 1, "bits": False, "seed": seed}
        found = dp.find_worst_pair(released_above_four, dp.Rows(most=7), adjacency=dp.AddRemove(), **options)
        assert found.is_refuted
        refuted += dp.find_worst_pair(released_above_four, given, **options).is_refuted
    assert refuted >= 3


def test_a_pair_without_outputs_that_vary_has_no_bound():
    def released(x, size, rng):
        return np.where(x > 3, x + rng.laplace(size=size), 0.0)

    pairs = [(float(x), float(x + 1)) for x in range(6)]
    found = dp.find_worst_pair(released, pairs, claim=dp.PureDP(1.0), runs=400, search_runs=8_000, jobs=1)
    constant = [pair for pair in found.ranking if pair.label in ("pair 1", "pair 2", "pair 3")]
    assert [pair.bound for pair in constant] == [0.0] * 3


@pytest.mark.parametrize("given", [2, 30])
def test_the_smallest_search_tries_four_pairs(given):
    pairs = [(float(x), float(x + 1)) for x in range(given)]
    found = dp.find_worst_pair(noisy_number, pairs, claim=dp.PureDP(1.0), runs=1_000, search_runs=400, jobs=1)
    assert len(found.ranking) == min(given, 4)
    assert found.runs <= 400


def noisy_number(x, size, rng):
    return x + rng.laplace(size=size)


NOISE = np.random.default_rng(0).laplace(size=40)
OPTIONS = {"claim": dp.PureDP(1.0), "runs": 2_000, "search_runs": 10_000, "jobs": 1, "bits": False}


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
    found = dp.find_worst_pair(total(is_wrong), dp.Rows(most=3), adjacency=dp.AddRemove(), **OPTIONS)
    assert found.is_refuted
    assert any(is_wrong(row) for row in (*found.x, *found.y))


def test_replaced_rows_are_swept():
    window = total(lambda row: 0.6170 < row < 0.6190)
    assert dp.find_worst_pair(window, dp.Rows(most=3), adjacency=dp.Replace(), **OPTIONS).is_refuted


def test_columns_and_levels_are_swept():
    def paid(rows, size, rng):
        return sum(3.0 if 20.5 < paid < 23.0 else 1.0 for _, paid in rows) + rng.laplace(size=size)

    def level(answer, size, rng):
        return answer + rng.laplace(scale=0.2 if 5.0 < answer < 5.3 else 1.0, size=size)

    options = OPTIONS | {"runs": 4_000, "search_runs": 15_000}
    rows = dp.find_worst_pair(paid, dp.Rows(low=(0, 0.0), high=(9, 50.0), most=2), adjacency=dp.AddRemove(), **options)
    assert rows.is_refuted
    assert dp.find_worst_pair(level, dp.Answers(low=0.0, high=9.0), adjacency=dp.Within("l1"), **options).is_refuted


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
    found = dp.find_worst_pair(released, pairs, **OPTIONS | {"search_runs": 3_000})
    assert found.is_refuted
    assert found.x[0] == 25


@pytest.mark.parametrize("search_runs", [400, 1_500])
def test_pairs_that_fail_keep_the_budget_and_are_reported(search_runs):
    def at_times(rows, rng):
        return 1 / 0 if len(rows) not in (1, 2) else rng.laplace()

    watched = []
    options = OPTIONS | {"runs": 400, "search_runs": search_runs, "adjacency": dp.AddRemove()}
    found = dp.find_worst_pair(at_times, dp.Rows(most=20), progress=watched.append, **options)
    assert found.runs <= 2 * search_runs
    assert sum(watched) == found.runs + 2 * 400


few = {"claim": 1.0, "runs": 2_000, "search_runs": 4_000, "jobs": 1, "bits": False, "alpha": 1e-6}


def clamped(rows, size, rng):
    return sum(min(max(row, 0.0), 1.0) for row in rows) + rng.laplace(size=size)


def with_own_noise(rows):
    return float(np.clip(rows, 0.0, 1.0).sum() + np.random.default_rng().laplace())


def without_nan(rows, size, rng):
    return np.nan_to_num(np.clip(np.array(rows, dtype=float), 0.0, 1.0)).sum() + rng.laplace(size=size)


def trusting(rows, size, rng):
    return sum(rows) + rng.laplace(size=size)


def refusing(rows, rng):
    if any(math.isnan(row) for row in rows):
        raise ValueError("NaN")
    return clamped(rows, 1, rng)[0]


@pytest.mark.parametrize("mechanism", [clamped, with_own_noise])
@pytest.mark.parametrize("domain", [dp.Rows(), dp.Rows(values=(0.0, 0.5, 1.0))])
def test_a_clamp_that_nan_passes_is_refuted(mechanism, domain):
    found = dp.find_worst_pair(mechanism, domain, adjacency="add-remove", **few)
    assert found.is_refuted
    assert math.isnan(sum(found.x)) != math.isnan(sum(found.y))
    assert any("finite=True" in note for note in found.audit.notes)


@pytest.mark.parametrize(
    ("mechanism", "domain"),
    [
        (clamped, dp.Rows(finite=True)),
        (clamped, dp.Rows(values=(0.0, 1.0), finite=True)),
        (without_nan, dp.Rows()),
        (trusting, dp.Rows()),
        (trusting, dp.Rows(values=(0.0, 1.0))),
        (refusing, dp.Rows()),
        (lambda rows, size, rng: sum(rows) / 5 + rng.laplace(size=size), dp.Rows(high=5, integer=True)),
    ],
)
def test_other_mechanisms_are_not(mechanism, domain):
    found = dp.find_worst_pair(mechanism, domain, adjacency="add-remove", **few)
    assert not found.is_refuted
    assert any("raises on it" in note for note in found.audit.notes) == (mechanism is refusing)


def test_answers_and_values_in_the_local_model():
    def report(value, size, rng):
        return np.clip(value, 0.0, 1.0) + rng.laplace(size=size)

    for domain in (dp.Answers(low=0.0, high=1.0), dp.Values((0.0, 1.0))):
        assert dp.find_worst_pair(report, domain, adjacency="local", **few).is_refuted
    for domain in (dp.Answers(low=0.0, high=1.0, finite=True), dp.Values((0.0, 1.0), finite=True)):
        assert not dp.find_worst_pair(report, domain, adjacency="local", **few).is_refuted


def test_the_sensitivity_of_a_clamped_sum():
    options = {"adjacency": "add-remove", "bound": 1.0, "evaluations": 400}
    assert dp.check_sensitivity(lambda rows: np.clip(rows, 0, 1).sum(), dp.Rows(), **options).is_refuted
    assert not dp.check_sensitivity(lambda rows: np.clip(rows, 0, 1).sum(), dp.Rows(finite=True), **options).is_refuted
    assert not dp.check_sensitivity(sum, dp.Rows(), **options).is_refuted


def test_users_with_many_different_rows_are_tried():
    """Values are counted once over all users before the bound of one value for each: epsilon is up to 4."""

    def distinct(rows):
        owner = {}
        for user, value in rows:
            owner.setdefault(value, user)
        return len(set({user: value for value, user in reversed(owner.items())}.values()))

    def noisy(rows, size, rng):
        return distinct(rows) + rng.laplace(size=size)

    domain = dp.Rows(low=(0, 0), high=(5, 5), integer=True, most=12, rows_per_user=6)
    options = few | {"search_runs": 60_000, "runs": 4_000}
    assert dp.find_worst_pair(noisy, domain, adjacency=dp.UserLevel(0), **options).is_refuted


def shortened(rows, size, rng):
    """Clips to norm 1 by division, which infinity passes; NaN is 0."""
    known = np.nan_to_num(np.array(rows, dtype=float), posinf=np.inf, neginf=-np.inf)
    with np.errstate(invalid="ignore"):
        return (known / np.maximum(1.0, np.abs(known))).sum() + rng.laplace(size=size)


def inverted(rows, size, rng):
    """A correct count, but for a remark on the sign of zero."""
    return sum(60.0 if math.copysign(1.0, row) < 0.0 else 1.0 for row in rows) + rng.laplace(size=size)


def without_infinity(rows, size, rng):
    if any(math.isinf(row) for row in rows):
        raise OverflowError("infinite")
    return without_nan(rows, size, rng)


@pytest.mark.parametrize(("mechanism", "number"), [(shortened, "inf"), (inverted, "-0.0")])
@pytest.mark.parametrize("domain", [dp.Rows(), dp.Rows(values=(0.0, 0.5, 1.0))])
def test_infinity_and_negative_zero_are_tried(mechanism, number, domain):
    domain = replace(domain, low=-1.0) if mechanism is shortened and not domain.values else domain
    found = dp.find_worst_pair(mechanism, domain, adjacency="add-remove", **few)
    assert found.is_refuted
    assert any(number in note and "finite=True" in note for note in found.audit.notes)
    finite = dp.find_worst_pair(mechanism, replace(domain, finite=True), adjacency="add-remove", **few)
    assert not finite.is_refuted


def test_a_mechanism_that_raises_on_infinity_is_not_refuted():
    found = dp.find_worst_pair(without_infinity, dp.Rows(), adjacency="add-remove", **few)
    assert not found.is_refuted
    assert any(note.startswith("inf, -inf not tried, because the mechanism raises") for note in found.audit.notes)


@pytest.mark.parametrize("form", ["rows", "columns", "tuples", "frame"])
def test_tables_hold_nan_and_infinity(form):
    tables = dp.Tables({"age": dp.NumericColumn(0, 1), "group": dp.NumericColumn(0, 3, integer=True)}, form=form)

    def ages(table):
        if form == "rows":
            return [row["age"] for row in table]
        return [row[0] for row in table] if form == "tuples" else list(table["age"])

    def total(table, size, rng):
        return clamped([age for age in ages(table) if age is not None], size, rng)

    def cautious(table, size, rng):
        return without_nan([age for age in ages(table) if age is not None], size, rng)

    assert dp.find_worst_pair(total, tables, adjacency="add-remove", **few).is_refuted
    kept = replace(tables, outside=("missing",)) if form != "frame" else dp.Tables(dict(tables.columns), outside=())
    for mechanism, domain in ((total, kept), (cautious, tables)):
        assert not dp.find_worst_pair(mechanism, domain, adjacency="add-remove", **few).is_refuted


def test_what_no_tried_dataset_has_is_named():
    larger = with_special_numbers(
        dp.Rows(), lambda one, other: math.inf if str(one) != str(other) else 0.0, lambda dataset: None
    )
    assert larger.numbers == (-0.0,)  # beyond the range every number counts, so that it is no clamp
    larger = with_special_numbers(
        dp.Rows(), lambda one, other: float(0.0 <= min(one) <= max(one) <= 1.0), lambda dataset: None
    )
    assert [str(number) for number in larger.numbers] == ["nan", "-0.0"]
    assert larger.remarks([1.0], [], [[0.0], [math.nan]], is_refuted=False) == (
        "-0.0 not tried, as the search ended before; use more executions (search_runs=)",
    )
    assert larger.remarks([1.0], [], [[-0.0], [(math.nan, 1)]], is_refuted=False) == ()
    (said,) = larger.remarks([math.nan], [], [[-0.0], [math.nan]], is_refuted=True)
    assert said.startswith("the pair has NaN, which")
    assert said.endswith("leave it out with finite=True in the domain")


def test_the_note_on_nan_comes_before_that_on_equal_outputs():
    found = dp.find_worst_pair(clamped, dp.Rows(), adjacency="add-remove", **few)
    first, second = found.audit.notes
    assert first.startswith("the pair has NaN")
    assert second.endswith("gave the same output, nan; is it computed from NaN, or from infinite numbers?")
