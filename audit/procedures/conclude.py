"""From the evidence of an audit to its result: the test, the checks of the event, and the detectable excess."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from ..distinguishers.low_bits_warning import look_at_bits
from ..events.events import Event
from ..events.pilot_histogram import sketch
from ..health.findings import Finding, HealthCheck
from ..inference.counts import Counts
from ..inference.direction import Direction, directed
from ..inference.joint_test import joint_test
from ..inference.outcome_test import outcome_test
from ..results.audit_result import AuditResult, verdict_of
from ..results.audit_settings import Settings
from ..results.fixed_size_result import FixedSizeResult
from ..results.sequential_result import SequentialResult
from ..sampling.provenance import versions
from .detectable_excess import detectable, detectable_sequentially
from .event_checks import event_findings, pilot_findings
from .evidence import Evidence, FixedSizeEvidence


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
    started = time.perf_counter()
    choice, x, y, power = evidence.kept.choice, evidence.kept.x, evidence.kept.y, settings.power
    held = directed(settings.claim, evidence.fresh_counts, choice.likelier_on)
    own: dict[str, Any]
    if isinstance(evidence, FixedSizeEvidence):
        tested = _tested(settings, evidence)
        found = detectable(held.claim, held.counts, evidence.runs, alpha=tested.event_alpha, power=power)
        kind: type[AuditResult] = FixedSizeResult
        own = {"cells": evidence.cells}
        if evidence.outcomes is not None:
            own |= {"n_outcomes": evidence.outcomes.n_cells, "outcome_alpha": settings.outcome_alpha}
        unsteady = pilot_findings(choice, evidence.counts, of_runs) if evidence.is_in_order else []
        seconds = dict(evidence.seconds)
    else:
        last = evidence.looks[-1]
        tested = _Tested(choice.event, choice.likelier_on, evidence.counts, last.p_value, last.bound, settings.alpha)
        found = detectable_sequentially(held.claim, held.counts, evidence.runs, alpha=settings.alpha, power=power)
        kind = SequentialResult
        own = {"looks": evidence.looks, "stopped": evidence.stopped, "is_closed": evidence.is_closed}
        unsteady, seconds = [], {}
    verdict = verdict_of(held.claim, tested.bound, found.excess, settings.resolution, of_runs)
    stated = found.excess if settings.resolution is None else None
    of_event = unsteady or event_findings(evidence, held.claim, verdict, stated)
    findings = (*of_datasets, *of_runs, *(finding for finding in of_event if finding.check not in ignored))
    if any(finding.check is HealthCheck.DATASET_MUTATED for finding in of_datasets):
        findings = of_datasets
    low_bits = look_at_bits(x, y, settings.claim, choice) if settings.bits == "warn" else None
    result = kind(
        mechanism=settings.name,
        provenance=settings.provenance,
        claim=settings.claim,
        claim_source=settings.claim_source,
        pair=settings.pair,
        event=tested.event,
        likelier_on=tested.likelier_on,
        counts=tested.counts,
        alpha=settings.alpha,
        p_value=tested.p_value,
        bound=tested.bound,
        resolution=found.excess,
        resolution_basis=found.basis,
        power=power,
        requested_resolution=settings.resolution,
        runs=evidence.runs,
        pilot_runs=evidence.pilot_runs,
        seed=settings.seed,
        is_replayable=evidence.is_replayable,
        findings=findings,
        ignored=tuple(sorted(check.value for check in ignored)),
        notes=(*evidence.notes, *notes),
        sketch=sketch(x, y),
        versions=versions(),
        bits=settings.bits,
        low_bits=low_bits,
        **own,
    )
    if seconds:
        result.environment.update(seconds, seconds_test=round(time.perf_counter() - started, 3))
    return result


@dataclass(frozen=True, slots=True)
class _Tested:
    """The event that decides, with its p-value and bound at the audit's alpha."""

    event: Event
    likelier_on: Direction
    counts: Counts
    p_value: float
    bound: float
    event_alpha: float  # error probability of the test of the event that the pilot chose


def _tested(settings: Settings, evidence: FixedSizeEvidence) -> _Tested:
    """Test the event that the pilot chose, and every single outcome if outcomes recur; keep what refutes more."""
    choice, outcomes = evidence.kept.choice, evidence.outcomes
    alpha = settings.event_alpha(has_cells=evidence.cells is not None, has_outcomes=outcomes is not None)
    held = directed(settings.claim, evidence.counts, choice.likelier_on)
    p_value, bound = joint_test(held.counts, held.claim, alpha=alpha)
    chosen = _Tested(choice.event, choice.likelier_on, evidence.counts, p_value, bound, alpha)
    if outcomes is None:
        return chosen
    runs_x, runs_y = evidence.counts.runs_x, evidence.counts.runs_y
    single = outcome_test(*evidence.outcome_hits, runs_x, runs_y, settings.claim, alpha=settings.outcome_alpha)
    p_value = min(1.0, p_value * settings.alpha / alpha)
    if single is None:
        return replace(chosen, p_value=p_value)
    p_value = min(p_value, single.p_value * settings.alpha / settings.outcome_alpha)
    if single.bound <= max(bound, settings.claim.strength):
        return replace(chosen, p_value=p_value)
    return _Tested(outcomes.event(single.index), single.likelier_on, single.counts, p_value, single.bound, alpha)
