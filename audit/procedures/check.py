"""The audit: pilot runs choose an event, fresh runs are counted, the counts are tested.

Proofs: docs/proofs/choices.md, docs/proofs/joint-test.md
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from ..claims.claim import Claim, ClaimAtDistance, claim_at
from ..clock import now
from ..datasets.adjacency import AddRemove, Adjacency, Replace, UserLevel, on_tuples
from ..datasets.description import notes_on_texts
from ..errors import OptionError
from ..events.features import noting_left_out
from ..events.outputs import Outputs, are_equal
from ..floating_point_errors import with_own_arithmetic
from ..health.event_checks import are_same
from ..health.findings import Finding, HealthCheck, Snapshot, checks_to_ignore, take_snapshot
from ..inference.event_test import Directed, check_test_alpha, directed
from ..inference.guess_test import Guesses, coins_for
from ..known_options import with_known_options
from ..options import DEFAULTS, LEAST_RUNS, MOST_RUNS, USUAL_RUNS, Budget, Options, check_sequential, checked_seed
from ..portfolio.choice import Choice, directed_shares
from ..power.joint_test_power import Alternative, AsLikely, GaussianNoise, event_of, power_of_test, runs_needed
from ..progress import Meter, told
from ..random_streams import Stream, seed_of
from ..results.audit_result import AuditResult, InterimAnalysis
from ..results.claim_pair_and_alpha import FINAL_SHARE, Settings, pair_of, stated
from ..sampling.block_plan import Plan
from ..sampling.draw import plan_blocks
from ..sampling.object_identity import source_of
from ..sampling.pilot_and_batch_sizes import main_runs, pilot_runs, with_pilot
from ..sampling.sampler import OutputPart, Sampler, as_sampler, picked, provenance_of_part
from ..settings import or_setting
from ..store.store_settings import arrangements, code_of, sources
from .detectable_excess import SHARE, UNKNOWN, guessed, is_gaussian, power_of_the_test, shows_divergence
from .fixed_size import EarlierDraws, FixedSizeAudit

if TYPE_CHECKING:
    from ..exact.exact_result import ExactResult
    from ..store.sqlite_store import Store, StorePart
    from .sequential import SequentialAudit

# Number of runs that an audit needs to detect a given excess, for the event that a first pilot chooses.

# Runs of the first audit, whose pilot of a thousand says how many the second has: docs/decisions/0025-limits.md.
_FIRST = 2_000
_GROWTH = 1.1  # of the runs until they suffice, so that they exceed the need by a tenth at most
_MARGIN = 0.96  # planned for slightly less than the request, since the event's frequency is only known at the end
_ERRORS = (-2.0, 2.0)  # deviations of that frequency, in standard errors, for which the runs have to suffice too


def runs_for(plan: Plan, settings: Settings, *, sequential: bool) -> int:
    """Runs on each dataset with which an audit detects the requested excess with the power of the settings.

    An event is chosen on a small pilot, and again on the pilot of an audit of the size found, which decides. These
    outputs have their own seed and are not used again. A sequential audit is sized for its final test.
    """
    if settings.detect is None:
        return USUAL_RUNS
    plan = replace(
        plan,
        seed=seed_of(plan.seed, Stream.SIZING),
        memory=None if plan.memory is None else plan.memory.part("sizing"),
    )
    claim, power, of_alpha = settings.claim, power_of_the_test(settings.power), FINAL_SHARE if sequential else 1.0
    needed, excess, share, alpha = _FIRST, _MARGIN * settings.detect, 0.0, settings.alpha
    alternatives: list[Alternative] = []
    for _ in range(2):
        audit = FixedSizeAudit(plan, settings, needed)
        audit.pilot()
        assert audit.portfolio is not None
        choice, net, share = audit.portfolio.choice, audit.portfolio.net, audit.pilot_runs / needed
        alpha = settings.event_alpha(of_alpha, net=0.0 if net is None else net.part)
        if choice.pilot_count_x == choice.pilot_count_y == 0:  # outputs never vary: nothing to plan for
            return _FIRST
        tested = directed(claim, choice.pilot_counts, choice.more_likely_on)
        alternatives, q = [], choice.pilot_counts.count_y / choice.pilot_runs
        if claim.divergence_slopes and is_gaussian(tested.claim, tested.counts, excess):
            level = settings.divergence_alpha(alpha, show_more=True)
            needed = runs_by_divergence(claim, excess, alpha=level, power=settings.power)
            continue
        if choice.opposite is not None:
            main = _by_guesses(claim, _guesses(choice), excess, alpha=alpha, power=settings.power)
        else:
            alternatives = _alternatives(tested, choice.pilot_runs, excess)
            try:
                main = runs_needed(tested.claim, alternatives[0], excess=excess, power=power, alpha=alpha)
            except OptionError:  # which names the planned excess, not the requested one
                raise _too_many(settings.detect) from None
            q = event_of(tested.claim, excess, alternatives[0]).q
        needed = max(with_pilot(main, q), LEAST_RUNS)
        if audit.pilot_runs > pilot_runs(needed):  # a rare event needs a longer pilot
            needed = max(needed, math.ceil(main / (1.0 - share)))
        _check_size(needed, settings.detect)
    deep = share if share > pilot_runs(needed) / needed else 0.0
    while not all(_power(tested.claim, needed, deep, each, excess, alpha) >= power for each in alternatives):
        needed = math.ceil(needed * _GROWTH)
        _check_size(needed, settings.detect)
    return needed


def _guesses(choice: Choice) -> Guesses:
    """Guesses in the pilot by both events, with two standard errors fewer right ones than there were."""
    assert choice.opposite is not None
    runs = 2 * min(choice.pilot_runs, choice.opposite.pilot_runs)
    first, second = (directed_shares(each) for each in (choice, choice.opposite))
    right, wrong = (0.5 * runs * (one + other) for one, other in zip(first, second, strict=True))
    fewer = max(1.0 - 2.0 / math.sqrt(max(right, 1.0)), 0.25)
    return Guesses(correct=math.ceil(fewer * right), incorrect=math.ceil(fewer * wrong), runs=runs)


def _fewest(detects: Callable[[int], bool], excess: float) -> int:
    """Fewest runs, to a percent, with which the excess is detected."""
    low, high = LEAST_RUNS, 2 * LEAST_RUNS
    while not detects(high):
        low, high = high, 2 * high
        _check_size(high, excess / _MARGIN)
    while high > 1.01 * low + 1:
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if detects(middle) else (middle, high)
    return high


def runs_by_divergence(claim: Claim, excess: float, *, alpha: float, power: float) -> int:
    """The runs on each dataset with which Gaussian noise of this excess is detected in bins, to a percent."""

    def detects(runs: int) -> bool:
        known = pilot_runs(runs)
        return shows_divergence(claim, excess, known, runs - known, runs - known, alpha=alpha, power=power)

    return _fewest(detects, excess)


def _by_guesses(claim: Claim, guesses: Guesses, excess: float, *, alpha: float, power: float) -> int:
    """Main runs on each dataset with which guesses as frequent as these detect the excess, to a percent."""

    def detects(main: int) -> bool:
        runs = coins_for(main)
        right, wrong = (round(each * runs / guesses.runs) for each in (guesses.correct, guesses.incorrect))
        expected = Guesses(correct=right, incorrect=wrong, runs=runs)
        return guessed(claim, expected, 2 * main, UNKNOWN, alpha=alpha, power=power).excess <= excess

    return _fewest(detects, excess)


def _alternatives(tested: Directed, runs: int, excess: float) -> list[Alternative]:
    """The planned event, and events within the uncertainty of its frequencies in so many runs."""
    if is_gaussian(tested.claim, tested.counts, excess):
        return [GaussianNoise(SHARE)]
    p, q = ((side + 0.5) / (runs + 1.0) for side in (tested.counts.count_x, tested.counts.count_y))
    moved = [[rate + z * math.sqrt(rate * (1 - rate) / runs) for rate in (p, q)] for z in (0.0, *_ERRORS)]
    return [AsLikely(*rates) for rates in moved if all(0.0 < rate < 1.0 for rate in rates)]


def _power(claim: Claim, runs: int, deep: float, alternative: Alternative, excess: float, alpha: float) -> float:
    longest = max(runs - main_runs(runs, event_of(claim, excess, alternative).q), math.ceil(deep * runs))
    return power_of_test(claim, runs - longest, runs - longest, alternative, excess, alpha=alpha)


def _check_size(runs: int, detect: float) -> None:
    if runs > MOST_RUNS:
        raise _too_many(detect)


def _too_many(detect: float) -> OptionError:
    return OptionError(
        f"detect={detect:g} takes more than {MOST_RUNS:,} runs; use a larger excess, or set runs=.", detect=detect
    )


_LOG = logging.getLogger("dpaudit")
_STATE = "the mechanism keeps state from run to run, so one process drew all runs, regardless of the number of workers"
_FIXED = "calls give the same outputs with every rng, so each run was drawn by a call with size=1"


@overload
def check(
    mechanism: Any, x: Any, y: Any, *,
    claim: Claim | ClaimAtDistance | float | tuple[float, float] | None = ..., adjacency: Adjacency | str | None = ...,
    runs: int | None = ..., alpha: float = ..., seed: int | None = ..., sequential: bool = ...,
    output: OutputPart | None = ..., distance: float = ..., exact: Literal[False] = ..., **options: Any,
) -> AuditResult: ...  # fmt: skip
@overload
def check(
    mechanism: Any, x: Any, y: Any, *,
    claim: Claim | ClaimAtDistance | float | tuple[float, float] | None = ..., adjacency: Adjacency | str | None = ...,
    output: OutputPart | None = ..., distance: float = ..., exact: Literal[True] | Budget, **options: Any,
) -> ExactResult: ...  # fmt: skip
@with_known_options(DEFAULTS)
def check(
    mechanism: Any,
    x: Any,
    y: Any,
    *,
    claim: Claim | ClaimAtDistance | float | tuple[float, float] | None = None,
    adjacency: Adjacency | str | None = None,
    runs: int | None = None,
    alpha: float = 0.05,
    seed: int | None = 0,
    sequential: bool = False,
    output: OutputPart | None = None,
    distance: float = 1,
    exact: bool | Budget = False,
    **options: Any,
) -> Any:
    """Audit a mechanism's privacy claim on one pair of datasets.

    With probability at most `alpha`, over all events, both directions and every choice made here, the audit refutes a
    mechanism that keeps its claim.

    Parameters
    ----------
    mechanism : callable or object
        A vectorised mechanism ``f(dataset, size, rng)``, which draws `size` runs; an object with
        ``sample(dataset, size, rng)``; or a function of a single run, ``f(dataset, rng)`` or ``f(dataset)``. Outputs
        are numbers, vectors, or anything hashable.
    x, y : Any
        The two datasets, neighbours in any form that the mechanism takes.
    claim : Claim, float, (float, float) or callable, optional
        The guarantee at distance 1: a claim such as ``GaussianDP(0.5)``; ε for ``PureDP(ε)``; (ε, δ) for
        ``ApproxDP(ε, δ)``; or a function from the distance to a claim. The default is the mechanism's attribute
        `claim`, which adapters and the reference mechanisms have.
    adjacency : Adjacency or str, optional
        Neighbour relation that the pair is checked against, such as ``AddRemove()`` or "add-remove"; the default is the
        mechanism's attribute `adjacency`. Without either the caller declares the pair to be `distance` apart; the
        result says so, and warns if the datasets differ in more rows.
    runs : int, optional
        Runs on each dataset, including the pilot that chooses the event; for a sequential audit, the most it may take.
        The default is the number that ``detect=`` needs; else that of `settings`, one million, or as many as the time
        allows.
    alpha : float
        Largest allowed probability of refuting a correct mechanism, in (0, 1).
    seed : int or None
        Random seed, which fixes every number for any number of workers. None draws a seed, which the result
        records.
    sequential : bool
        Whether to stop as soon as the claim is refuted, as an audit with `seconds` always does. The bound stays valid.
    output : str, int or callable, optional
        Part of the outputs to audit instead of the whole: a column, key, field or attribute, or a path of these such as
        "stats.mean"; a place; or a function of one output (of a vectorised mechanism's whole chunk).
    distance : float
        Distance between x and y. Beyond 1 the audit tests the group-privacy version of the claim.
    exact : bool or Budget
        For code whose only randomness is discrete: instead of sampling, execute it down every branch of its draws. The
        result is VERIFIED or REFUTED with certainty, for ideal coins, or UNDETERMINED; alpha, runs and seed have no
        use. A `dpaudit.exact.Budget` says where that ends.
    **options
        `detect`, `power`, `seconds` (makes the audit sequential), `bins`, `floating_point`, `ignore`, `name`,
        `claim_source`, `keep_datasets`, `jobs`, `progress`, `on_interim`, `chunk_seconds` and `store`: see `settings`,
        which explains them and sets most of them for many calls.

    Returns
    -------
    AuditResult or ExactResult
        A `FixedSizeResult`, or a `SequentialResult` if the audit was sequential; an `ExactResult` if it was exact.

    Raises
    ------
    ClaimError, AdjacencyError, DatasetError, OptionError
        For arguments outside their range.
    MechanismError
        If the mechanism cannot be run, or every pilot run raises; for an exact audit, with the line that it cannot
        follow.
    StoreError
        If the store belongs to another audit, is in use, damaged or full.

    See Also
    --------
    find_worst_pair : Search for the pair first.
    check_outputs : Outputs that were drawn elsewhere.
    replay : The line of code that exceeds the claim.

    Notes
    -----
    Runs are assumed to be independent, which health checks test. The pilot takes one run in twenty, but at least 2,000
    (or half of a small number of runs), and a quarter of them where outputs have several columns or a shorter one
    promises no bound. It chooses an event S; the other runs count S, and are divided between the two datasets, at most
    four to one, as makes the test most precise. A claim Pr[M(x) ∈ S] ≤ B(Pr[M(y) ∈ S]) is refuted if an exact test
    rejects it. A sequential audit spends half of alpha on bets that may stop it early, and half on a final test.

    References
    ----------
    Jagielski, Ullman & Oprea (2020), Auditing differentially private machine learning. Ville (1939) for the bets.
    Proofs: docs/proofs/choices.md, docs/proofs/joint-test.md, docs/proofs/wealth.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import AddRemove, PureDP, check
    >>> def noisy_count(rows, size, rng):
    ...     return len(rows) + rng.laplace(scale=0.8, size=size)
    >>> result = check(noisy_count, np.ones(3), np.ones(2), claim=PureDP(1.0), adjacency=AddRemove(), runs=100_000)
    >>> result.verdict.value, 1.2 < result.bound < 1.25  # the scale allows ε = 1 / 0.8
    ('refuted', True)
    """
    given: dict[str, Any] = {
        "claim": claim, "adjacency": adjacency, "runs": runs, "alpha": alpha, "seed": checked_seed(seed),
        "sequential": sequential, "output": output, "distance": distance, "exact": exact,
    }  # fmt: skip
    chosen = Options(**given, **options)
    if exact:
        from ..exact.exact_audit import audit_pairs  # only where an audit needs it

        return audit_pairs(mechanism, [(x, y)], chosen)
    return audit_pair(mechanism, x, y, chosen)


@with_own_arithmetic
def audit_pair(mechanism: Any, x: Any, y: Any, options: Options, earlier: EarlierDraws | None = None) -> AuditResult:
    """Audits the pair as `check` does, with outputs drawn `earlier` on it as the beginning of its pilot."""
    started = now()
    # A search has made the sampler already, and knows the form of its outputs.
    sampler = sampler_of(mechanism, options) if earlier is None else earlier.plan.sampler
    sequential = options.sequential or options.seconds is not None
    said = stated(mechanism, options.claim, options.adjacency, options.claim_source)
    pair = pair_of(sampler, x, y, said.adjacency, options)
    check_sequential(options, sequential, options.runs)
    settings = Settings(
        claim=claim_at(said.claim, options.distance),
        claim_source=said.source,
        pair=pair,
        alpha=check_test_alpha(options.alpha),
        detect=options.detect,
        power=options.power,
        name=sampler.name,
        provenance=provenance_of_part(sampler),
        seed=options.seed,
        floating_point=options.floating_point,
    )
    ignored = checks_to_ignore(options.ignore)
    until = None if options.seconds is None else started + options.seconds
    runs = runs_or_setting(options)
    # With a time limit there is a final test only if runs are planned, and time is not unlimited.
    has_final = sequential and (until is None or (runs is not None and until != math.inf))
    settings.check_shares(FINAL_SHARE if has_final else 1.0, options.bins)
    is_sized = runs is None and until is None
    snapshot = take_snapshot(x, y)
    with (
        _opened(options.store) as store,  # before the first run, so that an unusable folder costs no run
        told(options.progress, sampler.name) as meter,
    ):
        sampler = meter.watch(sampler)
        planned = USUAL_RUNS if runs is None and settings.detect is None else runs
        expect(meter, planned, sequential=sequential, is_limited=until not in (None, math.inf))
        if meter is not options.progress:  # no part of a search
            meter.way_on = continues(options.seed, is_kept=store is not None)
            meter.way_on += "" if sequential else "; sequential=True has a verdict at any time"

        drawn_from = {} if store is None else sources(code_of(sampler), x, y)
        plan = plan_blocks(sampler, x, y, options.seed, options.jobs, runs=runs)
        if store is not None:
            wanted = drawn_from | arrangements(
                plan, settings, runs, options.bins, sequential=sequential, has_final=has_final
            )
            wanted |= {"runs of a search": "none" if earlier is None else str(earlier)}
            plan = replace(plan, memory=store.section(sampler.name, wanted))
            plan.check_heads()
        with noting_left_out() as left_out:
            if is_sized:
                runs = runs_for(plan, settings, sequential=sequential)
                plan = plan.for_runs(runs)
                if runs != planned:
                    expect(meter, runs, sequential=sequential)
            meter.chunk = plan.block
            audit: FixedSizeAudit | SequentialAudit
            common: dict[str, Any] = {"earlier": earlier, "progress": meter}
            if sequential:
                from .sequential import SequentialAudit  # only where an audit needs it

                watchers: list[Callable[[InterimAnalysis], bool | None]] = [meter.interim]
                watchers += [] if options.on_interim is None else [options.on_interim]
                audit = SequentialAudit(plan, settings, runs, until, watchers, has_final=has_final, **common)
            else:
                assert runs is not None  # only a sequential audit may have a time limit
                audit = FixedSizeAudit(plan, settings, runs, n_bins=options.bins, **common)
            audit.is_sized = is_sized
            tuples = on_tuples(x) if isinstance(said.adjacency, (AddRemove, Replace, UserLevel)) else ""
            notes = notes_on_texts(x, y)
            conclude = partial(_conclude, audit, snapshot, ignored, notes, left_out, if_refuted=tuples, started=started)
            meter.best = lambda: conclude() if audit.stop() else None
            audit.run()
        return conclude()


def _conclude(
    audit: FixedSizeAudit | SequentialAudit,
    snapshot: Snapshot,
    ignored: frozenset[HealthCheck],
    notes: tuple[str, ...],
    left_out: Mapping[str, str],
    *,
    if_refuted: str,
    started: float,
) -> AuditResult:
    """The result of the runs so far, with what is to be said of the datasets.

    `left_out` says what was not examined, and `if_refuted` what a refutation means, if anything is to be said of it.
    """
    plan = audit.plan
    result = audit.conclude(
        ignored,
        of_datasets=(*snapshot.examine(ignored, plan.changed), *_of_the_clock(plan, audit.x, audit.y, ignored)),
        notes=(
            *notes,
            *([_STATE] if plan.is_stateful and not plan.sampler.is_block else []),
            *([_FIXED] if plan.sampler.call.is_one_by_one else []),
            *left_out.values(),
        ),
    )
    if result.is_refuted and if_refuted:
        result = replace(result, notes=(if_refuted, *result.notes))
    result.environment.update(seconds=round(now() - started, 3), **source_of(plan.sampler.function))
    if _LOG.isEnabledFor(logging.INFO):
        _LOG.info("%s: %s", result.mechanism, result.sentence)
    return result


def _of_the_clock(plan: Plan, x: Outputs, y: Outputs, ignored: frozenset[HealthCheck]) -> list[Finding]:
    """Find noise that is the same in all runs, one output on x and another on y, until the clock moves on."""
    if HealthCheck.DUPLICATE_OUTPUTS in ignored or not (are_same(x) and are_same(y)) or are_equal(x[:1], y[:1]):
        return []
    time.sleep(1.0 - time.time() % 1.0)  # a seed of whole seconds then differs
    if are_equal(plan.draw("pilot", "x", 0, 1), x[:1]):
        return []
    message = (
        "all runs on x gave the same output, and a run in the next second another one: the noise follows the clock, "
        "so the runs are not independent. Draw new noise in every run."
    )
    return [Finding(HealthCheck.DUPLICATE_OUTPUTS, message)]


def expect(meter: Meter, runs: int | None, *, sequential: bool, is_limited: bool = False) -> None:
    """Tell the meter of the runs on two datasets, and what shortens them; nothing of a call that has a time limit."""
    if is_limited:
        meter.expect(None)
    elif runs is None:  # they are chosen first
        meter.expect(2 * pilot_runs(_FIRST), is_planning=True)
    else:
        meter.expect(2 * runs, is_most=sequential)
        early = [] if sequential else ["sequential=True"]
        fewer = "fewer runs= (`dpaudit plan` says what they detect)"
        meter.ways = (fewer, "seconds=", *early, *(["replay, which takes 130 runs"] if meter.is_replayable else []))


def continues(seed: int | None, *, is_kept: bool) -> str:
    """How to go on after an interruption; the seed is named because the call may have left it to chance."""
    call = f"the same call{f' with seed={seed}' if seed else ''} continues"
    return f"{call} with the kept draws" if is_kept else f'with store="folder" {call}'


def _opened(store: Store | StorePart | str | Path | None) -> AbstractContextManager[Store | StorePart | None]:
    """The store, if there is one, whose module takes as long to import as an audit."""
    if store is None:
        return nullcontext()
    from ..store.sqlite_store import opened

    return opened(store)


def sampler_of(mechanism: Any, options: Options) -> Sampler:
    """Return the sampler of a mechanism with the name, the part of the outputs and the time limit of these options."""
    sampler = picked(as_sampler(mechanism, options.name), options.output)
    return replace(sampler, chunk_seconds=options.chunk_seconds)


def runs_or_setting(options: Options) -> int | None:
    """The runs of the call, or those of the settings if nothing in the call determines their number."""
    if options.runs is None and options.detect is None and options.seconds is None:
        return or_setting("runs", None)  # type: ignore[no-any-return]
    return options.runs
