"""Verdicts of the experiments over many seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.statement_result import StatementResult
from ...reports.plain_text import found, number
from ..cases.experiment import Case, Experiment
from .core.audit_cost import Table, machine


@dataclass(frozen=True, slots=True)
class _Row:
    """Case with its results over the seeds."""

    case: Case
    results: tuple[AuditResult | StatementResult, ...]

    @property
    def n_met(self) -> int:
        return sum(result.verdict is self.case.expected for result in self.results)

    @property
    def seconds(self) -> float:
        return float(statistics.median(result.environment["seconds"] for result in self.results))


def over_seeds(
    experiments: Sequence[Experiment], seeds: int, runs: int | None, alpha: float, jobs: int | None
) -> tuple[tuple[Table, Table], bool]:
    """Run every case with seeds 0, 1, …; return tables by experiment and case, and whether all verdicts are right."""
    done = [
        (experiment, [_measured(case, seeds, runs, alpha, jobs) for case in experiment.cases])
        for experiment in experiments
    ]
    rows = [row for _, measured in done for row in measured]
    method = (
        f"Alpha {alpha:g} for each case, seeds 0 to {seeds - 1}. False versions must be refuted, true versions must "
        f"not. All cases take {sum(row.seconds for row in rows):.0f} s for each seed. {machine()}"
    )
    return (_by_experiment(done, method), _by_case(done)), all(row.n_met == seeds for row in rows)


def _measured(case: Case, seeds: int, runs: int | None, alpha: float, jobs: int | None) -> _Row:
    size = case.runs if runs is None else runs
    results = (case.run(runs=size, alpha=alpha, seed=seed, jobs=jobs, progress=None) for seed in range(seeds))
    return _Row(case, tuple(results))


def _by_experiment(done: Sequence[tuple[Experiment, list[_Row]]], method: str) -> Table:
    header = ("id", "statement", "true versions", "false versions", "runs", "seconds")
    rows = []
    for experiment, measured in done:
        sides = [
            _side([row for row in measured if row.case.expected is verdict])
            for verdict in (Verdict.NOT_REFUTED, Verdict.REFUTED)
        ]
        runs = sum(row.results[0].runs for row in measured)
        spent = sum(row.seconds for row in measured)
        rows.append((experiment.id, experiment.statement, *sides, f"{runs:,}", f"{spent:.2f}"))
    about = (
        f"{method} The number of expected verdicts is followed by the result of the first version with seed 0. Runs on "
        "each dataset are totals over the cases."
    )
    return Table("Experiments", about, header, tuple(rows))


def _side(rows: Sequence[_Row]) -> str:
    """Return the number of expected verdicts and the result of the first version."""
    if not rows:
        return "–"
    first = rows[0].results[0]
    met, total = sum(row.n_met for row in rows), sum(len(row.results) for row in rows)
    stated = f"claimed {number(first.claim.strength)}" if isinstance(first, AuditResult) else first.worst.allowed
    return f"{met} of {total} {rows[0].case.expected.value}; {found(first)}, {stated}"


def _by_case(done: Sequence[tuple[Experiment, list[_Row]]]) -> Table:
    header = (
        "case", "version", "claim or statement", "exact", "minimum", "median", "maximum", "expected verdicts", "runs",
        "seconds",
    )  # fmt: skip
    about = (
        "Minimum, median and maximum are of lower bounds for audits, and of estimates for statements (of the number "
        "nearest to the limit of the statement). Seconds are medians."
    )
    return Table("Cases", about, header, tuple(_case_cells(row) for _, measured in done for row in measured))


def _case_cells(row: _Row) -> tuple[str, ...]:
    case, first = row.case, row.results[0]
    exact = None if isinstance(first, StatementResult) and len(first.points) > 1 else case.exact
    shown = [result.bound if isinstance(result, AuditResult) else result.worst.estimate for result in row.results]
    return (
        case.name,
        "false" if case.expected is Verdict.REFUTED else "true",
        f"{first.claim}, {first.claim.strength_name}" if isinstance(first, AuditResult) else case.claimed,
        number(exact),
        number(min(shown)),
        number(statistics.median(shown)),
        number(max(shown)),
        f"{row.n_met} of {len(row.results)}",
        f"{first.runs:,}",
        f"{row.seconds:.2f}",
    )
