"""The certain limits of ε and δ of a composition of mechanisms, which no accountant may fall below.

Each mechanism is its dominating pair (P, Q), and its privacy loss is ln(dP/dQ) under P. The loss is put on a grid
twice: split between two points so that the masses of P and of Q are kept, which reveals more, and merged within the
cells of the grid, which reveals less. Both are composed by one FFT of tilted masses; rounding, truncation and the wrap
of the FFT widen the limits.

Proof: docs/proofs/accountants.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit, ndtr

from ..claims.claim import ApproxDP, Array, PureDP, check_number
from ..errors import ClaimError, OptionError
from ..exact.exact_result import Interval

Relation: TypeAlias = Literal["add-remove", "zero-out", "replace"]
RELATIONS: Final[tuple[Relation, ...]] = ("add-remove", "zero-out", "replace")


# Mechanisms and cases.


@dataclass(frozen=True, slots=True)
class _Noise:
    """Noise on a sum over a Poisson sample."""

    noise_multiplier: float
    sampling_rate: float = 1.0

    def __post_init__(self) -> None:
        for name, below in (("noise_multiplier", math.inf), ("sampling_rate", math.nextafter(1.0, 2.0))):
            number = check_number(name, getattr(self, name), 0, below, "1 is usual", closed=False)
            object.__setattr__(self, name, number)

    def __str__(self) -> str:
        rate = "" if self.sampling_rate == 1.0 else f", rate {self.sampling_rate:g}"
        return f"{type(self).__name__} {self.noise_multiplier:g}{rate}"


class Gaussian(_Noise):
    """Gaussian noise on a sum of vectors of norm at most 1 over a Poisson sample.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the largest norm of the contribution of one record. A replaced record moves
        the sum by twice this norm.
    sampling_rate : float
        Probability of each record to be in the sample; 1 for no sampling.

    Examples
    --------
    >>> from dpaudit.accountants import Case, Gaussian, true_epsilon
    >>> low, high = true_epsilon(Case([(Gaussian(2.0), 4)], delta=1e-5))
    >>> round(low, 3), round(high, 3)
    (4.377, 4.377)
    """

    __slots__ = ()


class Laplace(_Noise):
    """Laplace noise on a sum of numbers of at most 1 in absolute value over a Poisson sample.

    Parameters
    ----------
    noise_multiplier : float
        Scale of the noise over the largest contribution of one record.
    sampling_rate : float
        Probability of each record to be in the sample; 1 for no sampling.
    """

    __slots__ = ()


Mechanism: TypeAlias = Gaussian | Laplace | PureDP | ApproxDP
"""A mechanism of a case; a claim stands for the worst mechanism that keeps it."""


@dataclass(frozen=True, slots=True)
class Case:
    """A composition of mechanisms at a δ: the question that an accountant answers with an ε.

    Parameters
    ----------
    mechanisms : sequence of (mechanism, int)
        `Gaussian`, `Laplace`, or a claim `PureDP` or `ApproxDP` for the worst mechanism that keeps it, and how often
        each is run on the same data.
    delta : float
        The δ of the question; 0 asks for pure DP.
    adjacency : {"add-remove", "zero-out", "replace"}
        One record is added or removed; its contribution becomes 0; or it is replaced. Claims hold for the adjacency.

    Examples
    --------
    >>> from dpaudit.accountants import Case
    >>> print(Case.dp_sgd(1.0, 0.01, steps=1000))
    1000 x Gaussian 1, rate 0.01; delta 1e-05
    """

    mechanisms: tuple[tuple[Mechanism, int], ...]
    delta: float = 1e-5
    adjacency: Relation = "add-remove"

    def __post_init__(self) -> None:
        parts = tuple((mechanism, count) for mechanism, count in self.mechanisms)
        object.__setattr__(self, "mechanisms", parts)
        object.__setattr__(self, "delta", check_number("delta", self.delta, 0, 1, "1e-5 is usual"))
        if self.adjacency not in RELATIONS:
            rule = f"use one of {', '.join(RELATIONS)}"
            raise ClaimError(f"adjacency={self.adjacency!r} is unknown; {rule}.", adjacency=self.adjacency)
        for mechanism, count in parts:
            if not isinstance(mechanism, Mechanism) or isinstance(count, bool) or not isinstance(count, int):
                raise ClaimError(
                    f"({mechanism!r}, {count!r}) is not a mechanism and a number of runs; use (Gaussian(1.0), 10)."
                )
            if count < 1:
                raise ClaimError(f"{mechanism} is run {count} times; use at least 1, or leave it out.", count=count)
        if not parts:
            raise ClaimError("a case without mechanisms asks nothing; give at least one.")

    @classmethod
    def dp_sgd(
        cls,
        noise_multiplier: float,
        sampling_rate: float,
        steps: int,
        delta: float = 1e-5,
        adjacency: Relation = "add-remove",
    ) -> Case:
        """Return the case of `steps` steps of DP-SGD with Poisson batches."""
        return cls(((Gaussian(noise_multiplier, sampling_rate), steps),), delta, adjacency)

    @property
    def noise_multiplier(self) -> float:
        """The noise multiplier of the only mechanism; a case of several mechanisms raises an `OptionError`."""
        return self._only().noise_multiplier

    @property
    def sampling_rate(self) -> float:
        """The sampling rate of the only mechanism, if it is Gaussian; else this raises an `OptionError`."""
        return self._only().sampling_rate

    @property
    def steps(self) -> int:
        """The number of runs of all mechanisms."""
        return sum(count for _, count in self.mechanisms)

    def _only(self) -> Gaussian:
        (mechanism, _), *others = self.mechanisms
        if others or not isinstance(mechanism, Gaussian):
            raise OptionError(f"{self} is not a composition of one Gaussian mechanism; read case.mechanisms.")
        return mechanism

    def __str__(self) -> str:
        counts = " + ".join(
            f"{count} x {mechanism}" if count > 1 else f"{mechanism}" for mechanism, count in self.mechanisms
        )
        relation = "" if self.adjacency == "add-remove" else f"; {self.adjacency}"
        return f"{counts}; delta {self.delta:g}{relation}"


# Dominating pairs. `tails(t)` has Pr[L > t], Pr[L <= t] under P, and the same under Q, with a small relative error.

Tails: TypeAlias = tuple[Array, Array, Array, Array]


class _Pair(NamedTuple):
    """A dominating pair: the tails of its loss, the P-mass at infinity, the largest finite loss, and atoms' losses."""

    tails: Callable[[Array], Tails]
    infinite: float
    most: float
    atom: float | None  # losses ±atom have positive probability
    blur: float  # in units of the loss: what rounding does to the argument of the tails

    def reversed(self) -> _Pair:
        def tails(t: Array) -> Tails:
            p_above, p_below, q_above, q_below = self.tails(-t)
            return q_below, q_above, p_below, p_above

        return self._replace(tails=tails)


