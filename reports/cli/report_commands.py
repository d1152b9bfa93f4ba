"""Reports and plans: ``dpaudit report | compare | schema | plan``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...audit.errors import OptionError, RecordError
from .shared_options import Alpha, Delta, Epsilon, Mu, Power, Rho, claim_from_options, optional, whole

if TYPE_CHECKING:
    from rich.console import Console

    from ...audit.records.baseline_comparison import Comparison
    from ...audit.records.suite import Suite
    from ..formats.sarif import ResultsFile
    from ..pages.html_page import PageTable

FORMS = {
    "html": "report.html",
    "markdown": "report.md",
    "junit": "junit.xml",
    "json": "results.json",
    "sarif": "results.sarif",
    "code scanning": "code-scanning.sarif",
    "privacy card": "privacy-card.md",
    "privacy card as JSON": "privacy-card.json",
}
"""Names of the files of each form of a report."""
Html = Annotated[bool, typer.Option("--html", help="Write report.html.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Write report.md.")]


def report(
    results: Annotated[list[Path], typer.Argument(help="Files of results, merged into one report.")],
    html: Html = False,
    markdown: Markdown = False,
    junit: Annotated[bool, typer.Option("--junit", help="Write junit.xml.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Write results.json, for example of merged files.")] = False,
    sarif: Annotated[bool, typer.Option("--sarif", help="Write results.sarif, a finding for each audit.")] = False,
    code_scanning: Annotated[
        bool, typer.Option("--code-scanning", help="Write code-scanning.sarif, with the problems alone, for upload.")
    ] = False,
    card: Annotated[bool, typer.Option("--card", help="Write privacy-card.md and privacy-card.json.")] = False,
    title: Annotated[str | None, optional("Title of the report.")] = None,
    out: Annotated[Path | None, optional("Folder for the files; by default that of the first results.")] = None,
) -> None:
    """Write reports from saved results, by default report.html and report.md.

    --sarif, --code-scanning and --card write evidence for reviewers: docs/how-to/reviewers.md.

    Example: `dpaudit report audit-report/results.json --html --junit`
    """
    from ...audit.records.json_codec import load
    from ...audit.records.merge import merge
    from ..formats.sarif import results_file

    check_results(*results)
    read = [load(path) for path in results]
    suite = merge(read, [str(path) for path in results])
    if title is not None:
        suite = replace(suite, title=title)
    wanted = (html, markdown, junit, json, sarif, code_scanning, card, card)
    forms = [form for form, is_wanted in zip(FORMS, wanted, strict=True) if is_wanted]
    if not forms:
        forms = ["html", "markdown"]
    if out is None and len(results) > 1:
        raise OptionError("several results are merged into one report; name its folder with --out.")
    folder = results[0].parent if out is None else out
    if "json" in forms and any((folder / FORMS["json"]).resolve() == path.resolve() for path in results):
        raise OptionError(f"--json would overwrite {folder / FORMS['json']}; use another folder with --out.")
    files = [results_file(path, one) for path, one in zip(results, read, strict=True)]
    written = write_reports(suite, folder, forms, files=files)
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
    --dp-audit-save=…` for the current file; audits without such counts are not compared. Of replays and other checks,
    verdicts and claims are compared. Exit status 1 for any change of verdicts, counts, claims or pairs, fewer runs,
    missing audits or expired acceptances of findings; otherwise 3 if an audit or another check could not be compared,
    and 0 if all are unchanged. --html and --markdown write the current report with a section on the changes.

    Example: `dpaudit compare dp_audit_baselines/main.json dp_audit_baselines/branch.json`
    """
    from ...audit.records.baseline_comparison import compare as compared
    from ...audit.records.json_codec import load
    from ..pages.terminal_tables import comparison_table

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


def check_results(*paths: Path) -> None:
    """Raise a `RecordError` for a path that is not a file of results, naming the file that was probably meant."""
    from .dataset_arguments import no_such_file

    for path in paths:
        if path.is_dir():
            inside = path / FORMS["json"]
            hint = f"; did you mean {str(inside)!r}?" if inside.exists() else "; name a file of results in it."
            raise RecordError(f"{path} cannot be read: it is a folder{hint}", path=str(path))
        if not path.exists():
            raise RecordError(f"{path} cannot be read: {no_such_file(path, {'.json'})}", path=str(path))


