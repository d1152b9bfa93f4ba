"""Results for people: HTML with figures, Markdown for pull requests, a table for the terminal.

Jinja, matplotlib and rich are imported when something is first rendered, not with this package.
"""

from .html import html
from .markdown import markdown
from .terminal import lines, table

__all__ = ["html", "markdown", "table", "lines"]
