"""Exact laws of mechanism outputs on one dataset: the reference for samplers, audits and tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, logsumexp, ndtr, ndtri

from ..noise_samplers import Integers
from .divergences import Floats, ScalarLaw, check_rule, table_delta, table_epsilon

_LOG_ROOT_2_PI: Final = math.log(2 * math.pi) / 2
# Gauss-Legendre on (0, 1). In `log_gaussian_delta` the integrand is smooth on the scale of max(1, t) and the range is
# at most half of that, so the error with 12 nodes is below the rounding error.
_NODES, _WEIGHTS = (values / 2 for values in np.polynomial.legendre.leggauss(12))
_NODES = _NODES + 0.5
# 1 − 3/t² + 15/t⁴ − …: for t ≥ 30, the first omitted term is below 1e-15.
_SLOPE_SERIES: Final = np.cumprod([1.0, -3, -5, -7, -9, -11, -13, -15])


@dataclass(frozen=True, slots=True)
class _LocationScaleLaw(ScalarLaw):
    """Continuous law with a location and a scale; the divergence depends on the shift in scales."""

    location: float
    scale: float

    def __post_init__(self) -> None:
        check_rule("scale", self.scale, 0 < self.scale < math.inf, "0 < scale < inf")

    def is_comparable(self, other: Self) -> bool:
        return self.scale == other.scale

    def _standard(self, outputs: npt.ArrayLike) -> Floats:
        return (np.asarray(outputs, dtype=np.float64) - self.location) / self.scale

    def _shift(self, other: Self) -> float:
        return abs(self.location - other.location) / self.scale


@dataclass(frozen=True, slots=True)
class LaplaceLaw(_LocationScaleLaw):
    """Laplace law with density e^{−|z − location| / scale} / (2 scale)."""

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        return -np.abs(self._standard(outputs)) - math.log(2 * self.scale)

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        z = self._standard(outputs)
        tail = np.exp(-np.abs(z)) / 2
        return np.where(z < 0, tail, 1 - tail)

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return LaplaceLaw(-self.location, self.scale).cdf(-np.asarray(outputs, dtype=np.float64))

    def delta_from(self, other: Self, epsilon: float) -> float:
        """Return 1 − e^{(ε − d)/2} for ε < d, d the shift in scales: the best event is a half-line."""
        return max(0.0, -math.expm1((epsilon - self._shift(other)) / 2))

    def epsilon_from(self, other: Self, delta: float) -> float:
        return max(0.0, self._shift(other) + 2 * math.log1p(-delta))


@dataclass(frozen=True, slots=True)
class GaussianLaw(_LocationScaleLaw):
    """Normal law with mean `location` and standard deviation `scale`."""

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        return -(self._standard(outputs) ** 2) / 2 - math.log(self.scale * math.sqrt(2 * math.pi))

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return np.asarray(ndtr(self._standard(outputs)))

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return np.asarray(ndtr(-self._standard(outputs)))

    def delta_from(self, other: Self, epsilon: float) -> float:
        return math.exp(log_gaussian_delta(self._shift(other), epsilon))

    def epsilon_from(self, other: Self, delta: float) -> float:
        mu = self._shift(other)
        if mu == 0 or delta >= math.exp(log_gaussian_delta(mu, 0.0)):
            return 0.0
        if delta == 0:
            return math.inf
        from scipy.optimize import brentq

        upper = mu * (mu / 2 - float(ndtri(delta)))  # here the first term Φ(μ/2 − ε/μ) alone equals delta
        target = math.log(delta)
        root = brentq(lambda e: log_gaussian_delta(mu, e) - target, 0.0, upper * (1 + 1e-12), xtol=1e-15 * upper)
        return float(root)


def log_gaussian_delta(mu: float, epsilon: float) -> float:
    """Return ln[Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)]: the exact log-delta of normal laws `mu` standard deviations apart.

    Nothing overflows or cancels for any μ and ε ≥ 0. With u = ε/μ − μ/2 and v = u + μ, e^ε equals φ(u)/φ(v). The
    difference is therefore φ(u)(R(u) − R(v)) with the Mills ratio R(t) = Φ(−t)/φ(t), which needs no exponential of
    epsilon. If u and v are close, the function computes it as φ(u) ∫ −R′ from u to v.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.
    """
    u = epsilon / mu - mu / 2 if mu > 0 else math.inf
    if u > 1e100:
        return -math.inf
    v = u + mu
    if mu <= max(1.0, u) / 2:
        return -u * u / 2 - _LOG_ROOT_2_PI + math.log(mu * float(_WEIGHTS @ _mills_slope(u + mu * _NODES)))
    if u < 0:  # delta is large: compute it from its complement, Φ(u) + φ(u) R(v)
        return math.log1p(-float(ndtr(u)) - math.exp(-u * u / 2) * float(erfcx(v / math.sqrt(2))) / 2)
    return -u * u / 2 + math.log((float(erfcx(u / math.sqrt(2))) - float(erfcx(v / math.sqrt(2)))) / 2)


def _mills_slope(t: Floats) -> Floats:
    """Return −R′(t) = 1 − t R(t) of the Mills ratio R; for large t by its asymptotic series, as 1 − t R(t) cancels."""
    far = np.maximum(t, 30.0) ** -2.0
    return np.where(
        t < 30.0,
        1.0 - t * math.sqrt(math.pi / 2) * erfcx(np.minimum(t, 30.0) / math.sqrt(2)),
        far * np.polynomial.polynomial.polyval(far, _SLOPE_SERIES),
    )


@dataclass(frozen=True, slots=True)
class GeometricLaw(ScalarLaw):
    """Two-sided geometric law: Pr[k] = (1 − r)/(1 + r) r^|k − location| on the integers, where r is `ratio`."""

    location: int
    ratio: float

    def __post_init__(self) -> None:
        check_rule("ratio", self.ratio, 0 < self.ratio < 1, "0 < ratio < 1")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        k = np.asarray(outputs, dtype=np.float64)
        log_mode = math.log1p(-self.ratio) - math.log1p(self.ratio)
        return np.where(k == np.floor(k), log_mode + np.abs(k - self.location) * math.log(self.ratio), -np.inf)

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        k = np.floor(np.asarray(outputs, dtype=np.float64)) - self.location
        tail = np.exp(np.where(k < 0, -k, k + 1) * math.log(self.ratio)) / (1 + self.ratio)
        return np.where(k < 0, tail, 1 - tail)

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        k = np.floor(np.asarray(outputs, dtype=np.float64))
        return GeometricLaw(-self.location, self.ratio).cdf(-k - 1)

    def is_comparable(self, other: Self) -> bool:
        return self.ratio == other.ratio

    def delta_from(self, other: Self, epsilon: float) -> float:
        """Return 1 − r^{t+1}/(1+r) − e^ε r^{d−t}/(1+r), d the shift: the maximum over t of P(K ≤ t) − e^ε Q(K ≤ t)."""
        shift, log_ratio = abs(self.location - other.location), math.log(self.ratio)
        if epsilon >= -shift * log_ratio:
            return 0.0
        t = max(0, math.ceil((shift + epsilon / log_ratio) / 2) - 1)  # the last k whose loss (d − 2k) ln 1/r exceeds ε
        upper, lower = math.exp((t + 1) * log_ratio), math.exp(epsilon + (shift - t) * log_ratio)
        return max(0.0, 1 - (upper + lower) / (1 + self.ratio))

    def epsilon_from(self, other: Self, delta: float) -> float:
        """Return the largest root in ε, over the events K ≤ t, of P − e^ε Q = delta.

        The root is concave in t, so the stationary point is rounded both ways.
        """
        shift, log_ratio = abs(self.location - other.location), math.log(self.ratio)
        if shift == 0:
            return 0.0
        stationary = math.log((1 - delta) * (1 + self.ratio) / 2) / log_ratio - 1
        best = 0.0
        for t in (math.floor(stationary), math.floor(stationary) + 1):
            t = min(max(t, 0), shift - 1)
            mass = (1 - delta) * (1 + self.ratio) - math.exp((t + 1) * log_ratio)
            if mass > 0:
                best = max(best, math.log(mass) - (shift - t) * log_ratio)
        return best


@dataclass(frozen=True, slots=True)
class FiniteLaw(ScalarLaw):
    """Law on the outcomes 0 … K−1 with natural log-probabilities (−inf for an impossible outcome)."""

    log_probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        total = float(np.exp(self.log_probabilities).sum())
        check_rule("sum of probabilities", total, abs(total - 1) < 1e-9, "logarithms of probabilities that add to 1")

    @classmethod
    def from_log_weights(cls, log_weights: npt.ArrayLike) -> FiniteLaw:
        """Return the law whose probabilities are proportional to the exponentials of these numbers."""
        weights = np.asarray(log_weights, dtype=np.float64)
        return cls(tuple((weights - logsumexp(weights)).tolist()))

    @property
    def probabilities(self) -> Floats:
        """Shape (K,)."""
        return np.exp(self.log_probabilities)

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        k = np.asarray(outputs, dtype=np.float64)
        inside = (k == np.floor(k)) & (k >= 0) & (k < len(self.log_probabilities))
        return np.where(inside, np.asarray(self.log_probabilities)[np.where(inside, k, 0).astype(int)], -np.inf)

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return np.append(0.0, np.minimum(np.cumsum(self.probabilities), 1.0))[self._rank(outputs)]

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        above = np.minimum(np.cumsum(self.probabilities[::-1]), 1.0)[::-1]
        return np.append(above, 0.0)[self._rank(outputs)]

    def _rank(self, outputs: npt.ArrayLike) -> Integers:
        """Return how many outcomes are at most each output."""
        k = np.floor(np.asarray(outputs, dtype=np.float64)) + 1
        rank: Integers = np.clip(k, 0, len(self.log_probabilities)).astype(np.int64)
        return rank

    def is_comparable(self, other: Self) -> bool:
        return len(self.log_probabilities) == len(other.log_probabilities)

    def delta_from(self, other: Self, epsilon: float) -> float:
        return table_delta(np.asarray(self.log_probabilities), np.asarray(other.log_probabilities), epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return table_epsilon(np.asarray(self.log_probabilities), np.asarray(other.log_probabilities), delta)
