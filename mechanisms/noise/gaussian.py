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
from ...audit.errors import ClaimError
from ..distributions.distributions import GaussianDistribution, log_gaussian_delta
from ..distributions.divergences import (
    ApproxMechanism,
    Distribution,
    DrawnWithDistribution,
    ScalarDistribution,
    check_rule,
    exact_delta,
    table_delta,
    table_epsilon,
)
from ..noise_samplers import Floats, Integers, gaussian_on_grid, pieces, two_sided_geometric
from ..queries import (
    Query,
    as_numbers,
    check_answer,
    check_choice,
    check_value,
    check_whole_sensitivity,
    identity,
    real_answer,
    whole_answer,
)

__all__ = [
    "GaussianMechanism", "VectorGaussianMechanism", "DiscreteGaussianMechanism", "BinomialMechanism",
    "analytic_gaussian_scale", "classical_gaussian_scale", "gaussian_delta", "gaussian_loss_tail",
    "GaussianVectorDistribution", "DiscreteGaussianDistribution", "BinomialDistribution",
]  # fmt: skip

# The Gaussian mechanism, with classical and exact calibration of its noise.


def gaussian_delta(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Return the smallest delta at `epsilon` for Gaussian noise of standard deviation `scale`; two answers attain it.

    Source: Balle & Wang (2018), Theorem 8.
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    _check_positive(scale=scale, sensitivity=sensitivity)
    return math.exp(log_gaussian_delta(sensitivity / scale, epsilon))


def gaussian_loss_tail(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Return Pr[privacy loss > epsilon] for answers `sensitivity` apart under Gaussian noise; exact.

    The loss is normal with mean μ²/2 and variance μ², where μ = sensitivity/scale (Balle & Wang 2018). The probability
    is larger than the delta at epsilon: (ε, δ)-DP does not mean that the loss is at most ε with probability 1 − δ.
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    _check_positive(scale=scale, sensitivity=sensitivity)
    mu = sensitivity / scale
    return float(ndtr(mu / 2 - epsilon / mu))


def classical_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return S √(2 ln(1.25/δ))/ε, a standard deviation that is enough for (epsilon, delta)-DP if epsilon ≤ 1.

    A larger epsilon, for which the noise can be too small, raises a `ClaimError`.

    Source: Dwork & Roth (2014), Theorem A.1.
    """
    _check_claim(epsilon, delta)
    _check_positive(epsilon=epsilon, sensitivity=sensitivity)
    why = "is outside the classical theorem; use epsilon <= 1, or the analytic calibration."
    check_value("epsilon", epsilon, epsilon <= 1, why)
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def analytic_gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest standard deviation for which Gaussian noise is (epsilon, delta)-DP, to a relative 1e-9.

    It is the root of ln δ(σ) = ln delta in ln σ. δ(σ) decreases strictly, so the bracket is grown until it contains the
    only root. With epsilon 0, delta bounds the total variation.

    Source: Balle & Wang (2018), Theorem 8; they solve for the same σ by another substitution (Algorithm 1).

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
    """A real answer plus Gaussian noise: (epsilon, delta)-DP; outputs are on a grid, as those of `LaplaceMechanism`.

    The analytic calibration of the standard deviation, `scale`, is tight, and takes epsilon 0. The classical one gives
    more noise and rejects epsilon > 1.
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
        return GaussianDistribution(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
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
    is_vector = vector.ndim == 1 and vector.size > 0 and np.isfinite(vector).all()
    check_answer(answer, is_vector, "which is not a vector of finite numbers; for a single one use GaussianMechanism.")
    return tuple(vector.tolist())


@dataclass(frozen=True, slots=True)
class GaussianVectorDistribution(Distribution):
    """Independent normal coordinates with the given means and a common standard deviation `scale`.

    Only the projection onto the line through both locations distinguishes two such distributions, so their divergence
    is that of normal distributions at the Euclidean distance of the locations.
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
    coordinates. Outputs are on the grid of `GaussianMechanism`.
    """

    sensitivity: float = 1.0
    query: Query = identity
    scale: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", analytic_gaussian_scale(self.epsilon, self.delta, self.sensitivity))

    def distribution(self, dataset: Any) -> GaussianVectorDistribution:
        return GaussianVectorDistribution(vector_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        answer = vector_answer(self.query, dataset)
        return np.stack([gaussian_on_grid(coordinate, self.scale, size, rng) for coordinate in answer], axis=1)


# The discrete Gaussian mechanism: noise on the integers, k with probability proportional to exp(−k²/(2σ²)).

LARGEST_SIGMA: Final = 2.0**14
"""Limit on the table of the distribution, which has 78σ entries. For more noise, `GaussianMechanism` is a substitute.
"""

_REACH: Final = 39.0  # in σ: beyond it, probabilities are below 1e-330, too small for a double


class SymmetricWholeDistribution(ScalarDistribution):
    """Base of distributions of `location` + K on the whole numbers, for a symmetric K in a table."""

    __slots__ = ()
    location: int

    @property
    @abstractmethod
    def _table(self) -> tuple[Floats, Floats]:
        """The arrays of `_normalised`."""

    @abstractmethod
    def _against(self, shift: int) -> tuple[Floats, Floats]:
        """Return ln Pr[K = k] and ln Pr[K = k + shift] for the k of the table."""

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return self._at_least(self.location - np.floor(np.asarray(outputs, dtype=np.float64)))

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return self._at_least(np.floor(np.asarray(outputs, dtype=np.float64)) + 1 - self.location)

    def _at_least(self, k: Floats) -> Floats:
        """Return Pr[K ≥ k] for whole or infinite k."""
        _, tails = self._table
        upper, lower = (tails[np.clip(place, 0, len(tails) - 1).astype(np.int64)] for place in (k, 1 - k))
        return np.where(k > 0, upper, 1.0 - lower)

    def delta_from(self, other: Self, epsilon: float) -> float:
        return table_delta(*self._against(abs(self.location - other.location)), epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return table_epsilon(*self._against(abs(self.location - other.location)), delta)


def _normalised(arm: Floats) -> tuple[Floats, Floats]:
    """Return ln Pr[K = k] for k = −n … n and Pr[K ≥ k] for k = 0 … n + 1, from logarithms of weights of k = 0 … n."""
    weights = np.exp(arm)
    total = weights[0] + 2.0 * math.fsum(weights[1:])
    table = np.concatenate([arm[:0:-1], arm]) - math.log(total)
    tails = np.append(np.cumsum(weights[::-1])[::-1] / total, 0.0)  # from the smallest term
    table.setflags(write=False)
    tails.setflags(write=False)
    return table, tails


@lru_cache(maxsize=16)
def _gaussian_table(sigma: float) -> tuple[Floats, Floats]:
    return _normalised(-0.5 * (np.arange(math.ceil(_REACH * sigma) + 2) / sigma) ** 2)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianDistribution(SymmetricWholeDistribution):
    """Distribution on the integers with Pr[k] ∝ exp(−(k − location)²/(2σ²)); sums treat probabilities below 1e-300 as
    0.

    Source: Canonne, Kamath & Steinke (2020), Definition 1.
    """

    alike = ("sigma",)
    location: int
    sigma: float
    _table = property(lambda distribution: _gaussian_table(distribution.sigma))

    def __post_init__(self) -> None:
        check_rule("sigma", self.sigma, 0 < self.sigma <= LARGEST_SIGMA, f"0 < sigma <= {LARGEST_SIGMA:g}")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        k = np.asarray(outputs, dtype=np.float64)
        log_mode = float(self._table[0].max())
        return np.where(k == np.floor(k), log_mode - 0.5 * ((k - self.location) / self.sigma) ** 2, -np.inf)

    def epsilon_from(self, other: Self, delta: float) -> float:
        is_unbounded = delta == 0 and self.location != other.location
        return math.inf if is_unbounded else SymmetricWholeDistribution.epsilon_from(self, other, delta)

    def _against(self, shift: int) -> tuple[Floats, Floats]:
        """The loss d(2k + d)/(2σ²) for the shift d, also where the other probability is too small for a double."""
        table, _ = self._table
        k = np.arange(len(table)) - len(table) // 2
        return table, table - shift * (2.0 * k + shift) / (2.0 * self.sigma**2)


class ExactDeltaMechanism(DrawnWithDistribution):
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

    `sigma`, the σ of exp(−k²/(2σ²)), is positive and at most 2¹⁴; above 1 it is nearly the standard deviation. `delta`
    is the smallest one at this epsilon, and 2.2e-308 if no double can hold it. Too little noise, with which it rounds
    to 1, raises a `ClaimError`.

    Source: Canonne, Kamath & Steinke (2020), Theorem 7 (the exact delta).
    """

    sigma: float
    epsilon: float
    sensitivity: int = 1
    query: Query = identity
    delta: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_number("sigma", self.sigma, 0, math.inf, "it is about the standard deviation of the noise", closed=False)
        self._check_answers()
        why = f"is too large for a table of the distribution; use sigma <= {LARGEST_SIGMA:g}, or GaussianMechanism."
        check_value("sigma", self.sigma, self.sigma <= LARGEST_SIGMA, why)
        at_zero, moved = (DiscreteGaussianDistribution(location, self.sigma) for location in (0, int(self.sensitivity)))
        self._set_delta(at_zero, moved, "a larger sigma", sigma=self.sigma)

    def distribution(self, dataset: Any) -> DiscreteGaussianDistribution:
        return DiscreteGaussianDistribution(whole_answer(self.query, dataset), self.sigma)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        outputs = discrete_gaussian(self.sigma, size, rng)
        outputs += whole_answer(self.query, dataset)
        return outputs


def discrete_gaussian(sigma: float, size: int, rng: np.random.Generator) -> Integers:
    """Return draws of K with Pr[K = k] ∝ exp(−k²/(2σ²)), shape (size,), int64.

    The sampler rejects from two-sided geometric draws of scale t = ⌊σ⌋ + 1 and keeps k with probability exp(−(|k| −
    σ²/t)²/(2σ²)); on average an output takes 1.3 to 2.3 draws. It keeps a draw if a standard exponential is at least
    the exponent, so no probability is rounded to a multiple of 2⁻⁵³. Only the limits of doubles truncate the
    distribution: exponents above 44 do not occur, and with them |k| beyond about 9σ (less than 1e-19 of the
    probability).

    Source: Canonne, Kamath & Steinke (2020), Algorithm 3; with doubles instead of its integer arithmetic.
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
def _coin_table(n_flips: int) -> tuple[Floats, Floats]:
    """By the ratios C(n, n/2 + j + 1)/C(n, n/2 + j), which keep the relative accuracy near the middle for any n."""
    half = n_flips // 2
    j = np.arange(half, dtype=np.float64)
    return _normalised(np.concatenate([[0.0], np.cumsum(np.log((half - j) / (half + j + 1)))]))


@dataclass(frozen=True, slots=True)
class BinomialDistribution(SymmetricWholeDistribution):
    """`location` plus the heads among `n_flips` fair coins minus n/2: Pr[k] = C(n, n/2 + k − location) / 2ⁿ."""

    alike = ("n_flips",)
    location: int
    n_flips: int
    _table = property(lambda distribution: _coin_table(distribution.n_flips))

    def __post_init__(self) -> None:
        is_even = 2 <= self.n_flips <= MOST_FLIPS and self.n_flips % 2 == 0
        check_rule("n_flips", self.n_flips, is_even, f"an even number from 2 to {MOST_FLIPS}")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        k = np.asarray(outputs, dtype=np.float64) - self.location + self.n_flips // 2
        inside = (k == np.floor(k)) & (k >= 0) & (k <= self.n_flips)
        return np.where(inside, self._table[0][np.where(inside, k, 0).astype(np.int64)], -np.inf)

    def _against(self, shift: int) -> tuple[Floats, Floats]:
        """The loss is infinite for outputs that only this distribution allows."""
        table, _ = self._table
        shift = min(shift, len(table))
        return table, np.concatenate([table[shift:], np.full(shift, -np.inf)])


@dataclass(frozen=True, slots=True)
class BinomialMechanism(ExactDeltaMechanism):
    """A whole answer plus the heads among fair coins minus half the coins: (epsilon, delta)-DP with the exact delta.

    The number of coins, `n_flips`, is even, from 2 to 2²⁰, and the standard deviation of the noise is √n_flips/2. The
    noise ends at ±n_flips/2, so some outputs are possible on only one of two neighbours and every epsilon needs a
    delta, computed as for `DiscreteGaussianMechanism`.

    Source: Dwork, Kenthapadi, McSherry, Mironov & Naor (2006).
    """

    n_flips: int
    epsilon: float
    sensitivity: int = 1
    query: Query = identity
    delta: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_even = isinstance(self.n_flips, (int, np.integer)) and self.n_flips % 2 == 0
        why = f"is not an even number from 2 to {MOST_FLIPS}; use one, or DiscreteGaussianMechanism for more noise."
        check_value("n_flips", self.n_flips, is_even and 2 <= self.n_flips <= MOST_FLIPS, why)
        self._check_answers()
        at_zero, moved = (BinomialDistribution(location, self.n_flips) for location in (0, int(self.sensitivity)))
        self._set_delta(at_zero, moved, "more coins", n_flips=self.n_flips)

    def distribution(self, dataset: Any) -> BinomialDistribution:
        return BinomialDistribution(whole_answer(self.query, dataset), self.n_flips)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        return rng.binomial(self.n_flips, 0.5, size) + (whole_answer(self.query, dataset) - self.n_flips // 2)
