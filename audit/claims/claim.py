"""A claim is a boundary B(q): the largest Pr[M(x) ∈ S] that a guarantee allows when Pr[M(y) ∈ S] = q.

B(q) is the power of the best test of "the data is y" against "the data is x" at false-positive rate q, that is, one
minus the trade-off function of Dong, Roth & Su (2022). Doubles near 1 lose the digits of 1 − q, so every probability
comes with its complement.

Proof: docs/proofs/boundaries.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

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

    A claim belongs to a family ordered by `strength` (ε, μ, ρ, …). A larger strength allows more, so an audit can show
    that the strength is at least some number.
    """

    has_closed_form = False
    """Whether the boundary is a formula. Any other boundary is read from a table when counts are ordered, and computed
    exactly when probabilities are bounded: this costs almost no power and saves most of the work."""

    @abstractmethod
    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        """Return (B(q), 1 − B(q)) for q strictly inside (0, 1)."""

    @property
    @abstractmethod
    def strength(self) -> float:
        """The parameter that an audit bounds from below."""

    @property
    @abstractmethod
    def strength_name(self) -> str:
        """The field's name for the strength: ``epsilon``, ``mu``, ``rho``, …"""

    @abstractmethod
    def with_strength(self, strength: float) -> Self:
        """Return the member of the family with this strength."""

    @abstractmethod
    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        """Return the least strength whose boundary reaches p at q; negative where the smallest member allows p."""

    @property
    def max_strength(self) -> float:
        """Supremum of the strengths in the family, which no member attains; infinite by default."""
        return math.inf

    @property
    def log_ratio(self) -> float | None:
        """The limit on the log likelihood ratio, if every member of the family is such a limit and nothing else."""
        return None

    @property
    def divergence_slopes(self) -> tuple[tuple[float, float], ...]:
        """Orders a ≥ 1, and slopes: a member of strength s limits the Rényi divergence of order a by slope·s.

        In both directions. Empty unless the claim is about Rényi divergences: an audit then tests these too.
        """
        return self.slopes_at(1)

    def slopes_at(self, distance: int) -> tuple[tuple[float, float], ...]:
        """Return the `divergence_slopes` for datasets at a whole distance, for a strength per step."""
        return ()

    @property
    def gaussian_mu(self) -> float | None:
        """μ of the Gaussian mechanism that attains the claim if its events lie below the boundary, else None.

        A mechanism that attains (ε, δ) may touch the boundary at one probability only, and Gaussian noise that attains
        a Rényi divergence touches it nowhere. The detectable excess then depends on the noise. The value is None for
        pure claims, μ-GDP and claims given as curves: for these, planning assumes an event on the boundary.
        """
        return None

    def max_power(self, q: npt.ArrayLike, q_complement: npt.ArrayLike | None = None) -> tuple[Array, Array]:
        """Return the largest Pr[M(x) ∈ S] allowed when Pr[M(y) ∈ S] = q, and its complement.

        Parameters
        ----------
        q : array_like
            Probabilities in [0, 1].
        q_complement : array_like, optional
            1 − q, of the shape of `q`; needed where q is so near 1 that a double loses the digits of 1 − q.

        Returns
        -------
        value, complement : ndarray
            B(q) and 1 − B(q), of the shape of `q`, each with a small relative error.

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

    def strength_of(
        self,
        p: npt.ArrayLike,
        q: npt.ArrayLike,
        p_complement: npt.ArrayLike | None = None,
        q_complement: npt.ArrayLike | None = None,
    ) -> Array:
        """Return the strength of the smallest member that allows Pr[M(x) ∈ S] = p with Pr[M(y) ∈ S] = q.

        The strength is negative where the smallest member allows more than p, and infinite where no member allows p.

        Examples
        --------
        >>> from dpaudit import PureDP
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
        """Return an approximation of `strength_of` that is cheap for arrays and accurate enough to rank events."""
        return self.strength_of(p, q, p_complement, q_complement)

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

    def describe_strength(self, strength: float) -> str:
        """Describe a lower bound, rounded down, and the fixed parameters: ``epsilon >= 1.2 at delta 1e-05``."""
        return self.describe_bound(f">= {rounded_down(strength):g}")

    def describe_bound(self, least: str) -> str:
        """Describe a lower bound that is already a text such as ``>= 1.2``."""
        return f"{self.strength_name} {least}"

    def _store_number(self, name: str, low: float, high: float, way_out: str) -> None:
        """Store a field of a frozen claim as a float in [low, high); else raise a `ClaimError`."""
        object.__setattr__(self, name, check_number(name, getattr(self, name), low, high, way_out))


