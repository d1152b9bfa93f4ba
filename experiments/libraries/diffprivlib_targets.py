"""The 21 mechanisms of diffprivlib at epsilon 1, on pairs at the largest distance that each allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ...audit.datasets.adjacency import Adjacency, Local, Within
from ...mechanisms.adapters import from_diffprivlib
from .target import Subject

_STEP, _UTILITIES = Within("l1", 1.0), Within("linf", 1.0)
_DELTA = 0.1


def diffprivlib_subjects() -> list[Subject]:
    """Return mechanisms on numbers, on words, on utilities, and slow ones that use rejection sampling."""
    delta, up_to_2, reals, whole = {"delta": _DELTA}, {"lower": 0.0, "upper": 2.0}, (0.0, 1.0), (0, 1)
    distances = [["a", "b", 1.0], ["a", "c", 2.0], ["b", "c", 2.0]]
    on_numbers: list[tuple[str, dict[str, Any], Any, int]] = [
        ("Laplace", {}, reals, 100_000),
        ("LaplaceTruncated", up_to_2, reals, 100_000),
        ("LaplaceFolded", up_to_2, reals, 100_000),
        ("LaplaceBoundedDomain", up_to_2, reals, 50_000),
        ("LaplaceBoundedNoise", delta, reals, 50_000),
        ("Gaussian", {"delta": 0.01}, reals, 100_000),
        ("GaussianAnalytic", delta, reals, 100_000),
        ("Snapping", {"lower": -10.0, "upper": 10.0}, reals, 50_000),
        ("Staircase", {}, reals, 100_000),
        ("Geometric", {}, whole, 100_000),
        ("GeometricTruncated", {"lower": 0, "upper": 2}, whole, 100_000),
        ("GaussianDiscrete", delta, whole, 100_000),
        ("GeometricFolded", {"lower": 0, "upper": 2}, whole, 20_000),
    ]
    on_words: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
        ("Binary", {"value0": "a", "value1": "b"}, ("a", "b")),
        ("ExponentialCategorical", {"utility_list": distances}, ("a", "c")),
        ("ExponentialHierarchical", {"hierarchy": [["a", "b"], ["c", "d"]]}, ("a", "c")),
    ]
    utilities = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0])
    rank_one = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    return [
        *(
            Subject(name=name, pair=pair, runs=runs, make=_mechanism(name, _STEP, sensitivity=1, **options))
            for name, options, pair, runs in on_numbers
        ),
        Subject(name="Uniform", pair=reals, make=lambda: _adapted(_made("Uniform", sensitivity=1.0, **delta), _STEP)),
        *(Subject(name=name, pair=pair, make=_mechanism(name, Local(), **options)) for name, options, pair in on_words),
        *(Subject(name=name, pair=utilities, make=_choice(name)) for name in ("Exponential", "PermuteAndFlip")),
        Subject(name="Bingham", pair=rank_one, make=_bingham, runs=5_000),
        Subject(name="Vector", pair=(1.0, -1.0), make=_vector, runs=5_000),
    ]


def _mechanism(name: str, adjacency: Adjacency, **options: Any) -> Callable[[], Any]:
    return lambda: _adapted(_made(name, epsilon=1.0, **options), adjacency)


def _adapted(mechanism: Any, adjacency: Adjacency, **options: Any) -> Any:
    return from_diffprivlib(mechanism, adjacency=adjacency, **options)


def _made(name: str, **options: Any) -> Any:
    return getattr(import_module("diffprivlib.mechanisms"), name)(**options)


def _choice(name: str) -> Callable[[], Any]:
    def of_utilities(utilities: Sequence[float]) -> Any:
        return _made(name, epsilon=1.0, sensitivity=1.0, utility=list(utilities))

    return lambda: _adapted(of_utilities, _UTILITIES, example=[0.0, 0.0])


def _bingham() -> Any:
    """Return a mechanism on rows of norm 1, under replace; the output is squared, as a direction has no sign."""
    return _adapted(
        _made("Bingham", epsilon=1.0, sensitivity=1.0),
        Within("l2", math.sqrt(2.0)),
        output=lambda direction: float(np.asarray(direction).ravel()[0] ** 2),
    )


def _vector() -> Any:
    """Return a mechanism that releases the private minimiser of a regularised logistic loss of one row."""
    mechanism = _made("Vector", epsilon=1.0, function_sensitivity=0.25, dimension=1)
    return _adapted(mechanism, Within("l1", 2.0), query=_Loss, output=_least)


class _Loss:
    """Logistic loss of a label of 1 or -1 at a weight, and its derivative."""

    def __init__(self, label: float) -> None:
        self.label = label

    def __call__(self, weights: Any) -> tuple[float, Any]:
        margin = self.label * float(weights[0])
        return math.log1p(math.exp(-margin)), np.array([-self.label / (1.0 + math.exp(margin))])


def _least(loss: Callable[[Any], Any]) -> float:
    """Return the minimiser of a strictly convex function of one weight."""
    return float(minimize_scalar(lambda weight: float(np.ravel(loss(np.array([weight]))[0])[0])).x)
