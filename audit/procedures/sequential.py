"""A sequential audit: growing batches, each bet on events learned from the batches before it.

No runs are set aside for a pilot. The first batch chooses the first events, unless a search has done so. Every later
batch is bet on, with events, lines and bets from the earlier batches. The audit keeps a wealth against each member of a
fixed grid of the claim's family. It refutes the claim at the first interim analysis at which the wealth against it,
averaged over both directions, reaches 1/alpha.

Bets find a common violation early, but need several times the runs of a test of fixed size where a violation is rare or
small. So an audit with a planned number of runs ends with such a test, at half of alpha. It chooses an event when it
has made as many runs as the pilot of an audit of fixed size, and counts that event in all later runs.

Proof: docs/proofs/wealth.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from ..clock import now
from ..events.events import Labels, Partition, with_names
from ..events.outputs import Outputs, merge
from ..events.scores import Reading
from ..health.event_checks import Evidence
from ..inference.betting_test import GRADED_BETS, NO_PAIRS, BetCounts, JointCounts, Line, Wealth, best_lines, drift
from ..inference.divergence_test import Divergence, Divergences, DivergenceTest, log_gain, smoothed
from ..inference.event_test import Counts, directed
from ..inference.guess_test import Guesses, guesses_in_batch, is_symmetric
from ..options import MOST_RUNS
from ..portfolio.choice import DIRECTIONS, Choice, choose_each_way, choose_seen, seen_on_one_dataset
from ..portfolio.columns import cuts_of
from ..portfolio.partitions import Bins, learn_bins
from ..random_streams import Stream, seed_of_coins, sequence_of
from ..results.audit_result import InterimAnalysis, OtherDirection, SequentialResult
from ..results.claim_pair_and_alpha import FINAL_SHARE, Settings
from ..sampling.block_plan import Plan, note_of_cut
from ..sampling.draw import count_pairs, draw_pilot, shapes_of
from ..sampling.pilot_and_batch_sizes import (
    FEW_COUNTS,
    FIRST,
    LEAST,
    LEAST_PILOT,
    Begun,
    Clock,
    keep_begun,
    next_size,
    pilot_runs,
    recall_begun,
)
from ..sampling.tasks import BlockCounts, Events, MainCounts, PairCounts
from .audit import Audit, Blocks, PortfolioTest, Tested, learned, longest_pilot
from .detectable_excess import UNKNOWN, Detectable, detectable_sequentially, may_detect
from .fixed_size import EarlierDraws, check_blocks, refuse_if_all_raised

# The bets of a sequential audit: its wealth, what was learned, and what is bet on it next.

Placed: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Seen: TypeAlias = tuple[float, float, float]  # frequencies p and q of an event, and the runs behind them

_BOTH, _RARE = 2, 3  # accounts that bet on both directions at once, and on rare events, the last two of four
_RARE_COUNTS = 2  # outputs seen on one dataset only that are bet on
# Standard errors that are added to an event's distance above its line before the largest bet is computed, so that an
# event further below it is not bet on; and the distance below it from which rare events are not bet on.
_DOUBT, _RARE_DOUBT = 0.5, 1.0
_LARGEST_ERROR = 0.125  # of the log ratio of an event that is known well, as a share of it
_NO_EVENT: Seen = (1e-9, 0.5, 1e9)  # frequencies that no bet is placed on: of an event on the other side only


class Bets:
    """The wealth so far and the next bets: for each direction an event, and lines for each member of the grid.

    There is an account for each direction and, for claims that are the same in both directions, one for both at once
    and one for rare events, seen on one dataset only.
    """

    def __init__(self, claim: Claim, alpha: float, *, bits: bool) -> None:
        self.claim, self.alpha, self.bits = claim, alpha, bits  # whether to bet on events by low bits
        self.members, self.is_symmetric = grid_of_members(claim), is_symmetric(claim)
        accounts = 4 if self.is_symmetric else 2
        self.wealth = Wealth.start(len(self.members), accounts, is_graded=bool(claim.divergence_slopes))
        self.choices: tuple[Choice | None, Choice | None] = (None, None)
        self.rare: Events = (None, None)
        self.first = 0  # members before this one are refuted and no longer bet against
        self.lines: Sequence[Sequence[Line]] = []
        self.seen: Sequence[Seen] = []  # for each account
        self.most: Floats | None = None  # for each member and account: the largest bet
        # For each member and account: the account whose bet that wealth is placed on, or -1.
        self.placed: Placed = np.zeros((0, accounts), np.int64)
        self.bins: Bins | None = None  # for claims on divergences: the bins, with all runs so far
        self.divergences: tuple[Divergence, ...] = ()  # for each member: the one that is bet on

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

    def learn(self, x: Outputs, y: Outputs) -> None:
        """Chooses the next events, lines and bets on these outputs."""
        cuts = cuts_of(x, y, bits=self.bits)
        self.choices = choose_each_way(cuts, self.claim, len(x), self.alpha)
        if self.choices == (None, None):
            self.choices = choose_seen(x, y)
        seen = [_frequencies(choice) for choice in self.choices]
        if self.is_symmetric:
            first, second = seen_on_one_dataset(cuts, _RARE_COUNTS)
            self.rare = None if first is None else first.event, None if second is None else second.event
            counts = sum(event.count(side) for event, side in zip(self.rare, (x, y), strict=True) if event is not None)
            seen += [_mean(*seen), _smoothed(counts, 0, 2 * len(x)) if counts else _NO_EVENT]
        if self.claim.divergence_slopes:
            bins = self.bins = learn_bins(x, y, next(each for each in self.choices if each is not None), self.claim)
            runs = int(bins.known_x.sum())
            found = Divergences.of(smoothed(bins.known_x), smoothed(bins.known_y), self.claim, runs, runs, runs)
            best, _ = found.telling(np.array(self.members))
            self.divergences = tuple(found.divergences[index] for index in best.tolist())
        self._place(seen)

    def _place(self, seen: Sequence[Seen]) -> None:
        """Places the bets that these frequencies of the events call for, one for each account."""
        self.seen, self.first = seen, self.wealth.n_refuted(self.alpha)
        sides = [self.claim, self.claim.reversed(), *([self.claim] * 2 if self.is_symmetric else [])]
        lines = [
            best_lines([side.with_parameter(member) for member in self.members[self.first :]], *at)
            for side, at in zip(sides, seen, strict=True)
        ]
        self.lines, self.most = list(zip(*lines, strict=True)), largest_bets(lines, seen)
        scores = [[drift(line, p, q) * runs for line in side] for side, (p, q, runs) in zip(lines, seen, strict=True)]
        self.placed = place_bets(np.array(scores))

    def place_again(self, main: tuple[JointCounts, JointCounts]) -> None:
        """Places bets by counts of the same events in further runs, whenever these have doubled.

        Learning ends, but what an event is worth becomes clearer: one that was unlucky then is bet on later.
        """
        runs = main[0].runs
        behind = [known for choice, (*_, known) in zip(self.choices, self.seen, strict=False) if choice is not None]
        if runs < 2.0 * max(behind, default=0.0):
            return
        seen = [
            _NO_EVENT if choice is None else _smoothed(each.counts.count_x, each.counts.count_y, runs)
            for choice, each in zip(self.choices, main, strict=True)
        ]
        self._place([*seen, _mean(*seen), self.seen[_RARE]] if self.is_symmetric else seen)

    @property
    def partition(self) -> Partition | None:
        """The bins to count."""
        return None if self.bins is None else self.bins.partition

    def settle(self, pairs: PairCounts, coins: np.random.Generator, in_bins: tuple[Labels, Labels] | None) -> None:
        """Adds what a batch wins or loses to the wealth, and its runs to the bins, if there are any."""
        graded = None
        if self.bins is not None and in_bins is not None:
            graded = self._graded(self.bins, *in_bins)
            known_x, known_y = self.bins.known_x + in_bins[0], self.bins.known_y + in_bins[1]
            self.bins = replace(self.bins, known_x=known_x, known_y=known_y)
        counts: list[BetCounts] = [pairs.first, pairs.second]
        if self.is_symmetric:
            counts += [pairs.both, guesses_in_batch(*pairs.rare, coins)]
        self.wealth = self.wealth.after(
            self.lines, counts, first=self.first, placed=self.placed, most=self.most, graded=graded
        )

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
        """The rare events, that with the larger count first, and their counts, if bets on them won most of the wealth.

        They are counted in the kept outputs; `main` has their counts, shape (2 events, 2 datasets), in the other
        `runs`.
        """
        if not self.is_symmetric or self.rare == (None, None):
            return None
        won = int(self.wealth.log_of_accounts[self.decisive].argmax())
        if self.placed[self.decisive - self.first, won] != _RARE:
            return None
        n, found = len(x) + runs, list[tuple[Choice, Counts]]()
        for event, (more_x, more_y), direction in zip(self.rare, main.tolist(), DIRECTIONS, strict=True):
            if event is not None:
                kept = Choice(event, direction, 0, 0, 0).counted_on(x, y)
                count_x, count_y = kept.pilot_count_x + more_x, kept.pilot_count_y + more_y
                found.append((kept, Counts(count_x=count_x, runs_x=n, count_y=count_y, runs_y=n)))
        # On the dataset of each event first: both have as many runs.
        turned = [counts if choice.more_likely_on == "x" else counts.swapped() for choice, counts in found]
        best = int(np.argmax([counts.count_x - counts.count_y for counts in turned]))
        choice, shown = found[best]
        if len(found) == 1:
            return choice, shown, None
        other, counts = found[1 - best]
        right, wrong = (sum(getattr(each, name) for each in turned) for name in ("count_x", "count_y"))
        overlap = any((choice.event.contains(each) & other.event.contains(each)).any() for each in (x, y))
        if overlap or right + wrong > 2 * n:  # an output in both is not a guess
            return choice, shown, None
        guesses = Guesses(correct=right, incorrect=wrong, runs=2 * n)
        return choice, shown, OtherDirection(event=other.event, counts=counts, guesses=guesses)


def _frequencies(choice: Choice | None) -> Seen:
    """Smoothed frequencies of an event, the more likely side first, and the number of runs behind them."""
    if choice is None:
        return _NO_EVENT
    counts = (choice.pilot_count_x, choice.pilot_count_y)
    return _smoothed(*(counts if choice.more_likely_on == "x" else counts[::-1]), choice.pilot_runs)


def _is_unsure(choice: Choice) -> bool:
    """Whether the standard error of the log ratio is more than an eighth of it."""
    fewer, more = sorted((choice.pilot_count_x, choice.pilot_count_y))
    return fewer < FEW_COUNTS or math.sqrt(1.0 / fewer + 1.0 / more) > _LARGEST_ERROR * math.log(more / fewer)


def _smoothed(count_p: int, count_q: int, runs: int) -> Seen:
    return (count_p + 0.5) / (runs + 1.0), (count_q + 0.5) / (runs + 1.0), float(runs)


def _mean(first: Seen, second: Seen) -> Seen:
    """Frequencies of correct and of incorrect guesses in a run on a dataset drawn by a fair coin, and the runs."""
    if _NO_EVENT in (first, second):
        return _NO_EVENT
    return 0.5 * (first[0] + second[0]), 0.5 * (first[1] + second[1]), 2.0 * first[2]


def place_bets(scores: Floats) -> Placed:
    """Account whose bet each wealth is placed on: its own, unless that loses, and then one that does not; -1 for none.

    Wealth for rare events is not bet on others. The scores, shape (accounts, members), are signed squares of the
    distances of the events' frequencies above the lines, in standard errors.
    """
    doubt = np.where(np.arange(len(scores)) == _RARE, _RARE_DOUBT, _DOUBT)
    is_losing, best = -(doubt**2) > scores.T, scores[:_RARE].argmax(axis=0)[:, None]
    other = np.where(np.take_along_axis(is_losing, best, axis=1), -1, best)
    placed: Placed = np.where(is_losing, other, np.arange(len(scores)))
    placed[:, _RARE:] = np.where(is_losing[:, _RARE:], -1, _RARE)
    return placed


def largest_bets(lines: Sequence[Sequence[Line]], seen: Sequence[Seen]) -> Floats:
    """The largest λ for bets against each line, shape (members, accounts), by what is known of the events.

    For a small mean gain d of a pair of runs, of variance v, wealth grows fastest with λ = d/v, and larger bets on an
    event that was chosen by chance lose all that a better event would need later. So d is taken at the frequencies seen
    so far, with half a standard error added. Bets on rare events are not limited: they win soon or not at all. For both
    directions at once, frequencies are means over twice the runs, v is half of the variance in one run, and the two
    events exclude each other.
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


