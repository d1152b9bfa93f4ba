"""Targets in worker processes: one that does not answer is ended with its process, and the others go on.

A callable that hangs in compiled code cannot be interrupted in its own process. Each worker has a pool of one process,
so that ending it touches no other target.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeAlias

from joblib import cpu_count
from joblib.externals.loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError

from ...audit.sampling.pickling import Parcel
from ...audit.sampling.workers import ctrl_c_waiting

Call: TypeAlias = Callable[[Parcel, str], Any]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class _Lane:
    """A worker process with the target that it has now; the process is started when a target needs it."""

    def __init__(self, call: Call, prepare: Callable[[Parcel], None], parcel: Parcel, threads: int | None) -> None:
        self.call, self.prepare, self.parcel = call, prepare, parcel
        self.env = None if threads is None else dict.fromkeys(_THREADS, str(threads))
        self.pool: ProcessPoolExecutor | None = None
        self.name = ""
        self.answer: Future[Any] | None = None
        self.begun = 0.0

    def give(self, name: str) -> None:
        """Begin a target, in a new process if there is none or it died after its last target.

        The preparation of a new process is not part of the time of the target.
        """
        try:
            self._submit(name)
        except TerminatedWorkerError:
            self.end()
            self._submit(name)

    def _submit(self, name: str) -> None:
        if self.pool is None:
            with ctrl_c_waiting():
                self.pool = ProcessPoolExecutor(max_workers=1, env=self.env)
                self.ready: Future[Any] = self.pool.submit(self.prepare, self.parcel)
            self.ready.add_done_callback(self._begin)
        self._begin()
        self.name, self.answer = name, self.pool.submit(self.call, self.parcel, name)

    def _begin(self, _: object = None) -> None:
        self.begun = time.monotonic()

    def left(self, limit: float) -> float:
        """Return the seconds until the target must have answered; all of them while the process is prepared."""
        return limit - (time.monotonic() - self.begun) if self.ready.done() else limit

    def take(self, limit: float) -> tuple[str, Any] | None:
        """Return the target with its answer, or why there is none; None if it may still answer.

        Raises
        ------
        Exception
            If the preparation or the call raised.
        """
        if self.answer is None or not (self.answer.done() or self.left(limit) <= 0):
            return None
        answer, self.answer = self.answer, None
        if not answer.done():
            self.end()
            return self.name, f"it did not answer within its deadline of {limit:g} s, and its process was ended"
        try:
            self.ready.result()
            return self.name, answer.result()
        except TerminatedWorkerError:
            self.end()
            return self.name, "its process died, by a crash in compiled code or for want of memory"

    def end(self) -> None:
        """End the process."""
        if self.pool is not None:
            self.pool.shutdown(wait=True, kill_workers=True)
            self.pool = None


def answers(
    call: Call,
    prepare: Callable[[Parcel], None],
    parcel: Parcel,
    names: Sequence[str],
    *,
    workers: int,
    limit: float,
    is_over: Callable[[], bool],
) -> Iterator[tuple[str, Any]]:
    """Yield the name of each target with its answer, or with a text that says why there is none.

    Parameters
    ----------
    call, prepare : callable
        Module-level functions: the target by its name, and what a process does before its first target.
    parcel : Parcel
        First argument of both.
    names : sequence of str
        Targets, in the order in which they begin.
    workers : int
        Processes.
    limit : float
        Seconds for each target.
    is_over : callable
        Whether no further target may begin.
    """
    waiting = deque(names)
    threads = max(cpu_count() // workers, 1) if workers > 1 else None
    lanes = [_Lane(call, prepare, parcel, threads) for _ in range(min(workers, len(names)))]
    try:
        while True:
            for lane in lanes:
                if lane.answer is None and waiting and not is_over():
                    lane.give(waiting.popleft())
            busy = [lane for lane in lanes if lane.answer is not None]
            if not busy:
                return
            patience = max(min(lane.left(limit) for lane in busy), 0.0)
            wait([lane.answer for lane in busy if lane.answer is not None], patience, FIRST_COMPLETED)
            yield from filter(None, [lane.take(limit) for lane in busy])
    finally:
        for lane in lanes:
            lane.end()
