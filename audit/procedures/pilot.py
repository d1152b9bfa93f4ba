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
from ..distinguishers.choice import Choice, directed_shares
from ..distinguishers.contenders import winner
from ..distinguishers.coupling import relative_error
from ..distinguishers.event_choice import choose_event, expected_excess
from ..distinguishers.event_value import normal_quantile
from ..distinguishers.learned_partition import Bins, learn_bins, learn_cells, plain_events
from ..errors import MechanismError, described
from ..events.events import Counted, Event, ExceptFor, Labels, Partition, PlainEvents, Scored
from ..events.outputs import Outputs, Raised, merge, outcome_key, outcome_list, outcome_words
from ..events.scores import Additive, Column, Forest, Weighted
from ..families.pilot_split import PilotSplit
from ..floating_point_errors import under
from ..inference.boundary_test import Counts
from ..inference.divergence_test import DivergenceTest
from ..inference.outcome_test import most_outcomes
from ..random_streams import Stream, seed_of
from ..results.audit_result import Look, OtherDirection, Settings, Stop
from ..results.cell_result import CellCounts
from ..sampling.block_plan import (
    DEEP_MOST,
    DEEP_SHARE,
    FEW_HITS,
    LARGEST_ERROR,
    LONG_SHARE,
    ROUGH_ERROR,
    ROUGH_SHARE,
    MemoryPart,
    Plan,
    check_shape,
    note_of_cut,
    pilot_runs,
)
from ..sampling.draw import count_hits, draw_pilot, shapes_of
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
    coupled_x, coupled_y : list of ndarray
        Blocks of the runs that chose the pair, with the same random numbers on x and on y. The event may be chosen on
        them too. Nothing else sees them: they are too like each other, and they are why the pair was chosen.
    suggested : Choice, optional
        The event by which the search ranked the pair, with its hits in coupled runs that it was not chosen on.
    """

    plan: Plan
    blocks_x: list[Outputs]
    blocks_y: list[Outputs]
    coupled_x: list[Outputs] = field(default_factory=list)
    coupled_y: list[Outputs] = field(default_factory=list)
    suggested: Choice | None = None

    @property
    def runs(self) -> int:
        """Runs on each dataset."""
        return sum(map(len, self.blocks_x))

    def __str__(self) -> str:
        """What determines the outputs, apart from mechanism and datasets."""
        sizes = ", ".join(map(str, dict.fromkeys(map(len, self.blocks_x))))
        coupled = sum(map(len, self.coupled_x))
        before = f", after {coupled:,} that were coupled" if coupled else ""
        return f"{self.runs:,} in blocks of {sizes} by seed {self.plan.seed}{before}"

    def at_most(self, runs: int) -> EarlierDraws | None:
        """The first whole blocks, of at most `runs` runs on each dataset together; None if the first one has more."""
        alone = _fitting_draws(self.blocks_x, runs)
        if alone == 0:
            return None
        coupled = _fitting_draws(self.coupled_x, runs - sum(map(len, self.blocks_x[:alone])))
        return EarlierDraws(
            self.plan,
            self.blocks_x[:alone],
            self.blocks_y[:alone],
            self.coupled_x[:coupled],
            self.coupled_y[:coupled],
            self.suggested if coupled else None,
        )

    def before(self, x: Outputs, y: Outputs) -> tuple[Outputs, Outputs]:
        """The coupled outputs followed by these, on x and on y."""
        all_x, all_y = merge([*self.coupled_x, x], [*self.coupled_y, y])
        return all_x, all_y


def _fitting_draws(blocks: list[Outputs], runs: int) -> int:
    """How many of the first blocks have at most `runs` runs together."""
    return sum(total <= runs for total in accumulate(map(len, blocks)))


_SAME = 100  # outputs compared first, because most outputs vary
_CLOSE = 0.5  # largest error of coupled runs, as a share of that of independent runs, with which they choose the event
_MANY_MORE = 2  # times the usual pilot that a fortieth of the runs has to be
_RUNOFF = 1.5  # times the kept runs that a pilot has to want before further ones are counted
# Fewest runs of a last pilot that takes a common event if it shows nothing. In a shorter one the best event is not so
# rare that it could show no excess.
_SHORT = 400
_DEEP_NUMBERS = 4_000_000  # coordinates of vectors on each side: 32 megabytes


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
    counted : int
        Further runs on each dataset that chose among a few events, and were only counted.
    """

    choice: Choice
    blocks_x: list[Outputs]
    blocks_y: list[Outputs]
    x: Outputs
    y: Outputs
    notes: tuple[str, ...] = ()
    searched: int = 0
    column_names: tuple[str, ...] = ()
    counted: int = 0

    @property
    def runs(self) -> int:
        """Runs on each dataset that the audit itself drew."""
        return len(self.x) - self.searched + self.counted


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

    The pilot begins with the outputs drawn `earlier`, and only the missing ones are drawn. The event may be chosen on
    the coupled ones of these too (`choose_on`); its hits are those in independent runs.

    Raises
    ------
    MechanismError
        If every pilot run raises, or blocks on one dataset differ in shape.
    """
    wanted = pilot_runs(runs)
    size = plan.may_keep(wanted)
    earlier = None if earlier is None else earlier.at_most(plan.most_kept)
    had = 0 if earlier is None else earlier.runs
    blocks_x, blocks_y = _drawn(plan.for_pilot(size), size - had)
    first = blocks_x[0] if earlier is None or not earlier.blocks_x else earlier.blocks_x[0]
    longest = [min(runs // share, DEEP_MOST) for share in (LONG_SHARE, DEEP_SHARE)]
    again = any(each >= _RUNOFF * size and plan.may_keep(_fitting(each, width(first))) <= size for each in longest)
    pilot = _pilot(plan, earlier, blocks_x, blocks_y, claim, runs, alpha, None, bits=bits, both=both, again=again)
    longer = longer_pilot(pilot.choice, runs, width(pilot.x))
    # At most twice: to an eighth of the runs, and to a third if that shows nothing.
    while (more := plan.may_keep(longer.runs)) > len(pilot.x):
        again = longer.wanted >= _RUNOFF * more
        more_x, more_y = _drawn(plan.for_pilot(more), more - len(pilot.x), first_block=len(blocks_x))
        blocks_x, blocks_y = blocks_x + more_x, blocks_y + more_y
        pilot = _pilot(plan, earlier, blocks_x, blocks_y, claim, runs, alpha, longer, bits=bits, both=both, again=again)
        if not pilot.choice.shows_nothing:
            break
        longer = longer_pilot(pilot.choice, runs, width(pilot.x))
    if longer.wanted >= _RUNOFF * len(pilot.x):
        pilot = _after_runoff(plan, pilot, claim, runs, alpha, longer.wanted - len(pilot.x))
    return replace(pilot, notes=pilot.notes + note_of_cut(max(size, had), wanted, plan.output_bytes))


def _after_runoff(plan: Plan, pilot: Pilot, claim: Claim, runs: int, alpha: float, counted: int) -> Pilot:
    """The pilot with the best of its events in `counted` fresh runs, which only count them."""
    memory = None if plan.memory is None else MemoryPart(plan.memory, "the pilot, counted")
    apart = replace(plan, seed=seed_of(plan.seed, Stream.RUNOFF), memory=memory)
    choice = pilot.choice
    tried = [choice, *choice.others, *choice.contenders]
    first, *others = dict.fromkeys(each.event for each in tried)
    shapes = shapes_of(plan, pilot.blocks_x, pilot.blocks_y)
    on_x, on_y = count_hits(apart, first, shapes, counted, others=tuple(others))
    counts = MainCounts.of_blocks(on_x, on_y).counts
    hits = {event: (each.hits_x, each.hits_y) for event, each in zip((first, *others), counts, strict=True)}

    def fresh(each: Choice) -> Choice:
        return replace(each.with_hits(*hits[each.event], counted), contenders=())

    opposite, bold = (each and fresh(each) for each in (choice.opposite, choice.bold))
    own = replace(fresh(choice), opposite=opposite, bold=bold)
    main = runs - pilot.runs - counted
    best = winner(own, map(fresh, choice.contenders), claim, main, normal_quantile(alpha))
    notes = tuple(
        f"{exception} was raised in {times:,} of {counted:,} pilot runs on {side} that were only counted"
        for side, blocks in (("x", on_x), ("y", on_y))
        for exception, times in sorted(blocks.raised.items())
    )
    return replace(pilot, choice=best, notes=notes, counted=counted)


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
    size = pilot_runs(runs)
    last = longest_pilot(runs, width(x))
    choice = choose_on(x[:size], y[:size], claim, runs - size, alpha, None, bits=bits, is_last=last <= size)
    longer = longer_pilot(choice, runs, width(x))
    while longer.runs > size:
        size = longer.runs
        choice = choose_on(x[:size], y[:size], claim, runs - size, alpha, longer, bits=bits, is_last=last <= size)
        if not choice.shows_nothing:
            break
        longer = longer_pilot(choice, runs, width(x))
    return Pilot(choice, [x[:size]], [y[:size]], x[:size], y[:size]), x[size:], y[size:]


def _pilot(
    plan: Plan,
    earlier: EarlierDraws | None,
    blocks_x: list[Outputs],
    blocks_y: list[Outputs],
    claim: Claim,
    runs: int,
    alpha: float,
    longer: Longer | None,
    *,
    bits: bool,
    both: bool,
    again: bool,
) -> Pilot:
    drawn = sum(map(len, blocks_x))
    if earlier is not None:
        blocks_x, blocks_y = earlier.blocks_x + blocks_x, earlier.blocks_y + blocks_y
    check_blocks(blocks_x, blocks_y, plan.sampler.is_block, plan.sampler.name)
    x, y = merge(blocks_x, blocks_y)
    refuse_if_all_raised(plan, x, y)
    if x.ndim == 2:  # vectors are large, so keep a single copy
        blocks_x, blocks_y = (_cut(side, blocks) for side, blocks in ((x, blocks_x), (y, blocks_y)))
    is_last = plan.may_keep(longest_pilot(runs, width(x))) <= len(x)
    choice = choose_on(
        x, y, claim, runs - drawn, alpha, longer, earlier, bits=bits, both=both, again=again, is_last=is_last
    )
    names = plan.sampler.column_names
    return Pilot(choice, blocks_x, blocks_y, x, y, searched=len(x) - drawn, column_names=names)


def _cut(outputs: Outputs, blocks: list[Outputs]) -> list[Outputs]:
    """The outputs cut into blocks of the same lengths."""
    return np.split(outputs, np.cumsum([len(block) for block in blocks])[:-1])


@dataclass(frozen=True, slots=True)
class Longer:
    """A longer pilot: its runs on each dataset, 0 if the first was long enough, and whether a rare event is wanted.

    `wanted` are the runs that it would have if outputs took no memory.
    """

    runs: int
    is_deep: bool
    wanted: int = 0


def longer_pilot(choice: Choice, runs: int, width: int) -> Longer:
    """The longer pilot that a choice calls for.

    A third of all runs if the best event is rare or shows nothing, an eighth if its likelihood ratio is not known well
    enough to tell it from others, or it is one of several columns. A fortieth if a pilot that an audit of many runs
    hardly notices may know it better.
    """
    is_deep = _is_rare(choice)
    if is_unsure(choice) or is_of_columns(choice.event):
        wanted = runs // (DEEP_SHARE if is_deep else LONG_SHARE)
    elif _is_rough(choice, ROUGH_ERROR) and runs // ROUGH_SHARE >= _MANY_MORE * pilot_runs(runs):
        wanted = runs // ROUGH_SHARE
    else:
        return Longer(0, is_deep=False)
    wanted = min(wanted, DEEP_MOST)
    return Longer(_fitting(wanted, width), is_deep, wanted)


def longest_pilot(runs: int, width: int) -> int:
    """The pilot of an audit whose event is rare, or in which nothing is seen."""
    return _fitting(min(runs // DEEP_SHARE, DEEP_MOST), width)


def _fitting(runs: int, width: int) -> int:
    """How many of so many pilot runs of vectors are kept at most."""
    return min(runs, _DEEP_NUMBERS // max(width, 1))


def is_unsure(choice: Choice) -> bool:
    """Whether an event is rare, shows nothing, or has a likelihood ratio that is not known well."""
    return _is_rough(choice, LARGEST_ERROR) or _is_rare(choice)


def is_of_columns(event: Event) -> bool:
    """Whether the event is one of an output's several columns, or of a sum over them."""
    scored = event.event if isinstance(event, ExceptFor) else event
    return isinstance(scored, Scored) and isinstance(scored.score, (Weighted, Column, Additive, Forest))


