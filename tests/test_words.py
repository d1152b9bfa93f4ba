"""Words that the pages, docstrings and messages avoid; each pattern has a plainer word beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("audit", "mechanisms", "experiments", "reports")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
QUOTED = ("benchmarks", "sources.md", "sources-errata.md", "findings.md", "findings")  # titles, output of programs

# What is avoided, and what to write.
AVOIDED = {
    r"\bbesides\b": "also, or a new sentence",
    r"\bwhatever\b": "for any, regardless of",
    r"\bwhoever\b": "the person: an observer, a user",
    r"(?<!not )\bat all(?=[.,;:?!)]|$)": "nothing",
    r"(?<!there )\bis no (?!longer\b|more\b|less\b)": "is not a",
    r"\bnobody (?:states|says|asks)\b": "no claim is given",
    r"\bin words\b": "leave it out",
    r"\bin sight\b": "the point estimate is infinite",
    r"\bnothing was found out\b": "inconclusive",
    r"\bexcess findable\b": "detectable excess",
    r"\bwould have been found with probability\b": "minimum detectable excess: … (95% power)",
    r"\bmore; in both\b": "x has one more row; both contain",
    r"\bfalse alarm among them\b": "family-wise error",
    r"\bwhat is said from (?:below|above)\b": "lower bounds, upper bounds",
    r"\bthe counts contradict the differential privacy it claims\b": "the observed counts contradict its privacy claim",
    r"\bbeside other testers\b": "comparison with other tools",
    r"\bright and wrong$": "reference suite",
    r"\b(?:stands|stand) the\b": "subject, verb, object",
    r"\bbeing the case\b": "so",
    r"\bin order to\b": "to",
    r"\bthe fact that\b": "that",
    r"\b(?:utilise|leverage)[sd]?\b": "use",
    r"\b(?:don|doesn|didn|isn|aren|wasn|weren|can|won|couldn|shouldn|wouldn|hasn|haven)'t\b": "do not",
    r"\b(?:it|that|there|what|let)'s (?:a|an|the|not|no)\b": "it is",
    r"\b(?:normaliz|randomiz|optimiz|minimiz|summariz|analyz|generaliz|recogniz|organiz)\w*": "-ise",
    r"\b(?:behavior|color|neighbor|favor)(?!ed_|s?_)\w*": "neighbour",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE | re.MULTILINE): better for pattern, better in AVOIDED.items()}


def avoided(text: str) -> list[str]:
    """What is avoided in a text, with what to write."""
    return [f"{found[0]!r}: write {better}" for pattern, better in PATTERNS.items() for found in pattern.finditer(text)]


def prose(page: Path) -> str:
    """A page without code, links and quoted titles; its line breaks become spaces."""
    text = re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|^.*\barXiv\b.*$", "]", text, flags=re.MULTILINE)
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def spoken(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings and texts of messages in a module, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            if re.search(r"[a-z]: ?[^;{}. ]+[^;{}.]*;[a-z-]+:|\{[a-z-]+:", node.value):
                continue  # a style sheet
            said = re.sub(r"\bReferences\n.*", "", node.value, flags=re.DOTALL)  # titles, as they were printed
            text = re.sub(r"``?[^`]*``?|>>> .*|\"[^\"\n]*\"", " ", said)
            yield node.lineno, "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def test_pages_use_plain_words():
    pages = [page for page in PAGES if not {*page.parts} & {*QUOTED}]
    assert len(pages) > 60
    found = [f"{page.relative_to(ROOT)}: {what}" for page in pages for what in avoided(prose(page))]
    assert not found, "\n".join(found)


def test_docstrings_and_messages_use_plain_words():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for line, text in spoken(path)
        for what in avoided(text)
    ]
    assert not found, "\n".join(found)
