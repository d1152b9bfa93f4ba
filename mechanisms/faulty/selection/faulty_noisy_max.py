"""Report noisy max with too little noise, or with the value in its output."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import PureDP, check_number
from ....audit.errors import DatasetError
from ...laws.divergences import ScalarLaw
from ...laws.laws import LaplaceLaw
from ...noise_samplers import Floats, fill_laplace, pieces, round_to_grid
from ...parameter_checks import check_count
from ...queries import Query, candidate_scores, identity
from ...selection.noisy_max import ReportNoisyMax
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class NoisyMaxMissingFactorTwo(Twin):
    """Report noisy max with noise of scale Δ/ε, enough for monotone counts only: 2ε instead of ε.

    In practice, the saving for counting queries (Dwork & Roth 2014, Claim 3.9) is taken where a row is replaced, or for
    scores that can fall when a row is added. The bug shows where one count rises while the others fall.
    """

    epsilon: float
    sensitivity: float = 1.0
    noise: Literal["laplace", "exponential", "gumbel"] = "laplace"
    counts: Query = identity

    @property
    def runs_as(self) -> ReportNoisyMax:
        return ReportNoisyMax(self.epsilon, self.sensitivity, monotone=True, noise=self.noise, counts=self.counts)

    @property
    def truth(self) -> PureDP:
        return PureDP(2 * self.epsilon)


@dataclass(frozen=True, slots=True)
class MaximumLaplaceLaw(ScalarLaw):
    """The largest of independent Laplace variables with these locations and one scale."""

    locations: tuple[float, ...]
    scale: float

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        z = np.asarray(outputs, dtype=np.float64)
        log_cdfs = self._log_cdfs(z)
        hazards = [law.log_density(z) - log_cdf for law, log_cdf in zip(self._laws, log_cdfs, strict=True)]
        return np.asarray(log_cdfs.sum(axis=0) + np.logaddexp.reduce(hazards, axis=0))

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return np.asarray(np.exp(self._log_cdfs(np.asarray(outputs, dtype=np.float64)).sum(axis=0)))

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return np.asarray(-np.expm1(self._log_cdfs(np.asarray(outputs, dtype=np.float64)).sum(axis=0)))

    @property
    def _laws(self) -> list[LaplaceLaw]:
        return [LaplaceLaw(location, self.scale) for location in self.locations]

    def _log_cdfs(self, z: Floats) -> Floats:
        """ln F_j, one row per location, from the tail that is small."""
        with np.errstate(divide="ignore"):
            rows = [np.where(z < law.location, np.log(law.cdf(z)), np.log1p(-law.sf(z))) for law in self._laws]
        return np.array(rows)


@dataclass(frozen=True, slots=True)
class NoisyMaxReleasingValue(Twin):
    """The largest noisy count released, with noise that suffices for its index: Kε instead of ε for K counts.

    In practice, the maximum comes for free with its index and is printed with it (Ding, Wang, Wang, Zhang & Kifer 2018,
    Section 4). When a row can raise all K counts, the lower tail of the released value falls by e^{−Kε} for a shift of
    1, as all K noises must be low. The bug shows on counts (0, …, 0) and (1, …, 1), at values below both.

    References
    ----------
    Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of differential privacy, Section 4 (the noisy max
    algorithms that return the value).
    """

    epsilon: float
    n_candidates: int
    counts: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        check_count("n_candidates", self.n_candidates, "counts")

    @property
    def runs_as(self) -> LargestNoisyCount:
        return LargestNoisyCount(1.0 / self.epsilon, self.truth, self.counts, self.n_candidates)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.n_candidates * self.epsilon)


@dataclass(frozen=True, slots=True)
class LargestNoisyCount:
    """The largest of the counts plus independent Laplace noise, on a grid."""

    scale: float
    claim: PureDP
    counts: Query
    n_candidates: int

    def law(self, dataset: Any) -> MaximumLaplaceLaw:
        return MaximumLaplaceLaw(tuple(self._scores(dataset).tolist()), self.scale)

    def _scores(self, dataset: Any) -> Floats:
        scores = candidate_scores(self.counts, dataset)
        if len(scores) != self.n_candidates:
            raise DatasetError(
                f"the query returned {len(scores)} counts, but n_candidates={self.n_candidates}; make them agree, as "
                "the claim depends on their number.",
                n_candidates=self.n_candidates,
            )
        return scores

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        counts = self._scores(dataset)
        largest = counts.max()
        places = (counts - largest) / self.scale
        out = np.full(size, -np.inf)
        for piece in pieces(size):
            part = out[piece]
            trial = np.empty_like(part)
            for place in places:
                fill_laplace(trial, rng)
                trial += place
                np.maximum(part, trial, out=part)
            part *= self.scale
            round_to_grid(part, self.scale, float(largest))
        return out
