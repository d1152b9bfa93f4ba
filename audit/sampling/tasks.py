"""Tasks of workers: each draws some blocks and returns pilot outputs or counts, as numbers, text and arrays.

A task describes its blocks for messages in `words`, and names its result in a memory by `key`, the same in every
process. `owners` are objects in it that may be of the user's types.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..events.events import ColumnCells, Counted, Event, Labels, Mask, Partition, Scored
from ..events.outputs import Outputs, Raised
from ..events.scores import Reading, Score
from ..inference.betting_test import JointCounts, PairedGuesses
from ..inference.event_test import Counts
from ..options import MOST_IN_BLOCK
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
    of every partition, one after the other; `others` are the counts of other events, shape (events, blocks); `raised`
    counts exceptions by type.
    """

    counts: np.ndarray[tuple[int], np.dtype[np.int64]]
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
    fingerprints: np.ndarray[tuple[int], np.dtype[np.uint64]]
    cells: Labels = field(default_factory=lambda: np.zeros(0, np.int64))
    orders: np.ndarray[tuple[int], np.dtype[np.uint64]] = field(default_factory=lambda: np.zeros(0, np.uint64))
    stretches: Marks = field(default_factory=lambda: np.zeros((0, MARKS), np.uint64))
    others: Totals = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    raised: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, plan: Plan, first: int, blocks: Sequence[Outputs], counts: Totals, cells: Labels) -> BlockCounts:
        """Return the counts for successive blocks, the number of the first, and counts of shape (events, blocks)."""
        marks = np.array([_marks(plan, number, block) for number, block in enumerate(blocks, start=first)], np.uint64)
        sizes = np.array([len(block) for block in blocks], np.int64)
        raised = sum(map(raised_in, blocks), Counter[str]())
        return cls(counts[0], sizes, marks[:, 0], cells, marks[:, 1], marks[:, 2:], counts[1:], raised)

    @classmethod
    def joined(cls, parts: Sequence[BlockCounts]) -> BlockCounts:
        """Return the blocks of all parts, one part after the other; the parts count the same events and cells."""
        if len(parts) == 1:
            return parts[0]

        def end_to_end(name: str, axis: int = 0) -> Any:
            return np.concatenate([getattr(part, name) for part in parts], axis=axis)

        return cls(
            counts=end_to_end("counts"),
            sizes=end_to_end("sizes"),
            fingerprints=end_to_end("fingerprints"),
            cells=np.sum([part.cells for part in parts], axis=0),
            orders=end_to_end("orders"),
            stretches=end_to_end("stretches"),
            others=end_to_end("others", axis=1),
            raised=sum((part.raised for part in parts), Counter[str]()),
        )

    @classmethod
    def read(cls, kept: Sequence[Any]) -> BlockCounts:
        """Return the counts that `plain` returned as data."""
        parts = dict(zip(cls.__slots__, kept, strict=True))
        return cls(**parts | {"raised": Counter(dict(parts["raised"]))})

    @property
    def plain(self) -> list[Any]:
        """The counts as data for a memory."""
        *arrays, raised = (getattr(self, name) for name in self.__slots__)
        return [*arrays, [*raised.items()]]

    @property
    def contents(self) -> bytes:
        """All counts that tests see, and hashes of the first outputs of each block, for the coins of these tests."""
        return b"".join(part.tobytes() for part in (self.counts, self.others, self.cells, self.fingerprints))


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
        return cls.from_numbers(_pair_numbers(*(_masks((*events, *rare), Reading(side)) for side in (x, y))))

    @classmethod
    def from_numbers(cls, numbers: Iterable[int]) -> PairCounts:
        """Return the counts for the `_pair_numbers` of a block, or for the sums of those of several blocks."""
        rest = iter(numbers)
        first, second = (JointCounts(**{each.name: next(rest) for each in fields(JointCounts)}) for _ in range(2))
        both = PairedGuesses(**{each.name: next(rest) for each in fields(PairedGuesses)})
        on_x, on_y = (
            Counts(count_x=next(rest), runs_x=first.runs, count_y=next(rest), runs_y=first.runs) for _ in range(2)
        )
        return cls(first, second, both, (on_x, on_y))


def _pair_numbers(masks_x: Sequence[Mask], masks_y: Sequence[Mask]) -> tuple[int, ...]:
    """Return the counts of pairs of outputs as numbers, in the order of the attributes of `PairCounts`.

    The masks say of each output on a dataset whether it is in each of the events and rare events.
    """
    (x_first, x_second, *rare_x), (y_first, y_second, *rare_y) = masks_x, masks_y
    first, second = _fates(x_first, y_first), _fates(y_second, x_second)
    guesses = _guesses(*_apart(x_first, x_second), *_apart(y_second, y_first), runs=len(x_first))
    on_x, on_y = _apart(*rare_x), _apart(*rare_y)
    return *first, *second, *guesses, *(_times(side[event]) for event in (0, 1) for side in (on_x, on_y))


def _apart(first: Mask, second: Mask) -> tuple[Mask, Mask]:
    """Return each of two events without what they share."""
    return first & ~second, second & ~first


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
    def counting(self) -> tuple[Event | Counted | None, ...]:
        """What the outputs are counted in."""
        return ()

    @property
    def owners(self) -> list[Any]:
        return [value for each in self.counting for value in _listed_in(each)]

    def _in_words(self, runs: str) -> str:
        n_blocks = len(self.sizes)
        span = f"block {self.first}" if n_blocks == 1 else f"blocks {self.first} to {self.first + n_blocks - 1}"
        return f"{span} of the {runs}"


