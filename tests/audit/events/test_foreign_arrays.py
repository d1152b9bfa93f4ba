"""Arrays of other libraries, by objects with their protocols: no library but numpy and pandas is installed here."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpaudit.audit.errors import MechanismError
from dpaudit.audit.events.named_parts import column_of, in_one_type, is_foreign_array, numpy_of
from dpaudit.audit.events.outputs import as_outputs


class OnlyDLPack:
    def __init__(self, values):
        self.values = np.asarray(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Tensor:
    """Like a tensor of torch: numpy may read it only without its gradient and on the processor."""

    def __init__(self, values, *, grad=True, device="gpu", dtype=np.float64):
        self.values, self.grad, self.device, self.dtype = np.asarray(values), grad, device, dtype

    def detach(self):
        return Tensor(self.values, grad=False, device=self.device, dtype=self.dtype)

    def cpu(self):
        return Tensor(self.values, grad=self.grad, device="cpu", dtype=self.dtype)

    def double(self):
        return Tensor(self.values, grad=self.grad, device=self.device)

    def __array__(self, dtype=None, copy=None):
        if self.grad or self.device == "gpu":
            raise RuntimeError("can't call numpy() on a tensor that requires grad")
        if self.dtype == "bfloat16":
            raise TypeError("got unsupported ScalarType BFloat16")
        return self.values.astype(self.dtype)


class Column:
    """Like a column of polars: a missing number is not NaN, but numpy gets NaN."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def null_count(self):
        return sum(value is None for value in self.values)

    def to_numpy(self):
        return np.array(self.values, dtype=np.float64)

    def __array__(self, dtype=None, copy=None):
        return self.to_numpy()


@pytest.mark.parametrize("make", [OnlyDLPack, Tensor, lambda values: Tensor(values, dtype="bfloat16")])
@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_blocks_and_single_outputs(make, shape):
    values = np.arange(float(np.prod(shape))).reshape(shape)
    assert is_foreign_array(make(values))
    np.testing.assert_array_equal(numpy_of(make(values)), values)
    np.testing.assert_array_equal(as_outputs(make(values), 4, "m"), values)
    np.testing.assert_array_equal(as_outputs([make(row) for row in values], 4, "m"), values)


def test_a_number_without_dimensions_is_a_number():
    assert as_outputs([np.array(1.5), Tensor(2.5), OnlyDLPack(3.5)], 3, "m").tolist() == [1.5, 2.5, 3.5]


def test_what_numpy_cannot_read_is_named():
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("lies elsewhere")

    with pytest.raises(
        MechanismError, match=r"m returned a Broken that numpy cannot read \(ValueError: lies elsewhere\)"
    ):
        as_outputs(Broken(), 3, "m")


def test_types_are_no_arrays():
    assert not is_foreign_array(pd.Series)
    assert not is_foreign_array(np.float64(1.0))


def test_missing_values_of_a_column_are_none():
    assert column_of(Column([1.0, None, 2.0])).tolist() == [1.0, None, 2.0]
    assert column_of(Column([1.0, 2.0])).dtype == np.float64
    assert column_of(pd.Series([1, None], dtype="Int64")).tolist() == [1, None]
    assert column_of(pd.Series(["a", "b"], dtype="category")).tolist() == ["a", "b"]
    assert column_of(pd.Series(pd.to_datetime(["2026-01-01"]))).tolist() == [pd.Timestamp("2026-01-01")]


def test_one_type_holds_all_columns_without_loss():
    whole, real, flags = np.array([2**53 + 1]), np.array([0.5]), np.array([True])
    assert in_one_type([whole, whole]) == np.int64
    assert in_one_type([whole, real]) is None
    assert in_one_type([whole - 1, real]) == np.float64
    assert in_one_type([flags, flags]) == np.bool_
    assert in_one_type([flags, real]) == np.float64
    assert in_one_type([np.array([2**63], np.uint64), np.array([-1])]) is None
    assert in_one_type([np.array(["a"]), real]) is None
    assert in_one_type([]) is None
