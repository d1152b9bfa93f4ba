"""Entry point of the shell command, which says what to install if the command line's libraries are missing."""

from __future__ import annotations

import sys

from ...audit.errors import MissingExtraError
from ...audit.extras import require


def main() -> None:
    """Run the command line; without its libraries, print the remedy in one line and exit with status 2."""
    try:
        require("cli", "the command line needs", "typer", "rich")
    except MissingExtraError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
    from .main import main as run

    run()
