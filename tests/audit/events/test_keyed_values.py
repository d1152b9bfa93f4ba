"""Numbers by their keys: rows of lists, lists side by side, sets, and values with a place of their own."""

from __future__ import annotations

import enum
import math
from collections import Counter

import numpy as np
import pytest

from dpaudit.audit.events.leaves import KeyedValues, name_words, named_values
from dpaudit.audit.events.outputs import as_outputs

COLOUR = enum.Enum("Colour", "RED")
ROWS = "(output[…][1] where output[…][0] = {})"
COUNTS = "(output['counts'][…] where output['keys'][…] = {})"
CASES = [
    ([("a", 2.5), ("b", 0.5)], {ROWS.format("'a'"): 2.5, ROWS.format("'b'"): 0.5}),
    ([(3, 0.5), (4, 1)], {ROWS.format("3"): 0.5, ROWS.format("4"): 1.0, "(output[…][0] where output[…][1] = 1)": 4.0}),
    (
        [("x", 7, 0.5)],
        {
            ROWS.format("'x'"): 7.0,
            "(output[…][2] where output[…][0] = 'x')": 0.5,
            "(output[…][2] where output[…][1] = 7)": 0.5,
        },
    ),
    ([{"count": 3.0, "key": "a"}], {"(output[…]['count'] where output[…]['key'] = 'a')": 3.0}),
    (
        [("a", {"count": 2.5})],
        {
            f"({place} where output[…][0] = 'a')": value
            for place, value in (
                ("output[…][1]['count']", 2.5),
                ("len(output[…][1])", 1.0),
            )
        },
    ),
    ([("a", "2.5")], {"(float(output[…][1]) where output[…][0] = 'a')": 2.5}),
    ([(("a", 3), 2.5)], {ROWS.format("('a', 3)"): 2.5}),
    ([(None, 1.0), (COLOUR.RED, 2.0)], {ROWS.format("None"): 1.0, ROWS.format("Colour.RED"): 2.0}),
    (
        [("a", "high")],
        {
            "count of 'a' in output[…][0]": 1.0,
            "count of 'high' in output[…][1]": 1.0,
            "count of ('a', 'high') in output": 1.0,
        },
    ),
    (
        {"keys": ["a", "b"], "counts": [2.0, 1.0], "total": 3.0},
        {COUNTS.format("'a'"): 2.0, COUNTS.format("'b'"): 1.0, "output['total']": 3.0},
    ),
    ({"keys": [5], "counts": [2.5]}, {COUNTS.format("5"): 2.5}),
    (
        (["a", "b"], [2, 1]),
        {
            "(output[1][…] where output[0][…] = 'a')": 2.0,
            "(output[1][…] where output[0][…] = 'b')": 1.0,
        },
    ),
    (["b", "a", "b"], {"count of 'a' in output": 1.0, "count of 'b' in output": 2.0}),
    (
        {"kept": frozenset(["a", np.int64(5)]), "names": ["u", "v"]},
        {
            f"count of {key} in output['{at}']": 1.0
            for at, key in (("kept", "'a'"), ("kept", "5"), ("names", "'u'"), ("names", "'v'"))
        },
    ),
    (frozenset([("a", 1.5)]), {ROWS.format("'a'"): 1.5}),
    (
        [("a", 1.5), ("b", 1.5, 2.5), None],
        {ROWS.format("'a'"): 1.5, ROWS.format("'b'"): 1.5, "(output[…][2] where output[…][0] = 'b')": 2.5},
    ),
    ([("a", 1.5), (0.5, 2.5)], {"output[0][1]": 1.5, "output[1][0]": 0.5, "output[1][1]": 2.5}),
    ([(0.5, 1.5)], {"output[0][0]": 0.5, "output[0][1]": 1.5}),
    ((("a", 1.5), 5.5), {"output[0][1]": 1.5, "output[1]": 5.5}),
    ([], {}),
    ([()], {}),
    ("a", {}),
    (None, {}),
]


@pytest.mark.parametrize(("output", "expected"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_names_and_values(output, expected):
    (read,) = as_outputs([output], 1, "m").tolist()
    found = Counter()
    for name, value in named_values(read):
        found[name_words(name)] += value
    assert found == expected


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


def test_the_order_of_sets_does_not_matter():
    """Tied keys are taken in the order in which they come, which must not depend on the hashes of texts."""
    keys = [f"key{number}" for number in range(50)]
    assert [key for (_, key, _), _ in named_values(frozenset(keys))] == sorted(keys)


def test_equal_keys_of_other_types_are_one_key():
    outputs = as_outputs([[(1, 0.5)], [(True, 1.5)], [(1.0, 2.5)]], 3, "m")
    ((name, _),) = named_values(outputs[0])
    np.testing.assert_array_equal(KeyedValues((name,)).read(outputs), [[0.5, 1.5, 2.5]])
