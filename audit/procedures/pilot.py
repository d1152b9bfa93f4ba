"""The pilot: the first runs, which choose the event and do not enter the test.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..claims.claim import Claim
from ..datasets.number_texts import number_text
from ..distinguishers.choice import Choice
from ..distinguishers.contenders import winner
from ..distinguishers.coupling import relative_error
from ..distinguishers.event_choice import choose_event, expected_excess
from ..distinguishers.event_value import normal_quantile
from ..errors import MechanismError, described
from ..events.outputs import Outputs, Raised, merge, outcome_key, outcome_list, outcome_words
from ..families.pilot_split import PilotSplit
from ..floating_point_errors import under
from ..random_streams import Stream, seed_of
from ..sampling.block_counts import BlockCounts, counts_of_others, total_counts
from ..sampling.block_plan import MemoryPart, Plan, check_shape
from ..sampling.draw import count_hits, draw_pilot, shapes_of
from ..sampling.output_bytes import note_of_cut
from ..sampling.pilot_size import (
    DEEP_MOST,
    DEEP_SHARE,
    FEW_HITS,
    LARGEST_ERROR,
    LONG_SHARE,
    ROUGH_ERROR,
    ROUGH_SHARE,
    pilot_runs,
)
from ..sampling.tasks import raised_in
from .earlier_draws import EarlierDraws

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
    counts = (total_counts(on_x, on_y), *counts_of_others(on_x, on_y))
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
    shown = kind if reason is None else described(reason)
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
    enough to tell it from others. A fortieth if a pilot that an audit of many runs hardly notices may know it better.
    """
    is_deep = _is_rare(choice)
    if is_unsure(choice):
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
