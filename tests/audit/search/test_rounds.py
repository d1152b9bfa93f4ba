"""The rounds of a search keep the budget, and every dataset is run once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dpaudit import AddRemove, Answers, Local, PureDP, Rows, Values, Within, find_worst_pair
from dpaudit.audit.search.rounds import first_pilot, grows, initial_pairs, next_pilot, rounds_left, survivors

DOMAINS = {
    "rows": (Rows(most=4, high=3.0, finite=True), AddRemove()),
    "answers": (Answers(6, finite=True), Within("linf")),
    "values": (Values(tuple(range(7))), Local()),
    "two values": (Values((0, 1)), Local()),
}


def counted(name, search_runs):
    """The result of a search, and the runs of the mechanism on each dataset, without the first run of each pair."""
    runs = Counter()

    def noisy(dataset, size, rng):
        if size > 1:
            runs[repr(dataset)] += size
        return float(np.sum(dataset)) + rng.laplace(scale=6.0, size=size)

    domain, adjacency = DOMAINS[name]
    options = {"claim": PureDP(1.0), "adjacency": adjacency, "jobs": 1, "bits": False}
    return find_worst_pair(noisy, domain, runs=400, search_runs=search_runs, **options), runs


@pytest.mark.parametrize("search_runs", [400, 700, 3_000])
@pytest.mark.parametrize("name", DOMAINS)
def test_the_budget_is_kept_and_used(name, search_runs):
    found, _ = counted(name, search_runs)
    assert 0.7 * search_runs <= found.runs <= search_runs


@pytest.mark.parametrize("name", ["rows", "answers"])
def test_slow_mechanisms_get_thirty_pairs(name):
    found, runs = counted(name, 3_000)
    assert len(found.ranking) >= 30
    assert found.untried <= 60
    assert abs(np.sum(found.x) - np.sum(found.y)) == pytest.approx(3.0 if name == "rows" else 6.0)
    shared = [times for dataset, times in runs.items() if dataset not in (repr(found.x), repr(found.y))]
    assert len(set(shared)) <= 6, "each dataset has the runs of a few rounds, not those of each pair"


def test_a_search_of_any_size_ends_with_one_pair():
    for pairs in range(1, 70):
        for pilot in (10, 49, 50, 1_000):
            left, count = pairs, 0
            while left > 1:
                left, count = survivors(left, pilot * 2**count), count + 1
            assert count == rounds_left(pairs, pilot)


@pytest.mark.parametrize("budget", [400, 3_000, 100_000, 8_000_000])
@pytest.mark.parametrize("available", [1, 2, 7, 60, 1_000])
@pytest.mark.parametrize("strength", [0.1, 1.0])
def test_pilots_grow_and_the_budget_is_kept(available, budget, strength):
    """Without a dataset in common, and without variations."""
    pairs = initial_pairs(available, budget, strength)
    assert 1 <= pairs <= available
    pilot = first_pilot(budget, pairs, 2 * pairs)
    spent = 2 * pairs * pilot
    while (pairs := survivors(pairs, pilot) if pairs > 1 else 1) > 1:
        following = next_pilot(budget - spent, pairs, pilot, [pilot] * 2 * pairs)
        assert following >= pilot
        assert grows(following, pilot) or following == 500_000
        spent, pilot = spent + 2 * pairs * (following - pilot), following
    if available > 1:
        spent += 2 * (pilot // 2)
    assert spent <= budget
    assert spent >= budget / 2 or pilot >= 200_000
