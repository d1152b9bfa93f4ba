"""Gaussian noise on numbers, vectors and whole numbers, and binomial noise, with its calibration."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from ...audit.claims.claim import ApproxDP, check_number
from ...audit.errors import ClaimError, DatasetError
from ..distributions.distributions import GaussianDistribution, log_gaussian_delta
from ..distributions.divergences import (
    ApproxMechanism,
    Distribution,
    NamedByParameters,
    ScalarDistribution,
    check_rule,
    exact_delta,
    table_delta,
    table_epsilon,
)
from ..noise_samplers import Floats, Integers, gaussian_on_grid, pieces, two_sided_geometric
from ..queries import Query, as_numbers, check_choice, check_whole_sensitivity, identity, real_answer, whole_answer

__all__ = [
    "GaussianMechanism", "VectorGaussianMechanism", "DiscreteGaussianMechanism", "BinomialMechanism",
    "analytic_gaussian_scale", "classical_gaussian_scale", "gaussian_delta", "gaussian_loss_tail",
    "GaussianVectorDistribution", "DiscreteGaussianDistribution", "BinomialDistribution",
]  # fmt: skip

# The Gaussian mechanism, with classical and exact calibration of its noise.


def gaussian_delta(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Return the smallest delta at `epsilon` for Gaussian noise with standard deviation `scale`; exact.

    Two answers `sensitivity` apart attain it.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.

    Examples
    --------
    >>> round(gaussian_delta(epsilon=1, scale=1), 4)
    0.1269
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    _check_positive(scale=scale, sensitivity=sensitivity)
    return math.exp(log_gaussian_delta(sensitivity / scale, epsilon))


def gaussian_loss_tail(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Return Pr[privacy loss > epsilon] for answers `sensitivity` apart under Gaussian noise; exact.

    The loss is normal with mean μ²/2 and variance μ², where μ = sensitivity/scale. The probability is larger than the
    delta at epsilon, which counts only the part of a loss above epsilon: (ε, δ)-DP does not mean that the loss is at
    most ε with probability 1 − δ.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy (the distribution of the privacy
    loss).

    Examples
    --------
    >>> scale = analytic_gaussian_scale(epsilon=1, delta=1e-5)
    >>> round(gaussian_loss_tail(epsilon=1, scale=scale), 6)
    0.000161
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    _check_positive(scale=scale, sensitivity=sensitivity)
    mu = sensitivity / scale
    return float(ndtr(mu / 2 - epsilon / mu))


def classical_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return S √(2 ln(1.25/δ))/ε, a standard deviation that is enough for (epsilon, delta)-DP if epsilon ≤ 1.

    Raises
    ------
    ClaimError
        If epsilon > 1, where the theorem does not hold and the noise can be too small.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Theorem A.1.
    """
    _check_claim(epsilon, delta)
    _check_positive(epsilon=epsilon, sensitivity=sensitivity)
    if epsilon > 1:
        raise ClaimError(
            f"epsilon={epsilon!r} is outside the classical theorem; use epsilon <= 1, or the analytic calibration.",
            epsilon=epsilon,
        )
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def analytic_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest standard deviation for which Gaussian noise is (epsilon, delta)-DP, to a relative 1e-9.

    It is the root of ln δ(σ) = ln delta in ln σ. δ(σ) decreases strictly, so the bracket is grown until it contains the
    only root.

    Parameters
    ----------
    epsilon, delta : float
        Epsilon in nats, ≥ 0 (0 bounds the total variation by delta), delta in (0, 1).
    sensitivity : float
        Largest Euclidean change of the answer, positive.

    Raises
    ------
    ClaimError
        If a parameter is outside its range, or the standard deviation exceeds 1e308.

    References
    ----------
    Balle & Wang (2018), Theorem 8; they solve for the same σ by another substitution (Algorithm 1).

    Examples
    --------
    >>> round(analytic_gaussian_scale(epsilon=1, delta=1e-5), 4)
    3.7306
    """
    _check_claim(epsilon, delta)
    _check_positive(sensitivity=sensitivity)
    from scipy.optimize import brentq

    target = math.log(delta)

    def excess(log_scale: float) -> float:
        return max(log_gaussian_delta(math.exp(-log_scale), epsilon), -1e6) - target

    low, high, step = 0.0, 0.0, 1.0
    while excess(low) < 0:
        high, low, step = low, low - step, 2 * step
    while excess(high) > 0:
        low, high, step = high, high + step, 2 * step
    log_scale = float(brentq(excess, low, high, xtol=1e-14)) if low < high else low
    if log_scale + math.log(sensitivity) > 709:
        raise ClaimError(
            f"epsilon={epsilon!r}, delta={delta!r} and sensitivity={sensitivity!r} need a standard deviation beyond "
            "1e308; use a larger epsilon or delta.",
            epsilon=epsilon,
            delta=delta,
        )
    return sensitivity * math.exp(log_scale)


@dataclass(frozen=True, slots=True)
class GaussianMechanism(ApproxMechanism):
    """A real answer plus Gaussian noise: (epsilon, delta)-DP.

    Outputs are rounded to a grid with a step of at most 2⁻²⁰ standard deviations (`noise.grid_step`), the same for
    every dataset.

    Parameters
    ----------
    epsilon, delta : float
        Epsilon in nats, positive, or 0 with the analytic calibration; delta in (0, 1).
    sensitivity : float
        Largest change of the answer between neighbouring datasets, positive.
    calibration : {"analytic", "classical"}
        How to find the standard deviation, stored as `scale`. The analytic calibration is tight. The classical one
        gives more noise and rejects epsilon > 1.
    query : callable
        Maps the dataset to the answer; by default the dataset is the answer.

    Examples
    --------
    >>> print(GaussianMechanism(epsilon=1, delta=1e-5))
    Gaussian(epsilon=1, delta=1e-05, sensitivity=1)
    """

    sensitivity: float = 1.0
    calibration: Literal["analytic", "classical"] = "analytic"
    query: Query = identity
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("calibration", self.calibration, ("analytic", "classical"))
        find = analytic_gaussian_scale if self.calibration == "analytic" else classical_gaussian_scale
        object.__setattr__(self, "scale", find(self.epsilon, self.delta, self.sensitivity))

    def __str__(self) -> str:
        name = "Gaussian" if self.calibration == "analytic" else "ClassicalGaussian"
        return f"{name}(epsilon={self.epsilon:g}, delta={self.delta:g}, sensitivity={self.sensitivity:g})"

    def distribution(self, dataset: Any) -> GaussianDistribution:
        """The distribution of the output before rounding to the grid."""
        return GaussianDistribution(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return gaussian_on_grid(real_answer(self.query, dataset), self.scale, size, rng)


def _check_claim(epsilon: float, delta: float) -> None:
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    check_number(
        "delta", delta, 0, 1, "Gaussian noise has no pure guarantee, and delta=1 promises nothing", closed=False
    )


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        check_number(name, value, 0, math.inf, "positive", closed=False)


# Gaussian noise on vectors.

Vector: TypeAlias = tuple[float, ...]


def vector_answer(query: Query, dataset: Any) -> Vector:
    """Return the query's answer as a non-empty vector of finite numbers; raise a `DatasetError` if it is not one."""
    answer = query(dataset)
    vector = as_numbers(answer)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise DatasetError(
            f"the query answered {answer!r:.60}, which is not a vector of finite numbers; use a query that returns "
            "one for this dataset (GaussianMechanism takes single numbers).",
            answer=answer,
        )
    return tuple(vector.tolist())


