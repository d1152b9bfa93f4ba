"""Both directions of an event in one test: from each output, guess the dataset.

Let the dataset of each run be drawn by a fair coin. An output in S is guessed to be from x, an output in T from y, any
other output is not guessed; S and T exclude each other. If a claim has a concave boundary B that is the same in both
directions, the probabilities c of a correct guess and w of an incorrect one satisfy c ≤ B(w). If the violation shows in
both directions, a test of c ≤ B(w) needs up to half the runs of a test of one of them.

- *Pure claims.* Given G guesses the correct ones are Bin(G, c/(c + w)) with c/(c + w) ≤ e^ε/(1 + e^ε): a binomial test
  without a nuisance parameter, and a bound in closed form.
- *Other claims.* Given W incorrect guesses the correct ones are Bin(N − W, c/(1 − w)), tested as in `event_test`.

The theorem needs coins. So of the n runs on each dataset, only as many are counted as N = 2n − 3√(2n) coins say, given
that neither side needs more than n (`coins_for`).

Proof: docs/proofs/guesses.md

References
----------
Guesses of the dataset stand behind audits of one training run: Steinke, Nasr & Jagielski (2023), Privacy auditing with
one (1) training run, Theorem 5.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from ..claims.claim import Claim
from ..errors import OptionError
from .binomial_tails import ROUNDING, limits
from .event_test import GAMMA, Counts, FamilyTest, check_test_alpha

_LEFT_OUT = 3.0  # standard deviations by which the coins fall short of all runs
_AT_ONCE = 5.0  # standard deviations of the coins of a batch that are drawn one by one
_FEWEST = 32  # runs on each dataset from which coins are drawn: with fewer, more than three in eight would be left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """Correct and incorrect guesses among runs whose dataset was drawn by a fair coin."""

    correct: int
    incorrect: int
    runs: int

    def __post_init__(self) -> None:
        if not (min(self.correct, self.incorrect) >= 0 and self.runs >= max(self.correct + self.incorrect, 1)):
            raise OptionError(
                f"correct={self.correct!r}, incorrect={self.incorrect!r} of runs={self.runs!r} is impossible; use "
                "correct + incorrect <= runs.",
                correct=self.correct,
                incorrect=self.incorrect,
                runs=self.runs,
            )
        self.as_counts  # noqa: B018  # whole numbers up to the largest count

    @property
    def as_counts(self) -> Counts:
        """The correct guesses in place of counts on x, the incorrect ones in place of counts on y."""
        return Counts(count_x=self.correct, runs_x=self.runs, count_y=self.incorrect, runs_y=self.runs)

    def __str__(self) -> str:
        return f"{self.correct:,} correct and {self.incorrect:,} incorrect guesses in {self.runs:,} runs"


def coins_for(runs: int) -> int:
    """Return how many coins decide about the datasets where there are `runs` runs on each; 0 for very few runs.

    >>> coins_for(20), coins_for(1_000), coins_for(1_000_000)
    (0, 1866, 1995758)
    """
    return 2 * runs - math.floor(_LEFT_OUT * math.sqrt(2.0 * runs)) if runs >= _FEWEST else 0


@lru_cache(maxsize=64)
def share_that_fits(runs: int) -> float:
    """Return the probability that neither dataset needs more than `runs` runs, rounded down.

    >>> round(share_that_fits(1_000_000), 4)
    0.9973
    """
    coins = coins_for(runs)
    more = float(scipy.special.betainc(runs + 1.0, coins - runs, 0.5))  # that x needs more, which y does as often
    return 1.0 - 2.0 * more * (1.0 + ROUNDING)


def guesses_by_coins(first: Counts, second: Counts, rng: np.random.Generator) -> tuple[Guesses, float]:
    """Return correct and incorrect guesses among as many runs as coins say, and the probability that the coins fit.

    Which runs are left out is drawn at random, so the runs that are counted are independent runs as before. The counts
    are of two events that exclude each other, in the same runs: guessed to be from x, and guessed to be from y.
    """
    runs = min(first.runs_x, first.runs_y)
    coins = on_x = coins_for(runs)  # more than fit, so that coins are drawn
    while on_x > runs or coins - on_x > runs:
        on_x = int(rng.binomial(coins, 0.5))
    return _guesses_among(first, second, on_x, coins - on_x, rng), share_that_fits(runs)


def guesses_in_batch(first: Counts, second: Counts, rng: np.random.Generator) -> Guesses | None:
    """Return correct and incorrect guesses among the runs of a batch, with coins until one dataset has no more runs.

    When the coins end depends only on the coins. All but the last are drawn at once; with probability 1e-6 they already
    need too many runs, and there are no guesses.
    """
    runs = first.runs_x
    at_once = max(0, 2 * runs - math.ceil(_AT_ONCE * math.sqrt(2.0 * runs)))
    on_x = int(rng.binomial(at_once, 0.5))
    on_y = at_once - on_x
    if max(on_x, on_y) > runs:
        return None
    coins = rng.integers(2, size=2 * runs - at_once)  # one more coin always finds a dataset without runs
    needed_x, needed_y = on_x + np.cumsum(coins), on_y + np.cumsum(1 - coins)
    last = int(np.argmax((needed_x == runs) | (needed_y == runs)))
    kept_x, kept_y = (on_x, on_y) if max(on_x, on_y) == runs else (int(needed_x[last]), int(needed_y[last]))
    return _guesses_among(first, second, kept_x, kept_y, rng)


def _guesses_among(first: Counts, second: Counts, on_x: int, on_y: int, rng: np.random.Generator) -> Guesses:
    """Return correct and incorrect guesses among so many of the runs, drawn without replacement."""
    right_x, wrong_x = _some_of(first.count_x, second.count_x, first.runs_x, on_x, rng)
    wrong_y, right_y = _some_of(first.count_y, second.count_y, first.runs_y, on_y, rng)
    return Guesses(correct=right_x + right_y, incorrect=wrong_x + wrong_y, runs=on_x + on_y)


def _some_of(first: int, second: int, runs: int, kept: int, rng: np.random.Generator) -> tuple[int, int]:
    """Return the counts of two events that exclude each other, in some runs drawn without replacement."""
    left_out = rng.choice(runs, runs - kept, replace=False, shuffle=False)
    of_first = int(np.count_nonzero(left_out < first))
    of_second = int(np.count_nonzero(left_out < first + second)) - of_first
    return first - of_first, second - of_second


def guess_test(guesses: Guesses, claim: Claim, *, alpha: float, fits: float = 1.0) -> tuple[float, float]:
    """Return the exact p-value of the claim, and a lower bound on its privacy parameter at confidence 1 − alpha.

    The guesses are by a rule that was chosen without looking at these runs. `fits` is the probability of the event
    under which the coins were drawn, `share_that_fits`; 1 for coins without condition.

    >>> from dpaudit import PureDP
    >>> p, bound = guess_test(Guesses(correct=1_480, incorrect=520, runs=3_000), PureDP(1.0), alpha=0.05)
    >>> round(p, 3), round(bound, 3)
    (0.191, 0.961)
    """
    if not is_symmetric(claim):
        raise OptionError(
            f"{claim} differs between the directions, or its boundary is not concave; test a single direction.",
            claim=claim,
        )
    level = check_test_alpha(alpha) * fits
    if claim.log_ratio is not None:
        p, bound = _pure(guesses, claim, level)
    else:
        family = FamilyTest.of(guesses.as_counts, claim, level, are_guesses=True)
        p, bound = family.pvalue(claim), family.last_refuted(claim, level)
    return min(1.0, max(p / fits, GAMMA)), bound  # as small as the p-values of the other tests


def is_symmetric(claim: Claim) -> bool:
    """Whether a claim has one concave boundary for both directions, so that guesses can be tested."""
    return claim.reversed() == claim and is_concave(claim)


def is_concave(claim: Claim) -> bool:
    """Whether the boundary is concave as far as a grid shows: a user's own claim may not be."""
    points, flat = 257, 1e-7  # the latter is what errors of a boundary may hide
    angle = np.linspace(0.0, math.pi / 2, points)[1:-1]
    q = np.sin(angle) ** 2
    p = claim.max_power(q, np.cos(angle) ** 2)[0]
    share = (q[1:-1] - q[:-2]) / (q[2:] - q[:-2])
    return bool(np.all(p[1:-1] >= (1.0 - share) * p[:-2] + share * p[2:] - flat))


def _pure(guesses: Guesses, claim: Claim, alpha: float) -> tuple[float, float]:
    """Test a claim that only limits the ratio of correct guesses to incorrect ones."""
    right, wrong, log_ratio = guesses.correct, guesses.incorrect, claim.log_ratio
    assert log_ratio is not None
    if right == 0:
        return 1.0, 0.0
    p = 1.0
    if log_ratio < 700.0:
        p = float(scipy.special.betaincc(wrong + 1.0, float(right), 1.0 / (1.0 + math.exp(log_ratio))))
    most_wrong = float(limits(np.array([float(wrong)]), float(right + wrong), alpha=alpha)[1][0])
    least_ratio, unit = math.log(1.0 - most_wrong) - math.log(most_wrong), claim.with_parameter(1.0).log_ratio
    assert unit is not None  # the log ratio is proportional to the parameter
    return min(1.0, p * (1.0 + ROUNDING)), max(least_ratio / unit * (1.0 - 1e-12), 0.0)
