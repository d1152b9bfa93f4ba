"""Tasks on the dask cluster that joblib is configured to use, as by `joblib.parallel_config("dask")`.

Tasks are sent as futures of `distributed`, because joblib waits for ever for a task whose workers were killed. The seed
of a block determines its outputs, so a task that runs again after its worker was lost gives the same result.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from ..clock import now
from ..errors import MechanismError
from .pickling import Parcel

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
