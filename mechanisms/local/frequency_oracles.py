"""Frequency oracles with one report of a few numbers: local hashing, subset selection, Hadamard response."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from ...audit.errors import ClaimError
from ..laws.laws import FiniteLaw
from ..laws.reference_mechanism import PureMechanism
from ..laws.row_law import RowLaw
from ..laws.subset_law import SubsetLaw
from ..noise_samplers import Integers, draw_indices
from ..parameter_checks import check_count
from .randomised_response import one_value, response_law
from .unary_encoding import check_oracle

_MULTIPLIER: Final = 0x9E3779B97F4A7C15
"""Odd, near 2⁶⁴/φ; its powers modulo 2⁶⁴ are the multipliers."""


def hashed(value: int, n_hashes: int, g: int) -> Integers:
    """Return the value's hash in range(g) by each hash function, shape (n_hashes,).

    Multiply-shift hashing: function s multiplies by its own odd number modulo 2⁶⁴, and the upper half of the product
    selects one of g equal parts of its range.

    References
    ----------
    Dietzfelbinger, Hagerup, Katajainen & Penttonen (1997), A reliable randomized algorithm for the closest-pair
    problem.
    """
    word = 2**64
    multipliers = (pow(_MULTIPLIER, power, word) for power in range(1, n_hashes + 1))
    return np.array([(value + 1) * multiplier % word // 2**32 * g // 2**32 for multiplier in multipliers])


MOST_ROWS: Final = 2**16
"""Largest number of different reports of local hashing."""


@functools.lru_cache(maxsize=64)
def hashing_law(value: int, n_hashes: int, g: int, log_odds: float) -> RowLaw:
    """Return the law of (hash function, report), the value's hash e^log_odds times as likely as another report."""
    found = np.concatenate(
        [response_law(int(one), g, log_odds).log_probabilities for one in hashed(value, n_hashes, g)]
    )
    return RowLaw(tuple(product(range(n_hashes), range(g))), tuple((found - math.log(n_hashes)).tolist()))


