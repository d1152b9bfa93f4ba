"""Exact distributions of outputs: numbers, choices, vectors, rows, sets and transcripts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, logsumexp, ndtr, ndtri

from ...audit.errors import DatasetError, OptionError
from ..noise_samplers import Floats, Integers
from .divergences import (
    Distribution,
    ScalarDistribution,
    are_comparable,
    check_rule,
    no_closed_form,
    table_delta,
    table_epsilon,
)

__all__ = [
    "LaplaceDistribution", "GaussianDistribution", "GeometricDistribution", "FiniteDistribution",
    "DiscreteDistribution", "ProductDistribution", "ChainDistribution", "RowDistribution", "SubsetDistribution",
    "exact_renyi",
]  # fmt: skip

# Exact distributions of mechanism outputs on one dataset: the reference for samplers, audits and tables.

_LOG_ROOT_2_PI: Final = math.log(2 * math.pi) / 2
# Gauss-Legendre on (0, 1). In `log_gaussian_delta` the integrand is smooth on the scale of max(1, t) and the range is
# at most half of that, so the error with 12 nodes is below the rounding error.
_NODES, _WEIGHTS = (values / 2 for values in np.polynomial.legendre.leggauss(12))
_NODES = _NODES + 0.5
# 1 − 3/t² + 15/t⁴ − …: for t ≥ 30, the first omitted term is below 1e-15.
_SLOPE_SERIES: Final = np.cumprod([1.0, -3, -5, -7, -9, -11, -13, -15])


@dataclass(frozen=True, slots=True)
class _LocationScaleDistribution(ScalarDistribution):
    """Continuous distribution with a location and a scale; the divergence depends on the shift in scales."""

    alike = ("scale",)
    location: float
    scale: float

    def __post_init__(self) -> None:
        check_rule("scale", self.scale, 0 < self.scale < math.inf, "0 < scale < inf")

    def _standard(self, outputs: npt.ArrayLike) -> Floats:
        return (np.asarray(outputs, dtype=np.float64) - self.location) / self.scale

    def _shift(self, other: Self) -> float:
        return abs(self.location - other.location) / self.scale


@dataclass(frozen=True, slots=True)
class LaplaceDistribution(_LocationScaleDistribution):
    """Laplace distribution with density e^{−|z − location| / scale} / (2 scale)."""

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        return -np.abs(self._standard(outputs)) - math.log(2 * self.scale)

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        z = self._standard(outputs)
        tail = np.exp(-np.abs(z)) / 2
        return np.where(z < 0, tail, 1 - tail)

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return LaplaceDistribution(-self.location, self.scale).cdf(-np.asarray(outputs, dtype=np.float64))

    def delta_from(self, other: Self, epsilon: float) -> float:
        """Return 1 − e^{(ε − d)/2} for ε < d, d the shift in scales: the best event is a half-line."""
        return max(0.0, -math.expm1((epsilon - self._shift(other)) / 2))

    def epsilon_from(self, other: Self, delta: float) -> float:
        return max(0.0, self._shift(other) + 2 * math.log1p(-delta))


@dataclass(frozen=True, slots=True)
class GaussianDistribution(_LocationScaleDistribution):
    """Normal distribution with mean `location` and standard deviation `scale`."""

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
    """Return ln[Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)]: the exact log-delta of normal distributions `mu` standard deviations
    apart.

    Nothing overflows or cancels for any μ and ε ≥ 0. With u = ε/μ − μ/2 and v = u + μ, e^ε equals φ(u)/φ(v). The
    difference is therefore φ(u)(R(u) − R(v)) with the Mills ratio R(t) = Φ(−t)/φ(t), which needs no exponential of
    epsilon. If u and v are close, the function computes it as φ(u) ∫ −R′ from u to v.

    Source: Balle & Wang (2018), Theorem 8.
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
class GeometricDistribution(ScalarDistribution):
    """Two-sided geometric distribution: Pr[k] = (1 − r)/(1 + r) r^|k − location| on the integers; r is `ratio`."""

    alike = ("ratio",)
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
        return GeometricDistribution(-self.location, self.ratio).cdf(-k - 1)

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
class FiniteDistribution(ScalarDistribution):
    """Distribution on the outcomes 0 … K−1 with natural log-probabilities (−inf for an impossible outcome)."""

    log_probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        total = float(np.exp(self.log_probabilities).sum())
        check_rule("sum of probabilities", total, abs(total - 1) < 1e-9, "logarithms of probabilities that add to 1")

    @classmethod
    def from_log_weights(cls, log_weights: npt.ArrayLike) -> FiniteDistribution:
        """Return the distribution whose probabilities are proportional to the exponentials of these numbers."""
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


