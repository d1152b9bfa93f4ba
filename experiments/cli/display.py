"""A console for tables."""

from __future__ import annotations

import sys
from typing import Any


def console() -> Any:
    """Return a rich console, 120 columns wide if the output is not a terminal."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)
