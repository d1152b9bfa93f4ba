"""Regression testing: the share of pytest sessions over correct mechanisms that fail."""

from __future__ import annotations

import contextlib
import hashlib
import os
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
from .inference import subjects
from .measure import Effort, Figures, Table, certainly_at_most, share_of

_CORRECTED = {
    "sensitivity-understated", "replace-half-sensitivity", "scale-epsilon", "deviation-as-scale", "best-of-draws",
    "noise-one-sided", "redrawn-until-nonnegative", "seed-from-the-data", "ratio-squared", "clamped-to-the-rows",
    "variance-as-deviation", "domain-not-clipped", "rho-for-epsilon", "noisy-max-without-two",
    "sparse-vector-no-query-noise", "truth-among-the-lies", "none-for-small-groups",
}  # fmt: skip
"""Bugs of the catalogue, from every family, whose correct variants are audited."""
_RUNS, _MORE_RUNS = 2_000, 10_000
_RARE = {"exponential", "gaussian-0.001"}  # best events that are rare, so that fewer runs would be inconclusive
_QUICK_EVERY = 15  # quick sessions make every fifteenth of the audits
Case = Callable[[Any], Any]
"""Function that makes one audit with the fixture."""


def right() -> dict[str, Case]:
    """Return thirty audits of true claims, most with equality, that cover every way to call the fixture."""
    cases: dict[str, Case] = {}
    for subject in subjects():
        more = {"runs": _MORE_RUNS} if subject.name in _RARE else {}
        cases[f"{subject.name}, sequential"] = _of_pair(
            subject.mechanism, subject.x, subject.y, claim=subject.claim, floating_point="ignore", **more
        )
    for fault in entries():
        if fault.name in _CORRECTED:
            cases[f"correct variant of {fault.name}"] = _of_pair(fault.correct, fault.x, fault.y, **fault.options)
    for name, kind, pair in (("laplace", LaplaceMechanism, (0.0, 1.0)), ("geometric", GeometricMechanism, (0, 1))):
        options: dict[str, Any] = {"claim": kind(1.0).claim, "floating_point": "ignore"}
        searched = {"neighbours": [pair, pair[::-1]], "search_runs": 800}
        cases[f"{name} at half of its claim"] = _of_pair(kind(0.5), *pair, **options)
        cases[f"{name}, pair searched"] = _of_pair(kind(1.0), **searched, **options)
    laplace = LaplaceMechanism(1.0)
    cases["laplace, fixed size"] = _of_pair(
        laplace, 0.0, 1.0, claim=laplace.claim, floating_point="ignore", sequential=False
    )
    cases["laplace, same distribution"] = lambda dp_audit: dp_audit.check(
        check_equivalence, laplace, laplace, 0, floating_point="ignore"
    )
    return cases


def _of_pair(*arguments: Any, **options: Any) -> Case:
    return lambda dp_audit: dp_audit(*arguments, **options)


_FILE = """
import pytest
from dpaudit.experiments.benchmarks import regression

CASES = regression.right()

@pytest.mark.parametrize("name", {names})
def test_audit(name, dp_audit):
    CASES[name](dp_audit)
"""


def _session(names: str, *options: str) -> tuple[int, list[Entry]]:
    """Run a session of pytest in this process; return its exit status and its audits."""
    import pytest

    from ...reports.pytest_plugin import plugin

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(StringIO()):
        text = _FILE.format(names=names)
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
        options = (f"--dp-audit-alpha={alpha!r}", f"--dp-audit-seed={seed}", f"--dp-audit-runs={_RUNS}")
        every = effort.either(_QUICK_EVERY, 1)
        status, found = _session(f"sorted(CASES)[::{every}]", *options, "--dp-audit-budget=0.9")
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
        **{name: counts[name] for name in _COUNTS},
        **share_of(red, sessions),
    }, [certainly_at_most("the failure rate", red, sessions, min(budget, 1.0))]


_COUNTS = ("sessions", "red", "refuted", "unclear", "audits")
_ROWS = {f"{alpha:g}": (alpha,) for alpha in (1e-5, 0.01)}

TABLES = (
    Table(
        "sessions", 15, _ROWS, _session_cells, count=_sessions, counts=_COUNTS, audits=1_000, batch=10, quick=("1e-05",)
    ),
)
