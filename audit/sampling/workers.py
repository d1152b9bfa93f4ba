"""Distribute tasks over the workers that joblib is configured to use: threads, processes or a cluster."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from functools import cache
from multiprocessing.pool import ThreadPool
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import joblib
import numpy as np

from ..clock import now
from ..errors import MechanismError
from ..floating_point_errors import with_own_arithmetic
from .object_identity import drawn_by
from .pickling import Parcel, pack, pack_each
from .tasks import AnyTask, Task

if TYPE_CHECKING:
    from .block_plan import Plan

# Tasks on the dask cluster that joblib is configured to use, as by `joblib.parallel_config("dask")`.
#
# Tasks are sent as futures of `distributed`, because joblib waits for ever for a task whose workers were killed. The
# seed of a block determines its outputs, so a task that runs again after its worker was lost gives the same result.

_LONELY = 60.0  # seconds that a cluster may have no worker, unless its `wait_for_workers_timeout` is longer
_LOOKED_AFTER = 5.0  # seconds without a result after which the workers are counted


def is_dask(backend: Any) -> bool:
    """Whether a joblib backend has a client of a dask cluster."""
    distributed = sys.modules.get("distributed")  # imported by everyone who has a client
    return distributed is not None and isinstance(getattr(backend, "client", None), distributed.Client)


def results_of_cluster(
    backend: Any,
    work: Callable[[Parcel, int, str | None], Parcel],
    parcel: Parcel,
    tasks: Sequence[str],
    name: str,
    limit: float | None,
    *,
    is_replayable: bool,
) -> Iterator[Parcel]:
    """Yield ``work(parcel, number, queue)`` for the number of every task, in order of completion.

    The parcel goes to the cluster once, and then from worker to worker.

    Parameters
    ----------
    backend : joblib.ParallelBackendBase
        With the cluster's `client`.
    tasks : sequence of str
        Descriptions of the tasks.
    name : str
        Name of the mechanism.
    limit : float or None
        Seconds from one result to the next.
    is_replayable : bool
        Whether a task gives the same result when it runs again. If not, `work` puts its number into a queue of the
        scheduler before it draws, and a number that appears twice ends the audit: the outputs of the first run are
        lost, perhaps because of their values.

    Raises
    ------
    MechanismError
        From `work`; if workers die repeatedly over a task, or once over a task that is not replayable; if the scheduler
        is lost; and after a minute without workers.
    TimeoutError
        After `limit`.
    """
    from distributed import Queue
    from distributed.comm import CommClosedError

    client = backend.client
    begun = None if is_replayable else Queue(f"dpaudit-{uuid4().hex}", client=client)
    wait = _Wait(client, name, limit, max(_LONELY, backend.wait_for_workers_timeout or 0.0))
    with warnings.catch_warnings():
        # A large dataset is sent on purpose: workers that join later need it too.
        warnings.filterwarnings("ignore", message="Sending large graph")
        # A task, because scattered data are lost with the workers that hold them.
        shared = client.submit(_same, parcel, pure=False)
    queue = None if begun is None else begun.name
    futures = {client.submit(work, shared, number, queue, pure=False): words for number, words in enumerate(tasks)}
    started: set[int] = set()
    try:
        for future in futures:
            future.add_done_callback(wait.done.put)
        while futures:
            with backend.retrieval_context():  # if the audit is itself a task of the cluster, it frees its slot
                future = wait.next()
                result = _result(wait, future, futures[future], name)
            if begun is not None:
                _refuse_second_starts(begun, started, tasks, name)
            # Otherwise the task would run again if its worker died later.
            del futures[future]
            future.release()
            yield result
    except CommClosedError as error:
        raise _scheduler_lost(next(iter(futures.values()), "nothing"), name) from error
    finally:
        if client.status == "running":
            with suppress(CommClosedError):  # nothing is left to cancel
                client.cancel([shared, *futures])
                if begun is not None:
                    begun.close()


def _result(wait: _Wait, future: Any, words: str, name: str) -> Parcel:
    from distributed import CancelledError, KilledWorker

    try:
        return wait.result(future)
    except KilledWorker as error:
        raise MechanismError(
            f"every worker of the cluster that ran {words} of {name} died: it ran out of memory, or the mechanism "
            "ended it. Use jobs=1 to see the cause.",
            mechanism=name,
        ) from error
    except CancelledError as error:
        raise _scheduler_lost(words, name) from error


def _scheduler_lost(words: str, name: str) -> MechanismError:
    return MechanismError(
        f"the cluster's scheduler was lost while it ran {words} of {name}; start it again, and with store= the audit "
        "resumes where it stopped.",
        mechanism=name,
    )


def _same(parcel: Parcel) -> Parcel:
    return parcel


def say_begun(queue: str | None, number: int) -> None:
    """Tell the scheduler, from a worker, that a task begins; call it before the task draws."""
    if queue is not None:
        from distributed import Queue

        Queue(queue).put(number)


def _refuse_second_starts(begun: Any, started: set[int], tasks: Sequence[str], name: str) -> None:
    for number in begun.get(batch=True):
        if number in started:
            raise MechanismError(
                f"a worker of the cluster was lost after it began {tasks[number]} of {name}, whose noise does not come "
                "from `rng`: a second draw has different noise, and the first may have been lost because of its "
                "outputs. Start the audit again.",
                mechanism=name,
            )
        started.add(number)


class _Wait:
    """Waits for results until the time limit, as long as the cluster has workers."""

    def __init__(self, client: Any, name: str, limit: float | None, lonely: float) -> None:
        self.done = SimpleQueue[Any]()
        self._client, self._name, self._limit, self._lonely = client, name, limit, lonely
        self._last = now()
        self._alone_since: float | None = None

    def next(self) -> Any:
        """Return the next finished future."""
        while True:
            try:
                return self.done.get(timeout=self._patience())
            except Empty:
                self._look()

    def result(self, future: Any) -> Parcel:
        """Return a future's result; if its worker dies before the result is fetched, the task runs again."""
        while True:
            try:
                result: Parcel = future.result(timeout=self._patience())
            except TimeoutError:
                self._look()
            else:
                self._last, self._alone_since = now(), None
                return result

    def _patience(self) -> float:
        if self._limit is None:
            return _LOOKED_AFTER
        return max(min(self._last + self._limit - now(), _LOOKED_AFTER), 0.01)

    def _look(self) -> None:
        """Raise `TimeoutError` after the limit, and a `MechanismError` if no worker is left."""
        moment = now()
        if self._limit is not None and moment - self._last >= self._limit:
            raise TimeoutError
        is_alone = self._client.status != "running" or not self._client.scheduler_info()["workers"]
        self._alone_since = (self._alone_since or moment) if is_alone else None
        if self._alone_since is not None and moment - self._alone_since >= self._lonely:
            raise MechanismError(
                f"the cluster that should run {self._name} has had no worker for {self._lonely:.0f} seconds; start "
                "workers, and with store= the audit resumes where it stopped.",
                mechanism=self._name,
            )


