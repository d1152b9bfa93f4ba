"""Columns of outputs: single parts, statistics, what stands anywhere, and a note on what is left out of many parts."""

import math
import re

import numpy as np
import pytest

from dpaudit import PureDP
from dpaudit.audit.events.events import Scored
from dpaudit.audit.events.features import Released, Statistics, noting_left_out
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import Coordinate
from dpaudit.audit.portfolio.choice import choose_event
from dpaudit.audit.portfolio.columns import columns_of, cuts_of, most_different, screened

from .chosen_events import frequencies


@pytest.mark.parametrize(("width", "count"), [(1, 0), (3, 5 + 3), (64, 5 + 63), (65, 5)])
def test_statistics_are_there_for_any_number_of_coordinates(width, count):
    """One column has none, and very many have no differences."""
    x, y = np.random.default_rng(0).normal(size=(2, 100, width))
    with noting_left_out() as notes:
        scores = [column.score for column in columns_of(x, y)]
    names = {str(score) for score in scores if isinstance(getattr(score, "columns", None), Statistics)}
    assert len(names) == count
    words = {f"{word} of {width} columns" for word in ("sum", "Euclidean norm", "smallest", "largest")}
    assert words <= names or width <= 3
    assert "width" not in notes if width <= 64 else f"of {width} parts of outputs" in notes["width"]


def test_a_norm_that_differs_is_found():
    """Pairs whose norms differ, and nothing else."""
    rng = np.random.default_rng(0)
    turn, sizes = (np.exp(2j * math.pi * rng.random(6_000)) for _ in range(2)), (1.0, 1.5)
    x, y = (np.stack([part.real, part.imag], axis=1) * size for part, size in zip(turn, sizes, strict=True))
    choice, promise = choose_event(cuts_of(x, y), PureDP(0.1), 10**5, 0.05)
    assert isinstance(choice.event, Scored)
    assert min(choice.pilot_count_x, choice.pilot_count_y) == 0
    assert promise > 3.0


def test_single_coordinates_are_those_that_differ_most():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 300)), rng.normal(size=(400, 300))
    x[:, 299] += 2.0
    names = [str(column.score) for column in columns_of(x, y) if isinstance(column.score, Coordinate)]
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
    p, q = frequencies(choice, draw, x, 0.0, 100_000, rng)
    assert p > 0.15  # a coordinate has a twelfth of the runs
    assert math.log(p / q) >= least if least < math.inf else q == 0.0


def test_the_distance_is_in_standard_errors_however_rare_a_value_is():
    x, y = np.zeros((4, 4_000)), np.zeros((4, 4_000))
    x[0, :40], x[1, :2_000], y[1, :1_500], x[2], y[2] = 1.0, 1.0, 1.0, np.arange(4_000), np.arange(4_000)[::-1]
    errors = [math.sqrt(0.01 * 0.99 / 4_000), math.sqrt((0.5 * 0.5 + 0.375 * 0.625) / 4_000)]
    exact = [difference / (error + 1 / 4_000) for difference, error in zip((0.01, 0.125), errors, strict=True)]
    assert screened(x, y).tolist() == pytest.approx([*exact, 0.0, 0.0])


def _rows(rng, runs, last):
    """201 texts that barely recur; the last tells the datasets apart."""
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
