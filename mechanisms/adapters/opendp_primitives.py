"""Invocations of OpenDP measurements for replays: the input, and the loss that the measurement's map states for a move.

OpenDP draws from its own entropy, so the returned value itself is put back. A measurement that returns a queryable is
not recorded, because what its queries return is drawn later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ...audit.claims.claim import Claim
from ...audit.errors import AuditError
from ...audit.replay.laws import Law, same_parameter
from ...audit.replay.registered import Patch
from ...audit.replay.tape import Declared, active_tape
from .library_calls import imported
from .opendp_claims import MapClaim
from .opendp_neighbours import neighbours_under

_NAME = "OpenDP measurement"


class _QueryableError(Exception):
    """The measurement returned a queryable."""

    def __init__(self, queryable: Any) -> None:
        self.queryable = queryable


def opendp_patches() -> Iterator[Patch]:
    """Yield the patch of the function by which every measurement is invoked."""
    core = imported("opendp.core", "opendp")
    yield Patch(core, "measurement_invoke", _recorded(core.measurement_invoke))


def _recorded(original: Callable[..., Any]) -> Callable[..., Any]:
    def measurement_invoke(measurement: Any, arg: Any) -> Any:
        tape = active_tape()
        if tape is None:
            return original(measurement, arg)

        def draw() -> Any:
            found = original(measurement, arg)
            if type(found).__name__ in ("Queryable", "OdometerQueryable"):
                raise _QueryableError(found)
            return found

        try:
            return tape.call(_NAME, lambda: law_of(measurement, arg), draw, lambda: declared_by(measurement, arg))
        except _QueryableError as held:
            tape.note_unseen("an OpenDP queryable draws for itself")
            return held.queryable

    return measurement_invoke


def law_of(measurement: Any, arg: Any) -> Law:
    """Return the input, and what of the measurement can be seen from Python.

    A map in ρ does not say that the noise is Gaussian, so no law of its name is stated.
    """
    held = {
        "input": arg,
        "domain": str(measurement.input_domain),
        "metric": str(measurement.input_metric),
        "measure": str(measurement.output_measure),
        "loss of one step": _loss_of_one(measurement),
    }
    return Law("measurement", held)


def declared_by(measurement: Any, arg: Any) -> Declared | None:
    """Return what the map promises between this input and another one; None if no relation is known for the metric."""
    if neighbours_under(str(measurement.input_metric), 1) is None:
        return Declared(made=measurement)
    return Declared(input=arg, promise=partial(_promised, measurement), made=measurement)


def _promised(measurement: Any, first: Any, second: Any) -> tuple[float, Claim] | None:
    """Return how far two inputs are apart in the measurement's metric, and the claim of its map for that."""
    metric = neighbours_under(str(measurement.input_metric), 1)
    try:
        apart = math.inf if metric is None else metric.distance(first, second)
        if apart == 0.0 and not same_parameter(first, second, is_exact=True):
            return None  # two whole numbers that one double holds, or rows in another order
        return (apart, MapClaim(measurement, _in_its_type(measurement, apart))(1)) if math.isfinite(apart) else None
    except AuditError:  # inputs that the relation cannot compare, or a map that ends
        return None


def _loss_of_one(measurement: Any) -> float | None:
    try:
        return float(measurement.map(_in_its_type(measurement, 1.0)))
    except Exception:  # a map may raise anything, or return a curve
        return None


def _in_its_type(measurement: Any, distance: float) -> Any:
    """Return a distance as the map takes it, rounded up to a whole number where it counts steps."""
    is_whole = str(measurement.input_distance_type).startswith(("i", "u"))
    return math.ceil(distance) if is_whole else float(distance)
