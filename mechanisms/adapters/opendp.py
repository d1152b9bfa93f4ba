"""Measurements of OpenDP."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np

from ...audit.claims.claim import ApproxDP, Array, Claim, PureDP
from ...audit.claims.privacy_profile import PrivacyProfile
from ...audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from ...audit.datasets.adjacency import AddRemove, Adjacency, Local, Replace, Within
from ...audit.errors import AdjacencyError, AuditError, ClaimError, DatasetError, MechanismError, OptionError
from ...audit.events.outputs import Raised
from ...audit.printing import shorten
from ...audit.replay.distributions import Distribution, same_parameter
from ...audit.replay.registered import Patch
from ...audit.replay.tape import Declared, active_tape
from .library_calls import imported

# Claim of an OpenDP measurement: its privacy map, in the unit of its output measure.
#
# The same number is an epsilon under one measure and a rho under another. An unknown measure is therefore an error and
# is never read as a similar one.

_APPROXIMATE = "Approximate("
_ORDERS = 1.0 + np.logspace(-2, 6, 321)
_FIRST_TRIED = 40  # step between orders in the search for the first at which the curve holds


@dataclass(frozen=True, slots=True)
class MapClaim:
    """Claim of a measurement as a function of the distance k of a pair: its map at k times `d_in`."""

    measurement: Any
    d_in: Any
    order: float | None = None

    def __call__(self, distance: float) -> Claim:
        d_in, measure = self._at(distance), str(self.measurement.output_measure)
        if self.order is not None and measure != "RenyiDivergence":
            raise ClaimError(
                f"order={self.order!r} applies to a Rényi divergence, and the measurement's measure is {measure}; omit "
                "order.",
                order=self.order,
            )
        try:
            d_out = self.measurement.map(d_in)
        except Exception as error:  # TypeError, OpenDPException, or any exception of a map written in Python
            raise ClaimError(
                f"the measurement's map({d_in!r}) raised {type(error).__name__}: {' '.join(str(error).split())}; give "
                f"d_in in the units of {self.measurement.input_metric}.",
                d_in=d_in,
            ) from error
        try:
            return claim_of(measure, d_out, self.order)
        except ClaimError as error:
            raise ClaimError(f"map({d_in!r}) under {measure} is not a claim: {error}", **error.facts) from error

    def _at(self, distance: float) -> Any:
        """Return `d_in` times the distance, in the metric's own type."""
        if not isinstance(self.d_in, (int, float)):
            if distance == 1:
                return self.d_in
            raise ClaimError(
                f"d_in={self.d_in!r} cannot be multiplied by the distance {distance:g}; pass the d_in of that "
                "distance, and distance=1.",
                d_in=self.d_in,
                distance=distance,
            )
        found = self.d_in * distance
        if not str(self.measurement.input_distance_type).startswith(("i", "u")):
            return float(found)
        if found != int(found):
            raise ClaimError(
                f"the distance {found:g} is not whole; use a whole number for {self.measurement.input_metric}.",
                distance=found,
            )
        return int(found)


def claim_of(measure: str, d_out: Any, order: float | None = None) -> Claim:
    """Return the claim for a distance under a measure; if no claim type states all of it, the implied privacy profile.

    The measure is named as OpenDP prints it. An unknown one, or a distance that claims nothing, raises a `ClaimError`.
    For a Rényi curve without an `order`, the claim is the privacy profile that all orders together imply.

    >>> print(claim_of("MaxDivergence", 0.5), claim_of("ZeroConcentratedDivergence", 0.5), sep=", ")
    0.5-DP, 0.5-zCDP
    >>> print(claim_of("Approximate(MaxDivergence)", (1.0, 1e-6)))
    (1, 1e-06)-DP
    """
    if measure.startswith(_APPROXIMATE):
        inner, (distance, delta) = measure[len(_APPROXIMATE) : -1], d_out
        if delta == 0:
            return claim_of(inner, distance, order)
        if inner == "MaxDivergence":
            return ApproxDP(distance, delta)
        # (ε, δ')-close given events of probability ≥ 1 − δ each, so (ε, δ' + δ)-close unconditionally.
        return _profile(_delta_of(inner, distance), delta)
    if measure == "MaxDivergence":
        return PureDP(d_out)
    if measure == "ZeroConcentratedDivergence":
        return ZeroConcentratedDP(d_out)
    if measure == "FixedSmoothedMaxDivergence":
        return ApproxDP(*d_out)
    if measure == "RenyiDivergence" and order is not None:
        return RenyiDP(order, _divergence(d_out, order))
    return _profile(_delta_of(measure, d_out))


