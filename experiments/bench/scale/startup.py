"""Start-up time of the command line and of the package."""

from __future__ import annotations

import statistics
import subprocess
import sys

from ..core.bench_json import Figures, at_most, columns
from ..core.effort import Bench, Effort, one_row_each
from ..core.timing import timed

_COMMANDS = {
    "python alone": "",
    "import dpaudit": "import dpaudit",
    "from dpaudit import check": "from dpaudit import check",
    "dpaudit --help": "import sys; sys.argv[1:] = ['--help']; from dpaudit.experiments.cli.main import main; main()",
}
_MOST_SECONDS = {"dpaudit --help": 0.5}


def _cells(effort: Effort, place: int, name: str) -> Figures:
    command = [sys.executable, "-c", _COMMANDS[name]]
    seconds = [
        timed(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)[1] for _ in range(effort.either(1, 15))
    ]
    median = statistics.median(seconds)
    is_judged = not effort.is_quick and name in _MOST_SECONDS
    targets = [at_most("median seconds", median, _MOST_SECONDS[name])] if is_judged else []
    return {"name": name, "median": median, "least": min(seconds), "most": max(seconds)}, targets


START = Bench(
    name="start",
    title="Start-up",
    method="Seconds of a new process from start to end, median of 15.",
    columns=columns("process = name | median seconds = median :.2f | minimum = least :.2f | maximum = most :.2f"),
    names=tuple(_COMMANDS),
    tasks=one_row_each(_COMMANDS, _cells),
)
