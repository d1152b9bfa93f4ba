"""The audit: pilot runs choose an event, fresh runs are counted, the counts are tested.

Proofs: docs/proofs/choices.md, docs/proofs/joint-test.md
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ..claims.claim import Claim, ClaimAtDistance, as_claim, claim_at
from ..clock import now
from ..datasets.adjacency import AddRemove, Adjacency, Replace, UserLevel, as_adjacency, on_tuples
from ..datasets.description import difference_and_rows, is_empty, notes_on_texts, summarise
from ..errors import ClaimError, DatasetError, OptionError
from ..events.events import with_names
from ..events.features import noting_left_out
from ..events.named_parts import printed
from ..floating_point_errors import with_own_arithmetic
from ..health.dataset_checks import take_snapshot
from ..health.findings import FALSE_ALARM, checks_to_ignore
from ..health.run_independence import examine
from ..inference.event_test import Counts, check_test_alpha, directed
from ..inference.guess_test import Guesses, coins_for
from ..known_options import unknown_option, with_known_options
from ..options import LEAST_RUNS, MOST_RUNS, Bits, Progress, check_sequential, checked, checked_seed
from ..portfolio.choice import Choice, directed_shares
from ..power.alternatives import Alternative, AsLikely, GaussianNoise, event_of
from ..power.joint_test_power import power_of_test, runs_needed
from ..progress import Shown, told
from ..random_streams import Stream, seed_of, seed_of_coins
from ..results.audit_result import FINAL_SHARE, AuditResult, InterimAnalysis, Pair, Settings, largest_excess
from ..results.cell_result import CellCounts
from ..sampling.block_plan import MemoryPart, Plan
from ..sampling.draw import count_events, plan_blocks, shapes_of
from ..sampling.object_identity import source_of
from ..sampling.pilot_and_batch_sizes import main_runs, pilot_runs, with_pilot
from ..sampling.sampler import OutputPart, Sampler, as_sampler, picked, provenance_of_part
from ..sampling.tasks import MainCounts
from ..settings import or_setting
from ..store.store_settings import arrangements, code_of, sources
from .conclude import conclude
from .detectable_excess import (
    SHARE,
    UNKNOWN,
    detectable_sequentially,
    guessed,
    is_gaussian,
    may_detect,
    power_of_the_test,
    shows_divergence,
)
from .pilot import EarlierDraws, Evidence, FixedSizeEvidence, Portfolio, divided, run_pilot
from .sequential import draw_sequentially

if TYPE_CHECKING:
    from ..store.sqlite_store import Store, StorePart

# Number of runs that an audit needs to detect a given excess, for the event that a first pilot chooses.

_FIRST, _MOST = 2_000, 10**9
_GROWTH = 1.1
_MARGIN = 0.96  # planned for slightly less than the request, since the event's frequency is only known at the end
_ERRORS = (-2.0, 2.0)  # deviations of that frequency, in standard errors, for which the runs have to suffice too


def runs_for(plan: Plan, settings: Settings, resolution: float, *, sequential: bool) -> int:
    """Runs on each dataset with which an audit detects an excess of `resolution` with the power of the settings.

    An event is chosen on a small pilot, and again on the pilot of an audit of the size found; the second event decides.
    The outputs drawn here have their own seed and are not used again. A sequential audit is sized for its final test.

    Raises
    ------
    OptionError
        If 10⁹ runs are not enough.
    """
    plan = replace(
        plan,
        seed=seed_of(plan.seed, Stream.SIZING),
        memory=None if plan.memory is None else MemoryPart(plan.memory, "sizing"),
    )
    claim, power, of_alpha = settings.claim, power_of_the_test(settings.power), FINAL_SHARE if sequential else 1.0
    needed, excess, share, alpha = _FIRST, _MARGIN * resolution, 0.0, settings.alpha
    alternatives: list[Alternative] = []
    for _ in range(2):
        pilot = run_pilot(plan, claim, needed, settings.alpha, bits=settings.bits is True, both=True)
        choice, share = pilot.choice, pilot.runs / needed
        alpha = settings.event_alpha(of_alpha, net=0.0 if pilot.net is None else pilot.net.part)
        if choice.pilot_count_x == choice.pilot_count_y == 0:  # outputs never vary: nothing to plan for
            return _FIRST
        tested = directed(claim, choice.pilot_counts, choice.more_likely_on).claim
        alternatives, q = [], choice.pilot_counts.count_y / choice.pilot_runs
        if claim.divergence_slopes and is_gaussian(tested, _directed_counts(claim, choice), excess):
            level = settings.divergence_alpha(alpha, show_more=True)
            needed = runs_by_divergence(claim, excess, alpha=level, power=settings.power)
            continue
        if choice.opposite is not None:
            main = _by_guesses(claim, _guesses(choice), excess, alpha=alpha, power=settings.power)
        else:
            alternatives = _alternatives(claim, choice, excess)
            main = runs_needed(tested, alternatives[0], resolution=excess, power=power, alpha=alpha)
            q = event_of(tested, excess, alternatives[0]).q
        needed = max(with_pilot(main, q), LEAST_RUNS)
        if pilot.runs > pilot_runs(needed):  # a rare event needs a longer pilot
            needed = max(needed, math.ceil(main / (1.0 - share)))
        _check_size(needed, resolution)
    deep = share if share > pilot_runs(needed) / needed else 0.0
    while not all(_power(tested, needed, deep, each, excess, alpha) >= power for each in alternatives):
        needed = math.ceil(needed * _GROWTH)
        _check_size(needed, resolution)
    return needed


def enough_for(settings: Settings) -> Callable[[Choice, int], bool]:
    """Stopping rule of a sequential audit: whether it detects the requested excess with this event and runs."""
    wanted = math.inf if settings.resolution is None else settings.resolution
    errors = {"alpha": settings.alpha, "power": settings.power}

    def is_enough(choice: Choice, runs: int) -> bool:
        held = directed(settings.claim, choice.pilot_counts, choice.more_likely_on)
        return (
            may_detect(held.claim, held.counts, runs, wanted, **errors)
            and detectable_sequentially(held.claim, held.counts, runs, UNKNOWN, **errors).excess <= wanted
        )

    return is_enough


def _guesses(choice: Choice) -> Guesses:
    """Guesses in the pilot by both events, with two standard errors fewer right ones than there were."""
    assert choice.opposite is not None
    runs = 2 * min(choice.pilot_runs, choice.opposite.pilot_runs)
    first, second = (directed_shares(each) for each in (choice, choice.opposite))
    right, wrong = (0.5 * runs * (one + other) for one, other in zip(first, second, strict=True))
    fewer = max(1.0 - 2.0 / math.sqrt(max(right, 1.0)), 0.25)
    return Guesses(right=math.ceil(fewer * right), wrong=math.ceil(fewer * wrong), runs=runs)


def _directed_counts(claim: Claim, choice: Choice) -> Counts:
    return directed(claim, choice.pilot_counts, choice.more_likely_on).counts


def _fewest(detects: Callable[[int], bool], excess: float) -> int:
    """Fewest runs, to a percent, with which the excess is detected."""
    low, high = LEAST_RUNS, 2 * LEAST_RUNS
    while not detects(high):
        low, high = high, 2 * high
        _check_size(high, excess)
    while high > 1.01 * low + 1:
        middle = round(math.sqrt(low * high))
        low, high = (low, middle) if detects(middle) else (middle, high)
    return high


def runs_by_divergence(claim: Claim, excess: float, *, alpha: float, power: float) -> int:
    """Return the runs on each dataset with which Gaussian noise of this excess is detected in bins, to a percent."""

    def detects(runs: int) -> bool:
        known = pilot_runs(runs)
        main = runs - known
        return shows_divergence(claim, excess, known, main, main, alpha=alpha, power=power)

    return _fewest(detects, excess)


def _by_guesses(claim: Claim, guesses: Guesses, excess: float, *, alpha: float, power: float) -> int:
    """Main runs on each dataset with which guesses as frequent as these detect the excess, to a percent."""

    def detects(main: int) -> bool:
        runs = coins_for(main)
        expected = Guesses(
            right=round(guesses.right * runs / guesses.runs),
            wrong=round(guesses.wrong * runs / guesses.runs),
            runs=runs,
        )
        return guessed(claim, expected, 2 * main, UNKNOWN, alpha=alpha, power=power).excess <= excess

    return _fewest(detects, excess)


def _alternatives(claim: Claim, choice: Choice, excess: float) -> list[Alternative]:
    """The planned event, and events within the uncertainty of its frequencies."""
    runs = choice.pilot_runs
    tested = directed(claim, choice.pilot_counts, choice.more_likely_on)
    if is_gaussian(tested.claim, tested.counts, excess):
        return [GaussianNoise(SHARE)]
    p, q = ((side + 0.5) / (runs + 1.0) for side in (tested.counts.count_x, tested.counts.count_y))
    moved = [[rate + z * math.sqrt(rate * (1 - rate) / runs) for rate in (p, q)] for z in (0.0, *_ERRORS)]
    return [AsLikely(*rates) for rates in moved if all(0.0 < rate < 1.0 for rate in rates)]


def _power(claim: Claim, runs: int, deep: float, alternative: Alternative, excess: float, alpha: float) -> float:
    longest = max(runs - main_runs(runs, event_of(claim, excess, alternative).q), math.ceil(deep * runs))
    return power_of_test(claim, runs - longest, runs - longest, alternative, excess, alpha=alpha)


def _check_size(runs: int, resolution: float) -> None:
    if runs > _MOST:
        raise OptionError(
            f"resolution={resolution:g} takes more than {_MOST:,} runs; use a coarser resolution, or set runs=.",
            resolution=resolution,
        )


# Options of `check` and `find_worst_pair` beyond the arguments that every call thinks of.

ARGUMENTS = ("claim", "adjacency", "runs", "alpha", "seed", "sequential", "resolution")
"""The arguments that `check` and `find_worst_pair` name themselves."""


class CheckOptions(TypedDict, total=False):
    """Options of `check`, which its docstring explains."""

    # what is asked
    output: OutputPart | None
    distance: float
    power: float
    seconds: float | None
    cells: int
    bits: Bits
    ignore: str | Iterable[str]
    # what the result records
    name: str | None
    claim_source: str
    keep_datasets: bool
    # how the runs are made
    jobs: int | None
    progress: Progress
    on_interim: Callable[[InterimAnalysis], bool | None] | None
    block_seconds: float | None
    store: Store | StorePart | str | Path | None


OPTIONS = tuple(CheckOptions.__annotations__)
"""The names of these options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one call, each with a value; `check` explains them."""

    output: OutputPart | None = None
    distance: float = 1
    power: float = 0.95
    seconds: float | None = None
    cells: int = 0
    bits: Bits = "warn"
    ignore: str | Iterable[str] = ()
    name: str | None = None
    claim_source: str = ""
    keep_datasets: bool = False
    jobs: int | None = None
    progress: Progress = None
    on_interim: Callable[[InterimAnalysis], bool | None] | None = None
    block_seconds: float | None = None
    store: Store | StorePart | str | Path | None = None


DEFAULTS: dict[str, Any] = {each.name: each.default for each in fields(Options)}
"""The default of each of these options."""


def refuse_unknown(given: Iterable[str], function: str, *more: str) -> None:
    """Raise an `UnknownOptionError` for a name that is neither an option of `check` nor one of the names in `more`."""
    known = (*ARGUMENTS, *OPTIONS, *more)
    for name in given:
        if name not in known:
            raise unknown_option(name, function, known)


# The claim to audit, with its source and its neighbour relation: the caller's, or the mechanism's own.


@dataclass(frozen=True, slots=True)
class Stated:
    """A claim with its source and its neighbour relation, which may be None."""

    claim: Claim | ClaimAtDistance
    source: str
    adjacency: Adjacency | None


def stated(mechanism: Any, claim: Any, adjacency: Any, claim_source: str) -> Stated:
    """What the caller states, completed by the mechanism's attributes `claim`, `claim_source` and `adjacency`.

    Parameters
    ----------
    claim : Claim, float, (float, float), callable or None
        As in `check`; the attribute may have the same forms.
    adjacency : Adjacency, str or None
        As in `check`.

    Raises
    ------
    ClaimError
        If neither states a claim, or it is not a claim.
    OptionError
        For an invalid adjacency or source.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> class Noisy:
    ...     claim = PureDP(1.0)
    >>> stated(Noisy(), None, None, "")
    Stated(claim=PureDP(epsilon=1.0), source='the claim of Noisy', adjacency=None)
    """
    source, kind = checked("claim_source", claim_source), _name(mechanism)
    if claim is None:
        claim = _own_claim(mechanism, kind)
        own = getattr(mechanism, "claim_source", "")
        source = source or (own if isinstance(own, str) and own else f"the claim of {kind}")
    if adjacency is None:
        relation = getattr(mechanism, "adjacency", None)
        adjacency = relation if isinstance(relation, Adjacency) else None
    return Stated(as_claim(claim), source, None if adjacency is None else as_adjacency(adjacency))


def _own_claim(mechanism: Any, kind: str) -> Claim | ClaimAtDistance:
    """The mechanism's attribute `claim`, in any form that `check` takes."""
    remedy = "Pass claim=PureDP(epsilon) or another claim (shell: --epsilon)"
    try:
        claim = mechanism.claim
    except AttributeError as error:
        if hasattr(type(mechanism), "claim"):  # a property that failed
            raise ClaimError(f"the claim of {kind} cannot be read: {error}. {remedy}, or mend the property.") from error
        raise ClaimError(
            f"no claim given, and {kind} has no attribute claim. {remedy}, or an object that states its claim, such as "
            "an adapter."
        ) from error
    try:
        return as_claim(claim)
    except ClaimError as error:
        raise ClaimError(f"the attribute claim of {kind}: {error} {remedy}, which takes precedence.") from error


