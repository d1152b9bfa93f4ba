"""The same audit with threads, processes and on a dask cluster: equality of the results, and seconds."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import joblib

from ....audit.claims.claim import PureDP
from ....audit.extras import require
from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult
from ....mechanisms import LaplaceMechanism
from ..core.bench_json import Figures, Value, at_most, columns
from ..core.effort import Bench, Effort, Task, once
from ..core.timing import in_turns
from .memory import one_at_a_time

_PATIENCE = 60.0  # seconds until the cluster must be ready


def interpreter(module: str, arguments: Sequence[str], settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Return a new process that runs a module as a program, with more variables in its environment."""
    command = [sys.executable, "-m", module, *arguments]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=os.environ | settings)


@contextmanager
def local_cluster(
    folder: Path, workers: int, *, deaths: int = 3, start: Callable[..., Any] = interpreter
) -> Iterator[tuple[Any, list[Any]]]:
    """Run a cluster; yield its client and its processes, first the scheduler and then the workers.

    Parameters
    ----------
    folder : Path
        Folder for the address of the scheduler and the files of the workers.
    deaths : int
        Dead workers after which the scheduler gives up a task.
    start : callable
        Starts a process, with the arguments of `interpreter`; the process has `pid`, `kill` and `wait`.

    Raises
    ------
    MissingExtraError
        If dask is missing.
    """
    require("dask", "the cluster needs", "dask", "distributed")
    import dask
    from distributed import Client

    file = folder / "scheduler.json"
    common = ["--host", "127.0.0.1", "--scheduler-file", str(file), "--no-dashboard"]
    worker = [*common, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
    settings = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(deaths)}
    processes = [
        start("distributed.cli.dask_scheduler", [*common, "--port", "0"], settings),
        *(start("distributed.cli.dask_worker", worker, settings) for _ in range(workers)),
    ]
    try:
        # Time for which results of a dead worker are requested before they are drawn again.
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
            Client(scheduler_file=str(file), timeout=_PATIENCE) as client,
        ):
            client.wait_for_workers(workers, timeout=_PATIENCE)
            yield client, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


_WORKERS, _ROUNDS = 2, 3
# Mechanism, runs on each dataset, and runs of the quick form.
_AUDITED: dict[str, tuple[Any, int, int]] = {
    "laplace": (LaplaceMechanism(1.0), 10**8, 10**5),
    "one at a time": (one_at_a_time, 10**6, 10**4),
}
_MODES: dict[str, dict[str, Any]] = {"fixed size": {}, "sequential": {"sequential": True}}


def _backends(effort: Effort, name: str, mode: str) -> Figures:
    mechanism, runs, quick = _AUDITED[name]
    runs = effort.either(quick, runs)

    def audit(jobs: int | None) -> AuditResult:
        return check(
            mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, alpha=1e-6, seed=1, bits=False, jobs=jobs, **_MODES[mode]
        )

    results = []

    def under(backend: str) -> None:
        with joblib.parallel_config(backend, n_jobs=_WORKERS):
            results.append(audit(None))

    works: dict[str, Callable[[], Any]] = {name: partial(under, name) for name in ("threading", "loky", "dask")}
    works["alone"] = lambda: results.append(audit(1))
    with tempfile.TemporaryDirectory() as folder, local_cluster(Path(folder), _WORKERS):
        seconds = in_turns(works, effort.either(1, _ROUNDS), warm_up=effort.either(0, 1))
    first = results[0]
    different = sum((one.counts, one.event, one.bound) != (first.counts, first.event, first.bound) for one in results)
    medians = {backend: statistics.median(taken) for backend, taken in seconds.items()}
    cells: dict[str, Value] = {"name": name, "mode": mode, "runs": runs, "different": different, **medians}
    return cells, [at_most("different results", different, 0)]


def _backend_tasks(effort: Effort) -> Iterator[Task]:
    for name in _AUDITED:
        for mode in effort.either(tuple(_MODES)[:1], tuple(_MODES)):
            if effort.wants(name) and (not effort.is_quick or name == "one at a time"):
                yield once(f"{name}, {mode}", _backends, effort, name, mode)


BACKENDS = Bench(
    name="backends",
    title="Threads, processes and a cluster",
    method=(
        f"The same audit on every backend of joblib, timed in turn; medians of {_ROUNDS} rounds after a warm-up round: "
        f"{_WORKERS} threads, {_WORKERS} loky processes, a dask cluster of a scheduler and {_WORKERS} worker processes "
        "on this machine, and one worker. Different results: audits whose counts, event or bound differ from those of "
        "the first audit."
    ),
    columns=columns(
        "mechanism = name | audit = mode | runs on each dataset = runs :,d | seconds with one worker = alone :.2f | "
        "seconds with threads = threading :.2f | seconds with loky = loky :.2f | seconds with dask = dask :.2f | "
        "different results = different"
    ),
    names=tuple(_AUDITED),
    tasks=_backend_tasks,
)
