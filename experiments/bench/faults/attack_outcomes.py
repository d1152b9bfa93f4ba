"""Outcomes of attacks by code, data and machine, compared with the outcomes expected beforehand."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ..core.bench_json import Figures, Value, at_most, columns
from ..core.effort import Bench, Effort, one_row_each
from ..core.timing import timed
from .attacks import ATTACKS

_PATIENCE = 300.0  # seconds
_SHOWN = 160


def _run(program: Path, folder: str) -> tuple[str, bool]:
    """Return the output of a program, or its errors, and whether its exit status was 0."""
    command = [sys.executable, str(program)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"still running after {_PATIENCE:g} seconds", False
    return (done.stdout.strip(), True) if done.returncode == 0 else (done.stderr.strip(), False)


def _cells(effort: Effort, place: int, name: str) -> Figures:
    attack = ATTACKS[name]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "attack.py")
        program.write_text(attack.script, encoding="utf-8")
        program.chmod(0o644)
        Path(folder).chmod(0o755)
        (said, has_ended), seconds = timed(_run, program, folder)
    is_met = has_ended and re.fullmatch(attack.outcome, said, re.DOTALL) is not None
    shown = " / ".join(said.splitlines())
    cells: dict[str, Value] = {
        "name": name,
        "outcome": shown[:_SHOWN] + "…" * (len(shown) > _SHOWN),
        "seconds": seconds,
    }
    return cells, [at_most("unexpected outcomes", not is_met, 0)]


OUTCOMES = Bench(
    name="faults",
    title="Attacks",
    method=(
        "Programs that attack an audit, each in a separate process. The outcome is the output of the program; it must "
        "match an expression written down beforehand."
    ),
    columns=columns("attack = name | outcome | seconds :.1f"),
    names=tuple(ATTACKS),
    tasks=one_row_each(ATTACKS, _cells, quick=[name for name, attack in ATTACKS.items() if attack.is_quick]),
)
