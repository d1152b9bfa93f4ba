"""Words that the pages, docstrings and messages avoid, and turns of phrase that they use seldom.

Each pattern has a plainer word next to it.
"""

import ast
import functools
import re
from pathlib import Path

import pytest

from dpaudit.audit.health.findings import HealthCheck

from .test_docs import text_of

ROOT = Path(__file__).resolve().parents[1]
TOP_LEVEL = ("audit", "mechanisms", "experiments", "reports")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "docs").rglob("*.ipynb"))
QUOTED = ("benchmarks", "sources.md")  # output of programs, titles

# What is avoided, and what to write.
AVOIDED = {
    r"\bbesides\b": "also, or a new sentence",
    r"\bwhatever\b": "for any, regardless of",
    r"\bwhoever\b": "the person: an observer, a user",
    r"(?<!not )\bat all(?=[.,;:?!)]|$)": "nothing",
    r"(?<!there )\bis no (?!longer\b|more\b|less\b)": "is not a",
    r"\bnobody (?:states|says|asks)\b": "no claim is given",
    r"\bin words\b": "leave it out",
    r"\bin sight\b": "the counts",
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
    # But for names of options, and the last in titles.
    r"\b(?!(?:sizes?|sized|resize|prize|seize|parametrize|discretization|maximiz(?:ed|ing))\b)[a-z]*"
    r"(?:ize[sd]?|izing|ization|yze[sd]?|yzing)\b": "-ise, -yse",
    r"\b(?:behavior|color|neighbor|favor|fulfill|modeled|labeled|(?<!upper )center)(?!ed_|s?_)\w*": "neighbour",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE | re.MULTILINE): better for pattern, better in AVOIDED.items()}


def avoided(text: str) -> list[str]:
    """What is avoided in a text, with what to write."""
    return [f"{found[0]!r}: write {better}" for pattern, better in PATTERNS.items() for found in pattern.finditer(text)]


def prose(page: Path) -> str:
    """A page without code, links and quoted titles; its line breaks become spaces."""
    text = re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$", " ", text_of(page), flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)|^.*\barXiv\b.*$", "]", text, flags=re.MULTILINE)
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


