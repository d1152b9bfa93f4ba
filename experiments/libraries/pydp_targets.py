"""Mechanisms, aggregates and partition strategies of PyDP."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...audit.datasets.domains import Answers, Rows
from ...mechanisms.adapters import from_pydp
from .target import Subject

_UNIT = {"lower_bound": 0.0, "upper_bound": 1.0, "dtype": "float"}


def pydp_subjects() -> list[Subject]:
    """Return mechanisms, aggregates and partition strategies whose pairs the search finds."""
    answers, whole_answers = Answers(low=0.0, high=2.0), Answers(low=0, high=4, integer=True)
    rows = Rows(low=-0.5, high=1.5)
    whole = Rows(low=0, high=3, integer=True)
    users = Answers(low=0, high=12, integer=True)
    laplace, sums = _noise("LaplaceMechanism", 1.0, 1.0), {"lower_bound": 0, "upper_bound": 2, "dtype": "int"}
    found: list[tuple[str, Callable[[], Any], Any, int]] = [
        ("LaplaceMechanism", laplace, answers, 50_000),
        ("LaplaceMechanism, int", laplace, whole_answers, 50_000),
        ("GaussianMechanism", _noise("GaussianMechanism", 1.0, 0.1, 1.0), answers, 50_000),
        ("Count", _aggregate("Count"), whole, 50_000),
        ("BoundedSum", _aggregate("BoundedSum", **_UNIT), rows, 50_000),
        ("BoundedSum, int", _aggregate("BoundedSum", **sums), whole, 50_000),
    ]
    moments = ("BoundedMean", "BoundedVariance", "BoundedStandardDeviation")
    found += [(name, _aggregate(name, **_UNIT), rows, 20_000) for name in moments]
    found += [(name, _aggregate(name, **_UNIT), rows, 10_000) for name in ("Max", "Min", "Median")]
    kinds = ("laplace", "gaussian", "truncated_geometric")
    found += [(f"partitions, {kind}", _strategy(kind), users, 50_000) for kind in kinds]
    return [Subject(name=name, make=make, domain=domain, runs=runs) for name, make, domain, runs in found]


def _noise(name: str, *arguments: float) -> Callable[[], Any]:
    return lambda: from_pydp(lambda: getattr(import_module("pydp.algorithms.numerical_mechanisms"), name)(*arguments))


def _aggregate(name: str, **options: Any) -> Callable[[], Any]:
    return lambda: from_pydp(lambda: getattr(import_module("pydp.algorithms.laplacian"), name)(epsilon=1.0, **options))


def _strategy(kind: str) -> Callable[[], Any]:
    def made() -> Any:
        return import_module("pydp.algorithms.partition_selection").create_partition_strategy(kind, 1.0, 0.01, 1)

    return lambda: from_pydp(made)
