"""A suite as one HTML file that needs nothing else: no font, image or style from anywhere, and no script to read it."""

from __future__ import annotations

import base64
import datetime
import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ...audit.options import check_jobs
from ...audit.printing import percent
from ...audit.records.baseline_comparison import Comparison
from ...audit.records.suite import Entry, Suite, seconds
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.statement_result import StatementResult
from ..figures.figures import distance_figures
from ..figures.forest_figure import forest
from ..figures.svg_batches import drawings_of
from ..figures.svg_figure import svg
from ..plain_text import (
    MARKS,
    acceptance,
    exact,
    expectation,
    expectations,
    false_alarms,
    findable,
    found,
    held_together,
    number,
    p_text,
    prose,
    sentences,
    stated,
    verdict_counts,
    visible,
)
from .audit_facts import facts, in_words
from .comparison_table import numbers_of
from .glossary import GLOSSARY

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure


def html(
    suite: Suite,
    drawings: Sequence[tuple[str, str, Figure]] = (),
    *,
    comparisons: Sequence[Comparison] = (),
    today: datetime.date | None = None,
    jobs: int | None = None,
) -> str:
    """The suite as a self-contained page: summary, table, a section for each audit, methods, glossary, environment.

    Nothing in it is markup from the data, and its content policy allows no request and no script but its own, which
    sorts and filters the table.

    Parameters
    ----------
    suite : Suite
    drawings : sequence of (title, caption, Figure)
        Figures over several audits.
    comparisons : sequence of Comparison
        With an earlier record, as `dpaudit.audit.records.baseline_comparison.compare` gives them: a section of its own.
    today : date, optional
        The day on which accepted findings have to hold; by default this day.
    jobs : int, optional
        Processes that draw the figures of many audits; by default what `joblib.parallel_config` says, or every core.
    """
    from markupsafe import Markup

    today = today or datetime.date.today()
    counts = verdict_counts(suite)
    n_audits = sum(isinstance(entry.result, AuditResult) for entry in suite.entries)
    tally = ", ".join(f"{count:,} {verdict.value}" for verdict, count in counts.items())
    label = (
        f"Bound, estimate and exact value of each of {n_audits:,} audits as fractions of its claim. The table has the "
        f"numbers, and those of all {len(suite.entries):,} checks: {tally}."
    )
    drawn = [
        (visible(title, 100), prose(caption), Markup(svg(figure, label=f"{title}: {caption}", prefix=f"d{index}-")))
        for index, (title, caption, figure) in enumerate(drawings)
    ]
    drawn += [
        ("", one.caption, Markup(svg(one.figure, label=one.label, prefix=f"k{index}-")))
        for index, one in enumerate(distance_figures(suite))
    ]
    figures_of_all = drawings_of([entry.result for entry in suite.entries], jobs=check_jobs(jobs))
    versions = {part for entry in suite.entries for part in entry.result.versions}
    alphas = sorted({entry.result.alpha for entry in suite.entries})
    return _template().render(
        title=visible(suite.title, 150),
        glossary=GLOSSARY,
        policy=_policy(),
        script=Markup(_script()),
        n_audits=len(suite.entries),
        tiles=[(_style(verdict), MARKS[verdict], verdict.value, count) for verdict, count in counts.items()],
        refuted=_anchors(suite, _is_news),
        warnings=_anchors(suite, _has_telling_bits),
        has_expectations=any(entry.expected is not None for entry in suite.entries),
        has_exact=any(entry.exact is not None for entry in suite.entries),
        expectations=expectations(suite),
        is_met=suite.is_met,
        forest=Markup(svg(forest(suite), label=label, prefix="all-")),
        forest_narrow=Markup(svg(forest(suite, narrow=True), label=label, prefix="all-narrow-")),
        has_forest=n_audits > 0,
        comparisons=[_comparison(one) for one in comparisons],
        compared=numbers_of(comparisons),
        accepted=[_accepted(entry, today) for entry in suite.entries if entry.accepted is not None],
        drawings=drawn,
        topics=[(visible(each.id, 100), prose(each.statement), prose(each.source)) for each in suite.topics],
        audits=[
            {**_audit(entry, index, today), "figures": [(caption, Markup(drawing)) for caption, drawing in figures]}
            for index, (entry, figures) in enumerate(zip(suite.entries, figures_of_all, strict=True), 1)
        ],
        scope=_scope(suite),
        alphas=" or ".join(number(alpha) for alpha in alphas),
        confidences=" or ".join(percent(1 - alpha) for alpha in alphas),
        false_alarms=number(false_alarms(suite)),
        held_together=held_together(suite) if suite.entries else "",
        versions=[f"{visible(name)} {visible(version)}" for name, version in sorted(versions)],
        environment=in_words(suite.environment),
    )


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__ or "dpaudit.reports.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")


@functools.cache
def _script() -> str:
    return files(__package__ or "dpaudit.reports.pages").joinpath("templates", "table.js").read_text(encoding="utf-8")


def _policy() -> str:
    """What the page allows itself: styles and drawings inside it, its one script, and nothing from elsewhere."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode()
    allowed = ("default-src 'none'", "style-src 'unsafe-inline'", f"script-src 'sha256-{digest}'")
    return "; ".join([*allowed, "base-uri 'none'", "form-action 'none'"])


def _style(verdict: Verdict) -> str:
    """The verdict's class in the style sheet."""
    return verdict.name.lower().replace("_", "-")


