"""What no file of the pages has: version, repository, generated pages, links from docstrings to proofs."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url
from typer.cli import get_docs_for_click

THEORY = ("proofs/", "benchmarks/", "reference/theorems.md", "sources.md", "sources-errata.md")
"""Pages that the search of the site leaves out."""

LISTS = ("reference/", "gallery.md")
"""Pages of many short entries, whose titles would hide the guides: a title counts a thousand times as much as text."""

PROOF = re.compile(r"docs/(proofs/[a-z-]+)\.md")


def on_config(config: Any) -> Any:
    """Adds the version to the footer, and a link to the repository where one is known.

    It is known from the environment variable DPAUDIT_REPOSITORY, or from `[project.urls]` of pyproject.toml.
    """
    project = tomllib.loads((Path(config.config_file_path).parent / "pyproject.toml").read_text(encoding="utf-8"))
    config.copyright = f"dpaudit {project['project']['version']}, {project['project']['license']}"
    address = os.environ.get("DPAUDIT_REPOSITORY") or project["project"].get("urls", {}).get("Repository")
    if address:
        config.repo_url, config.repo_name = address, address.removesuffix("/").rpartition("/")[2]
    return config


def command_page() -> str:
    """Every command with its arguments and options, in Markdown."""
    from dpaudit.reports.cli.commands import app

    command = typer.main.get_command(app)
    with command.make_context("dpaudit", [], resilient_parsing=True) as context:
        return get_docs_for_click(obj=command, ctx=context, name="dpaudit", title="Command line") + "\n"


def glossary_page() -> str:
    """The terms of results and reports, in Markdown."""
    from dpaudit.reports.pages.html_page import GLOSSARY

    return "# Glossary\n\n" + "\n".join(f"{term}\n:   {meaning}\n" for term, meaning in GLOSSARY)


GENERATED = {"reference/command-line.md": command_page, "reference/glossary.md": glossary_page}


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages to those found."""
    for path, content in GENERATED.items():
        files.append(File.generated(config, path, content=content()))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Leaves theory and measurements out of the search, and ranks the long lists of the reference below the guides."""
    if page.file.src_uri.startswith(THEORY):
        page.meta["search"] = {"exclude": True}
    elif page.file.src_uri.startswith(LISTS):
        page.meta["search"] = {"boost": 0.2}
    return markdown


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
