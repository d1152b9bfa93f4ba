"""A value that leaks where its key is one of hundreds, and keys that leak in opposite directions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.distinguishers.event_choice import choose_event
from dpaudit.audit.events.features import Conditional, Coordinates
from dpaudit.audit.events.leaves import learn_leaves
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.families.key_families import key_families
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.records.json_codec import plain_data, read_data

NONE = np.zeros(200)
ONE = np.where(np.arange(200) == 117, 4.0, 0.0)


def pairs(answers, size, rng, *, key=None):
    """A key drawn evenly, or this one, and its answer with Laplace noise."""
    key = rng.integers(0, len(answers), size) if key is None else np.full(size, key)
    return np.column_stack([key, np.round(answers[key] + rng.laplace(size=size), 6)])


def named_pairs(answers, size, rng, **options):
    drawn = pairs(answers, size, rng, **options).tolist()
    return as_outputs([(f"key{key:.0f}", value) for key, value in drawn], size, "m")


@pytest.mark.usefixtures("without_trees")
@pytest.mark.parametrize(("draw", "words"), [(pairs, "coordinate 0 = 117"), (named_pairs, "output[0] = 'key117'")])
def test_one_key_among_two_hundred(draw, words):
    rng = np.random.default_rng(0)
    split = PilotSplit.in_half(draw(NONE, 25_000, rng), draw(ONE, 25_000, rng))
    choice = choose_event(split, PureDP(1.0), 1_000_000, 0.05)
    assert f"where {words})" in str(choice.event)
    assert read_data(plain_data(choice.event)) == choice.event
    # Below 0 the ratio is e⁴; the value's own half-lines reach e^0.2.
    hits_x, hits_y = (choice.event.count(draw(data, 5_000, rng, key=117)) for data in (NONE, ONE))
    more, fewer = (hits_x, hits_y) if choice.likelier_on == "x" else (hits_y, hits_x)
    assert more > 1_250
    assert math.log(more / max(fewer, 1)) > 3.0
    assert choice.event.count(draw(ONE, 1_000, rng, key=116)) == 0


def test_keys_that_move_in_opposite_directions():
    """Ten keys, half of which rise and half of which fall: keys and values have the same law on both datasets."""
    answers = np.repeat([0.5, -0.5], 5)
    rng = np.random.default_rng(0)
    split = PilotSplit.in_half(pairs(answers, 10_000, rng), pairs(-answers, 10_000, rng))
    choice = choose_event(split, PureDP(0.5), 400_000, 0.05)
    hits = [choice.event.count(pairs(data, 100_000, rng)) for data in (answers, -answers)]
    assert abs(math.log(hits[0] / hits[1])) > 0.75  # without keys, 0.03
    learned = split.map(Coordinates(2).read)
    names = [str(family.build(0, True)) for family in key_families(Coordinates(2), learned) if family.is_learned]
    assert "… 10 in all" in names[-1]  # and all keys together


def test_a_right_mechanism_has_no_such_events_and_is_not_refuted():
    result = check(pairs, NONE, NONE.copy(), claim=PureDP(0.05), runs=60_000, alpha=1e-8, jobs=1)
    assert result.verdict is not Verdict.REFUTED
    rng = np.random.default_rng(1)
    columns = Coordinates(2)
    found = 0
    for _ in range(20):
        split = PilotSplit.in_half(pairs(NONE, 20_000, rng), pairs(NONE, 20_000, rng)).map(columns.read)
        found += any(True for _ in key_families(columns, split))
    assert found <= 6  # the largest of 6,000 distances exceeds 4 standard errors in a sixth of the pilots


def test_columns_where_another_has_a_value():
    leaves = learn_leaves(*[as_outputs([("a", 1.0), ("b", 2.0), ("a", 3.0)], 3, "m")] * 2)
    read, key = 1, leaves.names.index("output[0]")
    columns = Conditional(leaves, ((key, float(leaves.coded[0][1].index("b")), read), (key, -1.0, read)))
    assert columns.names == ("(output[1] where output[0] = 'b')", "(output[1] where output[0] = anything else)")
    outputs = as_outputs([("b", 5.0), ("a", 6.0), ("c", 7.0), "b"], 4, "m")
    np.testing.assert_array_equal(columns.read(outputs), [[5.0, np.nan, np.nan, np.nan], [np.nan, np.nan, 7.0, np.nan]])
