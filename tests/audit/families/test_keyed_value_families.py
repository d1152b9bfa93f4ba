"""A key that leaks among hundreds, in outputs whose rows come in any order and number."""

from __future__ import annotations

import math
from operator import itemgetter

import numpy as np
import pytest

from dpaudit.audit.events.leaves import name_words
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.families.keyed_value_families import clear_keys, keyed_value_families
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.records.json_codec import plain_data, read_data

KEYS, LEAKING = 300, 117


def drawn(leak, size, rng, *, key=None):
    """Eight keys, drawn evenly, with noisy answers; the answer of one key is moved by the leak."""
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
    x, y = (as_outputs([FORMS[form](rows) for rows in drawn(leak, 2_000, rng)], 2_000, "m") for leak in (0.0, 4.0))
    first, *others = map(name_words, clear_keys(x, y))
    assert f"'key{LEAKING}'" in first
    assert len(others) <= 1


def test_events_of_that_key():
    rng = np.random.default_rng(0)

    def outputs(leak, size, **options):
        return as_outputs(drawn(leak, size, rng, **options), size, "m")

    families = keyed_value_families(PilotSplit.in_half(outputs(0.0, 3_000), outputs(4.0, 3_000)))
    ratio, event = max(
        (
            (float(ratios.max()), family.build(int(np.argmax(ratios)), True))
            for family in families
            for ratios in [np.where(family.hits_y >= 15, (family.hits_y + 1) / (family.hits_x + 1), 0.0)]
        ),
        key=itemgetter(0),
    )
    assert ratio > 10.0
    assert f"(output[…][1] where output[…][0] = 'key{LEAKING}')" in str(event)
    assert read_data(plain_data(event)) == event
    # The loss of this key is 4; no place of the output tells more than e^0.1.
    fewer, more = (event.count(outputs(leak, 2_000, key=LEAKING)) for leak in (0.0, 4.0))
    assert math.log(more / max(fewer, 1)) > 2.0
    assert event.count(outputs(4.0, 1_000, key=LEAKING - 1)) < 0.1 * 1_000


def test_equal_datasets_have_hardly_any_such_keys():
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(4):
        x, y = (as_outputs(drawn(0.0, 1_000, rng), 1_000, "m") for _ in range(2))
        found += len(clear_keys(x, y))
    assert found <= 2  # of 1,200 keys


def test_outputs_with_too_many_numbers_are_not_read_by_key():
    outputs = as_outputs([[(key, float(value)) for key in range(3_000)] for value in range(4)], 4, "m")
    assert clear_keys(outputs[:2], outputs[2:]) == []


def test_outputs_without_keys_are_left_to_other_families():
    outputs = as_outputs([(0.5, None), (1.5, None)] * 50, 100, "m")
    assert list(keyed_value_families(PilotSplit.in_half(outputs, outputs))) == []
