"""Measurements of OpenDP as mechanisms to audit, with claim and neighbours read from the measurement."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import AdjacencyError, DatasetError, MechanismError, OptionError
from ...audit.events.outputs import Raised
from ...audit.printing import shorten
from .library_calls import imported
from .opendp_claims import MapClaim
from .opendp_neighbours import neighbours_under

Draws = Literal["together", "singly", "vectors"]

# What OpenDP says of every frame where it checks a margin over all rows, which it cannot.
_NO_KEYS = "at least one key is required in a group_by"
_AT_ONCE = 1000  # draws per call of the library; more do not raise the rate
_VECTOR_METRICS = {"make_laplace": "l1_distance", "make_geometric": "l1_distance", "make_gaussian": "l2_distance"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenDPMechanism:
    """Measurement that draws blocks of runs; created by `from_opendp`, which explains the parameters.

    OpenDP uses its own entropy and cannot be seeded, so audits are marked "not reproducible".

    Attributes
    ----------
    measurement : opendp.mod.Measurement
    claim : callable
        The claim as a function of the distance of the pair.
    claim_source : str
        What was read, and the version of the library.
    adjacency : Adjacency or None
        None if this library has no relation for the metric to check a pair by.
    draws : {"together", "singly", "vectors"}
    """

    measurement: Any
    claim: MapClaim
    claim_source: str
    adjacency: Adjacency | None
    draws: Draws = "together"

    def __str__(self) -> str:
        return _name(self.measurement)

    def check_pair(self, x: Any, y: Any, distance: float) -> None:
        """Raise an error if the pair is farther apart in the measurement's metric than `distance` times `d_in`.

        A declared relation may hold between datasets that are too far apart in the metric. Nothing is checked if this
        library has no relation for the metric, or cannot measure the pair.

        Raises
        ------
        AdjacencyError
            If the pair is too far apart; the message gives the `d_in` that it needs.
        """
        metric, d_in = str(self.measurement.input_metric), self.claim.d_in
        own = neighbours_under(metric, d_in)
        try:
            steps = 0.0 if own is None else own.distance(x, y)
        except AdjacencyError:
            return
        if steps > distance * (1.0 + 1e-9):
            far = math.isinf(steps)
            found = "at no finite distance" if far else f"{steps * d_in:.12g} apart"
            way_out = "pass another pair" if far else f"use d_in={steps * d_in / distance:.12g}, or pass a closer pair"
            raise AdjacencyError(
                f"the pair is {found} in {metric}, and measurement.map is claimed at {distance * d_in:.12g} (d_in="
                f"{d_in!r} at distance {distance:g}); {way_out}.",
                measured=steps * d_in,
                distance=distance,
                d_in=d_in,
            )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """`size` outputs of independent invocations on `dataset`; the generator is not used.

        Raises
        ------
        DatasetError
            If the dataset is outside the measurement's domain, where the measurement promises nothing.
        MechanismError
            If an output is a queryable, or an invocation raises and runs are not drawn singly.
        """
        outputs = _draw(self.measurement, self.draws, _member(self.measurement, dataset), size)
        if outputs and type(outputs[0]).__name__ in ("Queryable", "OdometerQueryable"):
            raise MechanismError(
                f"{self} returned a queryable, whose outputs depend on the queries; audit a function that asks the "
                "queries and returns all answers as a tuple.",
                mechanism=str(self),
            )
        return [_by_value(output) for output in outputs]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the library's own serialisation, which rejects measurements that contain Python functions."""
        library = _library("mod")
        content, features = library.serialize(self.measurement), sorted(library.GLOBAL_FEATURES)
        rest = {"claim_source": self.claim_source, "adjacency": self.adjacency, "draws": self.draws}
        return _reopened, (content, features, self.claim.d_in, self.claim.order, rest)


