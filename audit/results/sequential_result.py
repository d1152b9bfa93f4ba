"""The result of a sequential audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .audit_result import AuditResult
from .interim_look import Look, Stop


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SequentialResult(AuditResult):
    """Result of an audit that bets batch by batch and may stop after any batch.

    The bound and the p-value are valid at all looks together. While the audit bets, the bound is one of a fixed grid of
    strengths, which is densest just above the claim, and the event changes from batch to batch; the counts are then
    hits of the last event in all runs, for the reader, and do not enter the bound. An audit with a planned number of
    runs reserves half of alpha for a final test. If it comes to it, event and counts are those of that test.

    Attributes
    ----------
    looks : tuple of Look
        State of the audit after each batch; the last one includes the final test.
    stopped : {"refuted", "runs", "time", "request"}
        Why the audit ended.
    final_alpha : float
        Error probability reserved for the final test; 0 if none was planned.
    is_closed : bool
        Whether the final test was made.
    """

    # Without field() the base's properties of the same names would become the defaults.
    looks: tuple[Look, ...] = field()
    stopped: Stop = field()
    final_alpha: float = 0.0
    is_closed: bool = False

    @property
    def test_shares(self) -> tuple[tuple[str, float], ...]:
        if not self.final_alpha:
            return (("betting test", self.alpha),)
        return ("betting test", self.alpha - self.final_alpha), *self._shares_of_test("final test", self.final_alpha)

    @property
    def _when_refuted(self) -> str:
        if self.stopped != "refuted":
            return ""
        if self.is_closed:
            return f" by the final test, after {self.runs:,} runs per dataset"
        text = f" after {self.runs:,} runs per dataset"
        if self.bound < self.estimate < math.inf:
            text += f"; point estimate {self.estimate:.3g}, biased upward by the early stop"
        return text

    @property
    def _is_learned_here(self) -> bool:
        return not self.is_closed

    @property
    def _when_stopped(self) -> str:
        if self.stopped == "time":
            return f"; time limit reached after {self.runs:,} runs per dataset"
        if self.stopped == "request":
            return f"; stopped on request after {self.runs:,} runs per dataset"
        return ""
