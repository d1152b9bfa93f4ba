"""Mechanisms that select a candidate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from ..audit.claims.claim import Claim, check_number
from ..audit.errors import DatasetError
from .distributions.distributions import (
    ABOVE,
    BELOW,
    STOPPED,
    DiscreteDistribution,
    FiniteDistribution,
    RowDistribution,
    quadrature,
    transcript_distribution,
)
from .distributions.divergences import DrawnByItsDistribution, PureMechanism, RunsAs
from .distributions.released_values import ComparedValuesDistribution, FreshValuesDistribution
from .noise_samplers import Floats, Integers, fill_exponential, fill_laplace, pieces, round_to_grid, standard_laplace
from .queries import (
    Query,
    as_numbers,
    candidate_scores,
    check_choice,
    check_count,
    check_value,
    identity,
    places_below_leader,
)

__all__ = [
    "ExponentialMechanism", "ReportNoisyMax", "PermuteAndFlip", "PostedPriceAuction", "PUMPKIN_BIDS", "Revenue",
    "SparseVector", "NoisyThreshold",
]  # fmt: skip


# Base of mechanisms that select a candidate by its score.


@dataclass(frozen=True, slots=True)
class SelectionMechanism(PureMechanism):
    """Base of mechanisms that select a candidate by scores on a scale of 2Δ/ε, or Δ/ε for monotone scores."""

    sensitivity: float = 1.0
    monotone: bool = False

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        way_out = "a score's largest change; if none ever changes, publish the best candidate"
        check_number("sensitivity", self.sensitivity, 0, math.inf, way_out, closed=False)

    @property
    def scale(self) -> float:
        """2Δ/ε, or Δ/ε for monotone scores: the difference in score that counts as one unit."""
        return (1 if self.monotone else 2) * self.sensitivity / self.epsilon

    def __str__(self) -> str:
        name, ending = type(self).__name__.removesuffix("Mechanism"), ", monotone" if self.monotone else ""
        return f"{name}(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g}{ending})"


# The exponential mechanism.


@dataclass(frozen=True, slots=True)
class ExponentialMechanism(DrawnByItsDistribution, SelectionMechanism):
    """The index of a candidate, drawn with Pr[r] ∝ exp(ε u(x, r)/(2Δ)): epsilon-DP.

    Source: McSherry & Talwar (2007), Theorem 6; Dwork & Roth (2014), Theorem 3.10.

    Parameters
    ----------
    sensitivity : float
        Δ, the largest change of a single utility between neighbouring datasets, positive.
    monotone : bool
        Use exp(ε u/Δ), without the 2. The claim then holds under add/remove only, and only if adding a row lowers no
        utility, so that the normaliser moves in the same direction as every utility. It does not hold under replace.
    utilities : callable
        Maps the dataset to the candidates' utilities, shape (n_candidates,); by default the dataset is that vector.
        `EachCandidate(utility, candidates)` builds it from a function of the dataset and a candidate.

    Examples
    --------
    >>> ExponentialMechanism(epsilon=2.0).distribution([0.0, 1.0]).probabilities.round(3).tolist()
    [0.269, 0.731]
    """

    utilities: Query = identity

    def distribution(self, dataset: Any) -> FiniteDistribution:
        """The distribution of the output, with a relative error of about 1e-15 in every log-probability."""
        return FiniteDistribution.from_log_weights(places_below_leader(self.utilities, dataset, self.scale))

    def loss_parts(self, x: Any, y: Any) -> tuple[Floats, float]:
        """Return the two terms of the privacy loss: (u(x, r) − u(y, r))/scale for each candidate, and the normaliser's.

        Between neighbours, both terms are within ±ε/2. In the monotone case, candidates' terms are within ±ε, and the
        normaliser's term, ln Σ exp(u(y, r)/scale) − ln Σ exp(u(x, r)/scale), has the opposite sign.

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


