"""The verdict of ``dpaudit audit``: with symbols and options in place of names in Python, and what to do next."""

from __future__ import annotations

import math
import re
from typing import Any

from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ...audit.claims.renyi import ZeroConcentratedDP
from ...audit.printing import rounded_down, verdict_text
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.canary_result import CanaryResult
from ...reports.plain_text import symbol
from .option_names import in_options

_COMPARED = re.compile(r"\b(epsilon|delta|mu|rho) (>=|>) ")
_AT = re.compile(r" at (epsilon|delta) (?=[\d.])")


def with_symbols(text: str) -> str:
    """Return a text whose bounds are written with symbols.

    Examples
    --------
    >>> with_symbols("REFUTED: epsilon >= 1.02 at delta 1e-05, claimed 1")
    'REFUTED: ε ≥ 1.02 at δ = 1e-05, claimed 1'
    """
    text = _COMPARED.sub(lambda found: f"{symbol(found[1])} {'≥' if found[2] == '>=' else '>'} ", text)
    return _AT.sub(lambda found: f" at {symbol(found[1])} = ", text)


def in_shell(text: str, result: AuditResult | CanaryResult) -> str:
    """Return a text that contains the printed result, with the verdict in the words of the shell."""
    remarks = [with_symbols(in_options(remark)) for remark in result.remarks]
    return text.replace(str(result), verdict_text(with_symbols(result.sentence), remarks), 1)


def next_steps(result: AuditResult, *, has_runs: bool, is_searched: bool, out: object) -> list[str]:
    """Return up to three lines on what to do after a verdict; `has_runs` says whether --runs was given."""
    report = "--out DIR writes a report" if out is None else f"{out}/report.html shows the event"
    if result.verdict is Verdict.REFUTED:
        return [
            f"next: --seed {result.seed + 1} repeats the audit on new runs; {report}",
            "      in pytest, --dp-audit-scripts=DIR writes a script that shows the violation with numpy alone",
        ]
    if result.findings:
        return [
            "next: follow the remedy of each failed health check, and audit again; the verdict says nothing about the "
            "claim"
        ]
    planned = _plan(result.claim, result)
    below = [f"      {planned}"] if planned else []
    cut_short = ["next: a larger --seconds allows more runs, which detect smaller excesses", *below]
    if result.verdict is Verdict.INCONCLUSIVE:
        wanted = result.requested_resolution
        if result.stopped == "time":
            return cut_short
        more = f"--runs {10 * result.runs} detects smaller excesses"
        if wanted is not None and has_runs:
            more = f"without --runs, the audit makes as many runs as --resolution {wanted:g} needs"
        return [f"next: {more}", *below]
    smaller = [f"next: {planned}" if planned else "next: more --runs detect smaller excesses"]
    if result.stopped == "time":
        smaller = cut_short
    other = (
        "      more --search-runs try more pairs"
        if is_searched
        else "      --search MODULE:OBJECT in place of --x and --y looks for the worst pair of neighbours"
    )
    return [*smaller, other]


def next_steps_for_canaries(result: CanaryResult, *, out: object) -> list[str]:
    """Return one or two lines on what to do after the audit of a training run."""
    report = "--out DIR writes a report" if out is None else f"{out}/report.html shows scores and guesses"
    if result.verdict is Verdict.REFUTED:
        return [f"next: look at the clipping, the noise and the sampling of the training; {report}"]
    more = "more canaries, or files of several runs with new coins, raise the ceiling"
    if result.verdict is Verdict.INCONCLUSIVE:
        return [f"next: {more}"]
    return [f"next: {more}", f"      scores that see more of the training raise the bound; {report}"]


def _plan(claim: Claim, result: AuditResult) -> str:
    """Name the command that plans a smaller detectable excess; empty for a claim that options cannot state."""
    options = _options_of(claim)
    wanted = result.requested_resolution if result.verdict is Verdict.INCONCLUSIVE else result.resolution / 2
    if not options or wanted is None or not 0.0 < wanted < math.inf:
        return ""
    excess = rounded_down(wanted, 2)
    return f"`dpaudit plan {options} --resolution {excess:g}` shows the runs that detect an excess of {excess:g}"


def _options_of(claim: Claim) -> str:
    given: dict[str, Any]
    match claim:
        case PureDP():
            given = {"epsilon": claim.epsilon}
        case ApproxDP(bound_on="epsilon"):
            given = {"epsilon": claim.epsilon, "delta": claim.delta}
        case GaussianDP():
            given = {"mu": claim.mu}
        case ZeroConcentratedDP():
            given = {"rho": claim.rho}
        case _:
            return ""
    return " ".join(f"--{name} {value:g}" for name, value in given.items())
