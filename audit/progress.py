"""Progress of calls that draw: how long they take, what is shown meanwhile, and how Ctrl-C ends them.

A terminal or a notebook shows one line that changes, a log a line now and then. By default only calls of more than a
few seconds are shown; if more than a minute is left, a line says how long the runs will take, and what shortens them.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from .clock import now
from .errors import Interrupted
from .printing import counted, rounded_down

if TYPE_CHECKING:
    from .options import Progress

_EVERY = 10.0  # seconds between two lines of a log, if progress=True; by default ten minutes
_OFTEN = 0.5  # seconds between two states of a line that replaces itself
_LONG = 60.0  # seconds left from which their number is announced
# An estimate needs a second of runs, or what there is after eight seconds, so that it appears within ten. A call of
# three seconds is shown that did not ask for it.
_ENOUGH, _LATEST = 1.0, 8.0


R = TypeVar("R")
S = TypeVar("S", bound=Any)


class Runs:
    """The runs of a mechanism that nobody watches, as in a worker process."""

    def drawing(self) -> AbstractContextManager[None]:
        """Return the context of all drawing, which Ctrl-C may end at once."""
        return nullcontext()

    def parts(self, size: int, *, is_block: bool = False) -> Iterator[int]:
        """Yield the runs to make next, of `size` altogether."""
        yield size

    def probes(self, workers: Callable[[], int], chunk: int) -> Iterator[int]:
        """Yield runs of calls to be made because they show how long the others take, which have `chunk` runs."""
        yield from ()


UNWATCHED = Runs()


@dataclass(slots=True)
class Pace:
    """How long calls of a mechanism take, by their runs.

    The first call may load what others need, so its time says little.
    """

    first: float = math.nan  # seconds of a run in the first call
    calls: dict[int, tuple[int, float]] = field(default_factory=dict)  # number and seconds of the others, by size

    def add(self, calls: int, size: int, seconds: float) -> None:
        """Add calls of `size` runs each."""
        if math.isnan(self.first):
            self.first = seconds / (calls * size)
        else:
            before, spent = self.calls.get(size, (0, 0.0))
            self.calls[size] = before + calls, spent + seconds

    @property
    def measured(self) -> float:
        """Seconds of all calls but the first."""
        return sum(seconds for _, seconds in self.calls.values())

    def of_call(self, size: int) -> float:
        """Mean seconds of a call of so many runs; NaN if there was none."""
        calls, seconds = self.calls.get(size, (0, 0.0))
        return seconds / calls if calls else math.nan

    def of_run(self, coming: int, *, is_block: bool, is_late: bool) -> float:
        """Seconds of a run in calls of the coming size, 0 for the largest so far; NaN if they are unknown yet."""
        if not self.calls or (self.measured < _ENOUGH and not is_late):
            return self.first if is_late else math.nan
        small, large = min(self.calls), max(self.calls)
        least, most = self.of_call(small), self.of_call(large)
        if small == large:
            return math.nan if is_block and large == 1 else most / large
        growth = max(most - least, 0.0) / (large - small)
        constant, coming = max(least - growth * small, 0.0), coming or large
        # What a call of the coming size takes is known from one of a quarter of it, or if the time grows with the runs.
        if 4 * large < coming and most < 1.5 * least:
            return math.nan
        return growth + constant / coming


class Meter(Runs):
    """Runs of one call: how many are done, how long the others take, and what is shown of them.

    `listener`, if there is one, receives the numbers of finished runs and nothing is shown. Ctrl-C ends the call where
    it draws; elsewhere, at its next draw. `best` then returns the result so far, if it is valid.
    """

    def __init__(self, progress: Progress, name: str) -> None:
        self._listener = progress if callable(progress) else None
        self._is_asked, self._is_silent = progress is True, progress is False or callable(progress)
        self.name, self.parallel, self.chunk, self._stride = name, 1, 0, 1
        self.total: int | None = None
        self.is_most = self.is_planning = False
        self.is_block: bool | None = None  # whether one call makes many runs; None of a query without noise
        self.is_replayable = False  # whether a replay may see the noise
        self.ways: tuple[str, ...] = ()
        self.before = self.done = self.ran_so_far = 0  # runs before the latest `expect`, and since then
        self._executed = 0
        self.best: Callable[[], Any] = lambda: None
        self.leading: tuple[Any, ...] = ()  # pairs of a search
        self.pair: tuple[Any, Any] | None = None  # the datasets of the first of them
        self.way_on = "the same call begins anew; use fewer runs or jobs="
        self.pace = Pace()
        self._started, self._due, self._is_said = now(), 0.0, False
        self._line: _Line | None = None
        self._text, self._lock = "", threading.Lock()
        self._thread = threading.get_ident()
        self.is_drawing = self.was_drawing = self.is_stopped = False

    def watch(self, sampler: S) -> S:
        """Return the sampler with its runs counted here."""
        self.is_block = sampler.is_block
        method = getattr(sampler.function, "func", sampler.function)  # without the part of the outputs
        owner = getattr(method, "__self__", None)
        self.is_replayable = not getattr(owner, "draws_elsewhere", False)
        return replace(sampler, watched=self)

    def timed(self, query: Callable[[Any], R]) -> Callable[[Any], R]:
        """Return a query without noise whose evaluations are counted here."""

        def evaluated(dataset: Any) -> R:
            with self.drawing():
                for _ in self.parts(1):
                    answer = query(dataset)
            return answer

        return evaluated

    def expect(self, runs: int | None, *, is_most: bool = False, is_planning: bool = False) -> None:
        """Say how many runs are to come, on all datasets together, or at most; None if only the time limits them.

        Those of a plan choose how many runs follow, so another estimate will.
        """
        self.before, self.done, self.ran_so_far = self.made, 0, 0
        self._is_said = self._is_said and not self.is_planning
        self.total, self.is_most, self.is_planning = runs, is_most, is_planning

    def __call__(self, finished: int) -> None:
        """Count runs that are finished, also those recalled from a store."""
        self.done += finished
        if self._listener is not None:
            self._listener(finished)
        self.show()

    def interim(self, at: Any) -> None:
        """Show an interim analysis of a sequential audit."""
        self._text = f"{at.runs:,} runs on each dataset, bound {rounded_down(at.bound):g}, p {at.pvalue:.2g}"
        self.show()

    def left(self, remainder: float, executions: int, states: int) -> None:
        """Show what an exact audit has not explored of a dataset, after so many executions."""
        self._text = f"{remainder:.2g} not explored, {counted(states, 'state')}"
        before, self._executed = self._executed, executions
        self(executions - before if executions >= before else executions)  # a new dataset begins with none

    def lead(self, pair: object) -> None:
        """Show the leading pair of a search."""
        self._text = f"leading pair: {pair}"
        self.show()

    def parts(self, size: int, *, is_block: bool = False) -> Iterator[int]:
        left = size
        while left > 0:
            part = size if is_block else min(self._stride, left)
            started = now()
            yield part
            seconds, left = now() - started, left - part
            # Fast runs are counted together, so that counting costs them nothing.
            self._stride = min(2 * part, 1 << 10) if seconds < 0.005 else 1
            self.ran(1 if is_block else part, size if is_block else 1, seconds)

    def ran(self, calls: int, size: int, seconds: float) -> None:
        """Count calls of `size` runs each."""
        self.ran_so_far += calls * size
        self.pace.add(calls, size, seconds)
        self.show()

    @contextmanager
    def drawing(self) -> Iterator[None]:
        if threading.get_ident() != self._thread:  # only the main thread is interrupted
            yield
            return
        before, self.is_drawing = self.is_drawing, True
        try:
            if self.is_stopped and not before:
                raise KeyboardInterrupt
            yield
        except KeyboardInterrupt:
            self.was_drawing = True
            raise
        finally:
            self.is_drawing = before

    # How long it takes.

    def probes(self, workers: Callable[[], int], chunk: int) -> Iterator[int]:
        """Of functions of a run, so many that their time is known before workers make the others.

        Of a slow vectorised mechanism one call, which shows how its time grows with the runs.
        """
        if self.chunk:
            return
        self.parallel, self.chunk = workers(), chunk
        if self._is_silent:
            return
        pace = self.pace
        if self.is_block:
            each = pace.of_call(1)
            if each * chunk >= _LATEST:
                yield max(2, min(int(2.0 * _ENOUGH / each), chunk))
            return
        while self.parallel > 1 and pace.measured < _ENOUGH:
            each = pace.of_call(1) if pace.calls else pace.first
            if not (self.total or 0) * each / self.parallel >= _LONG:
                return
            yield max(1, math.ceil((_ENOUGH - pace.measured) / each)) if pace.calls else 1
        self._due = 0.0  # as workers make the others
        self.show()

    @property
    def seconds_per_run(self) -> float:
        """Seconds per run of those to come; NaN if they are unknown yet."""
        is_late = now() - self._started >= _LATEST
        return self.pace.of_run(self.chunk, is_block=bool(self.is_block), is_late=is_late) / self.parallel

    @property
    def seconds_left(self) -> float:
        """Seconds of the runs to come; NaN if they are unknown."""
        if self.total is None:
            return math.nan
        return max(self.total - max(self.done, self.ran_so_far), 0) * self.seconds_per_run

    def _announce(self) -> None:
        left, each = self.seconds_left, self.seconds_per_run
        if self._is_said or not left >= _LONG:
            return
        self._is_said = True
        if self._line is not None:
            self._line.clear()
        at_most = "at most " if self.is_most else ""
        per = f"{self.total:,} runs, {duration(each * self.parallel)} each"
        per += f", on {self.parallel} workers" if self.parallel > 1 else ""
        why = " to choose how many runs follow" if self.is_planning else ""
        fact = f"{self.name}: {at_most}about {duration(now() - self._started + left)} ({per}{why})"
        ways = list(self.ways)
        if self.is_block is False:
            ways.insert(0, "a parameter size (one call then draws many runs)")
        if self.parallel == 1 and (os.cpu_count() or 1) > 1:
            ways.insert(1, f"jobs={os.cpu_count()}")
        (_outlet[-1] if _outlet else _to_log)(fact, "; ".join(ways))

    # What is shown.

    def show(self) -> None:
        """Show the state, if anything is due; several threads may ask for it."""
        at = now()
        if self._is_silent or at < self._due or not self._lock.acquire(blocking=False):
            return
        try:
            self._due = at + _OFTEN
            is_wanted = self._is_asked or (not _outlet and at - self._started >= 3.0 * _ENOUGH)
            if is_wanted and self._line is None:
                self._line = _Line(self.name, is_asked=self._is_asked)
            self._announce()
            if self._line is not None:
                self._line.show(self._state)
        finally:
            self._lock.release()

    @property
    def _state(self) -> str:
        total = self._shown_total
        if total is None:
            return self._text
        left = self.seconds_left
        text = f"{max(self.done, min(self.ran_so_far, total)):,} of {total:,} runs"
        return f"{text}, about {duration(left)} left" if left >= 1.0 else text

    @property
    def _shown_total(self) -> int | None:
        return None if self.is_most or self.is_planning else self.total

    def close(self) -> None:
        """Remove the display."""
        self._is_silent = True
        if self._line is not None:
            self._line.clear()

    @property
    def _is_in_chunks(self) -> bool:
        """Whether worker processes make the runs, of which this one sees the chunks that are finished."""
        return self.parallel > 1 and not self.is_block

    @property
    def made(self) -> int:
        """Runs of the whole call."""
        return self.before + (self.done if self._is_in_chunks else max(self.done, self.ran_so_far))

    def interrupted(self) -> Interrupted:
        """Return the error that says what is known, and how to go on."""
        runs, leading, total = self.made, self.leading, self._shown_total
        result = self.best() if self.was_drawing else None
        # A number of runs that only a part of the call makes says little about the whole.
        after = f"{runs:,} of {total:,} runs" if total and not self.before and runs <= total else counted(runs, "run")
        after += " in the finished chunks" if self._is_in_chunks else ""
        known = [] if result is None else [f"so far {result.headline}"]
        known += [f"leading pair so far: {leading[0]}"] if leading else []
        text = "; ".join([f"{self.name}: interrupted after {after}", *known])
        return Interrupted(text, self.way_on, runs=runs, result=result, leading=leading, pair=self.pair)


@contextmanager
def told(progress: Progress | Meter, name: str) -> Iterator[Meter]:
    """Provide the meter of a call that draws; a call within another one has the meter of that."""
    if isinstance(progress, Meter):
        yield progress
        return
    meter = Meter(progress, name)
    with _interruptible(meter):
        try:
            try:
                yield meter
            finally:
                meter.close()
            if meter.is_stopped:  # during the last computation
                meter.was_drawing = True
                raise KeyboardInterrupt
        except Interrupted:
            raise
        except KeyboardInterrupt:
            raise meter.interrupted() from None


@contextmanager
def _interruptible(meter: Meter) -> Iterator[None]:
    """Let the first Ctrl-C end the call where it draws, and the second one at once.

    Only Python's own handler is replaced, which raises anywhere: one of the caller's, or that signals are ignored, is
    the caller's decision. Signals are handled in the main thread alone.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        meter.is_stopped = True
        if meter.is_drawing:
            meter.was_drawing = True
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is stop:
            signal.signal(signal.SIGINT, signal.default_int_handler)


