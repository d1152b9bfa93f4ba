"""The libraries that HTML reports need, checked without importing them."""

from __future__ import annotations

from ..audit.extras import require


def require_for_html() -> None:
    """Raise a `MissingExtraError` unless HTML reports can be drawn, so that a long audit fails before it starts."""
    require("report", "reports need", "matplotlib", "jinja2")