def _delta_of(measure: str, distance: Any) -> Callable[[float], float]:
    """Return the delta that a distance under a measure allows, as a function of epsilon."""
    if measure == "SmoothedMaxDivergence":
        delta: Callable[[float], float] = distance.delta
        return delta
    if measure == "ZeroConcentratedDivergence":
        return lambda epsilon: _renyi_delta(distance * _ORDERS, epsilon)
    if measure == "RenyiDivergence":
        divergences = _divergences(distance)
        return lambda epsilon: _renyi_delta(divergences, epsilon)
    raise ClaimError(
        f"the measure {measure} is unknown; pass claim= to check, and to from_opendp a measurement of a known measure "
        "(MaxDivergence, ZeroConcentratedDivergence, SmoothedMaxDivergence, RenyiDivergence, or Approximate of these).",
        measure=measure,
    )


def _divergence(curve: Callable[[float], float], order: float) -> float:
    """Return the value of a Rényi curve at an order."""
    try:
        return curve(order)
    except Exception as error:  # OpenDPException, or any exception of a curve written in Python
        raise ClaimError(
            f"the Rényi curve raised {type(error).__name__} at order {order:g}; pass order=, an order at "
            "which the curve holds.",
            order=order,
        ) from error


def _divergences(curve: Callable[[float], float]) -> Array:
    """Return a Rényi curve at all orders; infinite beyond the first order, on either side, at which it raises.

    An exception takes the library about 70 ms, so not every order is tried.
    """
    found = np.full(len(_ORDERS), np.inf)

    def holds(place: int) -> bool:
        with suppress(ClaimError):
            found[place] = _divergence(curve, float(_ORDERS[place]))
            return True
        return False

    start = next(filter(holds, range(0, len(_ORDERS), _FIRST_TRIED)), None)
    if start is None or not np.isfinite(found[start]):
        raise ClaimError(
            f"the Rényi curve has no finite value at orders from {_ORDERS[0]:g} to {_ORDERS[-1]:.3g}; pass order=, an "
            "order at which the curve holds."
        )
    for places in (range(start + 1, len(_ORDERS)), range(start - 1, -1, -1)):
        for place in places:
            if not holds(place):
                break
    return found


def _renyi_delta(divergences: Array, epsilon: float) -> float:
    """Return the smallest delta that the divergences allow at epsilon (Canonne et al. 2020, Proposition 7)."""
    exponent = (_ORDERS - 1) * (divergences - epsilon) - np.log(_ORDERS - 1) + _ORDERS * np.log1p(-1 / _ORDERS)
    return float(np.exp(min(exponent.min(), 0.0)))


def _profile(delta_at: Callable[[float], float], extra: float = 0.0) -> PrivacyProfile:
    """Return the privacy profile of a function from epsilon to delta, raised by `extra`."""
    return PrivacyProfile.from_pld(SimpleNamespace(get_delta_for_epsilon=lambda epsilon: delta_at(epsilon) + extra))


# Neighbours under an OpenDP metric.


def neighbours_under(metric: str, d_in: Any) -> Adjacency | None:
    """Return the relation whose pairs at distance 1 are at most `d_in` apart under the named metric, or None.

    >>> print(neighbours_under("AbsoluteDistance(f64)", 0.5), neighbours_under("SymmetricDistance()", 2), sep="; ")
    answers within 0.5 in L1; add/remove one row, up to 2 times
    """
    rows: dict[str, Adjacency] = {
        "SymmetricDistance": AddRemove(),
        "InsertDeleteDistance": AddRemove(ordered=True),
        "ChangeOneDistance": Replace(),
        "HammingDistance": Replace(ordered=True),
    }
    name = metric.partition("(")[0]
    if name in rows:
        return rows[name] if d_in == 1 else Steps(rows[name], d_in)
    match name:
        case "DiscreteDistance":
            return Local()
        case "AbsoluteDistance" | "L1Distance":
            return Within("l1", d_in)
        case "L2Distance":
            return Within("l2", d_in)
        case "LInfDistance":
            return (Monotonic if "monotonic" in metric else Within)("linf", d_in)
    return None


