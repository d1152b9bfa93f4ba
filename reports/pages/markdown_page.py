"""A suite as Markdown, short enough for a pull request."""

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
    exact,
    expectations,
    false_alarms,
    findable,
    found,
    number,
    other_way,
    p_text,
    prose,
    sentences,
    stated,
    verdict_counts,
    visible,
)
from .comparison_table import numbers_of

_COLUMNS = ("audit", "claim", "verdict", "bound", "exact", "detectable excess", "runs", "expected", "met")


def markdown(suite: Suite, *, comparisons: Sequence[Comparison] = (), today: datetime.date | None = None) -> str:
    """The suite in Markdown: counts, what has changed, one table, and the event and counts where not all is well.

    Names and notes come out as the characters they are: no markup, link, mention or HTML in them takes effect.

    Parameters
    ----------
    suite, comparisons, today
        As of `html`.
    """
    today = today or datetime.date.today()
    tally = ", ".join(f"{count:,} {verdict.value}" for verdict, count in verdict_counts(suite).items())
    n = len(suite.entries)
    parts = [
        f"## {escaped(suite.title, 100)}: {n:,} audit{'s' * (n != 1)}, {tally}",
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
        parts += ["### What was put to the test", "\n".join(topics)]
    confidence = " or ".join(percent(1 - alpha) for alpha in sorted({entry.result.alpha for entry in suite.entries}))
    parts.append(
        "<sub>Each audit tests one event, chosen on separate runs (a sequential one bets on events learned from "
        "earlier runs), on one pair of datasets; a bound holds with "
        f"probability {confidence or '1 − alpha'}. A claim that is not refuted is not "
        "shown to hold: only these pairs and events were looked at. *Excess findable* is how far above the claim the "
        "event would have had to reach to be found with the audit's power. A statement about numbers is refuted where "
        "one of its intervals, which hold together, lies outside what is stated. Nothing is corrected across audits: "
        f"if every claim held, up to {number(false_alarms(suite))} false alarms would be expected among these "
        f"{n:,}.</sub>"
    )
    return "\n\n".join(parts) + "\n"


def _warnings(suite: Suite) -> list[str]:
    """Whose low bits break the claim, although the verdict is about values."""
    named = [
        escaped(entry.name, 80)
        for entry in suite.entries
        if isinstance(entry.result, AuditResult) and entry.result.low_bits is not None
    ]
    what = "**Warning** Low bits of the outputs break the claim, although the verdict is about values"
    return [f"{what}: {', '.join(named)}."] if named else []


def _comparison(comparisons: Sequence[Comparison]) -> list[str]:
    """What has changed; the audits that have not are only counted."""
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
    return f"- **{escaped(entry.name, 80)}**: {words} (now: {acceptance(entry, today)})"


def escaped(text: str, limit: int = 500) -> str:
    """Text whose every character stands for itself in Markdown, in a table cell as well as in a paragraph."""
    safe = visible(text, limit).replace("&", "&amp;").replace("<", "&lt;")
    safe = re.sub(r"([\\`*_{}\[\]|#~$!])", r"\\\1", safe)
    safe = re.sub(r"^(\s*)(>|=|[-+](?=[-+\s]|$)|\d+(?=[.)](?:\s|$)))", _guarded, safe)
    # A comment in the middle keeps a forge from making links and mentions of what is left.
    return re.sub(r"(@|(?<=:)(?=//)|www(?=\.)|\\#(?=\d))", r"\1<!-- -->", safe)


def _guarded(match: re.Match[str]) -> str:
    """A start of line that would open a list or a heading, made harmless."""
    space, start = match.groups()
    return f"{space}{start}<!-- -->" if start[0].isdigit() else f"{space}\\{start}"


def _table(suite: Suite) -> str:
    """A row for each entry; columns in which no row has anything are left out."""
    rows = [_COLUMNS]
    for entry in suite.entries:
        result = entry.result
        rows.append(
            (
                escaped(entry.name, 80),
                escaped(stated(result), 60),
                f"{MARKS[result.verdict]} {result.verdict.value}",
                escaped(found(result), 60),
                number(exact(entry)),
                number(findable(result)),
                f"{result.runs:,}",
                "–" if entry.expected is None else entry.expected.value,
                "–" if entry.expected is None else "yes" if entry.is_met else "**no**",
            )
        )
    kept = [at for at in range(len(_COLUMNS)) if {row[at] for row in rows[1:]} != {"–"}]
    rule = tuple("--:" if name in ("bound", "exact", "detectable excess", "runs") else "---" for name in _COLUMNS)
    return "\n".join(f"| {' | '.join(row[at] for at in kept)} |" for row in (rows[0], rule, *rows[1:]))


def _detail(entry: Entry) -> str:
    result = entry.result
    surprise = (
        "" if entry.is_met or entry.expected is None else f" **Not as expected, which was: {entry.expected.value}.**"
    )
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
