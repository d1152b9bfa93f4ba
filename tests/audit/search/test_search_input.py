"""Input that the search refuses before it draws, and its choice among equal pairs."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import AddRemove, Answers, PureDP, Replace, Rows, Values, check, find_worst_pair
from dpaudit.audit.errors import AdjacencyError, DatasetError, OptionError


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
            find_worst_pair(counted, Rows(most=3), claim=PureDP(1.0), adjacency=AddRemove(), **options)
    assert drawn == []


def test_a_generator_that_raises():
    def pairs(rng):
        raise ZeroDivisionError("no pair")

    with pytest.raises(DatasetError, match="raised ZeroDivisionError on pair 1: no pair"):
        find_worst_pair(noisy_length, pairs, claim=PureDP(1.0), runs=6_000, jobs=1)


def test_rows_that_are_not_hashable():
    def total(rows, size, rng):
        return sum(row["a"] for row in rows) + rng.laplace(size=size)

    for adjacency in (AddRemove(), Replace()):
        domain = Rows(values=({"a": 1.0}, {"a": 4.0}), most=3)
        assert find_worst_pair(total, domain, claim=PureDP(1.0), adjacency=adjacency, runs=3_000, jobs=1).is_refuted


@pytest.mark.parametrize(
    "domain",
    [
        lambda: Values({"a", "b"}),
        lambda: Values(5),
        lambda: Rows(values={"a", "b"}),
        lambda: Rows(low=0.5, high=2.5, integer=True),
        lambda: Answers(low=None),
        lambda: Answers(low=np.zeros(2), high=np.ones(2)),
    ],
    ids=["set", "number", "rows of a set", "whole between halves", "no number", "arrays"],
)
def test_domains_that_are_none(domain):
    with pytest.raises(DatasetError):
        domain()


def test_a_pattern_before_its_equal_variations():
    met = 0
    for seed in range(3):
        options = {"claim": PureDP(1.0), "adjacency": AddRemove(), "runs": 4_000, "jobs": 1, "seed": seed}
        first, *others = find_worst_pair(noisy_length, Rows(most=3), **options).ranking
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

    claim = PureDP(1.0)
    adjacency = Replace()

    def check_pair(self, x, y, distance):
        if len(x) > 1:
            raise AdjacencyError(f"rows beyond the first are not covered at distance {distance:g}")

    def sample(self, dataset, size, rng):
        return sum(dataset) + rng.laplace(size=size)


def test_pairs_that_the_mechanism_refuses_are_not_audited():
    with pytest.raises(AdjacencyError, match="rows beyond the first are not covered at distance 1"):
        check(Refusing(), [0, 1], [1, 1], runs=100, jobs=1)
    assert not check(Refusing(), [0], [1], runs=2_000, jobs=1, alpha=1e-6).is_refuted
    found = find_worst_pair(Refusing(), Rows(low=0.0, high=1.0), runs=2_000, search_runs=400, jobs=1, alpha=1e-6)
    assert len(found.x) == 1
    with pytest.raises(AdjacencyError, match=r"none of 1 pair are neighbours; the first: rows beyond"):
        find_worst_pair(Refusing(), [([0, 1], [1, 1])], runs=2_000, search_runs=400, jobs=1)


def mean_of_four(rows, size, rng):
    if len(rows) != 4:
        raise ValueError(f"this table has four rows, not {len(rows)}; " + "pass the whole table, " * 20 + "please")
    return np.mean(rows) + rng.laplace(size=size)


@pytest.mark.parametrize(("least", "most", "fixed"), [(3, 6, None), (4, 4, None), (0, 5, 4)])
@pytest.mark.parametrize("adjacency", [AddRemove(), Replace()])
def test_datasets_have_as_many_rows_as_the_domain_says(least, most, fixed, adjacency):
    sizes = set()

    def count(rows, size, rng):
        sizes.add(len(rows))
        return len(rows) + rng.laplace(size=size)

    domain = Rows(least=least, most=most, size=fixed)
    if domain.least == domain.most and isinstance(adjacency, AddRemove):
        with pytest.raises(AdjacencyError, match="datasets of 4 rows each cannot differ by an added or a removed row"):
            find_worst_pair(count, domain, claim=PureDP(1.0), adjacency=adjacency, runs=1_000)
        return
    find_worst_pair(count, domain, claim=PureDP(1.0), adjacency=adjacency, runs=400, search_runs=3_000, jobs=1)
    assert min(sizes) == (fixed or least)
    assert max(sizes) <= (fixed or most)


@pytest.mark.parametrize("wrong", [{"least": 6}, {"least": -1}, {"size": 0}, {"least": 1.5}])
def test_impossible_numbers_of_rows_are_refused(wrong):
    with pytest.raises(DatasetError, match=next(iter(wrong))):
        Rows(**wrong)


def test_a_mechanism_that_takes_few_datasets_is_audited_on_those():
    """Of the patterns only those of four rows are taken, and the first error is printed whole."""
    options = {"claim": PureDP(1.0), "adjacency": Replace(), "runs": 4_000, "search_runs": 4_000, "jobs": 1}
    found = find_worst_pair(mean_of_four, Rows(most=8), **options)
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
        options = {"claim": PureDP(1.0), "runs": 1_500, "search_runs": 3_000, "jobs": 1, "bits": False, "seed": seed}
        found = find_worst_pair(released_above_four, Rows(most=7), adjacency=AddRemove(), **options)
        assert found.is_refuted
        refuted += find_worst_pair(released_above_four, given, **options).is_refuted
    assert refuted >= 3


def test_a_pair_without_outputs_that_vary_has_no_bound():
    def released(x, size, rng):
        return np.where(x > 3, x + rng.laplace(size=size), 0.0)

    pairs = [(float(x), float(x + 1)) for x in range(6)]
    found = find_worst_pair(released, pairs, claim=PureDP(1.0), runs=400, search_runs=8_000, jobs=1)
    constant = [pair for pair in found.ranking if pair.label in ("pair 1", "pair 2", "pair 3")]
    assert [pair.bound for pair in constant] == [0.0] * 3


@pytest.mark.parametrize("given", [2, 30])
def test_the_smallest_search_tries_four_pairs(given):
    pairs = [(float(x), float(x + 1)) for x in range(given)]
    found = find_worst_pair(noisy_number, pairs, claim=PureDP(1.0), runs=1_000, search_runs=400, jobs=1)
    assert len(found.ranking) == min(given, 4)
    assert found.runs <= 400


def noisy_number(x, size, rng):
    return x + rng.laplace(size=size)
