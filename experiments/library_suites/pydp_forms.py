"""Mechanisms, aggregates and quantile trees of PyDP, kept apart because each library has a module of forms."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.datasets.adjacency import AddRemove, Replace, UserLevel, Within
from ...audit.datasets.domains import Answers, Rows
from ...mechanisms.adapters import from_pydp
from .audited_library import (
    Form,
    NotCovered,
    PublicCallable,
    parameters_of,
    public_callables,
    required_of,
    targets_of,
)

_MODULES = (
    *(f"algorithms.{name}" for name in ("laplacian", "numerical_mechanisms", "partition_selection", "quantile_tree")),
    "distributions",
    *(f"ml.{name}" for name in ("mechanisms.base", "mechanisms.geometric", "mechanisms.laplace", "naive_bayes")),
)
_FRACTIONS = Rows(low=-0.5, high=1.5)  # beyond the bounds, to which aggregates clamp
_AGGREGATE = {"epsilon", "percentile", "lower_bound", "upper_bound", "l0_sensitivity", "linf_sensitivity", "dtype"}
_SLOW = {"Max", "Min", "Median", "Percentile"}
_REVIEWED = {"BoundedMean", "BoundedStandardDeviation", "BoundedSum", "BoundedVariance", "Count", *_SLOW}
_ASSUMED = "Neighbours are assumed: one row is added or removed."
_GAUSSIAN_BITS = "floating-point leak of GaussianMechanism"
_INVERSE_BITS = "floating-point leak of LaplaceBoundedDomain"
_ONE_SIDED = "noise that is never negative"


def pydp_public() -> tuple[PublicCallable, ...]:
    """Return the public callables of PyDP without its statistics of noise, such as confidence intervals."""
    return public_callables("pydp", _MODULES)


def pydp_form(public: PublicCallable) -> Form:
    """Return the targets of a callable of PyDP."""
    match public.name.rpartition(".")[0]:
        case "algorithms.laplacian":
            return _aggregate_form(public)
        case "algorithms.numerical_mechanisms":
            return _noise_form(public)
        case "algorithms.partition_selection":
            return _strategy_form(public)
        case "algorithms.quantile_tree":
            return _trees(public) if public.short == "QuantileTree" else NotCovered("its template is unknown")
        case "distributions":
            return NotCovered("it draws noise without a dataset, so that no claim can be read from it")
    function = public.function
    if inspect.isabstract(function) or not (hasattr(function, "randomise") or hasattr(function, "fit")):
        return NotCovered("it is a part of mechanisms, not a mechanism")
    return _bayes_form(public) if hasattr(function, "fit") else _ml_form(public)


def _maker(function: Any, *arguments: Any, **options: Any) -> Callable[[], Any]:
    return lambda: from_pydp(lambda: function(*arguments, **options))


def _aggregate_form(public: PublicCallable) -> Form:
    known, required = set(parameters_of(public.function)), required_of(public.function)
    if "epsilon" not in known or not required <= _AGGREGATE:
        words = ", ".join(sorted(required - _AGGREGATE)) or "no epsilon"
        return NotCovered(f"its parameters fit no known template ({words})")
    at, whole_rows = {"percentile": 0.25} if "percentile" in known else {}, Rows(low=0, high=3, integer=True)
    points: list[tuple[str, dict[str, Any], Rows]] = [("epsilon=1", {}, whole_rows)]
    points += [("epsilon=0.5", {"epsilon": 0.5}, whole_rows)]
    whole: dict[str, Any] = {}
    if "lower_bound" in known:
        unit, far = ({"lower_bound": low, "upper_bound": low + 1.0, "dtype": "float"} for low in (0.0, 9.0))
        whole = {"lower_bound": 0, "upper_bound": 2, "dtype": "int"}
        points = [
            ("bounds 0 and 1, rows beyond them", unit, _FRACTIONS),
            ("whole rows, bounds 0 and 2", whole, whole_rows),
            ("bounds 9 and 10, epsilon=0.5", {**far, "epsilon": 0.5}, Rows(low=9.0, high=10.0)),
        ]
    shared: dict[str, Any] = {"runs": 5_000, "cost": 3} if public.short in _SLOW else {"runs": 50_000}
    shared["note"] = "" if public.short in _REVIEWED else _ASSUMED
    made = [(words, _maker(public.function, **{"epsilon": 1.0, **at, **given}), rows) for words, given, rows in points]
    if "linf_sensitivity" in known and public.short not in _SLOW:
        made.append(_two_rows_of_a_user(public, {"epsilon": 1.0, "linf_sensitivity": 2, **at, **whole}))
    return targets_of(public, made, **shared)


def _two_rows_of_a_user(public: PublicCallable, options: dict[str, Any]) -> tuple[str, Callable[[], Any], Rows]:
    """Return the configuration at which a user has up to two rows, and neighbours differ in a whole user."""

    def make() -> Any:
        return from_pydp(
            lambda: public.function(**options),
            adjacency=UserLevel(0),
            release=lambda held, rows: held.quick_result([value for _, value in rows]),
        )

    rows = Rows(low=(0, 0), high=(3, 2), integer=True, most=6, rows_per_user=2)
    return "two rows of a user, linf_sensitivity=2", make, rows


def _noise_form(public: PublicCallable) -> Form:
    said = _compiled_parameters(public.function)
    if not hasattr(public.function, "add_noise"):
        return NotCovered("it is a statistic of noise, not a mechanism")
    if not said:
        return NotCovered("it is an abstract base class")
    if not {"epsilon", "sensitivity"} <= said or not said <= {"epsilon", "delta", "sensitivity"}:
        return NotCovered(f"its parameters ({', '.join(sorted(said))}) fit no known template")
    points = []
    for epsilon, delta, step in ((1.0, 0.1, 1.0), (0.5, 1e-3, 2.0), (1.0, 1e-5, 1.0)):
        options = {"epsilon": epsilon, "delta": delta, "sensitivity": step}
        options = {name: value for name, value in options.items() if name in said}
        words = ", ".join(f"{name}={value:g}" for name, value in options.items())
        for kind, domain in (
            (f"0 and {step:g}", ((0.0, step),)),  # low bits of noise show best at 0, and a search sees values only
            ("float", Answers(low=0, high=2.0 * step)),
            ("int", Answers(low=0, high=4, integer=True)),
        ):
            points.append((f"{words}, {kind}", _maker(public.function, **options), domain))
    bits = _GAUSSIAN_BITS if public.short == "GaussianMechanism" else ""
    return targets_of(public, points, runs=50_000, known_bits=bits)


def _compiled_parameters(function: Any) -> set[str]:
    """Return the parameters that the documentation of a compiled constructor names."""
    line = str(function.__init__.__doc__ or "").partition("\n")[0]
    return set(re.findall(r"(\w+): ", line)) - {"self"}


def _strategy_form(public: PublicCallable) -> Form:
    """Return the targets of a strategy, or of the function that makes the strategy of a given kind."""
    if not public.short.startswith("create_"):
        return NotCovered("it is an abstract base class")
    name = public.short.removeprefix("create_").removesuffix("partition_strategy").rstrip("_")
    kinds = ("laplace", "gaussian", "truncated_geometric")
    if name not in ("", *kinds):
        return NotCovered("it is a strategy of unknown parameters")
    versions: list[tuple[str, tuple[Any, ...], tuple[Any, ...]]] = [("", (), ())]
    if not name:
        thresholds: tuple[tuple[str, tuple[Any, ...]], ...] = (("", ()), ("pre_threshold=3, ", (3,)))
        versions = [(f"{kind}, {words}", (kind,), last) for kind in kinds for words, last in thresholds]
    users = Answers(low=0, high=14, integer=True)
    points = [
        (f"{words}epsilon={e:g}, delta={delta:g}", _maker(public.function, *first, e, delta, 1, *last), users)
        for e, delta in ((1.0, 0.01), (0.5, 0.1))
        for words, first, last in versions
    ]
    return targets_of(public, points)


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A function of a run with the claim of its arguments."""

    function: Callable[..., Any]
    claim: Any
    claim_source: str

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Any:
        return self.function(dataset, rng)


