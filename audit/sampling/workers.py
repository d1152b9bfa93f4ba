"""Distribute tasks over the workers that joblib is configured to use: threads, processes or a cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..clock import now
from ..errors import MechanismError
from ..floating_point_errors import with_own_arithmetic
from .object_identity import drawn_by
from .pickling import Parcel, pack, pack_each
from .tasks import AnyTask, Task

if TYPE_CHECKING:
    from .block_plan import Plan

_JOBLIB = "joblib"
_SHARED = 1 << 15  # bytes from which a parcel lies in shared memory, instead of being sent with every task
_START = 60.0  # seconds for the start of workers, beyond the time limit of the blocks of a task
_WATCH = 1.0  # seconds between checks of the parent process
# The datasets are checked after each task if the plan has at most 2¹⁸ bytes, otherwise after one task in 256.
_OFTEN, _SELDOM = 1 << 18, 256
_FEW = 100  # rows of a dataset that is compared after each task in this process (docs/decisions/0025-limits.md)
_SHOWN = 4  # tasks that a message names
# Processes are worth their start from 64 tasks and 3 seconds of work, if each copies a plan of at most 2²⁵ bytes.
_MANY, _LONG, _LARGE = 64, 3.0, 1 << 25


def shares_memory(prefers: Literal["threads", "processes"]) -> bool:
    """Whether workers of joblib's active backend share the objects with this process."""
    if _JOBLIB not in sys.modules:  # which takes as long to import as an audit, and whose default is then active
        return prefers == "threads"
    import joblib

    backend, _ = joblib.parallel.get_active_backend(prefer=prefers)
    return bool(getattr(backend, "supports_sharedmem", False))


def spread(plan: Plan, tasks: Sequence[AnyTask]) -> Iterator[tuple[AnyTask, Any]]:
    """Yield every task with its result, in order of completion; a `MechanismError` names the unfinished blocks."""
    longest, limit = max((task.blocks for task in tasks), default=1), plan.sampler.chunk_seconds
    if limit is not None:
        limit = limit * longest + _START
        limit = None if limit > threading.TIMEOUT_MAX else limit
    pending = dict(enumerate(tasks))
    name = plan.sampler.name
    try:
        with plan.sampler.watched.drawing():
            for number, result in _results(plan, tasks, limit):
                yield pending.pop(number), result
    except (BrokenExecutor, CancelledError, TimeoutError, multiprocessing.TimeoutError) as error:
        tasks_left = " or ".join(task.words for task in list(pending.values())[:_SHOWN]) or "nothing"
        unfinished = f"Unfinished: {tasks_left}, seed {plan.seed}"
        facts: dict[str, Any] = {"mechanism": name}
        if isinstance(error, BrokenExecutor):
            reason = (
                f"a worker process that ran {name} died ({error}); it may have run out of memory, or the mechanism "
                f"ended it. {unfinished}. Use jobs=1 to see the cause."
            )
        elif limit is None or isinstance(error, CancelledError):  # not the audit's limit: the connection was lost
            reason = f"the workers that ran {name} cannot be reached ({error}). {unfinished}."
        else:
            facts["seconds"] = plan.sampler.chunk_seconds
            reason = (
                f"{name} took longer than {plan.sampler.chunk_seconds:g} seconds for a chunk, without a moment for "
                f"other threads, or a cluster lost the workers that ran it. {unfinished}; allow more with "
                "chunk_seconds=, or use jobs=1 to see where it hangs."
            )
        raise MechanismError(reason, **facts) from error


def workers_of(plan: Plan) -> int:
    """Return the number of workers that long work is spread over; a mechanism that carries state has one process."""
    if _is_alone(plan):
        return 1
    import joblib

    jobs = _jobs(plan)
    is_one = jobs == 1 or (plan.is_stateful and not shares_memory(plan.prefers))
    return 1 if is_one else int(joblib.parallel.get_active_backend(prefer=plan.prefers)[0].effective_n_jobs(jobs))


def _is_alone(plan: Plan) -> bool:
    """Whether this process draws everything, and joblib need not be imported to know it."""
    return _JOBLIB not in sys.modules and plan.jobs in ((None, 1) if plan.prefers == "threads" else (1,))


def _jobs(plan: Plan) -> int:
    """Return the number of workers as joblib takes it, of the plan or else of joblib's configuration."""
    import joblib

    _, default = joblib.parallel.get_active_backend(prefer=plan.prefers)  # one thread, or None for all cores
    _, configured = joblib.parallel.get_active_backend(prefer="processes", require=None)
    return next(each for each in (plan.jobs, configured, default, -1) if each is not None)


