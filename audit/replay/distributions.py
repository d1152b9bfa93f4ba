"""The distribution of a recorded draw, the loss between two distributions, and whether that goes beyond a claim.

A pair of distributions goes beyond a claim if an event has p > B(q) (`parameter_needed`, a lower bound). A loss of at
most ε, composed with a Gaussian μ, stays within it if its boundary lies below the claim's (`is_within`, from above).

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri

from ..claims.claim import ApproxDP, Array, Claim, GaussianDP, GroupClaim, PureDP
from ..claims.mironov_propositions import ProbabilityPreservation
from ..claims.privacy_profile import PrivacyProfile, TradeOffCurve
from ..claims.renyi import RenyiDP, ZeroConcentratedDP
from ..datasets.contents import distance_of, same_output
from ..events.kinds import is_tensor, numpy_of

# Parameters of distributions: copies of them, how far two are apart, and how they are printed.

SLACK: Final = 1e-9
"""Relative difference, or excess, that counts as rounding: nothing in the data causes so small a one."""
_PLAIN: Final = (int, float, str, bytes, bool, type(None))


def copied(value: Any) -> Any:
    """Return a copy of a parameter, which the caller may change later; the value itself if it cannot be copied."""
    is_plain = type(value) in _PLAIN or isinstance(value, np.generic)
    if is_plain or getattr(type(value), "__eq__", None) is getattr(object, "__eq__", None):
        return value  # objects that are compared by identity stay the same
    try:
        return copy.deepcopy(value)
    except Exception:  # an object's own copying may raise anything
        return value


def shown(value: Any) -> str:
    """Return a parameter as text, at most four numbers."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        text = repr(value)
        return text if len(text) <= 40 else text[:39] + "…"
    if numbers.size == 1:
        return f"{float(numbers.reshape(-1)[0]):.6g}"
    first = ", ".join(f"{each:.4g}" for each in numbers.reshape(-1)[:4])
    return f"[{first}{', …' if numbers.size > 4 else ''}]"


def number_words(value: float | None) -> str:
    """Return a number as text; empty if it is unknown."""
    return "" if value is None else "infinite" if math.isinf(value) else f"{value:.6g}"


def same_parameter(first: Any, second: Any, *, is_exact: bool = False) -> bool:
    """Whether two parameters are equal; numbers up to rounding unless `is_exact`, objects if their type says so."""
    if type(first) is type(second) is float and (is_exact or first == second) and first == first:
        return first == second
    apart = distance_of(first, second)
    if apart is not None:
        if is_exact or not np.any(apart):
            return not np.any(apart)
        return bool(np.all(apart <= SLACK * np.abs(np.asarray(second, dtype=np.float64))))
    return first is second or same_output(first, second) is True


def shape_of(size: Any, *parameters: Any) -> tuple[int, ...]:
    """Return the shape of a draw of this size, a number or a shape; of None, as the parameters broadcast."""
    if size is None:
        return np.broadcast_shapes(*map(np.shape, parameters))
    try:
        return (operator.index(size),)
    except TypeError:
        return tuple(map(int, size))


# Distributions.


@dataclass(frozen=True, slots=True)
class _Known:
    """A distribution with known densities: parameters, name in scipy.stats, and the arguments there of their values."""

    parameters: tuple[str, ...]
    distribution: str = ""
    arguments: Callable[..., tuple[Any, ...]] = lambda *values: values
    is_whole: bool = False
    is_shifted: bool = False  # it has a location, and every real number, or integer, in its support
    has_exponential_tails: bool = False  # the log density attains its largest slope 1/scale: a move costs move/scale


def _double(value: Any) -> Array:
    return np.asarray(value, dtype=np.float64)  # 2**64 is not an int64


