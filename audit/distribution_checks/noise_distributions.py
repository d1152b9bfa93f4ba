"""Distributions of noise that mechanisms claim, with intervals for scale and mean, and distances of samples from a
distribution.

The intervals are exact or conservative, for any number of draws. Outputs may be rounded to a grid of 2⁻³⁰ of the scale,
which changes every number here by less than its last printed digit. The critical values of the distances
(Kolmogorov-Smirnov, Anderson-Darling, cells) hold for every sample size from 40 on, and for error probabilities as
small as 1e-12.

Proof: docs/proofs/statements.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import (
    betainc,
    betaincc,
    exp1,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_ndtr,
    ndtr,
    ndtri,
)

from ..claims.claim import Array
from ..errors import OptionError
from ..inference.binomial_tails import BEYOND, FAR, ROUNDING, limits, row_slices
from ..options import as_number
from ..printing import shorten

Interval: TypeAlias = tuple[float, float, float]  # an estimate, and the lower and the upper end of its interval
GRID = 2.0**-30  # step of the grid to which outputs may be rounded, as a fraction of the scale
_RADEMACHER = 1 / (4 * float(ndtr(-math.sqrt(2))))  # 3.178
_MEAN_GUMBEL_SIZE = float(np.euler_gamma + 2 * exp1(1.0))


@dataclass(frozen=True, slots=True)
class NoiseDistribution(ABC):
    """A distribution of noise (output minus exact answer) with a scale.

    Subclasses keep the scale in the field that `parameter` names.
    """

    parameter: ClassVar[str] = "scale"
    is_discrete: ClassVar[bool] = False
    is_symmetric: ClassVar[bool] = True
    impossible: ClassVar[str] = ""  # what cannot occur

    def __post_init__(self) -> None:
        value = getattr(self, self.parameter)
        if not 0.0 < as_number(value) < math.inf:
            raise OptionError(
                f"{self.parameter}={shorten(value)} is not a scale of noise; use a positive number, in units of the "
                "outputs.",
                value=value,
            )
        object.__setattr__(self, self.parameter, float(value))

    @property
    def value(self) -> float:
        """The scale."""
        return float(getattr(self, self.parameter))

    def with_value(self, value: float) -> Self:
        """Return the distribution with another scale."""
        return replace(self, **{self.parameter: value})

    @property
    def mean(self) -> float:
        """Expected noise."""
        return 0.0

    @abstractmethod
    def cdf(self, x: Array) -> Array:
        """Return Pr[noise ≤ x]."""

    def cdf_below(self, x: Array) -> Array:
        """Return Pr[noise < x]."""
        return self.cdf(x)

    @abstractmethod
    def log_cdf(self, x: Array) -> Array:
        """Return ln Pr[noise ≤ x], precise in the lower tail."""

    def log_sf(self, x: Array) -> Array:
        """Return ln Pr[noise > x]; this default is for symmetric distributions without atoms."""
        return self.log_cdf(-x)

    def is_possible(self, noise: Array) -> npt.NDArray[np.bool_]:
        """Mark the possible values, up to the grid."""
        return np.ones(noise.shape, np.bool_)

    @abstractmethod
    def estimate(self, noise: Array) -> Array:
        """Estimate the scale of each column of `noise`, shape (n, columns); zero if the values allow no other."""

    @abstractmethod
    def scale_interval(self, noise: Array, alpha: float) -> Interval:
        """Estimate the scale from values, shape (n,); the interval is wrong with probability ≤ `alpha`."""

    def mean_interval(self, noise: Array, alpha: float, most: float) -> Interval:
        """Estimate the mean from values, shape (n,); the interval is wrong with probability ≤ `alpha`.

        This default is for symmetric distributions with any scale and centre, by a bound on sums with random signs
        (Efron 1969; Bentkus & Dzindzalieta 2015, Theorem 1.1). Asymmetric distributions require a scale of at most
        `most`.
        """
        n, middle = len(noise), float(noise.mean())
        reach = -float(ndtri(min(alpha / (2 * _RADEMACHER), 0.5)))
        if n <= reach**2:
            return middle, -math.inf, math.inf
        with np.errstate(over="ignore"):  # then the interval is infinite
            radius = reach * float(noise.std()) / math.sqrt(n - reach**2)
        return middle, middle - radius, middle + radius


@dataclass(frozen=True, slots=True)
class LaplaceNoise(NoiseDistribution):
    """Distribution of Laplace noise, with density exp(−|x|/scale)/(2 scale).

    Σ|X|/scale is a Gamma variable of shape n: the scale's interval is exact.

    Parameters
    ----------
    scale : float
        Positive; the mechanism is (sensitivity/scale)-DP.

    Examples
    --------
    >>> LaplaceNoise(2.0).cdf(np.array([0.0, 2.0])).round(4).tolist()
    [0.5, 0.8161]
    """

    scale: float

    def cdf(self, x: Array) -> Array:
        tail = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.where(x < 0, tail, 1.0 - tail)

    def log_cdf(self, x: Array) -> Array:
        size = np.abs(x) / self.scale
        return np.where(x < 0, -size - math.log(2), np.log1p(-0.5 * np.exp(-size)))

    def estimate(self, noise: Array) -> Array:
        return np.asarray(np.abs(noise).mean(axis=0))

    def scale_interval(self, noise: Array, alpha: float) -> Interval:
        return _gamma_interval(float(np.abs(noise).sum()), len(noise), alpha)


@dataclass(frozen=True, slots=True)
class GaussianNoise(NoiseDistribution):
    """Distribution of Gaussian noise of standard deviation `sigma`.

    ΣX²/sigma² is chi-square, and the mean has Student's t distribution: the intervals are exact.

    Parameters
    ----------
    sigma : float
        Positive.
    """

    parameter: ClassVar[str] = "sigma"
    sigma: float

    def cdf(self, x: Array) -> Array:
        return np.asarray(ndtr(x / self.sigma))

    def log_cdf(self, x: Array) -> Array:
        return np.asarray(log_ndtr(x / self.sigma))

    def estimate(self, noise: Array) -> Array:
        return np.asarray(np.sqrt(np.mean(noise * noise, axis=0)))

    def scale_interval(self, noise: Array, alpha: float) -> Interval:
        n = len(noise)
        low, high = (math.sqrt(2 * end / n) for end in _gamma_limits(n / 2, alpha))
        middle = float(self.estimate(noise))
        return middle, middle / high, middle / low

    def mean_interval(self, noise: Array, alpha: float, most: float) -> Interval:
        from scipy.stats import t

        n, middle = len(noise), float(noise.mean())
        radius = float(t.isf(alpha / 2, n - 1)) * float(noise.std(ddof=1)) / math.sqrt(n)
        return middle, middle - radius, middle + radius


@dataclass(frozen=True, slots=True)
class ExponentialNoise(NoiseDistribution):
    """Distribution of exponential noise, with density exp(−x/scale)/scale for x ≥ 0 and mean `scale`.

    ΣX/scale is a Gamma variable: the intervals are exact.

    Parameters
    ----------
    scale : float
        Positive.
    """

    is_symmetric: ClassVar[bool] = False
    impossible: ClassVar[str] = "negative values"
    scale: float

    @property
    def mean(self) -> float:
        return self.scale

    def cdf(self, x: Array) -> Array:
        return -np.expm1(-np.maximum(x, 0.0) / self.scale)

    def log_cdf(self, x: Array) -> Array:
        # A value rounded to 0 counts as half a grid step; `is_possible` marks negative values.
        return np.log(-np.expm1(-np.maximum(x / self.scale, GRID / 2)))

    def log_sf(self, x: Array) -> Array:
        return -np.maximum(x, 0.0) / self.scale

    def is_possible(self, noise: Array) -> npt.NDArray[np.bool_]:
        return np.asarray(noise >= -GRID * self.scale)

    def estimate(self, noise: Array) -> Array:
        return np.asarray(np.maximum(noise.mean(axis=0), 0.0))

    def scale_interval(self, noise: Array, alpha: float) -> Interval:
        return _gamma_interval(max(float(noise.sum()), 0.0), len(noise), alpha)

    def mean_interval(self, noise: Array, alpha: float, most: float) -> Interval:
        n, middle = len(noise), float(noise.mean())
        low, high = (end / n for end in _gamma_limits(n, alpha))
        return middle, middle - most * (high - 1), middle - most * (low - 1)


@dataclass(frozen=True, slots=True)
class GumbelNoise(NoiseDistribution):
    """Distribution of Gumbel noise, with distribution function exp(−exp(−x/scale)), as in report-noisy-max.

    The mode is 0 and the mean .5772 scale. The intervals use Chernoff's bound and are conservative for any number of
    draws. The interval of the scale is 1.6 times as wide as the narrowest asymptotic interval: 1.3 times because Σ|X|
    is not sufficient, and 1.2 times because of the bound.

    Parameters
    ----------
    scale : float
        Positive.
    """

    is_symmetric: ClassVar[bool] = False
    scale: float

    @property
    def mean(self) -> float:
        return float(np.euler_gamma) * self.scale

    def cdf(self, x: Array) -> Array:
        return np.exp(self.log_cdf(x))

    def log_cdf(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            return -np.exp(-x / self.scale)

    def log_sf(self, x: Array) -> Array:
        return np.log(-np.expm1(self.log_cdf(x)))

    def estimate(self, noise: Array) -> Array:
        return np.asarray(np.abs(noise).mean(axis=0) / _MEAN_GUMBEL_SIZE)

    def scale_interval(self, noise: Array, alpha: float) -> Interval:
        low, high = _chernoff_limits(_log_mgf_of_gumbel_size, len(noise), alpha)
        middle, size = float(self.estimate(noise)), float(np.abs(noise).mean())
        return middle, size / high, size / low if low > 0 else math.inf

    def mean_interval(self, noise: Array, alpha: float, most: float) -> Interval:
        low, high = _chernoff_limits(lambda theta: float(gammaln(1 - theta)), len(noise), alpha)
        middle = float(noise.mean())
        return middle, middle - most * (high - np.euler_gamma), middle - most * (low - np.euler_gamma)


@dataclass(frozen=True, slots=True)
class GeometricNoise(NoiseDistribution):
    """Distribution of two-sided geometric noise: Pr[k] = (1 − q)/(1 + q) q^|k| for whole k, q = exp(−1/scale).

    The distribution of Σ|K| grows stochastically with the scale. The number of values other than 0 is binomial, and
    given this number the sum is negative binomial, so the interval that inverts both tails is exact (it has at least
    its level).

    Parameters
    ----------
    scale : float
        Positive; the mechanism is (sensitivity/scale)-DP.
    """

    is_discrete: ClassVar[bool] = True
    impossible: ClassVar[str] = "values that are not integers"
    scale: float

    def cdf(self, x: Array) -> Array:
        k = np.floor(x)
        q_rest = -math.expm1(-1 / self.scale)  # 1 − q
        tail = np.exp(-np.where(k >= 0, k + 1, -k) / self.scale) / (2 - q_rest)
        return np.where(k >= 0, 1.0 - tail, tail)

    def cdf_below(self, x: Array) -> Array:
        return self.cdf(np.ceil(x) - 1)

    def log_cdf(self, x: Array) -> Array:
        return np.log(self.cdf(x))

    def is_possible(self, noise: Array) -> npt.NDArray[np.bool_]:
        return np.asarray(np.abs(noise - np.rint(noise)) <= GRID * max(self.scale, 1.0))

    def estimate(self, noise: Array) -> Array:
        with np.errstate(divide="ignore"):  # E|K| = 1/sinh(1/scale)
            return np.asarray(1 / np.arcsinh(1 / np.abs(np.rint(noise)).mean(axis=0)))

    def scale_interval(self, noise: Array, alpha: float) -> Interval:
        from scipy.optimize import brentq

        n, total = len(noise), float(np.abs(np.rint(noise)).sum())
        middle = float(self.estimate(noise))

        def end(side: int, factor: float) -> float:
            def beyond(log_scale: float) -> float:
                return _size_tail(total, n, math.exp(log_scale), side) - alpha / 2

            near = far = math.log(middle if total else self.scale)
            step = math.log(factor) / math.sqrt(n)
            while beyond(far) > 0:
                near, far, step = far, far + step, 2 * step
            while beyond(near) < 0:  # only if the total is 0
                near -= math.log(2)
            return math.exp(float(brentq(beyond, near, far, xtol=ROUNDING)) - side * 2 * ROUNDING)

        return middle, end(1, 0.1) if total else 0.0, end(-1, 10.0)

    def cells(self, n: int) -> tuple[tuple[float, float], ...]:
        """Return ranges of integers, ends included, that each expect ten of n draws or more, as far as possible."""
        number = min(n // 10, 64)
        steps, tails = np.arange(1, number) / number, 2.0 ** -np.arange(7, 60)
        tails = tails[n * tails >= 10]
        levels = np.concatenate([tails, steps, 1 - tails])
        ends = np.unique([self._quantile(level) for level in levels])
        return tuple(zip([-math.inf, *(ends + 1)], [*ends, math.inf], strict=True))

    def _quantile(self, level: float) -> float:
        """Return an integer with cdf near `level`."""
        size = -self.scale * math.log(min(level, 1 - level) * (1 + math.exp(-1 / self.scale)))
        return float(-math.floor(size) if level < 0.5 else max(math.floor(size), 0))

    def cell_probability(self, first: float, last: float) -> float:
        """Return Pr[first ≤ noise ≤ last], from the nearer tail."""
        if first > 0:  # by symmetry, so that small probabilities keep their digits
            first, last = -last, -first
        found = self.cdf(np.array([last, first - 1.0]))
        return float(found[0] - found[1])

    def even_probability(self) -> float:
        """Return the probability of an even value."""
        q = math.exp(-1 / self.scale)
        return (1 + q * q) / (1 + q) ** 2


def _gamma_limits(shape: float, alpha: float) -> tuple[float, float]:
    """Return limits that contain a Gamma variable with probability 1 − alpha."""
    return float(gammaincinv(shape, alpha / 2)), float(gammainccinv(shape, alpha / 2))


def _gamma_interval(total: float, n: int, alpha: float) -> Interval:
    """Estimate the scale, if `total` is the scale times a Gamma variable of shape n."""
    low, high = _gamma_limits(n, alpha)
    return total / n, total / high, total / low


def _chernoff_limits(log_mgf: Any, n: int, alpha: float) -> tuple[float, float]:
    """Return limits that contain the mean of n draws with probability at least 1 − alpha; `log_mgf` is K on (−1, 1)."""
    from scipy.optimize import minimize_scalar

    spent = math.log(2 / alpha) / n

    def bound(log_theta: float, side: int) -> float:
        theta = math.exp(log_theta)
        return float((log_mgf(side * theta) + spent) / theta)

    start = math.log(min(math.sqrt(2 * spent), 0.5))
    low, high = (
        minimize_scalar(bound, args=(side,), bounds=(start - 3, -1e-9), method="bounded", options={"xatol": 1e-6}).fun
        for side in (-1, 1)
    )
    return -float(low), float(high)


def _log_mgf_of_gumbel_size(theta: float) -> float:
    """Return log E exp(θ|Y|) of a standard Gumbel Y; exp(−Y) is standard exponential, split where Y changes sign."""
    near, far = 1 - theta, 1 + theta
    return math.log(math.gamma(near) * gammainc(near, 1.0) + math.gamma(far) * gammaincc(far, 1.0))


def _size_tail(total: float, n: int, scale: float, side: int) -> float:
    """Return Pr[Σ|K| ≥ total] (side 1) or Pr[Σ|K| ≤ total] (side −1) for n two-sided geometric variables."""
    q, rest = math.exp(-1 / scale), -math.expm1(-1 / scale)
    share = 2 * q / (1 + q)  # probability of a value other than 0
    away = FAR * math.sqrt(n * share * (rest / (1 + q))) + BEYOND
    number = np.arange(max(math.floor(n * share - away), 0), min(math.ceil(n * share + away), n) + 1.0)
    least = total if side == 1 else total + 1
    # Each of j values other than 0 is at least 1, and the rest of their sum is at least r with probability I_q(r, j).
    j, r = np.maximum(number, 1.0), np.maximum(least - number, 1.0)
    if side == 1:
        tail = betaincc(j, r, rest) if q > 0.5 else betainc(r, j, q)
        tail = np.where(number >= least, 1.0, np.where(number == 0, 0.0, tail))
    else:
        tail = betainc(j, r, rest) if q > 0.5 else betaincc(r, j, q)
        tail = np.where(number >= least, 0.0, np.where(number == 0, 1.0, tail))
    # The binomial distribution from the ratios of neighbouring terms, which is faster than its probability function.
    ratios = np.log((n - number[:-1]) / (number[:-1] + 1)) + (math.log(2 / rest) - 1 / scale)
    log_weight = np.concatenate([[0.0], np.cumsum(ratios)])
    weight = np.exp(log_weight - log_weight.max())
    return float(weight @ tail / weight.sum())


# Distances of samples from a distribution.

_NODES = 128  # quadrature nodes on each interval of Smirnov's formula: error 1e-13 for statistics up to 1,000
_INTERVALS = 40  # intervals of the formula: at its smallest argument the last one adds e^(−.05 · 8 · 40²)
_SURELY_SMALL = 0.05  # an Anderson-Darling statistic that is exceeded with probability 1 − 1e-10
LEAST_SIMULATED = 1e-4  # the smallest alpha for which a threshold is simulated
_SIMULATED_BEYOND = 100  # samples beyond the exact quantile: the safe rank is 57, a radius for 40 cells 2% too large
_UNLUCKY = 1e-6  # probability that the simulated radius is too small
_LEAST_LOG = float(np.log(np.nextafter(0.0, 1.0)))  # of the smallest double; this floor only makes a distance smaller


def ks_distance(values: Array, cdf: Callable[[Array], Array], cdf_below: Callable[[Array], Array]) -> float:
    """Return the largest distance of sorted values from a distribution with Pr[X ≤ v] and Pr[X < v]."""
    last = np.flatnonzero(np.append(values[1:] != values[:-1], True))
    distinct, upto = values[last], (last + 1) / len(values)
    below = np.concatenate([[0.0], upto[:-1]])
    return float(max(np.max(upto - cdf(distinct)), np.max(cdf_below(distinct) - below), 0.0))


@lru_cache(maxsize=64)
def ks_radius(n: int, *, alpha: float) -> float:
    """Return a distance that independent draws from any distribution exceed with probability at most `alpha`.

    It is exact for distributions without atoms, and conservative for others (Simard & L'Ecuyer 2011; Massart 1990).
    """
    from scipy.stats import kstwo

    always = math.sqrt(math.log(2 / alpha) / (2 * n))
    exact = float(kstwo.isf(alpha, n)) * (1 + 1e-6)  # inverted to 1e-3 of its tail, or 1e-5 of itself over its spread
    return exact if exact < always else always  # also if exact is NaN


def ad_distance(log_cdf: Array, log_sf: Array) -> float:
    """Return √(A²/n): the root mean squared distance of the distribution functions over F, weighted by 1/(F(1 − F)).

    The logarithms are those of F and 1 − F at the sorted values, shape (n,).
    """
    n = len(log_cdf)
    log_cdf, log_sf = np.maximum(log_cdf, _LEAST_LOG), np.maximum(log_sf, _LEAST_LOG)
    odd = 2.0 * np.arange(1, n + 1) - 1.0
    # Σ(2i − 1)(…)/n is close to −n: adding 1 to each term keeps the digits of the difference.
    statistic = -float(np.sum(odd / n * (log_cdf + log_sf[::-1]) + 1.0))
    return math.sqrt(max(statistic, 0.0) / n)


def ad_radius(n: int, *, alpha: float) -> float:
    """Return a distance √(A²/n) that draws from the distribution exceed with probability at most `alpha`, for n ≥ 40.

    For 40 draws the tails of the limiting distribution of A² are too small by 1 to 2% of themselves (simulated with
    4·10⁶ samples for alpha from .05 to 1e-3; less for smaller alpha); the error falls as 1/n. Alpha is reduced by it.
    """
    return math.sqrt(ad_critical(alpha * (1 - 1 / n)) / n)


def ad_tail(statistic: float) -> float:
    """Return the limiting probability that A² exceeds `statistic`, with a relative error of 1e-10.

    In the limit A² is Σ Z²ⱼ/(j(j + 1)), Z standard normal, with E exp(sA²) = 1/√D(s), D(s) = cos(½π√(1 + 8s))/(−2πs).
    Smirnov's formula for such sums integrates e^(−sz)/(s√|D(s)|) between the zeros j(j + 1)/2 of D, from each odd zero
    to the next, with alternating signs. With √(1 + 8s) = 4k + v the interval is −1 < v < 1, and Gauss-Chebyshev
    quadrature handles both singular ends (Anderson & Darling 1952, Asymptotic theory of certain "goodness of fit"
    criteria, Section 4; Slepian 1958, Fluctuations of random noise power, for any such sum).
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
    samples, expected, rng = math.ceil(_SIMULATED_BEYOND / alpha), np.array(chances), np.random.default_rng(0)
    batches = []
    for some in row_slices(samples, len(chances)):
        shares = rng.multinomial(n, expected / expected.sum(), size=len(range(samples)[some])) / n
        batches.append(np.sqrt(((shares - expected) ** 2 / expected).sum(axis=1)))
    rank = safe_rank(samples, alpha)
    farthest = np.partition(np.concatenate(batches), -rank)[-rank]
    return float(farthest) * (1 + 1e-12)  # equal distances may differ by rounding errors


def safe_rank(samples: int, alpha: float) -> int:
    """Return the largest r for which Pr[Bin(samples, alpha) < r] is at most 1e-6."""
    from scipy.stats import binom

    return int(binom.ppf(_UNLUCKY, samples, alpha))


def cell_limits(counts: npt.NDArray[np.int64], n: int, *, alpha: float) -> tuple[Array, Array]:
    """Return Clopper and Pearson's limits for the probability of each cell, with joint confidence 1 − alpha."""
    return limits(counts.astype(np.float64), n, alpha=alpha / (2 * len(counts)))


def least(distance: Callable[[float], float], allowed: tuple[float, float]) -> float:
    """Return the distance from the nearest distribution of an allowed scale; a distance falls and then rises in it."""
    from scipy.optimize import minimize_scalar

    if allowed[0] == allowed[1]:
        return distance(allowed[0])
    found = minimize_scalar(
        lambda value: distance(float(value)), bounds=allowed, method="bounded", options={"xatol": 1e-6 * allowed[1]}
    )
    return min(float(found.fun), *map(distance, allowed))
