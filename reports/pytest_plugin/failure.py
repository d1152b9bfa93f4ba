"""What a test that fails says: the claim, the bound, the event, the counts, the pair, and how to see it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...audit.printing import percent, rounded_down
from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.search.candidates import show
from ...audit.search.find_worst_pair import WorstPair
from ..plain_text import number, other_way, prose, visible
from .session import DEFAULTS, Settings

_REFUTED = "the claim does not hold on this pair: more is lost than was claimed"
_SICK = "the runs decide nothing, so the test must not pass: see the health check above"
_SHORT = (
    "the runs decide nothing, so the test must not pass: use more of them (runs=, --dp-audit-runs), or ask for less "
    "(resolution=)"
)


def _meaning(result: AuditResult) -> str:
    if result.verdict is Verdict.INCONCLUSIVE:
        return _SICK if result.findings else _SHORT
    return _REFUTED if result.is_refuted else ""


@dataclass(frozen=True, slots=True)
class Case:
    """An audit as a test made it.

    Attributes
    ----------
    label, test : str
        Names of the audit and of the test.
    mechanism, x, y : Any
    options : mapping
        As `check` was given them.
    search : WorstPair, optional
        Where the pair comes from.
    """

    label: str
    test: str
    mechanism: Any
    x: Any
    y: Any
    options: Mapping[str, Any]
    search: WorstPair | None


def failure_message(entry: Entry, case: Case, settings: Settings, script: str | None) -> str:
    """A few lines for whoever maintains the mechanism."""
    result = entry.result
    lines = [visible(line, 1_000) for line in str(result).splitlines()]
    if isinstance(result, AuditResult):
        pair, least = result.pair, f"{result.claim.strength_name} >= {number(rounded_down(result.bound))}"
        contents = "" if case.x is None and case.y is None else f"x = {show(case.x)}, y = {show(case.y)}: "
        lines += [
            f"  mechanism  {visible(result.mechanism, 100)}",
            f"  claim      {visible(str(result.claim), 100)}, {pair.adjacency}, distance {pair.distance:g}",
            f"  bound      {least}, confidence {percent(1 - result.alpha)}",
            f"  event      {visible(result.event_in_words)}",
            f"  counts     {result.counts}",
            *([f"             {other}"] if (other := other_way(result)) else []),
            f"  pair       {visible(contents)}{visible(pair.difference)}",
        ]
        if case.search is not None:
            lines.append(
                f"  found by   {visible(case.search.ranking[0].label, 100)}, of {len(case.search.ranking):,} pairs"
            )
        lines.append(f"  meaning    {_meaning(result)}")
    else:
        lines.append(f"  statement  {prose(result.statement)}")
    if result.is_refuted:
        lines.append(
            f"  error      a mechanism that keeps its claim fails so with probability {result.alpha:g} at most"
        )
    lines.append(f"  seed       {result.seed}")
    lines.append(f"  repeat     {repetition(case, settings)}")
    if isinstance(result, AuditResult) and not result.is_replayable:
        lines.append("             (other draws each time: the mechanism has randomness of its own)")
    if entry.accepted is not None:
        lines.append(f"  accepted   the finding was {entry.accepted}; that does not cover it")
    if script is not None:
        lines.append(f"  alone      {script}")
    elif isinstance(result, AuditResult) and result.is_refuted:
        lines.append("  alone      --dp-audit-scripts=DIR writes a script that shows it with numpy only")
    return "\n".join(lines)


def change_message(found: Comparison, baseline: str) -> str:
    """What has changed since a baseline was saved."""
    return "\n".join(
        [
            f"{'CHANGED since' if found.has_changed else 'NOT COMPARED with'} baseline {baseline}: {found.name}",
            *(f"  {visible(change, 400)}" for change in found.changes),
            *([f"  {visible(found.not_compared, 400)}"] if found.not_compared else []),
            *(f"  note: {visible(note, 400)}" for note in found.notes),
            f"  If this is as it should be, save it anew: --dp-audit-save={baseline}",
        ]
    )


def repetition(case: Case, settings: Settings) -> str:
    """The command line that makes the same audit again."""
    options = [
        f"--dp-audit-{name}={getattr(settings, name)!r}"
        for name, usual in DEFAULTS.items()
        if name != "budget" and getattr(settings, name) != usual
    ]
    return " ".join([f"pytest {shlex.quote(case.test)}", *options])
