"""Reports of results: HTML with figures, Markdown, a terminal table, JUnit XML, CSV, SARIF, a privacy card; and the
pytest plugin.

Public names are imported on first use, because pytest loads the plugin in every session and the plugin needs none of
them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .figures.figure_files import save_figures
    from .figures.plot import kinds_of, plot
    from .formats.card_markdown import privacy_card_markdown
    from .formats.privacy_card import privacy_card
    from .formats.sarif import sarif
    from .pages.csv_page import csv
    from .pages.html_page import html
    from .pages.junit_page import junit
    from .pages.markdown_page import markdown
    from .pages.page_tables import PageCell, PageTable, table_page
    from .plain_text import lines, table

_WHERE = {
    "html": "pages.html_page",
    "markdown": "pages.markdown_page",
    "table": "plain_text",
    "lines": "plain_text",
    "PageTable": "pages.page_tables",
    "PageCell": "pages.page_tables",
    "table_page": "pages.page_tables",
    "junit": "pages.junit_page",
    "csv": "pages.csv_page",
    "sarif": "formats.sarif",
    "privacy_card": "formats.privacy_card",
    "privacy_card_markdown": "formats.card_markdown",
    "plot": "figures.plot",
    "kinds_of": "figures.plot",
    "save_figures": "figures.figure_files",
}

__all__ = [
    "html",
    "markdown",
    "table",
    "lines",
    "PageTable",
    "PageCell",
    "table_page",
    "junit",
    "csv",
    "sarif",
    "privacy_card",
    "privacy_card_markdown",
    "plot",
    "kinds_of",
    "save_figures",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    return value