@dataclass(frozen=True, slots=True)
class LocalHashing(PureMechanism):
    """A random hash function, and the value's hash through randomised response: epsilon-DP.

    Given the hash function, the report is randomised response of g values. The function is drawn without regard to the
    value, so the report is epsilon-DP, and a pair of values attains the claim if a function tells them apart. Binary
    local hashing (BLH) has g = 2; optimised local hashing (OLH) has g = e^ε + 1, rounded. The functions are a fixed
    family, as in fast local hashing.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    k : int
        Number of values, at least 2.
    g : int, optional
        Number of hashes, at least 2; by default that of OLH.
    n_hashes : int
        Number of hash functions.

    References
    ----------
    Wang, Blocki, Li & Jha (2017), Locally differentially private protocols for frequency estimation, Section 4 (BLH,
    OLH); Bassily & Smith (2015), Local, private, efficient protocols for succinct histograms; Cormode, Maddock & Maple
    (2021), Frequency estimation under local differential privacy (fast local hashing).

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_epsilon
    >>> oracle = LocalHashing(epsilon=1, k=10)
    >>> print(oracle, round(exact_epsilon(oracle.law(0), oracle.law(9)), 12))
    LocalHashing(epsilon=1, k=10, g=4, n_hashes=16) 1.0
    """

    k: int
    g: int | None = None
    n_hashes: int = 16

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k)
        check_count("g", self.n_reports, "hashes", least=2)
        check_count("n_hashes", self.n_hashes, "hash functions")
        if self.n_reports * self.n_hashes > MOST_ROWS:
            raise ClaimError(
                f"g={self.n_reports} with {self.n_hashes} hash functions is too much for an exact law; use a smaller "
                f"g= or n_hashes=, with a product of at most {MOST_ROWS}.",
                g=self.n_reports,
            )

    def __str__(self) -> str:
        return f"LocalHashing(epsilon={self.epsilon:g}, k={self.k}, g={self.n_reports}, n_hashes={self.n_hashes})"

    @property
    def n_reports(self) -> int:
        """Number of hashes g."""
        return round(math.exp(min(self.epsilon, 40.0))) + 1 if self.g is None else self.g

    def law(self, dataset: Any) -> RowLaw:
        """The exact law of the rows (hash function, report)."""
        return hashing_law(one_value(dataset, self.k), self.n_hashes, self.n_reports, self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent rows (hash function, report), shape (size, 2), int64."""
        hashes = hashed(one_value(dataset, self.k), self.n_hashes, self.n_reports)
        function = rng.integers(0, self.n_hashes, size)
        shift = draw_indices(response_law(0, self.n_reports, self.epsilon).probabilities, size, rng)  # 0: the truth
        return np.stack([function, (hashes[function] + shift) % self.n_reports], axis=1)


@dataclass(frozen=True, slots=True)
class SubsetSelection(PureMechanism):
    """A random subset of the values that prefers the true one: epsilon-DP.

    A subset with the value is e^ε times as likely as one without it, so the claim holds, and every pair of values
    attains it if the subset is neither empty nor everything.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    k : int
        Number of values, at least 2.
    size : int, optional
        Number of values in the subset, from 1 to k − 1; by default k/(e^ε + 1), rounded, and at least 1.

    References
    ----------
    Ye & Barg (2018), Optimal schemes for discrete distribution estimation under locally differential privacy; Wang,
    Huang, Wang, Nie, Xu, Yang, Li & Qiao (2016), Mutual information optimally local private discrete distribution
    estimation (k-subset mechanism).

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_epsilon
    >>> oracle = SubsetSelection(epsilon=1, k=10)
    >>> print(oracle, round(exact_epsilon(oracle.law(0), oracle.law(9)), 12))
    SubsetSelection(epsilon=1, k=10, size=3) 1.0
    """

    k: int
    size: int | None = None

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k)
        check_count("size", self.n_members, "values")
        if self.n_members >= self.k:
            raise ClaimError(
                f"size={self.n_members} of k={self.k} values says nothing; use 1 <= size < k.", size=self.n_members
            )

    def __str__(self) -> str:
        return f"SubsetSelection(epsilon={self.epsilon:g}, k={self.k}, size={self.n_members})"

    @property
    def n_members(self) -> int:
        """Number of values in the subset."""
        return best_size(self.epsilon, self.k) if self.size is None else self.size

    def law(self, dataset: Any) -> SubsetLaw:
        """The exact law of the membership bits."""
        return SubsetLaw(one_value(dataset, self.k), self.k, self.n_members, self.epsilon)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent subsets as membership bits, shape (size, k), int64."""
        law = self.law(dataset)
        order = rng.random((size, self.k))  # the members have the lowest numbers
        has_value = rng.random(size) < math.exp(law.log_shares[1])
        order[:, law.value] = np.where(has_value, -1.0, 2.0)
        last = np.partition(order, self.n_members - 1, axis=1)[:, [self.n_members - 1]]
        return (order <= last).astype(np.int64)


def best_size(epsilon: float, k: int) -> int:
    """Return the subset size with the least variance: k/(e^ε + 1), rounded, and at least 1."""
    return max(1, round(k / (math.exp(min(epsilon, 700.0)) + 1)))


@dataclass(frozen=True, slots=True)
class HadamardResponse(PureMechanism):
    """A column in which the value's row of a Hadamard matrix is probably +1: epsilon-DP.

    The matrix has K rows, the least power of two above k, and value v has row v + 1, half of whose entries are +1. A
    column with +1 is e^ε times as likely as one with −1. Rows of different values are orthogonal, so a column exists in
    which they differ, and every pair of values attains the claim.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    k : int
        Number of values, at least 2.

    References
    ----------
    Acharya, Sun & Zhang (2019), Hadamard response: estimating distributions privately, efficiently, and with little
    communication (high privacy).

    Examples
    --------
    >>> oracle = HadamardResponse(epsilon=np.log(3), k=3)
    >>> oracle.law(0).probabilities.round(3).tolist()
    [0.375, 0.125, 0.375, 0.125]
    """

    k: int

    def __post_init__(self) -> None:
        check_oracle(self.epsilon, self.k)

    def __str__(self) -> str:
        return f"HadamardResponse(epsilon={self.epsilon:g}, k={self.k})"

    def law(self, dataset: Any) -> FiniteLaw:
        """The exact law of the column, in range(K)."""
        row = one_value(dataset, self.k) + 1
        is_minus = [(row & column).bit_count() % 2 for column in range(2 ** self.k.bit_length())]
        return FiniteLaw.from_log_weights([-self.epsilon * minus for minus in is_minus])

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent columns in range(K), shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)
