"""Audits of outputs that are equal but written differently, which refute nothing, and of outputs that differ little."""

import functools
import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from dpaudit import PureDP, Verdict, check, load, save
from dpaudit.audit.errors import MechanismError

pytestmark = pytest.mark.usefixtures("without_trees")


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


def audited(mechanism, x, y, **options):
    options = {"claim": PureDP(1.0), "runs": 2_000, "jobs": 1, "bits": False, "alpha": 1e-6} | options
    return check(mechanism, x, y, **options)


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


def counted(kind, rng):
    return kind({"a": max(small(rng) - 1, 0), "b": 1, "c": small(rng)})


@pytest.mark.parametrize(
    ("mechanism", "x", "y"),
    [
        (lambda value, rng: [value, small(rng), "t"], 1, 1.0),
        (lambda value, rng: [value, small(rng), "t"], Decimal("1.00"), True),
        (lambda value, rng: [value, small(rng), "t"], 2**60, 2.0**60),
        (lambda value, rng: {"v": value, "n": small(rng)}, {1, "s"}, frozenset({1.0, "s"})),
        (lambda value, rng: {value: small(rng), "zz": "t"}, Named(1, "x"), Named(1, "y")),
        (sums, [[0.0], []], [[], []]),
        (histogram, [-0.2, 3.0, 3.0], [0.2, 3.0, 3.0]),
        (lambda kind, rng: pd.DataFrame({"v": np.zeros(1 + small(rng), kind)}), int, float),
        (lambda labels, rng: pd.DataFrame({"v": [1, small(rng)]}, index=labels), None, [0, 1]),
        (lambda kind, size, rng: pd.DataFrame({"v": rng.random(size)}, index=kind(size)), pd.RangeIndex, np.arange),
    ],
)  # fmt: skip
def test_equal_outputs_refute_nothing(mechanism, x, y):
    assert audited(mechanism, x, y).verdict is not Verdict.REFUTED


def test_counters_have_no_zeros():
    def without_zeros(kind, rng):
        drawn = counted(Counter, rng)
        return drawn if kind == "all" else Counter({key: count for key, count in drawn.items() if count})

    assert audited(without_zeros, "all", "some").verdict is not Verdict.REFUTED


def top(rows, rng):
    found = pd.Series(rows).value_counts()
    return found + rng.laplace(size=len(found))


def with_missing(value, size, rng):
    kept = pd.Series(pd.array([1.5] * size, dtype="Float64"))
    kept[rng.random(size) < 0.5] = pd.NA
    return kept if value else pd.Series(kept.to_numpy(dtype=np.float64, na_value=math.nan))


@pytest.mark.parametrize(
    ("mechanism", "x", "y"),
    [
        (top, ["b", "b", "b", "a"], ["a", "a", "a", "b"]),
        (with_missing, 1, 0),
        (lambda kind, rng: kind(small(rng)), lambda count: np.datetime64(count, "ns"), int),
        (lambda kind, rng: {"v": kind(small(rng)), "t": "t"}, lambda count: np.timedelta64(count, "ns"), int),
        (lambda missing, rng: {"v": missing, "n": small(rng)}, pd.NA, math.nan),
        (lambda label, rng: pd.Series([rng.random(), 1.0], index=["a", label]), pd.NA, "b"),
        (lambda rows, rng: np.array([(rng.random() + rows, "u")], dtype=[("a", float), ("b", "U3")])[0], 9, 0),
    ],
)  # fmt: skip
def test_small_differences_are_seen(mechanism, x, y):
    assert audited(mechanism, x, y, claim=PureDP(2.0)).is_refuted


def test_labels_of_several_levels_are_a_column():
    def labelled(rows, size, rng):
        index = pd.MultiIndex.from_arrays([["a"] * size, rng.integers(3, size=size)])
        return pd.DataFrame({"v": rows + rng.laplace(size=size)}, index=index)

    assert audited(labelled, 9.0, 0.0).is_refuted


def test_the_single_row_of_a_frame_has_its_label():
    def mean(rows, rng):
        return pd.DataFrame({"mean": [rows + rng.laplace()]}, index=["total"])

    assert "mean[total]" in audited(mean, 9.0, 0.0).event_in_words


def test_keys_of_any_class_work_in_other_processes_and_files(tmp_path):
    result = audited(named_counts, 9, 0, runs=600, jobs=2)
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
        audited(lambda rows, rng: (1, make()), 1, 0)
