"""Drawing runs in parallel: seeded blocks that leave their worker as counts.

Every block has a seed sequence of its own, named by phase, side and number, and a size that depends on nothing but the
shape of the outputs and the number of runs. So a seed fixes every number, whatever the number of workers and the
backend. Many blocks show randomness that runs of one call share, and keep its effect on the whole small.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol

import numpy as np

from .block_counts import BlockCounts
from .cells import Partition
from .errors import MechanismError, StoreError
from .events import Event
from .identity import identity_of_mechanism
from .inference.sequential import NO_PAIRS, JointCounts
from .marks import BLOCK_MARKS
from .mechanism import Sampler, as_sampler
from .output_bytes import BLOCK, bytes_of_one, most_kept, refuse_too_much
from .outputs import Outputs, are_equal, tally
from .shipping import Parcel
from .tasks import SIDES, AnyTask, CountBlocks, CountPairs, DrawBlocks, Events, Phase, Shapes, Side
from .workers import spread

_PHASES: tuple[Phase, ...] = ("pilot", "main")
_FATES = tuple(each.name for each in fields(JointCounts))

_BLOCK_NUMBERS = 1 << 17  # numbers in a block of a block sampler at most: a megabyte, measured best of 2¹⁵ … 2¹⁷
_MOST_LOOPED = 1 << 10  # runs in a block of a looped function at most
# Blocks that the runs of an audit are cut into, but for blocks of fewer than 32 runs: 32 of them at least in the main
# phase, which may have half of the runs. What a run takes here and now may not matter: seeds belong to blocks.
_BLOCKS, _LOOPED_BLOCKS, _SMALL, _FEWEST = 256, 128, 32, 64
_PILOT_BLOCKS, _LEAST_PILOT_BLOCK = 32, 256
_BY_CHANCE = 1e-9
_AGAIN = "whether the first block comes again"
_REPEATED = 20  # runs that are drawn again, to see whether a mechanism has randomness of its own
# Tasks that a phase is cut into at most: enough for progress and balance, and few, as one costs a cluster milliseconds.
# Beyond 256 tasks one has at least 64 blocks, up to a number that keeps a thousand workers busy.
_TASKS, _BLOCKS_OF_MANY, _MOST_TASKS = 256, 64, 4096


class Memory(Protocol):
    """Keeps what tasks gave, under their keys, for an audit that is resumed; `store.Section` is one.

    What was kept first is never lost before what was kept later; after `save` all of it is safe.
    """

    def recall(self, key: str) -> Any: ...

    def keep(self, key: str, value: Any) -> Any: ...

    def save(self) -> None: ...


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """A memory whose keys are no others': of runs that are not those of the audit."""

    memory: Memory
    name: str

    def recall(self, key: str) -> Any:
        return self.memory.recall(f"{self.name}: {key}")

    def keep(self, key: str, value: Any) -> Any:
        return self.memory.keep(f"{self.name}: {key}", value)

    def save(self) -> None:
        self.memory.save()


