"""Failure messages of audits: claim, bound, event, counts, pair, and the command that repeats the audit."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...audit.printing import percent
from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.canary_result import CanaryResult
from ...audit.results.worst_pair import WorstPair
from ...audit.search.candidates import show
from ..plain_text import canaries_in_words, found, other_way, printed_lines, prose, visible
from .session_settings import DEFAULTS, Settings

_REFUTED = "the claim is refuted on this pair: the privacy loss is larger than claimed"
_STOPPED = "the audit stopped there; with sequential=False it shows how large the loss is"
_REFUTED_TRAINING = "the claim is refuted: the training reveals more of its canaries than claimed"
_SICK = "the audit is inconclusive, so the test fails; see the failed health check above"
_FEW = "the audit is inconclusive, so the test fails; use more canaries, or several runs with new coins, or resolution="
_SHORT = "the audit is inconclusive, so the test fails; runs= and --dp-audit-runs are the most runs per dataset"


@dataclass(frozen=True, slots=True)
class Case:
    """An audit made by a test, with the options passed to `check` and the search that found the pair, if any."""

    test: str
    mechanism: Any
    x: Any
    y: Any
    options: Mapping[str, Any]
    search: WorstPair | None


def failure_message(entry: Entry, case: Case, settings: Settings, script: str | None) -> str:
    """Return the failure message of an audit that is refuted or inconclusive."""
    result = entry.result
    lines = printed_lines(result, 1_000)
    if isinstance(result, AuditResult):
        pair = result.pair
        contents = f"x = {show(case.x)}, y = {show(case.y)}: " if case.options.get("keep_datasets") else ""
        lines += [
            f"  mechanism  {visible(result.mechanism, 100)}",
            f"  claim      {visible(str(result.claim), 100)}, {pair.adjacency}, distance {pair.distance:g}",
            *([] if result.findings else [f"  bound      {found(result)}, confidence {percent(1 - result.alpha)}"]),
            f"  event      {visible(result.event_in_words)}",
            *([f"             {other}"] if (other := visible(other_way(result))) and result.opposite else []),
            f"  counts     {result.tested}",
            *([f"             {other}"] if other and not result.opposite else []),
            f"  pair       {visible(contents)}{visible(pair.difference)}",
        ]
        if case.search is not None:
            label = f": {case.search.ranking[0].label}" if contents else ""
            lines.append(f"  search     of {len(case.search.ranking):,} pairs{visible(label, 100)}")
        if result.verdict is not Verdict.NOT_REFUTED:
            lines.append(f"  meaning    {_REFUTED if result.is_refuted else _SICK if result.findings else _SHORT}")
        if result.has_stopped_early:
            lines.append(f"             {_STOPPED}")
    elif isinstance(result, CanaryResult):
        lines += [
            f"  training   {visible(result.mechanism, 100)}",
            f"  claim      {visible(str(result.claim), 100)}, {result.adjacency}",
            f"  bound      {found(result)}, confidence {percent(1 - result.alpha)}",
            f"  canaries   {canaries_in_words(result)}",
            f"  guesses    {result.guesses_in_words}",
        ]
        if result.verdict is not Verdict.NOT_REFUTED:
            lines.append(f"  meaning    {_REFUTED_TRAINING if result.is_refuted else _FEW}")
    else:
        lines.append(f"  statement  {prose(result.statement)}")
    if result.is_refuted:
        lines.append(f"  alpha      {result.alpha:g}, the largest probability of refuting a true claim")
    lines.append(f"  seed       {result.seed}")
    lines.append(f"  repeat     {repetition(case, settings)}")
    if isinstance(result, AuditResult) and not result.is_replayable:
        lines.append(f"             (not replayable: {result.why_not_replayable})")
    if entry.accepted is not None:
        lines.append(
            f"  acceptance {prose(entry.acceptance_in_words(datetime.date.today())).removeprefix('acceptance ')}"
        )
    if script is not None:
        lines.append(f"  script     {script}")
    elif isinstance(result, AuditResult) and result.is_refuted:
        lines.append("  script     --dp-audit-scripts=DIR writes a script that shows the violation with numpy alone")
    return "\n".join(lines)


def change_message(change: Comparison, baseline: str) -> str:
    """Return the failure message of an audit that differs from its baseline or cannot be compared."""
    not_compared = [change.not_compared] if change.not_compared else []
    said = [*change.changes, *not_compared, *(f"note: {note}" for note in change.notes)]
    return "\n".join(
        [
            f"{'CHANGED since' if change.has_changed else 'NOT COMPARED with'} baseline {baseline}: {change.name}",
            *(f"  {visible(each, 400)}" for each in said),
            f"  If this is intended, save the baseline again: --dp-audit-save={baseline}",
        ]
    )


def repetition(case: Case, settings: Settings) -> str:
    """Return the command line that repeats the audit."""
    options = [
        f"--dp-audit-{name}={getattr(settings, name)!r}"
        for name, usual in DEFAULTS.items()
        if name != "budget" and getattr(settings, name) != usual
    ]
    return " ".join([f"pytest {shlex.quote(case.test)}", *options])
