"""What a reader of the page sees first, what is folded, and what is stated for all audits together."""

import dataclasses
import datetime
import math
import re
from functools import partial
from html import unescape

import pandas as pd
import pytest

from dpaudit import PureDP, Verdict
from dpaudit.audit.datasets.description import contents_in_words, summarise
from dpaudit.audit.health.findings import Finding, HealthCheck
from dpaudit.audit.records.suite import Accepted, Entry, Suite
from dpaudit.audit.results.audit_result import AuditResult, SequentialResult
from dpaudit.audit.results.statement_result import Point, StatementResult
from dpaudit.audit.results.verdict import Equivalence, ReplayVerdict
from dpaudit.reports import PageCell, PageTable, html, markdown, table
from dpaudit.reports.figures.output_figures import forest
from dpaudit.reports.figures.plot import THEMED, svg
from dpaudit.reports.pages.audit_facts import about, by_severity, card, limits_of, what_to_do
from dpaudit.reports.pages.html_page import frame_rows
from dpaudit.reports.plain_text import LOOKS, alike, duration, expectations, marked, severity_note, severity_text

from ..examples import contrast, large

STATEMENT = StatementResult(
    statement="The slope is 0.5.", quantity="slope",
    points=(Point(estimate=1.0, lower=0.9, upper=1.1, low=0.5, high=0.5),), alpha=0.01, method="by hand", runs=20_000,
    seed=3,
)  # fmt: skip
FINDING = Finding(HealthCheck.DUPLICATE_OUTPUTS, "2 of 9 blocks are equal.")
result = partial(large, bound=0.9, pvalue=0.31, versions=(("dpaudit", "0.1.0"),))


def text_of(page):
    return " ".join(unescape(re.sub(r"<[^>]*>", "", page)).split())


MILD, SEVERE = result(bound=1.5, pvalue=1e-9), result(bound=0.0409, claim=PureDP(1e-5), pvalue=1e-9)
ENDLESS, SICK, WEAK = (
    result(bound=0.1, claim=PureDP(0.0)),
    result(findings=(FINDING,)),
    result(min_detectable_excess=math.inf),
)
FINE = result(bound=0.9)


def suite_of(**results):
    return Suite(title="Order", entries=tuple(Entry(name=name, result=one) for name, one in results.items()))


MIXED = suite_of(fine=FINE, mild=MILD, sick=SICK, statement=STATEMENT, severe=SEVERE, weak=WEAK, endless=ENDLESS)
ORDER = ["endless", "severe", "mild", "statement", "sick", "weak", "fine"]


@pytest.fixture(scope="module")
def mixed():
    return html(MIXED)