def _anchors(suite: Suite, is_meant: Callable[[Entry], bool]) -> list[tuple[str, str]]:
    """Anchors and names of the entries that are meant."""
    numbered = enumerate(suite.entries, 1)
    return [(f"audit-{index}", visible(entry.name, 100)) for index, entry in numbered if is_meant(entry)]


def _is_news(entry: Entry) -> bool:
    """Whether it is refuted, and that was not expected of it."""
    return entry.result.is_refuted and entry.expected is not Verdict.REFUTED


def _has_telling_bits(entry: Entry) -> bool:
    """Whether low bits break the claim, although the verdict is about values."""
    return isinstance(entry.result, AuditResult) and entry.result.low_bits is not None


def _scope(suite: Suite) -> list[str]:
    """How many claims were tested under which relations, and how: what the methods say of this suite in particular."""
    audits = [entry.result for entry in suite.entries if isinstance(entry.result, AuditResult)]
    if not audits:
        return []
    relations = Counter(visible(result.pair.adjacency, 80) for result in audits)
    n_sequential = sum(result.stopped is not None for result in audits)
    n_bits = sum(result.bits is True for result in audits)
    told = ", ".join(f"{relation} ({count:,})" for relation, count in relations.most_common())
    runs = sorted(result.runs for result in audits)
    few_to_many = f"{runs[0]:,}" if runs[0] == runs[-1] else f"{runs[0]:,} to {runs[-1]:,}"
    return [
        f"{len(audits):,} claim{'s' * (len(audits) != 1)} on one pair of datasets each, by relation: {told}.",
        f"{few_to_many} runs on each dataset; {n_sequential:,} of the audits sequential, which stop at a refutation.",
        f"Low bits of floating-point outputs are part of {n_bits:,} verdict{'s' * (n_bits != 1)}.",
    ]


def _comparison(one: Comparison) -> dict[str, Any]:
    """A row of the section on what has changed."""
    sides = [
        ("–", "", "", "") if entry is None else (
            f"{MARKS[entry.result.verdict]} {entry.result.verdict.value}",
            visible(found(entry.result)),
            visible(stated(entry.result), 100),
            f"{entry.result.runs:,} runs",
        )
        for entry in (one.before, one.after)
    ]  # fmt: skip
    return {
        "name": visible(one.name, 100),
        "sides": sides,
        "p_value": p_text(one.p_value),
        "changes": [prose(change) for change in one.changes],
        "not_compared": prose(one.not_compared or ""),
        "notes": [prose(note) for note in one.notes],
    }


def _accepted(entry: Entry, today: datetime.date) -> dict[str, str]:
    """A row of the table of accepted findings."""
    accepted = entry.accepted
    assert accepted is not None  # the caller's choice
    return {
        "name": visible(entry.name, 100),
        "reason": prose(accepted.reason),
        "until": visible(accepted.until, 20),
        "up_to": number(accepted.up_to),
        "state": acceptance(entry, today),
    }


def _audit(entry: Entry, index: int, today: datetime.date) -> dict[str, Any]:
    """What the template prints of one audit or statement, all of it text that is safe to look at."""
    result = entry.result
    sentence, remarks = sentences(result)
    shown: dict[str, Any] = {
        "points": _points(result) if isinstance(result, StatementResult) else [],
        "sides": [],
        "contents": [],
    }
    if isinstance(result, AuditResult):
        shown["sides"] = _sides(result)
        shown["contents"] = [visible(text, 2_000) for text in result.pair.contents or ()]
    return {
        **shown,
        "id": f"audit-{index}",
        "name": visible(entry.name, 100),
        "style": _style(result.verdict),
        "mark": MARKS[result.verdict],
        "verdict": result.verdict.value,
        "sentence": sentence,
        "remarks": remarks,
        "claim": visible(stated(result), 100),
        "short_bound": visible(found(result)),
        "exact": number(exact(entry)),
        "resolution": number(findable(result)),
        "runs": f"{result.runs:,}",
        "seconds": number(seconds(result)),
        "sort": _sort_keys(entry),
        "expectation": expectation(entry),
        "expected": entry.expected.value if entry.expected else "",
        "is_met": entry.is_met,
        "acceptance": acceptance(entry, today),
        "note": prose(entry.note),
        "facts": facts(entry),
    }


def _sort_keys(entry: Entry) -> dict[str, str]:
    """The numbers behind cells whose text does not sort as they do, as a script reads them; empty where not known."""
    result, order = entry.result, (Verdict.REFUTED, Verdict.INCONCLUSIVE, Verdict.NOT_REFUTED)
    numbers = {
        "verdict": order.index(result.verdict),
        "bound": result.bound if isinstance(result, AuditResult) else result.worst.estimate,
        "exact": exact(entry),
        "resolution": findable(result),
        "runs": result.runs,
        "seconds": seconds(result),
    }
    return {
        name: "" if value is None or value != value else repr(value).replace("inf", "Infinity")
        for name, value in numbers.items()
    }


def _points(result: StatementResult) -> list[tuple[str, str, str, str]]:
    """Which number, its estimate, its interval, what is stated."""
    return [
        (visible(point.at or result.quantity), number(point.estimate), point.interval, point.allowed)
        for point in result.points
    ]


def _sides(result: AuditResult) -> list[tuple[str, str, str, str]]:
    """Dataset, hits, runs and frequency, for x and y."""
    counts = result.counts
    return [
        (side, f"{hits:,}", f"{runs:,}", number(hits / runs))
        for side, hits, runs in (("x", counts.hits_x, counts.runs_x), ("y", counts.hits_y, counts.runs_y))
    ]
