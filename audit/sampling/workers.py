"""Spreading tasks over workers: threads, processes or a cluster, whichever joblib is told to use."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from functools import cache
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any, Literal

import joblib
import numpy as np

from ..errors import MechanismError
from ..floating_point_errors import with_own_arithmetic
from .dask_cluster import results_of_cluster, say_begun
from .pickling import Parcel, pack, pack_each
from .provenance import drawn_by
from .tasks import AnyTask, Task

if TYPE_CHECKING:
    from .block_plan import Plan

_SHARED = 1 << 15  # bytes of a parcel from which workers read it where it lies, instead of with every task
_WATCH = 1.0  # seconds from look to look at the parent process
# Bytes of a plan after each of whose tasks the datasets are looked at, and of how many tasks it is one otherwise.
_OFTEN, _SELDOM = 1 << 18, 256
_SHOWN = 4  # tasks that a message names
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
    numbered = list(enumerate(tasks))
    if jobs == 1 or (plan.is_stateful and not is_here):
        yield from _one_by_one(plan, numbered, limit)
    elif type(backend).__name__ == "DaskDistributedBackend":  # a private class of joblib's, there only with dask
        yield from _on_cluster(plan, tasks, backend, limit)
    elif not is_here:
        yield from _in_processes(plan, numbered, jobs, limit, _packed(plan))
    else:
        parcel = None
        if len(tasks) >= _MANY:
            started = time.perf_counter()
            first = next(_one_by_one(plan, numbered[:1], limit))
            is_long = (time.perf_counter() - started) * len(tasks) > _LONG
            yield first
            del numbered[0]
            parcel = _for_processes(plan) if is_long else None
        if parcel is None:
            parallel = _parallel("threads", jobs, limit)
            yield from parallel(joblib.delayed(_done)(plan, *each) for each in numbered)
        else:
            yield from _in_processes(plan, numbered, jobs, limit, parcel)


def _one_by_one(plan: Plan, numbered: Sequence[tuple[int, Task]], limit: float | None) -> Iterator[tuple[int, Any]]:
    """In this process; with a limit, in a thread that can be left behind."""
    if limit is None:
        yield from (_done(plan, *each) for each in numbered)
        return
    pool = ThreadPool(1)
    try:
        for each in numbered:
            yield pool.apply_async(_done, (plan, *each)).get(limit)
    finally:
        pool.terminate()


def _in_processes(
    plan: Plan, numbered: Sequence[tuple[int, Task]], jobs: int, limit: float | None, parcel: Parcel
) -> Iterator[tuple[int, Any]]:
    owners = [*_owners(plan), *(owner for _, task in numbered for owner in task.owners)]
    parts = pack_each(numbered, owners, plan.sampler.name)
    for result in _parallel("processes", jobs, limit)(joblib.delayed(_in_process)(parcel, part) for part in parts):
        yield _told(plan, result)


def _on_cluster(plan: Plan, tasks: Sequence[Task], backend: Any, limit: float | None) -> Iterator[tuple[int, Any]]:
    name, owners = plan.sampler.name, [*_owners(plan), *(each for task in tasks for each in task.owners)]
    parcel = pack((plan.only_to_draw(), tasks, drawn_by()), owners, name, is_far=True)
    words = [task.words for task in tasks]
    for result in results_of_cluster(backend, _in_cluster, parcel, words, name, limit, is_replayable=plan.repeats("x")):
        yield _told(plan, result)


def _parallel(prefer: str, jobs: int, limit: float | None) -> Any:
    backend, _ = joblib.parallel.get_active_backend(prefer=prefer)
    options: dict[str, Any] = {"n_jobs": jobs, "timeout": limit, "max_nbytes": _SHARED}
    if type(backend).__name__ == "MultiprocessingBackend":  # it waits for ever for a worker that has died
        options["backend"] = "loky"
    can_stream = "backend" in options or getattr(backend, "supports_return_generator", False)
    return joblib.Parallel(prefer=prefer, return_as="generator_unordered" if can_stream else "list", **options)


def _owners(plan: Plan) -> list[Any]:
    return [plan.sampler.function, plan.x, plan.y]


def _packed(plan: Plan) -> Parcel:
    """What a worker draws with, the same for all batches of an audit: a worker opens it once."""
    if plan.seed not in plan.parcels:
        plan.parcels[plan.seed] = pack(plan.only_to_draw(), _owners(plan), plan.sampler.name)
    return plan.parcels[plan.seed]


def _for_processes(plan: Plan) -> Parcel | None:
    """The plan of a long audit for worker processes, where threads would do but nobody has asked for them.

    Threads take turns at every call of numpy's, and on two cores draw hardly faster than one. None where copies of a
    mechanism may differ from it, as it carries state or draws from elsewhere than `rng`, where it cannot be sent, or is
    so large that copies of it may be too much.
    """
    if shares_memory("processes") or plan.is_stateful:
        return None
    try:
        if not plan.repeats("x"):
            return None
        parcel = _packed(plan)
    except MechanismError:
        return None
    return parcel if len(parcel.content) <= _LARGE else None


@with_own_arithmetic
def _done(plan: Plan, number: int, task: Task) -> tuple[int, Any]:
    return number, task(plan)


def _in_cluster(parcel: Parcel, number: int, queue: str | None) -> Parcel:
    """The work of one task in a worker that has the parcel of all."""
    try:
        plan, tasks, wanted = parcel.open_once()
    except Exception as error:  # a module that is not there, or another version of one
        raise MechanismError(
            f"a worker of the cluster cannot open what it was sent ({type(error).__name__}: {error}); install the same "
            "packages there."
        ) from error
    if drawn_by() != wanted:
        raise MechanismError(
            f"a worker of the cluster has other versions, and so perhaps other noise from the same seed: {drawn_by()} "
            f"there, {wanted} here."
        )
    say_begun(queue, number)
    return _in_worker(parcel, plan, number, tasks[number])


def _in_process(parcel: Parcel, part: Parcel) -> Parcel:
    if multiprocessing.parent_process() is not None and parcel.maker != os.getpid():
        _end_with(parcel.maker)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for this one
    return _in_worker(parcel, parcel.open_once(), *part.open())


@cache
def _end_with(maker: int) -> None:
    """From now on this process ends within a second of the one that started it, however that one ends.

    `maker` is the number of the process that it works for, which may have ended already.
    """
    parent = os.getppid()
    if parent != maker and not _is_alive(maker):
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="dpaudit: ends with its parent").start()


def _is_alive(number: int) -> bool:
    if os.name == "nt":  # where signal 0 is Ctrl-C
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def _told(plan: Plan, result: Parcel) -> tuple[int, Any]:
    """A task's number and result; what it says of the datasets is noted."""
    number, value, changed = result.open()
    plan.changed.update(changed)
    return number, value


def _in_worker(parcel: Parcel, plan: Plan, number: int, task: Task) -> Parcel:
    # A module of the mechanism's may have seeded these when it was imported, in every worker alike.
    random.seed()
    np.random.seed()  # noqa: NPY002  # the old generator is what such a mechanism uses
    is_looked_at = parcel.content.nbytes <= _OFTEN or number % _SELDOM == 0
    if is_looked_at:
        plan.watch_datasets()
    done = _done(plan, number, task)
    return pack((*done, plan.changed_here() if is_looked_at else ()), [], plan.sampler.name)


def _first(pending: dict[int, AnyTask]) -> str:
    """The tasks that were begun first, and are not finished."""
    return " or ".join(task.words for task in list(pending.values())[:_SHOWN]) or "nothing"
