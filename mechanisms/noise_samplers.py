"""Drawing noise in blocks: standard laws, and real answers plus noise rounded to a declared grid.

Blocks are filled in pieces that stay in the processor's cache; that makes the sign, the scale, the shift and the
rounding together cost about a tenth of drawing the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..audit.errors import DatasetError

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Fill: TypeAlias = Callable[[Floats, np.random.Generator], None]
"""Fills an array in place with independent draws of a standard law."""

PIECE: Final = 2**14  # 128 KiB of doubles; measured best of 2**12 … 2**16
_GRID_BITS: Final = 20

# Row b holds the eight bits of the byte b as signs: one random byte gives eight signs by one look-up.
_SIGNS: Final = (1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)).astype(np.float64)


def pieces(size: int) -> Iterator[slice]:
    """Slices that cover ``range(size)``, at most `PIECE` long."""
    return (slice(start, min(start + PIECE, size)) for start in range(0, size, PIECE))


def random_signs(size: int, rng: np.random.Generator) -> Floats:
    """Independent fair signs, ±1.0, shape (size,); one random bit each."""
    words = rng.integers(0, 2**64, -(-size // 64), dtype=np.uint64)
    signs: Floats = _SIGNS.take(words.view(np.uint8), axis=0).reshape(-1)[:size]
    return signs


def fill_exponential(out: Floats, rng: np.random.Generator) -> None:
    """Fill `out` with the exponential law of mean 1."""
    rng.standard_exponential(out=out)


def fill_laplace(out: Floats, rng: np.random.Generator) -> None:
    """Fill `out` with the Laplace law of location 0 and scale 1, as an exponential with a random sign."""
    rng.standard_exponential(out=out)
    out *= random_signs(len(out), rng)


def fill_gaussian(out: Floats, rng: np.random.Generator) -> None:
    """Fill `out` with the normal law of mean 0 and standard deviation 1."""
    rng.standard_normal(out=out)


def standard_laplace(size: int, rng: np.random.Generator) -> Floats:
    """Laplace draws of location 0 and scale 1, shape (size,), with all the bits of the generator (not on a grid)."""
    out = np.empty(size)
    for piece in pieces(size):
        fill_laplace(out[piece], rng)
    return out


def grid_step(scale: float) -> float:
    """The grid for noise of this scale: the largest power of two that is at most 2⁻²⁰ `scale`.

    Any step from 2⁻³⁰ to 2⁻²⁰ of the scale hides the low bits of the answer. The coarsest is taken: it leaves most
    room in a double, for answers up to 2³⁰ scales and for the noise's own granularity (see `round_to_grid`), and it
    is still too fine to be seen in the values: 10⁶ runs fall on some 10⁷ points.
    """
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - _GRID_BITS)


def round_to_grid(values: Floats, scale: float, answer: float = 0.0) -> Floats:
    """`answer` + `values`, rounded to the nearest multiple of ``grid_step(scale)``; in place.

    The outputs for every answer lie on one grid, zero has no sign, and a grid point has the probability that the
    noise gives to its cell around it. The answer is split into a grid point, added exactly after the rounding, and a
    rest of at most half a step, added to the noise before it; so no bits are lost to a large answer, and what doubles
    leave is the granularity of the noise itself. The ziggurat and the tail samplers of numpy put masses of about
    2⁻⁵³ on points at most 2⁻⁵⁰ scales apart where most of the probability is: a cell's log-probability is off by an
    order of 2⁻³¹/f there, f the standardised density, and no event's probability by more than an order of 2⁻³¹.
    In the far tail, below 10⁻⁹ of the probability, single cells may be off by more.

    Parameters
    ----------
    values : ndarray, shape (size,)
        Noise with this `scale`, less than 2³⁰ scales from zero. Overwritten.
    scale : float
        The noise's scale, positive.
    answer : float
        The exact answer, at most 2³⁰ scales from zero.

    Raises
    ------
    DatasetError
        For an answer too large to be held to the grid's precision.

    References
    ----------
    Mironov (2012), On significance of the least significant bits for differential privacy: why to round. The grid of
    fixed step replaces his snapping, which rounds to a multiple of the scale and loses accuracy.
    """
    step = grid_step(scale)
    if not abs(answer) <= 2.0**51 * step:  # NaN fails
        raise DatasetError(
            f"answer={answer!r} cannot be told to {step:g}, the grid of noise with scale {scale:g}; use answers "
            f"within ±{2.0**51 * step:g}.",
            answer=answer,
            scale=scale,
        )
    point = round(answer / step) * step
    rest = answer - point
    if rest != 0.0:
        values += rest
    # A double in [2⁵² step, 2⁵³ step] is a multiple of step, so adding this constant rounds and removing it is exact.
    lift = 1.5 * 2.0**52 * step
    values += lift
    values -= lift - point
    return values


def _on_grid(fill: Fill, answer: float, scale: float, size: int, rng: np.random.Generator) -> Floats:
    out = np.empty(size)
    for piece in pieces(size):
        part = out[piece]
        fill(part, rng)
        part *= scale
        round_to_grid(part, scale, answer)
    return out


def laplace_on_grid(answer: float, scale: float, size: int, rng: np.random.Generator) -> Floats:
    """`size` draws of `answer` plus Laplace noise of this scale, rounded as `round_to_grid` says."""
    return _on_grid(fill_laplace, answer, scale, size, rng)


def gaussian_on_grid(answer: float, scale: float, size: int, rng: np.random.Generator) -> Floats:
    """`size` draws of `answer` plus normal noise of this standard deviation, rounded as `round_to_grid` says."""
    return _on_grid(fill_gaussian, answer, scale, size, rng)


def two_sided_geometric(scale: float, size: int, rng: np.random.Generator) -> Integers:
    """Draws K with Pr[K = k] = (1−r)/(1+r) r^|k|, r = e^{−1/scale}, shape (size,), int64.

    Sign and magnitude: Pr[|K| ≥ k] = 2rᵏ/(1+r) for k ≥ 1, so with E exponential of mean 1 the integer part of
    scale·(E + ln(2/(1+r))) has the law of |K|, zero included. One exponential and one random bit a draw. Doubles
    leave what `round_to_grid` says, with steps of 1/scale; so `scale` is at most 2³⁰.
    """
    # ln(2/(1+r)) = −log1p((r − 1)/2), without cancellation when r is near 1.
    offset = -scale * math.log1p(math.expm1(-1.0 / scale) / 2.0)
    out = np.empty(size, dtype=np.int64)
    for piece in pieces(size):
        magnitude = rng.standard_exponential(piece.stop - piece.start)
        magnitude *= scale
        magnitude += offset
        magnitude *= random_signs(len(magnitude), rng)
        np.copyto(out[piece], magnitude, casting="unsafe")  # towards zero: the integer part of the magnitude
    return out


def draw_indices(probabilities: npt.ArrayLike, size: int, rng: np.random.Generator) -> Integers:
    """Draws from 0 … K−1 with these probabilities, shape (size,), int64, by the inverse CDF.

    One uniform number a draw; each probability is met to within 2⁻⁵³.
    """
    edges = np.cumsum(np.asarray(probabilities, dtype=np.float64))[:-1]
    out = np.empty(size, dtype=np.int64)
    for piece in pieces(size):
        uniform = rng.random(piece.stop - piece.start)
        out[piece] = _count_below(edges, uniform) if len(edges) < 256 else np.searchsorted(edges, uniform, "right")
    return out


def _count_below(edges: Floats, uniform: Floats) -> npt.NDArray[Any]:
    """How many edges are ≤ each number: with few edges, comparing with all of them is several times faster."""
    count = np.zeros(len(uniform), dtype=np.uint8)
    for edge in edges:
        count += (uniform >= edge).view(np.uint8)
    return count
