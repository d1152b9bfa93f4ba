"""Drawing runs in parallel: seeded blocks that leave their worker as counts.

Every block has a seed sequence of its own, named by phase, side and number, and a size that depends on nothing but the
shape of the outputs. So a seed fixes every number, whatever the number of workers and the backend.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import joblib
import numpy as np

from .cells import Labels, Partition
from .errors import MechanismError
from .events import Event
from .inference.sequential import NO_PAIRS, JointCounts
from .mechanism import Sampler
from .outputs import Outputs
from .shipping import Parcel, pack

Phase = Literal["pilot", "main"]
Side = Literal["x", "y"]
Shapes = dict[str, tuple[int, ...]] | None
Events = tuple[Event | None, Event | None]
_PHASES: tuple[Phase, ...] = ("pilot", "main")
_SIDES: tuple[Side, ...] = ("x", "y")

_BLOCK_NUMBERS = 1 << 17  # numbers in a block of a block sampler: a megabyte, measured best of 2¹⁵ … 2¹⁷
_LOOPED_BLOCK = 1 << 10  # runs in a block of a looped function
FINGERPRINTED = 256  # outputs at the head of a block that are hashed, to recognise a block or its noise
_TASKS = 256  # tasks that a phase is cut into at most: enough for progress and balance, few enough to be cheap


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
    """

    sampler: Sampler
    x: Any
    y: Any
    seed: int
    block: int
    jobs: int | None

    def generator(self, phase: Phase, side: Side, number: int) -> np.random.Generator:
        """The generator of one block; SFC64 because it is the fastest that numpy has."""
        key = (_PHASES.index(phase), _SIDES.index(side), number)
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def draw(self, phase: Phase, side: Side, number: int, size: int, shape: tuple[int, ...] | None = None) -> Outputs:
        """The outputs of one block; with `shape`, that of a single output, another one is an error.

        Raises
        ------
        MechanismError
            From the mechanism or its outputs, naming the block.
        """
        dataset = self.x if side == "x" else self.y
        try:
            outputs = self.sampler.draw(dataset, size, self.generator(phase, side, number))
            if shape is not None:
                check_shape(outputs, shape, self.sampler.name)
            return outputs
        except MechanismError as error:
            where = f"block {number} of the {phase} runs on {side}, seed {self.seed}"
            raise MechanismError(f"{error} (in {where})", **error.facts, block=number, side=side) from error.__cause__


def plan_blocks(sampler: Sampler, x: Any, y: Any, seed: int, jobs: int | None) -> Plan:
    """The plan for a sampler: its block size follows from the shape of one output, drawn here, and nothing else."""
    first = Plan(sampler, x, y, seed, 1, jobs).draw("pilot", "x", 0, 1)
    width = max(first.shape[1], 1) if first.ndim == 2 else 1
    block = max(256, _BLOCK_NUMBERS // width) if sampler.is_block else _LOOPED_BLOCK
    return Plan(sampler, x, y, seed, block, jobs)


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """What is kept of the blocks of one side: hits and fingerprints of each.

    Attributes
    ----------
    hits : ndarray of int, shape (blocks,)
    sizes : ndarray of int, shape (blocks,)
    fingerprints : ndarray of uint64, shape (blocks,)
        Hash of the first outputs of each block.
    cells : ndarray of int, shape (cells,)
        Outputs in each cell of a partition, all blocks together; empty where there is none.
    orders : ndarray of uint64, shape (blocks,)
        Hash of the order of these first outputs; empty where none was taken.
    """

    hits: np.ndarray[tuple[int], np.dtype[np.int64]]
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
    fingerprints: np.ndarray[tuple[int], np.dtype[np.uint64]]
    cells: Labels = field(default_factory=lambda: np.zeros(0, np.int64))
    orders: np.ndarray[tuple[int], np.dtype[np.uint64]] = field(default_factory=lambda: np.zeros(0, np.uint64))

    def followed_by(self, other: BlockCounts) -> BlockCounts:
        """The blocks of both."""
        return BlockCounts(
            np.concatenate([self.hits, other.hits]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.fingerprints, other.fingerprints]),
            self.cells + other.cells,
            np.concatenate([self.orders, other.orders]),
        )


