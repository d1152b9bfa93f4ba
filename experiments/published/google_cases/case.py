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
    """A case of one of the files on aggregations.

    Attributes
    ----------
    file : str
        Aggregation whose file has the case.
    name : str
        Noise, dataset and setting, as in the file.
    epsilon, delta : float
        Parameters of the aggregation; delta is 0 for Laplace noise.
    tested_delta : float
        Delta of the test, which is larger than `delta` in some cases.
    partitions, per_partition : int
        Most partitions that a user contributes to, and most values in each of them.
    lower, upper : float
        Bounds of the values.
    rows : tuple of float
        Values of the first dataset. For counts, numbers of values.
    extra : tuple of float
        Values that the second dataset has in addition, those of one user.
    tolerance : float
        Tolerance of the test, added to delta.
    granularity : float
        Width of the cells of the histograms; 0 if outputs are compared by other cells.
    tree : tuple of int
        Height and branching factor of a quantile tree.
    ranks : tuple of float
        Ranks of the quantiles.
    samples : int
        Outputs on each dataset of one vote.
    note : str
        What the file does differently from the case as it stands here.
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
    """A case of one of the two files on the law of the noise.

    Attributes
    ----------
    file, name : str
    epsilon, delta : float
        Parameters of the noise; delta is 0 for Laplace noise.
    partitions : int
        Largest number of coordinates that a user changes (the L₀ sensitivity).
    change : float
        Largest change of a coordinate (the L∞ sensitivity).
    answer : float
        Exact answer.
    variance : float
        Variance of the noise that the file states.
    tolerance, granularity : float
        Allowed distance of the histograms, and the width of their cells.
    samples : int
        Outputs of one vote.
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
