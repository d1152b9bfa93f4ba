"""A smooth log-likelihood ratio for numbers: a sum of ramps fitted by maximum likelihood, their number chosen by BIC.

Thresholds chosen on raw counts follow the noise of the counts; those on a fitted curve do not. The log-likelihood ratio
of nearly every mechanism on the line is piecewise linear: one ramp between two plateaus for Laplace noise, a straight
line for Gaussian noise, steps for staircase noise. Each piece is a ramp clip(v, a, b) with a slope, constant to the
left of a and to the right of b, so plateaus are exact.

Given the pooled outputs, the dataset of an output follows a logistic model in the log-likelihood ratio, so the fit is a
logistic regression. Knots are placed by the score statistic and moved while the Bayesian information criterion falls.
The fit only proposes events: its errors do not affect the error probability.

References
----------
Qin (1998), Inferences for case-control and semiparametric two-sample density ratio models, Section 2 (the density
ratio by logistic regression). Schwarz (1978), Estimating the dimension of a model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

Array = npt.NDArray[np.float64]
Ramp = tuple[int, int]
"""Indices of the two knots among the cells."""

# Bounds the time: cells whose ratio has 24 steps get 28 ramps in 1.2 s, or 5 in .1 s. Noise and mixtures of noise have
# the same bounds with 3, 5 and 10.
_MOST_RAMPS = 5
_MOVES = 4  # rounds in which every ramp may move; 94% of the fits in tests stop before
_STEPS = (16, 4, 1)  # cells by which a knot moves
_NEWTON_STEPS, _A_FEW = 30, 6  # most Newton steps of a fit (99% of them stop before), and of one that is only compared
_LEAST_STEP, _LAST_STEP = 1e-4, 1e-3  # in log ratios: of steps that are not taken, and of a full one that is the last
# By which a first ramp may miss its price and still be moved, as it already has the best place:
# docs/decisions/0025-limits.md.
_SHORT_OF = 2.0


def expected_log_ratio(at: Array, count_x: Array, count_y: Array, *, sloped: bool = False) -> Array:
    """The log ratio of the fitted ramps, expected over where their knots may lie.

    How many ramps there are, and which have no knot because they go on to an end, the fit says. For each ramp in turn
    all places of its knots are weighed by the likelihood with the best heights for them, a knot being as likely in one
    pooled output as in another. The likelihood is quadratic about the fit: one step of least squares. Near a knot the
    mean falls below the plateau by as much as the counts cannot say, so the event with the largest expected bound keeps
    a distance from the knot that nobody has to choose.
    All arrays have the shape (cells,), with increasing numbers and outputs in each cell. The first ramp needs no
    evidence if a slope is known to exist. Models are weighed by exp(-BIC/2): Raftery (1995), Bayesian model selection
    in social research, Section 4.
    """
    fit, data = _fit(at, count_x, count_y, sloped)
    share, last = scipy.special.expit(fit.log_ratio), len(at) - 1
    # Where almost no output is from one of the datasets, the likelihood is far from quadratic; half an output more on
    # each keeps its curvature.
    smoothed = (data.counts * share + 0.5) / (data.counts + 1.0)
    precision = data.counts * smoothed * (1.0 - smoothed)
    response = fit.log_ratio + (data.count_x - data.counts * share) / precision
    place, mass = np.arange(last + 1), np.log(data.counts)
    expected = fit.log_ratio.copy()
    for number, (low, high) in enumerate(fit.ramps):
        rest = fit.ramps[:number] + fit.ramps[number + 1 :]
        spread, others, cross = _spreads(data, data.columns([rest])[0], precision)
        able = np.isfinite(data.prices) & np.isfinite(spread)
        able &= np.outer((place > 0) == (low > 0), (place < last) == (high < last))
        if not able.any():  # another ramp says the same, so this one stays where it is
            continue
        explained = (others @ (precision * response)) @ others
        score = data.hinges @ (precision * (response - explained))
        score = np.subtract.outer(score, score, out=data.room[0])
        rise = np.divide(score, spread, out=data.room[1])
        weight = rise * score / 2 + mass[:, None] * (low > 0) + mass * (high < last)
        weight = np.where(able, weight, -np.inf)
        weight = np.exp(weight - weight.max())
        weight *= rise / weight.sum()
        rises = weight.sum(axis=1) - weight.sum(axis=0)
        moved = explained + rises @ data.hinges - (rises @ cross) @ others
        # Where cells separate the datasets, the likelihood is not quadratic, and its step leads beyond all plateaus.
        if max(fit.log_ratio.min() - moved.min(), moved.max() - fit.log_ratio.max()) < 1.0:
            expected += moved - fit.log_ratio
    return expected


def _fit(at: Array, count_x: Array, count_y: Array, sloped: bool = False) -> tuple[_Fit, _Data]:
    at = at / (float(np.abs(at).max()) or 1.0)
    middle = float(at[(len(at) - 1) // 2] + at[len(at) // 2]) / 2  # the median, because they increase
    spread = float(np.abs(at - middle).mean()) or 1.0
    data = _Data.of((at - middle) / spread, count_x, count_y)
    fit = _fitted(data, (), np.zeros(1))
    if sloped:
        fit = _fitted(data, ((0, len(at) - 1),), np.zeros(2))
    while len(fit.ramps) < _MOST_RAMPS:
        ramp = _best_ramp(data, fit)
        if ramp is None:
            break
        more = _fitted(data, (*fit.ramps, ramp), np.append(fit.weights, 0.0))
        if not fit.ramps and more.criterion > fit.criterion + _SHORT_OF:
            break
        more = _moved(data, more, fit.ramps)
        if more.criterion >= fit.criterion:
            break
        fit = more
    return fit, data


@dataclass(frozen=True, slots=True)
class _Data:
    hinges: Array  # (v − v_j)₊ for knot and cell, shape (cells, cells)
    count_x: Array
    counts: Array
    price: float  # of a parameter, in units of twice the log-likelihood
    prices: Array  # of the knots of a ramp, for each pair of knots; infinite for pairs that form no ramp
    room: Array  # for four matrices, because allocating them takes longer than filling them

    @classmethod
    def of(cls, at: Array, count_x: Array, count_y: Array) -> _Data:
        # One more output on each dataset, spread like all outputs, keeps the ratio finite in cells without counts.
        counts, n_cells = count_x + count_y, len(at)
        total = float(counts.sum())
        price, place = math.log(max(total, 2.0)), np.arange(n_cells)
        prices = price * np.add.outer((place > 0).astype(np.float64), place < n_cells - 1)
        prices[np.tri(n_cells, dtype=np.bool_)] = math.inf
        return cls(
            hinges=np.maximum(at - at[:, None], 0.0),
            count_x=count_x + counts / total,
            counts=counts * (1 + 2 / total),
            price=price,
            prices=prices,
            room=np.empty((4, n_cells, n_cells)),
        )

    def columns(self, proposed: list[tuple[Ramp, ...]]) -> Array:
        """A constant and the ramps of each proposal, shape (proposals, 1 + ramps, cells)."""
        columns = np.ones((len(proposed), 1 + len(proposed[0]), len(self.counts)))
        for number, ramps in enumerate(zip(*proposed, strict=True), start=1):
            first, second = np.array(ramps).T
            np.subtract(self.hinges[first], self.hinges[second], out=columns[:, number])
        return columns

    def width(self, ramp: Ramp) -> float:
        """Distance between the knots of a ramp."""
        return float(self.hinges[ramp[0], -1] - self.hinges[ramp[1], -1])

    def likelihood(self, log_ratio: Array) -> Array:
        """Log-likelihood of log ratios of shape (..., cells), up to a constant."""
        return log_ratio @ self.count_x - _softplus(log_ratio) @ self.counts

    def cost(self, ramps: tuple[Ramp, ...]) -> float:
        """Price of the parameters: a slope for each ramp, and each knot that is not at an end."""
        last = len(self.counts) - 1
        return self.price * sum(1 + (a > 0) + (b < last) for a, b in ramps)


def _softplus(values: Array) -> Array:
    """ln(1 + e^value), in a quarter of the time of numpy's `logaddexp`."""
    return np.asarray(np.maximum(values, 0.0) + np.log1p(np.exp(-np.abs(values))))


