"""Claim of an OpenDP measurement: its privacy map, in the unit of its output measure.

The same number is an epsilon under one measure and a rho under another. An unknown measure is therefore an error and is
never read as a similar one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...audit.claims.claim import ApproxDP, Array, Claim, PureDP
from ...audit.claims.privacy_profile import PrivacyProfile
from ...audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from ...audit.errors import ClaimError

_APPROXIMATE = "Approximate("
_ORDERS = 1.0 + np.logspace(-2, 6, 321)
_FIRST_TRIED = 40  # step between orders in the search for the first at which the curve holds


@dataclass(frozen=True, slots=True)
class MapClaim:
    """Claim of a measurement as a function of the distance k of a pair: its map at k times `d_in`."""

    measurement: Any
    d_in: Any
    order: float | None = None

    def __call__(self, distance: float) -> Claim:
        d_in, measure = self._at(distance), str(self.measurement.output_measure)
        if self.order is not None and measure != "RenyiDivergence":
            raise ClaimError(
                f"order={self.order!r} applies to a Rényi divergence, and the measurement's measure is {measure}; omit "
                "order.",
                order=self.order,
            )
        try:
            d_out = self.measurement.map(d_in)
        except Exception as error:  # TypeError, OpenDPException, or any exception of a map written in Python
            raise ClaimError(
                f"the measurement's map({d_in!r}) raised {type(error).__name__}: {' '.join(str(error).split())}; give "
                f"d_in in the units of {self.measurement.input_metric}.",
                d_in=d_in,
            ) from error
        try:
            return claim_of(measure, d_out, self.order)
        except ClaimError as error:
            raise ClaimError(f"map({d_in!r}) under {measure} is not a claim: {error}", **error.facts) from error

    def _at(self, distance: float) -> Any:
        """Return `d_in` times the distance, in the metric's own type."""
        if not isinstance(self.d_in, (int, float)):
            if distance == 1:
                return self.d_in
            raise ClaimError(
                f"d_in={self.d_in!r} cannot be multiplied by the distance {distance:g}; pass the d_in of that "
                "distance, and distance=1.",
                d_in=self.d_in,
                distance=distance,
            )
        found = self.d_in * distance
        if not str(self.measurement.input_distance_type).startswith(("i", "u")):
            return float(found)
        if found != int(found):
            raise ClaimError(
                f"the distance {found:g} is not whole; use a whole number for {self.measurement.input_metric}.",
                distance=found,
            )
        return int(found)


def claim_of(measure: str, d_out: Any, order: float | None = None) -> Claim:
    """Return the claim for a distance under a measure; if no claim type states all of it, the implied privacy profile.

    Parameters
    ----------
    measure : str
        The measure as OpenDP prints it, such as ``MaxDivergence`` or ``Approximate(ZeroConcentratedDivergence)``.
    d_out : Any
        The value of the map.
    order : float, optional
        For a Rényi curve, the order to audit; by default the claim is the privacy profile that all orders together
        imply.

    Raises
    ------
    ClaimError
        If the measure is unknown, or the distance claims nothing.

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
        # (ε, δ')-close given events of probability ≥ 1 − δ each, so (ε, δ' + δ)-close unconditionally.
        return _profile(_delta_of(inner, distance), delta)
    if measure == "MaxDivergence":
        return PureDP(d_out)
    if measure == "ZeroConcentratedDivergence":
        return ZeroConcentratedDP(d_out)
    if measure == "FixedSmoothedMaxDivergence":
        return ApproxDP(*d_out)
    if measure == "RenyiDivergence" and order is not None:
        return RenyiDP(order, _divergence(d_out, order))
    return _profile(_delta_of(measure, d_out))


def _delta_of(measure: str, distance: Any) -> Callable[[float], float]:
    """Return the delta that a distance under a measure allows, as a function of epsilon."""
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
    """Return the value of a Rényi curve at an order."""
    try:
        return curve(order)
    except Exception as error:  # OpenDPException, or any exception of a curve written in Python
        raise ClaimError(
            f"the Rényi curve raised {type(error).__name__} at order {order:g}; pass order=, an order at "
            "which the curve holds.",
            order=order,
        ) from error


def _divergences(curve: Callable[[float], float]) -> Array:
    """Return a Rényi curve at all orders; infinite beyond the first order, on either side, at which it raises.

    An exception takes the library about 70 ms, so not every order is tried.
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
            f"the Rényi curve has no finite value at orders from {_ORDERS[0]:g} to {_ORDERS[-1]:.3g}; pass order=, an "
            "order at which the curve holds."
        )
    for places in (range(start + 1, len(_ORDERS)), range(start - 1, -1, -1)):
        for place in places:
            if not holds(place):
                break
    return found


def _renyi_delta(divergences: Array, epsilon: float) -> float:
    """Return the smallest delta that divergences at the orders allow at an epsilon.

    Canonne, Kamath & Steinke (2020), The discrete Gaussian for differential privacy, Proposition 7.
    """
    exponent = (_ORDERS - 1) * (divergences - epsilon) - np.log(_ORDERS - 1) + _ORDERS * np.log1p(-1 / _ORDERS)
    return float(np.exp(min(exponent.min(), 0.0)))


def _profile(delta_at: Callable[[float], float], extra: float = 0.0) -> PrivacyProfile:
    """Return the privacy profile of a function from epsilon to delta, raised by `extra`."""
    return PrivacyProfile.from_pld(SimpleNamespace(get_delta_for_epsilon=lambda epsilon: delta_at(epsilon) + extra))
