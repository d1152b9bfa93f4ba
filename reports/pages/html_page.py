"""A suite as one self-contained HTML file: no external font, image or style, and readable without scripts."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import functools
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...audit.printing import percent
from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry, ReplayTable, Suite, seconds
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.canary_result import CanaryResult, best_guesses
from ...audit.results.statement_result import StatementResult
from .. import plain_text as plain
from ..figures.figure_style import rules
from ..figures.forest_figure import forest
from ..figures.svg_figure import drawings_of, svg
from ..plain_text import APART, KINDS, cautions, heading, prose, require_for_html, visible
from .audit_facts import facts, in_words
from .page_limits import about, by_severity, limits_of, what_to_do
from .terminal_tables import numbers_of, side_of

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

# Tables of text: sections of a report.

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


def _shown_table(table: PageTable) -> dict[str, Any]:
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


@functools.cache
def _templates() -> Environment:
    """Return the templates, which escape what they are given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__package__ or "dpaudit.reports.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _content_policy() -> str:
    """Return the content security policy: inline styles and drawings, the page's script, and nothing external."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode()
    allowed = ["default-src 'none'", "style-src 'unsafe-inline'", f"script-src 'sha256-{digest}'"]
    return "; ".join([*allowed, "base-uri 'none'", "form-action 'none'"])


# Definitions of the terms in results and reports.

GLOSSARY = (
    ("adjacency", "the rule that says which datasets are neighbours, for example adding or removing one row; two "
     "neighbours differ in one unit of privacy."),
    ("alpha", "the largest probability of refuting a mechanism that satisfies its claim; 1 − alpha is the confidence "
     "of the bound."),
    ("canary", "an example of training data that a coin puts in or leaves out; an audit of a training run guesses the "
     "coins."),
    ("ceiling", "the lower bound that an audit of a training run would give if every guess had been correct."),
    ("claim", "the guarantee under audit: for all neighbours x and y and every event, a function of the event's "
     "probability on y bounds its probability on x; for pure ε-DP the function multiplies by e^ε."),
    ("delta (δ)", "the additive term of (ε, δ)-DP: on x, every event has at most e^ε times its probability on y plus "
     "δ."),
    ("detectable excess", "the smallest amount above the claim at which this audit refutes the claim with the stated "
     "power; for canaries, if their scores reveal all that such a claim allows."),
    ("distance", "the number of adjacency steps from x to y; beyond 1, the claim for groups applies."),
    ("epsilon (ε)", "the privacy parameter of a claim of pure or approximate differential privacy, in nats: the "
                    "logarithm of "
     "the largest likelihood ratio."),
    ("estimate", "the claim privacy parameter implied by the observed frequencies, with no allowance for sampling "
                 "error."),
    ("event", "a set of outputs, chosen on pilot runs that are not counted; a sequential audit chooses it on earlier "
     "runs. “These events” in a verdict are two, one for each direction."),
    ("execution", "a run of a search, which counts those on all datasets together."),
    ("guess", "the dataset on which an output's event is more likely, in runs whose dataset is drawn by a coin; or "
     "whether a canary is in the training data."),
    ("hit", "a run whose output lies in the event."),
    ("likelihood ratio", "the probability of an output or event on one dataset, divided by that on the other."),
    ("low bits", "the last binary digits of a floating-point output, which can reveal the dataset although the rounded "
     "value does not."),
    ("lower bound", "the largest privacy parameter below which every claim is refuted at the stated confidence; the "
                    "mechanism "
     "is no more private than this."),
    ("mechanism", "the code under audit; it draws an output from a dataset and randomness."),
    ("mu (μ), rho (ρ)", "the privacy parameter of a claim of Gaussian or zero-concentrated differential privacy."),
    ("p-value", "the largest probability, if the claim is true, of counts at least as extreme as the observed ones."),
    ("pilot", "the first runs, which choose the event and are not counted; after a search for the pair, they "
     "begin with the search's runs on it."),
    ("privacy profile", "the smallest δ for each ε."),
    ("run", "one output drawn from the mechanism on a dataset; 1,000 runs are 1,000 on each dataset."),
    ("trade-off curve", "the largest power of a test between x and y at each false-positive rate."),
    ("verdict", "refuted, not refuted or inconclusive; no audit can prove a claim."),
)  # fmt: skip
"""Terms and their definitions, in alphabetical order."""


def html(
    suite: Suite,
    drawings: Sequence[tuple[str, str, Figure]] = (),
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
    drawings : sequence of (title, caption, Figure)
        Figures over several audits.
    comparisons : sequence of Comparison
        Comparisons with an earlier record from `dpaudit.audit.records.baseline_comparison.compare`, for a section.
    tables : sequence of PageTable
        Further tables, each a section after the table of audits.
    today : date, optional
        Day on which acceptances are checked; by default the current day.
    """
    require_for_html()
    from markupsafe import Markup

    today = today or datetime.date.today()
    ordered = dataclasses.replace(suite, entries=tuple(by_severity(suite.entries)))
    most_severe = dataclasses.replace(ordered, entries=ordered.entries[:_MOST_DRAWN])
    n_audits = sum(not isinstance(entry.result, StatementResult) for entry in most_severe.entries)
    sheet: dict[str, str] = {}
    figures_of_all = drawings_of([entry.result for entry in most_severe.entries], sheet)
    figures_of_all += [[] for _ in ordered.entries[_MOST_DRAWN:]]

    def drawn(figure: Figure, label: str, prefix: str) -> Markup:
        return Markup(svg(figure, label=label, prefix=prefix, sheet=sheet))

    label = (
        f"Lower bound, estimate and exact value of {plain.counted(n_audits, 'audit')} as multiples of the claim. The "
        f"table lists the numbers of all {len(suite.entries):,} checks: {plain.tally(suite)}."
    )
    overviews = [
        (plain.visible(title, 100), plain.prose(caption), drawn(figure, f"{title}: {caption}", f"d{index}-"))
        for index, (title, caption, figure) in enumerate(drawings)
    ]
    audits = [
        {**_audit(entry, index, today), "figures": [(caption, Markup(drawing)) for caption, drawing in figures]}
        for index, (entry, figures) in enumerate(zip(ordered.entries, figures_of_all, strict=True), 1)
    ]
    versions = {part for entry in suite.entries for part in entry.result.versions}
    alphas = sorted({entry.result.alpha for entry in suite.entries})
    limits = limits_of(suite)
    template = _templates().get_template("report.html.j2")
    return template.render(
        title=plain.visible(suite.title, 150),
        about=about(suite),
        glossary=GLOSSARY,
        policy=_content_policy(),
        script=Markup(_script()),
        n_audits=len(suite.entries),
        groups=_groups(suite, audits),
        warnings=[
            (heading(kind, len(own)), own)
            for kind in KINDS
            if (own := [audit for audit in audits if kind in audit["cautions"]])
        ],
        has_expectations=any(entry.expected is not None for entry in suite.entries),
        has_exact=any(entry.exact is not None for entry in suite.entries),
        expectations=plain.expectations(suite),
        missing=[plain.visible(name, 100) for name in plain.missing(suite)],
        tally=plain.tally(suite),
        most_named=_MOST_NAMED,
        most_open=_MOST_OPEN,
        most_drawn=_MOST_DRAWN,
        n_refuted=plain.verdict_counts(suite)[Verdict.REFUTED],
        is_met=suite.is_met,
        forest=drawn(forest(most_severe), label, "all-"),
        forest_narrow=drawn(forest(most_severe, narrow=True), label, "all-narrow-"),
        has_forest=n_audits > 0,
        comparisons=[_comparison(one) for one in comparisons],
        compared=numbers_of(comparisons),
        accepted=[
            (
                plain.visible(entry.name, 100),
                plain.prose(accepted.reason),
                plain.visible(accepted.until, 20),
                plain.number(accepted.up_to),
                plain.acceptance(entry, today),
            )
            for entry in ordered.entries
            if (accepted := entry.accepted) is not None
        ],
        drawings=overviews,
        tables=[_shown_table(table) for table in tables],
        topics=[
            (plain.visible(each.id, 100), plain.prose(each.statement), plain.prose(each.source))
            for each in suite.topics
        ],
        audits=audits,
        limits=limits,
        scope=_scope(suite),
        has_canaries=any(isinstance(entry.result, CanaryResult) for entry in suite.entries),
        has_others=not suite.entries or any(not isinstance(entry.result, CanaryResult) for entry in suite.entries),
        alphas=" or ".join(plain.number(alpha) for alpha in alphas),
        confidences=" or ".join(percent(1 - alpha) for alpha in alphas),
        false_alarms=plain.number(plain.false_alarms(suite)),
        held_together=plain.held_together(suite) if suite.entries else "",
        versions=[f"{plain.visible(name)} {plain.visible(version)}" for name, version in sorted(versions)],
        environment=in_words(suite.environment),
        styles=Markup(rules(sheet)),
    )


