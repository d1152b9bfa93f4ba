"""The result of a sequential audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .audit_result import AuditResult
from .interim_look import Look, Stop


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SequentialResult(AuditResult):
    """Result of an audit that bets batch by batch and may stop after any batch.

    The bound and the p-value are valid at all looks together. The bound is one of a fixed grid of strengths, which is
    densest just above the claim. The event changes from batch to batch; the counts are hits of the last event in all
    runs, for the reader, and do not enter the bound.

    Attributes
    ----------
    looks : tuple of Look
        State of the audit after each batch.
    stopped : {"refuted", "runs", "time", "request"}
        Why the audit ended.
    is_closed : bool
        Whether the audit reached the last quarter of its planned runs, on which it stakes what the bets have won. An
        audit with a time limit never does.
    """

    # Without field() the base's properties of the same names would become the defaults.
    looks: tuple[Look, ...] = field()
    stopped: Stop = field()
    is_closed: bool = False

    @property
    def test_shares(self) -> tuple[tuple[str, float], ...]:
        return (("betting test" + " with a final test of the last batch" * self.is_closed, self.alpha),)

    @property
    def _when_refuted(self) -> str:
        if self.stopped != "refuted":
            return ""
        text = f" {'by the last quarter of' if self.is_closed else 'after'} {self.runs:,} runs per dataset"
        if self.bound < self.estimate < math.inf:
            text += f"; point estimate {self.estimate:.3g}, biased upward"
        return text

    @property
    def _when_stopped(self) -> str:
        if self.stopped == "time":
            return f"; time limit reached after {self.runs:,} runs per dataset"
        if self.stopped == "request":
            return f"; stopped on request after {self.runs:,} runs per dataset"
        return ""
