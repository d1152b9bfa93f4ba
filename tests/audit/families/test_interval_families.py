"""Intervals between two thresholds: where they lie, and that their counts are those of their events."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.audit.events.events import Scored
from dpaudit.audit.events.scores import Number, Weighted
from dpaudit.audit.families.event_families import event_families
from dpaudit.audit.families.interval_families import interval_families
from dpaudit.audit.families.number_families import ordered_families, value_families
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.inference.betting_test import Line

N = 20_000
DIAGONAL = [("x", Line(1.0, 0.0)), ("y", Line(1.0, 0.0))]


def even(n=N):
    """Numbers spread evenly over (0, 1), in an order that has each half of them spread evenly too."""
    return (np.arange(n) * 0.5 * (math.sqrt(5.0) - 1.0) + 0.5 / n) % 1.0


def crowded(values, low, high, share=0.01):
    """The same, with a share of them moved into an interval."""
    moved = values.copy()
    moved[:: round(1 / share)] = low + (high - low) * even(len(moved[:: round(1 / share)]))
    return moved


def intervals_of(x, y, lines=DIAGONAL):
    split = PilotSplit.in_half(x, y)
    return list(interval_families(list(ordered_families(Number(), split.ordered, fit=False)), lines))


def events_of(family):
    return [(at, family.build(at, True), family.build(at, False)) for at in range(len(family.hits_x))]


def assert_counts(family, x, y):
    for at, inside, outside in events_of(family):
        assert (family.hits_x[at], family.hits_y[at]) == (inside.count(x), inside.count(y))
        assert inside.count(x) + outside.count(x) == family.runs == len(x)


@pytest.mark.parametrize("likelier_on", ["x", "y"])
def test_it_lies_where_one_dataset_has_more(likelier_on):
    plain, more = even(), crowded(even(), 0.4, 0.45)
    x, y = (more, plain) if likelier_on == "x" else (plain, more)
    (family,) = intervals_of(x, y)
    assert_counts(family, x, y)
    z = (family.hits_x - family.hits_y) / np.sqrt(family.hits_x + family.hits_y)
    _, event, _ = events_of(family)[int(np.argmax(z if likelier_on == "x" else -z))]
    (interval,) = event.intervals
    assert interval == pytest.approx((0.4, 0.45), abs=0.005)


def test_its_ends_are_values_where_there_are_few():
    plain = np.floor(100.0 * even())
    more = np.floor(100.0 * crowded(even(), 0.3, 0.4, 0.02))
    (family,) = intervals_of(more, plain)
    assert_counts(family, more, plain)
    assert ((30.0, 39.0),) in [event.intervals for _, event, _ in events_of(family)]


def test_nothing_lies_above_a_line_where_the_datasets_agree():
    assert intervals_of(even(), even()) == []


def test_it_lies_above_the_line_and_not_where_the_datasets_differ_most():
    """Half of the numbers have a ratio of 1.3, which the slope of 1.5 allows, and a twentieth one of 2."""
    x = np.concatenate([0.5 * even(13_000), 0.5 + 0.05 * even(2_000), 0.55 + 0.45 * even(5_000)])
    y = np.concatenate([0.5 * even(10_000), 0.5 + 0.05 * even(1_000), 0.55 + 0.45 * even(9_000)])
    x, y = (np.random.default_rng(0).permutation(side) for side in (x, y))
    (wide,) = intervals_of(x, y, [("x", Line(1.0, 0.0))])
    (steep,) = intervals_of(x, y, [("x", Line(1.5, 0.0))])
    assert events_of(wide)[0][1].intervals[0] == pytest.approx((0.0, 0.55), abs=0.01)
    assert events_of(steep)[0][1].intervals[0] == pytest.approx((0.5, 0.55), abs=0.01)


def test_an_intercept_is_subtracted():
    x, y = crowded(even(), 0.4, 0.45), even()
    assert intervals_of(x, y, [("x", Line(1.0, 0.0))])
    assert intervals_of(x, y, [("x", Line(1.0, 0.02))]) == []


def test_outputs_that_are_not_numbers_are_outside():
    x, y = crowded(even(), 0.4, 0.45), even()
    x[:50], y[:50] = math.nan, math.nan
    (family,) = intervals_of(x, y)
    assert_counts(family, x, y)


def test_an_infinite_end_leaves_nothing_beyond_it():
    x, y = crowded(even(), 0.95, 1.0), even()
    x[:400], y[:100] = math.inf, math.inf
    for family in intervals_of(x, y):
        assert_counts(family, x, y)


def test_few_hits_are_no_interval():
    """Nine more on x than on y, close together, are more than three standard errors of themselves."""
    few, some = (np.concatenate([even(N - n), 2.0 + 0.01 * even(n)]) for n in (9, 30))
    plain = np.concatenate([even(N - 9), 3.0 + even(9)])
    for x, is_found in ((few, False), (some, True)):
        x, y = (np.random.default_rng(1).permutation(side) for side in (x, plain))
        families = intervals_of(x, y, DIAGONAL[:1])
        lows = [event.intervals[0][0] for family in families for _, event, _ in events_of(family)]
        assert (max(lows, default=0.0) > 1.5) == is_found


def test_a_score_has_them_too():
    x, y = (np.stack([even(), side], axis=1) for side in (crowded(even(), 0.4, 0.45), even()))
    second = Weighted((0.0, 1.0))
    families = list(value_families(second, PilotSplit.in_half(x, y).map(second.values), fit=False))
    (family,) = interval_families(families, DIAGONAL[:1])
    assert_counts(family, x, y)
    assert all(isinstance(event, Scored) for event in events_of(family)[0][1:])


def test_no_family_of_other_events_has_them():
    words = np.array(["a", "b", "c", "d"] * 50, dtype=object)
    split = PilotSplit.in_half(words, words[::-1].copy())
    families = [each for each in event_families(split) if type(each.build).__name__ != "HalfLines"]
    assert list(interval_families(families, DIAGONAL)) == []
