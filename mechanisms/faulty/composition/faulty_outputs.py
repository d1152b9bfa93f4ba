"""What is released beside the noise: exact numbers, names that occur, gaps where there is little, exceptions."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from ....audit.claims.claim import Claim, check_number
from ....audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ....audit.datasets.rows import rows_of
from ....audit.errors import ClaimError
from ...composition.sequential_composition import columns
from ...laws.reference_mechanism import ReferenceMechanism
from ...noise.geometric import GeometricMechanism
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import Floats, laplace_on_grid
from ...queries import Query, real_answer
from ..flaw import Flaw

_THRESHOLDS: Final = ("noisy", "exact", "none")


@dataclass(frozen=True, slots=True)
class BesideExact:
    """The output of a mechanism and, in one more coordinate, a statistic of the rows as it is: no finite epsilon.

    In practice the number of rows is "not sensitive", an error bar is made of the exact variance, or a mean is shown
    beside the noisy variance around it.

    Parameters
    ----------
    mechanism : mechanism
        What gives the protected output.
    statistic : callable
        From the dataset to a number.
    """

    mechanism: ReferenceMechanism
    statistic: Query = field(repr=False)

    def __str__(self) -> str:
        return f"{self.mechanism} beside an exact statistic"

    @property
    def claim(self) -> Claim:
        """That of the mechanism alone."""
        return self.mechanism.claim

    @property
    def truth(self) -> None:
        """None: the statistic tells neighbours apart for certain."""
        return None

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent rows, shape (size, n_coords + 1)."""
        outputs = columns(self.mechanism.sample(dataset, size, rng))
        exact = np.full((size, 1), real_answer(self.statistic, dataset))
        return np.concatenate([outputs, exact], axis=1)


@dataclass(frozen=True, slots=True)
class JsonReport(Flaw):
    """A noisy count as a JSON text that says of how many rows it is, or not: with it, no finite epsilon.

    In practice a response carries "meta" for debugging: numbers of rows read, skipped, or cached.
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
    """Noisy counts of the keys among the rows, as pairs in the order of the keys: (epsilon, delta)-DP if done right.

    A key that occurs once must come with probability delta at most, which takes a threshold on the noisy count
    ("noisy"). Without one ("none"), or with one on the exact count ("exact", the same number), a key is there or not as
    the data say: no finite epsilon, for all deltas below 1.

    In practice GROUP BY gives a row for each group that occurs, and small groups are left out before the noise.

    References
    ----------
    Korolova, Kenthapadi, Mishra & Ntoulas (2009), Releasing search queries and clicks privately.
    """

    epsilon: float
    delta: float
    threshold: Literal["noisy", "exact", "none"] = "noisy"

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_number("delta", self.delta, 0, 0.5, "of a key that occurs once", closed=False)
        if self.threshold not in _THRESHOLDS:
            raise ClaimError(
                f"threshold={self.threshold!r} is unknown; use one of {', '.join(_THRESHOLDS)}.",
                threshold=self.threshold,
            )

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)

    @property
    def truth(self) -> ApproxDP | None:
        return self.claim if self.threshold == "noisy" else None

    @property
    def least(self) -> int:
        """The smallest count that is released: geometric noise takes 1 to it with probability delta at most."""
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
    """A noisy count, or something else where there are fewer than `least` rows: no finite epsilon.

    In practice small groups are suppressed by their exact size (`instead` None), or a query on no rows returns early
    with a zero that has no noise (`least` 1, `instead` 0). With `is_noisy` it is the noisy count that has to reach
    `least`, and the claim holds.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    least : int
        Fewest rows that get a noisy count.
    instead : float or None
        What is released otherwise.
    is_noisy : bool
        Whether the noisy count is compared.
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
    """The mean of the values in each of some groups with Laplace noise, and NaN for a group without rows: no epsilon.

    In practice 0/0 is NaN in numpy, and a table prints it. Rows are (group, value), values in [0, 1]; the noise is that
    for one row in a group. With `is_filled` an empty group counts as a mean of 0, and gets noise like any other.

    Parameters
    ----------
    epsilon : float
        In nats, positive, for rows that are added or removed.
    groups : tuple
        All of them, whatever the rows are.
    is_filled : bool
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
    """One run at a time: a noisy count that raises for rows that it will not have: no finite epsilon.

    An adversary sees an exception as he sees an output. In practice a mean of no rows divides by zero, and a validation
    refuses a row beyond its range, as if the caller were to blame.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    refused : {"nothing", "no rows", "outliers"}
        Whether it raises for a dataset without rows, or for a row outside [0, 1].
    """

    epsilon: float
    refused: Literal["nothing", "no rows", "outliers"]

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, as for a count that never raises."""
        return PureDP(self.epsilon)

    @property
    def truth(self) -> PureDP | None:
        """The claim where nothing is refused, else None: a row that raises is seen."""
        return self.claim if self.refused == "nothing" else None

    def __call__(self, dataset: Any, rng: np.random.Generator) -> float:
        if self.refused == "no rows" and len(dataset) == 0:
            raise ZeroDivisionError("mean of no rows")
        if self.refused == "outliers" and any(not 0 <= row <= 1 for row in dataset):
            raise ValueError("a row is outside [0, 1]")
        return float(laplace_on_grid(float(len(dataset)), 1.0 / self.epsilon, 1, rng)[0])
