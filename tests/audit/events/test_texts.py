"""The text of an output depends on its compared values only, in every process; and texts are read as columns."""

import ipaddress
import itertools
import math
import os
import pathlib
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.events.named_parts import equal_text, outcome_text
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.text_columns import TextColumn, TextColumns, learn_texts
from dpaudit.audit.health.findings import HealthCheck

COUNTER = itertools.count()


class Colour(Enum):
    RED = 1


@dataclass(frozen=True)
class Stamped:
    """Prints its creation time first, and is compared by its last field."""

    at: int = field(compare=False)
    word: str


class Value:
    """Compares by value and prints its address."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return isinstance(other, Value) and other.number == self.number

    def __hash__(self):
        return hash(self.number)


class Itself:
    """Equals only itself."""


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (Stamped(1, "a"), Stamped(2, "a"), True), (Value(1), Value(1), True), (Itself(), Itself(), True),
        (frozenset("abc"), frozenset("cba"), True), (("a", (Value(1), 2)), ("a", (Value(1), 2)), True),
        ("1", 1, False), (Stamped(1, "a"), Stamped(1, "b"), False), (Value(1), Value(2), False),
        (frozenset(["a"]), ("a",), False), (Decimal("1.5"), Fraction(3, 2), False), (("a", "b"), ("a, b",), False),
        (Colour.RED, "Colour.RED", False),
    ],
)  # fmt: skip
def test_a_text_says_what_is_compared_and_nothing_else(one, other, is_same):
    assert (outcome_text(one) == outcome_text(other)) == is_same


def identified(answer, rng):
    return Stamped(next(COUNTER), f"{answer + rng.laplace():.1f}")


def test_objects_that_print_more_than_they_compare_accuse_nobody():
    result = check(identified, 0, 1, claim=PureDP(1.0), runs=300, jobs=1, alpha=1e-6)
    assert {finding.check for finding in result.findings} <= {HealthCheck.NO_POWER}  # each value is rare


def test_sets_and_events_that_hold_them_are_alike_whatever_the_hash_seed(tmp_path):
    """The text of a set; the words of an event, the key under which a store keeps its counts, and a result's file."""
    program = tmp_path / "sets.py"
    program.write_text(
        "from ipaddress import ip_address\n"
        "from pathlib import PurePosixPath\n"
        "from dpaudit import PureDP, check, save\n"
        "from dpaudit.audit.events.named_parts import Dictionary\n"
        "from dpaudit.audit.events.named_parts import outcome_text\n"
        "from dpaudit.audit.sampling.output_hashes import digest\n"
        "print(outcome_text(frozenset(map(str, range(50)))), outcome_text(Dictionary.of({'a': 1, 'b': 2}.items())))\n"
        "print(*map(outcome_text, (PurePosixPath('a'), ip_address('1.2.3.4'))), digest([{'k': {'a', 'b', 'c'}}]))\n"
        "def drawn(dataset, rng):\n"
        "    return (frozenset('abcdefg'[: int(rng.integers(3)) + 2 + dataset]), 1)\n"
        "result = check(drawn, 0, 1, claim=PureDP(1.0), runs=400, seed=1, jobs=1, bins=8)\n"
        "save(result, 'result.json')\n"
        "saved = [line for line in open('result.json') if 'seconds' not in line and 'saved' not in line]\n"
        "print(result.event, result.bins.names, result.sketch, digest((result.event, None)), ''.join(saved))\n"
    )
    said = {
        subprocess.run(
            [sys.executable, program], env={**os.environ, "PYTHONHASHSEED": str(seed)}, cwd=tmp_path,
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in (1, 2)  # which order these sets differently
    }  # fmt: skip
    assert len(said) == 1
    assert "{'a', 'b'}" in said.pop()


# Texts as columns: what is read, and that it is read alike whatever else an output holds.

NAN = math.nan


def outputs_of(values):
    return as_outputs(list(values), len(values), "f")


def test_each_part_of_a_text():
    columns = TextColumns(
        (
            TextColumn((), "length"), TextColumn((), "template", known=("n=#", "n=# ")), TextColumn((), "number", 1),
            TextColumn((), "word", "n"), TextColumn((), "character", 2, ("-", "1", "3", "7")),
            TextColumn((), "number", 0), TextColumn((), "start", known=("n=",)), TextColumn((), "end", known=(" ",)),
        )
    )  # fmt: skip
    read = columns.read(outputs_of(["n=-1.5e1 ", "nn", "n=3, 4", None, "n=7"]))
    np.testing.assert_array_equal(
        read.T,
        [
            [9, 1, NAN, 1, 0, -15, 0, -1], [2, -1, NAN, 0, -1, NAN, -1, -1], [6, -1, 4, 1, 2, 3, 0, -1], [NAN] * 8,
            [3, 0, NAN, 1, 3, 7, 0, -1],
        ],
    )  # fmt: skip
    assert columns.codes(1) == ["'n=#'", "'n=# '"]
    assert columns.codes(0) is None
    assert columns.names[5] == "1st number in output"


def test_the_end_of_a_text_differs_from_any_character():
    columns = TextColumns(
        (TextColumn((), "character", 1, ("", "\0", "é", "\ud800")), TextColumn((), "character", 0, ("a",)))
    )
    read = columns.read(outputs_of(["a", "a\0", "a\ud800", "xé", "a😀b", ""]))
    np.testing.assert_array_equal(read, [[0, 1, 3, 2, -1, 0], [0, 0, 0, -1, 0, -1]])


def test_only_texts_that_hardly_recur_are_learned():
    rng = np.random.default_rng(0)
    words = [f"{'abc'[place % 3]}" for place in range(600)]
    assert learn_texts(outputs_of(words), outputs_of(words)) is None
    sentences = [(word, f"{word} of {rng.random():.6f}") for word in words]
    found = learn_texts(outputs_of(sentences), outputs_of(sentences[:300]))
    assert {column.path for column in found.columns} == {(1,)}
    assert TextColumn((1,), "template", known=("a of #", "b of #", "c of #")) in found.columns
    assert learn_texts(np.arange(5), np.arange(5)) is None


def test_stated_texts():
    token, place = uuid.UUID(int=5), pathlib.PurePosixPath("/tmp/a")
    stated = [equal_text(each) for each in (token, place, ipaddress.ip_address("::1"), b"\xff1")]
    assert stated == [str(token), "/tmp/a", "::1", "ÿ1"]
    assert equal_text(frozenset(["b", ("a", 1)])) == "{'b', ('a', 1)}"
    assert equal_text(frozenset([10**5000, Fraction(10**5000, 3)])) is not None
