"""Pairs ranked by replays: one run on each dataset shows what the noise is given.

Hundreds of pairs are ranked in the executions that a few take in a statistical search. The best then go on trial.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sized
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from statistics import fmean

from ..errors import MechanismError, described
from ..replay.other_values import Reruns
from ..replay.recorded_run import RecordedRun, Runner
from ..replay.registered import registered_names
from ..replay.replayed_call import line_of, paired_calls
from ..replay.tape import only_recording
from ..replay.visible_loss import visible_loss
from ..sampling.sampler import Sampler
from .candidates import Candidate, show
from .climb import ROUNDING, Climb
from .pool import Pool

_SHARE, _MOST = 0.4, 4_000  # share of a search's executions for replays, and their number
_EACH, _MOST_LEADERS = 150, 8  # executions for each pair that goes on trial, and the number of these
_PATTERNS = 3  # one of so many is a usual pattern, because one path may show little of what noise decides
_FOR_PATHS, _PATHS = 0.03, 4  # share of the runs for other paths of the first pairs, and the number of these paths
_LOOKED_AT = 5  # pairs on which it is tried whether the output shows the value of a line
_MOST_KEPT = 256  # recorded runs that are kept, for pairs that share a dataset
_MOST_FAILED = 200  # pairs on which the mechanism fails, if it runs on none


@dataclass(frozen=True, slots=True)
class Replayed:
    """A pair with the loss that a replay shows (`visible_loss`)."""

    candidate: Candidate
    size: float


@dataclass(slots=True)
class Replays:
    """Replays of pairs, at most a number of runs.

    `on_one_path` holds the pairs on which the runs make the same calls: what another path costs is a guess.
    """

    runner: Runner
    most: int
    progress: Callable[[int], None] | None = None
    pairs: int = 0
    failed: int = 0
    first_error: str = ""
    has_calls: bool = False
    on_one_path: list[Replayed] = field(default_factory=list)
    _runs: dict[Hashable, RecordedRun] = field(default_factory=dict)
    _shows: dict[Hashable, bool] = field(default_factory=dict)
    _hidden: Counter[Hashable] = field(default_factory=Counter)

    @property
    def tried(self) -> int:
        """Pairs so far, those on which the mechanism failed included."""
        return self.pairs + self.failed

    def has_room(self, share: float) -> bool:
        """Whether less than this share of the runs has been used, and the mechanism does not always fail."""
        return self.runner.runs < share * self.most and (self.pairs > 0 or self.failed < _MOST_FAILED)

    def compare(self, candidate: Candidate) -> Replayed | None:
        """Return the pair with its visible loss; None if the mechanism fails on both datasets."""
        before = self.runner.runs
        on_x = self._recorded(candidate)
        on_y = self.runner.run(candidate.y, on_x.tape.calls)
        reruns = Reruns(self.runner, paired_calls(on_x.tape, on_y.tape), (candidate.x, on_x), (candidate.y, on_y))
        is_tried = on_y.is_on_path_of(on_x)
        size = visible_loss(on_x, on_y, lambda number: self._hides(number, reruns, is_tried=is_tried))
        if self.progress is not None:
            self.progress(self.runner.runs - before)
        if on_x.error is not None and on_y.error is not None:
            self.failed += 1
            self.first_error = self.first_error or f"{described(on_x.error)} on {show(candidate.x)}"
            return None
        self.pairs += 1
        self.has_calls = self.has_calls or bool(on_x.tape.calls)
        found = Replayed(candidate, size)
        if is_tried:
            self.on_one_path.append(Replayed(candidate, visible_loss(on_x, on_y, otherwise=0.0)))
        return found

    def over_paths(self) -> list[Replayed]:
        """Return the first pairs on one path with their mean visible loss over this path and some others."""
        order = sorted(self.on_one_path, key=lambda pair: (-round(pair.size, 6), _rows(pair.candidate)))
        first = order[: int(_FOR_PATHS * self.most / (2 * _PATHS))]
        sizes = [[pair.size, *(self._on_path(pair.candidate, seed) for seed in range(_PATHS))] for pair in first]
        return [Replayed(pair.candidate, fmean(each)) for pair, each in zip(first, sizes, strict=True)]

    def _on_path(self, candidate: Candidate, seed: int) -> float:
        before = self.runner.runs
        on_x = self.runner.run(candidate.x, seed=seed)
        on_y = self.runner.run(candidate.y, on_x.tape.calls, seed=seed)
        if self.progress is not None:
            self.progress(self.runner.runs - before)
        return visible_loss(on_x, on_y, otherwise=0.0)

    def _hides(self, number: int, reruns: Reruns, *, is_tried: bool) -> bool:
        """Whether the outputs hide the values of a line, such as a draw that is not used; tried on a few pairs.

        Where the paths of x and y part, nothing can be tried.
        """
        call = reruns.calls[number]
        line = line_of(call)
        if is_tried and not self._shows.get(line) and self._hidden[line] < _LOOKED_AT:
            self._shows[line] = bool(reruns.shown(number).any())
            self._hidden[line] += not self._shows[line]
        return not self._shows.get(line)

    def _recorded(self, candidate: Candidate) -> RecordedRun:
        """Return a run on x, which is made once for all pairs with this x."""
        end = None if candidate.ends is None else candidate.ends[0]
        if end is not None and end in self._runs:
            return self._runs[end]
        run = self.runner.run(candidate.x)
        if end is not None:
            if len(self._runs) >= _MOST_KEPT:
                del self._runs[next(iter(self._runs))]
            self._runs[end] = run
        return run


@dataclass(frozen=True, slots=True)
class Guide:
    """What the replays of a search found.

    Attributes
    ----------
    leaders : tuple of Candidate or None
        The pairs of the largest visible loss, one of each group of similar pairs, as simple as that loss allows; and a
        few usual patterns. None without replays.
    pairs, executions : int
        Pairs that were replayed, and runs that this took.
    remark : str
        Why the ranking says little; empty if it does not.
    """

    leaders: tuple[Candidate, ...] | None = None
    pairs: int = 0
    executions: int = 0
    remark: str = ""


def _rows(candidate: Candidate) -> int:
    """Return the rows of a pair: of two pairs with the same loss, the smaller one hides it less."""
    return sum(len(dataset) for dataset in (candidate.x, candidate.y) if isinstance(dataset, Sized))


def _in_turn(*leaders: Iterable[Replayed]) -> list[Replayed]:
    """Return pairs by decreasing size, from each of some lists in turn, without repetitions."""
    turns = zip_longest(*(sorted(pairs, key=lambda pair: -round(pair.size, 6)) for pairs in leaders))
    found = (pair for turn in turns for pair in turn if pair is not None)
    return list({pair.candidate.key or id(pair.candidate): pair for pair in found}.values())


def guided_by_replays(
    pool: Pool, sampler: Sampler, seed: int, budget: int, progress: Callable[[int], None] | None = None
) -> Guide:
    """Return the pairs that replays rank first, out of a pool, within a share of the executions of a search.

    Raises
    ------
    MechanismError
        If the mechanism fails on every pair, or a replay is recording in this process.
    """
    with only_recording() as is_free:
        if not is_free:
            raise MechanismError(
                "another replay is recording in this process, perhaps the one that runs this search; search without "
                "guide=, or in another process.",
                mechanism=sampler.name,
            )
        replays = Replays(Runner(sampler, registered_names(), seed), min(int(_SHARE * budget), _MOST), progress)
        climb = Climb(pool, replays)
        with replays.runner.patching():
            climb.run()
            over_paths = replays.over_paths()
        if replays.failed and not replays.pairs:
            raise MechanismError(
                f"{sampler.name} failed on all of {replays.failed:,} replayed pairs; the first error: "
                f"{replays.first_error}",
                mechanism=sampler.name,
            )
        order = _in_turn(climb.leaders.values(), over_paths)
        count = min(max((budget - replays.runner.runs) // _EACH, 2), _MOST_LEADERS)
        leaders: dict[Hashable, Candidate] = {}
        for pair in order[: count - count // _PATTERNS]:
            simple = climb.simpler(pair, pair.size * (1.0 - ROUNDING)).candidate
            chosen = pair.candidate if simple.key in leaders else simple  # different pairs on trial are worth more
            leaders[chosen.key or id(chosen)] = replace(chosen, promise=pair.size)
    usual = filter(pool.is_possible, islice(pool.source.patterns(), _MOST_LEADERS))
    leaders |= {pattern.key or id(pattern): pattern for pattern in islice(usual, count // _PATTERNS)}
    remark = "" if replays.has_calls else "the replays recorded no noise, so they ranked pairs by their outputs alone"
    return Guide(tuple(leaders.values()), replays.pairs, replays.runner.runs, remark)
