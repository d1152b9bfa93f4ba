"""Randomised response over k values."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.errors import DatasetError
from ..laws.laws import FiniteLaw
from ..laws.reference_mechanism import PureMechanism
from ..noise_samplers import Integers, draw_indices
from ..parameter_checks import check_count


@functools.lru_cache(maxsize=256)
def response_law(value: int, k: int, log_odds: float) -> FiniteLaw:
    """Return the law that makes `value` e^log_odds times as likely as each other value."""
    return FiniteLaw.from_log_weights([log_odds if other == value else 0.0 for other in range(k)])


def one_value(dataset: Any, k: int) -> int:
    """Return the dataset as a value in range(k); raise a `DatasetError` if it is not one."""
    try:
        value = operator.index(dataset)
    except TypeError:
        value = -1
    if not 0 <= value < k:
        raise DatasetError(
            f"dataset={dataset!r:.60} is not one of the k={k} values; use a whole number from 0 to {k - 1}.",
            dataset=dataset,
            k=k,
        )
    return value


@dataclass(frozen=True, slots=True)
class RandomisedResponse(PureMechanism):
    """One person's value, kept with probability e^ε/(e^ε + k − 1), else replaced uniformly by another: epsilon-DP.

    The dataset is a value in range(k), and any two values are neighbours (the local model).

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    k : int
        Number of values, at least 2.

    References
    ----------
    Warner (1965), Randomized response, for k = 2; Kairouz, Bonawitz & Ramage (2016), Discrete distribution estimation
    under local privacy (k-RR).

    Examples
    --------
    >>> RandomisedResponse(epsilon=np.log(3)).law(1).probabilities.round(3).tolist()
    [0.25, 0.75]
    """

    k: int = 2

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "the truth is e^epsilon times as likely", closed=False)
        check_count("k", self.k, "values", least=2)

    def __str__(self) -> str:
        return f"RandomisedResponse(epsilon={self.epsilon:g}, k={self.k})"

    def law(self, dataset: Any) -> FiniteLaw:
        """The exact law of the output."""
        return response_law(one_value(dataset, self.k), self.k, self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs in range(k), shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)
