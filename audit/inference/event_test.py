"""The p-value of a boundary p ≤ B(q) for nested regions of counts, and its inversion to a bound.

X counts runs of probability p and Y runs of probability q: counts on x and on y in independent runs, or correct and
incorrect guesses, of which each run has at most one (`guess_test`). Under both, the probability of a region {X ≥ c(Y)}
with nondecreasing c grows with p and falls with q.

1. *Order.* Counts are ordered by the privacy parameter of the largest member of the claim's family that they clear by z
   standard errors. The counts at least as extreme as the observed ones are {X ≥ c(Y)} with one nondecreasing c. Any z
   fixed in advance is valid; the normal quantile of the alpha that the test is tuned to makes this nearly the order of
   the bound itself.
2. *Maximise.* Over the null the probability of {X ≥ c(Y)} is largest on the boundary p = B(q), for q in a
   Clopper-Pearson interval of level 1 − γ, and γ is added (Berger & Boos 1994, P values maximized over a confidence set
   for the nuisance parameter). Cells of q and blocks of y can only enlarge the p-value.
3. *Invert.* The region does not depend on the member tested, so the p-value is monotone in the privacy parameter, and
   the bound is found by bisection (Buehler 1957, Confidence intervals for the product of two binomial parameters).

Proofs: docs/proofs/joint-test.md, docs/proofs/berger-boos.md, docs/proofs/cells-and-blocks.md, docs/proofs/guesses.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy

from ..claims.claim import Claim, claim_at
from ..errors import OptionError
from ..options import checked, is_whole
from ..printing import shorten
from .binomial_tails import Array, clopper_pearson, row_slices, upper_tail, varied_upper_tail

# The four counts on which every verdict rests.

MOST = 10**15
"""Largest count: beyond 2⁵³, floating-point numbers are not exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts (runs inside the event) and runs, on x and on y.

    Parameters
    ----------
    count_x, runs_x, count_y, runs_y : int
        Counts and runs on x, and on y.

    Raises
    ------
    OptionError
        Unless 0 <= counts <= runs and runs >= 1 on both sides, all whole numbers.
    """

    count_x: int
    runs_x: int
    count_y: int
    runs_y: int

    def __post_init__(self) -> None:
        for name in ("count_x", "runs_x", "count_y", "runs_y"):
            value = getattr(self, name)
            if not is_whole(value) or abs(value) > MOST:
                raise OptionError(
                    f"{name}={shorten(value)} is not a count; use a whole number up to {MOST:.0e}.",
                    name=name,
                    value=value,
                )
            object.__setattr__(self, name, int(value))
        for side, counts, runs in (("x", self.count_x, self.runs_x), ("y", self.count_y, self.runs_y)):
            if not (0 <= counts <= runs and runs >= 1):
                raise OptionError(
                    f"count_{side}={counts} of runs_{side}={runs} is impossible; use 0 <= counts <= runs and runs >= "
                    "1.",
                    counts=counts,
                    runs=runs,
                )

    def swapped(self) -> Counts:
        """Return the counts with x and y exchanged."""
        return Counts(count_x=self.count_y, runs_x=self.runs_y, count_y=self.count_x, runs_y=self.runs_x)

    def outside(self) -> Counts:
        """Return the counts of the complement of the event."""
        count_x, count_y = self.runs_x - self.count_x, self.runs_y - self.count_y
        return Counts(count_x=count_x, runs_x=self.runs_x, count_y=count_y, runs_y=self.runs_y)

    def __str__(self) -> str:
        return f"{self.count_x:,} of {self.runs_x:,} on x, {self.count_y:,} of {self.runs_y:,} on y"


def check_alpha(alpha: Any) -> float:
    """Return `alpha` as a float strictly between 0 and 1; else raise an `OptionError`."""
    return checked("alpha", alpha)  # type: ignore[no-any-return]


# The order of counts: the largest privacy parameter that counts clear by an ellipse of z standard errors.
#
# The regions are nested for any approximation in the ellipse; the one used here is the arcsine scale, on which q has
# the standard error 1/(2√m). A boundary without a closed form is read from a table, whose grid depends on m alone.

_ANGLES = np.linspace(0.0, math.pi / 2, 9)[:, None]  # directions in which the ellipse is compared with the boundary
_FOR_P, _FOR_Q = np.sin(_ANGLES), np.cos(_ANGLES)
_STEP = 0.1  # standard errors between two points of a table
NEARNESS = 1e-7
"""Relative accuracy of a parameter, or of a p-value, found by bisection: more digits than are usually printed."""
_LARGEST = 1e6  # larger privacy parameters are not distinguished


def order(counts: Counts, claim: Claim, z: float) -> tuple[float, float]:
    """Return the position of the counts: (parameter, z), or (0, a smaller z) if they do not clear the smallest member.

    The parameter is rounded down, by a relative 1e-7 at most; the claim's own parameter only starts the search. (0, 0)
    means that the frequencies lie under the smallest boundary.
    """
    y = np.array([float(counts.count_y)])

    def lacking(parameter: float, part: float) -> float:
        needed = counts_needed(y, counts.runs_x, counts.runs_y, claim.with_parameter(parameter), part)
        return float(needed[0]) - counts.count_x

    size = 1.0 + min(counts.count_x, counts.runs_x - counts.count_x)
    if lacking(0.0, z) <= 0:
        return root_from_below(lambda s: lacking(s, z), claim.max_parameter, claim.parameter or 1.0, size), z
    if lacking(0.0, 0.0) > 0:
        return 0.0, 0.0
    return 0.0, root_from_below(lambda part: lacking(0.0, part), z, 0.5 * z, size)


def critical_counts(y: Array, n: int, m: int, claim: Claim, z: float) -> Array:
    """Return c(y), the smallest count on x whose ellipse of `z` standard errors with y clears the claim's boundary.

    c is nondecreasing in y, in the claim's privacy parameter and in z; it is n + 1 where no count suffices.
    """
    return np.ceil(counts_needed(y, n, m, claim, z))


def counts_needed(y: Array, n: int, m: int, claim: Claim, z: float) -> Array:
    """Return c(y) of `critical_counts` before rounding up.

    At every angle, the ellipse assigns z·cos(angle) standard errors to y and z·sin(angle) to x.
    """
    angle = np.minimum(np.arcsin(np.sqrt((y + 0.5) / (m + 1.0))) + z * _FOR_Q / (2.0 * math.sqrt(m)), math.pi / 2)
    p, rest = _power_at(claim, angle, m)
    share = z * _FOR_P
    # No count on x suffices once the ellipse reaches past 1; there the formula would fall below n again.
    counts = np.where(n * rest <= share**2 * p, n + 1.0, n * p + share * np.sqrt(n * p * rest) - 1e-9)
    return np.asarray(counts.max(axis=0), dtype=np.float64)


def _power_at(claim: Claim, angle: Array, m: int) -> tuple[Array, Array]:
    """Return B and 1 − B at these angles of q, interpolated from a table if the boundary has no closed form."""
    if claim.has_closed_form:
        return claim.max_power(np.sin(angle) ** 2, np.cos(angle) ** 2)
    step = _STEP * 0.5 / math.sqrt(m)
    number = np.arange(math.floor(float(angle.min()) / step), math.ceil(float(angle.max()) / step) + 1)
    places = np.minimum(number * step, math.pi / 2)
    p, rest = claim.max_power(np.sin(places) ** 2, np.cos(places) ** 2)
    power = np.interp(angle, places, arcsine_angle(p, rest))
    return np.sin(power) ** 2, np.cos(power) ** 2


def arcsine_angle(p: npt.ArrayLike, rest: npt.ArrayLike) -> Array:
    """Return arcsin √p, computed from p and 1 − p."""
    return np.asarray(np.arctan2(np.sqrt(p), np.sqrt(rest)))


def rates(angle: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the probability at an angle on the arcsine scale, and its complement."""
    inside = np.clip(angle, 0.0, math.pi / 2)
    return np.asarray(np.sin(inside) ** 2), np.asarray(np.cos(inside) ** 2)


