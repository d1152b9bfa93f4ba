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
    return ReplayRow(
        place=str(call.place),
        source=call.place.source,
        primitive=call.primitive,
        law=str(call.law_on_x),
        moved="" if call.is_bare else _number(call.moved),
        allowed=_number(call.sensitivity),
        loss="" if call.is_bare else f"mu {call.mu:.6g}" if call.mu else _number(call.worst_loss),
        finding=finding,
    )


def _number(value: float | None) -> str:
    return "" if value is None else "infinite" if math.isinf(value) else f"{value:.6g}"