def _pairs(mechanism: Mechanism, adjacency: Relation) -> tuple[_Pair, ...]:
    """Return the dominating pairs of both directions, or one pair that is its own reverse."""
    if isinstance(mechanism, (PureDP, ApproxDP)):
        return (_of_claim(mechanism.epsilon, mechanism.delta if isinstance(mechanism, ApproxDP) else 0.0),)
    noise, rate = mechanism.noise_multiplier, mechanism.sampling_rate
    if adjacency == "replace" and rate == 1.0:
        noise /= 2.0
    base = _gaussian(noise) if isinstance(mechanism, Gaussian) else _laplace(noise)
    if rate == 1.0:
        return (base,)
    if adjacency == "replace":
        if isinstance(mechanism, Laplace):
            raise OptionError(
                f"{mechanism} with replaced records has no proven worst case; use add-remove or zero-out."
            )
        return (_replaced(noise, rate),)
    sampled = _poisson(base, rate)
    return sampled, sampled.reversed()


def _gaussian(noise: float) -> _Pair:
    def tails(t: Array) -> Tails:
        on_p, on_q = 0.5 / noise - noise * t, -0.5 / noise - noise * t
        return ndtr(on_p), ndtr(-on_p), ndtr(on_q), ndtr(-on_q)

    return _Pair(tails, 0.0, math.inf, None, 1.0 / noise**2)


