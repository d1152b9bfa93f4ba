"""Columns of outputs: single parts, statistics, what stands anywhere, and a note on what is left out of many parts."""

import math
import re

import numpy as np
import pytest

from dpaudit import PureDP
from dpaudit.audit.events.events import Scored
from dpaudit.audit.events.features import Coordinates, Released, Statistics, noting_left_out
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import Weighted
from dpaudit.audit.portfolio.choice import choose_event
from dpaudit.audit.portfolio.columns import additive, columns_of, cuts_of, most_different, screened


def vectors(width, runs=2_000):
    return np.random.default_rng(0).normal(size=(2, runs, width))


def statistics(x, y):
    """The columns that are statistics of several others."""
    return [c for c in columns_of(x, y) if isinstance(getattr(c.score, "columns", None), Statistics)]


@pytest.mark.parametrize(("width", "count"), [(1, 0), (3, 5 + 3), (64, 5 + 63), (65, 5)])
def test_statistics_are_there_for_any_number_of_coordinates(width, count):
    """One column has none, and very many have no differences."""
    x, y = vectors(width, 100)
    with noting_left_out() as notes:
        names = [str(column.score) for column in statistics(x, y)]
    assert len(names) == count
    words = {f"{word} of {width} columns" for word in ("sum", "Euclidean norm", "smallest", "largest")}
    assert words <= set(names) or width <= 3
    assert "width" not in notes if width <= 64 else f"of {width} parts of outputs" in notes["width"]


def test_a_norm_that_differs_is_found():
    """Pairs whose norms differ, and nothing else."""
    rng = np.random.default_rng(0)
    turn, sizes = (np.exp(2j * math.pi * rng.random(6_000)) for _ in range(2)), (1.0, 1.5)
    x, y = (np.stack([part.real, part.imag], axis=1) * size for part, size in zip(turn, sizes, strict=True))
    choice, promise = choose_event(cuts_of(x, y), PureDP(0.1), 10**5, 0.05)
    assert isinstance(choice.event, Scored)
    assert min(choice.pilot_hits_x, choice.pilot_hits_y) == 0
    assert promise > 3.0


def test_single_coordinates_are_those_that_differ_most():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 300)), rng.normal(size=(400, 300))
    x[:, 299] += 2.0
    names = [str(column.score) for column in columns_of(x, y) if isinstance(column.score, Weighted)]
    assert "coordinate 299" in names
    assert len(names) == 64
    assert most_different(x.T, y.T, 3)[-1] == 299
    assert most_different(x.T[:3], y.T[:3], 3) == [0, 1, 2]


def test_picked_columns_are_counted_in_the_second_half():
    rng = np.random.default_rng(0)
    x, y = (np.sort(rng.exponential(size=(2_000, 5)), axis=1) * scale for scale in (1.0, 1.1))
    for column in columns_of(x, y):
        assert len(column.x) == len(column.y) == 2_000 - column.first
        assert column.first in (0, 1_000)
        assert column.first == 1_000 or "sorted" not in str(column.score)


def one_number_anywhere(shift, size, rng):
    """Vectors of twelve with a single number, at a place by chance; the number is what tells the datasets apart."""
    found = np.full((size, 12), np.nan)
    found[np.arange(size), rng.integers(0, 12, size)] = shift + rng.laplace(size=size)
    return found


def one_of_five_places(first, size, rng):
    """From x to y they move by one."""
    found = np.full((size, 6), np.nan)
    found[np.arange(size), rng.integers(int(first), 5 + int(first), size)] = rng.laplace(size=size)
    return found


@pytest.mark.parametrize(
    ("draw", "x", "epsilon", "runs", "size", "least"),
    [(one_number_anywhere, 0.5, 0.3, 200_000, 6_000, 0.45), (one_of_five_places, 1.0, 1.0, 100_000, 2_000, math.inf)],
)
def test_a_number_that_stands_anywhere_and_its_place(draw, x, epsilon, runs, size, least):
    rng = np.random.default_rng(0)
    cuts = cuts_of(draw(x, size, rng), draw(0.0, size, rng))
    own = [cut for cut in cuts if getattr(cut.column.score, "columns", None) == Released(6 if x == 1.0 else 12)]
    choice, _ = choose_event(own, PureDP(epsilon), runs, 0.05)
    p, q = (np.mean(choice.event.contains(draw(shift, 100_000, rng))) for shift in (x, 0.0))
    assert max(p, q) > 0.15  # a coordinate has a twelfth of the runs
    with np.errstate(divide="ignore"):
        assert abs(np.log(p / q)) >= least


