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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from ..clock import now
from ..events.events import Counted, Event, Labels, Partition
from ..events.outputs import Outputs, merge
from ..events.scores import Reading
from ..inference.betting_test import GRADED_BETS, NO_PAIRS, BetCounts, JointCounts, Line, Wealth, best_lines, drift
from ..inference.divergence_test import Divergence, Divergences, DivergenceTest, log_gain, smoothed
from ..inference.event_test import Counts, Direction
from ..inference.guess_test import Guesses, guesses_in_batch, is_symmetric
from ..portfolio.choice import DIRECTIONS, Choice, choose_each_way, choose_seen, seen_on_one_dataset
from ..portfolio.columns import cuts_of
from ..portfolio.partitions import Bins, learn_bins
from ..random_streams import Stream, seed_of_coins, sequence_of
from ..results.audit_result import FINAL_SHARE, InterimAnalysis, OtherDirection, Settings, Stop
from ..sampling.block_plan import Plan, note_of_cut
from ..sampling.draw import count_pairs, draw_pilot, shapes_of
from ..sampling.pilot_and_batch_sizes import FIRST, LEAST, Begun, Clock, keep_begun, next_size, pilot_runs, recall_begun
from ..sampling.tasks import Events, MainCounts, PairCounts, no_blocks
from .pilot import (
    EarlierDraws,
    FixedSizeEvidence,
    Pilot,
    Portfolio,
    SequentialEvidence,
    check_blocks,
    choose_on,
    has_columns,
    longest_pilot,
    refuse_if_all_raised,
    width,
)

# The bets of a sequential audit: its wealth, what was learned, and what is bet on it next.

Placed: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Seen: TypeAlias = tuple[float, float, float]  # frequencies p and q of an event, and the runs behind them

_BOTH, _RARE = 2, 3  # accounts that bet on both directions at once, and on rare events, the last two of four
_RARE_COUNTS = 2  # outputs seen on one dataset only that are bet on
# Standard errors that are added to an event's distance above its line before the largest bet is computed, so that an
# event further below it is not bet on; and the distance below it from which rare events are not bet on.
_DOUBT, _RARE_DOUBT = 0.5, 1.0
_FEW_COUNTS, _LARGEST_ERROR = 50, 0.125  # of an event whose ratio is known well
_NO_EVENT: Seen = (1e-9, 0.5, 1e9)  # frequencies that no bet is placed on: of an event on the other side only