def from_opendp(
    measurement: Any,
    *,
    d_in: Any = 1,
    adjacency: Adjacency | None = None,
    order: float | None = None,
    draws: Draws = "together",
) -> OpenDPMechanism:
    """Return an OpenDP measurement as a mechanism, with the claim of its map and the neighbours of its metric.

    Parameters
    ----------
    measurement : opendp.mod.Measurement
        Any domain, metric and measure, including chains, compositions and measurements written in Python.
    d_in : Any
        Distance of neighbours in the measurement's metric: 1 row, or the largest change of an answer. A pair at
        ``distance=k`` is audited against ``measurement.map(k * d_in)``.
    adjacency : Adjacency, optional
        Replaces the metric's own relation; neighbours must be at most `d_in` apart in the metric. For example,
        ``Replace()`` with ``d_in=2`` for a measurement of ``symmetric_distance()``. A pair that is farther apart is
        rejected.
    order : float, optional
        For a Rényi curve, the order to audit.
    draws : {"together", "singly", "vectors"}
        How to draw runs. "together" composes the measurement with itself and draws a thousand invocations per call, 2
        to 4 times as fast as "singly". "singly" draws one invocation per call, and a run that raises is an output like
        any other; measures that cannot be composed always use it. "vectors" rebuilds the measurement over vectors with
        its own constructor, so the coordinates are the runs: the fastest for integers, and threads run in parallel. It
        audits the vector form of the noise, so it is never the default, and only `make_laplace`, `make_geometric` and
        `make_gaussian` on numbers support it.

    Raises
    ------
    MechanismError
        If the object is not a measurement, or cannot be drawn as requested.
    ClaimError
        If its map states no claim at `d_in`.
    AuditError
        If OpenDP is not installed.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib")
    >>> laplace = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=2.0)
    >>> mechanism = from_opendp(laplace)
    >>> print(mechanism, mechanism.claim(1), mechanism.claim(3), mechanism.adjacency, sep="; ")
    make_laplace; 0.5-DP; 1.5-DP; answers within 1 in L1
    """
    library = _library("mod")
    if not isinstance(measurement, library.Measurement):
        raise MechanismError(
            f"measurement={shorten(measurement)} is not a Measurement of OpenDP; chain a partial constructor with its "
            "(domain, metric), and query an odometer in a function of your own.",
            type=type(measurement).__name__,
        )
    if isinstance(d_in, np.generic):
        d_in = d_in.item()
    if isinstance(d_in, (int, float)) and not 0 < d_in < math.inf:
        raise OptionError(f"d_in={d_in!r} is not a distance of neighbours; use a positive number.", d_in=d_in)
    metric, measure = str(measurement.input_metric), str(measurement.output_measure)
    claim = MapClaim(measurement, d_in, order)
    claim(1)  # raises now if the map states no claim
    found = neighbours_under(metric, d_in) if adjacency is None else adjacency
    at = "distance" if d_in == 1 else f"{d_in!r} * distance"
    source = f"measurement.map({at}) of opendp {library.__version__}, {measure} on {metric}"
    if adjacency is not None:
        source += f", neighbours as declared ({adjacency})"
    elif found is None:
        source += ", a metric for which pairs are not checked"
    _draw(measurement, draws, None, 0)  # raises if this way of drawing is not possible
    return OpenDPMechanism(measurement=measurement, claim=claim, claim_source=source, adjacency=found, draws=draws)


def _reopened(
    content: str, features: list[str], d_in: Any, order: float | None, rest: dict[str, Any]
) -> OpenDPMechanism:
    library = _library("mod")
    library.enable_features(*features)
    measurement = library.deserialize(content)
    return OpenDPMechanism(measurement=measurement, claim=MapClaim(measurement, d_in, order), **rest)


def _library(module: str) -> Any:
    """Return a module of OpenDP."""
    imported("opendp", "opendp")
    return imported(f"opendp.{module}", "opendp")


def _name(part: Any) -> str:
    """Return the recorded names of the constructors that made a measurement, in the order of the data flow."""
    record = getattr(part, "__opendp_dict__", {})
    held = record.get("__kwargs__", {})
    inner = [held[key] for key in ("transformation0", "transformation1", "measurement0", "measurement1") if key in held]
    return " >> ".join(map(_name, inner)) if inner else record.get("__function__", type(part).__name__)


def _member(measurement: Any, dataset: Any) -> Any:
    """Return the dataset in the library's types after checking the domain, which an invocation does not do."""
    domain = measurement.input_domain
    if isinstance(dataset, (np.ndarray, np.generic)) and str(measurement.input_carrier_type) != "ExtrinsicObject":
        dataset = dataset.tolist()
    is_lazy = hasattr(type(dataset), "collect_schema")
    try:
        with warnings.catch_warnings() if is_lazy else nullcontext():
            if is_lazy:
                warnings.simplefilter("error")
            is_member = bool(domain.member(dataset))
    except Warning as warning:  # where warnings are errors
        is_member = is_lazy and _NO_KEYS in str(warning)
    if not is_member:
        raise DatasetError(
            f"the dataset {shorten(dataset)} ({type(dataset).__name__}) is not in the measurement's domain {domain}, "
            "the only datasets that its claim covers; pass a dataset of that type and within those bounds.",
            type=type(dataset).__name__,
        )
    return dataset


