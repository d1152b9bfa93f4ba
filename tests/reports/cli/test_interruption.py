"""Commands that are stopped by Ctrl-C or killed go on where they were, and end with the same results."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpaudit.audit.errors import OptionError
from dpaudit.audit.sampling.block_plan import Plan
from dpaudit.audit.store.sqlite_store import FILE, Store
from dpaudit.experiments.suite import run_suite
from dpaudit.reports.cli.interruption import Interrupted, store_for
from dpaudit.reports.cli.main import main

MODULE = """
import os
import time
import numpy as np

def patient(dataset, size, rng):
    time.sleep(float(os.environ.get("PATIENT_SECONDS", 0)))
    with open("drawn", "a") as file:
        file.write("x")
    return dataset + rng.laplace(size=size)

pairs = [(0, 0.25), (0, 0.5), (0, 1.0)]
"""
PAIR = ["audit", "patient_module:patient", "--x", "0", "--y", "1", "--epsilon", "1", "--jobs", "2"]
KINDS = {"fixed": ["--runs", "600000"], "sequential": ["--runs", "2000", "--sequential"]}
# As under the fixtures `without_pages`, `learned_seldom` and `looked_seldom`.
CODE = """
from dpaudit.audit.procedures import sequential
from dpaudit.audit.sampling import batches
from dpaudit.reports.cli.main import main
from dpaudit.reports.pages import html_page

