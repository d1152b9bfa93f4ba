"""Measurements and transformations of OpenDP, kept apart because each library has a module of forms.

Constructors are called with the library's spaces and parameters. Claim and neighbours are those of the measurement's
own map and metric, so a new constructor needs no assumption.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim
from ...audit.datasets.adjacency import Adjacency, Replace, Within
from ...audit.datasets.domains import Answers, Rows, Values
from ...audit.errors import MechanismError
from ...mechanisms.adapters import from_opendp
from ...mechanisms.adapters.opendp import MapClaim, claim_of
from .audited_library import (
    Form,
    NotCovered,
    PublicCallable,
    SameAs,
    Target,
    parameters_of,
    public_callables,
    required_of,
    targets_of,
)
from .run_plan import example_of

_ROWS = 4  # of datasets whose size is public


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A domain and a metric from `make`, type of numbers or rows, distance `d_in` of neighbours, and public size."""

    words: str
    make: Callable[[], tuple[Any, Any]] = field(repr=False)
    data: Any = field(repr=False)
    kind: type
    d_in: Any = 1
    adjacency: Adjacency | None = None
    size: int | None = None
    bounds: tuple[Any, Any] | None = None


def prelude() -> Any:
    """Return OpenDP with the features that its public constructors need.

    Without ``idealized-numerics``, because constructors that need it promise nothing for floating-point
    numbers. Errors have no Rust backtraces, which take more time than a hundred constructors.
    """
    os.environ["RUST_BACKTRACE"] = "0"
    library = import_module("opendp.prelude")
    library.enable_features("contrib", "honest-but-curious")
    return library


def _atom(kind: type, *, nan: bool = False, **options: Any) -> Any:
    return prelude().atom_domain(T=kind, **({"nan": nan} if kind is float else {}), **options)


def number_space(kind: type) -> tuple[Any, Any]:
    """Return the domain and the metric of a single number."""
    return _atom(kind), prelude().absolute_distance(T=kind)


def _answers(kind: type, metric: str | None = None) -> Space:
    """Return the space of a number, or of three numbers for a metric of vectors."""

    def vectors() -> tuple[Any, Any]:
        return prelude().vector_domain(_atom(kind)), getattr(prelude(), str(metric))(T=kind)

    data = Answers(n_answers=None if metric is None else 3, low=kind(0), high=kind(2), integer=kind is int)
    words = f"3 numbers, {kind.__name__}, {str(metric).partition('_')[0]}"
    if metric is None:
        words = f"a number, {kind.__name__}"
    make = partial(number_space, kind) if metric is None else vectors
    return Space(words=words, make=make, data=data, kind=kind, d_in=kind(1))


def _table(kind: type, metric: str) -> Space:
    """Return the space of counts by key, in which a key appears or a count changes by 1."""

    def make() -> tuple[Any, Any]:
        counts = prelude().map_domain(prelude().atom_domain(T=str), _atom(kind))
        return counts, getattr(prelude(), metric)(prelude().absolute_distance(T=kind))

    pairs: Any = ({"a": 6, "b": 1}, {"a": 6}), ({"a": 6, "b": 7}, {"a": 6, "b": 6})
    return Space(
        words=f"counts by key, {kind.__name__}, {metric.partition('_')[0]}",
        make=make,
        data=tuple(tuple({key: kind(count) for key, count in each.items()} for each in pair) for pair in pairs),
        kind=kind,
        d_in=(1, float(1) if metric == "l02inf_distance" else kind(1), kind(1)),
    )


def _rows(words: str, kind: type, data: Any, *, metric: str = "symmetric_distance", **options: Any) -> Space:
    """Return a space of rows; bounded ones have their bounds as data, and those of public size the size."""
    bounds, size, nan = options.get("bounds"), options.get("size"), options.pop("nan", False)

    def make() -> tuple[Any, Any]:
        atom = _atom(kind, nan=nan, **({} if bounds is None else {"bounds": bounds}))
        sized = {} if size is None else {"size": size}
        return prelude().vector_domain(atom, **sized), getattr(prelude(), metric)()

    return Space(words=words, make=make, data=data, kind=kind, **options)


def _bounded(words: str, kind: type, low: float, high: float, **options: Any) -> Space:
    ends = kind(low), kind(high)
    data = Rows(low=ends[0], high=ends[1], integer=kind is int, size=options.get("size"))
    return _rows(words, kind, data, bounds=ends, **options)


