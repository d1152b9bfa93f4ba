"""Cases of test sessions with the pytest plugin: thirty correct mechanisms and twenty planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....audit.procedures.check_equivalence import check_same_distribution
from ....mechanisms import GeometricMechanism, LaplaceMechanism
from ...catalogue.entries import entries
from ...catalogue.fault import Fault
from ..inference.known_pairs import subjects

BUGS = (
    "sensitivity-understated",
    "replace-half-sensitivity",
    "scale-epsilon",
    "deviation-as-scale",
    "best-of-draws",
    "noise-one-sided",
    "redrawn-until-nonnegative",
    "seed-from-the-data",
    "ratio-squared",
    "clamped-to-the-rows",
    "variance-as-deviation",
    "domain-not-clipped",
    "rho-for-epsilon",
    "clipped-by-the-layer",
    "exponential-without-two",
    "noisy-max-without-two",
    "sparse-vector-no-query-noise",
    "truth-among-the-lies",
    "histogram-for-replaced-rows",
    "none-for-small-groups",
)
"""Faults of the catalogue from every family that audits of a hundred thousand runs can cover."""
_TWINS = 17  # bugs whose correct versions are audited
# The best events are rare, so that audits with few runs are inconclusive.
_RARE, _MORE_RUNS = {"exponential", "gaussian-0.001", "exponential-without-two", "histogram-for-replaced-rows"}, 10_000
_SLOW = {"clipped-by-the-layer"}  # vector outputs
_FIXED = ("laplace",)
Case = Callable[[Any], Any]
"""Function that makes one audit with the fixture."""


def bugs() -> dict[str, Case]:
    """Return the twenty planted bugs by name."""
    known = {fault.name: fault for fault in entries()}
    return {name: _of_fault(known[name], "mechanism") for name in BUGS}


def right() -> dict[str, Case]:
    """Return thirty audits of true claims, most with equality, that cover every way to call the fixture."""
    cases: dict[str, Case] = {}
    for subject in subjects():
        pair = subject.mechanism, subject.x, subject.y
        more = {"runs": _MORE_RUNS} if subject.name in _RARE else {}
        cases[f"{subject.name}, sequential"] = _of_pair(*pair, claim=subject.claim, bits=False, **more)
        if subject.name in _FIXED:
            cases[f"{subject.name}, fixed size"] = _of_pair(*pair, claim=subject.claim, bits=False, sequential=False)
    twins = [fault for fault in entries() if fault.name in {*BUGS} - _SLOW - _RARE and fault.correct is not None]
    for fault in twins[:_TWINS]:
        cases[f"correct twin of {fault.name}"] = _of_fault(fault, "correct")
    laplace, geometric = LaplaceMechanism(1.0), GeometricMechanism(1.0)
    cases["laplace at half of its claim"] = _of_pair(LaplaceMechanism(0.5), 0.0, 1.0, claim=laplace.claim, bits=False)
    cases["geometric at half of its claim"] = _of_pair(GeometricMechanism(0.5), 0, 1, claim=geometric.claim, bits=False)
    cases["laplace, pair searched"] = _searched(laplace, [(0.0, 1.0), (1.0, 0.0)])
    cases["geometric, pair searched"] = _searched(geometric, [(0, 1), (1, 0)])
    cases["laplace, same distribution"] = _compared(laplace)
    return cases


def _of_pair(mechanism: Any, x: Any, y: Any, **options: Any) -> Case:
    return lambda dp_audit: dp_audit(mechanism, x, y, **options)


def _of_fault(fault: Fault, which: str) -> Case:
    return _of_pair(
        getattr(fault, which),
        fault.x,
        fault.y,
        claim=fault.claim,
        adjacency=fault.adjacency,
        distance=fault.distance,
        bits=fault.bits,
    )


def _searched(mechanism: Any, pairs: list[Any]) -> Case:
    claim = mechanism.claim
    return lambda dp_audit: dp_audit(mechanism, neighbours=pairs, claim=claim, search_runs=800, bits=False)


def _compared(mechanism: Any) -> Case:
    return lambda dp_audit: dp_audit.check(check_same_distribution, mechanism, mechanism, 0, bits=False)
