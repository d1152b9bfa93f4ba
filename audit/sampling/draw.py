"""Draw runs in parallel, in seeded blocks that leave their worker as counts.

Each block has its own seed sequence, identified by phase, dataset and number. Its size depends only on the shape of the
outputs and the number of runs. A random seed therefore fixes every number, for any number of workers and any backend.
Many blocks reveal randomness that the runs of one call share, and limit its effect on the whole audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..datasets.description import refuse_iterator
from ..errors import MechanismError
from ..events.events import Counted, Event
from ..events.named_parts import Dictionary
from ..events.outputs import Outputs, Raised
from ..events.plain_outputs import Form
from ..known_options import with_known_options
from ..options import MOST_IN_BLOCK, MOST_JOBS
from .block_plan import BLOCK, LEAST_KEPT, SIDES, Phase, Plan, Side, bytes_of_one, most_kept, refuse_too_much
from .object_identity import identity_of_mechanism
from .sampler import Call, Sampler, as_sampler
from .tasks import AnyTask, BlockCounts, CountBlocks, CountPairs, DrawBlocks, Events, MainCounts, PairCounts, Shapes
from .workers import spread, workers_of

_MOST_LOOPED = 1 << 10  # most runs in a block of a looped function
# Most tasks of a phase: enough for progress and balance, yet few, because each costs a cluster milliseconds. Beyond 256
# tasks each has at least 64 blocks, up to four tasks for each of MOST_JOBS workers, which keeps these busy.
_TASKS, _BLOCKS_OF_MANY = 256, 64
_MOST_TASKS = 4 * MOST_JOBS


def plan_blocks(
    sampler: Sampler,
    x: Any,
    y: Any,
    seed: int,
    jobs: int | None,
    *,
    runs: int | None = None,
    is_stateful: bool | None = None,
) -> Plan:
    """Return the plan for a sampler, with a block size from `runs` and from the shape of one output, drawn here.

    Without `is_stateful`, this run shows whether the mechanism carries state.
    """
    for side, dataset in zip(SIDES, (x, y), strict=True):
        refuse_iterator(dataset, side)
    one = Plan(sampler, x, y, seed, block=1, jobs=1)
    before = identity_of_mechanism(sampler.function) if is_stateful is None else None
    ((_, [first]),) = _run(one, [DrawBlocks("x", first=0, sizes=(1,))])
    if before is not None:
        is_stateful = before != identity_of_mechanism(sampler.function)
    if sampler.is_block and isinstance(sampler.call, Call) and one.has_fixed_noise(first):
        sampler = replace(sampler, call=replace(sampler.call, is_one_by_one=True, label=sampler.name))
        one = replace(one, sampler=sampler)
    if sampler.form is None:
        one = replace(one, sampler=replace(sampler, form=_form_of(one, first)))
    width = max(first.shape[1], 1) if first.ndim == 2 else 1
    output_bytes = bytes_of_one(first)
    kept = most_kept(output_bytes, sampler.name)
    most = max(256, MOST_IN_BLOCK // width) if sampler.is_block else _MOST_LOOPED
    most = max(1, min(most, BLOCK // output_bytes))
    plan = replace(
        one, block=most, most=most, most_kept=kept, output_bytes=output_bytes, jobs=jobs, is_stateful=bool(is_stateful)
    )
    sized = plan.for_runs(1_000_000 if runs is None else runs)  # the usual number
    if not is_stateful:  # other runs would change its noise
        for probe in sampler.watched.probes(lambda: workers_of(plan), sized.block):
            sampler.draw(x, probe, one.generator("pilot", "x", 0))
    return plan if runs is None else sized


def _form_of(plan: Plan, first: Outputs) -> Form:
    """Return the form of the outputs, of which the first is given: without names if they differ, or a run fails.

    A function of one run is called for records only.
    """
    may_be_named = plan.sampler.is_block or plan.sampler.call.part is not None
    if not (may_be_named or first.ndim == 2 or isinstance(first[0], tuple | Dictionary | Raised | None)):
        return Form()
    found, runs = list[Form](), 1 if plan.sampler.is_block else LEAST_KEPT
    for side, dataset in zip(SIDES, (plan.x, plan.y), strict=True):
        try:
            form = plan.sampler.form_on(dataset, runs, plan.generator("pilot", side, 0))
        except MechanismError as error:
            if "seconds" in error.facts:  # it hung, and may not do so again
                raise
            return Form()  # the pilot will say what fails
        if form == Form():
            return form
        found += [] if form is None else [form]
    return found[0].agreed(found[-1]) if found and found[0] == found[-1] else Form()


@with_known_options()
def draw_block(mechanism: Any, dataset: Any, phase: Phase, side: Side, number: int, size: int, *, seed: int) -> Outputs:
    """Draw one block of an audit again, such as the block that an error message names.

    Parameters
    ----------
    mechanism : callable or object
        As in `check`.
    dataset : Any
        The dataset x or y, as `side` says.
    phase : {"pilot", "main"}
        Whether the runs chose the event or were counted.
    side : {"x", "y"}
        The dataset that the block was drawn on.
    number, size : int
        Number of the block, and of its runs.
    seed : int
        Random seed of the audit.

    Returns
    -------
    ndarray
        The outputs, one for each run.

    See Also
    --------
    check : The audit that draws the blocks.

    Examples
    --------
    >>> draw_block(lambda dataset, rng: dataset + rng.integers(2), 5, "main", "x", 0, 3, seed=1).tolist()
    [5, 5, 5]
    """
    return Plan(as_sampler(mechanism), dataset, dataset, seed, size, 1).draw(phase, side, number, size)


def count_events(
    plan: Plan,
    event: Event | None,
    shapes: Shapes,
    runs: int,
    *,
    runs_y: int | None = None,
    others: tuple[Event, ...] = (),
    partitions: tuple[Counted, ...] = (),
    progress: Callable[[int], None] | None = None,
) -> tuple[BlockCounts, BlockCounts]:
    """Draw main-phase outputs on each dataset, and count them in the event and in the cells of partitions.

    As many runs are drawn on y as on x by default. `shapes` are those of a single pilot output (`shapes_of`); a block
    with another one is an error. `progress` is called with the number of runs just finished, on both datasets together.
    """
    sizes: dict[Side, list[int]] = {
        "x": _sizes(runs, plan.block),
        "y": _sizes(runs if runs_y is None else runs_y, plan.block),
    }
    n_blocks = sum(map(len, sizes.values()))
    tasks = [
        CountBlocks(side, event, partitions, shapes, others, first=first, sizes=part)
        for side in SIDES
        for first, part in parts(sizes[side], n_blocks, plan.blocks_of_task)
    ]
    tasks.sort(key=lambda task: task.first)  # x and y in turns
    found: dict[Side, dict[int, BlockCounts]] = {"x": {}, "y": {}}
    for task, counted in _run(plan, tasks):
        found[task.side][task.first] = BlockCounts.read(counted)
        if progress is not None:
            progress(sum(task.sizes))
    on_x, on_y = (BlockCounts.joined([part for _, part in sorted(found[side].items())]) for side in SIDES)
    return on_x, on_y


def count_pairs(
    plan: Plan,
    events: Events,
    shapes: Shapes,
    runs: int,
    *,
    first_block: int,
    rare: Events = (None, None),
    final: tuple[Event, ...] = (),
    partitions: tuple[Counted, ...] = (),
) -> tuple[PairCounts, BlockCounts, BlockCounts, MainCounts]:
    """Draw `runs` pairs of main-phase outputs, one on each dataset; count pairs by which of the two are in an event.

    The first of the `events` is for p on x, the second for p on y; None never occurs. `rare` are the same, of outputs
    seen on one dataset only. The counts of `final` and `partitions` on each dataset are returned last. The blocks have
    the counts of the first event, or of the second if the first is None.
    """
    sizes = _sizes(runs, plan.block)
    tasks = [
        CountPairs(events, rare, final, partitions, shapes, first=first_block + first, sizes=part)
        for first, part in parts(sizes, len(sizes), plan.blocks_of_task)
    ]
    in_order = sorted(_run(plan, tasks), key=lambda each: each[0].first)
    numbers, on_x, on_y, totals, cells = zip(*(counted for _, counted in in_order), strict=True)
    x, y = (BlockCounts.joined([*map(BlockCounts.read, side)]) for side in (on_x, on_y))
    counted = MainCounts((runs, runs), np.sum(totals, axis=0), np.sum(cells, axis=0))
    return PairCounts.from_numbers(np.sum(numbers, axis=0).tolist()), x, y, counted


def draw_pilot(
    plan: Plan,
    runs: int,
    *,
    first_block: int = 0,
    sides: Sequence[Side] = SIDES,
    progress: Callable[[int], None] | None = None,
) -> tuple[list[Outputs], list[Outputs]]:
    """Draw `runs` pilot outputs on x and on y, or on one of them; return their blocks, numbered from `first_block`.

    `progress` is called as that of `count_events`.
    """
    sizes = _sizes(runs, plan.block)
    cut = list(parts(sizes, 2 * len(sizes), plan.blocks_of_task))
    tasks = [DrawBlocks(side, first=first_block + first, sizes=part) for side in sides for first, part in cut]
    found: dict[Side, list[Any]] = {side: [None] * len(sizes) if side in sides else [] for side in SIDES}
    held = 0
    for task, blocks in _run(plan, tasks):
        held += sum(len(block) * bytes_of_one(block) for block in blocks)
        refuse_too_much(held, plan.sampler.name)
        for block in blocks:
            plan.hashes.add(block, plan.sampler.name)
        start = task.first - first_block
        found[task.side][start : start + len(blocks)] = blocks
        if progress is not None:
            progress(sum(task.sizes))
    return found["x"], found["y"]


def shapes_of(plan: Plan, blocks_x: list[Outputs], blocks_y: list[Outputs]) -> Shapes:
    """Return the shape of one output on each dataset, from the first blocks; None if outputs may vary in length.

    Those with named columns may, since a block with other columns gives dictionaries, and so may lists of tuples.
    """
    has_objects = any(block.dtype == object for block in blocks_x + blocks_y)
    if not plan.sampler.is_block or plan.sampler.column_names or has_objects:
        return None
    return {"x": blocks_x[0].shape[1:], "y": blocks_y[0].shape[1:]}


def _sizes(runs: int, block: int) -> list[int]:
    return [block] * (runs // block) + ([runs % block] if runs % block else [])


def parts(sizes: list[int], blocks: int, least: int = 1) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the first block number and the block sizes of each task, of at least `least` blocks but for the last."""
    per_task = max(least, -(-blocks // min(max(blocks // _BLOCKS_OF_MANY, _TASKS), _MOST_TASKS)))
    for first in range(0, len(sizes), per_task):
        yield first, tuple(sizes[first : first + per_task])


def _run(plan: Plan, tasks: Sequence[AnyTask]) -> Iterator[tuple[AnyTask, Any]]:
    """Yield every task with its result, in any order; recall the results that the plan's memory has."""
    memory, todo = plan.memory, []
    for task in tasks:
        kept = None if memory is None else memory.recall(task.key)
        if kept is None:
            todo.append(task)
        else:
            yield task, kept
    for task, result in spread(replace(plan, memory=None), todo):
        yield task, result if memory is None else memory.keep(task.key, result)
