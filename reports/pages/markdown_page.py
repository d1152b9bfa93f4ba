"""A suite as Markdown for pull requests."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from ...audit.printing import percent
from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry, Suite
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.statement_result import StatementResult
from ..plain_text import (
    MARKS,
    acceptance,
    counted,
    detectable_text,
    exact_text,
    expectation,
    expectations,
    false_alarms,
    found,
    number,
    other_way,
    p_text,
    prose,
    sentences,
    stated,
    tally,
    visible,
)
from .comparison_table import numbers_of

_COLUMNS = ("audit", "claim", "verdict", "bound", "exact value", "detectable excess", "runs", "expectation")
_NUMERIC = ("bound", "exact value", "detectable excess", "runs")
_CAVEATS = (
    "<sub>Each audit tests one event on one pair of datasets; pilot runs, or earlier runs of a sequential audit, "
    "choose the event. A bound holds with probability {confidence}. *Not refuted* does not mean that the claim is "
    "true: only these pairs and events were examined. The *detectable excess* is the smallest amount above the claim "
    "that the audit detects with its power. A statement about numbers is refuted if an interval lies outside the "
    "stated range; its intervals hold together. Alpha is not corrected for the number of audits: if every claim "
    "held, at most {false_alarms} false alarms would be expected among {audits}.</sub>"
)


def markdown(suite: Suite, *, comparisons: Sequence[Comparison] = (), today: datetime.date | None = None) -> str:
    """Return the suite in Markdown: counts, changes, one table, and details of refuted or unexpected results.

    Names and notes appear literally; markup, links, mentions and HTML in them have no effect.

    Parameters
    ----------
    suite, comparisons, today
        As for `html`.
    """
    today = today or datetime.date.today()
    audits = counted(len(suite.entries), "audit")
    parts = [
        f"## {escaped(suite.title, 100)}: {audits}, {tally(suite)}",
        f"**{expectations(suite)}**",
        *_warnings(suite),
        *_comparison(comparisons),
        _table(suite),
    ]
    accepted = [entry for entry in suite.entries if entry.accepted is not None]
    if accepted:
        parts += ["### Accepted findings", "\n".join(_accepted(entry, today) for entry in accepted)]
    shown = [entry for entry in suite.entries if entry.result.verdict is not Verdict.NOT_REFUTED or not entry.is_met]
    if shown:
        parts += ["### Refuted, inconclusive or unexpected", "\n".join(_detail(entry) for entry in shown)]
    if suite.topics:
        topics = (
            f"- **{escaped(t.id, 80)}**: {escaped(prose(t.statement), 2_000)} ({escaped(prose(t.source))})"
            for t in suite.topics
        )
        parts += ["### Tested statements", "\n".join(topics)]
    confidence = " or ".join(percent(1 - alpha) for alpha in sorted({entry.result.alpha for entry in suite.entries}))
    alarms = number(false_alarms(suite))
    parts.append(_CAVEATS.format(confidence=confidence or "1 − alpha", false_alarms=alarms, audits=audits))
    return "\n\n".join(parts) + "\n"


def _warnings(suite: Suite) -> list[str]:
    """Names of audits whose low bits break the claim while the verdict covers values only."""
    named = [
        escaped(entry.name, 80)
        for entry in suite.entries
        if isinstance(entry.result, AuditResult) and entry.result.low_bits is not None
    ]
    what = "**Warning** Low bits of the outputs break the claim; the verdict covers values only"
    return [f"{what}: {', '.join(named)}."] if named else []


def _comparison(comparisons: Sequence[Comparison]) -> list[str]:
    """The changed audits, and the number of all audits."""
    if not comparisons:
        return []
    said = [(one.name, [*one.changes, *([one.not_compared] if one.not_compared else [])]) for one in comparisons]
    told = [
        f"- **{escaped(name, 80)}**: {'; '.join(escaped(prose(words), 2_000) for words in each)}"
        for name, each in said
        if each
    ]
    return ["### Before and after", f"{numbers_of(comparisons)}.", *(["\n".join(told)] if told else [])]


def _accepted(entry: Entry, today: datetime.date) -> str:
    words = escaped(prose(str(entry.accepted)), 2_000)
    return f"- **{escaped(entry.name, 80)}**: {words} (status: {acceptance(entry, today)})"


def escaped(text: str, limit: int = 500) -> str:
    """Escape text for Markdown, so that it is literal in a table cell and in a paragraph."""
    safe = visible(text, limit).replace("&", "&amp;").replace("<", "&lt;")
    safe = re.sub(r"([\\`*_{}\[\]|#~$!])", r"\\\1", safe)
    safe = re.sub(r"^(\s*)(>|=|[-+](?=[-+\s]|$)|\d+(?=[.)](?:\s|$)))", _guarded, safe)
    # An HTML comment in the middle prevents automatic links and mentions.
    return re.sub(r"(@|(?<=:)(?=//)|www(?=\.)|\\#(?=\d))", r"\1<!-- -->", safe)


def _guarded(match: re.Match[str]) -> str:
    """Escape a start of line that would open a list, quote or heading."""
    space, start = match.groups()
    return f"{space}{start}<!-- -->" if start[0].isdigit() else f"{space}\\{start}"


def _table(suite: Suite) -> str:
    """A row for each entry, without empty columns."""
    rows = [_COLUMNS]
    for entry in suite.entries:
        result = entry.result
        rows.append(
            (
                escaped(entry.name, 80),
                escaped(stated(result), 60),
                f"{MARKS[result.verdict]} {result.verdict.value}",
                escaped(found(result), 60),
                exact_text(entry),
                detectable_text(result),
                f"{result.runs:,}",
                expectation(entry) if entry.is_met else f"**{expectation(entry)}**",
            )
        )
    kept = [at for at in range(len(_COLUMNS)) if {row[at] for row in rows[1:]} != {"–"}]
    rule = tuple("--:" if name in _NUMERIC else "---" for name in _COLUMNS)
    return "\n".join(f"| {' | '.join(row[at] for at in kept)} |" for row in (rows[0], rule, *rows[1:]))


def _detail(entry: Entry) -> str:
    result = entry.result
    surprise = "" if entry.is_met else f" **Expectation {expectation(entry)}.**"
    note = f" {escaped(prose(entry.note), 2_000)}" if entry.note else ""
    sentence, remarks = sentences(result)
    headline = f"- **{escaped(entry.name, 80)}**.{surprise} {escaped(sentence, 2_000)}\n"
    headline += "".join(f"  - {escaped(remark, 2_000)}\n" for remark in remarks)
    if isinstance(result, StatementResult):
        return f"{headline}  - statement: {escaped(prose(result.statement), 2_000)}{note and ' –'}{note}"
    counts = result.counts
    return (
        f"{headline}"
        f"  - event: {escaped('; '.join(filter(None, (result.event_in_words, other_way(result)))))}\n"
        f"  - hits: {counts.hits_x:,} of {counts.runs_x:,} on x ({number(counts.hits_x / counts.runs_x)}), "
        f"{counts.hits_y:,} of {counts.runs_y:,} on y ({number(counts.hits_y / counts.runs_y)}); "
        f"p-value {p_text(result.p_value)}\n"
        f"  - pair: {escaped(result.pair.difference)} ({escaped(result.pair.adjacency)}).{note}"
    )
