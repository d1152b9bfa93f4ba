"""HTML, Markdown and the terminal's table: the numbers are the result's, and hostile names are only text."""

import base64
import hashlib
import io
import math
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from dpaudit import PureDP, Verdict, check
from dpaudit.audit.events.events import Outcomes, Sketch
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.records.suite import Entry, Suite, side_check
from dpaudit.audit.results.claim_pair_and_alpha import Pair
from dpaudit.reports import html, lines, markdown, table
from dpaudit.reports.pages.markdown_page import escaped
from dpaudit.reports.plain_text import attack_lines, attack_table, found, number, printed_lines, visible

from ..examples import large as result
from ..test_snapshots import SUITE

HOSTILE = [
    "<script>alert(1)</script>",
    "a|b",
    "two\nlines\r\nand\ttab",
    "bell\x07 null\x00 escape\x1b[31m",
    "w" * 10_000,
    "right\u202eto left",
    "lone \ud800 surrogate",
    '"><img src=http://example.org/x onerror=alert(1)>',
    "`code` *bold* _it_ [link](http://example.org) ![i](x) ~~no~~ \\| end\\",
    "# heading",
    "- item",
    "1. item",
    "{{ 7 * 7 }} {% raw %}",
    "[bold red]markup[/bold red] [/]",
    "@someone #12 www.example.org",
    "$x$ \\frac{1}{2} %",
    "日本語 עברית 😀",
    "",
]


FINDING = Finding(HealthCheck.DUPLICATE_OUTPUTS, "2 of 9 blocks are equal.")


@pytest.fixture(scope="module")
def hostile():
    entries = tuple(
        Entry(
            name=name,
            result=result(
                mechanism=name,
                bound=2.0,
                pair=Pair(x=name, y=name, difference=name, adjacency=name, distance=2, contents=(name, name)),
                event=Outcomes((name, None)),
                sketch=Sketch((name, "b"), (), (30, 20), (20, 30)),
                findings=(Finding(HealthCheck.NONSTATIONARY, name),) * (index % 2),
                versions=((name, name),),
                environment={name: name},
            ),
            expected=Verdict.NOT_REFUTED,
            note=name,
        )
        for index, name in enumerate(HOSTILE)
    )
    return Suite(title=HOSTILE[0], entries=entries, environment={name: [name] for name in HOSTILE})


@pytest.fixture(scope="module")
def suite_page():
    return html(SUITE)


@pytest.fixture(scope="module")
def hostile_page(hostile):
    return html(hostile)


class Page(HTMLParser):
    """Checks nesting, and collects tags, attributes and text."""

    void = frozenset(["meta", "link", "br", "img", "hr", "input"])

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.parts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.parts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.parts).split())


@pytest.mark.parametrize("name", ["suite", "hostile"])
def test_page_is_well_formed_and_fetches_nothing(name, request):
    text = request.getfixturevalue(f"{name}_page")
    page = Page(text)
    assert page.tags.count("script") == 1
    assert not {"img", "link", "iframe", "object", "image"} & set(page.tags)
    links = [
        value for key, value in page.attributes if key in ("src", "href", "xlink:href", "srcset", "action", "data")
    ]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not [key for key, _ in page.attributes if key.startswith("on")]
    ids = [value for key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)
    assert "@import" not in text
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(value for _, value in page.attributes if value is not None and "default-src" in value)
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", "".join(map(str, page.attributes))))
    text.encode("utf-8")


def test_hostile_names_are_legible_text_in_the_page(hostile, hostile_page):
    for text in (hostile_page, markdown(hostile), *(lines(entry.result) for entry in hostile.entries)):
        assert [char for char in set(text) if not char.isprintable()] == ["\n"]
    page = Page(hostile_page)
    for name in HOSTILE:
        assert " ".join(visible(name, 100).split()) in page.text
    assert "two\\nlines\\r\\nand\\ttab" in page.text
    assert "right\\u202eto left" in page.text
    assert "lone \\ud800 surrogate" in page.text
    assert max(len(part) for part in page.parts if "--card" not in part) < 10_000  # not the style sheet


