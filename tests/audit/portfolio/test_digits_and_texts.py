"""Leaks in how a number, a text or a date is written, which values hardly show; twins without the leak show none."""

import datetime
import json

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.events.scores import Number
from dpaudit.audit.inference.boundary_test import Counts, p_value
from dpaudit.audit.portfolio.choice import choose_event
from dpaudit.audit.portfolio.columns import cuts_of
from dpaudit.audit.portfolio.picks import digit_scores


def parity(often, size, rng):
    return 2 * rng.integers(0, 10**9, size=size) + (rng.random(size) < often)


def modulo_nine(often, size, rng):
    number = rng.integers(10**7, 10**8, size=size)
    return number - number % 9 + np.where(rng.random(size) < often, 0, rng.integers(1, 9, size=size))


def fractional_part(often, size, rng):
    part = 0.5 * rng.random(size)
    return rng.integers(-1_000, 1_000, size=size) + np.where(rng.random(size) < often, part, 0.5 + part)


def rounded(noise, digits, often, rng):
    return np.where(rng.random(len(noise)) < often, noise.round(digits), noise)


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


def word(often, rng):
    near = "about" if rng.random() < often else "near"
    return f"The mean age is {near} {40.0 + rng.laplace():.6f}."


def number_in_a_sentence(often, rng):
    return f"Of {rng.integers(10**6)} people, {rng.laplace() + (20.0 if rng.random() < often else 0.0):.6f} say yes."


def midnight(often, rng):
    day = datetime.datetime(2024, 1, 1)
    return day if rng.random() < often else day + datetime.timedelta(seconds=float(86_400 * rng.random()))


NUMBERS = {
    "parity": parity,
    "modulo nine": modulo_nine,
    "fractional part": fractional_part,
    "rounded": lambda often, size, rng: rounded(rng.laplace(size=size), 6, often, rng),
    "rounded to thousands": lambda often, size, rng: rounded(rng.integers(10**9, 10**10, size=size), -3, often, rng),
    "parity of a coordinate": lambda p, size, rng: np.stack([rng.normal(size=size), parity(p, size, rng)], axis=1),
    "parity beyond the doubles": lambda often, size, rng: 2**60 + parity(often, size, rng),
    "last decimal": last_decimal,
    "equal coordinates": equal_coordinates,
}
TEXTS = {
    "parity in a tuple": lambda often, rng: ("id", 2**70 + int(parity(often, 1, rng)[0])),
    "optional field": optional_field,
    "word": word,
    "trailing space": lambda often, rng: f"n={100.0 + rng.laplace():.6f}" + " " * (rng.random() < often),
    "prefix": lambda often, rng: "00" * (rng.random() < often) + rng.bytes(8).hex(),
    "number in a sentence": number_in_a_sentence,
    "first byte": lambda often, rng: bytes([255 if rng.random() < often else rng.integers(250)]) + rng.bytes(8),
    "midnight": midnight,
    "word beside a number": lambda often, rng: (rng.laplace(), word(often, rng)),
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
def test_a_leak_is_found_and_its_twin_shows_nothing(name):
    """Fresh runs refute 1-DP by the event of a pilot; without the leak, they do not refute 0-DP."""
    for often, claim, alpha in ((0.6, PureDP(1.0), 1e-6), (0.03, PureDP(0.0), 1e-7)):
        rng = np.random.default_rng(1)
        (pilot_x, x), (pilot_y, y) = ([outputs_of(name, p, 600, rng) for _ in range(2)] for p in (often, 0.03))
        choice, _ = choose_event(cuts_of(pilot_x, pilot_y), claim, 600, alpha)
        counts = Counts(hits_x=choice.event.count(x), runs_x=600, hits_y=choice.event.count(y), runs_y=600)
        found = p_value(counts if choice.likelier_on == "x" else counts.swapped(), claim, alpha=alpha)
        assert (found <= alpha) is (often == 0.6)
        assert often == 0.03 or any(each in str(choice.event) for each in WORDS)


@pytest.mark.usefixtures("learned_seldom")
@pytest.mark.parametrize("name", ["parity", "optional field"])
def test_it_is_found_by_sequential_audits(name):
    def leak(dataset, size, rng):
        return list(outputs_of(name, 0.6 if dataset else 0.03, size, rng))

    result = check(leak, 0, 1, claim=PureDP(1.0), runs=1_200, alpha=1e-6, seed=1, jobs=1, sequential=True)
    assert result.is_refuted
    assert any(each in result.event_in_words for each in WORDS)


@pytest.mark.parametrize(
    "values", [np.full(1_000, np.nan), np.arange(1_000) % 7, 1e300 * np.arange(1.0, 1_001.0), np.zeros(0)], ids=len
)
def test_other_numbers_have_no_such_columns(values):
    """No number, few numbers, numbers beyond whole doubles, no runs."""
    both = values.astype(float), values[::-1].astype(float)
    assert list(digit_scores(Number(), *both, len(values) // 2)) == []
