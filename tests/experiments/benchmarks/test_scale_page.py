"""The benchmark of long audits works, and its figures can miss."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest

from dpaudit.experiments.benchmarks.core.page import Effort
from dpaudit.experiments.benchmarks.scale.memory import peak_memory
from dpaudit.experiments.benchmarks.scale.scale_page import SCALE

BENCHES = {bench.name: bench for bench in SCALE.benches}
COUNTED = {"memory", "backends"}  # whose targets are no times


@pytest.mark.parametrize("name", BENCHES)
def test_the_quick_form_meets_its_targets(name, monkeypatch):
    if name == "backends":  # whose workers are threads here; `tests/audit/sampling/test_workers.py` has processes
        distributed = pytest.importorskip("distributed")
        monkeypatch.setattr(distributed, "Client", partial(distributed.Client, processes=False))
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
