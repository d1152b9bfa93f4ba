"""Page on record and replay."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

import networkx as nx
import numpy as np

from ....audit.datasets.adjacency import Adjacency
from ....audit.errors import DatasetError, MechanismError
from ....audit.replay.replay import replay
from ....audit.replay.replay_result import ReplayResult, ReplayVerdict
from ....audit.search.candidates import Pool
from ....audit.search.pairs_for_domain import pairs_of
from ....mechanisms import (
    BinomialMechanism,
    DegreeHistogramMechanism,
    DiscreteGaussianMechanism,
    EdgeCountMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GeometricMechanism,
    GroupTightMechanism,
    HistogramMechanism,
    Interval,
    IntervalOf,
    LaplaceByInverseCDF,
    LaplaceMechanism,
    LocalGaussianMechanism,
    NameAndShame,
    ParallelComposition,
    PermuteAndFlip,
    PostedPriceAuction,
    RandomisedResponse,
    RandomisedResponseFold,
    RareLeakLaplace,
    ReportNoisyMax,
    SequentialComposition,
    SparseVector,
    UpAndDown,
    VectorGaussianMechanism,
)
from ...catalogue.entries import entries
from ...catalogue.fault import Fault
from ...libraries.defects import Defect, Searched, defects
from ...libraries.diffprivlib_fits import Fit, diffprivlib_fits
from ...libraries.diffprivlib_tools import diffprivlib_tools
from ...libraries.pydp_targets import pydp_subjects
from ...libraries.target import Subject, is_installed, left_out, release_of
from ..core.bench_json import Figures, Row, at_least, at_most, columns, timed
from ..core.page import Bench, Effort, Page, Task, counted, once, seeds_of, spread

# What replays say of many pairs: counts of the verdicts, and what the first excess names.


class Named(NamedTuple):
    """The primitive that a finding names, its line, how far its input moved, and the sensitivity that it declares."""

    call: str
    line: str
    moved: str
    sensitivity: str


NOTHING = Named("none", "none", "–", "–")


class Verdicts(NamedTuple):
    """Numbers of pairs by verdict, the pairs on which the mechanism raises, and what the first excess names.

    `first` is the verdict on the first pair.
    """

    excess: int
    bounded: int
    open: int
    raised: int
    named: Named | None
    first: str


def named(result: ReplayResult) -> Named | None:
    """Return what the first excess of a replay names; None without an excess."""
    found = next((finding for finding in result.findings if finding.is_excess), None)
    if found is None:
        return None
    if found.call is None or found.place is None:
        return Named("all calls", found.message, "–", "–")
    call = result.calls[found.call]
    moved, sensitivity = ("–" if number is None else format(number, ".6g") for number in (call.moved, call.sensitivity))
    return Named(call.primitive, str(found.place), moved, sensitivity)


def verdicts(mechanism: Any, pairs: Iterable[tuple[Any, Any]], first_seed: int, **options: Any) -> Verdicts:
    """Replay every pair with a different seed, and count the verdicts."""
    said: list[str] = []
    at_fault: Named | None = None
    for seed, (x, y) in enumerate(pairs, start=first_seed):
        try:
            result = replay(mechanism, x, y, seed=seed, **options)
        except (MechanismError, DatasetError):  # it raises on both, or refuses one
            said.append("raised")
            continue
        said.append(result.verdict.name)
        at_fault = at_fault or named(result)
    counts, of = Counter(said), ReplayVerdict
    numbers = counts[of.EXCESS.name], counts[of.BOUNDED.name], counts[of.OPEN.name], counts["raised"]
    return Verdicts(*numbers, at_fault, said[0].lower() if said else "–")


# Replays of mechanisms that are made of several parts: the catalogue of bugs, tools, models and aggregates.

_PAIRS, _SLOW_PAIRS, _COMPOSITE_QUICK_PAIRS = 100, 20, 2  # slow ones are models
_COMPOSITE_TABLE = 38  # number for `seeds_of`
_COMPOSITE_QUICK = ("catalogue: scale-epsilon", "mean", "Count")
_LEFT_OUT = ("floating point",)  # families of the catalogue: low bits, which replays do not compare


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A mechanism with a domain of its datasets, or one pair.

    Attributes
    ----------
    make : callable
    domain : Domain, optional
    pair : tuple of (x, y), optional
        A pair that shows the bug, replayed first.
    adjacency, claim, distance
        As in `replay`; by default the mechanism's own.
    """

    make: Callable[[], Any] = field(repr=False)
    domain: Any = None
    pair: tuple[Any, Any] | None = None
    adjacency: Adjacency | None = None
    claim: Any = None
    distance: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite:
    """A mechanism that is known to break its claim, if there is one, and one that is not."""

    name: str
    library: str = ""
    wrong: Side | None = None
    right: Side | None = None
    is_slow: bool = False


