"""Answers of every kind as numbers, and exact changes between them."""

from __future__ import annotations

import collections
import dataclasses
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpaudit.audit.errors import DatasetError
from dpaudit.audit.sensitivity.query_answer import answer_of, answer_text, change_between, norm_of

Summary = dataclasses.make_dataclass("Summary", ["mean", "counts"])
Row = collections.namedtuple("Row", "mean count")


def change(x, y, norm="l1"):
    return change_between(answer_of(x), answer_of(y), norm)


@pytest.mark.parametrize(
    ("x", "y", "l1", "l2", "linf"),
    [
        pytest.param(3, 1, 2, 2, 2, id="int"),
        pytest.param(True, False, 1, 1, 1, id="bool"),
        pytest.param([0.0, 0.0], [3.0, -4.0], 7, 5, 4, id="list"),
        pytest.param(np.zeros((2, 2)), np.array([[3.0, 0.0], [0.0, -4.0]]), 7, 5, 4, id="matrix"),
        pytest.param((1, [2, 3]), (1, [5, 7]), 7, 5, 4, id="tuple of parts"),
        pytest.param({"a": 3, "b": 4}, {}, 7, 5, 4, id="missing keys"),
        pytest.param({"a": {"b": [3.0, 4.0]}}, {"a": {"b": [0.0, 0.0]}}, 7, 5, 4, id="nested"),
        pytest.param(collections.Counter("aab"), collections.Counter("abc"), 2, math.sqrt(2), 1, id="counter"),
        pytest.param(Summary(1.0, [2, 3]), Summary(1.0, [5, 7]), 7, 5, 4, id="dataclass"),
        pytest.param(Row(3, 4), Row(0, 0), 7, 5, 4, id="named tuple"),
        pytest.param(
            pd.Series(list("aab")).value_counts(), pd.Series(list("abc")).value_counts(), 2, 2**0.5, 1, id="column"
        ),
        pytest.param(pd.Series([3.0, 0.0]), pd.Series([0.0, 4.0]), 7, 5, 4, id="column without labels"),
        pytest.param(pd.DataFrame({"n": [3.0]}), pd.DataFrame({"n": [0.0, 4.0]}), 7, 5, 4, id="frame with a new row"),
        pytest.param(Decimal("0.5"), Fraction(1, 4), 0.25, 0.25, 0.25, id="decimal and fraction"),
        pytest.param([2**60, 2**60], [2**60 - 3, 2**60 + 4], 7, 5, 4, id="beyond doubles"),
        pytest.param(np.uint64(2**64 - 1), np.uint64(0), 2**64 - 1, 2**64 - 1, 2**64 - 1, id="unsigned"),
        pytest.param(np.int8(127), np.int8(-128), 255, 255, 255, id="int8"),
        pytest.param([1e200, 1e200], [0.0, 0.0], 2e200, 1e200 * math.sqrt(2), 1e200, id="squares too large"),
        pytest.param([], [], 0, 0, 0, id="nothing"),
    ],
)
def test_changes_by_hand(x, y, l1, l2, linf):
    for norm, expected in (("l1", l1), ("l2", l2), ("linf", linf)):
        assert change(x, y, norm).size == pytest.approx(expected, rel=1e-14)
        assert change(y, x, norm).size == pytest.approx(expected, rel=1e-14)
        assert change(x, x, norm).size == 0.0


def test_large_whole_numbers_are_exact():
    assert change(2**60, 2**60 + 1).size == 1.0
    assert change(np.array([2**60]), np.array([2**60 + 1])).size == 1.0
    assert change({"a": 10**30 + 1, "b": 0.5}, {"a": 10**30, "b": 0.0}).size == 1.5


def test_what_has_no_bound_says_why():
    for x, y, reason in (
        (math.nan, 1.0, "nan on x, 1.0 on y"),
        ([1.0, math.inf], [1.0, 2.0], "inf on x, 2.0 on y"),
        (math.inf, -math.inf, "inf on x, -inf on y"),
        ([1, 2], [1, 2, 3], "shape (2,) on x, (3,) on y"),
        ({"a": [1, 2]}, {"a": [1]}, "shape (2,) on x, (1,) on y (a)"),
        ((1, [2, 3]), (1, [2, 3], [4, 5]), "2 parts on x, 3 on y"),
        ([2**60, 1], [2.5, math.nan], "1 on x, nan on y"),
    ):
        found = change(x, y)
        assert (found.size, found.reason) == (math.inf, reason)


def test_equal_numbers_that_are_not_finite_do_not_change():
    assert change([math.nan, 1.0, math.inf], [math.nan, 3.0, math.inf]).size == 2.0
    assert not answer_of([math.nan]).is_finite
    assert answer_of([10**400]).is_finite
    assert norm_of(answer_of([math.nan, 3.0, 4.0]), "l2") == 5.0


def test_missing_parts_are_named():
    found = change({"a": 1, "b": {"c": 2}}, {"a": 1, "d": 4})
    assert (found.only_x, found.only_y, found.size) == (("b.c",), ("d",), 6.0)
    one, other = (pd.DataFrame({"n": [1.0, 2.0][:rows]}, index=["u", "v"][:rows]) for rows in (2, 1))
    assert change(one, other).only_x == ("n.v",)
    assert change({math.nan: 1}, {float("nan"): 1}).size == 0.0


@pytest.mark.parametrize("output", [None, "text", 1j, [None, 1], {"a": "b"}, [[1], "b"], np.array(["1"])], ids=repr)
def test_other_outputs_are_refused(output):
    with pytest.raises(DatasetError, match="not made of numbers"):
        answer_of(output)


def test_answers_as_text():
    assert answer_text(answer_of(1.5)) == "1.5"
    assert answer_text(answer_of({"a": 1, "b": [2.5, 3.5]})) == "{'a': 1.0, 'b': [2.5, 3.5]}"
