"""What a stated law must be, and how a replay names it."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import Law, ReplayVerdict, noise_primitive, replay
from dpaudit.audit.errors import OptionError
from dpaudit.mechanisms.adapters.accounting import pld_from_replay

RNG = np.random.default_rng(7)


@pytest.mark.parametrize(
    ("law", "says"),
    [
        (Law("normal", {"location": 0.0, "sigma": 1.0}), "has the parameters location, scale, not location, sigma"),
        ("normal", "is 'normal', not a Law"),
    ],
)
def test_a_law_function_is_told_what_it_returned(law, says):
    noise = noise_primitive(lambda value: law)(lambda value: value + RNG.normal())
    with pytest.raises(OptionError, match=says):
        replay(lambda rows: noise(len(rows)), [1, 1], [1], claim=1.0)


def test_other_names_of_laws_are_known():
    with pytest.raises(OptionError, match="its name here is 'normal'"):
        noise_primitive("Gaussian", location="value", scale="scale")


def test_only_the_result_of_a_replay_is_composed():
    with pytest.raises(OptionError, match="3 is not the result of a replay"):
        pld_from_replay(3)


def test_the_reason_in_the_sentence_is_not_repeated():
    found = replay(lambda rows: len(rows) + sum(np.random.default_rng().laplace(size=2)), [1, 1], [1], claim=1.0)
    assert found.verdict is ReplayVerdict.OPEN
    assert str(found).count(found.open_reasons[0]) == 1
