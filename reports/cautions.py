"""What weakens the verdict of an audit: reasons for a person to read it before a program acts on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ..audit.health.findings import HealthCheck
from ..audit.records.suite import Checked
from ..audit.results.audit_result import AuditResult, Verdict
from ..audit.results.canary_result import CanaryResult
from ..audit.results.statement_result import StatementResult
from .plain_text import counted, number

Kind = Literal["low bits", "pair", "silenced", "idle", "excess"]
_OF_USE: Final = frozenset(
    check.value for check in (HealthCheck.EQUAL_DATASETS, HealthCheck.CONSTANT_OUTPUT, HealthCheck.IDLE_EVENT)
)
KINDS: Final[tuple[Kind, ...]] = ("low bits", "pair", "silenced", "idle", "excess")

APART: Final = frozenset[Kind]({"silenced", "idle", "excess"})
"""Kinds that the remarks of a result do not state."""


@dataclass(frozen=True, slots=True)
class Caution:
    """A reason to read a verdict with care.

    Attributes
    ----------
    kind : {"low bits", "pair", "silenced", "idle", "excess"}
    text : str
        Not escaped.
    """

    kind: Kind
    text: str


def cautions(result: Checked) -> tuple[Caution, ...]:
    """Return the cautions of a result: low bits, a doubtful pair, silenced checks, no visible loss, a large excess.

    No loss is visible if the claim is not refuted and the bound is 0: a mechanism that ignores its data gives the same.
    The bound of a training run is often 0; there, scores that are all equal or of the wrong sign are a caution.
    A detectable excess is large if the claim is not refuted and the excess exceeds the claim, as the audit's call has
    accepted: a mechanism with twice the claimed loss may then pass unnoticed. A claim of 0 has no such scale and gets
    no such caution. It says that the outputs on x and y have the same law, so the checks that ask whether the data are
    used do not concern it.
    """
    if isinstance(result, StatementResult):
        return ()
    claimed = result.directed_claim.strength
    found = []
    if isinstance(result, AuditResult):
        if result.low_bits is not None:
            found.append(Caution("low bits", "low bits of the outputs break the claim; the verdict covers values only"))
        if result.pair.doubt:
            found.append(Caution("pair", f"doubtful pair: {result.pair.doubt}"))
        silenced = [name for name in result.ignored if claimed > 0.0 or name not in _OF_USE]
        if silenced:
            found.append(Caution("silenced", f"silenced health checks: {', '.join(silenced)}"))
    if result.verdict is Verdict.NOT_REFUTED and claimed > 0.0:
        if isinstance(result, CanaryResult):
            found += [Caution("idle", f"the scores tell little: {note.removesuffix('.')}") for note in result.notes]
        elif result.bound == 0.0:
            found.append(Caution("idle", "the lower bound is 0, as if the mechanism did not use its data"))
    if result.verdict is Verdict.NOT_REFUTED and 0.0 < claimed < result.resolution:
        told = (
            f"the smallest detectable excess ({number(result.resolution)}) is larger than the claim ({number(claimed)})"
        )
        found.append(Caution("excess", told))
    return tuple(found)


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
    if kind == "idle":
        return f"No loss is visible in {audits}, as if the data were not used or scores had the wrong sign"
    claims = "one claim that is" if is_one else f"{n:,} claims that are"
    return f"The detectable excess of {claims} not refuted is larger than the claim; twice the claim may pass unnoticed"
