"""Generators of synthetic tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..audit.claims.claim import check_number
from ..audit.errors import DatasetError
from .distributions.divergences import PureClaim
from .noise.laplace import GeometricMechanism
from .noise_samplers import Floats, Integers
from .queries import as_numbers, check_count, check_value

__all__ = ["NoisyBins", "NoisyMarginals"]


# Synthetic tables drawn from noisy marginals: each column by itself, from a histogram with geometric noise.

_TAIL = 30.0  # nats beyond which the noise is left out of the exact distribution: 1e-13 of its probability


@dataclass(frozen=True, slots=True)
class NoisyMarginals(PureClaim):
    """Tables whose columns are drawn independently from noisy histograms: epsilon-DP.

    The dataset is a list of tuples with one category for each column, a whole number from 0; other values, such as
    None, are not counted. Each histogram gets geometric noise with an equal part of epsilon, is cut at 0 and normalised
    (uniform if nothing is left). With `rows` the number of rows of the table is public; without, it is a noisy count of
    the data's rows and takes a part of epsilon, too. An output is the one-way marginals of the table, as a dict with
    the number of rows and the rows in each category of each column. Given these, the table (`table`) shows nothing else
    about the data.

    Source: Dwork & Roth (2014), Example 3.2, Proposition 2.1 (post-processing) and Theorem 3.14 (composition).

    `categories` are the numbers of categories of the columns, at least 2. The sensitivity of a histogram is 1 for
    add/remove, 2 for replace; a noisy number of rows is for add/remove.
    """

    categories: tuple[int, ...]
    rows: int | None = None
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", tuple(self.categories))
        why = "is a table without columns; give the categories of each column."
        check_value("categories", self.categories, self.categories, why)
        for k in self.categories:
            check_count("categories", k, "categories", least=2)
        if self.rows is not None:
            check_count("rows", self.rows, "rows")
        possible = (1,) if self.rows is None else (1, 2)
        why = "is not 1 for add/remove, or 2 for replaced rows and a public number of rows; use 1 or 2."
        check_value("sensitivity", self.sensitivity, self.sensitivity in possible, why)
        self.noise  # noqa: B018  # checks epsilon

    @property
    def noise(self) -> GeometricMechanism:
        """The noise of one count of one histogram."""
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        parts = len(self.categories) + (self.rows is None)
        return GeometricMechanism(self.epsilon / parts, self.sensitivity)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> dict[str, Integers]:
        counts = marginals(dataset, self.categories)
        if self.rows is None:
            n_rows = np.maximum(self.noise.sample(len(dataset), size, rng), 0)
        else:
            n_rows = np.full(size, self.rows)
        shares = [noisy_shares(column, self.noise, size, rng) for column in counts]
        return named(n_rows, [rng.multinomial(n_rows, share) for share in shares])

    def table(self, dataset: Any, rng: np.random.Generator) -> dict[str, list[int]]:
        """One table: its columns, in the order of the domain."""
        drawn = self.sample(dataset, 1, rng)
        table: dict[str, list[int]] = {}
        for column, k in enumerate(self.categories):
            counts = [int(drawn[name_of(column, value)][0]) for value in range(k)]
            table[f"column {column}"] = rng.permutation(np.repeat(np.arange(k), counts)).tolist()
        return table


def name_of(column: int, value: int) -> str:
    """Name of the count of a category."""
    return f"column {column}: {value}"


def named(n_rows: Integers, counts: Iterable[Integers]) -> dict[str, Integers]:
    """Return the number of rows, shape (size,), and the counts of each column, each (size, k), by their names."""
    outputs = {"rows": n_rows}
    for column, drawn in enumerate(counts):
        outputs |= {name_of(column, value): drawn[:, value] for value in range(drawn.shape[1])}
    return outputs


def marginals(dataset: Any, categories: Sequence[int]) -> list[Integers]:
    """Return the rows in each category of each column; raise a `DatasetError` for rows of another width."""
    counts = [np.zeros(k, dtype=np.int64) for k in categories]
    for row in dataset:
        if not isinstance(row, tuple) or len(row) != len(counts):
            raise DatasetError(
                f"the row {row!r:.60} is not a tuple of {len(counts)} categories; give one for each column.", row=row
            )
        for column, value in zip(counts, row, strict=True):
            if isinstance(value, (int, np.integer)) and 0 <= value < len(column):
                column[value] += 1
    return counts


def noisy_shares(counts: Integers, noise: GeometricMechanism, size: int, rng: np.random.Generator) -> Floats:
    """Return histograms with noise, cut at 0 and normalised, shape (size, k)."""
    return normalised(np.stack([noise.sample(count, size, rng) for count in counts], axis=1))


def normalised(counts: Integers | Floats) -> Floats:
    """Return the shares of counts of shape (size, k), none of them below 0; equal shares if none is above 0."""
    kept = np.maximum(counts, 0).astype(np.float64)
    kept[kept.sum(axis=1) == 0.0] = 1.0
    shares: Floats = kept / kept.sum(axis=1, keepdims=True)
    return shares


def exact_loss(mechanism: NoisyMarginals, x: Any, y: Any) -> float:
    """Largest log-likelihood ratio of the outputs on two datasets, for columns of two categories and a public `rows`.

    The columns are independent, so their largest ratios in one direction multiply. Noise beyond 30 nats is left out,
    which changes no probability by more than 1e-12.
    """
    if mechanism.rows is None or set(mechanism.categories) != {2}:
        raise DatasetError(
            f"{mechanism} has no distribution here; use columns of two categories and a public number of rows."
        )
    towards = [0.0, 0.0]
    for on_x, on_y in zip(marginals(x, mechanism.categories), marginals(y, mechanism.categories), strict=True):
        ratios = _log_distribution(on_x, mechanism) - _log_distribution(on_y, mechanism)
        towards = [towards[0] + float(ratios.max()), towards[1] - float(ratios.min())]
    return max(towards)


def _log_distribution(counts: Integers, mechanism: NoisyMarginals) -> Floats:
    """Log probabilities of 0 … rows values of category 1 in a column of two categories."""
    from scipy.stats import binom

    rate = mechanism.noise.epsilon / mechanism.sensitivity
    reach = math.ceil(_TAIL / rate)
    steps = np.arange(-reach, reach + 1)
    weights = math.tanh(rate / 2) * np.exp(-rate * np.abs(steps))
    zero, one = (np.maximum(count + steps, 0) for count in counts)
    pairs = np.stack([a.ravel() for a in np.meshgrid(zero, one, indexing="ij")], axis=1)
    shares, places = np.unique(normalised(pairs)[:, 1], return_inverse=True)
    masses = np.bincount(places.ravel(), weights=np.outer(weights, weights).ravel())
    n_rows = int(mechanism.rows or 0)
    distribution: Floats = np.log(masses @ binom.pmf(np.arange(n_rows + 1)[None, :], n_rows, shares[:, None]))
    return distribution


# A synthetic column of numbers, drawn from a noisy histogram of declared bins.

_STEPS = 1024  # places in a bin, so that numbers lie on a grid


@dataclass(frozen=True, slots=True)
class NoisyBins(PureClaim):
    """A column of `rows` numbers between `low` and `high`, drawn from a noisy histogram of equal bins: epsilon-DP.

    The dataset is a list of numbers; those outside the declared range are counted at its ends, and missing ones not. An
    output is the column, shape (rows,): a bin by its noisy share, and a uniform place in the bin, on a grid of 1/1024
    of it. The sensitivity is 1 for add/remove, 2 for replace.
    """

    low: float
    high: float
    bins: int = 4
    rows: int = 10
    sensitivity: int = 1

    def __post_init__(self) -> None:
        is_range = -np.inf < self.low < self.high < np.inf
        why = f"and high={self.high!r} do not form a range; use finite numbers, low < high."
        check_value("low", self.low, is_range, why)
        check_count("bins", self.bins, "bins", least=2)
        check_count("rows", self.rows, "rows")
        self.noise  # noqa: B018  # checks epsilon and the sensitivity

    def __str__(self) -> str:
        shown = f"range {self.low:g} to {self.high:g}, bins={self.bins}, rows={self.rows}"
        return f"NoisyBins(epsilon={self.epsilon:g}, {shown}, sensitivity={self.sensitivity})"

    @property
    def noise(self) -> GeometricMechanism:
        """The noise of one count."""
        return GeometricMechanism(self.epsilon, self.sensitivity)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return numbers_from_bins(self, present(dataset), (self.low, self.high), size, rng)


def present(dataset: Any) -> Floats:
    """Return the numbers of a dataset, a list of numbers or of rows of one number, that are not missing."""
    cells = [row[0] if isinstance(row, tuple) else row for row in dataset]
    numbers = as_numbers([np.nan if cell is None else cell for cell in cells])
    kept: Floats = numbers[~np.isnan(numbers)].astype(np.float64)
    return kept


def numbers_from_bins(
    mechanism: NoisyBins, numbers: Floats, ends: tuple[float, float], size: int, rng: np.random.Generator
) -> Floats:
    """Return columns drawn from a noisy histogram of the range between the ends, shape (size, rows)."""
    low, high = ends
    counts = np.histogram(np.clip(numbers, low, high), bins=mechanism.bins, range=ends)[0]
    shares = noisy_shares(counts, mechanism.noise, size, rng)
    edges = np.cumsum(shares, axis=1)[:, None, :-1]
    places = (rng.random((size, mechanism.rows, 1)) >= edges).sum(axis=2)
    inside = rng.integers(0, _STEPS, (size, mechanism.rows))
    columns: Floats = low + (places + inside / _STEPS) * ((high - low) / mechanism.bins)
    return columns