def _results(plan: Plan, tasks: Sequence[Task], limit: float | None) -> Iterator[tuple[int, Any]]:
    if _is_alone(plan):
        yield from _one_by_one(plan, list(enumerate(tasks)))
        return
    import joblib

    backend, _ = joblib.parallel.get_active_backend(prefer=plan.prefers)
    is_here, jobs = shares_memory(plan.prefers), _jobs(plan)
    numbered = list(enumerate(tasks))
    if not numbered:
        return
    is_far = not (is_here or isinstance(backend, _backends("loky", "multiprocessing")))  # as dask's
    # A cluster draws the blocks of a lost worker again: with other noise, it would replace outputs that were unwelcome.
    if jobs == 1 or (plan.is_stateful and not is_here) or (is_far and not plan.repeats("x")):
        yield from _one_by_one(plan, numbered)
    elif not is_here:
        yield from _in_processes(plan, numbered, jobs, limit, _packed(plan, is_far=is_far), is_far=is_far)
    else:
        parcel = None
        if len(tasks) >= _MANY:
            started = now()
            first = next(_one_by_one(plan, numbered[:1]))
            is_long = (now() - started) * len(tasks) > _LONG
            yield first
            del numbered[0]
            parcel = _for_processes(plan) if is_long else None
        shared = replace(plan, sampler=replace(plan.sampler, latest={}))
        if parcel is not None:
            yield from _in_processes(plan, numbered, jobs, limit, parcel)
        elif isinstance(backend, _backends("threading")):
            yield from _in_threads(shared, numbered, backend.effective_n_jobs(jobs))
        else:
            parallel = _parallel("threads", jobs, limit)
            yield from parallel(joblib.delayed(_done)(shared, *each) for each in numbered)


def _one_by_one(plan: Plan, numbered: Sequence[tuple[int, Task]]) -> Iterator[tuple[int, Any]]:
    """Run tasks in this process; small datasets are watched, as one shuffled in place may be as it was in the end."""
    is_looked_at = all(map(_is_small, plan.datasets))
    if is_looked_at:
        plan.watch_datasets()
    for each in numbered:
        yield _done(plan, *each)
        if is_looked_at:
            plan.changed.update(plan.changed_here())


def _in_threads(plan: Plan, numbered: Sequence[tuple[int, Task]], jobs: int) -> Iterator[tuple[int, Any]]:
    """Run tasks in threads of this call: joblib looks for results every 10 ms, in which a batch can be drawn."""
    from multiprocessing.pool import ThreadPool

    with ThreadPool(min(jobs, len(numbered))) as pool:
        yield from pool.imap_unordered(lambda each: _done(plan, *each), numbered)


def _is_small(dataset: Any) -> bool:
    """Whether the contents of a dataset are quickly compared."""
    size = getattr(dataset, "nbytes", None)
    if isinstance(size, int):
        return size <= _OFTEN
    try:
        return len(dataset) <= _FEW
    except Exception:  # no collection, or one whose length fails
        return True


def _in_processes(
    plan: Plan,
    numbered: Sequence[tuple[int, Task]],
    jobs: int,
    limit: float | None,
    parcel: Parcel,
    *,
    is_far: bool = False,
) -> Iterator[tuple[int, Any]]:
    owners = [*_owners(plan), *(owner for _, task in numbered for owner in task.owners)]
    parts = pack_each(numbered, owners, plan.sampler.name, is_far=is_far)
    work = partial(_in_cluster, drawn_by()) if is_far else _in_process
    parallel = _parallel("processes", max(1, min(jobs, len(numbered))) if jobs > 0 else jobs, limit)
    with _with_streams():
        _without_shutdown_errors()
        results: Any = ()
        try:
            import joblib

            with ctrl_c_waiting():
                results = parallel(joblib.delayed(work)(parcel, part) for part in parts)
            for result in results:
                number, value, changed = result.open()
                plan.changed.update(changed)
                yield number, value
        finally:
            if isinstance(results, Generator):
                with _ended_in_silence():
                    results.close()


@contextmanager
def _with_streams() -> Iterator[None]:
    """Give a program without standard streams some that drop what is written: starting a worker flushes them."""
    with ExitStack() as stack:
        for name, change in (("stdout", redirect_stdout), ("stderr", redirect_stderr)):
            if getattr(getattr(sys, name, None), "closed", True):
                stack.enter_context(change(stack.enter_context(open(os.devnull, "w", encoding="utf-8"))))
        yield


