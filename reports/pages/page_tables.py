"""Tables of text on a page of HTML: sections of a report, or a page of their own."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import quote

from ..plain_text import prose, require_for_html, visible

if TYPE_CHECKING:
    from jinja2 import Environment

CellStyle: TypeAlias = Literal["", "refuted", "not-refuted", "inconclusive", "soft"]
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class PageCell:
    """Text of a cell with a colour, and a remark below it."""

    text: str
    style: CellStyle = ""
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table with a heading.

    Attributes
    ----------
    id : str
        Target of links to the heading; letters and hyphens.
    title, caption : str
    columns : tuple of str
    rows : tuple of tuple of (str or PageCell)
        The first cell of a row is its heading.
    """

    id: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | PageCell, ...], ...]


def shown_table(table: PageTable) -> dict[str, Any]:
    """Return the values of a table for the template, as safe text."""
    return {
        "id": table.id,
        "title": visible(table.title, 100),
        "caption": prose(table.caption),
        "columns": [visible(column, 100) for column in table.columns],
        "rows": [[_shown_cell(cell) for cell in row] for row in table.rows],
    }


def _shown_cell(cell: str | PageCell) -> PageCell:
    held = PageCell(cell) if isinstance(cell, str) else cell
    return PageCell(visible(held.text, _LONGEST), held.style, visible(held.remark, _LONGEST))


def table_page(
    title: str, paragraphs: Sequence[str], tables: Sequence[PageTable], links: Sequence[tuple[str, str]] = ()
) -> str:
    """Return a self-contained page of tables, without scripts.

    Parameters
    ----------
    title : str
    paragraphs : sequence of str
        Text before the tables.
    tables : sequence of PageTable
    links : sequence of (name, relative path)
        Files that the page links to.
    """
    require_for_html()
    return (
        templates()
        .get_template("table_page.html.j2")
        .render(
            title=visible(title, 150),
            policy=content_policy(),
            styles="",
            paragraphs=[prose(paragraph) for paragraph in paragraphs],
            links=[(visible(name, 100), quote(target)) for name, target in links],
            tables=[shown_table(table) for table in tables],
        )
    )


@functools.cache
def templates() -> Environment:
    """Return the templates of all pages, which escape what they are given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__package__ or "dpaudit.reports.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def content_policy(script: str = "") -> str:
    """Return the content security policy: inline styles and drawings, the given script, and nothing external."""
    allowed = ["default-src 'none'", "style-src 'unsafe-inline'"]
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        allowed.append(f"script-src 'sha256-{digest}'")
    return "; ".join([*allowed, "base-uri 'none'", "form-action 'none'"])