_SHIFT: Final = ("location", "scale")
_KNOWN: Final[dict[str, _Known]] = {
    "laplace": _Known(_SHIFT, "laplace", is_shifted=True, has_exponential_tails=True),
    "normal": _Known(_SHIFT, "norm", is_shifted=True),
    "logistic": _Known(_SHIFT, "logistic", is_shifted=True, has_exponential_tails=True),
    "gumbel": _Known(_SHIFT, "gumbel_r", is_shifted=True),
    "two-sided geometric": _Known(
        _SHIFT, "dlaplace", lambda at, scale: (1.0 / _double(scale), at), True, True, has_exponential_tails=True
    ),
    "exponential": _Known(("scale",), "expon", lambda scale: (0.0, scale)),
    "uniform": _Known(("low", "high"), "uniform", lambda low, high: (low, np.subtract(high, low))),
    "integers": _Known(("low", "high"), "randint", lambda *ends: tuple(map(_double, ends)), is_whole=True),
    "geometric": _Known(("p",), "geom", is_whole=True),
    "poisson": _Known(("rate",), "poisson", is_whole=True),
    "binomial": _Known(("n", "p"), "binom", is_whole=True),
    "discrete": _Known(("probabilities",)),
}
PARAMETERS: Final = {name: known.parameters for name, known in _KNOWN.items()}
"""The parameters of each known distribution."""
OF_SCIPY: Final = {known.distribution: name for name, known in _KNOWN.items()}
"""The distributions by their names in scipy.stats."""
SYMMETRIC: Final = frozenset({"laplace", "normal", "logistic", "two-sided geometric"})
_UNKNOWN: Final = _Known(())
_ANSWERS: Final = frozenset({"location", "low", "high", "n", "input"})
"""Parameters that hold answers, whose smallest move counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The distribution of a draw, as the call states it.

    Attributes
    ----------
    name : str
        A distribution known here ("laplace", "normal", "logistic", "gumbel", "exponential", "uniform", "integers",
        "geometric", "two-sided geometric", "poisson", "binomial", "discrete"), or any other name.
    parameters : mapping
        Parameters by name: numbers or arrays that broadcast to the shape. The indices 0 … K−1 of a "discrete"
        distribution have the `probabilities`. "integers" and "uniform" have low (inclusive) and high (exclusive).
    shape : tuple of int
        Shape of the value; independent draws.
    after : str
        What is done to the draw before it is returned, such as "folded"; empty if nothing. The loss of the draw then
        bounds that of the value from above.
    beside : mapping
        Arguments of the primitive that the distribution does not contain, by name. If they differ, the loss is unknown.
    """

    name: str
    parameters: Mapping[str, Any]
    shape: tuple[int, ...] = ()
    after: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)

    def kept(self) -> Distribution:
        """Return the distribution with copies of its parameters."""
        parts = ({name: copied(each) for name, each in part.items()} for part in (self.parameters, self.beside))
        return Distribution(self.name, next(parts), self.shape, self.after, next(parts))

    def of(self, value: Any, *, is_drawn: bool = True) -> Distribution:
        """Return the distribution of a value: an unknown one if the primitive cannot have drawn it, or its shape."""
        can_give = not self.is_known or self._can_give(value, is_drawn)
        return self if can_give else replace(self, name=f"{self.name}, it says")

    def _can_give(self, value: Any, is_drawn: bool) -> bool:
        try:
            numbers = np.asarray(value)
        except (TypeError, ValueError):
            return False
        if numbers.dtype.kind not in "biuf" or numbers.shape != self.shape:
            return False
        if is_drawn and numbers.dtype.kind == "f" and np.isnan(numbers).any():
            location = self.location
            if location is None or np.any(np.isnan(numbers) & ~np.isnan(location)):
                return False
        if is_drawn and self.is_integer_valued:
            location = self.location
            from_zero = numbers if location is None else distance_of(numbers, location)
            if from_zero is None or np.any(np.asarray(from_zero) % 1 != 0):
                return False
        if self.name != "discrete":
            return True
        number = len(np.atleast_1d(self.parameters["probabilities"]))
        return numbers.dtype.kind in "iu" and bool(np.all((numbers >= 0) & (numbers < number)))

    def __str__(self) -> str:
        held = ", ".join(f"{name} {shown(value)}" for name, value in self.parameters.items())
        after = f", {self.after}" if self.after else ""
        return f"{self.name}({held}){after}"

    @property
    def _known(self) -> _Known:
        return _KNOWN.get(self.name, _UNKNOWN)

    @property
    def is_known(self) -> bool:
        """Whether densities and worst-case losses are computed for this distribution."""
        return self.name in _KNOWN

    @property
    def is_shifted(self) -> bool:
        """Whether the distribution has a location and every real number, or integer, in its support."""
        return self._known.is_shifted

    @property
    def is_integer_valued(self) -> bool:
        """Whether a known distribution has integer values, other than the places of a discrete one."""
        return self._known.is_whole

    @property
    def location(self) -> Array | None:
        """The location in the shape of the value; None if the distribution has none or it is not a number."""
        return self._in_shape("location")

    @property
    def scale(self) -> Array | None:
        """The scale in the shape of the value; None if the distribution has none."""
        return self._in_shape("scale")

    @property
    def has_noise(self) -> bool:
        """Whether every scale is positive, where the distribution has scales."""
        return self.scale is None or bool(np.all(self.scale > 0.0))

    @property
    def is_noise_about_0(self) -> bool:
        """Whether this is noise that waits to be added to something."""
        is_about_0 = self.is_shifted and not self.after and not np.any(self.parameters["location"])
        return is_about_0 and bool(np.all(np.greater(self.parameters["scale"], 0.0)))

    def added_to(self, location: Array, factors: Array) -> Distribution:
        """Return the distribution of a sum of a location and the noise times factors."""
        scale = np.multiply(self.parameters["scale"], np.abs(factors))
        return Distribution(
            self.name, {"location": location, "scale": scale if scale.ndim else float(scale)}, self.shape
        )

    def _in_shape(self, name: str) -> Array | None:
        try:
            value = np.asarray(self.parameters[name], dtype=np.float64)
            return np.broadcast_to(value, np.broadcast_shapes(value.shape, self.shape))
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def probabilities(self) -> Array:
        """Those of the outcomes of a discrete distribution."""
        return np.asarray(self.parameters["probabilities"], dtype=np.float64)

    def at(self, flags: npt.NDArray[np.bool_]) -> Distribution:
        """Return the distribution of those independent draws that are flagged."""
        held = {name: np.broadcast_to(each, self.shape).reshape(-1)[flags] for name, each in self.parameters.items()}
        return Distribution(self.name, held, (int(flags.sum()),), self.after, self.beside)

    def frozen(self) -> _Frozen:
        """Return the distribution as one of scipy.stats, if it is known and not discrete."""
        from scipy import stats  # takes a second to import and is seldom needed

        if not self._known.distribution:
            raise ValueError(f"the distribution {self.name} is not a distribution of scipy.stats")
        values = (self.parameters[name] for name in self._known.parameters)
        return _Frozen(getattr(stats, self._known.distribution), self._known.arguments(*values))

    def quantiles(self, tails: npt.ArrayLike) -> Array:
        """Return the finite ends of these tails, on both sides, of all independent draws."""
        with np.errstate(all="ignore"):
            ends = np.concatenate([np.ravel(end(tails)) for end in (self.frozen().ppf, self.frozen().isf)])
        return np.asarray(ends[np.isfinite(ends)], dtype=np.float64)

    def differing(self, other: Distribution) -> list[str]:
        """Return the names of the parameters, and of what goes with them, that differ in another distribution."""
        a, b = ({**distribution.beside, **distribution.parameters} for distribution in (self, other))
        names = dict.fromkeys([*a, *b])
        found = [name for name in names if not same_parameter(a.get(name), b.get(name), is_exact=name in _ANSWERS)]
        return found if self.after == other.after else [*found, "what is done to the draw"]

    def is_same_as(self, other: Distribution) -> bool:
        """Whether another distribution has this name and these parameters; the shapes may differ."""
        return self.name == other.name and not self.differing(other)

    def log_density(self, value: Any) -> float:
        """Return the log density, or log probability, of a value: the sum over independent draws."""
        with np.errstate(all="ignore"):
            if self.name == "discrete":
                odds, places = self.probabilities, np.asarray(value, int)
                found = np.log(np.where(places < len(odds), odds[np.minimum(places, len(odds) - 1)], 0.0))
            else:
                distribution = self.frozen()
                density = distribution.logpmf if self.is_integer_valued else distribution.logpdf
                found = density(np.asarray(value, dtype=np.float64))
        return float(np.sum(found))


