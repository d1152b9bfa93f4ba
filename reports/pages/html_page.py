"""A suite as one self-contained HTML file: no external font, image or style, and readable without scripts."""

from __future__ import annotations

import base64
import csv
import dataclasses
import datetime
import functools
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...audit.printing import counted, percent
from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry, SideCheck, Suite, seconds
from ...audit.results.canary_result import CanaryResult, best_guesses
from ...audit.results.verdict import Verdict
from .. import plain_text as plain
from ..figures.output_figures import forest
from ..figures.plot import drawings_of, figure_of_table, rules, svg
from ..plain_text import APART, KINDS, cautions, heading, prose, require_for_html, visible
from .audit_facts import about, by_severity, in_words, limits_of, place_of_mechanism, repetition, what_to_do
from .terminal_tables import numbers_of, side_of

if TYPE_CHECKING:
    from jinja2 import Environment

# Tables of text: sections of a report.

CellStyle: TypeAlias = Literal["", "refuted", "not-refuted", "inconclusive", "soft"]
_LONGEST = 2_000
_MOST_COLUMNS = 12  # of a data frame


def frame_rows(contents: str, kind: str) -> list[list[str]]:
    """Return the rows of a kept data frame, the names first; none of another dataset. `kind` is its summary."""
    if not kind.startswith("data frame"):
        return []
    rows = (row for row in csv.reader(io.StringIO(contents)) if row)
    return [row[:_MOST_COLUMNS] + ["…"] * (len(row) > _MOST_COLUMNS) for row in rows]


_WORDS = (
    frame_rows, visible, prose, percent, seconds, about, best_guesses, in_words, place_of_mechanism, repetition,
    side_of, plain.canaries_in_words, counted, plain.detectable_text, plain.error_budget, plain.exact,
    plain.exact_text, plain.expectation, plain.expectations, plain.false_alarms, plain.found, plain.held_together,
    plain.missing, plain.number, plain.other_way, plain.p_text, plain.runs_made, plain.severity_note, plain.size,
    plain.tally, plain.duration, plain.attack_table,
)  # fmt: skip
"""What templates say of results and suites, as filters."""


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


@functools.cache
def templates() -> Environment:
    """Return the templates, which make all text visible and escape it; the words of results are filters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__ or "dpaudit.reports.pages"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_safe,
    )  # fmt: skip
    environment.filters |= {word.__name__: word for word in _WORDS}
    return environment


def _safe(value: Any) -> Any:
    """What a template prints: text without invisible characters, unless it is markup of the page itself."""
    return visible(value, _LONGEST) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _content_policy() -> str:
    """Return the content security policy: inline styles and drawings, the page's script, and nothing external."""
    digest = base64.b64encode(hashlib.sha256(_text("page.js").encode()).digest()).decode()
    allowed = ["default-src 'none'", "style-src 'unsafe-inline'", f"script-src 'sha256-{digest}'"]
    return "; ".join([*allowed, "base-uri 'none'", "form-action 'none'"])


@functools.cache
def _text(name: str) -> str:
    return files(__package__ or "dpaudit.reports.pages").joinpath("templates", name).read_text(encoding="utf-8")


GLOSSARY = tuple(tuple(line.split(": ", 1)) for line in _text("glossary.txt").splitlines())
"""Terms and their definitions, in alphabetical order."""


