"""Sets of outcomes: their order by shrunken log ratios, and the events that come of it, by exact distributions."""

import math

import numpy as np
import pytest

from dpaudit import PureDP
from dpaudit.audit.events.events import Intervals, Outcomes
from dpaudit.audit.events.outputs import as_outputs, tally
from dpaudit.audit.portfolio.cells import Cut
from dpaudit.audit.portfolio.choice import choose_event
from dpaudit.audit.portfolio.columns import cuts_of
from dpaudit.audit.portfolio.table import TableScore, count_outcomes, table_columns
from dpaudit.audit.records.json_codec import plain_data, read_data

from .chosen_events import chosen, expected_bound


def best_bound(distribution_x, distribution_y, runs):
    """Of all events {ratio ≥ t} with probability above 1e-3, in either direction."""
    found = []
    for p, q in ((distribution_x, distribution_y), (distribution_y, distribution_x)):
        order = np.argsort(-p / q)
        sums = zip(p[order].cumsum()[:-1], q[order].cumsum()[:-1], strict=True)
        found += [expected_bound(a, b, runs) for a, b in sums if a > 1e-3]
    return max(found)


def share_of_best(values, distribution_x, distribution_y, claim, runs, pilot, seed):
    """The chosen event's bound as a share of the best one, and the event."""

    def draw(distribution, size, rng):
        return values[np.searchsorted(distribution.cumsum()[:-1], rng.random(size), side="right")]

    choice = chosen(draw, distribution_x, distribution_y, claim, pilot, np.random.default_rng(seed), runs - pilot)
    inside = choice.event.contains(values)
    p, q = distribution_x[inside].sum(), distribution_y[inside].sum()
    p, q = (p, q) if choice.more_likely_on == "x" else (q, p)
    return expected_bound(p, q, runs) / best_bound(distribution_x, distribution_y, runs), choice.event


def tilted(log_ratios):
    """Two distributions with these log-likelihood ratios, up to a constant."""
    up, down = np.exp(log_ratios / 2), np.exp(-log_ratios / 2)
    return up / up.sum(), down / down.sum()


CODES = np.array([[place >> bit & 1 for bit in range(13)] for place in range(2**13)])


KINDS = [
    np.array([3, 1, 3, 2, 3, 2, 9, 1]),
    np.array([0.5, np.nan, 0.5, np.nan, -0.0, 0.0, 7.0, 0.5]),
    np.array([[1, 2], [1, 2], [0, 2], [1, 2], [0, 2], [5, 5], [1, 2], [5, 5]]),
    as_outputs(["a", None, ("a", 1), ("a", 1), "a", float("nan"), "b", float("nan")], 8, "m"),
]


@pytest.mark.parametrize("outputs", KINDS, ids=lambda kind: str(kind.dtype))
def test_counts_are_those_of_each_part(outputs):
    parts = [outputs[:3], outputs[3:5], outputs[5:], outputs[:0]]
    counted = count_outcomes(parts)
    for part, row in zip(parts, counted.counts, strict=True):
        times, _ = tally(part)
        held = np.repeat(counted.values, row, axis=0)
        assert tally(held)[0] == times
        assert int(row.sum()) == len(part)


@pytest.mark.xfail(strict=True, reason="share .866: a half-line is chosen, and .05 of the bound is lost")
def test_a_misprinted_outcome_of_a_discrete_sampler():
    """One number in sixty has the wrong frequency: no half-line shows it, and a raw table follows the noise."""
    values = np.arange(-60, 61)
    distribution_x, distribution_y = (np.exp(-0.5 * np.abs(values - moved)) for moved in (0, 1))
    distribution_x[63] /= 0.6
    distribution_x, distribution_y = distribution_x / distribution_x.sum(), distribution_y / distribution_y.sum()
    found = [
        share_of_best(values, distribution_x, distribution_y, PureDP(0.5), 100_000, 5_000, seed)[0] for seed in range(9)
    ]
    assert np.median(found) > 0.93  # 0.87 with raw log ratios


def test_eight_thousand_outcomes_without_order():
    """Each vector of bits has its own ratio, so no coordinate and no sum says anything."""
    distribution_x, distribution_y = tilted(0.4 * np.random.default_rng(3).choice([-1, 1], len(CODES)))
    share, event = share_of_best(CODES, distribution_x, distribution_y, PureDP(0.1), 1_000_000, 50_000, seed=100)
    assert share > 0.68  # 0.6 with the 512 commonest outcomes
    assert len(str(event)) < 300


