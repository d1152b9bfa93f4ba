"""The pilot: the first runs, which choose the event and do not enter the test.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from ..claims.claim import Claim
from ..datasets.description import number_text
from ..errors import MechanismError, described
from ..events.events import Counted, Event, Labels, Partition
from ..events.outputs import Outputs, Raised, merge, outcome_key, outcome_list, outcome_words
from ..floating_point_errors import under
from ..inference.divergence_test import DivergenceTest
from ..inference.event_test import Counts
from ..portfolio.choice import Choice, choose_event, choose_seen, directed_shares, expected_excess
from ..portfolio.columns import cuts_of
from ..portfolio.net import Net
from ..portfolio.partitions import Bins, learn_bins, learn_cells, recur
from ..results.audit_result import InterimAnalysis, OtherDirection, Settings, Stop
from ..results.cell_result import CellCounts
from ..sampling.block_plan import Plan, check_shape, note_of_cut
from ..sampling.draw import draw_pilot
from ..sampling.pilot_and_batch_sizes import grown_pilot_runs, pilot_runs
from ..sampling.tasks import BlockCounts, MainCounts, no_blocks, raised_in

# Outputs drawn on a pair before its audit, with which the pilot begins.


@dataclass(frozen=True, slots=True)
class EarlierDraws:
    """Outputs that a search drew on its pair after choosing it, equally many on x and on y; they never enter a test.

    Attributes
    ----------
    plan : Plan
        The plan that drew them, with a seed other than the audit's.
    blocks_x, blocks_y : list of ndarray
        Outputs block by block, in the order drawn.
    suggested : Choice, optional
        The event by which the search ranked the pair.
    """

    plan: Plan
    blocks_x: list[Outputs]
    blocks_y: list[Outputs]
    suggested: Choice | None = None

    @property
    def runs(self) -> int:
        """Runs on each dataset."""
        return sum(map(len, self.blocks_x))

    def __str__(self) -> str:
        """What determines the outputs, apart from mechanism and datasets."""
        sizes = ", ".join(map(str, dict.fromkeys(map(len, self.blocks_x))))
        return f"{self.runs:,} in blocks of {sizes} by seed {self.plan.seed}"

    def at_most(self, runs: int) -> EarlierDraws | None:
        """The first whole blocks, of at most `runs` runs on each dataset together; None if the first one has more."""
        fitting = sum(total <= runs for total in accumulate(map(len, self.blocks_x)))
        if fitting == 0:
            return None
        return replace(self, blocks_x=self.blocks_x[:fitting], blocks_y=self.blocks_y[:fitting])


_SAME = 100  # outputs compared first, because most outputs vary
_NUMBERS = 4_000_000  # coordinates of vectors on each side in a grown pilot: 32 megabytes


@dataclass(frozen=True, slots=True)
class Pilot:
    """The outputs that were kept, of the pilot or of a sequential audit, and the event chosen on them.

    Attributes
    ----------
    choice : Choice
    blocks_x, blocks_y : list of ndarray
        Outputs block by block, in the order drawn.
    x, y : ndarray
        All outputs in one array, of numbers if all are numbers, else of objects.
    notes : tuple of str
        Exceptions in runs that were only counted; and whether the pilot was cut because outputs are large.
    searched : int
        How many of the outputs on each dataset, the first ones, a search drew before.
    column_names : tuple of str
        Names of the columns of outputs, for the texts of a result; empty if they have none.
    net : Net, optional
        The plain events to be tested beside it.
    """

    choice: Choice
    blocks_x: list[Outputs]
    blocks_y: list[Outputs]
    x: Outputs
    y: Outputs
    notes: tuple[str, ...] = ()
    searched: int = 0
    column_names: tuple[str, ...] = ()
    net: Net | None = None

    @property
    def runs(self) -> int:
        """Runs on each dataset that the audit itself drew."""
        return len(self.x) - self.searched


def run_pilot(
    plan: Plan,
    claim: Claim,
    runs: int,
    alpha: float,
    *,
    bits: bool = False,
    both: bool = False,
    earlier: EarlierDraws | None = None,
) -> Pilot:
    """Draws the pilot of an audit of `runs` runs on each dataset and chooses the event, or one for each direction.

    The pilot begins with the outputs drawn `earlier`, and only the missing ones are drawn. It is drawn at its grown
    size where outputs have several columns, and made longer once where it promises no bound.

    Raises
    ------
    MechanismError
        If every pilot run raises, or blocks on one dataset differ in shape.
    """
    wanted = pilot_runs(runs)
    size = plan.may_keep(wanted)
    earlier = None if earlier is None else earlier.at_most(plan.most_kept)
    had = 0 if earlier is None else earlier.runs
    old_x, old_y = ([], []) if earlier is None else (earlier.blocks_x, earlier.blocks_y)
    blocks_x, blocks_y = _drawn(plan.for_pilot(size), size - had)
    chosen: Chosen | None = None
    while True:
        all_x, all_y = old_x + blocks_x, old_y + blocks_y
        check_blocks(all_x, all_y, plan.sampler.is_block, plan.sampler.name)
        x, y = merge(all_x, all_y)
        refuse_if_all_raised(plan, x, y)
        longest = plan.may_keep(longest_pilot(runs, width(x)))
        is_last = len(x) >= longest
        if is_last or not has_columns(x, y):
            main, suggested = runs - len(x) + had, None if earlier is None else earlier.suggested
            chosen = choose_on(x, y, claim, main, alpha, suggested, bits=bits, both=both, is_last=is_last)
            if is_last or chosen.promise > 0.0:
                break
        more_x, more_y = _drawn(plan.for_pilot(longest), longest - len(x), first_block=len(blocks_x))
        blocks_x, blocks_y = blocks_x + more_x, blocks_y + more_y
    if x.ndim == 2:  # vectors are large, so keep a single copy
        all_x, all_y = (_cut(side, blocks) for side, blocks in ((x, all_x), (y, all_y)))
    return Pilot(
        chosen.choice,
        all_x,
        all_y,
        x,
        y,
        note_of_cut(max(size, had), wanted, plan.output_bytes),
        searched=had,
        column_names=plan.sampler.column_names,
        net=chosen.net,
    )


def _drawn(plan: Plan, runs: int, first_block: int = 0) -> tuple[list[Outputs], list[Outputs]]:
    """Blocks of `runs` pilot runs; none if the number is not positive."""
    return draw_pilot(plan, runs, first_block=first_block) if runs > 0 else ([], [])


def draw_checked(plan: Plan, runs: int) -> tuple[list[Outputs], list[Outputs]]:
    """Pilot outputs on x and on y in blocks, checked: one shape per dataset, and not all runs raised.

    Raises
    ------
    MechanismError
        If the mechanism cannot be run, blocks differ in shape, or every run on both datasets raises.
    """
    blocks_x, blocks_y = draw_pilot(plan, runs)
    check_blocks(blocks_x, blocks_y, plan.sampler.is_block, plan.sampler.name)
    refuse_if_all_raised(plan, *merge(blocks_x, blocks_y))
    return blocks_x, blocks_y


def refuse_if_all_raised(plan: Plan, x: Outputs, y: Outputs) -> None:
    """Refuses a mechanism that raised in every pilot run on both datasets; one more run gives the exception."""
    if not all(isinstance(output, Raised) for outputs in (x, y) for output in outputs):
        return
    reason: Exception | None = None
    try:
        size = (1,) if plan.sampler.is_block else ()
        with under(plan.sampler.answers):
            plan.sampler.call(plan.x, *size, plan.generator("pilot", "x", 0))
    except Exception as error:
        reason = error
    kind = (
        str(x[0].exception) if reason is None else type(reason).__qualname__
    )  # an exception caught by an adapter has no message
    shown = kind if reason is None else described(reason, shows_data=plan.sampler.shows_data)
    raise MechanismError(
        f"{plan.sampler.name} raised in every one of {len(x):,} pilot runs on x and on y, "
        f"{shown}; run it once by hand.",
        mechanism=plan.sampler.name,
        type=kind,
    ) from reason


def split_pilot(
    xs: Outputs, ys: Outputs, claim: Claim, runs: int, alpha: float, *, bits: bool = False
) -> tuple[Pilot, Outputs, Outputs]:
    """Outputs drawn elsewhere, split into the pilot at their beginning and the main outputs to count."""
    x, y = merge([xs], [ys])
    last = longest_pilot(runs, width(x))
    size = last if has_columns(x[: pilot_runs(runs)], y[: pilot_runs(runs)]) else pilot_runs(runs)
    while True:
        chosen = choose_on(x[:size], y[:size], claim, runs - size, alpha, bits=bits, both=True, is_last=size >= last)
        if size >= last or chosen.promise > 0.0:
            break
        size = last
    kept = x[:size], y[:size]
    return Pilot(chosen.choice, [kept[0]], [kept[1]], *kept, net=chosen.net), x[size:], y[size:]


def _cut(outputs: Outputs, blocks: list[Outputs]) -> list[Outputs]:
    """The outputs cut into blocks of the same lengths."""
    return np.split(outputs, np.cumsum([len(block) for block in blocks])[:-1])


def longest_pilot(runs: int, width: int) -> int:
    """The pilot of outputs with several columns, or of an audit that a shorter one promises nothing."""
    return max(pilot_runs(runs), min(grown_pilot_runs(runs), _NUMBERS // max(width, 1)))


def has_columns(x: Outputs, y: Outputs) -> bool:
    """Whether outputs have several numbers and hardly recur, so that scores have to be learned."""
    return (x.dtype == object or width(x) > 1) and not recur(x, y)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a pilot chose: the event or pair of events, the net, and the parameter that the bound is likely to reach."""

    choice: Choice
    net: Net | None
    promise: float


