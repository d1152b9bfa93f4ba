"""Tasks of workers: each draws some blocks and returns pilot outputs or counts, as numbers, text and arrays.

A task describes its blocks for messages in `words`, and names its result in a memory by `key`, the same in every
process. `owners` are objects in it that may be of the user's types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import MechanismError
from ..events.events import ColumnCells, Counted, Event, Labels, Mask, Partition, Scored
from ..events.outputs import Outputs, Raised
from ..events.records import Form
from ..events.scores import Reading, Score
from ..inference.betting_test import JointCounts, PairedGuesses
from ..inference.event_test import Counts
from .block_plan import SIDES, Plan, Side
from .output_hashes import MARKS, block_marks, digest

# Counts and marks of the blocks on one dataset, kept after their outputs are discarded.

Marks = np.ndarray[tuple[int, int], np.dtype[np.uint64]]
Totals = np.ndarray[tuple[int, int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """Counts, sizes and marks of the blocks on one dataset.

    The shapes are (blocks,), but (blocks, 4) for `stretches` and (cells,) for `cells`. `fingerprints` are hashes of the
    first outputs of each block, `orders` are hashes of their order, and `stretches` are the smallest hashes of
    stretches, 0 for none; the last two are empty if not recorded. `cells` counts the outputs of all blocks in each cell
    of every partition, one after the other; `raised` counts exceptions by type; `others` are the counts of other
    events, shape (events, blocks).
    """

    counts: np.ndarray[tuple[int], np.dtype[np.int64]]
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
    fingerprints: np.ndarray[tuple[int], np.dtype[np.uint64]]
    cells: Labels = field(default_factory=lambda: np.zeros(0, np.int64))
    orders: np.ndarray[tuple[int], np.dtype[np.uint64]] = field(default_factory=lambda: np.zeros(0, np.uint64))
    stretches: Marks = field(default_factory=lambda: np.zeros((0, MARKS), np.uint64))
    raised: Counter[str] = field(default_factory=Counter)
    others: Totals = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    @classmethod
    def of(cls, counts: Totals, sizes: Sequence[int], marks: Marks, cells: Labels, raised: Counter[str]) -> BlockCounts:
        """Return the counts for counts of shape (blocks, events) and marks of shape (blocks, 6)."""
        runs = np.array(sizes, np.int64)
        return cls(counts[:, 0], runs, marks[:, 0], cells, marks[:, 1], marks[:, 2:], raised, counts[:, 1:].T)

    @property
    def contents(self) -> bytes:
        """All counts that tests see, and hashes of the first outputs of each block, for the coins of these tests."""
        return b"".join(part.tobytes() for part in (self.counts, self.others, self.cells, self.fingerprints))

    def followed_by(self, other: BlockCounts) -> BlockCounts:
        """Return these blocks followed by the blocks of `other`."""
        return BlockCounts(
            np.concatenate([self.counts, other.counts]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.fingerprints, other.fingerprints]),
            self.cells + other.cells,
            np.concatenate([self.orders, other.orders]),
            np.concatenate([self.stretches, other.stretches]),
            self.raised + other.raised,
            np.concatenate([self.others, other.others], axis=1) if len(self.others) else other.others,
        )


def no_blocks() -> BlockCounts:
    """Return the counts of zero blocks."""
    return BlockCounts(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64))


@dataclass(frozen=True, slots=True)
class MainCounts:
    """Main runs on x and on y in events, and in the cells of partitions and of plain events, one after the other."""

    runs: tuple[int, int]  # on x and on y
    totals: Labels  # shape (2 datasets, events)
    cells: Labels  # shape (2 datasets, cells)

    @classmethod
    def of(cls, events: Sequence[Event], partitions: Sequence[Counted], x: Reading, y: Reading) -> MainCounts:
        """Count the outputs of these readings."""
        totals = np.array([counts_of(events, side) for side in (x, y)], dtype=np.int64)
        cells = np.stack([_cells(partitions, side) for side in (x, y)])
        return cls((len(x.outputs), len(y.outputs)), totals, cells)

    @classmethod
    def of_blocks(cls, x: BlockCounts, y: BlockCounts) -> MainCounts:
        """Add the counts of all blocks, those of their first event first."""
        totals = np.array([[side.counts.sum(), *side.others.sum(axis=1)] for side in (x, y)], dtype=np.int64)
        return cls((int(x.sizes.sum()), int(y.sizes.sum())), totals, np.stack([x.cells, y.cells]))

    def without(self, partition: Partition | None) -> MainCounts:
        """Return the counts without those in a partition, the last one."""
        return self if partition is None else replace(self, cells=self.cells[:, : -partition.n_cells])

    def last(self, partition: Partition | None) -> tuple[Labels, Labels]:
        """Return the counts on x and on y in a partition, the last one."""
        on_x, on_y = self.cells[:, :0] if partition is None else self.cells[:, -partition.n_cells :]
        return on_x, on_y

    def followed_by(self, other: MainCounts) -> MainCounts:
        """Return the counts of both."""
        runs = self.runs[0] + other.runs[0], self.runs[1] + other.runs[1]
        return MainCounts(runs, self.totals + other.totals, self.cells + other.cells)

    @property
    def contents(self) -> bytes:
        """All counts, for the coins of their tests."""
        return self.totals.tobytes() + self.cells.tobytes()

    @property
    def counts(self) -> tuple[Counts, ...]:
        """Counts of each event."""
        (runs_x, runs_y), pairs = self.runs, self.totals.T.tolist()
        return tuple(
            Counts(count_x=count_x, runs_x=runs_x, count_y=count_y, runs_y=runs_y) for count_x, count_y in pairs
        )


def counts_of(events: Sequence[Event], reading: Reading) -> list[int]:
    """Return the counts of each event among the outputs of a reading."""
    return [_times(mask) for mask in _masks(events, reading)]


def _masks(events: Sequence[Event | None], reading: Reading) -> list[Mask]:
    """Whether each output is in each event; None holds none. Events that share a score share its values."""
    values: dict[Score, npt.NDArray[np.float64]] = {}
    found = []
    for event in events:
        if event is None:
            found.append(np.zeros(len(reading.outputs), dtype=np.bool_))
        elif isinstance(event, Scored):
            if event.score not in values:
                values[event.score] = reading.values(event.score)
            found.append(event.event.contains(values[event.score]))
        else:
            found.append(event.contains(reading.outputs))
    return found


def _times(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _cells(partitions: Sequence[Counted], reading: Reading) -> Labels:
    """Outputs of a reading in each cell of all partitions."""
    counted = [
        each.of(reading) if isinstance(each, ColumnCells) else each.count(reading.outputs) for each in partitions
    ]
    return np.concatenate([np.zeros(0, np.int64), *counted])


def total_counts(x: BlockCounts, y: BlockCounts) -> Counts:
    """Return counts and runs of all blocks on x and on y."""
    return Counts(
        count_x=int(x.counts.sum()), runs_x=int(x.sizes.sum()), count_y=int(y.counts.sum()), runs_y=int(y.sizes.sum())
    )


# Counts of pairs of runs, one on each dataset, for the bets of a sequential audit.

Events = tuple[Event | None, Event | None]

_FATES, _GUESSES = (tuple(each.name for each in fields(kind)) for kind in (JointCounts, PairedGuesses))
PAIR_NUMBERS = 2 * len(_FATES) + len(_GUESSES) + 4
"""Numbers in the counts of pairs."""


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Counts of pairs of runs, one on each dataset: of the event more likely on x (`first`), on y (`second`), and both.

    `rare` has the counts of two events that exclude each other, seen on one dataset only, the one more likely on x
    first.
    """

    first: JointCounts
    second: JointCounts
    both: PairedGuesses
    rare: tuple[Counts, Counts]

    @property
    def contents(self) -> bytes:
        """All counts, for the coins of their tests."""
        parts = (self.first, self.second, self.both, *self.rare)
        return np.array([number for part in parts for number in astuple(part)], np.int64).tobytes()

    @classmethod
    def of(cls, events: Events, rare: Events, x: Outputs, y: Outputs) -> PairCounts:
        """Count the pairs of outputs by which of them are in the events; None never occurs."""
        return cls.from_numbers(pair_numbers(events, rare, Reading(x), Reading(y)))

    @classmethod
    def from_numbers(cls, numbers: Sequence[int]) -> PairCounts:
        """Return the counts for the `pair_numbers` of a block, or for the sums of those of several blocks."""
        first, second = (JointCounts(**dict(zip(_FATES, part, strict=True))) for part in (numbers[:4], numbers[4:8]))
        both = PairedGuesses(**dict(zip(_GUESSES, numbers[8:14], strict=True)))
        runs = first.runs
        on_x, on_y = (
            Counts(count_x=x, runs_x=runs, count_y=y, runs_y=runs) for x, y in (numbers[14:16], numbers[16:18])
        )
        return cls(first, second, both, (on_x, on_y))


