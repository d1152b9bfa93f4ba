"""The rounds of a search keep the budget, its scores rank pairs, and its places stay in the domain."""

import math
from collections import Counter
from itertools import islice

import numpy as np
import pytest

import dpaudit as dp
from dpaudit.audit.search.candidates import Candidate, Line, initial_pairs
from dpaudit.audit.search.climb import Places, numbers_between
from dpaudit.audit.search.pairs_for_domain import pairs_of
from dpaudit.audit.search.successive_halving import first_pilot, next_pilot, rounds_left, score_pair, survivors

DOMAINS = {
    "rows": (dp.Rows(most=4, high=3.0, finite=True), dp.AddRemove()),
    "answers": (dp.Answers(6, finite=True), dp.domains.Within("linf")),
    "values": (dp.Values(tuple(range(7))), dp.Local()), "two values": (dp.Values((0, 1)), dp.Local()),
}  # fmt: skip


def counted(name, search_runs):
    """The result of a search, and the runs of the mechanism on each dataset, without the first run of each pair."""
    runs = Counter()

    def noisy(dataset, size, rng):
        if size > 1:
            runs[repr(dataset)] += size
        return float(np.sum(dataset)) + rng.laplace(scale=6.0, size=size)

    domain, adjacency = DOMAINS[name]
    options = {"claim": dp.PureDP(1.0), "adjacency": adjacency, "jobs": 1, "floating_point": "ignore"}
    return dp.find_worst_pair(noisy, domain, runs=400, search_runs=search_runs, **options), runs


