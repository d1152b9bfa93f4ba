"""A ladder of insufficient noise: counts, sums and means with a known share of the noise that their claims need.

Google's stochastic tester of differential privacy was evaluated on mechanisms with 50% to 99% of the noise.

References
----------
Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson (2020), Differentially private SQL with bounded user
contribution (the stochastic tester).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove
from ...audit.datasets.domains import Rows
from ...mechanisms import GaussianMechanism, LaplaceMechanism, exact_epsilon
from ...mechanisms.faulty.flaw import ClippedTotal
from .auditorium import BoundedMean
from .entry import Entry, entry

EPSILON: Final = 1.0
DELTA: Final = 0.01
"""Delta of the Gaussian claims."""
RATIOS: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Ratios of advertised to implemented epsilon, which are the shares of the noise."""
LOWER: Final = -1.0
UPPER: Final = 1.0

_SIZES: Final = (*range(1, 11), 12, 14, 17, 20, 25, 30, 40, 60, 80, 100, 120)
_SOUND_SIZE: Final = 5
_TOTAL: Final = ClippedTotal(LOWER, UPPER)


def entries() -> list[Entry]:
    """Return the ladder: each of five mechanisms with half of the noise up to all of the noise."""
    return [_mean(ratio) if name == "mean" else _entry(name, ratio) for name in _MADE for ratio in RATIOS]


_MADE: Final[dict[str, Callable[[float], Any]]] = {
    "count": lambda epsilon: LaplaceMechanism(epsilon, query=len),
    "sum": lambda epsilon: LaplaceMechanism(epsilon, max(-LOWER, UPPER), _TOTAL),
    "mean": lambda epsilon: BoundedMean(epsilon, LOWER, UPPER),
    "Gaussian count": lambda epsilon: GaussianMechanism(epsilon, DELTA, query=len),
    "Gaussian sum": lambda epsilon: GaussianMechanism(epsilon, DELTA, max(-LOWER, UPPER), query=_TOTAL),
}


def _mean(ratio: float) -> Entry:
    """Return a mean on a pair with an additional row at the lower bound; the event is a mean at the upper bound.

    With n rows whose sum is at most 1 and an implemented epsilon E, the loss is E − ln(1 + E/(3 + (n − 1)E)). The loss
    approaches E for many rows, where the event is rare. The number of rows therefore maximises the excess over the
    claim relative to the standard deviation of the counts.
    """
    epsilon = EPSILON / ratio

    def pair(n_rows: int) -> tuple[list[float], list[float]]:
        x = ([UPPER, LOWER] * n_rows)[:n_rows]
        return x, [*x, LOWER]

    def loss(n_rows: int) -> float:
        return epsilon - math.log1p(epsilon / (3 + (n_rows - 1) * epsilon))

    def excess_in_deviations(n_rows: int) -> float:
        _, y = pair(n_rows)
        return (loss(n_rows) - EPSILON) * math.sqrt(BoundedMean(epsilon, LOWER, UPPER).probability_of_upper(y))

    chosen = max(_SIZES, key=excess_in_deviations) if ratio < 1 else _SOUND_SIZE
    return _entry("mean", ratio, pair(chosen), loss(chosen))


def _entry(
    name: str,
    ratio: float,
    pair: tuple[list[float], list[float]] = ([UPPER, UPPER], [UPPER]),
    exact: float | None = None,
) -> Entry:
    mechanism, is_gaussian = _MADE[name](EPSILON / ratio), name.startswith("Gaussian")
    if exact is None:
        on_x, on_y = map(mechanism.distribution, pair)
        exact = exact_epsilon(on_x, on_y, DELTA if is_gaussian else 0.0)
    noise = "all of the noise" if ratio == 1 else f"{ratio:.0%} of the noise"
    return entry(
        f"{name} {ratio:.2f}",
        mechanism,
        pair,
        AddRemove(),
        Rows(low=LOWER, high=UPPER, most=max(5, *map(len, pair))),
        f"{noise}, exact epsilon at the claimed delta" if is_gaussian else noise,
        exact=exact,
        claim=ApproxDP(EPSILON, DELTA) if is_gaussian else PureDP(EPSILON),
    )
