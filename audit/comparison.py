"""Two records of the same audits: what has changed between them, beyond sampling error.

Bounds wander with the event that an audit happened to choose and with the draw, so they are not compared. The event
that was recorded is counted again in new runs, and an exact test says whether its probabilities have moved.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .inference.counts import check_alpha
from .inference.multiplicity import holm
from .inference.two_samples import change_p_value
from .records import Entry, Suite
from .recounts import Recount
from .verdicts import AuditResult

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
        None where there was nothing to compare counts with.
    """

    name: str
    before: Entry | None
    after: Entry | None
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    p_value: float | None = None

    @property
    def has_changed(self) -> bool:
        return bool(self.changes)


def compare(
    before: Suite, after: Suite, *, alpha: float = 1e-5, today: datetime.date | None = None
) -> tuple[Comparison, ...]:
    """Every audit of two records, those of the first one first.

    An audit of a mechanism that has not changed is called changed with probability at most `alpha`.

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
    old, new = ({entry.name: entry for entry in suite.entries} for suite in (before, after))
    return tuple(_compared(name, old.get(name), new.get(name), alpha, today) for name in dict.fromkeys([*old, *new]))


def _compared(name: str, before: Entry | None, after: Entry | None, alpha: float, today: datetime.date) -> Comparison:
    if after is None:
        return Comparison(name=name, before=before, after=None, changes=("the audit has disappeared",))
    if before is None:
        return Comparison(name=name, before=None, after=after, notes=("new: it was not recorded before",))
    changes, notes = [], []
    was, now = before.result, after.result
    if isinstance(was, AuditResult) and isinstance(now, AuditResult):
        changes += _settings_changed(was, now)
    elif type(was) is not type(now):
        changes.append(f"a {type(was).__name__} has become a {type(now).__name__}")
    if now.verdict is not was.verdict and (before.accepted is None or not now.is_refuted):
        changes.append(f"the verdict was {was.verdict.value} and is {now.verdict.value}")
    if before.accepted is not None:
        if not now.is_refuted:
            notes.append(f"a finding that is no longer found is accepted ({before.accepted})")
        elif before.accepted.holds_on(today):
            notes.append(str(before.accepted))
        else:
            changes.append(f"the finding was {before.accepted}, which has passed")
    moved, p_value = _moved(before, after, alpha)
    if p_value is None and before.recounts:
        notes.append("the event was not counted again, so its counts are not compared")
    return Comparison(
        name=name,
        before=before,
        after=after,
        changes=(*changes, *moved),
        notes=tuple(notes),
        p_value=p_value,
    )


def _settings_changed(was: AuditResult, now: AuditResult) -> list[str]:
    """Claims, pairs and effort that are not what they were."""
    looks: tuple[tuple[str, Callable[[AuditResult], Any]], ...] = (
        ("claim", lambda result: str(result.claim)),
        ("distance", lambda result: result.pair.distance),
        ("adjacency", lambda result: result.pair.adjacency),
        ("difference of the pair", lambda result: result.pair.difference),
        ("low bits' part in the verdict", lambda result: result.bits),
    )
    changes = [f"the {what} was {look(was)} and is {look(now)}" for what, look in looks if look(was) != look(now)]
    if was.pair.contents is not None and now.pair.contents is not None and was.pair.contents != now.pair.contents:
        changes.append("the pair of datasets is another one")
    if now.alpha < was.alpha:
        changes.append(f"alpha was {was.alpha:g} and is {now.alpha:g}, so less is found")
    # An audit that stopped because the claim was refuted has fewer runs by luck.
    if now.stopped != "refuted" and was.stopped != "refuted" and now.runs < _FEWER * was.runs:
        changes.append(f"the runs on each dataset fell from {was.runs:,} to {now.runs:,}")
    return changes


def _moved(before: Entry, after: Entry, alpha: float) -> tuple[list[str], float | None]:
    """What of the event's probabilities and of the forms of outputs has moved, in words, and the p-value of it all."""
    pairs = [(old, new) for old in before.recounts for new in after.recounts if old.event == new.event]
    if not pairs:
        return [], None
    tests = [test for old, new in pairs[:1] for test in _tests(old, new)]
    adjusted = holm([change_p_value(*now, *was) for _, now, was in tests])
    moved = [
        f"Pr[{what}] was {was[0] / was[1]:.4g} ({was[0]:,} of {was[1]:,}) and is {now[0] / now[1]:.4g} ({now[0]:,} of "
        f"{now[1]:,}), p-value {max(float(p), 1e-300):.2g}"
        for (what, now, was), p in zip(tests, adjusted, strict=True)
        if p <= alpha
    ]
    return moved, float(adjusted.min())


def _tests(old: Recount, new: Recount) -> list[tuple[str, tuple[int, int], tuple[int, int]]]:
    """What is compared: hits and runs now, and before."""
    was, now = old.counts, new.counts
    tests = [
        (f"{old.event} | x", (now.hits_x, now.runs_x), (was.hits_x, was.runs_x)),
        (f"{old.event} | y", (now.hits_y, now.runs_y), (was.hits_y, was.runs_y)),
    ]
    before, after = ({form: hits for form, *hits in one.forms} for one in (old, new))
    for form in sorted(before.keys() | after.keys()):
        for place, side in enumerate(("x", "y")):
            hits_now, hits_was = after.get(form, [0, 0])[place], before.get(form, [0, 0])[place]
            tests.append((f"a {form} | {side}", (hits_now, new.looked_at), (hits_was, old.looked_at)))
    return tests