@pytest.mark.parametrize("search_runs", [400, 3_000])
@pytest.mark.parametrize("name", DOMAINS)
def test_the_budget_is_kept_and_used(name, search_runs):
    found, runs = counted(name, search_runs)
    assert 0.7 * search_runs <= found.runs <= search_runs
    if search_runs < 3_000 or name not in ("rows", "answers"):
        return
    assert len(found.ranking) >= 30, "slow mechanisms get thirty pairs"
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
    assert [survivors(pairs, 100) for pairs in range(2, 8)] == [1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize("budget", [400, 100_000, 8_000_000])
@pytest.mark.parametrize("available", [1, 2, 60])
def test_pilots_grow_and_the_budget_is_kept(available, budget):
    """Without a dataset in common."""
    pairs = initial_pairs(available, budget)
    assert 1 <= pairs <= available
    pilot = first_pilot(budget, pairs, 2 * pairs)
    spent = 2 * pairs * pilot
    while (pairs := survivors(pairs, pilot) if pairs > 1 else 1) > 1:
        following = next_pilot(budget - spent, pairs, pilot, [pilot] * 2 * pairs)
        assert following >= pilot
        assert following >= min(1.25 * pilot, 500_000)
        spent, pilot = spent + 2 * pairs * (following - pilot), following
    if available > 1:
        spent += 2 * (pilot // 2)
    assert spent <= budget
    assert spent >= budget / 2 or pilot >= 200_000


def test_scores():
    rng = np.random.default_rng(0)
    near, far, equal = (rng.laplace(shift, 1.0, 4_000) for shift in (1.0, 3.0, 0.0))
    base, claim = rng.laplace(size=4_000), dp.PureDP(1.0)
    scores = {name: score_pair(base, other, claim, 10**6, 0.05) for name, other in (("near", near), ("far", far))}
    nothing = score_pair(base, equal, claim, 10**6, 0.05)
    assert scores["far"].value > 1 > scores["near"].value > 0.5
    assert all(score.value - 3 * score.error > 0 for score in scores.values())
    assert 0 <= nothing.value < 3 * nothing.error
    assert score_pair(far, base, claim, 10**6, 0.05).value == pytest.approx(scores["far"].value)
    # Claims with a delta, and in other units.
    assert score_pair(base, far, dp.ApproxDP(1.0, 1e-3), 10**6, 0.05).value > 1
    assert score_pair(base, near, dp.GaussianDP(0.1), 10**6, 0.05).value > 0.2
    always = score_pair(np.full(400, 7), np.full(400, 7), claim, 10**6, 0.05)
    assert (always.value, always.optimistic) == (0, 0)
    assert score_pair(np.full(400, 7), np.full(400, 8), claim, 10**6, 0.05).value > 1


def test_rare_outputs_have_a_bold_score_and_coupled_runs_a_smaller_error():
    """Noise that both datasets share; a shift of a tenth of its scale shows in the pairs at once."""
    rng = np.random.default_rng(0)
    equal, rare = rng.laplace(size=(2, 4_000))
    rare[::500] = 1e6  # 8 of 4,000, half of them where scores are learned
    assert score_pair(rare, equal, dp.PureDP(0.1), 10**6, 0.05).optimistic > 0.5
    rng = np.random.default_rng(1)
    noise, fresh = rng.laplace(size=(2, 8_000))
    coupled, independent = (score_pair(noise, y + 0.1, dp.PureDP(0.1), 10**7, 0.05) for y in (noise, fresh))
    assert coupled.error < 0.5 * independent.error
    assert abs(coupled.value - 0.1) < 4 * coupled.error


COLUMNS = dp.Rows(low=(1, 20.25), high=(9, 20.75))


def a_line(low, high):
    return Line(low, high, lambda number: Candidate("", number, None, ends=(number, None)))


def test_numbers_lie_in_their_range():
    for low, high in ((0.0, 1.0), (2.0, 3.0), (-7.0, -5.0), (-1.0, 3.0), (1e-300, 1e300)):
        numbers = list(islice(numbers_between(low, high), 200))
        assert low <= min(numbers) < max(numbers) <= high
        assert {low, high, math.nextafter(low, math.inf), math.nextafter(high, -math.inf)} <= set(numbers)
        assert (0.0 in numbers) == (low <= 0.0 <= high)


def test_bisection_finds_a_peak():
    places = Places(a_line(0.0, 1.0), lambda candidate: -abs(candidate.x - 0.3141))
    for number in islice(numbers_between(0.0, 1.0), 30):
        places.visit(number)
    before = abs(places.peaks()[0] - 0.3141)
    for _ in range(12):
        places.visit_around(places.peaks()[0])
    assert abs(places.peaks()[0] - 0.3141) < 1e-4 < before


def test_no_pair_is_measured_twice_and_impossible_ones_are_left_out():
    seen = []

    def measure(candidate):
        seen.append(candidate.x)
        return None if candidate.x == 0.5 else 1.0

    places = Places(a_line(0.0, 1.0), measure)
    for number in (0.0, 1.0, 0.5, 0.0, 1.0, 0.5):
        places.visit(number)
    assert seen == [0.0, 1.0, 0.5]
    assert sorted(places.heights) == sorted(places.pairs) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("domain", "adjacency"),
    [
        pytest.param(dp.Rows(low=0.2, high=0.7, most=3), dp.AddRemove(), id="numbers"),
        pytest.param(dp.Rows(values=(0.3, 0.7), most=3), dp.Replace(), id="listed"),
        pytest.param(COLUMNS, dp.Replace(), id="columns"),
        pytest.param(COLUMNS, dp.UserLevel(0), id="users"),
    ],
)
def test_simpler_pairs_and_lines_stay_in_the_domain(domain, adjacency):
    source, rng, seen = pairs_of(domain, adjacency, 1, 0), np.random.default_rng(0), 0
    for pair in islice(source.random(rng), 40):
        lines = list(source.lines_near(pair))
        near = [line.at((2.0 * line.low + line.high) / 3.0) for line in lines] + [line.at(line.high) for line in lines]
        for candidate in [*source.simpler(pair), *near]:
            for row in (*candidate.x, *candidate.y):
                seen += 1
                if domain.values:
                    assert row in domain.values
                else:
                    parts = row if isinstance(row, tuple) else (row,)
                    assert all(low <= part <= high for part, low, high in zip(parts, *domain.ranges, strict=True))
                if adjacency == dp.UserLevel(0):
                    assert row[0] == math.floor(row[0])
    assert seen > 100


def test_answers_are_as_far_apart_as_neighbours_may_be_and_all_users_named_by_numbers_are_reached():
    adjacency = dp.domains.Within("l1")
    for pair in islice(pairs_of(dp.Answers(3, 0.0, 9.0), adjacency, 1, 0).patterns(), 40):
        assert adjacency.distance(pair.x, pair.y) == pytest.approx(1.0)
    for last in (50_000, 10**30):
        source = pairs_of(dp.Rows(low=(0, 0.0), high=(last, 1.0), most=6), dp.UserLevel(0), 1, 0)
        users = {row[0] for pair in islice(source.random(np.random.default_rng(0)), 60) for row in (*pair.x, *pair.y)}
        assert max(users) > 40_000


def test_round_numbers_are_visited():
    """Code has its thresholds there."""
    for low, high, wanted in (
        (0.0, 65.0, range(66)),
        (0.0, 1.0, [part / 100 for part in range(101)]),
        (-0.05, 0.05, [part / 1000 for part in range(-50, 51)]),
        (0.5, 1e6, [10_000.0 * part for part in range(1, 101)]),
    ):
        assert set(map(float, wanted)) <= set(islice(numbers_between(low, high), 300))