class ParametricClaim(Claim):
    """A dataclass claim whose strength is one of its fields, by default the field named by `strength_name`."""

    @property
    def _strength_field(self) -> str:
        return self.strength_name

    @property
    def strength(self) -> float:
        return float(getattr(self, self._strength_field))

    def with_strength(self, strength: float) -> Self:
        return cast(Self, replace(cast(Any, self), **{self._strength_field: strength}))


_MAX_DISTANCE = 1000  # the boundary of a group claim takes one step per unit of distance


@dataclass(frozen=True, slots=True)
class GroupClaim(Claim):
    """A claim for datasets at distance k: the boundary of the claim for neighbours, composed k times.

    The strength is that of the claim for neighbours, so a bound on it is a bound per step.
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
    def strength_name(self) -> str:
        return self.base.strength_name

    @property
    def strength(self) -> float:
        return self.base.strength

    @property
    def max_strength(self) -> float:
        return self.base.max_strength

    @property
    def gaussian_mu(self) -> float | None:
        mu = self.base.gaussian_mu
        return None if mu is None else self.distance * mu

    @property
    def divergence_slopes(self) -> tuple[tuple[float, float], ...]:
        return self.base.slopes_at(self.distance)

    def with_strength(self, strength: float) -> GroupClaim:
        return GroupClaim(self.base.with_strength(strength), self.distance)

    def reversed(self) -> Claim:
        return GroupClaim(self.base.reversed(), self.distance)

    def rough_strength_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        return self.base.rough_strength_of(p, q, p_complement, q_complement) / self.distance

    def describe_bound(self, least: str) -> str:
        return f"{self.base.describe_bound(least)} per step, at distance {self.distance}"

    def _boundary(self, q: Array, q_complement: Array) -> tuple[Array, Array]:
        value, rest = q, q_complement
        for _ in range(self.distance):
            value, rest = self.base.max_power(value, rest)
        return value, rest

    def _strength_of(self, p: Array, p_complement: Array, q: Array, q_complement: Array) -> Array:
        p, p_rest, q, q_rest = np.broadcast_arrays(p, p_complement, q, q_complement)
        found = np.empty(p.shape)
        for index in np.ndindex(p.shape):
            found[index] = self._scalar_strength(*(float(side[index]) for side in (p, p_rest, q, q_rest)))
        return found

    def _scalar_strength(self, p: float, p_rest: float, q: float, q_rest: float) -> float:
        """Find the strength by bisection, since the boundary grows with the strength.

        The limits at 0 and 1 come from the claim for neighbours, since finite strengths reach the doubles next to them.
        """
        if p_rest == 0.0 and math.isinf(self.base.strength_of(1.0, q, 0.0, q_rest)):
            p, p_rest, q, q_rest = q_rest, q, 0.0, 1.0  # use the complement of the event

        def is_short(strength: float) -> bool:
            member = self.base.with_strength(strength)
            if q == 0.0 and math.isinf(member.strength_of(member.max_power(0.0)[0], 0.0)):
                return True  # the member forbids on x every event that is impossible on y
            value, rest = self.with_strength(strength).max_power(q, q_rest)
            return bool(value < p) and bool(rest > p_rest)

        low, high = 0.0, min(1.0, self.max_strength / 2)
        while is_short(high):
            low, high = high, 0.5 * (high + self.max_strength) if math.isfinite(self.max_strength) else 2 * high
            if high > 1e4 or self.max_strength - high < 1e-12:
                return self.max_strength
        while high - low > 1e-10 * max(high, 1e-10):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if is_short(middle) else (low, middle)
        return high
