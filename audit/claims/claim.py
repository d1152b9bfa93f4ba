"""A claim is a boundary: the largest Pr[M(x) ∈ S] that a guarantee allows when Pr[M(y) ∈ S] = q.

B is the power of the best test of "the data is y" against "the data is x" at false-positive rate q, one minus the
trade-off function of Dong, Roth & Su (2022). Near 1 doubles lose 1 − q, so probabilities come as (value, complement).

Proof: docs/proofs/boundaries.md
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ..errors import ClaimError
from ..printing import rounded_down

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
        >>> from dpaudit import PureDP
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

        return self if distance == 1 else GroupClaim(self, int(distance))

    def reversed(self) -> Claim:
        """The boundary for Pr[M(y) ∈ S] given Pr[M(x) ∈ S]: the same unless the claim depends on the direction."""
        return self

    def describe_strength(self, strength: float) -> str:
        """A lower bound with its name, and what is held fixed: ``epsilon >= 1.2 at delta 1e-05``; rounded down."""
        return f"{self.strength_name} >= {rounded_down(strength):g}"


_MAX_DISTANCE = 1000  # of a group claim, whose boundary takes as many steps


@dataclass(frozen=True, slots=True)
class GroupClaim(Claim):
    """A claim made at distance 1, for datasets at distance k: the boundary composed k times.

    The strength stays that of the claim at distance 1, so a bound reads "epsilon per step".
    """

    base: Claim
    distance: int

    def __post_init__(self) -> None:
        is_whole = isinstance(self.distance, (int, np.integer))
        if not isinstance(self.base, Claim) or not is_whole or not 1 <= self.distance <= _MAX_DISTANCE:
            raise ClaimError(
                f"{self.base!r} at distance {self.distance!r} is no group claim; use a claim and a whole distance "
                f"from 1 to {_MAX_DISTANCE}.",
                distance=self.distance,
            )

    def __str__(self) -> str:
        return f"{self.base} at distance {self.distance}"

    @property
    def strength_name(self) -> str:
        return self.base.strength_name

    @property
    def caveat(self) -> str:  # type: ignore[override]
        return self.base.caveat

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

    def with_strength(self, strength: float) -> GroupClaim:
        return GroupClaim(self.base.with_strength(strength), self.distance)

    def reversed(self) -> Claim:
        return GroupClaim(self.base.reversed(), self.distance)

    def rough_strength_of(self, p: Array, q: Array, p_complement: Array, q_complement: Array) -> Array:
        return self.base.rough_strength_of(p, q, p_complement, q_complement) / self.distance

    def describe_strength(self, strength: float) -> str:
        return f"{self.base.describe_strength(strength)} per step, at distance {self.distance}"

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
        """Bisection: the boundary grows with the strength.

        Its limits at 0 and 1 are asked of the claim for neighbours, as doubles next to them would be reached.
        """
        if p_rest == 0.0 and math.isinf(self.base.strength_of(1.0, q, 0.0, q_rest)):
            p, p_rest, q, q_rest = q_rest, q, 0.0, 1.0  # the mirror image

        def is_short(strength: float) -> bool:
            member = self.base.with_strength(strength)
            if q == 0.0 and math.isinf(member.strength_of(member.max_power(0.0)[0], 0.0)):
                return True  # what never is on y is never on x
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
