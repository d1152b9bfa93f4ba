"""A test of claims on Rényi divergences: graded payoffs of outputs in bins, where an event has only 0 and 1.

A single event shows little of a Rényi divergence. Let P be the distribution of the outputs on x, Q that on y, and t any
positive function of the output. The tangent of r^a at r = t shows that for every order a > 1

    E_P[a (t^(a−1) − 1)/(a − 1)] − E_Q[t^a − 1]  ≤  (exp((a − 1) D_a(P‖Q)) − 1)/(a − 1),

with equality for t = dP/dQ; for a = 1, the payoff on x is ln t and the right side D_1. So a claim limits the mean
of a payoff f on x minus that of a payoff g on y by a number C. Let A − B = C. For any shares with n λ = m κ the product
of 1 + λ(f − A) over n runs on x and of 1 − κ(g − B) over m runs on y then has mean at most 1: a bet against the claim.
The best t is nearly the soft clip of dP/dQ with log t + μ(f + g) = log dP/dQ.

A random order of the runs cuts them into batches. Before each batch the runs before it, and the pilot, choose t, the
order and the direction for each privacy parameter. The shares aim at a wealth of 1/alpha after the last run and nothing
less (Voráček & Orabona 2025), which loses almost no power compared with the normal test, and is exact.

Proof: docs/proofs/divergences.md

References
----------
Nguyen, Wainwright & Jordan (2010), Estimating divergence functionals and the likelihood ratio by convex risk
minimization (the tangent). Kong, Muñoz Medina & Ribero (2023), RényiTester: a variational approach to testing
differential privacy. Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting. Voráček &
Orabona (2025), STaR-Bets: sequential target-recalculating bets for tighter confidence intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from ..claims.claim import Claim
from .binomial_tails import Array
from .event_test import GAMMA

Labels: TypeAlias = npt.NDArray[np.int64]
Way: TypeAlias = Literal["x from y", "y from x", "both ways"]

_WAYS: tuple[Way, ...] = ("x from y", "y from x", "both ways")
_MULTIPLIERS = (0.0, *(10.0**-power for power in range(12, -1, -1)))  # of the soft clip; 0 for none
_NEWTON_STEPS = 6  # from above on a convex function, whose slope changes e-fold within 1/order of the solution
_GROUPS = (2, 4, 8, 16, 32)  # besides as many as bins; four of equal probability keep 86% of the information on a shift
_PRIOR = 0.5  # runs in each bin before the first one (Jeffreys), so that no ratio is 0 or infinite
# Gaussian noise of divergence 1 has bounds of .948, .951 and .952 with 32, 64 and 128 (100,000 runs, order 2).
_BATCHES = 64
_GROWTH = 1.5  # of the known runs after which order, direction and clip are chosen anew; t is learned in every batch
SPARED = 0.98
"""Share of the level that the bets aim at, as a digital payoff is never reached exactly before the last run."""
_LARGEST_BET = 0.9  # share of the wealth that a single run may lose
_MOST_SHUFFLED = 10**9  # runs from which numpy does not draw without replacement; more are one batch
_LARGEST_EXPONENT = 200.0  # of a payoff, whose square is a double; it limits t further, and any t is valid
_LEVELS = 96  # of p-values from 1/2 down: steps of a quarter
_BELOW, _ABOVE = 49, 2_800  # parameters below the claim and above it: steps of 2% of it and of 0.5% of the excess
_AT_ONCE, _ALIKE = 64, 8  # parameters above the claim tested before larger ones, and neighbours with the same choices
MILLIONTH = 1e-6
"""Distance of the member that decides about the claim, in units of the parameter: a bound that reaches it is larger."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A divergence to bound: a claim of privacy parameter s limits that of this order by slope·s."""

    order: float
    slope: float
    way: Way  # both ways it is the mean of two
    multiplier: float  # of the soft clip: 0 for none
    groups: int  # of neighbouring bins that have the same t, at most

    def payoffs(self, p: Array, q: Array) -> Payoffs:
        """Return the payoffs of the tangent at the ratio of these probabilities."""
        log_t = _soft_clip(_log_ratio(p, q, self.groups), self.order, np.asarray(self.multiplier))
        on_x, on_y = _tangents(log_t, self.order)
        way = _WAYS.index(self.way)
        return Payoffs(on_x[way], on_y[way])

    def limit(self, parameter: npt.ArrayLike) -> Array:
        """Return the largest mean of the payoff on x minus that on y that claims of these privacy parameters allow."""
        divergence, above = self.slope * np.asarray(parameter, np.float64), self.order - 1.0
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(above * divergence) / above if above > 0.0 else divergence)

    def parameter(self, mean: float) -> float:
        """Return the least privacy parameter that allows this mean; 0 where any does."""
        above = self.order - 1.0
        divergence = math.log1p(max(above * mean, 0.0)) / above if above > 0.0 else max(mean, 0.0)
        return divergence / self.slope


