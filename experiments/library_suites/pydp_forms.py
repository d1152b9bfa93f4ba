"""Mechanisms, aggregates, partition strategies and quantile trees of PyDP, and the mechanisms of its ``ml`` package."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
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
    Target,
    known_in,
    parameters_of,
    public_callables,
    required_of,
)

_MODULES = (
    "algorithms.laplacian",
    "algorithms.numerical_mechanisms",
    "algorithms.partition_selection",
    "algorithms.quantile_tree",
    "distributions",
    "ml.mechanisms.base",
    "ml.mechanisms.geometric",
    "ml.mechanisms.laplace",
    "ml.naive_bayes",
)
_FRACTIONS = Rows(low=-0.5, high=1.5)  # beyond the bounds, to which aggregates clamp
_AGGREGATE = {"epsilon", "percentile", "lower_bound", "upper_bound", "l0_sensitivity", "linf_sensitivity", "dtype"}
_SLOW = {"Max", "Min", "Median", "Percentile"}
_REVIEWED = {"BoundedMean", "BoundedStandardDeviation", "BoundedSum", "BoundedVariance", "Count", *_SLOW}
_ASSUMED = "Neighbours are assumed: one row is added or removed."
_GAUSSIAN_BITS = "low bits of GaussianMechanism"
_INVERSE_BITS = "low bits of LaplaceBoundedDomain"
_ONE_SIDED = "noise that is never negative"


def pydp_public() -> tuple[PublicCallable, ...]:
    """Return the public callables of PyDP without its statistics of noise, such as confidence intervals."""
    return public_callables("pydp", _MODULES)


def pydp_form(public: PublicCallable) -> Form:
    """Return the targets of a callable of PyDP."""
    module = public.name.rpartition(".")[0]
    match module:
        case "algorithms.laplacian":
            return _aggregate_form(public)
        case "algorithms.numerical_mechanisms":
            return _noise_form(public)
        case "algorithms.partition_selection":
            return _strategy_form(public)
        case "algorithms.quantile_tree":
            return tuple(_trees(public)) if public.short == "QuantileTree" else NotCovered("its form is unknown")
        case "distributions":
            return NotCovered("it draws noise without a dataset, so that no claim can be read from it")
    if inspect.isabstract(public.function) or not _can_fit_or_randomise(public.function):
        return NotCovered("it is a part of mechanisms, not a mechanism")
    return _ml_form(public)


def _can_fit_or_randomise(function: Any) -> bool:
    return hasattr(function, "randomise") or hasattr(function, "fit")


def _aggregate_form(public: PublicCallable) -> Form:
    known, required = set(parameters_of(public.function)), required_of(public.function)
    if "epsilon" not in known or not required <= _AGGREGATE:
        words = ", ".join(sorted(required - _AGGREGATE)) or "no epsilon"
        return NotCovered(f"its parameters fit no known form ({words})")
    return tuple(_aggregates(public, known))


def _aggregates(public: PublicCallable, known: set[str]) -> Iterator[Target]:
    at = {"percentile": 0.25} if "percentile" in known else {}
    unit = {"lower_bound": 0.0, "upper_bound": 1.0} if "lower_bound" in known else {}
    far = {"lower_bound": 9.0, "upper_bound": 10.0} if unit else {}
    whole = {"lower_bound": 0, "upper_bound": 2} if unit else {}
    runs, cost = (5_000, 3) if public.short in _SLOW else (50_000, 1)
    number = Rows(low=0, high=3, integer=True)
    points: list[tuple[str, dict[str, Any], Rows]] = []
    if unit:
        points = [
            ("bounds 0 and 1, rows beyond them", {**unit, "dtype": "float"}, _FRACTIONS),
            ("whole rows, bounds 0 and 2", {**whole, "dtype": "int"}, number),
            ("bounds 9 and 10, epsilon=0.5", {**far, "dtype": "float", "epsilon": 0.5}, Rows(low=9.0, high=10.0)),
        ]
    else:
        points = [("epsilon=1", {}, number), ("epsilon=0.5", {"epsilon": 0.5}, number)]
    for words, options, rows in points:
        yield Target(
            callable=public.name,
            point=words,
            make=_maker(public.function, {"epsilon": 1.0, **at, **options}),
            domain=rows,
            runs=runs,
            cost=cost,
            note="" if public.short in _REVIEWED else _ASSUMED,
        )
    if "linf_sensitivity" in known and public.short not in _SLOW:
        yield _two_rows_of_a_user(public, {**at, **whole, **({"dtype": "int"} if unit else {})}, runs, cost)


def _two_rows_of_a_user(public: PublicCallable, options: dict[str, Any], runs: int, cost: int) -> Target:
    """Return the target in which a user has up to two rows, and neighbours differ in a whole user."""
    made = {"epsilon": 1.0, "linf_sensitivity": 2, **options}

    def make() -> Any:
        return from_pydp(
            lambda: public.function(**made),
            adjacency=UserLevel(0),
            release=lambda held, rows: held.quick_result([value for _, value in rows]),
        )

    return Target(
        callable=public.name,
        point="two rows of a user, linf_sensitivity=2",
        make=make,
        domain=Rows(low=(0, 0), high=(3, 2), integer=True, most=6, rows_per_user=2),
        runs=runs,
        cost=cost,
        note="" if public.short in _REVIEWED else _ASSUMED,
    )


def _maker(function: Any, options: dict[str, Any]) -> Callable[[], Any]:
    return lambda: from_pydp(lambda: function(**options))


def _noise_form(public: PublicCallable) -> Form:
    said = _compiled_parameters(public.function)
    if not hasattr(public.function, "add_noise"):
        return NotCovered("it is a statistic of noise, not a mechanism")
    if not said:
        return NotCovered("it is an abstract base class")
    if not {"epsilon", "sensitivity"} <= said or not said <= {"epsilon", "delta", "sensitivity"}:
        return NotCovered(f"its parameters ({', '.join(sorted(said))}) fit no known form")
    targets = []
    for epsilon, delta, sensitivity in ((1.0, 0.1, 1.0), (0.5, 1e-3, 2.0), (1.0, 1e-5, 1.0)):
        options = {"epsilon": epsilon, "delta": delta, "sensitivity": sensitivity}
        options = {name: value for name, value in options.items() if name in said}
        words = ", ".join(f"{name}={value:g}" for name, value in options.items())
        step = sensitivity
        for kind, domain in (
            (f"0 and {step:g}", ((0.0, step),)),  # low bits of noise show best at 0, and a search sees values only
            ("float", Answers(low=0, high=2.0 * step)),
            ("int", Answers(low=0, high=4, integer=True)),
        ):
            targets.append(
                Target(
                    callable=public.name,
                    point=f"{words}, {kind}",
                    make=_maker(public.function, options),
                    domain=domain,
                    runs=50_000,
                    known_bits=known_in("pydp", _GAUSSIAN_BITS if public.short == "GaussianMechanism" else ""),
                )
            )
    return tuple({target.name: target for target in targets}.values())


def _compiled_parameters(function: Any) -> set[str]:
    """Return the parameters that the documentation of a compiled constructor names."""
    line = str(function.__init__.__doc__ or "").partition("\n")[0]
    return set(re.findall(r"(\w+): ", line)) - {"self"}


def _strategy_form(public: PublicCallable) -> Form:
    """Return the targets of a strategy, or of the function that makes the strategy of a given kind."""
    if not public.short.startswith("create_"):
        return NotCovered("it is an abstract base class")
    name = public.short.removeprefix("create_").removesuffix("partition_strategy").rstrip("_")
    if name not in ("", "laplace", "gaussian", "truncated_geometric"):
        return NotCovered("it is a strategy of unknown parameters")
    if name:
        versions: list[tuple[str, tuple[Any, ...], tuple[Any, ...]]] = [("", (), ())]
    else:
        versions = [
            (f"{kind}, {words}", (kind,), last)
            for kind in ("laplace", "gaussian", "truncated_geometric")
            for words, last in (("", ()), ("pre_threshold=3, ", (3,)))
        ]
    return tuple(
        Target(
            callable=public.name,
            point=f"{words}epsilon={epsilon:g}, delta={delta:g}",
            make=partial(_made, public.function, (*first, epsilon, delta, 1, *last)),
            domain=Answers(low=0, high=14, integer=True),
        )
        for epsilon, delta in ((1.0, 0.01), (0.5, 0.1))
        for words, first, last in versions
    )


def _made(function: Any, arguments: Sequence[Any]) -> Any:
    return from_pydp(lambda: function(*arguments))


def _trees(public: PublicCallable) -> Iterator[Target]:
    for noise, delta, claim in (("laplace", 0.0, PureDP(1.0)), ("gaussian", 0.01, ApproxDP(1.0, 0.01))):
        arguments = (1.0, delta, 1, 1, [0.25, 0.75], noise)

        def released(rows: Any, rng: np.random.Generator, arguments: Any = arguments) -> tuple[float, ...]:
            tree = public.function(0.0, 1.0, 2, 4)
            for row in rows:
                tree.add_entry(row)
            return tuple(tree.compute_quantiles(*arguments))

        yield Target(
            callable=public.name,
            point=f"compute_quantiles, {noise} noise",
            make=partial(_Claimed, released, claim, "epsilon of compute_quantiles"),
            domain=Rows(low=0.0, high=1.0),
            adjacencies=(AddRemove(),),
            runs=10_000,
            cost=3,
        )


class _Claimed:
    """A function of a run with the claim of its arguments."""

    def __init__(self, function: Callable[..., Any], claim: Any, source: str) -> None:
        self.function, self.claim, self.claim_source = function, claim, source

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Any:
        return self.function(dataset, rng)


def _ml_form(public: PublicCallable) -> Form:
    """Return the targets of a mechanism with setters, or of the naive Bayes model."""
    function = public.function
    if hasattr(function, "fit"):
        return _bayes_form(public)
    if not hasattr(function, "set_sensitivity"):
        return NotCovered("it states no sensitivity")
    is_whole = "geometric" in public.name.lower()
    targets = []
    for epsilon in (1.0, 0.5):
        low, high = (0, 4) if is_whole else (0.0, 2.0)

        def made(epsilon: float = epsilon, low: Any = low, high: Any = high) -> Any:
            mechanism = function().set_epsilon(epsilon).set_sensitivity(1 if is_whole else 1.0)
            if hasattr(mechanism, "set_bounds"):
                mechanism = mechanism.set_bounds(low, high)
            return mechanism.set_probability(1e-2) if hasattr(mechanism, "set_probability") else mechanism

        def make(made: Callable[[], Any] = made, epsilon: float = epsilon) -> Any:
            return from_pydp(
                made,
                claim=PureDP(epsilon),
                claim_source=f"set_epsilon({epsilon:g})",
                adjacency=Within("l1", 1.0),
                release=lambda held, value: held.randomise(value),
            )

        targets.append(
            Target(
                callable=public.name,
                point=f"epsilon={epsilon:g}, sensitivity=1",
                make=make,
                domain=Answers(low=low, high=high, integer=is_whole),
                known=known_in("pydp", _ONE_SIDED if public.short in ("Geometric", "GeometricTruncated") else ""),
                known_bits=known_in("pydp", _INVERSE_BITS if public.short == "LaplaceBoundedDomain" else ""),
            )
        )
    return tuple(targets)


def _bayes_form(public: PublicCallable) -> Form:
    known = set(parameters_of(public.function))
    if not {"epsilon", "bounds"} <= known:
        return NotCovered("no form says which part of the fitted model is released")
    corners = ((0.0, 0), (1.0, 0), (0.0, 1), (1.0, 1))

    def fit(rows: Any, rng: np.random.Generator) -> Any:
        table = np.array([*corners, *rows])
        model = public.function(epsilon=1.0, bounds=(0.0, 1.0)).fit(table[:, :1], table[:, 1])
        return np.append(model.theta_, model.class_count_)

    def make() -> Any:
        fit(corners[:2], np.random.default_rng(0))  # what fails on every dataset is not a mechanism
        return _Claimed(fit, PureDP(1.0), "epsilon of the model")

    return (
        Target(
            callable=public.name,
            point="bounds 0 and 1, labels stay",
            make=make,
            domain=Rows(values=corners[:2], least=1),
            adjacencies=(Replace(),),
            runs=1_500,
            search_runs=600,
            cost=5,
        ),
    )
