"""Whole sessions of pytest, measured: how often correct mechanisms turn one red, and how soon planted bugs do."""

from __future__ import annotations

import contextlib
import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from unittest import mock

from ....audit.inference.binomial_tails import probability_limits
from ....audit.records.json_codec import load
from ....audit.results.audit_result import Verdict
from ..core.bench_json import CERTAIN, Column, Row, Target, Value
from ..core.effort import Bench, Effort, Task, batches, finished, seeds_of, spread
from .pytest_cases import BUGS

_ALPHAS = (1e-5, 0.01)
"""That of a real session, at which hardly any is red, and one at which the rate can be measured."""
_RUNS, _BUG_RUNS = 2_000, 100_000
_QUICK_SESSIONS, _QUICK_BUGS = 4, 3
_BATCH = 10
_BUG_SEEDS = 20

_FILE = """
import pytest
from dpaudit.experiments.bench.regression.pytest_cases import bugs, right

CASES = {which}()

@pytest.mark.parametrize("name", {names})
def test_audit(name, dp_audit):
    CASES[name](dp_audit)
"""


@dataclass(frozen=True, slots=True)
class _Audited:
    """An audit of a session."""

    test: str
    verdict: Verdict
    runs: int
    seconds: float


def _session(which: str, names: str, *options: str) -> tuple[int, list[_Audited]]:
    """Runs a session of pytest in this process: its exit status, and what its audits found."""
    import pytest

    from ....reports.pytest_plugin import plugin

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(StringIO()):
        text = _FILE.format(which=which, names=names)
        # pytest keeps a module of the same name for the next session: here of the same text.
        path = Path(folder) / f"test_{hashlib.sha256(text.encode()).hexdigest()[:16]}.py"
        path.write_text(text, encoding="utf-8")
        results = Path(folder) / "audits.json"
        fixed = ["-q", "--no-header", "-p", "no:cacheprovider", "--rootdir", folder, "--import-mode=importlib"]
        with mock.patch.dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"):
            status = pytest.main(
                [*fixed, "-c", os.devnull, f"--dp-audit-report={results}", *options, str(path)],
                plugins=[plugin],
            )
        found = [
            _Audited(entry.name, entry.result.verdict, entry.result.runs, float(entry.result.environment["seconds"]))
            for entry in load(results).entries
        ]
    return int(status), found


def _sessions(alpha: float, seeds: range) -> tuple[int, int, int, int]:
    """Sessions over correct mechanisms: those that were red, audits refuted, audits inconclusive, audits in all."""
    red = refuted = unclear = audits = 0
    for seed in seeds:
        options = (f"--dp-audit-alpha={alpha!r}", f"--dp-audit-seed={seed}", f"--dp-audit-runs={_RUNS}")
        status, found = _session("right", "sorted(CASES)", *options, "--dp-audit-budget=0.9")
        red += status != 0
        refuted += sum(one.verdict is Verdict.REFUTED for one in found)
        unclear += sum(one.verdict is Verdict.INCONCLUSIVE for one in found)
        audits += len(found)
    return red, refuted, unclear, audits


def _session_tasks(effort: Effort) -> Iterator[Task]:
    for place, alpha in enumerate(_ALPHAS):
        if effort.wants(f"{alpha:g}"):
            yield Task(f"{alpha:g}", partial(_measured_sessions, effort, place, alpha))


def _measured_sessions(effort: Effort, place: int, alpha: float, former: Row | None) -> Iterator[Row]:
    wanted = min(effort.audits, _QUICK_SESSIONS) if effort.is_quick else effort.audits
    counted = [0, 0, 0, 0]
    done, spent = 0, 0.0
    if former is not None:
        done, spent = int(str(former.cells["sessions"])), former.seconds
        counted = [int(str(former.cells[cell])) for cell in ("red", "refuted", "unclear", "audits")]
    pending = batches(seeds_of(15, place, done, max(0, wanted - done)), _BATCH)
    started = time.perf_counter()
    for seeds, found in zip(
        pending, spread(_sessions, [(alpha, seeds) for seeds in pending], effort.jobs), strict=True
    ):
        counted = [former + more for former, more in zip(counted, found, strict=True)]
        done += len(seeds)
        if done == wanted or done % (10 * _BATCH) == 0:
            cells, targets = _session_cells(alpha, done, counted)
            yield finished(f"{alpha:g}", cells, targets, spent + time.perf_counter() - started)
    if not pending and former is not None:
        yield former


