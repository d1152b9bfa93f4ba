"""Table of audits at the end of a test session."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from ...audit.records.suite import Entry, seconds
from ...audit.results.audit_result import AuditResult, Verdict
from ..plain_text import MARKS, acceptance_note, detectable_text, found, number, prose, size, stated, visible

_HEADINGS = ("audit", "claim", "bound", "detectable excess", "runs", "seconds", "verdict")
_WIDEST = 60


def table_lines(entries: Sequence[Entry]) -> list[str]:
    """A line for each audit; inconclusive and refuted audits come last, next to the end of the output."""
    late = (Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE, Verdict.REFUTED)
    ordered = sorted(entries, key=lambda entry: (late.index(entry.result.verdict), entry.name))
    rows = [_HEADINGS, *map(_row, ordered)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def remarks(entries: Sequence[Entry]) -> list[str]:
    """Warnings about low bits, notes, and acceptances that can be withdrawn, which concern tests that pass too."""
    said = []
    for entry in entries:
        result = entry.result
        if isinstance(result, AuditResult) and result.pair.doubt:
            said.append(f"WARNING {_short(entry.name)}: {result.pair.doubt}")
        if isinstance(result, AuditResult) and result.low_bits is not None:
            said.append(f"WARNING {_short(entry.name)}: {visible(str(result.low_bits), 300)}")
        said += [f"note {_short(entry.name)}: {visible(note, 200)}" for note in result.notes]
        if entry.accepted is not None and result.verdict is Verdict.NOT_REFUTED:
            said.append(
                f"note {_short(entry.name)}: no longer refuted, so the acceptance can be withdrawn (accepted= in the "
                f"marker, and in the file of a baseline): {prose(str(entry.accepted))}"
            )
    return said


def _short(name: str) -> str:
    name = visible(name)
    return name if len(name) <= _WIDEST else "…" + name[1 - _WIDEST :]


def _row(entry: Entry) -> tuple[str, ...]:
    result = entry.result
    return (
        _short(entry.name),
        visible(stated(result), 40),
        found(result),
        "–" if result.is_refuted else detectable_text(result),
        size(result),
        number(seconds(result)),
        f"{MARKS[result.verdict]} {result.verdict.value}{_acceptance(entry)}",
    )


def _acceptance(entry: Entry) -> str:
    """The acceptance of a refutation, or why it does not cover it; or that the verdict was expected."""
    today = datetime.date.today()
    if entry.expected is not None:
        return ", as expected" if entry.is_met else f", expected: {entry.expected.value}"
    if entry.accepted is None or not entry.result.is_refuted:
        return ""
    return f", {prose(str(entry.accepted)) if entry.is_excused(today) else acceptance_note(entry, today)}"