@dataclass(frozen=True, slots=True)
class _Frozen:
    """A distribution of scipy.stats with its parameters; scipy's own takes as long to make as two runs of a replay."""

    distribution: Any
    arguments: tuple[Any, ...]

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.distribution, name)
        return lambda *at, **options: method(*at, *self.arguments, **options)


# The loss between two distributions.


def moved(x: Distribution, y: Distribution) -> Array | None:
    """Return how far the location moved from x to y, in the shape of the value; None if either has none."""
    if x.location is None or y.location is None or x.shape != y.shape:
        return None
    apart = distance_of(x.parameters["location"], y.parameters["location"])
    if apart is None:  # a number on one side and numbers on the other
        apart = distance_of(x.location, y.location)
    return None if apart is None else np.broadcast_to(apart, np.broadcast_shapes(apart.shape, x.shape))


def realised_loss(x: Distribution, y: Distribution, value: Any) -> float | None:
    """Return ln f_x(value) − ln f_y(value), infinite if y cannot return it; None if a distribution is not known."""
    if x.after or y.after or x.shape != y.shape:
        return None
    if x.name == y.name:
        differing = x.differing(y)
        if not differing:
            return 0.0
        if set(differing) & {*x.beside, *y.beside}:
            return None
    if not (x.is_known and y.is_known) or (x.name == "discrete") != (y.name == "discrete"):
        return None
    if any(distribution.scale is not None and np.any(distribution.scale == 0.0) for distribution in (x, y)):
        return max(_supremum(x, y), _supremum(y, x)) if x.name == y.name else math.inf
    loss = x.log_density(value) - y.log_density(value)
    return None if math.isnan(loss) else loss


