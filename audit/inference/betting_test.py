"""The betting test: an anytime-valid test that bets against the claim run by run and may stop at any time.

Let the line with slope e^{ε₀} and intercept δ₀ lie above the claim's boundary everywhere. For one run on each dataset
and any event S, W = 1[M(x) ∈ S] − e^{ε₀} 1[M(y) ∈ S] then has mean at most δ₀ if the claim holds. So for any share λ in
[0, 1/(e^{ε₀} + δ₀)] the wealth ∏(1 + λ(W_t − δ₀)) is a nonnegative supermartingale that starts at 1, and it ever
reaches 1/alpha with probability at most alpha (Ville 1939), as does any average over shares and accounts. There is an
account for each direction and, for claims that are the same in both directions, two that bet on both at once. The
event, line and shares of a batch may depend on all earlier batches, so no runs are set aside for learning.

Proofs: docs/proofs/wealth.md, docs/proofs/lines.md

References
----------
Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, Sections 3 and 4 (capital
processes and their mixtures over a grid of bets).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..claims.claim import Claim
from ..claims.renyi import WIDTH
from ..errors import OptionError
from .binomial_tails import Array
from .event_test import Counts, check_alpha
from .guess_test import Guesses

# Supporting lines of a claim's boundary: they lie above it everywhere and touch it at one point.

_STEP = 1e-3  # of q or 1 − q, whichever is smaller (docs/decisions/0025-limits.md)
_ACCURACY = 4.0 * WIDTH  # of the smaller of a boundary and its complement, for roots of Rényi claims too


@dataclass(frozen=True, slots=True)
class Line:
    """p ≤ slope·q + intercept for every event; slope ≥ 0, intercept in [0, 1]."""

    slope: float
    intercept: float


def best_line(claim: Claim, p: float, q: float, runs: float) -> Line:
    """Return the supporting line near `q` against which a bet on an event at (p, q) wins most; all of them are valid.

    At a corner of the boundary, such as q = 1/(1 + e^ε) for pure DP, the lines on the two sides differ by a factor of 6
    in the runs that a refutation takes. Since q is an estimate, lines are also tried two standard errors of `runs` runs
    away.
    """
    return best_lines([claim], p, q, runs)[0]


def best_lines(claims: Sequence[Claim], p: float, q: float, runs: float) -> list[Line]:
    """Return the `best_line` for each claim."""
    error = math.sqrt(q * (1.0 - q) / runs)
    near = [q, *(at for at in (q - 2 * error, q + 2 * error, 0.98 * q, q + 0.02 * (1 - q)) if 0.0 < at < 1.0)]
    points = list(dict.fromkeys(map(_rounded, near)))
    return [max(supporting_lines(claim, points), key=lambda line: drift(line, p, q)) for claim in claims]


def drift(line: Line, p: float, q: float) -> float:
    """Return the squared drift of a bet on one pair of runs over its variance, with the sign of the drift."""
    gain = p - line.slope * q - line.intercept
    variance = p * (1.0 - p) + line.slope**2 * q * (1.0 - q)
    return gain * abs(gain) / max(variance, 1e-300)


def _rounded(q: float) -> float:
    """Round q to a coarse grid, so that lines can be reused."""
    angle = math.asin(math.sqrt(q))
    step = 2.0 ** round(math.log2(0.01 * min(angle, math.pi / 2 - angle)))
    return min(max(math.sin(round(angle / step) * step) ** 2, 0.5 * q), 0.5 * (1.0 + q))


@lru_cache(maxsize=1 << 12)
def _known(claim: Claim) -> dict[float, Line]:
    """Return the cache of a claim's lines, keyed by the point of contact."""
    return {}


