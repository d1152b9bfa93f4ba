"""A claim is a boundary B(q): the largest Pr[M(x) ∈ S] that a guarantee allows when Pr[M(y) ∈ S] = q.

B(q) is the power of the best test of "the data is y" against "the data is x" at false-positive rate q, that is, one
minus the trade-off function of Dong, Roth & Su (2022). Doubles near 1 lose the digits of 1 − q, so every probability
comes with its complement.

Proofs: docs/proofs/boundaries.md, docs/proofs/group.md
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import scipy

from ..errors import ClaimError
from ..printing import rounded_down, shorten

Array: TypeAlias = npt.NDArray[np.float64]


def check_number(name: str, value: object, low: float, high: float, way_out: str, *, closed: bool = True) -> float:
    """Return `value` as a float in [low, high), or (low, high) if not `closed`; else raise a `ClaimError`."""
    try:
        number = math.nan if isinstance(value, (str, bytes, bool, np.bool_)) else float(cast(float, value))
    except Exception:  # a user's __float__ may raise anything
        number = math.nan
    inside = (low <= number if closed else low < number) and number < high
    if not inside:  # NaN fails both comparisons
        bracket = "<=" if closed else "<"
        what = "is text, not a number" if isinstance(value, (str, bytes)) else "is not allowed"
        rule = f"use {low:.9g} {bracket} {name} < {high:g}"
        raise ClaimError(f"{name}={shorten(value)} {what}; {rule} ({way_out}).", name=name, value=value)
    return number


class Claim(ABC):
    """A privacy guarantee for neighbouring datasets, given by the boundary that no event may cross.

    A claim belongs to a family ordered by `parameter` (ε, μ, ρ, …). A larger privacy parameter allows more, so an audit
    can show that the privacy parameter is at least some number.
    """

    has_closed_form = False
    """Whether the boundary is a formula. Any other boundary is read from a table when counts are ordered, and computed
    exactly when probabilities are bounded: this costs almost no power and saves most of the work."""

    @abstractmethod
    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        """Return (B(q), 1 − B(q)) for q strictly inside (0, 1)."""

    @property
    @abstractmethod
    def parameter(self) -> float:
        """The parameter that an audit bounds from below."""

    @property
    @abstractmethod
    def parameter_name(self) -> str:
        """The field's name for the privacy parameter, such as ``epsilon``, ``mu`` or ``rho``."""

    @abstractmethod
    def with_parameter(self, parameter: float) -> Self:
        """Return the member of the family with this privacy parameter."""

    @abstractmethod
    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        """Return the least parameter whose boundary reaches p at q; negative where the smallest member allows p."""

    @property
    def max_parameter(self) -> float:
        """Supremum of the privacy parameters in the family, which no member attains; infinite by default."""
        return math.inf

    @property
    def log_ratio(self) -> float | None:
        """The limit on the log likelihood ratio, if every member of the family is such a limit and nothing else."""
        return None

    @property
    def divergence_slopes(self) -> tuple[tuple[float, float], ...]:
        """Orders a ≥ 1, and slopes: a member of privacy parameter s limits the Rényi divergence of order a by slope·s.

        In both directions. Empty unless the claim is about Rényi divergences: an audit then tests these too.
        """
        return self.slopes_at(1)

    def slopes_at(self, distance: int) -> tuple[tuple[float, float], ...]:
        """Return the `divergence_slopes` for datasets at a whole distance, for a privacy parameter per step."""
        return ()

    @property
    def gaussian_mu(self) -> float | None:
        """The μ of the Gaussian mechanism that attains the claim if its events lie below the boundary, else None.

        The detectable excess then depends on the noise. For pure claims, μ-GDP and claims given as curves the value is
        None, and planning assumes an event on the boundary.
        """
        return None

    def max_power(self, q: npt.ArrayLike, q_complement: npt.ArrayLike | None = None) -> tuple[Array, Array]:
        """Return the largest Pr[M(x) ∈ S] allowed when Pr[M(y) ∈ S] = q, and its complement.

        Both have the shape of `q`, in [0, 1], and a small relative error. `q_complement` is 1 − q, of the same shape;
        it is needed where q is so near 1 that a double loses the digits of 1 − q.

        Examples
        --------
        >>> from dpaudit import PureDP
        >>> value, complement = PureDP(1.0).max_power([0.1, 0.9])
        >>> value.round(3).tolist(), complement.round(3).tolist()
        ([0.272, 0.963], [0.728, 0.037])
        """
        value = np.asarray(q, dtype=np.float64)
        other = 1.0 - value if q_complement is None else np.asarray(q_complement, dtype=np.float64)
        if not ((value >= 0).all() and (other >= 0).all()):  # NaN fails
            raise ClaimError("q is not a probability; use 0 <= q <= 1 (and give 1 - q as q_complement).", q=q)
        # q = 0 gets the limit of the boundary from the right, which is at least B(0); at q = 1 every claim allows 1.
        tiny = np.nextafter(0.0, 1.0)
        p, rest = self._boundary(np.maximum(value, tiny), np.maximum(other, tiny))
        return np.where(other == 0.0, 1.0, np.clip(p, 0.0, 1.0)), np.where(other == 0.0, 0.0, np.clip(rest, 0.0, 1.0))

    def power_touching(self, at: Array, q: Array) -> tuple[Array, Array]:
        """Return (value, complement) at q, shape (…, n), of concave boundaries above this one that meet it at `at`.

        This is `max_power` itself unless the boundary is a minimum of other boundaries.
        """
        return self.max_power(q)

    def parameter_of(
        self,
        p: npt.ArrayLike,
        q: npt.ArrayLike,
        p_complement: npt.ArrayLike | None = None,
        q_complement: npt.ArrayLike | None = None,
    ) -> Array:
        """Return the privacy parameter of the smallest member that allows Pr[M(x) ∈ S] = p with Pr[M(y) ∈ S] = q.

        It is negative where the smallest member allows more than p, and infinite if no member allows p.

        Examples
        --------
        >>> from dpaudit import PureDP
        >>> float(PureDP(1.0).parameter_of(0.5, 0.25).round(4))
        0.6931
        """
        p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
        p_rest = 1.0 - p if p_complement is None else np.asarray(p_complement, dtype=np.float64)
        q_rest = 1.0 - q if q_complement is None else np.asarray(q_complement, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.array(self._parameter_of(p, p_rest, q, q_rest), dtype=np.float64)
        found[(p == 0.0) | (q_rest == 0.0)] = -np.inf
        return found

    def rough_parameter_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        """Return an approximation of `parameter_of` that is cheap for arrays and accurate enough to rank events."""
        return self.parameter_of(p, q, p_complement, q_complement)

    def group(self, distance: int) -> Claim:
        """Return the claim for datasets at a whole `distance`: B composed with itself.

        References
        ----------
        Dong, Roth & Su (2022), Gaussian differential privacy, Theorem 2.14.
        """
        if distance % 1 != 0:  # true for infinity and NaN as well
            raise ClaimError(
                f"distance={distance!r} is not whole, but a group claim needs whole steps; pass the claim as "
                "a function of the distance.",
                distance=distance,
            )
        return self if distance == 1 else GroupClaim(self, int(distance))

    def reversed(self) -> Claim:
        """Return the claim for Pr[M(y) ∈ S] given Pr[M(x) ∈ S]; the same claim unless it depends on the direction."""
        return self

    def describe_parameter(self, parameter: float) -> str:
        """Describe a lower bound, rounded down, and the fixed parameters: ``epsilon >= 1.2 at delta 1e-05``."""
        return self.describe_bound(f">= {rounded_down(parameter):g}")

    def describe_bound(self, least: str) -> str:
        """Describe a lower bound that is already a text such as ``>= 1.2``."""
        return f"{self.parameter_name} {least}"

    def _store_number(self, name: str, low: float, high: float, way_out: str) -> None:
        """Store a field of a frozen claim as a float in [low, high); else raise a `ClaimError`."""
        object.__setattr__(self, name, check_number(name, getattr(self, name), low, high, way_out))


class ParametricClaim(Claim):
    """A dataclass claim whose privacy parameter is a field, by default the one named by `parameter_name`."""

    @property
    def _parameter_field(self) -> str:
        return self.parameter_name

    @property
    def parameter(self) -> float:
        return float(getattr(self, self._parameter_field))

    def with_parameter(self, parameter: float) -> Self:
        return cast(Self, replace(cast(Any, self), **{self._parameter_field: parameter}))


_MAX_DISTANCE = 1000  # the boundary of a group claim takes one step per unit of distance


@dataclass(frozen=True, slots=True)
class GroupClaim(Claim):
    """A claim for datasets at distance k: the boundary of the claim for neighbours, composed k times.

    The privacy parameter is that of the claim for neighbours, so a bound on it is a bound per step.

    Parameters
    ----------
    base : Claim
        The claim for neighbours.
    distance : int
        Steps between the datasets, from 1 to 1,000.
    """

    base: Claim
    distance: int

    def __post_init__(self) -> None:
        is_whole = isinstance(self.distance, (int, np.integer))
        if not isinstance(self.base, Claim) or not is_whole or not 1 <= self.distance <= _MAX_DISTANCE:
            raise ClaimError(
                f"{self.base!r} at distance {self.distance!r} is not a group claim; use a claim and a whole distance "
                f"from 1 to {_MAX_DISTANCE}.",
                distance=self.distance,
            )

    def __str__(self) -> str:
        return f"{self.base} at distance {self.distance}"

    @property
    def parameter_name(self) -> str:
        return self.base.parameter_name

    @property
    def parameter(self) -> float:
        return self.base.parameter

    @property
    def max_parameter(self) -> float:
        return self.base.max_parameter

    @property
    def gaussian_mu(self) -> float | None:
        mu = self.base.gaussian_mu
        return None if mu is None else self.distance * mu

    @property
    def divergence_slopes(self) -> tuple[tuple[float, float], ...]:
        return self.base.slopes_at(self.distance)

    def with_parameter(self, parameter: float) -> GroupClaim:
        return GroupClaim(self.base.with_parameter(parameter), self.distance)

    def reversed(self) -> Claim:
        return GroupClaim(self.base.reversed(), self.distance)

    def rough_parameter_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        return self.base.rough_parameter_of(p, q, p_complement, q_complement) / self.distance

    def describe_bound(self, least: str) -> str:
        return f"{self.base.describe_bound(least)} per step, at distance {self.distance}"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        value, rest = q, q_complement
        for _ in range(self.distance):
            value, rest = self.base.max_power(value, rest)
        return value, rest

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        each = np.vectorize(self._scalar_parameter, otypes=[np.float64])
        return np.asarray(each(p, p_complement, q, q_complement))

    def _scalar_parameter(self, p: float, p_rest: float, q: float, q_rest: float) -> float:
        """Find the least parameter at which the boundary, which grows with it, is not below p; 0 if it never is.

        The limits at 0 and 1 are those of the claim for neighbours, as finite parameters reach the doubles next to
        them.
        """
        if p_rest == 0.0 and math.isinf(self.base.parameter_of(1.0, q, 0.0, q_rest)):
            p, p_rest, q, q_rest = q_rest, q, 0.0, 1.0  # use the complement of the event

        from scipy.optimize import brentq  # as below

        least, precision, most = 1e-20, 1e-10, 1e3  # privacy parameter; relative; log-odds, beyond those of doubles

        def missing(parameter: float) -> float:
            """Return by how much the log-odds of the boundary are short of those of p; negative if they are not."""
            member = self.base.with_parameter(parameter)
            if q == 0.0 and math.isinf(member.parameter_of(member.max_power(0.0)[0], 0.0)):
                return most  # the member forbids on x every event that is impossible on y
            value, rest = self.with_parameter(parameter).max_power(q, q_rest)
            with np.errstate(all="ignore"):
                apart = float(np.abs(np.log(p) - np.log(p_rest) - np.log(value) + np.log(rest)))
            size = max(apart, 1e-300) if apart < most else most  # NaN where p is 0 or 1
            return size if value < p and rest > p_rest else -size

        if missing(least) < 0.0:
            return 0.0
        low, high = least, min(1.0, self.max_parameter / 2)
        while missing(high) > 0.0:
            low, high = high, 0.5 * (high + self.max_parameter) if math.isfinite(self.max_parameter) else 2 * high
            if high > 1e4 or self.max_parameter - high < 1e-12:
                return self.max_parameter
        while low < 0.5 * high:
            low, high = (0.5 * high, high) if missing(0.5 * high) > 0.0 else (low, 0.5 * high)
        found = float(brentq(missing, low, high, xtol=1e-300, rtol=precision))
        return found if missing(found) < 0.0 else found * (1.0 + 2.0 * precision)


# Pure, approximate and Gaussian differential privacy as claims.


def pure_lines(epsilon: Array | float, delta: Array | float, q: Array, rest: Array) -> tuple[Array, Array]:
    """Return min(1, e^ε q + δ, 1 − e^{−ε}(1 − δ − q)) and its complement, without overflow for any ε."""
    scaled = np.exp(np.minimum(epsilon + np.log(q), 1.0))  # values above 1 need no accuracy
    shrunk = np.exp(-epsilon) * (rest - delta)
    # Each line avoids cancellation where it is the lower one: it is written in q near 0 and in 1 − q near 1.
    upper_line = -np.expm1(-epsilon) + np.exp(-epsilon) * (q + delta)
    low = np.minimum(epsilon, 1.0)  # for ε > ln 2 the first line is above 1 at every q ≥ ½
    lower_rest = np.where(q < 0.5, 1.0 - delta - scaled, np.exp(low) * rest - np.expm1(low) - delta)
    value = np.minimum(1.0, np.minimum(scaled + delta, upper_line))
    return value, np.maximum(0.0, np.maximum(lower_rest, shrunk))


def _pure_epsilon(delta: Array | float, p: Array, p_rest: Array, q: Array, q_rest: Array) -> Array:
    """Return the least ε for which both lines of (ε, δ)-DP reach p at q."""
    forward = np.log(np.maximum(p - delta, 0.0)) - np.log(q)
    backward = np.log(np.maximum(q_rest - delta, 0.0)) - np.log(p_rest)
    return np.asarray(np.fmax(forward, backward))


def excess_delta(epsilon: Array | float, p: Array, p_rest: Array, q: Array, q_rest: Array) -> Array:
    """Return the least δ for which both lines of (ε, δ)-DP reach p at q."""
    factor = np.exp(np.minimum(epsilon, 700.0))
    return np.maximum(p - factor * q, q_rest - factor * p_rest)


@dataclass(frozen=True, slots=True)
class PureDP(ParametricClaim):
    """Claim of ε-differential privacy: Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S] for every event S.

    Parameters
    ----------
    epsilon : float
        In nats, finite and ≥ 0; 0 claims that the two distributions are equal.

    See Also
    --------
    ApproxDP : The claim with a δ.
    GaussianDP : The claim of Gaussian noise.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Definition 2.4 with δ = 0.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> claim = PureDP(1.0)
    >>> float(claim.max_power(0.1)[0].round(3))  # the largest Pr[M(x) ∈ S] if Pr[M(y) ∈ S] = 0.1
    0.272
    """

    epsilon: float

    def __post_init__(self) -> None:
        self._store_number("epsilon", 0, math.inf, "epsilon=0 claims equal distributions")

    def __str__(self) -> str:
        return f"{self.epsilon:g}-DP"

    parameter_name = "epsilon"
    has_closed_form = True

    @property
    def log_ratio(self) -> float:
        return self.epsilon

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        return pure_lines(self.epsilon, 0.0, q, q_complement)

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return _pure_epsilon(0.0, p, p_complement, q, q_complement)


@dataclass(frozen=True, slots=True)
class ApproxDP(ParametricClaim):
    """Claim of (ε, δ)-differential privacy: Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S] + δ for every event S.

    Parameters
    ----------
    epsilon : float
        In nats, finite and ≥ 0.
    delta : float
        In [0, 1).
    bound_on : {"epsilon", "delta"}
        The parameter that an audit bounds; the other is held fixed.

    See Also
    --------
    PureDP : The claim without δ.
    PrivacyProfile : A δ for every ε.

    References
    ----------
    Dwork & Roth (2014), Definition 2.4.

    Examples
    --------
    >>> from dpaudit import ApproxDP
    >>> print(ApproxDP(1.0, 1e-5), ApproxDP(1.0, 1e-5).group(2), sep="; ")
    (1, 1e-05)-DP; (1, 1e-05)-DP at distance 2
    """

    epsilon: float
    delta: float
    bound_on: Literal["epsilon", "delta"] = "epsilon"

    def __post_init__(self) -> None:
        self._store_number("epsilon", 0, math.inf, "epsilon=0 bounds the total variation by delta")
        self._store_number("delta", 0, 1, "delta=0 claims pure DP")
        if not isinstance(self.bound_on, str) or self.bound_on not in ("epsilon", "delta"):
            raise ClaimError(
                f'bound_on={shorten(self.bound_on)} is unknown; use "epsilon" or "delta".', bound_on=self.bound_on
            )

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-DP"

    has_closed_form = True

    @property
    def parameter_name(self) -> str:
        return self.bound_on

    @property
    def max_parameter(self) -> float:
        return math.inf if self.bound_on == "epsilon" else 1.0

    @property
    def log_ratio(self) -> float | None:
        return self.epsilon if self.delta == 0.0 and self.bound_on == "epsilon" else None

    @property
    def gaussian_mu(self) -> float | None:
        return None if self.delta == 0.0 else _tight_mu(self.epsilon, self.delta)

    def describe_bound(self, least: str) -> str:
        fixed = f"delta {self.delta:g}" if self.bound_on == "epsilon" else f"epsilon {self.epsilon:g}"
        return f"{self.bound_on} {least} at {fixed}"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        return pure_lines(self.epsilon, self.delta, q, q_complement)

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        if self.bound_on == "epsilon":
            return _pure_epsilon(self.delta, p, p_complement, q, q_complement)
        return excess_delta(self.epsilon, p, p_complement, q, q_complement)


# From this ε on doubles see no difference between μ and the limit √(2ε): it is Φ⁻¹(δ), at most 38 of 10³⁷.
_LARGEST = 1e75


@lru_cache(maxsize=1 << 12)
def _tight_mu(epsilon: float, delta: float) -> float:
    """Return μ of the Gaussian mechanism for which (ε, δ) is tight.

    Source: Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.
    """
    from scipy.optimize import brentq  # takes a tenth of a second, and few claims need it

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        far = float(scipy.special.log_ndtr(-mu / 2 - epsilon / mu)) + epsilon
        return float(scipy.special.ndtr(mu / 2 - epsilon / mu)) - math.exp(min(far, 0.0)) - delta

    if epsilon > _LARGEST:
        return math.sqrt(2.0 * epsilon)
    return math.exp(float(brentq(excess, math.log(1e-300), math.log(1e150), xtol=1e-12)))


@dataclass(frozen=True, slots=True)
class GaussianDP(ParametricClaim):
    """Gaussian differential privacy of μ: x and y are at least as hard to distinguish as N(μ, 1) and N(0, 1).

    Parameters
    ----------
    mu : float
        Finite and ≥ 0; Gaussian noise of standard deviation σ has μ = sensitivity/σ.

    See Also
    --------
    ZeroConcentratedDP : The claim of Gaussian noise in ρ = μ²/2.
    TradeOffCurve : Any other trade-off function.

    References
    ----------
    Dong, Roth & Su (2022), Gaussian differential privacy, Definition 2.6.

    Examples
    --------
    >>> from dpaudit import GaussianDP
    >>> float(GaussianDP(1.0).max_power(0.05)[0].round(3))  # Φ(Φ⁻¹(q) + μ)
    0.26
    """

    mu: float

    def __post_init__(self) -> None:
        self._store_number("mu", 0, math.inf, "mu=0 claims equal distributions")

    def __str__(self) -> str:
        return f"{self.mu:g}-GDP"

    parameter_name = "mu"
    has_closed_form = True

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        z = _quantile(q, q_complement) + self.mu
        return scipy.special.ndtr(z), scipy.special.ndtr(-z)

    def _parameter_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return _quantile(p, p_complement) - _quantile(q, q_complement)


def _quantile(q: Array, rest: Array) -> Array:
    """Return Φ⁻¹(q), computed from the smaller of q and 1 − q."""
    return np.where(q < rest, scipy.special.ndtri(np.minimum(q, 0.5)), -scipy.special.ndtri(np.minimum(rest, 0.5)))


# Claims for datasets further apart than neighbours: composed boundaries, or functions of the distance.

ClaimAtDistance: TypeAlias = Callable[[float], Claim]
"""A function from the distance between the datasets to a claim, such as OpenDP's privacy map."""


def as_claim(claim: Any) -> Claim | ClaimAtDistance:
    """Return a claim or a function that makes claims; a number stands for `PureDP` and a pair for `ApproxDP`.

    >>> as_claim(1), as_claim((1, 1e-5))
    (PureDP(epsilon=1.0), ApproxDP(epsilon=1.0, delta=1e-05, bound_on='epsilon'))
    """
    if isinstance(claim, Claim) or (callable(claim) and not isinstance(claim, type)):
        return cast(Claim | ClaimAtDistance, claim)
    if _is_number(claim):
        return PureDP(claim)
    if isinstance(claim, (tuple, list)) and len(claim) == 2 and all(map(_is_number, claim)):
        pair = ApproxDP(*claim)
        return pair if pair.delta != 0.0 else PureDP(pair.epsilon)
    shown = claim.__name__ if isinstance(claim, type) else shorten(claim)
    raise ClaimError(f"claim={shown} is not a claim; {_remedy(claim)}.", claim=claim)


def _remedy(claim: Any) -> str:
    """Return what to write instead of a value that is not a claim."""
    if isinstance(claim, type):
        return f"it is a class, so write {claim.__name__}(…) with its parameters"
    if isinstance(claim, str):
        try:
            return f"it is text, so write claim=PureDP({float(claim):g})"
        except ValueError:
            pass
    if isinstance(claim, dict) and (known := {"epsilon", "delta", "mu", "rho"} & {*claim}):
        kind = "GaussianDP" if "mu" in known else "ZeroConcentratedDP" if "rho" in known else "ApproxDP"
        kind = "PureDP" if known == {"epsilon"} else kind
        return f"write {kind}({', '.join(f'{name}={shorten(claim[name])}' for name in claim if name in known)})"
    return "use PureDP(epsilon), ApproxDP(epsilon, delta), … or a function of the distance that returns one"


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | Decimal) and not isinstance(value, (bool, np.bool_))


def claim_at(claim: Any, distance: float) -> Claim:
    """Return the claim for datasets `distance` apart, of what `as_claim` accepts."""
    claim = as_claim(claim)
    if isinstance(claim, GroupClaim) and distance != 1:
        raise ClaimError(
            f"claim={claim} already holds at a distance, and distance={distance:g} would group it again; pass the "
            "claim for neighbours.",
            claim=claim,
            distance=distance,
        )
    if isinstance(claim, Claim):
        return claim.group(cast(int, distance))
    found = claim(distance)
    if not isinstance(found, Claim):
        raise ClaimError(
            f"the claim function returned {shorten(found)} at distance {distance:g}; it must return a claim.",
            claim=found,
        )
    return found
