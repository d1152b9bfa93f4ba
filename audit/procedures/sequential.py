"""A sequential audit: growing batches, each bet on events learned from the batches before it.

No runs are set aside for a pilot: the audit only learns from the first batch, unless a search has learned before, and
bets on every later one with the events, lines and bets that the earlier batches suggest. It keeps a wealth against each
member of a fixed grid of the claim's family, and refutes the claim at the first look at which the wealth against it,
averaged over both directions, reaches 1/alpha.

Bets find a common violation early, but need several times the runs of a test of fixed size where a violation is rare or
small. So an audit with a planned number of runs gives half of alpha to such a test at its end: once it has made as many
runs as the pilot of an audit of fixed size, it chooses an event as that pilot does, and counts it in all later runs.

Proof: docs/proofs/wealth.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import numpy as np

from ..claims.claim import Claim
from ..clock import now
from ..distinguishers.choice import Choice
from ..events.events import Event
from ..events.outputs import Outputs, merge
from ..events.partitions import Labels
from ..inference.betting_test import NO_PAIRS, JointCounts
from ..inference.counts import Counts
from ..inference.direction import Direction
from ..random_streams import Stream, seed_of_coins, sequence_of
from ..results.audit_settings import Settings
from ..results.interim_look import Look, Stop
from ..sampling.batches import FIRST, LEAST, Begun, Clock, keep_begun, next_size, recall_begun
from ..sampling.block_counts import no_blocks
from ..sampling.block_plan import Plan
from ..sampling.draw import count_pairs, draw_pilot, shapes_of
from ..sampling.output_bytes import note_of_cut
from ..sampling.pair_counts import PairCounts
from .bets import Bets
from .earlier_draws import EarlierDraws
from .evidence import SequentialEvidence
from .final_test import FinalTest
from .pilot import Pilot, check_blocks, refuse_if_all_raised

# Runs on each dataset, and numbers in vectors, that are kept to learn events from. An event learned from too few runs
# would stay to the end.
_KEPT, _KEPT_NUMBERS = 200_000, 1 << 20
# Growth of the total after which events are learned anew, and rare events: up to so many runs, and beyond.
_OFTEN, _RARELY = 1.3, 2.0
_MANY, _MANY_RARE = 10_000, 100_000
_ENOUGH = 250_000  # runs from which an event is learned anew only where it is not yet known well
_RAISING = 2_000  # runs after which a mechanism that has only raised is refused
# Blocks that a batch is cut into, depending on its size alone: for a looped function, with at least as many runs each,
# and for a block sampler, whose runs of one call may share randomness. Once outputs are only counted, thousands of
# calls have been compared, and blocks of a block sampler have the maximum size.
_FEWEST_BLOCKS, _CALLS = 16, 32
_WORKERS_FROM = {"threads": 0.01, "processes": 0.3}  # seconds from which a batch is spread over workers
_FINEST, _COARSEST = 2e-3, 2.0  # distances of the members of the grid from the claim, in units of its strength
_ABOVE, _BELOW = 10, 20


def grid_of_members(claim: Claim) -> list[float]:
    """Increasing strengths against which wealth is kept, fixed by the claim alone and densest around it.

    The strength that decides about the claim lies a millionth above it, so a bound that reaches it exceeds the claim.
    """
    strength, unit = claim.strength, max(claim.strength, 0.1)
    if np.isfinite(claim.max_strength):
        unit = min(unit, claim.max_strength - strength)
    below = strength - unit * np.geomspace(1.0, _FINEST, _BELOW)
    above = strength + unit * np.append(1e-6, np.geomspace(_FINEST, _COARSEST, _ABOVE))
    members = np.concatenate([below[below > 0], above[above < claim.max_strength]])
    return [float(member) for member in members]


def draw_sequentially(
    plan: Plan,
    settings: Settings,
    runs: int,
    until: float | None = None,
    *,
    has_final: bool = True,
    enough: Callable[[Choice, int], bool] | None = None,
    progress: Callable[[int], None] | None = None,
    on_look: Callable[[Look], bool | None] | None = None,
    earlier: EarlierDraws | None = None,
) -> SequentialEvidence:
    """Draws batches until the claim is refuted, `runs` are done, they are `enough`, or the time is over.

    `until` is a time of `perf_counter`. `has_final` says that a final test follows the last of the `runs`, so that the
    bets have half of alpha. `enough` is called after every batch with the current event and the runs so far. With a
    time limit the last batch is cut to the time left, at the pace of the batch before. The sizes thus depend on the
    past alone, as the bets do. Batches in the plan's memory are completed with the sizes they were begun with,
    regardless of `runs`, `enough` and the time; only a refutation or the caller stops earlier. From outputs drawn
    `earlier` events are learned before the first batch, which is then bet on too.

    Raises
    ------
    MechanismError
        If all of the first 2,000 runs on both datasets raise, or blocks differ in shape.
    StoreError
        If the first block could be repeated in an earlier session and cannot now.
    """
    claim, alpha, bits = settings.claim, settings.bet_alpha(has_final=has_final), settings.bits is True
    state = Bets.start(claim, grid_of_members(claim), alpha, bits)
    final = FinalTest.start(settings, runs) if has_final else None
    earlier = None if earlier is None else earlier.at_most(plan.may_keep(_KEPT))
    old_x, old_y = ([], []) if earlier is None else (earlier.blocks_x, earlier.blocks_y)
    searched = sum(map(len, old_x))
    kept_x: list[Outputs] = []
    kept_y: list[Outputs] = []
    main_x, main_y = no_blocks(), no_blocks()
    main, main_rare = (NO_PAIRS, NO_PAIRS), np.zeros((2, 2), np.int64)
    looks: list[Look] = []
    done = n_blocks = learned = learned_rare = 0
    most = plan.may_keep(_KEPT)
    clock = Clock(until)
    begun: Begun | None = None
    has_checked, is_replayable, root = False, False, plan.seed
    stopped: Stop = "runs"
    if earlier is not None:
        learned = learned_rare = searched
        state = state.learned(*merge(old_x, old_y))
        final = final and final.begun_with(earlier, most)

    for number in count():
        batch_started = now()
        planned = next_size(done, runs)
        is_new, is_cut = begun is None, False
        if begun is not None:
            size, clock = begun.size, replace(clock, paces=begun.paces)
        else:
            size = min(planned, max(clock.runs_left(), LEAST)) if done > FIRST else planned
            is_cut = size < planned
            if number > 0:  # the first batch has the same size in every audit
                keep_begun(plan.memory, number, size, clock)
        is_bet_on = number > 0 or earlier is not None
        batch = _spread(plan, size, clock.pace, is_bet_on=is_bet_on)
        if done < most:
            new_x, new_y = draw_pilot(batch, size, first_block=n_blocks)
            kept_x, kept_y = kept_x + new_x, kept_y + new_y
            most = plan.may_keep(_most_kept(kept_x[0]))
            if number == 0:
                is_replayable = plan.comes_again(kept_x, kept_y)
                if earlier is not None:  # a batch that is bet on has blocks of few runs, which show little
                    is_replayable = is_replayable and earlier.plan.comes_again(old_x, old_y)
                root = plan.seed_of_coins(is_replayable=is_replayable)
            firsts = [*old_x[:1], kept_x[0]], [*old_y[:1], kept_y[0]]
            check_blocks([*firsts[0], *new_x], [*firsts[1], *new_y], plan.sampler.is_block, plan.sampler.name)
            if is_bet_on:
                news, bins = merge(new_x, new_y), state.partition
                in_bins = None if bins is None else (bins.count(news[0]), bins.count(news[1]))
                pairs = PairCounts.of(state.events, state.rare, *news)
                state = state.after(pairs, _coins(root, number, pairs, in_bins), in_bins)
            final = final and final.after(*merge(new_x, new_y))
        else:
            shapes = shapes_of(plan, kept_x, kept_y)
            bins = state.partition
            pairs, more_x, more_y, counted = count_pairs(
                batch.in_blocks(plan.most) if plan.sampler.is_block else batch,
                state.events,
                shapes,
                size,
                first_block=n_blocks,
                rare=state.rare,
                final=() if final is None else final.events,
                partitions=(*(() if final is None else final.partitions), *(() if bins is None else (bins,))),
            )
            main_x, main_y = main_x.followed_by(more_x), main_y.followed_by(more_y)
            in_bins = None if bins is None else counted.last(bins)
            state = state.after(pairs, _coins(root, number, pairs, in_bins), in_bins)
            final = final and final.followed_by(counted.without(bins))
            main = (main[0].followed_by(pairs.first), main[1].followed_by(pairs.second))
            state = state.known_better(main)
            main_rare += [[each.hits_x, each.hits_y] for each in pairs.rare]
        done += size
        n_blocks += -(-size // batch.block)
        if is_new:
            clock = clock.after(now() - batch_started, size)
        if plan.memory is not None:
            plan.memory.save()  # no run is drawn again after its look was seen
        begun = recall_begun(plan.memory, number + 1, done)
        if progress is not None:
            progress(2 * size)
        looks.append(Look(done, state.bound, min(1.0, settings.alpha / alpha * state.p_value)))
        is_asked = on_look is not None and on_look(looks[-1]) is True and done > FIRST
        is_cut = is_cut or (done > FIRST and clock.runs_left() < LEAST)
        is_done = begun is None and done >= runs
        is_over = is_done or is_asked or (begun is None and is_cut)
        if enough is not None and begun is None and done > FIRST and not is_over:
            is_over = enough(state.leading(), done)
        if not has_checked and (done >= _RAISING or is_over):
            refuse_if_all_raised(plan, *merge(kept_x, kept_y))
            has_checked = True
        if state.bound > claim.strength:
            stopped = "refuted"
            break
        if is_over:
            stopped = "runs" if is_done else "request" if is_asked else "time" if is_cut else "runs"
            break
        if final is not None and final.is_due(done, most):
            final = final.chosen_on(*merge(old_x + kept_x, old_y + kept_y), done, most)
        kept = searched + sum(map(len, kept_x))
        seen, last = searched + done, searched + most
        anew = _is_due(learned, seen, last, _MANY) and (learned < _ENOUGH or state.could_learn)
        if anew or _is_due(learned_rare, seen, last, _MANY_RARE):
            learned, learned_rare = kept if anew else learned, kept
            state = state.learned(*merge(old_x + kept_x, old_y + kept_y), anew=anew)
    choice = state.leading()
    x, y = merge(kept_x, kept_y)
    counts = _recounted(choice.event, x, y, main[int(choice.likelier_on == "y")], choice.likelier_on)
    opposite = None
    if stopped == "refuted" and (rare := state.deciding_rare(x, y, main_rare, main[0].runs)) is not None:
        choice, counts, opposite = rare
    cut = note_of_cut(plan.most_kept, min(_most_kept(kept_x[0]), done), plan.output_bytes)
    pilot = Pilot(choice, kept_x, kept_y, x, y, cut, column_names=plan.sampler.column_names)
    return SequentialEvidence(
        kept=pilot,
        counts=counts,
        opposite=opposite,
        divergence=state.found_divergence,
        pilot_runs=0 if searched else min(FIRST, done),
        searched=searched,
        main=(main_x, main_y),
        is_replayable=is_replayable,
        looks=tuple(looks),
        stopped=stopped,
        final=final.evidence(pilot, root) if final is not None and stopped == "runs" and done == runs else None,
        has_final=has_final,
        is_complete=done == runs,
    )


def _coins(root: int, number: int, pairs: PairCounts, in_bins: tuple[Labels, Labels] | None) -> np.random.Generator:
    """The coins that say which runs of a batch count as guesses."""
    seen = repr(pairs).encode(), *(side.tobytes() for side in in_bins or ())
    return np.random.default_rng(sequence_of(seed_of_coins(root, *seen), Stream.BATCHES, number))


def _is_due(learned: int, done: int, most: int, many: int) -> bool:
    """Whether something learned from so many runs, of at most `most`, is learned again after `done` runs."""
    growth = _RARELY if learned > many else _OFTEN
    return learned < most and done >= min(growth * learned, most)


def _most_kept(outputs: Outputs) -> int:
    """Number of runs that are kept on each dataset, for outputs like these."""
    if outputs.dtype == object:
        return _KEPT
    return max(_KEPT, _KEPT_NUMBERS // max(outputs.shape[1] if outputs.ndim == 2 else 1, 1))


def _recounted(event: Event, x: Outputs, y: Outputs, main: JointCounts, likelier_on: Direction) -> Counts:
    """Hits of the event in the kept outputs and in the blocks that were counted for this event."""
    hits_p, hits_q = main.both + main.only_p, main.both + main.only_q
    if likelier_on == "y":
        hits_p, hits_q = hits_q, hits_p
    return Counts(
        hits_x=event.count(x) + hits_p,
        runs_x=len(x) + main.runs,
        hits_y=event.count(y) + hits_q,
        runs_y=len(y) + main.runs,
    )


def _spread(plan: Plan, size: int, pace: float, *, is_bet_on: bool) -> Plan:
    """The plan for a batch: its blocks, and this process alone for a small one, which changes no output.

    The batch without bets has two blocks, which reveal a fixed seed, and noise that a call draws once. One that is bet
    on has many of a block sampler, because runs of one call that share randomness count as one.
    """
    if not is_bet_on:
        block = -(-size // 2)
    elif plan.sampler.is_block:
        block = -(-size // _CALLS)
    else:
        block = max(size // _FEWEST_BLOCKS, _FEWEST_BLOCKS)
    return replace(plan.in_blocks(block), jobs=1 if size * pace < _WORKERS_FROM[plan.prefers] else plan.jobs)
