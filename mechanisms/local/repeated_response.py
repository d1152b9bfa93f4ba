"""Repeated randomised responses of one person: independent, or with questions that depend on earlier answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from ...audit.claims.claim import PureDP, check_number
from ..laws.laws import FiniteLaw
from ..noise_samplers import Integers, pieces
from ..parameter_checks import check_count
from ..queries import identity, whole_answer
from .randomised_response import RandomisedResponse, one_value


def check_rounds(epsilon_each: float, n: int) -> None:
    """Raise a `ClaimError` unless `epsilon_each` and `n` describe n responses."""
    check_number("epsilon_each", epsilon_each, 0, math.inf, "the odds of the truth are its exponential", closed=False)
    check_count("n", n, "responses")


@dataclass(frozen=True, slots=True)
class _Responses:
    """Responses of one person whose epsilons add up."""

    epsilon_each: float
    n: int

    def __post_init__(self) -> None:
        check_rounds(self.epsilon_each, self.n)

    def __str__(self) -> str:
        return f"{type(self).__name__}(epsilon_each={self.epsilon_each:g}, n={self.n})"

    @property
    def epsilon(self) -> float:
        """n · epsilon_each, in nats."""
        return self.n * self.epsilon_each

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, for all responses together."""
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class RandomisedResponseFold(_Responses):
    """The number of `n` randomised responses about one bit that say 1: (n·epsilon_each)-DP.

    This is n-fold composition in compact form. The number is a sufficient statistic for the bit, so no information is
    lost and the claim is attained.

    Parameters
    ----------
    epsilon_each : float
        Epsilon of each response, in nats, positive.
    n : int
        Number of responses, at least 1.

    References
    ----------
    Kairouz, Oh & Viswanath (2015), The composition theorem for differential privacy: of all ε-DP mechanisms composed n
    times, randomised response loses most.

    Examples
    --------
    >>> fold = RandomisedResponseFold(epsilon_each=0.1, n=30)
    >>> print(fold, fold.claim)
    RandomisedResponseFold(epsilon_each=0.1, n=30) 3-DP
    """

    def law(self, dataset: Any) -> FiniteLaw:
        """The exact law of the output, binomial."""
        ones = np.arange(self.n + 1)
        truths = ones if one_value(dataset, 2) == 1 else self.n - ones
        return FiniteLaw.from_log_weights(self.epsilon_each * truths - gammaln(ones + 1) - gammaln(self.n - ones + 1))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs in range(n + 1), shape (size,), int64."""
        probability = float(RandomisedResponse(self.epsilon_each).law(dataset).probabilities[1])
        return rng.binomial(self.n, probability, size).astype(np.int64)


@dataclass(frozen=True, slots=True)
class UpAndDown(_Responses):
    """A search for one person's value by `n` randomised responses: (n·epsilon_each)-DP by adaptive composition.

    The first question is whether the value is above 0. A yes raises the next threshold by 1 and a no lowers it by 1, so
    each question depends on the answers before it. The output is the number r of yeses, which determines the last
    threshold, 2r − n. The dataset is a whole number, and any two are neighbours (the local model). Values on opposite
    sides of all thresholds attain the claim.

    Parameters
    ----------
    epsilon_each : float
        Epsilon of each response, in nats, positive.
    n : int
        Number of questions, at least 1.

    References
    ----------
    Dixon & Mood (1948), A method for obtaining and analyzing sensitivity data (the up-and-down method), here with
    randomised responses.

    Examples
    --------
    >>> print(UpAndDown(epsilon_each=2.0, n=21).law(3).probabilities.argmax() * 2 - 21)
    3
    """

    def law(self, dataset: Any) -> FiniteLaw:
        """The exact law of the output, computed question by question."""
        value = whole_answer(identity, dataset)
        log_lie, log_truth = RandomisedResponse(self.epsilon_each).law(1).log_probabilities
        table = np.zeros(1)  # ln Pr[number of yeses] before the first question
        for asked in range(self.n):
            is_above = value > 2 * np.arange(asked + 1) - asked
            yes = np.append(-np.inf, table + np.where(is_above, log_truth, log_lie))
            no = np.append(table + np.where(is_above, log_lie, log_truth), -np.inf)
            table = np.logaddexp(yes, no)
        return FiniteLaw.from_log_weights(table)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs in range(n + 1), shape (size,), int64; asks every question in every run."""
        value = whole_answer(identity, dataset)
        probability = float(RandomisedResponse(self.epsilon_each).law(1).probabilities[1])
        outputs = np.zeros(size, dtype=np.int64)
        for piece in pieces(size):
            threshold = outputs[piece]
            for _ in range(self.n):
                says_the_truth = rng.random(len(threshold)) < probability
                threshold += 2 * (says_the_truth == (value > threshold)) - 1
        return (outputs + self.n) // 2
