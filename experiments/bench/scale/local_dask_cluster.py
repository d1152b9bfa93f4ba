"""A dask cluster of processes on this machine that connect by address, as on several machines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ....audit.extras import require

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
