"""Randomised response, once and repeatedly, and other mechanisms on one person's value."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from scipy.special import gammaln

from ...audit.claims.claim import ApproxDP, PureDP, check_number
from ...audit.errors import DatasetError
from ..distributions.distributions import DiscreteDistribution, FiniteDistribution, ProductDistribution
from ..distributions.divergences import (
    ApproxMechanism,
    DrawnByItsDistribution,
    DrawnWithDistribution,
    PureMechanism,
    RunsAs,
)
from ..noise.gaussian import GaussianMechanism, Vector, VectorGaussianMechanism, vector_answer
from ..noise_samplers import Integers, pieces
from ..queries import as_numbers, check_count, check_value, identity, real_answer, whole_answer

__all__ = [
    "LocalGaussianMechanism", "Interval", "Ball", "RandomisedResponse", "NameAndShame", "RandomisedResponseFold",
    "UpAndDown",
]  # fmt: skip

# Randomised response over k values.


@functools.lru_cache(maxsize=256)
def response_distribution(value: int, k: int, log_odds: float) -> FiniteDistribution:
    """Return the distribution that makes `value` e^log_odds times as likely as each other value."""
    return FiniteDistribution.from_log_weights([log_odds if other == value else 0.0 for other in range(k)])


def binomial_distribution(n: int, log_odds: float) -> FiniteDistribution:
    """Return the distribution of the number of 1s among `n` independent bits, each 1 with these odds."""
    ones = np.arange(n + 1)
    return FiniteDistribution.from_log_weights(log_odds * ones - gammaln(ones + 1) - gammaln(n - ones + 1))


def one_value(dataset: Any, k: int) -> int:
    """Return the dataset as a value in range(k); raise a `DatasetError` if it is not one."""
    try:
        value = operator.index(dataset)
    except TypeError:
        value = -1
    why = f"is not one of the k={k} values; use a whole number from 0 to {k - 1}."
    check_value("dataset", dataset, 0 <= value < k, why, DatasetError)
    return value


@dataclass(frozen=True, slots=True)
class RandomisedResponse(DrawnByItsDistribution, PureMechanism):
    """One person's value, kept with probability e^ε/(e^ε + k − 1), else replaced uniformly by another: epsilon-DP.

    The dataset is a value in range(k), and any two values are neighbours (the local model).

    Source: Warner (1965), Journal of the American Statistical Association 60, for k = 2; Kairouz, Bonawitz & Ramage
    (2016), Discrete distribution estimation under local privacy.

    Examples
    --------
    >>> RandomisedResponse(epsilon=np.log(3)).distribution(1).probabilities.round(3).tolist()
    [0.25, 0.75]
    """

    k: int = 2

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "the truth is e^epsilon times as likely", closed=False)
        check_count("k", self.k, "values", least=2)

    def distribution(self, dataset: Any) -> FiniteDistribution:
        return response_distribution(one_value(dataset, self.k), self.k, self.epsilon)


# Repeated randomised responses of one person: independent, or with questions that depend on earlier answers.


def check_rounds(epsilon_each: float, n: int) -> None:
    """Raise a `ClaimError` unless `epsilon_each` and `n` describe n responses."""
    check_number("epsilon_each", epsilon_each, 0, math.inf, "the odds of the truth are its exponential", closed=False)
    check_count("n", n, "responses")


@dataclass(frozen=True, slots=True)
class _Responses(DrawnWithDistribution):
    """Responses of one person whose epsilons add up."""

    epsilon_each: float
    n: int
    epsilon = property(lambda t: t.n * t.epsilon_each, doc="n · epsilon_each, in nats.")

    def __post_init__(self) -> None:
        check_rounds(self.epsilon_each, self.n)

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class RandomisedResponseFold(_Responses):
    """The number of `n` randomised responses about one bit that say 1, a sufficient statistic: (n·epsilon_each)-DP,
    attained.

    Source: Kairouz, Oh & Viswanath (2017), The composition theorem for differential privacy: of all ε-DP mechanisms
    composed n times, randomised response loses most.
    """

    def distribution(self, dataset: Any) -> FiniteDistribution:
        return binomial_distribution(self.n, self.epsilon_each if one_value(dataset, 2) == 1 else -self.epsilon_each)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        probability = float(RandomisedResponse(self.epsilon_each).distribution(dataset).probabilities[1])
        return rng.binomial(self.n, probability, size).astype(np.int64)


@dataclass(frozen=True, slots=True)
class UpAndDown(_Responses):
    """A search for one person's value by `n` randomised responses: (n·epsilon_each)-DP by adaptive composition.

    The first question is whether the value is above 0. A yes raises the next threshold by 1 and a no lowers it by 1, so
    each question depends on the answers before it. The output is the number r of yeses, which determines the last
    threshold, 2r − n. The dataset is a whole number, and any two are neighbours (the local model). Values on opposite
    sides of all thresholds attain the claim.

    Source: Dixon & Mood (1948), Journal of the American Statistical Association 43, here with randomised responses.
    """

    def distribution(self, dataset: Any) -> FiniteDistribution:
        value = whole_answer(identity, dataset)
        log_lie, log_truth = RandomisedResponse(self.epsilon_each).distribution(1).log_probabilities
        table = np.zeros(1)  # ln Pr[number of yeses] before the first question
        for asked in range(self.n):
            is_above = value > 2 * np.arange(asked + 1) - asked
            yes = np.append(-np.inf, table + np.where(is_above, log_truth, log_lie))
            no = np.append(table + np.where(is_above, log_lie, log_truth), -np.inf)
            table = np.logaddexp(yes, no)
        return FiniteDistribution.from_log_weights(table)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        value = whole_answer(identity, dataset)
        probability = float(RandomisedResponse(self.epsilon_each).distribution(1).probabilities[1])
        outputs = np.zeros(size, dtype=np.int64)
        for piece in pieces(size):
            threshold = outputs[piece]
            for _ in range(self.n):
                says_the_truth = rng.random(len(threshold)) < probability
                threshold += 2 * (says_the_truth == (value > threshold)) - 1
        return (outputs + self.n) // 2


# Name and shame: publish each row with a small probability, the worst that a delta may allow.

HIDDEN: Final = -1
"""Output in place of a row that was not exposed."""


@dataclass(frozen=True, slots=True)
class NameAndShame(DrawnWithDistribution):
    """Each row with probability delta, else `HIDDEN`: (0, delta)-DP for replaced rows, without any pure guarantee.

    Rows are exposed independently, delta·n of n on average, so a delta is harmless only if it is far below 1/n.

    Source: Dwork & Roth (2014), after Definition 2.4.
    """

    delta: float
    epsilon = property(lambda t: 0.0, doc="Zero: the output does not depend on a row that is not exposed.")

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0, 1, "each row's probability of being exposed", closed=False)

    @property
    def claim(self) -> ApproxDP:
        """(0, delta)-DP, for one replaced row."""
        return ApproxDP(self.epsilon, self.delta)

    def distribution(self, dataset: Any) -> ProductDistribution:
        chances = (math.log1p(-self.delta), math.log(self.delta))
        return ProductDistribution(
            tuple(DiscreteDistribution((HIDDEN, row), chances) for row in _whole_rows(dataset).tolist())
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        rows = _whole_rows(dataset)
        return np.where(rng.random((size, len(rows))) < self.delta, rows, HIDDEN)


def _whole_rows(dataset: Any) -> Integers:
    """Return the rows as whole numbers from 0, shape (n_rows,); raise a `DatasetError` for other rows."""
    rows = as_numbers(dataset)
    are_rows = rows.ndim == 1 and len(rows) and np.all((rows >= 0) & (rows < 2.0**53) & (rows == np.floor(rows)))
    why = "is not a list of rows; give one or more rows, each a whole number from 0."
    check_value("dataset", dataset, are_rows, why, DatasetError)
    return rows.astype(np.int64)


# The Gaussian mechanism in the local model: one person's value, clipped to a domain, plus Gaussian noise.


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers from `low` to `high`; calling it clips a number to the interval."""

    low: float
    high: float

    def __post_init__(self) -> None:
        is_interval = -math.inf < self.low < self.high < math.inf  # NaN fails
        why = f"and high={self.high!r} bound no interval; use finite numbers with low < high."
        check_value("low", self.low, is_interval, why)

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}]"

    def __call__(self, value: Any) -> float:
        return min(max(real_answer(identity, value), float(self.low)), float(self.high))

    @property
    def diameter(self) -> float:
        """Largest distance between two members: the sensitivity if any two values are neighbours."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Ball:
    """The vectors of norm at most `radius`; calling it scales a longer vector down and rejects other lengths."""

    radius: float
    n_coords: int

    def __post_init__(self) -> None:
        check_number("radius", self.radius, 0, math.inf, "longer vectors are scaled down to it", closed=False)
        check_count("n_coords", self.n_coords, "coordinates")

    def __str__(self) -> str:
        return f"norm <= {self.radius:g} in {self.n_coords}-d"

    def __call__(self, value: Any) -> Vector:
        vector = vector_answer(identity, value)
        if len(vector) != self.n_coords:
            raise DatasetError(
                f"the vector has {len(vector)} coordinates, the domain {self.n_coords}; give every person's vector "
                "the same length, because the noise does not hide it.",
                n_coords=self.n_coords,
            )
        largest = max(map(abs, vector))
        if largest > self.radius:  # clip to a cube around the ball first, so that the norm cannot overflow
            vector = tuple(coordinate / largest * self.radius for coordinate in vector)
        norm = math.hypot(*vector)
        return vector if norm <= self.radius else tuple(coordinate / norm * self.radius for coordinate in vector)

    @property
    def diameter(self) -> float:
        """Largest distance between two members: the sensitivity if any two values are neighbours."""
        return 2 * self.radius


Domain: TypeAlias = Interval | Ball


@dataclass(frozen=True, slots=True)
class LocalGaussianMechanism(RunsAs, ApproxMechanism):
    """One person's number or vector, clipped to a domain, plus Gaussian noise: (epsilon, delta)-DP for any two values.

    In the local model any two values are neighbours. The sensitivity is the diameter of the domain, and the clipping
    guarantees it, so the domain must not depend on the value.

    Source: Balle & Wang (2018), Theorem 8, for the noise; Kasiviswanathan, Lee, Nissim, Raskhodnikova & Smith (2011),
    for the local model.
    """

    domain: Domain
    runs_as: GaussianMechanism | VectorGaussianMechanism = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        why = "is not a domain; use Interval(low, high) for numbers, or Ball(radius, n_coords) for vectors."
        check_value("domain", self.domain, isinstance(self.domain, Interval | Ball), why)
        kind = GaussianMechanism if isinstance(self.domain, Interval) else VectorGaussianMechanism
        found = kind(self.epsilon, self.delta, self.domain.diameter, query=self.domain)
        object.__setattr__(self, "runs_as", found)

    def __str__(self) -> str:
        return f"LocalGaussian(epsilon={self.epsilon:g}, delta={self.delta:g}, domain={self.domain})"

    @property
    def scale(self) -> float:
        """Standard deviation of the noise."""
        return self.runs_as.scale