@dataclass(frozen=True, slots=True)
class _Fit:
    ramps: tuple[Ramp, ...]
    weights: Array  # of the constant and of each ramp
    log_ratio: Array  # shape (cells,)
    criterion: float  # −2 log-likelihood plus the price of the parameters


def _fitted(data: _Data, ramps: tuple[Ramp, ...], weights: Array) -> _Fit:
    return _fitted_each(data, [ramps], weights[None])[0]


def _fitted_each(
    data: _Data, proposed: list[tuple[Ramp, ...]], weights: Array, steps: int = _NEWTON_STEPS
) -> list[_Fit]:
    """Maximum-likelihood weights for several proposals by Newton's method, with shorter steps if a full one overshoots.

    The starting weights have shape (proposals, 1 + ramps).
    """
    columns = data.columns(proposed)
    weights = weights.copy()
    log_ratio = (weights[:, None] @ columns)[:, 0]
    likelihood = data.likelihood(log_ratio)
    going = np.arange(len(proposed))
    for _ in range(steps):
        own, before = (each if len(going) == len(each) else each[going] for each in (columns, log_ratio))
        share = scipy.special.expit(before)
        expected, turned = data.counts * share, own.transpose(0, 2, 1)
        information = ((expected * (1 - share))[:, None] * own) @ turned
        scale = np.einsum("pii->pi", information)  # a view
        # Otherwise every output is already certain, and nothing is left to learn.
        useful = scale.min(axis=1) > 0.0
        scale += np.where(useful[:, None], 1e-9 * scale, 1.0)
        step = np.linalg.solve(information, own @ (data.count_x - expected)[..., None])[..., 0]
        if not np.isfinite(step).all():  # columns are nearly collinear
            is_finite = np.isfinite(step).all(axis=1)
            step[~is_finite] = 0.0
            useful &= is_finite
        change = (step[:, None] @ own)[:, 0]
        size = np.abs(change).max(axis=1)
        useful &= size > _LEAST_STEP
        if not useful.any():
            break
        shrink = np.minimum(1.0, 2.0 / np.maximum(size, 1e-12))
        size = size * shrink
        while True:
            moved = before + shrink[:, None] * change
            reached = data.likelihood(moved)
            too_far = (reached < likelihood[going]) & (size > _LEAST_STEP) & useful
            if not too_far.any():
                break
            shrink, size = np.where(too_far, 0.25, 1.0) * shrink, np.where(too_far, 0.25, 1.0) * size
        useful &= size > _LEAST_STEP
        place = going[useful]
        weights[place] += shrink[useful, None] * step[useful]
        log_ratio[place], likelihood[place] = moved[useful], reached[useful]
        going = going[useful & ((size > _LAST_STEP) | (shrink < 1.0))]
        if len(going) == 0:
            break
    return [
        _Fit(ramps, own, values, data.cost(ramps) - 2.0 * float(reached))
        for ramps, own, values, reached in zip(proposed, weights, log_ratio, likelihood, strict=True)
    ]


