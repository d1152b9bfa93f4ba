"""Long audits: memory, speed, large datasets, clusters and start-up."""

from __future__ import annotations

import copy
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.extras import require
from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult
from ....audit.sampling.block_plan import Plan
from ....audit.sampling.draw import plan_blocks
from ....audit.sampling.sampler import as_sampler
from ....mechanisms import LaplaceMechanism
from ...cases.experiment import AuditCase
from ...suite.reference_mechanisms import reference_cases
from ..core.bench_json import Figures, Value, at_least, at_most, columns, draw_alone, in_turns, median_ratio, timed
from ..core.page import Bench, Effort, Page, Task, once, one_row_each
from .memory import MEMORY, one_at_a_time

# Large datasets: seconds of an audit relative to ten rows, and bytes sent to the workers.

_RUNS, _LARGE_QUICK_RUNS = 20_000, 400
_ROWS, _QUICK_ROWS, _FEW = 1_000_000, 20_000, 10
_WORKERS = 2
_LARGE_ROUNDS = 9
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


def _large_cells(effort: Effort, place: int, name: str) -> Figures:
    make, runs = _MADE[name], effort.either(_LARGE_QUICK_RUNS, _RUNS)
    x = make(effort.either(_QUICK_ROWS, _ROWS))
    few = x[:_FEW]
    y = x.iloc[:-1] if hasattr(x, "iloc") else x[:-1]
    _seconds(_slow, few, few[1:], 2, runs)  # starts the workers
    taken: dict[str, list[float]] = {key: [] for key in ("few", "copies", "quick", "slow", "spread", "sent")}
    for _ in range(effort.either(1, _LARGE_ROUNDS)):
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
        f"the same dataset without its last row. Medians of {_LARGE_ROUNDS} rounds after the start of the workers. "
        "Ratio to ten rows: the seconds on all rows, less those of two deep copies, over those on ten rows. Two "
        "workers are compared with one for a slower function. Sent: bytes that the audit with two workers writes to "
        "pipes and shared memory."
    ),
    columns=columns(
        "dataset = name | rows :,d | seconds for ten rows = few :.2f | seconds for all rows = quick :.2f | seconds "
        "for two copies = copies :.2f | ratio to ten rows = times :.2f | slower function, seconds with one worker = "
        "slow :.2f | slower function, seconds with two workers = spread :.2f | MiB sent = sent :.0f"
    ),
    names=tuple(_MADE),
    tasks=one_row_each(_MADE, _large_cells, quick=tuple(_MADE)[:1]),
)

# Speed of audits: the reference suite at 10⁸ runs, drawing alone, two workers, and a dask cluster.

# Start-up time of the command line and of the package.

_COMMANDS = {
    "python alone": "",
    "import dpaudit": "import dpaudit",
    "from dpaudit import check": "from dpaudit import check",
    "dpaudit --help": "import sys; sys.argv[1:] = ['--help']; from dpaudit.reports.cli.main import main; main()",
}
_MOST_SECONDS = {"dpaudit --help": 0.5}


def _speed_cells(effort: Effort, place: int, name: str) -> Figures:
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
    tasks=one_row_each(_COMMANDS, _speed_cells),
)

_SUITE_RUNS, _SPEED_QUICK_RUNS = 10**8, 10**5
_ALPHA = 1e-5

_LEAST_SHARE, _HELD = 0.7, ("laplace", "geometric", "gaussian-analytic", "randomised-response")
_LEAST_SCALING = 1.8
_SPEED_ROUNDS = 5


@cache
def _cases() -> dict[str, AuditCase]:
    return {case.name: case for case in reference_cases()}


def _suite(effort: Effort, place: int, name: str) -> Figures:
    case, runs = _cases()[name], effort.either(_SPEED_QUICK_RUNS, _SUITE_RUNS)
    result, seconds = timed(case.run, runs=runs, alpha=_ALPHA, seed=0, jobs=_WORKERS, progress=None)
    targets = [at_least("expected verdict", result.verdict == case.expected, 1)]
    if case.exact is not None:
        targets.append(at_most("lower bound", result.bound, case.exact))
    return {
        "name": name,
        "claim": case.claimed,
        "runs": result.runs,
        "verdict": result.verdict.value,
        "bound": result.bound,
        "exact": case.exact,
        "seconds": seconds,
        "rate": 2 * result.runs / seconds / 1e6,
    }, [] if effort.is_quick else targets