def _stepped(t: Array, most: float, *tails: tuple[Any, Any, Any]) -> Tails:
    """Return each tail from its values above, between and below the atoms at ±most."""
    p_above, p_below, q_above, q_below = (
        np.where(t >= most, above, np.where(t >= -most, between, below)) for above, between, below in tails
    )
    return p_above, p_below, q_above, q_below


def _laplace(noise: float) -> _Pair:
    """The loss is ±1/b with the probability of being on one side of both centres, and 1/b − 2z between them."""
    most = 1.0 / noise

    def tails(t: Array) -> Tails:
        inside = np.clip(t, -most, most)
        low, high = 0.5 * np.exp(0.5 * (inside - most)), 0.5 * np.exp(-0.5 * (inside + most))
        return _stepped(t, most, (0.0, 1.0 - low, 1.0), (1.0, low, 0.0), (0.0, high, 1.0), (1.0, 1.0 - high, 0.0))

    return _Pair(tails, 0.0, most, most, most)


def _of_claim(epsilon: float, delta: float) -> _Pair:
    """Kairouz, Oh & Viswanath (2017): every (ε, δ)-DP mechanism is a function of randomised response with a leak."""
    high, low = (1.0 - delta) * expit((epsilon, -epsilon))
    tails = (delta, high + delta, 1.0), (high + low, low, 0.0), (0.0, low, high + low), (1.0, high + delta, delta)
    return _Pair(lambda t: _stepped(t, epsilon, *tails), delta, epsilon, epsilon, epsilon)


def _poisson(base: _Pair, rate: float) -> _Pair:
    """The pair ((1 − q) Q + q P, Q) of a record that is removed."""

    def tails(t: Array) -> Tails:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            near = np.log1p(np.maximum(np.expm1(np.minimum(t, 1.0)) / rate, -1.0))
            far = t - math.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(t, 0.0)))
        p_above, p_below, q_above, q_below = base.tails(np.where(t < 1.0, near, far))
        mixed = (1.0 - rate) * q_above + rate * p_above, (1.0 - rate) * q_below + rate * p_below
        return *mixed, q_above, q_below

    if base.most < 700.0:
        most = math.log1p(rate * math.expm1(base.most))  # that of the reverse is smaller, by Jensen's inequality
    else:
        most = float(np.logaddexp(math.log1p(-rate), base.most + math.log(rate)))
    return _Pair(tails, 0.0, most, None, base.blur + 1.0 / (1.0 - rate))


def _replaced(noise: float, rate: float) -> _Pair:
    """The pair of a record that moves the sum to 1 on P and to −1 on Q if it is sampled."""

    def tails(t: Array) -> Tails:
        # e^t = (rest + k w) / (rest + k / w) with w = exp(z / σ²), and z(−t) = −z(t)
        rest, log_k, size = 1.0 - rate, math.log(rate) - 0.5 / noise**2, np.abs(t)
        with np.errstate(divide="ignore"):
            log_half = np.log(-0.5 * rest * np.expm1(-size)) + 0.5 * size - log_k  # of the quadratic in w e^{−t/2}
        far = log_half > 20.0  # arcsinh(x) is ln 2x to 1/4x²
        log_w = 0.5 * size + np.where(far, log_half + math.log(2.0), np.arcsinh(np.exp(np.minimum(log_half, 20.0))))
        z = np.sign(t) * noise**2 * log_w
        off, up, down = ((ndtr(-move), ndtr(move)) for move in (z / noise, (z - 1.0) / noise, (z + 1.0) / noise))
        p_above, p_below = ((1.0 - rate) * a + rate * b for a, b in zip(off, up, strict=True))
        q_above, q_below = ((1.0 - rate) * a + rate * b for a, b in zip(off, down, strict=True))
        return p_above, p_below, q_above, q_below

    return _Pair(tails, 0.0, math.inf, None, 1.0 / noise**2 + 1.0 / (1.0 - rate))