def pair_numbers(events: Events, rare: Events, x: Reading, y: Reading) -> tuple[int, ...]:
    """Return the counts of pairs of outputs as numbers, in the order of the attributes of `PairCounts`."""
    (x_first, x_second, *rare_x), (y_first, y_second, *rare_y) = (
        _masks(events if rare == (None, None) else (*events, *rare), side) for side in (x, y)
    )
    first, second = _fates(x_first, y_first), _fates(y_second, x_second)
    guesses = _guesses(*_apart(x_first, x_second), *_apart(y_second, y_first), runs=len(x.outputs))
    if not rare_x:
        return *first, *second, *guesses, 0, 0, 0, 0
    on_x, on_y = _apart(*rare_x), _apart(*rare_y)
    return *first, *second, *guesses, *(_times(side[event]) for event in (0, 1) for side in (on_x, on_y))


def _apart(first: Mask, second: Mask) -> tuple[Mask, Mask]:
    """Return each of two events without what they share, which is usually nothing."""
    shared = first & second
    return (first & ~shared, second & ~shared) if shared.any() else (first, second)


def _fates(on_p: Mask, on_q: Mask) -> tuple[int, ...]:
    both, count_p, count_q = _times(on_p & on_q), _times(on_p), _times(on_q)
    return both, count_p - both, count_q - both, len(on_p) - count_p - count_q + both


