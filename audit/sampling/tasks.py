"""Tasks of workers: each draws some blocks and returns pilot outputs or counts, as numbers, text and arrays.

A task describes its blocks for messages in `words`, and names its result in a memory by `key`, the same in every
process. `owners` are objects in it that may be of the user's types. `fits` tells whether a recalled result is possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..errors import MechanismError
from ..events.events import Event
from ..events.events_apart import Apart
from ..events.outputs import Outputs, Raised
from ..events.partitions import Counted, Labels, PlainEvents
from ..events.records import Form
from .block_counts import FinalCounts, hits_of
from .block_plan import SIDES, Side
from .output_hashes import BLOCK_MARKS, block_marks, digest
from .pair_counts import PAIR_NUMBERS, Events, pair_numbers

if TYPE_CHECKING:
    from .block_plan import Plan
Shapes = dict[str, tuple[int, ...]] | None
RaisedTimes = tuple[str, int]

_MARK = 1 << 64  # above all marks
_MARKED_OF_MANY = 8  # one in eight blocks of a block sampler has its stretches hashed, which takes 30 µs


@dataclass(frozen=True, slots=True)
class DrawBlocks:
    """Draws blocks of the pilot."""

    side: Side
    first: int
    sizes: tuple[int, ...]
    owners: Sequence[Any] = field(default=(), init=False)

    @property
    def blocks(self) -> int:
        return len(self.sizes)

    @property
    def words(self) -> str:
        return f"{_blocks_in_words(self.first, len(self.sizes))} of the pilot runs on {self.side}"

    @property
    def key(self) -> str:
        return f"{self.words}, {sum(self.sizes)} outputs"

    def __call__(self, plan: Plan) -> list[Outputs]:
        return [plan.draw("pilot", self.side, number, size) for number, size in enumerate(self.sizes, start=self.first)]

    def fits(self, result: Any) -> bool:
        return (
            isinstance(result, list)
            and len(result) == len(self.sizes)
            and all(
                isinstance(one, np.ndarray) and one.ndim in (1, 2) and len(one) == size
                for one, size in zip(result, self.sizes, strict=True)
            )
        )


@dataclass(frozen=True, slots=True)
class LearnForm:
    """Draws runs on both datasets and returns the form that all outputs have; one without names where a run fails."""

    size: int
    owners: Sequence[Any] = field(default=(), init=False)

    @property
    def blocks(self) -> int:
        return 2 * self.size

    @property
    def words(self) -> str:
        return "the runs that show the form of the outputs"

    @property
    def key(self) -> str:
        return self.words

    def __call__(self, plan: Plan) -> Form:
        found: set[Form] = set()
        for side, dataset in zip(SIDES, (plan.x, plan.y), strict=True):
            try:
                form = plan.sampler.form_on(dataset, self.size, plan.generator("pilot", side, 0))
            except MechanismError as error:
                if "seconds" in error.facts:  # it hung, and may not do so again
                    raise
                return Form()  # the pilot will say what fails
            if form == Form():
                return form
            found |= set() if form is None else {form}
        return found.pop() if len(found) == 1 else Form()

    def fits(self, result: Any) -> bool:
        return isinstance(result, Form)


@dataclass(frozen=True, slots=True)
class CountBlocks:
    """Counts main runs on one dataset: (hits of each event, marks) of each block, and cells and exceptions of all."""

    event: Event | None
    partitions: tuple[Counted, ...]
    shapes: Shapes
    side: Side
    first: int
    sizes: tuple[int, ...]
    others: tuple[Event, ...] = ()

    @property
    def owners(self) -> Sequence[Any]:
        return [value for each in (self.event, *self.others, *self.partitions) for value in listed_in(each)]

    @property
    def n_events(self) -> int:
        return 1 + len(self.others)

    @property
    def blocks(self) -> int:
        return len(self.sizes)

    @property
    def words(self) -> str:
        return f"{_blocks_in_words(self.first, len(self.sizes))} of the main runs on {self.side}"

    @property
    def key(self) -> str:
        return f"{self.words}, {sum(self.sizes)} counted by {digest((self.event, self.others, self.partitions))}"

    def __call__(self, plan: Plan) -> tuple[list[tuple[int, ...]], Labels, list[RaisedTimes]]:
        counted = [self._count(plan, number, size) for number, size in enumerate(self.sizes, start=self.first)]
        numbers, cells, raised = zip(*counted, strict=True)
        return list(numbers), np.sum(cells, axis=0), _added(raised)

    def _count(self, plan: Plan, number: int, size: int) -> tuple[tuple[int, ...], Labels, Counter[str]]:
        """Count one block; its outputs are discarded before the next block, so that the cache stays warm."""
        shape = None if self.shapes is None else self.shapes[self.side]
        outputs = plan.draw("main", self.side, number, size, shape, is_kept=False)
        cells = np.concatenate([np.zeros(0, np.int64), *(each.count(outputs) for each in self.partitions)])
        hits = (0,) if self.event is None else hits_of((self.event, *self.others), outputs)
        return (*hits, *_marks(plan, number, outputs)), cells, raised_in(outputs)

    def fits(self, result: Any) -> bool:
        match result:
            case [[*counted], np.ndarray() as cells, [*raised]]:
                n_cells, runs, n_events = [each.n_cells for each in self.partitions], sum(self.sizes), self.n_events
                return (
                    len(counted) == len(self.sizes)
                    and all(
                        _are_within(one, (size + 1,) * n_events + (_MARK,) * BLOCK_MARKS)
                        for one, size in zip(counted, self.sizes, strict=True)
                    )
                    and cells.shape == (sum(n_cells),)
                    and cells.dtype == np.int64
                    and _fit(self.partitions, cells, runs)
                    and _are_raised(raised, runs)
                )
        return False


Pairs = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class CountPairs:
    """Counts pairs of main runs: (`pair_numbers`, marks) of each block, and exceptions.

    Hits of the events of the `final` test and cells of `partitions` are counted in addition.
    """

    events: Events
    rare: Events
    final: tuple[Event, ...]
    partitions: tuple[Counted, ...]
    shapes: Shapes
    first: int
    sizes: tuple[int, ...]

    @property
    def owners(self) -> Sequence[Any]:
        counting = (*self.events, *self.rare, *self.final, *self.partitions)
        return [value for each in counting for value in listed_in(each)]

    @property
    def blocks(self) -> int:
        return 2 * len(self.sizes)

    @property
    def words(self) -> str:
        return f"{_blocks_in_words(self.first, len(self.sizes))} of the main runs"

    @property
    def key(self) -> str:
        counted_by = digest((self.events, self.rare, self.final, self.partitions))
        return f"{self.words}, {sum(self.sizes)} pairs counted by {counted_by}"

    def __call__(self, plan: Plan) -> tuple[list[Pairs], list[RaisedTimes], list[RaisedTimes], Labels, Labels]:
        counted = [self._count(plan, number, size) for number, size in enumerate(self.sizes, start=self.first)]
        pairs, on_x, on_y, finals = zip(*counted, strict=True)
        hits, cells = (np.sum([getattr(each, name) for each in finals], axis=0) for name in ("hits", "cells"))
        return list(pairs), _added(on_x), _added(on_y), hits, cells

    def _count(self, plan: Plan, number: int, size: int) -> tuple[Pairs, Counter[str], Counter[str], FinalCounts]:
        shapes = {} if self.shapes is None else self.shapes
        # The outputs on y are counted before the next call.
        x, y = (plan.draw("main", side, number, size, shapes.get(side), is_kept=side == "x") for side in SIDES)
        pairs = pair_numbers(self.events, self.rare, x, y)
        marks = (*_marks(plan, number, x), *_marks(plan, number, y))
        final = FinalCounts.of(self.final, self.partitions, x, y)
        return (pairs, marks), raised_in(x), raised_in(y), final

    def fits(self, result: Any) -> bool:
        match result:
            case [[*counted], [*on_x], [*on_y], np.ndarray() as hits, np.ndarray() as cells]:
                runs, n_cells = sum(self.sizes), sum(each.n_cells for each in self.partitions)
                return (
                    len(counted) == len(self.sizes)
                    and all(_are_pairs(one, size) for one, size in zip(counted, self.sizes, strict=True))
                    and all(_are_raised(raised, runs) for raised in (on_x, on_y))
                    and (hits.shape, cells.shape) == ((2, len(self.final)), (2, n_cells))
                    and hits.dtype == cells.dtype == np.int64
                    and bool((hits >= 0).all() and (hits <= runs).all())
                    and all(_fit(self.partitions, side, runs) for side in cells)
                )
        return False


def _fit(counting: Sequence[Counted], cells: Labels, runs: int) -> bool:
    """Whether these are possible counts of `runs` outputs."""
    parts = np.split(cells, np.cumsum([each.n_cells for each in counting]))
    return all(each.fits(part, runs) for each, part in zip(counting, parts, strict=False))


def listed_in(counting: Any) -> Sequence[Any]:
    """The outcomes that an event or a partition lists."""
    if isinstance(counting, Apart):
        return [*listed_in(counting.event), *listed_in(counting.other)]
    if isinstance(counting, PlainEvents):
        return listed_in(counting.outcomes)
    return getattr(counting, "values", ())


Task = DrawBlocks | LearnForm | CountBlocks | CountPairs
AnyTask = TypeVar("AnyTask", bound=Task)


def raised_in(outputs: Outputs) -> Counter[str]:
    """Count the exceptions among outputs by type."""
    found: Counter[str] = Counter()
    if outputs.dtype == object:
        found.update(output.exception for output in outputs if isinstance(output, Raised))
    return found


def _added(raised: Sequence[Counter[str]]) -> list[RaisedTimes]:
    return [*sum(raised, Counter[str]()).items()]


def _are_raised(raised: list[Any], runs: int) -> bool:
    """Whether these are possible counts of exceptions in `runs` runs."""
    if not all(isinstance(each, (list, tuple)) and len(each) == 2 for each in raised):
        return False
    names, times = [each[0] for each in raised], [each[1] for each in raised]
    return (
        all(isinstance(name, str) for name in names)
        and len(set(names)) == len(names)
        and all(type(each) is int and each > 0 for each in times)
        and sum(times) <= runs
    )


def _are_pairs(counted: Any, size: int) -> bool:
    """Whether these are possible counts and marks of a block of `size` pairs."""
    match counted:
        case [numbers, marks]:
            can_be = _are_within(numbers, (size + 1,) * PAIR_NUMBERS)
            return (
                can_be
                and sum(numbers[:4]) == sum(numbers[4:8]) == size
                and _are_within(marks, (_MARK,) * (2 * BLOCK_MARKS))
            )
    return False


def _marks(plan: Plan, number: int, outputs: Outputs) -> tuple[int, ...]:
    return block_marks(outputs, with_stretches=not plan.sampler.is_block or number % _MARKED_OF_MANY == 0)


def _blocks_in_words(first: int, count: int) -> str:
    return f"block {first}" if count == 1 else f"blocks {first} to {first + count - 1}"


def _are_within(numbers: Any, ends: Sequence[int]) -> bool:
    """Whether each number is an integer from 0 up to, but not including, its end."""
    return (
        isinstance(numbers, (list, tuple))
        and len(numbers) == len(ends)
        and all(type(each) is int and 0 <= each < end for each, end in zip(numbers, ends, strict=True))
    )
