"""One statistical test case of google/differential-privacy: parameters, a pair, and the tolerance of its test.

The cases are those of the folder proto/testing of google/differential-privacy. There, a case draws 10⁶ outputs (of
quantiles a quarter of them) on each of two neighbouring datasets, compares histograms of them with (ε, δ + tolerance),
and takes the majority of nine such votes.

References
----------
Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson (2020), Differentially private SQL with bounded user
contribution (stochastic testing).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ....audit.claims.claim import ApproxDP, Claim, PureDP
from ....mechanisms.aggregates import Noise

LN3: Final = math.log(3)
SAMPLES: Final = 1_000_000
"""Outputs on each dataset of one vote, except for quantiles."""
VOTES: Final = 9
"""Votes of a case; the majority decides."""

Row = tuple[int, float]
"""A user and a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case of one of the files on aggregations, named by noise, dataset and setting; delta is 0 for Laplace noise.

    A user contributes to at most `partitions` partitions, and at most `per_partition` values to each. `rows` are the
    values of the first dataset (of counts, numbers of values), and `extra` those of one user that the second has in
    addition. The test adds `tolerance` to `tested_delta`, and compares histograms whose cells have the width
    `granularity`, or other cells if it is 0. `tree` is the height and the branching factor of a quantile tree, and
    `note` says what the file does differently.
    """

    file: str
    name: str
    epsilon: float
    delta: float = 0.0
    tested_delta: float
    partitions: int = 1
    per_partition: int = 1
    lower: float = 0.0
    upper: float = 1.0
    rows: tuple[float, ...]
    extra: tuple[float, ...]
    tolerance: float
    granularity: float = 0.0
    tree: tuple[int, int] = (2, 5)
    ranks: tuple[float, ...] = ()
    samples: int = SAMPLES
    note: str = ""

    @property
    def noise(self) -> Noise:
        """Gaussian noise where there is a delta."""
        return "gaussian" if self.delta else "laplace"

    @property
    def key(self) -> str:
        return f"{self.file}: {self.name}"

    @property
    def claim(self) -> Claim:
        """Claim that the test checks, without its tolerance."""
        return ApproxDP(self.epsilon, self.tested_delta) if self.tested_delta else PureDP(self.epsilon)

    def pair(self, users: int = 1, extra: tuple[float, ...] | None = None) -> tuple[list[Row], list[Row]]:
        """Return the datasets as rows (user, value), with the extra values of this many users in the second one."""
        x = list(enumerate(self.rows))
        added = self.extra if extra is None else extra
        return x, x + [(len(x) + user, value) for user in range(users) for value in added]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosenessCase:
    """A case of one of the two files on the distribution of the noise; delta is 0 for Laplace noise.

    A user changes at most `partitions` coordinates (the L₀ sensitivity) by at most `change` (L∞). `variance` is what
    the file states, `tolerance` the allowed distance of histograms with cells of width `granularity`.
    """

    file: str
    name: str
    epsilon: float
    delta: float = 0.0
    partitions: int = 1
    change: float = 1.0
    answer: float = 0.0
    variance: float
    tolerance: float
    granularity: float
    samples: int = SAMPLES

    @property
    def noise(self) -> Noise:
        """Gaussian noise where there is a delta."""
        return "gaussian" if self.delta else "laplace"

    @property
    def key(self) -> str:
        return f"{self.file}: {self.name}"
