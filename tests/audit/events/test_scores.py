"""Scores and columns compared with their definitions, one output at a time."""

from __future__ import annotations

import dataclasses
import enum
import math
from decimal import Decimal

import numpy as np
import pytest

from dpaudit.audit.events.events import Intervals, Scored
from dpaudit.audit.events.features import Coordinates
from dpaudit.audit.events.leaves import learn_leaves
from dpaudit.audit.events.outputs import Raised, as_outputs
from dpaudit.audit.events.scores import (
    Additive,
    Column,
    Decimals,
    DifferentSizes,
    Forest,
    LastDigits,
    LowestBit,
    NegativeZero,
    Number,
    Remainder,
    Residue,
    TrailingZeros,
    Tree,
    Units,
    Weighted,
)

INF, NAN = math.inf, math.nan


class Answer(enum.Enum):
    ABOVE = 1
    BELOW = 2


def objects(*values):
    return np.fromiter(values, dtype=object, count=len(values))


def test_additive_adds_steps_and_ramps():
    score = Additive(Coordinates(2), ((0, 1.0, 1.0, 2.0), (0, 3.0, 5.0, -1.0), (1, 0.0, 0.0, 0.25)), ((1, 10.0),))
    outputs = np.array([[0.0, -1.0], [1.0, 0.0], [4.0, 7.0], [9.0, NAN]])
    assert score.values(outputs).tolist() == [0.0, 2.25, 1.75, 11.0]


def test_differences_are_columns():
    columns = Coordinates(3, differences=True)
    assert columns.read(np.array([[1.0, 4.0, 2.0]])).ravel().tolist() == [1.0, 3.0, -2.0]
    assert columns.names[1] == "(coordinate 1 − coordinate 0)"


def test_forest_follows_its_trees():
    tree = Tree((0, -1, 1, -1, -1), (0.5, 0.0, 2.0, 0.0, 0.0), (1, -1, 3, -1, -1), (2, -1, 4, -1, -1), (0, 1, 0, 5, 9))
    score = Forest(Coordinates(2), (tree, tree))
    outputs = np.array([[0.5, 0.0], [1.0, 2.0], [1.0, 3.0], [NAN, NAN]])
    assert score.values(outputs).tolist() == [2.0, 10.0, 18.0, 18.0]


def test_leaves_of_unlike_outputs():
    outputs = objects((1.5, "a"), (2.5, Answer.ABOVE), (1.0,), None, Raised("ValueError"), ((3.0, None), "a"))
    leaves = learn_leaves(outputs, outputs)
    assert leaves.names == ("form of the output", "output[0]", "output[0][0]", "output", "output[0][1]", "output[1]")
    read = leaves.read(outputs)
    columns = dict(zip(leaves.names, read, strict=True))
    assert np.array_equal(columns["output[0]"], [1.5, 2.5, 1.0, NAN, NAN, NAN], equal_nan=True)
    assert np.array_equal(columns["output[0][0]"], [NAN, NAN, NAN, NAN, NAN, 3.0], equal_nan=True)
    build = columns["form of the output"]
    assert build[0] == build[1], "a string and an Enum have the same form"
    assert len(set(build.tolist())) == 5
    assert leaves.codes(0)[int(build[4])] == "an exception"
    assert columns["output"][3] != columns["output"][4]
    assert leaves.kinds == [0, 4, 5]
    assert Scored(Column(leaves, 5), Intervals(((0.0, 0.0),))).contains(outputs).tolist() == [True] + [False] * 4 + [
        True
    ]
    assert str(Scored(Column(leaves, 5), Intervals(((0.0, 0.0),)))) == "output[1] is 'a'"
    code = leaves.builds.index((True, False))
    is_pair = Scored(Column(leaves, 0), Intervals(((code, code),)))
    assert str(is_pair) == "output is a tuple of 2 (a number, a value such as 'a' or Answer.ABOVE)"


def test_what_was_not_learned_is_minus_one():
    seen = objects(("a", 1.0), ("b", 2.0))
    leaves = learn_leaves(seen, seen)
    assert leaves.read(objects(("c", 1.0), (1.0, 2.0, 3.0)))[0].tolist()[1] == -1.0
    assert leaves.read(
        objects(
            ("c", 1.0),
        )
    )[-1].tolist() == [-1.0]