def earlier_title(folder: Path, wanted: str | None = None) -> str | None:
    """Return the title of the results in a folder, None if there are none; raise an `OptionError` for another one."""
    from ...audit.records.json_codec import load

    path = folder / FORMS["json"]
    if not path.exists():
        return None
    try:
        title = load(path).title
    except RecordError as error:
        raise OptionError(f"{path} would be replaced ({error}); name another folder with --out.") from error
    if wanted not in (None, title):
        raise OptionError(
            f"{path} holds other results, {title!r}, which would be lost; name another folder with --out, or delete "
            "the file."
        )
    return title


def show(suite: Suite, written: Sequence[str] = ()) -> None:
    """Print the table of a suite, its number of expected verdicts, and the lines about files that were written."""
    from ..plain_text import outcome, table, visible

    shown = console()
    if suite.entries or not suite.checks:
        shown.print(table(suite))
    for check in suite.checks:
        shown.print(f"{check.kind} {visible(check.name)}: {outcome(check)}, {visible(check.found)}", markup=False)
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
    suite: Suite,
    out: Path,
    forms: Sequence[str] = ("html", "markdown"),
    comparisons: Sequence[Comparison] = (),
    tables: Sequence[PageTable] = (),
    files: Sequence[ResultsFile] = (),
    shown: Path | None = None,
) -> list[str]:
    """Write a suite in the given forms, each file completely or not at all, and return a line about each file.

    The tables are sections of the HTML page; `files` are the files of results that forms for reviewers name; `shown`
    is the folder as the lines name it.
    """
    from ...audit.files import write_atomically
    from ...audit.records.json_codec import to_json

    reports = import_module("..", __package__)  # it imports the module of a form on first use
    text_of: dict[str, Callable[[], str]] = {
        "html": lambda: reports.html(suite, comparisons=comparisons, tables=tables),
        "markdown": lambda: reports.markdown(suite, comparisons=comparisons),
        "junit": lambda: reports.junit(suite),
        "json": lambda: to_json(suite),
        "sarif": lambda: reports.sarif(suite, files=files),
        "code scanning": lambda: reports.sarif(suite, files=files, code_scanning=True),
        "privacy card": lambda: reports.privacy_card_markdown(suite, files=files),
        "privacy card as JSON": lambda: reports.privacy_card(suite, files=files),
    }
    for form in forms:
        write_atomically(out / FORMS[form], text_of[form]())
    return [f"{'report' if form == 'html' else form}: {(shown or out) / FORMS[form]}" for form in forms]


def plan(
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    mu: Mu = None,
    rho: Rho = None,
    detect: Annotated[list[float] | None, optional("Excess to detect; can be given several times.")] = None,
    runs: Annotated[
        list[int] | None, whole("Runs on each dataset; can be given several times.", show_default=False)
    ] = None,
    canaries: Annotated[
        list[int] | None,
        whole("Canaries of one training run, in place of runs; can be given several times.", show_default=False),
    ] = None,
    power: Power = 0.95,
    alpha: Alpha = 0.05,
    q: Annotated[
        float | None, optional("Probability of the event on the less likely side; by default that of the best event.")
    ] = None,
) -> None:
    """Runs that detect an excess over a claim, and the excess that a number of runs detects.

    With `--canaries` the bound that an audit of one training run can reach, and the excess that it detects; with
    `--detect` too, also how many canaries detect this excess.

    Example: `dpaudit plan --epsilon 1 --detect 0.02 --runs 1000000`
    """
    from ...audit.canaries.plan_canaries import plan_canaries
    from ..pages.terminal_tables import plan_table

    claim = claim_from_options(epsilon, delta, mu, rho)
    if canaries:
        if runs or q is not None:
            raise OptionError("--canaries excludes --runs and --q; plan one kind of audit at a time.")
        options: dict[str, Any] = {"claim": claim, "alpha": alpha, "power": power}
        plans = [plan_canaries(number, **options) for number in canaries]
        for each in [*plans, *(plan_canaries(detect=excess, **options) for excess in detect or ())]:
            console().print(str(each), soft_wrap=True)
        return
    console().print(plan_table(claim, detect or [], runs or [], power=power, alpha=alpha, q=q))


def on_terminal() -> bool:
    """Whether standard output is a terminal; audited code may have closed or removed it."""
    return not getattr(sys.stdout, "closed", True) and sys.stdout.isatty()


def console() -> Console:
    """Return a rich console, 120 columns wide if the output is not a terminal."""
    from rich.console import Console

    return Console(width=None if on_terminal() else 120, highlight=False)
