"""Contents of a dataset before and after: every change is found, and no change is invented."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from dpaudit import AddRemove, PureDP, check, count_cells
from dpaudit.audit.datasets.contents import Kept, hold_the_same
from dpaudit.audit.datasets.description import difference
from dpaudit.audit.datasets.rows import rows_apart
from dpaudit.audit.errors import DatasetError
from dpaudit.audit.health.findings import HealthCheck
from dpaudit.audit.sampling.object_identity import identity

SETTINGS = {"claim": PureDP(1.0), "runs": 1_000, "seed": 1, "bits": False}
ALIGNED = np.dtype([("a", "i1"), ("b", "f8")], align=True)


def deep(depth=5_000):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("make", [lambda: np.zeros(4_000, ALIGNED)[::2], lambda: np.ones(500, np.longdouble)])
def test_bytes_that_mean_nothing_change_nothing(make):
    array = make()
    kept, before = Kept(array), identity(array)
    for value in range(20):
        np.full(array.nbytes, value, np.uint8)  # possible padding bytes of a copy of the array
        array[:] = array * 1 if array.dtype.names is None else array.copy()
        assert not kept.has_changed()
        assert identity(array) == before
    array[7] = (1, 2.0) if array.dtype.names else np.nextafter(np.longdouble(1), np.longdouble(2))
    assert kept.has_changed()
    assert identity(array) != before


def category(order):
    return pd.DataFrame({"a": pd.Categorical(["u", "v"], categories=order)})


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (category(["u", "v"]), category(["v", "u"])),
        (pd.DataFrame({"a": [1]}, index=pd.Index([0], name="i")), pd.DataFrame({"a": [1]}, index=[0])),
        ([[[[[[[[[[[1]]]]]]]]]]], [[[[[[[[[[[2]]]]]]]]]]]),
        (nx.MultiGraph([(0, 1, "k")]), nx.MultiGraph([(0, 1, "l")])),
    ],
    ids=["order of categories", "name of an index", "eleven deep", "keys of edges"],
)
def test_what_differs_is_seen(x, y):
    assert hold_the_same(x, x)
    assert not hold_the_same(x, y)


def test_a_frame_with_attributes_has_changed_with_them():
    frame = pd.DataFrame({"a": [1]})
    kept = Kept(frame)
    frame.attrs["unit"] = "m"
    assert kept.has_changed()


@pytest.mark.parametrize(
    "use",
    [
        lambda frame: frame.values,
        lambda frame: frame.to_numpy(),
        lambda frame: frame.describe(include="all"),
        lambda frame: frame.groupby("n").size(),
        lambda frame: frame.sort_index().index.is_monotonic_increasing,
    ],
)
def test_what_pandas_has_computed_changes_no_identity(use):
    frame = pd.DataFrame({"n": pd.array([30, None], "Int64"), "t": pd.date_range("2020", periods=2, tz="UTC")})
    before = identity(frame)
    use(frame)
    assert identity(frame) == before != identity(frame.assign(n=1))
    assert identity(frame) != identity(frame.set_index(pd.Index([0, 2])))


@dataclass
class Holder:
    held: object


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ({"a": np.ones(3), "b": 1}, {"a": np.ones(2), "b": 1}, "1 of 2 entries differ"),
        ({"a": pd.DataFrame({"u": [1, 2]})}, {"b": 1}, "2 of 2 entries differ"),
        (Holder(np.ones(3)), Holder(np.zeros(3)), "the values differ"),
        (scipy.sparse.csr_array(np.eye(3)), scipy.sparse.csr_array(np.ones((3, 3))), "the values differ"),
        ([deep()], [deep(), 1], "the values differ"),
        (10**5_000, 10**5_000 + 1, "the values differ"),
        (Fraction(1, 3), "1/3", "the types differ"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_datasets_of_every_kind_have_a_difference(x, y, words):
    assert difference(x, y) == words
    result = check(lambda dataset, rng: rng.laplace(), x, y, keep_datasets=True, jobs=1, **SETTINGS)
    assert result.pair.difference == words


class Stubborn:
    def __len__(self):
        raise OSError("no length")

    def __eq__(self, other):
        raise RuntimeError("no equality")

    __hash__ = None


def test_a_users_exceptions_are_no_tracebacks():
    assert difference(Stubborn(), Stubborn()) == "the values differ"
    with pytest.raises(DatasetError, match=r"cannot be compared \(RuntimeError: no equality\)"):
        rows_apart([Unhashable()], [Unhashable(), 1])


class Unhashable:
    def __hash__(self):
        raise RuntimeError("no equality")


def test_masks_and_missing_numbers():
    def masked(values, mask):
        return np.ma.array(values, mask=mask)

    assert rows_apart(masked([1, 2, 3], [0, 0, 1]), masked([1, 2, 3], [0, 0, 0])) == (1, 1)
    assert rows_apart(masked([1, 2, 3], [0, 0, 1]), masked([1, 2, 4], [0, 0, 1])) == (0, 0)
    missing = np.array([complex(np.nan, 0.0), 1.0])
    assert rows_apart(missing, missing[:1]) == (1, 0)


@pytest.mark.parametrize("audit", [check, count_cells], ids=lambda function: function.__name__)
def test_an_iterator_is_refused(audit):
    options = {"claim": PureDP(1.0)} if audit is check else {}
    with pytest.raises(DatasetError, match=r"x is an iterator \(list_iterator\), which the first run would use up"):
        audit(lambda dataset, rng: sum(dataset) + rng.laplace(), iter([1, 2]), iter([1]), runs=1_000, jobs=1, **options)


def halve(rows, rng):
    rows[rows > 1] *= 0.9
    return float(rows.sum()) + rng.laplace()


def now_and_then(rows, rng):
    if rng.random() < 0.05:
        rows.append(1)
    return rng.laplace()


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("mechanism", "x", "y"), [(halve, np.array([0.5, 3.0]), np.array([0.5])), (now_and_then, [1, 2], [1])]
)
def test_a_change_in_any_process_is_found(jobs, mechanism, x, y):
    x, y = copy.deepcopy((x, y))  # the audit with the other number of workers changes its own copies
    result = check(mechanism, x, y, adjacency=AddRemove(), jobs=jobs, **SETTINGS)
    assert [finding.check for finding in result.findings] == [HealthCheck.DATASET_MUTATED]  # and no consequence


def test_nothing_is_found_where_nothing_changed():
    x = pd.DataFrame({"a": ["u", "v"], "b": [1.0, 2.0]})
    result = check(reading, x, x.iloc[:1], adjacency=AddRemove(), jobs=2, **SETTINGS)
    assert result.findings == ()


def reading(frame, rng):
    return len(frame.sort_values("b").groupby("a")) + rng.laplace()
