"""Selections that go wrong: in the weights, in the order, in the noise, or in what is released beside the winner."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.errors import DatasetError
from ...laws.laws import FiniteLaw
from ...noise.laplace import LaplaceMechanism
from ...noise_samplers import Floats, Integers, draw_indices
from ...parameter_checks import check_count
from ...queries import Query, candidate_scores, identity, places_below_leader
from ...selection.exponential import ExponentialMechanism
from ...selection.noisy_max import ReportNoisyMax
from ..flaw import Flaw
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class PowersOfTen(Twin):
    """The exponential mechanism with weights 10^(ε u/(2Δ)): ln 10 = 2.3 times epsilon.

    In practice the logarithms are decimal, as decibels and orders of magnitude are. Shows where the exponential
    mechanism is tight: one utility rises and the others fall.
    """

    epsilon: float
    sensitivity: float = 1.0
    utilities: Query = identity

    @property
    def runs_as(self) -> ExponentialMechanism:
        return ExponentialMechanism(self.epsilon * math.log(10), self.sensitivity, utilities=self.utilities)

    @property
    def truth(self) -> PureDP:
        return PureDP(self.epsilon * math.log(10))


@dataclass(frozen=True, slots=True)
class _Selection(Flaw):
    """The index of a candidate, by utilities of sensitivity 1."""

    epsilon: float
    utilities: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent indices in range(n_candidates), shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)

    def law(self, dataset: Any) -> FiniteLaw:
        """The output's law."""
        with np.errstate(divide="ignore"):
            return FiniteLaw(tuple(np.log(self._probabilities(candidate_scores(self.utilities, dataset))).tolist()))

    @abstractmethod
    def _probabilities(self, scores: Floats) -> Floats:
        """Of each candidate, given its utilities."""


@dataclass(frozen=True, slots=True)
class UnderflowingExponential(_Selection):
    """The exponential mechanism by weights exp(ε u/2) as they are, which a double holds down to e^−745: no epsilon.

    In practice utilities are distances or log-likelihoods, far below zero, and their largest is not taken off first. A
    weight that is rounded to zero makes its candidate impossible; the next dataset's is not. Shows at ε u/2 near −745.
    """

    def _probabilities(self, scores: Floats) -> Floats:
        with np.errstate(under="ignore", over="ignore"):
            weights = np.exp(0.5 * self.epsilon * scores)
        if not 0.0 < weights.sum() < math.inf:
            raise DatasetError("all weights are rounded to zero, or beyond doubles; use other utilities.")
        shares: Floats = weights / weights.sum()
        return shares


@dataclass(frozen=True, slots=True)
class FlipWithoutPermuting(_Selection):
    """Permute-and-flip that tries the candidates in their order: no finite epsilon.

    In practice the shuffle looks like a matter of fairness. But the coin of the best candidate always says yes, so
    that none after the first of the best is ever chosen.

    References
    ----------
    McKenna & Sheldon (2020), Permute-and-flip: a new mechanism for differentially private selection, Algorithm 1.
    """

    def _probabilities(self, scores: Floats) -> Floats:
        says_yes = np.exp(0.5 * self.epsilon * (scores - scores.max()))
        before = np.cumprod(np.append(1.0, 1.0 - says_yes[:-1]))
        chosen: Floats = says_yes * before
        return chosen


@dataclass(frozen=True, slots=True)
class OneNoiseForAll(_Selection):
    """Report noisy max with one draw of noise that is added to all counts: no finite epsilon.

    In practice `counts + rng.laplace(scale=b)` draws a single number, and numpy adds it to each count. The winner is
    the exact one, the first where several are equal.
    """

    def _probabilities(self, scores: Floats) -> Floats:
        return np.asarray(np.arange(len(scores)) == scores.argmax(), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class WinnerWithExactCount(Flaw):
    """The winner of report noisy max, and its exact count: no finite epsilon.

    In practice the winner is private, so its row of the table is looked up and shown.
    """

    epsilon: float
    counts: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent rows of the winner's index and its count, shape (size, 2)."""
        counts = candidate_scores(self.counts, dataset)
        winners = ReportNoisyMax(self.epsilon).sample(counts, size, rng)
        return np.stack([winners.astype(np.float64), counts[winners]], axis=1)


@dataclass(frozen=True, slots=True)
class WinnerWithNoisyCount(Flaw):
    """The winner of report noisy max, and its count with Laplace noise, each at a part of epsilon.

    In practice epsilon is a parameter of the program, and each step uses it: with `parts` = 1 both spend all of it.
    With 2 the claim holds.
    """

    epsilon: float
    parts: int = 1
    counts: Query = field(default=identity, repr=False)

    @property
    def truth(self) -> PureDP:
        return PureDP(max(1.0, 2.0 / self.parts) * self.epsilon)

    def winners(self, dataset: Any) -> FiniteLaw:
        """The law of the index."""
        return self._selection.law(candidate_scores(self.counts, dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent rows of the winner's index and its noisy count, shape (size, 2)."""
        counts = candidate_scores(self.counts, dataset)
        winners = self._selection.sample(counts, size, rng)
        values, noise = np.empty(size), LaplaceMechanism(self.epsilon / self.parts)
        for j, count in enumerate(counts):
            won = winners == j
            values[won] = noise.sample(count, int(won.sum()), rng)
        return np.stack([winners.astype(np.float64), values], axis=1)

    @property
    def _selection(self) -> ReportNoisyMax:
        return ReportNoisyMax(self.epsilon / self.parts, noise="gumbel")


@dataclass(frozen=True, slots=True)
class TopCandidates(Flaw):
    """The k best candidates in order, by Gumbel noise that is paid for `charged` of them: (k/charged)·epsilon.

    In practice `argsort` gives k winners as easily as one. With charged = k the claim holds: it is k exponential
    mechanisms one after the other, each without the winners so far.

    References
    ----------
    Durfee & Rogers (2019), Practical differentially private top-k selection with pay-what-you-get composition.
    """

    epsilon: float
    k: int = 2
    charged: int = 1
    utilities: Query = field(default=identity, repr=False)

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
        check_count("k", self.k, "winners")
        check_count("charged", self.charged, "winners paid for")

    @property
    def truth(self) -> PureDP:
        return PureDP(self.k / self.charged * self.epsilon)

    def log_probabilities(self, dataset: Any) -> dict[tuple[int, ...], float]:
        """Of every ordered choice of k candidates."""
        places = places_below_leader(self.utilities, dataset, 2.0 * self.charged / self.epsilon)
        found = {}
        for order in permutations(range(len(places)), self.k):
            left, log_probability = list(range(len(places))), 0.0
            for winner in order:
                log_probability += float(places[winner] - np.logaddexp.reduce(places[left]))
                left.remove(winner)
            found[order] = log_probability
        return found

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent rows of indices, the winner first, shape (size, k), int64."""
        places = places_below_leader(self.utilities, dataset, 2.0 * self.charged / self.epsilon)
        noisy = places - np.log(rng.standard_exponential((size, len(places))))
        return np.argsort(-noisy, axis=1)[:, : self.k].astype(np.int64)
