"""What no Markdown file has: version, repository, generated pages, notebooks, links from docstrings to proofs."""

from __future__ import annotations

import json
import re
import tomllib
from html import escape
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
    """Adds version and repository to the footer; with `repo_url`, pages would ask the repository's host for facts."""
    text = (Path(config.config_file_path).parent / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    source = project["urls"]["Source"]
    config.copyright = f'<a href="{source}">dpaudit</a> {project["version"]}, {project["license"]}'
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


class Notebook(File):
    """A notebook as a page; links name the notebook, which forges show too."""

    def is_documentation_page(self) -> bool:
        """Whatever its name ends with."""
        return True

    @property
    def content_string(self) -> str:
        """The cells and their outputs, in Markdown."""
        first, *cells = json.loads(super().content_string)["cells"]
        parts = ["".join(first["source"]), f"[Download this notebook](download/{self.name}.ipynb)"]
        for cell in cells:
            source = "".join(cell["source"])
            parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
            parts += map(output_of_cell, cell.get("outputs", ()))
        return "\n\n".join(parts) + "\n"


def output_of_cell(output: dict[str, Any]) -> str:
    """A picture, a card, or text, in Markdown."""
    data = {kind: "".join(text) for kind, text in output.get("data", {"text/plain": output.get("text")}).items()}
    if "image/png" in data:
        alt = escape(output["metadata"]["image/png"]["alt"])
        return f'<img src="data:image/png;base64,{data["image/png"]}" alt="{alt}">'
    return data.get("text/html") or f"```text\n{data['text/plain'].rstrip()}\n```"


def on_files(files: Files, config: Any) -> Files:
    """Adds the generated pages to those found, and a page for each notebook, with the notebook to download."""
    for path, content in GENERATED.items():
        files.append(File.generated(config, path, content=content()))
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
        files.append(Notebook(file.src_uri, file.src_dir, file.dest_dir, file.use_directory_urls))
        path = f"notebooks/download/{file.name}.ipynb"
        files.append(File.generated(config, path, abs_src_path=file.abs_src_path))
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
