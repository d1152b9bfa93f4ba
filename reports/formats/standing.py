"""How an entry counts as a test: passed, warned or failed."""

from __future__ import annotations

import datetime
from typing import Literal

from ...audit.records.suite import Entry
from ...audit.results.audit_result import Verdict
from ..cautions import cautions

Standing = Literal["passed", "warned", "failed"]


def standing(entry: Entry, day: datetime.date) -> Standing:
    """Return how an entry counts on a day.

    Failed: an unmet expectation, a refutation without an acceptance that covers it, an inconclusive audit. Warned: a
    refuted or inconclusive audit that was expected, an accepted refutation, and a claim that is not refuted with a
    caution (see `cautions`). Passed: every other claim that is not refuted.
    """
    result = entry.result
    if not entry.is_met:
        return "failed"
    if result.verdict is Verdict.NOT_REFUTED:
        return "warned" if cautions(result) else "passed"
    return "warned" if entry.expected is not None or entry.is_excused(day) else "failed"