# One mechanism on a grid.

_EPS: Final = float(np.finfo(float).eps)
_TAIL: Final = 32 * _EPS
"""Relative error of a tail; scipy's normal distribution is within 4 eps of mpmath's from −37 to 8 (tests)."""
_MOST_LOSS: Final = 0.8 * math.log(float(np.finfo(float).max))
"""Losses above it count as infinite from above, and as it from below: their exponentials are finite."""


class _Effort(NamedTuple):
    """How fine the grid may be, and what it leaves out."""

    first: int = 2**11  # points of the loss of a mechanism
    most: int = 2**20  # the most, which take a second for each mechanism; an FFT has twice as many
    outside: float = 1e-14  # tilted mass outside of Chernoff's bounds, which the limits count


_EFFORT: Final = _Effort()


class _OnGrid(NamedTuple):
    """P-masses of a loss at the points (start + i) · width and at infinity, of a mechanism that is run several times.

    The loss of mass i is at least its point plus `beyond[i]`, or at most its point if `beyond` is None.
    """

    masses: Array
    start: int
    infinite: float
    repeats: int
    beyond: Array | None = None


def _points(first: float, n: int, width: float) -> Array:
    return np.asarray((first + np.arange(n)) * width, dtype=np.float64)


def _masses(above: Array, below: Array) -> tuple[Array, Array]:
    """Return the masses between neighbouring points, and their largest rounding errors."""
    is_low = below[1:] < above[:-1]
    masses = np.where(is_low, below[1:] - below[:-1], above[:-1] - above[1:])
    return np.maximum(masses, 0.0), _TAIL * np.where(is_low, below[1:], above[:-1])


def _split(pair: _Pair, count: int, first: int, n: int, width: float) -> _OnGrid:
    """Split each mass between the ends of its cell, so that the masses of P and Q are kept: the loss from above."""
    t = _points(first, n + 1, width)
    p_above, p_below, q_above, q_below = pair.tails(t)
    (p, p_error), (q, q_error) = _masses(p_above, p_below), _masses(q_above, q_below)
    scale = np.exp(t[:-1])
    upward = (p - q * scale + p_error + q_error * scale + _TAIL * (p + q * scale)) / -math.expm1(-width)
    upward = np.clip(upward, 0.0, p + p_error)
    tail = np.concatenate([[1.0 - pair.infinite], (p_above[1:] - pair.infinite) + upward]) + _TAIL * p_above
    beyond = p_above[-1] * (1.0 + _TAIL)
    tail[1:] = np.minimum(tail[1:], tail[0])
    tail = np.maximum.accumulate(np.append(tail, beyond - pair.infinite)[::-1])[::-1]
    return _OnGrid(tail[:-1] - tail[1:], first, beyond, count)


def _merged(pair: _Pair, count: int, first: int, n: int, width: float) -> _OnGrid:
    """Merge the outputs of each cell around a grid point, whose loss is then ln(p/q): the loss from below."""
    t = _points(first, n + 1, width)
    p_above, p_below, q_above, q_below = pair.tails(_points(first - 0.5, n + 2, width))
    (p, p_error), (q, q_error) = _masses(p_above, p_below), _masses(q_above, q_below)
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.log(p) - np.log(q) - t - p_error / p - q_error / q - _TAIL * (1.0 + np.abs(t))
    beyond = np.maximum(np.nan_to_num(beyond, nan=-np.inf, posinf=0.0), -0.5 * width)  # the loss of a cell is in it
    beyond[-1] = min(beyond[-1], 0.0)  # with all that is above
    tail = np.minimum.accumulate(np.maximum(p_above[:-1] * (1.0 - _TAIL) - pair.infinite, 0.0))
    return _OnGrid(tail - np.append(tail[1:], 0.0), first, pair.infinite * (1.0 - _TAIL), count, beyond)


