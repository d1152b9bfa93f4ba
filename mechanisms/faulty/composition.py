"""Shared noise, samples whose budget is counted wrongly, and faults of whole outputs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from ...audit.datasets.rows import rows_of
from ..composition import columns
from ..distributions.divergences import ReferenceMechanism
from ..noise.laplace import GeometricMechanism, LaplaceMechanism
from ..noise_samplers import Floats, grid_step, laplace_on_grid, round_to_grid, standard_laplace
from ..queries import Query, real_answer
from .flaw import Flaw, PureFlaw

__all__ = [
    "SharedNoiseLaplace", "SampledTotal", "BesideExact", "JsonReport", "KeyedCounts", "SmallCount", "GroupMeans",
    "CheckedCount",
]  # fmt: skip

# Compositions whose parts share noise.


@dataclass(frozen=True, slots=True)
class SharedNoiseLaplace(Flaw):
    """Several Laplace mechanisms of `epsilon_each` whose claims are added, with the same noise in all: no finite ε.

    In practice, each query of a run builds its own generator from one fixed seed, which was meant for tests. If a
    row moves one answer and not the other, the noise cancels in their difference, which reveals the row. If it moves
    all answers alike the bug does not show, and the loss is smaller than the sum.

    `queries` map the dataset to a number each, of sensitivity 1.
    """

    epsilon_each: float
    queries: Sequence[Callable[[Any], Any]]

    def __str__(self) -> str:
        return f"SharedNoiseLaplace(epsilon_each={self.epsilon_each:g}, {len(self.queries)} queries)"

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """Claimed total cost of the queries, in nats."""
        return self.epsilon_each * len(self.queries)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        answers, scale = [real_answer(query, dataset) for query in self.queries], 1.0 / self.epsilon_each
        step = grid_step(scale)
        noise = scale * standard_laplace(size, rng)
        return np.asarray(np.round((noise[:, None] + answers) / step) * step)


# Amplification by subsampling claimed without the sampling for which it is proved.

Sampling = Literal["poisson", "none", "first", "fixed", "replacement"]


@dataclass(frozen=True, slots=True)
class SampledTotal(PureFlaw):
    """The sum of a sample of rows in [−1, 1] plus Laplace noise of scale 1/ε, claimed to be ln(1 + rate(e^ε − 1))-DP.

    The claim holds under add/remove if each row is in the sample with probability `rate`, independently ("poisson"). It
    need not hold for any other sampling. With "none" all rows are used, and the loss is ε. With "first" the first
    ⌊rate·n⌋ rows are, and the loss is ε for a row among them. With "fixed", a random sample of ⌊rate·n⌋ rows, an added
    row displaces another, and the sum moves by 2. With "replacement", ⌊rate·n⌋ draws, a row may occur more than once.

    Source: Balle, Barthe & Gaboardi (2018).
    """

    rate: float
    sampling: Sampling = "poisson"

    @property
    def claim(self) -> PureDP:
        return PureDP(math.log1p(self.rate * math.expm1(self.epsilon)))

    @property
    def truth(self) -> Claim | None:
        """None for "replacement" and "first": the loss grows with the rows, or their order may differ."""
        match self.sampling:
            case "poisson":
                return self.claim
            case "none":
                return PureDP(self.epsilon)
            case "fixed":  # coupled samples of x and y differ in at most one row
                return PureDP(2 * self.epsilon)
            case _:
                return None

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        rows = np.clip(np.asarray(dataset, dtype=np.float64), -1.0, 1.0)
        scale = 1.0 / self.epsilon
        step = grid_step(scale)
        noise = scale * standard_laplace(size, rng) + np.round(self._totals(rows, size, rng) / step) * step
        return round_to_grid(noise, scale)

    def _totals(self, rows: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Sums of independent samples, shape (size,)."""
        n, batch = len(rows), math.floor(self.rate * len(rows))
        times: Any  # how often each row is in each sample
        match self.sampling:
            case "none":
                times = np.ones((size, n))
            case "first":
                times = np.tile(np.arange(n) < batch, (size, 1))
            case "poisson":
                times = rng.random((size, n)) < self.rate
            case "fixed":
                times = np.argsort(rng.random((size, n)), axis=1) < batch  # of a random permutation
            case _:
                times = rng.multinomial(batch, np.full(n, 1 / max(n, 1)), size)
        return np.asarray(times @ rows)


# Outputs that leak outside the noise: exact numbers, keys that occur, missing values and exceptions.

