"""Reports of results: HTML with figures, Markdown, a terminal table, JUnit XML, SARIF, a privacy card; and the pytest
plugin.

Public names are imported on first use, because pytest loads the plugin in every session and the plugin needs none of
them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .figures.plot import kinds_of, plot
    from .formats.privacy_card import privacy_card, privacy_card_markdown
    from .formats.sarif import sarif
    from .pages.html_page import PageCell, PageTable, html
    from .pages.junit import junit
    from .pages.markdown_page import markdown
    from .plain_text import lines, table

_WHERE = {
    "html": "pages.html_page", "PageTable": "pages.html_page", "PageCell": "pages.html_page",
    "markdown": "pages.markdown_page", "junit": "pages.junit",
    "table": "plain_text", "lines": "plain_text", "sarif": "formats.sarif",
    "privacy_card": "formats.privacy_card", "privacy_card_markdown": "formats.privacy_card",
    "plot": "figures.plot", "kinds_of": "figures.plot",
}  # fmt: skip

__all__ = [
    "html", "markdown", "table", "lines", "PageTable", "PageCell", "junit", "sarif",
    "privacy_card", "privacy_card_markdown", "plot", "kinds_of",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    return value