@contextmanager
def _ended_in_silence() -> Iterator[None]:
    """Print nothing of joblib's about tasks that nobody waits for, nor what its thread raises as it hands them out."""
    former = threading.excepthook

    def hook(raised: threading.ExceptHookArgs) -> None:
        if type(raised.thread).__name__ != "_ExecutorManagerThread":
            former(raised)

    threading.excepthook = hook
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            yield
    finally:
        threading.excepthook = former


@cache
def _without_shutdown_errors() -> None:
    """Let joblib log no traceback if Ctrl-C ends its workers while it hands them tasks."""
    logger = logging.getLogger("concurrent.futures")
    logger.addFilter(lambda record: "ShutdownExecutorError" not in str(record.exc_info and record.exc_info[0]))


@contextmanager
def ctrl_c_waiting() -> Iterator[None]:
    """Keep Ctrl-C from the processes that are started in the block; this process receives it after the block.

    A worker that is interrupted while it imports its modules would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # starting it later would let Ctrl-C through to the processes that are started after it
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _backends(*names: str) -> tuple[Any, ...]:
    import joblib

    return tuple(joblib.parallel.BACKENDS[name] for name in names if name in joblib.parallel.BACKENDS)


def _parallel(prefer: str, jobs: int, limit: float | None) -> Any:
    import joblib

    backend, _ = joblib.parallel.get_active_backend(prefer=prefer)
    options: dict[str, Any] = {"n_jobs": jobs, "timeout": limit, "max_nbytes": _SHARED}
    if isinstance(backend, _backends("multiprocessing")):
        options["backend"] = "loky"  # multiprocessing waits for ever for a worker that has died
    can_stream = "backend" in options or getattr(backend, "supports_return_generator", False)
    return joblib.Parallel(prefer=prefer, return_as="generator_unordered" if can_stream else "list", **options)


def _owners(plan: Plan) -> list[Any]:
    function = plan.sampler.function
    return [function, *getattr(function, "args", ()), plan.x, plan.y]  # those of a `functools.partial`


def _packed(plan: Plan, *, is_far: bool = False) -> Parcel:
    """Return the plan for workers as a parcel, the same for all batches: a worker opens it once."""
    if plan.seed not in plan.parcels:
        plan.parcels[plan.seed] = pack(plan.only_to_draw(), _owners(plan), plan.sampler.name, is_far=is_far)
    return plan.parcels[plan.seed]


def _for_processes(plan: Plan) -> Parcel | None:
    """Return the plan of a long audit as a parcel for processes, if processes may replace threads.

    Threads contend for Python's lock at every call of numpy, and on two cores they are barely faster than one. None if
    copies of the mechanism may differ from it: it carries state, or does not draw from `rng`.
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


def _in_cluster(wanted: tuple[tuple[str, str], ...], parcel: Parcel, part: Parcel) -> Parcel:
    """Run one task in a worker that may be on another machine."""
    try:
        plan, (number, task) = parcel.open_once(), part.open()
    except Exception as error:  # a missing module, or another version of one
        raise MechanismError(
            f"a worker of the cluster cannot open the audit ({type(error).__name__}: {error}); install the same "
            "packages there."
        ) from error
    if drawn_by() != wanted:
        raise MechanismError(
            f"a worker of the cluster has other versions, which may draw other noise from the same seed: {drawn_by()} "
            f"there, {wanted} here; install the same versions there."
        )
    return _in_worker(parcel, plan, number, task)


def _in_process(parcel: Parcel, part: Parcel) -> Parcel:
    if multiprocessing.parent_process() is not None and parcel.maker != os.getpid():
        _end_with(parcel.maker)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the waiting process handles Ctrl-C
    return _in_worker(parcel, parcel.open_once(), *part.open())


@cache
def _end_with(maker: int) -> None:
    """End this process within a second of its parent's end, or at once if the process that it works for has ended."""
    parent = os.getppid()
    if parent != maker and not _is_alive(maker):
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="dpaudit: ends with its parent").start()


def _is_alive(number: int) -> bool:
    if os.name == "nt":  # signal 0 is Ctrl-C there
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        pass
    return True


def _in_worker(parcel: Parcel, plan: Plan, number: int, task: Task) -> Parcel:
    # A module of the mechanism may seed these on import, alike in every worker.
    random.seed()
    np.random.seed()  # noqa: NPY002  # such a mechanism uses the old generator
    is_looked_at = parcel.content.nbytes <= _OFTEN or number % _SELDOM == 0
    if is_looked_at:
        plan.watch_datasets()
    done = _done(plan, number, task)
    return pack((*done, plan.changed_here() if is_looked_at else ()), [], plan.sampler.name)
