"""Replays of mechanisms that are made of several parts: the catalogue of bugs, tools, models and aggregates."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

from ....audit.datasets.adjacency import Adjacency
from ....audit.search.pairs_for_domain import pairs_of
from ....audit.search.pool import new_pool
from ...catalogue.entries import entries
from ...catalogue.fault import Fault
from ...libraries.defects import Defect, Searched, defects
from ...libraries.diffprivlib_fits import Fit, diffprivlib_fits
from ...libraries.diffprivlib_tools import diffprivlib_tools
from ...libraries.installed import is_installed, release_of
from ...libraries.pydp_targets import pydp_subjects
from ...libraries.target import Subject
from ..core.bench_json import Figures, at_most, columns
from ..core.effort import Bench, Effort, Task, once, seeds_of
from ..core.timing import timed
from .verdicts import NOTHING, Verdicts, verdicts

_PAIRS, _SLOW_PAIRS, _QUICK_PAIRS = 100, 20, 2  # slow ones are models
_TABLE = 38  # number for `seeds_of`
_QUICK = ("catalogue: scale-epsilon", "mean", "Count")
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
        pool = new_pool(source, adjacency, side.distance, seed, getattr(mechanism, "check_pair", None))
        found = [*islice(pool.patterns(count), count // 2)]
        found += [*pool.drawn(count - len(found) - len(pairs))]
        pairs += [(each.x, each.y) for each in found]
    options = {"adjacency": side.adjacency, "claim": side.claim, "distance": side.distance}
    counted, seconds = timed(verdicts, mechanism, pairs, seed, **options)
    return counted, len(pairs), seconds


def _cells(effort: Effort, place: int, name: str) -> Figures:
    composite = composites()[place]
    seed = seeds_of(_TABLE, place, 0, 1)[0]
    count = min(effort.audits, effort.either(_QUICK_PAIRS, _SLOW_PAIRS if composite.is_slow else _PAIRS))
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


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, composite in enumerate(composites()):
        is_wanted = effort.wants(composite.name) and (not effort.is_quick or composite.name in _QUICK)
        if is_wanted and (not composite.library or is_installed(composite.library)):
            yield once(composite.name, _cells, effort, place, composite.name)


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
        "composite | release | wrong, pairs = wrong_pairs | excess = wrong_excess | bounded = wrong_bounded | "
        "open = wrong_open | raised = wrong_raised | the pair of the bug = of_the_bug | "
        "call | line | moved | declared sensitivity = sensitivity | "
        "right, pairs = right_pairs | excess = right_excess | bounded = right_bounded | open = right_open | "
        "raised = right_raised | pairs a second = rate :.3g"
    ),
    names=tuple(composite.name for composite in composites()),
    tasks=_tasks,
)
