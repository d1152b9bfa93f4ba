"""The sparse vector technique: which answers are above a threshold, at a privacy cost for those above only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim, check_number
from ...audit.errors import ClaimError
from ..laws.reference_mechanism import PureMechanism
from ..laws.released_values import ComparedValuesLaw, FreshValuesLaw
from ..laws.transcripts import ABOVE, BELOW, STOPPED, TranscriptLaw, transcript_law
from ..noise_samplers import Floats, Integers, fill_laplace, pieces, round_to_grid, standard_laplace
from ..parameter_checks import check_count
from ..queries import Query, candidate_scores, identity


@dataclass(frozen=True, slots=True)
class SparseVector(PureMechanism):
    """Transcript of which answers are above a threshold, after noise on both, up to `cutoff` of them: epsilon-DP.

    Half of epsilon pays for the threshold, whose noise all answers share, and half for the answers above. Answers below
    cost nothing, however many there are.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    cutoff : int
        Number of answers above the threshold after which the mechanism stops; at least 1.
    threshold : float
    sensitivity : float
        Δ, the largest change of a single answer between neighbouring datasets, positive.
    monotone : bool
        Use half the noise on the answers. The claim then holds only if all answers of neighbours move in one direction,
        as counts do when a row is added.
    refresh : bool
        Draw new noise for the threshold after each answer above; its scale is then 2cΔ/ε instead of 2Δ/ε.
    queries : callable
        Maps the dataset to the answers, shape (n_queries,); by default the dataset is that vector.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Section 3.6 (with `refresh`); Lyu, Su & Li
    (2017), Understanding the sparse vector technique for differential privacy, Algorithm 1 (without).

    Examples
    --------
    >>> mechanism = SparseVector(epsilon=30.0, cutoff=2, threshold=10.0)
    >>> mechanism.sample([5, 15, 8, 12, 20], 1, np.random.default_rng(0)).tolist()
    [[0, 1, 0, 1, -1]]
    """

    cutoff: int = 1
    threshold: float = 0.0
    sensitivity: float = 1.0
    monotone: bool = False
    refresh: bool = False
    queries: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        check_number("sensitivity", self.sensitivity, 0, math.inf, "an answer's largest change", closed=False)
        check_count("cutoff", self.cutoff, "answers")
        self._runs_as  # noqa: B018  # checks the other parameters

    def __str__(self) -> str:
        endings = ", monotone" * self.monotone + ", refresh" * self.refresh
        return (
            f"SparseVector(epsilon={self.epsilon:g}, cutoff={self.cutoff}, sensitivity={self.sensitivity:g}{endings})"
        )

    @property
    def threshold_scale(self) -> float:
        """Scale of the noise on the threshold."""
        return (self.cutoff if self.refresh else 1) * 2 * self.sensitivity / self.epsilon

    @property
    def query_scale(self) -> float:
        """Scale of the noise on each answer."""
        return (1 if self.monotone else 2) * self.cutoff * 2 * self.sensitivity / self.epsilon

    def law(self, dataset: Any) -> TranscriptLaw:
        """The law of the output; raises a `DatasetError` if there are too many transcripts to integrate."""
        return self._runs_as.law(dataset)  # type: ignore[return-value]  # releases no values

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent transcripts, shape (size, n_queries), int64: 1 above, 0 below, −1 after the stop."""
        return self._runs_as.sample(dataset, size, rng)  # type: ignore[return-value]  # releases no values

    @property
    def _runs_as(self) -> NoisyThreshold:
        scales = self.threshold_scale, self.query_scale
        return NoisyThreshold(
            self.claim, *scales, self.cutoff, self.threshold, refresh=self.refresh, queries=self.queries
        )


