"""What a report says of one audit or statement beside its verdict: names and values, as text that is safe to see."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..audit.records import Entry
from ..audit.statements import StatementResult
from ..audit.verdicts import AuditResult
from .terminal import exact, expectation, number, percent, visible

Facts = list[tuple[str, str]]


def facts(entry: Entry) -> Facts:
    """Names and values of an entry, in the order in which a reader asks for them."""
    result = entry.result
    own = _of_statement(entry, result) if isinstance(result, StatementResult) else _of_audit(entry, result)
    shared = [("Repeat with", visible(repetition(entry), 2_000)), ("As expected", expectation(entry))]
    environment = {name: value for name, value in result.environment.items() if name != "repeat"}
    if environment:
        shared.append(("Environment", "; ".join(f"{name} {value}" for name, value in in_words(environment))))
    return own + shared


def _of_audit(entry: Entry, result: AuditResult) -> Facts:
    pair, claim = result.pair, result.claim
    asked = "" if result.requested_resolution is None else f"; {number(result.requested_resolution)} was asked for"
    if math.isinf(result.resolution):
        reached = f"no excess, however large, would have been found with probability {result.power:g}{asked}"
    else:
        reached = (
            f"an excess of {number(result.resolution)} over the claim would have been found with probability "
            f"{result.power:g}{asked}"
        )
    counted = f"{result.pilot_runs:,} of them to choose the event"
    if result.stopped is not None:
        why = {"refuted": "the claim was refuted", "runs": "all runs were done", "time": "the time was up"}
        counted = f"in {len(result.looks):,} batches, until {why[result.stopped]}"
    provenance = "outputs made elsewhere" if result.provenance is None else str(result.provenance)
    return [
        ("Mechanism", visible(result.mechanism, 300)),
        ("Code", visible(provenance)),
        ("Claim", visible(f"{claim} ({claim.strength_name} {number(claim.strength)})")),
        ("Claim from", visible(result.claim_source) or _claim_from(entry)),
        ("Unit of privacy", visible(pair.unit) or "not stated"),
        ("Adjacency", f"{visible(pair.adjacency)}; distance {number(pair.distance)}"),
        ("Lower bound", visible(f"{claim.describe_strength(result.bound)} at {percent(1 - result.alpha)} confidence")),
        ("Resolution and power", reached),
        ("Dataset x", visible(pair.x)),
        ("Dataset y", visible(pair.y)),
        ("Difference", visible(pair.difference)),
        ("Event", visible(str(result.event))),
        ("In the counts", visible(result.event_in_words)),
        ("Estimate", f"{number(result.estimate)} (from the same counts, without a guarantee)"),
        ("Exact value", "not known" if entry.exact is None else f"{number(entry.exact)} on this pair"),
        ("p-value of the claim", f"{number(result.p_value)} (the test states none below 1e-10)"),
        ("Error", visible(str(result.ledger))),
        ("Low bits", _bits(result)),
        ("Runs", f"{result.runs:,} on each dataset, {counted}"),
        ("Seed", _seed(result)),
    ]


def _claim_from(entry: Entry) -> str:
    return f"the statement of {visible(entry.experiment, 100)}" if entry.experiment else "whoever called the audit"


def _bits(result: AuditResult) -> str:
    if result.bits is True:
        return "events by the low bits of floating-point outputs are part of the verdict"
    if result.bits is False:
        return "not looked at: the verdict is about values"
    return "looked at in the pilot for a warning: the verdict is about values"


def _seed(result: AuditResult) -> str:
    if result.is_replayable:
        return str(result.seed)
    return f"{result.seed}; not replayable, as the mechanism has randomness of its own"


def _of_statement(entry: Entry, result: StatementResult) -> Facts:
    known = [("Code", visible(str(result.provenance)))] if result.provenance is not None else []
    return [
        ("Statement", visible(result.statement)),
        *known,
        ("Intervals", f"{visible(result.method)}; all hold together at {percent(1 - result.alpha)} confidence"),
        ("Exact value", "not known" if exact(entry) is None else number(exact(entry))),
        ("Runs", f"{result.runs:,} on each dataset"),
        ("Seed", str(result.seed)),
    ]


def repetition(entry: Entry) -> str:
    """The command or call that makes the same audit again; in a call "mechanism", x and y stand for themselves."""
    result = entry.result
    if isinstance(stated := result.environment.get("repeat"), str):
        return stated
    if entry.experiment:
        return f"dpaudit run {entry.experiment} --runs {result.runs} --alpha {result.alpha!r} --seed {result.seed}"
    if isinstance(result, StatementResult):
        return f"the same call with runs={result.runs}, alpha={result.alpha!r}, seed={result.seed}"
    options: dict[str, Any] = {"claim": result.claim, "alpha": result.alpha, "seed": result.seed}
    function, datasets = "check_outputs", "xs, ys"
    if result.provenance is not None:
        function, datasets = "check", "mechanism, x, y"
        options["runs"] = result.runs
        if result.stopped is not None:
            options["sequential"] = True
        if result.cells is not None:
            options["cells"] = result.cells.n_known
    if result.requested_resolution is not None:
        options["resolution"] = result.requested_resolution
    if result.bits != "warn":
        options["bits"] = result.bits
    return f"{function}({datasets}, {', '.join(f'{name}={value!r}' for name, value in options.items())})"


def in_words(environment: Mapping[str, Any]) -> Facts:
    """Names and values of an environment."""
    return [(visible(str(name), 60).replace("_", " "), _value(value)) for name, value in environment.items()]


def _value(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {shown}" for name, shown in in_words(value))
    if isinstance(value, (list, tuple)):
        return "; ".join(map(_value, value)) if any(isinstance(part, Mapping) for part in value) else _joined(value)
    return visible(str(value), 2_000)


def _joined(words: list[Any] | tuple[Any, ...]) -> str:
    return visible(" ".join(map(str, words)), 2_000)
