"""A mechanism, and stand-ins for objects that are not installed here: columns of polars, tensors of torch."""

import numpy as np


def noisy(value, size, rng):
    """The simplest mechanism: a number with Laplace noise of scale 1."""
    return value + rng.laplace(size=size)


class OnlyDLPack:
    """An array that has no other protocol."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Tensor:
    """Like a tensor of torch: numpy may read it only without its gradient and on the processor."""

    def __init__(self, values, *, grad=True, device="gpu", dtype="float32"):
        self.values, self.requires_grad, self.device, self.dtype = np.asarray(values), grad, device, dtype

    @property
    def shape(self):
        return self.values.shape

    def __len__(self):
        return len(self.values)

    def detach(self):
        return Tensor(self.values, grad=False, device=self.device, dtype=self.dtype)

    def cpu(self):
        return Tensor(self.values, grad=self.requires_grad, device="cpu", dtype=self.dtype)

    def double(self):
        return Tensor(self.values, grad=self.requires_grad, device=self.device, dtype="float64")

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad or self.device == "gpu":
            raise RuntimeError("can't call numpy() on a tensor that requires grad")
        return self.values.astype(self.dtype)  # a TypeError for bfloat16

    def __dlpack__(self):
        raise RuntimeError("requires grad")

    def __reduce__(self):  # differs from the pickle of an equal tensor
        return Tensor, (self.values,), {"at": id(self)}


class Column:
    """Like a column of polars: a missing number is not NaN, but numpy gets NaN."""

    def __init__(self, values, name="v"):
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
        return Column(self.held[self.columns[place]], self.columns[place])

    def __array__(self, dtype=None, copy=None):
        return np.array(list(self.iter_rows()), dtype=object)
