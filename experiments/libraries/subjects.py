"""Released libraries: which are installed, and objects of OpenDP, diffprivlib and PyDP with a pair or a domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ...audit.datasets.adjacency import AddRemove, Adjacency, Local, Replace, Within
from ...audit.datasets.domains import Answers, Rows
from ...audit.options import FloatingPoint
from ...audit.procedures.check import check
from ...audit.results.audit_result import AuditResult
from ...audit.results.worst_pair import WorstPair
from ...audit.search.find_worst_pair import find_worst_pair
from ...mechanisms.adapters import from_diffprivlib, from_diffprivlib_tool, from_opendp, from_pydp

_DISTRIBUTIONS = {"pydp": "python-dp"}
"""Libraries whose distribution has another name."""
_MODULES = {"smartnoise-sql": "snsql"}
"""Libraries that are imported by another name."""


def is_installed(library: str) -> bool:
    """Return whether a library can be imported."""
    try:
        import_module(_MODULES.get(library, library.replace("-", "_")))
    except ImportError:
        return False
    return True


def release_of(library: str) -> str:
    """Return the name and the version of a library; a dash for code of this project, without a library."""
    if not library:
        return "–"
    distribution = _DISTRIBUTIONS.get(library, library)
    return f"{distribution} {version(distribution)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An object of a library, audited on a pair or on the worst pair of a domain.

    `make` makes the adapter, which needs the library. A search takes as many runs as the audit has runs, or
    `search_runs`. `adjacency` is for mechanisms that state none. `is_right` says whether the object is known to keep
    its claim, or to break it by values; None if neither is known.
    """

    name: str
    make: Callable[[], Any] = field(repr=False)
    pair: tuple[Any, Any] | None = None
    domain: Any = None
    runs: int = 100_000
    search_runs: int | None = None
    adjacency: Adjacency | None = None
    is_right: bool | None = None

    def audit(self, *, seed: int, floating_point: FloatingPoint, alpha: float, runs: int | None = None) -> AuditResult:
        options: dict[str, Any] = {
            "seed": seed,
            "floating_point": floating_point,
            "alpha": alpha,
            "jobs": 1,
            "adjacency": self.adjacency,
        }
        options["runs"] = self.runs if runs is None else runs
        if self.pair is None:
            found: WorstPair = find_worst_pair(self.make(), self.domain, search_runs=self.search_runs, **options)
            return found.audit
        result: AuditResult = check(self.make(), *self.pair, **options)
        return result


def of_diffprivlib(module: str, name: str) -> Any:
    """Return a class or function of diffprivlib."""
    return getattr(import_module(f"diffprivlib.{module}"), name)


# The 21 mechanisms of diffprivlib at epsilon 1, on pairs at the largest distance that each allows.

_STEP, _DELTA = Within("l1", 1.0), 0.1


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
        Subject(name="Uniform", pair=reals, make=_mechanism("Uniform", _STEP, epsilon=None, sensitivity=1.0, **delta)),
        *(Subject(name=name, pair=pair, make=_mechanism(name, Local(), **options)) for name, options, pair in on_words),
        *(Subject(name=name, pair=utilities, make=_choice(name)) for name in ("Exponential", "PermuteAndFlip")),
        Subject(name="Bingham", pair=rank_one, make=_bingham, runs=5_000),
        Subject(name="Vector", pair=(1.0, -1.0), make=_vector, runs=5_000),
    ]


def _mechanism(name: str, adjacency: Adjacency, *, epsilon: float | None = 1.0, **options: Any) -> Callable[[], Any]:
    given = options if epsilon is None else {"epsilon": epsilon, **options}
    return lambda: from_diffprivlib(of_diffprivlib("mechanisms", name)(**given), adjacency=adjacency)


def _choice(name: str) -> Callable[[], Any]:
    def of_utilities(utilities: Sequence[float]) -> Any:
        return of_diffprivlib("mechanisms", name)(epsilon=1.0, sensitivity=1.0, utility=list(utilities))

    return lambda: from_diffprivlib(of_utilities, adjacency=Within("linf", 1.0), example=[0.0, 0.0])


