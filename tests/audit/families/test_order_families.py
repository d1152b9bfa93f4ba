"""Sorted coordinates and gaps: found where only they tell, and left out where they tell nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.events import Scored
from dpaudit.audit.events.features import OrderStatistics
from dpaudit.audit.families.column_screen import screened
from dpaudit.audit.families.order_families import order_families
from dpaudit.audit.families.pilot_split import PilotSplit


def last_gap(rate, size, rng):
    """Shuffled exponentials, of which the gap between the two largest has this rate."""
    values = np.sort(rng.exponential(size=(size, 8)), axis=1)
    values[:, 7] = values[:, 6] + rng.exponential(1 / rate, size)
    return rng.permuted(values, axis=1)


def middle_gap(least, size, rng):
    """Shuffled numbers with a common offset, whose middle gap has a smallest value."""
    values = np.sort(rng.exponential(size=(size, 6)), axis=1)
    values[:, 3:] += least
    return rng.permuted(values + rng.normal(scale=5.0, size=(size, 1)), axis=1)


def columns_of(event):
    return event.score.columns if isinstance(event, Scored) and hasattr(event.score, "columns") else None


@pytest.mark.parametrize(("draw", "x", "y", "exact"), [(last_gap, 1.0, 2.0, 3.0), (middle_gap, 0.0, 0.2, math.inf)])
def test_a_gap_between_neighbours_in_order(draw, x, y, exact):
    rng = np.random.default_rng(0)
    split = PilotSplit.in_half(draw(x, 10_000, rng), draw(y, 10_000, rng))
    choice = choose_event(split, PureDP(0.5), 400_000, 0.05)
    assert isinstance(columns_of(choice.event), OrderStatistics)
    assert "sorted coordinate" in str(choice.event)
    hits_x, hits_y = (choice.event.count(draw(data, 100_000, rng)) for data in (x, y))
    p, q = (hits_x, hits_y) if choice.likelier_on == "x" else (hits_y, hits_x)
    # By coordinates and differences alone, 2.7 and 0.8 are reached.
    assert q == 0 if exact == math.inf else math.log(p / q) > exact


def test_they_cost_nothing_where_coordinates_tell_as_much():
    rng = np.random.default_rng(0)
    moved, noise = rng.laplace(size=(2, 20_000, 10)) + np.array([1.0, 0.0])[:, None, None]
    one = noise + np.eye(10)[0]
    same = rng.laplace(size=(20_000, 10))
    for x in (moved, one, same):
        assert list(order_families(PilotSplit.in_half(x, noise), 10, together=True)) == []


def test_a_right_mechanism_of_exchangeable_outputs_is_not_refuted():
    def shuffled(data, size, rng):
        return rng.permuted(np.sort(rng.exponential(size=(size, 5)), axis=1), axis=1)

    result = check(shuffled, 0, 1, claim=PureDP(0.05), runs=20_000, alpha=1e-8, jobs=1)
    assert result.verdict is not Verdict.REFUTED


def test_columns_are_the_sorted_coordinates_and_their_gaps():
    columns = OrderStatistics(3)
    outputs = np.array([[3.0, 1.0, 2.0], [5.0, np.nan, 1.0]])
    expected = [[1.0, 1.0], [2.0, 5.0], [3.0, np.nan], [1.0, 4.0], [1.0, np.nan]]
    np.testing.assert_array_equal(columns.read(outputs), expected)
    assert len(columns.names) == 5


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.0, (3, 4_000)), rng.normal(size=(3, 4_000))
    x[2] = y[2][::-1]
    exact = [stats.ks_2samp(*pair).statistic * math.sqrt(2_000) for pair in zip(x, y, strict=True)]
    found = screened(x, y)
    assert np.all(found <= np.array(exact) + 1e-9)
    assert found[:2] == pytest.approx(exact[:2], rel=0.12)  # at 15 quantiles only
    assert found[2] == 0.0


def test_the_distance_of_equal_laws_is_small():
    rng = np.random.default_rng(1)
    for kind in (rng.normal, lambda size: rng.integers(0, 3, size).astype(float)):
        assert screened(kind(size=(200, 2_000)), kind(size=(200, 2_000))).max() < 2.6