def _reach(pair: _Pair, above: float, below: float) -> tuple[float, float]:
    """Return losses beyond which P has at most the masses `above` and `below`."""

    def first(is_small: Callable[[float], bool]) -> float:
        low, high = 0.0, 1e-6
        while high < _MOST_LOSS and not is_small(high):
            low, high = high, 2.0 * high
        for _ in range(20):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if is_small(middle) else (middle, high)
        return min(high, _MOST_LOSS)

    return (
        -first(lambda t: float(pair.tails(np.array(-t))[1]) <= below),
        first(lambda t: float(pair.tails(np.array(t))[0]) - pair.infinite <= above),
    )


# The composition. Masses are tilted by exp(tilt · loss), so that the loss in question is likely and δ has a small
# relative error.

_FFT: Final = 8 * _EPS
"""Error of an FFT in the Euclidean norm, relative, by log2 of its length (Higham 2002, Theorem 24.2)."""
_STEEP: Final = np.array([1e2, 1e4, 1e6])  # exponents of the bounds in cells, for sums that hardly vary


class _Tilted(NamedTuple):
    """Masses of one mechanism after tilting, and the logarithm of the mean of exp(tilt · loss), without the offset."""

    masses: Array
    log_moment: float

    @classmethod
    def of(cls, grid: _OnGrid, width: float, tilt: float) -> _Tilted:
        with np.errstate(divide="ignore"):
            logs = np.log(grid.masses) + tilt * width * (grid.start + np.arange(len(grid.masses)))
        most = float(logs.max())
        if math.isinf(most):
            return cls(grid.masses, -math.inf)
        masses = np.exp(logs - most)
        total = float(masses.sum())
        return cls(masses / total, most + math.log(total))

    def log_mean(self, exponents: Array) -> float:
        """The logarithm of the mean of exp(exponent)."""
        held = self.masses > 0.0
        exponents = exponents[held]
        most = float(exponents.max())
        return most + math.log(float(self.masses[held] @ np.exp(exponents - most)))


def _log_moment(grids: Sequence[_OnGrid], width: float, tilt: float) -> float:
    return sum(grid.repeats * _Tilted.of(grid, width, tilt).log_moment for grid in grids)


def _log_peak(tilt: float) -> float:
    """The logarithm of the largest e^{−tilt x} (1 − e^{−x}) over x > 0."""
    return tilt * math.log(tilt) - (1.0 + tilt) * math.log1p(tilt)