@dataclass(frozen=True, slots=True)
class GaussianVectorDistribution(Distribution):
    """Independent normal coordinates with the given means and a common standard deviation `scale`.

    Only the projection onto the line through the two locations distinguishes two such distributions. Their divergence
    is therefore that of normal distributions whose distance is the Euclidean distance of the locations.
    """

    location: Vector
    scale: float

    def __post_init__(self) -> None:
        check_rule("number of coordinates", len(self.location), len(self.location) > 0, "one or more")
        check_rule("scale", self.scale, 0 < self.scale < math.inf, "0 < scale < inf")

    @property
    def marginals(self) -> tuple[GaussianDistribution, ...]:
        """The distribution of each coordinate."""
        return tuple(GaussianDistribution(mean, self.scale) for mean in self.location)

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each row of `outputs`, shape (..., d)."""
        z = (np.asarray(outputs, dtype=np.float64) - self.location) / self.scale
        return np.asarray(-(z**2).sum(axis=-1) / 2 - len(self.location) * math.log(self.scale * math.sqrt(2 * math.pi)))

    def is_comparable(self, other: Self) -> bool:
        return self.scale == other.scale and len(self.location) == len(other.location)

    def reduced(self, other: Self) -> tuple[GaussianDistribution, GaussianDistribution]:
        return GaussianDistribution(0.0, self.scale), GaussianDistribution(
            math.dist(self.location, other.location), self.scale
        )


@dataclass(frozen=True, slots=True)
class VectorGaussianMechanism(ApproxMechanism):
    """A vector of real answers, each plus independent Gaussian noise: (epsilon, delta)-DP, with the least noise.

    The standard deviation, stored as `scale`, depends on the Euclidean sensitivity but not on the number of
    coordinates. Outputs are rounded to the grid of `GaussianMechanism`, the same for every dataset.

    Parameters
    ----------
    epsilon, delta : float
        Epsilon in nats, ≥ 0, delta in (0, 1).
    sensitivity : float
        Largest Euclidean distance between answers on neighbouring datasets, positive.
    query : callable
        Maps the dataset to the vector of answers; by default the dataset is that vector.

    Examples
    --------
    >>> mechanism = VectorGaussianMechanism(epsilon=1, delta=1e-5)
    >>> print(mechanism, mechanism.sample([1.0, 2.0, 3.0], 5, np.random.default_rng(0)).shape)
    VectorGaussian(epsilon=1, delta=1e-05, sensitivity=1) (5, 3)
    """

    sensitivity: float = 1.0
    query: Query = identity
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", analytic_gaussian_scale(self.epsilon, self.delta, self.sensitivity))

    def distribution(self, dataset: Any) -> GaussianVectorDistribution:
        """The distribution of the output before rounding to the grid."""
        return GaussianVectorDistribution(vector_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size, d) for d answers."""
        answer = vector_answer(self.query, dataset)
        return np.stack([gaussian_on_grid(coordinate, self.scale, size, rng) for coordinate in answer], axis=1)