def answer_spaces() -> list[Space]:
    """Return spaces of numbers and of vectors of three numbers."""
    norms = ("l1_distance", "l2_distance", "linf_distance")
    return [*map(_answers, (int, float)), *itertools.starmap(_answers, itertools.product((int, float), norms))]


def row_spaces() -> list[Space]:
    """Return spaces of rows: bounded and unbounded, of public size, ordered, of text, with NaN, and truth values."""
    public: dict[str, Any] = {"size": _ROWS, "d_in": 2, "adjacency": Replace()}
    with_nan, letters = Rows(values=(float("nan"), 0.0, 1.0)), Rows(values=("a", "b", "c"))
    return [
        _bounded("whole rows from 0 to 3", int, 0, 3),
        _bounded("rows from 0 to 1", float, 0, 1),
        _bounded("rows from 9 to 10", float, 9, 10),
        _bounded("4 whole rows from 0 to 3", int, 0, 3, **public),
        _bounded("4 rows from 0 to 1", float, 0, 1, **public),
        _rows("whole rows", int, Rows(low=-3, high=5, integer=True)),
        _rows("rows", float, Rows(low=-1.0, high=2.0)),
        _rows("rows with NaN", float, with_nan, nan=True),
        _rows("text", str, letters),
        _rows("truth values", bool, Rows(values=(False, True))),
        _bounded("ordered rows from 0 to 1", float, 0, 1, metric="insert_delete_distance"),
        _bounded("4 rows from 0 to 1, one changes", float, 0, 1, size=_ROWS, metric="change_one_distance"),
    ]


def measurement_spaces() -> list[Space]:
    """Return all spaces: numbers, counts by key, rows, and a single person's value."""
    tables = [_table(kind, metric) for metric in ("l01inf_distance", "l02inf_distance") for kind in (int, float)]
    bits = Space(
        words="8 bits, 2 of them set",
        make=lambda: (prelude().bitvector_domain(max_weight=2), prelude().discrete_distance()),
        data=Values((bytes([0b11]), bytes([0b1100]), bytes([0]))),
        kind=bytes,
    )
    return [*answer_spaces(), *tables, *row_spaces(), bits]


# Combinators of OpenDP: what they make of simple measurements, and interactive ones with a fixed list of queries.

_SCORED = "a score and a candidate"
_ANSWERS = Answers(low=0.0, high=2.0)


def combinator_form(public: PublicCallable) -> Form:
    """Return the targets of a combinator."""
    if public.short in _COMBINATOR_REASONS:
        return NotCovered(_COMBINATOR_REASONS[public.short])
    if public.short in _INTERACTIVE:
        return _interactive(public)
    if public.short == "make_chain_mt":
        return _of_row_sums(public)
    return _of_measurements(public)


_COMBINATOR_REASONS = {
    "make_population_amplification": "its claim is for a random sample of a population, which the caller draws",
    "make_chain_tt": "it makes a transformation, which has no claim; chains of the transformations are audited",
}


def _laplace() -> Any:
    return prelude().m.make_laplace(*number_space(float), scale=2.0)


def _gaussian() -> Any:
    return prelude().m.make_gaussian(*number_space(float), scale=2.0)


def _bases() -> dict[str, Callable[[], Any]]:
    """Return measurements with different measures, by their words."""

    def profile() -> Any:
        return prelude().c.make_zCDP_to_approxDP(_gaussian())

    def scored() -> Any:
        dp, noisy = prelude(), _laplace()
        return dp.m.make_user_measurement(
            *number_space(float),
            dp.max_divergence(),
            lambda answer: (noisy(answer), noisy(answer)),
            lambda distance: distance,  # of two answers with noise of scale 2
            TO="(f64, ExtrinsicObject)",
        )

    return {
        "Laplace noise": _laplace,
        "Gaussian noise": _gaussian,
        "a profile of Gaussian noise": profile,
        "Gaussian noise at a fixed delta": lambda: prelude().c.make_fix_delta(profile(), 0.01),
        _SCORED: scored,
    }


