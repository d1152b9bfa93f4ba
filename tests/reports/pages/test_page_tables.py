"""Tables of text as sections of a report, and as a page of their own."""

from __future__ import annotations

from dpaudit.audit.records.suite import Suite
from dpaudit.reports import PageCell, PageTable, html, table_page

TABLE = PageTable(
    id="coverage",
    title="Coverage <of all>",
    caption="Two callables.",
    columns=("Callable", "Status"),
    rows=(("a.b", PageCell("refuted", "refuted", "at 1 < 2")), ("c.d", "audited")),
)
REMARK = '<span class="soft"><bdi>at 1 &lt; 2</bdi></span>'
CELL = f'<td data-label="Status" class="refuted"><bdi>refuted</bdi><br>{REMARK}</td>'


def test_a_table_is_a_section_of_a_report_with_a_link():
    page = html(Suite(title="Audits", entries=()), tables=[TABLE])
    assert '<h2 id="coverage"><bdi>Coverage &lt;of all&gt;</bdi></h2>' in page
    assert '<a href="#coverage" class="wide"><bdi>Coverage &lt;of all&gt;</bdi></a>' in page
    assert CELL in page
    assert '<th scope="row"><bdi>c.d</bdi></th>' in page
    assert 'id="coverage"' not in html(Suite(title="Audits", entries=()))


def test_a_page_of_tables_has_no_script_and_safe_links():
    page = table_page("Releases", ["A <b>paragraph</b>."], [TABLE], [("0.1", "a b/report.html")])
    assert CELL in page
    assert "<script" not in page
    assert "script-src" not in page
    assert "A &lt;b&gt;paragraph&lt;/b&gt;." in page
    assert '<a href="a%20b/report.html"><bdi>0.1</bdi></a>.' in page
