"""The result of a replay: the calls, the findings, and what their losses say about the claim."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from ..claims.claim import Claim
from ..claims.renyi import ZeroConcentratedDP
from ..errors import ExcessError, OptionError
from ..printing import shorten
from ..records.suite import ReplayRow, ReplayTable
from .claim_excess import SLACK, is_within
from .replayed_call import Finding, ReplayedCall, TranscriptLoss, total_loss

# A replay as the table that records and reports show.

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


_WIDTH: Final = 100  # characters of a line of source


class ReplayVerdict(enum.Enum):
    """What a replay says; it never says that a claim is refuted, nor that it holds."""

    EXCESS = "excess"
    """A call, or all calls together, exceed the claim or a declared sensitivity, on this path."""
    BOUNDED = "bounded on this path"
    """All recorded calls together stay within the claim, on this path."""
    OPEN = "open"
    """Neither: a loss is unknown, or the output depends on more than the recorded values."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayResult:
    """What `replay` found; neither true nor false.

    Attributes
    ----------
    findings : tuple of Finding
        Excesses first, in the order of the calls.
    calls : tuple of ReplayedCall
        The calls that both runs made, up to where their paths part.
    unrecorded : bool
        Whether a run with its own recorded values put back gave another output or made other calls, or another thread
        drew: then the recorded values do not determine the output.
    open_reasons : tuple of str
        Why the loss of the calls does not bound that of the output, even on this path.
    remarks : tuple of str
        What else was noticed, which leaves nothing open.
    output_moved : float or None
        The ℓ1 norm of the outputs' difference when y is given the values of x; None if they are not numbers.
    runs : int
        How often the mechanism was run.
    """

    mechanism: str
    claim: Claim | None
    findings: tuple[Finding, ...]
    calls: tuple[ReplayedCall, ...]
    unrecorded: bool
    open_reasons: tuple[str, ...]
    output_on_x: Any = field(repr=False)
    output_on_y: Any = field(repr=False)
    output_moved: float | None
    seed: int
    runs: int
    remarks: tuple[str, ...] = ()

    @property
    def loss(self) -> TranscriptLoss:
        """The loss of all calls together, on this path; it bounds that of the output only without `open_reasons`."""
        return total_loss(self.calls)

    @property
    def has_excess(self) -> bool:
        """Whether a finding exceeds the claim, or a sensitivity that a primitive declares."""
        return any(finding.is_excess for finding in self.findings)

    @property
    def verdict(self) -> ReplayVerdict:
        """What the replay says of the claim; of an infinite loss and declared sensitivities only, without a claim."""
        if self.has_excess:
            return ReplayVerdict.EXCESS
        if self.claim is None or self.open_reasons or self.findings:
            return ReplayVerdict.OPEN
        return ReplayVerdict.BOUNDED if is_kept(self.claim, self.calls) else ReplayVerdict.OPEN

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        claimed = "" if self.claim is None else f", claimed {self.claim}"
        count = f"{len(self.calls)} call{'s' * (len(self.calls) != 1)}"
        if self.verdict is ReplayVerdict.EXCESS:
            number = sum(finding.is_excess for finding in self.findings)
            return f"EXCESS: {number} finding{'s' * (number != 1)} in {count}{claimed} (one path; confirm with check)"
        if self.verdict is ReplayVerdict.BOUNDED:
            return f"BOUNDED: {loss_words(self.loss)} in {count}{claimed} (one path)"
        if self.findings:
            first, more = self.findings[0], len(self.findings) - 1
            found = f"{first.kind.value}{f' and {more} more' if more else ''}"
            why = self.open_reasons[0] if self.open_reasons else "the output may hide it; confirm with check"
            return f"OPEN: not shown to be an excess in {count}{claimed}: {found}; {why}"
        if self.open_reasons or (self.loss.epsilon is None and self.loss.rho is None):
            why = self.open_reasons[0] if self.open_reasons else "the loss of a call is unknown"
            return f"OPEN: neither an excess nor a bound in {count}{claimed}: {why}"
        why = "no claim given to compare it with" if self.claim is None else "not shown to be within the claim"
        return f"OPEN: {loss_words(self.loss)} in {count}{claimed}; {why}"

    def __str__(self) -> str:
        lines = [self.sentence]
        for finding in self.findings:
            lines.append(f"  finding: {finding}")
            if finding.place is not None and (source := finding.place.source):
                lines.append(f"           {source if len(source) <= _WIDTH else source[: _WIDTH - 1] + '…'}")
        lines += [f"  open: {reason}" for reason in self.open_reasons if reason not in self.sentence]
        lines += [f"  note: {remark}" for remark in self.remarks]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<ReplayResult {self.sentence}>"

    def __bool__(self) -> bool:
        raise TypeError("a ReplayResult is neither true nor false; use .has_excess, .verdict or .raise_if_excess().")

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, the losses, which may be infinite, and the calls as texts."""
        return {
            "verdict": self.verdict.value,
            "mechanism": self.mechanism,
            "claim": None if self.claim is None else str(self.claim),
            "epsilon": self.loss.epsilon,
            "mu": self.loss.mu,
            "runs": self.runs,
            **asdict(self.tabulated()),
        }

    def tabulated(self) -> ReplayTable:
        """Return the calls as texts, the first of them and all with a finding."""
        said = (*self.open_reasons, *self.remarks)
        return tabulated(self.calls, self.findings, said, sentence=self.sentence, seed=self.seed)

    def table(self) -> str:
        """Return the calls as text, a line each: place, law on x, move of the input, worst-case loss."""
        lines = []
        for number, call in enumerate(self.calls):
            parts = [f"{number}  {call.place}  {call.primitive}: {call.law_on_x}"]
            if call.is_bare:
                lines.append("; ".join([*parts, "given nothing that depends on data"]))
                continue
            if call.moved is not None:
                of = "" if call.sensitivity is None else f" (sensitivity {call.sensitivity:.6g})"
                parts.append(f"moved {number_words(call.moved)}{of}{', inferred' if call.is_inferred else ''}")
            if call.mu:
                parts.append(f"mu {number_words(call.mu)}")
            elif call.worst_loss is None:
                parts.append("loss unknown")
            else:
                parts.append(f"loss {'' if math.isinf(call.worst_loss) else 'at most '}{number_words(call.worst_loss)}")
            lines.append("; ".join(parts))
        return "\n".join(lines)

    def raise_if_excess(self) -> Self:
        """Return the result, unless it has an excess.

        Raises
        ------
        ExcessError
            With the result as text; it is an `AssertionError`.
        """
        if self.has_excess:
            raise ExcessError(str(self), result=self)
        return self


def check_replay_result(result: ReplayResult) -> ReplayResult:
    """Return what must be the result of a replay."""
    if not isinstance(result, ReplayResult):
        raise OptionError(
            f"{shorten(result)} is not the result of a replay; pass what replay() returns.", result=result
        )
    return result


def is_kept(claim: Claim, calls: tuple[ReplayedCall, ...]) -> bool:
    """Return whether the calls together stay within the claim."""
    loss = total_loss(calls)
    # The locations inferred from outputs are known to about 1e-5 scales.
    rest = 1.0 - (1e-5 if any(call.is_inferred for call in calls) else SLACK)
    if loss.epsilon is None:
        return type(claim) is ZeroConcentratedDP and loss.rho is not None and loss.rho <= claim.rho / rest
    return is_within(claim, loss.epsilon * rest, loss.mu * rest)


def is_larger(one: TranscriptLoss, other: TranscriptLoss) -> bool:
    """Return whether a loss is larger than another one in some way, beyond rounding."""
    pairs = ((one.epsilon, other.epsilon), (one.mu, other.mu), (one.rho, other.rho))
    return any(a is None or (b is not None and a > b * (1.0 + SLACK)) for a, b in pairs)


def loss_words(loss: TranscriptLoss) -> str:
    """Return a loss as text."""
    parts = []
    if loss.epsilon is None and loss.rho is not None:
        return f"rho at most {loss.rho:.6g}"
    if loss.epsilon or not loss.mu:
        unknown = loss.epsilon is None or math.isinf(loss.epsilon)
        parts.append("infinite worst-case loss" if unknown else f"loss at most {loss.epsilon:.6g}")
    if loss.mu:
        parts.append(f"Gaussian noise of mu {loss.mu:.6g}")
    return " and ".join(parts)