def choose_on(
    x: Outputs,
    y: Outputs,
    claim: Claim,
    main: int,
    alpha: float,
    suggested: Choice | None = None,
    *,
    bits: bool,
    both: bool = False,
    is_last: bool = False,
) -> Chosen:
    """The events chosen on a pilot for `main` main runs.

    The event by which a search ranked the pair is taken instead where it shows more, less a standard error.
    """
    cuts = cuts_of(x, y, bits=bits)
    choice, promise = choose_event(cuts, claim, main, alpha, both=both, is_last=is_last)
    if choice is None:
        choice = max(choose_seen(x, y), key=lambda one: directed_shares(one)[0] - directed_shares(one)[1])
        promise = -math.inf if choice.shows_nothing else 0.0
    if suggested is not None and choice.opposite is None:
        counted = suggested.counted_on(x, y)
        own = expected_excess(choice, claim, main, alpha, caution=0.0)
        shown = expected_excess(counted, claim, main, alpha, caution=1.0)
        if shown > own:
            choice, promise = counted, max(promise, claim.parameter + shown)
    return Chosen(choice, Net.of(cuts, claim, main) if cuts else None, promise)


def width(outputs: Outputs) -> int:
    """Numbers in one output."""
    return outputs.shape[1] if outputs.ndim == 2 else 1