def _bingham() -> Any:
    """Return a mechanism on rows of norm 1, under replace; the output is squared, as a direction has no sign."""
    return from_diffprivlib(
        of_diffprivlib("mechanisms", "Bingham")(epsilon=1.0, sensitivity=1.0),
        adjacency=Within("l2", math.sqrt(2.0)),
        output=lambda direction: float(np.asarray(direction).ravel()[0] ** 2),
    )


def _vector() -> Any:
    """Return a mechanism that releases the private minimiser of a regularised logistic loss of one row."""
    mechanism = of_diffprivlib("mechanisms", "Vector")(epsilon=1.0, function_sensitivity=0.25, dimension=1)
    return from_diffprivlib(mechanism, adjacency=Within("l1", 2.0), query=_loss_of, output=_least)


def _loss_of(label: float) -> Callable[[Any], tuple[float, Any]]:
    """Return the logistic loss of a label of 1 or -1 at a weight, with its derivative."""

    def loss(weights: Any) -> tuple[float, Any]:
        margin = label * float(weights[0])
        return math.log1p(math.exp(-margin)), np.array([-label / (1.0 + math.exp(margin))])

    return loss


def _least(loss: Callable[[Any], Any]) -> float:
    """Return the minimiser of a strictly convex function of one weight."""
    return float(minimize_scalar(lambda weight: float(np.ravel(loss(np.array([weight]))[0])[0])).x)


# Tools and models of diffprivlib: each tool with the neighbours for which it is private, each model with domains that
# try its noise: near 0, far from it, below it, changed labels.

_UNIT: dict[str, Any] = {"bounds": (0.0, 1.0)}
_RANGES = (("near 0", 0.0, 1.0), ("far from 0", 9.0, 10.0), ("below 0", -10.0, -9.0))


def _on_rows(
    name: str,
    words: str,
    domain: Rows,
    applied: Callable[..., Any],
    *,
    adjacency: Adjacency | None = None,
    output: Callable[[Any], Any] | None = None,
    is_right: bool | None = None,
    **options: Any,
) -> Subject:
    """Return a function of the rows of a domain and of its options, by default for replaced rows."""

    def make() -> Any:
        neighbours = Replace() if adjacency is None else adjacency
        example = [domain.corners()[0], domain.corners()[-1]]
        given = {"epsilon": 1.0, **options}
        return from_diffprivlib_tool(applied, example=example, adjacency=neighbours, output=output, **given)

    return Subject(name=f"{name}, {words}" if words else name, make=make, domain=domain, is_right=is_right)


def diffprivlib_tools() -> list[Subject]:
    """Return tools with domains; making one needs diffprivlib."""
    line = Rows(low=0.0, high=1.0, least=1)
    plane = Rows(low=(0.0, 0.0), high=(1.0, 1.0), least=1)
    whole = Rows(low=0, high=3, integer=True, least=1)
    histograms: dict[str, Any] = {"adjacency": AddRemove(), "output": lambda found: found[0]}
    ranks: dict[str, Any] = {"adjacency": AddRemove(), **_UNIT}
    return [
        _tool("mean", line, **_UNIT),
        _tool("mean", line, "bounds that clip the rows", bounds=(0.25, 0.5)),
        _tool("mean", plane, "axis 0", axis=0, **_UNIT),
        _tool("mean", whole, "dtype float", dtype=float, bounds=(0, 3)),
        _tool("var", line, **_UNIT),
        _tool("var", plane, "axis 0", axis=0, **_UNIT),
        _tool("std", line, **_UNIT),
        _tool("sum", line, **_UNIT),
        _tool("sum", whole, "dtype int", dtype=int, bounds=(0, 3)),
        _tool("sum", plane, "axis 0, keepdims", axis=0, keepdims=True, **_UNIT),
        *(_tool(name, line, "without NaN", **_UNIT) for name in ("nanmean", "nansum", "nanvar")),
        _tool("count_nonzero", whole),
        _tool("histogram", line, "4 bins", bins=4, range=(0.0, 1.0), **histograms),
        _tool("histogram", line, "density", bins=4, range=(0.0, 1.0), density=True, **histograms),
        _tool("histogramdd", plane, "3 by 3 bins", bins=3, range=[(0.0, 1.0)] * 2, **histograms),
        _tool("median", line, **ranks),
        _tool("quantile", line, "of .25", quant=0.25, **ranks),
        _tool("quantile", line, "of two", quant=[0.25, 0.75], **ranks),
        _tool("percentile", line, "of 90", percent=90, **ranks),
    ]


