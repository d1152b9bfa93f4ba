"""The law of the ratio of a noisy sum to a noisy count, and the output grid of means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...audit.errors import DatasetError
from ...mechanisms import LaplaceLaw
from ...mechanisms.laws.laws import quadrature
from ...mechanisms.noise_samplers import Floats

STEP: Final = 2.0**-30
"""Step of the output grid of means, the same for every dataset although the noise scale depends on the dataset."""

_REACH: Final = 45.0
_STANDARD: Final = LaplaceLaw(0.0, 1.0)


def rows_as_numbers(dataset: Any) -> Floats:
    """Return the rows, shape (n_rows,), or raise a `DatasetError`."""
    try:
        rows = np.asarray(dataset, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.empty(())
    if rows.ndim != 1 or not np.isfinite(rows).all():
        raise DatasetError(f"dataset={dataset!r:.60} is not a list of numbers; use one finite number for each row.")
    return rows


def on_the_grid(values: Floats) -> Floats:
    """Round the values to multiples of `STEP` in place, with an unsigned zero."""
    values /= STEP
    np.round(values, out=values)
    values *= STEP
    values += 0.0
    return values


@dataclass(frozen=True, slots=True)
class Quotient:
    """The law of (total + V)/U for U = count + W above `least`, where V and W are Laplace of scale 1."""

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
        """Return E[function(U); U > least] for a function with a kink where t U is the total.

        Gauss-Legendre quadrature with 24 nodes on pieces between the kinks, short enough for an error of 1e-14.
        """
        last = max(self.least, self.count) + _REACH
        breaks = (self.count, self.total / t if t != 0 else self.count)
        stops = sorted({self.least, *(min(max(stop, self.least), last) for stop in breaks), last})
        u, weights = quadrature(np.array(stops), 8 / (1 + abs(t)))
        return float(function(u) @ (weights * np.exp(_STANDARD.log_density(u - self.count))))


def each(function: Callable[[float], float], outputs: npt.ArrayLike) -> Floats:
    """Apply a function of one number elementwise."""
    values = np.asarray(outputs, dtype=np.float64)
    return np.reshape([function(value) for value in values.ravel().tolist()], values.shape)
