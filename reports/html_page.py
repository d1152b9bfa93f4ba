"""A suite as one HTML file that needs nothing else: no script, no font, no image from anywhere."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..audit.records import Entry, Suite
from ..audit.statements import StatementResult
from ..audit.verdicts import AuditResult, Verdict
from .figures import forest, outputs_figure, svg
from .terminal import (
    MARKS,
    exact,
    expectation,
    expectations,
    false_alarms,
    findable,
    found,
    number,
    percent,
    prose,
    seconds,
    stated,
    verdict_counts,
    visible,
)

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure


def html(suite: Suite, drawings: Sequence[tuple[str, str, Figure]] = ()) -> str:
    """The suite as a self-contained page: summary, table, a section for each audit, methods, environment.

    `drawings` are figures over several audits, each with a title and a caption.
    """
    from markupsafe import Markup

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
    versions = {part for entry in suite.entries for part in entry.result.versions}
    alphas = sorted({entry.result.alpha for entry in suite.entries})
    return _template().render(
        title=visible(suite.title, 150),
        n_audits=len(suite.entries),
        tiles=[(_style(verdict), MARKS[verdict], verdict.value, count) for verdict, count in counts.items()],
        expectations=expectations(suite),
        is_met=suite.is_met,
        forest=Markup(svg(forest(suite), label=label, prefix="all-")),
        forest_narrow=Markup(svg(forest(suite, narrow=True), label=label, prefix="all-narrow-")),
        has_forest=any(isinstance(entry.result, AuditResult) for entry in suite.entries),
        drawings=drawn,
        topics=[(visible(each.id, 100), prose(each.statement), prose(each.source)) for each in suite.topics],
        audits=[_audit(entry, index) for index, entry in enumerate(suite.entries, 1)],
        alphas=" or ".join(number(alpha) for alpha in alphas),
        confidences=" or ".join(percent(1 - alpha) for alpha in alphas),
        false_alarms=number(false_alarms(suite)),
        versions=[f"{visible(name)} {visible(version)}" for name, version in sorted(versions)],
        environment=_facts(suite.environment),
    )


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__ or "dpaudit.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")


def _style(verdict: Verdict) -> str:
    """The verdict's class in the style sheet."""
    return verdict.name.lower().replace("_", "-")


def _audit(entry: Entry, index: int) -> dict[str, Any]:
    """What the template prints of one audit or statement, all of it text that is safe to look at."""
    result = entry.result
    name = visible(entry.name, 100)
    shown: dict[str, Any] = {
        "id": f"audit-{index}",
        "name": name,
        "style": _style(result.verdict),
        "mark": MARKS[result.verdict],
        "verdict": result.verdict.value,
        "sentence": prose(str(result)),
        "claim": visible(stated(result), 100),
        "short_bound": visible(found(result)),
        "exact": number(exact(entry)),
        "resolution": number(findable(result)),
        "runs": f"{result.runs:,}",
        "seconds": number(seconds(result)),
        "expectation": expectation(entry),
        "expected": entry.expected.value if entry.expected else "",
        "is_met": entry.is_met,
        "note": prose(entry.note),
        "sides": [],
        "points": [],
        "findings": [],
        "contents": [],
        "figure": None,
    }
    if isinstance(result, StatementResult):
        return {**shown, "facts": _statement_facts(entry, result), "points": _points(result)}
    from markupsafe import Markup

    figure = outputs_figure(result)
    label = f"Pilot outputs of {name} on x and y, with the event tested."
    return {
        **shown,
        "facts": _result_facts(entry, result),
        "sides": _sides(result),
        "findings": [prose(str(finding)) for finding in result.findings],
        "contents": [visible(text, 2_000) for text in result.pair.contents or ()],
        "figure": figure and Markup(svg(figure, label=label, prefix=f"a{index}-")),
    }


def _points(result: StatementResult) -> list[tuple[str, str, str, str]]:
    """Which number, its estimate, its interval, what is stated."""
    return [
        (visible(point.at or result.quantity), number(point.estimate), point.interval, point.allowed)
        for point in result.points
    ]


def _statement_facts(entry: Entry, result: StatementResult) -> list[tuple[str, str]]:
    """Names and values of the list that a statement's section has."""
    facts = [
        ("Statement", visible(result.statement)),
        ("Intervals", f"{visible(result.method)}; all hold together at {percent(1 - result.alpha)} confidence"),
        ("Exact value", "not known" if exact(entry) is None else number(exact(entry))),
        ("Runs", f"{result.runs:,} on each dataset"),
        ("Seed", str(result.seed)),
        ("As expected", expectation(entry)),
    ]
    if result.environment:
        facts.append(("Environment", "; ".join(f"{name} {value}" for name, value in _facts(result.environment))))
    return facts


def _sides(result: AuditResult) -> list[tuple[str, str, str, str]]:
    """Dataset, hits, runs and frequency, for x and y."""
    counts = result.counts
    return [
        (side, f"{hits:,}", f"{runs:,}", number(hits / runs))
        for side, hits, runs in (("x", counts.hits_x, counts.runs_x), ("y", counts.hits_y, counts.runs_y))
    ]


def _result_facts(entry: Entry, result: AuditResult) -> list[tuple[str, str]]:
    """Names and values of the list that an audit's section has."""
    pair, claim = result.pair, result.claim
    asked = "" if result.requested_resolution is None else f"; {number(result.requested_resolution)} was asked for"
    if math.isinf(result.resolution):
        reached = f"no excess, however large, would have been found with probability {result.power:g}{asked}"
    else:
        reached = (
            f"an excess of {number(result.resolution)} over the claim would have been found with probability "
            f"{result.power:g}{asked}"
        )
    seed = "none: the outputs were made elsewhere" if result.seed is None else str(result.seed)
    replay = "" if result.is_replayable else "; not replayable, as the mechanism has randomness of its own"
    facts = [
        ("Mechanism", visible(result.mechanism, 300)),
        ("Claim", visible(f"{claim} ({claim.strength_name} {number(claim.strength)})")),
        ("Dataset x", visible(pair.x)),
        ("Dataset y", visible(pair.y)),
        ("Difference", visible(pair.difference)),
        ("Adjacency", f"{visible(pair.adjacency)}; distance {number(pair.distance)}"),
        ("Event", visible(str(result.event))),
        ("In the counts", visible(result.event_in_words)),
        ("Lower bound", visible(f"{claim.describe_strength(result.bound)} at {percent(1 - result.alpha)} confidence")),
        ("Estimate", f"{number(result.estimate)} (from the same counts, without a guarantee)"),
        ("Exact value", "not known" if entry.exact is None else f"{number(entry.exact)} on this pair"),
        ("p-value of the claim", f"{number(result.p_value)} (the test states none below 1e-10)"),
        ("Resolution and power", reached),
        ("Runs", f"{result.runs:,} on each dataset, {result.pilot_runs:,} of them to choose the event"),
        ("Seed", seed + replay),
        ("As expected", expectation(entry)),
    ]
    if result.environment:
        facts.append(("Environment", "; ".join(f"{name} {value}" for name, value in _facts(result.environment))))
    return facts


def _facts(environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and values of an environment, in words."""
    return [(visible(str(name), 60).replace("_", " "), _value(value)) for name, value in environment.items()]


def _value(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, (list, tuple)):
        return visible(" ".join(map(str, value)), 2_000)
    return visible(str(value), 2_000)
