"""The discrete Gaussian mechanism: noise on the integers, k with probability proportional to exp(−k²/(2σ²))."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, check_number
from ...audit.errors import ClaimError
from ..laws.divergences import ScalarLaw, check_rule, exact_delta
from ..noise_samplers import Floats, Integers, pieces, two_sided_geometric
from ..parameter_checks import check_whole_sensitivity
from ..queries import Query, identity, whole_answer

LARGEST_SIGMA: Final = 2.0**14
"""Limit on the table of the law, which has 78σ entries. For more noise, `GaussianMechanism` is a substitute."""

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


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLaw(ScalarLaw):
    """Law on the integers with Pr[k] ∝ exp(−(k − location)²/(2σ²)); sums treat probabilities below 1e-300 as 0.

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

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return self._at_least(self.location - np.floor(np.asarray(outputs, dtype=np.float64)))

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return self._at_least(np.floor(np.asarray(outputs, dtype=np.float64)) + 1 - self.location)

    def _at_least(self, k: Floats) -> Floats:
        """Return Pr[K − location ≥ k] for whole or infinite k."""
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


@dataclass(frozen=True, slots=True)
class DiscreteGaussianMechanism:
    """A whole answer plus discrete Gaussian noise: (epsilon, delta)-DP with the exact delta, on the integers.

    The law is log-concave: among answers at most `sensitivity` apart, those at the full distance are the easiest to
    distinguish at every epsilon, and they determine delta.

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
        check_number("epsilon", self.epsilon, 0, math.inf, "delta is computed for it")
        check_whole_sensitivity(self.sensitivity, "GaussianMechanism")
        if self.sigma > LARGEST_SIGMA:
            raise ClaimError(
                f"sigma={self.sigma!r} is too large for a table of the law; use sigma <= {LARGEST_SIGMA:g}, or "
                "GaussianMechanism.",
                sigma=self.sigma,
            )
        delta = exact_delta(
            DiscreteGaussianLaw(0, self.sigma), DiscreteGaussianLaw(int(self.sensitivity), self.sigma), self.epsilon
        )
        if delta >= 1.0 - 1e-12:
            raise ClaimError(
                f"sigma={self.sigma!r} gives delta 1 at epsilon={self.epsilon:g}, which claims nothing; use a larger "
                "sigma.",
                sigma=self.sigma,
                epsilon=self.epsilon,
            )
        object.__setattr__(self, "delta", max(delta, sys.float_info.min))

    def __str__(self) -> str:
        return f"DiscreteGaussian(sigma={self.sigma:g}, epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g})"

    @property
    def claim(self) -> ApproxDP:
        """(epsilon, delta)-DP, with the smallest delta at this epsilon."""
        return ApproxDP(self.epsilon, self.delta)

    def law(self, dataset: Any) -> DiscreteGaussianLaw:
        """The exact law of the output."""
        return DiscreteGaussianLaw(whole_answer(self.query, dataset), self.sigma)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size,), int64."""
        outputs = discrete_gaussian(self.sigma, size, rng)
        outputs += whole_answer(self.query, dataset)
        return outputs


def discrete_gaussian(sigma: float, size: int, rng: np.random.Generator) -> Integers:
    """Return draws of K with Pr[K = k] ∝ exp(−k²/(2σ²)), shape (size,), int64.

    The sampler rejects from two-sided geometric draws of scale t = ⌊σ⌋ + 1 and keeps k with probability exp(−(|k| −
    σ²/t)²/(2σ²)); on average an output takes 1.3 to 2.3 draws. It keeps a draw if a standard exponential is at least
    the exponent, so no probability is rounded to a multiple of 2⁻⁵³. Only the limits of doubles truncate the law:
    exponents above 44 do not occur, and with them |k| beyond about 9σ (less than 1e-19 of the probability). For the
    remaining error see `two_sided_geometric`.

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
