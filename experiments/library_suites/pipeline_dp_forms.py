"""Metrics and engine methods of PipelineDP, kept apart because each library has a module of forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from ...audit.datasets.adjacency import UserLevel, Within
from ...audit.datasets.domains import Answers, Rows
from ...mechanisms.adapters.library_calls import released
from .audited_library import Form, NotCovered, PublicCallable, Target, targets_of

# Runs of PipelineDP on its local backend: rows (user, partition, value) to the released partitions.

PUBLIC = (0, 1)
"""Public partitions."""
KNOWN = (99, "known", 0.0, 0.0)
"""A row of every dataset, of a user and a partition that no other row has, as empty collections are refused."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pipeline:
    """Mechanism for a query of PipelineDP; the claim is the budget of its accountant.

    `release` maps the engine and the rows to a lazy collection, `read` the list of what it holds to one output. The
    rows `always` are in every dataset. `source` says where the claim is stated, if not as the budget.
    """

    release: Callable[[Any, list[Any]], Any] = field(repr=False)
    read: Callable[[list[Any]], Any] = field(repr=False)
    epsilon: float = 1.0
    delta: float = 0.0
    accountant: str = "NaiveBudgetAccountant"
    always: tuple[Any, ...] = (KNOWN,)
    source: str = ""

    @property
    def claim(self) -> Claim:
        """The whole budget of the accountant."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def claim_source(self) -> str:
        """Where the claim is stated."""
        return self.source or f"total_epsilon and total_delta of {self.accountant}"

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """`size` outputs, with PyDP's own entropy and the global generator of numpy."""
        return [released(self.run, dataset) for _ in range(size)]

    def run(self, dataset: Any) -> Any:
        """Return one output."""
        pipeline = import_module("pipeline_dp")
        accountant = getattr(pipeline, self.accountant)(self.epsilon, self.delta)
        engine = pipeline.DPEngine(accountant, pipeline.LocalBackend())
        found = self.release(engine, [*dataset, *self.always])
        accountant.compute_budgets()
        return self.read(list(found))


def extractors(*, of_vectors: bool = False) -> Any:
    """Return what extracts user, partition and one value from a row, or a vector of two."""
    return import_module("pipeline_dp").DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: (row[2], row[3]) if of_vectors else row[2],
    )


def in_order_of_keys(found: list[Any]) -> tuple[Any, ...]:
    """Return key and metrics of the partitions, in the order of the keys, not of the list."""
    parts: list[Any] = []
    for key, metrics in sorted(found, key=lambda each: str(each[0])):
        parts.append(str(key))
        parts += [float(number) for metric in metrics if metric is not None for number in np.ravel(metric)]
    return tuple(parts)


def metrics_in_order_of_keys(found: list[Any]) -> tuple[float, ...]:
    """Return the metrics of public partitions, in the order of the keys."""
    return tuple(part for part in in_order_of_keys(found) if not isinstance(part, str))


def sums_of_variances(middle: float, found: list[Any]) -> tuple[float, ...]:
    """Return count, sum and sum of squares of each partition, from which variance, mean and count were computed."""
    parts: list[float] = []
    for _, metrics in sorted(found, key=lambda each: str(each[0])):
        size, mean = max(1.0, metrics.count), metrics.mean - middle
        parts += [metrics.count, size * mean, size * (metrics.variance + mean**2)]
    return tuple(parts)


def keys_as_returned(found: list[Any]) -> tuple[str, ...]:
    """Return the keys of the partitions in the order of the list."""
    return tuple(str(key) for key, _ in found)


def sorted_keys(found: list[Any]) -> tuple[str, ...]:
    """Return the selected keys in their own order."""
    return tuple(sorted(str(key) for key in found))


def values_as_returned(found: list[Any]) -> tuple[float, ...]:
    """Return the values of a list of (key, value), in its order."""
    return tuple(float(value) for _, value in found)


_Point = tuple[str, Callable[[], Any], Any]
_NAN = float("nan")
_SPREAD = "the sum of squares, of which the noise is for half of the range"
_NANS = "a row of NaN makes the result NaN"
_ORDER = "the order of the partitions"
_EMPTY = "an empty collection is refused"
_BOUNDED = {"SUM", "MEAN", "VARIANCE", "PERCENTILE"}
_PARAMETERS = ("Params", "Metrics", "NoiseKind", "Strategy", "Extractors", "Bounds", "Report")
_TOTALS = ("COUNT", "PRIVACY_ID_COUNT", "SUM", "MEAN")


def pipeline_dp_public() -> tuple[PublicCallable, ...]:
    """Return the metrics, the methods of the engine and the other public names of PipelineDP."""
    package = import_module("pipeline_dp")
    found = {name: getattr(package, name, None) for name in package.__all__}
    for owner in ("Metrics", "DPEngine"):
        held = getattr(package, owner)
        found |= {f"{owner}.{name}": getattr(held, name) for name in vars(held) if not name.startswith("_")}
    return tuple(PublicCallable(name, found[name]) for name in sorted(found))


