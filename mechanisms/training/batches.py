"""How records are drawn into batches: Poisson, full batch, fixed size, shuffled, fixed order, balls in bins.

A sampling yields, step by step, which records each run uses: a mask of shape (runs, n). Each record's membership is
drawn as for a training on n records, with the random numbers of `rng` in the order of the steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.errors import DatasetError
from ..parameter_checks import check_count
from .models import Booleans


class Sampling(Protocol):
    """A rule that draws the batches."""

    def __hash__(self) -> int: ...

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        """The masks of the steps, each of shape (runs, n)."""


@dataclass(frozen=True, slots=True)
class PoissonBatches:
    """Every record is in every batch with probability `rate`, independently."""

    rate: float

    def __post_init__(self) -> None:
        check_number("rate", self.rate, 0, math.nextafter(1.0, 2.0), "a probability", closed=False)

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        for _ in range(steps):
            yield rng.random((runs, n)) < self.rate


@dataclass(frozen=True, slots=True)
class FullBatch:
    """Every batch is the whole dataset."""

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        everything = np.ones((runs, n), dtype=np.bool_)
        for _ in range(steps):
            yield everything


@dataclass(frozen=True, slots=True)
class FixedSizeBatches:
    """Every batch is a uniformly random set of `batch` of the `n_rows` records, drawn anew in each step."""

    batch: int
    n_rows: int

    def __post_init__(self) -> None:
        check_count("batch", self.batch, "records in a batch")
        check_count("n_rows", self.n_rows, "records", self.batch)

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        check_rows(n, self.n_rows)
        for _ in range(steps):
            yield _ranks(rng.random((runs, n))) < self.batch


@dataclass(frozen=True, slots=True)
class ShuffledBatches:
    """In each epoch the `n_rows` records are shuffled and cut into batches of `batch` records.

    Parameters
    ----------
    batch, n_rows : int
    drop_last : bool
        Whether the records that do not fill a batch are left out of the epoch, instead of forming a smaller batch.
    """

    batch: int
    n_rows: int
    drop_last: bool = False

    def __post_init__(self) -> None:
        check_count("batch", self.batch, "records in a batch")
        check_count("n_rows", self.n_rows, "records", self.batch)

    @property
    def per_epoch(self) -> int:
        """Number of batches in an epoch."""
        return self.n_rows // self.batch if self.drop_last else -(-self.n_rows // self.batch)

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        check_rows(n, self.n_rows)
        for step in range(steps):
            number = step % self.per_epoch
            if number == 0:
                batch_of = _ranks(rng.random((runs, n))) // self.batch
            yield batch_of == number


@dataclass(frozen=True, slots=True)
class BatchesInOrder:
    """The `n_rows` records are cut into batches of `batch` records in their order, the same in every epoch."""

    batch: int
    n_rows: int

    def __post_init__(self) -> None:
        check_count("batch", self.batch, "records in a batch")
        check_count("n_rows", self.n_rows, "records", self.batch)

    @property
    def per_epoch(self) -> int:
        """Number of batches in an epoch."""
        return -(-self.n_rows // self.batch)

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        check_rows(n, self.n_rows)
        batch_of = np.arange(n) // self.batch
        for step in range(steps):
            yield np.broadcast_to(batch_of == step % self.per_epoch, (runs, n))


@dataclass(frozen=True, slots=True)
class BallsInBins:
    """In each epoch every record falls into one of `bins` batches, uniformly and independently of the others.

    References
    ----------
    Chua, Ghazi, Harrison, Kamath, Kumar, Leeman, Manurangsi, Sinha & Zhang (2025), Balls-and-bins sampling for DP-SGD.
    """

    bins: int

    def __post_init__(self) -> None:
        check_count("bins", self.bins, "batches in an epoch")

    @property
    def per_epoch(self) -> int:
        """Number of batches in an epoch."""
        return self.bins

    def batches(self, runs: int, n: int, steps: int, rng: np.random.Generator) -> Iterator[Booleans]:
        for step in range(steps):
            number = step % self.bins
            if number == 0:
                batch_of = rng.integers(0, self.bins, (runs, n))
            yield batch_of == number


def check_rows(n: int, n_rows: int) -> None:
    """Raise a `DatasetError` unless the dataset has the number of records for which the sampling is defined."""
    if n != n_rows:
        raise DatasetError(
            f"the dataset has {n} records, but the sampling is for {n_rows}; use datasets of one size, where a removed "
            "record is one of zeros.",
            n=n,
            n_rows=n_rows,
        )


def _ranks(keys: np.typing.NDArray[np.float64]) -> np.typing.NDArray[np.intp]:
    """Position of each key in the order of its row: a uniformly random permutation for independent keys."""
    return np.argsort(np.argsort(keys, axis=1), axis=1)