def _tool(name: str, domain: Rows, words: str = "", **options: Any) -> Subject:
    def applied(rows: Any, **given: Any) -> Any:
        return of_diffprivlib("tools", name)(np.asarray(rows), **given)

    return _on_rows(name, words, domain, applied, **options)


def diffprivlib_fits() -> list[Subject]:
    """Return models, fitted to the rows of a domain; making one needs diffprivlib."""
    return [*_regressions(), *_classifiers(), *_without_labels(), *_trees()]


def _fit(
    model: str,
    words: str,
    domain: Rows,
    output: Callable[[Any], Any],
    *,
    known: Sequence[tuple[float, ...]] = (),
    has_labels: bool = True,
    **options: Any,
) -> Subject:
    """Return a fit to the rows of the domain and some known ones, with labels in the last column."""

    def fitted(rows: Sequence[Any], **given: Any) -> Any:
        table = np.array([*known, *rows], dtype=float)
        estimator = of_diffprivlib("models", model)(**given)
        return estimator.fit(table[:, :-1], table[:, -1]) if has_labels else estimator.fit(table)

    return _on_rows(model, words, domain, fitted, output=output, **options)


def _regressions() -> list[Subject]:
    def coefficient(model: Any) -> Any:
        return np.append(model.coef_, model.intercept_)

    def line(words: str, low: float, high: float, **options: Any) -> Subject:
        rows = Rows(low=(low or 0.1, 0.0), high=(high, 1.0), least=1)  # without x = 0, where the slope is unbounded
        given = {"bounds_X": (low, high), "bounds_y": (0.0, 1.0), **options}
        return _fit("LinearRegression", words, rows, coefficient, **given)

    def logistic(words: str, norm: float, **options: Any) -> Subject:
        rows = Rows(low=(-norm, 0), high=(norm, 1), integer=True, most=2)
        known = [(0.0, 0.0), (0.0, 1.0)]
        return _fit("LogisticRegression", words, rows, coefficient, known=known, data_norm=norm, **options)

    return [
        *(line(f"x {words}", low, high, fit_intercept=False, is_right=bool(low)) for words, low, high in _RANGES),
        line("x from -1 to 1, without intercept", -1.0, 1.0, fit_intercept=False, is_right=True),
        line("x from -1 to 1, with intercept", -1.0, 1.0),
        logistic("rows of norm 1, labels change", 1.0, fit_intercept=False, is_right=True),
        logistic("rows of norm 30, labels change", 30.0, fit_intercept=False, is_right=False),
        logistic("rows of norm 1, with intercept", 1.0),
    ]


def _classifiers() -> list[Subject]:
    """Return fits of GaussianNB to rows of which both the value and the label may change."""

    def moments(model: Any) -> Any:
        return np.concatenate([model.theta_.ravel(), model.var_.ravel(), model.class_count_])

    def bayes(words: str, low: float, high: float, **options: Any) -> Subject:
        rows = Rows(values=tuple((end, label) for end in (low, high) for label in (0, 1)), least=2)
        return _fit("GaussianNB", words, rows, moments, bounds=(low, high), **options)

    return [
        *(
            bayes(f"x {words}, labels change", low, high, known=[(low, 0), (high, 0), (low, 1), (high, 1)])
            for words, low, high in _RANGES
        ),
        bayes("a class may be empty", 0.0, 1.0, known=[(0.0, 0)]),
    ]


def _without_labels() -> list[Subject]:
    def variances(model: Any) -> Any:
        return np.concatenate([model.mean_, np.abs(model.components_.ravel()), model.explained_variance_])

    fits = []
    for words, low, high in _RANGES:
        one, two = (Rows(low=(low,) * width, high=(high,) * width, least=2) for width in (1, 2))
        plain: dict[str, Any] = {"has_labels": False, "bounds": (low, high)}
        norm = float(np.hypot(low, high) if low else np.sqrt(2.0))
        scales, centres = (lambda m: np.concatenate([m.mean_, m.var_])), (lambda m: np.sort(m.cluster_centers_.ravel()))
        fits += [
            _fit("PCA", f"x {words}", two, variances, n_components=1, data_norm=norm, **plain),
            _fit("StandardScaler", f"x {words}", one, scales, is_right=True, **plain),
            _fit("KMeans", f"x {words}", one, centres, known=[(low,), (high,)], n_clusters=2, **plain),
        ]
    return fits


