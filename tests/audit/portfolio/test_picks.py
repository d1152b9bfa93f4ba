"""Picks among thousands of candidates: each kind finds a leak that no column shows, and equal ones have none."""

import datetime
import itertools
import json
import math
from functools import partial

import numpy as np
import pytest

from dpaudit import PureDP
from dpaudit.audit.events.features import Coordinates
from dpaudit.audit.events.leaves import name_words
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import Number
from dpaudit.audit.inference.event_test import Counts, pvalue
from dpaudit.audit.portfolio.choice import choose_event
from dpaudit.audit.portfolio.columns import cuts_of
from dpaudit.audit.portfolio.picks import (
    _of_all_sets,
    _of_triples,
    beyond_chance,
    clear_cases,
    clear_keys,
    clear_pairs,
    clear_parities,
    digit_scores,
)
from dpaudit.audit.records.json_codec import plain_data, read_data

from .chosen_events import chosen, frequencies


def parity(even, size, rng, width, chosen):
    """Normals, of which the product of the chosen ones is positive with probability `even`."""
    values = rng.normal(size=(size, width))
    sign = np.where(rng.random(size) < even, 1.0, -1.0) * np.sign(values[:, chosen]).prod(axis=1)
    values[:, chosen[-1]] *= sign
    return values


def signs(agree, size, rng):
    """Thirty normals, two of which have the same sign with probability `agree`."""
    values = rng.normal(size=(size, 30))
    sign = np.where(rng.random(size) < agree, 1.0, -1.0) * np.sign(values[:, 4])
    values[:, 23] = np.abs(values[:, 23]) * sign
    return values


NONE = np.zeros(200)
ONE = np.where(np.arange(200) == 117, 4.0, 0.0)


def pairs(answers, size, rng, *, key=None):
    """A key drawn evenly, or this one, and its answer with Laplace noise."""
    key = rng.integers(0, len(answers), size) if key is None else np.full(size, key)
    return np.column_stack([key, np.round(answers[key] + rng.laplace(size=size), 6)])


def named_pairs(answers, size, rng, **options):
    drawn = pairs(answers, size, rng, **options).tolist()
    return as_outputs([(f"key{key:.0f}", value) for key, value in drawn], size, "m")


def last_gap(rate, size, rng):
    """Shuffled exponentials, of which the gap between the two largest has this rate."""
    values = np.sort(rng.exponential(size=(size, 8)), axis=1)
    values[:, 7] = values[:, 6] + rng.exponential(1 / rate, size)
    return rng.permuted(values, axis=1)


def middle_gap(least, size, rng):
    """Shuffled numbers with a common offset, whose middle gap has a smallest value."""
    values = np.sort(rng.exponential(size=(size, 6)), axis=1)
    values[:, 3:] += least
    return rng.permuted(values + rng.normal(scale=5.0, size=(size, 1)), axis=1)


RISING = np.repeat([0.5, -0.5], 5)


def parity_of(*chosen, width):
    return lambda even, size, rng: parity(even, size, rng, width, chosen)


@pytest.mark.parametrize(
    ("draw", "x", "y", "epsilon", "pilot", "words", "least"),
    [
        (parity_of(1, 2, 5, 7, 8, width=12), 0.7, 0.3, 0.05, 8_000, "parity of [c", 0.8 * math.log(7 / 3)),
        (parity_of(*range(20), width=20), 0.7, 0.3, 0.05, 8_000, "parity of [coordinate", 0.8 * math.log(7 / 3)),
        (signs, 0.6, 0.4, 0.05, 10_000, "·(coordinate 23 −", 0.9 * math.log(0.6 / 0.4)),
        (pairs, RISING, -RISING, 0.5, 10_000, "coordinate", 0.75),  # without keys, 0.03
        (last_gap, 1.0, 2.0, 0.5, 10_000, "sorted coordinate", 3.0),  # by coordinates and differences, 2.7
        (middle_gap, 0.0, 0.2, 0.5, 10_000, "sorted coordinate", math.inf),  # by coordinates and differences, 0.8
        (named_pairs, NONE, ONE, 1.0, 25_000, "where output[0] = 'key117')", 3.0),  # by the value itself, 0.2
    ],
)
def test_a_leak_that_no_column_shows(draw, x, y, epsilon, pilot, words, least):
    """Products of signs, keys that leak or move in opposite directions, and gaps between neighbours in order."""
    rng = np.random.default_rng(0)
    choice = chosen(draw, x, y, PureDP(epsilon), pilot, rng)
    assert words in str(choice.event)
    assert read_data(plain_data(choice.event)) == choice.event
    fresh, runs = (partial(draw, key=117), 5_000) if y is ONE else (draw, 100_000)
    p, q = frequencies(choice, fresh, x, y, runs, rng)
    assert math.log(p / max(q, 1 / runs)) >= least if least < math.inf else q == 0.0 < p
    if y is ONE:
        assert p > 0.25
        assert choice.event.count(draw(ONE, 1_000, rng, key=116)) == 0