_outlet: list[Callable[[str, str], object]] = []  # what announces a long call, instead of a line on standard error


@contextmanager
def announced_by(tell: Callable[[str, str], object]) -> Iterator[None]:
    """Let a function receive how long calls take and what shortens them; by default they then show nothing else."""
    _outlet.append(tell)
    try:
        yield
    finally:
        _outlet.remove(tell)


def _to_log(fact: str, ways: str) -> None:
    to_stderr("\n".join([fact, *([f"  shorter with {ways}"] if ways else []), ""]))


def duration(seconds: float) -> str:
    """Return a duration in the largest unit with two of it, or one second, to two digits or the whole number."""
    units = (("days", 86_400.0, 2), ("hours", 3_600.0, 2), ("minutes", 60.0, 2), ("s", 1.0, 1), ("ms", 1e-3, 0))
    name, number = next((name, seconds / unit) for name, unit, least in units if seconds >= least * unit)
    return f"{number:,.0f} {name}" if number >= 10.0 else f"{number:.2g} {name}"


class _Line:
    """A line that shows a call at most once in so many seconds: again in its place, or in a log once more."""

    def __init__(self, name: str, *, is_asked: bool) -> None:
        self._name, self._last, self._every = name, now(), _OFTEN  # a short call writes no line
        width = self._width = shutil.get_terminal_size().columns - 1
        self._write: Callable[[str], object] = lambda text: to_stderr(f"\r\x1b[K{text[:width]}")
        self.clear: Callable[[], object] = lambda: self._write("")
        stream = getattr(sys, "stderr", None)
        if type(stream).__module__.startswith("ipykernel"):
            self._write, self._width = _notebook_line(), sys.maxsize
        elif getattr(stream, "closed", True) or not stream.isatty():  # type: ignore[union-attr]
            self._write, self.clear = (lambda text: to_stderr(f"{text}\n")), lambda: None
            self._width, self._every = sys.maxsize, _EVERY if is_asked else 60.0 * _EVERY

    def show(self, state: str) -> None:
        if state and now() - self._last >= self._every:
            self._last = now()
            name = self._name[: max(self._width - len(state) - 2, 0)]  # a long one would hide the state
            self._write(f"{name}: {state}")


def to_stderr(text: str) -> None:
    """Write the text to standard error if anybody reads it; a reader who left does not end an audit of hours."""
    if (stream := getattr(sys, "stderr", None)) is None:  # a program without a console
        return
    with suppress(Exception):  # a broken pipe, a closed stream, or what the audited code has put there
        print(end=text, file=stream, flush=True)


def _notebook_line() -> Callable[[str], object]:
    """Return a function that replaces the text below a notebook's cell."""
    from IPython.display import display

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)
