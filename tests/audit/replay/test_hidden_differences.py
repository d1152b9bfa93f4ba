"""Differences that hide: in types and attributes, beside the generators of a run, at rare values, and in rounding."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import subprocess
import sys
from collections import defaultdict, deque
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest
from numpy.random import Generator as ImportedGenerator
from numpy.random import default_rng as imported_default_rng

from dpaudit import GaussianDP, ReplayResult, noise_primitive, replay
from dpaudit.audit.replay.laws import Law
from dpaudit.audit.replay.output_values import NotCopied, kept, same_output
from dpaudit.audit.replay.replay_result import ReplayVerdict

BOUNDED, EXCESS, OPEN = ReplayVerdict.BOUNDED, ReplayVerdict.EXCESS, ReplayVerdict.OPEN
X, Y = [1, 2, 9], [1, 2]


def run(mechanism, x=X, y=Y, claim=1.0, **options) -> ReplayResult:
    return replay(mechanism, x, y, claim=claim, **options)


@dataclasses.dataclass
class Answer:
    value: float


class Marked(float):
    pass


class MarkedArray(np.ndarray):
    pass


class Slotted(list):
    __slots__ = ("mark",)


class Lenient:
    def __init__(self, mark):
        self.mark = mark

    def __eq__(self, other):
        return True

    __hash__ = None


def with_mark(held, mark):
    held.mark = mark
    return held


def named_columns(mark):
    frame = pytest.importorskip("pandas").DataFrame({"a": [1.0]})
    frame.columns.name = mark
    return frame


def categories(mark):
    pandas = pytest.importorskip("pandas")
    return pandas.Series(pandas.Categorical(["u"], categories=["u", "v"] if mark == "a" else ["v", "u"]))


@pytest.mark.parametrize(
    "make",
    [
        lambda mark: -0.0 if mark == "a" else 0.0,
        lambda mark: np.array([-0.0 if mark == "a" else 0.0]),
        lambda mark: {-0.0 if mark == "a" else 0.0},
        lambda mark: np.float64(5.0) if mark == "a" else 5.0,
        lambda mark: np.float32(5.0) if mark == "a" else np.float64(5.0),
        lambda mark: np.int64(5) if mark == "a" else 5,
        lambda mark: Decimal("1.0") if mark == "a" else Decimal("1.00"),
        lambda mark: (
            datetime(2020, 1, 1, 12, tzinfo=UTC)
            if mark == "a"
            else datetime(2020, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))
        ),
        lambda mark: np.ma.masked_array([1.0, ord(mark)], mask=[False, True]),
        lambda mark: with_mark(Answer(1.0), mark),
        lambda mark: with_mark(Marked(1.0), mark),
        lambda mark: with_mark(np.ones(1).view(MarkedArray), mark),
        lambda mark: with_mark(Slotted([1.0]), mark),
        lambda mark: Lenient(mark),
        lambda mark: defaultdict(int if mark == "a" else float),
        lambda mark: deque([1.0], maxlen=ord(mark)),
        named_columns,
        categories,
    ],
)
def test_what_an_output_holds_beside_its_numbers(make):
    assert same_output(make("a"), make("b")) is False
    assert same_output(make("a"), make("a")) is True
    again = kept(make("a"))
    assert isinstance(again, NotCopied) or same_output(make("a"), again)


def test_a_sign_of_zero_and_an_attribute_are_released():
    assert run(lambda rows, rng: [rng.laplace(len(rows)), -0.0 if 9 in rows else 0.0]).verdict is not BOUNDED
    assert run(lambda rows, rng: [len(rows) + rng.laplace(), -0.0 if 9 in rows else 0.0]).verdict is not BOUNDED
    assert run(lambda rows, rng: with_mark(Marked(rng.laplace(len(rows))), max(rows))).verdict is not BOUNDED


def from_another_process():
    found = subprocess.run([sys.executable, "-S", "-E", "-c", "print(1)"], capture_output=True, check=True)
    return float(found.stdout)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: imported_default_rng().laplace(),
        lambda: ImportedGenerator(np.random.PCG64()).laplace(),
        lambda: os.urandom(1)[0] / 100,
        lambda: random.SystemRandom().randbytes(1)[0] / 100,
        from_another_process,
    ],
)
def test_what_decides_beside_the_generators_of_the_run_is_noticed(draw):
    result = run(lambda rows, rng: (rng.laplace(len(rows)), sum(rows) + draw() > 50))
    assert result.unrecorded
    assert result.verdict is OPEN


def test_a_generator_that_was_made_before_is_noticed():
    older = np.random.default_rng(3)
    assert run(lambda rows, rng: (rng.laplace(len(rows)), sum(rows) + older.laplace() > 50)).unrecorded


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda rows: np.random.default_rng().laplace(len(rows)),
        lambda rows: np.random.RandomState().laplace(len(rows)),
        lambda rows: np.random.Generator(np.random.PCG64()).laplace(len(rows)),
        lambda rows, rng: rng.spawn(1)[0].laplace(len(rows)),
        lambda rows, rng: np.random.default_rng(rng.bit_generator.seed_seq.spawn(1)[0]).laplace(len(rows)),
    ],
)
def test_streams_without_a_seed_of_their_own_are_recorded(mechanism):
    assert run(mechanism).verdict is BOUNDED


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda rows: np.random.default_rng(42).laplace(len(rows)),
        lambda rows: (np.random.seed(0), np.random.laplace(len(rows)))[1],  # noqa: NPY002
        lambda rows: random.Random(0).gauss(len(rows), 1.0),
    ],
)
def test_a_seed_that_does_not_change_makes_no_noise(mechanism):
    result = run(mechanism, claim=GaussianDP(3.0))
    assert (result.verdict, result.unrecorded) == (OPEN, False)
    assert "its noise is the same in every run" in str(result)


def seldom_third(rows, rng):
    weights = np.array([0.9, 0.1, 1e-9 * len(rows)])
    place = rng.choice(3, p=weights / weights.sum())
    return int(place), max(rows) if place == 2 else 0


def seldom_large(rows, rng):
    count = rng.binomial(10, 0.1 + 0.01 * len(rows))
    return int(count), max(rows) if count == 10 else 0


def in_a_window(low, high):
    def mechanism(rows, rng):
        value = rng.laplace(np.full(6, len(rows) / 6.0))
        return value, max(rows) if low < value[3] < high else 0

    return mechanism


@noise_primitive(lambda value: Law("own", {"location": value}), sensitivity=1.0, epsilon=1.0)
def own_noise(value):
    return value + np.random.laplace()  # noqa: NPY002


@pytest.mark.parametrize(
    "mechanism",
    [
        seldom_third,
        seldom_large,
        in_a_window(12.5, 19.5),
        in_a_window(45.0, 95.0),
        lambda rows: (lambda value: (value, max(rows) if value > 12 else 0))(own_noise(len(rows))),
    ],
)
def test_rare_values_of_a_law_that_moves(mechanism):
    assert run(mechanism).verdict is OPEN


def asks_again(rows, rng):
    first = rng.laplace(len(rows))
    return first, rng.laplace(sum(rows) if first > 6.0 else 0.0)


def normal_again(rows, rng):
    first = rng.normal(len(rows))
    return first, rng.normal(sum(rows) if first > 8.0 else 0.0)


def exact_again(rows, rng):
    first = rng.laplace(len(rows))
    return first, len(rows) * 0.5 + rng.laplace(scale=1.0 if first < 7.0 else 1e-6)


@pytest.mark.parametrize("mechanism", [asks_again, normal_again, exact_again])
def test_calls_that_lose_more_at_other_values(mechanism):
    result = run(mechanism, claim=GaussianDP(1.5) if mechanism is normal_again else 2.0)
    assert result.verdict is OPEN
    assert "at other values of the draws" in str(result)


def test_a_later_question_within_the_claim_stays_bounded():
    def descent(rows, rng):
        found = [0.0]
        for _ in range(3):
            found.append(found[-1] - 0.1 * rng.normal(np.clip(found[-1] - np.array(rows), -1.0, 1.0).sum(), 2.0))
        return found

    assert run(descent, [1.0, 0.0], [1.0, 2.0], GaussianDP(math.sqrt(3.0))).verdict is BOUNDED


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda rows, rng: float(round(sum(rows) + rng.laplace(scale=1e6))) + 0.25 * (9 in rows),
        lambda rows, rng: sum(rows) * 0.1 + round(rng.laplace(scale=1e6)),
        lambda rows, rng: (lambda noise: [1e12 + noise, 1e12 + noise + 1.5 * (9 in rows)])(rng.laplace(scale=10.0)),
    ],
)
def test_rounding_hides_no_difference(mechanism):
    assert run(mechanism).verdict is not BOUNDED


def test_noise_of_single_precision_is_explained():
    result = run(lambda rows, rng: np.float32(len(rows)) + np.float32(rng.laplace()))
    assert result.verdict is BOUNDED
    assert result.loss.worst == pytest.approx(1.0, rel=1e-5)


@noise_primitive("two-sided geometric", location="value", scale=1.0)
def fractions(value):
    return value + np.random.default_rng().laplace()


@noise_primitive("laplace", location="value", scale=1.0)
def not_a_number(value):
    return math.nan


@pytest.mark.parametrize("primitive", [fractions, not_a_number])
def test_values_that_no_draw_of_the_law_has(primitive):
    assert run(lambda rows: primitive(len(rows))).verdict is OPEN


def test_draws_made_again_use_the_arguments_of_their_call():
    def in_a_buffer(rows):
        held = np.array([float(len(rows))])
        found = np.random.default_rng().laplace(held)
        held[0] *= 100.0
        return found

    draws = [run(in_a_buffer).calls[0].draw_on_x() for _ in range(3)]
    assert all(abs(float(each[0]) - len(X)) < 30.0 for each in draws)  # Laplace noise of scale 1: wrong with 3e-13
    state = np.random.get_state()[1].tolist(), np.random.get_state()[2]  # noqa: NPY002
    result = run(lambda rows: own_noise(len(rows)))
    assert (result.verdict, result.loss.epsilon) == (OPEN, 1.0)
    assert "is the one that it states for itself" in str(result)
    assert (np.random.get_state()[1].tolist(), np.random.get_state()[2]) == state  # noqa: NPY002