def check_blocks(blocks_x: list[Outputs], blocks_y: list[Outputs], is_block: bool, name: str) -> None:
    """Refuses blocks of different shapes on one dataset."""
    if is_block:
        for side, blocks in (("x", blocks_x), ("y", blocks_y)):
            numeric = [block for block in blocks if block.dtype != object]
            if len(numeric) < len(blocks):  # such as tuples of different lengths, which are a matrix if all agree
                continue
            for block in numeric:
                check_shape(block, numeric[0].shape[1:], f"{name} (in the pilot on {side})")


def run_notes(
    x: Outputs, y: Outputs, main_x: BlockCounts, main_y: BlockCounts, *, runs: str = "pilot runs"
) -> tuple[str, ...]:
    """Notes on the outputs: exceptions, and outputs that never vary.

    Parameters
    ----------
    x, y : ndarray
        The kept outputs, which `runs` names.
    main_x, main_y : BlockCounts
        The outputs that were only counted.
    """
    notes = []
    if (text := number_text(x)) is not None and number_text(y) is not None:
        notes.append(f"outputs are texts of numbers, such as {text!r}; return numbers if the values are meant")
    for side, outputs in (("x", x), ("y", y)):
        seen = f"{len(outputs):,} {runs} on {side}"
        raised = raised_in(outputs)
        notes += [f"{exception} was raised in {times:,} of {seen}" for exception, times in sorted(raised.items())]
        if not raised and all(are_same(part) for part in (outputs[:_SAME], outputs)):
            output = outcome_list(outputs[:1])[0]
            cause = "is a return missing?" if output is None else "is its noise drawn anew in each run?"
            if outputs.dtype.kind == "f" and np.isnan(outputs[0]).any():  # noise changes no NaN
                cause = "is it computed from NaN, or from infinite numbers?"
            notes.append(f"all {seen} gave the same output, {outcome_words(output)}; {cause}")
    for side, main in (("x", main_x), ("y", main_y)):
        others = f"{int(main.sizes.sum()):,} main runs on {side}"
        notes += [
            f"{exception} was raised in {times:,} of {others}" for exception, times in sorted(main.raised.items())
        ]
    return tuple(notes)


