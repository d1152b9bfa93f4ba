"""The noise primitives of PyDP for replays: `add_noise` of its numerical mechanisms.

What the aggregates of PyDP draw is drawn in C++ and cannot be seen from Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...audit.replay.laws import Law
from ...audit.replay.registered import Patch
from ...audit.replay.tape import Declared, active_tape
from .library_calls import imported


def pydp_patches() -> Iterator[Patch]:
    """Yield the patch of the method that all numerical mechanisms share."""
    kind = imported("pydp.algorithms.numerical_mechanisms", "pydp").NumericalMechanism
    yield Patch(kind, "add_noise", _recorded(kind.add_noise))


def _recorded(original: Callable[..., Any]) -> Callable[..., Any]:
    def add_noise(self: Any, result: Any) -> Any:
        tape = active_tape()
        if tape is None:
            return original(self, result)
        return tape.call(
            type(self).__name__, lambda: law_of(self, result), lambda: original(self, result), lambda: declared_by(self)
        )

    return add_noise


def law_of(mechanism: Any, value: Any) -> Law:
    """Return the law of the noise on a value; that on a whole number is rounded."""
    after = "rounded" if isinstance(value, int) else ""
    if hasattr(mechanism, "diversity"):
        return Law("laplace", {"location": value, "scale": float(mechanism.diversity)}, after=after)
    return Law("normal", {"location": value, "scale": float(mechanism.std)}, after=after)


def declared_by(mechanism: Any) -> Declared:
    """Return the sensitivity and the budget that the mechanism was made with."""
    sensitivity = getattr(mechanism, "sensitivity", None)
    return Declared(
        sensitivity=float(mechanism.l2_sensitivity if sensitivity is None else sensitivity),
        epsilon=float(mechanism.epsilon),
        delta=float(getattr(mechanism, "delta", 0.0)),
    )
