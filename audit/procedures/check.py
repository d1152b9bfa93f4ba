"""The audit: pilot runs choose an event, fresh runs are counted, the counts are tested.

Proofs: docs/proofs/choices.md, docs/proofs/joint-test.md
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

from ..claims.at_distance import ClaimAtDistance, claim_at
from ..claims.claim import Claim
from ..clock import now
from ..datasets.adjacency import AddRemove, Adjacency, Replace, UserLevel, on_tuples
from ..datasets.description import difference_and_rows, is_empty, notes_on_texts, summarise
from ..errors import DatasetError
from ..events.features import noting_left_out
from ..events.outcome_text import printed
from ..floating_point_errors import with_own_arithmetic
from ..health.dataset_checks import take_snapshot
from ..health.findings import FALSE_ALARM, checks_to_ignore
from ..health.run_independence import examine
from ..inference.joint_test import check_test_alpha
from ..known_options import with_known_options
from ..options import MOST_RUNS, check_sequential, checked
from ..progress import Shown, told
from ..results.audit_result import AuditResult, Pair
from ..results.audit_settings import FINAL_SHARE, Settings
from ..results.interim_look import Look
from ..results.verdict import largest_excess
from ..sampling.block_plan import Plan
from ..sampling.draw import plan_blocks
from ..sampling.picked import picked, provenance_of_part
from ..sampling.sampler import Sampler, as_sampler
from ..sampling.source_place import source_of
from ..settings import or_setting
from ..store.sqlite_store import opened
from ..store.store_settings import arrangements, code_of, sources
from .check_options import DEFAULTS, CheckOptions, Options
from .conclude import conclude
from .earlier_draws import EarlierDraws
from .evidence import Evidence
from .fixed_size import draw_fixed_size
from .mechanism_claim import stated
from .runs_needed import enough_for, runs_for
from .sequential import draw_sequentially

_LOG = logging.getLogger("dpaudit")
_STATE = "the mechanism keeps state from run to run, so one process drew all runs, regardless of the number of workers"
_RUNS = 1_000_000  # if neither runs nor a resolution is requested


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
    resolution: float | None = None,
    **options: Unpack[CheckOptions],
) -> AuditResult:
    """Audits a mechanism's privacy claim on one pair of datasets.

    With probability at most `alpha`, over all events, both directions and every choice made here, the audit refutes a
    mechanism that keeps its claim.

    Parameters
    ----------
    mechanism : callable or object
        A block sampler ``f(dataset, size, rng)``, which draws `size` runs; an object with
        ``sample(dataset, size, rng)``; or a function of a single run, ``f(dataset, rng)`` or ``f(dataset)``. Outputs
        are numbers, vectors, or anything hashable.
    x, y : Any
        Neighbouring datasets, in any form that the mechanism takes.
    claim : Claim, float, (float, float) or callable, optional
        The guarantee at distance 1: a claim such as ``GaussianDP(0.5)``; ε for ``PureDP(ε)``; (ε, δ) for
        ``ApproxDP(ε, δ)``; or a function from the distance to a claim. The default is the mechanism's attribute
        `claim`, which adapters and the reference mechanisms have.
    adjacency : Adjacency or str, optional
        Neighbour relation that the pair is checked against, such as ``AddRemove()`` or "add-remove"; the default is the
        mechanism's attribute `adjacency`. Without either the caller declares the pair to be `distance` apart; the
        result says so, and warns if the datasets differ in more rows.
    runs : int, optional
        Runs on each dataset, including the pilot that chooses the event. The pilot takes one run in twenty, but at
        least 2,000 (or half of a small number of runs), and a third if the best event is rare. The other runs, twice
        as many on both datasets together, may be divided unevenly between the two, at most four to one, where that
        makes the test of the event more precise: `counts` has them. For a sequential audit, the most runs it may take.
        The default is the number that the `resolution` needs; without a resolution that of `dpaudit.settings`, one
        million, or as many as the `seconds` allow.
    alpha : float
        Largest allowed probability of refuting a correct mechanism, in (0, 1).
    seed : int or None
        Random seed, which fixes every number for any number of workers. None draws a seed, which the result
        records.
    sequential : bool
        Whether to stop as soon as the claim is refuted. The bound stays valid. Half of alpha is for the bets that may
        stop the audit early, half for a final test when all `runs` are done: one like that of an audit of fixed size,
        which finds what such an audit finds at half of alpha.
    resolution : float, optional
        Excess over the claim's strength that the audit has to detect; an audit with too few `runs` for it is
        INCONCLUSIVE. Without `runs` the audit takes the runs that it needs, within the `seconds` if there are any, and
        states the resolution that it reached. Without a resolution an audit is INCONCLUSIVE if it does not detect twice
        the claim (for a claim of 0: a strength of 1, or half of the family's largest); a larger one accepts that.
    **options
        Those below; `dpaudit.settings` sets `jobs`, `progress` and `block_seconds` for many calls.

    Other Parameters
    ----------------
    output : str, int or callable, optional
        Part of the outputs to audit instead of the whole: a column, key, field or attribute, or a path of these such as
        "stats.mean"; a place; or a function of one output (of a block sampler's whole block).
    distance : float
        Distance between x and y. Beyond 1 the audit tests the group-privacy version of the claim.
    power : float
        Probability with which an excess of `resolution` is detected, in (0, 1); .95 by default.
    seconds : float, optional
        Time limit of a sequential audit, whose last batch is cut to fit. The audit makes at least 40 runs on each
        dataset, and 32 more to learn the names of outputs that are records, and completes a batch that a `store`
        recorded as begun. The final test is made only if `runs` are given and done in time. Without `runs`, or with
        ``float("inf")`` seconds, none is planned and the bets have all of alpha; so to repeat an audit that had a limit
        and no `runs`, set `runs` to the number it reached, and ``seconds=float("inf")``.
    cells : int
        Number of cells of outputs to count in addition to the event, such as 32; 0 for none. The result then has the
        likelihood ratio of each cell, the privacy profile and the trade-off curve, with a confidence band. The cells
        take a tenth of alpha. Not for sequential audits.
    bits : {"warn", True, False}
        Whether the search for an event includes the low bits of floating-point outputs. With True they belong to the
        verdict. By default the verdict is about values, and a warning says if the low bits of the pilot, or of the
        first 20,000 runs of a sequential audit, break the claim; False skips this check.
    ignore : str or iterable of str
        Health checks to silence, by the names in their findings.
    name : str, optional
        Name of the mechanism in the result.
    claim_source : str
        Where the claim is from, for the report: "docs of mylib 1.2, section 3", or the call that states it.
    keep_datasets : bool
        Whether the result stores the datasets as text, instead of only their types, sizes and difference.
    jobs : int, optional
        Number of workers; the default is that of `joblib.parallel_config`, or every core for a mechanism of single
        runs and one for a mechanism that draws in blocks.
    progress : bool or callable, optional
        True shows the progress on standard error; a function receives the number of runs just finished.
    on_look : callable, optional
        Called with the `Look` after each batch of a sequential audit: runs so far, running bound and p-value. If the
        function returns True, the audit stops there with a valid result.
    block_seconds : float, optional
        Time limit of one block of runs; a longer block is an error. A block is 1/256 of the runs of a
        block sampler, or a megabyte of outputs; for a function of a single run, at most 1,024 runs.
    store : path, Store or StorePart, optional
        Folder or open store that keeps the drawn outputs, so that an audit that was stopped or crashed can be resumed.
        Without a time limit a resumed audit ends with the result of an uninterrupted one. With `seconds` later batches
        have other sizes, but no kept run is drawn again and `alpha` holds over all sessions together. A store of
        another audit of the same name is refused.

    Returns
    -------
    AuditResult
        A `FixedSizeResult`, or a `SequentialResult` if `sequential`.

    Raises
    ------
    ClaimError, AdjacencyError, DatasetError, OptionError
        For arguments outside their range.
    MechanismError
        If the mechanism cannot be run, or every pilot run raises.
    StoreError
        If the store belongs to another audit, is in use, damaged or full.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import AddRemove, PureDP, check
    >>> def noisy_count(rows, size, rng):
    ...     return len(rows) + rng.laplace(scale=0.8, size=size)
    >>> result = check(noisy_count, np.ones(3), np.ones(2), claim=PureDP(1.0), adjacency=AddRemove(), runs=100_000)
    >>> result.is_refuted, 1.2 < result.bound < 1.25
    (True, True)
    """
    return audit_pair(
        mechanism,
        x,
        y,
        None,
        claim=claim,
        adjacency=adjacency,
        runs=runs,
        alpha=alpha,
        seed=checked("seed", seed),
        sequential=sequential,
        resolution=resolution,
        options=Options(**options),
    )


@with_own_arithmetic
def audit_pair(
    mechanism: Any,
    x: Any,
    y: Any,
    earlier: EarlierDraws | None,
    *,
    claim: Any,
    adjacency: Any,
    runs: int | None,
    alpha: float,
    seed: int,
    sequential: bool,
    resolution: float | None,
    options: Options,
) -> AuditResult:
    """Audits the pair as `check` does, with outputs drawn `earlier` on it as the beginning of its pilot."""
    started = now()
    sampler, distance = sampler_of(mechanism, options), options.distance
    sampler = sampler if earlier is None else earlier.plan.sampler  # with the form that the earlier outputs have
    if is_empty(x) and is_empty(y):
        raise DatasetError("both datasets are empty, so they cannot differ; pass two neighbouring datasets.")
    said = stated(mechanism, claim, adjacency, options.claim_source)
    if said.adjacency is not None:
        said.adjacency.check(x, y, distance)
    if sampler.check_pair is not None:
        sampler.check_pair(x, y, distance)
    check_sequential(sequential, options.on_look, options.seconds, runs, options.cells)
    settings = Settings(
        claim=claim_at(said.claim, distance),
        claim_source=said.source,
        pair=_pair(x, y, said.adjacency, distance, sampler.check_pair is not None, options.keep_datasets),
        alpha=check_test_alpha(alpha),
        resolution=resolution,
        power=options.power,
        name=sampler.name,
        provenance=provenance_of_part(sampler),
        seed=seed,
        bits=options.bits,
    )
    seconds, cells = options.seconds, options.cells
    ignored = checks_to_ignore(options.ignore)
    until = None if seconds is None else started + seconds
    runs = runs_or_setting(runs, resolution, seconds)
    settings.check_shares(FINAL_SHARE if sequential and _has_final(runs, until) else 1.0, cells)
    snapshot = take_snapshot(x, y)
    with (
        opened(options.store) as kept,  # before the first run, so that an unusable folder costs no run
        told(options.progress, sampler.name, None if runs is None or sequential else 2 * runs) as (progress, shown),
    ):
        drawn_from = {} if kept is None else sources(code_of(sampler), x, y)
        plan = plan_blocks(sampler, x, y, seed, options.jobs, runs=runs)
        if kept is not None:
            is_final = sequential and _has_final(runs, until)
            wanted = drawn_from | arrangements(plan, settings, runs, cells, sequential=sequential, has_final=is_final)
            wanted |= {"runs of a search": "none" if earlier is None else str(earlier)}
            plan = replace(plan, memory=kept.section(sampler.name, wanted))
            plan.check_heads()
        on_look = _looked_at(options.on_look, shown)
        with noting_left_out() as left_out:
            settings, evidence = _drawn(
                plan, settings, runs, until, cells, progress, on_look, earlier, sequential=sequential
            )
        if plan.memory is not None:
            plan.memory.save()  # runs that a result rests on are not drawn again after the result was seen
    result = conclude(
        settings,
        evidence,
        ignored,
        of_datasets=snapshot.examine(ignored, plan.changed),
        of_runs=examine(
            (evidence.kept.blocks_x, evidence.kept.blocks_y),
            evidence.main,
            ignored,
            alpha=FALSE_ALARM * evidence.health_share,
        ),
        notes=(
            *notes_on_texts(x, y),
            *([_STATE] if plan.is_stateful and not sampler.is_block else []),
            *left_out.values(),
        ),
    )
    if result.is_refuted and isinstance(said.adjacency, (AddRemove, Replace, UserLevel)) and on_tuples(x):
        result = replace(result, notes=(on_tuples(x), *result.notes))
    result.environment.update(seconds=round(now() - started, 3), **source_of(sampler.function))
    _LOG.info("%s: %s", result.mechanism, result.sentence)
    return result


def sampler_of(mechanism: Any, options: Options) -> Sampler:
    """Return the sampler of a mechanism with the name, the part of the outputs and the time limit of these options."""
    sampler = picked(as_sampler(mechanism, options.name), options.output)
    return replace(sampler, block_seconds=options.block_seconds)


def runs_or_setting(runs: int | None, resolution: float | None, seconds: float | None) -> int | None:
    """The runs of the call, or those of the settings if nothing in the call determines their number."""
    if runs is None and resolution is None and seconds is None:
        return or_setting("runs", None)  # type: ignore[no-any-return]
    return runs


def _looked_at(
    on_look: Callable[[Look], bool | None] | None, shown: Shown | None
) -> Callable[[Look], bool | None] | None:
    """The function that sees every interim look: the caller's, the display, or both."""
    if shown is None:
        return on_look

    def look(at: Look) -> bool | None:
        shown.look(at)
        return None if on_look is None else on_look(at)

    return look


def _drawn(
    plan: Plan,
    settings: Settings,
    runs: int | None,
    until: float | None,
    cells: int,
    progress: Callable[[int], None] | None,
    on_look: Callable[[Look], bool | None] | None,
    earlier: EarlierDraws | None,
    *,
    sequential: bool,
) -> tuple[Settings, Evidence]:
    """The settings and the evidence of either kind of audit, with the requested or the needed number of runs."""
    if runs is None and until is None:
        runs, wanted = _runs(plan, settings, sequential), settings.resolution
        # The audit is sized for the resolution, so it states the one that it reached and never calls itself too small;
        # unless the call accepts a larger one than an audit may have without being inconclusive.
        if wanted is not None and wanted <= largest_excess(settings.claim):
            settings = replace(settings, resolution=None)
        plan = plan.for_runs(runs)
    if not sequential and runs is not None:  # only a sequential audit may have a time limit
        return settings, draw_fixed_size(plan, settings, runs, cells, progress, earlier)
    evidence = draw_sequentially(
        plan,
        settings,
        MOST_RUNS if runs is None else runs,
        until,
        has_final=_has_final(runs, until),
        enough=enough_for(settings) if runs is None and settings.resolution is not None else None,
        progress=progress,
        on_look=on_look,
        earlier=earlier,
    )
    return settings, evidence


def _has_final(runs: int | None, until: float | None) -> bool:
    """Whether a sequential audit ends with a final test: not if it has no planned runs, nor if time is unlimited."""
    return until is None or (runs is not None and until != math.inf)


def _runs(plan: Plan, settings: Settings, sequential: bool) -> int:
    """The number of runs if the caller gave none."""
    if settings.resolution is None:
        return _RUNS
    return runs_for(plan, settings, settings.resolution, sequential=sequential)


def _pair(x: Any, y: Any, adjacency: Adjacency | None, distance: float, is_checked: bool, keep: bool) -> Pair:
    """The pair as text; `is_checked` says whether the mechanism has checked the distance itself."""
    words, rows = difference_and_rows(x, y) if adjacency is None else (adjacency.difference(x, y), None)
    is_doubtful = rows is not None and rows > distance and not is_checked
    return Pair(
        x=summarise(x),
        y=summarise(y),
        difference=words,
        doubt=f"x and y differ in {rows:,} rows, and no adjacency makes them neighbours" if is_doubtful else "",
        adjacency="declared neighbours by the caller" if adjacency is None else str(adjacency),
        unit="" if adjacency is None else adjacency.unit,
        distance=distance,
        contents=(printed(x), printed(y)) if keep else None,
    )
