"""The runs of an audit of fixed size: the pilot chooses an event, the main runs are counted.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

from collections.abc import Callable

from ..clock import now
from ..distinguishers.learned_partition import learn_cells, single_outcomes
from ..events.column_naming import with_names
from ..inference.outcome_test import most_outcomes
from ..results.audit_settings import Settings
from ..sampling.block_counts import counts_of_others, total_counts
from ..sampling.block_plan import Plan
from ..sampling.draw import count_hits, shapes_of
from .allocation import divided
from .count_cells import as_cell_counts
from .earlier_draws import EarlierDraws
from .evidence import FixedSizeEvidence
from .pilot import run_pilot


def draw_fixed_size(
    plan: Plan,
    settings: Settings,
    runs: int,
    n_cells: int,
    progress: Callable[[int], None] | None,
    earlier: EarlierDraws | None = None,
) -> FixedSizeEvidence:
    """Draws the pilot, which chooses the event, and counts event, single outcomes and `n_cells` cells afterwards.

    Outputs drawn `earlier` replace as many of the pilot, so that more of the runs are counted.
    """
    started = now()
    bits = settings.bits is True
    pilot = run_pilot(plan, settings.claim, runs, settings.alpha, bits=bits, both=True, earlier=earlier)
    first_drawn_by = plan if earlier is None or pilot.searched == 0 else earlier.plan
    is_replayable = first_drawn_by.comes_again(pilot.blocks_x, pilot.blocks_y)
    if progress is not None:
        progress(2 * pilot.runs)
    sampled = now()
    shapes = shapes_of(plan, pilot.blocks_x, pilot.blocks_y)
    outcomes = single_outcomes(pilot.x, pilot.y, most_outcomes(settings.outcome_alpha()))
    partition = learn_cells(pilot.x, pilot.y, n_cells) if n_cells else None
    partitions = tuple(each for each in (outcomes, partition) if each is not None)
    others = tuple(each.event for each in pilot.choice.others)
    runs_x, runs_y = divided(pilot.choice, settings.claim, runs - pilot.runs)
    main_x, main_y = count_hits(
        plan,
        pilot.choice.event,
        shapes,
        runs_x,
        runs_y=runs_y,
        others=others,
        partitions=partitions,
        progress=progress,
    )
    n_outcomes = 0 if outcomes is None else outcomes.n_cells
    cells = None
    if partition is not None:
        on_x, on_y = (main.cells[n_outcomes:] for main in (main_x, main_y))
        named = with_names(partition, plan.sampler.column_names)
        cells = as_cell_counts(named, on_x, on_y, settings.cell_alpha, asked=n_cells)
    seconds = {
        "seconds_pilot": round(sampled - started, 3),
        "seconds_main": round(now() - sampled, 3),
    }
    return FixedSizeEvidence(
        kept=pilot,
        counts=total_counts(main_x, main_y),
        other_counts=counts_of_others(main_x, main_y),
        runs=runs,
        pilot_runs=pilot.runs,
        main=(main_x, main_y),
        is_replayable=is_replayable,
        outcomes=outcomes,
        outcome_hits=(main_x.cells[:n_outcomes], main_y.cells[:n_outcomes]),
        cells=cells,
        seconds=seconds,
    )
