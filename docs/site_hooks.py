"""What the pages have that is in no file: the command line's page, made from the command line itself."""

from __future__ import annotations

from typing import Any

import typer
from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click

PAGE = "reference/command-line.md"


def command_page() -> str:
    """Every command with its arguments and options, in Markdown."""
    from dpaudit.experiments.cli import app

    command = typer.main.get_command(app)
    with command.make_context("dpaudit", [], resilient_parsing=True) as context:
        return get_docs_for_click(obj=command, ctx=context, name="dpaudit", title="Command line") + "\n"


def on_files(files: Files, config: Any) -> Files:
    """Adds the page to those found."""
    files.append(File.generated(config, PAGE, content=command_page()))
    return files
