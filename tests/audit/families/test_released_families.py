"""Vectors with missing numbers: what tells is found wherever the numbers stand, and other vectors pay nothing."""

from __future__ import annotations

import numpy as np

from dpaudit import PureDP
from dpaudit.audit.distinguishers.event_choice import choose_among
from dpaudit.audit.events.events import Scored
from dpaudit.audit.events.features import Released
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.families.released_families import released_families


def one_number(shift, size, rng):
    """Vectors of twelve with a single number, at a place by chance; the number is what tells the datasets apart."""
    found = np.full((size, 12), np.nan)
    found[np.arange(size), rng.integers(0, 12, size)] = shift + rng.laplace(size=size)
    return found


def best_of(x, y, claim, runs):
    """The best event of these families alone."""
    split = PilotSplit.in_half(x, y)
    families = list(released_families(split, x.shape[1], together=True))
    choice = choose_among(families, claim, runs, 0.05)[0]
    assert isinstance(choice.event, Scored)
    assert choice.event.score.columns == Released(x.shape[1])
    return choice


def test_a_number_that_stands_anywhere():
    rng = np.random.default_rng(0)
    choice = best_of(one_number(0.5, 6_000, rng), one_number(0.0, 6_000, rng), PureDP(0.3), 200_000)
    p, q = (np.mean(choice.event.contains(one_number(shift, 100_000, rng))) for shift in (0.5, 0.0))
    assert max(p, q) > 0.15  # a coordinate has a twelfth of the runs
    assert abs(np.log(p / q)) > 0.45


def test_the_place_of_a_number():
    """One of five places; from x to y they move by one."""

    def draw(first, size, rng):
        found = np.full((size, 6), np.nan)
        found[np.arange(size), rng.integers(first, 5 + first, size)] = rng.laplace(size=size)
        return found

    rng = np.random.default_rng(0)
    choice = best_of(draw(0, 2_000, rng), draw(1, 2_000, rng), PureDP(1.0), 100_000)
    p, q = (np.mean(choice.event.contains(draw(first, 20_000, rng))) for first in (0, 1))
    assert min(p, q) == 0.0
    assert max(p, q) > 0.15


def test_they_cost_nothing_where_no_number_is_missing_or_all_are():
    rng = np.random.default_rng(0)
    for x in (rng.laplace(size=(4_000, 3)), rng.integers(-1, 2, (4_000, 3)), np.full((4_000, 3), np.nan)):
        assert list(released_families(PilotSplit.in_half(x, x), 3, together=True)) == []