# The audit.

# Runs on each dataset, and numbers in vectors, that are kept to learn events from. An event learned from too few runs
# would stay to the end.
KEPT, _KEPT_NUMBERS = 200_000, 1 << 20
# Growth of the total after which events are learned anew, up to so many runs and beyond:
# docs/decisions/0002-portfolio.md.
_OFTEN, _RARELY, _MANY = 1.3, 2.0, 10_000
_ENOUGH = 250_000  # runs from which an event is learned anew only where it is not yet known well
# Blocks that a batch is cut into, depending on its size alone: for a looped function, with at least as many runs each,
# and for a vectorised mechanism, whose runs of one call may share randomness. Once outputs are only counted, thousands
# of calls have been compared, and blocks of a vectorised mechanism have the maximum size.
_FEWEST_BLOCKS, _CALLS = 16, 32
_WORKERS_FROM = {"threads": 0.01, "processes": 0.3}  # seconds from which a batch is spread over workers
_FINEST, _COARSEST = 2e-3, 2.0  # distances of the members of the grid from the claim, in units of its parameter
# Members above the claim and below it, whose distances therefore grow by 2.2 and by 1.4. Half and twice as many stop
# after the same runs; half lower the bound of Laplace noise by .002, twice as many raise it by as much.
_ABOVE, _BELOW = 10, 20


