"""From the evidence of an audit to its result: the test, the checks of the event, and the detectable excess."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..clock import now
from ..events.events import Apart, Event, Intervals, Outcomes, Scored, sketch, with_names
from ..events.outputs import Outputs, are_equal, n_different, outcome_key, outcome_list, outcome_words
from ..events.scores import Additive
from ..health.findings import FALSE_ALARM, Finding, HealthCheck
from ..inference.divergence_test import DivergenceTest, divergence_test
from ..inference.event_test import Counts, Direction, directed, joint_test
from ..inference.guess_test import guess_test, guesses_by_coins, is_symmetric
from ..inference.net_test import net_test
from ..portfolio.choice import Choice
from ..portfolio.low_bits import FALSE_WARNING, look_at_bits
from ..portfolio.partitions import recur
from ..random_streams import Stream, sequence_of
from ..results.audit_result import (
    FINAL_SHARE,
    AuditResult,
    FixedSizeResult,
    OtherDirection,
    SequentialResult,
    Settings,
    Verdict,
    verdict_of,
)
from ..sampling.object_identity import versions
from .detectable_excess import (
    FEW,
    Detectable,
    Learned,
    detectable,
    detectable_by_divergence,
    detectable_by_guesses,
    detectable_sequentially,
    shows_no_difference,
)
from .pilot import Evidence, FixedSizeEvidence, SequentialEvidence

# Health checks of the counts: outputs vary, the event occurs in some runs only, and as often as in the pilot.

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
    probabilities; an interval is the difference of two half-lines. A learned score is left out: each half of the pilot
    is scored by what the other half taught.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Corollary 1. For the main runs,
    whose event is given: Hoeffding (1963), Probability inequalities for sums of bounded random variables, Theorem 1.
    """
    ends = ends_of(choice.event)
    if ends is None or choice.pilot_runs == 0 or any(_explains(finding) for finding in findings):
        return []
    log_share = math.log(2.0 * 4.0 / alpha)  # two sides and two phases
    # The pilot chooses up to twice, as it is made longer once.
    reach = ends * math.sqrt((log_share + math.log(2.0 * _SCORES)) / (2.0 * choice.pilot_runs))
    found = []
    for side, pilot_counts, seen, runs in (
        ("x", choice.pilot_count_x, counts.count_x, counts.runs_x),
        ("y", choice.pilot_count_y, counts.count_y, counts.runs_y),
    ):
        if abs(pilot_counts / choice.pilot_runs - seen / runs) > reach + math.sqrt(log_share / (2.0 * runs)):
            found.append(
                Finding(
                    HealthCheck.NONSTATIONARY,
                    f"the event ({choice.event}) occurred in {pilot_counts:,} of {choice.pilot_runs:,} pilot runs on "
                    f"{side}, but in {seen:,} of the next {runs:,} runs, so the runs are not independent. Look for "
                    "state that the mechanism keeps, such as a budget or a counter.",
                )
            )
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


def _explains(finding: Finding) -> bool:
    return finding.check in (HealthCheck.DUPLICATE_OUTPUTS, HealthCheck.NONSTATIONARY)


def _constant_output(evidence: Evidence) -> list[Finding]:
    """The same output in every kept run, and in all other runs as far as the event can tell."""
    x, y, counts = evidence.kept.x, evidence.kept.y, evidence.counts
    first = x[:1]
    if not (are_equal(first, y[:1]) and _is_decided(counts)):
        return []
    if not all(_hold_only(first, part) for part in (x[:_SAME], y[:_SAME], x, y)):
        return []
    if bool(evidence.kept.choice.event.contains(first)[0]) != bool(counts.count_x):
        return []
    known, output = evidence.uncounted_runs, outcome_list(first)[0]
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
    often = "all" if counts.count_x else "none"
    occurred = f"occurred in {often} of {counts.runs_x:,} runs on x and {counts.runs_y:,} on y"
    different, kept = sum(map(n_different, (x, y))), len(x) + len(y)
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
    return [Finding(HealthCheck.NO_POWER, message)]


def _is_decided(counts: Counts) -> bool:
    """Whether the event occurred in all runs on both datasets, or in none."""
    return counts.count_x + counts.count_y in (0, counts.runs_x + counts.runs_y)


_LITTLE = 0.1  # share of the claim that the runs must rule out before they say that the data do not matter