def _trees() -> list[Subject]:
    def answers(model: Any) -> Any:
        return tuple(model.predict(np.array([[0.1], [0.5], [0.9]])).tolist())

    def trees(model: str, words: str, **options: Any) -> Subject:
        rows = Rows(values=tuple((x, label) for x in (0.0, 0.5, 1.0) for label in range(2)))
        return _fit(model, words, rows, answers, bounds=(0.0, 1.0), known=[(0.5, 0)], max_depth=2, **options)

    added, tree, forest = AddRemove(), "DecisionTreeClassifier", "RandomForestClassifier"
    return [
        trees(tree, "a row is added", classes=(0, 1), adjacency=added, is_right=True),
        trees(tree, "a class without rows", classes=(0, 1, 2), adjacency=added, is_right=True),
        trees(tree, "a row is replaced", classes=(0, 1), is_right=False),
        trees(forest, "a row is added", classes=(0, 1), n_estimators=2, adjacency=added),
        trees(forest, "a row is replaced", classes=(0, 1), n_estimators=2),
    ]


# Measurements of OpenDP: noise on integers and floats, selections and responses, with claims in epsilon and in rho.

_OPENDP_RUNS = 20_000


def opendp_subjects() -> list[Subject]:
    """Return measurements of scale 1 by default, with epsilon 1 for Laplace noise and rho 1/2 for Gaussian noise."""
    kinds = (("laplace", int), ("laplace", float), ("geometric", int), ("gaussian", int), ("gaussian", float))
    norms = (("laplace", "l1_distance"), ("gaussian", "l2_distance"))
    numbers, pair, rows = (0.0, 1.0), ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]), Rows(low=0.0, high=1.0)
    whole, words = ([0, 1, 1], [1, 0, 0]), ["a", "b", "c"]
    found: list[tuple[str, Callable[[], Any], Any]] = [
        *((f"{noise}, {kind.__name__}", _noise(noise, kind), (kind(0), kind(1))) for noise, kind in kinds),
        *(
            (
                f"{noise}, vectors of {kind.__name__}",
                _noise(noise, kind, metric),
                ([kind(0)] * 3, [kind(1), kind(0), kind(0)]),
            )
            for noise, metric in norms
            for kind in (int, float)
        ),
        ("laplace, int, vector form", _noise("laplace", int, draws="vectors"), (0, 1)),
        ("gaussian, (epsilon, delta) by make_fix_delta", _fixed_delta, numbers),
        ("gaussian, privacy profile", lambda: from_opendp(_profile()), numbers),
        ("canonical noise, float", _canonical, numbers),
        ("noisy max, float", _noisy_max("max_divergence", float), pair),
        ("noisy max, int", _noisy_max("max_divergence", int), whole),
        ("noisy max, float, rho", _noisy_max("zero_concentrated_divergence", float), pair),
        ("noisy top 2, float", _noisy_top, pair),
        ("randomised response, bool", _response("make_randomized_response_bool", prob=0.75), (True, False)),
        (
            "randomised response, 3 words",
            _response("make_randomized_response", categories=words, prob=0.5),
            ("a", "b"),
        ),
        ("count of rows, laplace", _of_rows("then_count"), rows),
        ("sum of bounded rows, laplace, float", _of_rows("then_sum"), rows),
        ("laplace threshold, float, a key appears", _threshold, ({"a": 4.0, "b": 1.0}, {"a": 4.0})),
    ]
    return [
        Subject(name=name, make=make, runs=_OPENDP_RUNS, **{"domain" if held is rows else "pair": held})
        for name, make, held in found
    ]


def _dp() -> Any:
    library = import_module("opendp.prelude")
    library.enable_features("contrib", "honest-but-curious")
    return library


def _space(metric: str, kind: type) -> tuple[Any, Any]:
    """Return the domain and the metric of numbers, or of vectors for a metric other than the absolute distance."""
    atom = _dp().atom_domain(T=float, nan=False) if kind is float else _dp().atom_domain(T=kind)
    return atom if metric == "absolute_distance" else _dp().vector_domain(atom), getattr(_dp(), metric)(T=kind)


