"""Texts as columns: what is read, and that it is read alike whatever else an output holds."""

import datetime
import enum
import ipaddress
import math
import pathlib
import uuid
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpaudit.audit.events.features import MODULUS
from dpaudit.audit.events.outcome_text import equal_text
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
            TextColumn((), "character", 2, ("-", "1", "3", "7")),
            TextColumn((), "number", 0),
            TextColumn((), "start", known=("n=",)),
            TextColumn((), "end", known=(" ",)),
        )
    )
    read = columns.read(outputs_of(["n=-1.5e1 ", "nn", "n=3, 4", None, "n=7"]))
    np.testing.assert_array_equal(
        read.T,
        [
            [9, 1, NAN, 1, 0, -15, 0, -1],
            [2, -1, NAN, 0, -1, NAN, -1, -1],
            [6, -1, 4, 1, 2, 3, 0, -1],
            [NAN] * 8,
            [3, 0, NAN, 1, 3, 7, 0, -1],
        ],
    )
    assert columns.codes(1) == ["'n=#'", "'n=# '"]
    assert columns.codes(0) is None
    assert columns.only([5]).names == ("1st number in output",)


def test_texts_inside_outputs_and_objects_with_a_text_of_their_own():
    columns = TextColumns(
        (TextColumn((1,), "word", "a"), TextColumn(("'when'",), "number", 1), TextColumn((), "length"))
    )
    day = datetime.date(2024, 1, 30)
    read = columns.read(outputs_of([(0, "a a"), {"when": day}, b"\xff12", (0, 5)]))
    np.testing.assert_array_equal(read, [[2, NAN, NAN, NAN], [NAN, 1, NAN, NAN], [NAN, NAN, 3, NAN]])


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


def test_last_digits_of_a_number_in_a_text():
    big = 2**60 + 1
    texts = outputs_of([f'{{"n": {big + place}, "ok": {place % 7}}}' for place in range(600)])
    columns = learn_texts(texts, texts)
    below = outputs_of([f"sum {-big - place}" for place in range(600)])
    assert TextColumn((), "last digits", 0) in learn_texts(below, below).columns
    assert TextColumn((), "last digits", 0) in columns.columns
    assert TextColumn((), "last digits", 1) not in columns.columns
    read = TextColumns((TextColumn((), "last digits", 0),)).read(texts)
    assert read[0, :2].tolist() == [float(big % MODULUS), float((big + 1) % MODULUS)]


def test_long_texts_are_read_at_both_ends():
    text = "begin " + "x" * 10**6 + " end"
    columns = (TextColumn((), "length"), TextColumn((), "word", "begin"), TextColumn((), "word", "end"))
    assert TextColumns(columns).read(outputs_of([text])).tolist() == [[len(text)], [1.0], [1.0]]
    assert len(str(TextColumn((), "word", "w" * 40))) < 80
    assert learn_texts(outputs_of([f"{text}{place}" for place in range(3)]), outputs_of(["a"])) is not None


@dataclass(frozen=True)
class Point:
    at: float


class Closed:
    """Compares by value, and says nothing of it but a hash that differs between processes."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return hash(str(self.value))


class Colour(enum.StrEnum):
    RED = "red"


MOMENT = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Point(1), Point(1.0)), (Point(0.0), Point(-0.0)), (frozenset([1]), frozenset([True])),
        (MOMENT, MOMENT.astimezone(datetime.timezone(datetime.timedelta(hours=5)))),
        (frozenset([Fraction(1, 2)]), frozenset([0.5])), (frozenset([Decimal(1)]), frozenset([1])),
        (Colour.RED, "red"), (frozenset([Fraction(10**5000, 3)]), frozenset([Fraction(10**5000, 3)])),
        (frozenset([10**5000]), frozenset([10**5000])),
    ],
)  # fmt: skip
def test_equal_outputs_have_equal_texts(one, other):
    assert one == other
    assert equal_text(one) == equal_text(other) is not None


@pytest.mark.parametrize(
    "output",
    [
        Closed(1),
        frozenset([Closed(1)]),
        range(3),
        2.5,
        True,
        None,
        Decimal("1.50"),
        datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-5))),
    ],
)
def test_some_outputs_have_no_text(output):
    assert equal_text(output) is None


def test_stated_texts():
    token, place = uuid.UUID(int=5), pathlib.PurePosixPath("/tmp/a")
    assert (equal_text(token), equal_text(place), equal_text(ipaddress.ip_address("::1"))) == (
        str(token),
        "/tmp/a",
        "::1",
    )
    assert equal_text(frozenset(["b", ("a", 1)])) == "{(a, 1), b}"
