"""The exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ...audit.errors import DatasetError
from ..laws.laws import FiniteLaw
from ..noise_samplers import Floats, Integers, draw_indices
from ..queries import Query, candidate_scores, identity, places_below_leader
from .selection_mechanism import SelectionMechanism


@dataclass(frozen=True, slots=True)
class ExponentialMechanism(SelectionMechanism):
    """The index of a candidate, drawn with Pr[r] ∝ exp(ε u(x, r)/(2Δ)): epsilon-DP.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    sensitivity : float
        Δ, the largest change of a single utility between neighbouring datasets, positive.
    monotone : bool
        Use exp(ε u/Δ), without the 2. The claim then holds under add/remove only, and only if adding a row lowers no
        utility, so that the normaliser moves in the same direction as every utility. It does not hold under replace.
    utilities : callable
        Maps the dataset to the candidates' utilities, shape (n_candidates,); by default the dataset is that vector.
        `EachCandidate(utility, candidates)` builds it from a function of the dataset and a candidate.

    References
    ----------
    McSherry & Talwar (2007), Mechanism design via differential privacy, Theorem 6; Dwork & Roth (2014), The algorithmic
    foundations of differential privacy, Theorem 3.10.

    Examples
    --------
    >>> ExponentialMechanism(epsilon=2.0).law([0.0, 1.0]).probabilities.round(3).tolist()
    [0.269, 0.731]
    """

    utilities: Query = identity

    def __str__(self) -> str:
        ending = ", monotone" if self.monotone else ""
        return f"Exponential(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g}{ending})"

    def law(self, dataset: Any) -> FiniteLaw:
        """The law of the output, with a relative error of about 1e-15 in every log-probability."""
        return FiniteLaw.from_log_weights(places_below_leader(self.utilities, dataset, self.scale))

    def loss_parts(self, x: Any, y: Any) -> tuple[Floats, float]:
        """Return the two terms of the privacy loss ln Pr_x[r] − ln Pr_y[r]: the candidate's and the normaliser's.

        Between neighbours, both terms are within ±ε/2. In the monotone case, candidates' terms are within ±ε, and the
        normaliser's term has the opposite sign.

        Returns
        -------
        own : ndarray, shape (n_candidates,)
            (u(x, r) − u(y, r)) / scale.
        normaliser : float
            ln Σ exp(u(y, r)/scale) − ln Σ exp(u(x, r)/scale).

        Examples
        --------
        >>> own, normaliser = ExponentialMechanism(epsilon=1.0).loss_parts([1.0, -1.0, -1.0], [0.0, 0.0, 0.0])
        >>> own.tolist(), round(normaliser, 3)
        ([0.5, -0.5, -0.5], 0.047)
        """
        scores_x, scores_y = candidate_scores(self.utilities, x), candidate_scores(self.utilities, y)
        if len(scores_x) != len(scores_y):
            raise DatasetError(
                f"x has {len(scores_x)} candidates and y {len(scores_y)}; use the same candidates for every dataset.",
                x=len(scores_x),
                y=len(scores_y),
            )
        log_x, log_y = (logsumexp(places_below_leader(identity, scores, self.scale)) for scores in (scores_x, scores_y))
        normaliser = (scores_y.max() - scores_x.max()) / self.scale + log_y - log_x
        return (scores_x - scores_y) / self.scale, float(normaliser)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent indices in range(n_candidates), shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)