def no_blocks() -> BlockCounts:
    return BlockCounts(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64))


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
    per_task = max(1, -(-2 * len(sizes) // _TASKS))
    tasks = [
        (side, first, sizes[first : first + per_task]) for first in range(0, len(sizes), per_task) for side in _SIDES
    ]
    n_cells = 0 if partition is None else len(partition.names)
    kept = {
        side: BlockCounts(
            np.zeros(len(sizes), np.int64),
            np.array(sizes, np.int64),
            np.zeros(len(sizes), np.uint64),
            np.zeros(n_cells, np.int64),
            np.zeros(len(sizes), np.uint64),
        )
        for side in _SIDES
    }
    calls = [(i, event, partition, shapes, *task) for i, task in enumerate(tasks)]
    owners = (*getattr(event, "values", ()), *getattr(partition, "values", ()))
    for index, hits, fingerprints, cells, orders in _run(plan, _count, calls, owners):
        side, first, part = tasks[index]
        kept[side].cells[:] += cells
        kept[side].hits[first : first + len(part)] = hits
        kept[side].fingerprints[first : first + len(part)] = fingerprints
        kept[side].orders[first : first + len(part)] = orders
        if progress is not None:
            progress(sum(part))
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
    calls = [(i, events, shapes, first_block + i, size) for i, size in enumerate(sizes)]
    found: list[Any] = [None] * len(sizes)
    parts = [value for event in events for value in getattr(event, "values", ())]
    for index, *counted in _run(plan, _count_pair, calls, tuple(parts)):
        found[index] = counted
    first = second = NO_PAIRS
    hits_x, hits_y = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    marks = np.zeros((4, len(sizes)), np.uint64)
    for index, (of_first, of_second, own_marks) in enumerate(found):
        first, second = first.followed_by(of_first), second.followed_by(of_second)
        shown = of_first if events[0] is not None else of_second
        hits_p, hits_q = shown.both + shown.only_p, shown.both + shown.only_q
        hits_x[index], hits_y[index] = (hits_p, hits_q) if events[0] is not None else (hits_q, hits_p)
        marks[:, index] = own_marks
    every, cells = np.array(sizes, np.int64), np.zeros(0, np.int64)
    blocks_x = BlockCounts(hits_x, every, marks[0], cells, marks[2])
    return (first, second), blocks_x, BlockCounts(hits_y, every, marks[1], cells, marks[3])


def joint_counts(event: Event | None, p_outputs: Outputs, q_outputs: Outputs) -> JointCounts:
    """What became of each pair of outputs; an event that is None is never hit."""
    if event is None:
        return JointCounts(both=0, only_p=0, only_q=0, neither=len(p_outputs))
    on_p, on_q = event.contains(p_outputs), event.contains(q_outputs)
    both, hits_p, hits_q = (int(np.count_nonzero(mask)) for mask in (on_p & on_q, on_p, on_q))
    return JointCounts(
        both=both, only_p=hits_p - both, only_q=hits_q - both, neither=len(p_outputs) - hits_p - hits_q + both
    )


def draw_pilot(plan: Plan, runs: int, *, first_block: int = 0) -> tuple[list[Outputs], list[Outputs]]:
    """The pilot outputs on x and on y, a list of blocks each, in order; numbered from `first_block`."""
    sizes = _sizes(runs, plan.block)
    tasks = [(side, number, size) for side in _SIDES for number, size in enumerate(sizes, start=first_block)]
    blocks: list[Any] = [None] * len(tasks)
    for index, outputs in _run(plan, _draw, [(i, *task) for i, task in enumerate(tasks)]):
        blocks[index] = outputs
    return blocks[: len(sizes)], blocks[len(sizes) :]


def shapes_of(plan: Plan, blocks_x: list[Outputs], blocks_y: list[Outputs]) -> Shapes:
    """Shape of a single output on either side, by the first blocks; None where outputs may vary in length."""
    if not plan.sampler.is_block:
        return None
    return {"x": blocks_x[0].shape[1:], "y": blocks_y[0].shape[1:]}


def _sizes(runs: int, block: int) -> list[int]:
    return [block] * (runs // block) + ([runs % block] if runs % block else [])


def _run(
    plan: Plan, function: Callable[..., Any], calls: list[tuple[Any, ...]], parts: tuple[Any, ...] = ()
) -> Iterator[Any]:
    """`function(plan, *call)` for every call, as the results come, in any order.

    `parts` are objects in the calls whose types are the user's own, and may be unknown to a worker process.
    """
    prefer = "threads" if plan.sampler.is_block else "processes"
    backend, jobs = joblib.parallel.get_active_backend(prefer=prefer)
    if plan.jobs is not None:
        jobs = plan.jobs
    elif jobs is None:  # joblib.parallel_config says nothing
        jobs = -1
    parallel = joblib.Parallel(n_jobs=jobs, prefer=prefer, return_as="generator_unordered")
    if jobs == 1 or getattr(backend, "supports_sharedmem", False):
        yield from parallel(joblib.delayed(function)(plan, *call) for call in calls)
        return
    name, owners = plan.sampler.name, [plan.sampler.function, plan.x, plan.y, *parts]
    parcel = pack((function, plan), owners, name)
    try:
        for result in parallel(joblib.delayed(_in_worker)(parcel, pack(call, owners, name)) for call in calls):
            yield result.open()
    except BrokenExecutor as error:
        raise MechanismError(
            f"a worker process that ran {name} died ({error}); it may have run out of memory, or the mechanism "
            "ended it. Use jobs=1 to see more.",
            mechanism=name,
        ) from error


def _in_worker(parcel: Parcel, call: Parcel) -> Parcel:
    function, plan = parcel.open()
    return pack(function(plan, *call.open()), [], plan.sampler.name)


def _draw(plan: Plan, index: int, side: Side, number: int, size: int) -> tuple[int, Outputs]:
    return index, plan.draw("pilot", side, number, size)


def _count(
    plan: Plan,
    index: int,
    event: Event | None,
    partition: Partition | None,
    shapes: Shapes,
    side: Side,
    first: int,
    sizes: list[int],
) -> tuple[int, list[int], list[int], Labels, list[int]]:
    counted = [
        _count_block(plan, event, partition, shapes, side, number, size)
        for number, size in enumerate(sizes, start=first)
    ]
    hits, marks, cells, orders = zip(*counted, strict=True)
    return index, list(hits), list(marks), np.sum(cells, axis=0), list(orders)


def _count_block(
    plan: Plan, event: Event | None, partition: Partition | None, shapes: Shapes, side: Side, number: int, size: int
) -> tuple[int, int, Labels, int]:
    """What is kept of one block, whose outputs are gone when the next is drawn: the cache stays warm."""
    outputs = plan.draw("main", side, number, size, None if shapes is None else shapes[side])
    cells = np.zeros(0, np.int64) if partition is None else partition.count(outputs)
    return 0 if event is None else event.count(outputs), fingerprint(outputs), cells, order_mark(outputs)


def _count_pair(
    plan: Plan, index: int, events: Events, shapes: Shapes, number: int, size: int
) -> tuple[int, JointCounts, JointCounts, tuple[int, int, int, int]]:
    x, y = (plan.draw("main", side, number, size, None if shapes is None else shapes[side]) for side in _SIDES)
    marks = (fingerprint(x), fingerprint(y), order_mark(x), order_mark(y))
    return index, joint_counts(events[0], x, y), joint_counts(events[1], y, x), marks


def check_shape(outputs: Outputs, shape: tuple[int, ...], name: str) -> None:
    """A `MechanismError` if numeric outputs have another shape than the first block's."""
    if outputs.dtype != object and outputs.shape[1:] != shape:
        raise MechanismError(
            f"{name} returned outputs of shape {outputs.shape[1:]} after outputs of shape {shape}; return the same "
            "shape in every block (or tuples, where the length is part of the output)",
            shape=outputs.shape[1:],
            expected=shape,
        )


def fingerprint(outputs: Outputs) -> int:
    """A 64-bit hash of the first outputs of a block, the same in every process."""
    head = outputs[:FINGERPRINTED]
    return _hash(repr(head.tolist()).encode() if head.dtype == object else np.ascontiguousarray(head).tobytes())


def order_mark(outputs: Outputs) -> int:
    """A 64-bit hash of the order of the first outputs of a block: of numbers, it stays where all are moved or scaled.

    Vectors are ordered by their first coordinate; objects have no order, and are hashed themselves.
    """
    head = outputs[:FINGERPRINTED]
    if head.dtype == object or (head.ndim == 2 and head.shape[1] == 0):
        return fingerprint(head)
    values = head[:, 0] if head.ndim == 2 else head
    return _hash(np.argsort(values, kind="stable").astype(np.int16).tobytes())


def _hash(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
