"""The text of an output depends on its compared values only, in every process, so other values raise no finding."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.events.outcome_text import outcome_text
from dpaudit.audit.health.findings import HealthCheck

pytestmark = pytest.mark.usefixtures("learned_seldom")

COUNTER = itertools.count()


class Colour(Enum):
    RED = 1


Place = namedtuple("Place", "row column")


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
    ("one", "other"),
    [
        (Stamped(1, "a"), Stamped(2, "a")),
        (Value(1), Value(1)),
        (frozenset(["a", "b", "c"]), frozenset(["c", "b", "a"])),
        (("a", (Value(1), 2)), ("a", (Value(1), 2))),
        (Itself(), Itself()),
        (np.str_("a"), "a"),
        (np.float64(1.5), 1.5),
        (Place("a", Value(2)), Place("a", Value(2))),
    ],
)
def test_what_is_not_compared_is_not_said(one, other):
    assert outcome_text(one) == outcome_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", 1),
        (None, "None"),
        (b"a", "a"),
        (Stamped(1, "a"), Stamped(1, "b")),
        (Value(1), Value(2)),
        (frozenset(["a"]), ("a",)),
        (Decimal("1.5"), Fraction(3, 2)),
        (Colour.RED, "Colour.RED"),
        (("a", "b"), ("a, b",)),
        (Place(1, (2,)), (1, (2,))),
    ],
)
def test_what_is_compared_is_said(one, other):
    assert outcome_text(one) != outcome_text(other)


def stamped(answer, rng):
    return Stamped(next(COUNTER), "yes" if rng.random() < 0.5 + 0.1 * answer else "no")


def identified(answer, rng):
    return Stamped(next(COUNTER), f"{answer + rng.laplace():.1f}")


def valued(answer, rng):
    return Value(int(rng.integers(100)) + answer)


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("mechanism", [stamped, identified, valued])
def test_objects_that_print_more_than_they_compare_accuse_nobody(mechanism, sequential):
    result = check(mechanism, 0, 1, claim=PureDP(1.0), runs=500, sequential=sequential, jobs=1, alpha=1e-6)
    assert {finding.check for finding in result.findings} <= {HealthCheck.IDLE_EVENT}  # each value is rare


def test_sets_and_events_that_hold_them_are_alike_whatever_the_hash_seed(tmp_path):
    """The text of a set; the words of an event, the key under which a store keeps its counts, and a result's file."""
    program = tmp_path / "sets.py"
    program.write_text(
        "from dpaudit import PureDP, check, save\n"
        "from dpaudit.audit.events.named_parts import Dictionary\n"
        "from dpaudit.audit.events.outcome_text import outcome_text\n"
        "from dpaudit.audit.sampling.output_hashes import digest\n"
        "print(outcome_text(frozenset(map(str, range(50)))), outcome_text(Dictionary.of({'a': 1, 'b': 2}.items())))\n"
        "def drawn(dataset, rng):\n"
        "    return (frozenset('abcdefg'[: int(rng.integers(3)) + 2 + dataset]), 1)\n"
        "result = check(drawn, 0, 1, claim=PureDP(1.0), runs=400, seed=1, jobs=1, cells=8)\n"
        "save(result, 'result.json')\n"
        "saved = [line for line in open('result.json') if 'seconds' not in line and 'saved' not in line]\n"
        "print(result.event, result.cells.names, result.sketch, digest((result.event, None)), ''.join(saved))\n"
    )
    said = {
        subprocess.run(
            [sys.executable, program],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)  # which order these sets differently
    }
    assert len(said) == 1
    assert "{'a', 'b'}" in said.pop()
