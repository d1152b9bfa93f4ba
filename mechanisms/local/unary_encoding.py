"""Unary encoding: a value as k bits, one of them 1, each reported at random."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...audit.claims.claim import PureDP, check_number
from ..laws.laws import FiniteLaw
from ..laws.product import ProductLaw
from ..laws.reference_mechanism import PureMechanism
from ..noise_samplers import Integers
from ..parameter_checks import check_count
from .randomised_response import one_value

MOST_EPSILON: Final = 30.0
"""Largest ε of coins that are given by their probabilities: 1 − p is then exact to a relative 10⁻⁹."""


def check_oracle(epsilon: float, k: int, most: float = math.inf) -> None:
    """Raise a `ClaimError` unless 0 < epsilon < most and there are two values or more."""
    check_number("epsilon", epsilon, 0, most, "the report of a value is random", closed=False)
    check_count("k", k, "values", least=2)


def bit_law(one: float) -> FiniteLaw:
    """Return the law of a bit that is 1 with this probability."""
    return FiniteLaw((math.log1p(-one) if one < 1 else -math.inf, math.log(one)))


@dataclass(frozen=True, slots=True)
class BitReports:
    """A value in range(k) as k bits, reported independently: `kept` = Pr[1 after a 1], `added` = Pr[1 after a 0]."""

    kept: float
    added: float
    k: int

    @property
    def claim(self) -> PureDP:
        """The log odds ratio of a reported 1."""
        return PureDP(math.log(self.kept / self.added) + math.log1p(-self.added) - math.log1p(-self.kept))

    def law(self, dataset: Any) -> ProductLaw:
        """The exact law of the bits."""
        value, one, zero = one_value(dataset, self.k), bit_law(self.kept), bit_law(self.added)
        return ProductLaw(tuple(one if place == value else zero for place in range(self.k)))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent reports of k bits, shape (size, k), int64."""
        chances = np.full(self.k, self.added)
        chances[one_value(dataset, self.k)] = self.kept
        return (rng.random((size, self.k)) < chances).astype(np.int64)


@dataclass(frozen=True, slots=True)
class UnaryEncoding(PureMechanism):
    """A value as k bits, one of them 1, each reported at random: epsilon-DP.

    Symmetric unary encoding (SUE, basic RAPPOR) keeps every bit with probability e^{ε/2}/(1 + e^{ε/2}). Optimised unary
    encoding (OUE) keeps the 1 with probability ½ and turns a 0 into a 1 with probability 1/(1 + e^ε).

    Two values differ in two bits, one in each direction. With the probabilities p and q of a reported 1 after a 1 and
    after a 0, the largest losses of the two bits are ln(p/q) and ln((1 − q)/(1 − p)). Both occur in the reports that
    have the bit of the first value and lack that of the second. The sum, the log odds ratio of a reported 1, is ε in
    both forms, so every pair of values attains the claim.

    Parameters
    ----------
    epsilon : float
        In nats, positive and below 30.
    k : int
        Number of values, at least 2.
    is_optimised : bool
        OUE instead of SUE.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, Section 4 (SUE,
    OUE); Erlingsson, Pihur & Korolova (2014), RAPPOR (basic one-time RAPPOR).

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_epsilon
    >>> oracle = UnaryEncoding(epsilon=1, k=4, is_optimised=True)
    >>> print(oracle, round(exact_epsilon(oracle.law(0), oracle.law(3)), 12))
    UnaryEncoding(epsilon=1, k=4, is_optimised=True) 1.0
    """

    k: int
    is_optimised: bool = False

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k, MOST_EPSILON)

    def __str__(self) -> str:
        return f"UnaryEncoding(epsilon={self.epsilon:g}, k={self.k}, is_optimised={self.is_optimised})"

    @property
    def runs_as(self) -> BitReports:
        """The coins of the bits."""
        return BitReports(*unary_coins(self.epsilon, self.is_optimised), self.k)

    def law(self, dataset: Any) -> ProductLaw:
        """The exact law of the bits."""
        return self.runs_as.law(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent reports of k bits, shape (size, k), int64."""
        return self.runs_as.sample(dataset, size, rng)


def unary_coins(epsilon: float, is_optimised: bool) -> tuple[float, float]:
    """Return the probabilities of a reported 1 after a 1 and after a 0, for OUE or SUE."""
    if is_optimised:
        return 0.5, 1 / (1 + math.exp(epsilon))
    return 1 / (1 + math.exp(-epsilon / 2)), 1 / (1 + math.exp(epsilon / 2))


@functools.lru_cache(maxsize=64)
def best_threshold(epsilon: float) -> float:
    """Return the threshold in [½, 1] with the least variance of an estimated frequency near 0."""
    from scipy.optimize import minimize_scalar

    def variance(threshold: float) -> float:
        kept, added = _above(threshold - 1, epsilon), _above(threshold, epsilon)
        return added * (1 - added) / (kept - added) ** 2

    return float(minimize_scalar(variance, bounds=(0.5, 1.0), method="bounded").x)


def _above(excess: float, epsilon: float) -> float:
    """Return the probability that Laplace noise of scale 2/ε exceeds a number."""
    tail = math.exp(-abs(excess) * epsilon / 2) / 2
    return tail if excess > 0 else 1 - tail


@dataclass(frozen=True, slots=True)
class ThresholdedHistogram(PureMechanism):
    """Thresholding with histogram encoding (THE): which of k noisy bits exceed a threshold: epsilon-DP, not attained.

    A value is k bits, one of them 1, and each gets Laplace noise of scale 2/ε. The noisy bits without a threshold (SHE)
    are `HistogramMechanism` with sensitivity 2 on the list of one row; they attain ε. With a threshold above 0 and
    below 1, a bit loses less than ε/2 in each direction, so the report loses less than ε.

    Parameters
    ----------
    epsilon : float
        In nats, positive and below 30.
    k : int
        Number of values, at least 2.
    threshold : float, optional
        Finite; by default the one in [½, 1] with the least variance of an estimate.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, Section 4 (SHE,
    THE).

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_epsilon
    >>> oracle = ThresholdedHistogram(epsilon=1, k=4)
    >>> print(round(exact_epsilon(oracle.law(0), oracle.law(3)), 3))
    0.896
    """

    k: int
    threshold: float | None = None

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k, MOST_EPSILON)
        if self.threshold is not None:
            check_number("threshold", self.threshold, -math.inf, math.inf, "noisy bits above it are 1", closed=False)

    def __str__(self) -> str:
        return f"ThresholdedHistogram(epsilon={self.epsilon:g}, k={self.k}, threshold={self._cut:.4g})"

    @property
    def _cut(self) -> float:
        return best_threshold(self.epsilon) if self.threshold is None else self.threshold

    @property
    def runs_as(self) -> BitReports:
        """The coins of the bits."""
        return BitReports(_above(self._cut - 1, self.epsilon), _above(self._cut, self.epsilon), self.k)

    def law(self, dataset: Any) -> ProductLaw:
        """The exact law of the bits."""
        return self.runs_as.law(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent reports of k bits, shape (size, k), int64."""
        return self.runs_as.sample(dataset, size, rng)
