"""The errors in the source documents, with what running the statement as printed and as corrected gives.

Every number in the page that `errata_page` makes comes from the runs: a text names cases in braces, and each is
replaced by what its audit or check found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...audit.printing import percent
from ...audit.records.suite import Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.statement_result import StatementResult
from ...reports.plain_text import number
from .errata_texts import ERRATA, Erratum

_CASE = re.compile(r"\{([A-Z]\d+-[^{}]+)\}")  # and not the exponents


@dataclass(frozen=True, slots=True)
class _Found:
    """What a case found, in a sentence's words."""

    result: AuditResult | StatementResult
    exact: float | None

    def __str__(self) -> str:
        result = self.result
        verdict = f"**{result.verdict.value}**"
        if isinstance(result, AuditResult):
            claim = result.directed_claim
            text = f"{verdict}: {claim.describe_strength(result.bound)}, claimed {number(claim.strength)}"
        else:
            worst = result.worst
            quantity = f"{result.quantity} at {worst.at}" if worst.at else result.quantity
            text = f"{verdict}: {quantity} in {worst.interval}, {worst.allowed}"
        return text if self.exact is None else f"{text}, exact {number(self.exact)}"


def cases_of(errata: Sequence[Erratum] = ERRATA) -> list[str]:
    """Names of the cases that the texts mention, each once."""
    return list(dict.fromkeys(name for erratum in errata for name in _CASE.findall(erratum.text)))


def errata_page(suite: Suite) -> str:
    """The page in Markdown, from a suite that holds every case of `cases_of`."""
    ids = {entry.name: entry.experiment for entry in suite.entries}
    found = {entry.name: _Found(entry.result, entry.exact) for entry in suite.entries}
    alphas = sorted({entry.result.alpha for entry in suite.entries})
    seed = suite.entries[0].result.seed
    parts = [
        "# Errors in the sources",
        "The documents that this project started from contain the errors below. Where a statement can be run, it was "
        "run as printed and as corrected: in parentheses stands the case (`dpaudit run CASE` repeats it) and what it "
        f"found, at {' or '.join(percent(1 - alpha) for alpha in alphas)} confidence with seed {seed}. This page is "
        "written by `dpaudit bench errata`.",
    ]
    for place, erratum in enumerate(ERRATA, start=1):
        rows = list(dict.fromkeys(ids[name] for name in _CASE.findall(erratum.text)))
        heading = f"## {place}. {erratum.title}"
        about = f"*{erratum.source}" + (f"; row{'s' if len(rows) > 1 else ''} {', '.join(rows)}*" if rows else "*")
        text = _CASE.sub(lambda match: f"(`{match[1]}` {found[match[1]]})", erratum.text)
        parts += [heading, about, text]
    return "\n\n".join(parts) + "\n"
