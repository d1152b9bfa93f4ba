"""Outputs that leak outside the noise: exact numbers, keys that occur, missing values and exceptions."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from ....audit.claims.claim import ApproxDP, Claim, PureDP, check_number
from ....audit.datasets.rows import rows_of
from ...composition.sequential_composition import columns
from ...laws.reference_mechanism import ReferenceMechanism
from ...noise.geometric import GeometricMechanism
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import Floats, laplace_on_grid
from ...queries import Query, real_answer
from ..flaw import Flaw, check_choice

Threshold = Literal["noisy", "exact", "none"]


@dataclass(frozen=True, slots=True)
class BesideExact:
    """The output of a mechanism with an exact statistic of the rows as one more coordinate: no finite ε.

    Parameters
    ----------
    mechanism : mechanism
        Mechanism whose output is released.
    statistic : callable
        Map from the dataset to a number.
    """

    mechanism: ReferenceMechanism
    statistic: Query = field(repr=False)

    def __str__(self) -> str:
        return f"{self.mechanism} beside an exact statistic"

    @property
    def claim(self) -> Claim:
        """Claim of the mechanism without the statistic."""
        return self.mechanism.claim

    truth = None

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent rows, shape (size, n_coords + 1)."""
        outputs = columns(self.mechanism.sample(dataset, size, rng))
        exact = np.full((size, 1), real_answer(self.statistic, dataset))
        return np.concatenate([outputs, exact], axis=1)


@dataclass(frozen=True, slots=True)
class JsonReport(Flaw):
    """A noisy count as JSON text, with the exact number of rows beside it where `has_rows`: no finite ε.

    In practice, a response carries "meta" for debugging: numbers of rows read, skipped or cached.
    """

    epsilon: float
    has_rows: bool = True

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[str]:
        """`size` independent texts."""
        counts = GeometricMechanism(self.epsilon, query=sum).sample(dataset, size, rng)
        rest = {"rows": len(dataset)} if self.has_rows else {}
        return [json.dumps({"count": count, **rest}) for count in counts.tolist()]


@dataclass(frozen=True, slots=True)
class KeyedCounts(Flaw):
    """Noisy counts of the keys among the rows, as pairs in the order of the keys.

    A key that occurs once must appear with probability at most δ, which takes a threshold on the noisy count ("noisy").
    Then the mechanism is (ε, δ)-DP. Without a threshold ("none"), or with the same threshold on the exact count
    ("exact"), the data decide whether a key appears: no finite ε, for every δ below 1.

    References
    ----------
    Korolova, Kenthapadi, Mishra & Ntoulas (2009), Releasing search queries and clicks privately.
    """

    epsilon: float
    delta: float
    threshold: Threshold = "noisy"

    def __post_init__(self) -> None:
        GeometricMechanism(self.epsilon)  # refuses the same epsilon
        check_number("delta", self.delta, 0, 0.5, "of a key that occurs once", closed=False)
        check_choice("threshold", self.threshold, get_args(Threshold))

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def truth(self) -> ApproxDP | None:
        return self.claim if self.threshold == "noisy" else None

    @property
    def least(self) -> int:
        """Smallest count that is released: a true count of 1 reaches it after noise with probability at most δ."""
        ratio = math.exp(-self.epsilon)
        return 1 + max(1, math.ceil(math.log(self.delta * (1 + ratio)) / -self.epsilon))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[tuple[tuple[str, int], ...]]:
        """`size` independent tuples of pairs (key, noisy count)."""
        rows: Counter[Any] = rows_of(dataset)
        keys = sorted(key for key in rows if self.threshold != "exact" or rows[key] >= self.least)
        least = self.least if self.threshold == "noisy" else -math.inf
        if not keys:
            return [()] * size
        noisy = np.stack([GeometricMechanism(self.epsilon).sample(rows[key], size, rng) for key in keys], axis=1)
        return [
            tuple((key, count) for key, count in zip(keys, counts, strict=True) if count >= least)
            for counts in noisy.tolist()
        ]


@dataclass(frozen=True, slots=True)
class SmallCount(Flaw):
    """A noisy count, or `instead` where there are fewer than `least` rows: no finite ε.

    With `is_noisy` the noisy count is compared with `least` instead of the exact one, and the claim holds.
    """

    epsilon: float
    least: int
    instead: float | None = None
    is_noisy: bool = False

    @property
    def truth(self) -> PureDP | None:
        return PureDP(self.epsilon) if self.is_noisy else None

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[float | None]:
        """`size` independent outputs."""
        rows = len(dataset)
        if rows < self.least and not self.is_noisy:
            return [self.instead] * size
        counts = LaplaceMechanism(self.epsilon).sample(rows, size, rng).tolist()
        return [self.instead if self.is_noisy and count < self.least else count for count in counts]


@dataclass(frozen=True, slots=True)
class GroupMeans(Flaw):
    """Noisy means of the values in each group, NaN for a group without rows: no finite ε.

    In practice, 0/0 is NaN in numpy, and a table prints it.

    Rows are (group, value) with values in [0, 1], added or removed; the noise is that for one row in a group. `groups`
    lists all groups, for any rows. With `is_filled` an empty group counts as a mean of 0 and gets noise.
    """

    epsilon: float
    groups: tuple[Any, ...]
    is_filled: bool = False

    @property
    def truth(self) -> PureDP | None:
        return PureDP(self.epsilon) if self.is_filled else None

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent rows of means, shape (size, n_groups)."""
        means = []
        for group in self.groups:
            values = [min(max(value, 0.0), 1.0) for name, value in dataset if name == group]
            if values or self.is_filled:
                centre = math.fsum(values) / max(len(values), 1)
                means.append(laplace_on_grid(centre, 1.0 / self.epsilon, size, rng))
            else:
                means.append(np.full(size, math.nan))
        return np.stack(means, axis=1)


@dataclass(frozen=True, slots=True)
class CheckedCount:
    """A noisy count, one run at a time, that raises for refused rows: no finite ε, as an adversary sees exceptions.

    `refused` says whether it raises for a dataset without rows, for a row outside [0, 1], or never.
    """

    epsilon: float
    refused: Literal["nothing", "no rows", "outliers"]

    @property
    def claim(self) -> PureDP:
        """ε-DP, as for a count that never raises."""
        return PureDP(self.epsilon)

    @property
    def truth(self) -> PureDP | None:
        """The claim where nothing is refused, else None, as an exception reveals the row."""
        return self.claim if self.refused == "nothing" else None

    def __call__(self, dataset: Any, rng: np.random.Generator) -> float:
        if self.refused == "no rows" and len(dataset) == 0:
            raise ZeroDivisionError("mean of no rows")
        if self.refused == "outliers" and any(not 0 <= row <= 1 for row in dataset):
            raise ValueError("a row is outside [0, 1]")
        return float(laplace_on_grid(float(len(dataset)), 1.0 / self.epsilon, 1, rng)[0])