class _ByRank(Distribution):
    """Distribution of outcomes in an order, by the distribution of their places in it."""

    __slots__ = ()
    log_probabilities: tuple[float, ...]

    @property
    def _ranks(self) -> FiniteDistribution:
        """Distribution of the outcome's index; its probabilities must add to 1."""
        return FiniteDistribution(self.log_probabilities)

    def reduced(self, other: Self) -> tuple[Distribution, Distribution]:
        return self._ranks, other._ranks


# Distribution on finitely many real numbers.


@dataclass(frozen=True, slots=True)
class DiscreteDistribution(_ByRank, ScalarDistribution):
    """Distribution on the given values, in ascending order, with natural log-probabilities (−inf if impossible).

    It is `FiniteDistribution` on values instead of indices. Two distributions are comparable even if their values
    differ.
    """

    values: tuple[float, ...]
    log_probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        rule = "finite values in ascending order, one for each log-probability"
        is_ascending = bool(np.all(np.diff(self.values) > 0) and np.all(np.isfinite(self.values)))
        check_rule("values", self.values, is_ascending and len(self.values) == len(self.log_probabilities), rule)
        self._ranks  # noqa: B018  # checks that the probabilities add to 1

    @property
    def probabilities(self) -> Floats:
        """Shape (n_values,)."""
        return self._ranks.probabilities

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        rank = self._rank(outputs)
        is_value = np.asarray(self.values)[np.maximum(rank, 0)] == np.asarray(outputs, dtype=np.float64)
        return np.where(is_value, self._ranks.log_density(rank), -np.inf)

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        return self._ranks.cdf(self._rank(outputs))

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        return self._ranks.sf(self._rank(outputs))

    def _rank(self, outputs: npt.ArrayLike) -> Integers:
        """Return the index of the largest value that is at most each output; −1 below all values."""
        return np.asarray(np.searchsorted(self.values, np.asarray(outputs, dtype=np.float64), side="right") - 1)

    def is_comparable(self, other: Self) -> bool:
        return True

    def reduced(self, other: Self) -> tuple[Distribution, Distribution]:
        return self._among(other), other._among(self)

    def _among(self, other: Self) -> FiniteDistribution:
        """Return this distribution by index on the union of both sets of values."""
        return FiniteDistribution(tuple(self.log_density(sorted({*self.values, *other.values})).tolist()))


# Distribution of independent coordinates.


