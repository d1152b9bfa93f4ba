"""What results say: the sentences of every kind of result, made from its numbers.

A result asks for its sentences when they are first read. The modules of its kind are loaded by then, so functions
import what they need from them, and reading one kind of result loads no other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import scipy

from .claims.claim import ApproxDP, Claim, GroupClaim, PureDP
from .datasets.adjacency import NAMED
from .events.events import Event
from .events.outputs import Raised
from .floating_point_errors import with_own_arithmetic
from .health.event_checks import NO_NOISE
from .health.findings import HealthCheck, failed_checks
from .inference.binomial_tails import clopper_pearson
from .inference.event_test import Counts, Direction
from .options import MOST_RUNS
from .printing import confidence, counted, least_beside, one_line, rough, rounded_down, rounded_up, shorten
from .results.audit_result import BARELY, AuditResult, ClaimResult, OtherDirection, SampledResult
from .results.claim_pair_and_alpha import Pair
from .results.result import Result, Words
from .results.verdict import (
    Equivalence,
    ExactVerdict,
    ReplayVerdict,
    Verdict,
    bound_beside_claim,
    largest_excess,
    required_excess,
    steps_of,
)

if TYPE_CHECKING:
    from .accounting.check_accountant import AccountantResult
    from .accounting.check_filter import FilterResult
    from .exact.exact_result import ExactResult
    from .replay.replay_result import ReplayResult
    from .results.canary_result import CanaryResult
    from .results.equivalence_result import EquivalenceResult
    from .results.statement_result import StatementResult
    from .results.worst_pair import WorstPair
    from .sensitivity.sensitivity_result import SensitivityResult
    from .training.check_batches import BatchesResult
    from .training.step_result import RowName, StepResult


@with_own_arithmetic  # a sentence may be read under any settings of the user
def in_words(result: Result) -> Words:
    """Return what a result says."""
    return _OF_A_KIND[result.kind](result)


def _joined(*parts: str) -> str:
    """The parts that are not empty."""
    return "; ".join(filter(None, parts))


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else line[: most - 1] + "…"


def _notes(result: Result) -> list[str]:
    return [f"note: {note}" for note in result.notes]


def _sampled(result: SampledResult) -> tuple[str, ...]:
    """The failed health checks and the notes."""
    return *map(str, result.findings), *_notes(result)


# Audits: what was found, what was seen, and what to do.

_CHANCE = 0.01  # alpha from which a bound that is barely above the claim calls for another audit
_LONGEST_CLAIM = 60  # characters of a claim in a call
_BASES: Final = {
    "event": "this event",
    "chosen": "an event as frequent as the pilot's",
    "gaussian": "Gaussian noise",
    "common": "an event of probability 1/2",
}
_DOUBT: Final = (
    ". A claim for one row says nothing about such a pair. Pass adjacency= to have the pair checked (AddRemove() or "
    'Replace() for rows, Within("linf") for query answers), or distance= for a claim at that distance.'
)


def _audit(result: AuditResult) -> Words:
    events, basis = _events(result), _basis(result)
    why_not = _why_not_reproducible(result)
    remarks = [*map(str, result.findings), *_warnings(result.pair)]
    remarks += [] if result.floating_point_leak is None else [f"WARNING: {result.floating_point_leak}"]
    remarks += [f"note: not reproducible, as {why_not}"] if why_not else []
    remarks += [f"note: {_when_close(result)}"] if _is_close(result) else []
    return replace(
        _of_claim(result, _found(result), _after_audit(result), result.pair.doubt),
        seen=_seen(result, basis),
        remarks=(*remarks, *_notes(result)),
        events=events,
        observation="\n".join(filter(None, (basis, *events, str(result.tested)))),
        why_not_reproducible=why_not,
    )


def _of_claim(result: ClaimResult, found: str, following: str, also: str) -> Words:
    """The verdict with what was found, what should be done next, and what else belongs in its sentence."""
    verdict = result.verdict.value.upper()
    remedy = following if result.verdict is Verdict.INCONCLUSIVE else ""
    return Words(
        headline=f"{verdict}  {one_line(result.mechanism)}: {found}",
        sentence=_joined(f"{verdict}: {found}", remedy, also),
        next_step=following,
    )


def _warnings(pair: Pair) -> list[str]:
    """The doubt about the pair and its remedy, if there is a doubt."""
    return [f"WARNING: {pair.doubt}{_DOUBT}"] if pair.doubt else []


def event_in_words(event: Event, counts: Counts, more_likely_on: Direction, *, is_learned_here: bool = False) -> str:
    """Return how much more likely an event is on one dataset, such as "output ≤ -0.31 is 2.70 times as likely on x".

    An event that is equally frequent on both is stated in the direction in which it is tested. If the event was learned
    on the counted runs, the ratio describes only these runs, and would be smaller in others.
    """
    p, q = counts.count_x / counts.runs_x, counts.count_y / counts.runs_y
    if p == q == 0.0:
        return f"{event} never occurred"
    is_on_x = p > q or (p == q and more_likely_on == "x")
    more, less = ("x", "y") if is_on_x else ("y", "x")
    larger, smaller, seen = (p, q, counts.count_x) if is_on_x else (q, p, counts.count_y)
    if smaller == 0.0:
        times = "once" if seen == 1 else f"{seen:,} times"
        return f"{event} occurred {times} on {more} and never on {less}"
    ratio = f"{larger / smaller:.3g}"
    if ratio == "1":
        return f"{event} is about as likely on x as on y"
    how = f"occurred {ratio} times as often" if is_learned_here else f"is {ratio} times as likely"
    return f"{event} {how} on {more}"


def _sides(result: AuditResult) -> tuple[Direction, Direction]:
    """The dataset whose probability of the event is tested, and the other one."""
    return ("x", "y") if result.more_likely_on == "x" else ("y", "x")


def _events(result: AuditResult) -> tuple[str, ...]:
    """The event, and that of the other direction if both are tested."""
    tested: list[AuditResult | OtherDirection] = [result, *([] if result.opposite is None else [result.opposite])]
    is_learned_here = result.stopped is not None and not result.is_closed
    return tuple(
        event_in_words(each.event, each.counts, side, is_learned_here=is_learned_here)
        for each, side in zip(tested, _sides(result), strict=False)
    )


def _basis(result: AuditResult) -> str:
    """The intervals of bins or the divergence that the bound rests on; empty if it rests on events."""
    if result.by_bins:
        return "the intervals of the bins exclude the claim"
    by = result.by_divergence
    return "" if by is None else f"{by}: about {result.claim.describe_bound(f'= {by.estimate:.4g}')}"


def _seen(result: AuditResult, basis: str) -> str:
    """The counts that refute the claim: guesses of the dataset, or runs on each dataset with the event."""
    if result.verdict is not Verdict.REFUTED or basis:
        return basis
    if result.opposite is not None:
        events: dict[str, Event] = dict(zip(_sides(result), (result.event, result.opposite.event), strict=True))
        guess = ", ".join(f"{side} if {one_line(str(events[side]))}" for side in ("x", "y"))
        return f"{guess}: {result.opposite.guesses}"
    counts, event = result.counts, one_line(str(result.event))
    tested = result.directed_counts
    if math.isinf(result.estimate) and tested.count_y > 0 and tested.count_x == tested.runs_x:
        event, counts = f"all but {event}", counts.outside()
    return f"{event}: {counts.count_x:,} of {counts.runs_x:,} runs on x, {counts.count_y:,} of {counts.runs_y:,} on y"


def detectable_in_words(result: ClaimResult) -> str:
    """Return what the audit would have detected: "minimum detectable excess: 0.018 (95% power, this event)"."""
    excess, power = result.min_detectable_excess, f"{100 * result.power:.6g}% power"
    if excess is None:
        return "not stated, because the bound exceeds the claim"
    if math.isinf(excess):
        return f"no minimum detectable excess can be stated ({power})"
    return f"minimum detectable excess: {excess:.2g} ({power}, {_excess_basis(result)})"


def _excess_basis(result: Any) -> str:
    if result.kind == "canaries":
        return "if scores reveal all that such a claim allows"
    is_of_both = result.opposite is not None and result.excess_basis == "event"
    return "these events" if is_of_both else _BASES[result.excess_basis]


def _found(result: AuditResult) -> str:
    """The bound beside the claim, or why there is none."""
    claim, how_sure = result.directed_claim, confidence(result.alpha)
    per_step = " per step" if isinstance(claim, GroupClaim) else ""
    found = bound_beside_claim(claim, result.bound) + per_step
    if result.verdict is Verdict.REFUTED:
        if result.shows_only_more:
            found = claim.describe_bound(f"more than the claimed {claim.parameter:.4g}")
        text = f"{found} ({how_sure}){_when_refuted(result)}"
    elif result.verdict is Verdict.NOT_REFUTED:
        text = f"{found} ({how_sure}); {detectable_in_words(result)}"
    else:
        text = failed_checks(result.findings) if result.findings else _too_little(result)
    why = {"time": "time limit reached", "request": "stopped on request"}.get(result.stopped or "")
    return text + (f"; {why} after {result.runs:,} runs per dataset" if why else "")


def _when_refuted(result: AuditResult) -> str:
    """When a sequential audit refuted the claim."""
    if result.stopped != "refuted":
        return ""
    if result.is_closed:
        return f", by the final test after {result.runs:,} runs per dataset"
    is_shown = math.isfinite(result.estimate) and float(rough(result.estimate)) > result.directed_claim.parameter
    about = f", about {rough(result.estimate)}" if is_shown else ""
    return f"{about}; stopped after {result.runs:,} runs per dataset"


def _too_little(result: AuditResult) -> str:
    """What the audit could not have found."""
    excess = result.min_detectable_excess
    assert excess is not None
    few = f"too few runs for {confidence(result.alpha)} ({result.runs:,} per dataset); {detectable_in_words(result)}"
    if math.isinf(excess):
        return few
    if result.detect is not None:
        return f"{few}; requested: {result.detect:.2g}"
    return f"{_untested(result.directed_claim, excess, ' on this pair')} ({100 * result.power:.6g}% power)"


def _untested(claim: Claim, excess: float, on: str = "") -> str:
    """For example "no epsilon below 5.97 could have been found on this pair, against a claim of 1"."""
    least = "" if claim.parameter > 0.0 else f" (an audit must find {largest_excess(claim):g} above it)"
    found = f"no {claim.parameter_name} below {claim.parameter + excess:.3g} could have been found{on}"
    return f"{found}, against a claim of {claim.parameter:.4g}{least}"


def _after_audit(result: AuditResult) -> str:
    """What to do next: replay a refuted mechanism, or make an inconclusive audit conclusive."""
    if result.findings or result.verdict is Verdict.NOT_REFUTED or _is_close(result):
        return ""
    if result.verdict is not Verdict.REFUTED:
        return _more_runs(result)
    call = _replay_call(result)
    if not any(note.endswith(NO_NOISE) for note in result.notes):
        return call
    given = ", from a parameter rng" if call else ""
    return _joined(f"draw new noise in every run{given}, not from a fixed seed", call)


def _replay_call(result: AuditResult) -> str:
    """The call that looks for the line at which the claim breaks; empty if no mechanism was run."""
    code = result.provenance
    if code is None or not code.fingerprint or code.where.endswith(":Program"):  # no replay records a program's noise
        return ""
    own, _, part = result.mechanism.partition(", output ")
    name = own if own.isidentifier() and code.where.endswith(f":{own}") else "mechanism"
    part = part.removeprefix("by ").replace("<lambda>", "output")
    base, distance = steps_of(result.claim)
    if base == PureDP(0.0):  # two versions are equal, say: any difference is a leak
        return ""
    relation = [f', adjacency="{named}"' for named, each in NAMED.items() if str(each) == result.pair.adjacency]
    more = "".join(relation[:1]) + (f", distance={distance}" if distance > 1 else "")
    more += f", output={part}" if part else ""
    return f"replay({name}, x, y, claim={_claim_in_call(base)}{more}) looks for the line that leaks"


def _claim_in_call(claim: Claim) -> str:
    """A claim as a short argument of a call, such as "1"; a name in place of a long one."""
    match claim:
        case PureDP():
            return f"{claim.epsilon:g}"
        case ApproxDP(bound_on="epsilon"):
            return f"({claim.epsilon:g}, {claim.delta:g})"
    return repr(claim) if len(repr(claim)) <= _LONGEST_CLAIM else "claim"


def _more_runs(result: AuditResult) -> str:
    """What makes an inconclusive audit conclusive."""
    excess, aim = result.min_detectable_excess, result.detect or largest_excess(result.directed_claim)
    assert excess is not None
    is_run_here = result.provenance is not None and bool(result.provenance.fingerprint)
    search = " (find_worst_pair, or neighbours= in pytest)" if is_run_here else ""
    pair = "another domain or more search_runs=" if result.searched else f"another pair{search}"
    # The excess falls with the root of the runs, as the standard errors of the frequencies do.
    ratio = excess / aim
    needed = result.runs * (ratio * ratio)  # not a power, which raises an error where this is infinite
    if _shows_less(result) or (needed > MOST_RUNS and math.isfinite(excess)):
        remedy = f"use {pair}: on this one only an event that is too rare for these runs can show more;"
    else:
        remedy = f"use {'more' if math.isinf(excess) else f'about {rounded_up(needed, 2):,.0f}'} runs per dataset,"
    return remedy[:-1] if math.isinf(excess) else f"{remedy} or accept this with detect={rounded_up(excess, 2):g}"


def _shows_less(result: AuditResult) -> bool:
    """Whether the exact limits of the event's frequencies rule out that it ever refutes the claim on this pair.

    Where the claim allows Gaussian noise, the noise that makes the event as clear must be ruled out too, because rarer
    events would show more of it.
    """
    claim, counts = result.directed_claim, result.directed_counts
    if result.opposite is not None:
        counts = result.opposite.guesses.as_counts
    _, (p, p_rest) = clopper_pearson(counts.count_x, counts.runs_x, alpha=result.alpha)
    (q, q_rest), _ = clopper_pearson(counts.count_y, counts.runs_y, alpha=result.alpha)
    mu = claim.gaussian_mu
    if mu is not None and float(scipy.special.ndtri(p) - scipy.special.ndtri(q)) > mu:
        return False
    return bool(claim.divergence_slopes) or bool(claim.parameter_of(p, q, p_rest, q_rest) <= claim.parameter)


def _why_not_reproducible(result: AuditResult) -> str:
    if result.is_reproducible:
        return ""
    if any(finding.check is HealthCheck.DATASET_MUTATED for finding in result.findings):
        return "the mechanism changes the datasets"
    return "the mechanism has its own randomness"


def _is_close(result: AuditResult) -> bool:
    """Whether the claim is refuted by a bound barely above it, at an alpha at which this may be chance."""
    is_barely = result.verdict is Verdict.REFUTED and result.is_barely_above
    return is_barely and result.alpha >= _CHANCE and not result.has_stopped_early


def _when_close(result: AuditResult) -> str:
    """What to do about a bound barely above the claim."""
    again = (
        "and another seed"
        if result.is_reproducible
        else "(the seed does not fix the mechanism's randomness, so another seed alone changes nothing)"
    )
    return (
        f"the bound exceeds the claim by less than {100 * BARELY:g}%, which may be chance: up to "
        f"{100 * result.alpha:g}% of audits refute a mechanism that just keeps its claim. Audit again with more runs "
        f"{again}"
    )


# Searches for a pair.

_SHOWN, _WIDTH = 5, 160  # pairs, and characters of a line, in the printed result of a search


def _search(result: WorstPair) -> Words:
    """The sentences of the audit of the worst pair, and those of the search."""
    parts = [f"{counted(sum(pair.error is None for pair in result.ranking), 'pair')} in {result.runs:,} runs"]
    if result.untried:
        parts.append(f"{counted(result.untried, 'pair')} not tried")
    if not result.is_refuted:
        parts.append("other pairs may be worse than the worst pair found")
    if result.simple is not None:
        parts += ["a simpler pair is refuted too:", *map(str.strip, result.simple.lines)]
    words = in_words(result.audit)
    return replace(words, observation="; ".join(parts), below=tuple(_below(result, *words.events)))


def _below(result: WorstPair, *events: str) -> Iterator[str]:
    """The simpler pair, the pair, and the search."""
    audit, chosen = result.audit, result.ranking[0]
    tried = [pair for pair in result.ranking if pair.error is None]
    skipped = [pair for pair in result.ranking if pair.error is not None]
    for name, line in result.simpler_lines:  # in full, so that they can be pasted
        yield f"  {name:<7} {line}"
    first, *other = events
    lines = [
        f"  pair    {chosen.label} ({audit.pair.adjacency})",
        f"          {chosen.summary}",
        f"  event   {first}",
        *(f"          {each}" for each in other),
    ]
    if audit.searched:
        more = f" and {audit.pilot_runs:,} more" if audit.pilot_runs else ""
        lines.append(f"  pilot   {audit.searched:,} runs of the search on each dataset{more}")
    if result.replayed:
        lines.append(f"  guide   {counted(result.replayed, 'pair')} replayed; the leaders and usual pairs were run")
    shown = f" for {_SHOWN} of them" if len(tried) > _SHOWN else ""
    lines += [
        f"  search  {counted(len(tried), 'pair')} in {result.runs:,} runs; rough estimates{shown}, the audited pair "
        "first, then the longest examined:",
        *(f"          {pair}" for pair in tried[:_SHOWN]),
    ]
    if skipped:
        lines.append(f"  skipped {counted(len(skipped), 'pair')}, such as {skipped[0].label}")
    if result.untried:
        lines.append(f"  untried {counted(result.untried, 'pair')}; increase search_runs to reach them")
    if not result.is_refuted:
        lines.append("  note    other pairs may be worse than the worst pair found")
    for line in lines:
        yield _cut(line, _WIDTH)
    if skipped:
        yield f"  error   {' '.join(str(skipped[0].error).split())}"  # in full, because the reader acts on it


# Trainings with canaries.

_USUAL_ALPHA = 0.05  # the default of `plan_canaries`


def _canaries(result: CanaryResult) -> Words:
    number, right = result.best_guesses
    runs = f" in {result.runs:,} runs" if result.runs > 1 else ""
    guesses = f"{right:,} of {number:,} guesses were correct, of {result.guesses.canaries:,} {_units(result)}{runs}"
    found, seen, following = f"{bound_beside_claim(result.claim, result.bound)} ({confidence(result.alpha)})", "", ""
    match result.verdict:
        case Verdict.REFUTED:
            seen, following = guesses, "look at the clipping, the noise and the sampling of the training"
        case Verdict.NOT_REFUTED:
            found += f"; {detectable_in_words(result)}"
        case Verdict.INCONCLUSIVE:
            found, following = _too_few_canaries(result)
    words = _of_claim(result, found, following, seen)
    return replace(words, seen=seen, remarks=_sampled(result), observation=guesses)


def _units(result: CanaryResult) -> str:
    return "pairs" if result.inclusion == "fixed" else "canaries"


def _more_canaries(result: CanaryResult) -> str:
    """What the needed canaries detect, and the call that plans other numbers."""
    if result.needed is None:
        return "use more canaries, or several runs with new inclusion bits"
    excess, alpha = required_excess(result.claim, result.detect), f", alpha={result.alpha:g}"
    call = f"claim={_claim_in_call(result.claim)}, detect={excess:.4g}{alpha * (result.alpha != _USUAL_ALPHA)}"
    return f"{result.needed:,} {_units(result)} would detect an excess of {excess:.4g}; plan_canaries({call})"


def _too_few_canaries(result: CanaryResult) -> tuple[str, str]:
    """Why the audit is inconclusive, and the remedy."""
    of, more = f"{result.canaries:,}, {confidence(result.alpha)}", _more_canaries(result)
    delta = float(getattr(result.claim, "delta", 0.0))
    if delta >= result.alpha:
        why = "a training that reveals everything with probability delta keeps the claim"
        return (
            f"delta = {delta:g} is not below alpha = {result.alpha:g}; {why}",
            "use a larger alpha or a smaller delta",
        )
    explained = result.guesses.canaries * delta
    if explained >= 1.0:
        slips = f"canaries × delta = {explained:.3g} correct guesses may be slips"
        fewer = "use fewer canaries" if result.needed is None else more
        return f"too many canaries for this delta ({of}); {slips}", f"{fewer}, or claim a smaller delta"
    if result.max_attainable_bound <= result.claim.parameter:
        most = result.claim.describe_parameter(result.max_attainable_bound)
        return f"too few canaries ({of}); even if all guesses were correct, {most}", more
    excess = result.min_detectable_excess
    assert excess is not None
    if result.detect is not None or math.isinf(excess):
        asked = "" if result.detect is None else f"; requested: {result.detect:.2g}"
        return f"too few canaries ({of}); {detectable_in_words(result)}{asked}", more
    return (
        f"{_untested(result.claim, excess)} ({100 * result.power:.6g}% power at best; {result.canaries:,} canaries, "
        f"{confidence(result.alpha)})",
        f"{more}, or accept this with detect={rounded_up(excess, 2):g}",
    )


# Statements, and comparisons of two versions.


def _statement(result: StatementResult) -> Words:
    worst = result.worst
    quantity = f"{result.quantity} at {worst.at}" if worst.at else result.quantity
    text = f"{result.verdict.name.replace('_', ' ')}: {quantity} in {worst.interval}, {worst.allowed}"
    text += f" ({confidence(result.alpha)})"
    if result.verdict is Verdict.INCONCLUSIVE and not result.notes:
        wanted = "" if math.isinf(result.largest_width) else f" at most {result.largest_width:.2g} wide"
        text += f"; every number needs an interval{wanted}, so use more runs"
    text += f"; worst of {len(result.points)} numbers" if len(result.points) > 1 else ""
    return Words(
        sentence=f"INCONCLUSIVE: {failed_checks(result.findings)}" if result.findings else text,
        claimed=f"{worst.at or result.quantity}: {worst.allowed}",
        measured=worst.interval,
        remarks=_sampled(result),
    )


def _equivalence(result: EquivalenceResult) -> Words:
    lower, upper = f"{rounded_down(result.lower):g}", f"{rounded_up(result.upper):g}"
    distance, margin, counts = "total variation distance", f"margin {result.margin:.4g}", result.counts
    beside = f"{margin} ({confidence(result.alpha)})"
    on_old = f"{counts.count_x:,} of {counts.runs_x:,} runs of {result.old}"
    event = f"{result.event}: {on_old}, {counts.count_y:,} of {counts.runs_y:,} runs of {result.new}"
    if result.findings:
        sentence = f"INCONCLUSIVE: {failed_checks(result.findings)}"
    elif result.verdict is Equivalence.SHOWN:
        sentence = f"EQUIVALENT: {distance} at most {upper}, {beside}; {result.scope}"
    elif result.verdict is Equivalence.DIFFERENT:
        sentence = f"DIFFERENT: {distance} at least {lower}, {beside}; {event}"
    else:
        upper_end = f"the upper end holds {result.scope}"
        sentence = f"INCONCLUSIVE: {distance} from {lower} to {upper}, {beside}; {upper_end}; {_way_out(result)}"
    versions = f"x is {result.old}, y is {result.new}"
    return Words(
        sentence=sentence,
        claimed=margin,
        measured="" if result.findings else f"distance in [{lower}, {upper}]",
        remarks=(*map(str, result.findings), versions, *_notes(result)),
        events=(event,),
    )


def _way_out(result: EquivalenceResult) -> str:
    if not result.counts_unlisted and result.bins.n_known < 2:
        return "the outputs could not be divided into bins, and a single bin shows nothing"
    least = f"{result.smallest_margin:.2g}"
    if result.smallest_margin <= result.margin:
        return (
            f"equal versions would have been shown to be within about {least}, so these two may differ a little; use "
            "more runs or a wider margin"
        )
    needed = "no number of runs is enough" if math.isinf(result.runs_needed) else f"about {result.runs_needed:,} needed"
    return f"too few runs: for equal versions {result.runs:,} runs of each show a margin of about {least}; {needed}"


# Replays.

_SOURCE_WIDTH: Final = 100  # characters of a line of source


def _replay(result: ReplayResult) -> Words:
    why, found, verdict = _why_undetermined(result), _found_by_replay(result), result.verdict.name
    lines = []
    for number, finding in enumerate(result.findings):
        if number == 0 and result.has_excess:
            finding = replace(finding, cost="")  # the headline states it
        lines += [str(finding)] if finding.message else []
        if finding.place is not None and finding.place.source:
            lines.append(f"  {_cut(finding.place.source, _SOURCE_WIDTH)}")
    open_reasons = result.open_reasons or ((why,) if why and not result.findings else ())
    losses = [finding.loss for finding in result.findings]
    is_beyond = math.inf in losses and result.loss.worst != math.inf  # of an answer without noise, not of a call
    measured = "infinite worst-case loss" if is_beyond else str(result.loss)
    return Words(
        headline=f"{verdict}  {one_line(result.mechanism)}: {found}",
        sentence=f"{verdict}: {_joined(found, why)}",
        measured="" if result.open_reasons or None in losses else measured,
        remarks=(*lines, *(f"open: {reason}" for reason in open_reasons), *_notes(result)),
        next_step=_joined(result.remedy, "confirm with check on this pair") if result.findings else "",
    )


def _found_by_replay(result: ReplayResult) -> str:
    """What the verdict rests on, in a few words."""
    claimed = "" if result.claim is None else f", claimed {result.claim}"
    count, verdict = counted(len(result.calls), "call"), result.verdict
    if result.findings:
        first, others = result.findings[0], sum(each.is_excess == result.has_excess for each in result.findings) - 1
        more = f" and {others} more" if others else ""
        if verdict is ReplayVerdict.EXCESS:
            return f"{first.cost or first.kind.value}{more} (one path)"
        at = "" if first.place is None else f" at {first.place}"
        return f"not shown to be an excess in {count}{claimed}: {first.kind.value}{at}{more}"
    if verdict is ReplayVerdict.BOUNDED:
        return f"{result.loss} in {count}{claimed} (one path)"
    if result.open_reasons or not result.loss.is_known:
        return f"neither an excess nor a bound in {count}{claimed}"
    return f"{result.loss} in {count}{claimed}"


def _why_undetermined(result: ReplayResult) -> str:
    """Why the result is undetermined, in one clause; empty for the other verdicts."""
    if result.verdict is not ReplayVerdict.UNDETERMINED:
        return ""
    if result.open_reasons:
        return result.open_reasons[0]
    if result.findings:
        return "the output may hide it; confirm with check"
    if not result.loss.is_known:
        return "the loss of a call is unknown"
    return "no claim given to compare it with" if result.claim is None else "not shown to be within the claim"


# Exact audits.


def _exact(result: ExactResult) -> Words:
    low, high = f"{rounded_down(result.excess.lower, 3):.3g}", f"{rounded_up(result.excess.upper, 3):.3g}"
    return Words(
        sentence=_of_exact(result, low, high),
        measured=f"excess in {result.exceeded} between {low} and {high}",
        remarks=tuple(_of_outputs(result)),
    )


def _of_exact(result: ExactResult, low: str, high: str) -> str:
    name, verdict, of = f"{result.mechanism}: {result.claim}", result.verdict, f"in {result.exceeded}"
    rounding = "floating-point arithmetic" if result.is_rounding else ""
    if verdict is ExactVerdict.REFUTED:
        by = f"{rounding} only: " if rounding else ""
        return f"REFUTED  {name} is exceeded by {by}{low} {of} (certain)"
    if verdict is ExactVerdict.VERIFIED:
        why = f" ({rounding})" if rounding else ""
        up_to = f", up to {high} {of}{why}" if result.excess.upper > 0.0 else ""
        where = "this pair" if result.n_pairs == 1 else f"all {result.n_pairs:,} pairs of the domain"
        return f"VERIFIED  {name} holds on {where} for ideal coins{up_to}"
    untried = f"; {result.untried:,} more were not audited"
    tried = f" on {counted(result.n_pairs, 'pair')}{untried}" if result.untried else ""
    return f"UNDETERMINED  {name}; the excess {of} lies in [{low}, {high}]{tried}"


def _of_outputs(result: ExactResult) -> Iterator[str]:
    """The output that exceeds the claim most, exceptions, what was not explored, the pair, and what to do next."""
    rows, sides = result.losses(), (result.on_x, result.on_y)
    p, q = (np.minimum([row[place] for row in rows], 1.0) for place in (1, 2))
    exceeds = np.maximum(p - result.claim.max_power(q)[0], q - result.claim.reversed().max_power(p)[0])  # of one output
    near = 2.0**-50 * (p + q)  # of outputs equal up to rounding, the most probable is shown
    is_worst = exceeds >= exceeds.max(initial=-1.0) - near
    worst = [rows[int(np.where(is_worst, p + q, -1.0).argmax())]] if rows else []
    named = dict.fromkeys([*worst, *(row for row in rows if isinstance(row[0], Raised))])
    for output, on_x, on_y, _ in named:
        yield f"{_named(output)}: probability {on_x:.6g} on x, {on_y:.6g} on y"
    if rows and isinstance(result.claim, PureDP):
        yield f"largest loss: at least {rounded_down(rows[0][3], 6):.6g}, of {_named(rows[0][0])}"
    executions = sum(side.n_executions for side in sides)
    left_x, left_y = (f"{rounded_up(side.remainder, 2):.2g}" for side in sides)
    yield f"not explored: {left_x} on x, {left_y} on y; {executions:,} executions"
    yield from _warnings(result.pair)
    if result.n_pairs + result.untried > 1:
        yield f"pair: {result.pair.difference} ({result.pair.adjacency})"
        for side, text in zip("xy", result.pair.contents or (), strict=False):
            yield f"{side} = {text}"
    if result.verdict is ExactVerdict.UNDETERMINED:
        yield f"next: {_way_to_a_verdict(result)}"
    reasons = dict.fromkeys(reason for side in sides for reason in side.not_merged)
    for reason in list(reasons)[:2]:
        yield f"some states were not merged: {reason}"


def _named(output: Any) -> str:
    return str(output) if isinstance(output, Raised) else f"output {shorten(output)}"


def _way_to_a_verdict(result: ExactResult) -> str:
    from .exact.exact_result import INTERRUPTED

    ended = next((side.ended_by for side in (result.on_x, result.on_y) if side.ended_by), "")
    field = next((each for each in ("executions", "states") if each in ended), "seconds")
    wanted = f"allow more {field}" if ended or result.untried else "audit with a smaller remainder"
    if math.isinf(result.excess.upper):
        wanted = "audit an (epsilon, delta) claim, as no exact audit verifies a claim about Rényi divergences"
    elif ended == INTERRUPTED:
        wanted = "let the same call run to its end"
    return _joined(ended, wanted)


# Searches for a sensitivity.

_MOST_OF_AN_ERROR = 1_000  # characters


def _sensitivity(result: SensitivityResult) -> Words:
    of = f"distance of outputs under {result.output_adjacency}"
    of = of if result.output_adjacency else f"{result.norm} sensitivity"
    return Words(
        sentence=_of_sensitivity(result, of),
        claimed=f"{of} {result.bound:.6g}",
        measured=f"change {result.change:.6g}",
        remarks=tuple(_of_query(result)),
    )


def _of_sensitivity(result: SensitivityResult, of: str) -> str:
    name = f"{of}{'' if result.distance == 1 else f' at distance {result.distance:g}'}"
    stated, evaluations = f"stated {result.bound:.12g}", f"{result.evaluations:,} evaluations"
    match result.verdict:
        case Verdict.INCONCLUSIVE:
            never = f"the query never changed in {evaluations}, {stated}; does it use its dataset?"
            return f"INCONCLUSIVE: {result.unsteady or never}"
        case Verdict.REFUTED if result.reason:
            return f"REFUTED: the {name} has no bound ({result.reason}), {stated}; {result.shown.summary}"
        case Verdict.REFUTED:
            sign, least, _ = least_beside(result.change, result.bound)
            least = least if sign == ">=" else repr(result.change)  # with enough digits to exceed the bound
            return f"REFUTED: the {name} is at least {least}, {stated}; {result.shown.summary}"
    return f"NOT REFUTED: largest change found {result.change:.6g} in {evaluations}, {stated} ({name})"


def _of_query(result: SensitivityResult) -> Iterator[str]:
    """The answers, how the pair was found, and what qualifies the verdict."""
    lines = [f"answers {result.shown.values}", f"found   {result.found_by}"]
    if result.shown is result.pair and result.simple is not None:
        lines.append(f"simpler {result.simple.summary} (change {result.simple.change:.6g})")
    tried = f"{result.evaluations:,} evaluations, {counted(result.pairs, 'pair')} ({result.adjacency})"
    lines.append(f"search  {tried}; {result.end.value}")
    sides = (("x", result.only_x), ("y", result.only_y))
    alone = [f"{', '.join(names)} only on {side}" for side, names in sides if names]
    if alone:
        lines.append(f"note    {'; '.join(alone)}: counts as 0 elsewhere, but noise does not hide that it is missing")
    if result.not_finite:
        lines.append(f"note    the query returned NaN or infinite numbers on {counted(result.not_finite, 'dataset')}")
    if result.verdict is Verdict.NOT_REFUTED:
        if result.change > result.bound * (1.0 + 1e-9):
            lines.append("note    the change exceeds the bound by no more than rounding explains")
        lines.append("note    other pairs may change the query more")
    for line in lines:
        yield _cut(line, _WIDTH)
    if result.left_out:
        yield f"note    {' '.join(result.left_out.split())}"
    if result.errors:
        first = " ".join(result.first_error.split())[:_MOST_OF_AN_ERROR]
        yield f"errors  {counted(result.errors, 'pair')} without an answer; the first: {first}"


# Training steps and batches.

_AFTER_ROW: Final[dict[RowName, str]] = {
    "noise-scale": "divide sum and noise by a fixed number, such as the expected size of a batch",
    "privacy": "compare the clipping norm, the noise and the adjacency with those of the claim",
    "sensitivity": "compare the clipping with the stated sensitivity",
    "without-noise": "add noise to it, or do not release it; seed no generator in the step",
    "repeated-noise": "draw new noise for every number: split the key, and seed no generator in the step",
    "not-finite": 'set gradients that are not finite to 0; for data that are finite, ignore="not-finite"',
    "empty-batch": "return the noise for a batch without examples, too",
    "isolation": 'clip each example by itself; for microbatches with their sensitivity, ignore="isolation"',
    "divisor": "divide by a fixed number, such as the expected size of a batch",
    "order": "clip each example by itself",
}
"""What to do about a refuted row."""


def _step(result: StepResult) -> Words:
    """The first row with the verdict of the step, or the interval of μ; then the other rows and what was measured."""
    verdict, is_known = result.verdict, not math.isnan(result.mu)
    shown = next(row for row in result.rows if row.verdict is verdict)
    found = str(shown)
    if verdict is Verdict.NOT_REFUTED:
        mu = f"mu between {result.mu_lower:.4g} and {result.mu_upper:.4g}"
        mu = mu if is_known else "the ratio of contribution and noise is unknown"
        claimed = "" if result.claim is None else f", claimed {result.claim}"
        found = f"{mu}{claimed} ({confidence(result.alpha)})"
    return Words(
        sentence=f"{verdict.value.upper()}  {result.step}: {found}",
        measured=f"mu >= {result.mu_lower:.4g}" if is_known else "",
        remarks=tuple(_of_rows(result, shown)),
    )


def _of_rows(result: StepResult, shown: Any) -> Iterator[str]:
    """The other rows that are refuted or were not tested, what was measured, notes, and what to do next."""
    from .training.step_result import few

    for verdict in (Verdict.REFUTED, Verdict.INCONCLUSIVE):
        for row in result.rows:
            if row.verdict is verdict and row is not shown:
                yield f"{row.name}: {row.verdict.value}, {row}"
    if held := result.named(Verdict.NOT_REFUTED):
        yield f"not refuted: {', '.join(held)}"
    if result.sigma:
        noise = few([f"{name} {value:.4g}".strip() for name, value in result.sigma])
        yield f"largest contribution {result.sensitivity:.4g}; noise {noise}"
    yield f"{counted(result.runs, 'step')} ({result.adjacency})"
    yield from _notes(result)
    # What makes examples depend on each other also makes their contributions too large.
    refuted = [row.name for row in result.rows if row.verdict is Verdict.REFUTED]
    first = [name for name in ("isolation", shown.name) if name in refuted][:1]
    rest = [name for name in refuted if name in ("without-noise", "repeated-noise", "not-finite", "empty-batch")]
    for name in dict.fromkeys([*first, *rest]):
        yield f"next: {_AFTER_ROW[name]}"


def _batches(result: BatchesResult) -> Words:
    """The verdict; then the rows, what a difference costs, and what to do next."""
    drawn = f"{result.runs * result.rounds:,} batches in {counted(result.runs, 'run')}"
    sentence, following = f"NOT REFUTED  {result.sampler}: {result.assumption} ({drawn})", []
    match result.verdict:
        case Verdict.REFUTED:
            how_sure = f"({confidence(result.alpha)}; {drawn})"
            sentence = f"REFUTED  {result.sampler}: not {result.assumption} {how_sure}"
            following = ["next: sample as the accountant assumes, or account for what is sampled"]
        case Verdict.INCONCLUSIVE:
            untested = " and ".join(result.named(Verdict.INCONCLUSIVE))
            few = f"{drawn} are too few to test {untested}"
            sentence = f"INCONCLUSIVE  {result.sampler}: {few}, claimed {result.assumption}"
            following = ["next: a longer seconds=, or fewer examples at the same rate"]
    return Words(
        sentence=sentence,
        measured=", ".join(result.named(Verdict.REFUTED)),
        remarks=(*result.table().splitlines(), *map(str, result.costs), *_notes(result), *following),
    )


# Accountants and filters.


def _accountant(result: AccountantResult) -> Words:
    truth, claimed = result.worst.found
    return Words(
        sentence=_of_accountant(result),
        claimed=f"{claimed and f'{result.worst.parameter} {claimed} for '}{result.worst.where}",
        measured=truth,
        remarks=tuple(_of_cases(result)),
    )


def _of_accountant(result: AccountantResult) -> str:
    from .accounting.check_accountant import Outcome

    name, small = result.accountant, len(result.those(Outcome.TOO_SMALL))
    made = len(result.rows) - len(result.those(Outcome.REFUSED))
    match result.verdict:
        case ExactVerdict.REFUTED:
            are = "is" if small == 1 else "are"
            return f"REFUTED  {name}: {small} of {made} claims {are} too small (certain); {result.worst}"
        case ExactVerdict.VERIFIED:
            held = f"{counted(made, 'claim')} hold{'s' * (made == 1)}"
            return f"VERIFIED  {name}: {held}, at most {_percent(result.largest_error_above)} above the truth"
    if not made:
        return f"UNDETERMINED  {name}: it refused all of {counted(len(result.rows), 'case')}"
    return f"UNDETERMINED  {name}: {len(result.those(Outcome.UNDECIDED))} of {made} claims; {result.worst}"


def _of_cases(result: AccountantResult) -> Iterator[str]:
    """The largest errors, what was refused, claims in the wrong order, and what to do."""
    from .accounting.check_accountant import Outcome

    is_refuted = result.verdict is ExactVerdict.REFUTED
    if is_refuted:
        below, above = _percent(result.largest_error_below), _percent(result.largest_error_above)
        yield f"largest errors: {below} below the truth, {above} above"
    if undecided := result.those(Outcome.UNDECIDED):
        yield f"undecided: {counted(len(undecided), 'claim')} between the limits or not a number"
    refused = {row.refused.partition(":")[0]: row.refused for row in result.those(Outcome.REFUSED)}
    kinds = Counter(row.refused.partition(":")[0] for row in result.those(Outcome.REFUSED))
    for kind, count in kinds.items():
        yield f"refused: {counted(count, 'case')}, such as {refused[kind]}"
    for each in result.not_monotone[:3]:
        yield f"not monotone: {each}"
    if is_refuted:
        yield "next: print(result.table()) has all cases; dpaudit.accountants.true_epsilon(case) has the limits"


def _percent(error: float) -> str:
    return "nothing" if math.isnan(error) else "infinitely" if math.isinf(error) else f"{100 * error:.3g}%"


def _filter(result: FilterResult) -> Words:
    requests = f"{result.accepted:,} of {counted(result.requests, 'request')} accepted"
    tried, violation = f"{counted(result.sequences, 'sequence')}, {requests}", result.violation
    if violation is None:
        stated = "the odometer" if result.budget is None else f"the budget {result.budget}"
        what = "accepted nothing" if not result.accepted else f"{stated} was never exceeded"
        return Words(
            sentence=f"{result.verdict.value.upper()}  {result.filter}: {what} ({tried})", remarks=tuple(_notes(result))
        )
    low, (epsilon, delta) = violation.true.lower, violation.stated
    says = "the budget is" if violation.is_budget else "reported"
    cost = f"epsilon {' '.join(least_beside(low, epsilon)[:2])}" if math.isfinite(low) else "more than any epsilon"
    taken = counted(len(violation.accepted), "accepted request")
    found = f"{taken} cost {cost} at delta {delta:.6g}, {says} {epsilon:.6g} (certain)"
    asked = Counter((str(request), who) for request, who in violation.requests)
    shown = [f"{count} x {request}{f' by child {who}' if who else ''}" for (request, who), count in asked.items()]
    sequence = f"requests: {', '.join(shown[:8])}{f' and {len(shown) - 8} more' if len(shown) > 8 else ''}"
    return Words(sentence=f"REFUTED  {result.filter}: {found}", remarks=(sequence, *_notes(result)))


_OF_A_KIND: Final[dict[str, Callable[[Any], Words]]] = {
    "audit": _audit, "search": _search, "canaries": _canaries, "statement": _statement, "equivalence": _equivalence,
    "replay": _replay, "exact": _exact, "sensitivity": _sensitivity, "step": _step, "batches": _batches,
    "accountant": _accountant, "filter": _filter,
}  # fmt: skip