def are_same(outputs: Outputs) -> bool:
    """Whether all outputs are equal."""
    if outputs.dtype.kind in "biuf" and len(outputs) > 0:
        first = outputs[0]
        return bool(np.all((outputs == first) | ((outputs != outputs) & (first != first))))
    return len({outcome_key(output) for output in outcome_list(outputs)}) == 1


# The evidence of an audit: its event, counts and kept outputs, before anything is concluded from them.


Split: TypeAlias = tuple[tuple[Labels, Labels], tuple[Labels, Labels], tuple[Labels, Labels]]


@dataclass(frozen=True, slots=True)
class Portfolio:
    """What is counted in the main runs and tested, each on a share of alpha; fixed before these runs.

    Attributes
    ----------
    choice : Choice
        The chosen events.
    net : Net, optional
        Plain events, each of which is tested.
    cells : Partition, optional
        Cells of outputs for the likelihood ratio, if the caller asked for them.
    bins : Bins, optional
        The bins in which divergences are tested, for a claim on these.
    """

    choice: Choice
    net: Net | None
    cells: Partition | None
    bins: Bins | None

    @classmethod
    def of(
        cls, choice: Choice, net: Net | None, x: Outputs, y: Outputs, settings: Settings, n_cells: int = 0
    ) -> Portfolio:
        """The chosen events with what else is tested, learned from the same outputs."""
        cells = learn_cells(x, y, n_cells) if n_cells else None
        return cls(choice, net, cells, learn_bins(x, y, choice, settings.claim))

    @property
    def events(self) -> tuple[Event, ...]:
        """The chosen events."""
        return tuple(each.event for each in (self.choice, *self.choice.others))

    @property
    def partitions(self) -> tuple[Counted, ...]:
        """Net, cells and bins, as far as there are any; `split` returns their counts."""
        net, bins = None if self.net is None else self.net.cells, None if self.bins is None else self.bins.partition
        wanted: tuple[Counted | None, ...] = (net, self.cells, bins)
        return tuple(each for each in wanted if each is not None)

    def split(self, counted: MainCounts) -> Split:
        """Main runs on x and on y in the cells of the net, in the cells, and in the bins."""
        net = None if self.net is None else self.net.cells
        ends = np.cumsum([0 if each is None else each.n_cells for each in (net, self.cells)])
        (net_x, cells_x, bins_x), (net_y, cells_y, bins_y) = (np.split(side, ends) for side in counted.cells)
        return (net_x, net_y), (cells_x, cells_y), (bins_x, bins_y)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSizeEvidence:
    """Evidence of an audit of fixed size: the pilot chose the event, the main runs were counted.

    Attributes
    ----------
    kept : Pilot
        The event, and the outputs of the pilot that chose it.
    portfolio : Portfolio
        What was counted in the main runs.
    counted : MainCounts
        How often it occurred.
    runs : int
        Runs on each dataset, on average, the pilot's included.
    pilot_runs : int
        Runs on each dataset that chose the event, without those of a search.
    coins : int
        Seed of the coins of a test of both directions: fixed by the audit's seed as far as that fixes the outputs.
    main : tuple of BlockCounts
        The main runs' blocks on x and on y; empty for outputs drawn elsewhere.
    is_reproducible : bool
        Whether redrawing the first block gave the same outputs.
    is_in_order : bool
        Whether the pilot runs came before the main runs. The pilot of outputs drawn elsewhere is a random part of them.
    cells : CellCounts, optional
    seconds : mapping of str to float
        Duration of each phase.
    """

    kept: Pilot
    portfolio: Portfolio
    counted: MainCounts
    runs: int
    pilot_runs: int
    coins: int
    main: tuple[BlockCounts, BlockCounts] = field(default_factory=lambda: (no_blocks(), no_blocks()))
    is_reproducible: bool = True
    is_in_order: bool = True
    cells: CellCounts | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """Counts of the event in the main runs."""
        return self.counted.counts[0]

    @property
    def other_counts(self) -> tuple[Counts, ...]:
        """Counts of the other events of the choice, in its order."""
        return self.counted.counts[1:]

    @property
    def fresh_counts(self) -> Counts:
        """Counts in runs that the event was not learned from."""
        return self.counts

    @property
    def searched(self) -> int:
        """Runs of a search on each dataset that chose the event too."""
        return self.kept.searched

    @property
    def uncounted_runs(self) -> int:
        """Runs on each dataset that `counts` leaves out."""
        return self.pilot_runs + self.searched

    @property
    def notes(self) -> tuple[str, ...]:
        return *run_notes(self.kept.x, self.kept.y, *self.main), *self.kept.notes

    @property
    def health_share(self) -> float:
        """Share of the health checks' error probability that this conclusion spends: all of it, being the only one."""
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialEvidence:
    """Evidence of a sequential audit: each batch bets on events that were learned from the batches before it.

    Attributes
    ----------
    kept : Pilot
        The last event bet on, in the direction that won more, and the outputs that were kept.
    counts : Counts
        Counts of that event in all runs, including the runs it was learned from: for the reader, not for the test.
    pilot_runs : int
        Runs on each dataset before the first bet.
    searched : int
        Runs of a search on each dataset from which events were learned before the first batch.
    opposite : OtherDirection, optional
        The rare event of the other direction, if bets on rare events of both refuted the claim.
    main : tuple of BlockCounts
        The blocks on x and on y that were only counted.
    is_reproducible : bool
        Whether redrawing the first block gave the same outputs.
    interim_analyses : tuple of InterimAnalysis
    stopped : {"refuted", "runs", "time", "request"}
        Because the claim was refuted, at the planned number of runs, at the end of the allowed time, or by the caller.
    final : FixedSizeEvidence, optional
        The evidence of the final test, if all planned runs were made and the bets did not refute the claim.
    has_final : bool
        Whether a final test was planned.
    divergence : DivergenceTest, optional
        What bets on a divergence showed, if they won more than those on events.
    is_complete : bool
        Whether all planned runs were made.
    """

    kept: Pilot
    counts: Counts
    pilot_runs: int
    main: tuple[BlockCounts, BlockCounts]
    is_reproducible: bool
    interim_analyses: tuple[InterimAnalysis, ...]
    stopped: Stop
    final: FixedSizeEvidence | None
    has_final: bool
    is_complete: bool
    searched: int = 0
    divergence: DivergenceTest | None = None
    opposite: OtherDirection | None = None

    @property
    def fresh_counts(self) -> Counts:
        """Counts in runs that the event was not learned from."""
        return self.kept.choice.pilot_counts

    @property
    def runs(self) -> int:
        return self.interim_analyses[-1].runs

    @property
    def uncounted_runs(self) -> int:
        """Runs on each dataset that `counts` leaves out."""
        return 0

    @property
    def notes(self) -> tuple[str, ...]:
        return *run_notes(self.kept.x, self.kept.y, *self.main, runs="runs"), *self.kept.notes

    @property
    def health_share(self) -> float:
        """Share of the health checks' error probability that the last interim analysis spends.

        The audit may have stopped at any look because of what it saw. The last planned interim analysis has half of the
        error probability, the k-th interim analysis 3/(π k)² of it; these shares add up to the other half, however many
        looks there are.
        """
        return 0.5 if self.is_complete else 3.0 / (math.pi * len(self.interim_analyses)) ** 2


