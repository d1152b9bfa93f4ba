"""What a report says of one audit or statement beside its verdict: names and values, as text that is safe to see."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from ...audit.claims.claim import GroupClaim
from ...audit.printing import percent
from ...audit.records.suite import Entry
from ...audit.results.audit_result import AuditResult
from ...audit.results.statement_result import StatementResult
from ...audit.sampling.batches import are_of_one_session
from ...audit.sampling.provenance import ELSEWHERE
from ..plain_text import exact, expectation, number, other_way, p_text, visible

Facts = list[tuple[str, str]]
_POWER = 0.95  # of an audit that was given none


def facts(entry: Entry) -> Facts:
    """Names and values of an entry, in the order in which a reader asks for them."""
    result = entry.result
    own = _of_statement(entry, result) if isinstance(result, StatementResult) else _of_audit(entry, result)
    shared = [("Repeat with", visible(repetition(entry), 2_000))]
    if entry.expected is not None:
        shared.append(("As expected", expectation(entry)))
    environment = {name: value for name, value in result.environment.items() if name != "repeat"}
    if environment:
        shared.append(("Times and machine", "; ".join(f"{name} {value}" for name, value in in_words(environment))))
    return own + shared


def _of_audit(entry: Entry, result: AuditResult) -> Facts:
    pair, claim = result.pair, result.claim
    asked = "" if result.requested_resolution is None else f"; {number(result.requested_resolution)} was asked for"
    if result.findings:
        reached = f"not stated, as a health check failed{asked}"
    elif result.stopped == "refuted":
        reached = f"not stated, as the audit stopped when the claim was refuted{asked}"
    elif math.isinf(result.resolution):
        reached = f"{result.detectable_in_words}{asked}"
    else:
        reached = f"{result.detectable_in_words}{asked}{'; ' * bool(claim.caveat)}{claim.caveat}"
    counted = f"{result.pilot_runs:,} of them to choose the event"
    if result.stopped is not None:
        why = {
            "refuted": "the claim was refuted",
            "runs": "all runs were done",
            "time": "the time was up",
            "request": "it was asked to stop",
        }
        batches = f"in {len(result.looks):,} batches, " if result.looks else ""
        counted = (
            f"{batches}until {why[result.stopped]}{'; the last quarter of the runs was one batch' * result.is_closed}"
        )
    provenance = "not recorded" if result.provenance is None else str(result.provenance)
    lower = visible(f"{claim.describe_strength(result.bound)} at {percent(1 - result.alpha)} confidence")
    if result.findings:
        lower = "none, as a health check failed: nothing is known of how far chance goes"
    source = "from the same counts, without a guarantee"
    if result.stopped is not None:
        source = "from counts that include runs on which the event was learned, so that it is on the large side"
    return [
        ("Mechanism", visible(result.mechanism, 300)),
        ("Code", visible(provenance)),
        ("Claim", visible(f"{claim} ({claim.strength_name} {number(claim.strength)})")),
        ("Claim from", visible(result.claim_source) or _claim_from(entry)),
        ("Unit of privacy", visible(pair.unit) or "not stated"),
        ("Adjacency", f"{visible(pair.adjacency)}; distance {number(pair.distance)}"),
        ("Lower bound", lower),
        ("Resolution and power", reached),
        ("Dataset x", visible(pair.x)),
        ("Dataset y", visible(pair.y)),
        ("Difference", visible(pair.difference)),
        ("Event", visible(str(result.event))),
        ("In the counts", visible("; ".join(filter(None, (result.event_in_words, other_way(result)))))),
        ("Estimate", f"{number(result.estimate)} ({source})"),
        *([] if entry.exact is None else [("Exact value", f"{number(entry.exact)} on this pair")]),
        ("p-value of the claim", p_text(result.p_value)),
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
        *([] if exact(entry) is None else [("Exact value", number(exact(entry)))]),
        ("Runs", f"{result.runs:,} on each dataset"),
        ("Seed", str(result.seed)),
    ]


def repetition(entry: Entry) -> str:
    """The command or call that makes the same audit again.

    In a call the mechanism and the pair stand for themselves, without the neighbour relation, which changes nothing.
    """
    result = entry.result
    stated = result.environment.get("repeat")
    if isinstance(stated, str) and _is_one_command(stated):
        return stated
    if entry.experiment:
        experiment = shlex.quote(entry.experiment)
        return f"dpaudit run {experiment} --runs {result.runs} --alpha {result.alpha!r} --seed {result.seed}"
    if isinstance(result, StatementResult):
        return f"the same call with runs={result.runs}, alpha={result.alpha!r}, seed={result.seed}"
    claim = result.claim
    options: dict[str, Any] = {"claim": claim}
    if isinstance(claim, GroupClaim):
        options = {"claim": claim.base, "distance": claim.distance}
    options |= {"alpha": result.alpha, "seed": result.seed}
    function, datasets = "check_outputs", "xs, ys"
    if result.provenance != ELSEWHERE and result.pair.difference != "not seen":
        function, datasets = "check", "mechanism, x, y"
        options["runs"] = result.runs
        if result.stopped is not None:
            options["sequential"] = True
            if not result.is_closed:
                options["seconds"] = math.inf
        if result.cells is not None:
            options["cells"] = result.cells.asked or len(result.cells.names)
    if result.requested_resolution is not None:
        options["resolution"] = result.requested_resolution
    if result.power != _POWER:
        options["power"] = result.power
    if result.ignored:
        options["ignore"] = result.ignored
    if result.bits != "warn":
        options["bits"] = result.bits
    call = f"{function}({datasets}, {', '.join(f'{name}={_in_python(value)}' for name, value in options.items())})"
    if result.looks and not are_of_one_session([look.runs for look in result.looks], is_closed=result.is_closed):
        call += "  # in one session; this audit had several, and batches of its own"
    return call


def _in_python(value: Any) -> str:
    return "float('inf')" if value == math.inf else repr(value)


def _is_one_command(text: str) -> bool:
    """Whether a shell would take the text of a file as one command of ours, and do nothing else with it."""
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    return words[:1] in (["pytest"], ["dpaudit"]) and shlex.join(words) == text


def in_words(environment: Mapping[str, Any]) -> Facts:
    """Names and values of an environment, one after the other where a name has several."""
    named = ((visible(str(name), 60).replace("_", " "), value) for name, value in environment.items())
    return [(name, _value(each)) for name, value in named for each in (value if _is_several(value) else [value])]


def _is_several(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(part, Mapping) for part in value)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {shown}".strip() for name, shown in in_words(value) if shown)
    if isinstance(value, (list, tuple)):
        return visible(" ".join(map(str, value)), 2_000)
    return visible(str(value), 2_000)