def test_the_distance_is_in_standard_errors_however_rare_a_value_is():
    x, y = np.zeros((4, 4_000)), np.zeros((4, 4_000))
    x[0, :40], x[1, :2_000], y[1, :1_500], x[2], y[2] = 1.0, 1.0, 1.0, np.arange(4_000), np.arange(4_000)[::-1]
    errors = [math.sqrt(0.01 * 0.99 / 4_000), math.sqrt((0.5 * 0.5 + 0.375 * 0.625) / 4_000)]
    exact = [difference / (error + 1 / 4_000) for difference, error in zip((0.01, 0.125), errors, strict=True)]
    assert screened(x, y).tolist() == pytest.approx([*exact, 0.0, 0.0])


def _rows(rng, runs, last):
    """201 texts that hardly recur; the last tells the datasets apart."""
    return [
        (*(f"{number:x}" for number in rng.integers(16**8, size=200)), f"{last} {rng.random()}") for _ in range(runs)
    ]


def _notes(x, y):
    with noting_left_out() as notes:
        list(columns_of(*(as_outputs(side, len(side), "m") for side in (x, y))))
    return notes


def test_what_is_left_out_of_outputs_of_many_parts_is_noted():
    """A note for each limit, with numbers, and none one below the limit."""
    rng = np.random.default_rng(0)
    for width, kinds in ((62, set()), (66, {"width", "pairs"})):
        parts = [("a", *rng.normal(size=width - 1)) for _ in range(20)]
        assert _notes(parts, parts).keys() - {"steps", "parities"} == kinds
    many = [("a", *rng.normal(size=1_025)) for _ in range(6)]
    assert "of 1,025 numbers of outputs, the 1,024 commonest were read" in _notes(many, many)["numbers"]
    texts = _notes(_rows(rng, 20, "a"), _rows(rng, 20, "b"))
    assert re.match(r"of the [\d,]+ numbers, words and characters in 201 texts of an output, 201 were", texts["texts"])
    for codes in (256, 257):
        recurring = [(f"value {number % codes}", 0.5) for number in range(4 * codes)]
        assert ("codes" in _notes(recurring, recurring)) is (codes > 256)
    for long in (2_000, 2_001):
        letters = ["".join(rng.choice(list("abc "), size=long)) for _ in range(20)]
        assert ("1,000 characters at each end" in _notes(letters, letters)["long texts"]) is (long > 2_000)


def test_what_is_left_out_of_keys_and_scores_is_noted():
    rng = np.random.default_rng(0)
    for numbers in (2_500, 2_501):
        histogram = [dict(enumerate(rng.normal(size=numbers))) for _ in range(2)]
        assert ("keys" in _notes(histogram, histogram)) is (numbers > 2_500)
    names = [[(f"{run % 3} {number}", 0.5) for number in range(1_400)] for run in range(6)]
    assert "the 4,000 commonest" in _notes(names, names)["keys"]
    rare = np.where(rng.random(20_000) < 0.9, rng.integers(100, size=20_000), rng.integers(10**6, size=20_000))
    keys = np.column_stack([rare, rng.random(20_000)])
    assert "coordinate 0 has more than 1,000 values" in _notes(keys, keys)["values of keys"]
    for width, kinds in ((18, set()), (24, {"parities"}), (65, {"pairs", "width", "ranks"})):
        wide = rng.normal(size=(40, width))
        assert _notes(wide, wide).keys() - {"steps"} == kinds
    wide = rng.normal(size=(200, 74))  # with 7 cuts each, 518 steps
    assert "512 steps" in _notes(wide, wide)["steps"]


# Learned sums come near the best there are: events of the true likelihood ratio, from a large sample of it.

RUNS = 1_000_000


def expected_bound(p, q):
    """The bound on epsilon that an event gives at RUNS runs a side, by the delta method."""
    return math.log(p / q) - 1.645 * math.sqrt((1 - p) / (p * RUNS) + (1 - q) / (q * RUNS))


