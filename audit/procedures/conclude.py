"""From the counts of the chosen event to the result of an audit of fixed size."""

from __future__ import annotations

from ..distinguishers.low_bits_warning import look_at_bits
from ..events.pilot_histogram import sketch
from ..health.findings import Finding
from ..inference.counts import Counts
from ..inference.direction import directed
from ..inference.joint_test import joint_test
from ..results.audit_result import CELL_SHARE, AuditResult
from ..results.audit_settings import Settings
from ..results.cell_result import CellCounts
from ..sampling.block_counts import BlockCounts
from ..sampling.provenance import versions
from .detectable_excess import detectable
from .pilot import Pilot, run_notes


def conclude(
    settings: Settings,
    runs: int,
    pilot: Pilot,
    counts: Counts,
    is_replayable: bool,
    findings: tuple[Finding, ...],
    main: tuple[BlockCounts, BlockCounts],
    cells: CellCounts | None = None,
) -> AuditResult:
    """The result of testing the counts of the chosen event."""
    choice = pilot.choice
    tested = directed(settings.claim, counts, choice.likelier_on)
    alpha = settings.alpha * (1 - CELL_SHARE) if cells else settings.alpha
    p_value, bound = joint_test(tested.counts, tested.claim, alpha=alpha)
    found = detectable(tested.claim, tested.counts, runs, alpha=alpha, power=settings.power)
    return AuditResult(
        mechanism=settings.name,
        provenance=settings.provenance,
        claim=settings.claim,
        claim_source=settings.claim_source,
        pair=settings.pair,
        event=choice.event,
        likelier_on=choice.likelier_on,
        counts=counts,
        alpha=settings.alpha,
        p_value=p_value,
        bound=bound,
        resolution=found.excess,
        resolution_basis=found.basis,
        power=settings.power,
        requested_resolution=settings.resolution,
        runs=runs,
        pilot_runs=pilot.runs,
        seed=settings.seed,
        is_replayable=is_replayable,
        cells=cells,
        bits=settings.bits,
        low_bits=look_at_bits(pilot.x, pilot.y, settings.claim, choice) if settings.bits == "warn" else None,
        findings=findings,
        notes=(*run_notes(pilot.x, pilot.y, *main), *pilot.notes),
        sketch=sketch(pilot.x, pilot.y),
        versions=versions(),
    )
