"""Cells of columns: events hold exactly the outputs of their cells, and the pilot counts what it says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpaudit.audit.events.events import Intervals, Scored
from dpaudit.audit.events.scores import Coordinate, Number
from dpaudit.audit.portfolio.cells import RECURS, Column, Cut, as_spread, event_of, from_the_inside
from dpaudit.audit.records.json_codec import plain_data, read_data

ANY = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, math.nextafter(1.0, 2.0), 5e-324, -5e-324, math.inf, -math.inf, math.nan, 1e308]),
    st.floats(width=64),
)
NUMBERS = st.integers(2, 30).flatmap(lambda runs: arrays(np.float64, (3, runs), elements=ANY))


def cells_with(cut, seed):
    return np.random.default_rng(seed).random(len(cut.count_x)) < 0.5


@settings(max_examples=150, deadline=None, derandomize=True)
@given(NUMBERS, st.integers(0, 2**31))
def test_an_event_holds_exactly_the_outputs_of_its_cells(values, seed):
    """With NaN, infinities, ties, −0.0, and fresh outputs beyond all edges."""
    x, y, fresh = values
    cut = Cut.of(Column(Number(), x, y, curve=None))
    if cut is None:
        return
    mask, outputs = cells_with(cut, seed), np.concatenate([x, y, fresh])
    cells = np.searchsorted(cut.edges, outputs, side="right")
    wanted = mask[np.where(np.isnan(outputs), len(cut.edges) + 1, cells)]
    event = cut.event(mask)
    np.testing.assert_array_equal(event.contains(outputs), wanted)
    assert np.all(np.diff(cut.edges) > 0)
    as_objects = np.array([*outputs.tolist(), "word", None], dtype=object)
    np.testing.assert_array_equal(event.contains(as_objects)[:-2], wanted)
    assert event.contains(as_objects)[-2:].tolist() == [mask[-1]] * 2
    vectors = np.stack([np.zeros(len(outputs)), outputs], axis=1)
    second = event_of(Coordinate(1, 2), cut.edges, mask)
    np.testing.assert_array_equal(second.contains(vectors), wanted)
    assert read_data(plain_data(event)) == event


def even(n=20_000):
    """Numbers spread evenly over (0, 1), in an order that has each half of them spread evenly too."""
    return (np.arange(n) * 0.5 * (math.sqrt(5.0) - 1.0) + 0.5 / n) % 1.0


def crowded(values, low, high, share=0.01):
    """The same, with a share of them moved into an interval."""
    moved = values.copy()
    moved[:: round(1 / share)] = low + (high - low) * even(len(moved[:: round(1 / share)]))
    return moved


def mask_of(cut, event):
    return np.isin(np.arange(len(cut.count_x)), cut.places(event))


def clearest(cut, more_likely_on):
    """The event of the net with most standard errors."""
    p, q = (cut.in_events(side) for side in cut.directed(more_likely_on))
    at = int(np.argmax((p - q) / np.sqrt(np.maximum(p + q, 1.0))))
    return cut.event(mask_of(cut, at))


@pytest.mark.parametrize(("more_likely_on", "score"), [("x", Number()), ("y", Coordinate(1, 2))])
def test_the_clearest_interval_lies_where_one_dataset_has_more(more_likely_on, score):
    plain, more = even(), crowded(even(), 0.4, 0.45)
    x, y = (more, plain) if more_likely_on == "x" else (plain, more)
    event = clearest(Cut.of(Column(score, x, y, is_output=True)), more_likely_on)
    assert isinstance(event, Intervals if more_likely_on == "x" else Scored)
    (interval,) = getattr(event, "event", event).intervals
    assert interval == pytest.approx((0.4, 0.45), abs=0.02)


@pytest.mark.parametrize("odd", [0.5, math.nan])
def test_a_value_that_recurs_among_others_has_a_cell(odd):
    rng = np.random.default_rng(1)
    x, y = (np.where(rng.random(4_000) < share, 0.0, rng.normal(size=4_000)) for share in (0.12, 0.1))
    x[:50] = odd
    cut = Cut.of(Column(Number(), x, y))
    own = [at for at in np.flatnonzero(cut.kind == RECURS) if cut.edges[cut.low[at] - 1] == 0.0]
    assert len(own) == 1
    mask = mask_of(cut, own[0])
    event = cut.event(mask)
    assert str(event) == "output = 0"
    assert (event.count(x), event.count(y)) == ((x == 0.0).sum(), (y == 0.0).sum())
    assert cut.event(~mask).count(x) == (x != 0.0).sum()


def test_no_value_is_marked_where_all_recur_or_none_does_and_what_does_not_vary_is_not_cut():
    rng = np.random.default_rng(3)
    for sides in (rng.normal(size=(2, 4_000)), rng.integers(0, 9, (2, 4_000)).astype(np.float64)):
        assert not np.any(Cut.of(Column(Number(), *sides)).kind == RECURS)
    for values in (np.full(9, math.nan), np.full(9, math.inf), np.zeros(9), np.zeros(0)):
        assert Cut.of(Column(Number(), values, values)) is None


def test_equal_scores_keep_their_share():
    """Else the pilot's frequency of an event is not that of the main runs."""
    found = as_spread((np.repeat([3.0, 1.0, 2.0], [49, 51, 50]),) * 2, (np.repeat([5.0, 6.0, 7.0], [51, 49, 50]),) * 2)
    assert [np.unique(side, return_counts=True)[1].tolist() for side in found] == [[51, 50, 49]] * 2


def test_cells_of_equal_ratio_go_by_their_distance_to_larger_ones():
    ratio = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, -1.0])
    order = from_the_inside(ratio).tolist()
    assert set(order[:2]) == {2, 3}
    assert set(order[2:4]) == {1, 4}
    assert order[-1] == 7
