"""Datasets stored by column, and tensors: rows, distances, descriptions and contents, by objects like theirs."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

from dpaudit import AddRemove, PureDP, Replace, UserLevel, Within, check
from dpaudit.audit.datasets.columns import columns_by_name, rows_by_name
from dpaudit.audit.datasets.contents import Kept, hold_the_same
from dpaudit.audit.datasets.description import difference, summarise
from dpaudit.audit.datasets.rows import rows_apart
from dpaudit.audit.errors import AdjacencyError, DatasetError
from dpaudit.audit.sampling.object_identity import identity

ROWS = [("a", 1.0), ("a", None), ("b", 3.0)]
FEWER, OTHER = ROWS[:2], [("a", 1.0), ("b", 3.0), ("a", 9.0)]


class Column:
    """Like a column of polars."""

    def __init__(self, name, values):
        self.name, self.values = name, list(values)
        self.dtype = type(self.values[0])

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def null_count(self):
        return self.values.count(None)

    def to_numpy(self):
        return np.array(self.values, dtype=object if self.dtype is str else np.float64)

    def __array__(self, dtype=None, copy=None):
        return self.to_numpy()


class Frame:
    """Like a data frame of polars."""

    def __init__(self, held):
        self.held = dict(held)

    @property
    def columns(self):
        return list(self.held)

    def __len__(self):
        return len(next(iter(self.held.values())))

    def iter_rows(self):
        return zip(*self.held.values(), strict=True)

    def to_series(self, place):
        return Column(self.columns[place], self.held[self.columns[place]])

    def __array__(self, dtype=None, copy=None):
        return np.array(list(self.iter_rows()), dtype=object)


class Tensor:
    """Like a tensor of torch that records its gradient."""

    dtype, device, requires_grad = "float32", "cpu", True

    def __init__(self, values, *, detached=False):
        self.values, self.detached = np.array(values, np.float32), detached

    @property
    def shape(self):
        return self.values.shape

    def __len__(self):
        return len(self.values)

    def detach(self):
        return Tensor(self.values, detached=True)

    def __array__(self, dtype=None, copy=None):
        if not self.detached:
            raise RuntimeError("requires grad")
        return self.values

    def __dlpack__(self):
        raise RuntimeError("requires grad")

    def __reduce__(self):  # differs from the pickle of an equal tensor
        return Tensor, (self.values,), {"at": id(self)}


def by_column(rows):
    return {"user": [user for user, _ in rows], "value": [value for _, value in rows]}


MAKERS = {
    "frame": lambda rows: Frame(by_column(rows)),
    "lists": by_column,
    "arrays": lambda rows: {name: np.array(values, object) for name, values in by_column(rows).items()},
    "pandas": lambda rows: pd.DataFrame(by_column(rows)),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_distances(kind):
    x, fewer, other = map(MAKERS[kind], (ROWS, FEWER, OTHER))
    assert rows_apart(x, fewer) == (1, 0)
    assert difference(x, fewer) == "1 row only in x, 0 only in y"
    assert (AddRemove().distance(x, fewer), AddRemove().distance(x, other)) == (1.0, 2.0)
    assert Replace().distance(x, other) == 1.0
    assert UserLevel("user").distance(x, fewer) == 1.0
    assert UserLevel("user").distance(x, other) == 2.0
    with pytest.raises(AdjacencyError, match="user='name' is not in the row"):
        UserLevel("name").distance(x, other)


@pytest.mark.parametrize("kind", MAKERS)
def test_contents(kind):
    make = MAKERS[kind]
    assert hold_the_same(make(ROWS), make(ROWS))
    assert not hold_the_same(make(ROWS), make(OTHER))
    assert identity(make(ROWS)) == identity(make(ROWS))
    assert identity(make(ROWS)).hash != identity(make(OTHER)).hash


def test_frames_of_other_columns_differ():
    assert not hold_the_same(Frame({"a": [1.0]}), Frame({"b": [1.0]}))
    assert not hold_the_same(Frame({"a": [1.0]}), Frame({"a": [None]}))


def test_changes_are_seen():
    frame, tensor = Frame({"a": [1.0, 2.0]}), Tensor([1.0, 2.0])
    kept = [Kept(frame), Kept(tensor)]
    assert not any(each.has_changed() for each in kept)
    frame.held["a"][0] = tensor.values[0] = 7.0
    assert all(each.has_changed() for each in kept)


def test_tensors():
    x, y = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[1.0, 2.0], [3.0, 4.5]])
    assert summarise(x) == "Tensor of shape (2, 2), float32"
    assert Replace().distance(x, y) == 1.0
    assert Within("l1").distance(x, y) == 0.5
    assert difference(Tensor(1.0), Tensor(2.5)) == "the values differ by 1.5"
    assert hold_the_same(x, Tensor(x.values))
    assert not hold_the_same(x, y)
    assert identity(x) == identity(Tensor(x.values)) != identity(y)


def test_what_numpy_cannot_read_is_named():
    class Key(Tensor):
        def detach(self):
            raise TypeError("no numbers")

    with pytest.raises(DatasetError, match=r"of type Key cannot be read by numpy \(TypeError: no numbers\); pass"):
        AddRemove().distance(Key([1.0]), Key([2.0]))


def test_summaries_and_rows():
    assert summarise(Frame(by_column(ROWS))) == "data frame of 3 rows, 2 columns"
    assert summarise(by_column(ROWS)) == "dictionary of 2 columns, 3 rows"
    assert rows_by_name(by_column(FEWER)) == [{"user": "a", "value": 1.0}, {"user": "a", "value": None}]
    for other in ({}, {"cats": 5}, {"a": [1], "b": [1, 2]}, {"a": np.ones((2, 2))}, [1], None):
        assert columns_by_name(other) is None
    with pytest.raises(DatasetError, match="a dictionary of columns of equal length"):
        AddRemove().distance({"cats": 5}, {"cats": 4})


def test_an_audit_of_a_dictionary_of_columns():
    def total(dataset, size, rng):
        return sum(dataset["value"]) + rng.laplace(size=size)

    x, y = {"value": [1.0, 1.0]}, {"value": [1.0]}
    result = check(total, x, y, claim=PureDP(1.0), adjacency=AddRemove(), runs=2_000, alpha=1e-6, bits=False)
    assert (result.pair.x, result.findings) == ("dictionary of 1 column, 2 rows", ())
    same = check(total, x, copy.deepcopy(x), claim=PureDP(1.0), runs=400, bits=False)
    assert "equal contents" in str(same)