def worst_loss(x: Distribution, y: Distribution) -> float | None:
    """Return the supremum over values of |ln f_x − ln f_y|; infinite for Gaussian noise that moves; None if unknown."""
    loss = directed_loss(x, y)
    if loss is None or loss == math.inf:
        return loss
    return 0.0 if x.is_same_as(y) else max(loss, _supremum(y, x))


def directed_loss(x: Distribution, y: Distribution) -> float | None:
    """Return the supremum over values of ln f_x − ln f_y, or a larger number; None if unknown."""
    if x.name != y.name or x.shape != y.shape or x.after != y.after:
        return None
    differing = x.differing(y)
    if not differing:
        return 0.0
    return _supremum(x, y) if x.is_known and set(differing) <= set(PARAMETERS[x.name]) else None


def _supremum(x: Distribution, y: Distribution) -> float:
    """Return the supremum of ln f_x − ln f_y for two distributions of a known name."""
    with np.errstate(all="ignore"):
        if x.name == "discrete":
            p, q = x.probabilities, y.probabilities
            if p.shape != q.shape:
                return math.prod(x.shape) * math.inf
            return math.prod(x.shape) * float(np.max(np.where(p == q, 0.0, np.log(p) - np.log(q)), initial=0.0))
        if x.name == "binomial" and "n" not in x.differing(y):  # linear in the value, so largest at 0 or n
            n, p, q = (_double(value) for value in (x.parameters["n"], x.parameters["p"], y.parameters["p"]))
            ends = [np.where(a == b, 0.0, np.log(a) - np.log(b)) for a, b in ((p, q), (1.0 - p, 1.0 - q))]
            return float(np.sum(np.broadcast_to(n * np.maximum(*ends), x.shape)))
        distance, scale = moved(x, y), x.scale
        if not _KNOWN[x.name].has_exponential_tails or "scale" in x.differing(y) or distance is None or scale is None:
            return math.inf
        if x.is_integer_valued and np.any(distance != np.round(distance)):
            return math.inf  # no value is possible under both
        return float(np.sum(np.where(distance == 0.0, 0.0, distance / scale)))  # x / 0 is infinite