@dataclass(frozen=True, slots=True)
class ProductDistribution(Distribution):
    """Distribution of vectors with independent coordinates, with one distribution per coordinate.

    The divergence of two product distributions is known if they differ in at most one coordinate. At delta 0 it is
    always known, because the largest losses of independent coordinates add up.
    """

    marginals: tuple[ScalarDistribution, ...]

    def __post_init__(self) -> None:
        check_rule("number of marginals", len(self.marginals), len(self.marginals) > 0, "one distribution or more")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        rows = np.asarray(outputs, dtype=np.float64)
        return np.asarray(sum(distribution.log_density(rows[..., j]) for j, distribution in enumerate(self.marginals)))

    def is_comparable(self, other: Self) -> bool:
        return len(self.marginals) == len(other.marginals) and all(
            are_comparable(one, two) for one, two in self._pairs(other)
        )

    def delta_from(self, other: Self, epsilon: float) -> float:
        differing = self._differing(other)
        if len(differing) == 1:
            return differing[0][0].delta_from(differing[0][1], epsilon)
        if epsilon >= self._largest_loss(other):
            return 0.0
        raise self._too_many_places(other)

    def epsilon_from(self, other: Self, delta: float) -> float:
        differing = self._differing(other)
        if len(differing) == 1:
            return differing[0][0].epsilon_from(differing[0][1], delta)
        if delta == 0 or not differing:
            return self._largest_loss(other)
        raise self._too_many_places(other)

    def _too_many_places(self, other: Self) -> OptionError:
        return OptionError(
            f"two product distributions that differ in {len(self._differing(other))} coordinates have no closed form "
            "for their divergence at delta > 0; ask for epsilon at delta 0, or use distributions that differ in one "
            "coordinate.",
            distribution_x=self,
            distribution_y=other,
        )

    def _pairs(self, other: Self) -> list[tuple[ScalarDistribution, ScalarDistribution]]:
        return list(zip(self.marginals, other.marginals, strict=True))

    def _differing(self, other: Self) -> list[tuple[ScalarDistribution, ScalarDistribution]]:
        return [(one, two) for one, two in self._pairs(other) if one != two]

    def _largest_loss(self, other: Self) -> float:
        return math.fsum(one.epsilon_from(two, 0.0) for one, two in self._differing(other))


# Distribution of a row whose later entries depend on the first.

_FARTHEST = 1024.0  # upper limit of the search for epsilon


@dataclass(frozen=True, slots=True)
class ChainDistribution(Distribution):
    """Rows whose first entry o follows `first` and whose remaining entries, given o, follow ``rest[o]``.

    The divergence is a sum over o: if the first entry loses l(o), the remaining entries may lose ε − l(o).
    """

    first: FiniteDistribution
    rest: tuple[Distribution, ...]

    def __post_init__(self) -> None:
        n_outcomes = len(self.first.log_probabilities)
        rule = f"one distribution for each of {n_outcomes} outcomes"
        check_rule("number of distributions", len(self.rest), len(self.rest) == n_outcomes, rule)

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        rows = np.asarray(outputs, dtype=np.float64)
        density = np.array(self.first.log_density(rows[..., 0]))
        for o, distribution in enumerate(self.rest):
            after = rows[..., 0] == o
            rest = rows[after][..., 1] if isinstance(distribution, ScalarDistribution) else rows[after][..., 1:]
            density[after] += distribution.log_density(rest)
        return density

    def is_comparable(self, other: Self) -> bool:
        return self.first.is_comparable(other.first) and all(
            are_comparable(one, two) for one, two in zip(self.rest, other.rest, strict=True)
        )

    def delta_from(self, other: Self, epsilon: float) -> float:
        return math.fsum(math.exp(log_p) * _stick(p, q, epsilon - loss) for log_p, loss, p, q in self._chains(other))

    def epsilon_from(self, other: Self, delta: float) -> float:
        largest = max(loss + p.epsilon_from(q, 0.0) for _, loss, p, q in self._chains(other))
        if delta == 0:
            return max(0.0, largest)
        low, high = 0.0, min(max(largest, 0.0), _FARTHEST)
        if self.delta_from(other, low) <= delta:
            return 0.0
        if self.delta_from(other, high) > delta:
            return math.inf
        while high - low > 1e-13 * max(high, 1.0):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta_from(other, middle) > delta else (low, middle)
        return high

    def _chains(self, other: Self) -> list[tuple[float, float, Distribution, Distribution]]:
        """Return, for each possible first entry, its log-probability, its loss, and both distributions of the rest."""
        logs = zip(self.first.log_probabilities, other.first.log_probabilities, strict=True)
        rests = zip(self.rest, other.rest, strict=True)
        return [
            (log_p, log_p - log_q, p, q)
            for (log_p, log_q), (p, q) in zip(logs, rests, strict=True)
            if log_p > -math.inf
        ]


