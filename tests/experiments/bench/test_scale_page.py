"""The benchmark of long audits works, and its figures can miss."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest

from dpaudit.experiments.bench.core.effort import Effort
from dpaudit.experiments.bench.scale import dask_speed
from dpaudit.experiments.bench.scale.dask_speed import efficiency
from dpaudit.experiments.bench.scale.memory import peak_memory
from dpaudit.experiments.bench.scale.scale_page import SCALE

BENCHES = {bench.name: bench for bench in SCALE.benches}
COUNTED = {"memory", "backends"}  # whose targets are no times
TOGETHER = ("backends", "sent", "expected")  # these are measured on a cluster, which is started once


@pytest.fixture
def one_cluster(monkeypatch):
    """All measurements of a test get the same cluster, whose workers are threads of this process.

    `tests/audit/sampling/test_dask_cluster.py` tests the cluster of processes.
    """
    with contextlib.ExitStack() as stack:
        started = []

        @contextlib.contextmanager
        def local_cluster(folder, workers):
            if not started:
                distributed = pytest.importorskip("distributed")
                options = {"processes": False, "n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
                started.append((workers, stack.enter_context(distributed.Client(**options))))
            assert started[0][0] == workers
            yield started[0][1], []

        monkeypatch.setattr(dask_speed, "local_cluster", local_cluster)
        yield


@pytest.mark.usefixtures("one_cluster")
@pytest.mark.parametrize("names", [TOGETHER, *((name,) for name in BENCHES if name not in TOGETHER)], ids=" and ".join)
def test_the_quick_form_meets_its_targets(names):
    for name in names:
        rows = [row for task in BENCHES[name].tasks(Effort(is_quick=True)) for row in task.measure(None)]
        assert rows
        for row in rows:
            assert row.is_met, row
            assert bool(row.targets) == (name in COUNTED), row
            missing = [column.cell for column in BENCHES[name].columns if column.cell not in row.cells]
            assert not missing


def test_memory_of_children_is_counted():
    hungry = "kept = bytearray(200 * 2**20)\nimport time; time.sleep(0.4)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hungry!r}])"
    assert 190 < peak_memory([sys.executable, "-c", child]) < 400


def test_a_command_that_fails_has_no_memory():
    with pytest.raises(subprocess.CalledProcessError):
        peak_memory([sys.executable, "-c", "raise SystemExit(3)"])


def test_waiting_workers_cost():
    def share(tasks, workers, **costs):
        return efficiency(tasks, workers, seconds=1.0, spread=0.0, **({"cost": 0.0, "start": 0.0} | costs))

    assert share(100, 10) == 1.0
    assert share(101, 10) == pytest.approx(101 / 110)  # one is left over
    assert share(100, 10, start=10.0) == pytest.approx(0.5)
    assert share(100, 10, cost=1.0) == pytest.approx(0.1, abs=0.01)  # no quicker than the scheduler
    assert share(5, 10) == 0.5
