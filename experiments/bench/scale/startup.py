"""How long the command line and the package take to start."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once

_COMMANDS = {
    "python, nothing else": "",
    "import dpaudit": "import dpaudit",
    "from dpaudit import check": "from dpaudit import check",
    "dpaudit --help": "import sys; sys.argv[1:] = ['--help']; from dpaudit.experiments.cli.main import main; main()",
}
_MOST_SECONDS = {"dpaudit --help": 0.5}


def _cells(effort: Effort, name: str) -> tuple[dict[str, Value], list[Target]]:
    seconds = []
    for _ in range(effort.either(1, 15)):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", _COMMANDS[name]], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - started)
    median = statistics.median(seconds)
    cells: dict[str, Value] = {"name": name, "median": median, "least": min(seconds), "most": max(seconds)}
    if effort.is_quick or name not in _MOST_SECONDS:
        return cells, []
    return cells, [Target(what="seconds", value=median, sense="<=", limit=_MOST_SECONDS[name])]


def _tasks(effort: Effort) -> Iterator[Task]:
    for name in _COMMANDS:
        if effort.wants(name):
            yield once(name, _cells, effort, name)


START = Bench(
    name="start",
    title="Starting",
    method="Seconds of a new process from its start to its end, median of 15.",
    columns=(
        Column("process", "name"),
        Column("seconds", "median", ".2f"),
        Column("from", "least", ".2f"),
        Column("to", "most", ".2f"),
    ),
    names=tuple(_COMMANDS),
    tasks=_tasks,
)
