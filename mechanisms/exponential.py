"""The exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..audit.claims import PureDP, check_number
from .laws import FiniteLaw
from .noise import Integers, draw_indices
from .queries import Query, candidate_scores, identity


@dataclass(frozen=True, slots=True)
class ExponentialMechanism:
    """A candidate's index, drawn with Pr[r] ∝ exp(ε u(x, r)/(2Δ)): epsilon-DP.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    sensitivity : float
        Δ, the largest change of any one utility between neighbouring datasets, positive.
    monotone : bool
        Use exp(ε u/Δ), without the 2. Then the claim holds under add/remove only, and only when adding a row lowers
        no utility: the normaliser then moves the same way as every utility. Under replace it does not hold.
    utilities : callable
        From the dataset to the candidates' utilities, shape (n_candidates,); by default the dataset is that vector.

    Raises
    ------
    ClaimError
        For an epsilon or a sensitivity that is not positive and finite.

    References
    ----------
    McSherry & Talwar (2007), Mechanism design via differential privacy, Theorem 6; Dwork & Roth (2014), The
    algorithmic foundations of differential privacy, Theorem 3.10.

    Examples
    --------
    >>> ExponentialMechanism(epsilon=2.0).law([0.0, 1.0]).probabilities.round(3).tolist()
    [0.269, 0.731]
    """

    epsilon: float
    sensitivity: float = 1.0
    monotone: bool = False
    utilities: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        check_number("sensitivity", self.sensitivity, 0, math.inf, "a utility's largest change", closed=False)

    def __str__(self) -> str:
        ending = ", monotone" if self.monotone else ""
        return f"Exponential(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g}{ending})"

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> FiniteLaw:
        """The output's exact law."""
        rate = self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)
        return FiniteLaw.from_log_weights(rate * candidate_scores(self.utilities, dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent indices in range(n_candidates), shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)
