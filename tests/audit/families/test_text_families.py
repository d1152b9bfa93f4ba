"""Leaks in texts, bytes and dates that never recur; twins without the leak are not refuted."""

import datetime
import json

import pytest

from dpaudit import PureDP, Verdict, check

OFTEN, SELDOM = 0.6, 0.03


def optional_field(often, rng):
    counts = {"sum": round(1_000 + rng.laplace(scale=50.0), 3), "n": int(rng.integers(80, 120))}
    return json.dumps(counts | ({"retries": 1} if rng.random() < often else {}))


def word(often, rng):
    near = "about" if rng.random() < often else "near"
    return f"The mean age is {near} {40.0 + rng.laplace():.6f}."


def trailing_space(often, rng):
    return f"n={100.0 + rng.laplace():.6f}" + " " * (rng.random() < often)


def prefix(often, rng):
    return "00" * (rng.random() < often) + rng.bytes(8).hex()


def number_in_a_sentence(often, rng):
    return f"Of {rng.integers(10**6)} people, {rng.laplace() + (20.0 if rng.random() < often else 0.0):.6f} say yes."


def first_byte(often, rng):
    return bytes([255 if rng.random() < often else int(rng.integers(250))]) + rng.bytes(8)


def midnight(often, rng):
    day = datetime.datetime(2024, 1, 1)
    return day if rng.random() < often else day + datetime.timedelta(seconds=float(86_400 * rng.random()))


def word_beside_a_number(often, rng):
    return rng.laplace(), word(often, rng)


LEAKS = [
    optional_field, word, trailing_space, prefix, number_in_a_sentence, first_byte, midnight, word_beside_a_number,
]  # fmt: skip
PARTS = ("count of '", "template (", "start of", "end of", "2nd number in", "character in", "length of")


def audited(draw, *, often, runs, epsilon=1.0, **options):
    def mechanism(dataset, rng):
        return draw(often if dataset else SELDOM, rng)

    return check(mechanism, 0, 1, claim=PureDP(epsilon), runs=runs, alpha=1e-6, seed=1, jobs=1, **options)


@pytest.mark.usefixtures("without_resolution", "learned_seldom", "without_trees")
@pytest.mark.parametrize(("draw", "sequential"), [*((draw, False) for draw in LEAKS), (optional_field, True)])
def test_it_is_found(draw, sequential):
    result = audited(draw, often=OFTEN, runs=1_200, sequential=sequential)
    assert result.is_refuted
    assert any(part in result.event_in_words for part in PARTS)


@pytest.mark.usefixtures("without_resolution", "without_trees")
@pytest.mark.parametrize("draw", LEAKS)
def test_its_twin_shows_nothing(draw):
    assert audited(draw, often=SELDOM, runs=400, epsilon=0.0).verdict is not Verdict.REFUTED
