"""Queries that score candidates: a function of each candidate, and counts of categories."""

import pickle

import numpy as np
import pandas as pd
import pytest

from dpaudit import AddRemove, Replace
from dpaudit import mechanisms as m
from dpaudit.audit.errors import ClaimError, DatasetError
from dpaudit.mechanisms.faulty import ExponentialMissingFactorTwo, NoisyMaxMissingFactorTwo
from dpaudit.mechanisms.queries import places_below_leader

NAMES = ["Ann", "Bob", "Eve"]


@pytest.mark.parametrize(
    "form", [list, tuple, np.array, pd.Series, lambda rows: np.array(rows, dtype=object)], ids=["l", "t", "a", "s", "o"]
)
def test_rows_are_counted_whatever_holds_them(form):
    assert m.CategoryCounts(NAMES)(form(["Eve", "Bob", "Zoe", "Bob"])).tolist() == [0, 2, 1]


def test_categories_are_rows_of_any_kind():
    frame = pd.DataFrame({"ill": ["flu", "flu", "cold"], "age": [1, 2, 1]})
    assert m.CategoryCounts([("flu", 1), ("cold", 1)])(frame).tolist() == [1, 1]
    assert m.CategoryCounts(np.arange(3))(np.array([2, 2, 0])).tolist() == [1, 0, 2]
    assert m.CategoryCounts([True, False])([]).tolist() == [0, 0]


def test_counts_have_the_sensitivity_and_the_direction_that_they_say():
    counts = m.CategoryCounts("abc")
    assert m.query_sensitivity(counts, "abcz", 3, AddRemove(), norm="linf") == 1
    assert m.query_sensitivity(counts, "abcz", 3, Replace(), norm="linf") == 1
    for row in "abcz":
        assert np.all(counts([*"abza", row]) >= counts([*"abza"]))


def test_the_most_common_name_under_the_right_and_the_wrong_neighbours():
    """Counts are monotone if a row is added, but not if a row is replaced; the saving is then a false version."""
    before, added, replaced = ["Ann"] * 40 + ["Bob"], ["Ann"] * 40 + ["Bob"] * 2, ["Ann"] * 39 + ["Bob"] * 2
    counts = m.CategoryCounts(["Ann", "Bob"])
    for wrong in (
        *(NoisyMaxMissingFactorTwo(1.0, noise=noise, counts=counts) for noise in ("laplace", "exponential", "gumbel")),
        ExponentialMissingFactorTwo(1.0, utilities=counts),
    ):
        assert wrong.runs_as.monotone
        assert m.exact_epsilon(wrong.law(before), wrong.law(added)) <= 1.0 + 1e-12
        assert m.exact_epsilon(wrong.law(before), wrong.law(replaced)) > 1.9
    for right in (m.ReportNoisyMax(1.0, counts=counts), m.ExponentialMechanism(1.0, utilities=counts)):
        assert m.exact_epsilon(right.law(before), right.law(replaced)) <= 1.0 + 1e-12


def test_queries_survive_pickling_and_compare_by_value():
    for query in (m.CategoryCounts(NAMES), m.EachCandidate(list.count, NAMES)):
        copy = pickle.loads(pickle.dumps(query))
        assert copy == query
        assert list(copy(["Bob"])) == [0, 1, 0]


def test_each_candidate_is_scored_in_order():
    assert m.EachCandidate(lambda rows, c: sum(rows) * c, [1, 3, 2])([2, 3]) == [5, 15, 10]
    assert m.EachCandidate(min, range(1, 3)).candidates == (1, 2)


def test_places_are_taken_from_the_largest_score():
    places = places_below_leader(np.array, [1e15, 1e15 + 2, 1e15 - 4], 4.0)
    assert places.tolist() == [-0.5, 0.0, -1.5]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: m.CategoryCounts([]), ClaimError, r"categories=\(\) is an empty range; give at least one"),
        (
            lambda: m.CategoryCounts(["a", "b", "a"]),
            ClaimError,
            "names a category twice, .* twice; name each",
        ),
        (lambda: m.CategoryCounts([1, 1.0]), ClaimError, "names a category twice"),
        (lambda: m.EachCandidate(max, []), ClaimError, r"candidates=\(\) is an empty range; give at least one"),
        (lambda: m.CategoryCounts("ab")(3), DatasetError, "a dataset of type int has no rows to compare"),
    ],
    ids=["no category", "twice", "equal", "no candidate", "no rows"],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
