"""Two records of the same audits: what has changed between them, beyond sampling error.

Bounds wander with the event that an audit happened to choose and with the draw, so they are not compared. The event
that was recorded is counted again in new runs, and an exact test says whether its probabilities have moved. The test
needs independent runs, so counts from the same random numbers get no p-value.

Proof: docs/proofs/multiplicity.md
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..inference.counts import check_alpha
from ..inference.multiplicity import holm
from ..inference.two_sample_test import change_p_value
from ..results.audit_result import AuditResult, Verdict
from ..results.recount import Recount
from ..results.statement_result import StatementResult
from .json_codec import told_apart
from .suite import Entry, Suite

ANOTHER_PAIR = "the search found another pair of datasets, so counts are not compared"
"""Why the counts of two searches were not compared. That is no failure: each audit stands for its own pair."""

_FEWER = 0.99  # of the runs before


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An audit before and after.

    Attributes
    ----------
    name : str
    before, after : Entry, optional
        None where there was no such audit.
    changes : tuple of str
        What has changed for the worse, or must be looked at, in words; none where all is as it was.
    notes : tuple of str
        What else a reader should know.
    p_value : float, optional
        Of "the event has the same probabilities, and outputs the same forms", adjusted for all that was looked at;
        None where no counts of independent runs were compared.
    not_compared : str, optional
        Why counts were not compared although both have an event, and what to do about it.
    """

    name: str
    before: Entry | None
    after: Entry | None
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    p_value: float | None = None
    not_compared: str | None = None

    @property
    def has_changed(self) -> bool:
        return bool(self.changes)


def compare(
    before: Suite, after: Suite, *, alpha: float = 1e-5, today: datetime.date | None = None
) -> tuple[Comparison, ...]:
    """Every audit of two records, those of the first one first.

    The counts of a mechanism that has not changed are called different with probability at most `alpha`. Differing
    counts from one stream of random numbers have no p-value; they are named as a change, with the way to compare them.
    Settings and verdicts are compared as they are.

    Parameters
    ----------
    before, after : Suite
        Records with recounts, such as the pytest plugin saves.
    alpha : float
        For each audit.
    today : date, optional
        The day on which accepted findings have to hold; by default this day.
    """
    alpha, today = check_alpha(alpha), today or datetime.date.today()
    old, new = (dict(zip(told_apart(suite), suite.entries, strict=True)) for suite in (before, after))
    return tuple(_compared(name, old.get(name), new.get(name), alpha, today) for name in dict.fromkeys([*old, *new]))


def _compared(name: str, before: Entry | None, after: Entry | None, alpha: float, today: datetime.date) -> Comparison:
    if after is None:
        return Comparison(name=name, before=before, after=None, changes=("the audit has disappeared",))
    if before is None:
        if isinstance(after.result, AuditResult) and after.result.is_refuted and not after.is_excused(today):
            return Comparison(name=name, before=None, after=after, changes=("new, and refuted",))
        return Comparison(name=name, before=None, after=after, notes=("new: it was not recorded before",))
    changes, notes, p_value = list[str](), list[str](), None
    not_compared: str | None = None
    was, now = before.result, after.result
    if isinstance(was, AuditResult) and isinstance(now, AuditResult):
        changes += _settings_changed(was, now)
        if _is_another_pair(was, now):
            not_compared = ANOTHER_PAIR
        elif pairs := [(old, new) for old in before.recounts for new in after.recounts if old.event == new.event]:
            moved, same, p_value = _moved(pairs, alpha)
            changes += moved
            notes += same
        else:
            not_compared = _not_comparable(before, after)
    elif isinstance(was, StatementResult) and isinstance(now, StatementResult):
        changes += _statement_changed(was, now)
    else:
        changes.append(f"a {type(was).__name__} has become a {type(now).__name__}")
    if now.verdict is not was.verdict and (before.accepted is None or not now.is_refuted):
        changes.append(f"the verdict was {was.verdict.value} and is {now.verdict.value}")
    if before.accepted is not None:
        if now.verdict is Verdict.INCONCLUSIVE:
            notes.append(f"it is not decided whether the finding is still there that is {before.accepted}")
        elif not now.is_refuted:
            notes.append(f"a finding that is no longer found is {before.accepted}")
        elif replace(after, accepted=before.accepted).is_excused(today):
            notes.append(str(before.accepted))
        else:
            changes.append(f"the finding was {before.accepted}; that does not cover it")
    return Comparison(
        name=name,
        before=before,
        after=after,
        changes=tuple(changes),
        notes=tuple(notes),
        p_value=p_value,
        not_compared=not_compared,
    )


