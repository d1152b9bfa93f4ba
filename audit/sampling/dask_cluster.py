"""Tasks on a dask cluster: the one that joblib is told of, `joblib.parallel_config("dask")`.

They are sent as futures of `distributed`, as joblib waits for ever for a task whose workers were killed. What a worker
draws follows from a block's seed alone, so a task that is run again after its worker was lost gives the same.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from ..errors import MechanismError
from .pickling import Parcel

_LONELY = 60.0  # seconds that a cluster may be without a worker, if its `wait_for_workers_timeout` is not longer
_LOOKED_AFTER = 5.0  # seconds without a result after which its workers are counted


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
    """What ``work(parcel, number, queue)`` gives for the number of every task, as they come.

    The parcel goes to the cluster once, and from worker to worker; a task is a number, and a result is what `work`
    returns.

    Parameters
    ----------
    backend : joblib.ParallelBackendBase
        With the cluster's `client`.
    tasks : sequence of str
        What each draws, in words.
    name : str
        Of the mechanism.
    limit : float or None
        Seconds from one result to the next.
    is_replayable : bool
        Whether a task that is run again gives the same. Otherwise `work` puts its number into a queue of the
        scheduler's before it draws, and a number that comes twice ends the audit: what the first run drew is lost, and
        perhaps because of what it was.

    Raises
    ------
    MechanismError
        From `work`; if workers die again and again over a task, or once over one that cannot be replayed; if the
        scheduler is lost; and after a minute without any worker.
    TimeoutError
        After `limit`.
    """
    from distributed import Queue
    from distributed.comm import CommClosedError

    client = backend.client
    begun = None if is_replayable else Queue(f"dpaudit-{uuid4().hex}", client=client)
    wait = _Wait(client, name, limit, max(_LONELY, backend.wait_for_workers_timeout or 0.0))
    with warnings.catch_warnings():
        # A large dataset is no mistake: workers that come later need it too.
        warnings.filterwarnings("ignore", message="Sending large graph")
        # A task, not scattered data: those are lost with the workers that hold them.
        shared = client.submit(_same, parcel, pure=False)
    queue = None if begun is None else begun.name
    futures = {client.submit(work, shared, number, queue, pure=False): words for number, words in enumerate(tasks)}
    started: set[int] = set()
    try:
        for future in futures:
            future.add_done_callback(wait.done.put)
        while futures:
            with backend.retrieval_context():  # in a task of the cluster: its place is free while this one waits
                future = wait.next()
                result = _result(wait, future, futures[future], name)
            if begun is not None:
                _refuse_second_starts(begun, started, tasks, name)
            # Let go of, or it would be run again if its worker died later.
            del futures[future]
            future.release()
            yield result
    except CommClosedError as error:
        raise _scheduler_lost(next(iter(futures.values()), "nothing"), name) from error
    finally:
        if client.status == "running":
            with suppress(CommClosedError):  # then there is nothing left to cancel
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
            "ended it. Use jobs=1 to see more.",
            mechanism=name,
        ) from error
    except CancelledError as error:
        raise _scheduler_lost(words, name) from error


def _scheduler_lost(words: str, name: str) -> MechanismError:
    return MechanismError(
        f"the cluster's scheduler was lost while it ran {words} of {name}; start it again, and with store= the audit "
        "goes on where it was.",
        mechanism=name,
    )


def _same(parcel: Parcel) -> Parcel:
    return parcel


def say_begun(queue: str | None, number: int) -> None:
    """In a worker: the scheduler knows that a task is begun, before it draws anything."""
    if queue is not None:
        from distributed import Queue

        Queue(queue).put(number)


def _refuse_second_starts(begun: Any, started: set[int], tasks: Sequence[str], name: str) -> None:
    for number in begun.get(batch=True):
        if number in started:
            raise MechanismError(
                f"a worker of the cluster was lost that had drawn {tasks[number]} of {name}, whose noise does not come "
                "from `rng`: drawn again it is other noise, and what is lost may have been lost because of what it "
                "was. Begin anew.",
                mechanism=name,
            )
        started.add(number)


class _Wait:
    """For results, as long as they may take and somebody works on them."""

    def __init__(self, client: Any, name: str, limit: float | None, lonely: float) -> None:
        self.done = SimpleQueue[Any]()
        self._client, self._name, self._limit, self._lonely = client, name, limit, lonely
        self._last = time.monotonic()
        self._alone_since: float | None = None

    def next(self) -> Any:
        """The next future that is done."""
        while True:
            try:
                return self.done.get(timeout=self._patience())
            except Empty:
                self._look()

    def result(self, future: Any) -> Parcel:
        """A future's result; its worker may die before it is fetched, and then it is made again."""
        while True:
            try:
                result: Parcel = future.result(timeout=self._patience())
            except TimeoutError:
                self._look()
            else:
                self._last, self._alone_since = time.monotonic(), None
                return result

    def _patience(self) -> float:
        if self._limit is None:
            return _LOOKED_AFTER
        return max(min(self._last + self._limit - time.monotonic(), _LOOKED_AFTER), 0.01)

    def _look(self) -> None:
        """Raises `TimeoutError` after the limit, and a `MechanismError` where nobody works any more."""
        now = time.monotonic()
        if self._limit is not None and now - self._last >= self._limit:
            raise TimeoutError
        is_alone = self._client.status != "running" or not self._client.scheduler_info()["workers"]
        self._alone_since = (self._alone_since or now) if is_alone else None
        if self._alone_since is not None and now - self._alone_since >= self._lonely:
            raise MechanismError(
                f"the cluster that should run {self._name} has had no worker for {self._lonely:.0f} seconds; start "
                "some, and with store= the audit goes on where it was.",
                mechanism=self._name,
            )
