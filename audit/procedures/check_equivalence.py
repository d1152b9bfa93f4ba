"""Two versions of a mechanism on one dataset: do they differ, and if not, within what margin are they equal?

The first question is an audit of the claim `PureDP(0)`, that no event distinguishes them; its two "datasets" name the
version to run. The second question bounds the total variation distance from both sides.

Proof: docs/proofs/total-variation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from scipy.special import ndtri

from ..claims.claim import ApproxDP, PureDP
from ..clock import now
from ..datasets.description import summarise
from ..errors import InconclusiveError, OptionError, RefutedError
from ..events.events import OutcomeCells, with_names
from ..events.features import noting_left_out
from ..events.named_parts import without_class
from ..events.outputs import as_outputs, merge
from ..events.records import Form
from ..floating_point_errors import with_own_arithmetic
from ..health.dataset_checks import take_snapshot
from ..health.findings import HealthCheck, checks_to_ignore
from ..health.run_independence import examine_draws
from ..inference.boundary_test import check_test_alpha, directed, strength_lower
from ..known_options import with_known_options
from ..options import Bits, Progress, checked_seed
from ..portfolio.partitions import learn_cells
from ..power.betting_test_power import sequential_resolution
from ..printing import confidence, rounded_down
from ..progress import told
from ..random_streams import Stream, sequence_of
from ..results.audit_result import AuditResult, Pair, Verdict
from ..results.equivalence_result import Equivalence, EquivalenceResult, event_counts_in_words
from ..sampling.batches import late_batches
from ..sampling.block_plan import Plan, note_of_cut, pilot_runs
from ..sampling.draw import count_hits, plan_blocks, shapes_of
from ..sampling.object_identity import versions as library_versions
from ..sampling.pickling import Parcel, pack
from ..sampling.sampler import OutputPart, Sampler, as_sampler, picked
from ..sampling.tasks import total_counts
from .check import check
from .count_cells import as_cell_counts
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
_AS_IT_SHOULD_BE = frozenset({HealthCheck.CONSTANT_OUTPUT, HealthCheck.IDLE_EVENT, HealthCheck.EQUAL_DATASETS})
_UNLISTED_SHARE = 0.1  # most of the margin that outcomes without a cell may take for a limit over every event
# Most runs that bets are learned from; the last event is learned from a third of all runs.
_LEARNED_FROM, _LEARNED_PART, _CAUTION = 200_000, 3, 4.0

__all__ = [
    "Equivalence",
    "EquivalenceResult",
    "assert_same_distribution",
    "check_equivalence",
    "check_same_distribution",
]


@with_known_options()
@with_own_arithmetic
def check_same_distribution(
    old: Any,
    new: Any,
    dataset: Any,
    *,
    output: OutputPart | None = None,
    runs: int | None = None,
    alpha: float = 0.05,
    seed: int | None = 0,
    resolution: float | None = None,
    power: float = 0.95,
    sequential: bool = False,
    seconds: float | None = None,
    bits: Bits = "warn",
    jobs: int | None = None,
    name: str | None = None,
    ignore: str | Iterable[str] = (),
    progress: Progress = None,
) -> AuditResult:
    """Tests whether two versions of a mechanism have the same output distribution on a dataset.

    Versions with the same distribution are refuted with probability at most `alpha`, over all events and both
    directions. In the result x is the old version and y the new one, and the bound is on the largest log likelihood
    ratio of an event.

    Parameters
    ----------
    old, new : callable or object
        Mechanisms as in `check`. Two block samplers are run in blocks; otherwise both versions are run one by one, a
        block sampler with size 1, and an exception is an output. Each version has its own random streams.
    dataset : Any
        Dataset that both versions are run on; neither may change it.
    output, runs, alpha, seed, resolution, power, sequential, seconds, bits, jobs, ignore, progress
        As in `check`; the runs are those of each version, and the resolution is a log likelihood ratio. A sequential
        audit without a refutation states the resolution for an event of probability 1/2, if that is smaller than the
        one for its last event.
    name : str, optional
        Name in the result; the default is the names of both versions.

    Raises
    ------
    OptionError
        For arguments outside their range.
    MechanismError
        If a version cannot be run, or every pilot run of both raises.

    Examples
    --------
    >>> def old(rows, size, rng):
    ...     return len(rows) + rng.laplace(scale=1.0, size=size)
    >>> def new(rows, size, rng):
    ...     return len(rows) + rng.laplace(scale=1.1, size=size)
    >>> check_same_distribution(old, new, [1, 1], runs=100_000).is_refuted
    True
    """
    seed = checked_seed(seed)
    versions, ignored = TwoVersions.of(old, new, dataset, seed, output), checks_to_ignore(ignore)
    snapshot = take_snapshot(dataset, dataset)
    result = check(
        versions.mechanism,
        "old",
        "new",
        claim=PureDP(0.0),
        runs=runs,
        alpha=alpha,
        seed=seed,
        resolution=resolution,
        power=power,
        sequential=sequential,
        seconds=seconds,
        bits=bits,
        jobs=jobs,
        name=name or versions.name,
        ignore=[one.value for one in ignored | _AS_IT_SHOULD_BE],
        progress=progress,
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
    is_replayable = result.is_replayable and versions.repeats(result.seed)
    return replace(
        result,
        pair=pair,
        findings=findings,
        notes=(f"x is {x}, y is {y}", *result.notes),
        resolution=resolution,
        resolution_basis=basis,
        is_replayable=is_replayable,
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


@with_known_options()
@with_own_arithmetic
def check_equivalence(
    old: Any,
    new: Any,
    dataset: Any,
    *,
    margin: float,
    output: OutputPart | None = None,
    cells: int = 32,
    runs: int = 1_000_000,
    alpha: float = 0.05,
    seed: int | None = 0,
    jobs: int | None = None,
    name: str | None = None,
    ignore: str | Iterable[str] = (),
    progress: Progress = None,
) -> EquivalenceResult:
    """Shows or refutes that two versions of a mechanism are within a margin in total variation on a dataset.

    The probability of SHOWN for versions further apart, and of DIFFERENT for versions within the margin, is at most
    `alpha`. For continuous outputs SHOWN holds for the cells only, which a pilot chose to distinguish the versions: no
    number of runs bounds the distance between continuous distributions from above.

    Parameters
    ----------
    old, new, dataset, output, runs, seed, jobs, ignore, progress
        As in `check_same_distribution`.
    margin : float
        In (0, 1).
    cells : int
        Number of cells for numbers and vectors, at least 2. More cells see more differences, but each margin that
        they show for equal versions is larger by about √(cells/(π·runs)). If there are few outcomes, each is a cell.
    alpha : float
        Probability that at least one of the two limits is wrong.
    name : str, optional
        Name in messages; the default is the names of both versions.

    Examples
    --------
    >>> def old(rows, size, rng):
    ...     return rng.random(size) < 0.3
    >>> def new(rows, size, rng):
    ...     return rng.integers(10, size=size) < 3
    >>> result = check_equivalence(old, new, None, margin=0.01, runs=100_000)
    >>> result.verdict.value, result.scope
    ('equivalent within the margin', 'for every event, outcomes that were never seen included')
    """
    started = now()
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
        main_x, main_y = count_hits(plan, choice.event, shapes, runs - size, partitions=(partition,), progress=tell)
    counts = total_counts(main_x, main_y)
    tested = directed(claim, counts, choice.likelier_on)
    return EquivalenceResult(
        old=versions.in_words[0],
        new=versions.in_words[1],
        dataset=summarise(dataset),
        margin=margin,
        lower=strength_lower(tested.counts, tested.claim, alpha=alpha / 2),
        event=with_names(choice.event, names),
        likelier_on=choice.likelier_on,
        counts=counts,
        cells=as_cell_counts(with_names(partition, names), main_x.cells, main_y.cells, alpha / 2),
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


_FURTHER: dict[str, Any] = {
    "output": None, "seed": 0, "resolution": None, "power": 0.95, "seconds": None, "bits": "warn", "jobs": None,
    "name": None, "ignore": (), "progress": None, "cells": 32,
}  # fmt: skip
"""The options of `assert_same_distribution` that it hands on, with their defaults."""


@overload
def assert_same_distribution(
    old: Any, new: Any, dataset: Any, *, margin: None = None, **options: Any
) -> AuditResult: ...
@overload
def assert_same_distribution(
    old: Any, new: Any, dataset: Any, *, margin: float, **options: Any
) -> EquivalenceResult: ...
@with_known_options(_FURTHER)
def assert_same_distribution(
    old: Any,
    new: Any,
    dataset: Any,
    *,
    margin: float | None = None,
    alpha: float = 1e-5,
    runs: int = 100_000,
    sequential: bool = True,
    **options: Any,
) -> AuditResult | EquivalenceResult:
    """Asserts that two versions of a mechanism are not found to differ and, given a `margin`, are within it.

    For tests: the probability that versions with the same distribution are called different is at most `alpha`. The
    assertion fails too for a failed health check, a resolution that is not reached, and a margin that is not shown.

    Parameters
    ----------
    old, new, dataset, alpha, runs, sequential
        As in `check_same_distribution`. With a margin there are two checks, each with half of alpha.
    margin : float, optional
        Total variation distance to be shown; see `check_equivalence`. A smaller difference fails too if it is
        detected; for versions that are known to differ use `check_equivalence` alone.
    **options
        Further options of `check_same_distribution` and, with a margin, `cells`.

    Returns
    -------
    AuditResult or EquivalenceResult
        An EquivalenceResult if a margin is given.

    Raises
    ------
    RefutedError, InconclusiveError
        Both are kinds of AssertionError.

    Examples
    --------
    >>> def old(rows, size, rng):
    ...     return rng.laplace(size=size)
    >>> def new(rows, size, rng):
    ...     return 1.5 * rng.laplace(size=size)
    >>> assert_same_distribution(old, new, None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dpaudit.audit.errors.RefutedError: the old version old and the new version new differ: ...
    """
    __tracebackhide__ = True
    if margin is None and "cells" in options:
        raise OptionError(
            "cells= counts outputs for a margin; pass margin=, or leave cells out.", cells=options["cells"]
        )
    cells = {"cells": options.pop("cells", 32)}
    if margin is not None:
        alpha = check_test_alpha(alpha, 0.25) / 2  # either check has half, and half of that for its exact test
    result = check_same_distribution(old, new, dataset, runs=runs, alpha=alpha, sequential=sequential, **options)
    names = TwoVersions.of(old, new, dataset, result.seed).in_words
    if result.verdict is Verdict.REFUTED:
        raise RefutedError(
            f"{names[0]} and {names[1]} differ: {event_counts_in_words(result.event, result.counts, *names)}; "
            f"a likelihood ratio of at least {rounded_down(math.exp(min(result.bound, 700.0))):g} "
            f"({confidence(alpha)}, p-value {result.p_value:.2g}); {_how_to_repeat(result)}"
        )
    if result.verdict is Verdict.INCONCLUSIVE:
        raise InconclusiveError(
            f"cannot decide whether {names[0]} and {names[1]} differ: {result}\n  seed={result.seed}"
        )
    if margin is None:
        return result
    shared = {key: options[key] for key in ("seed", "jobs", "name", "ignore", "progress") if key in options}
    shown = check_equivalence(old, new, dataset, margin=margin, runs=runs, alpha=alpha, **cells, **shared)
    if not shown.is_shown:
        raise InconclusiveError(
            f"{names[0]} and {names[1]} are not shown to be within margin={margin:g}: {shown}\n  seed={shown.seed}"
        )
    return shown


def _how_to_repeat(result: AuditResult) -> str:
    if result.is_replayable:
        return f"seed={result.seed} repeats these runs"
    return f"seed={result.seed} does not repeat these runs: a version has randomness that the seed does not fix"