def gaussian_mu(x: Distribution, y: Distribution) -> float | None:
    """Return the μ of the pair of normal distributions with equal scales, ‖move/scale‖₂; None for all others."""
    if x.name != "normal" or y.name != "normal" or x.shape != y.shape or set(x.differing(y)) - {"location"}:
        return None
    distance, scale = moved(x, y), x.scale
    if distance is None or scale is None:
        return None
    with np.errstate(all="ignore"):
        return float(np.linalg.norm(np.where(distance == 0.0, 0.0, distance / scale).reshape(-1)))


# Whether a loss, or a pair of distributions, goes beyond a claim.

_OF_EVENTS: Final = (PureDP, ApproxDP, GaussianDP, PrivacyProfile, TradeOffCurve, ProbabilityPreservation)
"""Claims that hold if every event keeps the claim's boundary."""
_COMPARED: Final = 8  # events whose privacy parameter at a distance is found by bisection
_LEVELS: Final = np.concatenate([np.geomspace(1e-12, 0.02, 120), np.linspace(0.02, 0.98, 193)[1:-1]])
_POINTS: Final = 20_000  # corners exceed the curve by 4e-7 of μ, in 6 ms; with twice as many by a quarter of it
_TANGENTS: Final = 1e-13  # relative: rounding
_HALF: Final = np.geomspace(1e-12, 0.5, 400)
_Q: Final = np.concatenate([_HALF, 1.0 - _HALF[-2::-1]])
_Q_REST: Final = np.concatenate([1.0 - _HALF, _HALF[-2::-1]])
_Z: Final = np.concatenate([ndtri(_HALF), -ndtri(_HALF[-2::-1])])
"""False-positive rates with their complements and normal quantiles, none of which loses digits near 1."""


def parameter_needed(claim: Claim, x: Distribution, y: Distribution) -> float | None:
    """Return a lower bound on the parameter that allows both, exact for pure claims and normal noise, or None."""
    mu, worst = gaussian_mu(x, y), worst_loss(x, y)
    if mu == 0.0 or worst == 0.0:
        return 0.0
    if mu == math.inf:
        return math.inf  # a scale of 0
    if claim.log_ratio is not None and worst is not None:
        return worst
    if mu is not None and math.isfinite(mu):
        if isinstance(claim, (RenyiDP, ZeroConcentratedDP)):
            return (claim.order if isinstance(claim, RenyiDP) else 1.0) * mu * mu / 2.0
        if isinstance(claim, GaussianDP):
            return mu
        return _largest(claim, ndtr(_Z + mu), ndtr(-_Z - mu), _Q, _Q_REST)
    if not (x.is_known and x.name == y.name and x.shape == y.shape and not x.after) or worst is None:
        return None
    if math.prod(x.shape) != 1:
        x, y = _farthest(x, y)
    events = _outcomes(x, y) if x.name == "discrete" else _events(x, y)
    return None if events is None else max(_largest(claim, *events), _largest(claim, *events[2:], *events[:2]))


def _largest(claim: Claim, p: Array, p_rest: Array, q: Array, q_rest: Array) -> float:
    """Return the largest parameter that an event needs; its digits above δ, where q is 0, are taken for rounding."""
    forward = _parameters(claim, p * (1.0 - SLACK), q, p_rest + SLACK * p, q_rest)
    backward = _parameters(claim.reversed(), q * (1.0 - SLACK), p, q_rest + SLACK * q, p_rest)
    found = np.concatenate([np.ravel(forward), np.ravel(backward)])
    return float(np.max(found[~np.isnan(found)], initial=0.0))


def _parameters(claim: Claim, p: Array, q: Array, p_rest: Array, q_rest: Array) -> Array:
    """Return the parameters that the events need; at a distance, where each is a bisection, of the most promising."""
    if isinstance(claim, GroupClaim):
        events = np.broadcast_arrays(p, q, p_rest, q_rest)
        with np.errstate(all="ignore"):
            rough = np.nan_to_num(claim.rough_parameter_of(*events), nan=-np.inf)
        best = np.argsort(-rough)[:_COMPARED]
        p, q, p_rest, q_rest = (each[best] for each in events)
    return claim.parameter_of(p, q, p_rest, q_rest)


