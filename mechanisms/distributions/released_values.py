"""Distributions of a sparse vector that releases numbers: a value for each answer above, NaN for each answer below."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from ...audit.errors import DatasetError
from ..noise_samplers import Floats, Integers
from .distributions import ABOVE, BELOW, MOST_TRANSCRIPTS, STOPPED, RowDistribution, count_transcripts
from .divergences import Distribution, check_comparable, check_rule

__all__ = ["ComparedValuesDistribution", "FreshValuesDistribution"]

# Closed-form probability that a Laplace variable lies above other noisy numbers and below a limit.

_MOST_ANSWERS: Final = 20  # the powers cancel, with an error of 3ⁿ roundings: 1e-6 of the result
_MOST_EXPONENT: Final = 700.0


@dataclass(frozen=True, slots=True)
class MassBelow:
    """Pr[every x_i + V_i < Z ≤ u] as a function of u, for independent Laplace variables Z (scale a) and V_i (scale b).

    Take the density of Z times the distribution functions of the x_i + V_i. Between neighbouring `edges` (0 and every
    x_i) it is an exponential times a polynomial in e^{−z/b}: a sum of exponentials with known integrals, with
    `coefficients` relative to its height at the edge before and with `rates`, both of shape (n_edges, n_terms). Before
    the first edge it is a single exponential of `first_rate`. `log_mass` is ln of the probability up to each edge.
    """

    edges: Floats
    log_mass: Floats
    log_height: Floats
    coefficients: Floats
    rates: Floats
    first_rate: float

    @classmethod
    def of(cls, x: Floats, a: float, b: float) -> MassBelow:
        """Return the function for numbers x and scales a and b; refuses too many numbers, or too far apart."""
        edges = np.unique(np.append(x, 0.0))
        fastest = 1 / a + len(x) / b
        if len(x) > _MOST_ANSWERS or np.ptp(edges) * fastest > _MOST_EXPONENT:
            raise DatasetError(
                f"{len(x)} answers span {np.ptp(edges) * fastest:.3g} scales of the fastest exponential, and their "
                f"distribution is known for at most {_MOST_ANSWERS} answers within {_MOST_EXPONENT:g} scales; use "
                "fewer answers, or answers nearer to the threshold.",
                n_queries=len(x),
            )
        is_later = x > edges[:, None]
        lifts = np.where(is_later, (edges[:, None] - x) / b - math.log(2), 0.0).sum(axis=1)
        log_height = -math.log(2 * a) - np.abs(edges) / a + lifts
        powers = np.arange(len(x) + 1)
        rates = (np.where(edges < 0, 1 / a, -1 / a) + is_later.sum(axis=1) / b)[:, None] - powers / b
        coefficients = np.zeros_like(rates)
        for row, edge in zip(coefficients, edges, strict=True):
            polynomial = np.ones(1)
            for passed in x[x <= edge]:
                polynomial = np.convolve(polynomial, [1.0, -math.exp((passed - edge) / b) / 2])
            row[: len(polynomial)] = polynomial
        start = log_height[0] + np.count_nonzero(x == edges[0]) * -math.log(2) - math.log(fastest)
        pieces = _integral(coefficients[:-1], rates[:-1], np.diff(edges))
        log_mass = np.logaddexp.accumulate([start, *(log_height[:-1] + np.log(pieces))])
        return cls(edges, log_mass, log_height, coefficients, rates, fastest)

    def log_up_to(self, u: Floats) -> Floats:
        """Return ln Pr[every x_i + V_i < Z ≤ u], elementwise, accurate to about 3ⁿ roundings for n numbers."""
        edge = np.searchsorted(self.edges, u, side="right") - 1
        at = np.maximum(edge, 0)
        integral = _integral(self.coefficients[at], self.rates[at], np.maximum(u - self.edges[at], 0.0))
        with np.errstate(divide="ignore"):  # log of 0 at the edge itself
            beyond = np.logaddexp(self.log_mass[at], self.log_height[at] + np.log(integral))
        before = self.log_mass[0] + self.first_rate * np.minimum(u - self.edges[0], 0.0)
        return np.where(edge >= 0, beyond, before)


def _integral(coefficients: Floats, rates: Floats, length: Floats) -> Floats:
    """Return ∫ Σ c e^{rz} dz from 0 to the length, over the last axis."""
    reach = length[..., None]
    is_flat = rates == 0.0
    with np.errstate(invalid="ignore"):  # 0 · ∞, replaced
        terms = np.where(is_flat, reach, np.expm1(rates * reach) / np.where(is_flat, 1.0, rates))
    return np.asarray(np.maximum((coefficients * terms).sum(axis=-1), 0.0))


_GRID = 65  # points per piece; the largest loss is then refined between them
_REACH = 45.0  # scales beyond the last answer, where changes are below e⁻⁴⁵


@dataclass(frozen=True, slots=True)
class FreshValuesDistribution(Distribution):
    """Distribution of released values with fresh, independent noise for each answer above.

    Given which answers are above, the values are independent Laplace variables with this `scale` around the answers.
    """

    transcripts: RowDistribution
    cutoff: int
    answers: tuple[float, ...]
    scale: float

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        rows = np.asarray(outputs, dtype=np.float64)
        is_released = ~np.isnan(rows)
        transcripts = np.where(is_released, ABOVE, BELOW)
        transcripts[~is_released & (np.cumsum(is_released, axis=1) >= self.cutoff)] = STOPPED
        distances = np.where(is_released, np.abs(rows - self.answers), 0.0).sum(axis=1) / self.scale
        n_values = is_released.sum(axis=1)
        return np.asarray(self.transcripts.log_density(transcripts) - distances - n_values * math.log(2 * self.scale))

    def is_comparable(self, other: Self) -> bool:
        return self.scale == other.scale and self.transcripts.is_comparable(other.transcripts)

    def epsilon_from(self, other: Self, delta: float) -> float:
        """Return the largest loss of the transcript plus the shifts of the released answers; at delta 0 only."""
        check_rule("delta", delta, delta == 0, "delta=0, where the largest loss is known")
        check_comparable(self, other)
        shifts = np.abs(np.subtract(self.answers, other.answers)) / self.scale
        losses = np.subtract(self.transcripts.log_probabilities, other.transcripts.log_probabilities)
        return float(np.max(losses + (np.array(self.transcripts.rows) == ABOVE) @ shifts))


@dataclass(frozen=True, slots=True)
class ComparedValuesDistribution(Distribution):
    """Distribution of answers released with the same noise that put them above the threshold; parameters of
    `NoisyThreshold`.

    Given the threshold's noise Z, the answers are independent. A released value only requires Z to be at most its
    excess over the threshold. The density is therefore that of the values, times the probability that Z is at most the
    smallest excess and above the noisy answers found below. `MassBelow` has this probability in closed form. With
    `refresh`, Z is drawn anew after each released value.
    """

    alike = ("n_answers", "threshold", "threshold_scale", "query_scale", "cutoff", "refresh")
    answers: tuple[float, ...]
    threshold: float
    threshold_scale: float
    query_scale: float
    cutoff: int
    refresh: bool = False
    n_answers = property(lambda distribution: len(distribution.answers), doc="Number of answers.")

    def __post_init__(self) -> None:
        count = count_transcripts(len(self.answers), self.cutoff)
        check_rule("transcripts", count, count <= MOST_TRANSCRIPTS, f"at most {MOST_TRANSCRIPTS}: fewer answers")
        self._mass(np.arange(len(self.answers)))  # checks the number of answers and their distance

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        rows = np.asarray(outputs, dtype=np.float64)
        is_released = ~np.isnan(rows)
        _, group = np.unique(is_released @ (1 << np.arange(rows.shape[1])), return_inverse=True)
        order = np.argsort(group, kind="stable")
        log_densities = np.full(len(rows), -np.inf)
        for members in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            above = np.flatnonzero(is_released[members[0]])
            if len(above) > self.cutoff:
                continue
            values = rows[np.ix_(members, above)]
            distances = np.abs(values - np.asarray(self.answers)[above]).sum(axis=1) / self.query_scale
            total = -distances - len(above) * math.log(2 * self.query_scale)
            for below, asked in self._draws(above):
                room = values[:, asked].min(axis=1, initial=np.inf) - self.threshold
                total += self._mass(below).log_up_to(room)
            log_densities[members] = total
        return log_densities

    def epsilon_from(self, other: Self, delta: float) -> float:
        """Return the largest loss over all transcripts and values, at delta 0 only, accurate to about 1e-9.

        Among the values that share a draw of Z, all but the smallest contribute through their own noise alone. That
        loss is monotone, so each of them is best at the smallest value or at infinity. The search is over the smallest
        value.
        """
        check_rule("delta", delta, delta == 0, "delta=0, where the largest loss is known")
        check_comparable(self, other)
        n = len(self.answers)
        transcripts = (np.array(a) for count in range(min(self.cutoff, n) + 1) for a in combinations(range(n), count))
        largest = -math.inf
        for above in transcripts:
            loss = sum(self._largest_loss(other, below, above[asked]) for below, asked in self._draws(above))
            largest = max(largest, loss)
        return largest

    def _draws(self, above: Integers) -> Iterator[tuple[Integers, slice]]:
        """Yield, for each draw of Z, the answers found below and the slice of the released values that share it."""
        last = len(self.answers) if len(above) < self.cutoff else int(above[-1])
        if not self.refresh:
            yield np.setdiff1d(np.arange(last), above), slice(None)
            return
        ends = [-1, *above.tolist()]
        for place, (start, end) in enumerate(pairwise(ends)):
            yield np.arange(start + 1, end), slice(place, place + 1)
        if len(above) < self.cutoff:
            yield np.arange(ends[-1] + 1, len(self.answers)), slice(0, 0)

    def _mass(self, below: Integers) -> MassBelow:
        excesses = np.asarray(self.answers)[below] - self.threshold
        return MassBelow.of(excesses, self.threshold_scale, self.query_scale)

    def _largest_loss(self, other: Self, below: Integers, above: Integers) -> float:
        """Return the largest loss over all values of the answers `above`, which share one draw of Z."""
        mine, others = self._mass(below), other._mass(below)
        at_infinity = float(mine.log_up_to(np.array(np.inf)) - others.log_up_to(np.array(np.inf)))
        if len(above) == 0:
            return at_infinity
        x, y = np.asarray(self.answers)[above] - self.threshold, np.asarray(other.answers)[above] - self.threshold

        def loss(room: Floats) -> Floats:
            own = (np.abs(np.subtract.outer(room, y)) - np.abs(np.subtract.outer(room, x))) / self.query_scale
            best = np.maximum(own, (x - y) / self.query_scale)
            values = best.sum(axis=-1) + (own - best).max(axis=-1)
            return np.asarray(values + mine.log_up_to(room) - others.log_up_to(room))

        everywhere = at_infinity + float(np.sum(x - y)) / self.query_scale
        stops = np.unique(np.concatenate([x, y, mine.edges, others.edges]))
        stops = np.append(stops, stops[-1] + _REACH * self.query_scale)
        return max(everywhere, _largest(loss, stops))


def _largest(function: Callable[[Floats], Floats], stops: Floats) -> float:
    """Return the maximum of a function that is smooth between the stops and constant before the first."""
    from scipy.optimize import minimize_scalar

    points = np.unique(np.concatenate([np.linspace(a, b, _GRID) for a, b in pairwise(stops)]))
    values = function(points)
    best = int(np.argmax(values))
    found = float(values[best])
    if 0 < best < len(points) - 1 and points[best] not in stops:
        inside = minimize_scalar(
            lambda point: -float(function(np.array(point))),
            bounds=(points[best - 1], points[best + 1]),
            method="bounded",
        )
        found = max(found, -float(inside.fun))
    return found
