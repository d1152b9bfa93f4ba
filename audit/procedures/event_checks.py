"""Health checks of the counts: outputs vary, the event occurs in some runs only, and as often as in the pilot."""

from __future__ import annotations

import math

from ..distinguishers.choice import Choice
from ..events.events import Event, ExceptFor, Intervals, Outcomes, Scored
from ..events.outputs import Outputs, are_equal, outcome_key, outcome_list, outcome_words, tally
from ..health.findings import FALSE_ALARM, Finding, HealthCheck
from ..inference.counts import Counts
from ..results.verdict import Verdict
from .evidence import Evidence

_SAME = 100  # outputs compared first, because most outputs vary
_NEARLY_ALL = 0.5  # share of different outputs above which their values teach nothing
_SCORES = 1_000  # largest number of scores that a pilot chooses from, each with nested events or with intervals


def event_findings(evidence: Evidence, verdict: Verdict, of_runs: tuple[Finding, ...] = ()) -> list[Finding]:
    """The first check of outputs and event that fails.

    Parameters
    ----------
    evidence : Evidence
    verdict : Verdict
        Before the checks of the event.
    of_runs : tuple of Finding
        Those of the runs' independence, which explain what the event shows.
    """
    constant = _constant_output(evidence)
    if constant or verdict is Verdict.REFUTED or of_runs:
        return constant
    if verdict is Verdict.INCONCLUSIVE:  # for too few runs, as is said already
        return _idle_event(evidence, says_too_few=True)
    return _idle_event(evidence)


def pilot_findings(
    choice: Choice, counts: Counts, findings: tuple[Finding, ...], alpha: float = FALSE_ALARM
) -> list[Finding]:
    """Sides on which the event's frequency in the main runs cannot be reconciled with its frequency in the pilot.

    With probability at least 1 − a the frequencies of all half-lines of a score lie within √(ln(2/a)/2n) of their
    probabilities; an interval is the difference of two half-lines. An event settled by the learning half alone, as
    happens if hardly any output occurs twice, counts as one half-line of one score.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Corollary 1. For the main runs,
    whose event is given: Hoeffding (1963), Probability inequalities for sums of bounded random variables, Theorem 1.
    """
    ends = ends_of(choice.event)
    if ends is None or choice.pilot_runs == 0 or any(_explains(finding) for finding in findings):
        return []
    log_share = math.log(2.0 * 4.0 / alpha)  # two sides and two phases
    # The pilot chooses up to three times, as it is made longer once or twice.
    reach = ends * math.sqrt((log_share + math.log(3.0 * _SCORES)) / (2.0 * choice.pilot_runs))
    found = []
    for side, pilot_hits, hits, runs in (
        ("x", choice.pilot_hits_x, counts.hits_x, counts.runs_x),
        ("y", choice.pilot_hits_y, counts.hits_y, counts.runs_y),
    ):
        if abs(pilot_hits / choice.pilot_runs - hits / runs) > reach + math.sqrt(log_share / (2.0 * runs)):
            found.append(
                Finding(
                    HealthCheck.UNSTEADY_HITS,
                    f"the event ({choice.event}) occurred in {pilot_hits:,} of {choice.pilot_runs:,} pilot runs on "
                    f"{side}, but in {hits:,} of the next {runs:,} runs, so the runs are not independent. Look for "
                    "state that the mechanism keeps, such as a budget or a counter.",
                )
            )
    return found


def ends_of(event: Event) -> int | None:
    """Number of half-lines whose indicators add up to that of the event, with signs."""
    match event:
        case Scored() | ExceptFor():
            return ends_of(event.event)
        case Intervals():
            return max(1, sum(math.isfinite(end) for pair in event.intervals for end in pair) + event.others)
        case Outcomes():  # one of a chain of nested sets, ordered by the pilot's other half
            return 1
    return None


def _explains(finding: Finding) -> bool:
    return finding.check in (HealthCheck.REPEATED_BLOCKS, HealthCheck.UNSTEADY_HITS)


def _constant_output(evidence: Evidence) -> list[Finding]:
    """The same output in every kept run, and in all other runs as far as the event can tell."""
    x, y, counts = evidence.kept.x, evidence.kept.y, evidence.counts
    first = x[:1]
    if not (are_equal(first, y[:1]) and _is_decided(counts)):
        return []
    if not all(_hold_only(first, part) for part in (x[:_SAME], y[:_SAME], x, y)):
        return []
    if bool(evidence.kept.choice.event.contains(first)[0]) != bool(counts.hits_x):
        return []
    known, output = evidence.uncounted_runs - evidence.kept.counted, outcome_list(first)[0]
    runs_x, runs_y = counts.runs_x + known, counts.runs_y + known
    return [
        Finding(
            HealthCheck.CONSTANT_OUTPUT,
            f"all {runs_x:,} runs on x and {runs_y:,} on y gave the same output, "
            f"{outcome_words(output)}, so the audit saw nothing of how the mechanism uses its data. "
            + ("Is a return missing?" if output is None else "Look for a stub, or for a function that returns early."),
        )
    ]


def _hold_only(first: Outputs, outputs: Outputs) -> bool:
    """Whether every output equals the first; NaN equals NaN."""
    if outputs.dtype == object:
        return {outcome_key(value) for value in outputs.tolist()} == {outcome_key(value) for value in first.tolist()}
    equal = (outputs == first) | ((outputs != outputs) & (first != first))
    return bool(equal.all())


def _idle_event(evidence: Evidence, *, says_too_few: bool = False) -> list[Finding]:
    """An event that occurred in all runs that it was not learned from, or in none.

    Where the audit says that its runs are too few, only outputs that hardly recur are a finding.
    """
    x, y, counts, event = evidence.kept.x, evidence.kept.y, evidence.fresh_counts, evidence.kept.choice.event
    if not _is_decided(counts):
        return []
    often = "all" if counts.hits_x else "none"
    occurred = f"occurred in {often} of {counts.runs_x:,} runs on x and {counts.runs_y:,} on y"
    different, kept = sum(len(tally(side)[0]) for side in (x, y)), len(x) + len(y)
    if different > _NEARLY_ALL * kept:
        message = (
            f"no event could be learned, because {different:,} of the first {kept:,} outputs are different. The event "
            f"that was tried ({event}) {occurred}, so nothing was tested. Audit a part or a summary of the "
            "output that recurs, such as a number in it."
        )
    elif says_too_few:
        return []
    else:
        message = (
            f"the event chosen on the pilot ({event}) {occurred}, so nothing was tested. The event may be "
            "too rare for this number of runs (use more), or the mechanism may keep state (look for it)."
        )
    return [Finding(HealthCheck.IDLE_EVENT, message)]


def _is_decided(counts: Counts) -> bool:
    """Whether the event occurred in all runs on both datasets, or in none."""
    return counts.hits_x + counts.hits_y in (0, counts.runs_x + counts.runs_y)