def _farthest(x: Distribution, y: Distribution) -> tuple[Distribution, Distribution]:
    """Return both distributions of the draw whose location moved farthest in scales, or of the first draw."""
    if x.name == "discrete":
        return Distribution(x.name, x.parameters), Distribution(y.name, y.parameters)
    flags, distance, scale = np.zeros(math.prod(x.shape), dtype=bool), moved(x, y), x.scale
    with np.errstate(all="ignore"):
        far = None if distance is None or scale is None else distance.reshape(-1) / scale.reshape(-1)
    flags[0 if far is None or np.isnan(far).all() else int(np.nanargmax(far))] = True
    return x.at(flags), y.at(flags)


def _outcomes(x: Distribution, y: Distribution) -> tuple[Array, Array, Array, Array] | None:
    """Return p, 1 − p, q, 1 − q of the sets of outcomes of largest ratio: by Neyman and Pearson none does better."""
    p, q = x.probabilities, y.probabilities
    if p.shape != q.shape:
        return None
    with np.errstate(all="ignore"):
        order = np.argsort(-np.where(p == q, 1.0, p / q))
    p, q = p[order], q[order]
    return np.cumsum(p), np.cumsum(p[::-1])[::-1] - p, np.cumsum(q), np.cumsum(q[::-1])[::-1] - q


def _events(x: Distribution, y: Distribution) -> tuple[Array, Array, Array, Array] | None:
    """Return p, 1 − p, q, 1 − q of half-lines and of intervals about the location of x."""
    if not (x.has_noise and y.has_noise):
        return None
    a, b = x.frozen(), y.frozen()
    with np.errstate(all="ignore"):
        cuts = np.unique(np.concatenate([x.quantiles(_LEVELS), y.quantiles(_LEVELS)]))
        middle = float(np.ravel(a.median())[0])
        radii = np.unique(np.abs(cuts - middle))
        outside = [each.cdf(middle - radii) + each.sf(middle + radii) for each in (a, b)]
        inside = [np.concatenate([each.cdf(cuts), rest]) for each, rest in zip((a, b), outside, strict=True)]
        beyond = [np.concatenate([each.sf(cuts), 1.0 - rest]) for each, rest in zip((a, b), outside, strict=True)]
    return inside[0], beyond[0], inside[1], beyond[1]


def is_within(claim: Claim, epsilon: float, mu: float) -> bool:
    """Return whether a loss of at most `epsilon`, composed with Gaussian noise of this `mu`, keeps the claim."""
    if claim.log_ratio is not None:
        return mu == 0.0 and epsilon <= claim.log_ratio * (1.0 + SLACK)
    if epsilon == mu == 0.0:
        return True
    if not (math.isfinite(epsilon) and math.isfinite(mu)):
        return False
    if isinstance(claim, (RenyiDP, ZeroConcentratedDP)):
        order = claim.order if isinstance(claim, RenyiDP) else 1.0  # of a Gaussian μ the divergence is order · μ²/2
        divergence = min(epsilon, order * epsilon * epsilon / 2.0) if isinstance(claim, RenyiDP) else epsilon**2 / 2.0
        return divergence + order * mu * mu / 2.0 <= claim.parameter * (1.0 + SLACK)
    if not isinstance(claim.base if isinstance(claim, GroupClaim) else claim, _OF_EVENTS):
        return False  # events show only a part of what such a claim says
    if isinstance(claim, GaussianDP) and epsilon == 0.0:
        return mu <= claim.mu * (1.0 + SLACK)
    if isinstance(claim, ApproxDP):
        points = [(claim.epsilon, claim.delta)]
    elif isinstance(claim, PrivacyProfile):
        points = [(at, delta + claim.excess) for at, delta in zip(claim.epsilons, claim.deltas, strict=True)]
    else:
        return _lies_below(claim, epsilon, mu) and _lies_below(claim.reversed(), epsilon, mu)
    return all(_profile(at, epsilon, mu) <= delta * (1.0 + SLACK) for at, delta in points)