_SHARED = 1 << 15  # bytes from which a parcel lies in shared memory, instead of being sent with every task
_START = 60.0  # seconds for the start of workers, beyond the time limit of the blocks of a task
_WATCH = 1.0  # seconds between checks of the parent process
# The datasets are checked after each task if the plan has at most 2¹⁸ bytes, otherwise after one task in 256.
_OFTEN, _SELDOM = 1 << 18, 256
_FEW = 100  # rows of a dataset that is compared after each task in this process
_SHOWN = 4  # tasks that a message names
# Processes are worth their start from 64 tasks and 3 seconds of work, if each copies a plan of at most 2²⁵ bytes.
_MANY, _LONG, _LARGE = 64, 3.0, 1 << 25


def shares_memory(prefers: Literal["threads", "processes"]) -> bool:
    """Whether workers of joblib's active backend share the objects with this process."""
    backend, _ = joblib.parallel.get_active_backend(prefer=prefers)
    return bool(getattr(backend, "supports_sharedmem", False))


def spread(plan: Plan, tasks: Sequence[AnyTask]) -> Iterator[tuple[AnyTask, Any]]:
    """Yield every task with its result, in order of completion.

    Raise a `MechanismError` from a task, or if a worker dies or a block takes too long, naming the unfinished blocks.
    """
    longest, limit = max((task.blocks for task in tasks), default=1), plan.sampler.block_seconds
    if limit is not None:
        limit = limit * longest + _START
        limit = None if limit > threading.TIMEOUT_MAX else limit
    pending = dict(enumerate(tasks))
    name = plan.sampler.name
    try:
        for number, result in _results(plan, tasks, limit):
            yield pending.pop(number), result
    except BrokenExecutor as error:
        raise MechanismError(
            f"a worker process that ran {name} died ({error}); it may have run out of memory, or the mechanism "
            f"ended it. Unfinished: {_first(pending)}, seed {plan.seed}. Use jobs=1 to see the cause.",
            mechanism=name,
        ) from error
    except (TimeoutError, multiprocessing.TimeoutError) as error:
        if limit is None:  # the audit set no limit, so the connection to the workers timed out
            raise MechanismError(
                f"the workers that ran {name} cannot be reached ({error}). Unfinished: {_first(pending)}, seed "
                f"{plan.seed}.",
                mechanism=name,
            ) from error
        raise MechanismError(
            f"{name} took longer than {plan.sampler.block_seconds:g} seconds for a block, without a moment for other "
            f"threads. Unfinished: {_first(pending)}, seed {plan.seed}; allow more with block_seconds=, or use jobs=1 "
            "to see where it hangs.",
            mechanism=name,
            seconds=plan.sampler.block_seconds,
        ) from error