# The permute-and-flip mechanism.


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(SelectionMechanism):
    """The index of the first candidate, in random order, whose coin with probability e^{(u − max u)/scale} says yes.

    The scale is 2Δ/ε and the mechanism is epsilon-DP. Its distribution is that of `ReportNoisyMax` with exponential
    noise. Parameters are those of `ExponentialMechanism`.

    Source: McKenna & Sheldon (2020), Algorithm 1; Ding et al. (2021), The permute-and-flip mechanism is identical to
    report-noisy-max with exponential noise.
    """

    utilities: Query = identity

    def distribution(self, dataset: Any) -> FiniteDistribution:
        """The distribution of the output, with a relative error of about 1e-12 in every probability."""
        places = places_below_leader(self.utilities, dataset, self.scale)
        return FiniteDistribution(tuple(race_winners(places).tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` indices, shape (size,), int64: the smallest uniform key wins among the coins that say yes."""
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


# Posted-price auction: the exponential mechanism chooses a price with the revenue as utility.

PUMPKIN_BIDS: Final = (1.00, 1.00, 1.00, 3.01)
"""The bids of A, F, I and K."""


@dataclass(frozen=True, slots=True)
class Revenue:
    """Query that returns the revenue from the bids at each price, price · #{bids ≥ price}; shape (n_prices,).

    Adding a bid raises each revenue by at most its price and lowers none, so the query is monotone and its sensitivity
    is the highest price. Replacing a bid also moves all revenues in one direction.
    """

    prices: tuple[float, ...]

    def __call__(self, bids: Any) -> Floats:
        sold = len(bids := bids_of(bids)) - np.searchsorted(bids, self.prices, side="left")
        revenue: Floats = np.asarray(self.prices) * sold
        return revenue


def bids_of(dataset: Any) -> Floats:
    """Return the bids in ascending order, shape (n_bids,); raise a `DatasetError` if they are not finite numbers."""
    bids = as_numbers(dataset)
    are_bids = bids.ndim == 1 and np.isfinite(bids).all()
    check_value("dataset", dataset, are_bids, "is not a list of bids; use one finite number per bidder.", DatasetError)
    return np.sort(bids)


@dataclass(frozen=True, slots=True)
class PostedPriceAuction(PureMechanism):
    """A price, drawn from a fixed list by the exponential mechanism with the revenue as utility: epsilon-DP.

    The dataset is the list of bids; neighbours differ by one bid that is added, removed or replaced. The prices,
    positive and ascending, are the same for all datasets. `monotone` uses the saving for monotone utilities such as
    revenue: half the noise at the same epsilon.

    Source: Dwork & Roth (2014), Example 3.5; McSherry & Talwar (2007).
    """

    prices: Sequence[float]
    monotone: bool = False

    def __post_init__(self) -> None:
        prices = tuple(float(price) for price in self.prices)
        are_prices = prices and prices[0] > 0 and prices[-1] < math.inf and np.all(np.diff(prices) > 0)
        why = "is not a list of prices; use positive numbers in ascending order, at least one."
        check_value("prices", self.prices, are_prices, why)
        object.__setattr__(self, "prices", prices)
        self._choice  # noqa: B018  # checks the epsilon

    def __str__(self) -> str:
        ending = ", monotone" if self.monotone else ""
        return f"PostedPrice(epsilon={self.epsilon:g}, {len(self.prices)} prices to {self.prices[-1]:g}{ending})"

    def distribution(self, dataset: Any) -> DiscreteDistribution:
        return DiscreteDistribution(tuple(self.prices), self._choice.distribution(dataset).log_probabilities)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return np.asarray(self.prices).take(self._choice.sample(dataset, size, rng))

    @property
    def _choice(self) -> ExponentialMechanism:
        """The mechanism that chooses the index of a price."""
        prices = tuple(self.prices)
        return ExponentialMechanism(self.epsilon, prices[-1], self.monotone, Revenue(prices))


# Report noisy max: the index of the largest count after noise.

_FILLS: Final = {"laplace": fill_laplace, "exponential": fill_exponential, "gumbel": fill_exponential}


@dataclass(frozen=True, slots=True)
class ReportNoisyMax(SelectionMechanism):
    """The index of the largest count after independent noise of scale 2Δ/ε on each: epsilon-DP.

    Parameters are those of `ExponentialMechanism`, with `counts` for utilities. Exponential noise gives the
    distribution of permute-and-flip, Gumbel noise that of the exponential mechanism.

    Source: Dwork & Roth (2014), Claim 3.9 (Laplace, counts) and Section 3.4 (exponential); McKenna & Sheldon (2020).
    """

    noise: Literal["laplace", "exponential", "gumbel"] = "laplace"
    counts: Query = identity

    def __post_init__(self) -> None:
        SelectionMechanism.__post_init__(self)
        check_choice("noise", self.noise, _FILLS)

    def __str__(self) -> str:
        ending = ", monotone" if self.monotone else ""
        return f"NoisyMax(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g}, {self.noise}{ending})"

    def distribution(self, dataset: Any) -> FiniteDistribution:
        """The distribution, with errors of 1e-12; refuses Laplace noise on counts too far apart to integrate."""
        places = places_below_leader(self.counts, dataset, self.scale)
        match self.noise:
            case "laplace":
                return FiniteDistribution(tuple(_laplace_winners(places).tolist()))
            case "exponential":
                return FiniteDistribution(tuple(race_winners(places).tolist()))
            case _:
                return FiniteDistribution.from_log_weights(places)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent indices, shape (size,), int64; each candidate is compared with the leader."""
        places = places_below_leader(self.counts, dataset, self.scale)
        # Gumbel noise is −ln E with E exponential; −E e^{−place} orders the candidates as place − ln E does.
        factors = -np.exp(np.minimum(-places, 700.0))
        fill = _FILLS[self.noise]
        index = np.min_scalar_type(len(places) - 1)
        winners = np.empty(size, dtype=np.int64)
        for piece in pieces(size):
            n = piece.stop - piece.start
            lead, trial, winner = np.full(n, -np.inf), np.empty(n), np.zeros(n, dtype=index)
            for candidate, (place, factor) in enumerate(zip(places, factors, strict=True)):
                fill(trial, rng)
                if self.noise == "gumbel":
                    trial *= factor
                else:
                    trial += place
                # Candidates come in order, so the largest mark is the last leader's; twice as fast as a masked copy.
                np.maximum(winner, (trial > lead) * index.type(candidate), out=winner)
                np.maximum(lead, trial, out=lead)
            winners[piece] = winner
        return winners


def race_winners(places: Floats, share: float = 1.0) -> Floats:
    """Return ln of w_i ∫₀¹ ∏_{j≠i} (1 − t w_j) dt, w = share·e^place: i is the largest, above the leader's place.

    With share 1 this is the distribution of noisy max with exponential noise, because the winning value lies above
    every place. The variable t is the leader's survival function at the winning value. Gauss-Legendre with K/2 nodes is
    exact for the polynomial.
    """
    nodes, weights = np.polynomial.legendre.leggauss(max(2, len(places) // 2 + 1))
    t = (nodes + 1) / 2
    factors = np.log1p(-np.multiply.outer(share * np.exp(places), t))
    others = factors.sum(axis=0) - factors
    log_mass: Floats = places + math.log(share) + logsumexp(others, b=weights / 2, axis=1)
    return log_mass


def _laplace_winners(places: Floats) -> Floats:
    """Return ln ∫ f_i ∏_{j≠i} F_j with Laplace densities at the places: the log-probability that i is the largest.

    Below all places the integrand is e^{Kz}, and above them it is the polynomial of `race_winners`; both integrals are
    exact. Between them, Gauss-Legendre runs on pieces that break at each place and are so short that the error with 24
    nodes is 1e-14.
    """
    n = len(places)
    low = places.min()
    below = np.full(n, n * low - places.sum() - n * math.log(2) - math.log(n))
    above = race_winners(places, share=0.5)
    longest = min(1.0, 8 / n)
    if -low / longest * 24 * n > 2e7:
        raise DatasetError(
            f"the counts of {n} candidates span {-low:g} scales of the noise, too far to integrate their "
            "distribution; use counts closer together, or a larger noise scale.",
            n_candidates=n,
        )
    stops = np.unique(places)
    if len(stops) == 1:
        return np.asarray(np.logaddexp(below, above))
    z, mass = quadrature(stops, longest)
    distance = z - places[:, None]
    tail = np.exp(-np.abs(distance)) / 2
    log_cdf = np.where(distance < 0, distance - math.log(2), np.log1p(-tail))
    log_density = -np.abs(distance) - math.log(2)
    between = logsumexp(log_density + log_cdf.sum(axis=0) - log_cdf, b=mass, axis=1)
    log_mass: Floats = logsumexp([below, above, between], axis=0)
    return log_mass


# The sparse vector technique: which answers are above a threshold, at a privacy cost for those above only.


@dataclass(frozen=True, slots=True)
class SparseVector(RunsAs, PureMechanism):
    """Transcript of which answers are above a threshold, after noise on both, up to `cutoff` of them: epsilon-DP.

    Half of epsilon pays for the threshold, whose noise all answers share, and half for the answers above. Answers below
    cost nothing, however many there are.

    Source: Dwork & Roth (2014), Section 3.6 (with `refresh`); Lyu, Su & Li (2017), Algorithm 1 (without).

    Parameters
    ----------
    sensitivity : float
        Δ, the largest change of a single answer between neighbouring datasets, positive.
    monotone : bool
        Use half the noise on the answers. The claim then holds only if all answers of neighbours move in one direction,
        as counts do when a row is added.
    refresh : bool
        Draw new noise for the threshold after each answer above; its scale is then 2cΔ/ε instead of 2Δ/ε.
    queries : callable
        Maps the dataset to the answers, shape (n_queries,); by default the dataset is that vector.

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
        self.runs_as  # noqa: B018  # checks the other parameters

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

    @property
    def runs_as(self) -> NoisyThreshold:
        """The comparison with noise of these scales; transcripts have 1 above, 0 below, and −1 after the stop."""
        scales = self.threshold_scale, self.query_scale
        return NoisyThreshold(
            self.claim, *scales, self.cutoff, self.threshold, refresh=self.refresh, queries=self.queries
        )


@dataclass(frozen=True, slots=True)
class NoisyThreshold:
    """Noisy answers compared with a noisy threshold, with noise scales that need not suffice for the claim.

    Every published variant of the sparse vector technique, right or wrong, is one choice of these parameters.

    `threshold_scale` and `query_scale` are those of the Laplace noise on the threshold (positive) and on each answer (0
    for no noise). A `cutoff` of None does not limit the answers above. `release_value` outputs the noisy value of each
    answer above, on a grid, and NaN for all other answers: the value that was compared, or the answer with new Laplace
    noise of `value_scale`. All else is as for `SparseVector`.
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
        is_noisy = self.query_scale > 0 or self.value_scale > 0 or not self.release_value
        check_value("query_scale", self.query_scale, is_noisy, "would release exact answers; use a positive one.")
        is_used = self.value_scale == 0 or self.release_value
        check_value("value_scale", self.value_scale, is_used, "is of released values only; use release_value=True.")

    def distribution(self, dataset: Any) -> RowDistribution | ComparedValuesDistribution | FreshValuesDistribution:
        """The exact distribution of the output."""
        answers = candidate_scores(self.queries, dataset)
        cutoff = len(answers) if self.cutoff is None else self.cutoff
        scales, values = (self.threshold_scale, self.query_scale), tuple(answers.tolist())
        if self.release_value and self.value_scale == 0:
            return ComparedValuesDistribution(values, self.threshold, *scales, cutoff, self.refresh)
        transcripts = transcript_distribution(answers - self.threshold, *scales, self.cutoff, refresh=self.refresh)
        return (
            FreshValuesDistribution(transcripts, cutoff, values, self.value_scale)
            if self.release_value
            else transcripts
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """`size` transcripts, shape (size, n_queries): the code of each answer, or its released value."""
        answers = candidate_scores(self.queries, dataset)
        limit = len(answers) if self.cutoff is None else self.cutoff
        outputs = np.full((size, len(answers)), np.nan if self.release_value else STOPPED)
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
                    outputs[piece, j][is_above] = round_to_grid(released, self.value_scale or self.query_scale, answer)
                else:
                    outputs[piece, j][is_open] = np.where(is_above, ABOVE, BELOW)[is_open]
                if self.refresh:
                    thresholds[is_above] = self.threshold_scale * standard_laplace(n_above, rng)
        return outputs
