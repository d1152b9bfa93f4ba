"""Comparison of two records of the same audits: changes beyond sampling error.

Bounds vary with the chosen event and the random draws, so they are not compared. Instead, the recorded event is counted
again in new runs, and an exact test decides whether its probabilities have changed. The test needs independent runs, so
counts from the same random numbers get no p-value.

Proof: docs/proofs/multiplicity.md
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from ..health.findings import OF_RUNS
from ..inference.dependence import change_pvalue
from ..inference.event_test import check_alpha
from ..inference.multiplicity import holm
from ..results.audit_result import AuditResult
from ..results.canary_result import CanaryResult
from ..results.statement_result import StatementResult
from ..results.verdict import Verdict
from .json_codec import told_apart
from .suite import Checked, Entry, Recount, SideCheck, Suite

ANOTHER_PAIR = "the search found another pair of datasets, so counts are not compared"
"""Why the counts of two searches are not compared; not a failure, because each audit is valid for its pair."""

_DEPENDENT = "runs were not independent (a health check failed), so counts are not compared"
_NEW = "new: it was not recorded before"
_FEWER = 0.99  # of the runs before
_NO_CHECK = "the check is missing; if the current file is a baseline of pytest, which holds audits alone, use a report"
_FOUND = ("EXCESS", "DIFFERENT", "REFUTED")  # verdicts of other checks that say that something is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An audit, or another check, before and after."""

    name: str
    before: Entry | SideCheck | None  # None if it is missing
    after: Entry | SideCheck | None
    changes: tuple[str, ...] = ()  # changes for the worse or in need of attention
    notes: tuple[str, ...] = ()  # other remarks
    # P-value of "the event's probabilities and the forms of the outputs are unchanged", adjusted for the number of
    # tests; None without counts of independent runs.
    pvalue: float | None = None
    not_compared: str | None = None  # why the counts of both audits could not be compared, and the remedy

    @property
    def has_changed(self) -> bool:
        return bool(self.changes)


def compare(
    before: Suite, after: Suite, *, alpha: float = 1e-5, today: datetime.date | None = None
) -> tuple[Comparison, ...]:
    """Compare every audit of two records, and then every other check; those of the first record come first.

    Counts of an unchanged mechanism are called different with probability at most `alpha`. Different counts from one
    random stream have no p-value; they are listed as a change with a remedy. Settings and verdicts are compared
    exactly, and acceptances on the given day. Records need recounts, as baselines of the pytest plugin have. Of replays
    and other checks, verdicts and claims are compared.
    """
    alpha, today = check_alpha(alpha), today or datetime.date.today()
    old, new = (dict(zip(told_apart(suite), suite.entries, strict=True)) for suite in (before, after))
    found = [_compared(name, old.get(name), new.get(name), alpha, today) for name in dict.fromkeys([*old, *new])]
    was, now = ({(check.kind, check.name): check for check in suite.checks} for suite in (before, after))
    return (*found, *(_of_a_check(key[1], was.get(key), now.get(key)) for key in dict.fromkeys([*was, *now])))


def _of_a_check(name: str, was: SideCheck | None, now: SideCheck | None) -> Comparison:
    found = partial(Comparison, name=name, before=was, after=now)
    if now is None:
        return found(not_compared=_NO_CHECK)
    if was is None:
        is_bad = now.verdict in _FOUND and not now.is_expected
        return found(changes=(f"new, and {now.word}",)) if is_bad else found(notes=(_NEW,))
    sides = (("verdict", was.word, now.word), ("claim", was.claim or "none", now.claim or "none"))
    return found(changes=tuple(f"the {what} was {old} and is {new}" for what, old, new in sides if old != new))