def _is_rough(choice: Choice, error: float) -> bool:
    """Whether the standard error of the log ratio is a larger share of it than `error`."""
    fewer, more = sorted((choice.pilot_hits_x, choice.pilot_hits_y))
    return fewer > 0 and math.sqrt(1.0 / fewer + 1.0 / more) > error * math.log(more / fewer)


def _is_rare(choice: Choice) -> bool:
    fewer, more = sorted((choice.pilot_hits_x, choice.pilot_hits_y))
    return choice.shows_nothing or (more > 0 and fewer < FEW_HITS)


def choose_on(
    x: Outputs,
    y: Outputs,
    claim: Claim,
    main: int,
    alpha: float,
    longer: Longer | None,
    earlier: EarlierDraws | None = None,
    *,
    bits: bool,
    both: bool = False,
    again: bool = False,
    is_last: bool = False,
) -> Choice:
    """The event chosen on a pilot for `main` main runs.

    `longer` is the pilot that the choice before called for; None for a first choice. If it is the last, as no longer
    pilot can be kept, a common event is taken where it shows nothing, unless it is very short.

    Coupled runs drawn `earlier` serve too if they know the ratio of an event much better than as many others would: the
    event is chosen anew, on these and the first half of x and y, and its hits are those in the second half. If it is
    tested in one direction alone, the event by which the search ranked the pair is taken instead where it shows more
    with a standard error subtracted than the chosen one without, which is then tested in reserve. The contenders are
    kept if fresh runs choose `again`.
    """

    def chosen(on_x: Outputs, on_y: Outputs) -> Choice:
        return choose_event(
            PilotSplit.in_half(on_x, on_y),
            claim,
            main,
            alpha,
            deep=longer is not None and longer.is_deep,
            settle=is_last and len(on_x) >= _SHORT,
            bits=bits,
            both=both,
            with_contenders=again,
        )

    if earlier is None or earlier.suggested is None:
        return chosen(x, y)
    suggested, coupled = earlier.suggested, merge(earlier.coupled_x, earlier.coupled_y)
    error = relative_error(suggested.event, *coupled)
    if error > _CLOSE:
        choice = chosen(x, y)
        if relative_error(choice.event, *coupled) > _CLOSE:
            return choice
    half = len(x) // 2
    choice = chosen(*earlier.before(x[:half], y[:half])).counted_on(x[half:], y[half:])
    if again:
        choice = replace(choice, contenders=(*choice.contenders, suggested))
    alone = suggested.counted_on(x[half:], y[half:])
    is_seen = max(alone.pilot_hits_x, alone.pilot_hits_y) > 0
    if not is_seen or choice.opposite is not None or choice.event == suggested.event:
        return choice
    own = expected_excess(choice, claim, main, alpha, caution=0.0)
    shown = max(
        expected_excess(suggested, claim, main, alpha, caution=error),
        expected_excess(alone, claim, main, alpha, caution=1.0),
    )
    if shown <= own:
        return choice
    reserve = choice if choice.bold is None or choice.bold.event == suggested.event else choice.bold
    return replace(alone, bold=replace(reserve, bold=None) if both else None, contenders=(choice, *choice.contenders))


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
    net : PlainEvents, optional
        Plain events, each of which is tested.
    cells : Partition, optional
        Cells of outputs for the likelihood ratio, if the caller asked for them.
    bins : Bins, optional
        The bins in which divergences are tested, for a claim on these.
    """

    choice: Choice
    net: PlainEvents | None
    cells: Partition | None
    bins: Bins | None

    @classmethod
    def of(
        cls, choice: Choice, x: Outputs, y: Outputs, settings: Settings, share: float = 1.0, n_cells: int = 0
    ) -> Portfolio:
        """The chosen events with what else is tested, learned from the same outputs; tested on a share of alpha."""
        return cls(
            choice,
            plain_events(x, y, most_outcomes(settings.net_alpha(share))),
            learn_cells(x, y, n_cells) if n_cells else None,
            learn_bins(x, y, choice, settings.claim),
        )

    @property
    def events(self) -> tuple[Event, ...]:
        """The chosen events."""
        return tuple(each.event for each in (self.choice, *self.choice.others))

    @property
    def partitions(self) -> tuple[Counted, ...]:
        """Net, cells and bins, as far as there are any; `split` returns their counts."""
        wanted: tuple[Counted | None, ...] = (self.net, self.cells, None if self.bins is None else self.bins.partition)
        return tuple(each for each in wanted if each is not None)

    def split(self, counted: MainCounts) -> Split:
        """Main runs on x and on y in the net, in the cells, and in the bins."""
        ends = np.cumsum([0 if each is None else each.n_cells for each in (self.net, self.cells)])
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
    is_replayable : bool
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
    is_replayable: bool = True
    is_in_order: bool = True
    cells: CellCounts | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """Hits of the event in the main runs."""
        return self.counted.counts[0]

    @property
    def other_counts(self) -> tuple[Counts, ...]:
        """Hits of the other events of the choice, in its order."""
        return self.counted.counts[1:]

    @property
    def fresh_counts(self) -> Counts:
        """Hits in runs that the event was not learned from."""
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
        Hits of that event in all runs, including the runs it was learned from: for the reader, not for the test.
    pilot_runs : int
        Runs on each dataset before the first bet.
    searched : int
        Runs of a search on each dataset from which events were learned before the first batch.
    opposite : OtherDirection, optional
        The rare event of the other direction, if bets on rare events of both refuted the claim.
    main : tuple of BlockCounts
        The blocks on x and on y that were only counted.
    is_replayable : bool
        Whether redrawing the first block gave the same outputs.
    looks : tuple of Look
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
    is_replayable: bool
    looks: tuple[Look, ...]
    stopped: Stop
    final: FixedSizeEvidence | None
    has_final: bool
    is_complete: bool
    searched: int = 0
    divergence: DivergenceTest | None = None
    opposite: OtherDirection | None = None

    @property
    def fresh_counts(self) -> Counts:
        """Hits in runs that the event was not learned from."""
        return self.kept.choice.pilot_counts

    @property
    def runs(self) -> int:
        return self.looks[-1].runs

    @property
    def uncounted_runs(self) -> int:
        """Runs on each dataset that `counts` leaves out."""
        return 0

    @property
    def notes(self) -> tuple[str, ...]:
        return *run_notes(self.kept.x, self.kept.y, *self.main, runs="runs"), *self.kept.notes

    @property
    def health_share(self) -> float:
        """Share of the health checks' error probability that the last look spends.

        The audit may have stopped at any look because of what it saw. The last planned look has half of the error
        probability, the k-th look 3/(π k)² of it; these shares add up to the other half, however many looks there are.
        """
        return 0.5 if self.is_complete else 3.0 / (math.pi * len(self.looks)) ** 2


Evidence = FixedSizeEvidence | SequentialEvidence

# How many of the main runs are made on each dataset.
#
# The test of one event compares p̂ with B(q̂). The variance of the difference is a²/n_p + b²/n_q, with the standard
# deviations a of a hit on the likelier dataset and b of a hit on the other, times the slope of the boundary. For a
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
    ours, theirs = _deviations(claim if choice.likelier_on == "x" else claim.reversed(), p)
    if not 0.0 < ours + theirs < math.inf:
        return main, main
    saved = 1.0 - (ours + theirs) ** 2 / (2.0 * (ours**2 + theirs**2))
    if saved < _LEAST_SAVED:
        return main, main
    least = 1.0 / (1.0 + _LARGEST_RATIO)
    likelier = round(2 * main * min(max(ours / (ours + theirs), least), 1.0 - least))
    return (likelier, 2 * main - likelier) if choice.likelier_on == "x" else (2 * main - likelier, likelier)


def _deviations(claim: Claim, p: float) -> tuple[float, float]:
    """Standard deviations of a hit on the likelier dataset, and on the other times the slope, where p = B(q)."""
    q = np.geomspace(1e-12, 1.0, _STEPS)
    boundary, _ = claim.max_power(q, 1.0 - q)
    place = int(np.searchsorted(boundary, p))
    if not 0 < place < _STEPS:  # allowed whatever q is
        return 0.0, 0.0
    slope = (boundary[place] - boundary[place - 1]) / (q[place] - q[place - 1])
    middle = 0.5 * (q[place] + q[place - 1])
    return math.sqrt(p * (1.0 - p)), float(slope) * math.sqrt(middle * (1.0 - middle))