def _trees(public: PublicCallable) -> Form:
    def released(noise: str, delta: float, rows: Any, rng: np.random.Generator) -> tuple[float, ...]:
        tree = public.function(0.0, 1.0, 2, 4)
        for row in rows:
            tree.add_entry(row)
        return tuple(tree.compute_quantiles(1.0, delta, 1, 1, [0.25, 0.75], noise))

    points = []
    for noise, delta, claim in (("laplace", 0.0, PureDP(1.0)), ("gaussian", 0.01, ApproxDP(1.0, 0.01))):
        make = partial(_Claimed, partial(released, noise, delta), claim, "epsilon of compute_quantiles")
        points.append((f"compute_quantiles, {noise} noise", make, Rows(low=0.0, high=1.0)))
    return targets_of(public, points, adjacencies=(AddRemove(),), runs=10_000, cost=3)


def _ml_form(public: PublicCallable) -> Form:
    """Return the targets of a mechanism with setters."""
    if not hasattr(public.function, "set_sensitivity"):
        return NotCovered("it states no sensitivity")
    is_whole = "geometric" in public.name.lower()
    low, high = (0, 4) if is_whole else (0.0, 2.0)

    def made(epsilon: float) -> Any:
        mechanism = public.function().set_epsilon(epsilon).set_sensitivity(1 if is_whole else 1.0)
        if hasattr(mechanism, "set_bounds"):
            mechanism = mechanism.set_bounds(low, high)
        return mechanism.set_probability(1e-2) if hasattr(mechanism, "set_probability") else mechanism

    def make(epsilon: float) -> Any:
        return from_pydp(
            partial(made, epsilon),
            claim=PureDP(epsilon),
            claim_source=f"set_epsilon({epsilon:g})",
            adjacency=Within("l1", 1.0),
            release=lambda held, value: held.randomise(value),
        )

    domain = Answers(low=low, high=high, integer=is_whole)
    known = _ONE_SIDED if public.short in ("Geometric", "GeometricTruncated") else ""
    bits = _INVERSE_BITS if public.short == "LaplaceBoundedDomain" else ""
    points = [(f"epsilon={epsilon:g}, sensitivity=1", partial(make, epsilon), domain) for epsilon in (1.0, 0.5)]
    return targets_of(public, points, known=known, known_bits=bits)


def _bayes_form(public: PublicCallable) -> Form:
    if not {"epsilon", "bounds"} <= set(parameters_of(public.function)):
        return NotCovered("no template says which part of the fitted model is released")
    corners = ((0.0, 0), (1.0, 0), (0.0, 1), (1.0, 1))

    def fit(rows: Any, rng: np.random.Generator) -> Any:
        table = np.array([*corners, *rows])
        model = public.function(epsilon=1.0, bounds=(0.0, 1.0)).fit(table[:, :1], table[:, 1])
        return np.append(model.theta_, model.class_count_)

    def make() -> Any:
        fit(corners[:2], np.random.default_rng(0))  # what fails on every dataset is not a mechanism
        return _Claimed(fit, PureDP(1.0), "epsilon of the model")

    points = [("bounds 0 and 1, labels stay", make, Rows(values=corners[:2], least=1))]
    return targets_of(public, points, adjacencies=(Replace(),), runs=1_500, search_runs=600, cost=5)