@dataclass(frozen=True, slots=True)
class Bets:
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
    seen: Sequence[Seen]  # for each account
    most: Floats | None  # for each member and account: the largest bet
    placed: Placed  # for each member and account: the account whose bet that wealth is placed on, or -1
    bins: Bins | None = None  # for claims on divergences: the bins, with all runs so far
    divergences: tuple[Divergence, ...] = ()  # for each member: the one that is bet on

    @classmethod
    def start(cls, claim: Claim, members: list[float], alpha: float, bits: bool) -> Bets:
        accounts = 4 if is_symmetric(claim) else 2
        return cls(
            claim=claim,
            members=members,
            alpha=alpha,
            bits=bits,
            wealth=Wealth.start(len(members), accounts, is_graded=bool(claim.divergence_slopes)),
            choices=(None, None),
            rare=(None, None),
            first=0,
            lines=[],
            seen=[],
            most=None,
            placed=np.zeros((0, accounts), np.int64),
        )

    @property
    def events(self) -> Events:
        first, second = self.choices
        return (first.event if first else None), (second.event if second else None)

    @property
    def could_learn(self) -> bool:
        """Whether an event is missing, or the likelihood ratio of one is not known well."""
        return any(choice is None or _is_unsure(choice) for choice in self.choices)

    @property
    def bound(self) -> float:
        """The largest member that is refuted with all smaller ones; 0 if there is none."""
        n_refuted = self.wealth.n_refuted(self.alpha)
        return self.members[n_refuted - 1] if n_refuted else 0.0

    def learned(self, x: Outputs, y: Outputs) -> Bets:
        """The bets after learning from these outputs."""
        cuts = cuts_of(x, y, bits=self.bits)
        choices = choose_each_way(cuts, self.claim, len(x), self.alpha)
        if choices == (None, None):
            choices = choose_seen(x, y)
        seen = [_frequencies(choice) for choice in choices]
        rare: Events = (None, None)
        if self.is_symmetric:
            first, second = seen_on_one_dataset(cuts, _RARE_COUNTS)
            rare = None if first is None else first.event, None if second is None else second.event
            counts = sum(event.count(side) for event, side in zip(rare, (x, y), strict=True) if event is not None)
            seen += [_mean(*seen), _smoothed(counts, 0, 2 * len(x)) if counts else _NO_EVENT]
        bins = learn_bins(x, y, next(each for each in choices if each is not None), self.claim)
        return replace(self, choices=choices, rare=rare, bins=bins).placed_by(seen).with_divergences()

    def with_divergences(self) -> Bets:
        """The divergences that show most against each member in the bins so far, which are bet on next."""
        if self.bins is None:
            return self
        x, y = self.bins.known_x, self.bins.known_y
        runs = int(x.sum())
        found = Divergences.of(smoothed(x), smoothed(y), self.claim, runs, runs, runs)
        best, _ = found.telling(np.array(self.members))
        return replace(self, divergences=tuple(found.divergences[index] for index in best.tolist()))

    def placed_by(self, seen: Sequence[Seen]) -> Bets:
        """The lines and bets that these frequencies of the events call for, one for each account."""
        first = self.wealth.n_refuted(self.alpha)
        sides = [self.claim, self.claim.reversed(), *([self.claim] * 2 if self.is_symmetric else [])]
        lines = [
            best_lines([side.with_parameter(member) for member in self.members[first:]], *at)
            for side, at in zip(sides, seen, strict=True)
        ]
        scores = np.array(
            [[drift(line, *at[:2]) * at[2] for line in side] for side, at in zip(lines, seen, strict=True)]
        )
        return replace(
            self,
            first=first,
            lines=list(zip(*lines, strict=True)),
            seen=seen,
            most=largest_bets(lines, seen),
            placed=place_bets(scores),
        )

    def known_better(self, main: tuple[JointCounts, JointCounts]) -> Bets:
        """The bets that counts of the same events in further runs call for, whenever these have doubled.

        Learning ends, but what an event is worth becomes clearer: one that was unlucky then is bet on later.
        """
        runs = main[0].runs
        behind = [known for choice, (*_, known) in zip(self.choices, self.seen, strict=False) if choice is not None]
        if runs < 2.0 * max(behind, default=0.0):
            return self
        seen = [
            _NO_EVENT if choice is None else _smoothed(each.counts.count_x, each.counts.count_y, runs)
            for choice, each in zip(self.choices, main, strict=True)
        ]
        return self.placed_by([*seen, _mean(*seen), self.seen[_RARE]] if self.is_symmetric else seen)

    @property
    def is_symmetric(self) -> bool:
        return len(self.wealth.log_wealth[0]) == 4

    @property
    def partition(self) -> Partition | None:
        """The bins to count."""
        return None if self.bins is None else self.bins.partition

    def after(
        self, pairs: PairCounts, coins: np.random.Generator, in_bins: tuple[Labels, Labels] | None = None
    ) -> Bets:
        """The wealth after a batch, with its runs in the bins, if there are any."""
        bins, graded = self.bins, None
        if bins is not None and in_bins is not None:
            graded = self._graded(bins, *in_bins)
            bins = replace(bins, known_x=bins.known_x + in_bins[0], known_y=bins.known_y + in_bins[1])
        counts: list[BetCounts] = [pairs.first, pairs.second]
        if self.is_symmetric:
            counts += [pairs.both, guesses_in_batch(*pairs.rare, coins)]
        wealth = self.wealth.after(
            self.lines, counts, first=self.first, placed=self.placed, most=self.most, graded=graded
        )
        return replace(self, wealth=wealth, bins=bins)

    def _graded(self, bins: Bins, x: Labels, y: Labels) -> Floats:
        """What the bets on the divergence multiply the wealth by, shape (members, graded bets), as logarithms."""
        p, q, runs = smoothed(bins.known_x), smoothed(bins.known_y), bins.known_x.sum()
        members, graded = np.array(self.members[self.first :]), []
        for divergence, group in groupby(self.divergences[self.first :]):
            number = len(list(group))
            payoffs, limit = divergence.payoffs(p, q), divergence.limit(members[:number])
            mean_x, variance_x, mean_y, variance_y = payoffs.moments(p, q)
            variance = max(variance_x + variance_y, 1e-300)
            gain = np.maximum(mean_x - mean_y - limit + _DOUBT * math.sqrt(variance / runs), 0.0)
            graded.append(log_gain(payoffs, limit, gain[:, None] / variance * GRADED_BETS, mean_x, mean_y, x, y))
            members = members[number:]
        return np.concatenate(graded)

    @property
    def found_divergence(self) -> DivergenceTest | None:
        """What the bets on divergences show, if they have won more than all bets on events."""
        wealth, at = self.wealth, self.decisive
        if self.bins is None or not self.divergences:
            return None
        divergence = self.divergences[at]
        if wealth.log_of_graded[at] < wealth.log_average[at]:  # which is the mean of both
            return None
        p, q = smoothed(self.bins.known_x), smoothed(self.bins.known_y)
        mean_x, _, mean_y, _ = divergence.payoffs(p, q).moments(p, q)
        return DivergenceTest(
            order=divergence.order,
            way=divergence.way,
            bins=len(p),
            alpha=self.alpha,
            pvalue=self.pvalue,
            bound=self.bound,
            estimate=divergence.parameter(mean_x - mean_y),
        )

    @property
    def pvalue(self) -> float:
        """Smallest level at which the bets refute the claim."""
        return float(self.wealth.pvalues()[self.decisive])

    @property
    def decisive(self) -> int:
        """The member that decides about the claim."""
        return next(i for i, member in enumerate(self.members) if member > self.claim.parameter)

    def leading(self) -> Choice:
        """The current event in the direction that has won more against the claim."""
        most = int(np.argmax(self.wealth.log_wealth[self.decisive, :2].max(axis=1)))
        on = int(self.placed[self.decisive - self.first, most])
        tried = [self.choices[side] for side in (on, most, 1 - most) if side in (0, 1)]  # others are of both directions
        return next(choice for choice in tried if choice is not None)  # one is made up if nothing tells x from y

    def deciding_rare(
        self, x: Outputs, y: Outputs, main: Placed, runs: int
    ) -> tuple[Choice, Counts, OtherDirection | None] | None:
        """The rare events, that with more counts first, and their counts, if bets on them won most of the wealth.

        Parameters
        ----------
        x, y : ndarray
            The kept outputs.
        main : ndarray of int, shape (2 events, 2 datasets)
            Counts in the `runs` that were only counted.
        """
        if not self.is_symmetric or self.rare == (None, None):
            return None
        won = int(self.wealth.log_of_accounts[self.decisive].argmax())
        if self.placed[self.decisive - self.first, won] != _RARE:
            return None
        n = len(x) + runs
        found: list[tuple[int, Choice, Counts]] = []
        for event, more, direction in zip(self.rare, main.tolist(), DIRECTIONS, strict=True):
            if event is not None:
                count_x, count_y = event.count(x), event.count(y)
                counts = Counts(count_x=count_x + more[0], runs_x=n, count_y=count_y + more[1], runs_y=n)
                excess = (counts.count_x - counts.count_y) * (1 if direction == "x" else -1)
                found.append((excess, Choice(event, direction, count_x, count_y, len(x)), counts))
        (_, first, shown), *second = sorted(found, key=lambda each: -each[0])
        if not second:
            return first, shown, None
        _, other, counts = second[0]
        wrong = (shown.count_y + counts.count_x) if first.more_likely_on == "x" else (shown.count_x + counts.count_y)
        right = shown.count_x + shown.count_y + counts.count_x + counts.count_y - wrong
        guesses = Guesses(right=right, wrong=wrong, runs=2 * n)
        return first, shown, OtherDirection(event=other.event, counts=counts, guesses=guesses)


