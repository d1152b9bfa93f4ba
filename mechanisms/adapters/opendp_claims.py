"""What an OpenDP measurement claims: its privacy map, in the unit of its output measure.

The same number is an epsilon under one measure and a rho under another, so a measure that is not known here is an error
and never read as the one that it resembles.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...audit.claims.claim import Array, Claim
from ...audit.claims.privacy_profile import PrivacyProfile
from ...audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ...audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from ...audit.errors import ClaimError

_APPROXIMATE = "Approximate("
_ORDERS = 1.0 + np.logspace(-2, 6, 321)
_FIRST_TRIED = 40  # every so many orders, until one is found at which a curve holds


@dataclass(frozen=True, slots=True)
class MapClaim:
    """The claim of a measurement as a function of the distance k of a pair: its map at k times `d_in`."""

    measurement: Any
    d_in: Any
    order: float | None = None

    def __call__(self, distance: float) -> Claim:
        d_in, measure = self._at(distance), str(self.measurement.output_measure)
        if self.order is not None and measure != "RenyiDivergence":
            raise ClaimError(
                f"order={self.order!r} is of a Rényi divergence, and the measurement's measure is {measure}; leave "
                "it out.",
                order=self.order,
            )
        try:
            d_out = self.measurement.map(d_in)
        except Exception as error:  # TypeError, OpenDPException and what a map written in Python raises
            raise ClaimError(
                f"the measurement's map({d_in!r}) raised {type(error).__name__}: {' '.join(str(error).split())}; give "
                f"d_in in the units of {self.measurement.input_metric}.",
                d_in=d_in,
            ) from error
        try:
            return claim_of(measure, d_out, self.order)
        except ClaimError as error:
            raise ClaimError(f"map({d_in!r}) under {measure} is no claim: {error}", **error.facts) from error

    def _at(self, distance: float) -> Any:
        """`d_in` times the distance, of the metric's own type."""
        if not isinstance(self.d_in, (int, float)):
            if distance == 1:
                return self.d_in
            raise ClaimError(
                f"d_in={self.d_in!r} cannot be multiplied by the distance {distance:g}; pass the d_in of that "
                "distance, and leave the distance at 1.",
                d_in=self.d_in,
                distance=distance,
            )
        found = self.d_in * distance
        if not str(self.measurement.input_distance_type).startswith(("i", "u")):
            return float(found)
        if found != int(found):
            raise ClaimError(
                f"a distance of {found:g} is not whole, and {self.measurement.input_metric} takes whole ones.",
                distance=found,
            )
        return int(found)


def claim_of(measure: str, d_out: Any, order: float | None = None) -> Claim:
    """The claim that a distance under a measure states or, where no claim states all of it, the profile it implies.

    Parameters
    ----------
    measure : str
        As OpenDP prints it, such as ``MaxDivergence`` or ``Approximate(ZeroConcentratedDivergence)``.
    d_out : Any
        What the map returned.
    order : float, optional
        Of a Rényi curve, the order to audit; by default the privacy profile that all orders together imply.

    Raises
    ------
    ClaimError
        For a measure that is not known here, and for distances that claim nothing.

    Examples
    --------
    >>> print(claim_of("MaxDivergence", 0.5), claim_of("ZeroConcentratedDivergence", 0.5), sep=", ")
    0.5-DP, 0.5-zCDP
    >>> print(claim_of("Approximate(MaxDivergence)", (1.0, 1e-6)))
    (1, 1e-06)-DP
    """
    if measure.startswith(_APPROXIMATE):
        inner, (distance, delta) = measure[len(_APPROXIMATE) : -1], d_out
        if delta == 0:
            return claim_of(inner, distance, order)
        if inner == "MaxDivergence":
            return ApproxDP(distance, delta)
        # (ε, δ')-close given events of probability ≥ 1 − δ each, so (ε, δ' + δ)-close as they are.
        return PrivacyProfile.from_pld(_Curve(_delta_of(inner, distance), delta))
    if measure == "MaxDivergence":
        return PureDP(d_out)
    if measure == "ZeroConcentratedDivergence":
        return ZeroConcentratedDP(d_out)
    if measure == "FixedSmoothedMaxDivergence":
        return ApproxDP(*d_out)
    if measure == "RenyiDivergence" and order is not None:
        return RenyiDP(order, _divergence(d_out, order))
    return PrivacyProfile.from_pld(_Curve(_delta_of(measure, d_out)))


def _delta_of(measure: str, distance: Any) -> Callable[[float], float]:
    """The delta that a distance under a measure allows at an epsilon."""
    if measure == "SmoothedMaxDivergence":
        delta: Callable[[float], float] = distance.delta
        return delta
    if measure == "ZeroConcentratedDivergence":
        return lambda epsilon: _renyi_delta(distance * _ORDERS, epsilon)
    if measure == "RenyiDivergence":
        divergences = _divergences(distance)
        return lambda epsilon: _renyi_delta(divergences, epsilon)
    raise ClaimError(
        f"the measure {measure} is unknown; pass claim= to check, and to from_opendp a measurement of a known measure "
        "(MaxDivergence, ZeroConcentratedDivergence, SmoothedMaxDivergence, RenyiDivergence, or Approximate of these).",
        measure=measure,
    )


def _divergence(curve: Callable[[float], float], order: float) -> float:
    """A Rényi curve at an order."""
    try:
        return curve(order)
    except Exception as error:  # OpenDPException, and what a curve written in Python raises
        raise ClaimError(
            f"the Rényi curve raised {type(error).__name__} at order {order:g}; pass as order= one at which it holds.",
            order=order,
        ) from error


def _divergences(curve: Callable[[float], float]) -> Array:
    """A Rényi curve at all orders, infinite where it says nothing: beyond the first at which it raises, on either side.

    An exception takes the library some 70 ms, so not every order is tried.
    """
    found = np.full(len(_ORDERS), np.inf)

    def holds(place: int) -> bool:
        with suppress(ClaimError):
            found[place] = _divergence(curve, float(_ORDERS[place]))
            return True
        return False

    start = next(filter(holds, range(0, len(_ORDERS), _FIRST_TRIED)), None)
    if start is None or not np.isfinite(found[start]):
        raise ClaimError(
            f"the Rényi curve has no finite value at orders from {_ORDERS[0]:g} to {_ORDERS[-1]:.3g}; pass as order= "
            "one at which it holds."
        )
    for places in (range(start + 1, len(_ORDERS)), range(start - 1, -1, -1)):
        for place in places:
            if not holds(place):
                break
    return found


def _renyi_delta(divergences: Array, epsilon: float) -> float:
    """The least delta that divergences of the orders allow at an epsilon.

    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, Proposition 7.
    """
    exponent = (_ORDERS - 1) * (divergences - epsilon) - np.log(_ORDERS - 1) + _ORDERS * np.log1p(-1 / _ORDERS)
    return float(np.exp(min(exponent.min(), 0.0)))


@dataclass(frozen=True, slots=True)
class _Curve:
    """A privacy profile, raised by `delta`, in the form in which `PrivacyProfile.from_pld` reads one."""

    function: Callable[[float], float]
    delta: float = 0.0

    def get_delta_for_epsilon(self, epsilon: float) -> float:
        return self.function(epsilon) + self.delta