def test_refuted_claims_come_first_by_severity_then_the_inconclusive_then_the_rest(mixed):
    assert STATEMENT.is_refuted
    assert [entry.name for entry in by_severity(MIXED.entries)] == ORDER
    table = mixed[mixed.index('<table class="audits"') :]
    assert re.findall(r'<th role="rowheader" scope="row"><a href="#audit-\d"><bdi>(\w+)<', table) == ORDER
    assert re.findall(r"<summary><h3>.*?<bdi>(\w+)</bdi>", mixed) == ORDER
    first = mixed[mixed.index('<dl class="verdicts">') : mixed.index("<nav")]
    assert re.findall(r'<a href="#audit-\d"><bdi>(\w+)<', first) == ORDER[:-1]
    variants = suite_of(b=MILD, a=MILD)
    assert [entry.name for entry in by_severity(variants.entries)] == ["b", "a"], "equally severe ones keep their order"
    sections = re.findall(r'<details class="audit" id="audit-(\d)"( open)?>', mixed)
    assert sections == [(f"{place}", " open" * (place <= 4)) for place in range(1, 8)], "open where refuted"
    assert "content-visibility: auto" not in mixed
    rows = [line for line in markdown(MIXED).splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == ORDER


def test_the_factor_is_stated_for_refuted_claims_and_that_of_an_early_stop_named_as_such():
    texts = {SEVERE: "×4,090", MILD: "×1.5", FINE: "", ENDLESS: "", SICK: "", STATEMENT: ""}
    assert [severity_text(one) for one in texts] == list(texts.values())
    sequential = SequentialResult(
        **{each.name: getattr(MILD, each.name) for each in dataclasses.fields(AuditResult)},
        stopped="refuted",
        interim_analyses=(),
    )
    assert severity_note(sequential) == "×1.5 at an early stop"
    assert severity_note(dataclasses.replace(sequential, stopped="runs")) == severity_note(MILD) == "×1.5"
    assert [text for text in limits_of(suite_of(a=sequential)).sentences if "stopped at its refutation" in text]
    assert not [text for text in limits_of(suite_of(a=MILD)).sentences if "stopped at its refutation" in text]


def test_the_factor_is_in_the_figure_and_on_the_first_screen(mixed):
    drawn = svg(forest(MIXED))
    assert "claimed 1e-05 (×4,090)" in drawn
    assert mixed.index("×4,090") < mixed.index("<nav")
    for one, n_arrows in ((SEVERE, 1), (MILD, 0)):
        arrows = [line for line in forest(suite_of(one=one)).axes[0].lines if line.get_marker() == ">"]
        assert len(arrows) == n_arrows, "a bar that is longer than the axis"


def test_the_first_line_says_who_what_and_when():
    told = {"by": "J. Doe", "started": "2026-11-26T11:43:35+00:00"}
    one = dataclasses.replace(suite_of(a=FINE, b=FINE), environment=told)
    line = about(one)
    assert line.startswith("Audited by J. Doe · dpaudit 0.1.0 · 2026-11-26 11:43 UTC · family-wise alpha 0.1 ")
    assert line.endswith("(alpha 0.05 each), confidence 90% for all together")
    assert line in text_of(html(one))
    assert about(suite_of(a=FINE)).startswith("dpaudit 0.1.0 · time not recorded · alpha 0.05, ")
    assert "auditor" not in about(suite_of(a=FINE))
    merged = {
        "merged": [
            {"file": day, "environment": {"saved": f"{day}T08:00:00+00:00"}} for day in ("2026-02-03", "2026-02-01")
        ]
    }
    assert "2026-02-01 08:00 to 2026-02-03 08:00 UTC" in about(dataclasses.replace(one, environment=merged))
    assert "time not recorded" in about(dataclasses.replace(one, environment={"merged": "by hand", "started": ""}))


SELF_TEST = Suite(
    title="Reference suite",
    entries=(
        Entry(name="faulty", result=MILD, expected=Verdict.REFUTED, experiment="reference"),
        Entry(name="right", result=FINE, expected=Verdict.NOT_REFUTED, experiment="reference"),
    ),
)


def test_a_self_test_is_called_that_and_is_no_green_banner():
    assert expectations(SELF_TEST) == "Self-test: 2 of 2 verdicts as expected."
    page = html(SELF_TEST)
    assert re.search(r'<p class="soft expectations">.*Self-test: 2 of 2 verdicts as expected\.', page)
    assert "deliberately faulty mechanisms that the self-test must refute" in page
    assert "Self-test: 2 of 2 verdicts as expected." in markdown(SELF_TEST)
    wrong, right = SELF_TEST.entries
    failed = dataclasses.replace(SELF_TEST, entries=(wrong, dataclasses.replace(right, result=SEVERE)))
    assert expectations(failed) == "Self-test: 1 of 2 verdicts as expected."
    assert '<p class="unmet expectations">' in html(failed)
    assert "Do not release" in what_to_do(failed)[Verdict.REFUTED]
    own = tuple(dataclasses.replace(entry, experiment="") for entry in SELF_TEST.entries)
    users = dataclasses.replace(SELF_TEST, entries=own)
    assert expectations(users) == "All 2 audits with an expected verdict came out as expected."
    assert "Do not release" in what_to_do(users)[Verdict.REFUTED]


def test_limits_together_are_a_union_bound_and_holms_method():
    few = limits_of(suite_of(a=MILD, b=FINE))
    assert "All lower bounds and intervals of the 2 audits hold together with confidence 90%" in few.sentences[0]
    assert "repeat the audits with alpha at most 0.025." in few.sentences[1]
    assert (few.refuted_together, few.refuted_alone) == (("a",), ())
    many = limits_of(suite_of(**{f"fine {index}": FINE for index in range(30)}, just=result(bound=1.01, pvalue=0.04)))
    assert "no stated confidence, because the alphas sum to 1.6" in many.sentences[0]
    assert "alpha at most 0.0016." in many.sentences[1]
    assert (many.refuted_together, many.refuted_alone) == ((), ("just",))
    strict = suite_of(a=result(alpha=1e-5), b=result(alpha=1e-5))
    assert "family-wise alpha 2e-05 (alpha 1e-05 each), confidence 99.998%" in limits_of(strict).headline
    assert not [sentence for sentence in limits_of(strict).sentences if "repeat the audits" in sentence]
    assert limits_of(suite_of()).sentences == ()
    # Rounded numbers are never too small, nor a remedy too large.
    for alpha in (0.0123, 0.00999, 0.0301):
        three = limits_of(suite_of(a=result(alpha=alpha), b=result(alpha=alpha), c=result(alpha=alpha)))
        stated = float(re.search(r"family-wise alpha ([\d.e-]+)", three.headline)[1])
        assert 3 * alpha - 1e-12 <= stated <= 1.1 * 3 * alpha
        for sentence in three.sentences:
            if "repeat the audits" in sentence:
                assert 3 * float(re.search(r"at most ([\d.e-]+)\.", sentence)[1]) <= 0.05


def test_drawings_on_the_page_have_no_colours_of_their_own(mixed):
    for drawing in re.findall(r"<svg .*?</svg>", mixed, flags=re.DOTALL):
        assert not re.search(r"#[0-9a-fA-F]{6}\b(?!-)", re.sub(r'(href|clip-path|id)="[^"]*"', "", drawing))
    for classes in re.findall(r'class="(s[0-9a-f]{7})"', mixed):
        assert f".{classes}{{" in mixed
    for scheme in (mixed[: mixed.index("prefers-color-scheme")], mixed[mixed.index("prefers-color-scheme") :]):
        for name in set(THEMED.values()):
            assert f"{name}: #" in scheme


def test_a_kept_frame_is_a_table_and_any_other_dataset_a_line():
    frame = pd.DataFrame({"a": [1, 2.5], "<b>": ["x, y", "\u202e"]}, index=["p", "q"])
    contents = (contents_in_words(frame), contents_in_words({"b": frame}))
    assert contents[0] == ',a,<b>\np,1.0,"x, y"\nq,2.5,\u202e'
    assert "\n" not in contents[1]
    assert contents_in_words(pd.Series([1, 2])) == "[1, 2]"
    pair = dataclasses.replace(FINE.pair, x=summarise(frame), contents=contents)
    page = html(suite_of(frame=dataclasses.replace(FINE, pair=pair)))
    assert '<th scope="col"><bdi>&lt;b&gt;</bdi></th></tr></thead>' in page
    assert "<tr><td><bdi>p</bdi></td><td><bdi>1.0</bdi></td><td><bdi>x, y</bdi></td></tr>" in page
    assert "<td><bdi>\\u202e</bdi></td>" in page
    assert "<strong>Dataset y</strong>" in page
    long = frame_rows(contents_in_words(pd.DataFrame({"n": range(100)})), "data frame of 100 rows, 1 column")
    assert (len(long), long[0], long[60], long[61]) == (62, ["n"], ["59"], ["… 40 more rows"])


def test_a_verdict_has_one_colour_and_one_mark():
    seen = {"✖": (MILD, "X", "#C25500"), "■": (FINE, "s", "#0079BD"), "◆": (SICK, "D", "#767676")}
    for mark, (one, marker, colour) in seen.items():
        suite = suite_of(a=one)
        (cell,) = table(suite).columns[2].cells
        assert (str(cell), cell.style) == (f"{mark} {one.verdict.value}", f"bold {colour}")
        assert f"border-left:6px solid {colour}" in card(one)
        assert f'<span style="color:{colour}" aria-hidden="true">{mark}</span>' in card(one)
        drawn = {each.get_marker(): each.get_color() for each in forest(suite).axes[0].lines}
        assert drawn[marker] == colour
        assert f'aria-hidden="true">{mark}</span> {one.verdict.value}' in html(suite)
        assert f"| {mark} {one.verdict.value} |" in markdown(suite)


@pytest.mark.parametrize("look", LOOKS.values(), ids=lambda look: look.style)
def test_a_verdict_can_be_read_in_every_colour_of_its_look(look):
    assert min(contrast(look.colour, paper) for paper in ("#FFFFFF", "#000000")) > 4.4
    assert min(contrast(look.light, paper) for paper in ("#FBFBFA", "#FFFFFF")) > 6
    assert min(contrast(look.dark, paper) for paper in ("#16181B", "#1F2226")) > 7
    assert len({each.mark for each in LOOKS.values()}) == len({each.marker for each in LOOKS.values()}) == len(Verdict)


@pytest.mark.parametrize("kind", [Verdict, Equivalence, ReplayVerdict])
def test_every_verdict_has_a_look(kind):
    assert {alike(verdict.name) for verdict in kind} == set(Verdict)
    assert all(marked(verdict) == f"{LOOKS[alike(verdict.name)].mark} {verdict.value}" for verdict in kind)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"), (0.0, "0 ms"), (0.0123, "12.3 ms"), (0.9994, "999 ms"), (0.9996, "1 s"), (3.204, "3.2 s"),
        (59.94, "59.9 s"), (59.96, "1 min 0 s"), (75.5, "1 min 16 s"), (3599.4, "59 min 59 s"), (3599.6, "1 h 0 min"),
        (4000.0, "1 h 7 min"), (5_000_000.0, "1,388 h 53 min"),
    ],
)  # fmt: skip
def test_times_have_units(seconds, text):
    assert duration(seconds) == text


