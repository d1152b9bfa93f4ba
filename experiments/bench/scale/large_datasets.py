"""Large datasets: what an audit takes beside one of ten rows, and what its workers are sent."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.procedures.check import check
from ..core.bench_json import Column, Target, Value
from ..core.effort import Bench, Effort, Task, once

_RUNS, _QUICK_RUNS = 20_000, 400
_ROWS, _QUICK_ROWS, _FEW = 1_000_000, 20_000, 10
_ROUNDS = 9
_MOST_TIMES = 1.5  # the time with ten rows, two copies of the data aside
_IO = Path("/proc/self/io")  # bytes that this process wrote to files and pipes


def _quick(rows: Any, rng: np.random.Generator) -> float:
    return len(rows) + float(rng.laplace())


def _slow(rows: Any, rng: np.random.Generator) -> float:
    return len(rows) + float(rng.laplace()) + 1e-3 * float(rng.normal(size=5_000).mean())


def _array(rows: int) -> Any:
    return np.arange(4.0 * rows).reshape(rows, 4)


def _frame(rows: int) -> Any:
    import pandas as pd

    numbers = np.arange(rows)
    names = [f"street {number % 997}" for number in range(rows)]
    return pd.DataFrame({"age": numbers % 90, "income": numbers * 1.5, "street": names})


def _numbers(rows: int) -> Any:
    return list(map(float, range(rows)))


def _tuples(rows: int) -> Any:
    return [(number, f"name {number}", number * 0.5) for number in range(rows // 5)]


def _dicts(rows: int) -> Any:
    return [{"id": number, "name": f"name {number}"} for number in range(rows // 5)]


_MADE: dict[str, Callable[[int], Any]] = {
    "array of 4 columns": _array,
    "data frame of 3 columns": _frame,
    "list of numbers": _numbers,
    "list of tuples": _tuples,
    "list of dictionaries": _dicts,
}


def _seconds(mechanism: Any, x: Any, y: Any, jobs: int, runs: int) -> float:
    started = time.perf_counter()
    check(mechanism, x, y, claim=PureDP(1.0), runs=runs, alpha=1e-6, seed=1, jobs=jobs, bits=False)
    return time.perf_counter() - started


def _written() -> float:
    """Bytes that this process wrote so far; NaN where the system does not count them."""
    if not _IO.exists():
        return float("nan")
    return float(dict(line.split(": ") for line in _IO.read_text().splitlines())["wchar"])


def _cells(effort: Effort, name: str) -> tuple[dict[str, Value], list[Target]]:
    make, runs = _MADE[name], effort.either(_QUICK_RUNS, _RUNS)
    x = make(effort.either(_QUICK_ROWS, _ROWS))
    few = x[:_FEW]
    y = x.iloc[:-1] if hasattr(x, "iloc") else x[:-1]
    _seconds(_slow, few, few[1:], 2, runs)  # workers start
    taken: dict[str, list[float]] = {key: [] for key in ("few", "copies", "quick", "slow", "spread", "sent")}
    for _ in range(effort.either(1, _ROUNDS)):
        taken["few"].append(_seconds(_quick, few, few[1:], 1, runs))
        taken["quick"].append(_seconds(_quick, x, y, 1, runs))
        started = time.perf_counter()
        kept = copy.deepcopy((x, y))
        taken["copies"].append(time.perf_counter() - started)
        del kept
        taken["slow"].append(_seconds(_slow, x, y, 1, runs))
        before = _written()
        taken["spread"].append(_seconds(_slow, x, y, 2, runs))
        taken["sent"].append((_written() - before) / 2**20)
    median: dict[str, float] = {key: statistics.median(values) for key, values in taken.items()}
    times = (median["quick"] - median["copies"]) / median["few"]
    cells: dict[str, Value] = {"name": name, "rows": len(x), "times": times, **median}
    if effort.is_quick:
        return cells, []
    return cells, [
        Target(what="times", value=times, sense="<=", limit=_MOST_TIMES),
        Target(what="two workers over one", value=median["spread"] / median["slow"], sense="<=", limit=1.0),
    ]


def _tasks(effort: Effort) -> Iterator[Task]:
    for name in effort.either(tuple(_MADE)[:1], tuple(_MADE)):
        if effort.wants(name):
            yield once(name, _cells, effort, name)


LARGE = Bench(
    name="large",
    title="Large datasets",
    method=(
        f"Audits of {_RUNS:,} runs on each dataset of functions that draw one output at a time, on a dataset and the "
        f"same without its last row; medians of {_ROUNDS} rounds, with workers that were started before. Times: the "
        "seconds on the large dataset, less those of two deep copies, over those on ten rows. Two workers: with a "
        "function that takes longer. Sent: what the audit with two workers writes to pipes and shared memory."
    ),
    columns=(
        Column("dataset", "name"),
        Column("rows", "rows", ",d"),
        Column("seconds, ten rows", "few", ".2f"),
        Column("all rows", "quick", ".2f"),
        Column("two copies", "copies", ".2f"),
        Column("times", "times", ".2f"),
        Column("slower function, one worker", "slow", ".2f"),
        Column("two workers", "spread", ".2f"),
        Column("MiB sent", "sent", ".0f"),
    ),
    names=tuple(_MADE),
    tasks=_tasks,
)