def root_from_below(
    excess: Callable[[float], float], limit: float, start: float, size: float, *, nearness: float = NEARNESS
) -> float:
    """Return the largest number below `limit` at which an increasing function is at most 0, as it is at 0.

    The number is rounded down, by a relative `nearness` at most; it is infinite if it exceeds a million. The search
    leaves `start` in growing steps, the first of which depends on the excess as a share of `size`. Linear interpolation
    follows; every fourth step is a bisection unless the last four did well. The value at an end that is kept a second
    time is reduced (Anderson & Björck 1973, A new high order method of the regula falsi type for computing a root of an
    equation). Every point is at least half the accuracy away from both ends, so that the next point lies beyond the
    root.
    """
    low, low_value, high, high_value = 0.0, -math.inf, limit, math.inf
    at, further, step, last, before = min(start, 0.5 * limit), 0.0, 0, 0, math.inf
    while low <= _LARGEST and (math.isinf(high) or high - low > nearness * max(high, 1e-9)):
        value, step = excess(at), step + 1
        if value <= 0:
            share = 1.0 - value / low_value if last < 0 and low_value < 0.0 else 1.0
            low, low_value, high_value = at, value, high_value * (share if share > 0.0 else 0.5)
        else:
            share = 1.0 - value / high_value if last > 0 else 1.0
            high, high_value, low_value = at, value, low_value * (share if share > 0.0 else 0.5)
        last = 1 if value > 0 else -1
        further = min(further**3, 1e3) if further else 1.0 + min(max(4.0 * abs(value) / size, 1e-6), 0.0625)
        if math.isinf(high_value):
            at = min(further * low, 0.5 * (low + limit))
        elif math.isinf(low_value):
            at = high / further
        else:
            is_slow = step % 4 == 0 and abs(value) >= 0.1 * before
            share = 0.5 if is_slow else low_value / (low_value - high_value)
            least = 0.5 * nearness * max(high, 1e-9)
            at = min(max(low + share * (high - low), low + least), high - least)
        before = abs(value) if step % 4 == 0 else before
    return low if low <= _LARGEST else math.inf


