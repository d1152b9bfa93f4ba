"""The law of a recorded draw: its name and its parameters, with the log density where the law is known.

The loss of a call is the log ratio of the densities that its laws on x and on y have at one value. Its supremum over
all values has a closed form for every law known here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from .parameters import copied, difference, same_parameter, shown

Array: TypeAlias = npt.NDArray[np.float64]

_EXACT: Final = frozenset({"location", "low", "high", "n", "input"})
"""Parameters that hold answers, whose smallest move counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """The law of a draw, as the call states it.

    Attributes
    ----------
    name : str
        A law known here ("laplace", "normal", "logistic", "gumbel", "exponential", "uniform", "integers", "geometric",
        "two-sided geometric", "poisson", "binomial", "discrete"), or any other name.
    parameters : mapping
        Parameters by name: numbers or arrays that broadcast to the shape. The indices 0 … K−1 of a "discrete" law have
        the `probabilities`. "integers" and "uniform" have low (inclusive) and high (exclusive).
    shape : tuple of int
        Shape of the value; independent draws.
    after : str
        What is done to the draw before it is returned, such as "folded"; empty if nothing. The loss of the draw then
        bounds that of the value from above.
    beside : mapping
        Arguments of the primitive that the law does not contain, by name. If they differ, the loss is unknown.
    """

    name: str
    parameters: Mapping[str, Any]
    shape: tuple[int, ...] = ()
    after: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)

    def kept(self) -> Law:
        """Return the law with copies of its parameters."""
        parts = ({name: copied(each) for name, each in part.items()} for part in (self.parameters, self.beside))
        return Law(self.name, next(parts), self.shape, self.after, next(parts))

    def of(self, value: Any, *, is_drawn: bool = True) -> Law:
        """Return the law of a value: one that is not known if the primitive cannot have drawn it, or its shape."""
        can_give = not self.is_known or self._can_give(value, is_drawn)
        return self if can_give else replace(self, name=f"{self.name}, it says")

    def _can_give(self, value: Any, is_drawn: bool) -> bool:
        try:
            numbers = np.asarray(value)
        except (TypeError, ValueError):
            return False
        if numbers.dtype.kind not in "biuf" or numbers.shape != self.shape:
            return False
        if is_drawn and np.any(np.isnan(np.asarray(numbers, dtype=np.float64)) & ~self._is_at_nan):
            return False
        if is_drawn and self.is_integer_valued:
            from_zero = numbers if self.location is None else difference(numbers, self.location)
            if from_zero is None or np.any(np.asarray(from_zero) % 1 != 0):
                return False
        if self.name != "discrete":
            return True
        number = len(np.atleast_1d(self.parameters["probabilities"]))
        return numbers.dtype.kind in "iu" and bool(np.all((numbers >= 0) & (numbers < number)))

    @property
    def _is_at_nan(self) -> npt.NDArray[np.bool_]:
        location = self.location
        return np.zeros((), bool) if location is None else np.isnan(location)

    def __str__(self) -> str:
        held = ", ".join(f"{name} {shown(value)}" for name, value in self.parameters.items())
        after = f", {self.after}" if self.after else ""
        return f"{self.name}({held}){after}"

    @property
    def is_known(self) -> bool:
        """Whether densities and worst-case losses are computed for this law."""
        return self.name in PARAMETERS

    @property
    def is_shifted(self) -> bool:
        """Whether the law has a location and every real number, or integer, in its support."""
        return self.name in _SHIFTED

    @property
    def is_integer_valued(self) -> bool:
        """Whether a known law has integer values, other than the places of a discrete one."""
        return self.name in _INTEGER_VALUED

    @property
    def location(self) -> Array | None:
        """The location in the shape of the value; None if the law has none or it is not a number."""
        return self._numbers("location")

    @property
    def scale(self) -> Array | None:
        """The scale in the shape of the value; None if the law has none."""
        return self._numbers("scale")

    def _numbers(self, name: str) -> Array | None:
        try:
            value = np.asarray(self.parameters[name], dtype=np.float64)
            return np.broadcast_to(value, np.broadcast_shapes(value.shape, self.shape))
        except (KeyError, TypeError, ValueError):
            return None

    def frozen(self) -> Any:
        """Return the law as a distribution of scipy.stats; for laws that are known and not discrete."""
        return _distribution(self)

    def differing(self, other: Law) -> list[str]:
        """Return the names of the parameters, and of what is beside them, that differ from another law of this name."""
        a, b = ({**law.beside, **law.parameters} for law in (self, other))
        names = dict.fromkeys([*a, *b])
        found = [name for name in names if not same_parameter(a.get(name), b.get(name), is_exact=name in _EXACT)]
        return found if self.after == other.after else [*found, "what is done to the draw"]

    def log_density(self, value: Any) -> float:
        """Return the log density, or log probability, of a value: the sum over independent draws."""
        with np.errstate(all="ignore"):
            if self.name == "discrete":
                odds, places = np.asarray(self.parameters["probabilities"], np.float64), np.asarray(value, int)
                found = np.log(np.where(places < len(odds), odds[np.minimum(places, len(odds) - 1)], 0.0))
            else:
                law = self.frozen()
                density = law.logpmf if self.is_integer_valued else law.logpdf
                found = density(np.asarray(value, dtype=np.float64))
        return float(np.sum(found))