@pytest.mark.parametrize("outputs", [[(1.0, 2.0)] * 3, [(1.0, 2.0), "a", (3.0,)], ["a", "b", "a"]])
def test_a_block_reads_the_same_whatever_it_was_packed_into(outputs):
    """Equally long tuples become a matrix in one block and objects in another."""
    leaves = learn_leaves(objects(*outputs, None), objects(*outputs))
    packed = leaves.read(as_outputs(outputs, len(outputs), "f"))
    assert np.array_equal(packed, leaves.read(objects(*outputs)), equal_nan=True)


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (LowestBit(Number()), "exponent of the lowest set bit of output ≤ 3"),
        (Residue(Weighted((0.0, 1.0)), -4), "coordinate 1 modulo 2^-4 ≤ 3"),
        (Remainder(Number(), 2), "output modulo 2 ≤ 3"),
        (Decimals(Number()), "number of decimals of output ≤ 3"),
        (Remainder(Weighted((0.0, 1.0)), 1), "fractional part of coordinate 1 ≤ 3"),
        (Remainder(Units(Number(), 2), 10), "(100·output) modulo 10 ≤ 3"),
        (TrailingZeros(LastDigits(1)), "number of zeros at the end of coordinate 1 ≤ 3"),
        (NegativeZero(Number()), "output is any number but −0.0 or −0.0"),
        (DifferentSizes(4), "number of different sizes among 4 coordinates ≤ 3"),
        (Column(Coordinates(3, differences=True), 2), "(coordinate 2 − coordinate 1) ≤ 3"),
        (Additive(Coordinates(2), ((1, 0.0, 1.0, 5.0), (0, 0.0, 1.0, -1.0))), "score(coordinate 1, coordinate 0) ≤ 3"),
        (
            Additive(Coordinates(9), tuple((i, 0.0, 0.0, 9.0 - i) for i in range(9))),
            "score(coordinate 0, coordinate 1, coordinate 2, … 9 in all) ≤ 3",
        ),
    ],
)
def test_words(score, words):
    assert str(Scored(score, Intervals(((-INF, 3.0),)))) == words


@pytest.mark.parametrize(
    ("one", "other"),
    [(Decimal("1.5"), 1.5), (Decimal(2**60 + 1), 2**60 + 1), ({1: 0.5}, {True: 0.5}), ({2: 0.5}, {2.0: 0.5})],
)
def test_equal_outputs_are_read_alike_whatever_comes_before_them(one, other):
    one, other = as_outputs([one, other, "z"], 3, "f")[:2]
    assert one == other
    leaves = learn_leaves(objects(one, other, "z"), objects(other, one, "z"))
    read = [leaves.read(objects(*block)) for block in ((one, other, "z"), (other, one, "z"), (other, "z"))]
    for columns in read:
        assert np.array_equal(columns[:, 0], read[0][:, 1], equal_nan=True)


def test_an_event_of_all_but_a_form_names_that_form():
    def fails(answer, rng):
        return "down" if answer and rng.random() < 0.5 else answer + rng.laplace()

    outputs = [[fails(answer, np.random.default_rng(seed)) for seed in range(40)] for answer in (0, 1)]
    leaves = learn_leaves(*(as_outputs(side, 40, "m") for side in outputs))
    column = Column(leaves, 0)
    codes = leaves.codes(0)
    text, number = codes.index("a value such as 'down'"), codes.index("a number")
    alone = Intervals(((float(number), float(number)),))
    assert str(Scored(column, alone)) == "output is a number"
    rest = Intervals(((-math.inf, text - 0.5), (text + 0.5, math.inf)))
    assert str(Scored(column, rest)) == "output is not a value such as 'down'"
    both = Intervals(((-math.inf, -0.5),))
    assert str(Scored(column, both)).startswith("output is neither ")


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([None, 1.5], "a value such as None"),
        ([None, "a", b"b", 1.5], "a value such as None or 'a'"),
        ([NAN, 1.5, 2], "a number"),
        ([(None, 1.5), 1.5], "a tuple of 2 (a value such as None, a number)"),
        ([Raised("ValueError"), None], "a value such as None"),
        ([1.5, Raised("ValueError")], "an exception"),
    ],
)
def test_forms_are_told_by_examples(outputs, words):
    """Not by "not a number", which readers take for NaN, a number here."""
    held = objects(*outputs)
    leaves = learn_leaves(held, held)
    assert words in leaves.codes(0)
    code = float(leaves.codes(0).index(words))
    others = Intervals(((-math.inf, code - 0.5), (code + 0.5, math.inf)))
    assert str(Scored(Column(leaves, 0), Intervals(((code, code),)))) == f"output is {words}"
    assert str(Scored(Column(leaves, 0), others)) == f"output is not {words}"


def test_leaves_without_examples_are_named_all_the_same():
    leaves = dataclasses.replace(learn_leaves(objects(None, 1.5), objects(None, 1.5)), coded=())
    assert leaves.codes(0) == ["a value that is not a number", "a number"]
