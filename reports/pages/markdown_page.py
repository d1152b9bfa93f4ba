"""A suite as Markdown for pull requests."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import replace

from ...audit.printing import counted, percent
from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry, ReplayTable, Suite
from ...audit.results.canary_result import CanaryResult
from ...audit.results.verdict import Verdict
from .. import plain_text as plain
from ..plain_text import KINDS, cautions, heading
from .audit_facts import about, by_severity, limits_of, repetition, what_to_do
from .terminal_tables import numbers_of

_MOST_NAMED = 5  # audits of one verdict in the summary
_MOST_WARNED = 20  # audits with one kind of caution

_COLUMNS = ("audit", "claim", "verdict", "bound", "exact value", "minimum detectable excess", "runs", "expectation")
_NUMERIC = ("bound", "exact value", "minimum detectable excess", "runs")
_OF_RUNS = (
    "Each audit tests one event, or one in each direction, on one pair of datasets; pilot runs, or earlier runs of a "
    "sequential audit, choose the events. "
)
_OF_STATEMENTS = (
    "A statement about numbers is refuted if an interval lies outside the stated range; its intervals hold together. "
)
_OF_CANARIES = (
    "An audit of a training run guesses which canaries were in the training data; independent coins decided that. The "
    "bound cannot exceed the *maximum attainable bound* of so many canaries. The minimum detectable excess supposes "
    "scores that reveal all that the claim allows. "
)
_CAVEATS = (
    "<sub>{of_runs}{of_canaries}A bound holds with probability {confidence}. *Not refuted* does not mean that the "
    "claim is true: only these {examined} were examined. The *minimum detectable excess* is the smallest amount "
    "above the claim that the audit detects with its power. {of_statements}Alpha is that of each audit: if "
    "every claim held, at most {false_alarms} false alarms would be expected among {audits}.</sub>"
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
    suite = replace(suite, entries=tuple(by_severity(suite.entries)))
    has_audits = bool(suite.entries) or not suite.checks
    counts = f"{audits}, {plain.tally(suite)}" if has_audits else counted(len(suite.checks), "other check")
    parts = [f"## {escaped(suite.title, 100)}: {counts}", escaped(about(suite))]
    if has_audits:
        parts.append(plain.expectations(suite) if suite.is_met else f"**{plain.expectations(suite)}**")
    parts.append("\n".join(_next_steps(suite, today)))
    parts += _warnings(suite)
    if comparisons:
        told = [(one.name, [*one.changes, *filter(None, [one.not_compared])]) for one in comparisons]
        parts += ["### Before and after", f"{numbers_of(comparisons)}."]
        parts += ["\n".join(f"- **{escaped(name, 80)}**: {'; '.join(map(_said, each))}" for name, each in told if each)]
    parts.append(_table(suite) if has_audits else "")
    sections = {
        "Accepted findings": [
            f"- **{escaped(entry.name, 80)}**: {_said(str(entry.accepted))} (status: {plain.acceptance(entry, today)})"
            for entry in suite.entries
            if entry.accepted is not None
        ],
        "Refuted, inconclusive or unexpected": [
            _detail(entry)
            for entry in suite.entries
            if entry.result.verdict is not Verdict.NOT_REFUTED or not entry.is_met
        ],
        "Other checks": [
            f"- **{escaped(check.name, 80)}** ({escaped(check.kind)}): "
            f"{_said('; '.join(filter(None, (plain.outcome(check), check.claim, check.found))))}"
            + (_replay(check.replay) if check.replay else "".join(f"\n  - {_said(line)}" for line in check.lines))
            + "".join(f"\n  - {_said(line)}" for line in plain.attack_lines(check))
            for check in suite.checks
        ],
        "Tested statements": [
            f"- **{escaped(topic.id, 80)}**: {_said(topic.statement)} ({escaped(plain.prose(topic.source))})"
            for topic in suite.topics
        ],
    }
    for title, lines in sections.items():
        parts += [f"### {title}", "\n".join(lines)] if lines else []
    limits = limits_of(suite)
    if limits.sentences:
        parts += ["### Limits for the whole page", "\n".join(f"- {sentence}" for sentence in limits.sentences)]
    confidence = " or ".join(percent(1 - alpha) for alpha in sorted({entry.result.alpha for entry in suite.entries}))
    alarms = plain.number(plain.false_alarms(suite))
    if not has_audits:
        return "\n\n".join(filter(None, parts)) + "\n"
    kinds = [isinstance(entry.result, CanaryResult) for entry in suite.entries]
    has_others = not all(kinds) or not kinds
    parts.append(
        _CAVEATS.format(
            of_runs=_OF_RUNS * has_others,
            of_statements=_OF_STATEMENTS * has_others,
            of_canaries=_OF_CANARIES * any(kinds),
            examined="pairs and events" if has_others else "canaries and scores",
            confidence=confidence or "1 − alpha",
            false_alarms=alarms,
            audits=audits,
        )
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def _next_steps(suite: Suite, today: datetime.date) -> list[str]:
    """A line for each verdict that occurs: how many, the most severe refuted claims, and what to do."""
    lines, counts, advice = [], plain.verdict_counts(suite), what_to_do(suite)
    for verdict in plain.READING_ORDER:
        own = [entry for entry in suite.entries if entry.result.verdict is verdict]
        named = [] if verdict is Verdict.NOT_REFUTED else own[:_MOST_NAMED]
        names = ", ".join(_named(each, today) for each in named)
        more = f" and {len(own) - len(named):,} more" if named and len(own) > len(named) else ""
        if own:
            heading = f"- **{plain.LOOKS[verdict].mark} {counts[verdict]:,} {verdict.value}**"
            lines.append(f"{heading}{': ' * bool(names)}{names}{more}. {advice[verdict]}")
    return lines


def _warnings(suite: Suite) -> list[str]:
    """A paragraph for each kind of caution, with the names of its audits."""
    read_with = [(entry.name, {one.kind for one in cautions(entry.result)}) for entry in suite.entries]
    found = []
    for kind in KINDS:
        names = [name for name, kinds in read_with if kind in kinds]
        more = f" and {len(names) - _MOST_WARNED:,} more" if len(names) > _MOST_WARNED else ""
        if names:
            named = ", ".join(escaped(name, 80) for name in names[:_MOST_WARNED])
            found.append(f"**Warning** {heading(kind, len(names))}: {named}{more}.")
    if missing := plain.missing(suite):
        named = ", ".join(escaped(name, 80) for name in missing)
        found.append(f"**Warning** {counted(len(missing), 'test')} planned an audit that did not finish: {named}.")
    return found


def _named(entry: Entry, today: datetime.date) -> str:
    """Name, severity and status of the acceptance of an audit."""
    status = plain.acceptance_note(entry, today)
    parts = (escaped(entry.name, 80), plain.severity_note(entry.result), f"({status})" * bool(status))
    return " ".join(filter(None, parts))


def _said(text: str) -> str:
    return escaped(plain.prose(text), 2_000)


def escaped(text: str, limit: int = 500) -> str:
    """Escape text for Markdown, so that it is literal in a table cell and in a paragraph."""
    safe = plain.visible(text, limit).replace("&", "&amp;").replace("<", "&lt;")
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
                escaped(result.claimed, 60),
                plain.marked(result.verdict),
                escaped(plain.found(result), 60),
                plain.exact_text(entry),
                plain.detectable_text(result),
                plain.size(result),
                plain.expectation(entry) if entry.is_met else f"**{plain.expectation(entry)}**",
            )
        )
    kept = [at for at in range(len(_COLUMNS)) if {row[at] for row in rows[1:]} != {"–"}]
    rule = tuple("--:" if name in _NUMERIC else "---" for name in _COLUMNS)
    return "\n".join(f"| {' | '.join(row[at] for at in kept)} |" for row in (rows[0], rule, *rows[1:]))


def _detail(entry: Entry) -> str:
    result = entry.result
    surprise = "" if entry.is_met or entry.expected is None else f" **Expected: {entry.expected.value}.**"
    sentence, remarks = plain.sentences(result)
    headline = f"- **{escaped(entry.name, 80)}**.{surprise} {escaped(sentence, 2_000)}"
    told = [("", escaped(remark, 2_000)) for remark in remarks]
    told += [(escaped(name), escaped(value, 2_000)) for name, value in plain.facts(result)]
    told += [("note", _said(entry.note))] if entry.note else []
    if attacks := plain.attack_lines(result):
        told.append(("guesses of the dataset from one output", escaped("; ".join(attacks), 2_000)))
    call = plain.visible(repetition(entry), 2_000)
    is_words = "`" in call or call.startswith("the same call")
    told.append(("repeat with", escaped(call, 2_000) if is_words else f"`{call}`"))  # to be pasted
    lines = (f"\n  - {name}{': ' * bool(name)}{text}" for name, text in told)
    return "".join([headline, *lines, *([] if entry.replay is None else [_replay(entry.replay)])])


def _replay(table: ReplayTable) -> str:
    """The lines with a finding, and the verdict of the replay."""
    found = "".join(f"\n    - {escaped(f'{row.place}: {row.finding}', 1_000)}" for row in table.rows if row.finding)
    return f"\n  - replay: {escaped(table.sentence, 1_000)}{found}"
