"""The plan of an audit: its runs are cut into blocks, each with its own seed."""

from __future__ import annotations

import math
import secrets
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

from ..clock import now
from ..datasets.contents import Kept
from ..errors import MechanismError, StoreError
from ..events.outputs import Outputs, are_equal, tally
from ..events.plain_outputs import HashCheck
from ..progress import UNWATCHED
from .output_hashes import FINGERPRINTED
from .pickling import Parcel
from .sampler import Sampler

# Limits in bytes on the outputs held in memory, for outputs of megabytes.

# Bytes of pilot outputs kept on each side (learning takes several times as much memory), and of the outputs of a block:
# docs/decisions/0012-large-data.md.
KEPT, BLOCK = 1 << 28, 1 << 25

_HELD = 1 << 30  # bytes of outputs held together, where the number of runs is fixed
LEAST_KEPT = 32
"""First runs on each dataset, which must fit into memory: they show the form of the outputs and their randomness."""
_LOOKED_AT = 8  # outputs of a block that are measured


def bytes_of_one(outputs: Outputs) -> int:
    """Return the average number of bytes of an output."""
    if outputs.dtype != object:
        return max(int(outputs.nbytes) // max(len(outputs), 1), 1)
    some = outputs[:: max(len(outputs) // _LOOKED_AT, 1)]
    return sum(_bytes_of_object(output, set()) for output in some) // max(len(some), 1) + 1


def _bytes_of_object(value: Any, seen: set[int]) -> int:
    """Return the bytes of an object and its parts, counting every part once."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    parts: Iterable[Any] = value if isinstance(value, (tuple, frozenset)) else _attributes(value)
    return sys.getsizeof(value) + sum(_bytes_of_object(part, seen) for part in parts)


def _attributes(value: Any) -> list[Any]:
    """Return the attributes of an object; none for a number, a string or a class."""
    if isinstance(value, (type, str, bytes, int, float)) or type(value).__module__ == "builtins":
        return []
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [*getattr(value, "__dict__", {}).values(), *(getattr(value, name) for name in slots if hasattr(value, name))]


def most_kept(size: int, name: str) -> int:
    """Return the number of outputs of `size` bytes kept on each side; raise a `MechanismError` if it is too small."""
    if size * LEAST_KEPT > KEPT:
        raise MechanismError(
            f"an output of {name} takes {with_unit(size)}, and fewer than {LEAST_KEPT} of them fit into the "
            f"{with_unit(KEPT)} that an audit keeps for each dataset; return a part or a summary of the output.",
            mechanism=name,
            bytes=size,
        )
    return KEPT // size


def refuse_too_much(held: int, name: str) -> None:
    """Raise a `MechanismError` if outputs that must be held together take too many bytes."""
    if held > _HELD:
        raise MechanismError(
            f"the outputs of {name} that must be held together take more than {with_unit(_HELD)}; use fewer runs, or "
            "return a part or a summary of each output.",
            mechanism=name,
            bytes=held,
        )


def note_of_cut(kept: int, wanted: int, size: int) -> tuple[str, ...]:
    """Return a note for the reader if fewer runs than usual were kept."""
    if kept >= wanted:
        return ()
    return (
        f"an output takes {with_unit(size)}, so events were learned from {kept:,} runs on each dataset and not from "
        f"{wanted:,}; a part or a summary of the output may show more",
    )


def with_unit(size: int) -> str:
    """Format a number of bytes in the largest unit that fits."""
    for unit, words in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {words}"
    return f"{size} bytes"


Phase = Literal["pilot", "main"]
Side = Literal["x", "y"]
SIDES: tuple[Side, ...] = ("x", "y")
_PHASES: tuple[Phase, ...] = ("pilot", "main")

# An audit has 256 (looped: 128) blocks, or fewer where blocks would hold fewer than 32 runs. The main phase, which may
# have only half of the runs, then still has 32, as a pilot. Sizes never depend on run times: seeds belong to blocks.
_BLOCKS, _LOOPED_BLOCKS, _SMALL = 256, 128, 32
# Of a long pilot; in a shorter one a block still has all outputs that a fingerprint reads
# (docs/decisions/0025-limits.md).
_PILOT_BLOCKS = 32
_BY_CHANCE = 1e-9  # outputs of different noise that agree with a smaller probability are not taken to agree by chance
_AGAIN = "whether the first block comes again"
_HEADS = "the first runs"
_COINS = "coins of outputs that the seed does not repeat"
# Runs are drawn twice to see whether a mechanism has its own randomness: FINGERPRINTED of them if they take less than
# this many seconds, otherwise LEAST_KEPT.
_REPEATING = 1.0


class Memory(Protocol):
    """Keeps the results of tasks under their keys, to resume an audit: an earlier one is never lost before a later."""

    def recall(self, key: str) -> Any: ...

    def keep(self, key: str, value: Any) -> Any: ...

    def save(self) -> None: ...

    def part(self, name: str) -> Memory: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of an audit: its runs in blocks, distributed over workers; equal plans give equal counts.

    `is_coupled` says that the blocks on x and y have the same seeds: their outputs then differ because of the datasets
    alone, and a search tells pairs apart with fewer runs. No test may see such outputs.
    `is_stateful` says whether the mechanism carries state from run to run. Copies of the state in other processes would
    repeat its noise, so one process then draws all runs. All batches share the `parcels` for worker processes, by seed.
    `changed` are the datasets whose copies changed in a worker process, and `watched` are the initial contents of its
    copies. These and `hashes` are filled as blocks are drawn, and every plan made from this one shares them.
    """

    sampler: Sampler
    x: Any
    y: Any
    seed: int  # the seeds of all blocks derive from it
    block: int  # runs in a block
    jobs: int | None  # workers for joblib; None takes the active `joblib.parallel_config`, or else the default
    memory: Memory | None = None  # results of earlier tasks
    is_stateful: bool = False
    is_coupled: bool = False
    most: int = 1  # runs in a block, for the shape of the outputs; about the runs in a task of a vectorised mechanism
    most_kept: int = sys.maxsize  # most outputs to keep on each dataset, by their size
    output_bytes: int = 1  # size of the first output
    parcels: dict[int, Parcel] = field(default_factory=dict, compare=False, repr=False)
    changed: set[Side] = field(default_factory=set, compare=False, repr=False)
    watched: dict[Side, Kept] = field(default_factory=dict, compare=False, repr=False)
    hashes: HashCheck = field(default_factory=HashCheck, compare=False, repr=False)  # of the pilot's outputs

    @property
    def datasets(self) -> tuple[Any, Any]:
        """The datasets that the mechanism may not change: x and y, or those that it runs on for names x and y."""
        owner = getattr(self.sampler.function, "__self__", None)
        found: tuple[Any, Any] = getattr(owner, "__audit_datasets__", (self.x, self.y))
        return found

    def watch_datasets(self) -> None:
        """Record the contents of the datasets in this process."""
        if not self.watched:
            self.watched.update(zip(SIDES, map(Kept, self.datasets), strict=True))

    def changed_here(self) -> tuple[Side, ...]:
        """Return the datasets that have changed in this process since `watch_datasets`."""
        return tuple(side for side, kept in self.watched.items() if kept.has_changed())

    def only_to_draw(self) -> Plan:
        """Return the part of the plan that a worker needs: the same for all blocks."""
        sampler = replace(self.sampler, watched=UNWATCHED)
        return Plan(sampler, self.x, self.y, self.seed, block=1, jobs=1, is_coupled=self.is_coupled)

    def for_runs(self, runs: int) -> Plan:
        """Return the plan with the block size of an audit of `runs` runs."""
        blocks = _BLOCKS if self.sampler.is_block else _LOOPED_BLOCKS
        least = max(1, min(_SMALL, runs // (2 * _PILOT_BLOCKS)))
        return self.in_blocks(max(-(-runs // blocks), least))

    def for_pilot(self, runs: int) -> Plan:
        """Return the plan with the block size of a pilot of `runs` runs."""
        return self.in_blocks(min(max(-(-runs // _PILOT_BLOCKS), FINGERPRINTED), self.block))

    def in_blocks(self, size: int) -> Plan:
        """Return the plan with blocks of `size` runs, or of the maximum if that is less."""
        return replace(self, block=min(size, self.most))

    def may_keep(self, runs: int) -> int:
        """How many of `runs` outputs on each dataset the audit keeps."""
        return min(runs, self.most_kept)

    @property
    def blocks_of_task(self) -> int:
        """Fewest blocks of a task."""
        return max(1, self.most // self.block) if self.sampler.is_block else 1

    @property
    def prefers(self) -> Literal["threads", "processes"]:
        """Threads for a vectorised mechanism, which works outside Python's lock; processes for single runs."""
        return "processes" if self.sampler.call.size_name is None else "threads"

    def generator(self, phase: Phase, side: Side, number: int) -> np.random.Generator:
        """Return the generator of one block, of numpy's `SeedSequence` with a spawn key; SFC64 is numpy's fastest."""
        key = _PHASES.index(phase), SIDES.index(self._stream_of(side)), number
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def _stream_of(self, side: Side) -> Side:
        return "x" if self.is_coupled else side

    def repeats(self, side: Side, drawn: Outputs | None = None) -> bool:
        """Whether the seed repeats the first pilot block on one dataset, and so determines the noise.

        A few runs are drawn twice, or the block `drawn` again; of a slow function only the first runs.
        """
        if drawn is None:
            drawn = self.draw("pilot", side, 0, LEAST_KEPT)
        is_block, most = self.sampler.is_block, len(drawn)  # a loop begins as a longer one does, a block may not
        again = self.draw("pilot", side, 0, most) if is_block else self._first(side, most)
        return are_equal(again, drawn[: len(again)])

    def _first(self, side: Side, most: int) -> Outputs:
        """Return the first runs on one dataset, of a slow mechanism only a few."""
        started = now()
        few = self.draw("pilot", side, 0, min(LEAST_KEPT, most))
        is_slow = (now() - started) * most > _REPEATING * len(few)
        return few if is_slow or len(few) == most else self.draw("pilot", side, 0, most)

    def has_fixed_noise(self, first: Outputs) -> bool:
        """Whether calls with different generators give the same outputs, of which `first` is one and others differ.

        Such a vectorised mechanism draws its noise from a fixed seed, so every single run of it is the same.
        """

        def drawn(number: int, size: int) -> Outputs:
            return self.sampler.draw(self.x, size, self.generator("pilot", "x", number))

        if not are_equal(drawn(1, 1), first):
            return False
        few = drawn(0, LEAST_KEPT)
        return _tells_noise(few) and are_equal(drawn(1, LEAST_KEPT), few)

    def comes_again(self, blocks_x: Sequence[Outputs], blocks_y: Sequence[Outputs]) -> bool:
        """Whether the seed repeats the first pilot block on x, and with a memory also the first block on y.

        Raise a `StoreError` if the seed repeated them in an earlier session and does not now.
        """
        first: dict[Side, Outputs] = {"x": blocks_x[0], "y": blocks_y[0]}
        again = all(self.repeats(side, first[side]) for side in (SIDES if self.memory is not None else SIDES[:1]))
        if self.memory is not None:
            if self.memory.recall(_AGAIN) == [1] and not again:
                raise self._has_changed()
            self.memory.keep(_AGAIN, [int(again and all(map(_tells_noise, first.values())))])
        return again

    def seed_of_coins(self, *, is_reproducible: bool) -> int:
        """Return the seed of the coins of the tests: the audit's if it fixes the outputs too, else a fresh one.

        A memory keeps a fresh seed, so that a resumed audit tosses no coin twice.
        """
        if is_reproducible:
            return self.seed
        kept = None if self.memory is None else self.memory.recall(_COINS)
        if kept is None:
            kept = [secrets.randbits(63)]
            if self.memory is not None:
                self.memory.keep(_COINS, kept)
        return int(kept[0])

    def check_heads(self) -> None:
        """Compare the first runs on x and y with those in the memory; raise a `StoreError` if they differ."""
        if self.memory is None:
            return
        kept = self.memory.recall(_HEADS)
        if kept is None:
            heads = [self._first(side, FINGERPRINTED) for side in SIDES]
            is_kept = self._begins_with(heads) and all(map(_tells_noise, heads))
            self.memory.keep(_HEADS, heads if is_kept else [])
        elif not self._begins_with(kept):
            raise self._has_changed()

    def _begins_with(self, heads: Sequence[Outputs]) -> bool:
        return all(
            are_equal(self.draw("pilot", side, 0, len(head)), head) for side, head in zip(SIDES, heads, strict=False)
        )

    def _has_changed(self) -> StoreError:
        return StoreError(
            f"{self.sampler.name} draws other outputs than those in the store, from the same seed: a file, an "
            "environment variable or another input that it reads has changed. Restore that input, or delete the store."
        )

    def draw(
        self,
        phase: Phase,
        side: Side,
        number: int,
        size: int,
        shape: tuple[int, ...] | None = None,
    ) -> Outputs:
        """Return the outputs of one block, each of this `shape` if given; a `MechanismError` names the block."""
        dataset = self.x if side == "x" else self.y
        try:
            outputs = self.sampler.draw(dataset, size, self.generator(phase, side, number))
            if shape is not None:
                check_shape(outputs, shape, self.sampler.name)
            return outputs
        except MechanismError as error:
            where = f"chunk {number} of the {phase} runs on {side}, seed {self.seed}"
            stream = self._stream_of(side)
            again = f'draw_block(mechanism, {side}, "{phase}", "{stream}", {number}, {size}, seed={self.seed})'
            raise MechanismError(
                f"{error} (in {where}; dpaudit.results.{again} repeats it)", **error.facts, block=number, side=side
            ) from error.__cause__


def _tells_noise(outputs: Outputs) -> bool:
    """Whether different noise would show in the outputs; a few coin flips may repeat by chance."""
    times = np.array(list(tally(outputs)[0].values()), dtype=np.float64)
    return bool(len(outputs) * math.log(((times / len(outputs)) ** 2).sum()) < math.log(_BY_CHANCE))


def check_shape(outputs: Outputs, shape: tuple[int, ...], name: str) -> None:
    """Raise a `MechanismError` if numeric outputs differ in shape from the first block."""
    if outputs.dtype != object and outputs.shape[1:] != shape:
        raise MechanismError(
            f"{name} returned outputs of shape {outputs.shape[1:]} after outputs of shape {shape}; return the same "
            "shape in every chunk (or tuples, where the length is part of the output)",
            shape=outputs.shape[1:],
            expected=shape,
        )