def _noise(name: str, kind: type, metric: str = "absolute_distance", **options: Any) -> Callable[[], Any]:
    return lambda: from_opendp(getattr(_dp().m, f"make_{name}")(*_space(metric, kind), scale=1.0), **options)


def _response(constructor: str, **options: Any) -> Callable[[], Any]:
    return lambda: from_opendp(getattr(_dp().m, constructor)(**options))


def _profile() -> Any:
    gaussian = _dp().m.make_gaussian(*_space("absolute_distance", float), scale=1.0)
    return _dp().c.make_zCDP_to_approxDP(gaussian)


def _fixed_delta() -> Any:
    return from_opendp(_dp().c.make_fix_delta(_profile(), 0.01))


def _canonical() -> Any:
    space = _space("absolute_distance", float)
    return from_opendp(_dp().m.make_canonical_noise(*space, d_in=1.0, d_out=(1.0, 0.01)))


def _noisy_max(measure: str, kind: type) -> Callable[[], Any]:
    def make() -> Any:
        return from_opendp(_dp().m.make_noisy_max(*_space("linf_distance", kind), getattr(_dp(), measure)(), scale=1.0))

    return make


def _noisy_top() -> Any:
    space = _space("linf_distance", float)
    return from_opendp(_dp().m.make_noisy_top_k(*space, _dp().max_divergence(), k=2, scale=1.0))


def _of_rows(query: str) -> Callable[[], Any]:
    def make() -> Any:
        space = _dp().vector_domain(_dp().atom_domain(bounds=(0.0, 1.0))), _dp().symmetric_distance()
        return from_opendp(space >> getattr(_dp().t, query)() >> _dp().m.then_laplace(scale=1.0))

    return make


def _threshold() -> Any:
    """Return noisy counts of type float; with integers a new key is released with more than delta (see `defects`)."""
    number, distance = _space("absolute_distance", float)
    space = _dp().map_domain(_dp().atom_domain(T=str), number), _dp().l01inf_distance(distance)
    return from_opendp(_dp().m.make_laplace_threshold(*space, scale=1.0, threshold=3.0), d_in=(1, 1.0, 1.0))


# Mechanisms, aggregates and partition strategies of PyDP.


def pydp_subjects() -> list[Subject]:
    """Return mechanisms, aggregates and partition strategies whose pairs the search finds."""
    answers, whole_answers = Answers(low=0.0, high=2.0), Answers(low=0, high=4, integer=True)
    rows, whole = Rows(low=-0.5, high=1.5), Rows(low=0, high=3, integer=True)
    users = Answers(low=0, high=12, integer=True)
    unit = {"epsilon": 1.0, "lower_bound": 0.0, "upper_bound": 1.0, "dtype": "float"}
    sums = {"epsilon": 1.0, "lower_bound": 0, "upper_bound": 2, "dtype": "int"}
    found: list[tuple[str, tuple[Any, ...], dict[str, Any], Any, int]] = [
        ("LaplaceMechanism", (1.0, 1.0), {}, answers, 50_000),
        ("LaplaceMechanism, int", (1.0, 1.0), {}, whole_answers, 50_000),
        ("GaussianMechanism", (1.0, 0.1, 1.0), {}, answers, 50_000),
        ("Count", (), {"epsilon": 1.0}, whole, 50_000),
        ("BoundedSum", (), unit, rows, 50_000),
        ("BoundedSum, int", (), sums, whole, 50_000),
    ]
    moments = ("BoundedMean", "BoundedVariance", "BoundedStandardDeviation")
    found += [(name, (), unit, rows, 20_000) for name in moments]
    found += [(name, (), unit, rows, 10_000) for name in ("Max", "Min", "Median")]
    strategy = "create_partition_strategy"
    return [
        *(
            Subject(name=name, make=_pydp(name.partition(",")[0], *arguments, **options), domain=domain, runs=runs)
            for name, arguments, options, domain, runs in found
        ),
        *(
            Subject(name=f"partitions, {kind}", make=_pydp(strategy, kind, 1.0, 0.01, 1), domain=users, runs=50_000)
            for kind in ("laplace", "gaussian", "truncated_geometric")
        ),
    ]


def _pydp(name: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    module = "laplacian" if options else "partition_selection" if name.startswith("create") else "numerical_mechanisms"
    return lambda: from_pydp(lambda: getattr(import_module(f"pydp.algorithms.{module}"), name)(*arguments, **options))
