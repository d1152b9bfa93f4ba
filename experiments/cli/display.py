"""A console for tables."""

from __future__ import annotations

import sys
from typing import Any


def on_terminal() -> bool:
    """Whether standard output is a terminal; audited code may have closed or removed it."""
    return not getattr(sys.stdout, "closed", True) and sys.stdout.isatty()


def console() -> Any:
    """Return a rich console, 120 columns wide if the output is not a terminal."""
    from rich.console import Console

    return Console(width=None if on_terminal() else 120, highlight=False)
