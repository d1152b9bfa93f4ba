"""Numbers by their keys: rows of lists, lists side by side, sets, and values with a place of their own."""

from __future__ import annotations

import enum
import math

import numpy as np
import pytest

from dpaudit.audit.events.keyed_values import KeyedValues, name_words, named_values
from dpaudit.audit.events.outputs import as_outputs

COLOUR = enum.Enum("Colour", "RED")
ROWS = "(output[…][1] where output[…][0] = {})"
CASES = [
    ([("a", 2.5), ("b", 0.5)], {ROWS.format("'a'"): 2.5, ROWS.format("'b'"): 0.5}),
    ([(7, "x", 0.5)], {"(output[…][0] where output[…][1] = 'x')": 7.0, "(output[…][2] where output[…][1] = 'x')": 0.5}),
    ([(7, 0.5), (8, 1)], {ROWS.format("7"): 0.5, ROWS.format("8"): 1.0}),
    ([{"count": 3, "key": "a"}], {"(output[…]['count'] where output[…]['key'] = 'a')": 3.0}),
    (
        {"keys": ["a", "b"], "counts": [2.0, 1.0], "total": 3.0},
        {
            "(output['counts'][…] where output['keys'][…] = 'a')": 2.0,
            "(output['counts'][…] where output['keys'][…] = 'b')": 1.0,
            "count of 'a' in output['keys']": 1.0,
            "count of 'b' in output['keys']": 1.0,
            "output['counts'][0]": 2.0,
            "output['counts'][1]": 1.0,
            "output['total']": 3.0,
        },
    ),
    (["b", "a", "b"], {"count of 'a' in output": 1.0, "count of 'b' in output": 2.0}),
    ({"kept": frozenset(["a", 5])}, {"count of 'a' in output['kept']": 1.0, "count of 5 in output['kept']": 1.0}),
    ([("a", 1.0), ("b", 1.0, 2.0)], {"output[0][1]": 1.0, "output[1][1]": 1.0, "output[1][2]": 2.0}),
    ([(None, 1.0), (COLOUR.RED, 2.0)], {ROWS.format("None"): 1.0, ROWS.format("Colour.RED"): 2.0}),
    ([("a", 1.0), (0.5, 2.0)], {"output[0][1]": 1.0, "output[1][0]": 0.5, "output[1][1]": 2.0}),
    ([(0.5, 1.0)], {"output[0][0]": 0.5, "output[0][1]": 1.0}),
    ([], {}),
    ([()], {}),
    ("a", {}),
    (None, {}),
]


@pytest.mark.parametrize(("output", "expected"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_names_and_values(output, expected):
    (read,) = as_outputs([output], 1, "m").tolist()
    assert {name_words(name): value for name, value in named_values(read)} == expected


def test_columns_of_chosen_keys():
    outputs = as_outputs([[("a", 1.0), ("b", 2.0), ("a", 3.0)], [], "no rows", [("b", math.nan)], ["a", "a"]], 5, "m")
    (a, _), (b, _) = list(named_values(outputs[0]))[:2]
    (counted, _), *_ = named_values(outputs[4])
    columns = KeyedValues((a, b, counted))
    nan = np.nan
    np.testing.assert_array_equal(
        columns.read(outputs),
        [[3.0, nan, nan, nan, nan], [2.0, nan, nan, nan, nan], [0.0, 0.0, 0.0, 0.0, 2.0]],
    )
    assert columns.names == (ROWS.format("'a'"), ROWS.format("'b'"), "count of 'a' in output")
    assert columns.codes(0) is None


def test_equal_keys_of_other_types_are_one_key():
    outputs = as_outputs([[(1, 0.5)], [(True, 1.5)], [(np.int64(1), 2.5)]], 3, "m")
    ((name, _),) = named_values(outputs[0])
    np.testing.assert_array_equal(KeyedValues((name,)).read(outputs), [[0.5, 1.5, 2.5]])
