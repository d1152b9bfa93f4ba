"""Series for a plot of the observed quantiles of noise against those of the claimed law."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ..printing import confidence
from ..results.statement_result import Series
from .goodness_of_fit import ks_radius
from .noise_laws import GRID, NoiseLaw

Array = npt.NDArray[np.float64]

_PLACES = 41
_OUTERMOST = math.log(199)  # logit of the last level: quantiles from .5% to 99.5%


def quantile_series(values: Array, law: NoiseLaw, *, alpha: float) -> Series:
    """Return the quantiles of sorted noise, shape (n,), with those of the law.

    If no observed share differs from its probability by more than r, the quantile of level u lies between the observed
    quantiles of levels u − r and u + r. All intervals therefore hold together with probability 1 − alpha, for
    independent draws from any law.

    References
    ----------
    Doksum & Sievers (1976), Plotting with confidence: graphical comparisons of two populations.
    """
    levels = expit(np.linspace(-_OUTERMOST, _OUTERMOST, _PLACES))
    claimed = law_quantiles(law, levels)
    places, first, times = np.unique(claimed, return_index=True, return_counts=True)
    levels = levels[first + times // 2]  # for an integer law several levels have the same quantile
    radius = ks_radius(len(values), alpha=alpha) + GRID
    return Series(
        x_name="quantile of the claimed law",
        y_name="observed quantile",
        x=tuple(places.tolist()),
        estimate=tuple(_observed(values, levels).tolist()),
        lower=tuple(_observed(values, levels - radius).tolist()),
        upper=tuple(_observed(values, levels + radius).tolist()),
        stated=tuple(places.tolist()),
        intervals=f"Kolmogorov-Smirnov band, simultaneous {confidence(alpha)} for any law",
    )


def law_quantiles(law: NoiseLaw, levels: Array) -> Array:
    """Return the least x with Pr[noise ≤ x] ≥ level, for each level in (0, 1), to 1e-12 of the scale.

    Examples
    --------
    >>> from dpaudit.audit.distribution_checks.noise_laws import GeometricNoise, LaplaceNoise
    >>> law_quantiles(LaplaceNoise(scale=2.0), np.array([0.25, 0.5])).round(4).tolist()
    [-1.3863, 0.0]
    """
    reach = law.value
    while law.cdf(np.array([-reach]))[0] >= levels.min() or law.cdf(np.array([reach]))[0] < levels.max():
        reach *= 2
    low, high = np.full(levels.shape, -reach), np.full(levels.shape, reach)
    while (high - low).max() > 1e-12 * law.value:
        middle = (low + high) / 2
        if ((middle == low) | (middle == high)).all():
            break
        is_above = law.cdf(middle) >= levels
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    return np.asarray(np.rint(high) if law.is_discrete else high) + 0.0


def _observed(values: Array, levels: Array) -> Array:
    """Return the empirical quantiles of sorted values; infinite for levels outside (0, 1]."""
    ranks = np.ceil(levels * len(values) - 1e-9).astype(np.int64)
    found = values[np.clip(ranks, 1, len(values)) - 1]
    return np.where(ranks < 1, -np.inf, np.where(ranks > len(values), np.inf, found))