SUITE = Bench(
    name="suite",
    title=f"Reference suite at {_SUITE_RUNS:,} runs on each dataset",
    method=(
        f"`dpaudit run --runs {_SUITE_RUNS}`, case by case: alpha {_ALPHA:g}, {_WORKERS} workers, one audit each; "
        "three audits also count cells of outputs. Executions are totals over both datasets; the seconds include the "
        "choice of the event and the test."
    ),
    columns=columns(
        "mechanism = name | claim | runs :,d | verdict | lower bound = bound :.5g | exact strength = exact :.5g | "
        "seconds :.1f | 10⁶ executions per second = rate :.1f"
    ),
    names=tuple(_cases()),
    tasks=one_row_each(_cases(), _suite, quick=_HELD[:1]),
)


def _plan(case: AuditCase) -> Plan:
    return plan_blocks(as_sampler(case.mechanism), case.x, case.y, 1, _WORKERS)


def _throughput(effort: Effort, place: int, name: str) -> Figures:
    case = replace(_cases()[name], cells=0)
    runs = effort.either(_SPEED_QUICK_RUNS, 10**8 if name in _HELD else 2 * 10**7)
    works: dict[str, Callable[[], Any]] = {
        "audit": partial(case.run, runs=runs, alpha=_ALPHA, seed=0, jobs=_WORKERS, progress=None),
        "alone": partial(draw_alone, _plan(case), runs, _WORKERS),
    }
    seconds = in_turns(works, effort.either(1, _SPEED_ROUNDS))
    rates = {work: 2 * runs / statistics.median(taken) / 1e6 for work, taken in seconds.items()}
    share = median_ratio(seconds["alone"], seconds["audit"])
    is_judged = not effort.is_quick and name in _HELD
    targets = [at_least("relative speed", share, _LEAST_SHARE)] if is_judged else []
    return {"name": name, "runs": runs, **rates, "share": share}, targets


_TRUE_CASES = tuple(name for name, case in _cases().items() if case.expected.name == "NOT_REFUTED")

THROUGHPUT = Bench(
    name="throughput",
    title="Speed of audits relative to drawing alone",
    method=(
        "Whole audits without cells, which include the choice of the event and the test, and drawing as many outputs "
        f"with the same sampler and {_WORKERS} workers. Each of {_SPEED_ROUNDS} rounds times both in turn; rates are "
        "medians, and the relative speed is the median ratio of a round."
    ),
    columns=columns(
        "mechanism = name | runs on each dataset = runs :,d | audit, 10⁶ executions per second = audit :.1f | "
        "drawing alone, 10⁶ executions per second = alone :.1f | relative speed = share :.2f"
    ),
    names=_TRUE_CASES,
    tasks=one_row_each(_TRUE_CASES, _throughput, quick=_HELD[:1]),
)


def _looped() -> AuditCase:
    case = _cases()["laplace"]
    return AuditCase(
        name="one at a time, in processes",
        mechanism=one_at_a_time,
        x=0.0,
        y=1.0,
        claim=case.claim,
        adjacency=_cases()["gaussian-analytic"].adjacency,
        expected=case.expected,
    )


_SCALED = {
    "laplace": 6 * 10**8,
    "gaussian-analytic": 6 * 10**8,
    "exponential": 3 * 10**8,
    "one at a time, in processes": 3 * 10**6,
}
_SCALING_ROUNDS = 3


