"""Reports of results: HTML with figures, Markdown, a terminal table, JUnit XML, CSV, SARIF, a privacy card; and the
pytest plugin.

Public names are imported on first use, because pytest loads the plugin in every session and the plugin needs none of
them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .figures.plot import kinds_of, plot
    from .figures.svg_figure import save_figures
    from .formats.privacy_card import privacy_card, privacy_card_markdown
    from .formats.sarif import sarif
    from .pages.html_page import PageCell, PageTable, html
    from .pages.junit_and_csv import csv, junit
    from .pages.markdown_page import markdown
    from .plain_text import lines, table

_WHERE = {
    name: module
    for module, names in {
        "pages.html_page": "html PageTable PageCell",
        "pages.markdown_page": "markdown",
        "pages.junit_and_csv": "junit csv",
        "plain_text": "table lines",
        "formats.sarif": "sarif",
        "formats.privacy_card": "privacy_card privacy_card_markdown",
        "figures.plot": "plot kinds_of",
        "figures.svg_figure": "save_figures",
    }.items()
    for name in names.split()
}

__all__ = [
    "html", "markdown", "table", "lines", "PageTable", "PageCell", "junit", "csv", "sarif",
    "privacy_card", "privacy_card_markdown", "plot", "kinds_of", "save_figures",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    return value