def conclude(
    settings: Settings,
    evidence: Evidence,
    ignored: frozenset[HealthCheck],
    *,
    of_datasets: tuple[Finding, ...] = (),
    of_runs: tuple[Finding, ...] = (),
    notes: tuple[str, ...] = (),
) -> AuditResult:
    """Make the result of an audit from its evidence.

    Parameters
    ----------
    settings : Settings
    evidence : Evidence
    ignored : frozenset of HealthCheck
        Checks of the event that are silenced.
    of_datasets, of_runs : tuple of Finding
        Failed checks of the datasets and of the runs' independence. A mutated dataset explains all other failures, so
        those are left out.
    notes : tuple of str
        Notes to be added to those of the evidence.
    """
    started, names = now(), evidence.kept.column_names
    evidence = with_names(evidence, names)
    x, y = evidence.kept.x, evidence.kept.y
    own: dict[str, Any]
    kind: type[AuditResult]
    of: Evidence = evidence  # the evidence that the result is about
    if isinstance(evidence, FixedSizeEvidence):
        tested, kind = _tested(settings, evidence), FixedSizeResult
        own, seconds = {"cells": evidence.cells}, dict(evidence.seconds)
    else:
        kind, seconds = SequentialResult, {}
        of = evidence.final or evidence
        tested = _bet_on(settings, evidence) if evidence.final is None else _tested_at_the_end(settings, evidence)
        last = replace(evidence.interim_analyses[-1], bound=tested.bound, pvalue=tested.pvalue)
        own = {
            "interim_analyses": (*evidence.interim_analyses[:-1], last),
            "stopped": "refuted" if tested.bound > settings.claim.parameter else evidence.stopped,
            "final_alpha": FINAL_SHARE * settings.alpha if evidence.has_final else 0.0,
            "is_closed": evidence.final is not None,
        }
    choice = of.kept.choice
    claim = settings.claim if tested.more_likely_on == "x" else settings.claim.reversed()
    found = None if tested.bound > claim.parameter else _detectable(settings, of, tested)
    unsteady = []
    if isinstance(of, FixedSizeEvidence) and of.is_in_order:
        tried = zip((choice, *choice.others), (of.counts, *of.other_counts), strict=True)
        unsteady = [
            finding
            for each, counts in tried
            for finding in pilot_findings(each, counts, of_runs, FALSE_ALARM * of.health_share)
        ]
    if isinstance(of, FixedSizeEvidence) and (net := of.portfolio.net) is not None:
        own |= {"net_events": net.n_events, "net_alpha": tested.net_alpha}
    excess = None if found is None else found.excess
    verdict = verdict_of(claim, tested.bound, excess, settings.resolution, of_runs)
    of_event = unsteady or event_findings(of, verdict, of_runs)
    findings = (*of_datasets, *of_runs, *(finding for finding in of_event if finding.check not in ignored))
    if any(finding.check is HealthCheck.DATASET_MUTATED for finding in of_datasets):
        findings = of_datasets
    low_bits = look_at_bits(x, y, settings.claim, choice, alpha=FALSE_WARNING) if settings.bits == "warn" else None
    low_bits = with_names(low_bits, names)
    result = kind(
        mechanism=settings.name,
        provenance=settings.provenance,
        claim=settings.claim,
        claim_source=settings.claim_source,
        pair=settings.pair,
        event=tested.event,
        more_likely_on=tested.more_likely_on,
        counts=tested.counts,
        opposite=tested.opposite,
        divergence=tested.divergence,
        alpha=settings.alpha,
        pvalue=tested.pvalue,
        bound=tested.bound,
        resolution=excess,
        resolution_basis="event" if found is None else found.basis,
        power=settings.power,
        requested_resolution=settings.resolution,
        runs=evidence.runs,
        pilot_runs=evidence.pilot_runs,
        searched=evidence.searched,
        seed=settings.seed,
        is_reproducible=evidence.is_reproducible,
        findings=findings,
        ignored=tuple(sorted(check.value for check in ignored)),
        notes=(*evidence.notes, *notes, *(() if findings else _of_silence(settings, evidence, tested))),
        sketch=sketch(x, y),
        versions=versions(),
        bits=settings.bits,
        low_bits=low_bits,
        **own,
    )
    if seconds:
        result.environment.update(seconds, seconds_test=round(now() - started, 3))
    return result


