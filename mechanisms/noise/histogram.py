"""The histogram mechanism: noise on the count of each category."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.errors import ClaimError, DatasetError
from ..laws.product import ProductLaw
from ..laws.reference_mechanism import PureMechanism
from ..noise_samplers import Floats, Integers
from ..parameter_checks import check_count
from ..queries import as_numbers
from .geometric import GeometricMechanism
from .laplace import LaplaceMechanism


def category_counts(dataset: Any, k: int) -> Integers:
    """Return the number of rows in each category 0 … k − 1, shape (k,); raise a `DatasetError` for other rows."""
    rows = as_numbers(dataset)
    if rows.ndim != 1 or not np.all((rows >= 0) & (rows < k) & (rows == np.floor(rows))):
        raise DatasetError(
            f"dataset={dataset!r:.60} is not a list of rows in range(k={k}); give each row as a whole number from 0 to "
            f"{k - 1}, its category.",
            k=k,
        )
    return np.bincount(rows.astype(np.int64), minlength=k)


@dataclass(frozen=True, slots=True)
class HistogramMechanism(PureMechanism):
    """The counts of `k` categories, each plus noise of scale sensitivity/epsilon: epsilon-DP.

    The dataset is a list of rows, and each row is a category in range(k). Adding or removing a row changes one count by
    1; replacing a row changes two. Add/remove therefore needs half the noise of replace.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    k : int
        Number of categories, at least 1.
    sensitivity : int
        Largest sum of absolute changes of the counts between neighbouring datasets: 1 for add/remove, 2 for replace.
    noise : {"laplace", "geometric"}
        Real outputs on the grid of `LaplaceMechanism`, or whole outputs.

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

    k: int
    sensitivity: int = 1
    noise: Literal["laplace", "geometric"] = "laplace"

    def __post_init__(self) -> None:
        check_count("k", self.k, "categories")
        check_number("sensitivity", self.sensitivity, 1, math.inf, "1 for add/remove, 2 for replaced rows")
        if self.noise not in ("laplace", "geometric"):
            raise ClaimError(f'noise={self.noise!r} is unknown; use "laplace" or "geometric".', noise=self.noise)
        self._on_one_count  # noqa: B018  # checks the other parameters

    def __str__(self) -> str:
        shown = f"epsilon={self.epsilon:g}, k={self.k}, sensitivity={self.sensitivity:g}, noise={self.noise}"
        return f"Histogram({shown})"

    def law(self, dataset: Any) -> ProductLaw:
        """The law of the output: before rounding to the grid for Laplace noise, exact for geometric noise."""
        return ProductLaw(tuple(self._on_one_count.law(count) for count in category_counts(dataset, self.k)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats | Integers:
        """`size` independent outputs, shape (size, k)."""
        columns: list[Any] = [self._on_one_count.sample(count, size, rng) for count in category_counts(dataset, self.k)]
        return np.stack(columns, axis=1)

    @property
    def _on_one_count(self) -> LaplaceMechanism | GeometricMechanism:
        kind = LaplaceMechanism if self.noise == "laplace" else GeometricMechanism
        return kind(self.epsilon, self.sensitivity)