_MOST_OPEN = 20  # sections: the most severe refutations; more would take long to lay out and to read
_MOST_DRAWN = 100  # audits, the most severe first: their figures take ten times as long as all else of an entry
_MOST_NAMED = 5  # links to audits of one kind on the first screen


def _groups(suite: Suite, audits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each verdict in reading order: count, first audits, number of further audits, and what to do."""
    counts, advice = plain.verdict_counts(suite), what_to_do(suite)
    found = []
    for verdict in plain.READING_ORDER:
        own = [audit for audit in audits if audit["verdict"] == verdict.value]
        named = [] if verdict is Verdict.NOT_REFUTED else own[:_MOST_NAMED]
        found.append(
            {
                "style": _style(verdict),
                "mark": plain.MARKS[verdict],
                "verdict": verdict.value,
                "count": counts[verdict],
                "audits": named,
                "more": len(own) - len(named) if named else 0,
                "advice": advice[verdict] if own else "",
            }
        )
    return found


@functools.cache
def _script() -> str:
    return files(__package__ or "dpaudit.reports.pages").joinpath("templates", "page.js").read_text(encoding="utf-8")


def _style(verdict: Verdict) -> str:
    """CSS class of the verdict."""
    return verdict.name.lower().replace("_", "-")


def _scope(suite: Suite) -> list[str]:
    """Sentences of the methods section about this suite: relations, runs and low bits."""
    audits = [entry.result for entry in suite.entries if isinstance(entry.result, AuditResult)]
    trainings = [entry.result for entry in suite.entries if isinstance(entry.result, CanaryResult)]
    canaries = sorted(result.canaries for result in trainings)
    many = [
        f"{plain.counted(len(trainings), 'claim')} on "
        f"{'a training run' if len(trainings) == 1 else 'training runs'} with "
        f"{f'{canaries[0]:,} to ' * (canaries[0] < most)}{plain.counted(most, 'canary')}."
        for most in canaries[-1:]
    ]
    if not audits:
        return many
    relations = Counter(plain.visible(result.pair.adjacency, 80) for result in audits)
    n_sequential = sum(result.stopped is not None for result in audits)
    n_bits = sum(result.bits is True for result in audits)
    told = ", ".join(f"{relation} ({count:,})" for relation, count in relations.most_common())
    runs = sorted(result.runs for result in audits)
    few_to_many = f"{runs[0]:,}" if runs[0] == runs[-1] else f"{runs[0]:,} to {runs[-1]:,}"
    sequential = f"; {plain.counted(n_sequential, 'sequential audit')}, which may stop early" if n_sequential else ""
    return [
        f"{plain.counted(len(audits), 'claim')} on one pair of datasets each, by adjacency: {told}.",
        f"{few_to_many} runs on each dataset{sequential}.",
        *many,
        *([f"{plain.counted(n_bits, 'verdict')} on low bits of floating-point outputs and values."] if n_bits else []),
    ]


def _comparison(one: Comparison) -> dict[str, Any]:
    """A row of the comparison with an earlier record."""
    return {
        "name": plain.visible(one.name, 100),
        "sides": [side_of(entry) for entry in (one.before, one.after)],
        "pvalue": plain.p_text(one.pvalue),
        "changes": [plain.prose(change) for change in one.changes],
        "not_compared": plain.prose(one.not_compared or ""),
        "notes": [plain.prose(note) for note in one.notes],
    }


def _audit(entry: Entry, index: int, today: datetime.date) -> dict[str, Any]:
    """The values of one audit or statement for the template, as safe text."""
    result = entry.result
    sentence, remarks = plain.sentences(result)
    read_with = cautions(result)
    remarks += [f"WARNING: {plain.prose(one.text)}" for one in read_with if one.kind in APART]
    shown: dict[str, Any] = {
        "points": [],
        "sides": [],
        "tests": [],
        "contents": [],
    }
    if isinstance(result, AuditResult):
        counts = result.counts
        shown["sides"] = [
            (side, f"{seen:,}", f"{runs:,}", plain.number(seen / runs))
            for side, seen, runs in (("x", counts.count_x, counts.runs_x), ("y", counts.count_y, counts.runs_y))
        ]
        shown["contents"] = [plain.visible(text, 2_000) for text in result.pair.contents or ()]
    elif isinstance(result, CanaryResult):
        shown["tests"] = [
            (test.kind, plain.number(test.alpha), *(f"{n:,}" for n in best_guesses(result.guesses, test)))
            for test in result.tests
        ]
    else:
        shown["points"] = [
            (plain.visible(point.at or result.quantity), plain.number(point.estimate), point.interval, point.allowed)
            for point in result.points
        ]
    return {
        **shown,
        "is_open": result.is_refuted and index <= _MOST_OPEN,
        "severity": plain.severity_note(result),
        "id": f"audit-{index}",
        "name": plain.visible(entry.name, 100),
        "style": _style(result.verdict),
        "mark": plain.MARKS[result.verdict],
        "verdict": result.verdict.value,
        "sentence": sentence,
        "remarks": remarks,
        "cautions": [one.kind for one in read_with],
        "claim": plain.visible(plain.stated(result), 100),
        "short_bound": plain.visible(plain.found(result)),
        "exact": plain.exact_text(entry),
        "excess": plain.detectable_text(result),
        "runs": plain.size(result),
        "seconds": plain.number(seconds(result)),
        "sort": _sort_keys(entry),
        "expectation": plain.expectation(entry),
        "expected": entry.expected and entry.expected.value,
        "is_met": entry.is_met,
        "acceptance": plain.acceptance(entry, today),
        "status": plain.acceptance_note(entry, today),
        "note": plain.prose(entry.note),
        "facts": facts(entry),
        "replay": None if entry.replay is None else _replay(entry.replay),
    }


def _replay(table: ReplayTable) -> dict[str, Any]:
    """The values of a replay for the template, as safe text."""
    names = ("place", "source", "primitive", "distribution", "moved", "allowed", "loss", "finding")
    left = table.n_calls - len(table.rows)
    more = [f"{left:,} more call{'s' * (left != 1)} without a finding"] if left else []
    return {
        "sentence": plain.visible(table.sentence, 1_000),
        "seed": table.seed,
        "rows": [{name: plain.visible(getattr(row, name), 300) for name in names} for row in table.rows],
        "remarks": [*(plain.visible(remark, 1_000) for remark in table.remarks), *more],
    }


def _sort_keys(entry: Entry) -> dict[str, str]:
    """The numbers by which the script sorts cells whose text sorts differently; empty if unknown."""
    result = entry.result
    numbers = {
        "verdict": plain.READING_ORDER.index(result.verdict),
        "bound": result.worst.estimate if isinstance(result, StatementResult) else result.bound,
        "exact": plain.exact(entry),
        "excess": plain.detectable(result),
        "runs": result.canaries if isinstance(result, CanaryResult) else result.runs,
        "seconds": seconds(result),
    }
    return {
        name: "" if value is None or value != value else repr(value).replace("inf", "Infinity")
        for name, value in numbers.items()
    }
