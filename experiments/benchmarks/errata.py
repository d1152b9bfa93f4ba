"""The page on errors in the source documents, whose numbers come from runs.

Its text is in `errata.md`, where the name of a case in braces stands for the result of its audit or check.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ...audit.printing import percent
from ...audit.records.suite import Entry, Suite
from ...reports.plain_text import number

_CASE: Final = re.compile(r"\{([A-Z]\d+-[^{}]+)\}")  # does not match the exponents


def errata_text() -> str:
    """Return the page with names of cases in place of their results."""
    return Path(__file__).with_suffix(".md").read_text(encoding="utf-8")


def cases_of(text: str | None = None) -> list[str]:
    """Return the names of the cases that the page, or a part of it, mentions, each once."""
    return list(dict.fromkeys(_CASE.findall(errata_text() if text is None else text)))


def errata_page(suite: Suite) -> str:
    """Return the page in Markdown, from a suite with every case of the text."""
    found = {f"{{{entry.name}}}": f"(`{entry.name}` {_in_words(entry)})" for entry in suite.entries}
    levels = sorted({entry.result.alpha for entry in suite.entries})
    found["{confidence}"] = " or ".join(percent(1 - alpha) for alpha in levels)
    found["{seed}"] = str(suite.entries[0].result.seed)
    paragraphs = (paragraph.replace("\n", " ") for paragraph in errata_text().rstrip().split("\n\n"))
    places = rf"{_CASE.pattern}|\{{confidence\}}|\{{seed\}}"
    return re.sub(places, lambda place: found[place[0]], "\n\n".join(paragraphs)) + "\n"


def _in_words(entry: Entry) -> str:
    result = entry.result
    verdict = f"**{result.verdict.value}**"
    if result.claim is not None:
        claim = result.directed_claim
        text = f"{verdict}: {claim.describe_parameter(result.bound)}, claimed {number(claim.parameter)}"
    else:
        worst = result.worst
        quantity = f"{result.quantity} at {worst.at}" if worst.at else result.quantity
        text = f"{verdict}: {quantity} in {worst.interval}, {worst.allowed}"
    return text if entry.exact is None else f"{text}, exact {number(entry.exact)}"