def _results(plan: Plan, tasks: Sequence[Task], limit: float | None) -> Iterator[tuple[int, Any]]:
    """Yield the number of each task with its result."""
    backend, default = joblib.parallel.get_active_backend(prefer=plan.prefers)  # one thread, or None for all cores
    _, configured = joblib.parallel.get_active_backend(prefer="processes", require=None)
    is_here = shares_memory(plan.prefers)
    jobs = next(each for each in (plan.jobs, configured, default, -1) if each is not None)
    numbered = list(enumerate(tasks))
    if not numbered:
        return
    if jobs == 1 or (plan.is_stateful and not is_here):
        yield from _one_by_one(plan, numbered)
    elif is_dask(backend):
        yield from _on_cluster(plan, tasks, backend, limit)
    elif not is_here:
        yield from _in_processes(plan, numbered, jobs, limit, _packed(plan))
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
        elif isinstance(backend, joblib.parallel.BACKENDS["threading"]):
            yield from _in_threads(shared, numbered, backend.effective_n_jobs(jobs))
        else:
            parallel = _parallel("threads", jobs, limit)
            yield from parallel(joblib.delayed(_done)(shared, *each) for each in numbered)


def _one_by_one(plan: Plan, numbered: Sequence[tuple[int, Task]]) -> Iterator[tuple[int, Any]]:
    """Run tasks in this process.

    Small datasets are looked at after each task: one that is shuffled in place may be as it was in the end.
    """
    is_looked_at = all(map(_is_small, plan.datasets))
    if is_looked_at:
        plan.watch_datasets()
    for each in numbered:
        yield _done(plan, *each)
        if is_looked_at:
            plan.changed.update(plan.changed_here())


def _in_threads(plan: Plan, numbered: Sequence[tuple[int, Task]], jobs: int) -> Iterator[tuple[int, Any]]:
    """Run tasks in threads of this call.

    joblib only looks for results every hundredth of a second, in which a whole batch can be drawn.
    """
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
    plan: Plan, numbered: Sequence[tuple[int, Task]], jobs: int, limit: float | None, parcel: Parcel
) -> Iterator[tuple[int, Any]]:
    owners = [*_owners(plan), *(owner for _, task in numbered for owner in task.owners)]
    parts = pack_each(numbered, owners, plan.sampler.name)
    parallel = _parallel("processes", max(1, min(jobs, len(numbered))) if jobs > 0 else jobs, limit)
    with _with_streams():
        with ctrl_c_waiting():
            results = parallel(joblib.delayed(_in_process)(parcel, part) for part in parts)
        for result in results:
            yield _told(plan, result)


