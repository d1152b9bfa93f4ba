"""A sequential audit: growing batches, each bet on events learned from the batches before it.

No runs are set aside for a pilot: the audit only learns from the first batch, and bets on every later one with the
events, lines and bets that the earlier batches suggest. It keeps a wealth against each member of a fixed grid of the
claim's family, and refutes the claim at the first look at which the wealth against it, averaged over both directions,
reaches 1/alpha. Wealth is useless after the last planned run, so it is staked on one test of the last batch.

Proof: docs/proofs/wealth.md
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from ..distinguishers.event_choice import Choice, choose_event_each_way
from ..distinguishers.pilot_split import PilotSplit
from ..events.events import Event
from ..events.output_bytes import note_of_cut
from ..events.outputs import Outputs, merge
from ..inference.betting_test import NO_PAIRS, JointCounts, Wealth
from ..inference.counts import Counts
from ..inference.direction import Direction
from ..inference.joint_test import GAMMA, p_value
from ..inference.supporting_lines import Line, best_lines, drift
from ..results.interim_look import Look, Stop
from ..sampling.batches import FIRST, LEAST, Begun, Clock, keep_begun, next_size, recall_begun
from ..sampling.block_counts import no_blocks
from ..sampling.block_plan import Plan
from ..sampling.draw import count_pairs, draw_pilot, shapes_of
from ..sampling.tasks import Events, joint_counts
from .evidence import SequentialEvidence
from .pilot import Pilot, check_blocks, refuse_if_all_raised

# Runs on each dataset, and numbers in vectors, that are kept to learn events from. An event learned from too few runs
# would stay to the end.
_KEPT, _KEPT_NUMBERS = 200_000, 1 << 20
# Growth of the total after which events are learned anew: up to _MANY runs, and beyond.
_OFTEN, _RARELY, _MANY = 1.7, 3.0, 10_000
_RAISING = 2_000  # runs after which a mechanism that has only raised is refused
# Blocks that a batch is cut into, depending on its size alone: for a looped function, with at least as many runs each,
# and for a block sampler, whose runs of one call may share randomness.
_FEWEST_BLOCKS, _CALLS = 16, 32
_WORKERS_FROM = 0.3  # seconds from which a batch is spread over workers
_FINEST, _COARSEST = 2e-3, 2.0  # distances of the members of the grid from the claim, in units of its strength
_ABOVE, _BELOW = 10, 20

_LOSING = 1.0  # an event further below its line than this, in standard errors, is not bet on
_LEAST_LEVEL, _LARGEST_LEVEL = 10 * GAMMA, 0.5  # levels of a test that wealth may be staked on

Placed: TypeAlias = npt.NDArray[np.int64]


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
    claim: Claim,
    runs: int,
    alpha: float,
    until: float | None = None,
    *,
    enough: Callable[[Choice, int], bool] | None = None,
    progress: Callable[[int], None] | None = None,
    on_look: Callable[[Look], bool | None] | None = None,
    bits: bool = False,
) -> SequentialEvidence:
    """Draws batches until the claim is refuted, `runs` are done, they are `enough`, or the time is over.

    `until` is a time of `perf_counter`. `enough` is called after every batch with the current event and the runs so
    far. With a time limit the last batch is cut to the time left, at the pace of the batch before. The sizes thus
    depend on the past alone, as the bets do. Without a time limit the
    wealth is staked on the last batch. Batches in the plan's memory are completed with the sizes they were begun with,
    whatever `runs`, `enough` and the time say; only a refutation or the caller stops earlier.

    Raises
    ------
    MechanismError
        If all of the first 2,000 runs on both datasets raise, or blocks differ in shape.
    StoreError
        If the first block could be repeated in an earlier session and cannot now.
    """
    members = grid_of_members(claim)
    state = _Bets.start(claim, members, alpha, bits)
    kept_x: list[Outputs] = []
    kept_y: list[Outputs] = []
    main_x, main_y = no_blocks(), no_blocks()
    main = (NO_PAIRS, NO_PAIRS)
    looks: list[Look] = []
    done = n_blocks = learned = 0
    most = plan.may_keep(_KEPT)
    clock = Clock(until)
    begun: Begun | None = None
    has_checked = is_replayable = False
    stopped: Stop = "runs"

    for number in count():
        batch_started = time.perf_counter()
        planned = next_size(done, runs, is_open=until is not None)
        is_new, is_cut = begun is None, False
        if begun is not None:
            size, is_last, clock = begun.size, begun.is_last, replace(clock, paces=begun.paces)
        else:
            size = min(planned, max(clock.runs_left(), LEAST)) if done > FIRST else planned
            is_cut, is_last = size < planned, until is None and done + size >= runs
            if number > 0:  # the first batch has the same size in every audit
                keep_begun(plan.memory, number, size, clock, is_last=is_last)
        batch = _spread(plan, size, clock.pace)
        if done < most:
            new_x, new_y = draw_pilot(batch, size, first_block=n_blocks)
            kept_x, kept_y = kept_x + new_x, kept_y + new_y
            most = plan.may_keep(_most_kept(kept_x[0]))
            is_replayable = is_replayable if number else plan.comes_again(kept_x, kept_y)
            check_blocks([kept_x[0], *new_x], [kept_y[0], *new_y], plan.sampler.is_block, plan.sampler.name)
            if done > 0:
                state = state.after(_pairs(new_x, new_y, state.events), is_last=is_last)
        else:
            shapes = shapes_of(plan, kept_x, kept_y)
            pairs, more_x, more_y = count_pairs(batch, state.events, shapes, size, first_block=n_blocks)
            main_x, main_y = main_x.followed_by(more_x), main_y.followed_by(more_y)
            state = state.after(pairs, is_last=is_last)
            main = (main[0].followed_by(pairs[0]), main[1].followed_by(pairs[1]))
        done += size
        n_blocks += -(-size // batch.block)
        if is_new:
            clock = clock.after(time.perf_counter() - batch_started, size)
        if plan.memory is not None:
            plan.memory.save()  # no run is drawn again after its look was seen
        begun = recall_begun(plan.memory, number + 1, done)
        if progress is not None:
            progress(2 * size)
        looks.append(Look(done, state.bound, float(state.wealth.p_values()[state.decisive])))
        is_asked = on_look is not None and on_look(looks[-1]) is True and done > FIRST
        is_cut = is_cut or (done > FIRST and clock.runs_left() < LEAST)
        is_done = is_last or (begun is None and done >= runs)
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
        growth = _RARELY if learned > _MANY else _OFTEN
        if learned < most and done >= min(growth * learned, most):
            learned = sum(map(len, kept_x))
            state = state.learned(*merge(kept_x, kept_y))
    choice = state.leading()
    x, y = merge(kept_x, kept_y)
    counts = _recounted(choice.event, x, y, main[int(choice.likelier_on == "y")], choice.likelier_on)
    cut = note_of_cut(plan.most_kept, min(_most_kept(kept_x[0]), done), plan.output_bytes)
    return SequentialEvidence(
        kept=Pilot(choice, kept_x, kept_y, x, y, cut),
        counts=counts,
        pilot_runs=min(FIRST, done),
        main=(main_x, main_y),
        is_replayable=is_replayable,
        looks=tuple(looks),
        stopped=stopped,
        is_closed=is_last,
        is_complete=done == runs,
    )


@dataclass(frozen=True, slots=True)
class _Bets:
    """The wealth so far and the next bets: for each direction an event, and a line for each member of the grid."""

    claim: Claim
    members: list[float]
    alpha: float
    bits: bool  # whether to bet on events by low bits
    wealth: Wealth
    choices: tuple[Choice | None, Choice | None]
    first: int  # members before this one are refuted and no longer bet against
    lines: Sequence[Sequence[Line]]
    placed: Placed  # for each member and direction: the direction on which that wealth is bet, or -1
    better: Placed  # for each member: the direction on which all would be staked, or -1

    @classmethod
    def start(cls, claim: Claim, members: list[float], alpha: float, bits: bool) -> _Bets:
        nowhere = np.zeros(0, np.int64)
        wealth = Wealth.start(len(members))
        return cls(claim, members, alpha, bits, wealth, (None, None), 0, [], nowhere.reshape(0, 2), nowhere)

    @property
    def events(self) -> Events:
        first, second = self.choices
        return (first.event if first else None), (second.event if second else None)

    @property
    def bound(self) -> float:
        """The largest member that is refuted with all smaller ones; 0 if there is none."""
        n_refuted = self.wealth.n_refuted(self.alpha)
        return self.members[n_refuted - 1] if n_refuted else 0.0

    def learned(self, x: Outputs, y: Outputs) -> _Bets:
        """The bets after learning from these outputs."""
        split = PilotSplit.in_half(x, y)
        choices = choose_event_each_way(split, self.claim, len(x), self.alpha, bits=self.bits)
        seen = [_frequencies(choice) for choice in choices]
        first = self.wealth.n_refuted(self.alpha)
        lines = [
            best_lines([side.with_strength(member) for member in self.members[first:]], *at)
            for side, at in zip((self.claim, self.claim.reversed()), seen, strict=True)
        ]
        scores = np.array(
            [[drift(line, *at[:2]) * at[2] for line in side] for side, at in zip(lines, seen, strict=True)]
        )
        return replace(
            self,
            choices=choices,
            first=first,
            lines=list(zip(*lines, strict=True)),
            placed=_placed(scores),
            better=np.where(scores.max(axis=0) < -(_LOSING**2), -1, scores.argmax(axis=0)),
        )

    def after(self, pairs: tuple[JointCounts, JointCounts], *, is_last: bool) -> _Bets:
        """The wealth after a batch."""
        placed, p_values = self.placed, dict[int, float]()
        if is_last:
            log_levels = self.wealth.log_average[self.first :] + math.log(self.alpha)
            levels = np.exp(np.minimum(log_levels, math.log(_LARGEST_LEVEL)))
            is_staked = (self.better >= 0) & (levels >= _LEAST_LEVEL)
            placed = np.where(is_staked[:, None], -1, placed)
            p_values = self._tested(
                pairs, dict(zip(np.flatnonzero(is_staked) + self.first, levels[is_staked], strict=True))
            )
        wealth = self.wealth.after(self.lines, pairs, first=self.first, placed=placed)
        return replace(self, wealth=wealth.staked(p_values))

    def _tested(self, pairs: tuple[JointCounts, JointCounts], levels: dict[int, float]) -> dict[int, float]:
        """p-values of members in the last batch, at levels that their wealth pays for.

        Members are tested in order, from the first that is not refuted to the first that stays so; and so is the member
        that decides about the claim.
        """
        sides, found = (self.claim, self.claim.reversed()), dict[int, float]()

        def is_refuted(member: int) -> bool:
            if member not in levels:
                return False
            on = int(self.better[member - self.first])
            claim = sides[on].with_strength(self.members[member])
            found[member] = p_value(pairs[on].counts, claim, alpha=levels[member])
            return found[member] <= levels[member]

        refuted = self.wealth.n_refuted(self.alpha)
        while refuted < len(self.members) and is_refuted(refuted):
            refuted += 1
        if refuted < self.decisive:
            is_refuted(self.decisive)
        return found

    @property
    def decisive(self) -> int:
        """The member that decides about the claim."""
        return next(i for i, member in enumerate(self.members) if member > self.claim.strength)

    def leading(self) -> Choice:
        """The current event in the direction that has won more against the claim."""
        most = int(np.argmax(self.wealth.log_wealth[self.decisive].max(axis=1)))
        on = int(self.placed[self.decisive - self.first, most])
        choice = self.choices[on if on >= 0 else most] or self.choices[1 - most]
        assert choice is not None  # an event is made up if nothing distinguishes x from y
        return choice


def _placed(scores: npt.NDArray[np.float64]) -> Placed:
    """Direction on which the wealth of each direction is bet: its own, unless that loses and the other does not.

    Parameters
    ----------
    scores : ndarray, shape (2, members)
        Signed squares of the distances of the events' frequencies above the lines, in standard errors.
    """
    is_losing = scores.T < -(_LOSING**2)
    own, other = np.array([0, 1]), np.array([1, 0])
    return np.where(~is_losing, own, np.where(~is_losing[:, ::-1], other, -1))


def _frequencies(choice: Choice | None) -> tuple[float, float, float]:
    """Smoothed frequencies of an event, the likelier side first, and the number of runs behind them.

    Without an event, frequencies that no bet is placed on: it occurs on the other side only.
    """
    if choice is None:
        return 1e-9, 0.5, 1e9
    hits = (choice.pilot_hits_x, choice.pilot_hits_y)
    p, q = hits if choice.likelier_on == "x" else hits[::-1]
    return (p + 0.5) / (choice.pilot_runs + 1.0), (q + 0.5) / (choice.pilot_runs + 1.0), float(choice.pilot_runs)


def _most_kept(outputs: Outputs) -> int:
    """Number of runs that are kept on each dataset, for outputs like these."""
    if outputs.dtype == object:
        return _KEPT
    return max(_KEPT, _KEPT_NUMBERS // max(outputs.shape[1] if outputs.ndim == 2 else 1, 1))


def _pairs(blocks_x: list[Outputs], blocks_y: list[Outputs], events: Events) -> tuple[JointCounts, JointCounts]:
    """Joint counts of the pairs of runs in a batch, for the event of each direction."""
    x, y = merge(blocks_x, blocks_y)
    first, second = events
    return joint_counts(first, x, y), joint_counts(second, y, x)


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


def _spread(plan: Plan, size: int, pace: float) -> Plan:
    """The plan for a batch: small batches stay in this process. Neither choice changes an output."""
    if plan.sampler.is_block and size != FIRST:  # the first batch, without bets, reveals a fixed seed
        block = -(-size // _CALLS)
    else:
        block = max(size // _FEWEST_BLOCKS, _FEWEST_BLOCKS)
    return replace(plan.in_blocks(block), jobs=1 if size * pace < _WORKERS_FROM else plan.jobs)
