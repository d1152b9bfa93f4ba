"""Compositions and samples whose budget is counted wrongly, and faults of whole outputs."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, Claim, PureDP, check_number
from ...audit.datasets.rows import rows_of
from ...audit.errors import DatasetError
from ..composition import Budget, IntervalOf, ParallelComposition, budget, budget_of, check_edges, columns, composed
from ..distributions.distributions import LaplaceDistribution
from ..distributions.divergences import Distribution, ReferenceMechanism, check_rule
from ..noise.laplace import GeometricMechanism, LaplaceMechanism
from ..noise_samplers import Floats, grid_step, laplace_on_grid, round_to_grid, standard_laplace
from ..queries import Query, check_choice, check_count, check_value, real_answer, whole_answer
from .flaw import Flaw, PureFlaw, PureVariant, Variant
from .noise import LaplaceOfScale

__all__ = [
    "LocalSensitivityLaplace", "SharedNoiseLaplace", "UndercountedComposition", "OverlappingPartCounts",
    "PartCountsForReplace", "SampledTotal", "BesideExact", "JsonReport", "KeyedCounts", "SmallCount", "GroupMeans",
    "CheckedCount",
]  # fmt: skip

# Compositions whose parts share noise or whose budget is counted wrongly, and noise for a local sensitivity.


@dataclass(frozen=True, slots=True)
class LocalSensitivityLaplace(PureVariant):
    """The squared number of rows with noise for the sensitivity at the empty dataset: (2m − 1)·ε for up to m rows.

    In practice, the sensitivity is measured on the dataset at hand and its neighbours, where the answer moves by 1, and
    used for all datasets. The bug does not show between 0 rows and 1. It shows at distance 2 from the empty dataset,
    where the answer moves by 4 instead of 2, and between 1 row and 2, where it moves by 3.
    """

    most_rows: int = 2
    runs_as = property(lambda t: LaplaceMechanism(t.epsilon, query=t._squared_rows))
    truth = property(lambda t: PureDP((2 * t.most_rows - 1) * t.epsilon))

    def __post_init__(self) -> None:
        check_count("most_rows", self.most_rows, "rows")
        LaplaceMechanism(self.epsilon, sensitivity=2 * self.most_rows - 1)  # the right mechanism refuses the same

    def _squared_rows(self, dataset: Any) -> int:
        rows = whole_answer(len, dataset)
        if rows > self.most_rows:
            raise DatasetError(
                f"a dataset of {rows} rows has more than most_rows={self.most_rows}; use a larger one.",
                rows=rows,
                most_rows=self.most_rows,
            )
        return rows**2


@dataclass(frozen=True, slots=True)
class SharedNoiseDistribution(Distribution):
    """Distribution of rows (a₁ + Z, …, a_k + Z), a the `locations`, with one Z from a Laplace distribution of this
    scale: a line.

    Rows on the line have the density of their first entry. Two different lines have no row in common.
    """

    locations: tuple[float, ...]
    scale: float

    def __post_init__(self) -> None:
        check_rule("number of answers", len(self.locations), len(self.locations) > 0, "one or more")
        self._first  # noqa: B018  # refuses the scale

    @property
    def _first(self) -> LaplaceDistribution:
        return LaplaceDistribution(self.locations[0], self.scale)

    @property
    def line(self) -> tuple[float, ...]:
        """Position of the line: the answers less the first."""
        return tuple(answer - self.locations[0] for answer in self.locations)

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        rows = np.asarray(outputs, dtype=np.float64)
        off = np.abs(rows - rows[..., :1] - np.asarray(self.line)).max(axis=-1)
        return np.where(off <= grid_step(self.scale), self._first.log_density(rows[..., 0]), -np.inf)

    def is_comparable(self, other: Self) -> bool:
        return self.scale == other.scale and len(self.locations) == len(other.locations)

    def delta_from(self, other: Self, epsilon: float) -> float:
        return self._first.delta_from(other._first, epsilon) if self._meets(other) else 1.0

    def epsilon_from(self, other: Self, delta: float) -> float:
        return self._first.epsilon_from(other._first, delta) if self._meets(other) else math.inf

    def _meets(self, other: Self) -> bool:
        """Whether the two lines agree to half a step of the noise's grid; smaller gaps come from rounded answers."""
        step = grid_step(self.scale)
        return all(abs(one - two) <= step / 2 for one, two in zip(self.line, other.line, strict=True))


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

    def __post_init__(self) -> None:
        check_number("epsilon_each", self.epsilon_each, 0, math.inf, "of each query", closed=False)
        object.__setattr__(self, "queries", tuple(self.queries))
        check_value("queries", self.queries, self.queries, "has no query; give one query or more.")

    def __str__(self) -> str:
        return f"SharedNoiseLaplace(epsilon_each={self.epsilon_each:g}, {len(self.queries)} queries)"

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """Claimed total cost of the queries, in nats."""
        return self.epsilon_each * len(self.queries)

    def distribution(self, dataset: Any) -> SharedNoiseDistribution:
        """Distribution of the output before rounding to the Laplace mechanism's grid."""
        return SharedNoiseDistribution(
            tuple(real_answer(query, dataset) for query in self.queries), 1.0 / self.epsilon_each
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        distribution = self.distribution(dataset)
        step = grid_step(distribution.scale)
        noise = distribution.scale * standard_laplace(size, rng)
        return np.asarray(np.round((noise[:, None] + distribution.locations) / step) * step)


@dataclass(frozen=True, slots=True)
class UndercountedComposition(Variant):
    """`k` runs of one mechanism, charged as `charged` of them: k/charged times the claim.

    With charged = 1 the runs are charged as a single one. With charged = √k the root of advanced composition is taken
    with constant 1 and without its δ; pure composition has no such theorem.

    The mechanism has a pure or approximate claim; `charged` is positive.
    """

    mechanism: ReferenceMechanism
    k: int
    charged: float = 1.0
    runs_as = property(lambda t: composed(t.mechanism, t.k))

    def __post_init__(self) -> None:
        check_number("charged", self.charged, 0, math.inf, "how many runs are paid for", closed=False)
        self.runs_as.claim  # noqa: B018  # refuses the mechanism and k

    def __str__(self) -> str:
        return f"{self.k} runs charged as {self.charged:.3g} of {self.mechanism}"

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """ε of the claim, in nats."""
        return self.claim.epsilon

    @property
    def claim(self) -> Budget:
        epsilon, delta = budget_of(self.mechanism.claim)
        return budget(self.charged * epsilon, self.charged * delta)


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

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        check_number("rate", self.rate, 0, 1, "the share of rows that are used", closed=False)
        check_choice("sampling", self.sampling, get_args(Sampling))

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


# Parallel composition where it does not hold: overlapping parts, and rows that move between parts.


def counts_of_parts(epsilon: float, n_parts: int, part: Callable[[Any], int]) -> ParallelComposition:
    """Number of rows in each part, with Laplace noise of scale 1/ε."""
    return ParallelComposition([LaplaceMechanism(epsilon, query=len)] * n_parts, part)


def _take_edges(flaw: OverlappingPartCounts | PartCountsForReplace, least: int, way_out: str) -> None:
    check_number("epsilon", flaw.epsilon, 0, math.inf, "in nats", closed=False)
    object.__setattr__(flaw, "edges", check_edges(flaw.edges))
    check_number("number of edges", len(flaw.edges), least, math.inf, way_out)


@dataclass(frozen=True, slots=True)
class OverlappingPartCounts(PureVariant):
    """Counts of intervals that contain both their ends, taken for disjoint parts: 2ε instead of ε.

    In practice, BETWEEN includes both ends, so "between 18 and 65" and "between 65 and 120" both count a person of 65.
    The bug shows on a row at an inner edge, added or removed.

    `edges` are three or more, in ascending order.
    """

    edges: Sequence[float]
    runs_as = property(lambda t: LaplaceOfScale(1.0 / t.epsilon, t.claim, t._counts))
    truth = property(lambda t: PureDP(2 * t.epsilon))

    def __post_init__(self) -> None:
        _take_edges(self, 3, "two intervals share an edge")

    def _counts(self, dataset: Any) -> npt.NDArray[np.int64]:
        rows, edges = np.asarray(dataset, dtype=np.float64)[:, None], np.asarray(self.edges)
        return np.asarray(((rows >= edges[:-1]) & (rows <= edges[1:])).sum(axis=0), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class PartCountsForReplace(PureVariant):
    """Counts of disjoint parts at ε each, claimed to be ε-DP for a replaced row, which moves between parts: 2ε.

    In practice, "parallel composition is free" is said without naming the adjacency. The bug shows on datasets of equal
    size, one row of which is in another part: one count falls and another rises.

    `edges`, one or more, cut the numbers into parts (`IntervalOf`).
    """

    edges: Sequence[float]
    runs_as = property(lambda t: counts_of_parts(t.epsilon, len(t.edges) + 1, IntervalOf(t.edges)))
    truth = property(lambda t: PureDP(2 * t.epsilon))

    def __post_init__(self) -> None:
        _take_edges(self, 1, "they cut the rows into two parts or more")


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

    def __post_init__(self) -> None:
        GeometricMechanism(self.epsilon)  # refuses the same epsilon
        check_number("delta", self.delta, 0, 0.5, "of a key that occurs once", closed=False)
        check_choice("threshold", self.threshold, get_args(Threshold))

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
