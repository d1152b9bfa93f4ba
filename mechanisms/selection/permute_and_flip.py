"""The permute-and-flip mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..laws.laws import FiniteLaw
from ..noise_samplers import Floats, Integers, pieces
from ..queries import Query, identity, places_below_leader
from .selection_mechanism import SelectionMechanism


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(SelectionMechanism):
    """The index of the first candidate, in random order, whose coin with probability e^{(u − max u)/scale} says yes.

    The scale is 2Δ/ε and the mechanism is epsilon-DP. Its law is that of `ReportNoisyMax` with exponential noise. To
    see this, let uniform keys V define the order. A coin U < p and a key can be one number, because given U < p the
    ratio U/p is uniform too; the smallest U/p is the largest −ln U + u/scale.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    sensitivity : float
        Δ, the largest change of a single utility between neighbouring datasets, positive.
    monotone : bool
        Use the scale Δ/ε. The claim then holds under add/remove only, and only if adding a row lowers no utility.
    utilities : callable
        Maps the dataset to the candidates' utilities, shape (n_candidates,); by default the dataset is that vector.

    References
    ----------
    McKenna & Sheldon (2020), Permute-and-flip: a new mechanism for differentially private selection, Algorithm 1; Ding
    et al. (2021), The permute-and-flip mechanism is identical to report-noisy-max with exponential noise.

    Examples
    --------
    >>> PermuteAndFlip(epsilon=2.0).law([0.0, 1.0]).probabilities.round(3).tolist()
    [0.184, 0.816]
    """

    utilities: Query = identity

    def __str__(self) -> str:
        ending = ", monotone" if self.monotone else ""
        return f"PermuteAndFlip(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g}{ending})"

    def law(self, dataset: Any) -> FiniteLaw:
        """The law of the output, with a relative error of about 1e-12; the time grows as n_candidates³.

        A candidate wins if its coin says yes and all coins before it say no; the number k of coins before it is
        uniform.
        """
        places = places_below_leader(self.utilities, dataset, self.scale)
        all_say_no = _means_of_products(-np.expm1(places))
        return FiniteLaw(tuple((places + np.log(all_say_no.mean(axis=1))).tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent indices in range(n_candidates), shape (size,), int64.

        Uniform keys define the order, so memory does not grow with the number of candidates: among the candidates whose
        coin says yes, the one with the smallest key wins.
        """
        chances = np.exp(places_below_leader(self.utilities, dataset, self.scale))
        winners = np.empty(size, dtype=np.int64)
        for piece in pieces(size):
            winner = winners[piece]
            first = np.full(len(winner), np.inf)
            for candidate, chance in enumerate(chances):
                key, says_yes = rng.random(len(winner)), rng.random(len(winner)) < chance
                wins = says_yes & (key < first)
                winner[wins] = candidate
                np.copyto(first, key, where=wins)
        return winners


def _means_of_products(q: Floats) -> Floats:
    """Return, for each i and k, the mean product of k of the numbers other than q[i]: shape (n, n), k = 0 … n − 1.

    With m numbers, the new number q among them, the means E_k become ((m − k) E_k + k q E_{k−1})/m: q is in a fraction
    k/m of the subsets of size k. Nothing is subtracted, so nothing cancels.
    """
    n = len(q)
    means = np.zeros((n, n))
    means[:, 0] = 1.0
    k = np.arange(n)
    for j in range(n):
        others = k != j
        m = ((k > j) + j)[others, None]  # how many numbers each row has, this one included
        rows = means[others]
        rows[:, 1:] = ((m - k[1:]) * rows[:, 1:] + k[1:] * q[j] * rows[:, :-1]) / m
        means[others] = rows
    return means
