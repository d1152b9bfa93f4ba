"""A dask cluster on this machine, of processes that know each other by address alone, as on several machines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ....audit.errors import OptionError

_PATIENCE = 60.0  # seconds until the cluster has to be there


@contextmanager
def local_cluster(
    folder: Path, workers: int, *, deaths: int = 3
) -> Iterator[tuple[Any, list[subprocess.Popen[bytes]]]]:
    """The client of a scheduler and so many workers, and their processes, the scheduler's first.

    Parameters
    ----------
    folder : Path
        For the scheduler's address, and what workers put aside.
    deaths : int
        Workers that a task may outlive before it is given up.

    Raises
    ------
    OptionError
        Without dask.
    """
    try:
        import dask
        from distributed import Client
    except ImportError as error:
        raise OptionError("a cluster takes dask; pip install 'dpaudit[dask]'.") from error
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
        # Results that a dead worker had are asked for so long before they are drawn again.
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