def _compared(name: str, before: Entry | None, after: Entry | None, alpha: float, today: datetime.date) -> Comparison:
    found = partial(Comparison, name=name, before=before, after=after)
    if after is None:
        return found(changes=("the audit is missing",))
    if before is None:
        is_bad = after.result.claim is not None and after.result.is_refuted and not after.is_excused(today)
        return found(changes=("new, and refuted",)) if is_bad else found(notes=(_NEW,))
    was, now = before.result, after.result
    pvalue, not_compared = None, None
    notes = list[str]()
    changes = _settings_changed(was, now) if was.kind == now.kind else [f"the {was.kind} has become {now.kind}"]
    if isinstance(was, AuditResult) and isinstance(now, AuditResult):
        if None not in (was.pair.contents, now.pair.contents) and was.pair.contents != now.pair.contents:  # of searches
            not_compared = ANOTHER_PAIR
        elif any(finding.check in OF_RUNS for result in (was, now) for finding in result.findings):
            not_compared = _DEPENDENT
        elif pairs := [(old, new) for old in before.recounts for new in after.recounts if old.event == new.event]:
            moved, notes, pvalue = _moved(pairs, alpha)
            changes += moved
        else:
            not_compared = _not_comparable(before, after)
    elif isinstance(was, StatementResult) and isinstance(now, StatementResult):
        changes += _statement_changed(was, now)
    if now.verdict is not was.verdict and (before.accepted is None or not now.is_refuted):
        changes.append(f"the verdict was {was.verdict.value} and is {now.verdict.value}")
    if before.accepted is not None:
        accepted = replace(after, accepted=before.accepted)
        if now.verdict is Verdict.INCONCLUSIVE:
            notes.append(f"it is undecided whether the claim is still refuted; the refutation was {before.accepted}")
        elif not now.is_refuted:
            notes.append(f"the claim is no longer refuted; the refutation was {before.accepted}")
        elif accepted.is_excused(today):
            notes.append(str(before.accepted))
        else:
            said = accepted.acceptance_in_words(today)
            changes.append(f"the acceptance does not cover the finding: {said}")
    return found(changes=tuple(changes), notes=tuple(notes), pvalue=pvalue, not_compared=not_compared)


_SETTINGS = {
    "audit": {
        "claim": "claim", "distance": "pair.distance", "adjacency": "adjacency",
        "setting for floating-point leaks": "floating_point", "excess to detect": "detect", "power": "power",
    },
    "canaries": {
        "claim": "claim", "adjacency": "adjacency", "inclusion": "inclusion",
        "probability of inclusion": "guesses.probability",
    },
    "statement": {},
}  # fmt: skip
"""Settings of each kind of result: what they are called, and the attributes."""
_EFFORTS = {"audit": "runs on each dataset", "canaries": "canaries", "statement": "runs"}


def _settings_changed(was: Checked, now: Checked) -> list[str]:
    """Changes of the question and the effort: correct guesses of one training depend on each other, so have no test."""
    changes = []
    for what, name in _SETTINGS[was.kind].items():
        before, after = attrgetter(name)(was), attrgetter(name)(now)
        if before != after:
            words = repr if str(before) == str(after) else str  # in full where the short texts are alike
            changes.append(f"the {what} was {words(before)} and is {words(after)}")
    pairs = [one.pair for one in (was, now) if isinstance(one, AuditResult)]
    if pairs and pairs[0].contents is None and pairs[0].difference != pairs[1].difference:
        changes.append(f"the difference of the pair was {pairs[0].difference} and is {pairs[1].difference}")
    if silenced := [name for name in now.ignored if name not in was.ignored]:
        changes.append(f"newly silenced health checks: {', '.join(silenced)}")
    if now.alpha < was.alpha:
        changes.append(f"alpha was {was.alpha:g} and is {now.alpha:g}, so smaller deviations go undetected")
    # An audit that stopped early may have fewer runs by chance.
    are_planned = not {was.stopped, now.stopped} & {"refuted", "time", "request"}
    before, after = (one.canaries if isinstance(one, CanaryResult) else one.runs for one in (was, now))
    if are_planned and after < _FEWER * before:
        changes.append(f"the {_EFFORTS[was.kind]} fell from {before:,} to {after:,}")
    return changes