@dataclass(frozen=True, slots=True)
class Monotonic(Within):
    """Answers that all move in the same direction; the distance is infinite if some rise and some fall."""

    unit: ClassVar[str] = "one step of the answers"

    def __str__(self) -> str:
        return f"{Within.__str__(self)}, all rising or all falling"

    def distance(self, x: Any, y: Any) -> float:
        moved = Within.distance(self, x, y)
        if not math.isfinite(moved):
            return moved
        signs = np.sign(np.asarray(x, dtype=np.float64) - np.asarray(y, dtype=np.float64))
        return math.inf if signs.min(initial=0.0) < 0 < signs.max(initial=0.0) else moved


@dataclass(frozen=True, slots=True)
class Steps(Adjacency):
    """Datasets at most `steps` steps of another relation apart."""

    base: Adjacency
    steps: float

    unit: ClassVar[str] = "several rows"

    def __str__(self) -> str:
        return f"{self.base}, up to {self.steps:g} times"

    def holds(self, measured: float, distance: float) -> bool:
        return measured <= distance

    def distance(self, x: Any, y: Any) -> float:
        return self.base.distance(x, y) / self.steps


# Invocations of OpenDP measurements for replays: the input, and the loss that the measurement's map states for a move.
#
# OpenDP draws from its own entropy, so the returned value itself is put back. A measurement that returns a queryable is
# not recorded, because what its queries return is drawn later.

_NAME = "OpenDP measurement"


class _QueryableError(Exception):
    """The measurement returned a queryable."""

    def __init__(self, queryable: Any) -> None:
        self.queryable = queryable


def opendp_patches() -> Iterator[Patch]:
    """Yield the patch of the function by which every measurement is invoked."""
    core = imported("opendp.core", "opendp")
    yield Patch(core, "measurement_invoke", _recorded(core.measurement_invoke))


def _recorded(original: Callable[..., Any]) -> Callable[..., Any]:
    def measurement_invoke(measurement: Any, arg: Any) -> Any:
        tape = active_tape()
        if tape is None:
            return original(measurement, arg)

        def draw() -> Any:
            found = original(measurement, arg)
            if type(found).__name__ in ("Queryable", "OdometerQueryable"):
                raise _QueryableError(found)
            return found

        try:
            return tape.call(
                _NAME, lambda: distribution_of(measurement, arg), draw, lambda: declared_by(measurement, arg)
            )
        except _QueryableError as held:
            tape.note_unseen("an OpenDP queryable draws for itself")
            return held.queryable

    return measurement_invoke


def distribution_of(measurement: Any, arg: Any) -> Distribution:
    """Return the input, and what of the measurement can be seen from Python.

    A map in ρ does not say that the noise is Gaussian, so no distribution of its name is stated.
    """
    held = {
        "input": arg,
        "domain": str(measurement.input_domain),
        "metric": str(measurement.input_metric),
        "measure": str(measurement.output_measure),
        "loss of one step": _loss_of_one(measurement),
    }
    return Distribution("measurement", held)


def declared_by(measurement: Any, arg: Any) -> Declared | None:
    """Return what the map promises between this input and another one; None if no relation is known for the metric."""
    if neighbours_under(str(measurement.input_metric), 1) is None:
        return Declared(made=measurement)
    return Declared(input=arg, promise=partial(_promised, measurement), made=measurement)


def _promised(measurement: Any, first: Any, second: Any) -> tuple[float, Claim] | None:
    """Return how far two inputs are apart in the measurement's metric, and the claim of its map for that."""
    metric = neighbours_under(str(measurement.input_metric), 1)
    try:
        apart = math.inf if metric is None else metric.distance(first, second)
        if apart == 0.0 and not same_parameter(first, second, is_exact=True):
            return None  # two whole numbers that one double holds, or rows in another order
        return (apart, MapClaim(measurement, _in_its_type(measurement, apart))(1)) if math.isfinite(apart) else None
    except AuditError:  # inputs that the relation cannot compare, or a map that ends
        return None


