"""Results for people: HTML with figures, Markdown for pull requests, a table for the terminal; and the pytest plugin.

Names are imported when they are first used: the plugin, which pytest loads in every session, needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .html_page import html
    from .markdown_page import markdown
    from .terminal import lines, table

_WHERE = {"html": "html_page", "markdown": "markdown_page", "table": "terminal", "lines": "terminal"}

__all__ = ["html", "markdown", "table", "lines"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    return value
