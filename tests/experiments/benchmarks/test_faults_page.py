"""Attacks have the outcome that was written down, and a killed audit ends as if nothing had happened."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from dpaudit.experiments.benchmarks.core.page import Effort
from dpaudit.experiments.benchmarks.faults import faults_page
from dpaudit.experiments.benchmarks.faults.faults_page import ATTACKS, FAULTS, Attack
from dpaudit.reports.cli.main import main

BENCHES = {bench.name: bench for bench in FAULTS.benches}


@pytest.fixture
def only_killed_in_processes(monkeypatch):
    """Commands that run to their end do so in this process; those that are killed have a process each."""

    def run(command, *, cwd, **options):
        if "audit" not in command:  # an attack
            return subprocess.run(command, cwd=cwd, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(cwd)
            patch.syspath_prepend(str(cwd))
            patch.setattr(sys, "argv", ["dpaudit", *command[command.index("audit") :]])
            with pytest.raises(SystemExit) as ended:
                main()
        sys.modules.pop("slow_noise", None)
        assert not ended.value.code
        return None

    names = {name: getattr(subprocess, name) for name in ("Popen", "DEVNULL", "TimeoutExpired")}
    monkeypatch.setattr(faults_page, "subprocess", SimpleNamespace(run=run, **names))


@pytest.mark.usefixtures("only_killed_in_processes", "without_pages")
@pytest.mark.parametrize("name", BENCHES)
def test_the_quick_form_meets_its_targets(name):
    rows = [row for task in BENCHES[name].tasks(Effort(is_quick=True)) for row in task.measure(None)]
    assert len(rows) == (sum(attack.is_quick for attack in ATTACKS.values()) if name == "faults" else 1)
    for row in rows:
        assert row.targets, row
        assert row.is_met, row
        assert not [column.cell for column in BENCHES[name].columns if column.cell not in row.cells]


@pytest.mark.parametrize("program", ["print('another')", "raise SystemExit(3)", "import time; time.sleep(60)"])
def test_another_outcome_is_a_missed_target(monkeypatch, program):
    monkeypatch.setattr(faults_page, "_HEAD", "")  # imports the library, which these programs do not use
    monkeypatch.setattr(faults_page, "_PATIENCE", 1.0)
    monkeypatch.setitem(ATTACKS, "wrong", Attack(program, "as it should be"))
    _, (target,) = faults_page._attack_cells(Effort(), 0, "wrong")
    assert not target.is_met