def _guesses(right_x: Mask, wrong_x: Mask, right_y: Mask, wrong_y: Mask, *, runs: int) -> tuple[int, ...]:
    both_right, both_wrong = _times(right_x & right_y), _times(wrong_x & wrong_y)
    one_each = _times(right_x & wrong_y) + _times(wrong_x & right_y)
    one_right = _times(right_x) + _times(right_y) - 2 * both_right - one_each
    one_wrong = _times(wrong_x) + _times(wrong_y) - 2 * both_wrong - one_each
    unguessed = runs - both_right - one_each - one_right - both_wrong - one_wrong
    return both_right, one_each, one_right, both_wrong, one_wrong, unguessed


Shapes = dict[str, tuple[int, ...]] | None
RaisedTimes = tuple[str, int]

_TOGETHER = 1 << 16  # numbers from which blocks are counted: each count costs 20 µs for a column
_MARKED_OF_MANY = 8  # one in eight blocks of a vectorised mechanism has its stretches hashed, which takes 30 µs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocks:
    """Successive blocks of a task, by the number of the first and the runs in each."""

    first: int
    sizes: tuple[int, ...]

    @property
    def blocks(self) -> int:
        return len(self.sizes)

    @property
    def numbered(self) -> Iterable[tuple[int, int]]:
        """The number of each block with its size."""
        return enumerate(self.sizes, start=self.first)

    @property
    def span(self) -> str:
        n_blocks = len(self.sizes)
        return f"block {self.first}" if n_blocks == 1 else f"blocks {self.first} to {self.first + n_blocks - 1}"


@dataclass(frozen=True, slots=True)
class DrawBlocks(_Blocks):
    """Draws blocks of the pilot."""

    side: Side
    owners: Sequence[Any] = field(default=(), init=False)

    @property
    def words(self) -> str:
        return f"{self.span} of the pilot runs on {self.side}"

    @property
    def key(self) -> str:
        return f"{self.words}, {sum(self.sizes)} outputs"

    def __call__(self, plan: Plan) -> list[Outputs]:
        return [plan.draw("pilot", self.side, number, size) for number, size in self.numbered]


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
        found: list[Form] = []
        for side, dataset in zip(SIDES, (plan.x, plan.y), strict=True):
            try:
                form = plan.sampler.form_on(dataset, self.size, plan.generator("pilot", side, 0))
            except MechanismError as error:
                if "seconds" in error.facts:  # it hung, and may not do so again
                    raise
                return Form()  # the pilot will say what fails
            if form == Form():
                return form
            found += [] if form is None else [form]
        return found[0].agreed(found[-1]) if found and found[0] == found[-1] else Form()


