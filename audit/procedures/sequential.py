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

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from ..claims.claim import Claim
from ..distinguishers.choice import Choice
from ..distinguishers.event_choice import choose_event_each_way
from ..distinguishers.event_value import DIRECTIONS
from ..events.events import Event
from ..events.outputs import Outputs, merge
from ..families.one_sided_sets import one_sided_sets
from ..families.pilot_split import PilotSplit
from ..inference.betting_test import NO_PAIRS, BetCounts, JointCounts, Wealth
from ..inference.counts import Counts
from ..inference.direction import Direction
from ..inference.guess_test import Guesses, guesses_in_batch, is_symmetric
from ..inference.supporting_lines import Line, best_lines, drift
from ..random_streams import Stream, sequence_of
from ..results.audit_settings import Settings
from ..results.interim_look import Look, Stop
from ..results.other_direction import OtherDirection
from ..sampling.batches import FIRST, LEAST, Begun, Clock, keep_begun, next_size, recall_begun
from ..sampling.block_counts import no_blocks
from ..sampling.block_plan import Plan
from ..sampling.draw import count_pairs, draw_pilot, shapes_of
from ..sampling.output_bytes import note_of_cut
from ..sampling.pair_counts import Events, PairCounts
from .bet_placement import RARE_ACCOUNT, Floats, Placed, largest_bets, place_bets
from .earlier_draws import EarlierDraws
from .evidence import SequentialEvidence
from .final_test import FinalTest
from .pilot import Pilot, check_blocks, is_unsure, refuse_if_all_raised

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

_RARE_HITS = 2  # outputs seen on one dataset only that are bet on


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
    state = _Bets.start(claim, grid_of_members(claim), alpha, bits)
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
    has_checked = is_replayable = False
    stopped: Stop = "runs"
    if earlier is not None:
        learned = learned_rare = searched
        state = state.learned(*merge(old_x, old_y))
        final = final and final.begun_with(earlier, most)

    for number in count():
        batch_started = time.perf_counter()
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
        coins = np.random.default_rng(sequence_of(plan.seed, Stream.BATCHES, number))
        if done < most:
            new_x, new_y = draw_pilot(batch, size, first_block=n_blocks)
            kept_x, kept_y = kept_x + new_x, kept_y + new_y
            most = plan.may_keep(_most_kept(kept_x[0]))
            if number == 0:
                is_replayable = plan.comes_again(kept_x, kept_y)
                if earlier is not None:  # a batch that is bet on has blocks of few runs, which show little
                    is_replayable = is_replayable and earlier.plan.comes_again(old_x, old_y)
            firsts = [*old_x[:1], kept_x[0]], [*old_y[:1], kept_y[0]]
            check_blocks([*firsts[0], *new_x], [*firsts[1], *new_y], plan.sampler.is_block, plan.sampler.name)
            if is_bet_on:
                state = state.after(PairCounts.of(state.events, state.rare, *merge(new_x, new_y)), coins)
            final = final and final.after(*merge(new_x, new_y))
        else:
            shapes = shapes_of(plan, kept_x, kept_y)
            pairs, more_x, more_y, counted = count_pairs(
                batch.in_blocks(plan.most) if plan.sampler.is_block else batch,
                state.events,
                shapes,
                size,
                first_block=n_blocks,
                rare=state.rare,
                final=() if final is None else final.events,
                outcomes=None if final is None else final.outcomes,
            )
            main_x, main_y = main_x.followed_by(more_x), main_y.followed_by(more_y)
            state = state.after(pairs, coins)
            final = final and final.followed_by(counted)
            main = (main[0].followed_by(pairs.first), main[1].followed_by(pairs.second))
            main_rare += [[each.hits_x, each.hits_y] for each in pairs.rare]
        done += size
        n_blocks += -(-size // batch.block)
        if is_new:
            clock = clock.after(time.perf_counter() - batch_started, size)
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
        pilot_runs=0 if searched else min(FIRST, done),
        searched=searched,
        main=(main_x, main_y),
        is_replayable=is_replayable,
        looks=tuple(looks),
        stopped=stopped,
        final=final.evidence(pilot) if final is not None and stopped == "runs" and done == runs else None,
        has_final=has_final,
        is_complete=done == runs,
    )


