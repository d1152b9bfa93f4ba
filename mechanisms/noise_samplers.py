"""Samplers of noise: standard distributions, and real answers plus noise rounded to a fixed grid.

Samplers fill a block in pieces that fit into the processor's cache. The sign, scale, shift and rounding then add about
a tenth to the time of drawing the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..audit.errors import DatasetError
from ..audit.replay.noise_primitive import noise_primitive

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Fill: TypeAlias = Callable[[Floats, np.random.Generator], None]
"""A function that fills an array in place with independent draws from a standard distribution."""

PIECE: Final = 2**14  # 128 KiB of doubles, the fastest of 2**12 … 2**16
_GRID_BITS: Final = 20

# Row b holds the eight bits of byte b as signs, so one look-up turns a random byte into eight signs.
_SIGNS: Final = (1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)).astype(np.float64)


def pieces(size: int) -> Iterator[slice]:
    """Return consecutive slices of at most `PIECE` elements that cover ``range(size)``."""
    return (slice(start, min(start + PIECE, size)) for start in range(0, size, PIECE))


def random_signs(size: int, rng: np.random.Generator) -> Floats:
    """Return independent fair signs, ±1.0, shape (size,). Each sign uses one random bit."""
    count, bits = -(-size // 64), rng.bit_generator
    if type(bits) is np.random.SFC64:  # of audits: its raw words are these integers, in a tenth of the time
        words = bits.random_raw(count)
    else:
        words = rng.integers(0, 2**64, count, dtype=np.uint64)
    signs: Floats = _SIGNS.take(words.view(np.uint8), axis=0).reshape(-1)[:size]
    return signs


def fill_exponential(out: Floats, rng: np.random.Generator) -> None:
    """Fill `out` with draws from the exponential distribution of mean 1."""
    rng.standard_exponential(out=out)


def fill_laplace(out: Floats, rng: np.random.Generator) -> None:
    """Fill `out` with draws from the Laplace distribution of location 0 and scale 1: exponentials with random signs."""
    rng.standard_exponential(out=out)
    out *= random_signs(len(out), rng)


def fill_gaussian(out: Floats, rng: np.random.Generator) -> None:
    """Fill `out` with draws from the normal distribution of mean 0 and standard deviation 1."""
    rng.standard_normal(out=out)


@noise_primitive("laplace", location=0.0, scale=1.0, size="size")
def standard_laplace(size: int, rng: np.random.Generator) -> Floats:
    """Return Laplace draws of location 0 and scale 1, shape (size,), at full double precision (no grid)."""
    out = np.empty(size)
    for piece in pieces(size):
        fill_laplace(out[piece], rng)
    return out


def grid_step(scale: float) -> float:
    """Return the grid step for noise of this scale: the largest power of two that is at most 2⁻²⁰ `scale`.

    Any step from 2⁻³⁰ to 2⁻²⁰ of the scale hides the low bits of the answer. The coarsest leaves the most room in a
    double, both for answers up to 2³⁰ scales and for the granularity of the noise (see `round_to_grid`). It is still
    too fine to show in the outputs: 10⁶ runs fall on about 10⁷ grid points.
    """
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - _GRID_BITS)


def round_to_grid(values: Floats, scale: float, answer: float = 0.0) -> Floats:
    """Return `answer` + `values`, rounded to the nearest multiple of ``grid_step(scale)``; overwrites the values.

    Outputs for every answer lie on one grid, zero has no sign, and the probability of a grid point is the noise's
    probability of the cell around it. The answer is split into a grid point and a remainder of at most half a step. The
    remainder is added to the noise before rounding and the grid point is added exactly after it, so a large answer
    loses no bits. The only remaining error is the granularity of the noise in doubles. Where most of the probability
    lies, numpy's ziggurat and tail samplers put masses of about 2⁻⁵³ on points at most 2⁻⁵⁰ scales apart. There, the
    error in a cell's log-probability is of order 2⁻³¹/f, where f is the standardised density, and the error in any
    event's probability is of order 2⁻³¹ at most. In the far tail, below 10⁻⁹ of the probability, single cells may have
    a larger error.

    The noise is less than 2³⁰ scales from zero. An answer too large for the grid's precision raises a `DatasetError`.

    Source: Mironov (2012). A grid with a fixed step replaces his snapping, which rounds to a multiple of the scale and
    loses accuracy.
    """
    step = grid_step(scale)
    if not abs(answer) <= 2.0**51 * step:  # NaN fails
        raise DatasetError(
            f"answer={answer!r} is too large for a double to resolve {step:g}, the grid step of noise with scale "
            f"{scale:g}; use answers within ±{2.0**51 * step:g}.",
            answer=answer,
            scale=scale,
        )
    point = round(answer / step) * step
    rest = answer - point
    if rest != 0.0:
        values += rest
    # Doubles in [2⁵² step, 2⁵³ step] are multiples of step: adding this constant rounds, and subtracting it is exact.
    lift = 1.5 * 2.0**52 * step
    values += lift
    values -= lift - point
    return values


def noise_on_grid(fill: Fill, answer: float, scale: float, size: int, rng: np.random.Generator) -> Floats:
    """Return `size` draws of `answer` plus `scale` times the standard noise of `fill`, rounded by `round_to_grid`."""
    out = np.empty(size)
    for piece in pieces(size):
        part = out[piece]
        fill(part, rng)
        part *= scale
        round_to_grid(part, scale, answer)
    return out


@noise_primitive("laplace", location="answer", scale="scale", size="size")
def laplace_on_grid(answer: float, scale: float, size: int, rng: np.random.Generator) -> Floats:
    """Return `size` draws of `answer` plus Laplace noise of this scale, rounded by `round_to_grid`."""
    return noise_on_grid(fill_laplace, answer, scale, size, rng)


@noise_primitive("normal", location="answer", scale="scale", size="size")
def gaussian_on_grid(answer: float, scale: float, size: int, rng: np.random.Generator) -> Floats:
    """Return `size` draws of `answer` plus Gaussian noise of standard deviation `scale`, rounded by `round_to_grid`."""
    return noise_on_grid(fill_gaussian, answer, scale, size, rng)


@noise_primitive("two-sided geometric", location=0, scale="scale", size="size")
def two_sided_geometric(scale: float, size: int, rng: np.random.Generator) -> Integers:
    """Return draws of K with Pr[K = k] = (1−r)/(1+r) r^|k|, r = e^{−1/scale}, shape (size,), int64.

    Each draw uses one exponential and one random bit. Pr[|K| ≥ k] = 2rᵏ/(1+r) for k ≥ 1, so if E is exponential with
    mean 1, the integer part of scale·(E + ln(2/(1+r))) has the distribution of |K|, including at zero. Doubles cause
    the error that `round_to_grid` describes, with steps of 1/scale; `scale` is therefore at most 2³⁰.
    """
    # ln(2/(1+r)) = −log1p((r − 1)/2), which does not cancel when r is near 1.
    offset = -scale * math.log1p(math.expm1(-1.0 / scale) / 2.0)
    out = np.empty(size, dtype=np.int64)
    for piece in pieces(size):
        magnitude = rng.standard_exponential(piece.stop - piece.start)
        magnitude *= scale
        magnitude += offset
        magnitude *= random_signs(len(magnitude), rng)
        np.copyto(out[piece], magnitude, casting="unsafe")  # truncates towards zero: the integer part
    return out


@noise_primitive("discrete", probabilities="probabilities", size="size")
def draw_indices(probabilities: npt.ArrayLike, size: int, rng: np.random.Generator) -> Integers:
    """Return draws from 0 … K−1, shape (size,), int64, by the inverse CDF; each probability is exact to within 2⁻⁵³."""
    edges = np.cumsum(np.asarray(probabilities, dtype=np.float64))[:-1]
    out = np.empty(size, dtype=np.int64)
    for piece in pieces(size):
        uniform = rng.random(piece.stop - piece.start)
        out[piece] = _count_below(edges, uniform) if len(edges) < 256 else np.searchsorted(edges, uniform, "right")
    return out


def _count_below(edges: Floats, uniform: Floats) -> npt.NDArray[Any]:
    """Return how many edges are ≤ each number; for few edges, comparing with all of them is several times faster."""
    count = np.zeros(len(uniform), dtype=np.uint8)
    for edge in edges:
        count += (uniform >= edge).view(np.uint8)
    return count
