"""Laplace noise by the inverse CDF of a uniform number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.errors import OptionError
from ..noise_samplers import Floats, pieces, round_to_grid
from ..queries import real_answer
from .laplace import LaplaceMechanism


def inverse_laplace_cdf(xi: npt.ArrayLike, location: float = 0.0, scale: float = 1.0) -> Floats:
    """x = location − scale·sgn(ξ)·ln(1 − 2|ξ|): Laplace(location, scale) when ξ is uniform on (−½, ½).

    The interval is open, as either end gives an infinite number; `open_uniform` never draws one.

    Parameters
    ----------
    xi : array_like
        Inside (−½, ½): the CDF at x, minus a half.
    location, scale : float
        Of the Laplace law.

    Returns
    -------
    ndarray
        Shape of `xi`.

    Raises
    ------
    OptionError
        For a ξ outside the interval.

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
    """Uniform numbers on the open interval (−½, ½), shape (size,): the 2⁵³ odd multiples of 2⁻⁵⁴ in it, evenly.

    `Generator.random` gives the multiples of 2⁻⁵³ in [0, 1), zero among them; the midpoints of their steps are as even
    and symmetric, and leave out ±½ and zero. Each is a double, so nothing is rounded on the way. The largest Laplace
    noise they give is 53 ln 2 = 36.7 scales; beyond it lies a probability of 2⁻⁵³.
    """
    return (rng.random(size) - 0.5) + 2.0**-54


@dataclass(frozen=True, slots=True)
class LaplaceByInverseCDF(LaplaceMechanism):
    """The Laplace mechanism with its noise from one uniform number by the inverse CDF: epsilon-DP.

    In claim, law and grid it is `LaplaceMechanism`. Its noise has some 2⁵³ values, of which the grid leaves what
    `noise.round_to_grid` says.

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
        answer, outputs = real_answer(self.query, dataset), np.empty(size)
        for piece in pieces(size):
            part = outputs[piece]
            part[:] = inverse_laplace_cdf(open_uniform(len(part), rng), scale=self.scale)
            round_to_grid(part, self.scale, answer)
        return outputs
