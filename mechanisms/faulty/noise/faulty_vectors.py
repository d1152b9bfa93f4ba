"""Vectors of answers with the wrong amount of noise, or without noise on some coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from ....audit.claims.claim import Claim, check_number
from ...laws.discrete_law import DiscreteLaw
from ...laws.laws import LaplaceLaw
from ...laws.product import ProductLaw
from ...noise.gaussian_vector import vector_answer
from ...noise_samplers import Floats, laplace_on_grid, round_to_grid, standard_laplace
from ...queries import Query, identity
from ..flaw import Flaw, check_choice

Spared = Literal["none", "zeros", "last"]


@dataclass(frozen=True, slots=True)
class LaplaceOfScale:
    """Real answers plus independent Laplace noise of one scale, on a grid.

    The mechanism is (Δ/scale)-DP for answers that move by Δ in total, summed over the coordinates, if none is spared. A
    scale for the Euclidean norm, for one coordinate, or for one level of a tree is too small.

    Parameters
    ----------
    scale : float
    claim : Claim
    query : callable
        Map from the dataset to the answers, shape (n_answers,).
    spared : {"none", "zeros", "last"}
        Coordinates without noise: those with an answer of 0, or the last.
    """

    scale: float
    claim: Claim
    query: Query = field(default=identity, repr=False)
    spared: Spared = "none"

    def __post_init__(self) -> None:
        check_number("scale", self.scale, 0, np.inf, "of Laplace noise", closed=False)
        check_choice("spared", self.spared, get_args(Spared))

    def law(self, dataset: Any) -> ProductLaw:
        """Exact law of the output before rounding."""
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
    """Noisy counts shifted so that they add up to the exact total: no finite ε.

    In practice, tables have to "add up", and the total is published elsewhere or thought to be known. The shift is a
    post-processing that looks at the data, and the sum of the outputs is the exact number of rows.
    """

    epsilon: float
    counts: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size, n_counts)."""
        counts, scale = np.asarray(vector_answer(self.counts, dataset)), 1.0 / self.epsilon
        noise = np.stack([scale * standard_laplace(size, rng) for _ in counts], axis=1)
        noise -= noise.mean(axis=1, keepdims=True)
        outputs = np.stack([round_to_grid(noise[:, j].copy(), scale, count) for j, count in enumerate(counts)], axis=1)
        outputs[:, -1] = counts.sum() - outputs[:, :-1].sum(axis=1)  # takes up the rounding
        return outputs