def _detectable(settings: Settings, evidence: Evidence, tested: _Tested) -> Detectable:
    """The smallest excess that these runs would have shown with the power of the settings."""
    choice, known, claim = evidence.kept.choice, _learned(evidence), settings.claim
    held = directed(claim, evidence.fresh_counts, choice.more_likely_on)
    errors = {"alpha": tested.event_alpha, "power": settings.power}
    if isinstance(evidence, SequentialEvidence):
        return detectable_sequentially(held.claim, held.counts, evidence.runs, known, **errors)
    if tested.opposite is not None:
        against = directed(claim, tested.opposite.counts, choice.more_likely_on).counts
        other = replace(tested.opposite, counts=against)
        found = detectable_by_guesses(claim, other, held.counts, evidence.runs, known, **errors)
    else:
        found = detectable(held.claim, held.counts, evidence.runs, known, **errors)
    if found.basis == "event" and tested.event is not choice.event:
        found = replace(found, basis="chosen")
    bins = evidence.portfolio.bins
    if bins is None or found.basis != "gaussian":
        return found
    counted = int(bins.known_x.sum()), evidence.counts.runs_x, evidence.counts.runs_y
    level = tested.event_alpha if tested.divergence is None else tested.divergence.alpha
    by_bins = detectable_by_divergence(claim, *counted, alpha=level, power=settings.power)
    return replace(found, excess=min(found.excess, by_bins))


def _learned(evidence: Evidence) -> Learned:
    """How well the pilot knows the events."""
    choice = evidence.kept.choice
    is_discrete = recur(evidence.kept.x, evidence.kept.y)
    events = [choice.event] + ([] if choice.opposite is None else [choice.opposite.event])
    ends = 0 if is_discrete else max(0 if isinstance(event, Outcomes) else ends_of(event) or 1 for event in events)
    return Learned(choice.pilot_counts, ends, is_discrete, any(map(_is_of_learned_sum, events)))


def _is_of_learned_sum(event: Event) -> bool:
    whole = event.event if isinstance(event, Apart) else event
    return isinstance(whole, Scored) and isinstance(whole.score, Additive)


def _of_silence(settings: Settings, evidence: Evidence, tested: _Tested) -> tuple[str, ...]:
    """A note if the event is as frequent on y as on x, to within a tenth of what the claim allows."""
    counts = tested.counts
    if tested.bound > 0.0 or settings.claim.parameter == 0.0 or evidence.runs <= FEW or not shows_no_difference(counts):
        return ()
    tenth = settings.claim.with_parameter(_LITTLE * settings.claim.parameter)
    p, q = (
        (seen + 0.5) / (runs + 1.0) for seen, runs in ((counts.count_x, counts.runs_x), (counts.count_y, counts.runs_y))
    )
    error = 2.0 * math.sqrt(p * (1 - p) / counts.runs_x + q * (1 - q) / counts.runs_y)
    if max(p, q) + error > float(tenth.max_power(min(p, q))[0]):
        return ()
    return ("no event told x from y in these runs; does the mechanism use its data?",)


@dataclass(frozen=True, slots=True)
class _Tested:
    """The event that decides, with the p-value and the bound at the audit's alpha.

    Attributes
    ----------
    event_alpha, net_alpha : float
        Error probabilities of the test of the chosen event, or of both events, and of the tests of plain events.
    opposite : OtherDirection, optional
        The event of the other direction, if both decide together.
    divergence : DivergenceTest, optional
        The test of a claim on divergences.
    """

    event: Event
    more_likely_on: Direction
    counts: Counts
    pvalue: float
    bound: float
    event_alpha: float
    net_alpha: float = 0.0
    opposite: OtherDirection | None = None
    divergence: DivergenceTest | None = None


def _tested(settings: Settings, evidence: FixedSizeEvidence, share: float = 1.0) -> _Tested:
    """Test event, net, divergences and cells, as far as they are counted, in a share of alpha.

    The largest bound counts: each of them exceeds the true privacy parameter with a probability of at most its part of
    alpha.
    """
    tested = _tested_by_events(settings, evidence, share)
    cells, divergence = evidence.cells, _divergence(settings, evidence, share)
    if divergence is not None:
        pvalue = min(tested.pvalue, divergence.pvalue / divergence.alpha * settings.alpha)
        bound = max(tested.bound, divergence.bound)
        tested = replace(tested, pvalue=min(1.0, pvalue), bound=bound, divergence=divergence)
    bound = 0.0 if cells is None else cells.parameter_lower(settings.claim)
    if bound <= max(tested.bound, settings.claim.parameter):
        return tested
    return replace(tested, pvalue=min(tested.pvalue, settings.alpha), bound=bound)


def _shares(settings: Settings, evidence: FixedSizeEvidence, share: float) -> tuple[float, float]:
    """Error probabilities of the event test and of the divergence test, in a share of alpha."""
    bins, net = evidence.portfolio.bins, evidence.portfolio.net
    part = 0.0 if net is None else net.part
    alpha = settings.event_alpha(share, has_cells=evidence.cells is not None, net=part)
    if bins is None:
        return alpha, 0.0
    of_divergence = settings.divergence_alpha(alpha, show_more=bins.show_more)
    return alpha - of_divergence, of_divergence


