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
    """Return subjects whose pairs the search finds."""
    return [*_mechanisms(), *_aggregates(), *_strategies()]


def _mechanisms() -> list[Subject]:
    answers, whole = Answers(low=0.0, high=2.0), Answers(low=0, high=4, integer=True)
    return [
        Subject(name="LaplaceMechanism", make=_noise("LaplaceMechanism", 1.0, 1.0), domain=answers, runs=50_000),
        Subject(name="LaplaceMechanism, int", make=_noise("LaplaceMechanism", 1.0, 1.0), domain=whole, runs=50_000),
        Subject(name="GaussianMechanism", make=_noise("GaussianMechanism", 1.0, 0.1, 1.0), domain=answers, runs=50_000),
    ]


def _aggregates() -> list[Subject]:
    rows, whole = Rows(low=-0.5, high=1.5), Rows(low=0, high=3, integer=True)
    sums = {"lower_bound": 0, "upper_bound": 2, "dtype": "int"}
    fast, slow, slowest = 50_000, 20_000, 10_000
    return [
        Subject(name="Count", make=_aggregate("Count"), domain=whole, runs=fast),
        Subject(name="BoundedSum", make=_aggregate("BoundedSum", **_UNIT), domain=rows, runs=fast),
        Subject(name="BoundedSum, int", make=_aggregate("BoundedSum", **sums), domain=whole, runs=fast),
        *(
            Subject(name=name, make=_aggregate(name, **_UNIT), domain=rows, runs=slow)
            for name in ("BoundedMean", "BoundedVariance", "BoundedStandardDeviation")
        ),
        *(
            Subject(name=name, make=_aggregate(name, **_UNIT), domain=rows, runs=slowest)
            for name in ("Max", "Min", "Median")
        ),
    ]


def _strategies() -> list[Subject]:
    users = Answers(low=0, high=12, integer=True)
    return [
        Subject(name=f"partitions, {kind}", make=_strategy(kind), domain=users, runs=50_000)
        for kind in ("laplace", "gaussian", "truncated_geometric")
    ]


def _noise(name: str, *arguments: float) -> Callable[[], Any]:
    return lambda: from_pydp(lambda: getattr(import_module("pydp.algorithms.numerical_mechanisms"), name)(*arguments))


def _aggregate(name: str, **options: Any) -> Callable[[], Any]:
    return lambda: from_pydp(lambda: getattr(import_module("pydp.algorithms.laplacian"), name)(epsilon=1.0, **options))


def _strategy(kind: str) -> Callable[[], Any]:
    def made() -> Any:
        return import_module("pydp.algorithms.partition_selection").create_partition_strategy(kind, 1.0, 0.01, 1)

    return lambda: from_pydp(made)
