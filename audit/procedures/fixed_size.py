"""The two kinds of audit: of a fixed number of runs, tested once; and one that may stop at any time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ..distinguishers.event_choice import Choice
from ..distinguishers.learned_partition import learn_cells
from ..distinguishers.low_bits_warning import look_at_bits
from ..events.outputs import merge
from ..events.pilot_histogram import sketch
from ..health.findings import FALSE_ALARM, HealthCheck
from ..health.run_independence import examine
from ..inference.counts import Counts
from ..inference.direction import directed
from ..results.audit_result import CELL_SHARE, AuditResult
from ..results.audit_settings import Settings
from ..results.interim_look import Look
from ..sampling.block_plan import Plan
from ..sampling.draw import count_hits, shapes_of
from ..sampling.provenance import versions
from .conclude import conclude
from .count_cells import as_cell_counts
from .detectable_excess import Detectable, detectable_sequentially, may_detect
from .event_checks import with_event_findings
from .pilot import run_notes, run_pilot
from .sequential import run_sequentially

_RUNS_IN_TIME = 10**10  # where the time ends the audit


def check_fixed(
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
    is_replayable = plan.comes_again(pilot.blocks_x, pilot.blocks_y)
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
    result = conclude(settings, runs, pilot, counts, is_replayable, findings, (main_x, main_y), cells)
    result = with_event_findings(result, pilot.x, pilot.y, ignored, choice=pilot.choice)
    finished = time.perf_counter()
    result.environment.update(
        seconds_pilot=round(sampled - started, 3),
        seconds_main=round(counted - sampled, 3),
        seconds_test=round(finished - counted, 3),
    )
    return result


def check_sequentially(
    plan: Plan,
    settings: Settings,
    runs: int | None,
    until: float | None,
    ignored: frozenset[HealthCheck],
    progress: Callable[[int], None] | None,
    on_look: Callable[[Look], bool | None] | None,
) -> AuditResult:
    """The audit that bets batch by batch and stops when the claim is refuted."""
    most = _RUNS_IN_TIME if runs is None else runs
    course = run_sequentially(
        plan,
        settings.claim,
        most,
        settings.alpha,
        until,
        enough=_finds(settings) if runs is None and settings.resolution is not None else None,
        progress=progress,
        on_look=on_look,
        bits=settings.bits is True,
    )
    done = course.looks[-1]
    found = _detectable(settings, course.choice, done.runs)
    x, y = merge(course.blocks_x, course.blocks_y)
    # The audit may have stopped at any look by what it saw, so the checks at all looks share their error: the last has
    # half of it, the k-th 3/(π k)² of it, which adds up to the other half however many there are.
    share = FALSE_ALARM * (0.5 if done.runs == most else 3.0 / (math.pi * len(course.looks)) ** 2)
    kept, main = (course.blocks_x, course.blocks_y), (course.main_x, course.main_y)
    findings = examine(kept, main, ignored, alpha=share)
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
        resolution=found.excess,
        resolution_basis=found.basis,
        power=settings.power,
        requested_resolution=settings.resolution,
        runs=done.runs,
        pilot_runs=course.learned_from,
        seed=settings.seed,
        is_replayable=course.is_replayable,
        findings=findings,
        notes=(
            *run_notes(x, y, course.main_x, course.main_y, runs="runs"),
            *course.notes,
        ),
        sketch=sketch(x, y),
        versions=versions(),
        bits=settings.bits,
        low_bits=look_at_bits(x, y, settings.claim, course.choice) if settings.bits == "warn" else None,
        looks=course.looks,
        stopped=course.stopped,
        is_closed=course.is_closed,
    )
    return with_event_findings(result, x, y, ignored, choice=course.choice)


def _finds(settings: Settings) -> Callable[[Choice, int], bool]:
    """Whether the resolution that was asked for is reached."""
    wanted = math.inf if settings.resolution is None else settings.resolution

    def finds(choice: Choice, runs: int) -> bool:
        held = directed(settings.claim, choice.pilot_counts, choice.likelier_on)
        return (
            may_detect(held.claim, held.counts, runs, wanted, alpha=settings.alpha, power=settings.power)
            and _detectable(settings, choice, runs).excess <= wanted
        )

    return finds


def _detectable(settings: Settings, choice: Choice, runs: int) -> Detectable:
    """What a sequential audit of so many runs detects."""
    held = directed(settings.claim, choice.pilot_counts, choice.likelier_on)
    return detectable_sequentially(held.claim, held.counts, runs, alpha=settings.alpha, power=settings.power)