def html(
    suite: Suite,
    *,
    comparisons: Sequence[Comparison] = (),
    tables: Sequence[PageTable] = (),
    today: datetime.date | None = None,
) -> str:
    """Return the suite as a page: summary, table, a folding section for each audit, methods, glossary, environment.

    Refuted claims come first, by severity, then inconclusive audits, then the rest. Sections of the most severe
    refuted claims are open.
    The page takes no markup from the data. Its content policy forbids requests and allows one script, which sorts and
    filters the table and opens the section of a link.

    Parameters
    ----------
    suite : Suite
    comparisons : sequence of Comparison
        Comparisons with an earlier record from `dpaudit.audit.records.baseline_comparison.compare`, for a section.
    tables : sequence of PageTable
        Further tables, each a section after the table of audits.
    today : date, optional
        Day on which acceptances are checked; by default the current day.
    """
    require_for_html()
    today = today or datetime.date.today()
    suite = dataclasses.replace(suite, entries=tuple(by_severity(suite.entries)))
    results = [entry.result for entry in suite.entries]
    most_severe = dataclasses.replace(suite, entries=suite.entries[:_MOST_DRAWN])
    n_drawn = sum(entry.result.claim is not None for entry in most_severe.entries)
    sheet: dict[str, str] = {}
    figures = drawings_of([entry.result for entry in most_severe.entries], sheet)
    audits = [_audit(entry, index, today) for index, entry in enumerate(suite.entries, 1)]
    for audit, drawn in zip(audits, figures, strict=False):
        audit["figures"] = drawn
    label = (
        f"Lower bound, estimate and exact value of {counted(n_drawn, 'audit')} as multiples of the claim. The "
        f"table lists the numbers of all {len(results):,} checks: {plain.tally(suite)}."
    )
    alphas = sorted({result.alpha for result in results})
    template = templates().get_template("report.html.j2")
    return template.render(
        suite=suite,
        results=results,
        audits=audits,
        glossary=GLOSSARY,
        policy=_content_policy(),
        script=_text("page.js"),
        groups=_groups(suite, audits),
        warnings=[
            (heading(kind, len(own)), own)
            for kind in KINDS
            if (own := [audit for audit in audits if kind in audit["cautions"]])
        ],
        checks=sorted(
            (
                (plain.LOOKS[plain.alike(check.verdict)], check, _profile(check, f"check-{index}-", sheet))
                for index, check in enumerate(suite.checks)
            ),
            key=lambda told: list(plain.LOOKS.values()).index(told[0]),
        ),
        most={"named": _MOST_NAMED, "open": _MOST_OPEN, "drawn": _MOST_DRAWN},
        forests=[
            (place, svg(forest(most_severe, narrow=is_narrow), label=label, title=_BOUNDS, prefix=prefix, sheet=sheet))
            for place, is_narrow, prefix in (("for-laptop", False, "all-"), ("for-phone", True, "all-narrow-"))
            if n_drawn > 0
        ],
        comparisons=comparisons,
        compared=numbers_of(comparisons),
        tables=tables,
        limits=limits_of(suite),
        alphas=" or ".join(map(plain.number, alphas)),
        confidences=" or ".join(percent(1 - alpha) for alpha in alphas),
        versions=sorted({version for result in results for version in result.versions}),
        styles=rules(sheet),
        looks=plain.LOOKS.values(),
    )


_BOUNDS = "Lower bounds as multiples of the claims"
_MOST_OPEN = 20  # sections: the most severe refutations; more would take long to lay out and to read
_MOST_DRAWN = 100  # audits, the most severe first: their figures take ten times as long as all else of an entry
_MOST_NAMED = 5  # links to audits of one kind on the first screen


def _profile(check: SideCheck, prefix: str, sheet: dict[str, str]) -> list[tuple[str, str, str]]:
    """The privacy profile of an exact audit, with title and caption; none of another check."""
    if check.exact is None:
        return []
    drawn = figure_of_table(check.exact, plain.visible(check.subject, 100))
    return [(drawn.title, drawn.caption, svg(drawn.figure, label=drawn.label, prefix=prefix, sheet=sheet))]


def _groups(suite: Suite, audits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each verdict in reading order: its audits, the first of them for links, and what to do."""
    advice, found = what_to_do(suite), []
    for verdict in plain.READING_ORDER:
        own = [audit for audit in audits if audit["result"].verdict is verdict]
        named = [] if verdict is Verdict.NOT_REFUTED else own[:_MOST_NAMED]
        more = len(own) - len(named) if named else 0
        found.append({**_seen(verdict), "count": len(own), "audits": named, "more": more, "advice": advice[verdict]})
    return found


def _seen(verdict: Verdict) -> dict[str, str]:
    """The word of a verdict, its mark, and its class in the style sheet."""
    look = plain.LOOKS[verdict]
    return {"verdict": verdict.value, "mark": look.mark, "style": look.style}


def _audit(entry: Entry, index: int, today: datetime.date) -> dict[str, Any]:
    """An audit or statement for the template: the entry, and what is said of it."""
    result = entry.result
    sentence, remarks = plain.sentences(result)
    read_with = cautions(result)
    return {
        **_seen(result.verdict),
        "entry": entry,
        "result": result,
        "id": f"audit-{index}",
        "is_open": result.is_refuted and index <= _MOST_OPEN,
        "figures": [],
        "sentence": sentence,
        "remarks": remarks + [f"WARNING: {plain.prose(one.text)}" for one in read_with if one.kind in APART],
        "cautions": [one.kind for one in read_with],
        "sort": _sort_keys(entry),
        "acceptance": plain.acceptance(entry, today),
        "status": plain.acceptance_note(entry, today),
    }


def _sort_keys(entry: Entry) -> dict[str, str]:
    """The numbers by which the script sorts cells whose text sorts differently; empty if unknown."""
    result = entry.result
    numbers = {
        "verdict": plain.READING_ORDER.index(result.verdict),
        "bound": result.worst.estimate if result.claim is None else result.bound,
        "exact": plain.exact(entry),
        "excess": plain.detectable(result),
        "runs": result.canaries if isinstance(result, CanaryResult) else result.runs,
        "seconds": seconds(result),
    }
    return {
        name: "" if value is None or value != value else repr(value).replace("inf", "Infinity")
        for name, value in numbers.items()
    }
