"""Checks of what was counted: that outputs vary, that the event came and failed, and as often as in the pilot."""

from __future__ import annotations

import math
from dataclasses import replace

from ..distinguishers.event_choice import Choice
from ..events.events import Event, Intervals, Outcomes, Scored
from ..events.outputs import Outputs, are_equal, outcome_key, outcome_list, outcome_words, tally
from ..health.findings import FALSE_ALARM, Finding, HealthCheck
from ..inference.counts import Counts
from ..results.audit_result import AuditResult, Verdict

_COARSEST = (
    10.0  # excess, beside one as large as the claim, that has to be found: in epsilon a factor of twenty thousand
)
_SAME = 100  # outputs looked at first for one that differs
_NEARLY_ALL = 0.5  # of the outputs, if they are different, leave nothing to learn from their values
_SCORES = 1_000  # that a pilot chooses from at most, each with a chain of events, or with intervals


def with_event_findings(
    result: AuditResult, x: Outputs, y: Outputs, ignore: frozenset[HealthCheck], *, choice: Choice | None = None
) -> AuditResult:
    """The result with the checks of outputs and event that fail.

    Parameters
    ----------
    x, y : ndarray
        The outputs that were kept.
    choice : Choice, optional
        How often the event came in runs that it was chosen on: of a fixed audit in its pilot.
    """
    changed = [] if choice is None or result.stopped is not None else _changed_since(result, choice)
    counted = result.counts if choice is None or result.stopped is None else choice.pilot_counts
    found = (
        changed
        or _constant_output(result, x, y)
        or _idle_event(result, counted, x, y)
        or _coarse_event(result, counted)
    )
    kept = tuple(finding for finding in found if finding.check not in ignore)
    return replace(result, findings=(*result.findings, *kept)) if kept else result


def _changed_since(result: AuditResult, choice: Choice) -> list[Finding]:
    """Hits of the main phase whose frequency no event can have that the pilot might have chosen with these.

    The frequencies of all half-lines of a score are together within √(ln(2/a)/2n) of their probabilities, but for a
    chance of a; an interval is the difference of two.

    An event that the learning half settled, as where hardly any output comes twice, is one half-line of one score.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Corollary 1. For the main phase,
    whose event is given: Hoeffding (1963), Probability inequalities for sums of bounded random variables, Theorem 1.
    """
    ends, counts = _ends(choice.event), result.counts
    if ends is None or choice.pilot_runs == 0 or any(_explains(finding) for finding in result.findings):
        return []
    log_share = math.log(2.0 * 4.0 / FALSE_ALARM)  # of either side and phase
    # A pilot chooses twice where the first choice made it longer.
    reach = ends * math.sqrt((log_share + math.log(2.0 * _SCORES)) / (2.0 * choice.pilot_runs))
    found = []
    for side, pilot_hits, hits, runs in (
        ("x", choice.pilot_hits_x, counts.hits_x, counts.runs_x),
        ("y", choice.pilot_hits_y, counts.hits_y, counts.runs_y),
    ):
        if abs(pilot_hits / choice.pilot_runs - hits / runs) > reach + math.sqrt(log_share / (2.0 * runs)):
            found.append(
                Finding(
                    HealthCheck.UNSTEADY_HITS,
                    f"the event ({choice.event}) came in {pilot_hits:,} of {choice.pilot_runs:,} pilot runs on {side}, "
                    f"but in {hits:,} of the {runs:,} that followed: the mechanism keeps state, such as a budget or a "
                    "counter, so the runs are not independent.",
                )
            )
    return found


def _ends(event: Event) -> int | None:
    """How many half-lines an event is made of, by adding and taking away."""
    match event:
        case Scored():
            return _ends(event.event)
        case Intervals():
            return max(1, sum(math.isfinite(end) for pair in event.intervals for end in pair) + event.others)
        case Outcomes():  # one of a chain of sets, whose order the pilot's other half gave
            return 1
    return None


def _explains(finding: Finding) -> bool:
    return finding.check in (HealthCheck.REPEATED_BLOCKS, HealthCheck.UNSTEADY_HITS)


def _constant_output(result: AuditResult, x: Outputs, y: Outputs) -> list[Finding]:
    """One and the same output in every run that was kept, and in all others as far as the event tells."""
    first = x[:1]
    if not (are_equal(first, y[:1]) and _is_decided(result.counts)):
        return []
    if not all(_hold_only(first, part) for part in (x[:_SAME], y[:_SAME], x, y)):
        return []
    if bool(result.event.contains(first)[0]) != bool(result.counts.hits_x):
        return []
    uncounted = result.pilot_runs if result.stopped is None else 0
    runs_x, runs_y = result.counts.runs_x + uncounted, result.counts.runs_y + uncounted
    return [
        Finding(
            HealthCheck.CONSTANT_OUTPUT,
            f"all of {runs_x:,} runs on x and {runs_y:,} on y gave one and the same output, "
            f"{outcome_words(outcome_list(first)[0])}: nothing was seen of what the mechanism does with its data. A "
            "stub does that, or a function that returns early.",
        )
    ]


def _hold_only(first: Outputs, outputs: Outputs) -> bool:
    """Whether every output equals the first, NaN equal to NaN."""
    if outputs.dtype == object:
        return {outcome_key(value) for value in outputs.tolist()} == {outcome_key(value) for value in first.tolist()}
    equal = (outputs == first) | ((outputs != outputs) & (first != first))
    return bool(equal.all())


def _idle_event(result: AuditResult, counts: Counts, x: Outputs, y: Outputs) -> list[Finding]:
    """An event in which all of these runs lie, or none: runs that it was not learned from."""
    if not _is_decided(counts) or result.verdict is not Verdict.NOT_REFUTED:
        return []
    often = "every one" if counts.hits_x else "none"
    came = f"came in {often} of {counts.runs_x:,} runs on x and of {counts.runs_y:,} on y"
    different, kept = sum(len(tally(side)[0]) for side in (x, y)), len(x) + len(y)
    if different > _NEARLY_ALL * kept:
        message = (
            f"no event could be learned, as {different:,} of the {kept:,} first outputs are different: the event that "
            f"was tried ({result.event}) {came}, so nothing was tested. Audit a part or a summary of the output that "
            "comes again, such as a number in it."
        )
    else:
        message = (
            f"the event that the first runs chose ({result.event}) {came}: it cannot tell them apart, so nothing was "
            "tested. It may be too rare for an audit of this length (use more runs), or the mechanism has changed "
            "(look for state that it keeps)."
        )
    return [Finding(HealthCheck.IDLE_EVENT, message)]


def _coarse_event(result: AuditResult, counts: Counts) -> list[Finding]:
    """An event on which only a huge excess could be seen, where nobody said which excess has to be."""
    claim = result.directed_claim
    if result.verdict is not Verdict.NOT_REFUTED or result.requested_resolution is not None:
        return []
    if result.resolution <= claim.strength + _COARSEST:
        return []
    return [
        Finding(
            HealthCheck.IDLE_EVENT,
            f"the event that was tested ({result.event}) came in {counts.hits_x:,} of {counts.runs_x:,} runs on x and "
            f"in {counts.hits_y:,} of {counts.runs_y:,} on y: no excess below {result.resolution:.2g} would have been "
            "found, so next to nothing was tested. Use more runs, or audit a part or a summary of the output that "
            "comes again.",
        )
    ]


def _is_decided(counts: Counts) -> bool:
    """Whether the event came in all runs on both sides, or in none."""
    return counts.hits_x + counts.hits_y in (0, counts.runs_x + counts.runs_y)