def test_hostile_names_are_text_in_markdown_and_in_the_table(hostile):
    text = markdown(hostile)
    rows = [re.sub(r"\\\\|\\\|", "", line) for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == len(hostile.entries) + 2
    assert {row.count("|") for row in rows} == {8}
    assert set(re.findall(r"<[^>]*>", text)) == {"<sub>", "</sub>", "<!-- -->"}
    assert not re.search(r"(?<!\\)`", text)
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "://" not in text.replace("<!-- -->", "\0")
    assert max(map(len, text.splitlines())) < 10_000
    assert "[bold red]markup[/bold red]" in printed(hostile, 400)


ESCAPES = {
    "a|b": r"a\|b", "a\\|b": r"a\\\|b", "<b>&amp;": "&lt;b>&amp;amp;", "- item": r"\- item",
    "-1 is a number": "-1 is a number", "1. item": "1<!-- -->. item", "1.5-DP": "1.5-DP", "# title": r"\# title",
    "> quote": r"\> quote", "@user": "@<!-- -->user", "snake_case": r"snake\_case",
}  # fmt: skip
NUMBERS = {
    None: "–", 0.0: "0", 1.0: "1", 1e-5: "1e-05", 1.23456: "1.235", 0.00012345: "0.0001234", 9999.4: "9999",
    12345.6: "12,346", 1e12: "1e+12", math.inf: "∞", -math.inf: "−∞", math.nan: "undefined",
}  # fmt: skip


def test_texts_and_numbers_are_legible():
    assert {text: escaped(text) for text in ESCAPES} == ESCAPES
    assert {value: number(value) for value in NUMBERS} == NUMBERS
    text = visible("a" * 500 + "z" * 500, 90)
    assert (len(text), text[:3], text[-3:]) == (90, "aaa", "zzz"), "both ends of a long text are kept"


def printed(suite, width=100):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(table(suite))
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("claimed", "bound", "least", "beside"),
    [
        (1.23456, 1.23461, "≥ 1.23461", "1.23456"),
        (1.23456, 1.2357, "≥ 1.2357", "1.2346"),
        (1.23456, 1.24999, "≥ 1.249", "1.235"),
        (1.0, 1.0 + 1e-13, "> 1", "1"),
        (1.0, math.inf, "≥ ∞", "1"),
        (12_000.0, 12_345.6, "≥ 12,340", "12000"),
    ],
)
def test_a_refuted_bound_is_not_rounded_below_the_claim(claimed, bound, least, beside):
    refuted = result(claim=PureDP(claimed), bound=bound, pvalue=0.01)
    assert found(refuted) == f"ε {least}"
    said = least.replace("≥", ">=").replace("∞", "inf").replace(",", "")
    assert str(refuted).startswith(f"REFUTED  noisy count: epsilon {said}, claimed {beside} (")


def test_a_long_remark_is_cut_before_it_is_broken_into_lines():
    refuted = result(claim=PureDP(1.0), bound=1.5, pvalue=0.01, notes=("word " * 5_000, "short"))
    first, *lines = printed_lines(refuted, 1_000)
    assert first == refuted.headline
    assert 1_000 <= sum(map(len, lines)) < 1_200
    assert lines[-1] == "  note: short"
    assert "…" in " ".join(lines)
    assert "note: " + "word " * 5_000 not in refuted._repr_html_()


def test_a_page_of_many_audits_draws_the_most_severe():
    entries = (*(Entry(name=f"audit {place}", result=result(sketch=None)) for place in range(100)),)
    drawn, undrawn = (Entry(name=name, result=result(bound=bound)) for name, bound in (("most", 3.0), ("least", 0.5)))
    page = html(Suite(title="t", entries=(*entries, undrawn, drawn)))
    assert page.count("<svg") == 3, "the forests, and the outputs of the most severe"
    assert "The first 100 sections have figures" in page


def test_limits_of_attacks_are_rounded_to_their_side_and_reasons_are_told_once():
    headings, mu, first, second, advantage, correct = attack_table(result(claim=PureDP(1.0), findings=(FINDING,)))
    assert headings[1:] == ("shown, 95% confidence", "if the claim holds")
    assert mu == ("μ of Gaussian DP", "— (a health check failed)", "≤ 1.24")
    assert (first[1:], second[1:]) == (("—", "≤ 2.72%"), ("—", "≤ 0.272%"))
    assert (advantage[2], correct[2]) == ("≤ 0.463", "≤ 73.2")  # tanh(1/2) = 0.46212


def test_an_exact_audit_says_what_attacks_achieve():
    def response(value, rng):
        return value if rng.random() < 0.625 else 1 - value

    exact = side_check("response", check(response, 0, 1, claim=1.0, exact=True))
    assert attack_lines(exact)[3:] == [
        "advantage ≥ 0.25, certainly ≤ 0.25",
        "correct of 100 guesses ≥ 62.5, certainly ≤ 62.5",
    ]
    page = html(Suite(title="", entries=(), checks=(exact,)))
    assert '<td data-label="Certainly">≤ 0.25</td>' in page
    assert "- advantage ≥ 0.25, certainly ≤ 0.25" in markdown(Suite(title="", entries=(), checks=(exact,)))