@dataclass(frozen=True, slots=True)
class Plan:
    """How the runs of one audit are cut into blocks and spread; equal plans give equal counts.

    Attributes
    ----------
    sampler : Sampler
    x, y : Any
        The two datasets.
    seed : int
        Root of all seeds.
    block : int
        Runs in a block.
    jobs : int or None
        Workers for joblib; None takes the active `joblib.parallel_config`, or else all cores.
    block_seconds : float, optional
        Time that one block may take.
    memory : Memory, optional
        Of what was drawn before.
    is_stateful : bool
        Whether the mechanism carries state from run to run, of which another process would have a copy of its own: the
        same noise again. One process then draws all runs.
    most : int
        Runs that a block may have at most, by the shape of the outputs; a task of a block sampler has about as many.
    most_kept : int
        Outputs on each side that may be kept, by the bytes of one.
    output_bytes : int
        Of the first output.
    parcels : dict
        What worker processes were sent, by the seed: the same one for every batch.
    """

    sampler: Sampler
    x: Any
    y: Any
    seed: int
    block: int
    jobs: int | None
    block_seconds: float | None = None
    memory: Memory | None = None
    is_stateful: bool = False
    most: int = 1
    most_kept: int = sys.maxsize
    output_bytes: int = 1
    parcels: dict[int, Parcel] = field(default_factory=dict, compare=False, repr=False)

    def only_to_draw(self) -> Plan:
        """What a worker has to know: the same for all blocks."""
        return Plan(self.sampler, self.x, self.y, self.seed, 1, 1)

    def for_runs(self, runs: int) -> Plan:
        """The same plan in blocks for an audit of so many runs."""
        blocks = _BLOCKS if self.sampler.is_block else _LOOPED_BLOCKS
        least = max(1, min(_SMALL, runs // _FEWEST))
        return self.in_blocks(max(-(-runs // blocks), least))

    def for_pilot(self, runs: int) -> Plan:
        """The same plan in blocks for a pilot of so many runs."""
        return self.in_blocks(min(max(-(-runs // _PILOT_BLOCKS), _LEAST_PILOT_BLOCK), self.block))

    def in_blocks(self, size: int) -> Plan:
        """The same plan in blocks of this size, or as large as they may be."""
        return replace(self, block=min(size, self.most))

    def may_keep(self, runs: int) -> int:
        """How many of so many outputs on each side are kept."""
        return min(runs, self.most_kept)

    @property
    def blocks_of_task(self) -> int:
        """Blocks that a task has at least."""
        return max(1, self.most // self.block) if self.sampler.is_block else 1

    @property
    def prefers(self) -> Literal["threads", "processes"]:
        """A block sampler is busy outside of Python's lock; a loop over single runs is not."""
        return "threads" if self.sampler.is_block else "processes"

    def generator(self, phase: Phase, side: Side, number: int) -> np.random.Generator:
        """The generator of one block; SFC64 because it is the fastest that numpy has."""
        key = (_PHASES.index(phase), SIDES.index(side), number)
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def repeats(self, side: Side, drawn: Outputs | None = None) -> bool:
        """Whether the head of a side's first pilot block comes again: its noise then follows from the seed alone.

        Parameters
        ----------
        drawn : ndarray, optional
            What has been drawn of that block; without it, a few runs are drawn twice.
        """
        if drawn is None:
            drawn = self.draw("pilot", side, 0, _REPEATED)
        size = len(drawn) if self.sampler.is_block else min(len(drawn), _REPEATED)  # a loop begins as a longer one does
        return are_equal(self.draw("pilot", side, 0, size), drawn[:size])

    def comes_again(self, side: Side, first: Outputs) -> bool:
        """As `repeats`, of a first pilot block that may be recalled: where it once came again, it has to.

        Raises
        ------
        StoreError
            Where it does not: something that a store cannot see has changed.
        """
        again = self.repeats(side, first)
        if self.memory is not None:
            if self.memory.recall(_AGAIN) == [1] and not again:
                raise StoreError(
                    f"{self.sampler.name} draws other outputs than those in the store, from the same seed: a file, a "
                    "variable of the environment or something else that it reads has changed since. Restore that, or "
                    "delete the store."
                )
            self.memory.keep(_AGAIN, [int(again and _tells_noise(first))])
        return again

    def _outputs(self, dataset: Any, size: int, phase: Phase, side: Side, number: int) -> Outputs:
        def drawn() -> Outputs:
            return self.sampler.draw(dataset, size, self.generator(phase, side, number))

        try:
            return drawn()
        except KeyboardInterrupt as error:
            refusal = self.sampler.refusal_of_interrupt(error, drawn)
            if refusal is None:
                raise
            raise refusal from error

    def draw(self, phase: Phase, side: Side, number: int, size: int, shape: tuple[int, ...] | None = None) -> Outputs:
        """The outputs of one block; with `shape`, that of a single output, another one is an error.

        Raises
        ------
        MechanismError
            From the mechanism or its outputs, naming the block.
        """
        dataset = self.x if side == "x" else self.y
        try:
            outputs = self._outputs(dataset, size, phase, side, number)
            if shape is not None:
                check_shape(outputs, shape, self.sampler.name)
            return outputs
        except MechanismError as error:
            where = f"block {number} of the {phase} runs on {side}, seed {self.seed}"
            again = f'draw_block(mechanism, {side}, "{phase}", "{side}", {number}, {size}, seed={self.seed})'
            raise MechanismError(
                f"{error} (in {where}; dpaudit.{again} repeats it)", **error.facts, block=number, side=side
            ) from error.__cause__


def _tells_noise(outputs: Outputs) -> bool:
    """Whether other noise would give other outputs: a few coins come again by chance."""
    times = np.array(list(tally(outputs)[0].values()), dtype=np.float64)
    return bool(len(outputs) * math.log(((times / len(outputs)) ** 2).sum()) < math.log(_BY_CHANCE))


def plan_blocks(
    sampler: Sampler,
    x: Any,
    y: Any,
    seed: int,
    jobs: int | None,
    block_seconds: float | None = None,
    *,
    runs: int | None = None,
    is_stateful: bool | None = None,
) -> Plan:
    """The plan for a sampler; the size of its blocks follows from the shape of one output, drawn here, and from `runs`.

    Parameters
    ----------
    runs : int, optional
        Of the audit, on each dataset; where they are not known, blocks are as large as they may be.
    is_stateful : bool, optional
        Whether the mechanism carries state, where that is known; otherwise its first run shows it.
    """
    one = Plan(sampler, x, y, seed, 1, 1, block_seconds)
    before = identity_of_mechanism(sampler.function) if is_stateful is None else None
    ((_, [first]),) = _run(one, [DrawBlocks("x", 0, (1,))])
    if before is not None:
        is_stateful = before != identity_of_mechanism(sampler.function)
    width = max(first.shape[1], 1) if first.ndim == 2 else 1
    size = bytes_of_one(first)
    kept = most_kept(size, sampler.name)
    most = max(256, _BLOCK_NUMBERS // width) if sampler.is_block else _MOST_LOOPED
    most = max(1, min(most, BLOCK // size))
    plan = replace(
        one, block=most, most=most, most_kept=kept, output_bytes=size, jobs=jobs, is_stateful=bool(is_stateful)
    )
    return plan if runs is None else plan.for_runs(runs)


def draw_block(mechanism: Any, dataset: Any, phase: Phase, side: Side, number: int, size: int, *, seed: int) -> Outputs:
    """The outputs of one block of an audit, drawn again: such as the one that an error names.

    Parameters
    ----------
    mechanism : callable or object
        As of `check`.
    dataset : Any
        The one on that side.
    phase : {"pilot", "main"}
    side : {"x", "y"}
    number, size : int
        Of the block, and of the runs in it.
    seed : int
        Of the audit.

    Examples
    --------
    >>> draw_block(lambda dataset, rng: dataset + rng.integers(2), 5, "main", "x", 0, 3, seed=1).tolist()
    [5, 5, 5]
    """
    return Plan(as_sampler(mechanism), dataset, dataset, seed, size, 1).draw(phase, side, number, size)


def count_hits(
    plan: Plan,
    event: Event | None,
    shapes: Shapes,
    runs: int,
    *,
    partition: Partition | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[BlockCounts, BlockCounts]:
    """Draws `runs` main-phase outputs on each dataset and counts those in the event, and in the cells of a partition.

    Parameters
    ----------
    shapes : dict, optional
        Shape of a single output on x and on y in the pilot, () or (n_coords,); another one in any block is an error.
        None where outputs may vary in length.
    progress : callable, optional
        Called with the number of runs (both sides together) that have just been finished.
    """
    sizes = _sizes(runs, plan.block)
    tasks = [
        CountBlocks(event, partition, shapes, side, first, part)
        for first, part in parts(sizes, 2 * len(sizes), plan.blocks_of_task)
        for side in SIDES
    ]
    n_cells = 0 if partition is None else len(partition.names)
    kept = {
        side: BlockCounts.of(
            np.zeros(len(sizes), np.int64),
            np.array(sizes, np.int64),
            np.zeros((len(sizes), BLOCK_MARKS), np.uint64),
            np.zeros(n_cells, np.int64),
            Counter(),
        )
        for side in SIDES
    }
    for task, (blocks, cells, raised) in _run(plan, tasks):
        own = kept[task.side]
        own.cells[:] += cells
        own.raised.update(dict(raised))
        for number, (hits, mark, order, *stretches) in enumerate(blocks, start=task.first):
            own.hits[number], own.fingerprints[number], own.orders[number] = hits, mark, order
            own.stretches[number] = stretches
        if progress is not None:
            progress(sum(task.sizes))
    return kept["x"], kept["y"]


def count_pairs(
    plan: Plan, events: Events, shapes: Shapes, runs: int, *, first_block: int
) -> tuple[tuple[JointCounts, JointCounts], BlockCounts, BlockCounts]:
    """Draws `runs` pairs of main-phase outputs, one on each dataset, and counts what became of each pair.

    Parameters
    ----------
    events : tuple of Event or None
        The event for p on x, and the one for p on y; None is never hit.

    Returns
    -------
    pairs : tuple of JointCounts
        For each event.
    blocks_x, blocks_y : BlockCounts
        With the hits of the first event, or of the second where there is no first.
    """
    sizes = _sizes(runs, plan.block)
    found: list[Any] = [None] * len(sizes)
    cut = parts(sizes, len(sizes), plan.blocks_of_task)
    tasks = [CountPairs(events, shapes, first_block + first, part) for first, part in cut]
    raised = {side: Counter[str]() for side in SIDES}
    for task, (counted, *on_sides) in _run(plan, tasks):
        start = task.first - first_block
        found[start : start + len(counted)] = counted
        for side, times in zip(SIDES, on_sides, strict=True):
            raised[side].update(dict(times))
    first = second = NO_PAIRS
    hits_x, hits_y = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    marks = np.zeros((len(sizes), 2 * BLOCK_MARKS), np.uint64)
    for index, (*each_way, own_marks) in enumerate(found):
        of_first, of_second = (JointCounts(**dict(zip(_FATES, counts, strict=True))) for counts in each_way)
        first, second = first.followed_by(of_first), second.followed_by(of_second)
        shown = of_first if events[0] is not None else of_second
        hits_p, hits_q = shown.both + shown.only_p, shown.both + shown.only_q
        hits_x[index], hits_y[index] = (hits_p, hits_q) if events[0] is not None else (hits_q, hits_p)
        marks[index] = own_marks
    every, cells = np.array(sizes, np.int64), np.zeros(0, np.int64)
    blocks_x = BlockCounts.of(hits_x, every, marks[:, :BLOCK_MARKS], cells, raised["x"])
    return (first, second), blocks_x, BlockCounts.of(hits_y, every, marks[:, BLOCK_MARKS:], cells, raised["y"])


def draw_pilot(plan: Plan, runs: int, *, first_block: int = 0) -> tuple[list[Outputs], list[Outputs]]:
    """The pilot outputs on x and on y, a list of blocks each, in order; numbered from `first_block`."""
    sizes = _sizes(runs, plan.block)
    cut = list(parts(sizes, 2 * len(sizes), plan.blocks_of_task))
    tasks = [DrawBlocks(side, first_block + first, part) for side in SIDES for first, part in cut]
    found: dict[Side, list[Any]] = {side: [None] * len(sizes) for side in SIDES}
    held = 0
    for task, blocks in _run(plan, tasks):
        held += sum(len(block) * bytes_of_one(block) for block in blocks)
        refuse_too_much(held, plan.sampler.name)
        start = task.first - first_block
        found[task.side][start : start + len(blocks)] = blocks
    return found["x"], found["y"]


def shapes_of(plan: Plan, blocks_x: list[Outputs], blocks_y: list[Outputs]) -> Shapes:
    """Shape of a single output on either side, by the first blocks; None where outputs may vary in length."""
    if not plan.sampler.is_block:
        return None
    return {"x": blocks_x[0].shape[1:], "y": blocks_y[0].shape[1:]}


def _sizes(runs: int, block: int) -> list[int]:
    return [block] * (runs // block) + ([runs % block] if runs % block else [])


def parts(sizes: list[int], blocks: int, least: int = 1) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The blocks of each task, `least` of them or more, and the number of the first of them.

    By their number and size alone, for a store to know them.
    """
    per_task = max(least, -(-blocks // min(max(blocks // _BLOCKS_OF_MANY, _TASKS), _MOST_TASKS)))
    for first in range(0, len(sizes), per_task):
        yield first, tuple(sizes[first : first + per_task])


def _run(plan: Plan, tasks: Sequence[AnyTask]) -> Iterator[tuple[AnyTask, Any]]:
    """Every task with its result, in any order; what the plan's memory has of one is recalled."""
    memory, todo = plan.memory, []
    for task in tasks:
        kept = None if memory is None else memory.recall(task.key)
        if kept is None:
            todo.append(task)
        elif task.fits(kept):
            yield task, kept
        else:
            raise StoreError(f"the store is damaged: what it has of {task.words} cannot be; delete it.")
    for task, result in spread(replace(plan, memory=None), todo):
        yield task, result if memory is None else memory.keep(task.key, result)


def check_shape(outputs: Outputs, shape: tuple[int, ...], name: str) -> None:
    """A `MechanismError` if numeric outputs have another shape than the first block's."""
    if outputs.dtype != object and outputs.shape[1:] != shape:
        raise MechanismError(
            f"{name} returned outputs of shape {outputs.shape[1:]} after outputs of shape {shape}; return the same "
            "shape in every block (or tuples, where the length is part of the output)",
            shape=outputs.shape[1:],
            expected=shape,
        )
