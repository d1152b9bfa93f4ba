"""Outputs that are equal but written differently are equal outcomes, and outputs that differ little are not."""

import functools
import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from dpaudit import PureDP, check, load, save
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.outputs import are_equal
from dpaudit.audit.sampling.draw import plan_blocks
from dpaudit.audit.sampling.sampler import as_sampler


class Named:
    """Compares by its number and prints its origin too."""

    def __init__(self, number, origin):
        self.number, self.origin = number, origin

    def __eq__(self, other):
        return isinstance(other, Named) and self.number == other.number

    def __hash__(self):
        return hash(self.number)

    def __repr__(self):
        return f"Named({self.number}, {self.origin})"


def are_alike(mechanism, x, y):
    """Whether runs on x and on y have equal outcomes from the same random numbers."""
    plan = replace(plan_blocks(as_sampler(mechanism), x, y, 0, 1), is_coupled=True)
    return are_equal(*(plan.draw("main", side, 0, 40) for side in "xy"))


def small(rng):
    return int(rng.integers(3))


def sums(groups, rng):
    return [sum(group) for group in groups][: int(rng.integers(1, 3))]


def histogram(rows, rng):
    found = {}
    for row in rows:
        found[np.round(row)] = found.get(np.round(row), 0) + 1
    noisy = {key: int(count + rng.geometric(0.6) - rng.geometric(0.6)) for key, count in found.items()}
    return {key: count for key, count in noisy.items() if count > 0}


@pytest.mark.parametrize(
    ("mechanism", "x", "y"),
    [
        (lambda value, rng: [value, small(rng), "t"], 1, 1.0),
        (lambda value, rng: [value, small(rng), "t"], Decimal("1.00"), True),
        (lambda value, rng: [value, small(rng), "t"], 2**60, 2.0**60),
        (lambda value, rng: {"v": value, "n": small(rng)}, {1, "s"}, frozenset({1.0, "s"})),
        (lambda value, rng: {value: small(rng), "zz": "t"}, Named(1, "x"), Named(1, "y")),
        (lambda kind, rng: kind({"a": max(small(rng) - 1, 0), "b": 1}), Counter, lambda d: +Counter(d)),
        (sums, [[0.0], []], [[], []]),
        (histogram, [-0.2, 3.0, 3.0], [0.2, 3.0, 3.0]),
        (lambda kind, rng: pd.DataFrame({"v": np.zeros(1 + small(rng), kind)}), int, float),
        (lambda labels, rng: pd.DataFrame({"v": [1, small(rng)]}, index=labels), None, [0, 1]),
        (lambda kind, size, rng: pd.DataFrame({"v": rng.random(size)}, index=kind(size)), pd.RangeIndex, np.arange),
    ],
)  # fmt: skip
def test_equal_outputs_are_equal_outcomes(mechanism, x, y):
    assert are_alike(mechanism, x, y)


def top(rows, rng):
    found = pd.Series(rows).value_counts()
    return found + rng.laplace(size=len(found))


def labelled(rows, size, rng):
    index = pd.MultiIndex.from_arrays([["a"] * size, rng.integers(3, size=size)])
    return pd.DataFrame({"v": rows + rng.laplace(size=size)}, index=index)


def with_missing(value, size, rng):
    kept = pd.Series(pd.array([1.5] * size, dtype="Float64"))
    kept[rng.random(size) < 0.5] = pd.NA
    return kept if value else pd.Series(kept.to_numpy(dtype=np.float64, na_value=math.nan))


@pytest.mark.parametrize(
    ("mechanism", "x", "y"),
    [
        (top, ["b", "b", "b", "a"], ["a", "a", "a", "b"]),
        (with_missing, 1, 0), (labelled, 9.0, 0.0),
        (lambda kind, rng: kind(small(rng)), lambda count: np.datetime64(count, "ns"), int),
        (lambda kind, rng: {"v": kind(small(rng)), "t": "t"}, lambda count: np.timedelta64(count, "ns"), int),
        (lambda missing, rng: {"v": missing, "n": small(rng)}, pd.NA, math.nan),
        (lambda label, rng: pd.Series([rng.random(), 1.0], index=["a", label]), pd.NA, "b"),
        (lambda rows, rng: np.array([(rng.random() + rows, "u")], dtype=[("a", float), ("b", "U3")])[0], 9, 0),
    ],
)  # fmt: skip
def test_small_differences_are_seen(mechanism, x, y):
    assert not are_alike(mechanism, x, y)


def test_keys_of_any_class_work_in_other_processes_and_files(tmp_path):
    result = check(named_counts, 9, 0, claim=PureDP(1.0), runs=200, jobs=2, bits=False)
    assert result.is_refuted
    save(result, tmp_path / "result.json")
    assert load(tmp_path / "result.json").entries[0].result.event_in_words == result.event_in_words


def named_counts(rows, rng):
    return {Named(1, rows): rows + float(rng.laplace()), "zz": "t"} | ({"more": "t"} if rng.random() < 0.5 else {})


@pytest.mark.parametrize(
    "make",
    [lambda: map(int, "1"), lambda: zip("1"), lambda: iter("1"), lambda: small, lambda: functools.partial(small)],
)
def test_iterators_and_functions_are_no_outputs(make):
    with pytest.raises(MechanismError, match=r"equals nothing but itself|not the values that it would give"):
        plan_blocks(as_sampler(lambda rows, rng: (1, make())), 1, 0, 0, 1)