def pipeline_dp_form(public: PublicCallable) -> Form:
    """Return the targets of a metric or of a method of the engine."""
    owner, _, name = public.name.rpartition(".")
    if owner == "Metrics":
        return tuple(_metric(public, name)) or NotCovered("no template says what values it takes")
    match public.name:
        case "DPEngine.aggregate":
            return _aggregate(public)
        case "DPEngine.select_partitions":
            return _selections(public)
        case "DPEngine.add_dp_noise":
            return _noises(public)
        case "DPEngine.calculate_private_contribution_bounds":
            return _bounds(public)
        case "LocalBackend" | "DPEngine" | "NaiveBudgetAccountant" | "PLDBudgetAccountant":
            return NotCovered("it releases nothing by itself, and is a part of the audits of metrics")
    if public.function is None:
        return NotCovered("it is listed, but the package does not have it")
    if public.name.endswith(_PARAMETERS):
        return NotCovered("it holds parameters, and releases nothing")
    if public.name.endswith("Backend"):
        return NotCovered("it runs the same computation elsewhere, or is an interface; the local backend is audited")
    return NotCovered("no template says what it releases")


def _rows(values: tuple[float, ...], partitions: tuple[int, ...] = PUBLIC) -> Rows:
    """Rows (user, partition, value, value) of three users, each with up to two rows."""
    rows = tuple((user, part, value, value) for user, part, value in product(range(3), partitions, values))
    return Rows(values=rows, most=4, rows_per_user=2)


def _metric(public: PublicCallable, name: str) -> Iterator[Target]:
    if name not in {*_TOTALS, "VARIANCE", "VECTOR_SUM", "PERCENTILE"}:
        return
    target, rows, ones = partial(_target, public, name), _rows((-2.0, 0.0, 2.0)), _rows((0.0,))
    if name == "VARIANCE":
        yield target("bounds -1 and 1, epsilon=3", rows, epsilon=3.0)
    yield target("Laplace, public partitions", rows)
    yield target("Gaussian, public partitions", rows, noise="GAUSSIAN", contributions=2, delta=0.01)
    yield target("Laplace, selected partitions", rows, public=None, delta=0.01)
    if name in _BOUNDED:
        yield target("bounds 1 and 3, epsilon=3", _rows((0.0, 2.0, 4.0)), bounds=(1.0, 3.0), epsilon=3.0)
        yield target("a row of NaN", _rows((0.0, _NAN)), known=_NANS)
    if name in _TOTALS:
        yield target("at most two rows of a user", rows, total=2)
    if name == "COUNT":
        yield target("Gaussian, budget by PLD", ones, accountant="PLDBudgetAccountant", noise="GAUSSIAN", delta=0.01)
    if name == "SUM":
        yield target("bounds of the sum of a user", rows, is_bounded_per_partition=True)
    if name == "PRIVACY_ID_COUNT":
        more = {"post_aggregation_thresholding": True}
        yield target("thresholds after the aggregation", ones, public=None, delta=0.01, more=more)


def _target(
    held: PublicCallable,
    name: str,
    point: str,
    domain: Rows,
    *,
    noise: str = "LAPLACE",
    public: tuple[int, ...] | None = PUBLIC,
    bounds: tuple[float, float] = (-1.0, 1.0),
    contributions: int = 1,
    total: int | None = None,
    is_bounded_per_partition: bool = False,
    more: dict[str, Any] | None = None,
    known: str = "",
    **claim: Any,
) -> Target:
    def release(engine: Any, rows: list[Any]) -> Any:
        package = import_module("pipeline_dp")
        if total is None:
            limits = {"max_partitions_contributed": contributions, "max_contributions_per_partition": contributions}
        else:
            limits = {"max_contributions": total}
        kind = "sum_per_partition" if is_bounded_per_partition else "value"
        values: dict[str, Any] = {f"min_{kind}": bounds[0], f"max_{kind}": bounds[1]} if name in _BOUNDED else {}
        if name == "VECTOR_SUM":
            norm = package.aggregate_params.NormKind.Linf
            values = {"vector_norm_kind": norm, "vector_max_norm": 1.0, "vector_size": 2}
        parameters = package.AggregateParams(
            metrics=_metrics(package, name), noise_kind=package.NoiseKind[noise], **limits, **values, **(more or {})
        )
        return engine.aggregate(rows, parameters, extractors(of_vectors=name == "VECTOR_SUM"), public)

    read: Any = in_order_of_keys if public is None else metrics_in_order_of_keys
    if name == "VARIANCE" and public is not None:
        read = partial(sums_of_variances, (bounds[0] + bounds[1]) / 2)
    if name == "VARIANCE" and bounds[0] < 0 < bounds[1] and not known:
        known = _SPREAD
    made = [(point, lambda: Pipeline(release=release, read=read, **claim), domain)]
    bits = _gaussian_bits(noise == "GAUSSIAN")
    return _targets(held, made, search_runs=4_000, cost=3, known=known, known_bits=bits)[0]