def _frequencies(choice: Choice | None) -> Seen:
    """Smoothed frequencies of an event, the more likely side first, and the number of runs behind them."""
    if choice is None:
        return _NO_EVENT
    counts = (choice.pilot_count_x, choice.pilot_count_y)
    return _smoothed(*(counts if choice.more_likely_on == "x" else counts[::-1]), choice.pilot_runs)


def _is_unsure(choice: Choice) -> bool:
    """Whether the standard error of the log ratio is more than an eighth of it."""
    fewer, more = sorted((choice.pilot_count_x, choice.pilot_count_y))
    return fewer < _FEW_COUNTS or math.sqrt(1.0 / fewer + 1.0 / more) > _LARGEST_ERROR * math.log(more / fewer)


def _smoothed(count_p: int, count_q: int, runs: int) -> Seen:
    return (count_p + 0.5) / (runs + 1.0), (count_q + 0.5) / (runs + 1.0), float(runs)


def _mean(first: Seen, second: Seen) -> Seen:
    """Frequencies of correct and of incorrect guesses in a run on a dataset drawn by a fair coin, and the runs."""
    if _NO_EVENT in (first, second):
        return _NO_EVENT
    return 0.5 * (first[0] + second[0]), 0.5 * (first[1] + second[1]), 2.0 * first[2]


