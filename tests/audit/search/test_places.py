"""Sweeps and simplifications stay in the domain, and bisection finds what is largest."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest

from dpaudit import AddRemove, Answers, Replace, Rows, UserLevel, Within
from dpaudit.audit.search.candidates import Candidate, Line
from dpaudit.audit.search.pairs_for_domain import pairs_of
from dpaudit.audit.search.places import Places, numbers_between

COLUMNS = Rows(low=(1, 20.25), high=(9, 20.75))


def a_line(low, high):
    return Line(low, high, lambda number: Candidate("", number, None, ends=(number, None)))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.0, 3.0), (-7.0, -5.0), (-1.0, 3.0), (1e-300, 1e300)])
def test_numbers_lie_in_their_range(low, high):
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
        pytest.param(Rows(low=0.2, high=0.7, most=3), AddRemove(), id="numbers"),
        pytest.param(Rows(values=(0.3, 0.7), most=3), Replace(), id="listed"),
        pytest.param(COLUMNS, Replace(), id="columns"),
        pytest.param(COLUMNS, UserLevel(0), id="users"),
    ],
)
def test_simpler_pairs_and_lines_stay_in_the_domain(domain, adjacency):
    source, rng, seen = pairs_of(domain, adjacency, 1, 0), np.random.default_rng(0), 0
    for pair in islice(source.random(rng), 40):
        near = [line.at(number) for line in source.lines_near(pair) for number in (line.low, line.high, 20.5)[:2]]
        for candidate in [*source.simpler(pair), *near]:
            for row in (*candidate.x, *candidate.y):
                seen += 1
                if domain.values:
                    assert row in domain.values
                else:
                    parts = row if isinstance(row, tuple) else (row,)
                    assert all(low <= part <= high for part, low, high in zip(parts, *domain.ranges, strict=True))
                if adjacency == UserLevel(0):
                    assert row[0] == math.floor(row[0])
    assert seen > 100


@pytest.mark.parametrize("last", [50_000, 10**30])
def test_all_users_named_by_numbers_are_reached(last):
    domain = Rows(low=(0, 0.0), high=(last, 1.0), most=6)
    source = pairs_of(domain, UserLevel(0), 1, 0)
    users = {row[0] for pair in islice(source.random(np.random.default_rng(0)), 60) for row in (*pair.x, *pair.y)}
    assert max(users) > 40_000


def test_lines_near_a_pair_change_one_number():
    source = pairs_of(Answers(3, 0.0, 9.0), Within("l1"), 1, 0)
    pair = next(iter(source.patterns()))
    lines = list(source.lines_near(pair))
    assert len(lines) == 3
    for place, line in enumerate(lines):
        assert np.flatnonzero(line.at(2.5).x != pair.x).tolist() == [place]


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.0, 65.0, range(66)),
        (0.0, 1.0, [part / 100 for part in range(101)]),
        (-0.05, 0.05, [part / 1000 for part in range(-50, 51)]),
        (0.5, 1e6, [10_000.0 * part for part in range(1, 101)]),
    ],
)
def test_round_numbers_are_visited(low, high, wanted):
    """Code has its thresholds there."""
    assert set(map(float, wanted)) <= set(islice(numbers_between(low, high), 300))


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (-1e308, 1e308), (0.0, 5e-324)])
def test_ranges_without_round_numbers(low, high):
    assert next(numbers_between(low, high)) == low
    assert len(list(islice(numbers_between(low, high), 100))) == 100
