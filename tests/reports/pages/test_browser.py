"""The report in a real browser: it fetches nothing, complains of nothing, sorts and filters, and can be read by all."""

import dataclasses
import re

import pytest

from dpaudit.audit.records.suite import Entry, ReplayRow, ReplayTable, SideCheck, Suite
from dpaudit.experiments.benchmarks.pictures import browser_path, chromium, sample_suite, visit
from dpaudit.reports import html
from dpaudit.reports.pages.audit_facts import by_severity

from ..examples import contrast

pytestmark = pytest.mark.skipif(browser_path() is None, reason="no browser of the Chromium family is installed")


@pytest.fixture(scope="module")
def suite():
    return sample_suite(jobs=1)


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def path(suite, tmp_path_factory):
    page = tmp_path_factory.mktemp("report") / "report.html"
    page.write_text(html(suite), encoding="utf-8")
    return page


@pytest.fixture
def laptop(browser, path):
    looked = visit(browser, path, width=1280)
    yield looked
    looked.page.close()
    assert looked.complaints == []
    assert looked.requests == []


def names(page):
    return page.eval_on_selector_all(".audits tbody tr:not([hidden]) th", "cells => cells.map(c => c.textContent)")


def column(page, place):
    return page.eval_on_selector_all(
        ".audits tbody tr:not([hidden])", "(rows, i) => rows.map(r => r.cells[i].textContent.trim())", place
    )


def test_sorting_by_each_column_and_back(laptop, suite):
    page = laptop.page
    buttons = page.locator(".audits thead button")
    assert buttons.count() == 9
    buttons.nth(6).click()
    runs = [int(text.replace(",", "")) for text in column(page, 6)]
    assert runs == sorted(entry.result.runs for entry in suite.entries)
    assert page.locator("th[aria-sort=ascending]").inner_text().strip(" ▲") == "Runs"
    buttons.nth(6).click()
    assert [int(text.replace(",", "")) for text in column(page, 6)] == runs[::-1]
    buttons.nth(0).click()
    assert names(page) == sorted(names(page), key=str.casefold)
    buttons.nth(2).click()
    verdicts = [text.split(" ", 1)[1] for text in column(page, 2)]
    assert [next(iter(group)) for group in (verdicts[:1], verdicts[-1:])] == ["refuted", "not refuted"]
    buttons.nth(4).click()  # exact values: those not known stand last, whichever way
    known = [text for text in column(page, 4) if text != "–"]
    assert column(page, 4)[: len(known)] == known
    assert known[-1] == "ε = ∞"


def test_filters_hide_the_other_rows_and_say_how_many(laptop, suite):
    page = laptop.page
    page.locator(".filter select").select_option("refuted")
    refuted = [entry.name for entry in by_severity(suite.entries) if entry.result.is_refuted]
    assert names(page) == refuted
    page.locator(".filter input").fill("NOISE")
    assert page.locator(".filter [role=status]").inner_text() == f"2 of {len(suite.entries)}"
    page.locator(".filter input").fill("")
    page.locator(".filter select").select_option("every verdict")
    assert len(names(page)) == len(suite.entries)


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False), (390, True)])
def test_nothing_is_wider_than_the_screen_and_nothing_is_missing(browser, path, width, dark):
    looked = visit(browser, path, width=width, dark=dark)
    assert looked.page.evaluate("document.documentElement.scrollWidth") <= width
    looked.page.locator(".fold button").first.click()
    assert looked.page.evaluate("document.documentElement.scrollWidth") <= width
    shown = looked.page.locator("figure svg >> visible=true").count()
    assert shown == looked.page.locator("figure").count() > 10
    assert looked.complaints == looked.requests == []
    looked.page.close()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_long_names_frames_and_replays_fit_too(browser, suite, tmp_path, width, dark):
    first, row = suite.entries[0], "x" * 60
    contents = "\n".join([",".join(f"column_{place}" for place in range(30)), *[",".join(["123.456789"] * 30)] * 40])
    pair = dataclasses.replace(first.result.pair, x="data frame of 40 rows, 30 columns", contents=(contents, "[1]"))
    calls = ReplayRow(
        place=f"{row}.py:4 in {row}", source=row, primitive=row, distribution=row, moved="10", allowed="1",
        loss="2", finding=row,
    )  # fmt: skip
    replayed = ReplayTable(sentence=row, seed=1, rows=(calls,), n_calls=3, remarks=(row,))
    checks = [
        SideCheck(
            name=row, kind="replay", subject=row, verdict=verdict, claim=row, found=row, seed=1,
            lines=(row,), replay=replayed,
        )
        for verdict in ("EXCESS", "UNDETERMINED", "BOUNDED")
    ]  # fmt: skip
    entry = Entry(name="long_name_" * 9, result=dataclasses.replace(first.result, pair=pair), replay=replayed)
    page = tmp_path / "long.html"
    page.write_text(html(Suite(title=row, entries=(entry, first), checks=tuple(checks))), encoding="utf-8")
    looked = visit(browser, page, width=width, dark=dark)
    looked.page.locator(".fold button").first.click()
    assert looked.page.evaluate("document.documentElement.scrollWidth") <= width
    opened = looked.page.eval_on_selector_all("details[id^=check]", "all => all.map(each => each.open)")
    assert opened == [True, True, True]
    assert looked.complaints == looked.requests == []
    looked.page.close()


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_the_contrast_that_the_guidelines_ask_for(browser, path, dark):
    looked = visit(browser, path, width=1280, dark=dark)
    pairs = looked.page.evaluate(
        """() => {
            const behind = element => {
                for (let e = element; e; e = e.parentElement) {
                    const colour = getComputedStyle(e).backgroundColor;
                    if (!colour.endsWith(", 0)")) return colour;
                }
            };
            const found = new Set();
            for (const element of document.querySelectorAll("main *:not(svg *):not(script)")) {
                const isText = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
                if (isText) found.add(getComputedStyle(element).color + "|" + behind(element));
            }
            return [...found];
        }"""
    )
    assert len(pairs) > 5
    for pair in pairs:
        colours = ("#{:02x}{:02x}{:02x}".format(*map(int, re.findall(r"\d+", each)[:3])) for each in pair.split("|"))
        assert contrast(*colours) >= 4.5, pair
    looked.page.close()