# The discrete Gaussian mechanism: noise on the integers, k with probability proportional to exp(−k²/(2σ²)).

LARGEST_SIGMA: Final = 2.0**14
"""Limit on the table of the distribution, which has 78σ entries. For more noise, `GaussianMechanism` is a substitute.
"""

_REACH: Final = 39.0  # in σ: beyond it, probabilities are below 1e-330, too small for a double


@lru_cache(maxsize=16)
def _weights(sigma: float) -> Floats:
    """Return exp(−k²/(2σ²)) for k = 0, 1, … up to the end of the table."""
    k = np.arange(math.ceil(_REACH * sigma) + 2, dtype=np.float64)
    weights: Floats = np.exp(-0.5 * (k / sigma) ** 2)
    weights.setflags(write=False)
    return weights


@lru_cache(maxsize=16)
def _upper_tails(sigma: float) -> Floats:
    """Return Pr[K ≥ k] for k = 0, 1, … up to the end of the table, location 0, summed from the smallest term."""
    sums = np.cumsum(_weights(sigma)[::-1])[::-1]
    tails: Floats = sums / _total(sigma)
    tails.setflags(write=False)
    return tails


def _total(sigma: float) -> float:
    """Return Σ_k exp(−k²/(2σ²)) over all integers."""
    return 1.0 + 2.0 * math.fsum(_weights(sigma)[1:])


