"""Compositions whose parts share noise or whose budget is counted wrongly, and noise for a local sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import Claim, PureDP, check_number
from ....audit.errors import ClaimError, DatasetError
from ...composition.sequential_composition import Budget, SequentialComposition, budget, budget_of, composed
from ...laws.divergences import Floats, Law, check_rule
from ...laws.laws import LaplaceLaw
from ...laws.reference_mechanism import ReferenceMechanism
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import grid_step, pieces, standard_laplace
from ...queries import Query, real_answer, whole_answer
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class LocalSensitivityLaplace(Twin):
    """The squared number of rows with noise for the sensitivity at the empty dataset: (2m − 1)·ε for up to m rows.

    In practice, the sensitivity is measured on the dataset at hand and its neighbours, where the answer moves by 1, and
    used for all datasets. The bug does not show between 0 rows and 1. It shows at distance 2 from the empty dataset,
    where the answer moves by 4 instead of 2, and between 1 row and 2, where it moves by 3.
    """

    epsilon: float
    most_rows: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.most_rows, int) or self.most_rows < 1:
            raise ClaimError(
                f"most_rows={self.most_rows!r} is not a number of rows; use a whole number from 1.",
                most_rows=self.most_rows,
            )
        LaplaceMechanism(self.epsilon, sensitivity=2 * self.most_rows - 1)  # the right mechanism refuses the same

    @property
    def runs_as(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.epsilon, query=self._squared_rows)

    @property
    def truth(self) -> PureDP:
        return PureDP((2 * self.most_rows - 1) * self.epsilon)

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
class SharedNoiseLaw(Law):
    """Law of rows (a₁ + Z, …, a_k + Z) with one Z from the Laplace law of this scale, on a line.

    The answers a are `locations`. Rows on the line have the density of their first entry, others have density 0. Two
    different lines have no row in common.
    """

    locations: tuple[float, ...]
    scale: float

    def __post_init__(self) -> None:
        check_rule("number of answers", len(self.locations), len(self.locations) > 0, "one or more")
        self._first  # noqa: B018  # refuses the scale

    @property
    def _first(self) -> LaplaceLaw:
        return LaplaceLaw(self.locations[0], self.scale)

    @property
    def line(self) -> tuple[float, ...]:
        """Position of the line: the answers less the first."""
        return tuple(answer - self.locations[0] for answer in self.locations)

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Log density of each row of `outputs`, shape (..., k), on the line to within the grid of the noise."""
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
class SharedNoise:
    """Answers with the same Laplace noise added to each, rounded to the Laplace mechanism's grid."""

    queries: tuple[Query, ...]
    scale: float
    claim: Claim

    def law(self, dataset: Any) -> SharedNoiseLaw:
        return SharedNoiseLaw(self._answers(dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        step, outputs = grid_step(self.scale), np.empty((size, len(self.queries)))
        answers = np.asarray(self._answers(dataset))
        for piece in pieces(size):
            noise = self.scale * standard_laplace(piece.stop - piece.start, rng)
            outputs[piece] = np.round((noise[:, None] + answers) / step) * step
        return outputs

    def _answers(self, dataset: Any) -> tuple[float, ...]:
        return tuple(real_answer(query, dataset) for query in self.queries)


@dataclass(frozen=True, slots=True)
class SharedNoiseLaplace(Twin):
    """Several Laplace mechanisms of `epsilon_each` whose claims are added, with the same noise in all: no finite ε.

    In practice, each query of a run builds its own generator from one fixed seed, which was meant for tests. Where a
    row moves one answer and not the other, the noise cancels in their difference, which reveals the row. Where it moves
    all answers alike the bug does not show, and the loss is smaller than the sum.

    Parameters
    ----------
    epsilon_each : float
        ε of each query, for a sensitivity of 1.
    queries : sequence of callable
        Maps from the dataset to a number, one or more.
    """

    epsilon_each: float
    queries: Sequence[Callable[[Any], Any]]

    def __post_init__(self) -> None:
        check_number("epsilon_each", self.epsilon_each, 0, math.inf, "of each query", closed=False)
        object.__setattr__(self, "queries", tuple(self.queries))
        if not self.queries:
            raise ClaimError("queries=() has no query; give one query or more.", queries=self.queries)

    def __str__(self) -> str:
        return f"SharedNoiseLaplace(epsilon_each={self.epsilon_each:g}, {len(self.queries)} queries)"

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """Claimed total cost of the queries, in nats."""
        return self.epsilon_each * len(self.queries)

    @property
    def runs_as(self) -> SharedNoise:
        return SharedNoise(tuple(self.queries), 1.0 / self.epsilon_each, self.claim)

    truth = None


@dataclass(frozen=True, slots=True)
class UndercountedComposition(Twin):
    """`k` runs of one mechanism, charged as `charged` of them: k/charged times the claim.

    With charged = 1 the runs are charged as a single one. With charged = √k the root of advanced composition is taken
    with constant 1 and without its δ; pure composition has no such theorem.

    Parameters
    ----------
    mechanism : mechanism
        Mechanism with a pure or approximate claim.
    k : int
        Number of runs, at least 1.
    charged : float
        Number of runs paid for, positive.
    """

    mechanism: ReferenceMechanism
    k: int
    charged: float = 1.0

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
    def runs_as(self) -> SequentialComposition:
        return composed(self.mechanism, self.k)

    @property
    def claim(self) -> Budget:
        epsilon, delta = budget_of(self.mechanism.claim)
        return budget(self.charged * epsilon, self.charged * delta)
