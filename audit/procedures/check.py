"""The audit itself: pilot runs choose an event, fresh runs are counted, the counts are tested.

Proofs: docs/proofs/choices.md, docs/proofs/joint-test.md
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

from ..claims.at_distance import ClaimAtDistance, claim_at
from ..claims.claim import Claim
from ..datasets.adjacency import Adjacency
from ..datasets.description import difference, is_empty, summarise
from ..errors import DatasetError
from ..events.outcome_text import printed
from ..floating_point_errors import with_own_arithmetic
from ..health.dataset_checks import take_snapshot
from ..health.findings import FALSE_ALARM, checks_to_ignore
from ..health.run_independence import examine
from ..inference.joint_test import check_test_alpha
from ..options import (
    Bits,
    check_bits,
    check_block_seconds,
    check_cells,
    check_distance,
    check_jobs,
    check_power,
    check_resolution,
    check_runs,
    check_seconds,
    check_seed,
)
from ..results.audit_result import AuditResult, Pair
from ..results.audit_settings import Settings
from ..results.interim_look import Look
from ..sampling.block_plan import Plan
from ..sampling.draw import plan_blocks
from ..sampling.provenance import provenance_of
from ..sampling.sampler import as_sampler
from ..store.sqlite_store import Store, StorePart, opened
from ..store.store_settings import arrangements, code_of, sources
from .conclude import conclude
from .evidence import FixedSizeEvidence, SequentialEvidence
from .fixed_size import draw_fixed_size
from .mechanism_claim import stated
from .runs_needed import enough_for, runs_for
from .sequential import draw_sequentially

_STATE = "the mechanism keeps state from run to run, so one process drew all runs, whatever the workers"
_RUNS = 1_000_000  # if neither runs nor a resolution is requested
_RUNS_IN_TIME = 10**10  # planned runs of an audit that the time limit ends


class CheckOptions(TypedDict, total=False):
    """Options of `check` that a search passes on to it."""

    resolution: float | None
    power: float
    sequential: bool
    seconds: float | None
    cells: int
    bits: Bits
    ignore: str | Iterable[str]
    keep_datasets: bool
    on_look: Callable[[Look], bool | None] | None
    block_seconds: float | None
    store: Store | StorePart | str | Path | None


@with_own_arithmetic
def check(
    mechanism: Any,
    x: Any,
    y: Any,
    *,
    claim: Claim | ClaimAtDistance | None = None,
    adjacency: Adjacency | None = None,
    distance: float = 1,
    runs: int | None = None,
    alpha: float = 0.05,
    seed: int | None = 0,
    resolution: float | None = None,
    power: float = 0.95,
    sequential: bool = False,
    seconds: float | None = None,
    cells: int = 0,
    bits: Bits = "warn",
    jobs: int | None = None,
    name: str | None = None,
    claim_source: str = "",
    ignore: str | Iterable[str] = (),
    keep_datasets: bool = False,
    progress: Callable[[int], None] | None = None,
    on_look: Callable[[Look], bool | None] | None = None,
    block_seconds: float | None = None,
    store: Store | StorePart | str | Path | None = None,
) -> AuditResult:
    """Audits a mechanism's claim on one pair of datasets.

    A mechanism that keeps its claim is refuted with probability at most `alpha`: over all events, both directions and
    every choice made here.

    Parameters
    ----------
    mechanism : callable or object
        ``f(dataset, size, rng)`` (draws `size` runs), an object with ``sample(dataset, size, rng)``, or a single run
        ``f(dataset, rng)`` or ``f(dataset)``. Outputs are numbers, vectors, or anything hashable.
    x, y : Any
        Neighbouring datasets, in whatever form the mechanism takes.
    claim : Claim or callable, optional
        The guarantee at distance 1, or a function from the distance to a claim. By default what the mechanism's
        attribute `claim` says, as adapters and the reference mechanisms do.
    adjacency : Adjacency, optional
        Checks the pair; by default the mechanism's attribute `adjacency`. Where there is none the caller has declared
        the pair to be `distance` apart, and the result says so.
    distance : float
        Distance of the pair. Beyond 1 the claim's group version is audited.
    runs : int, optional
        Runs on each dataset, those that choose the event included: one in twenty, at least 2,000 (half of a small
        number), and a third where the best event is rare. Of a sequential audit, the most that it may take. By
        default what the `resolution` needs; without one a million, or what the `seconds` allow.
    alpha : float
        Allowed probability of refuting a correct mechanism, in (0, 1).
    seed : int or None
        Fixes every number, whatever the workers; None draws one, which the result records.
    resolution : float, optional
        Excess of the claim's strength that the audit has to be able to find; too few `runs` for it are INCONCLUSIVE.
        Without `runs` the audit takes as many as it needs, and states the resolution that it then reached; within the
        `seconds`, if it can.
    power : float
        Probability with which it has to be found, in (0, 1).
    sequential : bool
        Whether to stop as soon as the claim is refuted. Nothing is lost in validity and little in power: where the
        claim holds, the smallest excess found is about 1.4 times that of a fixed number of runs.
    seconds : float, optional
        Time that a sequential audit may take: its last batch is cut to what fits. At least 48 runs on each dataset are
        made in any case, and a batch that a `store` has as begun is completed. Without a time limit the audit stakes
        all that its bets have won on the last quarter of its runs, which finds smaller excesses; with one it could go
        on, and keeps it. As many `runs` and ``seconds=float("inf")`` give the same looks and bound again.
    cells : int
        Number of cells of outputs to count besides, 0 for none, such as 32: the result then has the ratio of each cell,
        the privacy profile and the trade-off curve with a band. They take a tenth of alpha. Not for sequential audits.
    bits : {"warn", True, False}
        True makes events by the low bits of floating-point outputs part of the search and of the verdict. By default
        the verdict is about values, and a warning says if the pilot's low bits break the claim; False leaves it out.
    jobs : int, optional
        Workers; by default what `joblib.parallel_config` says, or every core.
    name : str, optional
        Of the mechanism, for the result.
    claim_source : str
        Where the claim is from, for the report: "docs of mylib 1.2, section 3", or the call that it was read from.
    ignore : str or iterable of str
        Health checks to silence, by the names that failed ones state.
    keep_datasets : bool
        Whether the result stores the datasets as text; otherwise only type, size and difference.
    progress : callable, optional
        Called with the number of runs just finished.
    on_look : callable, optional
        Called after each batch of a sequential audit with its `Look`: the runs so far, the running bound, the p-value.
        Where it returns True the audit stops there, and its result holds as it is.
    block_seconds : float, optional
        Time that a block of runs may take; a mechanism that hangs in one is an error. A block is one in 256 of the
        runs of a block sampler, or a megabyte of outputs; of a function of a single run 1,024 runs at most.
    store : path, Store or StorePart, optional
        Folder, or an open store, that keeps what is drawn: an audit that was stopped, by a crash too, goes on from it.
        Without a time limit it ends with the result of an audit that was never stopped. With `seconds` later batches
        have other sizes, nothing that was kept is drawn again, and `alpha` holds over all sessions together. Any other
        audit of the same name is refused.

    Returns
    -------
    AuditResult

    Raises
    ------
    ClaimError, AdjacencyError, DatasetError, OptionError
        For arguments outside their range.
    MechanismError
        If the mechanism cannot be run, or every pilot run raises.
    StoreError
        If the store is of another audit, in use, damaged or full.

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
    started = time.perf_counter()
    sampler, distance, jobs = as_sampler(mechanism, name), check_distance(distance), check_jobs(jobs)
    if is_empty(x) and is_empty(y):
        raise DatasetError("both datasets are empty; pass one that holds what neighbours differ in.")
    said = stated(mechanism, claim, adjacency, claim_source)
    if said.adjacency is not None:
        said.adjacency.check(x, y, distance)
    if sampler.check_pair is not None:
        sampler.check_pair(x, y, distance)
    settings = Settings(
        claim=claim_at(said.claim, distance),
        claim_source=said.source,
        pair=_pair(x, y, said.adjacency, distance, keep_datasets),
        alpha=check_test_alpha(alpha),
        resolution=check_resolution(resolution),
        power=check_power(power),
        name=sampler.name,
        provenance=provenance_of(sampler.function),
        seed=check_seed(seed),
        bits=check_bits(bits),
    )
    seconds, ignored = check_seconds(seconds, runs, sequential=sequential), checks_to_ignore(ignore)
    until = None if seconds is None else started + seconds
    cells = check_cells(cells, sequential)
    runs = None if runs is None else check_runs(runs)
    snapshot = take_snapshot(x, y)
    with opened(store) as kept:  # before the first run, so that a folder that cannot be used costs none
        drawn_from = {} if kept is None else sources(code_of(sampler), x, y)
        limit = check_block_seconds(block_seconds)
        plan = plan_blocks(sampler, x, y, settings.seed, jobs, limit, runs=runs)
        if kept is not None:
            wanted = drawn_from | arrangements(plan, settings, runs, cells, sequential=sequential)
            plan = replace(plan, memory=kept.section(sampler.name, wanted))
            plan.check_heads()
        settings, evidence = _drawn(plan, settings, runs, until, cells, progress, on_look, sequential=sequential)
        if plan.memory is not None:
            plan.memory.save()  # runs that a result rests on are not drawn again after the result was seen
    result = conclude(
        settings,
        evidence,
        ignored,
        of_datasets=snapshot.examine(ignored, plan.changed),
        of_runs=examine(evidence.blocks, evidence.main, ignored, alpha=FALSE_ALARM * evidence.health_share),
        notes=(_STATE,) if plan.is_stateful and not sampler.is_block else (),
    )
    result.environment["seconds"] = round(time.perf_counter() - started, 3)
    return result