def _stick(distribution: Distribution, other: Distribution, epsilon: float) -> float:
    """Return sup_S P(S) − e^ε Q(S) for ε of either sign; for ε < 0, by the complements of the events."""
    if epsilon >= 0:
        return distribution.delta_from(other, epsilon)
    if epsilon == -math.inf:
        return 1.0
    return -math.expm1(epsilon) + math.exp(epsilon) * other.delta_from(distribution, -epsilon)


# Distribution of a random subset that prefers one value.


@dataclass(frozen=True, slots=True)
class SubsetDistribution(Distribution):
    """Distribution of the k membership bits of a random subset of `size` values.

    All subsets with `value` are equally likely, and so are those without; one with it is e^log_odds times as likely.
    """

    alike = ("k", "size")
    value: int
    k: int
    size: int
    log_odds: float

    @property
    def log_shares(self) -> tuple[float, float]:
        """Log-probabilities that the value is not in the subset, and that it is."""
        lacking, having = math.log(self.k - self.size), math.log(self.size) + self.log_odds
        total = float(np.logaddexp(lacking, having))
        return lacking - total, having - total

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        bits = np.asarray(outputs, dtype=np.float64)
        is_subset = ((bits == 0) | (bits == 1)).all(axis=-1) & (bits.sum(axis=-1) == self.size)
        lacking, having = self.log_shares
        lacking -= math.log(math.comb(self.k - 1, self.size))
        having -= math.log(math.comb(self.k - 1, self.size - 1))
        return np.where(is_subset, np.where(bits[..., self.value] == 1, having, lacking), -np.inf)

    def reduced(self, other: Self) -> tuple[FiniteDistribution, FiniteDistribution]:
        """Return the distributions of (value, other value) in the subset, on whose classes both are constant."""
        if self.value == other.value:
            return FiniteDistribution(self.log_shares), FiniteDistribution(other.log_shares)
        joint = [distribution._joint() for distribution in (self, other)]
        return FiniteDistribution(joint[0]), FiniteDistribution((joint[1][0], joint[1][2], joint[1][1], joint[1][3]))

    def _joint(self) -> tuple[float, ...]:
        """Return log-probabilities of (neither, another value only, this value only, both)."""
        lacking, having = self.log_shares
        shares = (
            (self.k - 1 - self.size, self.size),
            (self.k - self.size, self.size - 1),
        )  # of another value, out and in
        with np.errstate(divide="ignore"):  # a class may be empty
            logs = np.log(shares) - math.log(self.k - 1)
        return tuple((np.array([lacking, having])[:, None] + logs).ravel().tolist())


# Distribution on finitely many rows of whole numbers.


@dataclass(frozen=True, slots=True)
class RowDistribution(_ByRank):
    """Distribution on the given rows of whole numbers, in lexicographic order, with natural log-probabilities."""

    alike = ("rows",)
    rows: tuple[tuple[int, ...], ...]
    log_probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        rule = "different rows of one length in lexicographic order, one for each log-probability"
        is_sorted = all(a < b and len(a) == len(b) for a, b in zip(self.rows[:-1], self.rows[1:], strict=True))
        check_rule("rows", self.rows[:3], is_sorted and 0 < len(self.rows) == len(self.log_probabilities), rule)
        self._ranks  # noqa: B018  # checks that the probabilities add to 1

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        rows = np.asarray(outputs, dtype=np.float64)
        found, place = np.unique(rows.reshape(-1, rows.shape[-1]), axis=0, return_inverse=True)
        known = dict(zip(self.rows, self.log_probabilities, strict=True))
        logs = np.array([known.get(tuple(row), -math.inf) for row in found.tolist()])
        return np.asarray(logs[place.ravel()].reshape(rows.shape[:-1]))


