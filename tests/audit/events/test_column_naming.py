"""Names of columns in the texts of events, scores and partitions; what they contain does not depend on names."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.audit.events.events import (
    Apart,
    ExceptFor,
    Intervals,
    NumberCells,
    OutcomeCells,
    Outcomes,
    Scored,
    with_names,
)
from dpaudit.audit.events.features import Coordinates, Parities, Products
from dpaudit.audit.events.leaves import KeyedValues, learn_leaves
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import Additive, Column, DifferentSizes, LastDigits, LowestBit, Number, Weighted
from dpaudit.audit.events.text_columns import TextColumn, TextColumns
from dpaudit.audit.records.json_codec import plain_data, read_data

TWO, ONE = ("count", "mean"), ("mean",)
HALF = Intervals(((1.5, math.inf),))
TEXTS = as_outputs([("a", 1.0), ("b", 2.0), None], 3, "m")
LEAVES = learn_leaves(TEXTS, TEXTS)
EVENTS = [
    (HALF, ONE, "mean ≥ 1.5"),
    (Intervals(((1.0, 1.0),), others=True), ONE, "mean = 1 or mean is NaN or non-numeric"),
    (Outcomes((1.0,)), ONE, "mean = 1"),
    (Outcomes(((1.0, 2.0),), others=True), TWO, "(count, mean) ≠ (1.0, 2.0)"),
    (Outcomes(((1.0, 2.0),)), tuple("abcdefghijklmnopqrstuvwxyz"), "output = (1.0, 2.0)"),
    (Scored(Weighted((0.0, 1.0)), HALF), TWO, "mean ≥ 1.5"),
    (Scored(Weighted((0.5, 1.0)), HALF), TWO, "0.5·count + 1·mean ≥ 1.5"),
    (Scored(LowestBit(Number()), HALF), ONE, "exponent of the lowest set bit of mean ≥ 1.5"),
    (Scored(LowestBit(Weighted((1.0, 0.0))), HALF), TWO, "exponent of the lowest set bit of count ≥ 1.5"),
    (Scored(LastDigits(1), HALF), TWO, "mean modulo 720720·10⁹ ≥ 1.5"),
    (Scored(Additive(Coordinates(2), ((1, 0.0, 1.0, 2.0),)), HALF), TWO, "score(mean) ≥ 1.5"),
    (Scored(Column(Coordinates(2, differences=True), 1), HALF), TWO, "(mean − count) ≥ 1.5"),
    (Scored(Column(Products(Coordinates(2), ((0, 1.0, 1, 2.0),)), 0), HALF), TWO, "(count − 1)·(mean − 2) ≥ 1.5"),
    (Scored(Column(Parities(Coordinates(2), (((0, 0.0), (1, 2.0)),)), 0), HALF), TWO,
     "parity of [count ≥ 0] + [mean ≥ 2] ≥ 1.5"),
    (Scored(Column(LEAVES, 1), HALF), TWO, "mean ≥ 1.5"),
    (Scored(Column(LEAVES, LEAVES.names.index("output[0]")), Intervals(((0.0, 0.0),))), TWO, "count is 'a'"),
    (Scored(Column(KeyedValues((((0,), "a", (1,)),)), 0), HALF), TWO, "(mean where count = 'a') ≥ 1.5"),
    (Scored(Column(TextColumns((TextColumn((0,), "length"),)), 0), HALF), TWO, "length of count ≥ 1.5"),
    (Scored(DifferentSizes(2), HALF), TWO, "number of different sizes among 2 coordinates ≥ 1.5"),
    (Apart(Scored(Weighted((0.0, 1.0)), HALF), Outcomes(((1, 2),))), TWO, "mean ≥ 1.5, but not (count, mean) = (1, 2)"),
    (ExceptFor(Scored(Weighted((0.0, 1.0)), HALF), Outcomes((7,))), TWO, "mean ≥ 1.5 except for 1 outcomes such as 7"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "names", "text"), EVENTS, ids=[text for _, _, text in EVENTS])
def test_texts_have_the_names_and_files_keep_them(event, names, text):
    named = with_names(event, names)
    assert str(named) == text
    assert read_data(plain_data(named)) == named
    assert with_names(event, ()) is event
    outputs = as_outputs([1.0, 1.5, 2.0] if names == ONE else [(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)], 3, "m")
    np.testing.assert_array_equal(named.contains(outputs), event.contains(outputs))


def test_cells_have_the_names():
    cells = with_names(NumberCells((1.0,), (0, 1)), ONE)
    assert cells.names == ("mean in (-inf, 1]", "mean in (1, inf]", "mean is NaN or non-numeric")
    outcomes = with_names(OutcomeCells((1, 2), 2), ONE)
    assert [str(outcomes.event(cell)) for cell in (0, 2)] == ["mean = 1", "mean not in {1, 2}"]


def test_the_form_of_a_record_is_told_in_words():
    mixed = as_outputs([(1.0, 2.0), {"other": 1.0}, None], 3, "m")
    leaves = with_names(learn_leaves(mixed, mixed), TWO)
    assert leaves.codes(0) == ["(count, mean)", "a record with other parts", "a value such as None"]
