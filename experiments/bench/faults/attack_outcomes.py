"""Faults as a benchmark: attacks by code, data and machine, each with an outcome that is known beforehand."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once
from .attacks import ATTACKS

_PATIENCE = 300.0  # seconds
_SHOWN = 160


def _run(program: Path, folder: str) -> tuple[str, bool]:
    """What a program printed, or its errors, and whether it ended well."""
    command = [sys.executable, str(program)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"still running after {_PATIENCE:g} seconds", False
    return (done.stdout.strip(), True) if done.returncode == 0 else (done.stderr.strip(), False)


def _cells(name: str) -> tuple[dict[str, Value], list[Target]]:
    attack = ATTACKS[name]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "attack.py")
        program.write_text(attack.script, encoding="utf-8")
        program.chmod(0o644)
        Path(folder).chmod(0o755)
        started = time.perf_counter()
        said, has_ended = _run(program, folder)
        seconds = time.perf_counter() - started
    is_met = has_ended and re.fullmatch(attack.outcome, said, re.DOTALL) is not None
    shown = " / ".join(said.splitlines())
    cells: dict[str, Value] = {
        "name": name,
        "outcome": shown[:_SHOWN] + "…" * (len(shown) > _SHOWN),
        "seconds": seconds,
    }
    return cells, [Target(what="another outcome", value=float(not is_met), sense="<=", limit=0.0)]


def _tasks(effort: Effort) -> Iterator[Task]:
    for name, attack in ATTACKS.items():
        if effort.wants(name) and (attack.is_quick or not effort.is_quick):
            yield once(name, _cells, name)


FAULTS = Bench(
    name="faults",
    title="Faults",
    method=(
        "Programs that attack an audit, each in its own process. The outcome is what the program printed; it has to "
        "match what was written down beforehand."
    ),
    columns=(
        Column("attack", "name"),
        Column("outcome", "outcome"),
        Column("seconds", "seconds", ".1f"),
    ),
    names=tuple(ATTACKS),
    tasks=_tasks,
)