def _loss_of_one(measurement: Any) -> float | None:
    with suppress(Exception):  # a map may raise anything, or return a curve
        return float(measurement.map(_in_its_type(measurement, 1.0)))
    return None


def _in_its_type(measurement: Any, distance: float) -> Any:
    """Return a distance as the map takes it, rounded up to a whole number where it counts steps."""
    is_whole = str(measurement.input_distance_type).startswith(("i", "u"))
    return math.ceil(distance) if is_whole else float(distance)


# Measurements of OpenDP as mechanisms to audit, with claim and neighbours read from the measurement.

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
        """Raise an `AdjacencyError`, which names the `d_in` needed, if the pair is farther apart than `distance`."""
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
        """Return `size` outputs of independent invocations; refuses a dataset outside the domain, and a queryable."""
        outputs = self._draw(_member(self.measurement, dataset), size)
        if outputs and type(outputs[0]).__name__ in ("Queryable", "OdometerQueryable"):
            raise MechanismError(
                f"{self} returned a queryable, whose outputs depend on the queries; audit a function that asks the "
                "queries and returns all answers as a tuple.",
                mechanism=str(self),
            )
        return [_by_value(output) for output in outputs]

    def _draw(self, dataset: Any, size: int) -> list[Any]:
        """Return `size` outputs on a dataset of the domain; raise an error if they cannot be drawn as requested."""
        if self.draws == "vectors":
            vectors = _over_vectors(self.measurement)
            return _many(lambda number: vectors([dataset] * _AT_ONCE)[:number], size)
        if self.draws == "together" and _composable(self) is not None:
            return _many(lambda number: _together(self, dataset, number), size)
        if self.draws in ("together", "singly"):
            return [_singly(self.measurement, dataset) for _ in range(size)]
        raise OptionError(f'draws={self.draws!r} is unknown; use "together", "singly" or "vectors".', draws=self.draws)

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

    Returns
    -------
    OpenDPMechanism
        For `check`, `find_worst_pair` and `replay`.

    Raises
    ------
    MechanismError, ClaimError, AuditError
        If the object is not a measurement, or cannot be drawn as requested; its map states no claim at `d_in`; OpenDP
        is not installed.

    See Also
    --------
    dpaudit.check : Audit of the mechanism on a pair.
    Program : A program in any language.

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
    made = OpenDPMechanism(measurement=measurement, claim=claim, claim_source=source, adjacency=found, draws=draws)
    made._draw(None, 0)  # raises if this way of drawing is not possible
    return made


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


def _many(draw: Callable[[int], list[Any]], size: int) -> list[Any]:
    return [output for start in range(0, size, _AT_ONCE) for output in draw(min(_AT_ONCE, size - start))]


def _singly(measurement: Any, dataset: Any) -> Any:
    try:
        return measurement(dataset)
    except Exception as error:  # an adversary sees the exception
        return Raised(type(error).__qualname__)


def _together(mechanism: OpenDPMechanism, dataset: Any, number: int) -> list[Any]:
    """Return outputs of a composition of the measurement with itself, which invokes it repeatedly on the same data."""
    try:
        outputs: list[Any] = _composition(mechanism, number)(dataset)
    except Exception as error:
        raise MechanismError(
            f"an invocation of {mechanism} raised {type(error).__name__}: {' '.join(str(error).split())}; "
            'use draws="singly", which counts exceptions as outputs.',
            type=type(error).__name__,
        ) from error
    return outputs


@lru_cache(maxsize=64)
def _composition(mechanism: OpenDPMechanism, number: int) -> Any:
    """Return `number` copies of a measurement as one; cached because creating it takes longer than drawing a block."""
    return _library("combinators").make_composition([_composable(mechanism)] * number)


@lru_cache(maxsize=64)
def _composable(mechanism: OpenDPMechanism) -> Any:
    """Return a measurement with the same function that can be composed, or None.

    Frames are drawn one by one: reading those of a composition ends the process (OpenDP 0.16).
    """
    if "FrameDomain" in str(mechanism.measurement.input_domain):
        return None
    library, error = _library("combinators"), _library("mod").OpenDPException
    for is_fixed in (False, True):
        try:
            same = library.make_fix_delta(mechanism.measurement, 0.5) if is_fixed else mechanism.measurement
            library.make_composition([same])
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
