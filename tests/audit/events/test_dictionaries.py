"""Dictionaries as outputs: equality, columns, events by a key, and audits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.events import Outcomes
from dpaudit.audit.events.leaves import learn_leaves
from dpaudit.audit.events.named_parts import Dictionary
from dpaudit.audit.events.outcome_text import outcome_text
from dpaudit.audit.events.outputs import as_outputs, outcome_key, outcome_words, tally
from dpaudit.audit.records.json_codec import plain_data, read_data


def outputs_of(*values):
    return as_outputs(list(values), len(values), "m")


def test_equal_dictionaries_are_equal_outputs():
    outputs = outputs_of({"a": 1, "b": [2, 3]}, {"b": (2, 3), "a": 1.0}, {"a": 1}, {2: 0, 1.0: 0}, {True: 0, 2.0: 0})
    counts, names = tally(outputs)
    assert sorted(counts.values()) == [1, 2, 2]
    assert {outcome_words(value) for value in names.values()} == {"{'a': 1, 'b': (2, 3)}", "{'a': 1}", "{1: 0, 2: 0}"}
    assert Outcomes((outputs[0],)).contains(outputs).tolist() == [True, True, False, False, False]
    assert outcome_text(outputs[2]) == outcome_text(outputs_of({"a": 1})[0])


def test_nan_is_a_value_like_any_other():
    first, second = outputs_of({"a": math.nan}, {"a": float("nan")})
    assert outcome_key(first) == outcome_key(second)


def test_they_are_stored():
    value = Dictionary.of([("b", (1, None)), ("a", 0.5)])
    assert read_data(plain_data(value)) == value


def test_a_value_that_cannot_be_compared_is_refused_inside_too():
    with pytest.raises(MechanismError, match="cannot be compared"):
        outputs_of({"a": bytearray(b"a")})


def test_columns_are_the_values_of_keys_and_the_size():
    outputs = outputs_of({"a": 1.0, "b": "x"}, {"a": 2.0}, {"c": {"d": 3}, "a": 5.0}, (7, {"a": 1}), "none")
    leaves = learn_leaves(outputs, outputs)
    read = dict(zip(leaves.names, leaves.read(outputs), strict=True))
    np.testing.assert_array_equal(read["output['a']"], [1.0, 2.0, 5.0, np.nan, np.nan])
    np.testing.assert_array_equal(read["output['c']['d']"], [np.nan, np.nan, 3.0, np.nan, np.nan])
    np.testing.assert_array_equal(read["len(output)"], [2.0, 1.0, 2.0, np.nan, np.nan])
    np.testing.assert_array_equal(read["len(output[1])"], [np.nan, np.nan, np.nan, 1.0, np.nan])
    assert np.isfinite(read["output['b']"]).tolist() == [True, False, False, False, False]


def counts(histogram, rng):
    """Noisy counts; a key without rows is left out, which its absence tells."""
    return {key: count + rng.laplace() for key, count in histogram.items() if count > 0}


def noisy_counts(histogram, rng):
    return {key: count + rng.laplace() for key, count in histogram.items()}


X, Y = {"cats": 5, "dogs": 1, "owls": 9}, {"cats": 5, "dogs": 0, "owls": 9}


@pytest.mark.usefixtures("without_resolution")
def test_a_key_that_is_left_out():
    result = check(counts, X, Y, claim=PureDP(1.0), runs=2_000, alpha=1e-6, jobs=1)
    assert result.is_refuted
    assert "dogs" in result.event_in_words or "len(output)" in result.event_in_words


@pytest.mark.usefixtures("without_resolution")
def test_a_value_that_moves_too_far():
    result = check(noisy_counts, X, {**X, "dogs": 3}, claim=PureDP(1.0), runs=3_000, alpha=1e-6, jobs=1)
    assert result.is_refuted
    assert "dogs" in result.event_in_words


def test_a_right_histogram_is_not_refuted():
    result = check(noisy_counts, X, Y, claim=PureDP(1.0), runs=3_000, alpha=1e-6, bits=False, jobs=1)
    assert result.verdict is not Verdict.REFUTED
