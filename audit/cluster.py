"""Tasks on a dask cluster: the one that joblib is told of, `joblib.parallel_config("dask")`.

They are sent as futures of `distributed`, as joblib waits for ever for a task whose workers were killed. What a worker
draws follows from a block's seed alone, so a task that is run again after its worker was lost gives the same.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from .errors import MechanismError
from .shipping import Parcel

_LONELY = 60.0  # seconds that a cluster may be without a worker
_LOOKED_AFTER = 5.0  # seconds without a result after which its workers are counted


def results_of_cluster(
    backend: Any,
    work: Callable[[Parcel, int], Parcel],
    parcel: Parcel,
    tasks: Sequence[str],
    name: str,
    limit: float | None,
) -> Iterator[Parcel]:
    """What ``work(parcel, number)`` gives for the number of every task, as they come.

    The parcel goes to the scheduler once and from there to each worker once; a task is a number, and a result is what
    `work` returns.

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

    Raises
    ------
    MechanismError
        From `work`; if workers die again and again over a task; if the scheduler is lost; and after a minute without
        any worker.
    TimeoutError
        After `limit`.
    """
    from distributed import CancelledError, KilledWorker

    client, done = backend.client, SimpleQueue[Any]()
    with backend.retrieval_context(), warnings.catch_warnings():
        # A large dataset is no mistake: workers that come later need it too.
        warnings.filterwarnings("ignore", message="Sending large graph")
        # A task, not scattered data: those are lost with the workers that hold them.
        shared = client.submit(_same, parcel, pure=False)
        futures = {client.submit(work, shared, number, pure=False): words for number, words in enumerate(tasks)}
        try:
            for future in futures:
                future.add_done_callback(done.put)
            for _ in futures:
                future = _next(client, done, name, limit)
                try:
                    yield future.result()
                except KilledWorker as error:
                    raise MechanismError(
                        f"every worker of the cluster that ran {futures[future]} of {name} died: it ran out of memory, "
                        "or the mechanism ended it. Use jobs=1 to see more.",
                        mechanism=name,
                    ) from error
                except CancelledError as error:
                    raise MechanismError(
                        f"the cluster's scheduler was lost while it ran {futures[future]} of {name}; start it again, "
                        "and with store= the audit goes on where it was.",
                        mechanism=name,
                    ) from error
        finally:
            if client.status == "running":
                client.cancel([shared, *futures])


def _same(parcel: Parcel) -> Parcel:
    return parcel


def _next(client: Any, done: SimpleQueue[Any], name: str, limit: float | None) -> Any:
    """The next future that is done; raises `TimeoutError` after `limit`, and where nobody works any more."""
    started = time.monotonic()
    alone_since = None
    while True:
        waited = time.monotonic() - started
        if limit is not None and waited >= limit:
            raise TimeoutError
        try:
            return done.get(timeout=_LOOKED_AFTER if limit is None else min(limit - waited, _LOOKED_AFTER))
        except Empty:
            is_alone = client.status != "running" or not client.scheduler_info()["workers"]
        now = time.monotonic()
        alone_since = (alone_since or now) if is_alone else None
        if alone_since is not None and now - alone_since > _LONELY:
            raise MechanismError(
                f"the cluster that should run {name} has had no worker for {_LONELY:.0f} seconds; start some, and with "
                "store= the audit goes on where it was.",
                mechanism=name,
            )