@pytest.mark.xfail(strict=True, reason="share .64")
@pytest.mark.evidence
def test_a_sum_with_exceptions():
    """Coordinates that lean, and outcomes that deviate from their sum: too many to be listed one by one."""
    rng = np.random.default_rng(3)
    distribution_x, distribution_y = tilted(CODES @ rng.normal(0, 0.1, 13) + 0.4 * rng.choice([-1, 1], len(CODES)))
    share, event = share_of_best(CODES, distribution_x, distribution_y, PureDP(0.1), 4_000_000, 200_000, seed=100)
    assert share > 0.73  # 0.67 with the 512 commonest outcomes
    assert len(str(event)) < 300
    assert read_data(plain_data(event)) == event


@pytest.mark.parametrize(
    ("labels", "pilot", "strings"),
    [
        pytest.param(
            *(20_000, 200_000, False), marks=[pytest.mark.evidence, pytest.mark.xfail(strict=True, reason="share .92")]
        ),
        (4_000, 40_000, True),
    ],
)
def test_thousands_of_labels(labels, pilot, strings):
    """The list of thousands of labels is stored as it is, and its text names a few."""
    values = np.arange(labels)
    distribution_x, distribution_y = tilted(np.random.default_rng(5).choice([-0.5, 0.5], len(values)))
    if strings:
        values = np.array([f"w{value}" for value in values], dtype=object)
    share, event = share_of_best(values, distribution_x, distribution_y, PureDP(0.5), 4_000_000, pilot, seed=1)
    assert share > 0.97
    assert isinstance(event, Outcomes)
    assert len(event.values) <= 16_384
    assert len(str(event)) < 120


def test_the_best_set_of_equal_distributions_does_not_look_better_than_it_is():
    """The order of 40 outcomes follows the noise; their observed counts would show a difference of six errors."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        (column,) = table_columns(*rng.integers(0, 40, (2, 40_000)))
        cut = Cut.of(column)
        order = np.argsort(-cut.ratio, kind="stable")
        on_x, on_y = (side[order].cumsum() for side in cut.fitted_cells)
        spread = np.abs(on_x - on_y) / np.sqrt(np.maximum(on_x + on_y, 1.0))
        assert spread.max() < 1.5


def test_a_table_lists_outcomes_or_all_others():
    score = TableScore(np.array([3.0, math.nan, 7.0]), np.array([2.0, -1.0, 1.0]))
    outputs = np.array([7.0, 5.0, math.nan, 3.0, -0.0])
    assert score.values(outputs).tolist() == [1.0, 0.0, -1.0, 2.0, 0.0]
    assert score.values(outputs.astype(object)).tolist() == [1.0, 0.0, -1.0, 2.0, 0.0]
    assert score.event(Intervals(((0.5, math.inf),))) == Outcomes((3.0, 7.0))
    others = score.event(Intervals(((-math.inf, 0.5),)))
    assert (others.values, others.others) == ((3.0, 7.0), True)
    assert others.contains(outputs).tolist() == [False, True, True, False, True]


def test_two_outcomes_of_any_kind_are_a_column_and_neither_one_nor_those_that_hardly_recur():
    for pair in ((0.0, math.inf), (math.inf, -math.inf), ("a", "b"), ("a", None), (math.nan, math.inf), (b"a", ("a",))):
        drawn = np.random.default_rng(0).random(200)
        x, y = (as_outputs([pair[int(u < share)] for u in drawn], 200, "m") for share in (0.3, 0.7))
        choice, _ = choose_event(cuts_of(x, y), PureDP(0.5), 10_000, 0.05)
        assert not choice.shows_nothing
        assert abs(choice.pilot_count_x - choice.pilot_count_y) > 60
        assert list(table_columns(x[:1], x[:1])) == []
    rng = np.random.default_rng(0)
    assert list(table_columns(rng.normal(size=500), rng.normal(size=500))) == [], "outputs that hardly recur"
    assert len(list(table_columns(*rng.integers(0, 40, (2, 500))))) == 1


def test_words_beside_numbers_are_told_from_them():
    """A word has no number, so sums over the numbers are NaN for it."""

    def words(share, size, rng):
        odd = rng.random(size) < share
        pairs = rng.integers(0, 12, (size, 2)).tolist()
        return as_outputs(["none" if o else tuple(pair) for o, pair in zip(odd, pairs, strict=True)], size, "m")

    event = chosen(words, 0.3, 0.1, PureDP(0.5), 8_000, np.random.default_rng(0)).event
    assert event.contains(as_outputs(["none"], 1, "m"))[0] != event.contains(as_outputs([(3, 4)], 1, "m"))[0]
