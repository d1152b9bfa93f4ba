"""A lower confidence bound on the Rényi divergence of the outputs on x from those on y.

1. *Limits.* Of nested events S_j with probabilities p_j on x and q_j on y, C − 1 lower limits for p_j and as many upper
   ones for q_j hold together (exact, Bonferroni over 2(C − 1)). The other ends are not needed: they could only say
   that the laws are close.
2. *Hull.* Then the largest power of a test of x against y is at least the concave hull of these points at every
   false-positive rate (see `bands`).
3. *Divergence.* The segments of the hull, with rises P'_i and lengths Q'_i, are two laws whose best tests have the hull
   as their power. By Blackwell's theorem they are a randomised function of the outputs, since no test on them has more
   power; a divergence does not grow under such a function. So D(P' ‖ Q') bounds D(P ‖ Q) from below, for every order
   at once, and no smaller number would do: P', Q' themselves satisfy all limits.

Limits for single cells also make a bound, the least divergence in a box, but there each cell may err its own way: at
10⁶ runs, 32 cells and order 2 of the Gaussian below it was .87 of the truth, this one .95.

Proof: docs/proofs/bands.md
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from ..errors import OptionError
from .binomial_tails import Array, limits
from .confidence_bands import checked_cells, concave_hull
from .counts import check_alpha


def renyi_lower(cells_x: npt.ArrayLike, cells_y: npt.ArrayLike, order: npt.ArrayLike, *, alpha: float) -> Array:
    """Lower confidence bounds on the Rényi divergences D_a(P ‖ Q) of the outputs on x from those on y.

    With probability 1 − alpha or more, for all orders at once, no returned value exceeds the divergence of that order.

    Parameters
    ----------
    cells_x, cells_y : array_like, shape (C,)
        Runs whose output fell in each cell, of all runs on x and on y; C ≥ 2. The cells and their order are chosen
        without looking at these counts; by decreasing likelihood ratio of x to y is best, any order is valid. Take 32
        cells evenly spaced in the log-likelihood ratio, as far out as a few runs reach (see Notes).
    order : array_like, any shape
        Orders a > 0; 1 is the Kullback-Leibler divergence, infinity the logarithm of the largest ratio.
    alpha : float
        In (0, 1).

    Returns
    -------
    ndarray, of the shape of `order`
        In nats, at least 0, nondecreasing in the order.

    Raises
    ------
    OptionError
        For counts that are no partition, an order that is not positive, or an alpha outside its range.

    Notes
    -----
    Bound over truth, median of 60, alpha = .05: Gaussian, sensitivity 1, σ = 2, so D_a = a/8; edges of the cells
    evenly spaced from 3.2 σ below the lower mean to 3.2 σ above the upper.

    ====  =====  =====  =====  =====  =====  =====
    ..    order 2              order 8
    ----  -------------------  -------------------
    runs  16     32     64     16     32     64
    ====  =====  =====  =====  =====  =====  =====
    10⁵   .860   .861   .858   .668   .655   .661
    10⁶   .936   .949   .950   .789   .790   .795
    10⁷   .966   .980   .983   .867   .875   .873
    ====  =====  =====  =====  =====  =====  =====

    The cells alone keep .980, .995, .999 of the truth at order 2 and .93 at order 8, which lives beyond them. Cells of
    equal probability do as well at order 2 and worse at order 8 (32 cells: .64, .71, .74). On two outputs, randomised
    response at odds 3 to 1, order 2: .939 at 10⁴ runs, .981 at 10⁵, .998 at 10⁷.

    References
    ----------
    van Erven & Harremoës (2014), Rényi divergence and Kullback-Leibler divergence, Theorem 9 (data processing).
    Blackwell (1953), Equivalent comparisons of experiments; as Theorem 2.10 of Dong, Roth & Su (2022), Gaussian
    differential privacy.

    Examples
    --------
    Randomised response with odds 3 to 1 has D_2 = ln(.75²/.25 + .25²/.75) = .847:

    >>> float(renyi_lower([75_000, 25_000], [25_000, 75_000], 2, alpha=0.05).round(3))
    0.831
    """
    rise, length = _least_laws(cells_x, cells_y, alpha)
    orders = np.asarray(order, dtype=np.float64)
    if not (orders > 0.0).all():  # NaN fails
        raise OptionError(f"order={order!r} names no Rényi divergence; use orders above 0.", order=order)
    found = np.array([_renyi(rise, length, float(a)) for a in orders.ravel()])
    return np.asarray(np.maximum(found, 0.0).reshape(orders.shape))


def moment_lower(cells_x: npt.ArrayLike, cells_y: npt.ArrayLike, order: npt.ArrayLike, *, alpha: float) -> Array:
    """Lower confidence bounds on the moments E_Q[(dP/dQ)^a] = exp((a − 1) D_a), for orders above 1; see `renyi_lower`.

    Examples
    --------
    >>> float(moment_lower([75_000, 25_000], [25_000, 75_000], 2, alpha=0.05).round(2))  # the truth is 2.33
    2.3
    """
    orders = np.asarray(order, dtype=np.float64)
    if not ((orders > 1.0) & np.isfinite(orders)).all():
        raise OptionError(f"order={order!r} has no moment to bound from below; use finite orders above 1.", order=order)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp((orders - 1.0) * renyi_lower(cells_x, cells_y, orders, alpha=alpha)))


def _least_laws(cells_x: npt.ArrayLike, cells_y: npt.ArrayLike, alpha: float) -> tuple[Array, Array]:
    """The closest pair of laws that the limits allow: probabilities on x and on y, by decreasing ratio."""
    cells_x, cells_y = checked_cells(cells_x, cells_y)
    each = check_alpha(alpha) / (2 * (len(cells_x) - 1))
    x, y = np.cumsum(cells_x), np.cumsum(cells_y)
    q, p = concave_hull(limits(y[:-1], y[-1], alpha=each)[1], limits(x[:-1], x[-1], alpha=each)[0])
    rise, length = np.diff(p), np.diff(q)
    return rise[rise > 0], length[rise > 0]  # the rest adds nothing to any order


def _renyi(p: Array, q: Array, order: float) -> float:
    log_ratio = np.log(p) - np.log(q)
    if np.isinf(order):
        return float(log_ratio.max())
    exponents = (order - 1.0) * log_ratio
    if order == 1.0:
        return float(p @ log_ratio)
    if np.abs(exponents).max() < 0.1:  # no cancellation near order 1
        return float(np.log1p(p @ np.expm1(exponents)) / (order - 1.0))
    return float(logsumexp(exponents, b=p) / (order - 1.0))