class SymmetricWholeDistribution(ScalarDistribution):
    """Base of distributions on the whole numbers that are symmetric about their location."""

    __slots__ = ()
    location: int

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return self._at_least(self.location - np.floor(np.asarray(outputs, dtype=np.float64)))

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return self._at_least(np.floor(np.asarray(outputs, dtype=np.float64)) + 1 - self.location)

    @abstractmethod
    def _at_least(self, k: Floats) -> Floats:
        """Return Pr[output − location ≥ k] for whole or infinite k."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussianDistribution(SymmetricWholeDistribution):
    """Distribution on the integers with Pr[k] ∝ exp(−(k − location)²/(2σ²)); sums treat probabilities below 1e-300 as
    0.

    References
    ----------
    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, Definition 1.
    """

    location: int
    sigma: float

    def __post_init__(self) -> None:
        check_rule("sigma", self.sigma, 0 < self.sigma <= LARGEST_SIGMA, f"0 < sigma <= {LARGEST_SIGMA:g}")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        k = np.asarray(outputs, dtype=np.float64)
        log_density = -0.5 * ((k - self.location) / self.sigma) ** 2 - math.log(_total(self.sigma))
        return np.where(k == np.floor(k), log_density, -np.inf)

    def _at_least(self, k: Floats) -> Floats:
        tails = _upper_tails(self.sigma)
        last = len(tails) - 1
        upper = tails[np.clip(k, 0, last).astype(np.int64)]
        lower = 1.0 - tails[np.clip(1 - k, 0, last).astype(np.int64)]
        return np.where(k > last, 0.0, np.where(k > 0, upper, lower))

    def is_comparable(self, other: Self) -> bool:
        return self.sigma == other.sigma

    def delta_from(self, other: Self, epsilon: float) -> float:
        """Return Σ over k of (P(k) − e^ε Q(k))⁺; every term is positive, so nothing cancels.

        With shift d, the loss at distance j from P's location, away from Q, is d(2j + d)/(2σ²).
        """
        shift = abs(self.location - other.location)
        if shift == 0:
            return 0.0
        weights = _weights(self.sigma)
        j = np.arange(1 - len(weights), len(weights))
        loss = shift * (2.0 * j + shift) / (2.0 * self.sigma**2)
        gains = loss > epsilon
        return float(np.sum(weights[np.abs(j[gains])] * -np.expm1(epsilon - loss[gains])) / _total(self.sigma))

    def epsilon_from(self, other: Self, delta: float) -> float:
        """Return the root in ε of `delta_from`, which decreases strictly to 0 at the largest loss in the table."""
        from scipy.optimize import brentq

        shift = abs(self.location - other.location)
        if shift == 0:
            return 0.0
        if delta == 0:
            return math.inf
        if self.delta_from(other, 0.0) <= delta:
            return 0.0
        largest = shift * (2.0 * len(_weights(self.sigma)) + shift) / (2.0 * self.sigma**2)
        return float(brentq(lambda epsilon: self.delta_from(other, epsilon) - delta, 0.0, largest, xtol=1e-13))


class ExactDeltaMechanism(NamedByParameters):
    """Base of mechanisms that add noise to a whole answer and claim their exact delta at an epsilon.

    Their distributions are log-concave: among answers at most `sensitivity` apart, those at the full distance are the
    easiest to distinguish at every epsilon, and they determine delta.
    """

    __slots__ = ()
    epsilon: float
    sensitivity: int
    query: Query
    delta: float

    @property
    def claim(self) -> ApproxDP:
        """(epsilon, delta)-DP, with the smallest delta at this epsilon."""
        return ApproxDP(self.epsilon, self.delta)

    def _check_answers(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "delta is computed for it")
        check_whole_sensitivity(self.sensitivity, "GaussianMechanism")

    def _set_delta(self, at_zero: ScalarDistribution, moved: ScalarDistribution, way_out: str, **noise: float) -> None:
        """Set delta to that of two distributions; raise a `ClaimError` if it is 1, where the `noise` is too small."""
        delta = exact_delta(at_zero, moved, self.epsilon)
        if delta >= 1.0 - 1e-12:
            ((name, value),) = noise.items()
            raise ClaimError(
                f"{name}={value!r} gives delta 1 at epsilon={self.epsilon:g}, which claims nothing; use {way_out}.",
                epsilon=self.epsilon,
                **noise,
            )
        object.__setattr__(self, "delta", max(delta, sys.float_info.min))


@dataclass(frozen=True, slots=True)
class DiscreteGaussianMechanism(ExactDeltaMechanism):
    """A whole answer plus discrete Gaussian noise: (epsilon, delta)-DP with the exact delta, on the integers.

    Parameters
    ----------
    sigma : float
        The σ of exp(−k²/(2σ²)); nearly the standard deviation if above 1. Positive, at most 2¹⁴.
    epsilon : float
        Epsilon of the claim, in nats, ≥ 0.
    sensitivity : int
        Largest change of the answer between neighbouring datasets, at least 1.
    query : callable
        Maps the dataset to the answer; by default the dataset is the answer.

    Attributes
    ----------
    delta : float
        The smallest delta at this epsilon. It is never 0: if no double can hold it, it is 2.2e-308.

    Raises
    ------
    ClaimError
        If a parameter is outside its range, or there is so little noise that delta rounds to 1.

    References
    ----------
    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, Theorem 7 (the exact delta).

    Examples
    --------
    >>> mechanism = DiscreteGaussianMechanism(sigma=2, epsilon=1, query=len)
    >>> print(mechanism, mechanism.claim)
    DiscreteGaussian(sigma=2, epsilon=1, sensitivity=1) (1, 0.00724878)-DP
    """

    sigma: float
    epsilon: float
    sensitivity: int = 1
    query: Query = identity
    delta: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_number("sigma", self.sigma, 0, math.inf, "it is about the standard deviation of the noise", closed=False)
        self._check_answers()
        if self.sigma > LARGEST_SIGMA:
            raise ClaimError(
                f"sigma={self.sigma!r} is too large for a table of the distribution; use sigma <= {LARGEST_SIGMA:g}, "
                "or GaussianMechanism.",
                sigma=self.sigma,
            )
        at_zero, moved = (DiscreteGaussianDistribution(location, self.sigma) for location in (0, int(self.sensitivity)))
        self._set_delta(at_zero, moved, "a larger sigma", sigma=self.sigma)

    def distribution(self, dataset: Any) -> DiscreteGaussianDistribution:
        """The exact distribution of the output."""
        return DiscreteGaussianDistribution(whole_answer(self.query, dataset), self.sigma)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        outputs = discrete_gaussian(self.sigma, size, rng)
        outputs += whole_answer(self.query, dataset)
        return outputs


def discrete_gaussian(sigma: float, size: int, rng: np.random.Generator) -> Integers:
    """Return draws of K with Pr[K = k] ∝ exp(−k²/(2σ²)), shape (size,), int64.

    The sampler rejects from two-sided geometric draws of scale t = ⌊σ⌋ + 1 and keeps k with probability exp(−(|k| −
    σ²/t)²/(2σ²)); on average an output takes 1.3 to 2.3 draws. It keeps a draw if a standard exponential is at least
    the exponent, so no probability is rounded to a multiple of 2⁻⁵³. Only the limits of doubles truncate the
    distribution: exponents above 44 do not occur, and with them |k| beyond about 9σ (less than 1e-19 of the
    probability). For the remaining error see `two_sided_geometric`.

    References
    ----------
    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, Algorithm 3; with doubles instead
    of its integer arithmetic.
    """
    scale = math.floor(sigma) + 1
    out = np.empty(size, dtype=np.int64)
    for piece in pieces(size):
        filled, wanted = piece.start, piece.stop
        while filled < wanted:
            drawn = two_sided_geometric(scale, wanted - filled, rng)
            exponent = np.abs(drawn).astype(np.float64)
            exponent -= sigma * sigma / scale
            exponent /= sigma
            exponent *= exponent
            kept = drawn[rng.standard_exponential(len(drawn)) >= 0.5 * exponent]
            out[filled : filled + len(kept)] = kept
            filled += len(kept)
    return out


# The binomial mechanism: the number of heads among fair coins as noise on a whole answer.

MOST_FLIPS: Final = 2**20
"""Limit on the distribution's table, one entry per number of heads. With more coins, the noise is nearly normal."""


