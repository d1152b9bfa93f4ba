"""Distances of samples from a fully specified distribution, with critical values: Kolmogorov-Smirnov, Anderson-Darling,
cells.

The critical values hold for every sample size from 40 on and for error probabilities as small as 1e-12.

Proof: docs/proofs/statements.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..inference.binomial_tails import limits

Array = npt.NDArray[np.float64]

_NODES = 128  # quadrature nodes on each interval of Smirnov's formula: error 1e-13 for statistics up to 1,000
_INTERVALS = 40  # intervals of the formula: at its smallest argument the last one adds e^(−.05 · 8 · 40²)
_SURELY_SMALL = 0.05  # an Anderson-Darling statistic that is exceeded with probability 1 − 1e-10
LEAST_SIMULATED = 1e-4
"""The smallest alpha for which a threshold is simulated."""
_SIMULATED_BEYOND = 100  # samples beyond the exact quantile: the safe rank is 57, a radius for 40 cells 2% too large
_AT_A_TIME = 4096  # samples drawn in one batch
_UNLUCKY = 1e-6  # probability that the simulated radius is too small
_LEAST_LOG = -745.0  # logarithm of the smallest double; this floor only makes a distance smaller


def ks_distance(values: Array, cdf: Callable[[Array], Array], cdf_below: Callable[[Array], Array]) -> float:
    """Return the largest distance between the empirical distribution function of sorted values and the true one.

    `cdf` and `cdf_below` are Pr[X ≤ v] and Pr[X < v] of an array v; the same function if the distribution has no atoms.
    """
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    distinct, upto = values[last], (last + 1) / len(values)
    below = np.concatenate([[0.0], upto[:-1]])
    return float(max(np.max(upto - cdf(distinct)), np.max(cdf_below(distinct) - below), 0.0))


@lru_cache(maxsize=64)
def ks_radius(n: int, *, alpha: float) -> float:
    """Return a distance that independent draws from any distribution exceed with probability at most `alpha`.

    It is exact for distributions without atoms, and conservative for others.

    References
    ----------
    Simard & L'Ecuyer (2011), Computing the two-sided Kolmogorov-Smirnov distribution (scipy.stats.kstwo).
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality.
    """
    from scipy.stats import kstwo

    always = math.sqrt(math.log(2 / alpha) / (2 * n))
    exact = float(kstwo.isf(alpha, n)) * (1 + 1e-6)  # inverted to 1e-3 of its tail, or 1e-5 of itself over its spread
    return exact if exact < always else always  # also if exact is NaN


def ad_distance(log_cdf: Array, log_sf: Array) -> float:
    """Return √(A²/n): the root mean squared distance of the distribution functions over F, weighted by 1/(F(1 − F)).

    The logarithms are those of F and 1 − F at the sorted values, shape (n,).

    References
    ----------
    Anderson & Darling (1954), A test of goodness of fit.
    """
    n = len(log_cdf)
    log_cdf, log_sf = np.maximum(log_cdf, _LEAST_LOG), np.maximum(log_sf, _LEAST_LOG)
    odd = 2.0 * np.arange(1, n + 1) - 1.0
    # Σ(2i − 1)(…)/n is close to −n: adding 1 to each term keeps the digits of the difference.
    statistic = -float(np.sum(odd / n * (log_cdf + log_sf[::-1]) + 1.0))
    return math.sqrt(max(statistic, 0.0) / n)


def ad_radius(n: int, *, alpha: float) -> float:
    """Return a distance √(A²/n) that draws from the distribution exceed with probability at most `alpha`, for n ≥ 40.

    It uses the limiting distribution of A². For 40 draws the tails of this distribution are too small by 1 to 2% of
    themselves (simulated with 4·10⁶ samples for alpha from .05 to 1e-3; less for smaller alpha), and the error falls as
    1/n. Reducing alpha by this share covers the error.
    """
    return math.sqrt(ad_critical(alpha * (1 - 1 / n)) / n)


def ad_tail(statistic: float) -> float:
    """Return the limiting probability that A² exceeds `statistic`, with a relative error of 1e-10.

    In the limit A² is Σ Z²ⱼ/(j(j + 1)), Z standard normal, with E exp(sA²) = 1/√D(s), D(s) = cos(½π√(1 + 8s))/(−2πs).
    Smirnov's formula for such sums integrates e^(−sz)/(s√|D(s)|) between the zeros j(j + 1)/2 of D, from each odd zero
    to the next, with alternating signs. With √(1 + 8s) = 4k + v the interval is −1 < v < 1, and Gauss-Chebyshev
    quadrature handles both singular ends.

    References
    ----------
    Anderson & Darling (1952), Asymptotic theory of certain "goodness of fit" criteria, Section 4. Smirnov (1937), Sur
    la distribution de ω². Slepian (1958), Fluctuations of random noise power (the formula for any such sum).
    """
    if statistic < _SURELY_SMALL:
        return 1.0
    v = np.cos((2 * np.arange(1, _NODES + 1) - 1) * math.pi / (2 * _NODES))
    smooth = np.sqrt((1 - v * v) / np.cos(math.pi * v / 2))
    k = np.arange(1, _INTERVALS + 1)[:, None]
    root = 4.0 * k + v
    s = (root * root - 1.0) / 8.0
    parts = np.exp(-s * statistic) * np.sqrt(2 * math.pi / s) * root / 4 * smooth
    signs = np.where(k % 2 == 1, 1.0, -1.0)
    return min(float((signs * parts).sum() / _NODES), 1.0)  # weights π/nodes, and 1/π before the sum


@lru_cache(maxsize=64)
def ad_critical(alpha: float) -> float:
    """Return the A² that is exceeded with limiting probability `alpha`."""
    from scipy.optimize import brentq

    return float(brentq(lambda z: ad_tail(z) - alpha, _SURELY_SMALL, 2.0 - 1.1 * math.log(alpha), xtol=1e-12))


def chi_square_distance(counts: npt.NDArray[np.int64], chances: Array) -> float:
    """Return √(χ²/n) (Pearson 1900): the distance of the shares of cells from their probabilities."""
    shares = counts / counts.sum()
    return math.sqrt(float(np.sum((shares - chances) ** 2 / chances)))


@lru_cache(maxsize=64)
def chi_square_radius(n: int, chances: tuple[float, ...], *, alpha: float) -> float:
    """Return a distance that n draws exceed with probability at most `alpha`, for alpha >= `LEAST_SIMULATED`.

    It is the r-th largest of M simulated distances, r = `safe_rank` (Wilks 1941), with a fixed seed. The radius is too
    small with probability at most 1e-6.
    """
    samples, distribution, rng = math.ceil(_SIMULATED_BEYOND / alpha), np.array(chances), np.random.default_rng(0)
    distances = np.concatenate(
        [
            np.sqrt(
                (
                    (rng.multinomial(n, distribution / distribution.sum(), size=size) / n - distribution) ** 2
                    / distribution
                ).sum(axis=1)
            )
            for size in [_AT_A_TIME] * (samples // _AT_A_TIME) + [samples % _AT_A_TIME]
        ]
    )
    rank = safe_rank(samples, alpha)
    return float(np.partition(distances, -rank)[-rank]) * (1 + 1e-12)  # equal distances may differ by rounding errors


def safe_rank(samples: int, alpha: float) -> int:
    """Return the largest r for which Pr[Bin(samples, alpha) < r] is at most 1e-6."""
    from scipy.stats import binom

    return int(binom.ppf(_UNLUCKY, samples, alpha))


def cell_limits(counts: npt.NDArray[np.int64], n: int, *, alpha: float) -> tuple[Array, Array]:
    """Return Clopper and Pearson's limits for the probability of each cell, with joint confidence 1 − alpha."""
    return limits(counts.astype(np.float64), n, alpha=alpha / (2 * len(counts)))


def cell_words(cell: tuple[float, float]) -> str:
    """Describe a range of integers, ends included."""
    first, last = cell
    if math.isinf(first):
        return f"{last:.0f} or less"
    if math.isinf(last):
        return f"{first:.0f} or more"
    return f"{first:.0f}" if first == last else f"{first:.0f} to {last:.0f}"


def least(distance: Callable[[float], float], allowed: tuple[float, float]) -> float:
    """Return the distance from the nearest distribution of an allowed scale; a distance falls and then rises in it."""
    from scipy.optimize import minimize_scalar

    if allowed[0] == allowed[1]:
        return distance(allowed[0])
    found = minimize_scalar(
        lambda value: distance(float(value)), bounds=allowed, method="bounded", options={"xatol": 1e-6 * allowed[1]}
    )
    return min(float(found.fun), *map(distance, allowed))