def _settings_changed(was: AuditResult, now: AuditResult) -> list[str]:
    """Claims, pairs and effort that are not what they were."""
    looks: tuple[tuple[str, Callable[[AuditResult], Any]], ...] = (
        ("claim", lambda result: str(result.claim)),
        ("distance", lambda result: result.pair.distance),
        ("adjacency", lambda result: result.pair.adjacency),
        ("low bits' part in the verdict", lambda result: result.bits),
        ("resolution asked for", lambda result: result.requested_resolution),
        ("power", lambda result: result.power),
    )
    changes = [f"the {what} was {look(was)} and is {look(now)}" for what, look in looks if look(was) != look(now)]
    if was.pair.contents is None and was.pair.difference != now.pair.difference:
        changes.append(f"the difference of the pair was {was.pair.difference} and is {now.pair.difference}")
    silenced = [name for name in now.ignored if name not in was.ignored]
    if silenced:
        changes.append(f"health checks are silenced that were not: {', '.join(silenced)}")
    if now.alpha < was.alpha:
        changes.append(f"alpha was {was.alpha:g} and is {now.alpha:g}, so less is found")
    # An audit that was stopped by something else than its plan has fewer runs by luck.
    are_planned = not {was.stopped, now.stopped} & {"refuted", "time", "request"}
    if are_planned and now.runs < _FEWER * was.runs:
        changes.append(f"the runs on each dataset fell from {was.runs:,} to {now.runs:,}")
    return changes


def _is_another_pair(was: AuditResult, now: AuditResult) -> bool:
    """Whether both were kept, and differ: those of a search are."""
    return None not in (was.pair.contents, now.pair.contents) and was.pair.contents != now.pair.contents


def _statement_changed(was: StatementResult, now: StatementResult) -> list[str]:
    """What is stated, the effort, and numbers whose intervals do not meet; each interval holds with its own alpha."""
    changes = []
    if was.statement != now.statement:
        changes.append(f"the statement was: {was.statement} It is: {now.statement}")
    if now.alpha < was.alpha:
        changes.append(f"alpha was {was.alpha:g} and is {now.alpha:g}, so less is found")
    if now.runs < _FEWER * was.runs:
        changes.append(f"the runs fell from {was.runs:,} to {now.runs:,}")
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
    """What of the event's probabilities and of the forms of outputs has moved, notes, and the p-value of it all."""
    independent = [(old, new) for old, new in pairs if new.is_independent_of(old)]
    if not independent:
        return *_on_the_same_numbers(*pairs[0]), None
    tests = _tests(*independent[0])
    adjusted = holm([change_p_value(*now, *was) for _, now, was in tests])
    moved = [
        f"Pr[{what}] was {was[0] / was[1]:.4g} ({was[0]:,} of {was[1]:,}) and is {now[0] / now[1]:.4g} ({now[0]:,} of "
        f"{now[1]:,}), p-value {max(float(p), 1e-300):.2g}"
        for (what, now, was), p in zip(tests, adjusted, strict=True)
        if p <= alpha
    ]
    return moved, [], float(adjusted.min())


def _not_comparable(before: Entry, after: Entry) -> str:
    """Why the counts of two audits cannot be compared, and what to do about it."""
    events = [[str(one.event) for one in entry.recounts if one.event is not None] for entry in (before, after)]
    if all(events):
        return (
            f"nothing to compare: other events were counted before ({'; '.join(events[0])}) than now "
            f"({'; '.join(events[1])}); pytest --dp-audit-compare=FIRST --dp-audit-save=SECOND counts those of the "
            "first in the second as well"
        )
    which = "neither file has" if not any(events) else f"the {'first' if events[1] else 'second'} file does not have"
    return f"nothing to compare: {which} separate counts of the event, which pytest --dp-audit-save writes"


def _on_the_same_numbers(old: Recount, new: Recount) -> tuple[list[str], list[str]]:
    """Changes and notes for two counts from one stream: without a test, the same or not to be compared."""
    source = "random numbers that may be the same (neither file names them)"
    if new.seed is not None:
        source = f"the same random numbers (seed {new.seed}, {new.stream})"
    differing = [
        f"Pr[{what}] was {was[0]:,} of {was[1]:,} and is {now[0]:,} of {now[1]:,}"
        for what, now, was in _tests(old, new)
        if now != was
    ]
    if not differing:
        return [], [f"no p-value: both counts are the same, and from {source}"]
    reason = f"no p-value: both counts are from {source}; save one of them anew under another name"
    return [f"{'; '.join(differing)}. {reason} (pytest --dp-audit-save=NAME)"], []


def _tests(old: Recount, new: Recount) -> list[tuple[str, tuple[int, int], tuple[int, int]]]:
    """What is compared: hits and runs now, and before."""
    tests = []
    if old.counts is not None and new.counts is not None:
        was, now = old.counts, new.counts
        tests += [
            (f"{old.event} | x", (now.hits_x, now.runs_x), (was.hits_x, was.runs_x)),
            (f"{old.event} | y", (now.hits_y, now.runs_y), (was.hits_y, was.runs_y)),
        ]
    before, after = ({form: hits for form, *hits in one.forms} for one in (old, new))
    for form in sorted(before.keys() | after.keys()):
        for place, side in enumerate(("x", "y")):
            hits_now, hits_was = after.get(form, [0, 0])[place], before.get(form, [0, 0])[place]
            tests.append((f"a {form} | {side}", (hits_now, new.looked_at), (hits_was, old.looked_at)))
    return tests