def moved(x: Law, y: Law) -> Array | None:
    """Return how far the location moved from x to y, in the shape of the value; None if either has none."""
    if x.location is None or y.location is None or x.shape != y.shape:
        return None
    apart = difference(x.parameters["location"], y.parameters["location"])
    if apart is None:  # a number on one side and numbers on the other
        apart = difference(x.location, y.location)
    return None if apart is None else np.broadcast_to(apart, np.broadcast_shapes(apart.shape, x.shape))


def realised_loss(x: Law, y: Law, value: Any) -> float | None:
    """Return ln f_x(value) − ln f_y(value), infinite where y cannot return it; None if a law is not known.

    A scale of 0 is a point mass: the loss is 0 where both have it at the same place, and infinite elsewhere.
    """
    if x.after or y.after or x.shape != y.shape:
        return None
    if x.name == y.name and not x.differing(y):
        return 0.0
    if x.name == y.name and set(x.differing(y)) & {*x.beside, *y.beside}:
        return None
    if not (x.is_known and y.is_known):
        return None
    if (x.name == "discrete") != (y.name == "discrete"):
        return None
    if _without_noise(x).any() or _without_noise(y).any():
        return _worst(x, y) if x.name == y.name else math.inf
    p, q = x.log_density(value), y.log_density(value)
    return None if math.isnan(p - q) else p - q


def _without_noise(law: Law) -> npt.NDArray[np.bool_]:
    return np.zeros(1, bool) if law.scale is None else law.scale == 0.0


def worst_loss(x: Law, y: Law) -> float | None:
    """Return the supremum over values of |ln f_x − ln f_y|; infinite for Gaussian noise that moves; None if unknown.

    It bounds the loss from above, in both directions, and is attained or approached for the draw before anything is
    done to it.
    """
    if x.name != y.name or x.shape != y.shape or x.after != y.after:
        return None
    differing = x.differing(y)
    if not differing:
        return 0.0
    return _worst(x, y) if x.is_known and set(differing) <= set(PARAMETERS[x.name]) else None


def _worst(x: Law, y: Law) -> float:
    size = math.prod(x.shape)
    with np.errstate(all="ignore"):
        if x.name == "discrete":
            p, q = (np.asarray(law.parameters["probabilities"], np.float64) for law in (x, y))
            return size * max(_discrete(p, q), _discrete(q, p))
        if x.name == "binomial":
            return _binomial(x, y)
        if x.name in _EXPONENTIAL_TAILS and "scale" not in x.differing(y):
            distance, scale = moved(x, y), x.scale
            if distance is not None and scale is not None:
                if x.is_integer_valued and np.any(distance != np.round(distance)):
                    return math.inf  # no value is possible under both
                return float(np.sum(np.where(distance == 0.0, 0.0, distance / scale)))  # x / 0 is infinite
    return math.inf