def _targets(public: PublicCallable, points: Iterable[_Point], **options: Any) -> tuple[Target, ...]:
    """Return the targets of neighbours that differ in all rows of a user."""
    return targets_of(public, points, **{"adjacencies": (UserLevel(0),), **options})


def _gaussian_bits(is_gaussian: bool) -> str:
    return "floating-point leak of PyDP's GaussianMechanism" if is_gaussian else ""


def _metrics(package: Any, name: str) -> list[Any]:
    """Return the metric; with a variance, also the mean and the count, which the same noise gives."""
    if name == "PERCENTILE":
        return [package.Metrics.PERCENTILE(50)]
    names = ("VARIANCE", "MEAN", "COUNT") if name == "VARIANCE" else (name,)
    return [getattr(package.Metrics, each) for each in names]


def _aggregate(public: PublicCallable) -> Form:
    """Return what the list of partitions and its presence show, for any metric."""

    def release(engine: Any, rows: list[Any]) -> Any:
        package = import_module("pipeline_dp")
        parameters = package.AggregateParams(
            metrics=[package.Metrics.COUNT], max_partitions_contributed=1, max_contributions_per_partition=1
        )
        return engine.aggregate(rows, parameters, extractors(), PUBLIC)

    ordered = partial(Pipeline, release=release, read=keys_as_returned)
    empty = partial(Pipeline, release=release, read=metrics_in_order_of_keys, always=())
    listed = [("order of public partitions in the list", ordered, _rows((0.0,)))]
    return (
        *_targets(public, listed, runs=5_000, search_runs=2_000, known=_ORDER),
        *_targets(public, [("no rows", empty, (([(0, 0, 0.0, 0.0)], []),))], runs=5_000, known=_EMPTY),
    )


def _selections(public: PublicCallable) -> Form:
    package = import_module("pipeline_dp")

    def release(strategy: Any, pre_threshold: int | None, engine: Any, rows: list[Any]) -> Any:
        parameters = package.SelectPartitionsParams(
            max_partitions_contributed=2, partition_selection_strategy=strategy, pre_threshold=pre_threshold
        )
        return engine.select_partitions(rows, parameters, extractors())

    points = []
    for strategy, least in product(package.PartitionSelectionStrategy, (None, 2)):
        make = partial(Pipeline, release=partial(release, strategy, least), read=sorted_keys, delta=0.1)
        words = strategy.value + ("" if least is None else f", pre_threshold={least}")
        points.append((words, make, _rows((0.0,))))
    return _targets(public, points, search_runs=4_000, cost=2)


def _noises(public: PublicCallable) -> Form:
    package = import_module("pipeline_dp")

    def release(noise: str, engine: Any, answers: list[Any]) -> Any:
        kind = package.NoiseKind[noise]
        parameters = package.AddDPNoiseParams(noise_kind=kind, l1_sensitivity=1.0, l2_sensitivity=1.0)
        return engine.add_dp_noise(list(enumerate(answers)), parameters)

    targets: list[Target] = []
    for noise, adjacency, delta in (("LAPLACE", Within("l1", 1.0), 0.0), ("GAUSSIAN", Within("l2", 1.0), 0.01)):
        released = partial(release, noise)
        make = partial(Pipeline, release=released, read=values_as_returned, delta=delta, always=())
        points = [(f"{noise.title()}, two answers", make, Answers(n_answers=2, low=0.0, high=2.0))]
        bits = _gaussian_bits(delta > 0)
        targets += _targets(public, points, adjacencies=(adjacency,), search_runs=10_000, known_bits=bits)
    return tuple(targets)


def _bounds(public: PublicCallable) -> Form:
    package = import_module("pipeline_dp")

    def release(engine: Any, rows: list[Any]) -> Any:
        parameters = package.CalculatePrivateContributionBoundsParams(
            aggregation_noise_kind=package.NoiseKind.LAPLACE,
            aggregation_eps=1.0,
            aggregation_delta=0.0,
            calculation_eps=1.0,
            max_partitions_contributed_upper_bound=4,
        )
        engine._budget_accountant.request_budget(package.aggregate_params.MechanismType.LAPLACE)
        return engine.calculate_private_contribution_bounds(rows, parameters, extractors(), [*range(4), KNOWN[1]])

    def most(found: list[Any]) -> Any:
        return found[0].max_partitions_contributed

    make = partial(Pipeline, release=release, read=most, source="calculation_eps")
    rows = Rows(values=_rows((0.0,), tuple(range(4))).values, most=8, rows_per_user=4)
    points = [("calculation_eps=1, four partitions", make, rows)]
    return _targets(public, points, runs=5_000, search_runs=2_000, cost=4)
