"""The bets of a sequential audit: its wealth, what was learned, and what is bet on it next.

Proof: docs/proofs/wealth.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from ..distinguishers.choice import Choice
from ..distinguishers.event_choice import choose_event_each_way
from ..distinguishers.event_value import DIRECTIONS
from ..distinguishers.learned_partition import Bins, learn_bins
from ..events.outputs import Outputs
from ..events.partitions import Labels, Partition
from ..families.one_sided_sets import one_sided_sets
from ..families.pilot_split import PilotSplit
from ..inference.betting_test import GRADED_BETS, BetCounts, JointCounts, Wealth
from ..inference.counts import Counts
from ..inference.divergence_test import Divergence, Divergences, DivergenceTest, log_gain, smoothed
from ..inference.guess_test import Guesses, guesses_in_batch, is_symmetric
from ..inference.supporting_lines import Line, best_lines, drift
from ..results.other_direction import OtherDirection
from ..sampling.pair_counts import Events, PairCounts
from .pilot import is_unsure

Placed: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Seen: TypeAlias = tuple[float, float, float]  # frequencies p and q of an event, and the runs behind them

_BOTH, _RARE = 2, 3  # accounts that bet on both directions at once, and on rare events, the last two of four
_RARE_HITS = 2  # outputs seen on one dataset only that are bet on
# Standard errors that are added to an event's distance above its line before the largest bet is computed, so that an
# event further below it is not bet on; and the distance below it from which rare events are not bet on.
_DOUBT, _RARE_DOUBT = 0.5, 1.0
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
        """Whether an event is missing, or too rare for its likelihood ratio to be known well."""
        return any(choice is None or is_unsure(choice) for choice in self.choices)

    @property
    def bound(self) -> float:
        """The largest member that is refuted with all smaller ones; 0 if there is none."""
        n_refuted = self.wealth.n_refuted(self.alpha)
        return self.members[n_refuted - 1] if n_refuted else 0.0

    def learned(self, x: Outputs, y: Outputs, *, anew: bool = True) -> Bets:
        """The bets after learning from these outputs: rare events always, and the others if learned `anew`."""
        choices, split = self.choices, PilotSplit.in_half(x, y)
        if anew:
            choices = choose_event_each_way(split, self.claim, len(x), self.alpha, bits=self.bits)
        seen = [_frequencies(choice) for choice in choices]
        rare = one_sided_sets(split, least=_RARE_HITS) if self.is_symmetric else (None, None)
        if self.is_symmetric:
            hits = sum(event.count(side) for event, side in zip(rare, (x, y), strict=True) if event is not None)
            seen += [_mean(*seen), _smoothed(hits, 0, 2 * len(x)) if hits else _NO_EVENT]
        bins = self.bins
        if anew or bins is None:
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
            best_lines([side.with_strength(member) for member in self.members[first:]], *at)
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
            _NO_EVENT if choice is None else _smoothed(each.counts.hits_x, each.counts.hits_y, runs)
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
            p_value=self.p_value,
            bound=self.bound,
            estimate=divergence.strength(mean_x - mean_y),
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
        if self.placed[self.decisive - self.first, won] != _RARE:
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


def _frequencies(choice: Choice | None) -> Seen:
    """Smoothed frequencies of an event, the likelier side first, and the number of runs behind them."""
    if choice is None:
        return _NO_EVENT
    hits = (choice.pilot_hits_x, choice.pilot_hits_y)
    return _smoothed(*(hits if choice.likelier_on == "x" else hits[::-1]), choice.pilot_runs)


def _smoothed(hits_p: int, hits_q: int, runs: int) -> Seen:
    return (hits_p + 0.5) / (runs + 1.0), (hits_q + 0.5) / (runs + 1.0), float(runs)


def _mean(first: Seen, second: Seen) -> Seen:
    """Frequencies of right and of wrong guesses in a run on a dataset drawn by a fair coin, and the number of runs."""
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
