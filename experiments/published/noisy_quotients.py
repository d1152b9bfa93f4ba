"""A noisy sum over a noisy count: the law of the quotient, and the grid that means are rounded to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.errors import DatasetError
from ...mechanisms import LaplaceLaw
from ...mechanisms.noise_samplers import Floats

STEP: Final = 2.0**-30
"""Of the grid that means are rounded to: the same for every dataset, while the noise's scale is not."""

_REACH: Final = 45.0
_STANDARD: Final = LaplaceLaw(0.0, 1.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def rows_as_numbers(dataset: Any) -> Floats:
    """The rows, shape (n_rows,); else a `DatasetError`."""
    try:
        rows = np.asarray(dataset, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.empty(())
    if rows.ndim != 1 or not np.isfinite(rows).all():
        raise DatasetError(f"dataset={dataset!r:.60} is not a list of numbers; give a finite number for each row.")
    return rows


def on_the_grid(values: Floats) -> Floats:
    """The values rounded to multiples of `STEP`, zero without a sign; in place."""
    values /= STEP
    np.round(values, out=values)
    values *= STEP
    values += 0.0
    return values


@dataclass(frozen=True, slots=True)
class Quotient:
    """(total + V)/U where U = count + W is beyond `least`, V and W Laplace variables of scale 1."""

    total: float
    count: float
    least: float

    def cdf(self, t: float) -> float:
        return self._expected(lambda u: _STANDARD.cdf(t * u - self.total), t)

    def sf(self, t: float) -> float:
        return self._expected(lambda u: _STANDARD.sf(t * u - self.total), t)

    def density(self, t: float) -> float:
        return self._expected(lambda u: u * np.exp(_STANDARD.log_density(t * u - self.total)), t)

    def _expected(self, function: Callable[[Floats], Floats], t: float) -> float:
        """E[function(U); U > least] of a function of t U that breaks where t U is the total.

        By Gauss-Legendre on pieces between the breaks, so short that 24 nodes leave 1e-14.
        """
        last = max(self.least, self.count) + _REACH
        breaks = (self.count, self.total / t if t != 0 else self.count)
        stops = sorted({self.least, *(min(max(stop, self.least), last) for stop in breaks), last})
        longest = 8 / (1 + abs(t))
        edges = np.concatenate(
            [np.linspace(a, b, math.ceil((b - a) / longest), endpoint=False) for a, b in pairwise(stops)] + [stops[-1:]]
        )
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        u = (middle[:, None] + half[:, None] * _NODES).ravel()
        weights = (half[:, None] * _WEIGHTS).ravel() * np.exp(_STANDARD.log_density(u - self.count))
        return float(function(u) @ weights)


def each(function: Callable[[float], float], outputs: npt.ArrayLike) -> Floats:
    """A function of one number, elementwise."""
    values = np.asarray(outputs, dtype=np.float64)
    return np.reshape([function(value) for value in values.ravel().tolist()], values.shape)
