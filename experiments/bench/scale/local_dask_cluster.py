"""A dask cluster of processes on this machine that connect by address, as on several machines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ....audit.errors import OptionError

_PATIENCE = 60.0  # seconds until the cluster must be ready


@contextmanager
def local_cluster(
    folder: Path, workers: int, *, deaths: int = 3
) -> Iterator[tuple[Any, list[subprocess.Popen[bytes]]]]:
    """Run a cluster; yield its client and its processes, first the scheduler and then the workers.

    Parameters
    ----------
    folder : Path
        Folder for the address of the scheduler and the files of the workers.
    deaths : int
        Dead workers after which the scheduler gives up a task.

    Raises
    ------
    OptionError
        If dask is missing.
    """
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise OptionError("dask, which runs the cluster, is not installed; pip install 'dpaudit[dask]'.") from error
    file = folder / "scheduler.json"
    common = ["--host", "127.0.0.1", "--scheduler-file", str(file), "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", *common, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
    settings = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(deaths)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=settings
        )
        for command in [["distributed.cli.dask_scheduler", *common, "--port", "0"], *[worker] * workers]
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