def place_bets(scores: Floats) -> Placed:
    """Account whose bet each wealth is placed on: its own, unless that loses, and then one that does not; -1 for none.

    What may be needed for rare events is not bet on others.

    Parameters
    ----------
    scores : ndarray, shape (accounts, members)
        Signed squares of the distances of the events' frequencies above the lines, in standard errors.
    """
    doubt = np.where(np.arange(len(scores)) == _RARE, _RARE_DOUBT, _DOUBT)
    is_losing, best = -(doubt**2) > scores.T, scores[:_RARE].argmax(axis=0)[:, None]
    other = np.where(np.take_along_axis(is_losing, best, axis=1), -1, best)
    placed: Placed = np.where(is_losing, other, np.arange(len(scores)))
    placed[:, _RARE:] = np.where(is_losing[:, _RARE:], -1, _RARE)
    return placed


def largest_bets(lines: Sequence[Sequence[Line]], seen: Sequence[Seen]) -> Floats:
    """The largest λ for bets against each line, shape (members, accounts), by what is known of the events.

    For a small mean gain d of a pair of runs, of variance v, wealth grows fastest with λ = d/v. Larger bets win less
    and lose more; on an event that was chosen by chance, they lose all that a better event would need later. So d is
    taken at the frequencies seen so far, with half a standard error added. Bets on rare events are not limited: they
    win soon or not at all.

    Parameters
    ----------
    lines : sequence of sequence of Line
        For each account one for each member.
    seen : sequence of tuple
        For each account. For both directions at once, frequencies are means over twice the runs, v is half of the
        variance in one run, and the two events exclude each other.
    """
    most = np.full((len(lines[0]), len(lines)), np.inf)
    for account, (side, (p, q, runs)) in enumerate(zip(lines, seen, strict=True)):
        if account == _RARE:
            continue
        slope, intercept = (np.array([getattr(line, name) for line in side]) for name in ("slope", "intercept"))
        variance = p * (1.0 - p) + slope**2 * q * (1.0 - q) + (2.0 * slope * p * q if account == _BOTH else 0.0)
        variance = np.maximum(variance, 1e-300)
        gain = p - slope * q - intercept + _DOUBT * np.sqrt(variance / runs)
        most[:, account] = np.maximum(gain, 0.0) / (variance / 2.0 if account == _BOTH else variance)
    return most


# The final test of a sequential audit: an event chosen early, tested once on all later runs.