def _best_tilt(grids: Sequence[_OnGrid], width: float, delta: float | None, epsilon: float) -> float:
    """Return the tilt with the best Chernoff bound of ε for a δ, or of δ(ε) if no δ is given."""

    def bound(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        log_delta = _log_moment(grids, width, tilt) + _log_peak(tilt)
        return log_delta - tilt * epsilon if delta is None else (log_delta - math.log(delta)) / tilt

    bounds = math.log(1e-3), math.log(1e5)
    return math.exp(minimize_scalar(bound, bounds=bounds, method="bounded", options={"xatol": 1e-2}).x)


class _Composed(NamedTuple):
    """Tilted masses of the summed loss, with the bounds of their errors, and the mass at infinity."""

    losses: Array
    masses: Array
    log_scale: float
    tilt: float
    error: float  # in the Euclidean norm
    relative_error: float
    infinite: float

    def delta(self, epsilon: float) -> Interval:
        """Return the limits of δ(ε) of the composed grids."""
        start = int(np.searchsorted(self.losses, epsilon, side="right"))
        above = self.losses[start:] - epsilon
        peak = _log_peak(self.tilt)
        weights = np.exp(-self.tilt * above - peak) * -np.expm1(-above)  # at most 1
        scale = math.exp(min(self.log_scale - self.tilt * epsilon + peak, 700.0))
        found = float(self.masses[start:] @ weights)
        error = self.error * float(np.linalg.norm(weights)) + _EFFORT.outside + self.relative_error * abs(found)
        low, high = (self.infinite + scale * (found + side) for side in (-error, error))
        return Interval(low * (1.0 - 8 * _EPS), high * (1.0 + 8 * _EPS))


def _compose(grids: Sequence[_OnGrid], width: float, tilt: float) -> _Composed | None:
    """Return the composition of grids; None if it has more than the most points."""
    parts = [_Tilted.of(grid, width, tilt) for grid in grids]
    counts, steps = [grid.repeats for grid in grids], sum(grid.repeats for grid in grids)
    log_scale = sum(count * part.log_moment for count, part in zip(counts, parts, strict=True))
    leaks = math.fsum(grid.repeats * math.log1p(-min(grid.infinite, 1.0 - _EPS)) for grid in grids)
    infinite = -math.expm1(leaks)
    if math.isinf(log_scale):  # no finite loss is left
        return _Composed(np.zeros(1), np.zeros(1), 0.0, tilt, 0.0, 0.0, infinite)
    places = [grid.start + np.arange(len(grid.masses), dtype=np.int64) for grid in grids]

    def most(values: Sequence[npt.NDArray[Any]], sign: float) -> float:
        """Chernoff's bound: what the sum of values times sign exceeds with mass _EFFORT.outside / 3 at most."""
        variance = sum(
            count * float(part.masses @ (each - part.masses @ each) ** 2)
            for count, part, each in zip(counts, parts, values, strict=True)
        )

        def bound(s: float) -> float:
            means = (part.log_mean(s * sign * each) for part, each in zip(parts, values, strict=True))
            log_mean = math.fsum(count * mean for count, mean in zip(counts, means, strict=True))
            return (log_mean + math.log(3.0 / _EFFORT.outside)) / s

        typical = np.geomspace(1.0, 16.0, 5) / math.sqrt(max(variance, 1e-30))
        return sign * min(bound(float(s)) for s in (*typical, *_STEEP / width))

    ends = [where[np.nonzero(grid.masses)[0][[0, -1]]] for grid, where in zip(grids, places, strict=True)]
    lowest, highest = np.sum([count * end for count, end in zip(counts, ends, strict=True)], axis=0).tolist()
    first, last = max(math.floor(most(places, -1.0)), lowest), min(math.ceil(most(places, 1.0)), highest)
    size = max(1 << (last - first).bit_length(), 2**8)
    if size > 2 * _EFFORT.most:
        return None
    spectrum, norms = np.ones(size // 2 + 1, dtype=np.complex128), 0.0
    for count, part, where in zip(counts, parts, places, strict=True):
        folded = np.bincount(where % size, part.masses, size)
        spectrum = spectrum * np.fft.rfft(folded) ** count
        norms += count * float(np.linalg.norm(folded))
    composed = np.fft.irfft(spectrum, size)
    norm = float(np.linalg.norm(composed))
    largest = max(float(np.abs(where[[0, -1]]).max()) for where in places) * width
    moved = 0.0 if grids[0].beyond is None else most([grid.beyond for grid in grids if grid.beyond is not None], -1.0)
    where = first + np.arange(last - first + 1)
    return _Composed(
        losses=_points(first, len(where), width) + moved,
        masses=composed[where % size],
        log_scale=log_scale + tilt * moved,
        tilt=tilt,
        error=_FFT * math.log2(size) * (norms + norm) + 8 * _EPS * (steps + len(grids)) * norm,
        relative_error=32 * _EPS * (size + steps * (1.0 + tilt * largest)),
        infinite=infinite,
    )


# The limits of a case.


def true_epsilon(case: Case, *, tolerance: float = 1e-4) -> Interval:
    """Return certain limits of the smallest ε with (ε, δ)-DP for the worst neighbouring datasets of a case.

    Parameters
    ----------
    case : Case
        The mechanisms, δ and the adjacency.
    tolerance : float
        The grid is refined until the limits are this close, relative to the upper one. They may stay further apart, and
        are certain all the same.

    Returns
    -------
    Interval
        ``low`` and ``high``, in nats; both infinite if no ε has this δ.

    Raises
    ------
    OptionError
        If no worst case is proven: Laplace noise on a sample under "replace".

    See Also
    --------
    true_delta : The smallest δ at an ε.
    check_accountant : What an accountant states, compared with the limits.

    Examples
    --------
    >>> from dpaudit.accountants import Case, true_epsilon
    >>> low, high = true_epsilon(Case.dp_sgd(1.0, 0.01, steps=1000))
    >>> round(low, 3), round(high, 3)
    (1.828, 1.828)
    """
    return _limits(case, None, tolerance)


def true_delta(case: Case, epsilon: float, *, tolerance: float = 1e-4) -> Interval:
    """Return certain limits of the smallest δ with (ε, δ)-DP; the δ of the case is ignored.

    Parameters
    ----------
    case : Case
        The mechanisms and the adjacency.
    epsilon : float
        In nats, at least 0.
    tolerance : float
        As for `true_epsilon`.

    Returns
    -------
    Interval
        ``low`` and ``high``.

    Raises
    ------
    OptionError
        As for `true_epsilon`.

    See Also
    --------
    true_epsilon : The smallest ε at a δ.

    Examples
    --------
    >>> from dpaudit.accountants import Case, Laplace, true_delta
    >>> low, high = true_delta(Case([(Laplace(2.0), 1)]), 0.25)  # 1 − exp((ε − 1/2) / 2)
    >>> round(low, 4), round(high, 4)
    (0.1175, 0.1175)
    """
    at = check_number("epsilon", epsilon, 0, math.inf, "1 is usual")
    return _limits(replace(case, delta=0.0), at, tolerance)


@lru_cache(maxsize=4096)
def _limits(case: Case, epsilon: float | None, tolerance: float) -> Interval:
    """Return the limits of δ at an ε, or of ε at the case's δ if none is given."""
    pairs = [(_pairs(mechanism, case.adjacency), count) for mechanism, count in case.mechanisms]
    most = math.fsum(count * max(pair.most for pair in both) for both, count in pairs)
    if epsilon is None and case.delta == 0.0:
        leaks = any(pair.infinite for both, _ in pairs for pair in both)
        return Interval(math.inf, math.inf) if leaks else Interval(most * (1 - 8 * _EPS), most * (1 + 8 * _EPS))
    found: dict[int, Interval] = {}
    for direction in range(max(len(both) for both, _ in pairs)):
        one_way = [(both[min(direction, len(both) - 1)], count) for both, count in pairs]
        enough = max((each.lower for each in found.values()), default=0.0)
        found[direction] = _one_way(one_way, case.delta, epsilon, tolerance, enough)
    low, high = (max(limits) for limits in zip(*found.values(), strict=True))
    if epsilon is None and not any(pair.infinite for both, _ in pairs for pair in both):
        high = min(high, most * (1 + 8 * _EPS))
    return Interval(low, high)


def _one_way(
    pairs: Sequence[tuple[_Pair, int]], delta: float, epsilon: float | None, tolerance: float, enough: float
) -> Interval:
    """Return the limits for one direction; the grid is refined until they are narrow, or below `enough`."""
    steps = sum(count for _, count in pairs)
    above = (1e-8 * delta if epsilon is None else 1e-22) / steps
    reaches = [_reach(pair, above, 1e-10 / steps) for pair, _ in pairs]
    width = max(high - low for low, high in reaches) / _EFFORT.first
    unit = _unit([pair.atom for pair, _ in pairs if pair.atom])
    best = Interval(0.0, math.inf if epsilon is None else 1.0)
    tilts: tuple[float, ...] = ()
    most = min(_EFFORT.most, 8 * _EFFORT.most // len(pairs))
    while True:
        width = width if unit is None else unit / max(math.ceil(unit / width), 1)
        sizes = [(math.floor(low / width), math.ceil(high / width)) for low, high in reaches]
        if max(last - first for first, last in sizes) > most:
            return best
        grids = [
            (pair, count, first, last - first, width) for (pair, count), (first, last) in zip(pairs, sizes, strict=True)
        ]
        from_above, from_below = [_split(*grid) for grid in grids], [_merged(*grid) for grid in grids]
        if not tilts or max(last - first for first, last in sizes) <= 4 * _EFFORT.first:
            question = width, delta if epsilon is None else None, epsilon or 0.0
            tilts = _best_tilt(from_above, *question), _best_tilt(from_below, *question)
        upper, lower = _compose(from_above, width, tilts[0]), _compose(from_below, width, tilts[1])
        if upper is None and best.upper < math.inf:
            return best
        shift = sum(
            16 * _EPS * count * (1.0 + max(map(abs, reach)) + pair.blur)
            for (pair, count), reach in zip(pairs, reaches, strict=True)
        )
        if epsilon is None:
            high = math.inf if upper is None else _least_epsilon(upper, delta, shift)
            low = 0.0 if lower is None else max(_largest_epsilon(lower, delta, high) - shift, 0.0)
        else:
            high = 1.0 if upper is None else min(upper.delta(epsilon - shift).upper, 1.0)
            low = 0.0 if lower is None else max(lower.delta(epsilon + shift).lower, 0.0)
        best = Interval(max(best.lower, low), min(best.upper, high))
        apart = (best.upper - best.lower) / max(best.upper, 1e-300)
        if apart <= tolerance or best.upper <= enough or math.isinf(best.upper) or upper is None:
            return best
        # The limits approach each other with the square of the width, until the FFT has the most points.
        shrink = min(max(0.7 * math.sqrt(tolerance / apart), 1.0 / 32.0), 0.5)
        shrink = max(
            shrink,
            (1 << len(upper.losses).bit_length()) / (2 * most),
            max(last - first for first, last in sizes) / most,
        )
        if shrink > 0.6:
            return best
        width *= shrink


def _least_epsilon(upper: _Composed, delta: float, shift: float) -> float:
    """Return an ε with δ(ε − shift) at most `delta`, near the smallest; infinite if there is none below 1e6."""
    if upper.delta(-shift).upper <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while upper.delta(high).upper > delta:
        low, high = high, 2.0 * high
        if high > 1e6:
            return math.inf
    return _bisected(lambda epsilon: upper.delta(epsilon).upper > delta, low, high)[1] + shift


def _largest_epsilon(lower: _Composed, delta: float, start: float) -> float:
    """Return an ε with δ(ε) above `delta`, near the largest, found downward from `start`; 0 if there is none."""
    if lower.infinite * (1.0 - 1e-12) > delta:
        return math.inf
    high = min(start, float(lower.losses[-1]))
    step = 1e-9 * (1.0 + high)
    while not lower.delta(high - step).lower > delta:
        high, step = high - step, 2.0 * step
        if high - step <= 0.0:
            return 0.0
    return _bisected(lambda epsilon: lower.delta(epsilon).lower > delta, high - step, high)[0]


def _bisected(is_low: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    while high - low > 1e-9 * abs(high):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_low(middle) else (low, middle)
    return low, high


def _unit(atoms: Sequence[float]) -> float | None:
    """Return the largest number of which all atoms are multiples, if it is not too small, else the first atom."""
    if not atoms:
        return None
    fractions = [Fraction(atom).limit_denominator(10_000) for atom in atoms]
    if any(abs(float(each) - atom) > 4 * _EPS * atom for each, atom in zip(fractions, atoms, strict=True)):
        return atoms[0]
    scale = math.lcm(*(each.denominator for each in fractions))
    unit = Fraction(math.gcd(*(int(each * scale) for each in fractions)), scale)
    return float(unit) if unit * 100_000 >= max(fractions) else atoms[0]
