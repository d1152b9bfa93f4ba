"""How the runs of an audit are cut into blocks, each with its own seed."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from ..datasets.contents import Kept
from ..errors import MechanismError, StoreError
from ..events.outputs import Outputs, are_equal, tally
from .pickling import Parcel
from .sampler import Sampler

Phase = Literal["pilot", "main"]
Side = Literal["x", "y"]
SIDES: tuple[Side, ...] = ("x", "y")


_PHASES: tuple[Phase, ...] = ("pilot", "main")
# Blocks that the runs of an audit are cut into, but for blocks of fewer than 32 runs: 32 of them at least in the main
# phase, which may have half of the runs. What a run takes here and now may not matter: seeds belong to blocks.
_BLOCKS, _LOOPED_BLOCKS, _SMALL, _FEWEST = 256, 128, 32, 64
_PILOT_BLOCKS, _LEAST_PILOT_BLOCK = 32, 256
_BY_CHANCE = 1e-9
_AGAIN = "whether the first block comes again"
_HEADS = "the first runs"
# Runs that are drawn again, to see whether a mechanism has randomness of its own: a few, or many if they take less than
# so many seconds.
_REPEATED, _MANY, _REPEATING = 32, 256, 1.0


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
    changed : set of {"x", "y"}
        Datasets that the mechanism has changed in a worker process, which has copies of them.
    watched : dict
        What the datasets of a worker process held at first.
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
    changed: set[Side] = field(default_factory=set, compare=False, repr=False)
    watched: dict[Side, Kept] = field(default_factory=dict, compare=False, repr=False)

    def watch_datasets(self) -> None:
        """Remembers what the datasets hold in this process."""
        if not self.watched:
            self.watched.update({"x": Kept(self.x), "y": Kept(self.y)})

    def changed_here(self) -> tuple[Side, ...]:
        """The datasets that have changed in this process since it watches them."""
        return tuple(side for side, kept in self.watched.items() if kept.has_changed())

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
        """Whether a side's first pilot block comes again: its noise then follows from the seed alone.

        Parameters
        ----------
        drawn : ndarray, optional
            What has been drawn of that block; without it, a few runs are drawn twice. Of a slow function only the first
            runs are drawn again.
        """
        if drawn is None:
            drawn = self.draw("pilot", side, 0, _REPEATED)
        if self.sampler.is_block:
            return are_equal(self.draw("pilot", side, 0, len(drawn)), drawn)
        started, head = time.perf_counter(), min(len(drawn), _REPEATED)
        if not are_equal(self.draw("pilot", side, 0, head), drawn[:head]):  # a loop begins as a longer one does
            return False
        is_slow = (time.perf_counter() - started) * len(drawn) > _REPEATING * head
        return is_slow or head == len(drawn) or are_equal(self.draw("pilot", side, 0, len(drawn)), drawn)

    def comes_again(self, blocks_x: Sequence[Outputs], blocks_y: Sequence[Outputs]) -> bool:
        """As `repeats`, of the first pilot block on x; with a memory, from which it may be, of those on both sides.

        Raises
        ------
        StoreError
            Where they once came again and do not now: something that a store cannot see has changed.
        """
        first: dict[Side, Outputs] = {"x": blocks_x[0], "y": blocks_y[0]}
        again = all(self.repeats(side, first[side]) for side in (SIDES if self.memory is not None else SIDES[:1]))
        if self.memory is not None:
            if self.memory.recall(_AGAIN) == [1] and not again:
                raise self._has_changed()
            self.memory.keep(_AGAIN, [int(again and all(map(_tells_noise, first.values())))])
        return again

    def check_heads(self) -> None:
        """Compares the first runs on either side with those that the memory keeps, before anything else is drawn.

        Raises
        ------
        StoreError
            As of `comes_again`.
        """
        if self.memory is None:
            return
        kept = self.memory.recall(_HEADS)
        if kept is None:
            heads = [self._head(side) for side in SIDES]
            again = all(are_equal(self._head(side, len(head)), head) for side, head in zip(SIDES, heads, strict=True))
            self.memory.keep(_HEADS, heads if again and all(map(_tells_noise, heads)) else [])
        elif not all(are_equal(self._head(side, len(head)), head) for side, head in zip(SIDES, kept, strict=False)):
            raise self._has_changed()

    def _head(self, side: Side, size: int | None = None) -> Outputs:
        """The first runs on a side; without a size, more of a fast mechanism than of a slow one."""
        if size is not None:
            return self.draw("pilot", side, 0, size)
        started = time.perf_counter()
        few = self.draw("pilot", side, 0, _REPEATED)
        if (time.perf_counter() - started) * _MANY > _REPEATING * _REPEATED:
            return few
        return self.draw("pilot", side, 0, _MANY)

    def _has_changed(self) -> StoreError:
        return StoreError(
            f"{self.sampler.name} draws other outputs than those in the store, from the same seed: a file, a variable "
            "of the environment or something else that it reads has changed since. Restore that, or delete the store."
        )

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


def check_shape(outputs: Outputs, shape: tuple[int, ...], name: str) -> None:
    """A `MechanismError` if numeric outputs have another shape than the first block's."""
    if outputs.dtype != object and outputs.shape[1:] != shape:
        raise MechanismError(
            f"{name} returned outputs of shape {outputs.shape[1:]} after outputs of shape {shape}; return the same "
            "shape in every block (or tuples, where the length is part of the output)",
            shape=outputs.shape[1:],
            expected=shape,
        )