COVERAGE = PageTable(
    id="coverage",
    title="Coverage <of all>",
    caption="Two callables.",
    columns=("Callable", "Status"),
    rows=(("a.b", PageCell("refuted", "refuted", "at 1 < 2")), ("c.d", "audited")),
)
REMARK = '<span class="soft"><bdi>at 1 &lt; 2</bdi></span>'


def test_a_table_is_a_section_of_a_report_with_a_link():
    page = html(suite_of(), tables=[COVERAGE])
    assert '<h2 id="coverage"><bdi>Coverage &lt;of all&gt;</bdi></h2>' in page
    assert '<a href="#coverage" class="wide"><bdi>Coverage &lt;of all&gt;</bdi></a>' in page
    assert f'<td data-label="Status" class="refuted"><bdi>refuted</bdi><br>{REMARK}</td>' in page
    assert '<th scope="row"><bdi>c.d</bdi></th>' in page
    assert 'id="coverage"' not in html(suite_of())


def test_an_accepted_refutation_is_named_as_such():
    accepted = Accepted(reason="known", until="2027-01-01", up_to=2.0)
    one = Suite(title="", entries=(Entry(name="count", result=MILD, accepted=accepted),))
    for day, status in ((datetime.date(2026, 1, 1), "accepted"), (datetime.date(2028, 1, 1), "acceptance: expired")):
        page = html(one, today=day)
        first = page[: page.index("<nav")]
        assert f"×1.5 ({status})" in first
        assert f"count ×1.5 ({status}). Do not release" in markdown(one, today=day)
