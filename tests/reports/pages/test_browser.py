"""The report in a real browser: it fetches nothing, complains of nothing, sorts and filters, and can be read by all."""

import dataclasses
import itertools
import re

import pytest

from dpaudit.audit.records.baseline_comparison import Comparison
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.experiments.benchmarks.reports.reports_page import browser_path, chromium, sample_suite, suite_of, visit
from dpaudit.reports import html
from dpaudit.reports.pages.page_limits import by_severity

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


def test_the_first_screen_has_the_counts_and_the_forest(laptop, suite):
    page = laptop.page
    assert page.locator("h1").inner_text() == suite.title
    assert f"{len(suite.entries)} claims audited" in page.locator("header").inner_text()
    legend = page.locator("figure.overview svg >> visible=true")
    assert legend.bounding_box()["y"] + 100 < 900, "legend and axis label are above the rows, on the first screen"


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


def test_sorting_by_the_keyboard(laptop):
    page = laptop.page
    page.locator(".audits thead button").first.focus()
    page.keyboard.press("Enter")
    assert names(page) == sorted(names(page), key=str.casefold)


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


def test_the_bar_of_a_comparison_fits_a_phone(browser, suite, tmp_path):
    one, page = suite.entries[0], tmp_path / "compared.html"
    compared = [Comparison(name=one.name, before=one, after=one)]
    page.write_text(html(dataclasses.replace(suite, entries=(one,)), comparisons=compared), encoding="utf-8")
    looked = visit(browser, page, width=390)
    assert looked.page.locator("nav >> text=Before and after").is_visible()
    assert looked.page.evaluate("document.documentElement.scrollWidth") <= 390
    looked.page.close()


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


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


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
        light, heavy = sorted((luminance(colour) for colour in pair.split("|")), reverse=True)
        assert (light + 0.05) / (heavy + 0.05) >= 4.5, pair
    looked.page.close()


def test_headings_are_nested_and_drawings_have_words(laptop):
    page = laptop.page
    levels = page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    labels = page.eval_on_selector_all("svg", "all => all.map(s => s.getAttribute('aria-label'))")
    assert all(labels)
    assert len(set(labels)) == len(labels) - 1  # the forest is there twice, for wide screens and narrow ones
    assert page.locator("html").get_attribute("lang") == "en"


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


def test_the_events_of_printing_open_the_sections_and_close_them_again(laptop):
    page = laptop.page
    count = "document.querySelectorAll('details.audit[open]').length"
    before = page.evaluate(count)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(count) == page.locator("details.audit").count() > before
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(count) == before


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


def test_a_screenshot_of_the_whole_page_has_every_open_section(laptop):
    page = laptop.page
    visible = page.eval_on_selector_all("details.audit", "all => all.map(d => getComputedStyle(d).contentVisibility)")
    assert set(visible) == {"visible"}, "a section that is drawn late is blank in a screenshot"


def test_on_a_phone_the_figure_of_an_audit_is_above_its_facts(browser, path):
    for width, is_phone in ((390, True), (1280, False)):
        looked = visit(browser, path, width=width)
        section = looked.page.locator("details.audit[open]:has(.figures)").first
        figures, facts = (section.locator(f".{part}").first.bounding_box() for part in ("figures", "facts"))
        assert (figures["y"] + figures["height"] <= facts["y"]) == is_phone
        looked.page.close()


def test_figures_follow_the_theme(browser, path):
    for dark in (False, True):
        looked = visit(browser, path, width=1280, dark=dark)
        paper, texts = looked.page.evaluate(
            """() => {
                const drawn = document.querySelectorAll("figure.overview .for-laptop svg text");
                const paper = getComputedStyle(document.querySelector(".paper")).backgroundColor;
                return [paper, [...new Set([...drawn].map(text => getComputedStyle(text).fill))]];
            }"""
        )
        assert (luminance(paper) < 0.1) == dark
        for text in texts:
            light, heavy = sorted((luminance(text), luminance(paper)), reverse=True)
            assert (light + 0.05) / (heavy + 0.05) >= 4.5
        looked.page.close()


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
    """A twin of the page with a script and an image of somebody else's: neither runs nor is fetched."""
    page = tmp_path / "twin.html"
    foreign = "<script>document.title = 'owned'</script><img src='http://127.0.0.1:9/x.png'>"
    page.write_text(path.read_text(encoding="utf-8").replace("<main>", f"<main>{foreign}", 1), encoding="utf-8")
    looked = visit(browser, page, width=1280)
    assert looked.page.title() != "owned"
    assert len([line for line in looked.complaints if "Content Security Policy" in line]) >= 2
    looked.page.close()


def test_a_long_report_has_every_audit(browser, suite, tmp_path):
    page = tmp_path / "long.html"
    plain = dataclasses.replace(suite.entries[0].result, sketch=None, cells=None)  # without figures
    few = dataclasses.replace(suite, entries=(Entry(name="plain", result=plain),))
    page.write_text(html(suite_of(70, few)), encoding="utf-8")
    looked = visit(browser, page, width=1280)
    assert looked.page.locator(".audits tbody tr").count() == 70
    assert looked.page.locator("figure .long").first.evaluate("e => e.scrollHeight > e.clientHeight")
    looked.page.close()
