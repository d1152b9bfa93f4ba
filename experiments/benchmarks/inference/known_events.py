"""What audits of a known pair could show if they knew the two best events: no pilot, no learning.

The best pair of events has one threshold t of the likelihood ratio in both directions: guess x where it is at least t
and y where it is at most 1/t. For every t this pair has the largest c − t·w of all pairs, with c and w the
probabilities of a right and of a wrong guess.
"""

from __future__ import annotations

import itertools
import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ....audit.claims.claim import Claim, PureDP
from ....audit.events.events import Apart, Event, Intervals, Outcomes
from ....audit.inference.betting_test import BetCounts, JointCounts, Line, PairedGuesses, Wealth, best_line
from ....audit.inference.boundary_test import Counts, strength_lower
from ....audit.inference.guess_test import Guesses, coins_for, guess_test, guesses_by_coins, share_that_fits
from ....audit.portfolio.choice import Criterion
from ....audit.sampling.batches import batch_sizes
from ....mechanisms import (
    DiscreteGaussianLaw,
    DiscreteGaussianMechanism,
    ExponentialMechanism,
    FiniteLaw,
    GaussianLaw,
    GaussianMechanism,
    GeometricLaw,
    GeometricMechanism,
    LaplaceLaw,
    LaplaceMechanism,
    RandomisedResponse,
    ScalarLaw,
    exact_epsilon,
)

# Pairs of datasets with known output laws, and the largest lower bounds that audits of these pairs can give.

Array = npt.NDArray[np.float64]