def _best_ramp(data: _Data, fit: _Fit) -> Ramp | None:
    """The ramp with the largest score statistic minus its price; None if there are fewer than two cells."""
    n_cells = len(data.counts)
    if n_cells < 2:
        return None
    columns, share = data.columns([fit.ramps])[0], scipy.special.expit(fit.log_ratio)
    weights = data.counts * share * (1 - share)
    score = data.hinges @ (data.count_x - data.counts * share)
    spread, _, _ = _spreads(data, columns, weights)
    statistic = np.square(np.subtract.outer(score, score, out=data.room[0]), out=data.room[0])
    statistic /= spread
    statistic -= data.prices
    a, b = np.unravel_index(int(np.argmax(statistic)), statistic.shape)
    return int(a), int(b)


def _spreads(data: _Data, columns: Array, weights: Array) -> tuple[Array, Array, Array]:
    """The weighted squared norm of every ramp beside some columns, infinite where these say nearly the same.

    Also an orthonormal base of the columns, shape (base, cells), and the products of the hinges with it. The norms lie
    in the third of the matrices of `room`, so the next call overwrites them.
    """
    one, raw, spread, least = data.room
    _products(data.hinges[0], weights, raw)
    weighted = weights * columns
    sizes, axes = np.linalg.eigh(weighted @ columns.T)
    is_real = sizes > 1e-12 * sizes[-1]
    base = axes[:, is_real] / np.sqrt(sizes[is_real])
    cross = data.hinges @ (weighted.T @ base)
    left = np.subtract(raw, np.matmul(cross, cross.T, out=one), out=one)
    lowest = 1e-12 * float(np.diag(raw).max())
    _size_differences(left, spread)
    _size_differences(raw, least)
    least *= 1e-5
    np.copyto(spread, np.inf, where=~(spread > np.maximum(least, lowest, out=least)))
    return spread, base.T @ columns, cross