GAMMA = 1e-10
"""Probability spent on the confidence interval for q; no p-value is smaller."""


CELL = 0.03
"""Standard errors in a cell of q or a block of y; they cost the bound about 3% of its distance from the estimate."""

REACH = 7.0
"""Standard errors around a cell within which blocks of y are separate; the probability beyond is 3e-12."""

_GUESSES_NORMAL_FROM = 500.0
"""Variance of correct guesses from which the normal bound is used. It lowers the bound by about 1% of its distance from
the estimate at most."""


def allows(claim: Claim, counts: Counts) -> bool:
    """Return whether the observed frequencies lie under the boundary."""
    observed = claim.max_power(counts.count_y / counts.runs_y, (counts.runs_y - counts.count_y) / counts.runs_y)[0]
    return counts.count_x / counts.runs_x <= float(observed) * (1 + 1e-12)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """The part of the test that depends on the counts on y alone: cells of q, blocks of y and their probabilities."""

    runs: int
    starts: Array  # first y of each block, shape (blocks,)
    q: Array  # upper edges of the cells, and 1 − q, shape (cells,)
    q_rest: Array
    low: Array  # lower edges, and 1 − q
    low_rest: Array
    columns: np.ndarray[tuple[int, ...], np.dtype[np.int64]]  # separate blocks of each cell, shape (cells, width)
    known: dict[int, Array] = field(default_factory=dict)  # what `below` has returned, by the first cell

    @property
    def parts(self) -> list[slice]:
        """Slices of the cells, those in the middle first, in which p-values are largest."""
        cells, width = self.columns.shape
        return sorted(row_slices(cells, width + 1), key=lambda some: abs(some.start + some.stop - cells))

    def below(self, some: slice) -> Array:
        """Bounds on Pr[Y ≤ y] at the lower edge of some cells, up to the first block and up to the end of each."""
        if some.start not in self.known:
            rest, low = self.low_rest[some], self.low[some]
            self.known[some.start] = mass_below(self.starts, self.columns[some], self.runs, rest, low, upper_tail)
        return self.known[some.start]


def columns_between(starts: Array, nearest: Array, furthest: Array) -> npt.NDArray[np.int64]:
    """Return which blocks of y hold the counts from `nearest` to `furthest`, shape (points, width)."""
    first = np.maximum(np.searchsorted(starts, nearest, side="right") - 1, 0)
    width = int((np.searchsorted(starts, furthest, side="right") - first).max()) + 1
    return np.minimum(first[:, None] + np.arange(width), len(starts) - 1)


def mass_below(
    starts: Array,
    columns: npt.NDArray[np.int64],
    runs: int,
    rest: Array,
    q: Array,
    tail: Callable[[Array, int, Array, Array], Array],
) -> Array:
    """Return Pr[Y ≤ y] up to the first of these blocks and up to the end of each, shape (points, width + 1)."""
    ends = np.append(starts[1:] - 1.0, float(runs))
    through = np.concatenate([starts[columns[:, :1]] - 1.0, ends[columns]], axis=1)
    return tail(runs - through, runs, rest, q)  # of the misses: Pr[m − Y ≥ m − k], 0 for k = −1


