"""A claim is a boundary: the largest Pr[M(x) ∈ S] that a guarantee allows when Pr[M(y) ∈ S] = q.

B is the power of the best test of "the data is y" against "the data is x" at false-positive rate q, one minus the
trade-off function of Dong, Roth & Su (2022). Near 1 doubles lose 1 − q, so probabilities come as (value, complement).

Proof: docs/proofs/boundaries.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from .errors import ClaimError
from .rounding import rounded_down

Array: TypeAlias = npt.NDArray[np.float64]


def check_number(name: str, value: object, low: float, high: float, way_out: str, *, closed: bool = True) -> float:
    """`value` as a float, inside [low, high) (or (low, high) when not `closed`); else a `ClaimError`."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(cast(float, value))
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    inside = (low <= number if closed else low < number) and number < high
    if not inside:  # NaN fails both comparisons
        bracket = "<=" if closed else "<"
        bound = "" if math.isinf(high) else f" < {high:g}"
        rule = f"use {low:.9g} {bracket} {name}{bound or ' and finite'}"
        raise ClaimError(f"{name}={value!r} is not allowed; {rule} ({way_out}).", name=name, value=value)
    return number


class Claim(ABC):
    """A privacy guarantee for neighbouring datasets, as the boundary that no event may cross.

    A claim is one member of a family ordered by `strength` (its epsilon, mu, rho, …): a larger strength allows more,
    so "strength >= s" is what an audit can show.
    """

    has_closed_form = False
    """Whether the boundary is a formula. Others are read from a table where counts are put in order, and are exact
    where probability is bounded: less power by next to nothing, many times less work."""

    caveat = ""
    """What an audit of one event cannot say of the claim, in words that follow "not refuted"."""

    @abstractmethod
    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        """(B(q), 1 − B(q)) for q strictly inside (0, 1)."""

    @property
    @abstractmethod
    def strength(self) -> float:
        """The parameter that a bound is put on."""

    @property
    @abstractmethod
    def strength_name(self) -> str:
        """What the strength is called, in the field's words: ``epsilon``, ``mu``, ``rho``, …"""

    @abstractmethod
    def with_strength(self, strength: float) -> Self:
        """The member of the family with this strength."""

    @abstractmethod
    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        """Least strength whose boundary reaches p at q; below 0 where even the smallest member allows p."""

    @property
    def max_strength(self) -> float:
        """No member of the family has a strength of this or more (infinite unless said otherwise)."""
        return math.inf

    @property
    def gaussian_mu(self) -> float | None:
        """μ of the Gaussian mechanism that attains the claim, where that mechanism's events lie below the boundary.

        A mechanism that attains (ε, δ) may touch the boundary at one probability only, and Gaussian noise that attains
        a Rényi divergence touches it nowhere: what an audit can detect then depends on the noise. None where an event
        of an attaining mechanism lies on the boundary whatever the mechanism, as far as an audit looks: pure claims,
        μ-GDP, and claims given as curves.
        """
        return None

    def max_power(self, q: npt.ArrayLike, q_complement: npt.ArrayLike | None = None) -> tuple[Array, Array]:
        """Largest Pr[M(x) ∈ S] allowed when Pr[M(y) ∈ S] = q, and one minus it.

        Parameters
        ----------
        q : array_like
            Probabilities in [0, 1].
        q_complement : array_like, optional
            1 − q, given where q is so near 1 that a double cannot say how near. Same shape as `q`.

        Returns
        -------
        value, complement : ndarray
            B(q) and 1 − B(q), each accurate in the relative sense, shape of `q`.

        Examples
        --------
        >>> value, complement = PureDP(1.0).max_power([0.1, 0.9])
        >>> value.round(3).tolist(), complement.round(3).tolist()
        ([0.272, 0.963], [0.728, 0.037])
        """
        value = np.asarray(q, dtype=np.float64)
        other = 1.0 - value if q_complement is None else np.asarray(q_complement, dtype=np.float64)
        if not (np.all(value >= 0) and np.all(other >= 0)):  # NaN fails
            raise ClaimError("q is not a probability; use 0 <= q <= 1 (and give 1 - q as q_complement).", q=q)
        # At q = 0 the boundary's limit from inside is used, which is the larger one; at q = 1 every claim allows 1.
        tiny = np.nextafter(0.0, 1.0)
        p, rest = self._boundary(np.maximum(value, tiny), np.maximum(other, tiny))
        return np.where(other == 0.0, 1.0, np.clip(p, 0.0, 1.0)), np.where(other == 0.0, 0.0, np.clip(rest, 0.0, 1.0))

    def power_touching(self, at: Array, q: Array) -> tuple[Array, Array]:
        """As `max_power` at q, of shape (…, n), for concave boundaries that lie above this one and meet it at `at`.

        The boundary itself, unless it is known as the least of others only.
        """
        return self.max_power(q)

    def strength_of(
        self,
        p: npt.ArrayLike,
        q: npt.ArrayLike,
        p_complement: npt.ArrayLike | None = None,
        q_complement: npt.ArrayLike | None = None,
    ) -> Array:
        """Strength of the smallest member of the family that allows Pr[M(x) ∈ S] = p with Pr[M(y) ∈ S] = q.

        Negative where even the smallest allows more; infinite where none allows p.

        Examples
        --------
        >>> float(PureDP(1.0).strength_of(0.5, 0.25).round(4))
        0.6931
        """
        p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
        p_rest = 1.0 - p if p_complement is None else np.asarray(p_complement, dtype=np.float64)
        q_rest = 1.0 - q if q_complement is None else np.asarray(q_complement, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.array(self._strength_of(p, p_rest, q, q_rest), dtype=np.float64)
        found[(p == 0.0) | (q_rest == 0.0)] = -np.inf
        return found

    def rough_strength_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        """As `strength_of`, good enough to rank events and cheap for arrays."""
        return self.strength_of(p, q, p_complement, q_complement)

    def group(self, distance: int) -> Claim:
        """What this claim says of datasets at a whole `distance` apart: B composed with itself.

        References
        ----------
        Dong, Roth & Su (2022), Gaussian differential privacy, Theorem 2.14.
        """
        if distance % 1 != 0:  # also of infinity and NaN
            raise ClaimError(
                f"distance={distance!r} is not whole, and a group claim takes whole steps; give the claim as a "
                "function of the distance.",
                distance=distance,
            )
        from .group import GroupClaim  # which is a claim itself

        return self if distance == 1 else GroupClaim(self, int(distance))

    def reversed(self) -> Claim:
        """The boundary for Pr[M(y) ∈ S] given Pr[M(x) ∈ S]: the same unless the claim depends on the direction."""
        return self

    def describe_strength(self, strength: float) -> str:
        """A lower bound with its name, and what is held fixed: ``epsilon >= 1.2 at delta 1e-05``; rounded down."""
        return f"{self.strength_name} >= {rounded_down(strength):g}"


def _pure_lines(epsilon: Array | float, delta: Array | float, q: Array, rest: Array) -> tuple[Array, Array]:
    """min(1, e^ε q + δ, 1 − e^{−ε}(1 − δ − q)) and its complement, for any epsilon without overflow."""
    scaled = np.exp(np.minimum(epsilon + np.log(q), 1.0))  # past 1 its size does not matter
    shrunk = np.exp(-epsilon) * (rest - delta)
    # Each line is written so that nothing cancels where it is the lower one: in terms of q near 0, of 1 − q near 1.
    upper_line = -np.expm1(-epsilon) + np.exp(-epsilon) * (q + delta)
    low = np.minimum(epsilon, 1.0)  # beyond ln 2 the first line is above 1 for every q ≥ ½
    lower_rest = np.where(q < 0.5, 1.0 - delta - scaled, np.exp(low) * rest - np.expm1(low) - delta)
    value = np.minimum(1.0, np.minimum(scaled + delta, upper_line))
    return value, np.maximum(0.0, np.maximum(lower_rest, shrunk))


def _pure_epsilon(delta: Array | float, p: Array, p_rest: Array, q: Array, q_rest: Array) -> Array:
    """Least epsilon for which both lines of (ε, δ)-DP reach p at q."""
    forward = np.log(np.maximum(p - delta, 0.0)) - np.log(q)
    backward = np.log(np.maximum(q_rest - delta, 0.0)) - np.log(p_rest)
    larger: Array = np.fmax(forward, backward)
    return larger


def _excess_delta(epsilon: Array | float, p: Array, p_rest: Array, q: Array, q_rest: Array) -> Array:
    """Least delta for which both lines of (ε, δ)-DP reach p at q."""
    factor = np.exp(np.minimum(epsilon, 700.0))
    return np.maximum(p - factor * q, q_rest - factor * p_rest)


@dataclass(frozen=True, slots=True)
class PureDP(Claim):
    """ε-differential privacy: Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S] for every event S.

    Parameters
    ----------
    epsilon : float
        In nats, finite and ≥ 0; 0 claims that the two distributions are equal.

    Raises
    ------
    ClaimError
        For a negative, infinite or NaN epsilon.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Definition 2.4 with δ = 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", check_number("epsilon", self.epsilon, 0, math.inf, "epsilon=0 claims equal distributions")
        )

    def __str__(self) -> str:
        return f"{self.epsilon:g}-DP"

    strength_name = "epsilon"
    has_closed_form = True

    @property
    def strength(self) -> float:
        return self.epsilon

    def with_strength(self, strength: float) -> PureDP:
        return PureDP(strength)

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        return _pure_lines(self.epsilon, 0.0, q, q_complement)

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return _pure_epsilon(0.0, p, p_complement, q, q_complement)


@dataclass(frozen=True, slots=True)
class ApproxDP(Claim):
    """(ε, δ)-differential privacy: Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S] + δ for every event S.

    Parameters
    ----------
    epsilon : float
        In nats, finite and ≥ 0.
    delta : float
        In [0, 1).
    bound_on : {"epsilon", "delta"}
        Which of the two an audit bounds while the other is held fixed.

    References
    ----------
    Dwork & Roth (2014), Definition 2.4.
    """

    epsilon: float
    delta: float
    bound_on: Literal["epsilon", "delta"] = "epsilon"

    def __post_init__(self) -> None:
        epsilon = check_number("epsilon", self.epsilon, 0, math.inf, "epsilon=0 bounds the total variation by delta")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", check_number("delta", self.delta, 0, 1, "delta=0 claims pure DP"))
        if self.bound_on not in ("epsilon", "delta"):
            raise ClaimError(
                f'bound_on={self.bound_on!r} is unknown; use "epsilon" or "delta".', bound_on=self.bound_on
            )

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-DP"

    has_closed_form = True

    @property
    def strength_name(self) -> str:
        return self.bound_on

    @property
    def strength(self) -> float:
        return self.epsilon if self.bound_on == "epsilon" else self.delta

    @property
    def max_strength(self) -> float:
        return math.inf if self.bound_on == "epsilon" else 1.0

    @property
    def gaussian_mu(self) -> float | None:
        return None if self.delta == 0.0 else _tight_mu(self.epsilon, self.delta)

    def with_strength(self, strength: float) -> ApproxDP:
        return replace(self, epsilon=strength) if self.bound_on == "epsilon" else replace(self, delta=strength)

    def describe_strength(self, strength: float) -> str:
        fixed = f"delta {self.delta:g}" if self.bound_on == "epsilon" else f"epsilon {self.epsilon:g}"
        return f"{self.bound_on} >= {rounded_down(strength):g} at {fixed}"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        return _pure_lines(self.epsilon, self.delta, q, q_complement)

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        if self.bound_on == "epsilon":
            return _pure_epsilon(self.delta, p, p_complement, q, q_complement)
        return _excess_delta(self.epsilon, p, p_complement, q, q_complement)


@lru_cache(maxsize=1 << 12)
def _tight_mu(epsilon: float, delta: float) -> float:
    """μ of the Gaussian mechanism for which (ε, δ) is tight.

    References
    ----------
    Balle & Wang (2018), Improving the Gaussian mechanism for differential privacy, Theorem 8.
    """

    def excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        far = float(log_ndtr(-mu / 2 - epsilon / mu)) + epsilon
        return float(ndtr(mu / 2 - epsilon / mu)) - math.exp(min(far, 0.0)) - delta

    return math.exp(float(brentq(excess, math.log(1e-300), math.log(1e150), xtol=1e-12)))


@dataclass(frozen=True, slots=True)
class GaussianDP(Claim):
    """μ-Gaussian differential privacy: telling x from y is no easier than telling N(μ, 1) from N(0, 1).

    References
    ----------
    Dong, Roth & Su (2022), Gaussian differential privacy, Definition 2.6.
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", check_number("mu", self.mu, 0, math.inf, "mu=0 claims equal distributions"))

    def __str__(self) -> str:
        return f"{self.mu:g}-GDP"

    strength_name = "mu"
    has_closed_form = True

    @property
    def strength(self) -> float:
        return self.mu

    def with_strength(self, strength: float) -> GaussianDP:
        return GaussianDP(strength)

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        z = _quantile(q, q_complement) + self.mu
        return ndtr(z), ndtr(-z)

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        return _quantile(p, p_complement) - _quantile(q, q_complement)


def _quantile(q: Array, rest: Array) -> Array:
    """Φ⁻¹(q), from whichever of q and 1 − q is the smaller."""
    return np.where(q < rest, ndtri(np.minimum(q, 0.5)), -ndtri(np.minimum(rest, 0.5)))