def _products(at: Array, weights: Array, products: Array) -> None:
    """Writes the weighted inner product of the hinges of two knots a <= b into `products`; others stay undefined.

    Beyond b the hinge of a is that of b plus the distance of the knots, so the product is the squared norm of the hinge
    of b plus the distance times its sum. Both come from sums from the right, without a difference of large terms.
    """
    gaps, beyond = np.append(np.diff(at), 0.0), np.append(np.cumsum(weights[:0:-1])[::-1], 0.0)  # and weight, of a knot
    total = np.cumsum((gaps * beyond)[::-1])[::-1]  # of its hinge
    norm = np.cumsum((gaps * (2.0 * np.append(total[1:], 0.0) + gaps * beyond))[::-1])[::-1]
    np.subtract(at, at[:, None], out=products)
    products *= total
    products += norm


def _size_differences(products: Array, sizes: Array) -> None:
    """Writes the squared norm of every ramp, a difference of two hinges, into `sizes`; doubles `products`."""
    own = np.diag(products).copy()
    np.add.outer(own, own, out=sizes)
    products *= 2.0
    sizes -= products


def _moved(data: _Data, placed: _Fit, others: tuple[Ramp, ...]) -> _Fit:
    """The fit after moving one ramp at a time as long as that improves it; the last was placed on the `others`."""
    fit = placed
    at_rest: dict[int, _Fit] = {}  # the fit that moving this ramp did not improve
    for number in range(_MOVES):
        before = fit.criterion
        for index in range(len(fit.ramps)):
            if at_rest.get(index) is fit:
                continue
            rest = fit.ramps[:index] + fit.ramps[index + 1 :]
            moved = _moved_one(data, fit, index, anywhere=number == 0 and rest != others)
            if moved is fit:
                at_rest[index] = fit
            fit = moved
        if fit.criterion > before - 1e-3:
            break
    return fit if fit is placed else _fitted(data, fit.ramps, fit.weights)


def _moved_one(data: _Data, fit: _Fit, index: int, *, anywhere: bool) -> _Fit:
    """The fit with one ramp moved nearby, or to where a new ramp would be placed."""
    ramp, last = fit.ramps[index], len(data.counts) - 1
    places: set[Ramp] = set()
    if anywhere:
        rest = fit.ramps[:index] + fit.ramps[index + 1 :]
        elsewhere = _best_ramp(data, _fitted(data, rest, np.delete(fit.weights, index + 1)))
        places = {elsewhere} if elsewhere is not None else set()
    for step in _STEPS:
        places |= {(max(ramp[0] - step, 0), ramp[1]), (ramp[0] + step, ramp[1])}
        places |= {(ramp[0], ramp[1] - step), (ramp[0], min(ramp[1] + step, last))}
    able = [place for place in sorted(places - {ramp}) if place[0] < place[1] and data.width(place) > 0.0]
    if not able:
        return fit
    weights = np.tile(fit.weights, (len(able), 1))
    weights[:, index + 1] *= [data.width(ramp) / data.width(place) for place in able]  # the same rise as before
    moved = _fitted_each(
        data, [(*fit.ramps[:index], place, *fit.ramps[index + 1 :]) for place in able], weights, _A_FEW
    )
    return min(fit, *moved, key=lambda other: other.criterion)


