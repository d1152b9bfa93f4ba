"""Many randomised responses of one person: independent ones, and ones whose question depends on the answers so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from ...audit.claims.claim import check_number
from ...audit.claims.pure_approx_gaussian import PureDP
from ..laws.laws import FiniteLaw
from ..noise_samplers import Integers, pieces
from ..parameter_checks import check_count
from ..queries import identity, whole_answer
from .randomised_response import RandomisedResponse, one_value


def check_rounds(epsilon_each: float, n: int) -> None:
    """Raise a `ClaimError` unless n responses of this epsilon can be given."""
    check_number("epsilon_each", epsilon_each, 0, math.inf, "the odds of the truth are its exponential", closed=False)
    check_count("n", n, "responses")


@dataclass(frozen=True, slots=True)
class RandomisedResponseFold:
    """How many of `n` randomised responses about one bit say 1: (n·epsilon_each)-DP.

    It is n-fold composition in short: the number is a sufficient statistic, so nothing that the responses say of the
    bit is lost, and the claim is attained.

    Parameters
    ----------
    epsilon_each : float
        Of each response, in nats, positive.
    n : int
        Number of responses, at least 1.

    Raises
    ------
    ClaimError
        For parameters outside these ranges.

    References
    ----------
    Kairouz, Oh & Viswanath (2015), The composition theorem for differential privacy: of all ε-DP mechanisms, composed
    n times, randomised response loses most.

    Examples
    --------
    >>> fold = RandomisedResponseFold(epsilon_each=0.1, n=30)
    >>> print(fold, fold.claim)
    RandomisedResponseFold(epsilon_each=0.1, n=30) 3-DP
    """

    epsilon_each: float
    n: int

    def __post_init__(self) -> None:
        check_rounds(self.epsilon_each, self.n)

    def __str__(self) -> str:
        return f"RandomisedResponseFold(epsilon_each={self.epsilon_each:g}, n={self.n})"

    @property
    def epsilon(self) -> float:
        """n · epsilon_each, in nats."""
        return self.n * self.epsilon_each

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, of all responses together."""
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> FiniteLaw:
        """The output's exact law, binomial."""
        ones = np.arange(self.n + 1)
        truths = ones if one_value(dataset, 2) == 1 else self.n - ones
        return FiniteLaw.from_log_weights(self.epsilon_each * truths - gammaln(ones + 1) - gammaln(self.n - ones + 1))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs in range(n + 1), shape (size,), int64."""
        probability = float(RandomisedResponse(self.epsilon_each).law(dataset).probabilities[1])
        return rng.binomial(self.n, probability, size).astype(np.int64)


@dataclass(frozen=True, slots=True)
class UpAndDown:
    """A search for one person's value by `n` randomised responses: (n·epsilon_each)-DP by adaptive composition.

    The first question is whether the value is above 0. After a yes the next threshold is higher by 1, after a no lower
    by 1, so each question depends on the answers before it. The output is the number of yeses, r say, which tells the
    last threshold, 2r − n. The dataset is a whole number, and any two are neighbours (the local model); the claim is
    attained by values on either side of all thresholds.

    Parameters
    ----------
    epsilon_each : float
        Of each response, in nats, positive.
    n : int
        Number of questions, at least 1.

    Raises
    ------
    ClaimError
        For parameters outside these ranges.

    References
    ----------
    Dixon & Mood (1948), A method for obtaining and analyzing sensitivity data (the up-and-down method), here with
    randomised responses.

    Examples
    --------
    >>> print(UpAndDown(epsilon_each=2.0, n=21).law(3).probabilities.argmax() * 2 - 21)
    3
    """

    epsilon_each: float
    n: int

    def __post_init__(self) -> None:
        check_rounds(self.epsilon_each, self.n)

    def __str__(self) -> str:
        return f"UpAndDown(epsilon_each={self.epsilon_each:g}, n={self.n})"

    @property
    def epsilon(self) -> float:
        """n · epsilon_each, in nats."""
        return self.n * self.epsilon_each

    @property
    def claim(self) -> PureDP:
        """`epsilon`-DP, of all responses together."""
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> FiniteLaw:
        """The output's exact law, from one question to the next."""
        value = whole_answer(identity, dataset)
        log_lie, log_truth = RandomisedResponse(self.epsilon_each).law(1).log_probabilities
        table = np.zeros(1)  # ln Pr[number of yeses] after no question
        for asked in range(self.n):
            is_above = value > 2 * np.arange(asked + 1) - asked
            yes = np.append(-np.inf, table + np.where(is_above, log_truth, log_lie))
            no = np.append(table + np.where(is_above, log_lie, log_truth), -np.inf)
            table = np.logaddexp(yes, no)
        return FiniteLaw.from_log_weights(table)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs in range(n + 1), shape (size,), int64; asks every question of every run."""
        value = whole_answer(identity, dataset)
        probability = float(RandomisedResponse(self.epsilon_each).law(1).probabilities[1])
        outputs = np.zeros(size, dtype=np.int64)
        for piece in pieces(size):
            threshold = outputs[piece]
            for _ in range(self.n):
                says_the_truth = rng.random(len(threshold)) < probability
                threshold += 2 * (says_the_truth == (value > threshold)) - 1
        return (outputs + self.n) // 2