@dataclass(frozen=True, slots=True)
class FinalTest:
    """What the final test tests, once it is chosen, and its counts so far.

    Attributes
    ----------
    settings : Settings
    runs : int
        Planned runs on each dataset.
    due : int
        Runs after which the event is chosen.
    earlier : EarlierDraws, optional
        Runs of a search that the event is chosen on too; none after the choice.
    portfolio : Portfolio, optional
        What is counted, once it is chosen.
    counted : MainCounts, optional
        Its counts in the runs after the choice.
    """

    settings: Settings
    runs: int
    due: int
    earlier: EarlierDraws | None = None
    portfolio: Portfolio | None = None
    counted: MainCounts | None = None

    @classmethod
    def start(cls, settings: Settings, runs: int) -> FinalTest:
        """The final test of an audit that will make `runs` runs; the event is chosen when a pilot would end."""
        return cls(settings, runs, pilot_runs(runs))

    def begun_with(self, earlier: EarlierDraws, most: int) -> FinalTest:
        """The final test after the outputs of a search, which may suffice to choose the event before the first run."""
        begun = replace(self, earlier=earlier)
        blocks = earlier.blocks_x, earlier.blocks_y
        return begun.chosen_on(*merge(*blocks), 0, most) if begun.is_due(0, most) else begun

    @property
    def searched(self) -> int:
        """Independent runs of the search on each dataset."""
        return 0 if self.earlier is None else self.earlier.runs

    @property
    def events(self) -> tuple[Event, ...]:
        """The events to count; none before the choice."""
        return () if self.portfolio is None else self.portfolio.events

    @property
    def partitions(self) -> tuple[Counted, ...]:
        """The net and the bins, to be counted."""
        return () if self.portfolio is None else self.portfolio.partitions

    def is_due(self, done: int, most: int) -> bool:
        """Whether to choose the event after `done` runs, of which at most `most` are kept."""
        return self.portfolio is None and done + self.searched >= min(self.due, most)

    def chosen_on(self, x: Outputs, y: Outputs, done: int, most: int) -> FinalTest:
        """The event chosen on the kept outputs, as the pilot of an audit of fixed size does; or a later due time."""
        settings, had = self.settings, done + self.searched
        longest = min(longest_pilot(self.runs, width(x)), most)
        is_last = longest <= had
        if not is_last and has_columns(x, y):
            return replace(self, due=longest)
        suggested = None if self.earlier is None else self.earlier.suggested
        alpha, bits, main = FINAL_SHARE * settings.alpha, settings.bits is True, self.runs - done
        chosen = choose_on(x, y, settings.claim, main, alpha, suggested, bits=bits, both=True, is_last=is_last)
        if not is_last and chosen.promise <= 0.0:
            return replace(self, due=longest)
        return replace(self, earlier=None, portfolio=Portfolio.of(chosen.choice, chosen.net, x, y, settings))

    def after(self, x: Outputs, y: Outputs) -> FinalTest:
        """The counts after these outputs."""
        return self.followed_by(MainCounts.of(self.events, self.partitions, Reading(x), Reading(y)))

    def followed_by(self, counted: MainCounts) -> FinalTest:
        """The counts after a batch that was counted elsewhere."""
        if self.portfolio is None:
            return self
        return replace(self, counted=self.counted.followed_by(counted) if self.counted else counted)

    def evidence(self, kept: Pilot, coins: int) -> FixedSizeEvidence | None:
        """The evidence of the test; None if there were too few runs to choose an event and to count it.

        `coins` is the seed of the coins of all tests of the audit.
        """
        if self.portfolio is None or self.counted is None:
            return None
        return FixedSizeEvidence(
            kept=replace(kept, choice=self.portfolio.choice),
            portfolio=self.portfolio,
            counted=self.counted,
            runs=self.runs,
            pilot_runs=self.runs - self.counted.runs[0],
            coins=seed_of_coins(coins, self.counted.contents),
            is_in_order=False,
        )


# Runs on each dataset, and numbers in vectors, that are kept to learn events from. An event learned from too few runs
# would stay to the end.
_KEPT, _KEPT_NUMBERS = 200_000, 1 << 20
# Growth of the total after which events are learned anew: up to so many runs, and beyond.
_OFTEN, _RARELY, _MANY = 1.3, 2.0, 10_000
_ENOUGH = 250_000  # runs from which an event is learned anew only where it is not yet known well
_RAISING = 2_000  # runs after which a mechanism that has only raised is refused
# Blocks that a batch is cut into, depending on its size alone: for a looped function, with at least as many runs each,
# and for a block sampler, whose runs of one call may share randomness. Once outputs are only counted, thousands of
# calls have been compared, and blocks of a block sampler have the maximum size.
_FEWEST_BLOCKS, _CALLS = 16, 32
_WORKERS_FROM = {"threads": 0.01, "processes": 0.3}  # seconds from which a batch is spread over workers
_FINEST, _COARSEST = 2e-3, 2.0  # distances of the members of the grid from the claim, in units of its parameter
_ABOVE, _BELOW = 10, 20


