"""Mechanisms, tools and models of diffprivlib, kept apart because each library has a module of forms."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...audit.datasets.adjacency import AddRemove, Adjacency, Local, Replace, Within
from ...audit.datasets.domains import Answers, Domain, Rows, Values
from ...mechanisms.adapters import from_diffprivlib, from_diffprivlib_tool
from ...mechanisms.adapters.opendp import Monotonic
from ..libraries.defects import defects
from ..libraries.subjects import diffprivlib_fits, diffprivlib_subjects
from .audited_library import (
    LOW_BITS,
    Form,
    NotCovered,
    PublicCallable,
    Target,
    parameters_of,
    public_callables,
    required_of,
    targets_of,
)

_NUMERIC = {"epsilon", "delta", "sensitivity", "lower", "upper"}
_GRID: tuple[dict[str, Any], ...] = (
    {"epsilon": 1.0, "delta": 0.01, "sensitivity": 1.0, "lower": 0.0, "upper": 2.0},
    {"epsilon": 0.25, "delta": 0.1, "sensitivity": 2.0, "lower": -1.0, "upper": 5.0},
    {"epsilon": 3.0, "delta": 0.01, "sensitivity": 0.5, "lower": 9.0, "upper": 10.0},
)
_RELAXED = {"epsilon": 1.0, "delta": 0.1, "sensitivity": 1.0, "lower": 0.0, "upper": 2.0}
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
_ANSWERS_ASSUMED = "Neighbours are assumed from the signature: answers within the sensitivity."


def diffprivlib_public() -> tuple[PublicCallable, ...]:
    """Return the public mechanisms, tools and models."""
    return public_callables("diffprivlib", ("mechanisms", "tools", "models"))


def diffprivlib_form(public: PublicCallable) -> Form:
    """Return the targets of a mechanism, a tool or a model."""
    match public.name.partition(".")[0]:
        case "mechanisms" if not hasattr(public.function, "randomise"):
            return NotCovered("it is a part of mechanisms, not a mechanism")
        case "mechanisms" if inspect.isabstract(public.function):
            return NotCovered("it is an abstract base class")
        case "mechanisms":
            return _mechanism_form(public)
        case "tools":
            return _tool_form(public)
        case _:
            return _model_form(public)


def _mechanism_form(public: PublicCallable) -> Form:
    """Return the targets of a class of mechanisms, by the parameters that it requires."""
    required, known = required_of(public.function), set(parameters_of(public.function))
    if public.short in ("Bingham", "Vector"):
        (one,) = (subject for subject in diffprivlib_subjects() if subject.name == public.short)
        return targets_of(public, [("epsilon=1", one.make, (one.pair,))], runs=one.runs, cost=4)
    if required == {"epsilon", "value0", "value1"}:
        return _of_values(public, ("a", "b"), value0="a", value1="b")
    if required == {"epsilon", "utility_list"}:
        return _of_values(public, ("a", "b", "c"), utility_list=[["a", "b", 1.0], ["a", "c", 2.0], ["b", "c", 2.0]])
    if required == {"epsilon", "hierarchy"}:
        return _of_values(public, ("a", "b", "c", "d"), hierarchy=[["a", "b"], ["c", "d"]])
    if required == {"epsilon", "sensitivity", "utility"}:
        return _of_utilities(public, "monotonic" in known)
    if required and required <= _NUMERIC and "sensitivity" in known:
        return _of_numbers(public, required, known)
    return NotCovered(f"its required parameters ({', '.join(sorted(required)) or 'none'}) fit no known template")


def _note(public: PublicCallable) -> str:
    return "" if public.short in _REVIEWED else _ANSWERS_ASSUMED


def _of_numbers(public: PublicCallable, required: set[str], known: set[str]) -> Form:
    points = [{name: value for name, value in point.items() if name in required | {"sensitivity"}} for point in _GRID]
    if "delta" in known - required:
        wanted = required | {"sensitivity", "delta"}
        points.append({name: value for name, value in _RELAXED.items() if name in wanted})
    kind = _kind_of_value(public.function, points[0])
    if kind is None:
        return NotCovered("it randomises neither floating-point numbers nor integers")

    def made(point: dict[str, Any]) -> tuple[str, Callable[[], Any], Answers]:
        options = {name: _whole(name, value) if kind is int else value for name, value in point.items()}
        sensitivity = options["sensitivity"]
        low = options.get("lower", 0) - (sensitivity if "lower" in options else 0)
        high = options["upper"] + sensitivity if "upper" in options else low + 2 * sensitivity
        make = _maker(public.function, options, Within("l1", float(sensitivity)))
        return _words(options), make, Answers(low=low, high=high, integer=kind is int)

    bits, cost = LOW_BITS if public.short in _CONTINUOUS else "", _SLOW.get(public.short, 1)
    return targets_of(public, map(made, points), runs=20_000, cost=cost, known_bits=bits, note=_note(public))


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


def _of_values(public: PublicCallable, values: tuple[str, ...], **options: Any) -> Form:
    points = [
        (f"epsilon={epsilon:g}", _maker(public.function, {"epsilon": epsilon, **options}, Local()), Values(values))
        for epsilon in (1.0, 0.25, 3.0)
    ]
    return targets_of(public, points, note=_note(public))


def _of_utilities(public: PublicCallable, has_monotonic: bool) -> Form:
    points = []
    for epsilon, sensitivity, monotonic in ((1.0, 1.0, False), (1.0, 1.0, True), (3.0, 0.5, False)):
        if monotonic and not has_monotonic:
            continue
        options = {"epsilon": epsilon, "sensitivity": sensitivity, **({"monotonic": True} if monotonic else {})}
        make = _choice(public.function, options, (Monotonic if monotonic else Within)("linf", sensitivity))
        points.append((_words(options), make, Answers(n_answers=3, low=0.0, high=2.0 * sensitivity)))
    return targets_of(public, points, note=_note(public))


def _maker(function: Any, options: dict[str, Any], adjacency: Adjacency) -> Callable[[], Any]:
    return lambda: from_diffprivlib(function(**options), adjacency=adjacency)


def _choice(function: Any, options: dict[str, Any], adjacency: Adjacency) -> Callable[[], Any]:
    def of_utilities(utilities: Sequence[float]) -> Any:
        return function(utility=list(utilities), **options)

    return lambda: from_diffprivlib(of_utilities, adjacency=adjacency, example=[0.0, 0.0])


def _words(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value:g}" if not isinstance(value, bool) else name for name, value in options.items())


_DATA = {"array", "sample", "array_x", "array_y"}
_REPLACED = {"mean", "var", "std", "sum", "nanmean", "nanvar", "nanstd", "nansum", "count_nonzero"}
_ADDED = {"histogram", "histogram2d", "histogramdd", "median", "quantile", "percentile"}
_ASSUMED = "The neighbours of this tool are not known; refuted means refuted for added and for replaced rows."
_OF_TOOLS: dict[str, Any] = {"runs": 10_000, "search_runs": 1_000, "cost": 2}
_OF_MODELS: dict[str, Any] = {"runs": 1_500, "search_runs": 600, "cost": 5}
_LINE = Rows(low=-0.5, high=1.5, least=1)  # beyond the bounds, to which tools clip
_PLANE = Rows(low=(0.0, 0.0), high=(1.0, 1.0), least=1)
_WHOLE = Rows(low=0, high=3, integer=True, least=1)
_LARGE = 2.0**52
_BITS = "floating-point leak of the continuous noise of its mechanisms"
_Point = tuple[str, Domain, dict[str, Any]]


def _tool_form(public: PublicCallable) -> Form:
    """Return the targets of a function of tools, by its parameters."""
    known, required = set(parameters_of(public.function)), required_of(public.function)
    data = _DATA & known
    rest = required - data - {"quant", "percent"}
    if not data or "epsilon" not in known or "accountant" not in known or rest:
        words = ", ".join(sorted(rest)) or "no data, epsilon or accountant"
        return NotCovered(f"its parameters fit no known template ({words})")
    points: Iterable[_Point] = [
        ("rows from 0 to 3", _WHOLE, {}), ("rows from 0 to 3, epsilon=0.5", _WHOLE, {"epsilon": 0.5})
    ]  # fmt: skip
    if "bins" in known:
        points = _histograms(known)
    elif "bounds" in known:
        points = _bounded(known, required)
    adjacencies = _neighbours(public.short)
    shared = {**_OF_TOOLS, "adjacencies": adjacencies, "note": "" if len(adjacencies) == 1 else _ASSUMED}
    targets = [
        _target(
            public, words, _tool(public.function, domain, adjacencies[0], options), domain,
            _known_of(public.short, options), **shared,
        )
        for words, domain, options in points
    ]  # fmt: skip
    targets += _found(public, {**_OF_TOOLS, "search_runs": 2_000})
    return tuple({target.name: target for target in targets}.values())


def _model_form(public: PublicCallable) -> Form:
    """Return the fits of a model that this project knows, and the defects of it."""
    targets = [
        _target(public, fit.name.partition(", ")[2], fit.make, fit.domain, _KNOWN_FITS.get(fit.name, ""), **_OF_MODELS)
        for fit in diffprivlib_fits()
        if fit.name.partition(",")[0] == public.short and not fit.name.endswith("a row is replaced")
    ]  # trees are for added rows: a replaced one costs twice, which is not a defect
    found = (*targets, *_found(public, _OF_MODELS))
    return found or NotCovered("no template says which part of the fitted model is released, and for which rows")


def _target(
    public: PublicCallable, point: str, make: Callable[[], Any], domain: Any, known: str, **shared: Any
) -> Target:
    """Return a target on rows, whose search is guided by replays."""
    options = {"guide": "replay", "known": known, "known_bits": _BITS, **shared}
    return Target(callable=public.name, point=point, make=make, domain=domain, **options)


_KNOWN_FITS = {
    "LinearRegression, x near 0": "the lower bound of x is used for both bounds",
    "LinearRegression, x from -1 to 1, with intercept": "the means spend epsilon again",
    "LogisticRegression, rows of norm 30, labels change": "rows longer than 1",
    "GaussianNB, x near 0, labels change": "a changed label changes two classes",
    "GaussianNB, x far from 0, labels change": "sums of a class with bounds far from 0",
    "GaussianNB, x below 0, labels change": "sums of a class with bounds far from 0",
    "GaussianNB, a class may be empty": "classes that few rows have",
}
_DEFECTS = {
    "LinearRegression": "the lower bound of x is used for both bounds",
    "LogisticRegression": "rows longer than 1",
    "nanmean": "rows of NaN are counted",
    "nanvar": "rows of NaN are counted",
    "nanstd": "rows of NaN are counted",
    "nansum": "NaN counts as 0, which the bounds exclude",
    "sum": "sums of large numbers are rounded",
    "GaussianNB": "classes and sums of a class",
    "KMeans": "a cluster without rows keeps its start",
    "mean": "mean with dtype=int is cut to a whole number",
}


def _known_of(tool: str, options: dict[str, Any]) -> str:
    if tool == "mean" and options.get("dtype") is int:
        return _DEFECTS["mean"]
    is_large = options.get("bounds") == (_LARGE, _LARGE + 1)
    return _DEFECTS["sum"] if is_large and tool in ("sum", "nansum", "mean", "nanmean") else ""


def _found(public: PublicCallable, shared: dict[str, Any]) -> Iterator[Target]:
    """Yield the defects of a callable that searches found, and their variants."""
    for defect in defects():
        if defect.library != "diffprivlib" or defect.by != "values" or defect.name.partition(",")[0] != public.short:
            continue
        words = defect.name.partition(", ")[2]
        for subject, known in ((defect.broken, _DEFECTS[public.short]), (defect.variant, "")):
            point = f"{words}: {subject.name}" if words else subject.name
            runs = max(min(subject.runs, _OF_TOOLS["runs"]), shared["runs"])
            options = {**shared, "runs": runs, "adjacencies": (subject.adjacency,)}
            yield _target(public, point, subject.make, subject.domain, known, **options)


def _neighbours(tool: str) -> tuple[Adjacency, ...]:
    if tool in _REPLACED:
        return (Replace(),)
    return (AddRemove(),) if tool in _ADDED else (Replace(), AddRemove())


def _bounded(known: set[str], required: set[str]) -> Iterator[_Point]:
    ranks = {name: at for name, at in (("quant", 0.25), ("percent", 90)) if name in required}
    unit: dict[str, Any] = {"bounds": (0.0, 1.0), **ranks}
    below = {**unit, "bounds": (-10.0, -9.0), "epsilon": 0.5}
    yield "bounds 0 and 1, rows beyond them", _LINE, unit
    yield "bounds 9 and 10", Rows(low=9.0, high=10.0, least=1), {**unit, "bounds": (9.0, 10.0)}
    yield "bounds -10 and -9, epsilon=0.5", Rows(low=-10.0, high=-9.0, least=1), below
    if "axis" in known:
        yield "axis=0", _PLANE, {**unit, "axis": 0}
    if "keepdims" in known:
        yield "keepdims", _LINE, {**unit, "keepdims": True}
    if "quant" in required:
        yield "quant of two", Rows(low=0.0, high=1.0, least=1), {**unit, "quant": [0.25, 0.75]}
    if "dtype" in known:
        yield "dtype=float, whole rows", _WHOLE, {**unit, "dtype": float, "bounds": (0, 3)}
        yield "dtype=int, whole rows", _WHOLE, {**unit, "dtype": int, "bounds": (0, 3)}
        large = Rows(values=(_LARGE, _LARGE + 1), least=1)
        yield "bounds 2⁵² and 2⁵² + 1", large, {**unit, "bounds": (_LARGE, _LARGE + 1)}


def _histograms(known: set[str]) -> Iterator[_Point]:
    if "array_y" in known:
        yield "3 by 3 bins", _PLANE, {"bins": 3, "range": [(0.0, 1.0)] * 2}
        return
    line: dict[str, Any] = {"bins": 4, "range": (0.0, 1.0)}
    yield "4 bins", _LINE, line
    if "density" in known:
        yield "4 bins, density", _LINE, {**line, "density": True}
    yield "4 bins, epsilon=0.5", _LINE, {**line, "epsilon": 0.5}


def _tool(function: Any, domain: Any, adjacency: Adjacency, options: dict[str, Any]) -> Callable[[], Any]:
    """Return the maker of a tool on rows; a tool of two arrays gets the columns, and a histogram returns its counts."""
    known = parameters_of(function)
    is_of_two, is_of_many = "array_y" in known, function.__name__ == "histogramdd"

    def applied(rows: Any, **given: Any) -> Any:
        table = np.asarray(rows)
        if is_of_two:
            return function(table[:, 0], table[:, 1], **given)
        return function(table[:, None] if is_of_many and table.ndim == 1 else table, **given)

    def make() -> Any:
        corners = domain.corners()
        given = dict(options)
        if is_of_many:
            given["range"] = [given["range"]]
        return from_diffprivlib_tool(
            applied,
            example=[corners[0], corners[-1]],
            adjacency=adjacency,
            output=(lambda found: found[0]) if "bins" in known else None,
            **{"epsilon": 1.0, **given},
        )

    return make
