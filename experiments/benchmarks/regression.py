"""Regression testing: failed sessions over correct mechanisms, and planted bugs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

from ...audit.procedures.check_equivalence import check_equivalence
from ...audit.records.json_codec import load
from ...audit.records.suite import Entry
from ...audit.results.verdict import Verdict
from ...mechanisms import GeometricMechanism, LaplaceMechanism
from ..catalogue.entries import entries
from ..catalogue.fault import Fault
from .inference import subjects
from .measure import (
    Effort,
    Figures,
    Seeds,
    Table,
    at_least,
    by_name,
    certainly_at_most,
    share_of,
    spread,
)

# Sessions of pytest: rate of failed sessions over correct mechanisms, and detection of planted bugs.

BUGS = (
    "sensitivity-understated", "replace-half-sensitivity", "scale-epsilon", "deviation-as-scale", "best-of-draws",
    "noise-one-sided", "redrawn-until-nonnegative", "seed-from-the-data", "ratio-squared", "clamped-to-the-rows",
    "variance-as-deviation", "domain-not-clipped", "rho-for-epsilon", "clipped-by-the-layer",
    "exponential-without-two", "noisy-max-without-two", "sparse-vector-no-query-noise", "truth-among-the-lies",
    "histogram-for-replaced-rows", "none-for-small-groups",
)  # fmt: skip
"""Faults of the catalogue from every family that audits of a hundred thousand runs can cover."""
_VARIANTS = 17  # bugs whose correct versions are audited
# The best events are rare, so that audits with few runs are inconclusive.
_RARE, _MORE_RUNS = {"exponential", "gaussian-0.001", "exponential-without-two", "histogram-for-replaced-rows"}, 10_000
_SLOW = {"clipped-by-the-layer"}  # vector outputs
_FIXED = ("laplace",)
Case = Callable[[Any], Any]
"""Function that makes one audit with the fixture."""


def bugs() -> dict[str, Case]:
    """Return the twenty planted bugs by name."""
    known = {fault.name: fault for fault in entries()}
    return {name: _of_fault(known[name], "mechanism") for name in BUGS}


def right() -> dict[str, Case]:
    """Return thirty audits of true claims, most with equality, that cover every way to call the fixture."""
    cases: dict[str, Case] = {}
    for subject in subjects():
        pair = subject.mechanism, subject.x, subject.y
        more = {"runs": _MORE_RUNS} if subject.name in _RARE else {}
        cases[f"{subject.name}, sequential"] = _of_pair(*pair, claim=subject.claim, floating_point="ignore", **more)
        if subject.name in _FIXED:
            cases[f"{subject.name}, fixed size"] = _of_pair(
                *pair, claim=subject.claim, floating_point="ignore", sequential=False
            )
    variants = [fault for fault in entries() if fault.name in {*BUGS} - _SLOW - _RARE and fault.correct is not None]
    for fault in variants[:_VARIANTS]:
        cases[f"correct variant of {fault.name}"] = _of_fault(fault, "correct")
    laplace, geometric = LaplaceMechanism(1.0), GeometricMechanism(1.0)
    cases["laplace at half of its claim"] = _of_pair(
        LaplaceMechanism(0.5), 0.0, 1.0, claim=laplace.claim, floating_point="ignore"
    )
    cases["geometric at half of its claim"] = _of_pair(
        GeometricMechanism(0.5), 0, 1, claim=geometric.claim, floating_point="ignore"
    )
    cases["laplace, pair searched"] = _searched(laplace, [(0.0, 1.0), (1.0, 0.0)])
    cases["geometric, pair searched"] = _searched(geometric, [(0, 1), (1, 0)])
    cases["laplace, same distribution"] = _compared(laplace)
    return cases


def _of_pair(mechanism: Any, x: Any, y: Any, **options: Any) -> Case:
    return lambda dp_audit: dp_audit(mechanism, x, y, **options)


def _of_fault(fault: Fault, which: str) -> Case:
    return _of_pair(getattr(fault, which), fault.x, fault.y, **fault.options)


def _searched(mechanism: Any, pairs: list[Any]) -> Case:
    claim = mechanism.claim
    return lambda dp_audit: dp_audit(mechanism, neighbours=pairs, claim=claim, search_runs=800, floating_point="ignore")


def _compared(mechanism: Any) -> Case:
    return lambda dp_audit: dp_audit.check(check_equivalence, mechanism, mechanism, 0, floating_point="ignore")


_SESSION_RUNS, _BUG_RUNS, _BUG_SEEDS = 2_000, 100_000, 20
_QUICK_EVERY = 15  # quick sessions make every fifteenth of the audits

_FILE = """
import pytest
from dpaudit.experiments.benchmarks.regression import bugs, right