@lru_cache(maxsize=4)  # the detectable excess uses the counts that were tested; up to 3 MB each
def _grid(count_y: int, m: int) -> _Grid:
    (low, low_rest), (high, high_rest) = clopper_pearson(count_y, m, alpha=GAMMA)
    unit = 0.5 / math.sqrt(m)  # a standard error on the arcsine scale
    first, last = math.atan2(math.sqrt(low), math.sqrt(low_rest)), math.atan2(math.sqrt(high), math.sqrt(high_rest))
    edges = np.linspace(first, last, max(2, math.ceil((last - first) / (CELL * unit)) + 1))
    span = np.arange(first - REACH * unit, last + REACH * unit, CELL * unit)
    starts = np.unique(np.floor(m * rates(span)[0]))
    nearest, furthest = (m * rates(edges[:-1] + step)[0] for step in (-REACH * unit, REACH * unit))
    columns = columns_between(starts, nearest, furthest)
    (q_low, q_low_rest), (q, q_rest) = rates(edges[:-1]), rates(edges[1:])
    q_low[0], q_low_rest[0] = low, low_rest
    q[-1], q_rest[-1] = high, high_rest
    return _Grid(m, starts, q, q_rest, q_low, q_low_rest, columns)


@dataclass(frozen=True, slots=True)
class FamilyTest:
    """The test of any member of a claim's family at the same counts; it holds what does not depend on the member."""

    counts: Counts
    are_guesses: bool  # whether the counts are correct and incorrect guesses, of which each run has at most one
    grid: _Grid | None  # None if the frequencies lie under the smallest boundary: no member is refuted
    critical: Array  # c at the first y of each block, shape (blocks,)
    cleared: float  # the privacy parameter that the ellipse clears

    @classmethod
    def of(cls, counts: Counts, claim: Claim, alpha: float, *, are_guesses: bool = False) -> FamilyTest:
        """Return the test at these counts, with the order of outcomes that is tuned to `alpha`."""
        parameter, z = order(counts, claim, order_z(alpha))
        if z == 0.0:
            return cls(counts, are_guesses, None, np.empty(0), parameter)
        grid = _grid(counts.count_y, counts.runs_y)
        critical = critical_counts(grid.starts, counts.runs_x, counts.runs_y, claim.with_parameter(parameter), z)
        return cls(counts, are_guesses, grid, critical, parameter)

    def pvalue(self, claim: Claim, limit: float = 1.0) -> float:
        """Return the p-value of a member of the family, or 1 if it exceeds a limit; nondecreasing in the parameter."""
        if allows(claim, self.counts):
            return 1.0
        found = 0.0
        for largest in self._largest(claim):
            found = max(found, GAMMA + largest)
            if found > limit:
                return 1.0
        return min(1.0, found)

    def _largest(self, claim: Claim) -> Iterator[float]:
        """Yield the largest probability of the region in some cells, then in the next."""
        grid = self.grid
        if grid is None:
            yield 1.0
            return
        p, rest = claim.max_power(grid.q, grid.q_rest)
        # Σ_k tail_k Pr[Y in block k], summed by parts so that upper bounds on the tails and on Pr[Y ≤ end] both enlarge
        # the sum; y before the first block gets tail 1, y after the last block the tail of the last block.
        for some in grid.parts:
            tails, below = self._tails(grid, some, p[some], rest[some]), grid.below(some)
            steps = tails[:, :-1] - tails[:, 1:]
            steps *= below[:, 1:-1]
            yield float(((1.0 - tails[:, 0]) * below[:, 0] + steps.sum(axis=1) + tails[:, -1]).max())

    def last_refuted(self, claim: Claim, alpha: float) -> float:
        """Return a refuted parameter, at most about .4% of the gap below one that is not refuted; 0 if there is none.

        `alpha` is the one that the test is tuned to. Over the gap between bound and estimate, the normal quantile of
        the p-value rises almost linearly from that of alpha to about 0.
        """
        # The privacy parameter cleared by the ellipse is off by a few percent of the gap, which half the ellipse
        # measures.
        guess = self.cleared
        halfway = order(self.counts, claim, order_z(alpha) / 2)[0]
        gap = max(2 * (halfway - guess), 1e-9 * (1 + guess))
        target, slope, tolerance = float(scipy.special.ndtri(alpha)), order_z(alpha) / gap, 4e-3 * gap

        def excess(parameter: float) -> float:
            """Return the normal quantile of the p-value minus that of alpha; at most 0 if the parameter is refuted."""
            return float(scipy.special.ndtri(min(self.pvalue(claim.with_parameter(parameter)), 1 - 1e-12))) - target

        low, low_excess, high, high_excess = 0.0, -math.inf, math.inf, math.inf
        at, reach = guess, 1.0
        while high - low > tolerance and low_excess < -slope * tolerance:
            value = excess(at)
            if value <= 0:
                low, low_excess = at, value
            else:
                high, high_excess = at, value
            # Aim slightly below the root of the line, because the result must be refuted.
            step = max(reach * abs(value) / slope, tolerance)
            if math.isinf(high):
                at, reach = min(low + step - 0.4 * tolerance, 0.5 * (low + claim.max_parameter)), 2 * reach
            elif math.isinf(low_excess):
                at, reach = max(high - step - 0.4 * tolerance, 0.5 * high), 2 * reach
            else:  # interpolate, but shrink the bracket by at least a tenth
                share = min(max(low_excess / (low_excess - high_excess), 0.1), 0.9)
                at = max(low + share * (high - low) - 0.4 * tolerance, low + 0.1 * (high - low))
            if low > 1e6:  # larger privacy parameters are not distinguished
                break
        return low

    def _tails(self, grid: _Grid, some: slice, p: Array, rest: Array) -> Array:
        """Return bounds on Pr[X ≥ c | Y] at the first y of each block, for some cells."""
        columns, runs = grid.columns[some], self.counts.runs_x
        critical = self.critical[columns]
        if not self.are_guesses:
            return upper_tail(critical, runs, p, rest)
        # A guess that is not wrong is right with probability p/(1 − q), and p is at most 1 − q.
        low, low_rest = grid.low[some], grid.low_rest[some]
        right, other = np.minimum(p / low_rest, 1.0), np.maximum((rest - low) / low_rest, 0.0)
        is_small = runs * p * rest < _GUESSES_NORMAL_FROM
        return varied_upper_tail(critical, runs - grid.starts[columns], right, other, is_small)


