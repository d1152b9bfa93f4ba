"""Events by one number: intervals between two thresholds, values that recur, statistics of columns, fitted ratios."""

import math

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.distinguishers.event_choice import choose_event, choose_event_each_way
from dpaudit.audit.events.events import Scored
from dpaudit.audit.events.features import Coordinates, Statistics
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import Number, Weighted
from dpaudit.audit.families.event_families import event_families
from dpaudit.audit.families.interval_families import interval_families, statistic_families
from dpaudit.audit.families.number_families import ordered_families, recurring_values, value_families
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.families.ratio_spline import fit_log_ratio
from dpaudit.audit.inference.betting_test import Line

RUNS = 20_000
DIAGONAL = [("x", Line(1.0, 0.0)), ("y", Line(1.0, 0.0))]


def even(n=RUNS):
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


def test_it_lies_above_the_line_and_not_where_the_datasets_differ_most():
    """Half of the numbers have a ratio of 1.3, which the slope of 1.5 allows, and a twentieth one of 2."""
    x = np.concatenate([0.5 * even(13_000), 0.5 + 0.05 * even(2_000), 0.55 + 0.45 * even(5_000)])
    y = np.concatenate([0.5 * even(10_000), 0.5 + 0.05 * even(1_000), 0.55 + 0.45 * even(9_000)])
    x, y = (np.random.default_rng(0).permutation(side) for side in (x, y))
    (wide,) = intervals_of(x, y, [("x", Line(1.0, 0.0))])
    (steep,) = intervals_of(x, y, [("x", Line(1.5, 0.0))])
    assert events_of(wide)[0][1].intervals[0] == pytest.approx((0.0, 0.55), abs=0.01)
    assert events_of(steep)[0][1].intervals[0] == pytest.approx((0.5, 0.55), abs=0.01)


def test_there_is_none_without_an_excess_over_the_line():
    assert intervals_of(even(), even()) == []
    x, y = crowded(even(), 0.4, 0.45), even()
    assert intervals_of(x, y, [("x", Line(1.0, 0.0))])
    assert intervals_of(x, y, [("x", Line(1.0, 0.02))]) == []
    words = np.array(["a", "b", "c", "d"] * 50, dtype=object)
    split = PilotSplit.in_half(words, words[::-1].copy())
    families = [each for each in event_families(split) if type(each.build).__name__ != "HalfLines"]
    assert list(interval_families(families, DIAGONAL)) == []


ODD = [(0.4, 0.45, math.nan, 50, 50), (0.95, 1.0, math.inf, 400, 100)]


@pytest.mark.parametrize(("low", "high", "odd", "on_x", "on_y"), ODD)
def test_outputs_that_are_no_finite_numbers_are_outside(low, high, odd, on_x, on_y):
    x, y = crowded(even(), low, high), even()
    x[:on_x], y[:on_y] = odd, odd
    families = intervals_of(x, y)
    assert families or odd == math.inf
    for family in families:
        assert_counts(family, x, y)


def test_few_hits_are_no_interval():
    """Nine more on x than on y, close together, are more than three standard errors of themselves."""
    few, some = (np.concatenate([even(RUNS - n), 2.0 + 0.01 * even(n)]) for n in (9, 30))
    plain = np.concatenate([even(RUNS - 9), 3.0 + even(9)])
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


# Values that recur among others that do not.

N = 4_000


def in_half(x, y):
    return PilotSplit.in_half(x, y).ordered


def with_zeros(share, seed, rest=lambda rng: rng.normal(size=N)):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(N) < share, 0.0, rest(rng))


@pytest.mark.parametrize("odd", [0.5, math.nan])
def test_a_value_that_recurs_among_others_is_an_event(odd):
    """Its complement has what is no number."""
    x, y = with_zeros(0.12, 1), with_zeros(0.1, 2)
    x[:50] = odd
    (family,) = recurring_values(Number(), in_half(x, y))
    assert family.runs == N
    assert (family.hits_x[0], family.hits_y[0]) == ((x == 0.0).sum(), (y == 0.0).sum())
    inside, outside = family.build(0, True), family.build(0, False)
    assert inside.contains(x).sum() == (x == 0.0).sum()
    assert outside.contains(x).sum() == (x != 0.0).sum()


def digits(rng):
    return rng.integers(0, 9, N).astype(np.float64)


@pytest.mark.parametrize("draw", [lambda rng: rng.normal(size=N), digits, lambda rng: np.full(N, 7.0)])
def test_there_is_none_where_all_values_recur_or_none_does(draw):
    x, y = (draw(np.random.default_rng(seed)) for seed in (3, 4))
    assert list(recurring_values(Number(), in_half(x, y))) == []


def test_a_coordinate_that_is_zero_more_often_is_found():
    """By twelve standard errors of all runs, and yet by few in the pilot with this seed."""

    def released(share, size, rng):
        noise = rng.normal(size=(size, 2))
        noise[rng.random(size) < share, 1] = 0.0
        return noise

    assert check(released, 0.11667, 0.1, claim=PureDP(0.0), runs=100_000, seed=1, bits=False).is_refuted


# Statistics of several columns: half-lines for their intervals, with the counts of the whole pilot.


def vectors(width, runs=2_000):
    return np.random.default_rng(0).normal(size=(2, runs, width))


