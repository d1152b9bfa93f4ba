"""How far numbers are from a fully specified law: Kolmogorov-Smirnov, Anderson-Darling, and counts in cells.

Each function says up to which value chance alone explains the distance, for every sample size from 40 and an error
probability as small as 1e-12.

Proof: docs/proofs/statements.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom, kstwo

from ..inference.binomial_tails import limits

Array = npt.NDArray[np.float64]

_NODES = 128  # of the quadrature on each interval of Smirnov's formula: 1e-13 for statistics up to 1,000
_INTERVALS = 40  # of that formula: at its smallest argument the last one adds e^(−.05 · 8 · 40²)
_SURELY_SMALL = 0.05  # an Anderson-Darling statistic that is exceeded with probability 1 − 1e-10
LEAST_SIMULATED = 1e-4
"""The least alpha for which a threshold is simulated."""
_SIMULATED_BEYOND = 100  # samples beyond the exact quantile: the safe rank is 57, and a radius of 40 cells 2% too large
_AT_A_TIME = 4096  # samples
_UNLUCKY = 1e-6  # probability that a simulation gives too small a radius
_LEAST_LOG = -745.0  # logarithm of the smallest double; a floor makes a distance smaller


def ks_distance(values: Array, cdf: Callable[[Array], Array], cdf_below: Callable[[Array], Array]) -> float:
    """The largest distance of the values' distribution function from the law's.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Sorted.
    cdf, cdf_below : callable
        Pr[X ≤ v] and Pr[X < v] of an array; the same function where the law has no atoms.
    """
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    distinct, upto = values[last], (last + 1) / len(values)
    below = np.concatenate([[0.0], upto[:-1]])
    return float(max(np.max(upto - cdf(distinct)), np.max(cdf_below(distinct) - below), 0.0))


@lru_cache(maxsize=64)
def ks_radius(n: int, *, alpha: float) -> float:
    """A distance that independent draws exceed with probability at most `alpha`, whatever their law.

    It is exact for laws without atoms, and too large for others.

    References
    ----------
    Simard & L'Ecuyer (2011), Computing the two-sided Kolmogorov-Smirnov distribution (scipy.stats.kstwo).
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality.
    """
    always = math.sqrt(math.log(2 / alpha) / (2 * n))
    exact = float(kstwo.isf(alpha, n)) * (1 + 1e-6)  # found back to 1e-3 of its tail, or 1e-5 of itself over its spread
    return exact if exact < always else always  # NaN fails


def ad_distance(log_cdf: Array, log_sf: Array) -> float:
    """√(A²/n): the distance of the distribution functions, weighted by 1/(F(1 − F)), in the mean over the law F.

    Parameters
    ----------
    log_cdf, log_sf : ndarray, shape (n,)
        Logarithms of F and 1 − F at the values in ascending order.

    References
    ----------
    Anderson & Darling (1954), A test of goodness of fit.
    """
    n = len(log_cdf)
    log_cdf, log_sf = np.maximum(log_cdf, _LEAST_LOG), np.maximum(log_sf, _LEAST_LOG)
    odd = 2.0 * np.arange(1, n + 1) - 1.0
    # Σ(2i − 1)(…)/n is −n but for what is left: subtracting i by i keeps the digits.
    statistic = -float(np.sum(odd / n * (log_cdf + log_sf[::-1]) + 1.0))
    return math.sqrt(max(statistic, 0.0) / n)


def ad_radius(n: int, *, alpha: float) -> float:
    """A distance √(A²/n) that draws from the law exceed with probability at most `alpha`, for n ≥ 40.

    It comes from the law that A² has as n grows. With 40 draws that law's tails are too small by 1 to 2% of themselves
    (simulated, 4·10⁶ samples, alpha from .05 to 1e-3; smaller yet beyond), and the error falls as 1/n: taking that much
    off alpha covers it.
    """
    return math.sqrt(ad_critical(alpha * (1 - 1 / n)) / n)


def ad_tail(statistic: float) -> float:
    """Probability that A² exceeds `statistic` for many draws from the law, to 1e-10 of itself.

    A² is then Σ Z²ⱼ/(j(j + 1)), Z standard normal, with E exp(sA²) = 1/√D(s), D(s) = cos(½π√(1 + 8s))/(−2πs). Smirnov's
    formula for such sums integrates e^(−sz)/(s√|D(s)|) between the zeros j(j + 1)/2 of D, from an odd one to the next,
    with alternating signs. With √(1 + 8s) = 4k + v the interval is −1 < v < 1, and Gauss-Chebyshev quadrature takes
    care of both ends.

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
    """The A² that many draws from the law exceed with probability `alpha`."""
    return float(brentq(lambda z: ad_tail(z) - alpha, _SURELY_SMALL, 2.0 - 1.1 * math.log(alpha), xtol=1e-12))


