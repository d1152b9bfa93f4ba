"""Selection with the wrong noise, budget, order or candidates, or that releases too much."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import PureDP
from ...audit.errors import DatasetError
from ..distributions.distributions import DiscreteDistribution, FiniteDistribution, LaplaceDistribution
from ..distributions.divergences import DrawnByItsDistribution, NamedByParameters, ScalarDistribution
from ..noise.laplace import LaplaceMechanism
from ..noise_samplers import Fill, Floats, Integers, fill_laplace, pieces, round_to_grid
from ..queries import Query, candidate_scores, identity, places_below_leader
from ..selection import NoisyThreshold, PostedPriceAuction, ReportNoisyMax, bids_of
from .flaw import PureFlaw, Variant

__all__ = [
    "PricesFromTheBids", "SparseVectorReleasingValue", "SparseVectorUnscaledNoise", "SparseVectorWithoutQueryNoise",
    "SparseVectorWithoutCutoff", "UnderflowingExponential", "FlipWithoutPermuting", "OneNoiseForAll",
    "WinnerWithExactCount", "WinnerWithNoisyCount", "TopCandidates",
]  # fmt: skip

# The largest noisy count, whose index report noisy max releases.


@dataclass(frozen=True, slots=True)
class MaximumLaplaceDistribution(ScalarDistribution):
    """The largest of independent Laplace variables with these locations and one scale."""

    locations: tuple[float, ...]
    scale: float

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        z = np.asarray(outputs, dtype=np.float64)
        log_cdfs = self._log_cdfs(z)
        hazards = [
            distribution.log_density(z) - log_cdf
            for distribution, log_cdf in zip(self._distributions, log_cdfs, strict=True)
        ]
        return np.asarray(log_cdfs.sum(axis=0) + np.logaddexp.reduce(hazards, axis=0))

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return np.asarray(np.exp(self._log_cdfs(np.asarray(outputs, dtype=np.float64)).sum(axis=0)))

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return np.asarray(-np.expm1(self._log_cdfs(np.asarray(outputs, dtype=np.float64)).sum(axis=0)))

    @property
    def _distributions(self) -> list[LaplaceDistribution]:
        return [LaplaceDistribution(location, self.scale) for location in self.locations]

    def _log_cdfs(self, z: Floats) -> Floats:
        """ln F_j, one row per location, from the tail that is small."""
        with np.errstate(divide="ignore"):
            rows = [
                np.where(z < distribution.location, np.log(distribution.cdf(z)), np.log1p(-distribution.sf(z)))
                for distribution in self._distributions
            ]
        return np.array(rows)


@dataclass(frozen=True, slots=True)
class LargestNoisyCount(NamedByParameters):
    """The largest of the counts plus independent Laplace noise, on a grid."""

    scale: float
    claim: PureDP
    counts: Query = identity

    def distribution(self, dataset: Any) -> MaximumLaplaceDistribution:
        return MaximumLaplaceDistribution(tuple(candidate_scores(self.counts, dataset).tolist()), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return largest_noisy(fill_laplace, candidate_scores(self.counts, dataset), self.scale, size, rng)


def largest_noisy(fill: Fill, scores: Floats, scale: float, size: int, rng: np.random.Generator) -> Floats:
    """The largest of the scores plus independent noise, `scale` times that of `fill`, on a grid; shape (size,)."""
    largest, out = scores.max(), np.full(size, -np.inf)
    for piece in pieces(size):
        part = out[piece]
        trial = np.empty_like(part)
        for place in (scores - largest) / scale:
            fill(trial, rng)
            trial += place
            np.maximum(part, trial, out=part)
        part *= scale
        round_to_grid(part, scale, float(largest))
    return out


# Selections with wrong weights, order or noise, or with a leaking value released with the winner.


@dataclass(frozen=True, slots=True)
class PricesFromTheBids(NamedByParameters, PureFlaw):
    """The exponential mechanism on the prices that were bid: no finite ε.

    In practice, the candidates are the names, codes or values that occur in the data, since no other can be best. Each
    probability is right, but an outcome that only one bidder makes possible gives the bidder away. The bug shows on
    bids that differ by one that nobody else made.
    """

    def distribution(self, dataset: Any) -> DiscreteDistribution:
        """Exact distribution of the price, one of the positive bids."""
        return self._auction(dataset).distribution(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return self._auction(dataset).sample(dataset, size, rng)

    def _auction(self, dataset: Any) -> PostedPriceAuction:
        prices = np.unique(bids_of(dataset))
        prices = prices[prices > 0]
        if len(prices) == 0:
            raise DatasetError("there is no positive bid to take a price from; use bids above zero.", dataset=dataset)
        return PostedPriceAuction(self.epsilon, prices.tolist())


@dataclass(frozen=True, slots=True)
class _SparseVector(Variant):
    """Parameters and claim of `SparseVector`."""

    threshold: float = 0.0
    sensitivity: float = 1.0
    queries: Query = identity

    def __str__(self) -> str:
        counted = f", cutoff={cutoff}" if (cutoff := getattr(self, "cutoff", None)) else ""
        return f"{type(self).__name__}(epsilon={self.epsilon:g}{counted}, sensitivity={self.sensitivity:g})"

    def _with_scales(
        self, threshold: float, query: float, cutoff: int | None = None, *, release_value: bool = False
    ) -> NoisyThreshold:
        """Comparison with noise of these scales, in units of sensitivity/ε."""
        unit = self.sensitivity / self.epsilon
        return NoisyThreshold(
            self.claim,
            threshold * unit,
            query * unit,
            cutoff=cutoff,
            threshold=self.threshold,
            release_value=release_value,
            queries=self.queries,
        )


@dataclass(frozen=True, slots=True)
class SparseVectorReleasingValue(_SparseVector):
    """Sparse vector that outputs the noisy answers found above, NaN for the others: no finite ε.

    In practice, the value is at hand and already noisy (Lyu, Su & Li 2017, Algorithm 3). But it bounds the threshold's
    noise from above, and then each answer below carries information. The bug shows on answers that are all 0 or all 1:
    "m below, then a small value" is e^{(m + 1)·ε/2} times as likely where they are 0, with a cutoff of 1.
    """

    cutoff: int = 1
    runs_as = property(lambda t: t._with_scales(2.0, 2.0 * t.cutoff, t.cutoff, release_value=True))
    truth = None


@dataclass(frozen=True, slots=True)
class SparseVectorUnscaledNoise(_SparseVector):
    """Sparse vector whose noise on the answers does not grow with the cutoff c: (1 + 6c)/4·ε.

    In practice, "one answer is compared at a time" (Lyu, Su & Li 2017, Algorithm 4). A quarter of ε is spent on the
    threshold and the remaining three quarters on each answer above, at half the noise needed. The bug shows on many
    answers that rise and end below, and a few that fall and end above.
    """

    cutoff: int = 1
    runs_as = property(lambda t: t._with_scales(4.0, 4.0 / 3.0, t.cutoff))
    truth = property(lambda t: PureDP((1 + 6 * t.cutoff) / 4 * t.epsilon))


@dataclass(frozen=True, slots=True)
class SparseVectorWithoutQueryNoise(_SparseVector):
    """Sparse vector with noise only on the threshold, and no cutoff: no finite ε.

    In practice, a noisy threshold hides its place, so that comparing with it looks safe (Lyu, Su & Li 2017, Algorithm
    5). But all answers share one threshold: on (0, 1) the output "below, above" says that it lies between them, and (1,
    0) never gives this output.
    """

    runs_as = property(lambda t: t._with_scales(2.0, 0.0))
    truth = None


@dataclass(frozen=True, slots=True)
class SparseVectorWithoutCutoff(_SparseVector):
    """Sparse vector with noise for a single answer above, and no cutoff: no ε holds for every number of answers.

    In practice, a bit for each answer looks cheap (Lyu, Su & Li 2017, Algorithm 6). But each answer above costs ε, and
    all may be above. The bug shows where half of the answers rise and the others fall.
    """

    runs_as = property(lambda t: t._with_scales(2.0, 2.0))
    truth = None


@dataclass(frozen=True, slots=True)
class _Selection(DrawnByItsDistribution, PureFlaw):
    """Index of a candidate, chosen by utilities of sensitivity 1."""

    utilities: Query = field(default=identity, repr=False)

    def distribution(self, dataset: Any) -> FiniteDistribution:
        with np.errstate(divide="ignore"):
            return FiniteDistribution(
                tuple(np.log(self._probabilities(candidate_scores(self.utilities, dataset))).tolist())
            )

    @abstractmethod
    def _probabilities(self, scores: Floats) -> Floats:
        """Probability of each candidate, given the utilities."""


@dataclass(frozen=True, slots=True)
class UnderflowingExponential(_Selection):
    """The exponential mechanism with weights exp(ε u/2) that doubles round to zero below e^−745: no finite ε.

    In practice, utilities are distances or log-likelihoods, far below zero, and the largest is not subtracted before
    the exponential. A weight rounded to zero makes its candidate impossible on one dataset and not on its neighbour.
    The bug shows at ε u/2 near −745.
    """

    def _probabilities(self, scores: Floats) -> Floats:
        with np.errstate(under="ignore", over="ignore"):
            weights = np.exp(0.5 * self.epsilon * scores)
        if not 0.0 < weights.sum() < math.inf:
            raise DatasetError("all weights are rounded to zero or exceed the range of doubles; use other utilities.")
        shares: Floats = weights / weights.sum()
        return shares


@dataclass(frozen=True, slots=True)
class FlipWithoutPermuting(_Selection):
    """Permute-and-flip that tries the candidates in their given order: no finite ε.

    In practice, the shuffle looks like a matter of fairness (McKenna & Sheldon 2020). But the coin of the best
    candidate always says yes, so no candidate after the first of the best is ever chosen.
    """

    def _probabilities(self, scores: Floats) -> Floats:
        says_yes = np.exp(0.5 * self.epsilon * (scores - scores.max()))
        before = np.cumprod(np.append(1.0, 1.0 - says_yes[:-1]))
        chosen: Floats = says_yes * before
        return chosen


@dataclass(frozen=True, slots=True)
class OneNoiseForAll(_Selection):
    """Report noisy max with one draw of noise added to all counts: no finite ε.

    In practice, `counts + rng.laplace(scale=b)` draws a single number without a `size`, and numpy adds it to each
    count. The winner is the exact one, the first where several are equal.
    """

    def _probabilities(self, scores: Floats) -> Floats:
        return np.asarray(np.arange(len(scores)) == scores.argmax(), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class WinnerWithExactCount(PureFlaw):
    """The winner of report noisy max released with its exact count: no finite ε.

    In practice, the winner is private, so its row of the table is looked up and shown.
    """

    counts: Query = field(default=identity, repr=False)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        counts = candidate_scores(self.counts, dataset)
        winners = ReportNoisyMax(self.epsilon).sample(counts, size, rng)
        return np.stack([winners.astype(np.float64), counts[winners]], axis=1)


@dataclass(frozen=True, slots=True)
class WinnerWithNoisyCount(PureFlaw):
    """The winner of report noisy max and its noisy count, which spend ε each: 2ε instead of ε.

    In practice, ε is a parameter of the program, and each step uses it. With `parts` = 2 each step spends ε/2, and the
    claim holds.
    """

    parts: int = 1
    counts: Query = field(default=identity, repr=False)
    truth = property(lambda t: PureDP(max(1.0, 2.0 / t.parts) * t.epsilon))

    def winners(self, dataset: Any) -> FiniteDistribution:
        """Exact distribution of the index."""
        return self._selection.distribution(candidate_scores(self.counts, dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
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
class TopCandidates(PureFlaw):
    """The k best candidates in order, with Gumbel noise for `charged` of them: (k/charged)·ε instead of ε.

    In practice, `argsort` gives k winners as easily as one (Durfee & Rogers 2019). With charged = k the claim holds:
    the mechanism is k exponential mechanisms in sequence, each without the winners so far.
    """

    k: int = 2
    charged: int = 1
    utilities: Query = field(default=identity, repr=False)
    truth = property(lambda t: PureDP(t.k / t.charged * t.epsilon))

    def log_probabilities(self, dataset: Any) -> dict[tuple[int, ...], float]:
        """Log probability of every ordered choice of k candidates."""
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
        places = places_below_leader(self.utilities, dataset, 2.0 * self.charged / self.epsilon)
        noisy = places - np.log(rng.standard_exponential((size, len(places))))
        return np.argsort(-noisy, axis=1)[:, : self.k].astype(np.int64)