def _profile(at: float, epsilon: float, mu: float) -> float:
    """Return a bound on the δ at ε = `at` of such a loss; the exact worst case if either is 0."""
    if mu == 0.0:
        return max(math.expm1(epsilon - at) / (math.exp(-at) + math.exp(epsilon - at)), 0.0) if epsilon > at else 0.0
    inner = at - epsilon
    first, second = log_ndtr(mu / 2.0 - inner / mu), inner + log_ndtr(-mu / 2.0 - inner / mu)
    return float(max(-math.exp(first) * math.expm1(min(second - first, 0.0)), 0.0))


def _lies_below(claim: Claim, epsilon: float, mu: float) -> bool:
    """Whether the boundary of such a loss lies below a claim's, by the corners of its tangents."""
    low, high = -37.0, float(-ndtri(1e-300))
    for _ in range(200):  # to where e^ε q = Φ(z) and 1 − Φ(z + μ) = q
        middle = (low + high) / 2.0
        low, high = (middle, high) if ndtr(-middle - mu) > math.exp(-epsilon) * ndtr(middle) else (low, middle)
    z = np.unique(np.concatenate([np.linspace(-37.0, high, _POINTS), high - np.geomspace(1e-6, 1.0, 400)]))
    own, q = ndtr(z + mu), math.exp(-epsilon) * ndtr(z)
    if mu == 0.0:
        own, q = own[-1:], q[-1:]  # one line, up to its corner
    slope = np.exp(epsilon + (z * z - (z + mu) ** 2) / 2.0)
    with np.errstate(all="ignore"):
        corners = (np.diff(own) - slope[1:] * q[1:] + slope[:-1] * q[:-1]) / (slope[:-1] - slope[1:]) if mu else q[:0]
    corners = np.clip(np.where(np.isfinite(corners), corners, q[1:]), q[:-1], q[1:])
    heights = np.minimum(own[:-1] + slope[: len(corners)] * (corners - q[:-1]), 1.0)
    allowed, _ = claim.max_power(np.append(q, corners), 1.0 - np.append(q, corners))
    return bool(np.all(np.append(own, heights) <= allowed * (1.0 + _TANGENTS)))


# Draws that a run makes for its rows: who is in a batch, or in which order the rows are taken.
#
# Such a draw says nothing of the rows. Where x has a row that y has not, the draws for the other rows are put back, and
# that for the row is left out, or made anew where only y has it. The values on y then have the distribution that the
# run on y draws from:
#
# - a number for each row: independent numbers, of which one is left out or added;
# - an order of all rows: the order of the rest is uniform, and a new row stands at a uniform place;
# - rows with replacement: each is the new row with probability 1/n, and one that is gone is replaced by a uniform one;
# - rows without replacement: the sample has the new row as often as a fresh sample, in the place of one of its rows.

INITIAL_WEIGHTS: Final = "initial weights"
"""Name of draws from which a training starts; they are put back as draws for rows are, and say nothing of rows."""
_BY_ROW: Final = frozenset({"uniform", "integers", "binomial", "bits"})
_ORDER, _SAMPLE, _ROWS = "permutation", "choice without replacement", "integers"


@dataclass(frozen=True, slots=True)
class RowMatch:
    """The numbers of rows of x and y, and the place of the row that only one of them has, if their numbers differ."""

    n_x: int
    n_y: int
    at: int

    def put_back(self, value: Any, from_x: bool, stated: Distribution, draw: Callable[[], Any]) -> Any:
        """Return a recorded value for rows as one for the rows of y; None if the draw on y is of another kind."""
        values = np.asarray(value)
        if not from_x or self.n_x == self.n_y:
            return value
        if stated.name == _ORDER:
            return self._kept(values, int(np.argmax(np.asarray(draw()) == self.at)))
        if is_among_rows(stated, self.n_y) and values.shape == stated.shape:
            return self._renamed(values, stated, np.asarray(draw()))
        fresh = None if self.n_x > self.n_y else np.asarray(draw())[self.at]
        return np.delete(values, self.at, 0) if fresh is None else np.insert(values, self.at, fresh, 0)

    def _kept(self, order: Array, place: int) -> Array:
        if self.n_x > self.n_y:
            rest = order[order != self.at]
            return np.asarray(rest - (rest > self.at))
        return np.asarray(np.insert(order + (order >= self.at), place, self.at))

    def _renamed(self, rows: Array, stated: Distribution, fresh: Array) -> Array:
        if self.n_x < self.n_y:
            found = rows + (rows >= self.at)
            return np.where(fresh == self.at, self.at, found)
        found, is_gone = rows - (rows > self.at), rows == self.at
        if stated.name == _ROWS:
            return np.where(is_gone, fresh, found)
        unused = np.setdiff1d(fresh, found[~is_gone], assume_unique=False)
        return np.where(is_gone, unused[0] if len(unused) else found, found)