# Distribution of a sparse vector's transcript: which answers were above the noisy threshold, up to the stop.

BELOW: Final = 0
ABOVE: Final = 1
STOPPED: Final = -1
"""Code of the answers after the stop."""

MOST_TRANSCRIPTS: Final = 2**14
_MOST_WORK: Final = 4e8  # transcripts times nodes; takes seconds
_REACH: Final = 45.0  # scales of the threshold's noise beyond the last answer: e⁻⁴⁵ of the mass is left


def transcript_distribution(
    excesses: Floats, threshold_scale: float, query_scale: float, cutoff: int | None, *, refresh: bool
) -> RowDistribution:
    """Return the distribution of the transcript, with probabilities accurate to a relative 1e-12.

    Its rows hold `ABOVE`, `BELOW` and `STOPPED` for each answer, whose `excesses` are over the threshold; the other
    parameters are those of `NoisyThreshold`. Given the threshold's noise z, the answers are independent, and each is
    above with a Laplace tail probability. The integral over z is by Gauss-Legendre on pieces that break at 0 and at
    every answer. On each piece the integrand is a sum of exponentials, and the pieces are so short that the error with
    24 nodes is 1e-14. Too many answers, or answers too many scales apart, raise a `DatasetError`.
    """
    limit = len(excesses) if cutoff is None else min(cutoff, len(excesses))
    count = count_transcripts(len(excesses), limit)
    z, log_weight = _nodes(excesses, threshold_scale, query_scale)
    if count > MOST_TRANSCRIPTS or len(z) * count > _MOST_WORK:
        raise DatasetError(
            f"{len(excesses)} answers have {count:,} transcripts, too many to integrate their distribution; use fewer "
            "answers, or a smaller cutoff.",
            n_queries=len(excesses),
            transcripts=count,
        )
    log_above, log_below = _log_tails(excesses[:, None] - z, query_scale)

    def walk(place: int, left: int, weight: Floats) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield every continuation from an answer on with its log-probability; `left` more answers above end it."""
        rest = len(excesses) - place
        if left == 0 or rest == 0:
            yield (STOPPED,) * rest, _log_sum(weight)
            return
        for ending, log_probability in walk(place + 1, left, weight + log_below[place]):
            yield (BELOW, *ending), log_probability
        weight = weight + log_above[place]
        if refresh:
            weight = log_weight + _log_sum(weight)
        for ending, log_probability in walk(place + 1, left - 1, weight):
            yield (ABOVE, *ending), log_probability

    with np.errstate(divide="ignore"):  # logarithms of 0
        transcripts, log_probabilities = zip(*walk(0, limit, log_weight), strict=True)
    return RowDistribution(transcripts, log_probabilities)


def _log_sum(log_weight: Floats) -> float:
    """Return log Σ exp, ten times as fast as `scipy.special.logsumexp` on such short arrays."""
    top = float(log_weight.max())
    return top + math.log(float(np.exp(log_weight - top).sum())) if math.isfinite(top) else top


def count_transcripts(n_queries: int, cutoff: int) -> int:
    """Return the number of transcripts that `n_queries` answers can have."""
    return sum(math.comb(n_queries, above) for above in range(min(cutoff, n_queries) + 1))


def quadrature(stops: Floats, longest: float) -> tuple[Floats, Floats]:
    """Return Gauss-Legendre nodes and weights: 24 on each piece of at most `longest` between stops, where kinks are."""
    parts = [np.linspace(a, b, math.ceil((b - a) / longest), endpoint=False) for a, b in pairwise(stops)]
    edges = np.concatenate([*parts, stops[-1:]])
    nodes, weights = np.polynomial.legendre.leggauss(24)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()


def _nodes(excesses: Floats, threshold_scale: float, query_scale: float) -> tuple[Floats, Floats]:
    """Return values of the threshold's noise and the logarithms of their weights, which add to 1."""
    stops = np.unique(np.append(excesses, 0.0))
    stops = np.concatenate([[stops[0] - _REACH * threshold_scale], stops, [stops[-1] + _REACH * threshold_scale]])
    rate = 1 / threshold_scale + (len(excesses) / query_scale if query_scale > 0 else 0.0)  # of the fastest exponential
    longest = 8 / rate
    n_pieces = (stops[-1] - stops[0]) / longest + len(stops)
    if n_pieces > 1e5:
        raise DatasetError(
            f"the answers span {np.ptp(stops) / threshold_scale:.3g} scales of the threshold's noise, too far to "
            "integrate their distribution; use answers nearer to the threshold.",
            n_queries=len(excesses),
        )
    z, weights = quadrature(stops, longest)
    return z, np.log(weights / (2 * threshold_scale)) - np.abs(z) / threshold_scale


