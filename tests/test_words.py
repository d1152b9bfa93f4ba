"""Words that the pages, docstrings and messages avoid; each pattern has a plainer word beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("audit", "mechanisms", "experiments", "reports")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
QUOTED = ("benchmarks", "sources.md", "sources-errata.md", "findings.md", "findings")  # titles, output of programs

# What is avoided, with an example, and what to write.
AVOIDED = {
    r"\bbesides\b": ("Besides, it is slow.", "also, or a new sentence"),
    r"\bwhatever\b": ("whatever the number of workers", "for any, regardless of"),
    r"\bwhoever\b": ("Whoever guesses the coins", "the person: an observer, a user"),
    r"(?<!not )\bat all(?=[.,;:?!)]|$)": ("It has no rows at all.", "nothing"),
    r"(?<!there )\bis no (?!longer\b|more\b|less\b)": ("This is no proof.", "is not a"),
    r"\bnobody (?:states|says|asks)\b": ("a claim that nobody states", "no claim is given"),
    r"\bin words\b": ("The claim in words.", "leave it out"),
    r"\bin sight\b": ("no finite epsilon is in sight", "the point estimate is infinite"),
    r"\bnothing was found out\b": ("or nothing was found out", "inconclusive"),
    r"\bexcess findable\b": ("excess findable", "detectable excess"),
    r"\bwould have been found with probability\b": (
        "an excess would have been found with probability 0.95", "smallest detectable excess: … (95% power)"),
    r"\bmore; in both\b": ("1 more; in both one 1.0", "x has one more row; both contain"),
    r"\bfalse alarm among them\b": ("If any false alarm among them", "family-wise error"),
    r"\bwhat is said from (?:below|above)\b": ("What is said from below holds", "lower bounds, upper bounds"),
    r"\bthe counts contradict the differential privacy it claims\b": (
        "the counts contradict the differential privacy it claims", "the observed counts contradict its privacy claim"),
    r"\bbeside other testers\b": ("Beside other testers", "comparison with other tools"),
    r"\bright and wrong$": ("Mechanisms, right and wrong", "reference suite"),
    r"\b(?:stands|stand) the\b": ("In the table stands the bound.", "subject, verb, object"),
    r"\bbeing the case\b": ("That being the case", "so"),
    r"\bin order to\b": ("in order to audit", "to"),
    r"\bthe fact that\b": ("the fact that it holds", "that"),
    r"\b(?:utilise|leverage)[sd]?\b": ("leverages runs", "use"),
    r"\b(?:don|doesn|didn|isn|aren|wasn|weren|can|won|couldn|shouldn|wouldn|hasn|haven)'t\b": ("don't", "do not"),
    r"\b(?:it|that|there|what|let)'s (?:a|an|the|not|no)\b": ("it's a bug", "it is"),
    r"\b(?:normaliz|randomiz|optimiz|minimiz|summariz|analyz|generaliz|recogniz|organiz)\w*": ("randomized", "-ise"),
    r"\b(?:behavior|color|neighbor|favor)(?!ed_|s?_)\w*": ("neighbor", "neighbour"),
}  # fmt: skip
PATTERNS = {re.compile(pattern, re.IGNORECASE | re.MULTILINE): better for pattern, (_, better) in AVOIDED.items()}


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


@pytest.mark.parametrize("example", [example for example, _ in AVOIDED.values()])
def test_what_is_avoided_is_seen(example):
    """The wrong twin of each pattern."""
    assert avoided(example)


def test_plain_sentences_pass():
    plain = "The test is not a proof, there is no longer a claim, and the bound holds at all looks: the event is rare."
    assert not avoided(plain)


def test_pages_use_plain_words():
    pages = [page for page in PAGES if not {*page.parts} & {*QUOTED}]
    assert len(pages) > 70
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
