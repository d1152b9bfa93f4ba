"""Spreading tasks over workers: threads, processes or a cluster, whichever joblib is told to use."""

from __future__ import annotations

import multiprocessing
import random
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import joblib
import numpy as np

from .errors import MechanismError
from .shipping import Parcel, pack
from .tasks import Task

if TYPE_CHECKING:
    from .sampling import Plan

_SHOWN = 4  # tasks that a message names


AnyTask = TypeVar("AnyTask", bound=Task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Who does the work.

    Attributes
    ----------
    prefer : {"threads", "processes"}
        Where joblib is told nothing.
    jobs : int or None
        Workers; None takes what `joblib.parallel_config` says, or else every core.
    block_seconds : float or None
        Time that a block may take.
    name : str
        Of the mechanism, for messages.
    owners : sequence
        Objects whose types are the user's own, and may be unknown to a worker process.
    """

    prefer: Literal["threads", "processes"]
    jobs: int | None
    block_seconds: float | None
    name: str
    owners: Sequence[Any]


def shares_memory(prefer: Literal["threads", "processes"]) -> bool:
    """Whether workers of the backend that joblib would take have the objects themselves, and no copies."""
    backend, _ = joblib.parallel.get_active_backend(prefer=prefer)
    return bool(getattr(backend, "supports_sharedmem", False))


def spread(crew: Crew, plan: Plan, tasks: Sequence[AnyTask]) -> Iterator[tuple[AnyTask, Any]]:
    """Every task with its result, as they come, in any order.

    Raises
    ------
    MechanismError
        From a task; and if a worker dies or a block takes too long, with the blocks in hand.
    """
    _, jobs = joblib.parallel.get_active_backend(prefer=crew.prefer)
    if crew.jobs is not None:
        jobs = crew.jobs
    elif jobs is None:  # joblib.parallel_config says nothing
        jobs = -1
    is_here = shares_memory(crew.prefer)
    if plan.is_stateful and not is_here:
        jobs = 1
    longest = max((task.blocks for task in tasks), default=1)
    limit = None if crew.block_seconds is None else crew.block_seconds * longest
    pending = dict(enumerate(tasks))
    try:
        for number, result in _results(crew, plan, tasks, jobs, limit, is_here=is_here):
            yield pending.pop(number), result
    except BrokenExecutor as error:
        raise MechanismError(
            f"a worker process that ran {crew.name} died ({error}); it may have run out of memory, or the mechanism "
            f"ended it. In hand was {_first(pending)}, seed {plan.seed}. Use jobs=1 to see more.",
            mechanism=crew.name,
        ) from error
    except (TimeoutError, multiprocessing.TimeoutError) as error:
        raise MechanismError(
            f"{crew.name} took longer than {crew.block_seconds:g} seconds for a block. In hand was {_first(pending)}, "
            f"seed {plan.seed}; allow more with block_seconds=, or run it with jobs=1 to see where it hangs.",
            mechanism=crew.name,
            seconds=crew.block_seconds,
        ) from error


def _results(
    crew: Crew, plan: Plan, tasks: Sequence[Task], jobs: int, limit: float | None, *, is_here: bool
) -> Iterator[tuple[int, Any]]:
    """Numbers of the tasks with their results."""
    if jobs == 1 and limit is not None:
        yield from _in_a_thread(plan, tasks, limit)
        return
    parallel = joblib.Parallel(n_jobs=jobs, prefer=crew.prefer, return_as="generator_unordered", timeout=limit)
    if jobs == 1 or is_here:
        yield from parallel(joblib.delayed(_done)(plan, *numbered) for numbered in enumerate(tasks))
        return
    parcel = pack(plan, list(crew.owners), crew.name)
    parts = (pack(numbered, [*crew.owners, *numbered[1].owners], crew.name) for numbered in enumerate(tasks))
    for result in parallel(joblib.delayed(_in_worker)(parcel, part, crew.name) for part in parts):
        yield result.open()


def _in_a_thread(plan: Plan, tasks: Sequence[Task], limit: float) -> Iterator[tuple[int, Any]]:
    """One after the other, in a thread that can be left behind."""
    pool = ThreadPool(1)
    try:
        for numbered in enumerate(tasks):
            yield pool.apply_async(_done, (plan, *numbered)).get(limit)
    finally:
        pool.terminate()


def _done(plan: Plan, number: int, task: Task) -> tuple[int, Any]:
    return number, task(plan)


def _in_worker(parcel: Parcel, part: Parcel, name: str) -> Parcel:
    if multiprocessing.parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for this one
    plan, numbered = parcel.open(), part.open()
    # A module of the mechanism's may have seeded these when it was imported, in every worker alike.
    random.seed()
    np.random.seed()  # noqa: NPY002  # the old generator is what such a mechanism uses
    return pack(_done(plan, *numbered), [], name)


def _first(pending: dict[int, AnyTask]) -> str:
    """The tasks that were begun first, and are not finished."""
    return " or ".join(task.words for task in list(pending.values())[:_SHOWN]) or "nothing"