def test_paper_has_all_of_it(browser, path, tmp_path):
    looked = visit(browser, path, width=1280)
    page = looked.page
    figures = page.locator("details.audit figure svg")
    assert page.locator("details.audit figure svg >> visible=true").count() < figures.count()
    page.emulate_media(media="print")
    assert page.locator(".filter").is_hidden()
    assert page.locator(".fold").is_hidden()
    assert page.locator("nav.bar").is_hidden()
    assert page.locator("details.audit figure svg >> visible=true").count() == figures.count()
    heights = page.eval_on_selector_all("details.audit", "all => all.map(d => d.getBoundingClientRect().height)")
    assert min(heights) > 200, "closed sections are printed, too"
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()


def test_links_of_the_table_and_the_index_open_a_section(laptop):
    page = laptop.page
    last = page.locator("details.audit").last
    assert last.get_attribute("open") is None
    page.locator(".audits tbody tr").last.locator("a").click()
    assert last.get_attribute("open") is not None
    last.locator("summary").first.click()
    assert last.get_attribute("open") is None
    page.locator("nav summary").click()
    page.locator(".index a").last.click()
    assert last.get_attribute("open") is not None
    assert page.locator(".index").is_hidden(), "the index closes"
    bar = page.locator("nav.bar").bounding_box()
    assert bar["y"] == 0, "the index stays at the top of the screen"
    assert last.bounding_box()["y"] >= bar["height"] - 1, "and does not cover the section"
    page.locator("nav .up").click()
    assert page.evaluate("window.scrollY") < 100


def test_hostile_names_do_nothing(browser, suite, tmp_path):
    names = [
        "<script>document.title = 'owned'</script>",
        "<img src=x onerror=\"document.title='owned'\">",
        "</script><script>document.title = 'owned'</script>",
        "</title><style>* { display: none }</style>",
        "{{ 7 * 7 }}",
        "w" * 100_000,
        "\u202egnp.exe",
    ]
    first = suite.entries[0]
    entries = [
        Entry(
            name=name,
            result=dataclasses.replace(
                first.result,
                mechanism=name,
                claim_source=name,
                pair=dataclasses.replace(first.result.pair, x=name, difference=name, contents=(name, name)),
                environment={"repeat": name},
            ),
            note=name,
        )
        for name in names
    ]
    page = tmp_path / "hostile.html"
    page.write_text(html(Suite(title=names[0], entries=tuple(entries))), encoding="utf-8")
    looked = visit(browser, page, width=390)
    assert looked.page.title() == names[0]
    assert looked.page.locator("h1").inner_text() == names[0]
    assert looked.page.locator("script").count() == 1
    assert looked.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert looked.complaints == looked.requests == []
    looked.page.close()


def test_the_policy_stops_what_would_get_through(browser, path, tmp_path):
    """A variant of the page with a script and an image of somebody else's: neither runs nor is fetched."""
    page = tmp_path / "variant.html"
    foreign = "<script>document.title = 'owned'</script><img src='http://127.0.0.1:9/x.png'>"
    page.write_text(path.read_text(encoding="utf-8").replace("<main>", f"<main>{foreign}", 1), encoding="utf-8")
    looked = visit(browser, page, width=1280)
    assert looked.page.title() != "owned"
    assert len([line for line in looked.complaints if "Content Security Policy" in line]) >= 2
    looked.page.close()
