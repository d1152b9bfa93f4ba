"""The runs of an audit of fixed size: the pilot chooses an event, the main runs are counted.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..clock import now
from ..distinguishers.learned_partition import learn_bins, learn_cells, plain_events
from ..events.column_naming import with_names
from ..events.partitions import Counted
from ..inference.outcome_test import most_outcomes
from ..random_streams import seed_of_coins
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
    """Draws the pilot, which chooses the event, and counts event, plain events, cells and bins afterwards.

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
    net = plain_events(pilot.x, pilot.y, most_outcomes(settings.net_alpha()))
    partition = learn_cells(pilot.x, pilot.y, n_cells) if n_cells else None
    bins = learn_bins(pilot.x, pilot.y, pilot.choice, settings.claim)
    wanted: tuple[Counted | None, ...] = (net, partition, None if bins is None else bins.partition)
    partitions = tuple(each for each in wanted if each is not None)
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
    sizes = [0 if each is None else each.n_cells for each in (net, partition)]
    (net_x, cells_x, bins_x), (net_y, cells_y, bins_y) = (
        np.split(main.cells, np.cumsum(sizes)) for main in (main_x, main_y)
    )
    cells = None
    if partition is not None:
        named = with_names(partition, plan.sampler.column_names)
        cells = as_cell_counts(named, cells_x, cells_y, settings.cell_alpha, asked=n_cells)
    seconds = {
        "seconds_pilot": round(sampled - started, 3),
        "seconds_main": round(now() - sampled, 3),
    }
    root = plan.seed_of_coins(is_replayable=is_replayable)
    return FixedSizeEvidence(
        kept=pilot,
        counts=total_counts(main_x, main_y),
        other_counts=counts_of_others(main_x, main_y),
        runs=runs,
        pilot_runs=pilot.runs,
        coins=seed_of_coins(root, main_x.contents, main_y.contents),
        main=(main_x, main_y),
        is_replayable=is_replayable,
        net=net,
        net_hits=(net_x, net_y),
        cells=cells,
        bins=bins,
        bin_hits=(bins_x, bins_y),
        seconds=seconds,
    )