html_page.html = lambda *_, **__: "page"
sequential._OFTEN = 3.0
batches._GROWTH = 1.3
main()
"""
COMMAND = [sys.executable, "-c", CODE]
PATIENCE = 120.0  # seconds until a test gives up


@pytest.fixture
def folder(tmp_path, monkeypatch, without_pages, learned_seldom, looked_seldom):
    (tmp_path / "patient_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def begun(arguments, blocks=4):
    """The command in a process of its own, once it has drawn some blocks."""
    drawn = Path("drawn")
    drawn.write_text("")
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PATIENT_SECONDS": "0.03"},
    )
    until = time.monotonic() + PATIENCE
    while process.poll() is None and len(drawn.read_text()) < blocks and time.monotonic() < until:
        time.sleep(0.01)
    return process


def finished(arguments):
    """The command run to its end, in this process and without workers, on which no result depends."""
    said, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        one = ["--jobs", "1"] if "audit" in arguments else []
        patch.setattr(sys, "argv", ["dpaudit", *arguments, *one])
        with pytest.raises(SystemExit) as ended:
            main()
    return SimpleNamespace(returncode=ended.value.code or 0, stdout=said.getvalue(), stderr=errors.getvalue())


def results(out):
    body = json.loads((out / "results.json").read_text())
    body.pop("environment")
    return body


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the signals of POSIX are needed")
@pytest.mark.parametrize("kind", KINDS)
def test_stopped_killed_and_resumed_it_ends_as_if_nothing_had_been(folder, kind):
    """The benchmark of faults kills an audit of fixed size."""
    out, whole = folder / "out", folder / "whole"
    arguments = [*PAIR, *KINDS[kind]]
    process = begun([*arguments, "--out", str(out)])
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert "finishing the current batch; Ctrl-C again stops immediately" in errors
    assert "the same command with --resume continues" in errors
    assert (out / FILE).exists()
    if kind == "sequential":
        assert "stopped on request after" in said
    if kind == "fixed":
        refused = finished([*arguments, "--out", str(out)])
        assert refused.returncode == 2
        assert "continue with --resume, or delete it" in refused.stderr
    if kind == "sequential":
        process = begun([*arguments, "--out", str(out), "--resume"])
        time.sleep(0.1)
        with contextlib.suppress(ProcessLookupError):  # it was quicker
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=PATIENCE)
    if (out / FILE).exists():
        assert finished([*arguments, "--out", str(out), "--resume"]).returncode == 0
    assert finished([*arguments, "--out", str(whole)]).returncode == 0
    assert results(out) == results(whole)
    assert not (out / FILE).exists()


def test_a_store_killed_before_its_first_note_is_resumed(tmp_path):
    Store(tmp_path).close()
    with store_for(tmp_path, "audit", is_resumed=True) as store:
        store.tell("kept", "yes")
    with pytest.raises(OptionError, match="belongs to dpaudit audit"), store_for(tmp_path, "run", is_resumed=True):
        pass


def test_a_run_goes_on_as_it_was_begun(folder, monkeypatch):
    """Ended between two cases, so that it takes no timing."""
    whole = folder / "whole"
    arguments = ["run", "D1", "--runs", "4000", "--seed", "4"]
    assert finished([*arguments, "--out", str(whole)]).returncode in (0, 1)
    out = folder / "out"
    real, cases = run_suite.save, []

    def save(*arguments):
        real(*arguments)
        cases.append(1)
        if len(cases) == 2:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(run_suite, "save", save)
        stopped = finished([*arguments, "--out", str(out)])
    assert stopped.returncode == 130, stopped.stderr
    assert f"`dpaudit run --resume {out}` continues" in stopped.stderr
    assert len(results(out)["suite"]["entries"]) == 2
    refused = finished([*PAIR, "--out", str(out), "--resume"])
    assert "belongs to dpaudit run; repeat that command with --resume" in refused.stderr.replace("\n", " ")
    for changed in (["--seed", "0"], ["--alpha", "1e-5", "--seed", "5"], ["E3"], ["--runs", "1000"]):
        ended = finished(["run", *changed, "--resume", str(out)])
        assert (ended.returncode, "--resume keeps the first options" in ended.stderr) == (2, True)
    assert finished(["run", "--resume", str(out)]).returncode in (0, 1)
    assert results(out) == results(whole)


def test_a_search_goes_on_too(folder, monkeypatch):
    arguments = ["audit", "patient_module:patient", "--search", "patient_module:pairs", "--epsilon", "1"]
    arguments += ["--runs", "1000", "--search-runs", "800", "--jobs", "1"]
    assert finished([*arguments, "--out", "whole"]).returncode == 0
    real = Plan.draw
    for draws in (3, 8, 14):
        left, out = [draws], f"out-{draws}"

        def draw(plan, *others, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return real(plan, *others)

        with monkeypatch.context() as patch:
            patch.setattr(Plan, "draw", draw)
            stopped = finished([*arguments, "--out", out])
        assert stopped.returncode == 130
        assert "the same command with --resume continues" in stopped.stderr
        other = finished([*arguments, "--search-runs", "801", "--out", out, "--resume"])
        assert other.returncode == 2
        assert "search_runs: 800 there, 801 here" in other.stderr.replace("\n", " ")
        assert "belongs to dpaudit audit" in finished(["run", "--resume", out]).stderr.replace("\n", " ")
        assert finished([*arguments, "--out", out, "--resume"]).returncode == 0
        assert results(folder / out) == results(folder / "whole")
        again = finished([*arguments, "--out", out, "--resume"])
        assert "its work is finished" in again.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--resume", "nowhere"], "there is nothing to resume in nowhere: the folder does not exist"),
        (["run", "--resume", "nowhere", "--out", "there"], "--out there is a different folder"),
        ([*PAIR, "--resume"], "name the folder with --out"),
        ([*PAIR, "--out", "nowhere", "--resume"], "there is nothing to resume in nowhere"),
        ([*PAIR, "--out", "new", "--epsilon", "-1"], "--epsilon -1.0"),
        (["run", "NOPE", "--out", "new"], "NOPE"),
    ],
)
def test_what_cannot_be_resumed_or_begun_leaves_nothing(folder, arguments, said):
    ended = finished(arguments)
    assert ended.returncode == 2
    assert said in ended.stderr.replace(f"{folder}/", "")
    assert not (folder / "new" / FILE).exists()
    assert not (folder / "nowhere").exists()
