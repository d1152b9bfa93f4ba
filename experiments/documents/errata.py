"""The page on errors in the source documents.

Every number in the page comes from a run: a text names cases in braces, and `errata_page` replaces each name by the
result of its audit or check.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...audit.printing import percent
from ...audit.records.suite import Checked, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.statement_result import StatementResult
from ...reports.plain_text import number
from .errata_texts import ERRATA, Erratum

_CASE = re.compile(r"\{([A-Z]\d+-[^{}]+)\}")  # does not match the exponents


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of a case as a phrase."""

    result: Checked
    exact: float | None

    def __str__(self) -> str:
        result = self.result
        verdict = f"**{result.verdict.value}**"
        if not isinstance(result, StatementResult):
            claim = result.directed_claim if isinstance(result, AuditResult) else result.claim
            text = f"{verdict}: {claim.describe_strength(result.bound)}, claimed {number(claim.strength)}"
        else:
            worst = result.worst
            quantity = f"{result.quantity} at {worst.at}" if worst.at else result.quantity
            text = f"{verdict}: {quantity} in {worst.interval}, {worst.allowed}"
        return text if self.exact is None else f"{text}, exact {number(self.exact)}"


def cases_of(errata: Sequence[Erratum] = ERRATA) -> list[str]:
    """Return the names of the cases that the texts mention, each once."""
    return list(dict.fromkeys(name for erratum in errata for name in _CASE.findall(erratum.text)))


def errata_page(suite: Suite) -> str:
    """Return the page in Markdown, from a suite with every case of `cases_of`."""
    ids = {entry.name: entry.experiment for entry in suite.entries}
    found = {entry.name: _Found(entry.result, entry.exact) for entry in suite.entries}
    alphas = sorted({entry.result.alpha for entry in suite.entries})
    seed = suite.entries[0].result.seed
    parts = [
        "# Errors in the sources",
        "The source documents of the experiments contain the errors below. Statements that can be run were run as "
        "printed and as corrected. The parentheses give the case (`dpaudit run CASE` repeats it) and its result, at "
        f"{' or '.join(percent(1 - alpha) for alpha in alphas)} confidence with seed {seed}. `dpaudit bench errata` "
        "writes this page.",
    ]
    for place, erratum in enumerate(ERRATA, start=1):
        rows = list(dict.fromkeys(ids[name] for name in _CASE.findall(erratum.text)))
        heading = f"## {place}. {erratum.title}"
        about = f"*{erratum.source}" + (
            f"; experiment{'s' if len(rows) > 1 else ''} {', '.join(rows)}*" if rows else "*"
        )
        text = _CASE.sub(lambda match: f"(`{match[1]}` {found[match[1]]})", erratum.text)
        parts += [heading, about, text]
    return "\n\n".join(parts) + "\n"
