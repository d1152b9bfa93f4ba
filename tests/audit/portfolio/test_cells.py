"""Cells of columns: events hold exactly the outputs of their cells, and the pilot counts what it says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpaudit.audit.events.events import Intervals, Outcomes, Scored, cells_of
from dpaudit.audit.events.scores import Number, Weighted
from dpaudit.audit.portfolio.cells import Column, Cut, as_spread, event_of, from_the_inside
from dpaudit.audit.portfolio.table import TableScore
from dpaudit.audit.records.json_codec import plain_data, read_data

ANY = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, math.nextafter(1.0, 2.0), 5e-324, -5e-324, math.inf, -math.inf, math.nan, 1e308]),
    st.floats(width=64),
)
NUMBERS = st.integers(2, 30).flatmap(lambda runs: arrays(np.float64, (3, runs), elements=ANY))


def cells_with(cut, seed):
    return np.random.default_rng(seed).random(len(cut.hits_x)) < 0.5


@settings(max_examples=300, deadline=None, derandomize=True)
@given(NUMBERS, st.integers(0, 2**31))
def test_an_event_holds_exactly_the_outputs_of_its_cells(values, seed):
    """With NaN, infinities, ties, −0.0, and fresh outputs beyond all edges."""
    x, y, fresh = values
    cut = Cut.of(Column(Number(), x, y, curve=None))
    if cut is None:
        return
    mask, outputs = cells_with(cut, seed), np.concatenate([x, y, fresh])
    wanted = mask[cells_of(outputs, cut.edges)]
    event = cut.event(mask)
    np.testing.assert_array_equal(event.contains(outputs), wanted)
    assert np.all(np.diff(cut.edges) > 0)
    as_objects = np.array([*outputs.tolist(), "word", None], dtype=object)
    np.testing.assert_array_equal(event.contains(as_objects)[:-2], wanted)
    assert event.contains(as_objects)[-2:].tolist() == [mask[-1]] * 2
    vectors = np.stack([np.zeros(len(outputs)), outputs], axis=1)
    second = event_of(Weighted((0.0, 1.0)), cut.edges, mask)
    np.testing.assert_array_equal(second.contains(vectors), wanted)
    assert read_data(plain_data(event)) == event


@settings(max_examples=100, deadline=None, derandomize=True)
@given(NUMBERS, st.integers(0, 2**31))
def test_the_event_of_a_table_holds_the_outcomes_of_its_cells(values, seed):
    x, y, fresh = values
    listed = np.unique(x)
    score = TableScore(listed, np.arange(1.0, len(listed) + 1.0))
    cut = Cut.of(Column(score, score.values(x), score.values(y), curve="each"))
    if cut is None:
        return
    mask, outputs = cells_with(cut, seed), np.concatenate([x, y, fresh])
    event = cut.event(mask)
    assert isinstance(event, Outcomes)
    np.testing.assert_array_equal(event.contains(outputs), mask[cells_of(score.values(outputs), cut.edges)])


def even(n=20_000):
    """Numbers spread evenly over (0, 1), in an order that has each half of them spread evenly too."""
    return (np.arange(n) * 0.5 * (math.sqrt(5.0) - 1.0) + 0.5 / n) % 1.0


def crowded(values, low, high, share=0.01):
    """The same, with a share of them moved into an interval."""
    moved = values.copy()
    moved[:: round(1 / share)] = low + (high - low) * even(len(moved[:: round(1 / share)]))
    return moved


def mask_of(cut, event):
    return np.isin(np.arange(len(cut.hits_x)), cut.places(event))


def test_every_event_of_a_long_pilot_has_the_hits_of_its_cells():
    """The output itself has finer cells there than the events of the net."""
    rng = np.random.default_rng(0)
    x, y = (np.where(rng.random(20_000) < 0.1, 0.5, rng.laplace(size=20_000)) for _ in range(2))
    x[:100] = np.repeat([math.nan, math.inf, -math.inf, 1e300], 25)
    cut, other = (Cut.of(Column(Number(), x, y, is_output=is_output)) for is_output in (True, False))
    assert len(cut.edges) > len(other.edges) + 100
    assert len(cut.low) == len(other.low)
    on_x, on_y = cut.in_events(cut.hits_x), cut.in_events(cut.hits_y)
    for event in range(0, len(cut.low), 7):
        held = cut.event(mask_of(cut, event))
        assert (held.count(x), held.count(y)) == (on_x[event], on_y[event])


def clearest(cut, likelier_on):
    """The event of the net with most standard errors."""
    p, q = (cut.in_events(side) for side in cut.directed(likelier_on))
    at = int(np.argmax((p - q) / np.sqrt(np.maximum(p + q, 1.0))))
    return cut.event(mask_of(cut, at))


@pytest.mark.parametrize("likelier_on", ["x", "y"])
@pytest.mark.parametrize("of", [None, 1])
def test_the_clearest_interval_lies_where_one_dataset_has_more(likelier_on, of):
    plain, more = even(), crowded(even(), 0.4, 0.45)
    x, y = (more, plain) if likelier_on == "x" else (plain, more)
    score = Number() if of is None else Weighted((0.0, 1.0))
    event = clearest(Cut.of(Column(score, x, y, is_output=True)), likelier_on)
    assert isinstance(event, Intervals if of is None else Scored)
    (interval,) = (event if of is None else event.event).intervals
    assert interval == pytest.approx((0.4, 0.45), abs=0.02)


def test_its_ends_are_values_where_there_are_few():
    plain, more = np.floor(100.0 * even()), np.floor(100.0 * crowded(even(), 0.3, 0.4, 0.02))
    low, high = clearest(Cut.of(Column(Number(), more, plain)), "x").intervals[0]
    assert high < math.floor(high) + 1.0
    assert 28.0 <= low <= 32.0
    assert 37.0 <= math.floor(high) <= 41.0


@pytest.mark.parametrize("odd", [0.5, math.nan])
def test_a_value_that_recurs_among_others_has_a_cell(odd):
    rng = np.random.default_rng(1)
    x, y = (np.where(rng.random(4_000) < share, 0.0, rng.normal(size=4_000)) for share in (0.12, 0.1))
    x[:50] = odd
    cut = Cut.of(Column(Number(), x, y))
    own = [at for at in np.flatnonzero(cut.width == -1) if cut.edges[cut.low[at] - 1] == 0.0]
    assert len(own) == 1
    mask = mask_of(cut, own[0])
    event = cut.event(mask)
    assert str(event) == "output = 0"
    assert (event.count(x), event.count(y)) == ((x == 0.0).sum(), (y == 0.0).sum())
    assert cut.event(~mask).count(x) == (x != 0.0).sum()


def digits(rng):
    return rng.integers(0, 9, 4_000).astype(np.float64)


@pytest.mark.parametrize("draw", [lambda rng: rng.normal(size=4_000), digits, lambda rng: np.full(4_000, 7.0)])
def test_no_value_is_marked_where_all_recur_or_none_does(draw):
    cut = Cut.of(Column(Number(), *(draw(np.random.default_rng(seed)) for seed in (3, 4))))
    assert cut is None or not np.any(cut.width == -1)


@pytest.mark.parametrize("values", [np.full(9, math.nan), np.full(9, math.inf), np.zeros(9), np.zeros(0)])
def test_what_does_not_vary_is_not_cut(values):
    assert Cut.of(Column(Number(), values, values)) is None


def test_places_in_the_order_are_kept_and_values_are_those_of_the_others():
    rng = np.random.default_rng(0)
    scores, others = (rng.normal(size=50), rng.normal(size=50)), (rng.random(50), rng.random(50))
    moved = as_spread(scores, others)
    np.testing.assert_array_equal(np.argsort(np.concatenate(moved)), np.argsort(np.concatenate(scores)))
    np.testing.assert_array_equal(np.sort(np.concatenate(moved)), np.sort(np.concatenate(others)))


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