Threshold = Literal["noisy", "exact", "none"]


@dataclass(frozen=True, slots=True)
class BesideExact:
    """The output of a mechanism with an exact statistic of the rows as one more coordinate: no finite ε.

    `statistic` maps the dataset to a number.
    """

    mechanism: ReferenceMechanism
    statistic: Query = field(repr=False)
    truth = None

    def __str__(self) -> str:
        return f"{self.mechanism} next to an exact statistic"

    @property
    def claim(self) -> Claim:
        """Claim of the mechanism without the statistic."""
        return self.mechanism.claim

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent rows, shape (size, n_coords + 1)."""
        outputs = columns(self.mechanism.sample(dataset, size, rng))
        exact = np.full((size, 1), real_answer(self.statistic, dataset))
        return np.concatenate([outputs, exact], axis=1)


@dataclass(frozen=True, slots=True)
class JsonReport(PureFlaw):
    """A noisy count as JSON text, with the exact number of rows next to it when `has_rows`: no finite ε.

    In practice, a response carries "meta" for debugging: numbers of rows read, skipped or cached.
    """

    has_rows: bool = True

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[str]:
        counts = GeometricMechanism(self.epsilon, query=sum).sample(dataset, size, rng)
        rest = {"rows": len(dataset)} if self.has_rows else {}
        return [json.dumps({"count": count, **rest}) for count in counts.tolist()]


@dataclass(frozen=True, slots=True)
class KeyedCounts(PureFlaw):
    """Noisy counts of the keys among the rows, as pairs in the order of the keys.

    A key that occurs once must appear with probability at most δ, which takes a threshold on the noisy count ("noisy").
    Then the mechanism is (ε, δ)-DP. Without a threshold ("none"), or with the same threshold on the exact count
    ("exact"), the data decide whether a key appears: no finite ε, for every δ below 1.

    Source: Korolova, Kenthapadi, Mishra & Ntoulas (2009).
    """

    delta: float
    threshold: Threshold = "noisy"
    claim = property(lambda t: ApproxDP(t.epsilon, t.delta))
    truth = property(lambda t: t.claim if t.threshold == "noisy" else None)

    @property
    def least(self) -> int:
        """Smallest count that is released: a true count of 1 reaches it after noise with probability at most δ."""
        ratio = math.exp(-self.epsilon)
        return 1 + max(1, math.ceil(math.log(self.delta * (1 + ratio)) / -self.epsilon))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[tuple[tuple[str, int], ...]]:
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
class SmallCount(PureFlaw):
    """A noisy count, or `instead` where there are fewer than `least` rows: no finite ε.

    With `is_noisy` the noisy count is compared with `least` instead of the exact one, and the claim holds.
    """

    least: int
    instead: float | None = None
    is_noisy: bool = False
    truth = property(lambda t: PureDP(t.epsilon) if t.is_noisy else None)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[float | None]:
        rows = len(dataset)
        if rows < self.least and not self.is_noisy:
            return [self.instead] * size
        counts = LaplaceMechanism(self.epsilon).sample(rows, size, rng).tolist()
        return [self.instead if self.is_noisy and count < self.least else count for count in counts]


@dataclass(frozen=True, slots=True)
class GroupMeans(PureFlaw):
    """Noisy means of the values in each group, NaN for a group without rows: no finite ε.

    In practice, 0/0 is NaN in numpy, and a table prints it.

    Rows are (group, value) with values in [0, 1], added or removed; the noise is that for one row in a group. `groups`
    lists all groups, for any rows. With `is_filled` an empty group counts as a mean of 0 and gets noise.
    """

    groups: tuple[Any, ...]
    is_filled: bool = False
    truth = property(lambda t: PureDP(t.epsilon) if t.is_filled else None)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
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

    claim = property(lambda t: PureDP(t.epsilon), doc="ε-DP, as for a count that never raises.")
    truth = property(lambda t: t.claim if t.refused == "nothing" else None, doc="None if an exception reveals a row.")

    def __call__(self, dataset: Any, rng: np.random.Generator) -> float:
        if self.refused == "no rows" and len(dataset) == 0:
            raise ZeroDivisionError("mean of no rows")
        if self.refused == "outliers" and any(not 0 <= row <= 1 for row in dataset):
            raise ValueError("a row is outside [0, 1]")
        return float(laplace_on_grid(float(len(dataset)), 1.0 / self.epsilon, 1, rng)[0])