def order_z(alpha: float) -> float:
    """Return the size of the ellipse in the order of a test that is tuned to `alpha`."""
    return max(float(-scipy.special.ndtri(alpha)), 0.5)


# The exact joint test of a boundary p ≤ B(q) by the counts on x and on y, for all sample sizes.

LEAST_ALPHA = 10 * GAMMA
"""No test is made at a level as small as this."""


def pvalue(counts: Counts, claim: Claim | float, *, alpha: float = 0.05) -> float:
    """Return the exact p-value of the null that `claim` allows Pr[M(x) ∈ S] given Pr[M(y) ∈ S].

    If the null is true, the p-value is at most a with probability at most a, for every a in (0, 1). The test is most
    powerful at the `alpha` that it is tuned to, so p-values tuned to different levels differ. Fix `alpha` before you
    see the counts, and choose the event without looking at them. A number ε stands for ``PureDP(ε)``.

    >>> from dpaudit import PureDP
    >>> pvalue(Counts(count_x=60, runs_x=100, count_y=10, runs_y=100), PureDP(1.0)) < 0.05
    True
    """
    check_alpha(alpha)
    claim = claim_at(claim, 1)
    return 1.0 if allows(claim, counts) else FamilyTest.of(counts, claim, alpha).pvalue(claim)


def parameter_lower(counts: Counts, claim: Claim | float, *, alpha: float = 0.05) -> float:
    """Return a lower bound on the true privacy parameter: the counts refute every smaller member of the claim's family.

    The bound exceeds the true privacy parameter with probability at most alpha. It is in the units of the claim's
    privacy parameter, and 0 if the smallest member is not refuted.

    Parameters
    ----------
    counts : Counts
        Counts and runs for one event that was chosen without looking at them.
    claim : Claim or float
        Defines the family, such as all (ε, 1e-5) for an `ApproxDP`, and starts the search. A number ε stands for
        ``PureDP(ε)``.
    alpha : float
        In (0, 1), and above 1e-9.

    Returns
    -------
    float
        In the units of the claim's privacy parameter; at least 0.

    See Also
    --------
    joint_test : The bound with the p-value.
    epsilon_lower : The bound on ε at a given δ.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> counts = Counts(count_x=67_000, runs_x=100_000, count_y=18_000, runs_y=100_000)
    >>> bound = parameter_lower(counts, PureDP(1.0), alpha=0.05)
    >>> 1.29 < bound < 1.314
    True
    """
    claim, alpha = claim_at(claim, 1), check_test_alpha(alpha)
    return FamilyTest.of(counts, claim, alpha).last_refuted(claim, alpha)