def read(columns, x, y):
    return PilotSplit.in_half(x, y).map(columns.read)


NAMES = "coordinate 0, coordinate 1"


def with_words(part):
    return as_outputs([{"a": a, "b": b, "c": "word"} for a, b in part.tolist()], len(part), "m")


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


@pytest.mark.parametrize(("outputs", "names"), [(np.asarray, NAMES), (with_words, "output['a'], output['b']")])
def test_they_are_there_only_if_asked_for(outputs, names):
    """The number of entries is no part of a sum."""
    split = PilotSplit.in_half(*map(outputs, vectors(2)))
    assert not any(family.for_intervals for family in event_families(split, effort="trees"))
    with_them = [family for family in event_families(split, with_statistics=True) if family.for_intervals]
    scores = [str(family.build(0, True).score) for family in with_them]
    assert len(scores) == 6
    assert {f"sum of {names}", f"Euclidean norm of {names}"} <= set(scores)


def test_missing_numbers_are_in_no_interval():
    x, y = vectors(2)
    x[::2, 0] = np.nan
    families = list(statistic_families(Coordinates(2), read(Coordinates(2), x, y), range(2)))
    assert all(family.hits_x.max() <= len(x) // 2 < 0.9 * family.hits_y.max() for family in families)
    event = families[0].build(0, False)
    assert event.count(x[::2]) == len(x) // 2


def test_half_lines_of_a_statistic_are_no_events():
    """Pairs whose norms differ: a choice among half-lines would take it, and intervals of it are sought instead."""
    x, y = vectors(2, 6_000) * np.array([1.0, 1.5])[:, None, None]
    split = PilotSplit.in_half(x, y)
    for choice in (
        choose_event(split, PureDP(0.1), 10**5, 0.05),
        *choose_event_each_way(split, PureDP(0.1), 10**5, 0.05),
    ):
        score = getattr(choice.event, "score", None)
        if isinstance(getattr(score, "columns", None), Statistics):
            ((low, high),) = choice.event.intervals.intervals
            assert np.isfinite([low, high]).all()


# The fitted log-likelihood ratio: exact where ramps can say it, never a failure where they cannot.

AT = np.linspace(-3.0, 4.0, 71)


def hits(ratio, total=1e6):
    """Expected counts on x and y in cells of equal pooled mass with this log ratio."""
    share = 1 / (1 + np.exp(-ratio))
    return share * total / len(ratio), (1 - share) * total / len(ratio)


@pytest.mark.parametrize(
    "ratio",
    [
        pytest.param(np.clip(1 - 2 * AT, -1, 1), id="laplace"), pytest.param(0.5 - AT, id="gaussian"),
        pytest.param(np.where(AT < 0.55, 0.7, -0.7), id="step"),
        pytest.param(np.clip(AT, 0, 1) - np.clip(AT, 2, 3), id="two-ramps"), pytest.param(np.zeros(71), id="equal"),
    ],
)  # fmt: skip
def test_what_ramps_can_say_is_found(ratio):
    fitted = fit_log_ratio(AT, *hits(ratio))
    assert fitted == pytest.approx(ratio, abs=5e-3)
    if ratio[0] == 1.0:  # plateaus are exactly flat
        assert max(np.ptp(fitted[AT <= -0.05]), np.ptp(fitted[AT >= 1.05])) < 1e-9


def test_noise_alone_gives_no_ramp():
    """Equal laws at 10,000 outputs: a step costs the BIC 18; where noise pays for one it is a small one."""
    for seed in range(20):
        counts = np.random.default_rng(seed).poisson(70, size=(2, 71)).astype(float)
        assert np.ptp(fit_log_ratio(AT, *counts)) < 0.5


@pytest.mark.parametrize(
    ("at", "x", "y"),
    [
        pytest.param([0.0, 1.0], [5.0, 0.0], [0.0, 5.0], id="separated"),
        pytest.param([0.0], [5.0], [5.0], id="one-cell"),
        pytest.param([-1e300, 0.0, 1e300], [1.0, 3.0, 9.0], [9.0, 3.0, 1.0], id="huge"),
        pytest.param([0.0, 5e-324, 1.0], [1.0, 3.0, 9.0], [9.0, 3.0, 1.0], id="tiny"),
        pytest.param(list(range(400)), [1.0] * 400, [0.0] * 400, id="only-x"),
    ],
)
def test_hard_cells_give_finite_ratios(at, x, y):
    with np.errstate(over="ignore"):
        fitted = fit_log_ratio(np.array(at, dtype=float), np.array(x), np.array(y))
    assert np.isfinite(fitted).all()


def test_cells_that_separate_the_two_sides_have_a_finite_ratio():
    """Slopes grow without end there, and ramps between neighbouring cells are nearly one another."""
    rng = np.random.default_rng(0)
    for trial in range(30):
        at = np.unique(rng.normal(size=rng.integers(2, 40)) * 10.0 ** rng.integers(-6, 7))
        is_x = rng.random(len(at)) < 0.5
        hits = rng.integers(1, 10_000, len(at)).astype(np.float64)
        ratio = fit_log_ratio(at, hits * is_x, hits * ~is_x, sloped=bool(trial % 2))
        assert np.isfinite(ratio).all()