def directed_loss(x: Law, y: Law) -> float | None:
    """Return the supremum over values of ln f_x − ln f_y, or a larger number; None if unknown."""
    if x.name == y.name == "discrete" and x.shape == y.shape and not x.after and not y.after:
        with np.errstate(all="ignore"):
            odds = (np.asarray(law.parameters["probabilities"], np.float64) for law in (x, y))
            return math.prod(x.shape) * _discrete(*odds)
    return worst_loss(x, y)


def _discrete(p: Array, q: Array) -> float:
    """Return the largest log ratio of p to q."""
    if p.shape != q.shape:
        return math.inf
    return float(np.max(np.where(p == q, 0.0, np.log(p) - np.log(q)), initial=0.0))


def _binomial(x: Law, y: Law) -> float:
    if "n" in x.differing(y):
        return math.inf
    n, p, q = (np.asarray(value, np.float64) for value in (x.parameters["n"], x.parameters["p"], y.parameters["p"]))
    ends = [np.where(a == b, 0.0, np.abs(np.log(a) - np.log(b))) for a, b in ((p, q), (1.0 - p, 1.0 - q))]
    return float(np.sum(np.broadcast_to(n * np.maximum(*ends), x.shape)))


def gaussian_mu(x: Law, y: Law) -> float | None:
    """Return the μ of the pair of normal laws with equal scales, ‖move/scale‖₂; None for all others."""
    if x.name != "normal" or y.name != "normal" or x.shape != y.shape or set(x.differing(y)) - {"location"}:
        return None
    distance, scale = moved(x, y), x.scale
    if distance is None or scale is None:
        return None
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(np.where(distance == 0.0, 0.0, distance / scale).reshape(-1)))


def _distribution(law: Law) -> Any:
    """Return the law as a frozen distribution; scipy.stats takes a second to import and is seldom needed."""
    from scipy import stats

    held = law.parameters
    match law.name:
        case "laplace" | "logistic":
            return getattr(stats, law.name)(held["location"], held["scale"])
        case "normal":
            return stats.norm(held["location"], held["scale"])
        case "gumbel":
            return stats.gumbel_r(held["location"], held["scale"])
        case "two-sided geometric":
            return stats.dlaplace(1.0 / np.asarray(held["scale"], np.float64), loc=held["location"])
        case "exponential":
            return stats.expon(0.0, held["scale"])
        case "uniform":
            return stats.uniform(held["low"], np.subtract(held["high"], held["low"]))
        case "integers":
            low, high = (np.asarray(held[name], np.float64) for name in ("low", "high"))  # 2**64 is not an int64
            return stats.randint(low, high)
        case "geometric":
            return stats.geom(held["p"])
        case "poisson":
            return stats.poisson(held["rate"])
        case "binomial":
            return stats.binom(held["n"], held["p"])
    raise ValueError(f"the law {law.name} is not a distribution of scipy.stats")


PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "laplace": ("location", "scale"),
    "normal": ("location", "scale"),
    "logistic": ("location", "scale"),
    "gumbel": ("location", "scale"),
    "two-sided geometric": ("location", "scale"),
    "exponential": ("scale",),
    "uniform": ("low", "high"),
    "integers": ("low", "high"),
    "geometric": ("p",),
    "poisson": ("rate",),
    "binomial": ("n", "p"),
    "discrete": ("probabilities",),
}
"""The parameters of each known law."""
_INTEGER_VALUED: Final = frozenset({"two-sided geometric", "integers", "geometric", "poisson", "binomial"})
_SHIFTED: Final = frozenset({"laplace", "normal", "logistic", "gumbel", "two-sided geometric"})
_EXPONENTIAL_TAILS: Final = frozenset({"laplace", "logistic", "two-sided geometric"})
"""Laws whose log density has slope at most 1/scale and attains it, so that a move costs exactly move/scale."""