def _of_measurements(public: PublicCallable) -> Form:
    """Return the targets of a combinator of measurements, for every base that it accepts."""
    required, points, problems = required_of(public.function), [], list[str]()
    known: dict[str, Any] = {"delta": 0.01, "stop_probability": 0.3, "threshold": 1.0}

    def make(base: Callable[[], Any]) -> Any:
        given = {name: known[name] for name in required if name in known}
        if "measurements" in required:
            given["measurements"] = [base(), base()]
        elif "postprocess1" in required:
            double = prelude().new_function(lambda released: 2.0 * released, TO=float)
            given |= {"postprocess1": double, "measurement0": base()}
        else:
            given["measurement"] = base()
        return from_opendp(public.function(**given), d_in=1.0)

    for words, base in _bases().items():
        if ("stop_probability" in required) != (words == _SCORED):
            continue  # only such a selection takes scores
        try:
            make(base).sample(0.0, 1, np.random.default_rng(0))
        except Exception as error:  # of the library, which refuses a measurement in many ways
            problems.append(" ".join(str(error).split())[:160])
            continue
        points.append((words, partial(make, base), _ANSWERS))
    return targets_of(public, points) or NotCovered(f"no known measurement fits ({''.join(problems[:1])})")


def _of_row_sums(public: PublicCallable) -> Form:
    def make() -> Any:
        dp = prelude()
        total = dp.t.make_sum(dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0))), dp.symmetric_distance())
        noise = dp.m.make_laplace(total.output_domain, total.output_metric, scale=1.0)
        return from_opendp(public.function(noise, total))

    return targets_of(public, [("sum of rows, Laplace noise", make, Rows(low=0.0, high=1.0))])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """Answers of the queryable that `start` returns for a dataset to a fixed list of queries, as one output."""

    start: Callable[[Any], Any] = field(repr=False)
    queries: tuple[Any, ...] = field(repr=False)
    claim: Claim
    claim_source: str
    adjacency: Within | None

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """`size` lists of answers; the library draws from its own entropy."""
        outputs = []
        for _ in range(size):
            queryable = self.start(dataset if isinstance(dataset, dict) else float(dataset))
            outputs.append([float(queryable(query)) for query in self.queries])
        return outputs


_INTERACTIVE = {
    "make_adaptive_composition",
    "make_sequential_composition",
    "make_fully_adaptive_composition",
    "make_privacy_filter",
}


def _interactive(public: PublicCallable) -> Form:
    """Return the target that asks two queries with Laplace noise, each of loss 1/2."""

    def make() -> Any:
        dp = prelude()
        space, queries = (*number_space(float), dp.max_divergence()), (_laplace(), _laplace())
        if public.short == "make_privacy_filter":
            made = public.function(dp.c.make_fully_adaptive_composition(*space), 1.0, 1.0)
        elif public.short == "make_fully_adaptive_composition":
            made = public.function(*space)
        else:
            made = public.function(*space, d_in=1.0, d_mids=[0.5, 0.5])
        if public.short == "make_fully_adaptive_composition":
            held = made(0.0)
            for query in queries:
                held(query)
            claim = claim_of("MaxDivergence", held.privacy_loss(1.0))
            source = "privacy_loss of the odometer after the queries"
        else:
            claim, source = MapClaim(made, 1.0)(1), "measurement.map(1)"
        return Asked(start=made, queries=queries, claim=claim, claim_source=source, adjacency=Within("l1", 1.0))

    return targets_of(public, [("two queries with Laplace noise", make, _ANSWERS)], runs=10_000, cost=3)


def _alp(public: PublicCallable) -> Form:
    """Return the target that asks the queryable of counts by key for three keys."""
    before: dict[str, int] = {"a": 3, "b": 2}

    def make() -> Any:
        domain, metric = _table(int, "l01inf_distance").make()
        made = public.function(domain, metric, scale=1.0, total_limit=16, value_limit=8)
        claim, source = MapClaim(made, (1, 1, 1))(1), "measurement.map((1, 1, 1))"
        return Asked(start=made, queries=("a", "b", "c"), claim=claim, claim_source=source, adjacency=None)

    pairs: tuple[Any, ...] = (({**before, "c": 1}, before), ({**before, "b": 3}, before), ({"a": 1}, {}))
    return targets_of(public, [("3 keys asked", make, pairs)], runs=5_000, cost=3)


