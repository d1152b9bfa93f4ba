"""A suite as one HTML file that needs nothing else: no script, no font, no image from anywhere."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..audit.records import Entry, Suite
from ..audit.verdicts import AuditResult, Verdict
from .figures import forest, outputs_figure, svg
from .terminal import (
    MARKS,
    expectation,
    expectations,
    false_alarms,
    number,
    percent,
    prose,
    seconds,
    symbol,
    verdict_counts,
    visible,
)

if TYPE_CHECKING:
    from jinja2 import Template


def html(suite: Suite) -> str:
    """The suite as a self-contained page: summary, table, a section for each audit, methods, environment."""
    from markupsafe import Markup

    counts = verdict_counts(suite)
    tally = ", ".join(f"{count:,} {verdict.value}" for verdict, count in counts.items())
    label = (
        f"Bound, estimate and exact value of each audit as fractions of its claim: {tally}. The table has the numbers."
    )
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
    """What the template prints of one audit, all of it text that is safe to look at."""
    from markupsafe import Markup

    result = entry.result
    letter = symbol(result.claim.strength_name)
    figure = outputs_figure(result)
    name = visible(entry.name, 100)
    return {
        "id": f"audit-{index}",
        "name": name,
        "style": _style(result.verdict),
        "mark": MARKS[result.verdict],
        "verdict": result.verdict.value,
        "sentence": prose(str(result)),
        "claim": visible(str(result.claim), 100),
        "short_bound": f"{letter} ≥ {number(result.bound)}",
        "exact": number(entry.exact),
        "resolution": number(result.resolution),
        "runs": f"{result.runs:,}",
        "seconds": number(seconds(result)),
        "expectation": expectation(entry),
        "expected": entry.expected.value if entry.expected else "",
        "is_met": entry.is_met,
        "note": prose(entry.note),
        "sides": _sides(result),
        "facts": _result_facts(entry),
        "findings": [prose(str(finding)) for finding in result.findings],
        "contents": [visible(text, 2_000) for text in result.pair.contents or ()],
        "figure": figure
        and Markup(
            svg(figure, label=f"Pilot outputs of {name} on x and y, with the event tested.", prefix=f"a{index}-")
        ),
    }


def _sides(result: AuditResult) -> list[tuple[str, str, str, str]]:
    """Dataset, hits, runs and frequency, for x and y."""
    counts = result.counts
    return [
        (side, f"{hits:,}", f"{runs:,}", number(hits / runs))
        for side, hits, runs in (("x", counts.hits_x, counts.runs_x), ("y", counts.hits_y, counts.runs_y))
    ]


def _result_facts(entry: Entry) -> list[tuple[str, str]]:
    """Names and values of the list that every section has."""
    result, pair, claim = entry.result, entry.result.pair, entry.result.claim
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