@lru_cache(maxsize=16)
def _log_table(n_flips: int) -> Floats:
    """Return ln Pr[heads = n/2 + k] for k = −n/2 … n/2, shape (n + 1,).

    The table uses the ratios C(n, n/2 + j + 1)/C(n, n/2 + j) = (n/2 − j)/(n/2 + j + 1), so probabilities near the
    middle keep their relative accuracy for any n.
    """
    half = n_flips // 2
    j = np.arange(half, dtype=np.float64)
    arm = np.concatenate([[0.0], np.cumsum(np.log((half - j) / (half + j + 1)))])
    table = np.concatenate([arm[:0:-1], arm])
    table -= math.log(math.fsum(np.exp(table)))
    table.setflags(write=False)
    return table


@lru_cache(maxsize=16)
def _upper_heads(n_flips: int) -> Floats:
    """Return Pr[heads − n/2 ≥ k] for k = −n/2 … n/2 + 1, summed from the smallest term; shape (n + 2,)."""
    sums = np.cumsum(np.exp(_log_table(n_flips))[::-1])[::-1]
    tails = np.append(np.minimum(sums, 1.0), 0.0)
    tails[0] = 1.0
    tails.setflags(write=False)
    return tails


@dataclass(frozen=True, slots=True)
class BinomialDistribution(SymmetricWholeDistribution):
    """`location` plus the heads among `n_flips` fair coins minus n/2: Pr[k] = C(n, n/2 + k − location) / 2ⁿ."""

    location: int
    n_flips: int

    def __post_init__(self) -> None:
        is_even = 2 <= self.n_flips <= MOST_FLIPS and self.n_flips % 2 == 0
        check_rule("n_flips", self.n_flips, is_even, f"an even number from 2 to {MOST_FLIPS}")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        k = np.asarray(outputs, dtype=np.float64) - self.location + self.n_flips // 2
        inside = (k == np.floor(k)) & (k >= 0) & (k <= self.n_flips)
        return np.where(inside, _log_table(self.n_flips)[np.where(inside, k, 0).astype(np.int64)], -np.inf)

    def _at_least(self, k: Floats) -> Floats:
        row = np.clip(k + self.n_flips // 2, 0, self.n_flips + 1).astype(np.int64)
        return np.asarray(_upper_heads(self.n_flips)[row])

    def is_comparable(self, other: Self) -> bool:
        return self.n_flips == other.n_flips

    def delta_from(self, other: Self, epsilon: float) -> float:
        """Return the divergence, including the outputs that only this distribution allows, whose loss is infinite."""
        return table_delta(*self._aligned(other), epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return table_epsilon(*self._aligned(other), delta)

    def _aligned(self, other: Self) -> tuple[Floats, Floats]:
        """Return both distributions' log-probabilities on this one's outcomes; by symmetry, the other is shifted up."""
        table = _log_table(self.n_flips)
        shift = min(abs(self.location - other.location), len(table))
        return table, np.concatenate([table[shift:], np.full(shift, -np.inf)])


@dataclass(frozen=True, slots=True)
class BinomialMechanism(ExactDeltaMechanism):
    """A whole answer plus the heads among fair coins minus half the coins: (epsilon, delta)-DP with the exact delta.

    The noise ends at ±n_flips/2, so some outputs are possible on only one of two neighbours and every epsilon needs a
    delta.

    Parameters
    ----------
    n_flips : int
        Number of coins: an even number from 2 to 2²⁰. The standard deviation of the noise is √n_flips/2.
    epsilon, sensitivity, query
        As for `DiscreteGaussianMechanism`, which has the same attribute `delta`.

    Raises
    ------
    ClaimError
        If a parameter is outside its range, or there are so few coins that delta rounds to 1.

    References
    ----------
    Dwork, Kenthapadi, McSherry, Mironov & Naor (2006), Our data, ourselves: privacy via distributed noise generation
    (binomial noise).

    Examples
    --------
    >>> mechanism = BinomialMechanism(n_flips=100, epsilon=1, query=len)
    >>> print(mechanism, mechanism.claim)
    Binomial(n_flips=100, epsilon=1, sensitivity=1) (1, 8.00255e-08)-DP
    """

    n_flips: int
    epsilon: float
    sensitivity: int = 1
    query: Query = identity
    delta: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_whole = isinstance(self.n_flips, (int, np.integer))
        if not (is_whole and 2 <= self.n_flips <= MOST_FLIPS and self.n_flips % 2 == 0):
            raise ClaimError(
                f"n_flips={self.n_flips!r} is not allowed; use an even number from 2 to {MOST_FLIPS} (half of it is "
                "subtracted from the heads), or DiscreteGaussianMechanism for more noise.",
                n_flips=self.n_flips,
            )
        self._check_answers()
        at_zero, moved = (BinomialDistribution(location, self.n_flips) for location in (0, int(self.sensitivity)))
        self._set_delta(at_zero, moved, "more coins", n_flips=self.n_flips)

    def distribution(self, dataset: Any) -> BinomialDistribution:
        """The exact distribution of the output."""
        return BinomialDistribution(whole_answer(self.query, dataset), self.n_flips)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        offset = whole_answer(self.query, dataset) - self.n_flips // 2
        out = np.empty(size, dtype=np.int64)
        for piece in pieces(size):
            out[piece] = rng.binomial(self.n_flips, 0.5, piece.stop - piece.start)
        out += offset
        return out