@functools.cache
def texts(path: Path) -> list[ast.Constant | ast.JoinedStr]:
    """The texts in a module, with and without values; each module is parsed once for all tests."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in nodes if isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)]


@functools.cache
def spoken(path: Path) -> list[tuple[int, str]]:
    """Docstrings and texts of messages in a module, with their lines."""
    found = []
    for node in texts(path):
        if isinstance(node, ast.Constant) and " " in node.value:
            if re.search(r"[a-z]: ?[^;{}. ]+[^;{}.]*;[a-z-]+:|\{[a-z-]+:", node.value):
                continue  # a style sheet
            said = re.sub(r"\bReferences\n.*", "", node.value, flags=re.DOTALL)  # titles, as they were printed
            text = re.sub(r"``?[^`]*``?|>>> .*|\"[^\"\n]*\"", " ", said)
            found.append((node.lineno, "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))))
    return found


def test_pages_use_plain_words():
    pages = [page for page in PAGES if not {*page.parts} & {*QUOTED}]
    assert len(pages) > 60
    found = [f"{page.relative_to(ROOT)}: {what}" for page in pages for what in avoided(prose(page))]
    assert not found, "\n".join(found)


def test_docstrings_and_messages_use_plain_words():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for folder in TOP_LEVEL
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in spoken(path)
        for what in avoided(text)
    ]
    assert not found, "\n".join(found)


# English that turns into a dialect if it is frequent: name, pattern, an example, and what to write.
_START = r"(?:^|(?<=[.;:|-] ))"
_WHEN = "that|this|it|they|there|no|nothing|none|neither|either|both"
DIALECT = [
    ("alone", r"\balone\b", "the first alone is tested", "only, by itself"),
    ("beside", r"\bbeside\b", "the bound beside the claim", "next to, in addition"),
    ("told", r"\b(?:tells?|told|telling)\b", "values are told apart", "says, shows, distinguishes"),
    ("hardly", r"\bhardly\b", "they hardly differ", "barely, rarely, or a number"),
    ("likelier", r"\blikeli(?:er|est)\b", "the likeliest value", "more likely, most likely"),
    ("Of", rf"{_START}Of\b(?! course)", "Of two pairs the first is kept", "the main statement first"),
    (
        "where",
        rf"{_START}Where\b(?![^.]*\?)|\b(?:only|also|or|even|except|but|and|not) where\b|"
        rf"\b(?:None|NaN|infinite|empty|zero|0) where\b|\bwhere (?:{_WHEN})\b",
        "None where the claim has no limit",
        "if, when, for",
    ),
    ("is no", r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|less|matter)", "it is no claim", "is not a"),
    (
        "from … on",
        r"\bfrom (?:(?!\b(?:to|and)\b)[^.,;:()]){1,40} on(?=[.,;:)]|$| (?:is|are|was|has|to)\b)",
        "from the third run on",
        "beginning with, at least",
    ),
    (
        "free relative",
        r"(?<=[.;] )(?:What|Who)\b(?![^.]*\?)|\b(?:that|because|if|as|so) what (?:\w+ ){1,6}?(?:is|are|was|were)\b",
        "It is short. What it takes is a list.",
        "a noun as the subject",
    ),
]
TURNS = [(name, re.compile(pattern, re.MULTILINE), better) for name, pattern, _, better in DIALECT]
ONE_IN = 300  # words of a page, or of the docstrings and messages of a folder, for each such turn of phrase
BY_PROGRAMS = {"package-page.md", "gallery.md", "sources-errata.md"}
BY_HAND = [
    page
    for page in [*PAGES, ROOT / "SECURITY.md"]
    if page.name not in BY_PROGRAMS and not {*page.parts} & {"decisions", "benchmarks"}
]


def turns(texts: list[tuple[str, int, str]]) -> list[str]:
    """The turns of phrase in texts with a place and the line at which each begins, if they are too many."""
    found = [
        f"{place}:{line + text.count(chr(0), 0, match.start())}: {match[0]!r} ({name}): write {better}"
        for place, line, text in texts
        for name, pattern, better in TURNS
        for match in pattern.finditer(text.replace(chr(0), " "))
    ]
    words = sum(len(text.split()) for _, _, text in texts)
    return found if len(found) > max(1, words // ONE_IN) else []


def lines_of(page: Path) -> str:
    """A page without code, formulas and links, in which NUL stands for the line breaks within paragraphs."""
    code = r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|(?<=\])\([^)]*\)"
    text = re.sub(code, lambda found: re.sub(r"[^\n]", " ", found[0]), text_of(page), flags=re.DOTALL)
    return re.sub(r"(?<!\n)\n(?!\n)", chr(0), text)


@pytest.mark.parametrize(("name", "example"), [(name, example) for name, _, example, _ in DIALECT])
def test_each_turn_of_phrase_is_found(name, example):
    long = f"{example}, and more. "
    (first, *_) = turns([("page", 3, f"A line.{chr(0)}{long}"), ("page", 9, long)])
    assert f"({name})" in first
    assert first.startswith("page:4: ")
    assert turns([("page", 3, f"{long} {'word ' * 2 * ONE_IN}")]) == []


def test_pages_are_not_in_dialect():
    assert len(BY_HAND) > 60
    found = [each for page in BY_HAND for each in turns([(str(page.relative_to(ROOT)), 1, lines_of(page))])]
    assert not found, "\n".join(found)


def test_docstrings_and_messages_are_not_in_dialect():
    folders = sorted({path.parent for folder in TOP_LEVEL for path in (ROOT / folder).rglob("*.py")})
    found = [
        each
        for folder in folders
        for each in turns(
            [(str(path.relative_to(ROOT)), *said) for path in sorted(folder.glob("*.py")) for said in spoken(path)]
        )
    ]
    assert not found, "\n".join(found)


TROUBLES = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def test_every_health_check_has_its_remedy():
    """A section with its name, of a sentence that says what was seen and one that says what to do."""
    sections = dict(re.findall(r"^### (.*)\n\n((?:(?!#).+\n?)+)", TROUBLES, re.MULTILINE))
    assert set(sections) == {check.value for check in HealthCheck}
    assert all(len(re.findall(r"\.(?:\s|$)", section)) >= 2 for section in sections.values())


def test_troubles_are_named_as_they_are_printed():
    """Each printed text in a table of the page is in a message; an ellipsis stands for names and numbers."""
    messages = "\n".join(
        "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        if isinstance(node, ast.JoinedStr)
        else str(node.value)
        for folder in TOP_LEVEL
        for path in (ROOT / folder).rglob("*.py")
        for node in texts(path)
    )
    tables = TROUBLES.partition("## pytest")[0]
    printed = [
        text for row in re.findall(r"^\| (`.*?) \|", tables, re.MULTILINE) for text in re.findall("`([^`]+)`", row)
    ]
    parts = [part.strip() for text in printed for part in text.split("…") if len(part.strip()) > 3]
    assert len(printed) > 60
    assert [part for part in parts if part not in messages] == []