def chi_square_distance(hits: npt.NDArray[np.int64], chances: Array) -> float:
    """√(χ²/n): the distance of the shares of cells from their probabilities, weighted by 1/probability.

    References
    ----------
    Pearson (1900), On the criterion that a given system of deviations … can be reasonably supposed to have arisen from
    random sampling.
    """
    shares = hits / hits.sum()
    return math.sqrt(float(np.sum((shares - chances) ** 2 / chances)))


@lru_cache(maxsize=64)
def chi_square_radius(n: int, chances: tuple[float, ...], *, alpha: float) -> float:
    """A distance that n draws from the cells exceed with probability at most `alpha`, for alpha >= `LEAST_SIMULATED`.

    Simulated: the r-th largest of M distances of samples from the law, r = `safe_rank`. The simulation gives too
    small a radius with probability 1e-6 at most. Its seed is fixed, so the radius is the same every time.

    References
    ----------
    Wilks (1941), Determination of sample sizes for setting tolerance limits.
    """
    samples, law, rng = math.ceil(_SIMULATED_BEYOND / alpha), np.array(chances), np.random.default_rng(0)
    distances = np.concatenate(
        [
            np.sqrt(((rng.multinomial(n, law / law.sum(), size=size) / n - law) ** 2 / law).sum(axis=1))
            for size in [_AT_A_TIME] * (samples // _AT_A_TIME) + [samples % _AT_A_TIME]
        ]
    )
    rank = safe_rank(samples, alpha)
    return float(np.partition(distances, -rank)[-rank]) * (1 + 1e-12)  # an equal distance may differ by its rounding


def safe_rank(samples: int, alpha: float) -> int:
    """The largest r for which Pr[Bin(samples, alpha) < r] is 1e-6 at most.

    The r-th largest of so many independent draws is then exceeded by another one with a probability above `alpha` only
    where the draws were unlucky, which they are with probability 1e-6 at most.
    """
    return int(binom.ppf(_UNLUCKY, samples, alpha))


def cell_limits(hits: npt.NDArray[np.int64], n: int, *, alpha: float) -> tuple[Array, Array]:
    """Exact limits for the probability of each cell, shape (cells,); all hold together with probability 1 − alpha.

    By Clopper and Pearson, alpha shared equally: right in the farthest tail and for the fewest hits, where the law of
    chi-square is not and cannot be simulated.
    """
    return limits(hits.astype(np.float64), n, alpha=alpha / (2 * len(hits)))


def cell_words(cell: tuple[float, float]) -> str:
    """A range of whole numbers, ends included."""
    first, last = cell
    if math.isinf(first):
        return f"{last:.0f} or less"
    if math.isinf(last):
        return f"{first:.0f} or more"
    return f"{first:.0f}" if first == last else f"{first:.0f} to {last:.0f}"


def least(distance: Callable[[float], float], allowed: tuple[float, float]) -> float:
    """The distance from the nearest of the laws whose scale is allowed.

    Where the true law is one of them the least distance is at most that from the truth: the choice adds no error. As a
    function of the scale a distance falls and then rises, so a search finds its least value.
    """
    if allowed[0] == allowed[1]:
        return distance(allowed[0])
    found = minimize_scalar(
        lambda value: distance(float(value)), bounds=allowed, method="bounded", options={"xatol": 1e-6 * allowed[1]}
    )
    return min(float(found.fun), *map(distance, allowed))
