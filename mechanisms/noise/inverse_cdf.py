"""Laplace noise from a uniform number by the inverse CDF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.errors import OptionError
from ..noise_samplers import Floats, noise_on_grid
from ..queries import real_answer
from .laplace import LaplaceMechanism


def inverse_laplace_cdf(xi: npt.ArrayLike, location: float = 0.0, scale: float = 1.0) -> Floats:
    """Return location − scale·sgn(ξ)·ln(1 − 2|ξ|), which is Laplace(location, scale) if ξ is uniform on (−½, ½).

    The interval is open because either end gives an infinite number; `open_uniform` never draws an end.

    Parameters
    ----------
    xi : array_like
        Inside (−½, ½): the CDF at the result, minus one half.
    location, scale : float
        Parameters of the Laplace law.

    Returns
    -------
    ndarray
        Shape of `xi`.

    Raises
    ------
    OptionError
        If a ξ is outside the interval.

    References
    ----------
    Devroye (1986), Non-uniform random variate generation, Section II.2 (the inversion method).

    Examples
    --------
    >>> inverse_laplace_cdf([-0.25, 0.0, 0.25]).round(4).tolist()
    [-0.6931, 0.0, 0.6931]
    """
    xi = np.asarray(xi, dtype=np.float64)
    if not np.all(np.abs(xi) < 0.5):  # NaN fails
        raise OptionError(
            "xi holds a number outside (-1/2, 1/2), whose ends give infinite noise; use open_uniform(size, rng).",
            xi=xi,
        )
    noise: Floats = np.sign(xi) * np.log1p(-2 * np.abs(xi))
    return location - scale * noise


def open_uniform(size: int, rng: np.random.Generator) -> Floats:
    """Return uniform numbers on the open interval (−½, ½), shape (size,): the 2⁵³ odd multiples of 2⁻⁵⁴ in it.

    `Generator.random` gives the multiples of 2⁻⁵³ in [0, 1), including zero. The midpoints of their steps are equally
    spaced, symmetric, and exclude ±½ and zero. All of them are doubles, so nothing is rounded. The largest Laplace
    noise they give is 53 ln 2 = 36.7 scales; the probability beyond it is 2⁻⁵³.
    """
    return (rng.random(size) - 0.5) + 2.0**-54


@dataclass(frozen=True, slots=True)
class LaplaceByInverseCDF(LaplaceMechanism):
    """The Laplace mechanism with noise from one uniform number by the inverse CDF: epsilon-DP.

    Claim, law and grid are those of `LaplaceMechanism`. The noise takes about 2⁵³ values; the grid leaves the error
    that `noise.round_to_grid` describes.

    Examples
    --------
    >>> from dpaudit.mechanisms import LaplaceMechanism
    >>> LaplaceByInverseCDF(0.5).law(3) == LaplaceMechanism(0.5).law(3)
    True
    """

    def __str__(self) -> str:
        return f"LaplaceByInverseCDF(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g})"

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent outputs, shape (size,)."""
        return noise_on_grid(_fill, real_answer(self.query, dataset), self.scale, size, rng)


def _fill(out: Floats, rng: np.random.Generator) -> None:
    out[:] = inverse_laplace_cdf(open_uniform(len(out), rng))