def _session_cells(alpha: float, sessions: int, counted: list[int]) -> tuple[dict[str, Value], list[Target]]:
    red, refuted, unclear, audits = counted
    budget = alpha * audits / sessions
    low, high = probability_limits(red, sessions, alpha=0.05)
    certain = probability_limits(red, sessions, alpha=CERTAIN)[0]
    cells: dict[str, Value] = {
        "alpha": alpha,
        "budget": budget,
        "sessions": sessions,
        "red": red,
        "share": red / sessions,
        "low": low,
        "high": high,
        "audits": audits,
        "refuted": refuted,
        "unclear": unclear,
    }
    return cells, [Target(what="99.9% lower limit of the share", value=certain, sense="<=", limit=min(budget, 1.0))]


SESSIONS = Bench(
    name="sessions",
    title="Red sessions over correct mechanisms",
    method=(
        "A file of thirty tests with the fixture, each an audit of a claim that holds, most of them with equality: "
        "sequential (one of fixed size), on given pairs and searched ones, one comparing a mechanism with itself; "
        f"{_RUNS:,} runs on each dataset. Every session has a seed of its own. Red: any test failed, also because an "
        "audit was inconclusive. Budget: the sum of the alphas. Interval: exact, 95%."
    ),
    columns=(
        Column("alpha of an audit", "alpha", "g"),
        Column("budget", "budget", ".3g"),
        Column("sessions", "sessions", ",d"),
        Column("red", "red", ",d"),
        Column("share", "share", ".4f"),
        Column("from", "low", ".4f"),
        Column("to", "high", ".4f"),
        Column("audits", "audits", ",d"),
        Column("refuted", "refuted", ",d"),
        Column("inconclusive", "unclear", ",d"),
    ),
    names=tuple(f"{alpha:g}" for alpha in _ALPHAS),
    tasks=_session_tasks,
)


def _bug(name: str, seed: int) -> tuple[bool, int, float]:
    """Whether the test of a bug fails, with its runs and seconds."""
    options = (f"--dp-audit-seed={seed}", f"--dp-audit-runs={_BUG_RUNS}")
    status, (found,) = _session("bugs", repr([name]), *options)
    return status == 1 and found.verdict is Verdict.REFUTED, found.runs, found.seconds


def _bug_tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(BUGS[:_QUICK_BUGS] if effort.is_quick else BUGS):
        if effort.wants(name):
            yield Task(name, partial(_measured_bug, effort, place, name))


def _measured_bug(effort: Effort, place: int, name: str, former: Row | None) -> Iterator[Row]:
    if former is not None:
        yield former
        return
    started = time.perf_counter()
    seeds = seeds_of(16, place, 0, 2 if effort.is_quick else _BUG_SEEDS)
    found = list(spread(_bug, [(name, seed) for seed in seeds], effort.jobs))
    failed = sum(fails for fails, _, _ in found)
    cells: dict[str, Value] = {
        "bug": name,
        "sessions": len(found),
        "failed": failed / len(found),
        "runs": statistics.median(runs for _, runs, _ in found),
        "seconds": statistics.median(seconds for _, _, seconds in found),
    }
    targets = [Target(what="share of tests that fail", value=failed / len(found), sense=">=", limit=1.0)]
    yield finished(name, cells, targets, time.perf_counter() - started)


PLANTED = Bench(
    name="planted",
    title="Planted bugs in a test",
    method=(
        "Faults of the catalogue, each audited by a test with the plugin's own settings: alpha 1e-5, sequential, at "
        f"most {_BUG_RUNS:,} runs on each dataset; {_BUG_SEEDS} sessions with different seeds. Medians of the runs on "
        "each dataset and of the seconds of the audit."
    ),
    columns=(
        Column("bug", "bug"),
        Column("sessions", "sessions", ",d"),
        Column("tests that fail", "failed", ".0%"),
        Column("runs", "runs", ",.0f"),
        Column("seconds", "seconds", ".3f"),
    ),
    names=BUGS,
    tasks=_bug_tasks,
)
