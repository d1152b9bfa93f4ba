"""Sessions of pytest: rate of failed sessions over correct mechanisms, and detection of planted bugs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import statistics
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from unittest import mock

from ....audit.inference.binomial_tails import probability_limits
from ....audit.records.json_codec import load
from ....audit.results.audit_result import Verdict
from ....audit.results.canary_result import CanaryResult
from ..core.bench_json import CERTAIN, Figures, Row, at_least, at_most, columns
from ..core.effort import Bench, Effort, Task, counted, one_row_each, seeds_of, spread
from .pytest_cases import BUGS

_ALPHAS = (1e-5, 0.01)
"""The default of the plugin, at which hardly any session fails, and a level at which the rate is measurable."""
_RUNS, _BUG_RUNS = 2_000, 100_000
_QUICK_SESSIONS, _QUICK_BUGS = 4, 3
_QUICK_EVERY = 8  # quick sessions make every eighth of the audits
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
    """Audit in a session."""

    test: str
    verdict: Verdict
    runs: int
    seconds: float


def _session(which: str, names: str, *options: str) -> tuple[int, list[_Audited]]:
    """Run a session of pytest in this process; return its exit status and its audits."""
    import pytest

    from ....reports.pytest_plugin import plugin

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(StringIO()):
        text = _FILE.format(which=which, names=names)
        # pytest reuses a module of the same name in the next session, so the name depends on the text.
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
            if not isinstance(entry.result, CanaryResult)
        ]
    return int(status), found


def _sessions(alpha: float, every: int, seeds: range) -> Counter[str]:
    """Return the counts of sessions over correct mechanisms, of failed sessions, and of audits by verdict."""
    counts: Counter[str] = Counter(sessions=len(seeds))
    for seed in seeds:
        options = (f"--dp-audit-alpha={alpha!r}", f"--dp-audit-seed={seed}", f"--dp-audit-runs={_RUNS}")
        status, found = _session("right", f"sorted(CASES)[::{every}]", *options, "--dp-audit-budget=0.9")
        counts["red"] += status != 0
        counts["refuted"] += sum(one.verdict is Verdict.REFUTED for one in found)
        counts["unclear"] += sum(one.verdict is Verdict.INCONCLUSIVE for one in found)
        counts["audits"] += len(found)
    return counts


def _session_tasks(effort: Effort) -> Iterator[Task]:
    for place, alpha in enumerate(_ALPHAS):
        if effort.wants(f"{alpha:g}"):
            yield Task(f"{alpha:g}", partial(_session_row, effort, place, alpha))


def _session_row(effort: Effort, place: int, alpha: float, former: Row | None) -> Iterator[Row]:
    wanted = min(effort.audits, _QUICK_SESSIONS) if effort.is_quick else effort.audits
    return counted(
        f"{alpha:g}",
        partial(_sessions, alpha, effort.either(_QUICK_EVERY, 1)),
        partial(_session_cells, alpha),
        former,
        names=("sessions", "red", "refuted", "unclear", "audits"),
        seeds=lambda used: seeds_of(15, place, used, max(0, wanted - used)),
        batch=_BATCH,
        jobs=effort.jobs,
    )


def _session_cells(alpha: float, counts: Counter[str]) -> Figures:
    red, sessions = counts["red"], counts["sessions"]
    budget = alpha * counts["audits"] / sessions
    low, high = probability_limits(red, sessions, alpha=0.05)
    certain = probability_limits(red, sessions, alpha=CERTAIN)[0]
    return {
        "alpha": alpha,
        "budget": budget,
        "sessions": sessions,
        "red": red,
        "share": red / sessions,
        "low": low,
        "high": high,
        "audits": counts["audits"],
        "refuted": counts["refuted"],
        "unclear": counts["unclear"],
    }, [at_most("99.9% lower limit of the failure rate", certain, min(budget, 1.0))]


SESSIONS = Bench(
    name="sessions",
    title="Failed sessions over correct mechanisms",
    method=(
        "A file of thirty tests with the fixture; each audits a true claim, most with equality. The audits are "
        "sequential (one is of fixed size), on given or searched pairs; one test compares a mechanism with itself. "
        f"{_RUNS:,} runs on each dataset, a different seed for each session. A session fails if any test fails, which "
        "includes inconclusive audits. Limit of the family-wise error: the sum of the alphas. The limits are exact."
    ),
    columns=columns(
        "alpha of an audit = alpha :g | family-wise error limit = budget :.3g | sessions :,d | "
        "failed sessions = red :,d | failure rate = share :.4f | 95% lower limit = low :.4f | "
        "95% upper limit = high :.4f | audits :,d | refuted :,d | inconclusive = unclear :,d"
    ),
    names=tuple(f"{alpha:g}" for alpha in _ALPHAS),
    tasks=_session_tasks,
)


def _bug(name: str, seed: int) -> tuple[bool, int, float]:
    """Return whether the test of a bug fails, the runs and the seconds."""
    options = (f"--dp-audit-seed={seed}", f"--dp-audit-runs={_BUG_RUNS}")
    status, (found,) = _session("bugs", repr([name]), *options)
    return status == 1 and found.verdict is Verdict.REFUTED, found.runs, found.seconds


def _bug_cells(effort: Effort, place: int, name: str) -> Figures:
    seeds = seeds_of(16, place, 0, 2 if effort.is_quick else _BUG_SEEDS)
    found = list(spread(_bug, [(name, seed) for seed in seeds], effort.jobs))
    failed = sum(fails for fails, _, _ in found) / len(found)
    return {
        "bug": name,
        "sessions": len(found),
        "failed": failed,
        "runs": statistics.median(runs for _, runs, _ in found),
        "seconds": statistics.median(seconds for _, _, seconds in found),
    }, [at_least("detection rate", failed, 1)]


PLANTED = Bench(
    name="planted",
    title="Detection of planted bugs",
    method=(
        "Faults of the catalogue, each audited by a test with the default settings of the plugin: sequential, alpha "
        f"1e-5, at most {_BUG_RUNS:,} runs on each dataset; {_BUG_SEEDS} sessions with different seeds. Medians of the "
        "runs on each dataset and of the seconds of an audit."
    ),
    columns=columns(
        "bug | sessions :,d | detection rate = failed :.0% | median runs = runs :,.0f | median seconds = seconds :.3f"
    ),
    names=BUGS,
    tasks=one_row_each(BUGS, _bug_cells, quick=BUGS[:_QUICK_BUGS]),
)