def supporting_lines(claim: Claim, points: Sequence[float]) -> list[Line]:
    """Return lines above the claim's boundary B on all of [0, 1] that nearly touch it at the points, inside (0, 1).

    B is concave, so a line through (q, B(q)) whose slope is between the secants over [q − h, q] and [q, q + h] lies
    above B outside them and falls short inside by at most their difference times h, which is added with the rounding
    error.
    """
    known = _known(claim)
    if missing := [q for q in points if q not in known]:
        q = np.array(missing)
        h = _STEP * np.minimum(q, 1.0 - q)
        around = np.stack([q - h, q, q + h])
        values, rests = claim.power_touching(q, around)
        # Differences of the smaller of B and 1 − B, over differences of q between doubles, which are exact.
        small, steps = np.where(values[1] < 0.5, values, -rests), np.diff(around, axis=0)
        before, after = np.diff(small, axis=0) / steps
        error = _ACCURACY * np.abs(small[1]) / steps.min(axis=0)
        slope = np.maximum(0.5 * (before + after), 0.0)
        intercept = values[1] - slope * q + np.maximum(before - after, 0.0) * steps.max(axis=0) + error * q
        for place, at in enumerate(missing):
            known[at] = Line(float(slope[place] + error[place]), float(min(max(intercept[place], 0.0), 1.0)))
    return [known[q] for q in points]


BETS = np.geomspace(3e-3, 0.8, 10)
"""Shares of the largest bet; the best is about the excess over the variance, so small excesses need small shares."""

_RARE_BETS = 1.0 - np.geomspace(0.15, 0.01, 10)  # against outputs that may never be seen on one of the datasets

GRADED_BETS = np.geomspace(0.05, 1.6, 6)
"""Bets on a divergence, as shares of the one with which wealth is expected to grow fastest."""