@cache
def composites() -> tuple[Composite, ...]:
    """Return the catalogue, the defects of libraries, and tools, models and aggregates."""
    return (
        *(_of_fault(fault) for fault in entries() if fault.family not in _LEFT_OUT),
        *(_of_defect(defect) for defect in defects() if defect.by == "values"),
        *(_of_subject(subject, "diffprivlib") for subject in diffprivlib_tools()),
        *(_of_fit(fit) for fit in diffprivlib_fits()),
        *(_of_subject(subject, "pydp") for subject in pydp_subjects()),
    )


def _of_fault(fault: Fault) -> Composite:
    def side(mechanism: Any) -> Side:
        return Side(
            make=lambda: mechanism,
            domain=fault.domain,
            pair=(fault.x, fault.y),
            adjacency=fault.adjacency,
            claim=fault.claim,
            distance=fault.distance,
        )

    right = None if fault.correct is None else side(fault.correct)
    return Composite(name=f"catalogue: {fault.name}", wrong=side(fault.mechanism), right=right)


def _of_defect(defect: Defect) -> Composite:
    def side(searched: Searched) -> Side:
        return Side(make=searched.make, domain=searched.domain, adjacency=searched.adjacency)

    name = f"defect: {defect.name}"
    return Composite(name=name, library=defect.library, wrong=side(defect.broken), right=side(defect.twin))


def _of_subject(subject: Subject, library: str) -> Composite:
    return Composite(name=subject.name, library=library, right=Side(make=subject.make, domain=subject.domain))


def _of_fit(fit: Fit) -> Composite:
    """A model that is not known to keep its claim counts as wrong: an excess is then a finding, and no miss."""
    side = Side(make=fit.make, domain=fit.domain)
    kind = {"right": side} if fit.is_right else {"wrong": side}
    return Composite(name=fit.name, library="diffprivlib", is_slow=True, **kind)