@dataclass(frozen=True, slots=True)
class Payoffs:
    """What a run on x pays, and what a run on y costs, by its bin."""

    on_x: Array
    on_y: Array

    def moments(self, p: Array, q: Array) -> tuple[float, float, float, float]:
        """Return the mean and variance of the payoff on x under p, and of that on y under q."""
        mean_x, mean_y = float(p @ self.on_x), float(q @ self.on_y)
        return mean_x, float(p @ (self.on_x - mean_x) ** 2), mean_y, float(q @ (self.on_y - mean_y) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergenceTest:
    """The result of the test, and the divergence that shows most of the violation at the end of the counts."""

    order: float
    way: Way
    bins: int  # in which the outputs were counted
    alpha: float  # error probability of the bound
    pvalue: float  # smallest alpha at which the test refutes the claim, from a grid
    bound: float  # on the privacy parameter
    estimate: float  # of the privacy parameter, by this divergence of the counted bins

    def __str__(self) -> str:
        of = {"both ways": "between x and y, mean of both directions"}.get(self.way, f"of {self.way}")
        return f"Rényi divergence of order {self.order:g} {of}, in {self.bins} bins of outputs"


def smoothed(counts: npt.ArrayLike) -> Array:
    """Return the shares of the bins with half a run more in each."""
    more = np.asarray(counts, np.float64) + _PRIOR
    return np.asarray(more / more.sum())


@dataclass(frozen=True, slots=True)
class Divergences:
    """What is known of divergences in bins, by which one is chosen for each privacy parameter of a claim."""

    divergences: list[Divergence]  # by order
    above: Array  # mean payoff on x minus that on y, as expected in other runs, shape (orders, divergences of this one)
    error: Array  # its standard error

    @classmethod
    def of(cls, p: Array, q: Array, claim: Claim, runs_x: float, runs_y: float, known: float = math.inf) -> Divergences:
        """Return the divergences of bins of these positive probabilities that the claim limits.

        If t is learned from the same s runs on each dataset in G groups, a mean exceeds that in other runs by the sum
        over groups of the derivative of f + g by log dP/dQ, over s. That is subtracted, for s `known` runs.
        """
        numbers = [*(each for each in _GROUPS if each < len(p)), len(p)]
        multipliers = np.array(_MULTIPLIERS)[:, None, None]
        log_ratio = np.stack([_log_ratio(p, q, number) for number in numbers])
        divergences: list[Divergence] = []
        above, variances = [], []
        for order, slope in claim.divergence_slopes:
            log_t = _soft_clip(log_ratio, order, multipliers)
            on_x, on_y = _tangents(log_t, order)  # shape (ways, multipliers, numbers of groups, bins)
            steep = _tangent_slopes(log_t, order) / (1.0 + multipliers * order * _cosh_sum(log_t, order))
            lost = steep.mean(axis=-1) * (np.array(numbers) - 1.0) / known
            mean_x, mean_y = on_x @ p, on_y @ q
            variance_x, variance_y = (on_x - mean_x[..., None]) ** 2 @ p, (on_y - mean_y[..., None]) ** 2 @ q
            above.append((mean_x - mean_y - lost).ravel())
            variances.append((variance_x / runs_x + variance_y / runs_y).ravel())
            divergences += [
                Divergence(order, slope, way, multiplier, number)
                for way, multiplier, number in product(_WAYS, _MULTIPLIERS, numbers)
            ]
        return cls(divergences, np.array(above), np.sqrt(variances))

    def telling(self, parameters: Array) -> tuple[npt.NDArray[np.int64], Array]:
        """Return which divergence lies farthest above the limit of each privacy parameter, and its standard errors."""
        limits = np.stack([each.limit(parameters) for each in self.divergences[:: self.above.shape[1]]], axis=1)
        with np.errstate(over="ignore"):
            away = (self.above - limits[..., None]) / np.where(self.error > 0.0, self.error, 1.0)
        away = np.where(self.error > 0.0, away, -np.inf).reshape(len(parameters), -1)
        best = away.argmax(axis=1)
        return best, away[np.arange(len(best)), best]


def telling_divergence(
    p: Array, q: Array, claim: Claim, runs_x: float, runs_y: float, known: float = math.inf
) -> tuple[Divergence, float]:
    """Return the divergence that lies farthest above the claim's limit, and its standard errors; see `Divergences`."""
    found = Divergences.of(p, q, claim, runs_x, runs_y, known)
    (best,), (away,) = found.telling(np.array([claim.parameter]))
    return found.divergences[best], float(away)


def _log_ratio(p: Array, q: Array, groups: int) -> Array:
    """Return the logarithm of p/q of each group at its middle bin, and between and beyond them on straight lines."""
    group = np.arange(len(p)) * min(groups, len(p)) // len(p)
    at, size = np.arange(len(p)), np.bincount(group)
    middle, found = np.bincount(group, at) / size, np.log(np.bincount(group, p) / np.bincount(group, q))
    if len(found) in (1, len(p)):
        return np.asarray(found[group])
    left = np.clip(np.searchsorted(middle, at) - 1, 0, len(middle) - 2)
    slope = np.diff(found) / np.diff(middle)
    return np.asarray(found[left] + slope[left] * (at - middle[left]))


def _cosh_sum(log_t: Array, order: float) -> Array:
    """Return cosh((a − 1) log t) + cosh(a log t)."""
    exponents = np.minimum(order * np.abs(log_t), _LARGEST_EXPONENT)
    return np.asarray(np.cosh((order - 1.0) / order * exponents) + np.cosh(exponents))


def _soft_clip(log_ratio: Array, order: float, multiplier: Array) -> Array:
    """Return the l with l + μ(a sinh((a − 1) l)/(a − 1) + sinh(a l)) equal to this: the odd part of l + μ(f + g).

    Newton's method starts above the solution, as each term is at most the sum.
    """
    size, above = np.abs(log_ratio), order - 1.0
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        found = np.minimum(size, np.where(multiplier > 0.0, np.arcsinh(size / multiplier), _LARGEST_EXPONENT) / order)
    for _ in range(_NEWTON_STEPS):
        first = order * np.sinh(above * found) / above if above > 0.0 else found
        too_large = found + multiplier * (first + np.sinh(order * found)) - size
        step = too_large / (1.0 + multiplier * order * _cosh_sum(found, order))
        found = np.where(multiplier > 0.0, np.maximum(found - step, 0.0), found)
    return np.asarray(np.copysign(found, log_ratio))


def _tangents(log_t: Array, order: float) -> tuple[Array, Array]:
    """Return the payoffs on x and on y of the tangents at this t in each way, shape (ways, …, bins)."""

    def tangent(log_t: Array) -> tuple[Array, Array]:
        above, exponents = order - 1.0, np.minimum(order * log_t, _LARGEST_EXPONENT)
        first = order * np.expm1(above / order * exponents) / above if above > 0.0 else log_t
        return first, np.expm1(exponents)

    (on_x, on_y), (back_y, back_x) = tangent(log_t), tangent(-log_t)
    return (
        np.stack([on_x, -back_x, 0.5 * (on_x - back_x)]),
        np.stack([on_y, -back_y, 0.5 * (on_y - back_y)]),
    )


def _tangent_slopes(log_t: Array, order: float) -> Array:
    """Return the derivative of the sum of the payoffs by log t in each way, shape (ways, …, bins)."""
    exponents = np.clip(order * log_t, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    there, back = (order * (np.exp((order - 1.0) / order * each) + np.exp(each)) for each in (exponents, -exponents))
    return np.stack([there, back, 0.5 * (there + back)])


def divergence_test(
    pilot_x: Labels,
    pilot_y: Labels,
    count_x: Labels,
    count_y: Labels,
    claim: Claim,
    *,
    alpha: float,
    coins: np.random.Generator,
) -> DivergenceTest:
    """Test a claim that limits Rényi divergences on counts in bins.

    A claim that holds has a p-value of at most a with probability at most a, for every a, and a bound above its true
    privacy parameter with probability at most `alpha`. Bins, shape (bins,), and payoffs may be learned from the pilot,
    and not from the counts; the coins decide the random order.
    """
    bets = list(_bets(pilot_x, pilot_y, list(_batches(count_x, count_y, coins)), claim))
    unit = max(claim.parameter, 0.1)
    least = claim.parameter + MILLIONTH * unit
    levels = np.union1d(np.geomspace(GAMMA, 0.5, _LEVELS), alpha)[::-1]
    first = _first_not_refuted(_refuted(bets, np.full(len(levels), least), levels, len(levels)))
    pvalue = float(levels[first - 1]) if first else 1.0
    bound = 0.0
    for parameters, alike in _parameters(claim.parameter, least, unit):
        first = _first_not_refuted(_refuted(bets, parameters, np.full(len(parameters), alpha), alike))
        bound = float(parameters[first - 1]) if first else bound
        if first < len(parameters) or pvalue > alpha:
            break
    if pvalue > alpha or bound <= claim.parameter:  # one decision: the claim is refuted by both or by neither
        bound, pvalue = min(bound, claim.parameter), max(pvalue, float(levels[levels > alpha].min(initial=1.0)))
    p, q = smoothed(pilot_x + count_x), smoothed(pilot_y + count_y)
    runs = int(count_x.sum()), int(count_y.sum())
    best, _ = telling_divergence(p, q, claim.with_parameter(bound), *runs, min(runs))
    mean_x, _, mean_y, _ = best.payoffs(p, q).moments(count_x / count_x.sum(), count_y / count_y.sum())
    return DivergenceTest(
        order=best.order,
        way=best.way,
        bins=len(p),
        alpha=alpha,
        pvalue=pvalue,
        bound=bound,
        estimate=best.parameter(mean_x - mean_y),
    )


def _parameters(parameter: float, least: float, unit: float) -> Iterator[tuple[Array, int]]:
    """Yield privacy parameters in rising order, and how many neighbours have the same choices.

    Below the claim each has its own, because neighbours are not alike there: the first is a fiftieth of the claim.
    """
    yield np.append(parameter * np.linspace(0.0, 1.0, _BELOW + 2)[1:-1], least), 1
    above = parameter + unit * np.geomspace(1e-3, 1e3, _ABOVE)
    for start in range(0, _ABOVE, _AT_ONCE):
        yield above[start : start + _AT_ONCE], _ALIKE


def _batches(count_x: Labels, count_y: Labels, coins: np.random.Generator) -> Iterator[tuple[Labels, Labels]]:
    """Yield the counts of consecutive batches of the runs in random order, which become smaller towards the end."""
    runs = int(count_x.sum()), int(count_y.sum())
    number = 1 if max(runs) >= _MOST_SHUFFLED else min(_BATCHES, *(each // 2 for each in runs))
    # The shares change fastest close to the last run, like the hedge of a digital option near its expiry.
    cuts = 1.0 - (1.0 - np.arange(1, number + 1) / number) ** 2
    left, drawn = [count_x.astype(np.int64), count_y.astype(np.int64)], [0, 0]
    for cut in cuts.tolist():
        batch = []
        for side in (0, 1):
            until = round(cut * runs[side])
            size = until - drawn[side]
            taken = left[side]
            if cut < 1.0:
                taken = coins.multivariate_hypergeometric(left[side], size, method="marginals")
            left[side], drawn[side] = left[side] - taken, until
            batch.append(taken)
        if all(each.sum() > 0 for each in batch):
            yield batch[0], batch[1]


def _first_not_refuted(is_refuted: npt.NDArray[np.bool_]) -> int:
    return len(is_refuted) if is_refuted.all() else int(np.argmin(is_refuted))


@dataclass(frozen=True, slots=True)
class _Bet:
    """A batch: its runs in each bin, and what was known before, from which the bets are chosen."""

    divergences: Divergences
    p: Array
    q: Array
    left_x: float  # runs in this batch and all later ones
    left_y: float
    x: Labels
    y: Labels


def _bets(pilot_x: Labels, pilot_y: Labels, batches: list[tuple[Labels, Labels]], claim: Claim) -> Iterator[_Bet]:
    """Yield what is known before each batch, from the pilot and the batches before."""
    before_x, before_y = pilot_x.astype(np.float64), pilot_y.astype(np.float64)
    left_x, left_y = (float(sum(batch[side].sum() for batch in batches)) for side in (0, 1))
    divergences, chosen_on = None, 0.0
    for x, y in batches:
        known = float(min(before_x.sum(), before_y.sum()))
        p, q = smoothed(before_x), smoothed(before_y)
        if divergences is None or known >= _GROWTH * chosen_on:
            divergences, chosen_on = Divergences.of(p, q, claim, left_x, left_y, known), known
        yield _Bet(divergences, p, q, left_x, left_y, x, y)
        before_x, before_y, left_x, left_y = before_x + x, before_y + y, left_x - x.sum(), left_y - y.sum()


def _refuted(bets: list[_Bet], parameters: Array, levels: Array, alike: int) -> npt.NDArray[np.bool_]:
    """Return whether the bets at each level refute the claim of each privacy parameter; both have the shape (tests,).

    So many neighbours have the choices made for the first of them.
    """
    log_wealth, is_refuted = np.zeros(len(parameters)), np.zeros(len(parameters), np.bool_)
    divergences, chosen = None, np.zeros(0, np.int64)
    for bet in bets:
        if bet.divergences is not divergences:
            divergences, chosen = bet.divergences, bet.divergences.telling(parameters[::alike])[0].repeat(alike)
        left = np.flatnonzero(~is_refuted)
        for index in np.unique(chosen[left]).tolist():
            at = left[chosen[left] == index]
            divergence = divergences.divergences[index]
            payoffs, aim = divergence.payoffs(bet.p, bet.q), SPARED * levels[at] * np.exp(log_wealth[at])
            mean_x, variance_x, mean_y, variance_y = payoffs.moments(bet.p, bet.q)
            deviation = math.sqrt(bet.left_x * variance_x + bet.left_x**2 / bet.left_y * variance_y)
            aim = scipy.special.ndtri(np.minimum(aim, 1.0 - 1e-9))
            with np.errstate(invalid="ignore", over="ignore"):
                log_density = -0.5 * aim**2 - 0.5 * math.log(2.0 * math.pi)
                share = np.exp(log_density - scipy.special.log_ndtr(aim)) / max(deviation, 1e-300)
            log_wealth[at] += log_gain(payoffs, divergence.limit(parameters[at]), share, mean_x, mean_y, bet.x, bet.y)
        is_refuted |= log_wealth >= -np.log(levels)
    return is_refuted


def log_gain(
    payoffs: Payoffs,
    limit: Array,
    bet: Array,
    mean_x: float,
    mean_y: float,
    x: Labels,
    y: Labels,
) -> Array:
    """Return the logarithm of what a batch of runs in each bin multiplies the wealth by.

    The bets, of the shape of the limits in their first axis, are made smaller where a single run could lose too
    much. The means are those expected before the batch; they cost or gain nothing to the second order.
    """
    shape = (-1, *([1] * (bet.ndim - 1)))
    limit = np.minimum(limit, 1e300)
    at_x = mean_x - 0.5 * (mean_x - mean_y - limit)  # A, and B = A − C
    at_y = at_x - limit
    share = float(x.sum() / y.sum())  # of the bet, for each run on y
    worst = np.maximum(at_x - payoffs.on_x.min(), (payoffs.on_y.max() - at_y) * share)
    is_bet = (limit < 1e300) & (worst > 0.0)
    most = np.where(is_bet, _LARGEST_BET / np.where(is_bet, worst, 1.0), 0.0)
    bet = np.minimum(bet, most.reshape(shape))
    gain_x = payoffs.on_x - np.where(is_bet, at_x, 0.0)[:, None]
    gain_y = payoffs.on_y - np.where(is_bet, at_y, 0.0)[:, None]
    seen = np.flatnonzero(x + y)
    total = np.log1p(bet[..., None] * gain_x.reshape(*shape, len(x))[..., seen]) @ x[seen]
    total += np.log1p(-share * bet[..., None] * gain_y.reshape(*shape, len(y))[..., seen]) @ y[seen]
    return np.asarray(total, np.float64)
