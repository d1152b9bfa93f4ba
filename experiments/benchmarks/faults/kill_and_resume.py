"""Audits that are killed repeatedly and resumed, compared with undisturbed audits."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....audit.store.sqlite_store import FILE
from ..core.bench_json import Figures, Value, at_most, columns
from ..core.effort import Bench, Effort, one_row_each
from ..core.timing import timed

_KILLS, _QUICK_KILLS = 15, 1
_LONGEST = 3.0  # seconds until a process is killed; it takes about one to start
_QUICK_LONGEST = 0.1  # seconds from the existence of the store; a slow machine would kill most processes before it
_POLLED = 0.01  # seconds between two looks for the store

# The additional means make the functions slow, so that a kill interrupts their work, and hardly change the noise.
_MODULE = """
import numpy as np
from dpaudit import Rows

def block(dataset, size, rng):
    return dataset + rng.laplace(size=size) + 1e-3 * rng.normal(size=(40, size)).mean(axis=0)

def looped(dataset, rng):
    return float(dataset + rng.laplace() + 1e-3 * rng.normal(size=2_000).mean())

def vectors(dataset, size, rng):
    return dataset + rng.laplace(scale=5.0, size=(size, 5)) + 1e-3 * rng.normal(size=(20, size, 5)).mean(axis=0)

def texts(dataset, rng):
    return f"{dataset + rng.geometric(0.6) - rng.geometric(0.6) + 0 * rng.normal(size=1_000).mean():.0f}"

def counting(rows, rng):
    return looped(len(rows), rng)

domain = Rows(low=0.0, high=1.0, most=3)
"""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Kind of audit: the function, its runs and further options of the command line."""

    function: str
    runs: int
    options: tuple[str, ...] = ("--x", "0", "--y", "1")


_KINDS = {
    "fixed size": _Kind("block", 20_000_000),
    "sequential": _Kind("block", 20_000_000, ("--x", "0", "--y", "1", "--sequential")),
    "one run at a time": _Kind("looped", 300_000),
    "vectors": _Kind("vectors", 5_000_000),
    "texts": _Kind("texts", 300_000),
    "search": _Kind("counting", 200_000, ("--search", "slow_noise:domain", "--adjacency", "add-remove")),
}
_QUICK_RUNS = 300_000


def _command(kind: str, runs: int, out: Path) -> list[str]:
    own = _KINDS[kind]
    program = [sys.executable, "-c", "from dpaudit.reports.cli.main import program; program()"]
    audit = ["audit", f"slow_noise:{own.function}", *own.options, "--epsilon", "1", "--alpha", "1e-6", "--jobs", "2"]
    return [*program, *audit, "--runs", str(runs), "--out", str(out)]


def _results(out: Path) -> Any:
    body = json.loads((out / "results.json").read_text(encoding="utf-8"))
    body.pop("environment")
    return body


def _is_sound(file: Path) -> bool:
    """Return whether SQLite finds the store intact."""
    connection = sqlite3.connect(file)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)])
    finally:
        connection.close()


def _killed(command: list[str], folder: Path, seconds: float, store: Path | None) -> bool:
    """Run the command for some seconds, then kill its process group; return whether it was still running.

    The seconds begin when the file of the store exists, if one is given.
    """
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while store is not None and process.poll() is None and not store.exists():
        time.sleep(_POLLED)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def _cells(effort: Effort, place: int, kind: str) -> Figures:
    runs, wanted = effort.either(_QUICK_RUNS, _KINDS[kind].runs), effort.either(_QUICK_KILLS, _KILLS)
    longest, rng = effort.either(_QUICK_LONGEST, _LONGEST), np.random.default_rng(place)
    kills = early = rounds = unsound = different = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slow_noise.py").write_text(_MODULE, encoding="utf-8")
        whole = _command(kind, runs, folder / "whole")
        _, seconds = timed(subprocess.run, whole, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        while kills < wanted:
            rounds += 1
            out = folder / f"round {rounds}"
            command = _command(kind, runs, out)
            store = out / FILE if effort.is_quick else None
            while kills < wanted and _killed(command, folder, rng.uniform(0.0, longest), store):
                if not (out / FILE).exists():
                    early += 1
                    continue
                kills += 1
                unsound += not _is_sound(out / FILE)
                command = [*_command(kind, runs, out), "--resume"]
            if not (out / "results.json").exists():
                subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            different += _results(out) != _results(folder / "whole")
    cells: dict[str, Value] = {
        "kind": kind,
        "runs": runs,
        "seconds": seconds,
        "kills": kills,
        "early": early,
        "rounds": rounds,
        "unsound": unsound,
        "different": different,
    }
    return cells, [at_most("damaged stores", unsound, 0), at_most("different results", different, 0)]


KILLS = Bench(
    name="kills",
    title="Killed and resumed audits",
    method=(
        "`dpaudit audit --out` of slow functions, and a search. Each audit is killed with its workers (SIGKILL) at a "
        f"random moment of its first {_LONGEST:g} seconds and resumed with --resume, until {_KILLS} kills have left a "
        "store; kills before the store exists are counted separately. If the audit ends earlier, a new audit begins. "
        "SQLite checks the store after every kill. The results of each audit are compared with those of an undisturbed "
        "audit, except for `environment`."
    ),
    columns=columns(
        "audit = kind | runs on each dataset = runs :,d | seconds undisturbed = seconds :.1f | kills | "
        "kills before the store exists = early | audits = rounds | damaged stores = unsound | "
        "different results = different"
    ),
    names=tuple(_KINDS),
    tasks=one_row_each(_KINDS, _cells, quick=tuple(_KINDS)[:1]),
)
