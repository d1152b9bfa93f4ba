"""A replay as the table that records and reports show."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..results.replay_table import ReplayRow, ReplayTable
from .replayed_call import Finding, ReplayedCall

_FIRST = 30  # calls that are shown whatever they do


def tabulated(
    calls: Sequence[ReplayedCall], findings: Sequence[Finding], reasons: Sequence[str], *, sentence: str, seed: int
) -> ReplayTable:
    """Return the calls of a replay as a table, the calls with a finding among them."""
    rows, others = [], [str(finding) for finding in findings if finding.call is None]
    for number, call in enumerate(calls):
        found = "; ".join(finding.message for finding in findings if finding.call == number)
        if number < _FIRST or found:
            rows.append(_row(call, found))
    return ReplayTable(sentence=sentence, seed=seed, rows=tuple(rows), n_calls=len(calls), remarks=(*others, *reasons))


def _row(call: ReplayedCall, finding: str) -> ReplayRow:
    # Of noise that was handed nothing that may depend on data, equal laws do not say what it protects.
    moved, mu, worst = (None, None, None) if call.is_bare else (call.moved, call.mu, call.worst_loss)
    return ReplayRow(
        place=str(call.place),
        source=call.place.source,
        primitive=call.primitive,
        law=str(call.law_on_x),
        moved=number_words(moved),
        allowed=number_words(call.sensitivity),
        loss=f"mu {number_words(mu)}" if mu else number_words(worst),
        finding=finding,
    )


def number_words(value: float | None) -> str:
    """Return a number as text; empty if it is unknown."""
    return "" if value is None else "infinite" if math.isinf(value) else f"{value:.6g}"
