"""Generators of synthetic tables that learn the domain, the range or the number of rows, or split epsilon wrongly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..noise_samplers import Floats, Integers, laplace_on_grid
from ..synthetic import (
    NoisyBins,
    NoisyMarginals,
    marginals,
    named,
    noisy_shares,
    normalised,
    numbers_from_bins,
    present,
)
from .flaw import PureFlaw

__all__ = [
    "LearnedCategories", "LearnedRange", "RowsOfTheData", "LeakedRow",
    "SharesOfPresentRows",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LearnedCategories(PureFlaw):
    """A table with the categories that occur in the data, each with a noisy share: no finite ε.

    A category that only one row has is in the table or cannot be. The categories of the data are used "alone",
    or they are "added" to the declared ones.

    In practice, the categories are read from the data when none are declared, or a value counter of the data adds its
    own keys to the declared ones.
    """

    categories: tuple[int, ...]
    rows: int
    learned: Literal["alone", "added"] = "alone"

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> dict[str, Integers]:
        others = 1 if self.learned == "added" else 0  # one more category, for all that are not declared
        right = NoisyMarginals(self.epsilon, self.categories, self.rows)
        columns = []
        for place, (k, counts) in enumerate(zip(self.categories, marginals(dataset, self.categories), strict=True)):
            if others:
                odd = sum(1 for row in dataset if row[place] is not None) - int(counts.sum())
                counts, known = np.append(counts, odd), np.append(np.ones(k, bool), odd > 0)
            else:
                known = counts > 0 if counts.any() else np.ones(k, bool)
            shares = np.zeros((size, len(counts)))
            shares[:, known] = noisy_shares(counts[known], right.noise, size, rng)
            columns.append(rng.multinomial(self.rows, shares))
        return named(np.full(size, self.rows), columns)


@dataclass(frozen=True, slots=True)
class RowsOfTheData(PureFlaw):
    """A table with as many rows as the data, claimed for added rows: no finite ε.

    In practice, the number of rows to draw defaults to the length of the data.
    """

    categories: tuple[int, ...]

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> dict[str, Integers]:
        n_rows = max(len(dataset), 1)
        outputs = NoisyMarginals(self.epsilon, self.categories, n_rows).sample(dataset, size, rng)
        return outputs | {"rows": np.full(size, len(dataset))}


@dataclass(frozen=True, slots=True)
class LeakedRow(PureFlaw):
    """A table of which one row is a row of the data: no finite ε.

    In practice, the generator's buffer is seeded with rows of the data, or rows that could not be synthesised are
    copied.
    """

    categories: tuple[int, ...]
    rows: int

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> dict[str, Integers]:
        right = NoisyMarginals(self.epsilon, self.categories, self.rows, 2)
        counts = marginals(dataset, self.categories)
        rows = [row for row in dataset if all(value is not None for value in row)]
        left = self.rows - bool(rows)
        drawn = [rng.multinomial(left, noisy_shares(column, right.noise, size, rng)) for column in counts]
        if rows:
            leaked = rng.integers(len(rows), size=size)
            for place, column in enumerate(drawn):
                values = np.array([row[place] for row in rows])[leaked]
                inside = (values >= 0) & (values < column.shape[1])
                column[np.flatnonzero(inside), values[inside]] += 1
        return named(np.full(size, self.rows), drawn)


@dataclass(frozen=True, slots=True)
class SharesOfPresentRows(PureFlaw):
    """Shares of the rows that are not missing, with noise for shares of all rows: no finite ε for all datasets.

    A share of the m present rows of n changes by 1/m where one row changes, and the noise is for 1/n: the loss is n/m
    times ε.

    In practice, the histogram drops missing values before it is normalised, and the sensitivity is computed from the
    length of the column. DataSynthesizer 0.1.13 has this bug.
    """

    categories: int
    rows: int

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> dict[str, Integers]:
        (counts,) = marginals(dataset, (self.categories,))
        shares = counts / max(int(counts.sum()), 1)
        scale = 2.0 / (max(len(dataset), 1) * self.epsilon)
        noisy = np.stack([laplace_on_grid(share, scale, size, rng) for share in shares], axis=1)
        return named(np.full(size, self.rows), [rng.multinomial(self.rows, normalised(noisy))])


@dataclass(frozen=True, slots=True)
class LearnedRange(PureFlaw):
    """A column of numbers whose bins cut the range between the smallest and the largest number: no finite ε.

    In practice, the range is the minimum and the maximum of the data when none is declared, as histogram functions do
    by default.
    """

    bins: int = 4
    rows: int = 10

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        numbers = present(dataset)
        low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 0.0)
        ends = (low, high) if low < high else (low, low + 1.0)
        return numbers_from_bins(NoisyBins(self.epsilon, *ends, self.bins, self.rows), numbers, ends, size, rng)