@contextmanager
def _with_streams() -> Iterator[None]:
    """Give a program without standard streams some that drop what is written: starting a worker flushes them."""
    with ExitStack() as stack:
        for name, change in (("stdout", redirect_stdout), ("stderr", redirect_stderr)):
            if getattr(getattr(sys, name), "closed", True):
                stack.enter_context(change(stack.enter_context(open(os.devnull, "w", encoding="utf-8"))))
        yield


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


def _on_cluster(plan: Plan, tasks: Sequence[Task], backend: Any, limit: float | None) -> Iterator[tuple[int, Any]]:
    name, owners = plan.sampler.name, [*_owners(plan), *(each for task in tasks for each in task.owners)]
    parcel = pack((plan.only_to_draw(), tasks, drawn_by()), owners, name, is_far=True)
    words = [task.words for task in tasks]
    for result in results_of_cluster(backend, _in_cluster, parcel, words, name, limit, is_replayable=plan.repeats("x")):
        yield _told(plan, result)


def _parallel(prefer: str, jobs: int, limit: float | None) -> Any:
    backend, _ = joblib.parallel.get_active_backend(prefer=prefer)
    options: dict[str, Any] = {"n_jobs": jobs, "timeout": limit, "max_nbytes": _SHARED}
    if isinstance(backend, joblib.parallel.BACKENDS.get("multiprocessing", ())):
        options["backend"] = "loky"  # multiprocessing waits for ever for a worker that has died
    can_stream = "backend" in options or getattr(backend, "supports_return_generator", False)
    return joblib.Parallel(prefer=prefer, return_as="generator_unordered" if can_stream else "list", **options)


def _owners(plan: Plan) -> list[Any]:
    function = plan.sampler.function
    return [function, *getattr(function, "args", ()), plan.x, plan.y]  # those of a `functools.partial`


def _packed(plan: Plan) -> Parcel:
    """Return the plan for workers as a parcel, the same for all batches: a worker opens it once."""
    if plan.seed not in plan.parcels:
        plan.parcels[plan.seed] = pack(plan.only_to_draw(), _owners(plan), plan.sampler.name)
    return plan.parcels[plan.seed]


def _for_processes(plan: Plan) -> Parcel | None:
    """Return the plan of a long audit as a parcel for processes, if processes may replace threads.

    Threads contend for Python's lock at every call of numpy, and on two cores they are hardly faster than one. None if
    threads were requested, if copies of the mechanism may differ from it (it carries state or does not draw from
    `rng`), or if the plan cannot be sent or is too large to copy.
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
    """Run one task in a worker that has the parcel of all tasks."""
    try:
        plan, tasks, wanted = parcel.open_once()
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
    say_begun(queue, number)
    return _in_worker(parcel, plan, number, tasks[number])


def _in_process(parcel: Parcel, part: Parcel) -> Parcel:
    if multiprocessing.parent_process() is not None and parcel.maker != os.getpid():
        _end_with(parcel.maker)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the waiting process handles Ctrl-C
    return _in_worker(parcel, parcel.open_once(), *part.open())


@cache
def _end_with(maker: int) -> None:
    """End this process within a second of its parent's end.

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
    if os.name == "nt":  # signal 0 is Ctrl-C there
        return True
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        pass
    return True


def _told(plan: Plan, result: Parcel) -> tuple[int, Any]:
    """Return a task's number and result, and note in the plan which datasets it changed."""
    number, value, changed = result.open()
    plan.changed.update(changed)
    return number, value


def _in_worker(parcel: Parcel, plan: Plan, number: int, task: Task) -> Parcel:
    # A module of the mechanism may seed these on import, alike in every worker.
    random.seed()
    np.random.seed()  # noqa: NPY002  # such a mechanism uses the old generator
    is_looked_at = parcel.content.nbytes <= _OFTEN or number % _SELDOM == 0
    if is_looked_at:
        plan.watch_datasets()
    done = _done(plan, number, task)
    return pack((*done, plan.changed_here() if is_looked_at else ()), [], plan.sampler.name)


def _first(pending: dict[int, AnyTask]) -> str:
    """Describe the first unfinished tasks."""
    return " or ".join(task.words for task in list(pending.values())[:_SHOWN]) or "nothing"