def _drawn(
    plan: Plan,
    settings: Settings,
    runs: int | None,
    until: float | None,
    cells: int,
    progress: Callable[[int], None] | None,
    on_look: Callable[[Look], bool | None] | None,
    *,
    sequential: bool,
) -> tuple[Settings, FixedSizeEvidence | SequentialEvidence]:
    """The settings and the evidence of either kind of audit, with the requested or the needed number of runs."""
    if runs is None and until is None:
        # The audit is sized for the resolution, so it states the one that it reached and never calls itself too small.
        runs, settings = _runs(plan, settings, sequential), replace(settings, resolution=None)
        plan = plan.for_runs(runs)
    if not sequential and runs is not None:  # only a sequential audit may have a time limit
        return settings, draw_fixed_size(plan, settings, runs, cells, progress)
    evidence = draw_sequentially(
        plan,
        settings.claim,
        _RUNS_IN_TIME if runs is None else runs,
        settings.alpha,
        until,
        enough=enough_for(settings) if runs is None and settings.resolution is not None else None,
        progress=progress,
        on_look=on_look,
        bits=settings.bits is True,
    )
    return settings, evidence


def _runs(plan: Plan, settings: Settings, sequential: bool) -> int:
    """The runs of an audit that was given none."""
    if settings.resolution is None:
        return _RUNS
    return runs_for(
        plan,
        settings.claim,
        settings.resolution,
        settings.power,
        settings.alpha,
        sequential=sequential,
        bits=settings.bits is True,
    )


def _pair(x: Any, y: Any, adjacency: Adjacency | None, distance: float, keep: bool) -> Pair:
    return Pair(
        x=summarise(x),
        y=summarise(y),
        difference=difference(x, y) if adjacency is None else adjacency.difference(x, y),
        adjacency="declared neighbours by the caller" if adjacency is None else str(adjacency),
        unit="" if adjacency is None else adjacency.unit,
        distance=distance,
        contents=(printed(x), printed(y)) if keep else None,
    )
