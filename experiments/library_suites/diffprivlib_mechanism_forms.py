"""Mechanisms of diffprivlib by the parameters of their constructors, at several points each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...audit.datasets.adjacency import Adjacency, Local, Within
from ...audit.datasets.domains import Answers, Values
from ...mechanisms.adapters import from_diffprivlib
from ...mechanisms.adapters.opendp_neighbours import Monotonic
from ..libraries.diffprivlib_targets import diffprivlib_subjects
from .audited_library import Form, NotCovered, PublicCallable, Target
from .known_defects import LOW_BITS, known_in
from .public_callables import parameters_of, required_of

_NUMERIC = {"epsilon", "delta", "sensitivity", "lower", "upper"}
_GRID: tuple[dict[str, Any], ...] = (
    {"epsilon": 1.0, "delta": 0.01, "sensitivity": 1.0, "lower": 0.0, "upper": 2.0},
    {"epsilon": 0.25, "delta": 0.1, "sensitivity": 2.0, "lower": -1.0, "upper": 5.0},
    {"epsilon": 3.0, "delta": 0.01, "sensitivity": 0.5, "lower": 9.0, "upper": 10.0},
)
_RELAXED = {"epsilon": 1.0, "delta": 0.1, "sensitivity": 1.0, "lower": 0.0, "upper": 2.0}
_EPSILONS = (1.0, 0.25, 3.0)
_REVIEWED = {
    "Gaussian", "GaussianAnalytic", "GaussianDiscrete", "Geometric", "GeometricFolded", "GeometricTruncated", "Laplace",
    "LaplaceBoundedDomain", "LaplaceBoundedNoise", "LaplaceFolded", "LaplaceTruncated", "Snapping", "Staircase",
    "Uniform", "Exponential", "PermuteAndFlip", "Binary", "ExponentialCategorical", "ExponentialHierarchical",
}  # fmt: skip
_CONTINUOUS = {
    "Laplace", "LaplaceTruncated", "LaplaceFolded", "LaplaceBoundedDomain", "LaplaceBoundedNoise", "Staircase",
    "Gaussian", "GaussianAnalytic",
}  # fmt: skip
_SLOW = {"GeometricFolded": 3, "LaplaceBoundedDomain": 2}
_ASSUMED = "Neighbours are assumed from the signature: answers within the sensitivity."


def mechanism_form(public: PublicCallable) -> Form:
    """Return the targets of a class of mechanisms, by the parameters that it requires."""
    required, known = required_of(public.function), set(parameters_of(public.function))
    special = [subject for subject in diffprivlib_subjects() if subject.name == public.short in ("Bingham", "Vector")]
    if special:
        return tuple(
            Target(callable=public.name, point="epsilon=1", make=one.make, domain=(one.pair,), runs=one.runs, cost=4)
            for one in special
        )
    if required == {"epsilon", "value0", "value1"}:
        return _of_values(public, ("a", "b"), lambda: {"value0": "a", "value1": "b"})
    if required == {"epsilon", "utility_list"}:
        pairs = [["a", "b", 1.0], ["a", "c", 2.0], ["b", "c", 2.0]]
        return _of_values(public, ("a", "b", "c"), lambda: {"utility_list": pairs})
    if required == {"epsilon", "hierarchy"}:
        return _of_values(public, ("a", "b", "c", "d"), lambda: {"hierarchy": [["a", "b"], ["c", "d"]]})
    if required == {"epsilon", "sensitivity", "utility"}:
        return tuple(_of_utilities(public, "monotonic" in known))
    if required and required <= _NUMERIC and "sensitivity" in known:
        return _of_numbers(public, required, known)
    return NotCovered(f"its required parameters ({', '.join(sorted(required)) or 'none'}) fit no known form")


def _note(public: PublicCallable) -> str:
    return "" if public.short in _REVIEWED else _ASSUMED


def _of_numbers(public: PublicCallable, required: set[str], known: set[str]) -> Form:
    points = [{name: value for name, value in point.items() if name in required | {"sensitivity"}} for point in _GRID]
    if "delta" in known - required:
        wanted = required | {"sensitivity", "delta"}
        points.append({name: value for name, value in _RELAXED.items() if name in wanted})
    kind = _kind_of_value(public.function, points[0])
    if kind is None:
        return NotCovered("it randomises neither floating-point numbers nor integers")
    bits = known_in("diffprivlib", LOW_BITS if public.short in _CONTINUOUS else "")

    def target(point: dict[str, Any]) -> Target:
        options = {name: _whole(name, value) if kind is int else value for name, value in point.items()}
        sensitivity = options["sensitivity"]
        low = options.get("lower", 0) - (sensitivity if "lower" in options else 0)
        high = options["upper"] + sensitivity if "upper" in options else low + 2 * sensitivity
        return Target(
            callable=public.name,
            point=_words(options),
            make=_maker(public.function, options, Within("l1", float(sensitivity))),
            domain=Answers(low=low, high=high, integer=kind is int),
            runs=20_000,
            cost=_SLOW.get(public.short, 1),
            known_bits=bits,
            note=_note(public),
        )

    return tuple({one.point: one for one in map(target, points)}.values())


def _whole(name: str, value: float) -> float | int:
    """Return a parameter of a mechanism on integers: bounds and sensitivity are whole."""
    return max(round(value), 1) if name == "sensitivity" else round(value) if name in ("lower", "upper") else value


def _kind_of_value(function: Any, point: dict[str, Any]) -> type | None:
    """Return float or int, whichever the mechanism randomises; None if it refuses both."""
    for kind, value in ((float, 0.5), (int, 1)):
        options = {name: _whole(name, each) if kind is int else each for name, each in point.items()}
        try:
            function(**options).randomise(value)
        except (TypeError, ValueError):  # how the library refuses a value
            continue
        return kind
    return None


def _of_values(public: PublicCallable, values: Sequence[str], options: Callable[[], dict[str, Any]]) -> Form:
    return tuple(
        Target(
            callable=public.name,
            point=f"epsilon={epsilon:g}",
            make=_maker(public.function, {"epsilon": epsilon, **options()}, Local()),
            domain=Values(tuple(values)),
            note=_note(public),
        )
        for epsilon in _EPSILONS
    )


def _of_utilities(public: PublicCallable, has_monotonic: bool) -> Iterator[Target]:
    for epsilon, sensitivity, monotonic in ((1.0, 1.0, False), (1.0, 1.0, True), (3.0, 0.5, False)):
        if monotonic and not has_monotonic:
            continue
        options = {"epsilon": epsilon, "sensitivity": sensitivity, **({"monotonic": True} if monotonic else {})}
        adjacency = (Monotonic if monotonic else Within)("linf", sensitivity)
        yield Target(
            callable=public.name,
            point=_words(options),
            make=_choice(public.function, options, adjacency),
            domain=Answers(n_answers=3, low=0.0, high=2.0 * sensitivity),
            note=_note(public),
        )


def _maker(function: Any, options: dict[str, Any], adjacency: Adjacency) -> Callable[[], Any]:
    return lambda: from_diffprivlib(function(**options), adjacency=adjacency)


def _choice(function: Any, options: dict[str, Any], adjacency: Adjacency) -> Callable[[], Any]:
    def of_utilities(utilities: Sequence[float]) -> Any:
        return function(utility=list(utilities), **options)

    return lambda: from_diffprivlib(of_utilities, adjacency=adjacency, example=[0.0, 0.0])


def _words(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value:g}" if not isinstance(value, bool) else name for name, value in options.items())
