"""The histogram mechanism: noise on the count of every category."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.errors import ClaimError, DatasetError
from ..laws.product import ProductLaw
from ..noise_samplers import Floats, Integers
from .geometric import GeometricMechanism
from .laplace import LaplaceMechanism


def category_counts(dataset: Any, k: int) -> Integers:
    """How many rows are in each of the categories 0 … k − 1, shape (k,); else a `DatasetError`."""
    try:
        rows = np.asarray(dataset, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.full(1, np.nan)
    if rows.ndim != 1 or not np.all((rows >= 0) & (rows < k) & (rows == np.floor(rows))):
        raise DatasetError(
            f"dataset={dataset!r:.60} is not a list of rows in range(k={k}); give each row as a whole number from 0 to "
            f"{k - 1}, its category.",
            k=k,
        )
    return np.bincount(rows.astype(np.int64), minlength=k)


@dataclass(frozen=True, slots=True)
class HistogramMechanism:
    """The count of each of `k` categories, each with noise of scale sensitivity/epsilon: epsilon-DP.

    The dataset is a list of rows, each its category in range(k). A row added or removed changes one count by one; a row
    replaced changes two. So the noise that is enough under add/remove is half of what replacing takes.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    k : int
        Number of categories, at least 1.
    sensitivity : int
        Largest sum of absolute changes of the counts between neighbouring datasets: 1 where a row is added or removed,
        2 where a row is replaced.
    noise : {"laplace", "geometric"}
        Real outputs on a grid (as of `LaplaceMechanism`), or whole ones.

    Raises
    ------
    ClaimError
        For parameters outside these ranges.

    References
    ----------
    Dwork, McSherry, Nissim & Smith (2006), Calibrating noise to sensitivity in private data analysis; Dwork & Roth
    (2014), The algorithmic foundations of differential privacy, Example 3.2 (histogram queries).

    Examples
    --------
    >>> mechanism = HistogramMechanism(epsilon=1, k=3, noise="geometric")
    >>> print(mechanism, mechanism.sample([0, 2, 2], 5, np.random.default_rng(0)).shape)
    Histogram(epsilon=1, k=3, sensitivity=1, noise=geometric) (5, 3)
    """

    epsilon: float
    k: int
    sensitivity: int = 1
    noise: Literal["laplace", "geometric"] = "laplace"

    def __post_init__(self) -> None:
        if not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise ClaimError(f"k={self.k!r} is not a number of categories; use a whole number k >= 1.", k=self.k)
        check_number("sensitivity", self.sensitivity, 1, math.inf, "1 for add/remove, 2 for replaced rows")
        if self.noise not in ("laplace", "geometric"):
            raise ClaimError(f'noise={self.noise!r} is unknown; use "laplace" or "geometric".', noise=self.noise)
        self._on_one_count  # noqa: B018  # refuses the other parameters

    def __str__(self) -> str:
        shown = f"epsilon={self.epsilon:g}, k={self.k}, sensitivity={self.sensitivity:g}, noise={self.noise}"
        return f"Histogram({shown})"

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, for counts of the stated sensitivity."""
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> ProductLaw:
        """The output's law: before the rounding to the grid for Laplace noise, exact for geometric noise."""
        return ProductLaw(tuple(self._on_one_count.law(count) for count in category_counts(dataset, self.k)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats | Integers:
        """`size` independent outputs, shape (size, k)."""
        columns: list[Any] = [self._on_one_count.sample(count, size, rng) for count in category_counts(dataset, self.k)]
        return np.stack(columns, axis=1)

    @property
    def _on_one_count(self) -> LaplaceMechanism | GeometricMechanism:
        kind = LaplaceMechanism if self.noise == "laplace" else GeometricMechanism
        return kind(self.epsilon, self.sensitivity)