@dataclass(frozen=True, slots=True)
class NoisyThreshold:
    """Noisy answers compared with a noisy threshold, with noise scales that need not suffice for the claim.

    Every published variant of the sparse vector technique, right or wrong, is one choice of these parameters.

    Parameters
    ----------
    claim : Claim
    threshold_scale, query_scale : float
        Scales of the Laplace noise on the threshold (positive) and on each answer (0 for no noise).
    cutoff : int or None
        Number of answers above the threshold after which the mechanism stops; None for no limit.
    threshold : float
    refresh : bool
        Whether the threshold's noise is drawn anew after each answer above.
    release_value : bool
        Whether to output the noisy value of each answer above, on a grid, and NaN for all other answers.
    value_scale : float
        Scale of new Laplace noise on the released answers; 0 to release the noisy value that was compared.
    queries : callable
    """

    claim: Claim
    threshold_scale: float
    query_scale: float
    cutoff: int | None = None
    threshold: float = 0.0
    refresh: bool = False
    release_value: bool = False
    value_scale: float = 0.0
    queries: Query = identity

    def __post_init__(self) -> None:
        check_number("threshold_scale", self.threshold_scale, 0, math.inf, "of Laplace noise", closed=False)
        check_number("query_scale", self.query_scale, 0, math.inf, "0 for no noise")
        check_number("threshold", self.threshold, -math.inf, math.inf, "the answers are compared with it", closed=False)
        if self.cutoff is not None:
            check_count("cutoff", self.cutoff, "answers")
        check_number("value_scale", self.value_scale, 0, math.inf, "0 to release the noisy answer that was compared")
        if self.release_value and self.query_scale == self.value_scale == 0:
            raise ClaimError("query_scale=0 would release exact answers; use a positive one.", query_scale=0)
        if self.value_scale > 0 and not self.release_value:
            raise ClaimError(
                f"value_scale={self.value_scale:g} applies to released values only; use release_value=True.",
                value_scale=self.value_scale,
            )

    def law(self, dataset: Any) -> TranscriptLaw | ComparedValuesLaw | FreshValuesLaw:
        """The exact law of the output."""
        answers = candidate_scores(self.queries, dataset)
        cutoff = len(answers) if self.cutoff is None else self.cutoff
        scales, values = (self.threshold_scale, self.query_scale), tuple(answers.tolist())
        if self.release_value and self.value_scale == 0:
            return ComparedValuesLaw(values, self.threshold, *scales, cutoff, self.refresh)
        transcripts = transcript_law(answers - self.threshold, *scales, self.cutoff, refresh=self.refresh)
        return FreshValuesLaw(transcripts, cutoff, values, self.value_scale) if self.release_value else transcripts

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats | Integers:
        """`size` transcripts, shape (size, n_queries): the code of each answer, or its released value."""
        answers = candidate_scores(self.queries, dataset)
        limit = len(answers) if self.cutoff is None else self.cutoff
        if self.release_value:
            values = np.full((size, len(answers)), np.nan)
        else:
            codes = np.full((size, len(answers)), STOPPED, dtype=np.int64)
        for piece in pieces(size):
            thresholds = self.threshold_scale * standard_laplace(piece.stop - piece.start, rng)
            noise = np.zeros(len(thresholds))
            left = np.full(len(thresholds), limit)
            for j, answer in enumerate(answers.tolist()):
                if self.query_scale > 0:
                    fill_laplace(noise, rng)
                    noise *= self.query_scale
                is_open = left > 0
                is_above = (noise + (answer - self.threshold) >= thresholds) & is_open
                left -= is_above
                n_above = int(np.count_nonzero(is_above))
                if self.release_value:
                    is_fresh = self.value_scale > 0
                    released = self.value_scale * standard_laplace(n_above, rng) if is_fresh else noise[is_above]
                    values[piece, j][is_above] = round_to_grid(released, self.value_scale or self.query_scale, answer)
                else:
                    codes[piece, j][is_open] = np.where(is_above, ABOVE, BELOW)[is_open]
                if self.refresh:
                    thresholds[is_above] = self.threshold_scale * standard_laplace(n_above, rng)
        return values if self.release_value else codes
