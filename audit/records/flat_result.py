"""A result as a flat dict of numbers and strings."""

from __future__ import annotations

from typing import Any

from ..results.equivalence_result import EquivalenceResult
from .suite import Checked, Entry, Scalar, Suite, rows

_OF_A_SUITE = ("name", "experiment", "expected", "is_met", "exact", "accepted", "adjusted_p_value")
_OF_VERSIONS = ("old", "new", "dataset", "margin", "lower", "upper", "estimate", "scope", "alpha", "runs", "seed")


def flat(result: Checked | EquivalenceResult) -> dict[str, Scalar]:
    """Return the values of `Suite.to_frame` that the result has, or those of a comparison of two versions.

    Examples
    --------
    >>> from dpaudit import check
    >>> def noisy(value, size, rng):
    ...     return value + rng.laplace(size=size)
    >>> found = flat(check(noisy, 0, 1, claim=0.5, runs=10_000))
    >>> found["verdict"], found["claimed_strength"], found["bound"] > 0.8
    ('refuted', 0.5, True)
    """
    if isinstance(result, EquivalenceResult):
        own: dict[str, Any] = {name: getattr(result, name) for name in _OF_VERSIONS}
        return {"verdict": result.verdict.value, **own, "event": result.event_in_words}
    (row,) = rows(Suite(title="", entries=(Entry(name="", result=result),)))
    return {name: value for name, value in row.items() if value is not None and name not in _OF_A_SUITE}
