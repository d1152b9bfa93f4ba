"""Coverage of a suite: every public callable with what became of it, and a reason for each that was not audited."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...reports.pages.html_page import CellStyle, PageCell, PageTable
from ...reports.plain_text import visible
from .audited_library import Plan
from .run_plan import BITS, SuiteRun


class Status(enum.Enum):
    """What became of a public callable."""

    AUDITED = "audited"
    REFUTED = "refuted"
    REFUTED_BY_BITS = "refuted by a floating-point leak only"
    NOT_CONFIRMED = "refuted once, not confirmed"
    INCONCLUSIVE = "inconclusive"
    PLANNED = "planned"
    SAME = "audited as another callable"
    NOT_REACHED = "not reached in the time"
    FAILED = "could not be audited"
    NOT_COVERED = "not covered"


AUDITED = (Status.AUDITED, Status.REFUTED, Status.REFUTED_BY_BITS, Status.NOT_CONFIRMED, Status.INCONCLUSIVE)
"""Statuses of callables with audits of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Coverage of one callable: its configurations, why some were not audited, and known causes of the refuted ones."""

    callable: str
    status: Status
    targets: int = 0
    audited: int = 0
    reasons: tuple[str, ...] = ()
    known: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of a whole library, in the order of the names."""

    lines: tuple[Line, ...]

    def count(self, *statuses: Status) -> int:
        """Return the number of callables with one of the statuses."""
        return sum(line.status in statuses for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the lines as JSON values."""
        counts = {status.value: self.count(status) for status in Status if self.count(status)}
        lines = [
            {
                "callable": line.callable,
                "status": line.status.value,
                "points": line.targets,
                "configurations audited": line.audited,
                "reasons": list(line.reasons),
                "known": line.known,
            }
            for line in self.lines
        ]
        return {"public callables": len(self.lines), "counts": counts, "callables": lines}


def coverage_of_plan(plan: Plan) -> Coverage:
    """Return the coverage that a plan intends."""
    points = Counter(target.callable for target in plan.targets)
    planned = [Line(callable=name, status=Status.PLANNED, targets=count) for name, count in points.items()]
    return _sorted([*planned, *_excluded(plan, set(points))])


def coverage_of_run(run: SuiteRun) -> Coverage:
    """Return the coverage that a suite reached."""
    outcomes = {outcome.name: outcome for outcome in run.outcomes}
    lines = []
    for name in dict.fromkeys(target.callable for target in run.plan.targets):
        targets = [target for target in run.plan.targets if target.callable == name]
        found = [outcomes[target.name] for target in targets if target.name in outcomes]
        done = [outcome for outcome in found if outcome.entries]
        failed = [outcome for outcome in found if outcome.failure]
        missing = len(targets) - len(found)
        reasons = [f"{outcome.name.partition(': ')[2]}: {outcome.failure}" for outcome in failed]
        if missing:
            reasons.append(f"{missing} of {len(targets)} configurations not reached in the time")
        by_values = {each.name for each in done if each.is_refuted_by_values}
        by_bits = {each.name for each in done if each.is_refuted_by_bits_only}
        statuses: dict[Status, object] = {  # the first that applies
            Status.REFUTED: by_values,
            Status.REFUTED_BY_BITS: by_bits,
            Status.NOT_CONFIRMED: any(outcome.unconfirmed for outcome in done),
            Status.INCONCLUSIVE: any(outcome.is_inconclusive for outcome in done),
            Status.AUDITED: done,
            Status.FAILED: failed,
            Status.NOT_REACHED: True,
        }
        known = dict.fromkeys(
            [target.known for target in targets if target.name in by_values]
            + [target.known_bits for target in targets if target.name in by_bits]
        )
        lines.append(
            Line(
                callable=name,
                status=next(status for status, applies in statuses.items() if applies),
                targets=len(targets),
                audited=len(done),
                reasons=tuple(reasons),
                known="; ".join(filter(None, known)),
            )
        )
    audited = {line.callable for line in lines if line.audited}
    return _sorted([*lines, *_excluded(run.plan, audited)])


def _excluded(plan: Plan, audited: set[str]) -> list[Line]:
    """Return the callables without targets; one that calls another has its status only if that one is audited."""
    return [
        Line(
            callable=each.callable,
            status=Status.SAME if each.same_as in audited else Status.NOT_COVERED,
            reasons=(each.reason if not each.same_as or each.same_as in audited else f"{each.reason}, not audited",),
        )
        for each in plan.excluded
    ]


def _sorted(lines: Iterable[Line]) -> Coverage:
    return Coverage(tuple(sorted(lines, key=lambda line: line.callable)))


# The plan, the outcome and the coverage of a suite as text and as Markdown.


def plan_text(plan: Plan, *, points: bool = True) -> str:
    """Return the numbers of a plan, and its targets in the order of their audits."""
    callables = len({target.callable for target in plan.targets})
    kinds = "by values and by floating-point leaks" if plan.with_bits else "by values"
    lines = [
        f"{plan.release}: {len(plan.targets)} configurations of {callables} callables, {plan.audits} audits ({kinds})",
        f"alpha {plan.alpha:g} for the suite, {plan.share:.3g} for each audit",
    ]
    return "\n".join([*lines, *(f"  {target.name}" for target in plan.targets if points)])


def outcome_text(run: SuiteRun) -> str:
    """Return the refuted configurations and the doubts, each on a line, and the numbers of configurations."""
    known = {target.name: target for target in run.plan.targets}
    lines, new = [], 0
    for outcome in run.outcomes:
        for entry in outcome.entries:
            if entry.result.is_refuted:
                target = known[outcome.name]
                defect = target.known_bits if entry.name.endswith(BITS) else target.known
                new += not defect
                lines.append(f"  {entry.name}: {entry.result.sentence}{f' (known: {defect})' if defect else ' (new)'}")
        lines += [f"  not confirmed: {visible(doubt, 1_000)}" for doubt in outcome.unconfirmed]
    by_values = sum(outcome.is_refuted_by_values for outcome in run.outcomes)
    by_bits = sum(outcome.is_refuted_by_bits_only for outcome in run.outcomes)
    audited = sum(bool(outcome.entries) for outcome in run.outcomes)
    failed = sum(bool(outcome.failure) for outcome in run.outcomes)
    numbers = (
        f"{audited} of {len(run.plan.targets)} configurations audited: {by_values} refuted by values, {by_bits} by a "
        f"floating-point leak only; {failed} could not be audited, {len(run.not_reached)} not reached"
    )
    confirmed = f"{by_values + by_bits} refuted and confirmed on fresh runs, {new} of them new:" if lines else ""
    return "\n".join(filter(None, [numbers, confirmed, *lines]))


def coverage_text(coverage: Coverage) -> str:
    """Return the counts of the statuses, and a line for each callable that is not audited or only in part."""
    lines = [
        f"  {line.callable}: {line.status.value}{_because(line)}"
        for line in coverage.lines
        if line.status not in (Status.SAME, Status.PLANNED) and (line.status not in AUDITED or line.reasons)
    ]
    return "\n".join([f"coverage: {counts_text(coverage)}", *lines])


def coverage_markdown(coverage: Coverage, release: str) -> str:
    """Return a page with the counts and a table of all callables."""
    rows = [
        f"| `{line.callable}` | {line.status.value} | {_points(line)} | {_cell(_said(line))} |"
        for line in coverage.lines
    ]
    head = ["| callable | status | configurations audited | remarks |", "|---|---|--:|---|"]
    return "\n".join([f"# Coverage of {release}", "", f"{counts_text(coverage).capitalize()}.", "", *head, *rows, ""])


def coverage_table(coverage: Coverage) -> PageTable:
    """Return a report's section: refuted callables first, those without audits next; callers of others are counted."""
    order = list(_STYLES)
    shown = [line for line in coverage.lines if line.status is not Status.SAME]
    return PageTable(
        id="coverage",
        title="Coverage",
        caption=f"{counts_text(coverage)}.",
        columns=("Callable", "Status", "Points audited", "Remarks"),
        rows=tuple(
            (line.callable, PageCell(line.status.value, _STYLES[line.status]), _points(line), _said(line))
            for line in sorted(shown, key=lambda line: order.index(line.status))
        ),
    )


_STYLES: dict[Status, CellStyle] = {
    Status.REFUTED: "refuted",
    Status.REFUTED_BY_BITS: "refuted",
    Status.NOT_CONFIRMED: "inconclusive",
    Status.INCONCLUSIVE: "inconclusive",
    Status.FAILED: "inconclusive",
    Status.NOT_REACHED: "inconclusive",
    Status.NOT_COVERED: "soft",
    Status.PLANNED: "",
    Status.AUDITED: "",
    Status.SAME: "",
}


def counts_text(coverage: Coverage) -> str:
    """Return the number of public callables, and of those with each status."""
    counts = [f"{coverage.count(status)} {status.value}" for status in Status if coverage.count(status)]
    return f"{len(coverage.lines)} public callables: {', '.join(counts)}"


def _because(line: Line) -> str:
    return f" ({visible('; '.join(line.reasons), 300)})" if line.reasons else ""


def _points(line: Line) -> str:
    return f"{line.audited} of {line.targets}" if line.targets else ""


def _said(line: Line) -> str:
    return "; ".join([*([f"known: {line.known}"] if line.known else []), *line.reasons])


def _cell(text: str) -> str:
    return visible(text, 1_000).replace("|", "\\|").replace("<", "&lt;")
