"""Counts of outputs in cells, to see the likelihood ratios without testing a claim."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..errors import OptionError
from ..events.events import Labels, Partition, with_names
from ..events.outputs import merge
from ..floating_point_errors import with_own_arithmetic
from ..health.dataset_checks import take_snapshot
from ..health.findings import checks_to_ignore
from ..health.run_independence import examine_draws
from ..known_options import with_known_options
from ..options import Progress, checked_seed
from ..portfolio.partitions import learn_cells
from ..progress import told
from ..results.cell_result import CellCounts
from ..sampling.block_plan import pilot_runs
from ..sampling.draw import count_hits, plan_blocks, shapes_of
from ..sampling.sampler import OutputPart, picked
from .pilot import draw_checked, run_notes


@with_known_options()
@with_own_arithmetic
def count_cells(
    mechanism: Any,
    x: Any,
    y: Any,
    *,
    output: OutputPart | None = None,
    cells: int = 32,
    runs: int = 1_000_000,
    alpha: float = 0.05,
    seed: int | None = 0,
    jobs: int | None = None,
    ignore: str | Iterable[str] = (),
    progress: Progress = None,
) -> CellCounts:
    """Counts a mechanism's outputs on x and y in cells, which a pilot chose and ordered by likelihood ratio.

    If there are few outcomes, each is a cell. The counts give intervals for every ratio and for the largest ratio, the
    privacy profile, the trade-off curve and Rényi divergences; see `CellCounts`.

    Parameters
    ----------
    mechanism, x, y, output, runs, seed, jobs, ignore, progress
        As in `check`. If a health check fails, the result says so, and its intervals need not hold.
    cells : int
        Number of cells for numbers and vectors, at least 2. More cells show more detail with wider intervals; 32 did
        best in measurements.
    alpha : float
        Probability that any statement made from the counts is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> def coin(answer, size, rng):
    ...     return (rng.random(size) < 0.25) ^ answer
    >>> counts = count_cells(coin, False, True, runs=100_000)
    >>> counts.names
    ('False', 'True', 'any other outcome')
    >>> largest = counts.maximum()
    >>> bool(largest.lower < np.log(3) < largest.upper)
    True
    """
    if cells == 0:
        raise OptionError("cells=0 counts nothing; use 2 or more.", cells=cells)
    sampler, ignored = picked(mechanism, output), checks_to_ignore(ignore)
    snapshot = take_snapshot(x, y)
    plan = plan_blocks(sampler, x, y, checked_seed(seed), jobs, runs=runs)
    size = plan.may_keep(pilot_runs(runs))
    with told(progress, sampler.name, 2 * runs) as (tell, _):
        blocks_x, blocks_y = draw_checked(plan.for_pilot(size), size)
        if tell is not None:
            tell(2 * size)
        pilot_x, pilot_y = merge(blocks_x, blocks_y)
        partition = learn_cells(pilot_x, pilot_y, cells)
        main_x, main_y = count_hits(
            plan, None, shapes_of(plan, blocks_x, blocks_y), runs - size, partitions=(partition,), progress=tell
        )
    named = with_names(partition, plan.sampler.column_names)
    return replace(
        as_cell_counts(named, main_x.cells, main_y.cells, alpha, asked=cells),
        findings=examine_draws(
            snapshot, plan.changed, (blocks_x, blocks_y), (main_x, main_y), ignored, plan.sampler.column_names
        ),
        notes=run_notes(pilot_x, pilot_y, main_x, main_y),
    )


def as_cell_counts(
    partition: Partition, on_x: Labels, on_y: Labels, alpha: float, *, asked: int | None = None
) -> CellCounts:
    """Cell counts from the number of main runs on x and on y in each cell."""
    return CellCounts(
        names=partition.names,
        hits_x=tuple(on_x.tolist()),
        hits_y=tuple(on_y.tolist()),
        alpha=alpha,
        n_known=partition.n_known,
        scope=partition.scope,
        asked=asked,
    )