CASES = {which}()

@pytest.mark.parametrize("name", {names})
def test_audit(name, dp_audit):
    CASES[name](dp_audit)
"""


def _session(which: str, names: str, *options: str) -> tuple[int, list[Entry]]:
    """Run a session of pytest in this process; return its exit status and its audits."""
    import pytest

    from ...reports.pytest_plugin import plugin

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
        return int(status), list(load(results).entries)


def _sessions(effort: Effort, alpha: float, seeds: range) -> Counter[str]:
    """Return the counts of sessions over correct mechanisms, of failed sessions, and of audits by verdict."""
    counts: Counter[str] = Counter(sessions=len(seeds))
    for seed in seeds:
        options = (f"--dp-audit-alpha={alpha!r}", f"--dp-audit-seed={seed}", f"--dp-audit-runs={_SESSION_RUNS}")
        every = effort.either(_QUICK_EVERY, 1)
        status, found = _session("right", f"sorted(CASES)[::{every}]", *options, "--dp-audit-budget=0.9")
        counts["red"] += status != 0
        counts["refuted"] += sum(one.result.verdict is Verdict.REFUTED for one in found)
        counts["unclear"] += sum(one.result.verdict is Verdict.INCONCLUSIVE for one in found)
        counts["audits"] += len(found)
    return counts


def _session_cells(effort: Effort, counts: Counter[str], alpha: float) -> Figures:
    red, sessions = counts["red"], counts["sessions"]
    budget = alpha * counts["audits"] / sessions
    return {
        "alpha": alpha,
        "budget": budget,
        "sessions": sessions,
        "red": red,
        **share_of(red, sessions),
        "audits": counts["audits"],
        "refuted": counts["refuted"],
        "unclear": counts["unclear"],
    }, [certainly_at_most("the failure rate", red, sessions, min(budget, 1.0))]


def _bug(name: str, seed: int) -> tuple[bool, int, float]:
    """Return whether the test of a bug fails, the runs and the seconds."""
    options = (f"--dp-audit-seed={seed}", f"--dp-audit-runs={_BUG_RUNS}")
    status, (found,) = _session("bugs", repr([name]), *options)
    result: Any = found.result
    return status == 1 and result.is_refuted, result.runs, float(result.environment["seconds"])


def _bug_cells(effort: Effort, seeds: Seeds, name: str) -> Figures:
    found = list(spread(_bug, [(name, seed) for seed in seeds(effort.either(2, _BUG_SEEDS))], effort.jobs))
    failed = sum(fails for fails, _, _ in found) / len(found)
    return {
        "bug": name,
        "sessions": len(found),
        "failed": failed,
        "runs": statistics.median(runs for _, runs, _ in found),
        "seconds": statistics.median(seconds for _, _, seconds in found),
    }, [at_least("detection rate", failed, 1)]


_COUNTS = ("sessions", "red", "refuted", "unclear", "audits")
_ROWS = {f"{alpha:g}": (alpha,) for alpha in (1e-5, 0.01)}

TABLES = (
    Table(
        "sessions", 15, _ROWS, _session_cells, count=_sessions, counts=_COUNTS, audits=1_000, batch=10, quick=("1e-05",)
    ),
    Table("planted", 16, by_name(BUGS), _bug_cells, quick=("scale-epsilon",)),
)
