"""What weakens the verdict of an audit: reasons for a person to read it before a program acts on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from ..audit.records.suite import Checked
from ..audit.results.audit_result import AuditResult, Verdict
from ..audit.results.canary_result import CanaryResult
from ..audit.results.statement_result import StatementResult
from .plain_text import counted, number

Kind = Literal["low bits", "pair", "silenced", "excess"]
KINDS: Final[tuple[Kind, ...]] = ("low bits", "pair", "silenced", "excess")


@dataclass(frozen=True, slots=True)
class Caution:
    """A reason to read a verdict with care.

    Attributes
    ----------
    kind : {"low bits", "pair", "silenced", "excess"}
    text : str
        Not escaped.
    """

    kind: Kind
    text: str


def cautions(result: Checked) -> tuple[Caution, ...]:
    """Return the cautions of a result: low bits, a doubtful pair, silenced health checks, a large detectable excess.

    A detectable excess is large if the claim is not refuted and the excess exceeds the claim: a mechanism with twice
    the claimed loss may then pass unnoticed. A claim of 0 has no such scale and gets no such caution.
    """
    if isinstance(result, StatementResult):
        return ()
    found = []
    if isinstance(result, AuditResult):
        if result.low_bits is not None:
            found.append(Caution("low bits", "low bits of the outputs break the claim; the verdict covers values only"))
        if result.pair.doubt:
            found.append(Caution("pair", f"doubtful pair: {result.pair.doubt}"))
        if result.ignored:
            found.append(Caution("silenced", f"silenced health checks: {', '.join(result.ignored)}"))
    claimed = _claimed(result)
    if result.verdict is Verdict.NOT_REFUTED and 0.0 < claimed < result.resolution:
        excess = "infinite" if math.isinf(result.resolution) else number(result.resolution)
        told = f"the smallest detectable excess ({excess}) is larger than the claim ({number(claimed)})"
        found.append(Caution("excess", told))
    return tuple(found)


def _claimed(result: AuditResult | CanaryResult) -> float:
    return (result.directed_claim if isinstance(result, AuditResult) else result.claim).strength


def heading(kind: Kind, n: int) -> str:
    """Return what is said of `n` audits with a caution of one kind."""
    audits, is_one = counted(n, "audit"), n == 1
    if kind == "low bits":
        claims, verdicts = ("the claim", "verdict covers") if is_one else (f"{n:,} claims", "verdicts cover")
        return f"Low bits of the outputs break {claims}; the {verdicts} values only"
    if kind == "pair":
        verdicts = "verdict" if is_one else "verdicts"
        return f"The datasets of {audits} may not be neighbours, so the {verdicts} may not concern the claim"
    if kind == "silenced":
        return f"Health checks were silenced in {audits}; a failure that they would have found is not shown"
    claims = "one claim that is" if is_one else f"{n:,} claims that are"
    return f"The detectable excess of {claims} not refuted is larger than the claim; twice the claim may pass unnoticed"