Evidence = FixedSizeEvidence | SequentialEvidence

# How many of the main runs are made on each dataset.
#
# The test of one event compares p̂ with B(q̂). The variance of the difference is a²/n_p + b²/n_q, with the standard
# deviations a of a hit on the more likely dataset and b of a hit on the other, times the slope of the boundary. For a
# given number of runs it is least if they are divided as a to b (Neyman 1934, On the two different aspects of the
# representative method). An event on the boundary with slope exp(ε) that is rare on both datasets has b/a = exp(ε/2).
#
# The pilot decides, and its runs are not tested, so any division is valid.

_LEAST_SAVED = 0.02  # share of the runs that the division has to save
_LARGEST_RATIO = 4.0  # of the runs on the two datasets, so that no other event is tested on far fewer runs
_STEPS = 401  # of the other dataset's probability


def divided(choice: Choice, claim: Claim, main: int) -> tuple[int, int]:
    """Main runs on x and on y, together 2·`main`; equal if both directions are tested or little can be saved.

    Parameters
    ----------
    choice : Choice
        The event to be tested.
    claim : Claim
        The claim on Pr[M(x) ∈ S] given Pr[M(y) ∈ S].
    main : int
        Mean number of main runs on a dataset.
    """
    p = directed_shares(choice)[0]
    if choice.opposite is not None or choice.shows_nothing or not 0.0 < p < 1.0:
        return main, main
    ours, theirs = _deviations(claim if choice.more_likely_on == "x" else claim.reversed(), p)
    if not 0.0 < ours + theirs < math.inf:
        return main, main
    saved = 1.0 - (ours + theirs) ** 2 / (2.0 * (ours**2 + theirs**2))
    if saved < _LEAST_SAVED:
        return main, main
    least = 1.0 / (1.0 + _LARGEST_RATIO)
    likelier = round(2 * main * min(max(ours / (ours + theirs), least), 1.0 - least))
    return (likelier, 2 * main - likelier) if choice.more_likely_on == "x" else (2 * main - likelier, likelier)


def _deviations(claim: Claim, p: float) -> tuple[float, float]:
    """Standard deviations of a hit on the more likely dataset, and on the other times the slope, where p = B(q)."""
    q = np.geomspace(1e-12, 1.0, _STEPS)
    boundary, _ = claim.max_power(q, 1.0 - q)
    place = int(np.searchsorted(boundary, p))
    if not 0 < place < _STEPS:  # allowed whatever q is
        return 0.0, 0.0
    slope = (boundary[place] - boundary[place - 1]) / (q[place] - q[place - 1])
    middle = 0.5 * (q[place] + q[place - 1])
    return math.sqrt(p * (1.0 - p)), float(slope) * math.sqrt(middle * (1.0 - middle))
