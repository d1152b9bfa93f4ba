"""What is stated for all audits of a page together, and what the first screen says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...audit.printing import percent
from ...audit.records.suite import Entry, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.statement_result import StatementResult
from ...audit.results.verdict import Verdict
from .. import plain_text as plain

FAMILY_WISE = 0.05
IN_NO_AUDIT = (
    "the composition of a mechanism with other releases (privacy accounting)",
    "proofs, and whether the claimed parameters are adequate",
    "post-processing that uses the data again",
    "running time, memory and other side channels",
    "the random generator used in production",
    "data collection, security and access control",
)
"""What no audit examines."""


def by_severity(entries: Sequence[Entry]) -> list[Entry]:
    """Refuted claims by decreasing severity, then inconclusive audits, then the rest; otherwise in the given order.

    The severity of a refuted claim is its lower bound as a multiple of the claim, infinite for a claim of 0. Refuted
    statements follow the claims, by the distance of their worst number from the stated range in interval widths.
    """
    return sorted(entries, key=_rank)


def _rank(entry: Entry) -> tuple[int, bool, float]:
    result, place = entry.result, plain.READING_ORDER.index(entry.result.verdict)
    if not result.is_refuted:
        return place, False, 0.0
    if isinstance(result, StatementResult):
        return place, True, -max(point.excess for point in result.points)
    return place, False, -plain.severity(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Statements on all audits of a page together."""

    headline: str  # family-wise alpha and confidence, for the first screen
    sentences: tuple[str, ...]
    refuted_together: tuple[str, ...]  # names of the claims that are refuted at family-wise error 0.05
    refuted_alone: tuple[str, ...]  # names of the other refuted claims


def limits_of(suite: Suite) -> Limits:
    """What holds for the whole page, by the union bound and by Holm's method."""
    n, total = len(suite.entries), plain.false_alarms(suite)
    adjusted = dict(zip(map(id, suite.entries), suite.adjusted_pvalues(), strict=True))
    refuted = [entry for entry in by_severity(suite.entries) if entry.result.is_refuted]
    together = tuple(plain.visible(each.name, 100) for each in refuted if adjusted[id(each)] <= FAMILY_WISE)
    alone = tuple(plain.visible(each.name, 100) for each in refuted if adjusted[id(each)] > FAMILY_WISE)
    if not n:
        return Limits(headline="", sentences=(), refuted_together=(), refuted_alone=())
    summed, alphas = _in_two_digits(total), sorted({entry.result.alpha for entry in suite.entries})
    of_each = " or ".join(map(plain.number, alphas))
    each = f"{percent(1 - alphas[0])} each" if len(alphas) == 1 else f"{percent(1 - alphas[-1])} or more each"
    if n == 1:
        headline = f"alpha {of_each}, confidence {percent(1 - total)}"
        sentences = [f"The limits of this audit hold together with confidence {percent(1 - total)}."]
    elif total < 1.0:
        headline = (
            f"family-wise alpha {summed} (alpha {of_each} each), confidence {percent(1 - total)} for all together"
        )
        sentences = [
            f"All lower bounds and intervals of the {n:,} audits hold together with confidence {percent(1 - total)}: "
            f"the probability that any is wrong is at most {summed}, the sum of the alphas."
        ]
    else:
        headline = f"alpha {of_each} each, confidence {each}; no family-wise confidence, as the alphas sum to {summed}"
        sentences = [
            f"Each bound holds with its own confidence ({each}). All {n:,} bounds together have no stated confidence, "
            f"because the alphas sum to {summed}."
        ]
    if n > 1 and total > FAMILY_WISE:
        sentences.append(
            f"For bounds that hold together with 95% confidence, repeat the audits with alpha at most "
            f"{_in_two_digits(FAMILY_WISE / n, math.floor)}."
        )
    sentences += [plain.held_together(suite)] if n > 1 else []
    if any(isinstance(entry.result, AuditResult) and entry.result.findings for entry in suite.entries):
        sentences.append("Audits with a failed health check state no bound and refute nothing.")
    if any(isinstance(entry.result, AuditResult) and entry.result.stopped == "refuted" for entry in refuted):
        sentences.append(
            "An audit that stopped at its refutation states the bound at that moment, which may be little above the "
            "claim although the violation is large. Its multiple × says little about severity."
        )
    parameters = {each.result.claim.parameter_name for each in refuted if not isinstance(each.result, StatementResult)}
    if len(parameters) > 1:
        letters = " and ".join(sorted(map(plain.symbol, parameters)))
        sentences.append(
            f"× is the lower bound as a multiple of the claimed parameter. Multiples of {letters} stand in one list, "
            "but they measure different things."
        )
    sentences.append(
        "The confidence covers every choice made inside an audit: event, direction, interim analyses. It does not "
        "cover other datasets, the choice of the audits after a look at their results, or the warnings of "
        "floating-point leaks and "
        "the health checks, whose false-alarm probabilities are in each error budget."
    )
    sentences.append(f"No audit examines {'; '.join(IN_NO_AUDIT)}.")
    return Limits(headline=headline, sentences=tuple(sentences), refuted_together=together, refuted_alone=alone)


def _in_two_digits(value: float, to_integer: Callable[[float], int] = math.ceil) -> str:
    digits = 1 - math.floor(math.log10(value))
    scaled = round(value * 10.0**digits, 9)
    return f"{to_integer(scaled) / 10.0**digits:.2g}"


def about(suite: Suite) -> str:
    """One line: who audited with what version and when, and the error probability of the whole page."""
    records = plain.environments(suite)
    people = dict.fromkeys(str(one["by"]) for one in records if one.get("by"))
    versions = sorted(
        {version for entry in suite.entries for name, version in entry.result.versions if name == "dpaudit"}
    )
    days = sorted(str(moment)[:16] for one in records if (moment := one.get("started") or one.get("saved")))
    when = " to ".join(dict.fromkeys([days[0], days[-1]])).replace("T", " ") + " UTC" if days else "time not recorded"
    parts = [
        f"Audited by {', '.join(people)}" if people else "",
        f"dpaudit {', '.join(versions)}" if versions else "version not recorded",
        when,
        limits_of(suite).headline,
        "" if people else "auditor not recorded",
    ]
    return plain.visible(" · ".join(filter(None, parts)), 400)


def what_to_do(suite: Suite) -> dict[Verdict, str]:
    """For each verdict, what a reader does next."""
    refuted = [entry for entry in suite.entries if entry.result.is_refuted]
    on_refuted = (
        "Do not release under these claims. The section of each audit describes the pair and the event and has the "
        "call that repeats the audit. Correct the code or weaken the claim, and audit again."
    )
    if refuted and plain.is_self_test(suite) and all(entry.is_met for entry in refuted):
        on_refuted = "These are deliberately faulty mechanisms that the self-test must refute. No action is needed."
    return {
        Verdict.REFUTED: on_refuted,
        Verdict.INCONCLUSIVE: (
            "An inconclusive audit decides nothing, so do not release on it. Correct what the failed health check "
            "names, or use more runs, and audit again."
        ),
        Verdict.NOT_REFUTED: (
            "No violation was found on these datasets. This is not a proof: an excess below the minimum detectable "
            "one, or one on other datasets, may exist. Before a release, check in the table that the minimum "
            "detectable excess is small enough, and in the limits what no audit examines."
        ),
    }
