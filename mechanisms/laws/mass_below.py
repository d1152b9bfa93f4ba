"""Closed-form probability that a Laplace variable lies above other noisy numbers and below a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...audit.errors import DatasetError
from .divergences import Floats

_MOST_ANSWERS: Final = 20  # the powers cancel, with an error of 3ⁿ roundings: 1e-6 of the result
_MOST_EXPONENT: Final = 700.0


@dataclass(frozen=True, slots=True)
class MassBelow:
    """Pr[every x_i + V_i < Z ≤ u] as a function of u, for independent Laplace variables Z (scale a) and V_i (scale b).

    Take the density of Z times the distribution functions of the x_i + V_i. Between neighbouring `edges` (0 and every
    x_i) it is an exponential times a polynomial in e^{−z/b}: a sum of exponentials with known integrals. Before the
    first edge it is a single exponential.

    Attributes
    ----------
    edges : ndarray, shape (n_edges,)
        Ascending.
    log_mass : ndarray, shape (n_edges,)
        ln of the probability up to each edge.
    log_height : ndarray, shape (n_edges,)
        ln of the height of the exponential at each edge.
    coefficients, rates : ndarray, shape (n_edges, n_terms)
        Coefficients of the exponentials after each edge, relative to the height, and their rates, per unit of the
        numbers.
    first_rate : float
        Rate of the exponential before the first edge.
    """

    edges: Floats
    log_mass: Floats
    log_height: Floats
    coefficients: Floats
    rates: Floats
    first_rate: float

    @classmethod
    def of(cls, x: Floats, a: float, b: float) -> MassBelow:
        """Return the function for numbers x, shape (n,), and scales a and b.

        More than 20 numbers, or numbers many hundred scales apart, raise a `DatasetError`.
        """
        edges = np.unique(np.append(x, 0.0))
        fastest = 1 / a + len(x) / b
        if len(x) > _MOST_ANSWERS or np.ptp(edges) * fastest > _MOST_EXPONENT:
            raise DatasetError(
                f"{len(x)} answers span {np.ptp(edges) * fastest:.3g} scales of the fastest exponential, and their law "
                f"is known for at most {_MOST_ANSWERS} answers within {_MOST_EXPONENT:g} scales; use fewer answers, "
                "or answers nearer to the threshold.",
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
