"""Reports: ``dpaudit report | compare | schema``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .display import console
from .near_files import check_results
from .options import optional

if TYPE_CHECKING:
    from ...audit.records.baseline_comparison import Comparison
    from ...reports.pages.page_tables import PageTable

FORMS = {
    "html": "report.html",
    "markdown": "report.md",
    "junit": "junit.xml",
    "csv": "results.csv",
    "json": "results.json",
    "sarif": "results.sarif",
    "code scanning": "code-scanning.sarif",
    "privacy card": "privacy-card.md",
    "privacy card as JSON": "privacy-card.json",
}
"""Names of the files of each form of a report."""
_FOR_REVIEWERS = ("sarif", "code scanning", "privacy card", "privacy card as JSON")
Html = Annotated[bool, typer.Option("--html", help="Write report.html.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Write report.md.")]


def report(
    results: Annotated[list[Path], typer.Argument(help="Files of results, merged into one report.")],
    html: Html = False,
    markdown: Markdown = False,
    junit: Annotated[bool, typer.Option("--junit", help="Write junit.xml.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write results.csv.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write results.json, for example of merged files.")] = False,
    sarif: Annotated[bool, typer.Option("--sarif", help="Write results.sarif, a finding for each audit.")] = False,
    code_scanning: Annotated[
        bool, typer.Option("--code-scanning", help="Write code-scanning.sarif, with the problems alone, for upload.")
    ] = False,
    card: Annotated[bool, typer.Option("--card", help="Write privacy-card.md and privacy-card.json.")] = False,
    figures: Annotated[Path | None, optional("Folder for each figure as SVG.", metavar="DIR")] = None,
    title: Annotated[str | None, optional("Title of the report.")] = None,
    out: Annotated[Path | None, optional("Folder for the files; by default that of the first results.")] = None,
) -> None:
    """Write reports from saved results, by default report.html and report.md.

    --sarif, --code-scanning and --card write evidence for reviewers: docs/how-to/reviewers.md.

    Example: `dpaudit report audit-report/results.json --html --junit --figures figures`
    """
    from dataclasses import replace

    from ...audit.errors import OptionError
    from ...audit.records.json_codec import load
    from ...audit.records.merge import merge

    check_results(*results)
    read = [load(path) for path in results]
    suite = merge(read, [str(path) for path in results])
    if title is not None:
        suite = replace(suite, title=title)
    wanted = {
        "html": html, "markdown": markdown, "junit": junit, "csv": csv, "json": json, "sarif": sarif,
        "code scanning": code_scanning, "privacy card": card, "privacy card as JSON": card,
    }  # fmt: skip
    forms = [form for form, is_wanted in wanted.items() if is_wanted]
    if not forms and figures is None:
        forms = ["html", "markdown"]
    if out is None and len(results) > 1:
        raise OptionError("several results are merged into one report; name its folder with --out.")
    folder = results[0].parent if out is None else out
    if "json" in forms and any((folder / FORMS["json"]).resolve() == path.resolve() for path in results):
        raise OptionError(f"--json would overwrite {folder / FORMS['json']}; use another folder with --out.")
    from ...reports.formats.results_files import results_file

    files = [results_file(path, one) for path, one in zip(results, read, strict=True)]
    written = write_reports(suite, folder, [form for form in forms if form not in _FOR_REVIEWERS])
    written += write_for_reviewers(suite, folder, [form for form in forms if form in _FOR_REVIEWERS], files)
    if figures is not None:
        from ...reports.figures.figure_files import save_figures

        written.append(f"figures: {len(save_figures(suite, figures)):,} in {figures}")
    show(suite, written)


def compare(
    before: Annotated[Path, typer.Argument(help="Earlier results, such as a baseline saved by pytest.")],
    after: Annotated[Path, typer.Argument(help="Current results.")],
    alpha: Annotated[
        float, typer.Option(help="Allowed probability of reporting an unchanged audit as changed.")
    ] = 1e-5,
    html: Html = False,
    markdown: Markdown = False,
    out: Annotated[Path | None, optional("Folder for the files; by default that of the current results.")] = None,
) -> None:
    """Changes between two files of results, by a test on the counts of the earlier events.

    The counts come from `pytest --dp-audit-save=…` for the earlier file, and from `pytest --dp-audit-compare=…
    --dp-audit-save=…` for the current file; audits without such counts are not compared. Exit status 1 for any change
    of counts, claims or pairs, fewer runs, missing audits or expired acceptances of findings; otherwise 3 if an audit
    could not be compared, and 0 if all are unchanged. --html and --markdown write the current report with a section on
    the changes.

    Example: `dpaudit compare dp_audit_baselines/main.json dp_audit_baselines/branch.json`
    """
    from ...audit.errors import OptionError
    from ...audit.records.baseline_comparison import compare as compared
    from ...audit.records.json_codec import load
    from ...reports.pages.comparison_table import comparison_table

    check_results(before, after)
    now = load(after)
    found = compared(load(before), now, alpha=alpha)
    forms = [form for form, is_wanted in (("html", html), ("markdown", markdown)) if is_wanted]
    if out is not None and not forms:
        raise OptionError("--out names the folder of a report, but no report is requested; add --html or --markdown.")
    written = write_reports(now, after.parent if out is None else out, forms, found)
    console().print(comparison_table(found))
    print_lines(written)
    is_changed = any(one.has_changed for one in found)
    raise typer.Exit(1 if is_changed else 3 if not found or any(one.not_compared for one in found) else 0)


def schema() -> None:
    """Print the JSON Schema of files of results.

    Example: `dpaudit schema > results.schema.json`
    """
    from ...audit.records.json_schema import schema_text

    typer.echo(schema_text(), nl=False)


def show(suite: Any, written: Sequence[str] = ()) -> None:
    """Print the table of a suite, its number of expected verdicts, and the lines about files that were written."""
    from ...reports import table

    shown = console()
    shown.print(table(suite))
    audits, alphas = len(suite.entries), sum(entry.result.alpha for entry in suite.entries)
    if any(entry.expected is not None for entry in suite.entries):
        met = sum(entry.is_met for entry in suite.entries)
        shown.print(f"{met} of {audits} verdicts as expected; expected number of false alarms: at most {alphas:.2g}.")
    print_lines(written)


def print_lines(lines: Sequence[str]) -> None:
    """Print the lines about files that were written."""
    for line in lines:
        typer.echo(line)


def write_reports(
    suite: Any,
    out: Path,
    forms: Sequence[str] = ("html", "markdown"),
    comparisons: Sequence[Comparison] = (),
    tables: Sequence[PageTable] = (),
    shown: Path | None = None,
) -> list[str]:
    """Write a suite in the given forms, each file completely or not at all, and return a line about each file.

    The tables are sections of the HTML page; `shown` is the folder as the lines name it.
    """
    from ... import reports
    from ...audit.files import write_atomically
    from ...audit.records.json_codec import to_json
    from ..suite.figures_of_experiments import drawings

    for form in forms:
        if form == "html":
            text = reports.html(suite, drawings(suite), comparisons=comparisons, tables=tables)
        elif form == "markdown":
            text = reports.markdown(suite, comparisons=comparisons)
        else:
            text = {"junit": reports.junit, "csv": reports.csv, "json": to_json}[form](suite)
        write_atomically(out / FORMS[form], text)
    return [f"{'report' if form == 'html' else form}: {(shown or out) / FORMS[form]}" for form in forms]


def write_for_reviewers(suite: Any, out: Path, forms: Sequence[str], files: Sequence[Any]) -> list[str]:
    """Write a suite in the given forms for reviewers, and return a line about each file."""
    from ... import reports
    from ...audit.files import write_atomically

    for form in forms:
        if form == "privacy card":
            text = reports.privacy_card_markdown(suite, files=files)
        elif form == "privacy card as JSON":
            text = reports.privacy_card(suite, files=files)
        else:
            text = reports.sarif(suite, files=files, code_scanning=form == "code scanning")
        write_atomically(out / FORMS[form], text)
    return [f"{form}: {out / FORMS[form]}" for form in forms]
