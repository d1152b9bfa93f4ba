"""The benchmark of verdicts: experiments over many seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ..audit.statements import StatementResult
from ..audit.verdicts import AuditResult, Verdict
from ..reports.terminal import number
from .bench import Table, machine
from .experiment import Case, Experiment


def over_seeds(
    experiments: Sequence[Experiment], seeds: int, runs: int | None, alpha: float, jobs: int | None
) -> tuple[Table, bool]:
    """Every case over seeds 0, 1, …, a row each; and whether every verdict was the expected one."""
    rows, all_met, spent = [], True, 0.0
    for experiment in experiments:
        for case in experiment.cases:
            size = case.runs if runs is None else runs
            results = [case.run(runs=size, alpha=alpha, seed=seed, jobs=jobs, progress=None) for seed in range(seeds)]
            met = sum(result.verdict is case.expected for result in results)
            all_met = all_met and met == seeds
            seconds = statistics.median(result.environment["seconds"] for result in results)
            spent += seconds
            rows.append(_row(experiment, case, results, met, size, seconds))
    method = (
        f"Alpha {alpha:g} for each case, seeds 0 to {seeds - 1}; runs are on each dataset, seconds a median. A true "
        "version is not to be refuted, a false one is. Least, median and largest are of lower bounds for audits, of "
        "the estimate (of the number nearest to the edge of what is stated) for statements. All cases together take "
        f"{spent:.0f} s a seed. {machine()}"
    )
    header = (
        "id", "case", "version", "claim or statement", "exact", "least", "median", "largest", "as expected", "runs",
        "seconds",
    )  # fmt: skip
    return Table("Experiments over many seeds", method, header, tuple(rows)), all_met


def _row(
    experiment: Experiment,
    case: Case,
    results: Sequence[AuditResult | StatementResult],
    met: int,
    runs: int,
    seconds: float,
) -> tuple[str, ...]:
    shown = [result.bound if isinstance(result, AuditResult) else result.worst.estimate for result in results]
    first = results[0]
    named = f"{first.claim}, {first.claim.strength_name}" if isinstance(first, AuditResult) else case.claimed
    return (
        experiment.id,
        case.name,
        "false" if case.expected is Verdict.REFUTED else "true",
        named,
        number(case.exact),
        number(min(shown)),
        number(statistics.median(shown)),
        number(max(shown)),
        f"{met} of {len(results)}",
        f"{runs:,}",
        f"{seconds:.2f}",
    )