_MODULES = ("measurements", "transformations", "combinators")
_MOST_POINTS = 8  # of a constructor, the first that it accepts
_MEASURES: dict[str, Callable[[Any], Any]] = {
    "max divergence": lambda dp: dp.max_divergence(),
    "zCDP": lambda dp: dp.zero_concentrated_divergence(),
    "approximate max divergence": lambda dp: dp.approximate(dp.max_divergence()),
    "approximate zCDP": lambda dp: dp.approximate(dp.zero_concentrated_divergence()),
}
_THRESHOLDS = "thresholds of integers release counts on the threshold"
_REASONS = {
    "make_user_measurement": "its claim and function are the caller's own",
    "make_user_transformation": "its map and function are the caller's own",
    "make_private_expr": "no template covers expressions of polars",
    "make_private_lazyframe": "no template covers queries of polars",
    "make_stable_expr": "no template covers expressions of polars",
    "make_stable_lazyframe": "no template covers queries of polars",
}


def opendp_public() -> tuple[PublicCallable, ...]:
    """Return the public functions of measurements, transformations and combinators."""
    return public_callables("opendp", _MODULES)


def opendp_form(public: PublicCallable) -> Form:
    """Return the targets of a constructor."""
    short = public.short
    if short.startswith("then_"):
        return SameAs(f"{public.name.rpartition('.')[0]}.make_{short.removeprefix('then_')}")
    if not short.startswith("make_"):
        return NotCovered("it makes no measurement; it processes what was released")
    if short in _REASONS:
        return NotCovered(_REASONS[short])
    if public.name.startswith("combinators."):
        return combinator_form(public)
    if short in _RESPONSES:
        return _responses(public)
    if short == "make_alp_queryable":
        return _alp(public)
    known = set(_values(_answers(float)))
    unknown = sorted(required_of(public.function) - known - {"input_domain", "input_metric", "domain", "metric"})
    if unknown:
        return NotCovered(f"its parameters ({', '.join(unknown)}) fit no known template")
    is_measurement = public.name.startswith("measurements.")
    targets: list[Target] = []
    problems: list[str] = []
    for space in measurement_spaces() if is_measurement else [*row_spaces(), *answer_spaces()]:
        targets += _targets(public, space, is_measurement, problems)
        if len(targets) >= _MOST_POINTS:
            break
    return tuple(targets) or NotCovered(f"no known space fits ({_telling(problems)})")


def _telling(problems: list[str]) -> str:
    """Return the first problem that is not about the type of a space, or the first."""
    telling = [problem for problem in problems if "No match for concrete type" not in problem]
    return re.sub(r"\.? ?See https?:\S+", "", (telling or problems)[0]).rstrip('")') if problems else "none was tried"


def _options(public: PublicCallable, space: Space) -> Iterator[dict[str, Any]]:
    """Yield values for the required parameters, by their names."""
    known = _values(space)
    required = sorted(required_of(public.function) & set(known))
    for values in itertools.product(*(known[name] for name in required)):
        yield dict(zip(required, values, strict=True))


def _values(space: Space) -> dict[str, list[Any]]:
    """Return the values of parameters that are tried in a space."""
    whole = space.kind if space.kind in (int, float) else int
    constant = {float: 0.5, str: "a", bool: False}.get(space.kind, 0)
    other = {float: 1.0, str: "b", bool: True}.get(space.kind, 1)
    return {
        "scale": [1.0],
        "threshold": [whole(4)],
        "k": [2],
        "alpha": [0.5],
        "candidates": [[whole(0), whole(1), whole(2)]],
        "d_in": [1.0],
        "d_out": [(1.0, 0.01)],
        "f": [0.5],
        "bounds": [space.bounds or (whole(0), whole(1))],
        "size": [space.size or 4],
        "size_limit": [6],
        "constant": [constant],
        "categories": [[constant, other]],
        "edges": [[whole(0), whole(1), whole(2)]],
        "null": [constant],
        "value": [constant],
        "leaf_count": [4],
        "branching_factor": [2],
        "TOA": [float, int],
        "TA": [float],
        "output_measure": list(_MEASURES),
        "optimize": ["max"],
    }