def is_among_rows(stated: Distribution, n: int) -> bool:
    """Whether a draw is of places of n rows."""
    held = stated.parameters
    if stated.name == _ROWS:
        return np.ndim(held["high"]) == np.ndim(held["low"]) == 0 and (held["low"], held["high"]) == (0, n)
    return stated.name in (_ORDER, _SAMPLE) and held["n"] == n and held.get("p") is None


def is_of_rows(stated: Distribution, n: int) -> bool:
    """Whether a draw is one of places of n rows, or has a number for each of them that is not made of the rows."""
    is_by_row = stated.name in _BY_ROW and stated.shape[:1] == (n,)
    return n > 0 and (is_among_rows(stated, n) or (is_by_row and not any(map(np.ndim, stated.parameters.values()))))


def are_alike(x: Distribution, y: Distribution) -> bool:
    """Whether two shared draws differ in the number of rows only; samples of rows must be of one size."""
    rows, differing = {_ORDER: {"n"}, _SAMPLE: {"n"}, _ROWS: {"high"}}.get(x.name, set()), set(x.differing(y))
    is_of_one_size = not differing or x.name == _ORDER or x.shape == y.shape
    return x.name == y.name and differing <= rows and is_of_one_size


def matched_rows(x: Any, y: Any) -> RowMatch | None:
    """Return how the rows of two datasets correspond; None if they have no rows, or differ by more than one."""
    parts = _parts(x), _parts(y)
    if not parts[0] or len(parts[0]) != len(parts[1]):
        return None
    n_x, n_y = (len(each[0]) for each in parts)
    if any(len(part) != n for each, n in zip(parts, (n_x, n_y), strict=True) for part in each) or abs(n_x - n_y) > 1:
        return None
    return RowMatch(n_x, n_y, min(_first_other(a, b) for a, b in zip(*parts, strict=True)))


def _parts(data: Any) -> list[Any]:
    """Return the columns, or arrays with a row for each example, of which a dataset consists."""
    tensors = getattr(data, "tensors", None)  # torch.utils.data.TensorDataset
    if isinstance(data, Mapping):
        found = list(data.values())
    elif isinstance(tensors, tuple):
        found = list(tensors)
    elif isinstance(data, tuple) and data and all(hasattr(each, "shape") and np.ndim(each) for each in data):
        found = list(data)
    else:
        found = [data]
    numbered = (each.to_numpy() if hasattr(each, "to_numpy") else each for each in found)
    arrays = [numpy_of(each) if is_tensor(each) else each for each in numbered]
    # What other containers hold may cost something to read, or draw random numbers.
    is_rows = (isinstance(each, (list, tuple, str, bytes, np.ndarray)) for each in arrays)
    return arrays if all(is_rows) and all(map(np.ndim, filter(_is_array, arrays))) else []


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _first_other(x: Any, y: Any) -> int:
    """Return the place of the first row that differs; the number of rows of the shorter one if none does."""
    n = min(len(x), len(y))
    is_plain = _is_array(x) and _is_array(y) and x.dtype.kind in "biufc" and y.dtype.kind in "biufc"
    if n and is_plain and x.shape[1:] == y.shape[1:]:
        a, b = x[:n].reshape(n, -1), y[:n].reshape(n, -1)
        other = np.any((a != b) & ~((a != a) & (b != b)), axis=1)
        return int(np.argmax(other)) if other.any() else n
    return next((place for place in range(n) if same_output(x[place], y[place]) is not True), n)
