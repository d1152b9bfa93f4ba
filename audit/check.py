"""The audit itself: pilot runs choose an event, fresh runs are counted, the counts are tested."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from .adjacency import Adjacency
from .bit_warning import look_at_bits
from .bits import Bits
from .cells import learn_cells
from .claims import Claim, ClaimAtDistance, claim_at
from .conclusion import Settings, conclude, versions
from .datasets import difference, is_empty, summarise
from .distinguishers import Choice
from .errors import DatasetError
from .event_health import with_event_findings
from .health import HealthCheck, checks_to_ignore, examine
from .inference.counts import Counts
from .inference.joint import check_test_alpha
from .inference.sequential import sequential_resolution
from .input_health import take_snapshot
from .measure import as_cell_counts
from .mechanism import as_sampler
from .options import (
    check_bits,
    check_cells,
    check_distance,
    check_jobs,
    check_power,
    check_resolution,
    check_runs,
    check_seconds,
    check_seed,
)
from .outputs import Outputs, are_equal, merge
from .pilot import pilot_notes, run_pilot
from .provenance import provenance_of
from .sampling import Plan, count_hits, plan_blocks, shapes_of
from .sequential import Look, late_batches, run_sequentially
from .sizing import runs_for
from .sketches import sketch
from .stated import stated
from .verdicts import CELL_SHARE, AuditResult, Pair

_RUNS = 1_000_000  # where none are asked for
_RUNS_IN_TIME = 10**10  # where the time ends the audit


def check(
    mechanism: Any,
    x: Any,
    y: Any,
    *,
    claim: Claim | ClaimAtDistance | None = None,
    adjacency: Adjacency | None = None,
    distance: float = 1,
    runs: int | None = None,
    alpha: float = 0.05,
    seed: int | None = 0,
    resolution: float | None = None,
    power: float = 0.95,
    sequential: bool = False,
    seconds: float | None = None,
    cells: int = 0,
    bits: Bits = "warn",
    jobs: int | None = None,
    name: str | None = None,
    claim_source: str = "",
    ignore: str | Iterable[str] = (),
    keep_datasets: bool = False,
    progress: Callable[[int], None] | None = None,
    on_look: Callable[[Look], None] | None = None,
) -> AuditResult:
    """Audits a mechanism's claim on one pair of datasets.

    A mechanism that keeps its claim is refuted with probability at most `alpha`: over all events, both directions and
    every choice made here.

    Parameters
    ----------
    mechanism : callable or object
        ``f(dataset, size, rng)`` (draws `size` runs), an object with ``sample(dataset, size, rng)``, or a single run
        ``f(dataset, rng)`` or ``f(dataset)``. Outputs are numbers, vectors, or anything hashable.
    x, y : Any
        Neighbouring datasets, in whatever form the mechanism takes.
    claim : Claim or callable, optional
        The guarantee at distance 1, or a function from the distance to a claim. By default what the mechanism's
        attribute `claim` says, as adapters and the reference mechanisms do.
    adjacency : Adjacency, optional
        Checks the pair; by default the mechanism's attribute `adjacency`. Where there is none the caller has declared
        the pair to be `distance` apart, and the result says so.
    distance : float
        Distance of the pair. Beyond 1 the claim's group version is audited.
    runs : int, optional
        Runs on each dataset, those that choose the event included: one in twenty, at least 2,000 (half of a small
        number), and a third where the best event is rare. Of a sequential audit, the most that it may take. By
        default what the `resolution` needs; without one a million, or what the `seconds` allow.
    alpha : float
        Allowed probability of refuting a correct mechanism, in (0, 1).
    seed : int or None
        Fixes every number, whatever the workers; None draws one, which the result records.
    resolution : float, optional
        Excess of the claim's strength that the audit has to be able to find; too few `runs` for it are INCONCLUSIVE.
        Without `runs` the audit takes as many as it needs, and states the resolution that it then reached; within the
        `seconds`, if it can.
    power : float
        Probability with which it has to be found, in (0, 1).
    sequential : bool
        Whether to stop as soon as the claim is refuted. Nothing is lost in validity and little in power: where the
        claim holds, the smallest excess found is about 1.4 times that of a fixed number of runs.
    seconds : float, optional
        Time that a sequential audit may take: its last batch is cut to what fits.
    cells : int
        Number of cells of outputs to count besides, 0 for none, such as 32: the result then has the ratio of each cell,
        the privacy profile and the trade-off curve with a band. They take a tenth of alpha. Not for sequential audits.
    bits : {"warn", True, False}
        True makes events by the low bits of floating-point outputs part of the search and of the verdict. By default
        the verdict is about values, and a warning says if the pilot's low bits break the claim; False leaves it out.
    jobs : int, optional
        Workers; by default what `joblib.parallel_config` says, or every core.
    name : str, optional
        Of the mechanism, for the result.
    claim_source : str
        Where the claim is from, for the report: "docs of mylib 1.2, section 3", or the call that it was read from.
    ignore : str or iterable of str
        Health checks to silence, by the names that failed ones state.
    keep_datasets : bool
        Whether the result stores the datasets as text; otherwise only type, size and difference.
    progress : callable, optional
        Called with the number of runs just finished.
    on_look : callable, optional
        Called after each batch of a sequential audit with its `Look`: the runs so far, the running bound, the p-value.

    Returns
    -------
    AuditResult

    Raises
    ------
    ClaimError, AdjacencyError, DatasetError, OptionError
        For arguments outside their range.
    MechanismError
        If the mechanism cannot be run, or every pilot run raises.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import AddRemove, PureDP, check
    >>> def noisy_count(rows, size, rng):
    ...     return len(rows) + rng.laplace(scale=0.8, size=size)
    >>> result = check(noisy_count, np.ones(3), np.ones(2), claim=PureDP(1.0), adjacency=AddRemove(), runs=100_000)
    >>> result.is_refuted, 1.2 < result.bound < 1.25
    (True, True)
    """
    started = time.perf_counter()
    sampler, distance, jobs = as_sampler(mechanism, name), check_distance(distance), check_jobs(jobs)
    if is_empty(x) and is_empty(y):
        raise DatasetError("both datasets are empty; pass one that holds what neighbours differ in.")
    said = stated(mechanism, claim, adjacency, claim_source)
    if said.adjacency is not None:
        said.adjacency.check(x, y, distance)
    settings = Settings(
        claim=claim_at(said.claim, distance),
        claim_source=said.source,
        pair=_pair(x, y, said.adjacency, distance, keep_datasets),
        alpha=check_test_alpha(alpha),
        resolution=check_resolution(resolution),
        power=check_power(power),
        name=sampler.name,
        provenance=provenance_of(sampler.function),
        seed=check_seed(seed),
        bits=check_bits(bits),
    )
    seconds, ignored = check_seconds(seconds, sequential), checks_to_ignore(ignore)
    cells = check_cells(cells, sequential)
    runs = None if runs is None else check_runs(runs)
    snapshot = take_snapshot(x, y)
    plan = plan_blocks(sampler, x, y, settings.seed, jobs)
    if runs is None and seconds is None:
        # The audit is sized for the resolution, so it states the one that it reached and never calls itself too small.
        runs, settings = _runs(plan, settings, sequential), replace(settings, resolution=None)
    if sequential or runs is None:  # a time limit is for sequential audits alone
        result = _check_sequentially(plan, settings, runs, seconds, ignored, progress, on_look)
    else:
        result = _check_fixed(plan, settings, runs, cells, ignored, progress)
    findings = (*snapshot.examine(ignored), *result.findings)
    result = replace(result, findings=findings, ignored=tuple(sorted(one.value for one in ignored)))
    result.environment["seconds"] = round(time.perf_counter() - started, 3)
    return result


def _runs(plan: Plan, settings: Settings, sequential: bool) -> int:
    """The runs of an audit that was given none."""
    if settings.resolution is None:
        return _RUNS
    return runs_for(
        plan,
        settings.claim,
        settings.resolution,
        settings.power,
        settings.alpha,
        sequential=sequential,
        bits=settings.bits is True,
    )


def _check_fixed(
    plan: Plan,
    settings: Settings,
    runs: int,
    n_cells: int,
    ignored: frozenset[HealthCheck],
    progress: Callable[[int], None] | None,
) -> AuditResult:
    """The audit of a fixed number of runs: the pilot chooses an event, the rest is counted and tested once."""
    started = time.perf_counter()
    pilot = run_pilot(plan, settings.claim, runs, settings.alpha, bits=settings.bits is True)
    is_replayable = _repeats(plan, pilot.blocks_x[0])
    if progress is not None:
        progress(2 * pilot.runs)
    sampled = time.perf_counter()
    shapes = shapes_of(plan, pilot.blocks_x, pilot.blocks_y)
    partition = learn_cells(pilot.x, pilot.y, n_cells) if n_cells else None
    main_x, main_y = count_hits(
        plan, pilot.choice.event, shapes, runs - pilot.runs, partition=partition, progress=progress
    )
    counted = time.perf_counter()
    counts = Counts(
        hits_x=int(main_x.hits.sum()),
        runs_x=int(main_x.sizes.sum()),
        hits_y=int(main_y.hits.sum()),
        runs_y=int(main_y.sizes.sum()),
    )
    findings = examine((pilot.blocks_x, pilot.blocks_y), (main_x, main_y), ignored)
    cells = None
    if partition is not None:
        cells = as_cell_counts(partition, main_x, main_y, CELL_SHARE * settings.alpha, asked=n_cells)
    result = conclude(settings, runs, pilot, counts, is_replayable, findings, cells)
    result = with_event_findings(result, pilot.x, pilot.y, ignored, choice=pilot.choice)
    finished = time.perf_counter()
    result.environment.update(
        seconds_pilot=round(sampled - started, 3),
        seconds_main=round(counted - sampled, 3),
        seconds_test=round(finished - counted, 3),
    )
    return result


def _check_sequentially(
    plan: Plan,
    settings: Settings,
    runs: int | None,
    seconds: float | None,
    ignored: frozenset[HealthCheck],
    progress: Callable[[int], None] | None,
    on_look: Callable[[Look], None] | None,
) -> AuditResult:
    """The audit that bets batch by batch and stops when the claim is refuted."""
    course = run_sequentially(
        plan,
        settings.claim,
        _RUNS_IN_TIME if runs is None else runs,
        settings.alpha,
        seconds,
        enough=_finds(settings) if runs is None and settings.resolution is not None else None,
        progress=progress,
        on_look=on_look,
        bits=settings.bits is True,
    )
    done = course.looks[-1]
    x, y = merge(course.blocks_x, course.blocks_y)
    findings = examine((course.blocks_x, course.blocks_y), (course.main_x, course.main_y), ignored, paired=True)
    result = AuditResult(
        mechanism=settings.name,
        provenance=settings.provenance,
        claim=settings.claim,
        claim_source=settings.claim_source,
        pair=settings.pair,
        event=course.choice.event,
        likelier_on=course.choice.likelier_on,
        counts=course.counts,
        alpha=settings.alpha,
        p_value=done.p_value,
        bound=done.bound,
        resolution=_resolution(settings, course.choice, course.counts),
        power=settings.power,
        requested_resolution=settings.resolution,
        runs=done.runs,
        pilot_runs=course.learned_from,
        seed=settings.seed,
        is_replayable=_repeats(plan, course.blocks_x[0]),
        findings=findings,
        notes=pilot_notes(x, y, runs="runs"),
        sketch=sketch(x, y),
        versions=versions(),
        bits=settings.bits,
        low_bits=look_at_bits(x, y, settings.claim, course.choice) if settings.bits == "warn" else None,
        looks=course.looks,
        stopped=course.stopped,
    )
    return with_event_findings(result, x, y, ignored)


def _finds(settings: Settings) -> Callable[[Choice, Counts], bool]:
    """Whether the resolution that was asked for is reached."""
    wanted = math.inf if settings.resolution is None else settings.resolution
    return lambda choice, counts: _resolution(settings, choice, counts) <= wanted


def _resolution(settings: Settings, choice: Choice, counts: Counts) -> float:
    """What a sequential audit of so many runs would have found."""
    claim, directed = settings.claim, counts
    if choice.likelier_on == "y":
        claim, directed = claim.reversed(), counts.swapped()
    rate = (directed.hits_y + 0.5) / (directed.runs_y + 1.0)
    sizes = late_batches(counts.runs_x)
    return sequential_resolution(claim, sizes, rate, alpha=settings.alpha, power=settings.power)


def _repeats(plan: Plan, block: Outputs) -> bool:
    """Whether drawing the first block again gives the same outputs: a seed then fixes the audit."""
    return are_equal(plan.draw("pilot", "x", 0, len(block)), block)


def _pair(x: Any, y: Any, adjacency: Adjacency | None, distance: float, keep: bool) -> Pair:
    return Pair(
        x=summarise(x),
        y=summarise(y),
        difference=difference(x, y) if adjacency is None else adjacency.difference(x, y),
        adjacency="declared neighbours by the caller" if adjacency is None else str(adjacency),
        unit="" if adjacency is None else adjacency.unit,
        distance=distance,
        contents=(repr(x), repr(y)) if keep else None,
    )