def test_what_fewer_columns_show_is_not_tried_again():
    """Shifted columns and bits that lean, of which single columns and sums tell everything."""
    rng = np.random.default_rng(1)
    for width in (8, 20):
        x, y = (rng.laplace(size=(width, 10_000)) + shift for shift in (0.5, 0.0))
        bits = [(rng.random((width, 10_000)) < p).astype(float) for p in (0.3, 0.5)]
        assert clear_parities(Coordinates(width), x, y) is clear_parities(Coordinates(width), *bits) is None
    assert clear_pairs(Coordinates(20), x, y) is None


def test_equal_distributions_show_nothing():
    rng = np.random.default_rng(2)
    kinds = (rng.standard_cauchy, rng.normal, lambda size: rng.integers(0, 2, size).astype(float))
    for kind, width in itertools.product(kinds, (3, 20)):
        assert clear_parities(Coordinates(width), kind(size=(width, 2_000)), kind(size=(width, 2_000))) is None
    for kind in kinds:
        assert clear_pairs(Coordinates(64), kind(size=(64, 2_000)), kind(size=(64, 2_000))) is None
    found = (clear_cases(Coordinates(2), *(pairs(NONE, 10_000, rng).T for _ in range(2))) for _ in range(6))
    assert sum(map(bool, found)) <= 2  # the largest of 6,000 distances exceeds 4 errors in a sixth of the pilots
    for width, runs in itertools.product((3, 20), (1, 2, 5)):
        values = rng.normal(size=(width, runs))
        assert clear_parities(Coordinates(width), values, values) is None
    assert beyond_chance(6_000) > 4.0


def test_moments_of_all_sets_are_those_of_the_definition():
    bits = np.random.default_rng(3).random((5, 40)) < np.linspace(0.2, 0.8, 5)[:, None]
    signs = np.where(bits, 1.0, -1.0)
    signs -= signs.mean(axis=1, keepdims=True)
    means, squares = _of_all_sets(bits)
    triples, _ = _of_triples(bits)
    for members in itertools.chain.from_iterable(itertools.combinations(range(5), size) for size in range(1, 6)):
        product = signs[list(members)].prod(axis=0)
        place = sum(1 << column for column in members)
        assert means[place] == pytest.approx(product.mean(), abs=1e-12)
        assert squares[place] == pytest.approx((product**2).mean(), abs=1e-12)
        if len(members) == 3:
            assert triples[members] == pytest.approx(product.mean(), abs=1e-6)


# Keys that leak in outputs whose rows come in any order and number.

KEYS, LEAKING = 300, 117


def keyed(leak, size, rng, *, key=None):
    """Eight keys, keyed evenly, with noisy answers; the answer of one key is moved by the leak."""
    keys = rng.integers(0, KEYS, (size, 8))
    if key is not None:
        keys[:, rng.integers(8)] = key
    answers = np.round(rng.laplace(size=(size, 8)) + leak * (keys == LEAKING), 6)
    return [
        [(f"key{k}", a) for k, a in zip(*row, strict=True)] for row in zip(keys.tolist(), answers.tolist(), strict=True)
    ]


