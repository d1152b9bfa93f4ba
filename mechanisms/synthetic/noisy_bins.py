"""A synthetic column of numbers, drawn from a noisy histogram of declared bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.errors import ClaimError
from ..laws.reference_mechanism import PureMechanism
from ..noise.geometric import GeometricMechanism
from ..noise_samplers import Floats
from ..parameter_checks import check_count
from ..queries import as_numbers
from .noisy_marginals import noisy_shares

_STEPS = 1024  # places in a bin, so that numbers lie on a grid


@dataclass(frozen=True, slots=True)
class NoisyBins(PureMechanism):
    """A column of `rows` numbers between `low` and `high`, drawn from a noisy histogram: epsilon-DP.

    The dataset is a list of numbers; those outside the range are counted at its ends, and missing ones not at all. The
    range and its bins are declared. An output is the column, shape (rows,): a bin by its noisy share, and a uniform
    place in the bin, on a grid of 1/1024 of it.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    low, high : float
        The declared range.
    bins : int
        Number of equal bins of the range.
    rows : int
        Public number of rows of the table.
    sensitivity : int
        1 for add/remove, 2 for replace.

    Examples
    --------
    >>> mechanism = NoisyBins(epsilon=1, low=0, high=100, bins=4, rows=5)
    >>> print(mechanism, mechanism.sample([31.0, 57.0], 3, np.random.default_rng(0)).shape)
    NoisyBins(epsilon=1, range 0 to 100, bins=4, rows=5, sensitivity=1) (3, 5)
    """

    low: float
    high: float
    bins: int = 4
    rows: int = 10
    sensitivity: int = 1

    def __post_init__(self) -> None:
        if not -np.inf < self.low < self.high < np.inf:
            raise ClaimError(
                f"low={self.low!r} and high={self.high!r} do not form a range; use finite numbers, low < high.",
                low=self.low,
                high=self.high,
            )
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
        """`size` independent outputs, shape (size, rows)."""
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
