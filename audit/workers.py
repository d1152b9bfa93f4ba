"""Spreading tasks over workers: threads, processes or a cluster, whichever joblib is told to use."""

from __future__ import annotations

import multiprocessing
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any, Literal

import joblib
import numpy as np

from .cluster import results_of_cluster, say_begun
from .errors import MechanismError
from .marks import fingerprint
from .provenance import versions
from .shipping import Parcel, pack
from .tasks import AnyTask, Task

if TYPE_CHECKING:
    from .sampling import Plan

_SHOWN = 4  # tasks that a message names
_PROBED = 32  # runs that are drawn twice
# From so many tasks and seconds of work processes are worth their start; bytes of a plan of which each has a copy.
_MANY, _LONG, _LARGE = 64, 3.0, 1 << 25


def shares_memory(prefers: Literal["threads", "processes"]) -> bool:
    """Whether workers of the backend that joblib would take have the objects themselves, and no copies."""
    backend, _ = joblib.parallel.get_active_backend(prefer=prefers)
    return bool(getattr(backend, "supports_sharedmem", False))


def spread(plan: Plan, tasks: Sequence[AnyTask]) -> Iterator[tuple[AnyTask, Any]]:
    """Every task with its result, as they come, in any order.

    Raises
    ------
    MechanismError
        From a task; and if a worker dies or a block takes too long, with the blocks in hand.
    """
    longest = max((task.blocks for task in tasks), default=1)
    limit = None if plan.block_seconds is None else plan.block_seconds * longest
    pending = dict(enumerate(tasks))
    name = plan.sampler.name
    try:
        for number, result in _results(plan, tasks, limit):
            yield pending.pop(number), result
    except BrokenExecutor as error:
        raise MechanismError(
            f"a worker process that ran {name} died ({error}); it may have run out of memory, or the mechanism "
            f"ended it. In hand was {_first(pending)}, seed {plan.seed}. Use jobs=1 to see more.",
            mechanism=name,
        ) from error
    except (TimeoutError, multiprocessing.TimeoutError) as error:
        if limit is None:  # nobody here has set one: what a worker was sent from or to is out of reach
            raise MechanismError(
                f"the workers that ran {name} cannot be reached ({error}). In hand was {_first(pending)}, seed "
                f"{plan.seed}.",
                mechanism=name,
            ) from error
        raise MechanismError(
            f"{name} took longer than {plan.block_seconds:g} seconds for a block. In hand was {_first(pending)}, "
            f"seed {plan.seed}; allow more with block_seconds=, or run it with jobs=1 to see where it hangs.",
            mechanism=name,
            seconds=plan.block_seconds,
        ) from error


def _results(plan: Plan, tasks: Sequence[Task], limit: float | None) -> Iterator[tuple[int, Any]]:
    """Numbers of the tasks with their results."""
    backend, configured = joblib.parallel.get_active_backend(prefer=plan.prefers)
    is_here = shares_memory(plan.prefers)
    # Where joblib.parallel_config says nothing, on every core; and what carries state from run to run in one place.
    jobs = next(each for each in (plan.jobs, configured, -1) if each is not None)
    if jobs == 1 or (plan.is_stateful and not is_here):
        yield from (_done(plan, *each) for each in enumerate(tasks)) if limit is None else _timed(plan, tasks, limit)
        return
    name, owners = plan.sampler.name, [plan.sampler.function, plan.x, plan.y]
    if type(backend).__name__ == "DaskDistributedBackend":  # a private class of joblib's, there only with dask
        owners += [each for task in tasks for each in task.owners]
        parcel = pack((plan, tasks, versions()), owners, name, is_far=True)
        words = [task.words for task in tasks]
        for result in results_of_cluster(
            backend, _on_cluster, parcel, words, name, limit, is_replayable=_is_replayable(plan)
        ):
            yield result.open()
        return
    numbered = list(enumerate(tasks))
    sent: Parcel | None = None
    if not is_here:
        sent = pack(plan, owners, name)
    elif len(tasks) >= _MANY:
        started = time.perf_counter()
        yield next(_timed(plan, tasks, limit)) if limit is not None else _done(plan, *numbered[0])
        del numbered[0]
        if (time.perf_counter() - started) * len(tasks) > _LONG:
            sent = _for_processes(plan, owners)
    options = {"n_jobs": jobs, "return_as": "generator_unordered", "timeout": limit}
    if sent is None:
        parallel = joblib.Parallel(prefer="threads", **options)
        yield from parallel(joblib.delayed(_done)(plan, *each) for each in numbered)
        return
    parallel = joblib.Parallel(prefer="processes", **options)
    parts = (pack(each, [*owners, *each[1].owners], name) for each in numbered)
    for result in parallel(joblib.delayed(_in_process)(sent, part) for part in parts):
        yield result.open()


def _for_processes(plan: Plan, owners: list[Any]) -> Parcel | None:
    """The plan of a long audit for worker processes, where threads would do but nobody has asked for them.

    Threads take turns at every call of numpy's, and on two cores draw hardly faster than one. None where a mechanism
    carries state, cannot be sent, or is so large that copies of it may be too much.
    """
    if plan.is_stateful or shares_memory("processes"):
        return None
    try:
        parcel = pack(plan, owners, plan.sampler.name)
    except MechanismError:
        return None
    return parcel if len(parcel.content) <= _LARGE else None


def _timed(plan: Plan, tasks: Sequence[Task], limit: float) -> Iterator[tuple[int, Any]]:
    """One after the other, in a thread that can be left behind."""
    pool = ThreadPool(1)
    try:
        for numbered in enumerate(tasks):
            yield pool.apply_async(_done, (plan, *numbered)).get(limit)
    finally:
        pool.terminate()


def _done(plan: Plan, number: int, task: Task) -> tuple[int, Any]:
    return number, task(plan)


def _on_cluster(parcel: Parcel, number: int, queue: str | None) -> Parcel:
    """The work of one task in a worker that has the parcel of all."""
    try:
        plan, tasks, wanted = parcel.open()
    except Exception as error:  # a module that is not there, or another version of one
        raise MechanismError(
            f"a worker of the cluster cannot open what it was sent ({type(error).__name__}: {error}); install the same "
            "packages there."
        ) from error
    if versions() != wanted:
        raise MechanismError(
            f"a worker of the cluster has other versions, and so perhaps other noise from the same seed: {versions()} "
            f"there, {wanted} here."
        )
    say_begun(queue, number)
    return _in_worker(plan, number, tasks[number])


def _is_replayable(plan: Plan) -> bool:
    """Whether the noise comes from `rng`: a few runs are drawn twice."""
    first, second = (plan.draw("pilot", "x", 0, _PROBED) for _ in range(2))
    return fingerprint(first) == fingerprint(second)


def _in_process(parcel: Parcel, part: Parcel) -> Parcel:
    if multiprocessing.parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for this one
    return _in_worker(parcel.open(), *part.open())


def _in_worker(plan: Plan, number: int, task: Task) -> Parcel:
    # A module of the mechanism's may have seeded these when it was imported, in every worker alike.
    random.seed()
    np.random.seed()  # noqa: NPY002  # the old generator is what such a mechanism uses
    return pack(_done(plan, number, task), [], plan.sampler.name)


def _first(pending: dict[int, AnyTask]) -> str:
    """The tasks that were begun first, and are not finished."""
    return " or ".join(task.words for task in list(pending.values())[:_SHOWN]) or "nothing"
