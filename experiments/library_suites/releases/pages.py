"""A matrix of releases as Markdown, as tables of an HTML page, and as lines for the terminal."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from ....reports.pages.page_tables import CellStyle, PageCell, PageTable, table_page
from ....reports.plain_text import number
from ..suite_pages import cell_text
from .matrix import REFUTED, Cell, Matrix, Release, Row, Standing

_UNSEEN = (Standing.NOT_COVERED, Standing.ABSENT, Standing.SAME, Standing.NO_SUITE)
_LEGEND = (
    "A cell says what became of a callable in a release. “Not refuted” proves nothing: the audits of that release did "
    "not refute the claim with the runs that they had. “Refuted by values” holds for any rounding of the output, "
    "“refuted by low bits” needs all digits; both were confirmed by fresh runs with another seed and the pair swapped. "
    "“Not covered” callables have no form, or none that fits this release. A dash stands for a release without a "
    "public callable of this name: it may have another name there."
)
_CHANGES = (
    "Points that were refuted in one release and audited in another without a refutation. Fewer runs or another pair "
    "can be the reason, so this alone does not show a repair or a new defect."
)
_STYLES: dict[Standing, CellStyle] = {
    Standing.REFUTED: "refuted",
    Standing.REFUTED_BY_BITS: "refuted",
    Standing.NOT_REFUTED: "not-refuted",
    Standing.NOT_CONFIRMED: "inconclusive",
    Standing.INCONCLUSIVE: "inconclusive",
}


def matrix_text(matrix: Matrix) -> str:
    """Return the numbers of each release, and the refuted callables with their cells."""
    lines = [_alpha(matrix), *(f"  {release.name}: {_numbers(release)}" for release in matrix.releases)]
    for row in matrix.rows:
        if row.is_refuted:
            lines.append(f"  {row.callable}")
            pairs = zip(matrix.releases, row.cells, strict=True)
            lines += [f"    {release.name}: {cell.words}" for release, cell in pairs]
    return "\n".join(lines)


def matrix_markdown(matrix: Matrix) -> str:
    """Return the matrix as a page of Markdown."""
    names = [release.name for release in matrix.releases]
    changes = matrix.changes
    parts = [
        f"# Releases of {matrix.library}",
        _alpha(matrix),
        _table(
            ["release", "points audited", "alpha", "seed"], [_release_row(one) for one in matrix.releases], {1, 2, 3}
        ),
        _LEGEND,
        _table(
            ["callable", *names],
            [[f"`{row.callable}`", *(cell_text(_short(cell)) for cell in row.cells)] for row in _shown(matrix)],
        ),
        _left_out(matrix),
    ]
    if changes:
        parts += [
            "## Differences between releases",
            _CHANGES,
            _table(["point", *names], [[cell_text(one.name), *map(cell_text, one.told)] for one in changes]),
        ]
    return "\n\n".join(filter(None, parts)) + "\n"


def matrix_html(matrix: Matrix, out: Path) -> str:
    """Return the matrix as a page of HTML in the folder `out`, with links to the reports of the releases."""
    names = tuple(release.name for release in matrix.releases)
    tables = [
        PageTable(
            id="releases",
            title="Releases",
            caption=_alpha(matrix),
            columns=("Release", "Points audited", "Alpha", "Seed"),
            rows=tuple(tuple(_release_row(release)) for release in matrix.releases),
        ),
        PageTable(
            id="callables",
            title="Callables",
            caption=_left_out(matrix),
            columns=("Callable", *names),
            rows=tuple((row.callable, *map(_page_cell, row.cells)) for row in _shown(matrix)),
        ),
    ]
    if matrix.changes:
        tables.append(
            PageTable(
                id="differences",
                title="Differences between releases",
                caption=_CHANGES,
                columns=("Point", *names),
                rows=tuple((change.name, *change.told) for change in matrix.changes),
            )
        )
    reports = [(one.name, one.folder / "report.html") for one in matrix.releases]
    links = [(name, Path(os.path.relpath(path, out)).as_posix()) for name, path in reports if path.exists()]
    return table_page(f"Releases of {matrix.library}", [_LEGEND], tables, links)


def _alpha(matrix: Matrix) -> str:
    return (
        f"If every claim of every release holds, any is refuted with probability at most {number(matrix.alpha)}, the "
        "sum over the releases."
    )


def _numbers(release: Release) -> str:
    audited, points = release.reached
    return f"the suite did not run ({release.problem})" if release.problem else f"{audited} of {points} points audited"


def _release_row(release: Release) -> list[str]:
    if release.problem:
        return [release.name, cell_text(_numbers(release)), "", ""]
    audited, points = release.reached
    return [release.name, f"{audited} of {points}", number(release.alpha), str(release.settings["seed"])]


def _shown(matrix: Matrix) -> list[Row]:
    """Return the rows with an audit in some release."""
    return [row for row in matrix.rows if any(cell.standing not in _UNSEEN for cell in row.cells)]


def _left_out(matrix: Matrix) -> str:
    """Return the callables without a row, as one sentence for each kind."""
    shown = {row.callable for row in _shown(matrix)}
    rest = [row for row in matrix.rows if row.callable not in shown]
    same = [row for row in rest if any(cell.standing is Standing.SAME for cell in row.cells)]
    never = [row.callable for row in rest if row not in same]
    said = []
    if same:
        said.append(f"Left out because they only call another callable: {len(same)}.")
    if never:
        said.append(f"Covered in no release: {', '.join(never)}.")
    return " ".join(said)


def _short(cell: Cell) -> str:
    """Return the words of a cell for a narrow column."""
    words = cell.words if cell.standing is not Standing.ABSENT else "–"
    return f"**{words}**" if cell.standing in REFUTED else words


def _page_cell(cell: Cell) -> PageCell:
    remark = cell.point if cell.standing in REFUTED else cell.remark
    return PageCell("–" if cell.standing is Standing.ABSENT else cell.words, _STYLES.get(cell.standing, "soft"), remark)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    rule = "|".join("--:" if place in right else "---" for place in range(len(head)))
    return "\n".join([f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])