FORMS = {
    "pairs": lambda rows: rows,
    "dictionaries": lambda rows: [{"key": key, "count": count} for key, count in rows],
    "side by side": lambda rows: {"keys": [key for key, _ in rows], "counts": [count for _, count in rows]},
    "one dictionary": dict,
    "selected": lambda rows: [key for key, count in rows if count > 2.0],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_leaking_key_differs_most(form):
    rng = np.random.default_rng(0)
    x, y = (as_outputs([FORMS[form](rows) for rows in keyed(leak, 2_000, rng)], 2_000, "m") for leak in (0.0, 4.0))
    first, *others = map(name_words, clear_keys(x, y))
    assert f"'key{LEAKING}'" in first
    assert len(others) <= 1


def test_events_of_that_key():
    rng = np.random.default_rng(0)

    def outputs(leak, size, rng, key=LEAKING):
        return as_outputs(keyed(leak, size, rng, key=key), size, "m")

    choice = chosen(partial(outputs, key=None), 0.0, 4.0, PureDP(0.5), 3_000, rng, 100_000)
    assert f"(output[…][1] where output[…][0] = 'key{LEAKING}')" in str(choice.event)
    assert read_data(plain_data(choice.event)) == choice.event
    # The loss of this key is 4; no place of the output tells more than e^0.1.
    p, q = frequencies(choice, outputs, 0.0, 4.0, 500, rng)
    assert math.log(p / max(q, 1 / 500)) > 2.0
    assert choice.event.count(outputs(4.0, 500, rng, key=LEAKING - 1)) < 0.1 * 500


# How a number, a text or a date is written, which values barely show; variants without the leak show none.


def odd_numbers(often, size, rng):
    return 2 * rng.integers(0, 10**9, size=size) + (rng.random(size) < often)


def modulo_nine(often, size, rng):
    number = rng.integers(10**7, 10**8, size=size)
    return number - number % 9 + np.where(rng.random(size) < often, 0, rng.integers(1, 9, size=size))


def last_decimal(often, size, rng):
    digit = np.where(rng.random(size) < often, 7, rng.integers(0, 10, size=size))
    return (np.floor(1e4 * rng.laplace(size=size)) / 100 + digit / 1_000).round(3)


def equal_coordinates(often, size, rng):
    vectors = rng.laplace(size=(size, 4))
    vectors[:, 3] = np.where(rng.random(size) < often, -vectors[:, 1], vectors[:, 3])
    return vectors


def optional_field(often, rng):
    counts = {"sum": round(1_000 + rng.laplace(scale=50.0), 3), "n": int(rng.integers(80, 120))}
    return json.dumps(counts | ({"retries": 1} if rng.random() < often else {}))


def midnight(often, rng):
    day = datetime.datetime(2024, 1, 1)
    return day if rng.random() < often else day + datetime.timedelta(seconds=float(86_400 * rng.random()))


def rounded(noise, digits, often, rng):
    return np.where(rng.random(len(noise)) < often, noise.round(digits), noise)


NUMBERS = {
    "parity": odd_numbers,
    "modulo nine": modulo_nine,
    "fractional part": lambda often, size, rng: (
        rng.integers(-1_000, 1_000, size) + 0.5 * (rng.random(size) + (rng.random(size) >= often))
    ),
    "rounded": lambda often, size, rng: rounded(rng.laplace(size=size), 6, often, rng),
    "rounded to thousands": lambda often, size, rng: rounded(rng.integers(10**9, 10**10, size=size), -3, often, rng),
    "parity beyond the doubles": lambda often, size, rng: 2**60 + odd_numbers(often, size, rng),
    "last decimal": last_decimal,
    "equal coordinates": equal_coordinates,
}
TEXTS = {
    "parity in a tuple": lambda often, rng: ("id", 2**70 + int(odd_numbers(often, 1, rng)[0])),
    "optional field": optional_field,
    "word": lambda often, rng: f"The age is {'about' if rng.random() < often else 'near'} {40.0 + rng.laplace():.6f}.",
    "trailing space": lambda often, rng: f"n={100.0 + rng.laplace():.6f}" + " " * (rng.random() < often),
    "prefix": lambda often, rng: "00" * (rng.random() < often) + rng.bytes(8).hex(),
    "number in a sentence": lambda often, rng: (
        f"Of {rng.integers(10**6)} people, {rng.laplace() + 20.0 * (rng.random() < often):.6f} say yes."
    ),
    "first byte": lambda often, rng: bytes([255 if rng.random() < often else rng.integers(250)]) + rng.bytes(8),
    "midnight": midnight,
}
WORDS = (
    "modulo", "fractional part", "decimals", "zeros at the end", "different sizes",
    "count of '", "template (", "start of", "end of", "2nd number in", "character in", "length of",
    "output = datetime.date(2024, 1, 1)",
)  # fmt: skip


def outputs_of(name, often, size, rng):
    if name in NUMBERS:
        return NUMBERS[name](often, size, rng)
    return as_outputs([TEXTS[name](often, rng) for _ in range(size)], size, "m")


@pytest.mark.parametrize("name", NUMBERS | TEXTS)
def test_a_leak_is_found_and_its_variant_shows_nothing(name):
    """Fresh runs refute 1-DP by the event of a pilot; without the leak, they do not refute 0-DP."""
    for often, claim, alpha in ((0.6, PureDP(1.0), 1e-6), (0.03, PureDP(0.0), 1e-7)):
        rng = np.random.default_rng(1)
        (pilot_x, x), (pilot_y, y) = ([outputs_of(name, p, 600, rng) for _ in range(2)] for p in (often, 0.03))
        choice, _ = choose_event(cuts_of(pilot_x, pilot_y), claim, 600, alpha)
        counts = Counts(count_x=choice.event.count(x), runs_x=600, count_y=choice.event.count(y), runs_y=600)
        found = pvalue(counts if choice.more_likely_on == "x" else counts.swapped(), claim, alpha=alpha)
        assert (found <= alpha) is (often == 0.6)
        assert often == 0.03 or any(each in str(choice.event) for each in WORDS)


def test_other_numbers_have_no_such_columns():
    """No number, few numbers, numbers beyond whole doubles, no runs."""
    for values in (np.full(1_000, np.nan), np.arange(1_000) % 7, 1e300 * np.arange(1.0, 1_001.0), np.zeros(0)):
        both = values.astype(float), values[::-1].astype(float)
        assert list(digit_scores(Number(), *both, len(values) // 2)) == []