def grid_of_members(claim: Claim) -> list[float]:
    """Increasing privacy parameters against which wealth is kept, fixed by the claim alone and densest around it.

    The one that decides lies a millionth above the claim, so a bound that reaches it exceeds the claim.
    """
    parameter, unit = claim.parameter, max(claim.parameter, 0.1)
    if np.isfinite(claim.max_parameter):
        unit = min(unit, claim.max_parameter - parameter)
    below = parameter - unit * np.geomspace(1.0, _FINEST, _BELOW)
    with np.errstate(over="ignore"):  # of claims near the largest double
        above = parameter + unit * np.append(1e-6, np.geomspace(_FINEST, _COARSEST, _ABOVE))
    members = np.concatenate([below[below > 0], above[above < claim.max_parameter]])
    return [float(member) for member in members]


class SequentialAudit(Audit):
    """A sequential audit: each batch is bet on by events that were learned from the batches before it.

    It draws batches until the claim is refuted, `runs` are done, they suffice for the requested excess, one of the
    `watchers` of its interim analyses asks it to stop, or the time is over. `runs` are the most on each dataset, None
    for as many as the time allows; `until` is a time of `clock.now`. `has_final` says that a final test follows the
    last of the `runs`, so that the bets have half of alpha.

    The last batch is cut to the time left, at the pace of the batch before, so the sizes depend on the past alone, as
    the bets do. Batches in the plan's memory keep the sizes that they were begun with; only a refutation or a watcher
    stops earlier.
    """

    kind = SequentialResult
    kept_runs = "runs"
    share = FINAL_SHARE

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        runs: int | None,
        until: float | None,
        watchers: Sequence[Callable[[InterimAnalysis], bool | None]] = (),
        *,
        has_final: bool,
        earlier: EarlierDraws | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(settings, 0)
        self.plan, self.names = plan, plan.sampler.column_names
        self.is_open, self.most_runs, self.has_final = runs is None, MOST_RUNS if runs is None else runs, has_final
        self.progress, self.watchers = progress, watchers
        self.alpha = settings.bet_alpha(has_final=has_final)
        self.bets = Bets(settings.claim, self.alpha, bits=settings.floating_point == "test")
        # The final test: when its event is chosen, as the pilot of an audit of fixed size would, and its counts so far.
        self.due = pilot_runs(self.most_runs)
        self.counted: MainCounts | None = None
        # The outputs that are kept to learn from: those of a search, and the first `most_kept` runs of the audit.
        self.most_kept = plan.may_keep(KEPT)
        self.earlier = None if earlier is None else earlier.at_most(self.most_kept)
        self.of_search: Blocks = ([], []) if self.earlier is None else (self.earlier.blocks_x, self.earlier.blocks_y)
        self.searched = sum(map(len, self.of_search[0]))
        self.suggested = None if self.earlier is None else self.earlier.suggested
        # The later runs, which are only counted.
        self.pairs, self.rare_counts = (NO_PAIRS, NO_PAIRS), np.zeros((2, 2), np.int64)
        self.interim_analyses: list[InterimAnalysis] = []
        self.n_blocks = 0
        self.learned = self.searched  # runs on which events were learned last
        self.clock = Clock(until)
        self.begun: Begun | None = None  # the next batch, if an earlier session has begun it
        self.is_cut = False  # whether the time left has shortened the last batch
        self.may_only_raise = True  # as far as was checked
        self.root = plan.seed
        # The event by which the bets decide, its counts, and the event of the other direction if both decide.
        self.decided: tuple[Choice, Counts, OtherDirection | None] | None = None

    def pilot(self) -> None:
        """Learns from the outputs of a search; without one the first batch is only learned from."""
        if self.earlier is not None:
            self.bets.learn(*self._all_kept())
            self._choose_for_final_test()

    def step(self) -> bool:
        """Draws and counts a batch, bets on it, and learns from it unless it is the last."""
        size = self._draw_batch()
        if self.progress is not None:
            self.progress(2 * size)
        asked = [watch(self.interim_analyses[-1]) is True for watch in self.watchers]
        if self._decide_to_stop(is_asked=any(asked)):
            self._close()
            return False
        self._learn()
        return True

    def stop(self) -> bool:
        """Ends the audit that an interruption left in the middle of a batch; returns whether it has a verdict.

        The verdict is that of the last interim analysis, which is valid at any time, for any reason to stop.
        """
        if self.decided is None and self.runs > FIRST:
            self.stopped = "request"
            self._close()
        return self.decided is not None

    def _draw_batch(self) -> int:
        """Draws the next batch, counts it, and bets on it; returns its runs on each dataset."""
        started, plan, is_new = now(), self.plan, self.begun is None
        size = self._next_size()
        batch = _spread(plan, size, self.clock.pace, is_bet_on=self._is_bet_on)
        if self.runs < self.most_kept:
            self._keep(batch, size)
        else:
            self._count(batch, size)
        self.runs += size
        self.n_blocks += -(-size // batch.block)
        if is_new:
            self.clock = self.clock.after(now() - started, size)
        if plan.memory is not None:
            plan.memory.save()  # no run is drawn again after its interim analysis was seen
        pvalue = min(1.0, self.settings.alpha / self.alpha * self.bets.pvalue)
        self.interim_analyses.append(InterimAnalysis(self.runs, self.bets.bound, pvalue))
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
        planned = next_size(self.runs, self.most_runs)
        size = min(planned, max(self.clock.runs_left(), LEAST)) if self.runs > FIRST else planned
        self.is_cut = size < planned
        if self.interim_analyses:  # the first batch has the same size in every audit
            keep_begun(self.plan.memory, len(self.interim_analyses), size, self.clock)
        return size

    def _keep(self, batch: Plan, size: int) -> None:
        """Draws a batch whose outputs are kept."""
        plan, is_first = self.plan, not self.interim_analyses
        new_x, new_y = draw_pilot(batch, size, first_block=self.n_blocks)
        self.blocks = self.blocks[0] + new_x, self.blocks[1] + new_y
        self.most_kept = plan.may_keep(_most_kept(self.blocks[0][0]))
        if is_first:
            self.is_reproducible = plan.comes_again(*self.blocks)
            if self.earlier is not None:  # a batch that is bet on has blocks of few runs, which show little
                again = self.earlier.plan.comes_again(*self.of_search)
                self.is_reproducible = self.is_reproducible and again
            self.root = plan.seed_of_coins(is_reproducible=self.is_reproducible)
        first_x, first_y = ([*old[:1], side[0]] for old, side in zip(self.of_search, self.blocks, strict=True))
        check_blocks([*first_x, *new_x], [*first_y, *new_y], plan.sampler.is_block, plan.sampler.name)
        news, bins = merge(new_x, new_y), self.bets.partition
        if self._is_bet_on:
            in_bins = None if bins is None else (bins.count(news[0]), bins.count(news[1]))
            self._bet(PairCounts.of(self.bets.events, self.bets.rare, *news), in_bins)
        if self.portfolio is not None:
            x, y = map(Reading, news)
            self._count_for_final_test(MainCounts.of(self.portfolio.events, self.portfolio.partitions, x, y))

    def _count(self, batch: Plan, size: int) -> None:
        """Draws a batch that is only counted."""
        bets, final, bins = self.bets, self.portfolio, self.bets.partition
        pairs, more_x, more_y, counted = count_pairs(
            batch.in_blocks(self.plan.most) if self.plan.sampler.is_block else batch,
            bets.events,
            shapes_of(self.plan, *self.blocks),
            size,
            first_block=self.n_blocks,
            rare=bets.rare,
            final=() if final is None else final.events,
            partitions=(*(() if final is None else final.partitions), *(() if bins is None else (bins,))),
        )
        self.main = BlockCounts.joined([self.main[0], more_x]), BlockCounts.joined([self.main[1], more_y])
        self.pairs = self.pairs[0].followed_by(pairs.first), self.pairs[1].followed_by(pairs.second)
        self.rare_counts += [[each.count_x, each.count_y] for each in pairs.rare]
        if final is not None:
            self._count_for_final_test(counted.without(bins))
        self._bet(pairs, None if bins is None else counted.last(bins))
        self.bets.place_again(self.pairs)

    def _count_for_final_test(self, more: MainCounts) -> None:
        self.counted = more if self.counted is None else self.counted.followed_by(more)

    def _bet(self, pairs: PairCounts, in_bins: tuple[Labels, Labels] | None) -> None:
        self.bets.settle(pairs, _coins(self.root, len(self.interim_analyses), pairs, in_bins), in_bins)

    def _decide_to_stop(self, *, is_asked: bool) -> bool:
        """Decides whether the audit ends here, and sets why; refuses a mechanism that has only raised."""
        runs, goes_on = self.runs, self.begun is not None  # an earlier session has begun the next batch
        is_asked = is_asked and runs > FIRST
        is_cut = self.is_cut or (runs > FIRST and self.clock.runs_left() < LEAST)
        is_done = not goes_on and runs >= self.most_runs
        is_over = is_done or is_asked or (not goes_on and (is_cut or (runs > FIRST and self._is_enough())))
        if self.may_only_raise and (runs >= LEAST_PILOT or is_over):
            refuse_if_all_raised(self.plan, *self.blocks)
            self.may_only_raise = False
        if self.bets.bound > self.settings.claim.parameter:
            self.stopped = "refuted"
            return True
        self.stopped = "runs"
        if not is_done and (is_asked or is_cut):
            self.stopped = "request" if is_asked else "time"
        return is_over

    @property
    def is_complete(self) -> bool:
        """Whether all planned runs were made."""
        return self.runs == self.most_runs

    def _is_enough(self) -> bool:
        """Whether an audit without planned runs detects the requested excess with its event and these runs."""
        excess = self.settings.detect
        if not self.is_open or excess is None:
            return False
        choice = self.bets.leading()
        held = directed(self.settings.claim, choice.pilot_counts, choice.more_likely_on)
        errors = {"alpha": self.settings.alpha, "power": self.settings.power}
        return (
            may_detect(held.claim, held.counts, self.runs, excess, **errors)
            and detectable_sequentially(held.claim, held.counts, self.runs, UNKNOWN, **errors).excess <= excess
        )

    def _learn(self) -> None:
        """Chooses the events of the next batch, and that of the final test, where either is due."""
        kept = self.searched + sum(map(len, self.blocks[0]))
        seen, last = self.searched + self.runs, self.searched + self.most_kept
        self._choose_for_final_test()
        is_known = self.learned >= _ENOUGH and not self.bets.could_learn
        if _is_due(self.learned, seen, last) and not is_known:
            self.learned = kept
            self.bets.learn(*self._all_kept())

    def _choose_for_final_test(self) -> None:
        """Chooses what the final test tests, if that is due after the runs so far; or a later time for it."""
        is_due = self.runs + self.searched >= min(self.due, self.most_kept)
        if not self.has_final or self.portfolio is not None or not is_due:
            return
        self.x, self.y = self._all_kept()
        self.due = min(longest_pilot(self.most_runs, self.width), self.most_kept)
        self.portfolio = self.choose(self.most_runs, self.due)

    def _all_kept(self) -> tuple[Outputs, Outputs]:
        """The outputs of the search, and those that were kept."""
        x, y = merge(self.of_search[0] + self.blocks[0], self.of_search[1] + self.blocks[1])
        return x, y

    def _close(self) -> None:
        """Makes what the conclusion needs: the event by which the bets decide, and the final test after all runs."""
        plan, choice, counted_only = self.plan, self.bets.leading(), self.pairs[0].runs
        self.x, self.y = merge(*self.blocks)
        self.pilot_runs = 0 if self.searched else min(FIRST, self.runs)
        most = min(_most_kept(self.blocks[0][0]), self.runs)
        self.note_of_cut = note_of_cut(plan.most_kept, most, plan.output_bytes)
        main = self.pairs[int(choice.more_likely_on == "y")]
        decided = None
        if self.stopped == "refuted":
            decided = self.bets.deciding_rare(self.x, self.y, self.rare_counts, counted_only)
        if decided is None:
            decided = choice, _recounted(choice, self.x, self.y, main), None
        choice, counts, opposite = decided
        self.decided = with_names(choice, self.names), counts, with_names(opposite, self.names)
        is_closed = self.stopped == "runs" and self.is_complete
        if is_closed and self.portfolio is not None and self.counted is not None:
            coin_seed = seed_of_coins(self.root, self.counted.contents)
            portfolio = with_names(self.portfolio, self.names)
            self.test = PortfolioTest(self.settings, portfolio, self.counted, coin_seed, FINAL_SHARE)

    @property
    def health_share(self) -> float:
        """Share of the health checks' error probability that the last interim analysis spends.

        The audit may have stopped at any of them because of what it saw. The last planned one has half of the error
        probability, the k-th one 3/(π k)² of it; these shares add up to the other half, however many there are.
        """
        return 0.5 if self.is_complete else 3.0 / (math.pi * len(self.interim_analyses)) ** 2

    def evidence(self) -> Evidence:
        if self.test is not None:
            return replace(super().evidence(), uncounted_runs=self.runs - self.test.counted.runs[0])
        assert self.decided is not None
        choice, counts, _ = self.decided
        return Evidence(self.x, self.y, choice, counts, choice.pilot_counts)

    def tested(self) -> Tested:
        """What the bets say, and the final test if there was one: the smaller p-value and the larger bound."""
        last = self.interim_analyses[-1]
        if self.test is not None:
            tested = super().tested()
            return replace(tested, pvalue=min(last.pvalue, tested.pvalue), bound=max(last.bound, tested.bound))
        assert self.decided is not None
        choice, counts, opposite = self.decided
        return Tested(
            event=choice.event,
            more_likely_on=choice.more_likely_on,
            counts=counts,
            pvalue=last.pvalue,
            bound=last.bound,
            event_alpha=self.alpha,
            opposite=opposite,
            divergence=self.bets.found_divergence,
        )

    def detectable(self, evidence: Evidence, tested: Tested) -> Callable[[], Detectable]:
        if self.test is not None:
            return super().detectable(evidence, tested)
        held = directed(self.settings.claim, evidence.fresh_counts, evidence.choice.more_likely_on)
        errors = {"alpha": self.alpha, "power": self.settings.power}
        return partial(detectable_sequentially, held.claim, held.counts, self.runs, learned(evidence), **errors)

    def own_fields(self, tested: Tested) -> dict[str, Any]:
        last = replace(self.interim_analyses[-1], bound=tested.bound, pvalue=tested.pvalue)
        return {
            "interim_analyses": (*self.interim_analyses[:-1], last),
            "stopped": "refuted" if tested.bound > self.settings.claim.parameter else self.stopped,
            "final_alpha": FINAL_SHARE * self.settings.alpha if self.has_final else 0.0,
            "is_closed": self.test is not None,
        }


def _coins(root: int, number: int, pairs: PairCounts, in_bins: tuple[Labels, Labels] | None) -> np.random.Generator:
    """The coins that say which runs of a batch count as guesses."""
    seen = pairs.contents, *(side.tobytes() for side in in_bins or ())
    return np.random.default_rng(sequence_of(seed_of_coins(root, *seen), Stream.BATCHES, number))


def _is_due(learned: int, done: int, most: int) -> bool:
    """Whether events learned from so many runs, of at most `most`, are learned again after `done` runs."""
    growth = _RARELY if learned > _MANY else _OFTEN
    return learned < most and done >= min(growth * learned, most)


def _most_kept(outputs: Outputs) -> int:
    """Number of runs that are kept on each dataset, for outputs like these."""
    if outputs.dtype == object:
        return KEPT
    return max(KEPT, _KEPT_NUMBERS // max(outputs.shape[1] if outputs.ndim == 2 else 1, 1))


def _recounted(choice: Choice, x: Outputs, y: Outputs, main: JointCounts) -> Counts:
    """Counts of the event in the kept outputs and in the blocks that were counted for this event."""
    counts = main.both + main.only_p, main.both + main.only_q
    count_x, count_y = counts if choice.more_likely_on == "x" else counts[::-1]
    return Counts(
        count_x=choice.event.count(x) + count_x,
        runs_x=len(x) + main.runs,
        count_y=choice.event.count(y) + count_y,
        runs_y=len(y) + main.runs,
    )


def _spread(plan: Plan, size: int, pace: float, *, is_bet_on: bool) -> Plan:
    """The plan for a batch: its blocks, and this process alone for a small one, which changes no output.

    The batch without bets has two blocks, which reveal a fixed seed, and noise that a call draws once. One that is bet
    on has many of a vectorised mechanism, because runs of one call that share randomness count as one.
    """
    if not is_bet_on:
        block = -(-size // 2)
    elif plan.sampler.is_block:
        block = -(-size // _CALLS)
    else:
        block = max(size // _FEWEST_BLOCKS, _FEWEST_BLOCKS)
    return replace(plan.in_blocks(block), jobs=1 if size * pace < _WORKERS_FROM[plan.prefers] else plan.jobs)