def _replayed(side: Side, count: int, seed: int) -> tuple[Verdicts, int, float]:
    """Return the verdicts, their number and the seconds: the pair of the bug, usual patterns, and random pairs."""
    mechanism = side.make()
    adjacency = getattr(mechanism, "adjacency", None) if side.adjacency is None else side.adjacency
    pairs = [] if side.pair is None else [side.pair]
    if side.domain is not None:
        source = pairs_of(side.domain, adjacency, side.distance, seed)
        pool = Pool(source, adjacency, side.distance, seed, getattr(mechanism, "check_pair", None))
        found = [*islice(pool.patterns(count), count // 2)]
        found += [*pool.drawn(count - len(found) - len(pairs))]
        pairs += [(each.x, each.y) for each in found]
    options = {"adjacency": side.adjacency, "claim": side.claim, "distance": side.distance}
    counted, seconds = timed(verdicts, mechanism, pairs, seed, **options)
    return counted, len(pairs), seconds


def _composite_cells(effort: Effort, place: int, name: str) -> Figures:
    composite = composites()[place]
    seed = seeds_of(_COMPOSITE_TABLE, place, 0, 1)[0]
    count = min(effort.audits, effort.either(_COMPOSITE_QUICK_PAIRS, _SLOW_PAIRS if composite.is_slow else _PAIRS))
    cells: dict[str, Any] = {"composite": name, "release": release_of(composite.library)}
    pairs, seconds, at_fault, excess, of_the_bug = 0, 0.0, None, 0, "–"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows in fits to noise
        for kind, side in (("wrong", composite.wrong), ("right", composite.right)):
            if side is None:
                cells |= {f"{kind}_{each}": None for each in ("pairs", "excess", "bounded", "open", "raised")}
                continue
            found, number, taken = _replayed(side, count, seed)
            pairs, seconds = pairs + number, seconds + taken
            cells |= {f"{kind}_pairs": number, f"{kind}_excess": found.excess, f"{kind}_bounded": found.bounded}
            cells |= {f"{kind}_open": found.open, f"{kind}_raised": found.raised}
            at_fault, excess = at_fault or found.named, found.excess if kind == "right" else excess
            of_the_bug = found.first if kind == "wrong" and side.pair is not None else of_the_bug
    return {**cells, "of_the_bug": of_the_bug, **(at_fault or NOTHING)._asdict(), "rate": pairs / seconds}, [
        at_most("excess of right ones", excess, 0)
    ]


def _composite_tasks(effort: Effort) -> Iterator[Task]:
    for place, composite in enumerate(composites()):
        is_wanted = effort.wants(composite.name) and (not effort.is_quick or composite.name in _COMPOSITE_QUICK)
        if is_wanted and (not composite.library or is_installed(composite.library)):
            yield once(composite.name, _composite_cells, effort, place, composite.name)


COMPOSITES = Bench(
    name="composites",
    title="Replays of composite mechanisms",
    method=(
        "The catalogue of bugs without those of floating point, the defects of libraries by values, tools and models "
        "of diffprivlib, and aggregates of PyDP, whose noise is hidden in C++. Pairs: the one that shows the bug, "
        "usual patterns, and random ones. Wrong: mechanisms with a bug, and models that are not known to keep their "
        "claim. Right: the correct twins, and tools without a known defect. An excess of a right one would be a false "
        "finding. On a pair that a bug does not touch, a wrong one may be bounded. Call and line are what the first "
        "excess names."
    ),
    columns=columns(
        "composite | release | wrong, pairs = wrong_pairs | excess = wrong_excess | bounded = wrong_bounded | open = "
        "wrong_open | raised = wrong_raised | the pair of the bug = of_the_bug | call | line | moved | declared "
        "sensitivity = sensitivity | right, pairs = right_pairs | excess = right_excess | bounded = right_bounded | "
        "open = right_open | raised = right_raised | pairs a second = rate :.3g"
    ),
    names=tuple(composite.name for composite in composites()),
    tasks=_composite_tasks,
)

# Replays of mechanisms that keep their claims, on random neighbours: an excess would be a false finding.

DrawPair: TypeAlias = Callable[[np.random.Generator], tuple[Any, Any]]


def numbers(step: float, *, is_whole: bool = False) -> DrawPair:
    """Draw answers that differ by at most `step`, in half of the pairs by exactly `step`."""

    def pair(rng: np.random.Generator) -> tuple[Any, Any]:
        x, share = float(rng.normal(0.0, 30.0)), float(rng.choice([-1.0, 1.0, *rng.uniform(-1.0, 1.0, 2)]))
        return (round(x), round(x) + round(share * step)) if is_whole else (x, x + share * step)

    return pair


def vectors(n: int, step: float, norm: Literal["l2", "linf"]) -> DrawPair:
    """Draw vectors that differ by at most `step` in the norm."""

    def pair(rng: np.random.Generator) -> tuple[Any, Any]:
        x, move = rng.normal(0.0, 3.0, n), rng.uniform(-1.0, 1.0, n)
        length = np.max(np.abs(move)) if norm == "linf" else np.linalg.norm(move)
        return x, x + move * (step * rng.choice([1.0, rng.random()]) / length)

    return pair


def rows(values: list[Any], *, most: int = 6) -> DrawPair:
    """Draw collections of which one has one more row, in either order."""

    def pair(rng: np.random.Generator) -> tuple[Any, Any]:
        held = rng.choice(values, rng.integers(1, most + 1)).tolist()
        return (held, held[:-1]) if rng.random() < 0.5 else (held[:-1], held)

    return pair


def values(k: int) -> DrawPair:
    """Draw two of k values."""
    return lambda rng: (int(rng.integers(k)), int(rng.integers(k)))


def replaced(values: list[Any], *, most: int = 5) -> DrawPair:
    """Draw collections of which one row was replaced."""

    def pair(rng: np.random.Generator) -> tuple[Any, Any]:
        x = rng.choice(values, rng.integers(1, most + 1)).tolist()
        y = list(x)
        y[int(rng.integers(len(y)))] = rng.choice(values).item()
        return x, y

    return pair


def edges(rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw graphs of six nodes of which one has one more edge, in either order."""
    x = nx.gnp_random_graph(6, float(rng.uniform(0.2, 0.8)), seed=int(rng.integers(2**31)))
    y = x.copy()
    one, other = rng.choice(6, 2, replace=False).tolist()
    (y.remove_edge if y.has_edge(one, other) else y.add_edge)(one, other)
    return x, y


def _far(rng: np.random.Generator) -> tuple[Any, Any]:
    x, y = rng.normal(0.0, 9.0, 2).tolist()
    return x, y


_TWO = SequentialComposition((VectorGaussianMechanism(1.0, 1e-5), GeometricMechanism(0.5, query=len)))
_PARTS = ParallelComposition(
    [GeometricMechanism(epsilon, query=len) for epsilon in (0.5, 1.0, 0.25)], IntervalOf((1.0, 3.0))
)
REFERENCES: dict[str, tuple[Any, DrawPair]] = {
    "LaplaceMechanism": (LaplaceMechanism(0.5, sensitivity=2.0), numbers(2.0)),
    "LaplaceMechanism of a count": (LaplaceMechanism(1.0, query=len), rows([1.0, 2.0])),
    "LaplaceByInverseCDF": (LaplaceByInverseCDF(0.5, sensitivity=2.0), numbers(2.0)),
    "GeometricMechanism": (GeometricMechanism(0.5, sensitivity=2), numbers(2.0, is_whole=True)),
    "GaussianMechanism": (GaussianMechanism(1.0, 1e-5), numbers(1.0)),
    "GaussianMechanism, classical": (GaussianMechanism(0.5, 0.01, calibration="classical"), numbers(1.0)),
    "DiscreteGaussianMechanism": (DiscreteGaussianMechanism(1.3, 1.0, sensitivity=2), numbers(2.0, is_whole=True)),
    "BinomialMechanism": (BinomialMechanism(50, 1.0, sensitivity=2), numbers(2.0, is_whole=True)),
    "VectorGaussianMechanism": (VectorGaussianMechanism(1.0, 1e-5), vectors(3, 1.0, "l2")),
    "LocalGaussianMechanism": (LocalGaussianMechanism(1.0, 1e-5, Interval(-1, 3)), _far),
    "HistogramMechanism": (HistogramMechanism(1.0, k=3), rows([0, 1, 2])),
    "HistogramMechanism, geometric": (
        HistogramMechanism(1.0, k=3, sensitivity=2, noise="geometric"),
        rows([0, 1, 2]),
    ),
    "RandomisedResponse": (RandomisedResponse(1.0), values(2)),
    "RandomisedResponse of six": (RandomisedResponse(2.0, k=6), values(6)),
    "ExponentialMechanism": (ExponentialMechanism(1.0), vectors(4, 1.0, "linf")),
    "ReportNoisyMax": (ReportNoisyMax(1.0), vectors(4, 1.0, "linf")),
    "ReportNoisyMax, Gumbel": (ReportNoisyMax(2.0, noise="gumbel"), vectors(4, 1.0, "linf")),
    "ReportNoisyMax, exponential": (ReportNoisyMax(1.0, noise="exponential"), vectors(4, 1.0, "linf")),
    "PermuteAndFlip": (PermuteAndFlip(1.0), vectors(4, 1.0, "linf")),
    "SequentialComposition": (_TWO, vectors(2, 1.0, "l2")),
    "ParallelComposition": (_PARTS, rows([0.0, 1.0, 2.0, 3.01])),
    "RandomisedResponseFold": (RandomisedResponseFold(0.25, 30), values(2)),
    "UpAndDown": (UpAndDown(0.25, 30), values(4)),
    "SparseVector": (SparseVector(1.0), vectors(3, 1.0, "linf")),
    "SparseVector, refreshed": (SparseVector(2.0, 2, threshold=0.5, refresh=True), vectors(3, 1.0, "linf")),
    "PostedPriceAuction": (PostedPriceAuction(2.0, [1.0, 2.0, 3.01, 4.0]), rows([0.5, 1.0, 2.5, 3.01, 4.0])),
    "EdgeCountMechanism": (EdgeCountMechanism(0.5), edges),
    "DegreeHistogramMechanism": (DegreeHistogramMechanism(0.5, 6), edges),
    "NameAndShame": (NameAndShame(0.05), replaced([1, 2, 3])),
    "RareLeakLaplace": (RareLeakLaplace(0.5, 0.01), numbers(1.0)),
    "GroupTightMechanism": (GroupTightMechanism(1.0, 0.01, query=len), rows([1.0, 2.0])),
}
"""By name: the mechanism, and a function that draws x and y from a generator."""


_FINDINGS_QUICK_PAIRS, _BATCH = 3, 50
_FINDINGS_TABLE = 36  # number for `seeds_of`
_FINDINGS_QUICK = ("LaplaceMechanism", "SparseVector")
_COUNTS = ("pairs", "excess", "bounded", "open", "raised")


def _right_fits() -> list[str]:
    return [fit.name for fit in diffprivlib_fits() if fit.is_right]


def _subject(name: str) -> tuple[Any, DrawPair]:
    """Return a mechanism with a function that draws a pair of its neighbours; a fit needs diffprivlib."""
    return REFERENCES[name] if name in REFERENCES else _fitted(name)


@cache
def _fitted(name: str) -> tuple[Any, DrawPair]:
    fit = next(fit for fit in diffprivlib_fits() if fit.name == name)
    mechanism = fit.make()
    source = pairs_of(fit.domain, mechanism.adjacency, 1.0, 0)

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        (pair,) = Pool(source, mechanism.adjacency, 1.0, int(rng.integers(2**32)), None).drawn(1)
        return pair.x, pair.y

    return mechanism, draw


def _counts(name: str, seeds: range) -> Counter[str]:
    mechanism, draw = _subject(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows in fits to noise
        found = verdicts(mechanism, (draw(np.random.default_rng(seed)) for seed in seeds), seeds.start)
    return Counter({"pairs": len(seeds), **{each: getattr(found, each) for each in _COUNTS[1:]}})


def _findings_cells(name: str, total: Counter[str]) -> Figures:
    counts = {each: total[each] for each in _COUNTS}
    targets = [at_most("excess", total["excess"], 0), at_most("raised", total["raised"], 0)]
    return {"mechanism": name, "claim": str(_subject(name)[0].claim), **counts}, targets


def _rows(name: str, place: int, wanted: int, jobs: int, former: Row | None) -> Iterator[Row]:
    return counted(
        name,
        partial(_counts, name),
        partial(_findings_cells, name),
        former,
        names=_COUNTS,
        seeds=lambda used: seeds_of(_FINDINGS_TABLE, place, used, max(0, wanted - used)),
        batch=_BATCH,
        jobs=jobs,
    )


def _findings_tasks(effort: Effort) -> Iterator[Task]:
    wanted = min(effort.audits, effort.either(_FINDINGS_QUICK_PAIRS, effort.audits))
    names = [*REFERENCES, *(_right_fits() if is_installed("diffprivlib") else ())]
    for place, name in enumerate(names):
        if effort.wants(name) and (not effort.is_quick or name in _FINDINGS_QUICK):
            yield Task(name, partial(_rows, name, place, wanted, effort.jobs))


FALSE_FINDINGS = Bench(
    name="false-findings",
    title="Replays of mechanisms that keep their claims: the reference mechanisms, and models of diffprivlib",
    method=(
        "Random neighbours, half of those of reference mechanisms as far apart as neighbours can be, each replayed "
        "with a different seed. An excess would be a false finding. Bounded is not a proof and open not a failure: "
        "noise that decides something (sparse vector, noisy max, coins) leaves a replay open. --audits sets the number "
        "of pairs, and --resume adds to those that were replayed."
    ),
    columns=columns("mechanism | claim | pairs :, | excess | bounded :, | open :, | raised"),
    names=(*REFERENCES, *_right_fits()),
    tasks=_findings_tasks,
)

# The defects of libraries again, by searches that replays guide: a tenth of the executions, and the line at fault.

_ALPHA = 1e-6
_SEEDS, _QUICK_SEEDS = 5, 1  # at most; `Effort.audits` may be fewer
_SHARE, _LEAST = 10, 400  # of the executions of an unguided search
_GUIDED_TABLE = 35  # number for `seeds_of`


class _Found(NamedTuple):
    bound: float
    is_refuted: bool
    seconds: float
    pairs: int
    named: Named | None
    replay_seconds: float


def by_values() -> list[Defect]:
    """Return the defects that show in values; replays do not compare low bits."""
    return [defect for defect in defects() if defect.by == "values"]


def guided_bench(quick: str) -> Bench:
    """Return the table, without the rows of libraries that are not installed; `quick` is the row of its quick form."""

    def tasks(effort: Effort) -> Iterator[Task]:
        for place, defect in enumerate(by_values()):
            is_wanted = effort.wants(defect.name) and (not effort.is_quick or defect.name == quick)
            if is_wanted and (not defect.library or is_installed(defect.library)):
                yield once(f"guided: {defect.name}", _guided_cells, defect.name, place, effort)

    return Bench(
        name="guided",
        title="The same defects by searches that replays guide",
        method=(
            f'`find_worst_pair(guide="replay")` with {1 / _SHARE:.0%} of the executions of the unguided search beside '
            f"it, the same audit (alpha {_ALPHA:g}) and the same seeds. Seconds: search and audit, on one worker. "
            "Pairs are those that were replayed. Call, line, movement and declared sensitivity are what a replay on "
            "the pair that the guided search found names first. There were as many searches as the "
            f"column says: at most {_SEEDS}, which take 40 minutes in all, or as many as --audits."
        ),
        columns=columns(
            "object = subject | release = version | parameters = broken | searches | executions = executions :, | "
            "refuted | lower bounds = bounds | seconds | guided executions = few :, | pairs | "
            "guided, refuted = guided_refuted | guided, lower bounds = guided_bounds | "
            "guided, seconds = guided_seconds | with an excess = excess | "
            "call | line | moved | declared sensitivity = sensitivity | seconds of a replay = replay_seconds | "
            "refuted twins = twin_refuted | twins with an excess = twin_excess"
        ),
        names=tuple(defect.name for defect in by_values()),
        tasks=tasks,
    )


def _defect(name: str) -> Defect:
    return next(defect for defect in by_values() if defect.name == name)


def _few(searched: Searched) -> int:
    """The executions of a guided search."""
    return max(searched.search_runs // _SHARE, _LEAST)


def _searched(name: str, is_twin: bool, seed: int, is_guided: bool) -> _Found:
    defect = _defect(name)
    searched = defect.twin if is_twin else defect.broken
    options = {"guide": "replay", "search_runs": _few(searched)} if is_guided else {}
    found, seconds = timed(searched.search, seed=seed, bits=False, alpha=_ALPHA, **options)
    at_fault, replay_seconds = None, 0.0
    if is_guided:
        mechanism = searched.make()
        result, replay_seconds = timed(replay, mechanism, found.x, found.y, adjacency=searched.adjacency, seed=seed)
        at_fault = named(result)
    return _Found(found.audit.bound, found.is_refuted, seconds, found.replayed, at_fault, replay_seconds)


def _guided_cells(name: str, place: int, effort: Effort) -> Figures:
    defect = _defect(name)
    seeds = seeds_of(_GUIDED_TABLE, place, 0, min(effort.audits, effort.either(_QUICK_SEEDS, _SEEDS)))
    kinds = [(False, False), (False, True), (True, True)]  # twin, guided
    calls = [(name, is_twin, seed, is_guided) for is_twin, is_guided in kinds for seed in seeds]
    found = list(spread(_searched, calls, effort.jobs))
    plain, guided, twins = (found[part * len(seeds) : (part + 1) * len(seeds)] for part in range(3))
    at_fault = [one.named for one in guided if one.named is not None]
    alarms, excesses = sum(one.is_refuted for one in twins), sum(one.named is not None for one in twins)
    cells = {
        "subject": name,
        "version": release_of(defect.library),
        "broken": defect.broken.words,
        "searches": len(seeds),
        "executions": defect.broken.search_runs,
        "refuted": sum(one.is_refuted for one in plain),
        "bounds": span([one.bound for one in plain]),
        "seconds": span([one.seconds for one in plain], ".1f"),
        "few": _few(defect.broken),
        "pairs": span([float(one.pairs) for one in guided], ".0f"),
        "guided_refuted": sum(one.is_refuted for one in guided),
        "guided_bounds": span([one.bound for one in guided]),
        "guided_seconds": span([one.seconds for one in guided], ".1f"),
        "excess": len(at_fault),
        **(at_fault[0] if at_fault else NOTHING)._asdict(),
        "replay_seconds": span([one.replay_seconds for one in guided], ".2f"),
        "twin_refuted": alarms,
        "twin_excess": excesses,
    }
    targets = [
        at_least("guided, refuted", cells["guided_refuted"], len(seeds)),
        at_most("refuted twins", alarms, 0),
        at_most("twins with an excess", excesses, 0),
    ]
    return cells, targets


def span(numbers: list[float], spec: str = ".3g") -> str:
    """Return the least and the largest number, or the one that all are."""
    low, high = format(min(numbers), spec), format(max(numbers), spec)
    return low if low == high else f"{low} to {high}"


REPLAYS = Page(
    "replays",
    "Benchmarks of record and replay",
    (FALSE_FINDINGS, COMPOSITES),
    audits=1_000,
    left_out=left_out,
)