# Log ratios of cells that have no order, such as outcomes, each shrunk towards 0.
#
# The raw log ratio of an outcome with ten counts has a standard error of 0.6, so an order by raw ratios puts rare
# outcomes first and last, regardless of the truth. Here outcome i with n_i counts, a_i of them on x, has
#
#     a_i ~ Bin(n_i, σ(u_i)),  u_i ~ Σ_k π_k N(0, τ_k²),
#
# where σ is the logistic function and the τ_k are a fixed grid from 0 to 5. The shares π_k are estimated from all
# outcomes by maximum likelihood (EM), so u_i is shrunk much where most outcomes have equal frequencies and little where
# they have not. A single outcome that is far off keeps its ratio, because the prior has a heavy tail. The estimate is
# Σ_k Pr[k | a_i] û_ik, where û_ik solves a_i − n_i σ(û) = û / τ_k²; for outcomes with a ratio near 1 it is about
# w_i τ_k² / (1 + w_i τ_k²) L_i, with the raw log ratio L_i and the weight w_i = n_i/4. The likelihood of each k is a
# Laplace approximation.
#
# References
# ----------
# Stephens (2017), False discovery rates: a new deal, Section 2 (a scale mixture of normals, its shares by EM).
# Breslow & Clayton (1993), Approximate inference in generalized linear mixed models, Section 2 (the approximation for
# counts). Efron & Morris (1973), Stein's estimation rule and its competitors.

_DEVIATIONS = tuple(0.01 * 2.0**power for power in range(10))  # τ_k beside 0
_ROUNDS = 60  # of EM: nine in ten stop before; a thousand outcomes have the same bound with 30 and with 120


def shrunken_log_ratios(count_x: Array, count_y: Array, times: npt.NDArray[np.int64] | int = 1) -> Array:
    """Log-likelihood ratio of each outcome, shrunk towards 0, from counts in equally many runs on each dataset.

    Several outcomes with the same counts may be given once, with how many `times` they come.
    """
    counts = count_x + count_y
    modes = np.zeros((1 + len(_DEVIATIONS), len(counts)))
    evidence = np.zeros_like(modes)  # log marginal likelihood, less that of τ = 0
    for k, deviation in enumerate(_DEVIATIONS, start=1):
        precision = deviation**-2
        own = modes[k - 1].copy()
        for _ in range(_NEWTON_STEPS):
            share = scipy.special.expit(own)
            step = (count_x - counts * share - own * precision) / (counts * share * (1.0 - share) + precision)
            own += np.clip(step, -1.5, 1.5)
            if float(np.abs(step).max(initial=0.0)) < 1e-4:
                break
        share = scipy.special.expit(own)
        likelihood = own * count_x - (_softplus(own) - math.log(2.0)) * counts
        sharpness = np.log1p(counts * share * (1.0 - share) / precision)
        modes[k], evidence[k] = own, likelihood - 0.5 * (own**2 * precision + sharpness)
    return np.asarray((_posterior(evidence, times) * modes).sum(axis=0))


def _posterior(evidence: Array, times: npt.NDArray[np.int64] | int) -> Array:
    """Probability of each deviation for outcomes that come so many times, with shares estimated from all of them."""
    likelihood = np.exp(evidence - evidence.max(axis=0))
    shares = np.full(len(evidence), 1.0 / len(evidence))
    for _ in range(_ROUNDS):
        weights = times / (shares @ likelihood)
        before, shares = shares, shares * (likelihood @ weights)
        shares = (shares + 1.0 / len(shares)) / (shares.sum() + 1.0)  # as if one more outcome were spread evenly
        if float(np.abs(shares - before).max()) < 1e-3:
            break
    return np.asarray(shares[:, None] * likelihood / (shares @ likelihood))