def grid_of_members(claim: Claim) -> list[float]:
    """Increasing privacy parameters against which wealth is kept, fixed by the claim alone and densest around it.

    The privacy parameter that decides about the claim lies a millionth above it, so a bound that reaches it exceeds the
    claim.
    """
    parameter, unit = claim.parameter, max(claim.parameter, 0.1)
    if np.isfinite(claim.max_parameter):
        unit = min(unit, claim.max_parameter - parameter)
    below = parameter - unit * np.geomspace(1.0, _FINEST, _BELOW)
    with np.errstate(over="ignore"):  # of claims near the largest double
        above = parameter + unit * np.append(1e-6, np.geomspace(_FINEST, _COARSEST, _ABOVE))
    members = np.concatenate([below[below > 0], above[above < claim.max_parameter]])
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
    on_interim: Callable[[InterimAnalysis], bool | None] | None = None,
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
    audit = _Audit(plan, settings, runs, until, has_final, earlier)
    while True:
        done = audit.draw_batch()
        if progress is not None:
            progress(2 * done)
        is_asked = on_interim is not None and on_interim(audit.interim_analyses[-1]) is True
        stopped = audit.stop(enough, is_asked=is_asked)
        if stopped is not None:
            return audit.evidence(stopped)
        audit.learn()


