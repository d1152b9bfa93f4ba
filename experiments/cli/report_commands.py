"""The command line's reports: ``dpaudit report | compare | schema``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .display import console

if TYPE_CHECKING:
    from ...audit.records.baseline_comparison import Comparison

_FORMS = {
    "html": "report.html",
    "markdown": "report.md",
    "junit": "junit.xml",
    "csv": "results.csv",
    "json": "results.json",
}
Out = Annotated[
    Path | None, typer.Option(help="Folder for the files; that of the first results by default.", show_default=False)
]
Html = Annotated[bool, typer.Option("--html", help="Write report.html.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Write report.md.")]
Figures = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write each figure to this folder, as SVG.", show_default=False)
]


def report(
    results: Annotated[list[Path], typer.Argument(help="Files of results, which become one report.")],
    html: Html = False,
    markdown: Markdown = False,
    junit: Annotated[bool, typer.Option("--junit", help="Write junit.xml.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write results.csv.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write results.json, such as of several files.")] = False,
    figures: Figures = None,
    title: Annotated[str | None, typer.Option(help="Of the report.", show_default=False)] = None,
    out: Out = None,
) -> None:
    """Write reports from saved results: report.html and report.md where no other is asked for.

    Example: `dpaudit report audit-report/results.json --html --junit --figures figures`
    """
    from dataclasses import replace

    from ...audit.errors import OptionError
    from ...audit.records.json_codec import load
    from ...audit.records.merge import merge

    suite = merge([load(path) for path in results], [str(path) for path in results])
    if title is not None:
        suite = replace(suite, title=title)
    wanted = {"html": html, "markdown": markdown, "junit": junit, "csv": csv, "json": json}
    forms = [form for form, is_wanted in wanted.items() if is_wanted]
    if not forms and figures is None:
        forms = ["html", "markdown"]
    if out is None and len(results) > 1:
        raise OptionError("several results become one report: say where it goes with --out FOLDER.")
    folder = results[0].parent if out is None else out
    if "json" in forms and any((folder / _FORMS["json"]).resolve() == path.resolve() for path in results):
        raise OptionError(f"--json would write over {folder / _FORMS['json']}; use another folder with --out.")
    show(suite)
    write_reports(suite, folder, forms)
    if figures is not None:
        from ...reports.figures.figure_files import save_figures

        typer.echo(f"figures: {len(save_figures(suite, figures)):,} in {figures}")


def compare(
    before: Annotated[Path, typer.Argument(help="Results of before, such as a baseline that pytest saved.")],
    after: Annotated[Path, typer.Argument(help="Results of now.")],
    alpha: Annotated[float, typer.Option(help="Allowed probability of calling an audit changed that is not.")] = 1e-5,
    html: Html = False,
    markdown: Markdown = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; that of the second by default.", show_default=False)
    ] = None,
) -> None:
    """What has changed between two files of results, by a test on the counts of the events of the first.

    Those events are counted anew where the first was saved by `pytest --dp-audit-save=…`, and the second by `pytest
    --dp-audit-compare=… --dp-audit-save=…`; what has no such counts is not compared. Exit status 1 if anything has
    changed: counts, claims, pairs, fewer runs, audits that are missing, accepted findings that have expired; 3 if not,
    and something could not be compared. With --html or --markdown, the report of the second with a section on what has
    changed.

    Example: `dpaudit compare dp_audit_baselines/main.json dp_audit_baselines/branch.json`
    """
    from ...audit.errors import OptionError
    from ...audit.records.baseline_comparison import compare as compared
    from ...audit.records.json_codec import load
    from ...reports.pages.comparison_table import comparison_table

    now = load(after)
    found = compared(load(before), now, alpha=alpha)
    console().print(comparison_table(found))
    forms = [form for form, is_wanted in (("html", html), ("markdown", markdown)) if is_wanted]
    if out is not None and not forms:
        raise OptionError("--out says where a report goes, and none was asked for; add --html or --markdown.")
    write_reports(now, after.parent if out is None else out, forms, found)
    is_changed = any(one.has_changed for one in found)
    raise typer.Exit(1 if is_changed else 3 if not found or any(one.not_compared for one in found) else 0)


def schema() -> None:
    """Print the JSON Schema of files of results.

    Example: `dpaudit schema > results.schema.json`
    """
    from ...audit.records.json_schema import schema_text

    typer.echo(schema_text(), nl=False)


def show(suite: Any) -> None:
    """Prints the table of a suite, and how many audits came out as expected."""
    from ...reports import table

    shown = console()
    shown.print(table(suite))
    audits, alphas = len(suite.entries), sum(entry.result.alpha for entry in suite.entries)
    if any(entry.expected is not None for entry in suite.entries):
        met = sum(entry.is_met for entry in suite.entries)
        shown.print(f"{met} of {audits} as expected; at most {alphas:.2g} false alarms are to be expected in all.")


def write_reports(
    suite: Any, out: Path, forms: Sequence[str] = ("html", "markdown"), comparisons: Sequence[Comparison] = ()
) -> None:
    """Writes a suite in these forms, each whole or not at all, and says where."""
    from ... import reports
    from ...audit.records.json_codec import to_json, write_whole
    from ..suite.figures_of_experiments import drawings

    for form in forms:
        if form == "html":
            text = reports.html(suite, drawings(suite), comparisons=comparisons)
        elif form == "markdown":
            text = reports.markdown(suite, comparisons=comparisons)
        else:
            text = {"junit": reports.junit, "csv": reports.csv, "json": to_json}[form](suite)
        write_whole(out / _FORMS[form], text)
    for form in forms:
        typer.echo(f"{'report' if form == 'html' else form}: {out / _FORMS[form]}")
