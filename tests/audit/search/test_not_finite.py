"""NaN, infinity and -0.0 in searches: on mechanisms that clamp, not on those that rely on the range or refuse them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import Answers, NumericColumn, Rows, Tables, UserLevel, Values, check_sensitivity, find_worst_pair
from dpaudit.audit.search.not_finite import with_special_numbers

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
@pytest.mark.parametrize("domain", [Rows(), Rows(values=(0.0, 0.5, 1.0))])
def test_a_clamp_that_nan_passes_is_refuted(mechanism, domain):
    found = find_worst_pair(mechanism, domain, adjacency="add-remove", **few)
    assert found.is_refuted
    assert math.isnan(sum(found.x)) != math.isnan(sum(found.y))
    assert any("finite=True" in note for note in found.audit.notes)


@pytest.mark.parametrize(
    ("mechanism", "domain"),
    [
        (clamped, Rows(finite=True)),
        (clamped, Rows(values=(0.0, 1.0), finite=True)),
        (without_nan, Rows()),
        (trusting, Rows()),
        (trusting, Rows(values=(0.0, 1.0))),
        (refusing, Rows()),
        (lambda rows, size, rng: sum(rows) / 5 + rng.laplace(size=size), Rows(high=5, integer=True)),
    ],
)
def test_other_mechanisms_are_not(mechanism, domain):
    found = find_worst_pair(mechanism, domain, adjacency="add-remove", **few)
    assert not found.is_refuted
    assert any("raises on it" in note for note in found.audit.notes) == (mechanism is refusing)


def test_answers_and_values_in_the_local_model():
    def report(value, size, rng):
        return np.clip(value, 0.0, 1.0) + rng.laplace(size=size)

    for domain in (Answers(low=0.0, high=1.0), Values((0.0, 1.0))):
        assert find_worst_pair(report, domain, adjacency="local", **few).is_refuted
    for domain in (Answers(low=0.0, high=1.0, finite=True), Values((0.0, 1.0), finite=True)):
        assert not find_worst_pair(report, domain, adjacency="local", **few).is_refuted


def test_the_sensitivity_of_a_clamped_sum():
    options = {"adjacency": "add-remove", "bound": 1.0, "evaluations": 400}
    assert check_sensitivity(lambda rows: np.clip(rows, 0, 1).sum(), Rows(), **options).is_refuted
    assert not check_sensitivity(lambda rows: np.clip(rows, 0, 1).sum(), Rows(finite=True), **options).is_refuted
    assert not check_sensitivity(sum, Rows(), **options).is_refuted


def test_users_with_many_different_rows_are_tried():
    """Values are counted once over all users before the bound of one value for each: epsilon is up to 4."""

    def distinct(rows):
        owner = {}
        for user, value in rows:
            owner.setdefault(value, user)
        return len(set({user: value for value, user in reversed(owner.items())}.values()))

    def noisy(rows, size, rng):
        return distinct(rows) + rng.laplace(size=size)

    domain = Rows(low=(0, 0), high=(5, 5), integer=True, most=12, rows_per_user=6)
    options = few | {"search_runs": 60_000, "runs": 4_000}
    assert find_worst_pair(noisy, domain, adjacency=UserLevel(0), **options).is_refuted


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
@pytest.mark.parametrize("domain", [Rows(), Rows(values=(0.0, 0.5, 1.0))])
def test_infinity_and_negative_zero_are_tried(mechanism, number, domain):
    domain = replace(domain, low=-1.0) if mechanism is shortened and not domain.values else domain
    found = find_worst_pair(mechanism, domain, adjacency="add-remove", **few)
    assert found.is_refuted
    assert any(number in note and "finite=True" in note for note in found.audit.notes)
    finite = find_worst_pair(mechanism, replace(domain, finite=True), adjacency="add-remove", **few)
    assert not finite.is_refuted


def test_a_mechanism_that_raises_on_infinity_is_not_refuted():
    found = find_worst_pair(without_infinity, Rows(), adjacency="add-remove", **few)
    assert not found.is_refuted
    assert any(note.startswith("inf, -inf not tried, because the mechanism raises") for note in found.audit.notes)


@pytest.mark.parametrize("form", ["rows", "columns", "tuples", "frame"])
def test_tables_hold_nan_and_infinity(form):
    tables = Tables({"age": NumericColumn(0, 1), "group": NumericColumn(0, 3, integer=True)}, form=form)

    def ages(table):
        if form == "rows":
            return [row["age"] for row in table]
        return [row[0] for row in table] if form == "tuples" else list(table["age"])

    def total(table, size, rng):
        return clamped([age for age in ages(table) if age is not None], size, rng)

    def cautious(table, size, rng):
        return without_nan([age for age in ages(table) if age is not None], size, rng)

    assert find_worst_pair(total, tables, adjacency="add-remove", **few).is_refuted
    kept = replace(tables, outside=("missing",)) if form != "frame" else Tables(dict(tables.columns), outside=())
    for mechanism, domain in ((total, kept), (cautious, tables)):
        assert not find_worst_pair(mechanism, domain, adjacency="add-remove", **few).is_refuted


def test_what_no_tried_dataset_has_is_named():
    larger = with_special_numbers(
        Rows(), lambda one, other: math.inf if str(one) != str(other) else 0.0, lambda dataset: None
    )
    assert larger.numbers == (-0.0,)  # beyond the range every number counts, so that it is no clamp
    larger = with_special_numbers(
        Rows(), lambda one, other: float(0.0 <= min(one) <= max(one) <= 1.0), lambda dataset: None
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
    found = find_worst_pair(clamped, Rows(), adjacency="add-remove", **few)
    first, second = found.audit.notes
    assert first.startswith("the pair has NaN")
    assert second.endswith("gave the same output, nan; is it computed from NaN, or from infinite numbers?")