def _targets(public: PublicCallable, space: Space, is_measurement: bool, problems: list[str]) -> Iterator[Target]:
    """Yield the targets of a constructor in a space; append why it refused the others."""
    for options in _options(public, space):
        make = partial(_made, public, space, options, is_measurement)
        try:
            mechanism = make()
        except Exception as error:  # of the library, which refuses a space or a parameter in many ways
            problems.append(" ".join(str(error).split())[:160])
            continue
        has_threshold = "threshold" in str(mechanism) and space.kind is not float
        yield Target(
            callable=public.name,
            point=", ".join(filter(None, (space.words, _words(options)))),
            make=make,
            domain=space.data,
            adjacencies=(mechanism.adjacency,),
            known=_THRESHOLDS if has_threshold else "",
        )


def _made(public: PublicCallable, space: Space, options: dict[str, Any], is_measurement: bool) -> Any:
    domain, metric = space.make()
    given = {
        name: _MEASURES[value](prelude()) if name == "output_measure" else value for name, value in options.items()
    }
    names = set(parameters_of(public.function))
    for prefix in ("input_", ""):
        if f"{prefix}domain" in names:
            given |= {f"{prefix}domain": domain, f"{prefix}metric": metric}
    made = public.function(**given)
    if not hasattr(made, "input_domain"):
        raise MechanismError("it makes a function of released values, not a measurement")
    if not all(made.input_domain.member(dataset) for dataset in _examples(space)):
        raise MechanismError(f"its domain is not {space.words}")
    measurement = made if is_measurement else _chained(made, space)
    return from_opendp(measurement, d_in=space.d_in, adjacency=space.adjacency)


def _words(options: dict[str, Any]) -> str:
    said = [str(options["output_measure"])] if "output_measure" in options else []
    if isinstance(options.get("TOA"), type):
        said.append(f"TOA={options['TOA'].__name__}")
    return ", ".join(said)


def _examples(space: Space) -> Iterator[Any]:
    """Yield datasets of a space that a larger or smaller domain would not have."""
    example = example_of(space.data)
    yield example.tolist() if isinstance(example, np.ndarray) else example
    if isinstance(space.data, Rows) and space.data.least == 0:
        yield []


def _chained(made: Any, space: Space) -> Any:
    """Return a transformation followed by the noise for its metric, with an aggregate where rows remain rows."""
    dp, metric = prelude(), str(made.output_metric).partition("(")[0]
    match metric:
        case "AbsoluteDistance" | "L1Distance":
            return _at_loss_1(made, dp.m.then_laplace, space)
        case "L2Distance":
            return made >> dp.m.then_gaussian(scale=1.0)
        case "LInfDistance":
            return _at_loss_1(made, partial(dp.m.then_noisy_max, dp.max_divergence()), space)
        case "L01InfDistance":
            return made >> dp.m.then_laplace_threshold(scale=1.0, threshold=4)
        case "SymmetricDistance" | "InsertDeleteDistance" | "ChangeOneDistance" | "HammingDistance":
            if metric in ("ChangeOneDistance", "HammingDistance"):
                made = made >> dp.t.then_metric_unbounded()
            elif metric == "InsertDeleteDistance":
                made = made >> dp.t.then_unordered()
            if "OptionDomain" in str(made.output_domain):
                made = made >> dp.t.then_drop_null()
            aggregate = dp.t.then_sum() if "bounds" in str(made.output_domain) else dp.t.then_count()
            return _at_loss_1(made >> aggregate, dp.m.then_laplace, space)
    raise MechanismError(f"no noise can follow it in {metric}")


def _at_loss_1(made: Any, noise: Callable[..., Any], space: Space) -> Any:
    """Return a chain with noise whose loss is about 1, as audits find little about claims of 10."""
    chain = made >> noise(scale=1.0)
    loss = float(chain.map(space.d_in))
    return chain if loss <= 1.0 else made >> noise(scale=loss)


_RESPONSES = {"make_randomized_response", "make_randomized_response_bool"}


def _responses(public: PublicCallable) -> Form:
    words = ("a", "b", "c")
    is_bool = public.short.endswith("bool")

    def make(prob: float) -> Any:
        prelude()
        return from_opendp(public.function(*(() if is_bool else (list(words),)), prob))

    domain = Values((True, False) if is_bool else words)
    return targets_of(public, [(f"prob={prob:g}", partial(make, prob), domain) for prob in (0.75, 0.6)])
