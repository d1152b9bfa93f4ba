"""What the pages have that is in no file: the command line's page, and links from the code's docstrings to proofs."""

from __future__ import annotations

import re
from typing import Any

import typer
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url
from typer.cli import get_docs_for_click

PAGE = "reference/command-line.md"
PROOF = re.compile(r"docs/(proofs/[a-z-]+)\.md")


def command_page() -> str:
    """Every command with its arguments and options, in Markdown."""
    from dpaudit.experiments.cli.commands import app

    command = typer.main.get_command(app)
    with command.make_context("dpaudit", [], resilient_parsing=True) as context:
        return get_docs_for_click(obj=command, ctx=context, name="dpaudit", title="Command line") + "\n"


def on_files(files: Files, config: Any) -> Files:
    """Adds the page to those found."""
    files.append(File.generated(config, PAGE, content=command_page()))
    return files


def on_page_content(html: str, page: Page, config: Any, files: Files) -> str:
    """Links, in the reference, for the proofs that modules name by their file."""
    if not page.file.src_uri.startswith("reference/"):
        return html

    def link(found: re.Match[str]) -> str:
        proof = files.get_file_from_path(f"{found[1]}.md")
        if proof is None or proof.page is None:
            return found[0]
        return f'<a href="{get_relative_url(proof.url, page.url)}">{proof.page.title}</a>'

    return PROOF.sub(link, html)