WEIGHTS = {1: (1.0,), 2: (0.5, 0.5), 4: (0.1, 0.1, 0.55, 0.25)}
"""Shares of the initial wealth, by the number of accounts: of a single one, of one for each direction, and of these
with two for both directions, on the best events and on outputs seen on one dataset only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointCounts:
    """Pairs of runs, one on each dataset, classified by which of the two lie in the event.

    p names the side on which the claim bounds the event's probability, q the other side.
    """

    both: int
    only_p: int
    only_q: int
    neither: int

    @property
    def runs(self) -> int:
        """Number of pairs of runs."""
        return self.both + self.only_p + self.only_q + self.neither

    @property
    def counts(self) -> Counts:
        """Counts of the event on each side, with p in place of x."""
        return Counts(
            count_x=self.both + self.only_p, runs_x=self.runs, count_y=self.both + self.only_q, runs_y=self.runs
        )

    def followed_by(self, other: JointCounts) -> JointCounts:
        """Return the counts of both batches together."""
        return JointCounts(
            both=self.both + other.both,
            only_p=self.only_p + other.only_p,
            only_q=self.only_q + other.only_q,
            neither=self.neither + other.neither,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedGuesses:
    """Pairs of runs, one on each dataset, classified by which runs are guessed right.

    An output only in S is guessed to be from x, an output only in T from y.
    """

    both_right: int
    one_each: int
    one_right: int
    both_wrong: int
    one_wrong: int
    unguessed: int


NO_PAIRS = JointCounts(both=0, only_p=0, only_q=0, neither=0)


BetCounts: TypeAlias = JointCounts | PairedGuesses | Guesses | None


@dataclass(frozen=True, slots=True)
class Wealth:
    """Wealth from betting against each of several members of a claim's family, as logarithms."""

    log_wealth: Array
    log_peak: Array
    log_graded: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def start(cls, members: int, accounts: int = 2, *, is_graded: bool = False) -> Wealth:
        """Return the wealth before any run."""
        graded = np.zeros((members, len(GRADED_BETS) if is_graded else 0))
        return cls(np.zeros((members, accounts, len(BETS))), np.zeros(members), graded)

    def after(
        self,
        lines: Sequence[Sequence[Line]],  # one for each member from `first` on and each account
        counts: Sequence[BetCounts],  # of the batch, for the event or both events of each account; None places no bet
        *,
        first: int = 0,  # members before it are refuted already
        placed: npt.NDArray[np.int64] | None = None,  # accounts, by default each one's own; a negative one bets nothing
        most: Array | None = None,  # largest λ of each account's bets; by default the line alone limits it
        graded: Array | None = None,  # logarithms of what each bet on a divergence multiplies the wealth by
    ) -> Wealth:
        """Return the wealth after a batch; all but the counts are chosen without looking at the batch.

        `placed` and `most` have the shape (members, accounts), `graded` (members from `first` on, graded bets).
        """
        slope = np.array([[line.slope for line in row] for row in lines])
        intercept = np.array([[line.intercept for line in row] for row in lines])
        before = self.log_wealth[first:]
        if slope.shape != before.shape[:2] or len(counts) != slope.shape[1]:
            raise OptionError(
                f"lines of shape {slope.shape} and {len(counts)} counts do not fit wealth of shape "
                f"{before.shape[:2]}; give a line for each member and account.",
                shape=slope.shape,
            )
        bet = np.stack([BETS] * 3 + [_RARE_BETS])[: slope.shape[1]] / (slope + intercept)[..., None]
        if most is not None:
            bet = np.minimum(bet, most[..., None])
        gained = np.zeros_like(before)
        for account, counted in enumerate(counts):
            for times, value in () if counted is None else _gains(counted, slope[:, account]):
                if times:
                    gain = (value - intercept[:, account])[:, None]
                    gained[:, account] += times * np.log1p(bet[:, account] * gain)
        if placed is not None:
            moved = np.take_along_axis(gained, np.maximum(placed, 0)[..., None], axis=1)
            gained = np.where(placed[..., None] < 0, 0.0, moved)
        log_wealth = np.concatenate([self.log_wealth[:first], before + gained])
        now = replace(self, log_wealth=log_wealth)
        if graded is not None:
            now = replace(now, log_graded=np.concatenate([self.log_graded[:first], self.log_graded[first:] + graded]))
        return replace(now, log_peak=np.maximum(self.log_peak, now.log_average))

    @property
    def log_average(self) -> Array:
        """Logarithm of the weighted average wealth over accounts and bets, shape (members,)."""
        of_events = log_mean(self.log_of_accounts) + math.log(self.log_wealth.shape[1])
        return np.logaddexp(of_events, self.log_of_graded) - math.log(2.0) if self.log_graded.size else of_events

    @property
    def log_of_graded(self) -> Array:
        """Logarithm of the average wealth over bets on a divergence, shape (members,)."""
        return log_mean(self.log_graded)

    @property
    def log_of_accounts(self) -> Array:
        """Logarithm of the average wealth over bets, times the account's weight, shape (members, accounts)."""
        members, accounts, bets = self.log_wealth.shape
        each = log_mean(self.log_wealth.reshape(members * accounts, bets)).reshape(members, accounts)
        return each + np.log(WEIGHTS[accounts])

    def pvalues(self) -> Array:
        """Return anytime-valid p-values: for a true member, the probability of ever being at most a is at most a."""
        return np.exp(-self.log_peak)

    def n_refuted(self, alpha: float) -> int:
        """Return the number of leading members that are all refuted.

        With members in increasing order of privacy parameter, the last refuted one is the running lower bound.
        """
        refuted = self.log_peak >= -math.log(check_alpha(alpha))
        return int(np.argmin(refuted)) if not refuted.all() else len(refuted)


def _gains(counts: JointCounts | PairedGuesses | Guesses, slope: Array) -> list[tuple[int, Array]]:
    """Return how often a pair of runs, or a guess, has each of its values, for each slope of the line."""
    none = np.zeros_like(slope)
    if isinstance(counts, PairedGuesses):
        return [
            (counts.both_right, none + 1.0),
            (counts.one_each, 0.5 * (1.0 - slope)),
            (counts.one_right, none + 0.5),
            (counts.both_wrong, -slope),
            (counts.one_wrong, -0.5 * slope),
            (counts.unguessed, none),
        ]
    if isinstance(counts, Guesses):
        unguessed = counts.runs - counts.correct - counts.incorrect
        return [(counts.correct, none + 1.0), (counts.incorrect, -slope), (unguessed, none)]
    return [(counts.both, 1.0 - slope), (counts.only_p, none + 1.0), (counts.only_q, -slope), (counts.neither, none)]


def log_mean(log_values: Array) -> Array:
    """Return the logarithm of the mean of each row, from the logarithms of its values."""
    top = log_values.max(axis=1)
    return np.asarray(top + np.log(np.exp(log_values - top[:, None]).mean(axis=1)))
