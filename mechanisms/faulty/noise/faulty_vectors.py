"""Vectors of answers with the wrong amount of noise, or with none on some coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ....audit.claims.claim import Claim, check_number
from ....audit.errors import ClaimError
from ...laws.discrete_law import DiscreteLaw
from ...laws.laws import LaplaceLaw
from ...laws.product import ProductLaw
from ...noise.gaussian_vector import vector_answer
from ...noise_samplers import Floats, laplace_on_grid, round_to_grid, standard_laplace
from ...queries import Query, identity
from ..flaw import Flaw

Spared = Literal["none", "zeros", "last"]
_SPARED = ("none", "zeros", "last")


@dataclass(frozen=True, slots=True)
class LaplaceOfScale:
    """Real answers plus independent Laplace noise of one scale, on a grid, whatever it was meant to satisfy.

    It is (Δ/scale)-DP for answers that move by Δ in all, the sum over the coordinates, if none is spared. A scale for
    the Euclidean norm, for one coordinate, or for one level of a tree is too small.

    Parameters
    ----------
    scale : float
    claim : Claim
    query : callable
        From the dataset to the answers, shape (n_answers,).
    spared : {"none", "zeros", "last"}
        Which coordinates get no noise: those with an answer of 0, or the last.
    """

    scale: float
    claim: Claim
    query: Query = field(default=identity, repr=False)
    spared: Spared = "none"

    def __post_init__(self) -> None:
        check_number("scale", self.scale, 0, np.inf, "of Laplace noise", closed=False)
        if self.spared not in _SPARED:
            raise ClaimError(f"spared={self.spared!r} is unknown; use one of {', '.join(_SPARED)}.", spared=self.spared)

    def law(self, dataset: Any) -> ProductLaw:
        """The output's law before the rounding to the grid."""
        answers = vector_answer(self.query, dataset)
        return ProductLaw(
            tuple(
                DiscreteLaw((answer,), (0.0,)) if is_spared else LaplaceLaw(answer, self.scale)
                for answer, is_spared in zip(answers, self._are_spared(answers), strict=True)
            )
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size, n_answers)."""
        answers = vector_answer(self.query, dataset)
        outputs = np.empty((size, len(answers)))
        for j, is_spared in enumerate(self._are_spared(answers)):
            outputs[:, j] = answers[j] if is_spared else laplace_on_grid(answers[j], self.scale, size, rng)
        return outputs

    def _are_spared(self, answers: tuple[float, ...]) -> list[bool]:
        last = len(answers) - 1
        return [
            (self.spared == "zeros" and answer == 0.0) or (self.spared == "last" and j == last)
            for j, answer in enumerate(answers)
        ]


@dataclass(frozen=True, slots=True)
class ConsistentWithTheTotal(Flaw):
    """Counts with Laplace noise, shifted so that they add up to the exact total: no finite epsilon.

    In practice tables have to "add up", and the total is published elsewhere or thought to be known. What is added to
    each count is decided by the data, and the outputs' sum is the number of rows.
    """

    epsilon: float
    counts: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size, n_counts)."""
        counts, scale = np.asarray(vector_answer(self.counts, dataset)), 1.0 / self.epsilon
        noise = np.stack([scale * standard_laplace(size, rng) for _ in counts], axis=1)
        noise -= noise.mean(axis=1, keepdims=True)
        outputs = np.stack([round_to_grid(noise[:, j].copy(), scale, count) for j, count in enumerate(counts)], axis=1)
        outputs[:, -1] = counts.sum() - outputs[:, :-1].sum(axis=1)  # what the rounding leaves
        return outputs
