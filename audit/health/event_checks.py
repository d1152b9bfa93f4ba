"""Notes on outputs, and health checks of what is counted: outputs vary, and events occur as often as in the pilot."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..datasets.description import number_text
from ..events.events import Event, Intervals, Outcomes, Scored
from ..events.outputs import Outputs, are_equal, n_different, outcome_list, outcome_words
from ..events.scores import Additive
from ..inference.event_test import Counts
from ..portfolio.choice import Choice
from ..sampling.tasks import BlockCounts, raised_in
from .findings import FALSE_ALARM, Finding, HealthCheck

NO_NOISE = "no noise is added, or it is drawn from a fixed seed"
"""The end of the note on outputs that never vary and differ between x and y."""

_STUB = "Look for a stub, an early return, or noise from a fixed seed."
_FIRST = 100  # outputs compared first, because most outputs vary
_NEARLY_ALL = 0.5  # share of different outputs above which their values teach nothing
_SCORES = 1_000  # largest number of scores that a pilot chooses from, each with nested events or with intervals


def run_notes(
    x: Outputs, y: Outputs, main_x: BlockCounts, main_y: BlockCounts, *, runs: str = "pilot runs"
) -> tuple[str, ...]:
    """Notes on exceptions, and on outputs that never vary, are NaN or are None.

    They concern the kept outputs, which `runs` names; exceptions also concern the runs that were only counted.
    """
    notes, kept = list[str](), {"x": x, "y": y}
    if x.dtype == object:  # both are, or both are numbers
        if (text := number_text(x)) is not None and number_text(y) is not None:
            notes.append(f"outputs are texts of numbers, such as {text!r}; return numbers if the values are meant")
        for side, outputs in (("x", x), ("y", y)):
            if raised := raised_in(outputs):
                notes += _of_exceptions(raised, f"{len(outputs):,} {runs} on {side}")
                del kept[side]
    notes += [*_without_noise(kept, runs), *_without_values(x, y)]
    for side, main in (("x", main_x), ("y", main_y)):
        notes += _of_exceptions(main.raised, f"{int(main.sizes.sum()):,} main runs on {side}")
    return tuple(notes)


def _of_exceptions(raised: Counter[str], runs: str) -> list[str]:
    return [f"{exception} was raised in {times:,} of {runs}" for exception, times in sorted(raised.items())]


def _without_noise(kept: dict[str, Outputs], runs: str) -> Iterator[str]:
    """A note if all outputs on a dataset are equal, the same one for both datasets."""
    same = {side: outcome_list(outputs[:1])[0] for side, outputs in kept.items() if are_same(outputs)}
    if not same:
        return
    parts = [part for each in same.values() for part in (each if isinstance(each, tuple) else (each,))]
    are_two = len(same) == 2
    are_one = are_two and are_equal(kept["x"][:1], kept["y"][:1])
    cause = NO_NOISE if are_two and not are_one else "is its noise drawn anew in each run?"
    if None in same.values():
        cause = "is a return missing?"
    elif "nan" in map(repr, parts):  # noise changes no NaN
        cause = "is it computed from NaN, or from infinite numbers?"
    side, output = next(iter(same.items()))
    on = "x and on y" if are_one else side
    other = f", and all on y {outcome_words(same['y'])}" if are_two and not are_one else ""
    yield f"all {len(kept[side]):,} {runs} on {on} gave the same output, {outcome_words(output)}{other}; {cause}"


def _without_values(x: Outputs, y: Outputs) -> Iterator[str]:
    """A note if some outputs on a dataset are NaN, or None, and others are not."""
    for missing, name, cause in (
        (math.nan, "NaN", "unless NaN is meant, look for 0/0, infinite numbers or missing values"),
        (None, "None", "unless None is meant, a return is missing in some branch"),
    ):
        shares = [_share_of(missing, outputs) for outputs in (x, y)]
        if any(0.0 < share < 1.0 for share in shares):
            on_x, on_y = (f"{100 * share:.3g}%" for share in shares)
            verb = "have a" if x.ndim == y.ndim == 2 else "are"
            yield f"{on_x} of the outputs {verb} {name} on x, {on_y} on y; {cause}"


def _share_of(missing: float | None, outputs: Outputs) -> float:
    """The share of outputs that are None, or NaN, or vectors with a NaN."""
    if outputs.dtype != object:
        is_nan = outputs != outputs
        return 0.0 if missing is None else float(np.mean(is_nan.any(axis=1) if is_nan.ndim == 2 else is_nan))
    found = [each for each in outputs.tolist() if type(each) is type(missing) and (each is None or each != each)]
    return len(found) / len(outputs)


def are_same(outputs: Outputs) -> bool:
    """Whether all outputs are equal; NaN equals NaN."""
    return n_different(outputs[:_FIRST]) == 1 and n_different(outputs) == 1


@dataclass(frozen=True, slots=True)
class Evidence:
    """An event that an audit chose, with its counts, and the outputs that were kept."""

    x: Outputs
    y: Outputs
    choice: Choice
    counts: Counts
    fresh_counts: Counts  # in runs that the event was not learned from
    uncounted_runs: int = 0  # on each dataset, which `counts` leaves out


def pilot_findings(
    choice: Choice, counts: Counts, findings: tuple[Finding, ...], alpha: float = FALSE_ALARM
) -> list[Finding]:
    """Sides on which the event's frequency in the main runs cannot be reconciled with its frequency in the pilot.

    With probability at least 1 − a the frequencies of all half-lines of a score lie within √(ln(2/a)/2n) of their
    probabilities (Massart 1990, Corollary 1); an interval is the difference of two half-lines. For the main runs, whose
    event is given, Hoeffding's inequality (1963) says the same of one event. A learned score is left out: each half of
    the pilot is scored by what the other half taught.
    """
    ends = ends_of(choice.event)
    explained = {HealthCheck.DUPLICATE_OUTPUTS, HealthCheck.NONSTATIONARY} & {finding.check for finding in findings}
    if ends is None or choice.pilot_runs == 0 or explained:
        return []
    log_share = math.log(2.0 * 4.0 / alpha)  # two sides and two phases
    # The pilot chooses up to twice, as it is made longer once.
    reach = ends * math.sqrt((log_share + math.log(2.0 * _SCORES)) / (2.0 * choice.pilot_runs))
    found = []
    for side, in_pilot, seen, runs in (
        ("x", choice.pilot_count_x, counts.count_x, counts.runs_x),
        ("y", choice.pilot_count_y, counts.count_y, counts.runs_y),
    ):
        if abs(in_pilot / choice.pilot_runs - seen / runs) > reach + math.sqrt(log_share / (2.0 * runs)):
            message = (
                f"the event ({choice.event}) occurred in {in_pilot:,} of {choice.pilot_runs:,} pilot runs on "
                f"{side}, but in {seen:,} of the next {runs:,} runs, so the runs are not independent. Look for "
                "state that the mechanism keeps, such as a budget or a counter."
            )
            found.append(Finding(HealthCheck.NONSTATIONARY, message))
    return found


def ends_of(event: Event) -> int | None:
    """Number of half-lines whose indicators add up to that of the event, with signs; None of a learned score."""
    match event:
        case Scored(score, _) if not isinstance(score, Additive):
            return ends_of(event.event)
        case Intervals():
            return max(1, sum(math.isfinite(end) for pair in event.intervals for end in pair) + event.others)
        case Outcomes():
            return max(1, 2 * len(event.values))
    return None


def constant_output(evidence: Evidence) -> list[Finding]:
    """The same output in every kept run, and in all other runs as far as the event can show."""
    x, y, counts = evidence.x, evidence.y, evidence.counts
    first = x[:1]
    if not (are_equal(first, y[:1]) and _is_decided(counts) and are_same(x) and are_same(y)):
        return []
    if bool(evidence.choice.event.contains(first)[0]) != bool(counts.count_x):
        return []
    output = outcome_list(first)[0]
    runs_x, runs_y = (runs + evidence.uncounted_runs for runs in (counts.runs_x, counts.runs_y))
    message = (
        f"all {runs_x:,} runs on x and {runs_y:,} on y gave the same output, {outcome_words(output)}, so the audit saw "
        f"nothing of how the mechanism uses its data. {'Is a return missing?' if output is None else _STUB}"
    )
    return [Finding(HealthCheck.CONSTANT_OUTPUT, message)]


def idle_event(evidence: Evidence, *, says_too_few: bool = False) -> list[Finding]:
    """An event that occurred in all runs that it was not learned from, or in none.

    If the audit says that its runs are too few, only outputs that rarely recur are a finding.
    """
    x, y, counts, event = evidence.x, evidence.y, evidence.fresh_counts, evidence.choice.event
    if not _is_decided(counts):
        return []
    often = "all" if counts.count_x else "none"
    occurred = f"occurred in {often} of {counts.runs_x:,} runs on x and {counts.runs_y:,} on y"
    different, kept = n_different(x) + n_different(y), len(x) + len(y)
    if different > _NEARLY_ALL * kept:
        message = (
            f"no event could be learned, because {different:,} of the first {kept:,} outputs are different. The event "
            f"that was tried ({event}) {occurred}, so nothing was tested. Audit a part or a summary of the output "
            "whose values recur."
        )
    elif says_too_few:
        return []
    else:
        message = (
            f"the event chosen on the pilot ({event}) {occurred}, so nothing was tested. The event may be "
            "too rare for this number of runs (use more), or the mechanism may keep state (look for it)."
        )
    return [Finding(HealthCheck.NO_POWER, message)]


def _is_decided(counts: Counts) -> bool:
    """Whether the event occurred in all runs on both datasets, or in none."""
    return counts.count_x + counts.count_y in (0, counts.runs_x + counts.runs_y)