@dataclass(frozen=True, slots=True)
class CountBlocks(_Blocks):
    """Counts main runs on one dataset: (counts of each event, marks) of each block, and cells and exceptions of all."""

    side: Side
    event: Event | None
    partitions: tuple[Counted, ...]
    shapes: Shapes
    others: tuple[Event, ...] = ()

    @property
    def owners(self) -> Sequence[Any]:
        return [value for each in (self.event, *self.others, *self.partitions) for value in listed_in(each)]

    @property
    def words(self) -> str:
        return f"{self.span} of the main runs on {self.side}"

    @property
    def key(self) -> str:
        return f"{self.words}, {sum(self.sizes)} counted by {digest((self.event, self.others, self.partitions))}"

    def __call__(self, plan: Plan) -> tuple[list[tuple[int, ...]], Labels, list[RaisedTimes]]:
        numbers: list[tuple[int, ...]] = []
        raised: Counter[str] = Counter()
        cells = np.zeros(sum(each.n_cells for each in self.partitions), np.int64)
        for first, blocks in self._drawn_together(plan):
            reading = Reading(blocks[0] if len(blocks) == 1 else np.concatenate(blocks))
            starts = np.cumsum([0, *map(len, blocks[:-1])])
            masks = _masks((self.event, *self.others), reading)
            counts = zip(*(np.add.reduceat(mask, starts, dtype=np.int64).tolist() for mask in masks), strict=True)
            marks = (_marks(plan, number, block) for number, block in enumerate(blocks, start=first))
            numbers += [(*in_events, *marked) for in_events, marked in zip(counts, marks, strict=True)]
            cells += _cells(self.partitions, reading)
            raised += raised_in(reading.outputs)
        return numbers, cells, [*raised.items()]

    def _drawn_together(self, plan: Plan) -> Iterator[tuple[int, list[Outputs]]]:
        """Yield successive blocks of one kind that have many numbers together, with the number of the first."""
        shape = None if self.shapes is None else self.shapes[self.side]
        start, held, count = self.first, list[Outputs](), 0
        for number, size in self.numbered:
            outputs = plan.draw("main", self.side, number, size, shape)
            if held and (held[0].dtype, held[0].shape[1:]) != (outputs.dtype, outputs.shape[1:]):
                yield start, held
                start, held, count = number, [], 0
            held.append(outputs)
            count += outputs.size
            if outputs.dtype == object or count >= _TOGETHER:  # objects are counted at once
                yield start, held
                start, held, count = number + 1, [], 0
        if held:
            yield start, held


Pairs = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class CountPairs(_Blocks):
    """Counts pairs of main runs: (`pair_numbers`, marks) of each block, exceptions, and counts of `final` and cells."""

    events: Events
    rare: Events
    final: tuple[Event, ...]
    partitions: tuple[Counted, ...]
    shapes: Shapes

    @property
    def owners(self) -> Sequence[Any]:
        counting = (*self.events, *self.rare, *self.final, *self.partitions)
        return [value for each in counting for value in listed_in(each)]

    @property
    def blocks(self) -> int:
        return 2 * len(self.sizes)

    @property
    def words(self) -> str:
        return f"{self.span} of the main runs"

    @property
    def key(self) -> str:
        counted_by = digest((self.events, self.rare, self.final, self.partitions))
        return f"{self.words}, {sum(self.sizes)} pairs counted by {counted_by}"

    def __call__(self, plan: Plan) -> tuple[list[Pairs], list[RaisedTimes], list[RaisedTimes], Labels, Labels]:
        counted = [self._count(plan, number, size) for number, size in self.numbered]
        pairs, on_x, on_y, finals = zip(*counted, strict=True)
        totals, cells = (np.sum([getattr(each, name) for each in finals], axis=0) for name in ("totals", "cells"))
        return list(pairs), _added(on_x), _added(on_y), totals, cells

    def _count(self, plan: Plan, number: int, size: int) -> tuple[Pairs, Counter[str], Counter[str], MainCounts]:
        shapes = {} if self.shapes is None else self.shapes
        x, y = (plan.draw("main", side, number, size, shapes.get(side)) for side in SIDES)
        reading_x, reading_y = Reading(x), Reading(y)
        pairs = pair_numbers(self.events, self.rare, reading_x, reading_y)
        marks = (*_marks(plan, number, x), *_marks(plan, number, y))
        final = MainCounts.of(self.final, self.partitions, reading_x, reading_y)
        return (pairs, marks), raised_in(x), raised_in(y), final


def listed_in(counting: Any) -> Sequence[Any]:
    """The outcomes that an event or a partition lists."""
    if isinstance(counting, ColumnCells):
        return [value for score in counting.scores for value in getattr(score, "outcomes", ())]
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


def _marks(plan: Plan, number: int, outputs: Outputs) -> tuple[int, ...]:
    return block_marks(outputs, with_stretches=not plan.sampler.is_block or number % _MARKED_OF_MANY == 0)
