"""Record and replay: false findings on mechanisms that keep their claims, and what replays say of composite ones."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

import networkx as nx
import numpy as np

from ... import mechanisms as m
from ...audit.errors import DatasetError, MechanismError
from ...audit.replay.replay import replay
from ...audit.replay.replay_result import ReplayResult
from ...audit.results.verdict import ReplayVerdict
from ...audit.search.candidates import Pool
from ...audit.search.pairs_for_domain import pairs_of
from ..catalogue.entries import entries
from ..catalogue.fault import Fault
from ..libraries.subjects import Subject, diffprivlib_fits, diffprivlib_tools, pydp_subjects, release_of
from .libraries import all_defects
from .measure import Effort, Figures, Seeds, Table, at_most, by_name, timed

# What replays say of many pairs: counts of the verdicts, and what the first excess names.


class Named(NamedTuple):
    """The primitive that a finding names, its line, how far its input moved, and the sensitivity that it declares."""

    call: str
    line: str
    moved: str
    sensitivity: str


NOTHING = Named("none", "none", "–", "–")


class Verdicts(NamedTuple):
    """Numbers of pairs by verdict, those that raise, what the first excess names, and the verdict on the first pair."""

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
    numbers = counts[of.EXCESS.name], counts[of.BOUNDED.name], counts[of.UNDETERMINED.name], counts["raised"]
    return Verdicts(*numbers, at_fault, said[0].lower() if said else "–")


# Replays of mechanisms that are made of several parts: the catalogue of bugs, tools, models and aggregates.

_PAIRS, _SLOW_PAIRS, _QUICK_PAIRS = 100, 20, 2  # slow ones are models
_LEFT_OUT = ("floating point",)  # families of the catalogue: low bits, which replays do not compare


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite:
    """A mechanism that breaks its claim, if known, and one that does not; the pair shows the bug, replayed first."""

    name: str
    library: str = ""
    wrong: Subject | None = None
    right: Subject | None = None
    claim: Any = None
    distance: float = 1.0
    is_slow: bool = False


@cache
def composites() -> dict[str, Composite]:
    """Return the catalogue, the defects of libraries, and tools, models and aggregates by name."""
    found = (
        *(_of_fault(fault) for fault in entries() if fault.family not in _LEFT_OUT),
        *(
            Composite(name=f"defect: {defect.name}", library=defect.library, wrong=defect.broken, right=defect.variant)
            for defect in all_defects()
            if defect.by == "values"
        ),
        *(Composite(name=subject.name, library="diffprivlib", right=subject) for subject in diffprivlib_tools()),
        # A fit that is not known to keep its claim counts as wrong: an excess is then a finding, and no miss.
        *(
            Composite(
                name=fit.name,
                library="diffprivlib",
                is_slow=True,
                right=fit if fit.is_right else None,
                wrong=None if fit.is_right else fit,
            )
            for fit in diffprivlib_fits()
        ),
        *(Composite(name=subject.name, library="pydp", right=subject) for subject in pydp_subjects()),
    )
    return {composite.name: composite for composite in found}


def _of_fault(fault: Fault) -> Composite:
    name = f"catalogue: {fault.name}"

    def side(mechanism: Any) -> Subject:
        pair = fault.x, fault.y
        return Subject(name=name, make=lambda: mechanism, domain=fault.domain, pair=pair, adjacency=fault.adjacency)

    right = None if fault.correct is None else side(fault.correct)
    return Composite(name=name, wrong=side(fault.mechanism), right=right, claim=fault.claim, distance=fault.distance)


def _replayed(composite: Composite, side: Subject, count: int, seed: int) -> tuple[Verdicts, int, float]:
    """Return the verdicts, their number and the seconds: the pair of the bug, usual patterns, and random pairs."""
    mechanism = side.make()
    adjacency = getattr(mechanism, "adjacency", None) if side.adjacency is None else side.adjacency
    pairs = [] if side.pair is None else [side.pair]
    if side.domain is not None:
        source = pairs_of(side.domain, adjacency, composite.distance, seed)
        pool = Pool(source, adjacency, composite.distance, seed, getattr(mechanism, "check_pair", None))
        found = [*islice(pool.patterns(count), count // 2)]
        found += [*pool.drawn(count - len(found) - len(pairs))]
        pairs += [(each.x, each.y) for each in found]
    options = {"adjacency": side.adjacency, "claim": composite.claim, "distance": composite.distance}
    counted, seconds = timed(verdicts, mechanism, pairs, seed, **options)
    return counted, len(pairs), seconds


def _composite_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    composite, seed = composites()[name], seeds(1)[0]
    count = effort.either(_QUICK_PAIRS, _SLOW_PAIRS if composite.is_slow else _PAIRS)
    cells: dict[str, Any] = {"composite": name, "release": release_of(composite.library)}
    pairs, seconds, at_fault, excess, of_the_bug = 0, 0.0, None, 0, "–"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows in fits to noise
        for kind, side in (("wrong", composite.wrong), ("right", composite.right)):
            if side is None:
                cells |= {f"{kind}_{each}": None for each in ("pairs", "excess", "bounded", "open", "raised")}
                continue
            found, number, taken = _replayed(composite, side, count, seed)
            pairs, seconds = pairs + number, seconds + taken
            cells |= {f"{kind}_pairs": number, f"{kind}_excess": found.excess, f"{kind}_bounded": found.bounded}
            cells |= {f"{kind}_open": found.open, f"{kind}_raised": found.raised}
            at_fault, excess = at_fault or found.named, found.excess if kind == "right" else excess
            of_the_bug = found.first if kind == "wrong" and side.pair is not None else of_the_bug
    return {**cells, "of_the_bug": of_the_bug, **(at_fault or NOTHING)._asdict(), "rate": pairs / seconds}, [
        at_most("excess of right ones", excess, 0)
    ]


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


_TWO = m.SequentialComposition((m.VectorGaussianMechanism(1.0, 1e-5), m.GeometricMechanism(0.5, query=len)))
_PARTS = m.ParallelComposition(
    [m.GeometricMechanism(epsilon, query=len) for epsilon in (0.5, 1.0, 0.25)], m.IntervalOf((1.0, 3.0))
)
REFERENCES: dict[str, tuple[Any, DrawPair]] = {
    "LaplaceMechanism": (m.LaplaceMechanism(0.5, sensitivity=2.0), numbers(2.0)),
    "LaplaceMechanism of a count": (m.LaplaceMechanism(1.0, query=len), rows([1.0, 2.0])),
    "LaplaceByInverseCDF": (m.LaplaceByInverseCDF(0.5, sensitivity=2.0), numbers(2.0)),
    "GeometricMechanism": (m.GeometricMechanism(0.5, sensitivity=2), numbers(2.0, is_whole=True)),
    "GaussianMechanism": (m.GaussianMechanism(1.0, 1e-5), numbers(1.0)),
    "GaussianMechanism, classical": (m.GaussianMechanism(0.5, 0.01, calibration="classical"), numbers(1.0)),
    "DiscreteGaussianMechanism": (m.DiscreteGaussianMechanism(1.3, 1.0, sensitivity=2), numbers(2.0, is_whole=True)),
    "BinomialMechanism": (m.BinomialMechanism(50, 1.0, sensitivity=2), numbers(2.0, is_whole=True)),
    "VectorGaussianMechanism": (m.VectorGaussianMechanism(1.0, 1e-5), vectors(3, 1.0, "l2")),
    "LocalGaussianMechanism": (m.LocalGaussianMechanism(1.0, 1e-5, m.Interval(-1, 3)), _far),
    "HistogramMechanism": (m.HistogramMechanism(1.0, k=3), rows([0, 1, 2])),
    "HistogramMechanism, geometric": (
        m.HistogramMechanism(1.0, k=3, sensitivity=2, noise="geometric"),
        rows([0, 1, 2]),
    ),
    "RandomisedResponse": (m.RandomisedResponse(1.0), values(2)),
    "RandomisedResponse of six": (m.RandomisedResponse(2.0, k=6), values(6)),
    "ExponentialMechanism": (m.ExponentialMechanism(1.0), vectors(4, 1.0, "linf")),
    "ReportNoisyMax": (m.ReportNoisyMax(1.0), vectors(4, 1.0, "linf")),
    "ReportNoisyMax, Gumbel": (m.ReportNoisyMax(2.0, noise="gumbel"), vectors(4, 1.0, "linf")),
    "ReportNoisyMax, exponential": (m.ReportNoisyMax(1.0, noise="exponential"), vectors(4, 1.0, "linf")),
    "PermuteAndFlip": (m.PermuteAndFlip(1.0), vectors(4, 1.0, "linf")),
    "SequentialComposition": (_TWO, vectors(2, 1.0, "l2")),
    "ParallelComposition": (_PARTS, rows([0.0, 1.0, 2.0, 3.01])),
    "RandomisedResponseFold": (m.RandomisedResponseFold(0.25, 30), values(2)),
    "UpAndDown": (m.UpAndDown(0.25, 30), values(4)),
    "SparseVector": (m.SparseVector(1.0), vectors(3, 1.0, "linf")),
    "SparseVector, refreshed": (m.SparseVector(2.0, 2, threshold=0.5, refresh=True), vectors(3, 1.0, "linf")),
    "PostedPriceAuction": (m.PostedPriceAuction(2.0, [1.0, 2.0, 3.01, 4.0]), rows([0.5, 1.0, 2.5, 3.01, 4.0])),
    "EdgeCountMechanism": (m.EdgeCountMechanism(0.5), edges),
    "DegreeHistogramMechanism": (m.DegreeHistogramMechanism(0.5, 6), edges),
    "NameAndShame": (m.NameAndShame(0.05), replaced([1, 2, 3])),
    "RareLeakLaplace": (m.RareLeakLaplace(0.5, 0.01), numbers(1.0)),
    "GroupTightMechanism": (m.GroupTightMechanism(1.0, 0.01, query=len), rows([1.0, 2.0])),
}
"""By name: the mechanism, and a function that draws x and y from a generator."""
_COUNTS = ("pairs", "excess", "bounded", "open", "raised")


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


def _counts(effort: Effort, name: str, seeds: range) -> Counter[str]:
    mechanism, draw = _subject(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows in fits to noise
        found = verdicts(mechanism, (draw(np.random.default_rng(seed)) for seed in seeds), seeds.start)
    return Counter({"pairs": len(seeds), **{each: getattr(found, each) for each in _COUNTS[1:]}})


def _findings_cells(effort: Effort, total: Counter[str], name: str) -> Figures:
    counts = {each: total[each] for each in _COUNTS}
    targets = [at_most("excess", total["excess"], 0), at_most("raised", total["raised"], 0)]
    return {"mechanism": name, "claim": str(_subject(name)[0].claim), **counts}, targets


_SINGLE = by_name([*REFERENCES, *(fit.name for fit in diffprivlib_fits() if fit.is_right)])

TABLES = (
    Table(
        "false-findings", 37, _SINGLE, _findings_cells, count=_counts, counts=_COUNTS, audits=1_000,
        quick=("LaplaceMechanism", "SparseVector"), library=lambda name: "" if name in REFERENCES else "diffprivlib",
    ),
    Table(
        "composites", 38, by_name(composites()), _composite_cells, quick=("catalogue: scale-epsilon", "mean", "Count"),
        library=lambda name: composites()[name].library,
    ),
)  # fmt: skip