class _Audit:
    """A sequential audit between two batches: what was drawn, counted, learned and bet so far.

    `draw_batch` draws and bets on the next batch, `stop` says whether it was the last one, `learn` chooses the events
    of the next one.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        runs: int,
        until: float | None,
        has_final: bool,
        earlier: EarlierDraws | None,
    ) -> None:
        self.plan, self.settings, self.runs, self.has_final = plan, settings, runs, has_final
        self.alpha, claim = settings.bet_alpha(has_final=has_final), settings.claim
        self.bets = Bets.start(claim, grid_of_members(claim), self.alpha, settings.bits is True)
        self.final = FinalTest.start(settings, runs) if has_final else None
        # The outputs that are kept to learn from: those of a search, and the first `most` runs of the audit.
        self.most = plan.may_keep(_KEPT)
        self.earlier = None if earlier is None else earlier.at_most(self.most)
        self.old_x, self.old_y = ([], []) if self.earlier is None else (self.earlier.blocks_x, self.earlier.blocks_y)
        self.searched = sum(map(len, self.old_x))
        self.kept_x: list[Outputs] = []
        self.kept_y: list[Outputs] = []
        # The later runs, which are only counted.
        self.main_x, self.main_y = no_blocks(), no_blocks()
        self.pairs, self.rare_counts = (NO_PAIRS, NO_PAIRS), np.zeros((2, 2), np.int64)
        self.interim_analyses: list[InterimAnalysis] = []
        self.done = self.n_blocks = 0
        self.learned = self.searched  # runs on which events were learned last
        self.clock = Clock(until)
        self.begun: Begun | None = None  # the next batch, if an earlier session has begun it
        self.is_cut = self.has_run = self.is_reproducible = False
        self.root = plan.seed
        if self.earlier is not None:
            self.bets = self.bets.learned(*merge(self.old_x, self.old_y))
            self.final = self.final and self.final.begun_with(self.earlier, self.most)

    def draw_batch(self) -> int:
        """Draws the next batch, counts it, and bets on it; returns its runs on each dataset."""
        started, plan, is_new = now(), self.plan, self.begun is None
        size = self._next_size()
        batch = _spread(plan, size, self.clock.pace, is_bet_on=self._is_bet_on)
        if self.done < self.most:
            self._keep(batch, size)
        else:
            self._count(batch, size)
        self.done += size
        self.n_blocks += -(-size // batch.block)
        if is_new:
            self.clock = self.clock.after(now() - started, size)
        if plan.memory is not None:
            plan.memory.save()  # no run is drawn again after its interim analysis was seen
        pvalue = min(1.0, self.settings.alpha / self.alpha * self.bets.pvalue)
        self.interim_analyses.append(InterimAnalysis(self.done, self.bets.bound, pvalue))
        self.begun = recall_begun(plan.memory, len(self.interim_analyses))
        return size

    @property
    def _is_bet_on(self) -> bool:
        """Whether events were learned before this batch."""
        return bool(self.interim_analyses) or self.earlier is not None

    def _next_size(self) -> int:
        if self.begun is not None:
            self.clock, self.is_cut = replace(self.clock, paces=self.begun.paces), False
            return self.begun.size
        planned = next_size(self.done, self.runs)
        size = min(planned, max(self.clock.runs_left(), LEAST)) if self.done > FIRST else planned
        self.is_cut = size < planned
        if self.interim_analyses:  # the first batch has the same size in every audit
            keep_begun(self.plan.memory, len(self.interim_analyses), size, self.clock)
        return size

    def _keep(self, batch: Plan, size: int) -> None:
        """Draws a batch whose outputs are kept."""
        plan, is_first = self.plan, not self.interim_analyses
        new_x, new_y = draw_pilot(batch, size, first_block=self.n_blocks)
        self.kept_x, self.kept_y = self.kept_x + new_x, self.kept_y + new_y
        self.most = plan.may_keep(_most_kept(self.kept_x[0]))
        if is_first:
            self.is_reproducible = plan.comes_again(self.kept_x, self.kept_y)
            if self.earlier is not None:  # a batch that is bet on has blocks of few runs, which show little
                again = self.earlier.plan.comes_again(self.old_x, self.old_y)
                self.is_reproducible = self.is_reproducible and again
            self.root = plan.seed_of_coins(is_reproducible=self.is_reproducible)
        first_x, first_y = [*self.old_x[:1], self.kept_x[0]], [*self.old_y[:1], self.kept_y[0]]
        check_blocks([*first_x, *new_x], [*first_y, *new_y], plan.sampler.is_block, plan.sampler.name)
        news, bins = merge(new_x, new_y), self.bets.partition
        if self._is_bet_on:
            in_bins = None if bins is None else (bins.count(news[0]), bins.count(news[1]))
            self._bet(PairCounts.of(self.bets.events, self.bets.rare, *news), in_bins)
        self.final = self.final and self.final.after(*news)

    def _count(self, batch: Plan, size: int) -> None:
        """Draws a batch that is only counted."""
        bets, final, bins = self.bets, self.final, self.bets.partition
        pairs, more_x, more_y, counted = count_pairs(
            batch.in_blocks(self.plan.most) if self.plan.sampler.is_block else batch,
            bets.events,
            shapes_of(self.plan, self.kept_x, self.kept_y),
            size,
            first_block=self.n_blocks,
            rare=bets.rare,
            final=() if final is None else final.events,
            partitions=(*(() if final is None else final.partitions), *(() if bins is None else (bins,))),
        )
        self.main_x, self.main_y = self.main_x.followed_by(more_x), self.main_y.followed_by(more_y)
        self.pairs = self.pairs[0].followed_by(pairs.first), self.pairs[1].followed_by(pairs.second)
        self.rare_counts += [[each.count_x, each.count_y] for each in pairs.rare]
        self.final = final and final.followed_by(counted.without(bins))
        self._bet(pairs, None if bins is None else counted.last(bins))
        self.bets = self.bets.known_better(self.pairs)

    def _bet(self, pairs: PairCounts, in_bins: tuple[Labels, Labels] | None) -> None:
        self.bets = self.bets.after(pairs, _coins(self.root, len(self.interim_analyses), pairs, in_bins), in_bins)

    def stop(self, enough: Callable[[Choice, int], bool] | None, *, is_asked: bool) -> Stop | None:
        """Why the audit ends here; None if it goes on."""
        is_asked = is_asked and self.done > FIRST
        is_cut = self.is_cut or (self.done > FIRST and self.clock.runs_left() < LEAST)
        is_done = self.begun is None and self.done >= self.runs
        is_over = is_done or is_asked or (self.begun is None and is_cut)
        if enough is not None and self.begun is None and self.done > FIRST and not is_over:
            is_over = enough(self.bets.leading(), self.done)
        if not self.has_run and (self.done >= _RAISING or is_over):
            refuse_if_all_raised(self.plan, *merge(self.kept_x, self.kept_y))
            self.has_run = True
        if self.bets.bound > self.settings.claim.parameter:
            return "refuted"
        if not is_over:
            return None
        return "runs" if is_done else "request" if is_asked else "time" if is_cut else "runs"

    def learn(self) -> None:
        """Chooses the events of the next batch, and that of the final test, where either is due."""
        if self.final is not None and self.final.is_due(self.done, self.most):
            self.final = self.final.chosen_on(*self._all_kept(), self.done, self.most)
        kept = self.searched + sum(map(len, self.kept_x))
        seen, last = self.searched + self.done, self.searched + self.most
        is_known = self.learned >= _ENOUGH and not self.bets.could_learn
        if _is_due(self.learned, seen, last) and not is_known:
            self.learned = kept
            self.bets = self.bets.learned(*self._all_kept())

    def _all_kept(self) -> tuple[Outputs, Outputs]:
        """The outputs of the search, and those that were kept."""
        x, y = merge(self.old_x + self.kept_x, self.old_y + self.kept_y)
        return x, y

    def evidence(self, stopped: Stop) -> SequentialEvidence:
        """What the audit has shown when it ends."""
        choice, plan, is_complete = self.bets.leading(), self.plan, self.done == self.runs
        x, y = merge(self.kept_x, self.kept_y)
        counts = _recounted(choice.event, x, y, self.pairs[int(choice.more_likely_on == "y")], choice.more_likely_on)
        opposite, counted_only = None, self.pairs[0].runs
        if stopped == "refuted" and (rare := self.bets.deciding_rare(x, y, self.rare_counts, counted_only)) is not None:
            choice, counts, opposite = rare
        cut = note_of_cut(plan.most_kept, min(_most_kept(self.kept_x[0]), self.done), plan.output_bytes)
        pilot = Pilot(choice, self.kept_x, self.kept_y, x, y, cut, column_names=plan.sampler.column_names)
        is_closed = self.final is not None and stopped == "runs" and is_complete
        return SequentialEvidence(
            kept=pilot,
            counts=counts,
            opposite=opposite,
            divergence=self.bets.found_divergence,
            pilot_runs=0 if self.searched else min(FIRST, self.done),
            searched=self.searched,
            main=(self.main_x, self.main_y),
            is_reproducible=self.is_reproducible,
            interim_analyses=tuple(self.interim_analyses),
            stopped=stopped,
            final=self.final.evidence(pilot, self.root) if self.final is not None and is_closed else None,
            has_final=self.has_final,
            is_complete=is_complete,
        )


def _coins(root: int, number: int, pairs: PairCounts, in_bins: tuple[Labels, Labels] | None) -> np.random.Generator:
    """The coins that say which runs of a batch count as guesses."""
    seen = repr(pairs).encode(), *(side.tobytes() for side in in_bins or ())
    return np.random.default_rng(sequence_of(seed_of_coins(root, *seen), Stream.BATCHES, number))


def _is_due(learned: int, done: int, most: int) -> bool:
    """Whether events learned from so many runs, of at most `most`, are learned again after `done` runs."""
    growth = _RARELY if learned > _MANY else _OFTEN
    return learned < most and done >= min(growth * learned, most)


def _most_kept(outputs: Outputs) -> int:
    """Number of runs that are kept on each dataset, for outputs like these."""
    if outputs.dtype == object:
        return _KEPT
    return max(_KEPT, _KEPT_NUMBERS // max(outputs.shape[1] if outputs.ndim == 2 else 1, 1))


def _recounted(event: Event, x: Outputs, y: Outputs, main: JointCounts, more_likely_on: Direction) -> Counts:
    """Counts of the event in the kept outputs and in the blocks that were counted for this event."""
    count_p, count_q = main.both + main.only_p, main.both + main.only_q
    if more_likely_on == "y":
        count_p, count_q = count_q, count_p
    return Counts(
        count_x=event.count(x) + count_p,
        runs_x=len(x) + main.runs,
        count_y=event.count(y) + count_q,
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