def check_test_alpha(alpha: float, share: float = 1.0) -> float:
    """Return `alpha` as a float of which the exact test can reach this share; else raise an `OptionError`."""
    if check_alpha(alpha) * share <= LEAST_ALPHA:
        part = "" if share == 1.0 else f", which has {share:g} of it, as other tests have the rest"
        raise OptionError(
            f"alpha={alpha:g} is too small for the exact test{part}; use alpha > {LEAST_ALPHA / share:.3g}.",
            alpha=alpha,
        )
    return float(alpha)


def joint_test(counts: Counts, claim: Claim, *, alpha: float = 0.05) -> tuple[float, float]:
    """Return the p-value of a claim and the lower bound on its privacy parameter, from the counts of one event.

    If the claim holds, the p-value is at most a with probability at most a, for every a. The bound is that of
    `parameter_lower`. Both cost little more than one of them.

    Parameters
    ----------
    counts : Counts
        Counts and runs for one event that was chosen without looking at them.
    claim : Claim
        In the direction x given y.
    alpha : float
        In (0, 1), and above 1e-9. The test is tuned to it, so fix it before you see the counts.

    Returns
    -------
    pvalue : float
        At most 1.
    bound : float
        In the units of the claim's privacy parameter.

    See Also
    --------
    parameter_lower : The bound alone.
    holm : Adjustment of several p-values.

    References
    ----------
    Berger & Boos (1994), P values maximized over a confidence set for the nuisance parameter. Proof:
    docs/proofs/joint-test.md.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> counts = Counts(count_x=60, runs_x=100, count_y=10, runs_y=100)
    >>> p, bound = joint_test(counts, PureDP(1.0), alpha=0.05)
    >>> p < 0.05, bound > 1.0  # the claim is refuted
    (True, True)
    """
    family = FamilyTest.of(counts, claim, check_test_alpha(alpha))
    return family.pvalue(claim), family.last_refuted(claim, alpha)


def joint_test_beside(
    counts: Counts, claim: Claim, p_known: float, bound_known: float, *, alpha: float
) -> tuple[float, float]:
    """Return the p-value if it is at most `p_known`, else 1, and the bound if it exceeds `bound_known`, else 0."""
    family = FamilyTest.of(counts, claim, check_test_alpha(alpha))
    p = family.pvalue(claim, p_known)
    # The p-value increases with the parameter, so the bound exceeds `bound_known` only if this parameter is refuted.
    exceeds = family.pvalue(claim.with_parameter(bound_known), alpha) <= alpha
    return p, family.last_refuted(claim, alpha) if exceeds else 0.0


def parameter_estimate(counts: Counts, claim: Claim) -> float:
    """Return the point estimate: the smallest parameter that allows the observed frequencies, or `max_parameter`."""
    n, m = counts.runs_x, counts.runs_y
    found = claim.parameter_of(
        counts.count_x / n, counts.count_y / m, (n - counts.count_x) / n, (m - counts.count_y) / m
    )
    return float(np.clip(found, 0.0, claim.max_parameter))


def largest_parameter(
    condition: Callable[[float], bool], limit: float, *, tolerance: float = 1e-7, start: float = 1.0
) -> float:
    """Return the largest number below `limit` at which a condition holds that fails above it; 0 if it never holds.

    The number is rounded down, by a relative `tolerance` at most. The search begins at `start`.
    """
    low, high = 0.0, min(start, limit)
    while high < limit and condition(high):
        low, high = high, min(2 * high, limit)
        if low > 1e6:
            return math.inf
    while high - low > tolerance * max(high, 1e-9):
        middle = 0.5 * (low + high)
        if condition(middle):
            low = middle
        else:
            high = middle
    return low


# The direction of a test, given by the dataset on which the event was more likely in the pilot.

Direction = Literal["x", "y"]
"""The dataset on which an event is more likely."""


@dataclass(frozen=True, slots=True)
class Directed:
    """A claim and the counts of an event, both with the more likely dataset in place of x."""

    claim: Claim
    counts: Counts


def directed(claim: Claim, counts: Counts, more_likely_on: Direction) -> Directed:
    """Return the claim and the counts in the direction of an event."""
    return Directed(claim, counts) if more_likely_on == "x" else Directed(claim.reversed(), counts.swapped())