def _is_due(learned: int, done: int, most: int, many: int) -> bool:
    """Whether something learned from so many runs, of at most `most`, is learned again after `done` runs."""
    growth = _RARELY if learned > many else _OFTEN
    return learned < most and done >= min(growth * learned, most)


@dataclass(frozen=True, slots=True)
class _Bets:
    """The wealth so far and the next bets: for each direction an event, and lines for each member of the grid.

    There is an account for each direction and, for claims that are the same in both directions, one for both at once
    and one for rare events, seen on one dataset only.
    """

    claim: Claim
    members: list[float]
    alpha: float
    bits: bool  # whether to bet on events by low bits
    wealth: Wealth
    choices: tuple[Choice | None, Choice | None]
    rare: Events
    first: int  # members before this one are refuted and no longer bet against
    lines: Sequence[Sequence[Line]]
    most: Floats | None  # for each member and account: the largest bet
    placed: Placed  # for each member and account: the account whose bet that wealth is placed on, or -1

    @classmethod
    def start(cls, claim: Claim, members: list[float], alpha: float, bits: bool) -> _Bets:
        accounts = 4 if is_symmetric(claim) else 2
        return cls(
            claim=claim,
            members=members,
            alpha=alpha,
            bits=bits,
            wealth=Wealth.start(len(members), accounts),
            choices=(None, None),
            rare=(None, None),
            first=0,
            lines=[],
            most=None,
            placed=np.zeros((0, accounts), np.int64),
        )

    @property
    def events(self) -> Events:
        first, second = self.choices
        return (first.event if first else None), (second.event if second else None)

    @property
    def could_learn(self) -> bool:
        """Whether an event is missing, or too rare for its likelihood ratio to be known well."""
        return any(choice is None or is_unsure(choice) for choice in self.choices)

    @property
    def bound(self) -> float:
        """The largest member that is refuted with all smaller ones; 0 if there is none."""
        n_refuted = self.wealth.n_refuted(self.alpha)
        return self.members[n_refuted - 1] if n_refuted else 0.0

    def learned(self, x: Outputs, y: Outputs, *, anew: bool = True) -> _Bets:
        """The bets after learning from these outputs: rare events always, and the others if learned `anew`."""
        choices, split = self.choices, PilotSplit.in_half(x, y)
        if anew:
            choices = choose_event_each_way(split, self.claim, len(x), self.alpha, bits=self.bits)
        seen = [_frequencies(choice) for choice in choices]
        rare = one_sided_sets(split, least=_RARE_HITS) if self.is_symmetric else (None, None)
        first = self.wealth.n_refuted(self.alpha)
        sides = [self.claim, self.claim.reversed()]
        if self.is_symmetric:
            hits = sum(event.count(side) for event, side in zip(rare, (x, y), strict=True) if event is not None)
            of_rare = _smoothed(hits, 0, 2 * len(x)) if hits else _frequencies(None)
            sides, seen = [*sides, self.claim, self.claim], [*seen, _of_both(*choices), of_rare]
        lines = [
            best_lines([side.with_strength(member) for member in self.members[first:]], *at)
            for side, at in zip(sides, seen, strict=True)
        ]
        scores = np.array(
            [[drift(line, *at[:2]) * at[2] for line in side] for side, at in zip(lines, seen, strict=True)]
        )
        return replace(
            self,
            choices=choices,
            rare=rare,
            first=first,
            lines=list(zip(*lines, strict=True)),
            most=largest_bets(lines, seen),
            placed=place_bets(scores),
        )

    @property
    def is_symmetric(self) -> bool:
        return len(self.wealth.log_wealth[0]) == 4

    def after(self, pairs: PairCounts, coins: np.random.Generator) -> _Bets:
        """The wealth after a batch."""
        counts: list[BetCounts] = [pairs.first, pairs.second]
        if self.is_symmetric:
            counts += [pairs.both, guesses_in_batch(*pairs.rare, coins)]
        return replace(
            self, wealth=self.wealth.after(self.lines, counts, first=self.first, placed=self.placed, most=self.most)
        )

    @property
    def p_value(self) -> float:
        """Smallest level at which the bets refute the claim."""
        return float(self.wealth.p_values()[self.decisive])

    @property
    def decisive(self) -> int:
        """The member that decides about the claim."""
        return next(i for i, member in enumerate(self.members) if member > self.claim.strength)

    def leading(self) -> Choice:
        """The current event in the direction that has won more against the claim."""
        most = int(np.argmax(self.wealth.log_wealth[self.decisive, :2].max(axis=1)))
        on = int(self.placed[self.decisive - self.first, most])
        tried = [self.choices[side] for side in (on, most, 1 - most) if side in (0, 1)]  # others are of both directions
        return next(choice for choice in tried if choice is not None)  # one is made up if nothing tells x from y

    def deciding_rare(
        self, x: Outputs, y: Outputs, main: Placed, runs: int
    ) -> tuple[Choice, Counts, OtherDirection | None] | None:
        """The rare events, that with more hits first, and their counts, if bets on them won most of the wealth.

        Parameters
        ----------
        x, y : ndarray
            The kept outputs.
        main : ndarray of int, shape (2 events, 2 datasets)
            Hits in the `runs` that were only counted.
        """
        if not self.is_symmetric or self.rare == (None, None):
            return None
        won = int(self.wealth.log_of_accounts[self.decisive].argmax())
        if self.placed[self.decisive - self.first, won] != RARE_ACCOUNT:
            return None
        n = len(x) + runs
        found: list[tuple[int, Choice, Counts]] = []
        for event, more, direction in zip(self.rare, main.tolist(), DIRECTIONS, strict=True):
            if event is not None:
                hits_x, hits_y = event.count(x), event.count(y)
                counts = Counts(hits_x=hits_x + more[0], runs_x=n, hits_y=hits_y + more[1], runs_y=n)
                excess = (counts.hits_x - counts.hits_y) * (1 if direction == "x" else -1)
                found.append((excess, Choice(event, direction, hits_x, hits_y, len(x)), counts))
        (_, first, shown), *second = sorted(found, key=lambda each: -each[0])
        if not second:
            return first, shown, None
        _, other, counts = second[0]
        wrong = (shown.hits_y + counts.hits_x) if first.likelier_on == "x" else (shown.hits_x + counts.hits_y)
        right = shown.hits_x + shown.hits_y + counts.hits_x + counts.hits_y - wrong
        guesses = Guesses(right=right, wrong=wrong, runs=2 * n)
        return first, shown, OtherDirection(event=other.event, counts=counts, guesses=guesses)


def _frequencies(choice: Choice | None) -> tuple[float, float, float]:
    """Smoothed frequencies of an event, the likelier side first, and the number of runs behind them.

    Without an event, frequencies that no bet is placed on: it occurs on the other side only.
    """
    if choice is None:
        return 1e-9, 0.5, 1e9
    hits = (choice.pilot_hits_x, choice.pilot_hits_y)
    return _smoothed(*(hits if choice.likelier_on == "x" else hits[::-1]), choice.pilot_runs)


def _smoothed(hits_p: int, hits_q: int, runs: int) -> tuple[float, float, float]:
    return (hits_p + 0.5) / (runs + 1.0), (hits_q + 0.5) / (runs + 1.0), float(runs)


def _of_both(first: Choice | None, second: Choice | None) -> tuple[float, float, float]:
    """Frequencies of right and of wrong guesses in a run on a dataset drawn by a fair coin, and the number of runs."""
    if first is None or second is None:
        return _frequencies(None)
    (p, q, runs), (more_p, more_q, _) = _frequencies(first), _frequencies(second)
    return 0.5 * (p + more_p), 0.5 * (q + more_q), 2.0 * runs


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