def _name(mechanism: Any) -> str:
    """The name of a function, and of the class of an object."""
    name = getattr(mechanism, "__name__", None)
    return name if isinstance(name, str) and name else type(mechanism).__name__


# The runs of an audit of fixed size: the pilot chooses an event, the main runs are counted.


def draw_fixed_size(
    plan: Plan,
    settings: Settings,
    runs: int,
    n_cells: int,
    progress: Callable[[int], None] | None,
    earlier: EarlierDraws | None = None,
) -> FixedSizeEvidence:
    """Draws the pilot, which chooses the event, and counts event, plain events, cells and bins afterwards.

    Outputs drawn `earlier` replace as many of the pilot, so that more of the runs are counted.
    """
    started = now()
    bits = settings.bits is True
    pilot = run_pilot(plan, settings.claim, runs, settings.alpha, bits=bits, both=True, earlier=earlier)
    first_drawn_by = plan if earlier is None or pilot.searched == 0 else earlier.plan
    is_reproducible = first_drawn_by.comes_again(pilot.blocks_x, pilot.blocks_y)
    if progress is not None:
        progress(2 * pilot.runs)
    sampled = now()
    portfolio = Portfolio.of(pilot.choice, pilot.net, pilot.x, pilot.y, settings, n_cells)
    event, *others = portfolio.events
    runs_x, runs_y = divided(pilot.choice, settings.claim, runs - pilot.runs)
    main = count_events(
        plan,
        event,
        shapes_of(plan, pilot.blocks_x, pilot.blocks_y),
        runs_x,
        runs_y=runs_y,
        others=tuple(others),
        partitions=portfolio.partitions,
        progress=progress,
    )
    counted, cells = MainCounts.of_blocks(*main), None
    if portfolio.cells is not None:
        named = with_names(portfolio.cells, plan.sampler.column_names)
        cells = CellCounts.of(named, *portfolio.split(counted)[1], settings.cell_alpha, asked=n_cells)
    root = plan.seed_of_coins(is_reproducible=is_reproducible)
    return FixedSizeEvidence(
        kept=pilot,
        portfolio=portfolio,
        counted=counted,
        runs=runs,
        pilot_runs=pilot.runs,
        coins=seed_of_coins(root, *(side.contents for side in main)),
        main=main,
        is_reproducible=is_reproducible,
        cells=cells,
        seconds={"seconds_pilot": round(sampled - started, 3), "seconds_main": round(now() - sampled, 3)},
    )


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
        least 2,000 (or half of a small number of runs), and a quarter of them where outputs have several columns or a
        shorter one promises no bound. The other runs, twice as many on both datasets together, may be divided unevenly
        between the two, at most four to one, where that makes the test of the event more precise: `counts` has them.
        For a sequential audit, the most runs it may take.
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
        Excess over the claim's privacy parameter that the audit has to detect; an audit with too few `runs` for it is
        INCONCLUSIVE. Without `runs` the audit takes the runs that it needs, within the `seconds` if there are any, and
        states the resolution that it reached. Without a resolution an audit is INCONCLUSIVE if it does not detect twice
        the claim (for a claim of 0: a privacy parameter of 1, or half of the family's largest); a larger one accepts
        that.
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
    on_interim : callable, optional
        Called with the `InterimAnalysis` after each batch of a sequential audit: runs so far, running bound and
        p-value. If the function returns True, the audit stops there with a valid result.
    block_seconds : float, optional
        Time limit of one block of runs; a longer block is an error. A block is 1/256 of the runs of a
        block sampler, or a megabyte of outputs; for a function of a single run, at most 1,024 runs. With one worker, a
        block that never lets go of Python's lock, such as a search with a regular expression or a call of C code, is
        not ended.
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
        seed=checked_seed(seed),
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
    # A search has made the sampler already, and knows the form of its outputs.
    sampler = sampler_of(mechanism, options) if earlier is None else earlier.plan.sampler
    distance = options.distance
    if is_empty(x) and is_empty(y):
        raise DatasetError("both datasets are empty, so they cannot differ; pass two neighbouring datasets.")
    said = stated(mechanism, claim, adjacency, options.claim_source)
    if said.adjacency is not None:
        said.adjacency.check(x, y, distance)
    if sampler.check_pair is not None:
        sampler.check_pair(x, y, distance)
    check_sequential(sequential, options.on_interim, options.seconds, runs, options.cells)
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
        _opened(options.store) as kept,  # before the first run, so that an unusable folder costs no run
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
        on_interim = _looked_at(options.on_interim, shown)
        with noting_left_out() as left_out:
            settings, evidence = _drawn(
                plan, settings, runs, until, cells, progress, on_interim, earlier, sequential=sequential
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
            names=evidence.kept.column_names,
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


def _opened(store: Store | StorePart | str | Path | None) -> AbstractContextManager[Store | StorePart | None]:
    """The store, if there is one, whose module takes as long to import as an audit."""
    if store is None:
        return nullcontext()
    from ..store.sqlite_store import opened

    return opened(store)


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
    on_interim: Callable[[InterimAnalysis], bool | None] | None, shown: Shown | None
) -> Callable[[InterimAnalysis], bool | None] | None:
    """The function that sees every interim analysis: the caller's, the display, or both."""
    if shown is None:
        return on_interim

    def look(at: InterimAnalysis) -> bool | None:
        shown.look(at)
        return None if on_interim is None else on_interim(at)

    return look


def _drawn(
    plan: Plan,
    settings: Settings,
    runs: int | None,
    until: float | None,
    cells: int,
    progress: Callable[[int], None] | None,
    on_interim: Callable[[InterimAnalysis], bool | None] | None,
    earlier: EarlierDraws | None,
    *,
    sequential: bool,
) -> tuple[Settings, Evidence]:
    """The settings and the evidence of either kind of audit, with the requested or the needed number of runs."""
    asked = settings
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
        on_interim=on_interim,
        earlier=earlier,
    )
    return (asked if evidence.stopped == "request" else settings), evidence


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
