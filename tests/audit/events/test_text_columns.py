"""Texts as columns: what is read, and that it is read alike whatever else an output holds."""

import datetime
import math

import numpy as np

from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.text_columns import TextColumn, TextColumns, learn_texts

NAN = math.nan


def outputs_of(values):
    return as_outputs(list(values), len(values), "f")


def test_each_part_of_a_text():
    columns = TextColumns(
        (
            TextColumn((), "length"),
            TextColumn((), "template", known=("n=#", "n=# ")),
            TextColumn((), "number", 1),
            TextColumn((), "word", "n"),
            TextColumn((), "character", 2),
            TextColumn((), "number", 0),
            TextColumn((), "start", known=("n=",)),
            TextColumn((), "end", known=(" ",)),
        )
    )
    read = columns.read(outputs_of(["n=-1.5e1 ", "nn", "n=3, 4", None, "n=7"]))
    np.testing.assert_array_equal(
        read.T,
        [
            [9, 1, NAN, 1, ord("-"), -15, 0, -1],
            [2, -1, NAN, 0, NAN, NAN, -1, -1],
            [6, -1, 4, 1, ord("3"), 3, 0, -1],
            [NAN] * 8,
            [3, 0, NAN, 1, ord("7"), 7, 0, -1],
        ],
    )
    assert columns.codes(1) == ["'n=#'", "'n=# '"]
    assert columns.codes(0) is None
    assert columns.only([5]).names == ("number 0 in output",)


def test_texts_inside_outputs_and_objects_with_a_text_of_their_own():
    columns = TextColumns(
        (TextColumn((1,), "word", "a"), TextColumn(("'when'",), "number", 2), TextColumn((), "length"))
    )
    day = datetime.date(2024, 1, 30)
    read = columns.read(outputs_of([(0, "a a"), {"when": day}, b"\xff12", (0, 5)]))
    np.testing.assert_array_equal(read, [[2, NAN, NAN, NAN], [NAN, 30, NAN, NAN], [NAN, NAN, 3, NAN]])


def test_only_texts_that_hardly_recur_are_learned():
    rng = np.random.default_rng(0)
    words = [f"{'abc'[place % 3]}" for place in range(600)]
    assert learn_texts(outputs_of(words), outputs_of(words)) is None
    sentences = [(word, f"{word} of {rng.random():.6f}") for word in words]
    found = learn_texts(outputs_of(sentences), outputs_of(sentences[:300]))
    assert {column.path for column in found.columns} == {(1,)}
    assert TextColumn((1,), "template", known=("a of #", "b of #", "c of #")) in found.columns
    assert learn_texts(np.arange(5), np.arange(5)) is None


def test_words_are_those_in_which_the_datasets_differ():
    rng = np.random.default_rng(1)
    on_x, on_y = ([f"{word} {rng.random()}" for _ in range(400)] for word in ("same left", "same right"))
    words = {
        column.which for column in learn_texts(outputs_of(on_x), outputs_of(on_y)).columns if column.part == "word"
    }
    assert {"left", "right"} <= words
    assert "same" not in words