def _scaling(effort: Effort, place: int, name: str) -> Figures:
    case = _looped() if name not in _cases() else replace(_cases()[name], cells=0)
    runs, plan = effort.either(_SPEED_QUICK_RUNS // 10, _SCALED[name]), _plan(case)
    works: dict[str, Callable[[], Any]] = {}
    for jobs in (1, 2):
        works[f"audit {jobs}"] = partial(case.run, runs=runs, alpha=_ALPHA, seed=0, jobs=jobs, progress=None)
        works[f"alone {jobs}"] = partial(draw_alone, plan, runs, jobs, "processes")
    seconds = in_turns(works, effort.either(1, _SCALING_ROUNDS))
    gain = median_ratio(seconds["audit 1"], seconds["audit 2"])
    return {
        "name": name,
        "runs": runs,
        "one": statistics.median(seconds["audit 1"]),
        "two": statistics.median(seconds["audit 2"]),
        "gain": gain,
        "alone": median_ratio(seconds["alone 1"], seconds["alone 2"]),
    }, [] if effort.is_quick else [at_least("speed-up", gain, _LEAST_SCALING)]


SCALING = Bench(
    name="scaling",
    title="Speed-up by a second worker",
    method=(
        f"Seconds of whole audits with one and with two workers, timed in turn, medians of {_SCALING_ROUNDS} rounds; "
        "the speed-up is the median ratio of a round. The speed-up of drawing alone in processes is that of the "
        "machine. Audits of this length use processes; short audits of block samplers use threads, which gain little."
    ),
    columns=columns(
        "mechanism = name | runs on each dataset = runs :,d | seconds with one worker = one :.2f | "
        "seconds with two workers = two :.2f | speed-up = gain :.2f | speed-up of drawing alone = alone :.2f"
    ),
    names=tuple(_SCALED),
    tasks=one_row_each(_SCALED, _scaling, quick=("laplace",)),
)


_BACKEND_ROUNDS = 3

# Mechanism, runs on each dataset, and runs of the quick form.
_AUDITED: dict[str, tuple[Any, int, int]] = {
    "laplace": (LaplaceMechanism(1.0), 10**8, 10**5),
    "one at a time": (one_at_a_time, 10**6, 10**4),
}
_MODES: dict[str, dict[str, Any]] = {"fixed size": {}, "sequential": {"sequential": True}}


def _backends(effort: Effort, name: str, mode: str) -> Figures:
    require("dask", "the cluster needs", "dask", "distributed")
    from distributed import Client

    mechanism, runs, quick = _AUDITED[name]
    runs = effort.either(quick, runs)

    def audit(jobs: int | None) -> AuditResult:
        return check(
            mechanism, 0.0, 1.0, claim=PureDP(1.0), runs=runs, alpha=1e-6, seed=1, bits=False, jobs=jobs, **_MODES[mode]
        )

    results = []

    def under(backend: str) -> None:
        with joblib.parallel_config(backend, n_jobs=_WORKERS):
            results.append(audit(None))

    works: dict[str, Callable[[], Any]] = {name: partial(under, name) for name in ("threading", "loky", "dask")}
    works["alone"] = lambda: results.append(audit(1))
    with Client(n_workers=_WORKERS, threads_per_worker=1, dashboard_address=":0"):
        seconds = in_turns(works, effort.either(1, _BACKEND_ROUNDS), warm_up=effort.either(0, 1))
    first = results[0]
    different = sum((one.counts, one.event, one.bound) != (first.counts, first.event, first.bound) for one in results)
    medians = {backend: statistics.median(taken) for backend, taken in seconds.items()}
    cells: dict[str, Value] = {"name": name, "mode": mode, "runs": runs, "different": different, **medians}
    return cells, [at_most("different results", different, 0)]


def _backend_tasks(effort: Effort) -> Iterator[Task]:
    for name in _AUDITED:
        for mode in effort.either(tuple(_MODES)[:1], tuple(_MODES)):
            if effort.wants(name) and (not effort.is_quick or name == "one at a time"):
                yield once(f"{name}, {mode}", _backends, effort, name, mode)


BACKENDS = Bench(
    name="backends",
    title="Threads, processes and a cluster",
    method=(
        f"The same audit on every backend of joblib, timed in turn; medians of {_BACKEND_ROUNDS} rounds after a "
        f"warm-up round: {_WORKERS} threads, {_WORKERS} loky processes, a dask cluster of {_WORKERS} worker processes "
        "on this machine, and one worker. Different results: audits whose counts, event or bound differ from those of "
        "the first audit."
    ),
    columns=columns(
        "mechanism = name | audit = mode | runs on each dataset = runs :,d | seconds with one worker = alone :.2f | "
        "seconds with threads = threading :.2f | seconds with loky = loky :.2f | seconds with dask = dask :.2f | "
        "different results = different"
    ),
    names=tuple(_AUDITED),
    tasks=_backend_tasks,
)

SCALE = Page(
    "scale",
    "Benchmarks of long audits",
    (MEMORY, LARGE, SUITE, THROUGHPUT, SCALING, BACKENDS, START),
)
