"""Two versions of a mechanism on one dataset: do they differ, and if not, within what margin are they equal?

The first question is an audit of the claim `PureDP(0)`, that no event distinguishes them; its two "datasets" name the
version to run. The second question bounds the total variation distance from both sides.

Proof: docs/proofs/total-variation.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

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
from ..events.plain_outputs import Form
from ..floating_point_errors import with_own_arithmetic
from ..health.event_checks import run_notes
from ..health.findings import HealthCheck, Snapshot, checks_to_ignore, take_snapshot
from ..health.run_independence import examine_draws
from ..inference.event_test import check_test_alpha, directed, parameter_lower
from ..known_options import with_known_options
from ..options import DEFAULTS, USUAL_RUNS, Progress, checked_seed
from ..portfolio.choice import choose_on
from ..portfolio.columns import cuts_of
from ..portfolio.partitions import learn_cells
from ..power.joint_test_power import sequential_excess
from ..progress import told
from ..random_streams import Stream, sequence_of
from ..results.audit_result import AuditResult
from ..results.bin_result import BinCounts
from ..results.claim_pair_and_alpha import Pair
from ..results.equivalence_result import EquivalenceResult
from ..sampling.block_plan import Plan, note_of_cut
from ..sampling.draw import count_events, plan_blocks, shapes_of
from ..sampling.object_identity import versions as library_versions
from ..sampling.pickling import Parcel, pack
from ..sampling.pilot_and_batch_sizes import late_batches, pilot_runs
from ..sampling.sampler import OutputPart, Sampler, as_sampler, picked
from ..sampling.tasks import total_counts
from ..settings import or_setting, setting
from .check import check
from .detectable_excess import CAUTION
from .fixed_size import draw_checked

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
        """Refuses a vectorised mechanism whose result for one run is not an output; it would count as an exception."""
        sampler = self.old if self.old.is_block else self.new
        rng = np.random.default_rng(sequence_of(seed, Stream.FIRST_RUN))
        try:
            raw = sampler.call(self.dataset, 1, rng)
        except Exception:  # an exception is an outcome
            return
        as_outputs(raw, 1, sampler.name)

    @property
    def __audit_datasets__(self) -> tuple[Any, Any]:
        """What both versions run on, which must not change."""
        return self.dataset, self.dataset

    def __audit_identity__(self) -> tuple[Any, ...]:
        """What may carry state from run to run; the parcel in which this object travels is new each time."""
        return self.old.function, self.new.function, self.dataset

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
        return getattr(self, version).drawn(self.dataset, size, rng)

    def run_once(self, version: Version, rng: np.random.Generator) -> Any:
        sampler: Sampler = getattr(self, version)
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
_LEARNED_PART = 3  # a sequential audit learns its last event from a third of all runs


_BINS = 32  # without a number in the call; 32 did best in measurements
_WITHOUT_MARGIN = ("detect", "power", "sequential", "seconds", "floating_point")
_OPTIONS = (*_WITHOUT_MARGIN, "output", "bins", "jobs", "name", "ignore", "progress")
_DEFAULTS = {name: DEFAULTS[name] for name in _OPTIONS} | {"bins": None}


@overload
def check_equivalence(
    old: Any, new: Any, x: Any, *, margin: None = ..., runs: int | None = ..., alpha: float = ...,
    seed: int | None = ..., **options: Any,
) -> AuditResult: ...  # fmt: skip
@overload
def check_equivalence(
    old: Any, new: Any, x: Any, *, margin: float, runs: int | None = ..., alpha: float = ...,
    seed: int | None = ..., **options: Any,
) -> EquivalenceResult: ...  # fmt: skip
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
        Mechanisms as in `check`. Two vectorised mechanisms draw chunks of runs; otherwise both versions are run one by
        one, a vectorised mechanism with size 1, and an exception is an output. Each version has its own random streams.
    x : Any
        Dataset that both versions are run on; neither may change it.
    margin : float, optional
        Total variation distance to be shown, in (0, 1). Without one the audit looks for a difference only.
    runs : int, optional
        Runs of each version, as in `check`.
    alpha : float
        Largest allowed probability of refuting equal versions, or that a limit is wrong, in (0, 1).
    seed : int or None
        As in `check`.
    **options
        `output`, `sequential`, `detect` (a log likelihood ratio), `power`, `seconds`, `floating_point`, `jobs`, `name`,
        `ignore` and `progress` as in `check`; with a margin the number of runs is fixed, and floating-point leaks are
        not looked for. With a margin, `bins` is the number of bins for numbers and vectors, at least 2 and 32 by
        default: more bins see more differences, but the margin that they show for equal versions grows by about
        √(bins/(π·runs)). If there are few outcomes, each is a bin.

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
    directions. A sequential audit without a refutation states the minimum detectable excess for an event of probability
    1/2, if that is smaller than the one for its last event. For continuous outputs SHOWN holds only for the bins, which
    a pilot chose: no number of runs bounds the distance between continuous distributions from above.

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
    given = _DEFAULTS | options
    if margin is None:
        if given.pop("bins") is not None:
            raise OptionError("bins= counts outputs for a margin; pass margin=, or leave bins out.")
    else:
        for name in _WITHOUT_MARGIN:
            if given.pop(name) not in (_DEFAULTS[name], setting(name)):
                raise OptionError(f"{name}= is for a comparison without a margin; leave {name} out, or margin.")
        if given["bins"] == 0:
            raise OptionError("bins=0 counts nothing; use 2 or more.", bins=0)
        check_test_alpha(alpha, 0.5)
    seed, snapshot, ignored = checked_seed(seed), take_snapshot(x, x), checks_to_ignore(given.pop("ignore"))
    versions = TwoVersions.of(old, new, x, seed, given.pop("output"))
    given |= {"name": given["name"] or versions.name, "runs": runs, "alpha": alpha, "seed": seed}
    if margin is None:
        return _same_distribution(versions, snapshot, ignored, **given)
    return _within_margin(versions, snapshot, ignored, margin, **given)


def _same_distribution(
    versions: TwoVersions,
    snapshot: Snapshot,
    ignored: frozenset[HealthCheck],
    **options: Any,
) -> AuditResult:
    """The audit of the claim that no event distinguishes the versions."""
    result: AuditResult = check(
        versions.mechanism,
        "old",
        "new",
        claim=PureDP(0.0),
        ignore=[one.value for one in ignored | _AS_IT_SHOULD_BE],
        **options,
    )
    changed = (
        ("x",) if any(each.check is HealthCheck.DATASET_MUTATED for each in result.findings) else ()
    )  # in a worker
    findings = snapshot.examine(ignored | _AS_IT_SHOULD_BE, changed) or result.findings
    x, y = versions.in_words
    excess, basis = result.min_detectable_excess, result.excess_basis
    if result.interim_analyses and excess is not None:
        # If nothing distinguishes the versions, the last event is arbitrary and often rare.
        common = _common_excess(result.runs, result.alpha, result.power)
        if common < excess:
            excess, basis = common, "common"
    pair = Pair(
        x=f"{x}, on {summarise(versions.dataset)}",
        y=f"{y}, on the same",
        difference="the version",
        adjacency="two versions on one dataset",
        distance=1,
    )
    # `check` has seen whether the old version repeats its outputs.
    plan = Plan(as_sampler(versions.mechanism, versions.name), "old", "new", result.seed, block=1, jobs=1)
    is_reproducible = result.is_reproducible and plan.repeats("y")
    return replace(
        result,
        pair=pair,
        findings=findings,
        notes=(f"x is {x}, y is {y}", *result.notes),
        min_detectable_excess=excess,
        excess_basis=basis,
        is_reproducible=is_reproducible,
    )


def _common_excess(runs: int, alpha: float, power: float) -> float:
    """The log likelihood ratio that a sequential audit detects on an event of probability 1/2 after learning it.

    Half of the runs that the last bets were learned from choose the event, by its excess minus four standard errors.
    """
    from .sequential import KEPT  # imported late: a comparison with a margin does not bet

    found = sequential_excess(PureDP(0.0), late_batches(runs), 0.5, alpha=alpha, power=power)
    held = min(runs, KEPT) / _LEARNED_PART / 2
    return max(found, (CAUTION + float(ndtri(power))) * math.sqrt(0.5 / held) / 0.5)


def _within_margin(
    versions: TwoVersions,
    snapshot: Snapshot,
    ignored: frozenset[HealthCheck],
    margin: float,
    *,
    bins: int | None,
    runs: int | None,
    alpha: float,
    seed: int,
    jobs: int | None,
    name: str,
    progress: Progress,
) -> EquivalenceResult:
    """The limits of the total variation distance, from one event and from bins."""
    started = now()
    runs = or_setting("runs", runs) or USUAL_RUNS
    sampler = as_sampler(versions.mechanism, name)
    wanted = pilot_runs(runs)
    with told(progress, sampler.name) as meter:
        meter.expect(2 * runs)
        meter.ways = ("fewer runs=",)
        plan = plan_blocks(meter.watch(sampler), "old", "new", seed, jobs, runs=runs)
        size = plan.may_keep(wanted)
        blocks_x, blocks_y = draw_checked(plan.for_pilot(size), size)
        x, y = merge(blocks_x, blocks_y)
        meter(2 * size)
        names = plan.sampler.column_names
        claim = ApproxDP(0.0, margin, bound_on="delta")
        with noting_left_out() as left_out:
            choice, _ = choose_on(x, y, cuts_of(x, y), claim, runs - size, alpha / 2)
        partition = learn_cells(x, y, _BINS if bins is None else bins)
        counts_unlisted, scope = False, f"for {partition.scope.partition(';')[0]}; other events may differ by more"
        if isinstance(partition, OutcomeCells):
            unlisted = max(int(partition.count(side)[-1]) for side in (x, y)) / size
            if unlisted <= _UNLISTED_SHARE * margin:  # settled on the pilot, so the limit keeps all of its alpha
                counts_unlisted, scope = True, "for every event, outcomes that were never seen included"
        shapes = shapes_of(plan, blocks_x, blocks_y)
        main_x, main_y = count_events(plan, choice.event, shapes, runs - size, partitions=(partition,), progress=meter)
    counts = total_counts(main_x, main_y)
    tested = directed(claim, counts, choice.more_likely_on)
    return EquivalenceResult(
        old=versions.in_words[0],
        new=versions.in_words[1],
        dataset=summarise(versions.dataset),
        margin=margin,
        lower=parameter_lower(tested.counts, tested.claim, alpha=alpha / 2),
        event=with_names(choice.event, names),
        more_likely_on=choice.more_likely_on,
        counts=counts,
        bins=BinCounts.of(with_names(partition, names), main_x.cells, main_y.cells, alpha / 2),
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
