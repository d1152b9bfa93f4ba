"""Simultaneous limits for nested events, and confidence bands for the privacy profile and the trade-off curve.

C bins in an order fixed before the counts (such as decreasing score) define C − 1 nested events: S_j is the union of
the first j bins, with probability p_j on x and q_j on y. The counts in S_j are binomial, so each of the 4(C − 1)
limits is exact at level alpha/(4(C − 1)), and all hold together with probability 1 − alpha (Bonferroni). If they all
hold:

- *Profile.* δ(ε) = sup over events of Pr_x[S] − e^ε Pr_y[S] is at least its value at any S_j, so the lower limit holds
  for the supremum over all events. The upper limit holds only for the S_j, the empty event and the whole output space.
- *Trade-off.* Let B(q) be the largest power of a test of false-positive rate q. Mixing two tests by a coin mixes their
  rates and powers, so B is concave; it is nondecreasing, B(0) ≥ 0 and B(1) = 1. S_j as a test shows B(q_j) ≥ p_j, so B
  is at least the lower limit of p_j at the upper limit of q_j, and at least the concave hull of these points, (0, 0)
  and (1, 1). The hull of the upper limits of p_j at the lower limits of q_j is concave, nondecreasing and at least p_j
  at q_j, so it bounds every mixture of the S_j from above; it does not bound other tests.

Proof: docs/proofs/bands.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import OptionError
from .binomial_tails import Array, limits
from .event_test import check_alpha


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Band:
    """Simultaneous limits for the probabilities of all nested events on x and on y."""

    # For the union of the first j bins, j = 1, …, C − 1; nondecreasing, shape (C − 1,).
    lower_x: Array
    estimate_x: Array
    upper_x: Array
    lower_y: Array
    estimate_y: Array
    upper_y: Array
    alpha: float  # probability that any of the limits is wrong

    def profile(self, epsilon: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Return (lower, estimate, upper) of δ(ε) = sup of Pr_x[S] − e^ε Pr_y[S]; nonincreasing in ε, in [0, 1].

        The lower limit holds for the supremum over all events, the upper limit only for the events of the band; both
        hold for all ε, in nats of either sign, simultaneously with probability 1 − alpha. Each array has the shape of
        `epsilon`.

        >>> band = confidence_band([700, 300], [300, 700], alpha=0.05)
        >>> [round(float(delta), 2) for delta in band.profile(0.0)]
        [0.33, 0.4, 0.46]
        """
        factor = np.exp(np.minimum(np.asarray(epsilon, dtype=np.float64), 700.0))[..., None]
        if np.isnan(factor).any():
            raise OptionError(f"epsilon={epsilon!r} contains NaN; use real numbers.", epsilon=epsilon)

        def delta(p: Array, q: Array) -> Array:
            best: Array = (np.append(p, (0.0, 1.0)) - factor * np.append(q, (0.0, 1.0))).max(axis=-1)
            return best

        return (
            delta(self.lower_x, self.upper_y),
            delta(self.estimate_x, self.estimate_y),
            delta(self.upper_x, self.lower_y),
        )

    def trade_off(self, q: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Return (lower, estimate, upper) of the largest power at false-positive rate `q`; nondecreasing, in [0, 1].

        The power is the probability on x, the false-positive rate the probability on y. The lower limit holds for the
        best of all tests, the upper limit only for mixtures of the events of the band; both hold for all rates
        simultaneously with probability 1 − alpha. Each array has the shape of `q`, in [0, 1].

        >>> band = confidence_band([700, 300], [300, 700], alpha=0.05)
        >>> [round(float(power), 2) for power in band.trade_off(0.3)]
        [0.6, 0.7, 0.74]
        """
        rate = np.asarray(q, dtype=np.float64)
        if not ((rate >= 0.0) & (rate <= 1.0)).all():  # NaN fails
            raise OptionError(f"q={q!r} is not a false-positive rate; use 0 <= q <= 1.", q=q)

        def power(rates: Array, powers: Array) -> Array:
            return np.asarray(np.interp(rate, *concave_hull(rates, powers)), dtype=np.float64)

        return (
            power(self.upper_y, self.lower_x),
            power(self.estimate_y, self.estimate_x),
            power(self.lower_y, self.upper_x),
        )


def confidence_band(bins_x: npt.ArrayLike, bins_y: npt.ArrayLike, *, alpha: float = 0.05) -> Band:
    """Return limits for all unions of the first j bins on both sides that hold together with probability 1 − alpha.

    Counts that do not partition at least one run, or an alpha outside its range, raise an `OptionError`.

    Parameters
    ----------
    bins_x, bins_y : array_like, shape (C,)
        Counts of the outputs in each bin, which add up to the runs on x and on y; C ≥ 2. The bins and their order are
        chosen without looking at these counts; an order by decreasing likelihood ratio gives the tightest band. For the
        other direction, exchange the sides and reverse both orders: the limits and alpha stay the same.
    alpha : float
        In (0, 1).

    Returns
    -------
    Band
        Limits, with the methods `profile` for δ(ε) and `trade_off` for the power.

    See Also
    --------
    ratio_intervals : Limits for single bins.
    renyi_lower : Bound on a Rényi divergence from the same counts.

    References
    ----------
    Clopper & Pearson (1934), The use of confidence or fiducial limits. Dong, Roth & Su (2022), Gaussian differential
    privacy, Sections 2.1 and 2.4 (trade-off functions, and the profile as their dual).

    Examples
    --------
    >>> band = confidence_band([500, 300, 200], [200, 300, 500], alpha=0.05)
    >>> band.lower_x.round(3).tolist(), band.upper_y.round(3).tolist()
    ([0.46, 0.767], [0.233, 0.54])
    """
    bins_x, bins_y = checked_bins(bins_x, bins_y)
    each = check_alpha(alpha) / (4 * (len(bins_x) - 1))
    x, y = np.cumsum(bins_x), np.cumsum(bins_y)
    lower_x, upper_x = limits(x[:-1], x[-1], alpha=each)
    lower_y, upper_y = limits(y[:-1], y[-1], alpha=each)
    return Band(
        lower_x=lower_x,
        estimate_x=x[:-1] / x[-1],
        upper_x=upper_x,
        lower_y=lower_y,
        estimate_y=y[:-1] / y[-1],
        upper_y=upper_y,
        alpha=float(alpha),
    )


def checked_bins(bins_x: npt.ArrayLike, bins_y: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the counts as floats, shape (C,) with C ≥ 2; raise an `OptionError` unless they partition some runs."""
    sides = []
    for name, bins in (("bins_x", bins_x), ("bins_y", bins_y)):
        counts = np.asarray(bins, dtype=np.float64)
        if counts.ndim != 1 or len(counts) < 2 or not (counts >= 0).all() or not (counts == np.floor(counts)).all():
            raise OptionError(f"{name}={bins!r} are not counts of bins; use 2 or more whole numbers.", bins=bins)
        if not 1.0 <= counts.sum() < 2.0**53:
            raise OptionError(f"{name} adds up to {counts.sum():g} runs; use from 1 to 2^53.", bins=bins)
        sides.append(counts)
    if len(sides[0]) != len(sides[1]):
        raise OptionError(
            f"bins_x has {len(sides[0])} bins and bins_y has {len(sides[1])}; use the same bins on both sides.",
            bins_x=len(sides[0]),
            bins_y=len(sides[1]),
        )
    return sides[0], sides[1]


def concave_hull(q: Sequence[float] | Array, p: Sequence[float] | Array) -> tuple[Array, Array]:
    """Return the vertices of the concave hull of the points, (0, 0) and (1, 1): increasing rates, and powers.

    >>> concave_hull([0.2, 0.5, 0.5], [0.6, 0.7, 0.9])
    (array([0. , 0.2, 0.5, 1. ]), array([0. , 0.6, 0.9, 1. ]))
    """
    rates, powers = np.append(q, (0.0, 1.0)), np.append(p, (0.0, 1.0))
    hull: list[tuple[float, float]] = []
    for k in np.lexsort((-powers, rates)):
        at, height = float(rates[k]), float(powers[k])
        if hull and at == hull[-1][0]:
            continue  # equal rates are sorted by decreasing power
        while len(hull) > 1:
            (a, low), (b, high) = hull[-2:]
            if (high - low) * (at - b) > (height - high) * (b - a):
                break
            hull.pop()
        hull.append((at, height))
    return np.array([at for at, _ in hull]), np.array([height for _, height in hull])