def _log_tails(excess: Floats, scale: float) -> tuple[Floats, Floats]:
    """Return ln Pr[ν ≥ −excess] and the logarithm of its complement; ν is Laplace of this scale, or 0."""
    is_above = excess >= 0
    if scale == 0:
        return np.where(is_above, 0.0, -np.inf), np.where(is_above, -np.inf, 0.0)
    distance = np.abs(excess) / scale
    log_small, log_large = -distance - math.log(2), np.log1p(-np.exp(-distance) / 2)
    return np.where(is_above, log_large, log_small), np.where(is_above, log_small, log_large)


# Exact Rényi divergence of two output distributions.


def exact_renyi(distribution_x: Distribution, distribution_y: Distribution, order: float) -> float:
    """Return D_a(P ‖ Q) = ln E_Q[(dP/dQ)^a] / (a − 1) of P = `distribution_x` from Q = `distribution_y` at a finite
    order a > 1, in nats.

    The divergence is infinite if P allows an event that Q does not. It is known for two Laplace, Gaussian or finite
    distributions of one kind and scale (or number of outcomes), and for products of such distributions; others raise an
    `OptionError`.

    Source: Mironov (2017), Propositions 5 to 7 and Table II; divergences of independent outputs add up by Proposition
    1.

    Examples
    --------
    >>> from dpaudit.mechanisms import RandomisedResponse
    >>> response = RandomisedResponse(math.log(3))
    >>> round(exact_renyi(response.distribution(0), response.distribution(1), 2), 4)  # ln(.75²/.25 + .25²/.75)
    0.8473
    """
    check_rule("order", order, 1 < order < math.inf, "1 < order < inf")
    if not isinstance(distribution_x, type(distribution_y)) or not distribution_x.is_comparable(distribution_y):
        raise no_closed_form(distribution_x, distribution_y)
    match distribution_x, distribution_y:
        case ProductDistribution(), ProductDistribution():
            pairs = zip(distribution_x.marginals, distribution_y.marginals, strict=True)
            return math.fsum(exact_renyi(one, two, order) for one, two in pairs)
        case FiniteDistribution(), FiniteDistribution():
            log_p, log_q = np.asarray(distribution_x.log_probabilities), np.asarray(distribution_y.log_probabilities)
            possible = log_p > -np.inf
            return float(logsumexp(log_p[possible] + (order - 1) * (log_p - log_q)[possible])) / (order - 1)
        case GaussianDistribution(), GaussianDistribution():
            return order * ((distribution_x.location - distribution_y.location) / distribution_x.scale) ** 2 / 2
        case LaplaceDistribution(), LaplaceDistribution():
            shift = abs(distribution_x.location - distribution_y.location) / distribution_x.scale
            # Half of P lies beyond its own location, where the loss is +shift; half of Q lies beyond its own, where the
            # loss is −shift. Between the two locations, the density e^{(2a−1)z} is integrated.
            near, far = math.log(order / (2 * order - 1)), math.log((order - 1) / (2 * order - 1))
            return float(np.logaddexp(near + (order - 1) * shift, far - order * shift)) / (order - 1)
    raise no_closed_form(distribution_x, distribution_y)
