"""Two versions of a mechanism on one dataset: do they differ, and if not, within what margin are they equal?

The first question is an audit of the claim `PureDP(0)`, that no event distinguishes them; its two "datasets" name the
version to run. The second question bounds the total variation distance from both sides.

Proof: docs/proofs/total-variation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from scipy.special import ndtri

from ..claims.claim import ApproxDP, PureDP
from ..clock import now
from ..datasets.description import summarise
from ..errors import OptionError
from ..events.events import OutcomeCells, with_names
from ..events.features import noting_left_out
from ..events.named_parts import without_class
from ..events.outputs import as_outputs, merge
from ..events.records import Form
from ..floating_point_errors import with_own_arithmetic
from ..health.dataset_checks import take_snapshot
from ..health.findings import HealthCheck, checks_to_ignore
from ..health.run_independence import examine_draws
from ..inference.event_test import check_test_alpha, directed, parameter_lower
from ..known_options import with_known_options
from ..options import Bits, Progress, checked_seed
from ..portfolio.partitions import learn_cells
from ..power.betting_test_power import sequential_resolution
from ..progress import told
from ..random_streams import Stream, sequence_of
from ..results.audit_result import AuditResult, Pair
from ..results.cell_result import CellCounts
from ..results.equivalence_result import EquivalenceResult
from ..sampling.block_plan import Plan, note_of_cut
from ..sampling.draw import count_events, plan_blocks, shapes_of
from ..sampling.object_identity import versions as library_versions
from ..sampling.pickling import Parcel, pack
from ..sampling.pilot_and_batch_sizes import late_batches, pilot_runs
from ..sampling.sampler import OutputPart, Sampler, as_sampler, picked
from ..sampling.tasks import total_counts
from ..settings import or_setting
from .check import DEFAULTS, check
from .pilot import choose_on, draw_checked, run_notes

# Two versions of a mechanism as one mechanism, whose dataset names the version to run.

Version = Literal["old", "new"]


@dataclass(frozen=True, slots=True)
class TwoVersions:
    """Both versions and the dataset they are run on, as one mechanism whose dataset is the version to run."""

    old: Sampler
    new: Sampler
    dataset: Any

    @classmethod
    def of(cls, old: Any, new: Any, dataset: Any, seed: int, output: OutputPart | None = None) -> TwoVersions:
        found = cls(picked(old, output), picked(new, output), dataset)
        if found.old.is_block != found.new.is_block:
            found._check_single_draw(seed)
        return found

    def _check_single_draw(self, seed: int) -> None:
        """Refuses a block sampler whose result for one run is not an output; later it would count as an exception."""
        sampler = self.old if self.old.is_block else self.new
        rng = np.random.default_rng(sequence_of(seed, Stream.FIRST_RUN))
        try:
            raw = sampler.call(self.dataset, 1, rng)
        except Exception:  # an exception is an outcome
            return
        as_outputs(raw, 1, sampler.name)

    def repeats(self, seed: int) -> bool:
        """Whether the new version repeats its outputs; `check` looks at the old version."""
        plan = Plan(as_sampler(self.mechanism, self.name), "old", "new", seed, block=1, jobs=1)
        return plan.repeats("y")

    @property
    def __audit_datasets__(self) -> tuple[Any, Any]:
        """What both versions run on, which must not change."""
        return self.dataset, self.dataset

    @property
    def mechanism(self) -> Callable[..., Any]:
        return self.draw_block if self.old.is_block and self.new.is_block else self.run_once

    @property
    def name(self) -> str:
        old, new = self.old.name, self.new.name
        return f"{old}, old and new" if old == new else f"{old} and {new}"

    @property
    def in_words(self) -> tuple[str, str]:
        return f"the old version {self.old.name}", f"the new version {self.new.name}"

    def draw_block(self, version: Version, size: int, rng: np.random.Generator) -> Any:
        sampler = self.old if version == "old" else self.new
        return sampler.drawn(self.dataset, size, rng)

    def run_once(self, version: Version, rng: np.random.Generator) -> Any:
        sampler = self.old if version == "old" else self.new
        if not sampler.is_block:
            return without_class(sampler.call(self.dataset, rng))
        return as_outputs(sampler.call(self.dataset, 1, rng), 1, sampler.name, Form())[0]

    def __reduce__(self) -> tuple[Callable[[Parcel], TwoVersions], tuple[Parcel]]:
        # A function that a worker cannot import is sent by value, which only its own parcel can decide.
        owners = [self.old.function, self.new.function, self.dataset]
        return _opened, (pack((self.old, self.new, self.dataset), owners, self.name),)


def _opened(parcel: Parcel) -> TwoVersions:
    return TwoVersions(*parcel.open())


# Two versions that return the same constant are equal, and there is only one dataset.
_AS_IT_SHOULD_BE = frozenset({HealthCheck.CONSTANT_OUTPUT, HealthCheck.NO_POWER, HealthCheck.EQUAL_DATASETS})
_UNLISTED_SHARE = 0.1  # most of the margin that outcomes without a cell may take for a limit over every event
# Most runs that bets are learned from; the last event is learned from a third of all runs.
_LEARNED_FROM, _LEARNED_PART, _CAUTION = 200_000, 3, 4.0


class EquivalenceOptions(TypedDict, total=False):
    """Options of `check_equivalence`, which mean what they mean in `check`."""

    output: OutputPart | None
    resolution: float | None
    power: float
    sequential: bool
    seconds: float | None
    bits: Bits
    cells: int | None
    jobs: int | None
    name: str | None
    ignore: str | Iterable[str]
    progress: Progress


_OWN = {"resolution": None, "sequential": False, "cells": None}
_DEFAULTS = {name: (DEFAULTS | _OWN)[name] for name in EquivalenceOptions.__annotations__}
_WITHOUT_MARGIN = ("resolution", "power", "sequential", "seconds", "bits")
_RUNS, _CELLS = 1_000_000, 32  # without a number in the call; 32 cells did best in measurements


@overload
def check_equivalence(
    old: Any,
    new: Any,
    x: Any,
    *,
    margin: None = None,
    runs: int | None = None,
    alpha: float = 0.05,
    seed: int | None = 0,
    **options: Unpack[EquivalenceOptions],
) -> AuditResult: ...
@overload
def check_equivalence(
    old: Any,
    new: Any,
    x: Any,
    *,
    margin: float,
    runs: int | None = None,
    alpha: float = 0.05,
    seed: int | None = 0,
    **options: Unpack[EquivalenceOptions],
) -> EquivalenceResult: ...
@with_known_options(_DEFAULTS)
@with_own_arithmetic
def check_equivalence(
    old: Any,
    new: Any,
    x: Any,
    *,
    margin: float | None = None,
    runs: int | None = None,
    alpha: float = 0.05,
    seed: int | None = 0,
    **options: Any,
) -> AuditResult | EquivalenceResult:
    """Test whether two versions of a mechanism have the same output distribution, or one within a margin.

    Parameters
    ----------
    old, new : callable or object
        Mechanisms as in `check`. Two block samplers are run in blocks; otherwise both versions are run one by one, a
        block sampler with size 1, and an exception is an output. Each version has its own random streams.
    x : Any
        Dataset that both versions are run on; neither may change it.
    margin : float, optional
        Total variation distance to be shown, in (0, 1). Without one the audit looks for a difference only.
    output, runs, alpha, seed, resolution, power, sequential, seconds, bits, jobs, name, ignore, progress
        As in `check`; the runs are those of each version, and the resolution is a log likelihood ratio. A sequential
        audit without a refutation states the resolution for an event of probability 1/2, if that is smaller than the
        one for its last event. With a margin the number of runs is fixed, and `bits` are not looked at.
    cells : int, optional
        With a margin: number of cells for numbers and vectors, at least 2; 32 by default. More cells see more
        differences, but each margin that they show for equal versions is larger by about √(cells/(π·runs)). If there
        are few outcomes, each is a cell.

    Returns
    -------
    AuditResult or EquivalenceResult
        Without a margin the audit of the claim that no event distinguishes the versions: x is the old version and y
        the new one, and the bound is on the largest log likelihood ratio of an event. With a margin the limits of
        their total variation distance, of which one is wrong with probability at most `alpha`.

    Raises
    ------
    OptionError
        For arguments outside their range, and options that exclude each other.
    MechanismError
        If a version cannot be run, or every pilot run of both raises.

    See Also
    --------
    check : Audit of a privacy claim.
    counts.total_variation_upper : Upper limit of the distance from counts.

    Notes
    -----
    Versions with the same distribution are refuted with probability at most `alpha`, over all events and both
    directions. For continuous outputs SHOWN holds for the cells only, which a pilot chose to distinguish the versions:
    no number of runs bounds the distance between continuous distributions from above.

    References
    ----------
    Hoeffding (1956), On the distribution of the number of successes in independent trials, Theorem 4. Proof:
    docs/proofs/total-variation.md.

    Examples
    --------
    >>> def old(rows, size, rng):
    ...     return len(rows) + rng.laplace(scale=1.0, size=size)
    >>> def new(rows, size, rng):
    ...     return len(rows) + rng.laplace(scale=1.1, size=size)
    >>> check_equivalence(old, new, [1, 1], runs=100_000).is_refuted
    True
    >>> check_equivalence(old, new, [1, 1], margin=0.1, runs=100_000).verdict.value
    'equivalent within the margin'

    In a test, ``.raise_if_refuted()`` turns a difference, or an audit that decides nothing, into a failure.
    """
    given = _DEFAULTS | options | {"runs": runs, "alpha": alpha, "seed": seed}
    if margin is None:
        if given.pop("cells") is not None:
            raise OptionError("cells= counts outputs for a margin; pass margin=, or leave cells out.")
        return _same_distribution(old, new, x, **given)
    for name in _WITHOUT_MARGIN:
        if given.pop(name) != _DEFAULTS[name]:
            raise OptionError(f"{name}= is for a comparison without a margin; leave {name} out, or margin.")
    return _within_margin(old, new, x, margin, **given)


def _same_distribution(
    old: Any,
    new: Any,
    dataset: Any,
    *,
    output: OutputPart | None,
    seed: int | None,
    sequential: bool,
    name: str | None,
    ignore: str | Iterable[str],
    **options: Any,
) -> AuditResult:
    """The audit of the claim that no event distinguishes the versions."""
    seed = checked_seed(seed)
    ignored, snapshot = checks_to_ignore(ignore), take_snapshot(dataset, dataset)
    versions = TwoVersions.of(old, new, dataset, seed, output)
    result = check(
        versions.mechanism,
        "old",
        "new",
        claim=PureDP(0.0),
        seed=seed,
        sequential=sequential,
        name=name or versions.name,
        ignore=[one.value for one in ignored | _AS_IT_SHOULD_BE],
        **options,
    )
    findings = snapshot.examine(ignored | _AS_IT_SHOULD_BE, _changed(result)) or result.findings
    x, y = versions.in_words
    resolution, basis = result.resolution, result.resolution_basis
    if sequential and resolution is not None:
        # If nothing distinguishes the versions, the last event is arbitrary and often rare.
        common = _common_resolution(result.runs, result.alpha, result.power)
        if common < resolution:
            resolution, basis = common, "common"
    pair = Pair(
        x=f"{x}, on {summarise(dataset)}",
        y=f"{y}, on the same",
        difference="the version",
        adjacency="two versions on one dataset",
        distance=1,
    )
    is_reproducible = result.is_reproducible and versions.repeats(result.seed)
    return replace(
        result,
        pair=pair,
        findings=findings,
        notes=(f"x is {x}, y is {y}", *result.notes),
        resolution=resolution,
        resolution_basis=basis,
        is_reproducible=is_reproducible,
    )


def _changed(result: AuditResult) -> tuple[str, ...]:
    """The dataset, if it changed in a worker process."""
    return ("x",) if any(each.check is HealthCheck.DATASET_MUTATED for each in result.findings) else ()


def _common_resolution(runs: int, alpha: float, power: float) -> float:
    """The log likelihood ratio that a sequential audit detects on an event of probability 1/2 after learning it.

    Half of the runs that the last bets were learned from choose the event, by its excess minus four standard errors.
    """
    found = sequential_resolution(PureDP(0.0), late_batches(runs), 0.5, alpha=alpha, power=power)
    held = min(runs, _LEARNED_FROM) / _LEARNED_PART / 2
    return max(found, (_CAUTION + float(ndtri(power))) * math.sqrt(0.5 / held) / 0.5)


def _within_margin(
    old: Any,
    new: Any,
    dataset: Any,
    margin: float,
    *,
    output: OutputPart | None,
    cells: int | None,
    runs: int | None,
    alpha: float,
    seed: int | None,
    jobs: int | None,
    name: str | None,
    ignore: str | Iterable[str],
    progress: Progress,
) -> EquivalenceResult:
    """The limits of the total variation distance, from one event and from cells."""
    started, cells = now(), _CELLS if cells is None else cells
    runs = or_setting("runs", runs) or _RUNS
    if cells == 0:
        raise OptionError("cells=0 counts nothing; use 2 or more.", cells=cells)
    seed, ignored = checked_seed(seed), checks_to_ignore(ignore)
    check_test_alpha(alpha, 0.5)
    snapshot = take_snapshot(dataset, dataset)
    versions = TwoVersions.of(old, new, dataset, seed, output)
    sampler = as_sampler(versions.mechanism, name or versions.name)
    plan = plan_blocks(sampler, "old", "new", seed, jobs, runs=runs)
    wanted = pilot_runs(runs)
    size = plan.may_keep(wanted)
    with told(progress, sampler.name, 2 * runs) as (tell, _):
        blocks_x, blocks_y = draw_checked(plan.for_pilot(size), size)
        x, y = merge(blocks_x, blocks_y)
        if tell is not None:
            tell(2 * size)
        names = plan.sampler.column_names
        claim = ApproxDP(0.0, margin, bound_on="delta")
        with noting_left_out() as left_out:
            choice = choose_on(x, y, claim, runs - size, alpha / 2, bits=False, is_last=True).choice
        partition = learn_cells(x, y, cells)
        counts_unlisted, scope = False, f"for {partition.scope.partition(';')[0]}; other events may differ by more"
        if isinstance(partition, OutcomeCells):
            unlisted = max(int(partition.count(side)[-1]) for side in (x, y)) / size
            if unlisted <= _UNLISTED_SHARE * margin:  # settled on the pilot, so the limit keeps all of its alpha
                counts_unlisted, scope = True, "for every event, outcomes that were never seen included"
        shapes = shapes_of(plan, blocks_x, blocks_y)
        main_x, main_y = count_events(plan, choice.event, shapes, runs - size, partitions=(partition,), progress=tell)
    counts = total_counts(main_x, main_y)
    tested = directed(claim, counts, choice.more_likely_on)
    return EquivalenceResult(
        old=versions.in_words[0],
        new=versions.in_words[1],
        dataset=summarise(dataset),
        margin=margin,
        lower=parameter_lower(tested.counts, tested.claim, alpha=alpha / 2),
        event=with_names(choice.event, names),
        more_likely_on=choice.more_likely_on,
        counts=counts,
        cells=CellCounts.of(with_names(partition, names), main_x.cells, main_y.cells, alpha / 2),
        scope=scope,
        counts_unlisted=counts_unlisted,
        alpha=alpha,
        runs=runs,
        pilot_runs=size,
        seed=seed,
        findings=examine_draws(snapshot, plan.changed, (blocks_x, blocks_y), (main_x, main_y), ignored, names),
        notes=(
            *run_notes(x, y, main_x, main_y),
            *note_of_cut(size, wanted, plan.output_bytes),
            *left_out.values(),
        ),
        versions=library_versions(),
        environment={"seconds": round(now() - started, 3)},
    )