def _statement_changed(was: StatementResult, now: StatementResult) -> list[str]:
    """Another statement, changed ranges and disjoint intervals; each interval holds with its result's alpha."""
    changes = []
    if was.statement != now.statement:
        changes.append(f"the statement was: {was.statement} It is: {now.statement}")
    after = {point.at: point for point in now.points}
    for old in was.points:
        new = after.get(old.at)
        if new is None:
            continue
        if (old.low, old.high) != (new.low, new.high):
            changes.append(f"{old.at or was.quantity}: {old.allowed} before, {new.allowed} now")
        if new.lower > old.upper or new.upper < old.lower:
            changes.append(f"{old.at or was.quantity}: in {old.interval} before, in {new.interval} now")
    return changes


def _moved(pairs: list[tuple[Recount, Recount]], alpha: float) -> tuple[list[str], list[str], float | None]:
    """Changed probabilities of the event and of the forms of outputs, notes, and the adjusted p-value."""
    independent = [(old, new) for old, new in pairs if new.is_independent_of(old)]
    if not independent:
        return *_on_the_same_numbers(*pairs[0]), None
    tests = _tests(*independent[0])
    adjusted = holm([change_pvalue(*now, *was) for _, now, was in tests])
    moved = [
        f"Pr[{what}] was {was[0] / was[1]:.4g} ({was[0]:,} of {was[1]:,}) and is {now[0] / now[1]:.4g} ({now[0]:,} of "
        f"{now[1]:,}), p-value {max(float(p), 1e-300):.2g}"
        for (what, now, was), p in zip(tests, adjusted, strict=True)
        if p <= alpha
    ]
    return moved, [], float(adjusted.min())


def _not_comparable(before: Entry, after: Entry) -> str:
    events = [[str(one.event) for one in entry.recounts if one.event is not None] for entry in (before, after)]
    if all(events):
        return (
            f"nothing to compare: the counted events were {'; '.join(events[0])} and are {'; '.join(events[1])}; "
            "pytest --dp-audit-compare=FIRST --dp-audit-save=SECOND counts the first file's events in the second"
        )
    which = "neither file has" if not any(events) else f"the {'first' if events[1] else 'second'} file does not have"
    return f"nothing to compare: {which} separate counts of the event; pytest --dp-audit-save writes them"


def _on_the_same_numbers(old: Recount, new: Recount) -> tuple[list[str], list[str]]:
    """Changes and notes for two counts from one random stream, which cannot be tested."""
    source = "random numbers that may be the same (neither file names them)"
    if new.seed is not None:
        source = f"the same random numbers (seed {new.seed}, {new.stream})"
    differing = [
        f"Pr[{what}] was {was[0]:,} of {was[1]:,} and is {now[0]:,} of {now[1]:,}"
        for what, now, was in _tests(old, new)
        if now != was
    ]
    if not differing:
        return [], [f"no p-value: the counts are equal and come from {source}"]
    reason = f"no p-value: both counts come from {source}; save one of them again under another name"
    return [f"{'; '.join(differing)}. {reason} (pytest --dp-audit-save=NAME)"], []


def _tests(old: Recount, new: Recount) -> list[tuple[str, tuple[int, int], tuple[int, int]]]:
    """The compared events and forms, with counts and runs now and before."""
    tests = []
    if old.counts is not None and new.counts is not None:
        was, now = old.counts, new.counts
        tests += [
            (f"{old.event} | x", (now.count_x, now.runs_x), (was.count_x, was.runs_x)),
            (f"{old.event} | y", (now.count_y, now.runs_y), (was.count_y, was.runs_y)),
        ]
    before, after = ({form: counts for form, *counts in one.forms} for one in (old, new))
    for form in sorted(before.keys() | after.keys()):
        for place, side in enumerate(("x", "y")):
            counts_now, counts_was = after.get(form, [0, 0])[place], before.get(form, [0, 0])[place]
            tests.append((f"a {form} | {side}", (counts_now, new.looked_at), (counts_was, old.looked_at)))
    return tests