def _draw(measurement: Any, draws: Draws, dataset: Any, size: int) -> list[Any]:
    """Return `size` outputs on a dataset of the domain."""
    if draws == "vectors":
        vectors = _over_vectors(measurement)
        return _many(lambda number: vectors([dataset] * _AT_ONCE)[:number], size)
    if draws == "together" and _composable(_Known(measurement)) is not None:
        return _many(lambda number: _together(measurement, dataset, number), size)
    if draws in ("together", "singly"):
        return [_singly(measurement, dataset) for _ in range(size)]
    raise OptionError(f'draws={draws!r} is unknown; use "together", "singly" or "vectors".', draws=draws)


def _many(draw: Callable[[int], list[Any]], size: int) -> list[Any]:
    return [output for start in range(0, size, _AT_ONCE) for output in draw(min(_AT_ONCE, size - start))]


def _singly(measurement: Any, dataset: Any) -> Any:
    try:
        return measurement(dataset)
    except Exception as error:  # an adversary sees the exception
        return Raised(type(error).__qualname__)


def _together(measurement: Any, dataset: Any, number: int) -> list[Any]:
    """Return outputs of a composition of the measurement with itself, which invokes it repeatedly on the same data."""
    try:
        outputs: list[Any] = _composition(_Known(measurement), number)(dataset)
    except Exception as error:
        raise MechanismError(
            f"an invocation of {_name(measurement)} raised {type(error).__name__}: {' '.join(str(error).split())}; "
            'use draws="singly", which counts exceptions as outputs.',
            type=type(error).__name__,
        ) from error
    return outputs


class _Known:
    """Cache key for a measurement, equal only to itself."""

    __slots__ = ("measurement",)

    def __init__(self, measurement: Any) -> None:
        self.measurement = measurement

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and other.measurement is self.measurement

    def __hash__(self) -> int:
        return id(self.measurement)


@lru_cache(maxsize=64)
def _composition(known: _Known, number: int) -> Any:
    """Return `number` copies of a measurement as one; cached because creating it takes longer than drawing a block."""
    return _compose()([_composable(known)] * number)


def _compose() -> Callable[[list[Any]], Any]:
    """Return the constructor of a composition of measurements, which had another name before OpenDP 0.14."""
    library = _library("combinators")
    found: Callable[[list[Any]], Any] = getattr(library, "make_composition", None) or library.make_basic_composition
    return found


@lru_cache(maxsize=64)
def _composable(known: _Known) -> Any:
    """Return a measurement with the same function that can be composed, or None.

    Frames are drawn one by one: reading those of a composition ends the process (OpenDP 0.16).
    """
    if "FrameDomain" in str(known.measurement.input_domain):
        return None
    library, error = _library("combinators"), _library("mod").OpenDPException
    for is_fixed in (False, True):
        try:
            same = library.make_fix_delta(known.measurement, 0.5) if is_fixed else known.measurement
            _compose()([same])
        except (error, TypeError):
            continue
        return same
    return None


def _over_vectors(measurement: Any) -> Any:
    """Return the same noise on each coordinate of a vector, rebuilt from OpenDP's record of the constructor call."""
    record: dict[str, Any] = getattr(measurement, "__opendp_dict__", {})
    name, held = str(record.get("__function__")), record.get("__kwargs__", {})
    metric = _VECTOR_METRICS.get(name)
    if metric is None or not str(held["input_domain"]).startswith("AtomDomain"):
        raise MechanismError(
            f'draws="vectors" is for {", ".join(_VECTOR_METRICS)} on single numbers, not for {_name(measurement)}; use '
            'draws="together".',
            mechanism=_name(measurement),
        )
    space = {
        "input_domain": _library("domains").vector_domain(held["input_domain"], size=_AT_ONCE),
        "input_metric": getattr(_library("metrics"), metric)(T=held["input_metric"].distance_type),
    }
    return getattr(_library("measurements"), name)(**{**held, **space})


def _by_value(output: Any) -> Any:
    """Return an output that compares by value: a dictionary becomes its keys as one text, then its sorted items.

    A threshold decides which keys are present. As one text, the set of keys is an outcome, also for events. If there
    are many keys, and so many different texts, an event can use single keys among the items.
    """
    if hasattr(type(output), "collect"):  # a lazy frame, released once
        return _of_frame(output.collect())
    if isinstance(output, dict):
        keys = sorted(output, key=repr)
        return (", ".join(map(repr, keys)), *((key, _by_value(output[key])) for key in keys))
    if isinstance(output, (list, tuple)) and any(isinstance(part, (dict, list, tuple)) for part in output):
        return tuple(map(_by_value, output))
    return output


def _of_frame(frame: Any) -> Any:
    """Return a frame as its number, the numbers of its row, or its rows, sorted as their order says nothing."""
    rows = sorted(frame.rows(), key=repr)
    if len(rows) != 1:
        return tuple(rows)
    return rows[0][0] if len(rows[0]) == 1 else rows[0]
