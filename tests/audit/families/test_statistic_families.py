"""Statistics of several columns: half-lines for their intervals, with the counts of the whole pilot."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import PureDP
from dpaudit.audit.distinguishers.event_choice import choose_event, choose_event_each_way
from dpaudit.audit.events.features import Coordinates, Statistics
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.families.event_families import event_families
from dpaudit.audit.families.interval_families import statistic_families
from dpaudit.audit.families.pilot_split import PilotSplit


def vectors(width, runs=2_000):
    return np.random.default_rng(0).normal(size=(2, runs, width))


def pairs_and_words(part):
    return as_outputs([("a", *row) for row in part.tolist()], len(part), "m")


def read(columns, x, y):
    return PilotSplit.in_half(x, y).map(columns.read)


def test_their_counts_are_those_of_the_whole_pilot():
    x, y = vectors(3)
    families = list(statistic_families(Coordinates(3), read(Coordinates(3), x, y), range(3)))
    assert len(families) == 8
    for family in families:
        assert family.for_intervals
        assert family.runs == len(x)
        for place in (0, len(family.hits_x) // 2):
            event = family.build(place, True)
            assert (family.hits_x[place], family.hits_y[place]) == (event.count(x), event.count(y))


@pytest.mark.parametrize(("width", "count"), [(1, 0), (64, 5 + 63), (65, 5)])
def test_one_column_has_none_and_very_many_have_no_differences(width, count):
    columns = Coordinates(width)
    assert len(list(statistic_families(columns, read(columns, *vectors(width, 100)), range(width)))) == count


@pytest.mark.parametrize("outputs", [np.asarray, pairs_and_words], ids=["vectors", "tuples with a word"])
def test_they_are_there_only_if_asked_for(outputs):
    split = PilotSplit.in_half(*map(outputs, vectors(2)))
    assert not any(family.for_intervals for family in event_families(split, effort="trees"))
    with_them = [family for family in event_families(split, with_statistics=True) if family.for_intervals]
    names = [str(family.build(0, True).score) for family in with_them]
    assert len(names) == 6
    assert any(name.startswith("Euclidean norm of") for name in names)


def test_how_many_entries_there_are_is_no_part_of_a_sum():
    def dictionaries(part):
        return as_outputs([{"a": a, "b": b, "c": "word"} for a, b in part.tolist()], len(part), "m")

    split = PilotSplit.in_half(*map(dictionaries, vectors(2)))
    scores = [
        family.build(0, True).score for family in event_families(split, with_statistics=True) if family.for_intervals
    ]
    assert str(scores[0]) == "sum of output['a'], output['b']"
    assert len(scores) == 6


def test_missing_numbers_are_in_no_interval():
    x, y = vectors(2)
    x[::2, 0] = np.nan
    families = list(statistic_families(Coordinates(2), read(Coordinates(2), x, y), range(2)))
    assert all(family.hits_x.max() <= len(x) // 2 < 0.9 * family.hits_y.max() for family in families)
    event = families[0].build(0, False)
    assert event.count(x[::2]) == len(x) // 2


def test_half_lines_of_a_statistic_are_no_events():
    """Pairs whose norms differ: a choice among half-lines would take it, and intervals of it are sought instead."""
    x, y = vectors(2, 20_000) * np.array([1.0, 1.5])[:, None, None]
    split = PilotSplit.in_half(x, y)
    for choice in (
        choose_event(split, PureDP(0.1), 10**5, 0.05),
        *choose_event_each_way(split, PureDP(0.1), 10**5, 0.05),
    ):
        score = getattr(choice.event, "score", None)
        if isinstance(getattr(score, "columns", None), Statistics):
            ((low, high),) = choice.event.intervals.intervals
            assert np.isfinite([low, high]).all()