_ANGLES = np.linspace(0.0, math.pi / 2, 17)
_ERROR_SIZES = (0.5, 0.75, 1.0, 1.5)  # of the asymptotic bound that proposes events, in units of z
_REACH, _POINTS = 12.0, 8_001  # grid of half-lines: reach in scales, and number of points


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Mechanism on a pair, with a claim that holds there with equality."""

    name: str
    mechanism: Any
    x: Any
    y: Any
    claim: Claim

    def laws(self) -> tuple[ScalarLaw, ScalarLaw]:
        return self.mechanism.law(self.x), self.mechanism.law(self.y)


def subjects() -> list[Subject]:
    """Return the pairs for the false alarms and the tightness."""
    flat, one_up = (0.0,) * 50, (1.0,) + (-1.0,) * 49  # one candidate up and 49 down
    exponential = ExponentialMechanism(1.0)
    loss = exact_epsilon(exponential.law(flat), exponential.law(one_up))
    tight, rare, whole = GaussianMechanism(1.0, 0.05), GaussianMechanism(1.0, 1e-3), DiscreteGaussianMechanism(2.0, 1.0)
    return [
        Subject(name="laplace", mechanism=LaplaceMechanism(1.0), x=0.0, y=1.0, claim=PureDP(1.0)),
        Subject(name="geometric", mechanism=GeometricMechanism(1.0), x=0, y=1, claim=PureDP(1.0)),
        Subject(name="randomised-response", mechanism=RandomisedResponse(1.0), x=0, y=1, claim=PureDP(1.0)),
        Subject(name="gaussian-0.05", mechanism=tight, x=0.0, y=1.0, claim=tight.claim),
        Subject(name="gaussian-0.001", mechanism=rare, x=0.0, y=1.0, claim=rare.claim),
        Subject(name="discrete-gaussian", mechanism=whole, x=0, y=1, claim=whole.claim),
        Subject(name="exponential", mechanism=exponential, x=flat, y=one_up, claim=PureDP(loss)),
    ]


def probability(event: Event, law: ScalarLaw) -> float:
    """Return the probability of an event that an audit chose.

    The rounding of outputs to a grid is ignored: it moves an edge by half a step, 5e-7 scales.
    """
    match event:
        case Intervals(intervals):  # these laws have numbers only
            return min(1.0, sum(_between(law, low, high) for low, high in intervals))
        case Outcomes(values, others):
            known = [float(value) for value in values if isinstance(value, numbers.Real)]
            listed = float(np.exp(law.log_density(known)).sum()) if known else 0.0
            return max(0.0, 1.0 - listed) if others else min(1.0, listed)
        case Apart(event, other):
            return max(0.0, probability(event, law) - _shared(event, other, law))
        case _:
            raise TypeError(f"no exact probability for {event!r}")


def _shared(event: Event, other: Event, law: ScalarLaw) -> float:
    """Return the probability of an output in both events."""
    match event, other:
        case Outcomes(values, others=True), _:
            return probability(other, law) - _shared(Outcomes(values), other, law)
        case Outcomes(values), _:
            known = [value for value in values if isinstance(value, numbers.Real)]
            is_shared = other.contains(np.array(known, dtype=float))
            return probability(Outcomes(tuple(itertools.compress(known, is_shared))), law)
        case _, Outcomes():
            return _shared(other, event, law)
        case Intervals(first), Intervals(second):
            bounds = ((max(a, c), min(b, d)) for (a, b), (c, d) in itertools.product(first, second))
            return probability(Intervals(tuple((low, high) for low, high in bounds if low <= high)), law)
        case _:
            raise TypeError(f"no exact probability for {event!r} and {other!r}")


def _between(law: ScalarLaw, low: float, high: float) -> float:
    """Return Pr[low ≤ output ≤ high], from the smaller tails."""
    edges = np.array([math.nextafter(low, -math.inf), high])
    tails = law.cdf(edges) if law.cdf(edges[0]) < 0.5 else -law.sf(edges)
    return max(0.0, float(tails[1] - tails[0]))


@dataclass(frozen=True, slots=True)
class Rates:
    """Probabilities of nested events on the likelier side and on the other, and their complements, shape (events,)."""

    p: Array
    p_rest: Array
    q: Array
    q_rest: Array


def best_events(law_p: ScalarLaw, law_q: ScalarLaw) -> Rates:
    """Return all events {likelihood ratio ≥ t}, the best by Neyman and Pearson: half-lines or sets of outcomes."""
    if isinstance(law_p, FiniteLaw):
        p, q = np.exp(law_p.log_probabilities), np.exp(law_q.log_density(np.arange(len(law_p.log_probabilities))))
        with np.errstate(divide="ignore"):
            order = np.argsort(np.log(q) - np.log(p), kind="stable")
        p, q = p[order], q[order]
        after_p, after_q = (np.cumsum(side[::-1])[::-1][1:] for side in (p, q))
        return Rates(np.cumsum(p)[:-1], after_p, np.cumsum(q)[:-1], after_q)
    points = _points(law_p, law_q)
    below = law_p.cdf(points), law_p.sf(points), law_q.cdf(points), law_q.sf(points)
    above = below[1], below[0], below[3], below[2]
    return Rates(*(np.concatenate(sides) for sides in zip(below, above, strict=True)))


def _points(law_p: ScalarLaw, law_q: ScalarLaw) -> Array:
    """Return the ends of half-lines: every integer, or a fine grid that contains both locations."""
    match law_p, law_q:
        case (LaplaceLaw(a, scale), LaplaceLaw(b, _)) | (GaussianLaw(a, scale), GaussianLaw(b, _)):
            grid = scale * _REACH * np.linspace(-1.0, 1.0, _POINTS)
            return np.unique(np.concatenate([a + grid, b + grid]))
        case GeometricLaw(a, ratio), GeometricLaw(b, _):
            return _whole(a, b, -1.0 / math.log(ratio))
        case DiscreteGaussianLaw(a, sigma), DiscreteGaussianLaw(b, _):
            return _whole(a, b, sigma)
        case _:
            raise TypeError(f"no grid for {law_p!r}")


def _whole(a: int, b: int, scale: float) -> Array:
    reach = math.ceil(2 * _REACH * scale)
    return np.arange(min(a, b) - reach, max(a, b) + reach + 1, dtype=np.float64)


def oracle_bound(subject: Subject, runs: int, *, alpha: float) -> float:
    """Return the lower bound of the best event at its expected hits, with every run counted.

    The asymptotic form of the bound proposes events at several error sizes, and the exact test compares them.
    """
    law_x, law_y = subject.laws()
    best = 0.0
    for claim, law_p, law_q in ((subject.claim, law_x, law_y), (subject.claim.reversed(), law_y, law_x)):
        rates = best_events(law_p, law_q)
        proposed = {int(np.argmax(asymptotic_bounds(claim, rates, runs, alpha, size))) for size in _ERROR_SIZES}
        for i in proposed:
            best = max(best, expected_bound(claim, float(rates.p[i]), float(rates.q[i]), runs, runs, alpha=alpha))
    return best


def asymptotic_bounds(claim: Claim, rates: Rates, runs: int, alpha: float, size: float = 1.0) -> Array:
    """Return for each event the largest strength whose boundary avoids the normal ellipse around its rates, or −∞."""
    error = size * max(float(-ndtri(alpha)), 0.1) / (2.0 * math.sqrt(runs))  # a standard error of arcsin √p is 1/(2√n)
    p = np.arctan2(np.sqrt(rates.p), np.sqrt(rates.p_rest)) - error * np.sin(_ANGLES)[:, None]
    q = np.arctan2(np.sqrt(rates.q), np.sqrt(rates.q_rest)) + error * np.cos(_ANGLES)[:, None]
    p, q = np.maximum(p, 0.0), np.minimum(q, math.pi / 2)
    found = claim.strength_of(np.sin(p) ** 2, np.sin(q) ** 2, np.cos(p) ** 2, np.cos(q) ** 2).min(axis=0)
    return np.where(np.isnan(found), -math.inf, found)


def expected_bound(claim: Claim, p: float, q: float, runs_p: int, runs_q: int, *, alpha: float) -> float:
    """Return the bound of the exact test at the expected hits, rounded."""
    counts = Counts(hits_x=round(p * runs_p), runs_x=runs_p, hits_y=round(q * runs_q), runs_y=runs_q)
    return strength_lower(counts, claim, alpha=alpha)


_THRESHOLDS = np.geomspace(1.0, 200.0, 1_500)
_BELOW = 1.0 - 1e-9  # so that a threshold that many outputs attain has all of them in its event
_TESTED = 5  # pairs of events that the exact test compares
_SHARES = np.geomspace(1e-3, 0.99, 150)  # of the largest bet
_GROWTH = 0.01  # of the runs from one look of the best bet to the next
_EXACT = 1e12  # runs that know a frequency well enough for a line


@dataclass(frozen=True, slots=True)
class KnownPair:
    """An event likelier on x with probabilities (p, q) on x and y, and one likelier on y with (q, p) on y and x."""

    on_x: tuple[float, float]
    on_y: tuple[float, float]

    @property
    def right(self) -> float:
        """Probability of a right guess in a run whose dataset a fair coin drew."""
        return 0.5 * (self.on_x[0] + self.on_y[0])

    @property
    def wrong(self) -> float:
        return 0.5 * (self.on_x[1] + self.on_y[1])

    @property
    def cells(self) -> Array:
        """Probabilities of (run on x, run on y), each in the event of x, in that of y, or in none, shape (3, 3)."""
        x = np.array([self.on_x[0], self.on_y[1]])
        y = np.array([self.on_x[1], self.on_y[0]])
        return np.outer(*(np.append(side, max(0.0, 1.0 - side.sum())) for side in (x, y)))


def best_pairs(law_x: ScalarLaw, law_y: ScalarLaw) -> list[KnownPair]:
    """Return the pairs of events of all thresholds of the likelihood ratio; none if no event is likelier on either."""
    sides = best_events(law_x, law_y), best_events(law_y, law_x)
    thresholds = np.append(_THRESHOLDS, [math.exp(abs(loss)) * _BELOW for side in sides for loss in _losses(side)])
    places = {tuple(int(np.argmax(side.p - t * side.q)) for side in sides) for t in thresholds.tolist()}
    pairs = [
        KnownPair(*((float(side.p[i]), float(side.q[i])) for side, i in zip(sides, each, strict=True)))
        for each in sorted(places)
    ]
    return [pair for pair in pairs if pair.right > pair.wrong > 0.0 and pair.right + pair.wrong <= 1.0 + 1e-9]


def _losses(rates: Rates) -> list[float]:
    """The largest log ratio of a common event, which many outputs may attain."""
    is_common = (rates.q > 1e-6) & (rates.p > 1e-6)
    return [float(np.log(rates.p[is_common] / rates.q[is_common]).max())] if is_common.any() else []


def known_bound(
    pairs: list[KnownPair], claim: Claim, runs: int, *, alpha: float, is_whole: bool = True
) -> tuple[float, KnownPair]:
    """Return the bound of the best of some pairs at its expected guesses, and the pair.

    Parameters
    ----------
    runs : int
        On each dataset. All of them are counted, or else as many as an audit counts, which draws its coins afterwards.
    """
    coins, fits = (2 * runs, 1.0) if is_whole else (coins_for(runs), share_that_fits(runs))
    criterion = Criterion(claim, runs, float(-ndtri(alpha)))

    def expected(pair: KnownPair) -> float:
        return criterion.value_of_guesses(2 * runs * pair.right, 2 * runs * pair.wrong, runs, 0.0)

    def bound(pair: KnownPair) -> float:
        guesses = Guesses(right=round(coins * pair.right), wrong=round(coins * pair.wrong), runs=coins)
        return guess_test(guesses, claim, alpha=alpha, fits=fits)[1]

    tried = sorted(pairs, key=expected, reverse=True)[:_TESTED]
    return max(((bound(pair), pair) for pair in tried), key=lambda each: each[0])


def known_share(pair: KnownPair, claim: Claim, runs: int, *, alpha: float, audits: int, seed: int) -> float:
    """Return the share of simulated tests of all runs that refute the claim."""
    rates = [pair.right, pair.wrong, max(0.0, 1.0 - pair.right - pair.wrong)]
    drawn = np.random.default_rng(seed).multinomial(2 * runs, rates, size=audits)
    tests = (Guesses(right=int(right), wrong=int(wrong), runs=2 * runs) for right, wrong, _ in drawn)
    return sum(guess_test(guesses, claim, alpha=alpha)[1] > claim.strength for guesses in tests) / audits


def best_bet(pairs: list[KnownPair], claim: Claim) -> tuple[KnownPair, Array]:
    """Return the pair and the factors of wealth, for a right, a wrong and no guess, that make wealth grow fastest."""
    found = []
    for pair in pairs:
        line = best_line(claim, pair.right, pair.wrong, _EXACT)
        rates = np.array([pair.right, pair.wrong, 1.0 - pair.right - pair.wrong])
        growth, factors = _best_share(line, rates, np.array([1.0, -line.slope, 0.0]))
        found.append((growth, pair, factors))
    _, best, factors = max(found, key=lambda each: each[0])
    return best, factors


def best_pair_of_runs(pairs: list[KnownPair], claim: Claim) -> KnownPair:
    """Return the pair of events on which bets on both runs of a pair, as an audit places them, win most."""

    def growth(pair: KnownPair) -> float:
        line = best_line(claim, pair.right, pair.wrong, _EXACT)
        on_x, on_y = np.array([1.0, -line.slope, 0.0]), np.array([-line.slope, 1.0, 0.0])
        return _best_share(line, pair.cells.ravel(), 0.5 * (on_x[:, None] + on_y).ravel())[0]

    return max(pairs, key=growth)


def _best_share(line: Line, rates: Array, values: Array) -> tuple[float, Array]:
    """The largest mean logarithm of a factor, over shares of the largest bet, and the factors of each value."""
    bets = _SHARES / (line.slope + line.intercept)
    factors = 1.0 + bets[:, None] * (values - line.intercept)
    growths = np.log(factors) @ rates
    most = int(growths.argmax())
    return float(growths[most]), factors[most]


def runs_of_best_bet(
    pairs: list[KnownPair], claim: Claim, runs: int, *, alpha: float, final_alpha: float, audits: int, seed: int
) -> Array:
    """Return the runs on each dataset until simulated audits that know the laws refute the claim; infinite if never.

    Each bets from the first run, with the best share, on guesses in runs whose dataset a coin draws, and looks whenever
    the runs have grown by a hundredth. If `final_alpha` is positive, a test of all runs follows.
    """
    pair, factors = best_bet(pairs, claim)
    rng, enough = np.random.default_rng(seed), -math.log(alpha)
    rates = [pair.right, pair.wrong, max(0.0, 1.0 - pair.right - pair.wrong)]
    guesses, taken, done = np.zeros((audits, 3), np.int64), np.full(audits, math.inf), 0
    while done < runs and np.isinf(taken).any():
        size = min(max(1, int(_GROWTH * done)), runs - done)
        guesses += rng.multinomial(2 * size, rates, size=audits)
        done += size
        taken[np.isinf(taken) & (guesses @ np.log(factors) >= enough)] = done
    if final_alpha > 0.0:
        for audit in np.flatnonzero(np.isinf(taken)):
            right, wrong, _ = guesses[audit].tolist()
            made = Guesses(right=right, wrong=wrong, runs=2 * runs)
            if guess_test(made, claim, alpha=final_alpha)[1] > claim.strength:
                taken[audit] = runs
    return taken


def runs_of_known_events(
    pairs: list[KnownPair], claim: Claim, runs: int, *, alpha: float, final_alpha: float, audits: int, seed: int
) -> Array:
    """Return the same for audits that bet as `check` does, in its batches, but know the two events from the first run.

    Their wealth has the same accounts and shares; the account of rare events bets on nothing.
    """
    pair = best_pair_of_runs(pairs, claim)
    lines = [
        best_line(claim, *pair.on_x, _EXACT),
        best_line(claim, *pair.on_y, _EXACT),
        *[best_line(claim, pair.right, pair.wrong, _EXACT)] * 2,
    ]
    taken = [
        _runs_of_one(pair, claim, lines, runs, alpha, final_alpha, np.random.default_rng([seed, number]))
        for number in range(audits)
    ]
    return np.array(taken)


def _runs_of_one(
    pair: KnownPair,
    claim: Claim,
    lines: list[Line],
    runs: int,
    alpha: float,
    final_alpha: float,
    rng: np.random.Generator,
) -> float:
    wealth, placed, done = Wealth.start(1, len(lines)), np.array([[0, 1, 2, -1]]), 0
    rates, total = pair.cells.ravel(), np.zeros((3, 3), np.int64)
    for size in batch_sizes(runs):
        cells = rng.multinomial(size, rates).reshape(3, 3)
        total += cells
        done += size
        wealth = wealth.after([lines], _counted(cells), placed=placed)
        if wealth.n_refuted(alpha) > 0:
            return float(done)
    if final_alpha > 0.0:
        first, second = (
            Counts(hits_x=int(total[i].sum()), runs_x=runs, hits_y=int(total[:, i].sum()), runs_y=runs) for i in (0, 1)
        )
        guesses, fits = guesses_by_coins(first, second, rng)
        if guess_test(guesses, claim, alpha=final_alpha, fits=fits)[1] > claim.strength:
            return float(runs)
    return math.inf


def _counted(cells: npt.NDArray[np.int64]) -> list[BetCounts]:
    """The counts of a batch for the accounts of both directions, of both together, and of rare events."""
    on_x, on_y, both = cells.sum(axis=1), cells.sum(axis=0), int(cells.sum())
    first = _joint(int(cells[0, 0]), int(on_x[0]), int(on_y[0]), both)
    second = _joint(int(cells[1, 1]), int(on_y[1]), int(on_x[1]), both)
    paired = PairedGuesses(
        both_right=int(cells[0, 1]),
        one_each=int(cells[0, 0] + cells[1, 1]),
        one_right=int(cells[0, 2] + cells[2, 1]),
        both_wrong=int(cells[1, 0]),
        one_wrong=int(cells[1, 2] + cells[2, 0]),
        unguessed=int(cells[2, 2]),
    )
    return [first, second, paired, None]


def _joint(both: int, hits_p: int, hits_q: int, runs: int) -> JointCounts:
    return JointCounts(both=both, only_p=hits_p - both, only_q=hits_q - both, neither=runs - hits_p - hits_q + both)
