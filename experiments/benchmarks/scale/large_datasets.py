"""Large datasets: seconds of an audit relative to ten rows, and bytes sent to the workers."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.procedures.check import check
from ..core.bench_json import Figures, at_most, columns
from ..core.effort import Bench, Effort, one_row_each
from ..core.timing import timed

_RUNS, _QUICK_RUNS = 20_000, 400
_ROWS, _QUICK_ROWS, _FEW = 1_000_000, 20_000, 10
_ROUNDS = 9
_MOST_TIMES = 1.5  # relative to ten rows, without two copies of the data
_IO = Path("/proc/self/io")  # includes the bytes that this process wrote to files and pipes


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
    return timed(check, mechanism, x, y, claim=PureDP(1.0), runs=runs, alpha=1e-6, seed=1, jobs=jobs, bits=False)[1]


def _written() -> float:
    """Return the bytes that this process wrote so far; NaN where the system does not count them."""
    if not _IO.exists():
        return float("nan")
    return float(dict(line.split(": ") for line in _IO.read_text().splitlines())["wchar"])


def _cells(effort: Effort, place: int, name: str) -> Figures:
    make, runs = _MADE[name], effort.either(_QUICK_RUNS, _RUNS)
    x = make(effort.either(_QUICK_ROWS, _ROWS))
    few = x[:_FEW]
    y = x.iloc[:-1] if hasattr(x, "iloc") else x[:-1]
    _seconds(_slow, few, few[1:], 2, runs)  # starts the workers
    taken: dict[str, list[float]] = {key: [] for key in ("few", "copies", "quick", "slow", "spread", "sent")}
    for _ in range(effort.either(1, _ROUNDS)):
        taken["few"].append(_seconds(_quick, few, few[1:], 1, runs))
        taken["quick"].append(_seconds(_quick, x, y, 1, runs))
        taken["copies"].append(timed(copy.deepcopy, (x, y))[1])
        taken["slow"].append(_seconds(_slow, x, y, 1, runs))
        before = _written()
        taken["spread"].append(_seconds(_slow, x, y, 2, runs))
        taken["sent"].append((_written() - before) / 2**20)
    median: dict[str, float] = {key: statistics.median(values) for key, values in taken.items()}
    ratio = (median["quick"] - median["copies"]) / median["few"]
    targets = (
        []
        if effort.is_quick
        else [
            at_most("ratio to ten rows", ratio, _MOST_TIMES),
            at_most("ratio of two workers to one", median["spread"] / median["slow"], 1),
        ]
    )
    return {"name": name, "rows": len(x), "times": ratio, **median}, targets


LARGE = Bench(
    name="large",
    title="Large datasets",
    method=(
        f"Audits with {_RUNS:,} runs on each dataset, of functions that draw one output in a call, on a dataset and "
        f"the same dataset without its last row. Medians of {_ROUNDS} rounds after the start of the workers. Ratio to "
        "ten rows: the seconds on all rows, less those of two deep copies, over those on ten rows. Two workers are "
        "compared with one for a slower function. Sent: bytes that the audit with two workers writes to pipes and "
        "shared memory."
    ),
    columns=columns(
        "dataset = name | rows :,d | seconds for ten rows = few :.2f | seconds for all rows = quick :.2f | "
        "seconds for two copies = copies :.2f | ratio to ten rows = times :.2f | "
        "slower function, seconds with one worker = slow :.2f | "
        "slower function, seconds with two workers = spread :.2f | MiB sent = sent :.0f"
    ),
    names=tuple(_MADE),
    tasks=one_row_each(_MADE, _cells, quick=tuple(_MADE)[:1]),
)