def _divergence(settings: Settings, evidence: FixedSizeEvidence, share: float) -> DivergenceTest | None:
    """The test of a claim on divergences; None for other claims."""
    bins, (_, alpha) = evidence.portfolio.bins, _shares(settings, evidence, share)
    if bins is None:
        return None
    coins = np.random.default_rng(sequence_of(evidence.coins, Stream.BIN_ORDER))
    *_, counts = evidence.portfolio.split(evidence.counted)
    return divergence_test(bins.known_x, bins.known_y, *counts, settings.claim, alpha=alpha, coins=coins)


def _tested_by_events(settings: Settings, evidence: FixedSizeEvidence, share: float) -> _Tested:
    """Test the chosen event, or both together, and the net; the event with the largest bound decides."""
    choice, counts, net = evidence.kept.choice, evidence.counts, evidence.portfolio.net
    alpha, _ = _shares(settings, evidence, share)
    if choice.opposite is None:
        tested = _of_one(settings, choice, counts, alpha)
    else:
        tested = _of_both(settings, choice, counts, evidence.other_counts[0], alpha, evidence.coins)
    tested = replace(tested, pvalue=min(1.0, tested.pvalue * (settings.alpha / alpha)))
    if net is None:
        return tested
    level, (in_cells, *_) = settings.net_alpha(net.part, share), evidence.portfolio.split(evidence.counted)
    tested, (on_x, on_y) = replace(tested, net_alpha=level), in_cells
    plain = net_test(
        net.counts(on_x),
        net.counts(on_y),
        *evidence.counted.runs,
        settings.claim,
        net.weights,
        alpha=level,
        known=tested.bound,
    )
    if plain is None:
        return tested
    tested = replace(tested, pvalue=min(tested.pvalue, plain.pvalue * settings.alpha / level))
    if plain.bound <= tested.bound:
        return tested
    more_likely_on, counts = plain.more_likely_on, plain.counts
    # The complement of a frequent event says the same in the other direction, and is what a reader looks for.
    is_outside = is_symmetric(settings.claim) and counts.count_x + counts.count_y > 0.5 * (
        counts.runs_x + counts.runs_y
    )
    if is_outside:
        more_likely_on, counts = "y" if more_likely_on == "x" else "x", counts.outside()
    event = net.event(plain.index, outside=is_outside)
    return replace(tested, event=event, more_likely_on=more_likely_on, counts=counts, opposite=None, bound=plain.bound)


def _of_one(settings: Settings, choice: Choice, counts: Counts, alpha: float) -> _Tested:
    """The test of one event in its direction."""
    held = directed(settings.claim, counts, choice.more_likely_on)
    pvalue, bound = joint_test(held.counts, held.claim, alpha=alpha)
    return _Tested(choice.event, choice.more_likely_on, counts, pvalue, bound, alpha)


def _of_both(settings: Settings, choice: Choice, counts: Counts, against: Counts, alpha: float, seed: int) -> _Tested:
    """The test of an event together with that of the other direction; the seed is that of the coins."""
    assert choice.opposite is not None
    coins = np.random.default_rng(sequence_of(seed, Stream.COINS))
    on_x, on_y = (counts, against) if choice.more_likely_on == "x" else (against, counts)
    guesses, fits = guesses_by_coins(on_x, on_y, coins)
    pvalue, bound = guess_test(guesses, settings.claim, alpha=alpha, fits=fits)
    opposite = OtherDirection(event=choice.opposite.event, counts=against, guesses=guesses)
    return _Tested(choice.event, choice.more_likely_on, counts, pvalue, bound, alpha, opposite=opposite)


def _bet_on(settings: Settings, evidence: SequentialEvidence) -> _Tested:
    """The event last bet on, with what the bets say."""
    choice, last = evidence.kept.choice, evidence.interim_analyses[-1]
    alpha = settings.bet_alpha(has_final=evidence.has_final)
    return _Tested(
        choice.event,
        choice.more_likely_on,
        evidence.counts,
        last.pvalue,
        last.bound,
        alpha,
        opposite=evidence.opposite,
        divergence=evidence.divergence,
    )


def _tested_at_the_end(settings: Settings, evidence: SequentialEvidence) -> _Tested:
    """The final test, with the p-value and the bound of bets and test together."""
    assert evidence.final is not None
    last, tested = evidence.interim_analyses[-1], _tested(settings, evidence.final, FINAL_SHARE)
    return replace(tested, pvalue=min(last.pvalue, tested.pvalue), bound=max(last.bound, tested.bound))