def best_bound(loss):
    """Of all events {loss ≥ t}: `loss` is the log-likelihood ratio of many outputs on x."""
    loss = np.sort(loss)[::-1]
    p = np.arange(1, len(loss) + 1) / len(loss)
    q = np.exp(-loss).cumsum() / len(loss)
    ends = np.flatnonzero(np.diff(loss, append=-math.inf) < 0)  # a plateau is taken whole
    ends = ends[(p[ends] > 1e-3) & (p[ends] < 0.99)]
    return max(expected_bound(p[i], q[i]) for i in ends[:: max(1, len(ends) // 500)])


def bound_of_choice(draw, x, y, claim, pilot, seed=0, fresh=100_000):
    """The bound to be expected of the chosen event, with its probabilities from fresh outputs."""
    rng = np.random.default_rng(seed)
    choice, _ = choose_event(cuts_of(draw(x, pilot, rng), draw(y, pilot, rng)), claim, RUNS, 0.05)
    rng = np.random.default_rng(seed + 1)
    on_x, on_y = (np.mean(choice.event.contains(draw(data, fresh, rng))) for data in (x, y))
    return expected_bound(on_x, on_y) if choice.more_likely_on == "x" else expected_bound(on_y, on_x)


def noisy(answers, size, rng, scale=1.0):
    return np.asarray(answers) + rng.laplace(scale=scale, size=(size, len(answers)))


def laplace_loss(moved, scale=1.0, coordinates=1, size=100_000):
    noise = np.random.default_rng(7).laplace(scale=scale, size=(size, coordinates))
    return ((np.abs(noise + moved) - np.abs(noise)) / scale).sum(axis=1)


def sums(answers, size, rng):
    """Prefix sums, of which the differences of neighbours are independent."""
    return noisy(answers, size, rng, 5.0).cumsum(axis=1)


def signs(agree, size, rng):
    """Signs that agree more often on x: each coordinate has the same law on both."""
    first = rng.normal(size=size)
    sign = np.where(rng.random(size) < agree, 1.0, -1.0) * np.sign(first)
    return np.column_stack([first, sign * np.abs(rng.normal(size=size))])


@pytest.mark.parametrize(
    ("draw", "x", "y", "epsilon", "pilot", "fresh", "best", "share"),
    [
        (noisy, [1.0, 0.0, 5.0, 5.0], [0.0, 1.0, 5.0, 5.0], 1.0, 20_000, 100_000, lambda: 2.0, 0.92),
        (sums, [1.0] * 10, [0.0] * 10, 1.0, 10_000, 50_000, lambda: best_bound(laplace_loss(1.0, 5.0, 10)), 0.8),
        (signs, 0.7, 0.3, 0.5, 10_000, 100_000, lambda: math.log(0.7 / 0.3), 0.9),
    ],
)
def test_a_share_of_the_best_bound(draw, x, y, epsilon, pilot, fresh, best, share):
    """Of a moved row neither cell shows more than half of the loss, and the parts of the other laws add up too."""
    assert bound_of_choice(draw, x, y, PureDP(epsilon), pilot, fresh=fresh) > share * best()


def test_a_sum_is_the_log_ratio_of_independent_columns():
    """Three columns with known ratios, one of which is missing in a third of the runs on y alone."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, (3, 60_000)).astype(float), rng.integers(0, 3, (3, 60_000)).astype(float)
    x[0] = rng.choice(3, 60_000, p=[0.5, 0.3, 0.2])
    y[1, rng.random(60_000) < 1 / 3] = np.nan
    score = additive(Coordinates(3), x, y, 8)
    points = np.array([[0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 0.0, np.nan], [0.0, 1.0, 2.0, 1.0]])
    found = score.add_up(points)
    assert np.diff(found[:3]) == pytest.approx(np.log([3 / 5, 2 / 3]), abs=0.05)
    assert found[3] < found[0] - 3.0, "never missing on x"
    np.testing.assert_array_equal(found, score.values(points.T))


def test_equal_laws_teach_hardly_anything_and_constants_nothing():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 20, 10_000))
    assert np.std(additive(Coordinates(20), x, y, 8).add_up(rng.normal(size=(20, 1_000)))) < 0.1
    assert additive(Coordinates(2), np.zeros((2, 50)), np.zeros((2, 50)), 8) is None
    assert additive(Coordinates(100), *rng.normal(size=(2, 100, 50)), 8) is None, "700 steps"


def test_a_learned_sum_is_scored_by_what_the_other_half_taught():
    """Else the many steps of twenty columns would tell the runs apart that taught them."""
    x, y = np.random.default_rng(0).normal(size=(2, 1_000, 20))
    (learned, *_) = [column for column in columns_of(x, y) if column.is_ratio and not column.first]
    ranks = np.argsort(np.argsort(np.concatenate([learned.x, learned.y])))
    assert abs(ranks[:1_000].mean() - ranks.mean()) < 4.0 * 2_000 / math.sqrt(12 * 1_000)


def test_a_learned_sum_does_not_depend_on_rounding():
    """The order of the runs changes the rounding of every sum, as another processor does."""
    x, y = np.random.default_rng(9).normal(size=(2, 10, 5_000))
    x[:3] += 0.3
    score = additive(Coordinates(10), x, y, 8)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(5_000)
        assert additive(Coordinates(10), x[:, order], y[:, order], 8) == score
