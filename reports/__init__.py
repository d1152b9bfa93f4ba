"""Results for people: HTML with figures, Markdown for pull requests, a table for the terminal; and the pytest plugin.

For programs: JUnit XML and CSV. Names are imported when they are first used: the plugin, which pytest loads in every
session, needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .csv_page import csv
    from .figure_files import save_figures
    from .html_page import html
    from .junit_page import junit
    from .markdown_page import markdown
    from .plotting import kinds_of, plot
    from .terminal import lines, table

_WHERE = {
    "html": "html_page",
    "markdown": "markdown_page",
    "table": "terminal",
    "lines": "terminal",
    "junit": "junit_page",
    "csv": "csv_page",
    "plot": "plotting",
    "kinds_of": "plotting",
    "save_figures": "figure_files",
}

__all__ = ["html", "markdown", "table", "lines", "junit", "csv", "plot", "kinds_of", "save_figures"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    return value