@dataclass(frozen=True, slots=True)
class DrawBlocks(_Blocks):
    """Draws blocks of the pilot."""

    side: Side

    @property
    def words(self) -> str:
        return self._in_words(f"pilot runs on {self.side}")

    @property
    def key(self) -> str:
        return f"{self.words}, {sum(self.sizes)} outputs"

    def __call__(self, plan: Plan) -> list[Outputs]:
        return [plan.draw("pilot", self.side, number, size) for number, size in self.numbered]


@dataclass(frozen=True, slots=True)
class CountBlocks(_Blocks):
    """Counts main runs on one dataset; returns `BlockCounts` as data."""

    side: Side
    event: Event | None
    partitions: tuple[Counted, ...]
    shapes: Shapes
    others: tuple[Event, ...] = ()

    @property
    def counting(self) -> tuple[Event | Counted | None, ...]:
        return (self.event, *self.others, *self.partitions)

    @property
    def words(self) -> str:
        return self._in_words(f"main runs on {self.side}")

    @property
    def key(self) -> str:
        return f"{self.words}, {sum(self.sizes)} counted by {digest(self.counting)}"

    def __call__(self, plan: Plan) -> list[Any]:
        found = []
        for first, blocks in self._drawn_together(plan):
            reading = Reading(blocks[0] if len(blocks) == 1 else np.concatenate(blocks))
            starts = np.cumsum([0, *map(len, blocks[:-1])])
            masks = _masks((self.event, *self.others), reading)
            counts = np.array([np.add.reduceat(mask, starts, dtype=np.int64) for mask in masks])
            found.append(BlockCounts.of(plan, first, blocks, counts, _cells(self.partitions, reading)))
        return BlockCounts.joined(found).plain

    def _drawn_together(self, plan: Plan) -> Iterator[tuple[int, list[Outputs]]]:
        """Yield successive blocks of one kind that have many numbers together, with the number of the first."""
        shape = (self.shapes or {}).get(self.side)
        start, held, count = self.first, list[Outputs](), 0
        for number, size in self.numbered:
            outputs = plan.draw("main", self.side, number, size, shape)
            if held and (held[0].dtype, held[0].shape[1:]) != (outputs.dtype, outputs.shape[1:]):
                yield start, held
                start, held, count = number, [], 0
            held.append(outputs)
            count += outputs.size
            if outputs.dtype == object or count >= MOST_IN_BLOCK:  # objects are counted at once
                yield start, held
                start, held, count = number + 1, [], 0
        if held:
            yield start, held


@dataclass(frozen=True, slots=True)
class CountPairs(_Blocks):
    """Counts pairs of main runs; returns sums of `_pair_numbers`, `BlockCounts` on x and y, and `MainCounts`, as data.

    The blocks have the counts of the first event, or of the second if the first is None.
    """

    events: Events
    rare: Events
    final: tuple[Event, ...]
    partitions: tuple[Counted, ...]
    shapes: Shapes

    @property
    def counting(self) -> tuple[Event | Counted | None, ...]:
        return (*self.events, *self.rare, *self.final, *self.partitions)

    @property
    def blocks(self) -> int:
        return 2 * len(self.sizes)

    @property
    def words(self) -> str:
        return self._in_words("main runs")

    @property
    def key(self) -> str:
        counted_by = digest((self.events, self.rare, self.final, self.partitions))
        return f"{self.words}, {sum(self.sizes)} pairs counted by {counted_by}"

    def __call__(self, plan: Plan) -> list[Any]:
        numbers, on_x, on_y, finals = zip(*(self._count(plan, *each) for each in self.numbered), strict=True)
        final = functools.reduce(MainCounts.followed_by, finals)
        blocks = [BlockCounts.joined(side).plain for side in (on_x, on_y)]
        return [np.sum(numbers, axis=0), *blocks, final.totals, final.cells]

    def _count(
        self, plan: Plan, number: int, size: int
    ) -> tuple[tuple[int, ...], BlockCounts, BlockCounts, MainCounts]:
        shapes = self.shapes or {}
        x, y = (Reading(plan.draw("main", side, number, size, shapes.get(side))) for side in SIDES)
        masks_x, masks_y = (_masks((*self.events, *self.rare), side) for side in (x, y))
        shown, no_cells = int(self.events[0] is None), np.zeros(0, np.int64)
        on_x, on_y = (
            BlockCounts.of(plan, number, [side.outputs], np.array([[_times(masks[shown])]]), no_cells)
            for side, masks in ((x, masks_x), (y, masks_y))
        )
        return _pair_numbers(masks_x, masks_y), on_x, on_y, MainCounts.of(self.final, self.partitions, x, y)


def _listed_in(counting: Any) -> Sequence[Any]:
    """The outcomes that an event or a partition lists."""
    if isinstance(counting, ColumnCells):
        return [value for score in counting.scores for value in getattr(score, "outcomes", ())]
    return getattr(counting, "values", ())


Task = DrawBlocks | CountBlocks | CountPairs
AnyTask = TypeVar("AnyTask", bound=Task)


def raised_in(outputs: Outputs) -> Counter[str]:
    """Count the exceptions among outputs by type."""
    found: Counter[str] = Counter()
    if outputs.dtype == object:
        found.update(output.exception for output in outputs if isinstance(output, Raised))
    return found


def _marks(plan: Plan, number: int, outputs: Outputs) -> tuple[int, ...]:
    return block_marks(outputs, with_stretches=not plan.sampler.is_block or number % _MARKED_OF_MANY == 0)
