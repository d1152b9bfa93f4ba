"""From pilot outputs to the event to test: learn scores on one half, choose one and a threshold on the other.

By the Neyman-Pearson lemma the best events are {likelihood ratio ≥ t}. A score is an estimate of the log-likelihood
ratio of x against y; a distinguisher learns one and offers the events {score ≥ t} for many t, and {score ≤ t} for the
other direction. Which one is tested is settled by the lower bound that it can be expected to give, from counts that
the scores were not learned on. The test never sees any of these outputs, so the choice costs no alpha.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from .claims import Array, Claim
from .events import Event, Intervals, Outcomes, Projected, project
from .outputs import Outputs, as_numbers, as_vectors, outcome_key, outcome_list, vector_width

E = TypeVar("E", bound=Event)
Direction = Literal["x", "y"]
"""The dataset on which the event is the likelier one: the p of the boundary is that dataset's probability."""

_CELLS = 128  # quantile cells of the likelihood-ratio histogram, fewer where the pilot is small
_CELL_RUNS = 100  # pilot runs a cell should hold
_INTERVALS = 8  # intervals in an event at most: each costs two passes over the outputs
_LEVELS = 129  # thresholds tried for a half-line on the logistic scale (dense in both tails), and four times evenly
_ATOM_RUNS = 5  # times a value has to come in the pilot of a continuous output to be looked at by itself
_TABLE = 512  # outcomes in a table at most; the rarest are left out, as neutral
# Standard errors of the pilot taken off, because the best of many noisy events looks better than it is. For Laplace,
# where every half-line in the tail has the same ratio and only the largest is wanted, 1.5 gives gaps 1.9 times the
# oracle's (median), 4 gives 1.12. Where the best event is rare even in a long pilot the ratio grows into the tail, and
# caution costs depth.
_CAUTION, _DEEP_CAUTION = 4.0, 1.0
# An event that contradicts the claim by this many standard errors in the pilot is taken before one that does not: it
# may be rare, and the most cautious choice would never see it.
_SUSPICION = 3.0
_DIRECTIONS: tuple[Direction, ...] = ("x", "y")
_ANGLES = np.linspace(0.0, math.pi / 2, 9)


@dataclass(frozen=True, slots=True)
class Choice:
    """The event to test and the direction, with the pilot counts that it was chosen on."""

    event: Event
    likelier_on: Direction
    pilot_hits_x: int
    pilot_hits_y: int
    pilot_runs: int


@dataclass(frozen=True, slots=True)
class Family(Generic[E]):
    """Nested events {score ≥ t}, from the smallest to the largest, and how many of `runs` held-out runs lie in each.

    `build(i, inside)` makes the event {score ≥ t_i}, or its complement.
    """

    hits_x: Array
    hits_y: Array
    runs: int
    build: Callable[[int, bool], E]


def choose_event(
    learn_x: Outputs,
    learn_y: Outputs,
    held_x: Outputs,
    held_y: Outputs,
    claim: Claim,
    runs: int,
    alpha: float,
    *,
    deep: bool = False,
) -> Choice:
    """The event with the largest lower bound to be expected from `runs` runs on each side.

    Parameters
    ----------
    learn_x, learn_y, held_x, held_y : ndarray
        Pilot outputs: one half to learn scores on, the other to choose on. Same number of runs in all four.
    claim : Claim
        What will be tested: p on the likelier side against the boundary (its reverse when that side is y).
    runs, alpha : int, float
        Size and error probability of the test to come.
    deep : bool
        Whether the pilot was made long because the best event is rare.
    """
    families = list(_families(learn_x, learn_y, held_x, held_y))
    z = max(float(-ndtri(alpha)), 0.0)
    best = _best(families, _Criterion(claim, runs, z, _DEEP_CAUTION if deep else _CAUTION))
    if not deep and best is not None and best[0] <= 0:
        suspect = _best(families, _Criterion(claim, runs, z, _SUSPICION))
        if suspect is not None and suspect[0] > 0:
            best = suspect
    if best is None:  # nothing to tell apart, such as a constant output: anything else is the event
        seen = {outcome_key(value): value for value in outcome_list(learn_x[:_TABLE])}
        return Choice(Outcomes(tuple(seen.values()), others=True), "x", 0, 0, len(held_x))
    _, family, inside, direction, index = best
    hits_x, hits_y = int(family.hits_x[index]), int(family.hits_y[index])
    if not inside:
        hits_x, hits_y = family.runs - hits_x, family.runs - hits_y
    return Choice(family.build(index, inside), direction, hits_x, hits_y, family.runs)


def _best(families: list[Family[Any]], criterion: _Criterion) -> tuple[float, Family[Any], bool, Direction, int] | None:
    """The best event of all families by a criterion, with its value; None where every event is useless."""
    best: tuple[float, Family[Any], bool, Direction, int] | None = None
    for family in families:
        for inside in (True, False):
            for direction in _DIRECTIONS:
                values = criterion.values(family.hits_x, family.hits_y, family.runs, inside, direction)
                index = int(np.argmax(values))
                # The simpler score comes first and stays unless it is clearly worse.
                least = -math.inf if best is None else best[0] + 1e-3 * criterion.claim.strength
                if values[index] > least:
                    best = float(values[index]), family, inside, direction, index
    return best


@dataclass(frozen=True, slots=True)
class _Criterion:
    """Roughly by how much the lower bound that an event gives will exceed the claim, noise of the pilot taken off."""

    claim: Claim
    runs: int
    z: float
    caution: float

    def values(self, hits_x: Array, hits_y: Array, held: int, inside: bool, direction: Direction) -> Array:
        """The criterion for events with these hits in `held` runs, or for their complements; −∞ where one is no use."""
        hits_p, hits_q = (hits_x, hits_y) if direction == "x" else (hits_y, hits_x)
        if not inside:
            hits_p, hits_q = held - hits_p, held - hits_q
        # The ellipse of the joint test in its asymptotic form, on the arcsine scale, where a standard error is 1/(2√n).
        size = 0.5 * (self.z / math.sqrt(self.runs) + self.caution / math.sqrt(held))
        p = np.arcsin(np.sqrt((hits_p + 0.375) / (held + 0.75))) - size * np.sin(_ANGLES)[:, None]
        q = np.arcsin(np.sqrt((hits_q + 0.375) / (held + 0.75))) + size * np.cos(_ANGLES)[:, None]
        p, q = np.maximum(p, 0.0), np.minimum(q, math.pi / 2)
        claim = self.claim if direction == "x" else self.claim.reversed()
        found = claim.rough_strength_of(np.sin(p) ** 2, np.sin(q) ** 2, np.cos(p) ** 2, np.cos(q) ** 2).min(axis=0)
        # An event says the same as its complement in the other direction; keep the one with the larger ratio.
        # An event that never fails cannot be likelier on the other side.
        useless = np.isnan(found) | (hits_p * (held - hits_p) < hits_q * (held - hits_q)) | (hits_q == held)
        return np.where(useless, -math.inf, found - claim.strength)


def _families(learn_x: Outputs, learn_y: Outputs, held_x: Outputs, held_y: Outputs) -> Iterator[Family[Any]]:
    """Every family of events worth trying for these outputs, simple ones first."""
    parts = (learn_x, learn_y, held_x, held_y)
    width = vector_width(learn_x)
    if width is not None:
        vectors = [as_vectors(part, width) for part in parts]
        for weights in _directions(vectors[0], vectors[1]):
            values = tuple(project(part, weights) for part in vectors)
            for family in _number_families(*values):
                yield Family(family.hits_x, family.hits_y, family.runs, _Project(weights, family.build))
    else:
        numbers = tuple(as_numbers(part) for part in parts)
        if np.isfinite(np.concatenate(numbers[:2]).astype(np.float64)).any():
            yield from _number_families(*numbers)
    yield from _table_families(*parts)


def _number_families(
    learn_x: Outputs, learn_y: Outputs, held_x: Outputs, held_y: Outputs
) -> Iterator[Family[Intervals]]:
    """Half-lines in both directions, and the cells with the largest estimated likelihood ratio."""
    # As doubles, as events compare them: integers beyond 2⁵³ may fall together, in the choice as in the counting.
    learn_x, learn_y, held_x, held_y = (part.astype(np.float64) for part in (learn_x, learn_y, held_x, held_y))
    pooled = np.sort(np.concatenate([learn_x, learn_y]))
    pooled = pooled[~np.isnan(pooled)]
    if len(pooled) == 0:
        return
    # Half-lines are not learned, so the whole pilot is held out for them. Sorting puts NaN last.
    n = len(learn_x) + len(held_x)
    all_x, all_y = np.sort(np.concatenate([learn_x, held_x])), np.sort(np.concatenate([learn_y, held_y]))
    levels = 1.0 / (1.0 + np.exp(-np.linspace(-1, 1, _LEVELS) * math.log(len(pooled))))
    levels = np.concatenate([levels, np.linspace(0.0, 1.0, 4 * _LEVELS)])
    values = np.unique(pooled[:: max(1, len(pooled) // 10_000)])
    discrete = len(values) <= _TABLE
    if discrete:  # perhaps: look at all of them
        values = np.unique(np.concatenate([all_x, all_y]))
        values = values[~np.isnan(values)]
        discrete = len(values) <= _TABLE
    spread = pooled[np.minimum((levels * len(pooled)).astype(np.int64), len(pooled) - 1)]
    cuts = values if discrete else np.unique(spread)
    below = [np.searchsorted(part, cuts, side="right").astype(np.float64) for part in (all_x, all_y)]
    others = bool(np.isnan(all_x[-1]) or np.isnan(all_y[-1]))
    yield Family(below[0], below[1], n, _HalfLines(cuts, True, discrete, others))
    above = [
        (n - np.isnan(part).sum() - np.searchsorted(part, cuts, side="left"))[::-1].astype(np.float64)
        for part in (all_x, all_y)
    ]
    yield Family(above[0], above[1], n, _HalfLines(cuts[::-1], False, discrete, others))
    cells = [] if discrete else _cells(pooled)  # few values are looked at one by one, in a table
    if len(cells) > 2:
        counts = [_cell_counts(cells, np.sort(part)) for part in (learn_x, learn_y)]
        order = np.argsort(-np.log((counts[0] + 0.5) / (counts[1] + 0.5)), kind="stable")
        held = [_cell_counts(cells, part)[order].cumsum() for part in (np.sort(held_x), np.sort(held_y))]
        simple = [i for i in range(len(order) - 1) if len(_runs(order[: i + 1])) <= _INTERVALS]
        if simple:
            yield Family(held[0][simple], held[1][simple], len(held_x), _Cells(cells, order, tuple(simple), others))


def _cells(pooled: Array) -> list[tuple[float, float]]:
    """Closed intervals that hold all numbers, in order, of about equal mass; a value with a cell's mass is its own."""
    wanted = int(np.clip(len(pooled) // _CELL_RUNS, 1, _CELLS))
    edges, repeats = np.unique(pooled[np.linspace(0, len(pooled) - 1, wanted + 1).astype(np.int64)], return_counts=True)
    cells: list[tuple[float, float]] = []
    start = -math.inf
    for edge, repeat in zip(edges.tolist(), repeats.tolist(), strict=True):
        if repeat > 1:  # an atom
            if start < edge:
                cells.append((start, math.nextafter(edge, -math.inf)))
            cells.append((edge, edge))
            start = math.nextafter(edge, math.inf)
        elif start <= edge:
            cells.append((start, edge))
            start = math.nextafter(edge, math.inf)
    if start < math.inf:
        cells.append((start, math.inf))
    return cells


def _cell_counts(cells: list[tuple[float, float]], values: Array) -> Array:
    """Sorted values in each cell, shape (cells,)."""
    low, high = np.array(cells).T
    counts = np.searchsorted(values, high, side="right") - np.searchsorted(values, low, side="left")
    return np.asarray(counts, dtype=np.float64)


def _runs(indices: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """The indices as runs of neighbours: (first, last) each."""
    ordered = np.sort(indices)
    breaks = np.flatnonzero(np.diff(ordered) > 1)
    return list(zip(ordered[np.r_[0, breaks + 1]].tolist(), ordered[np.r_[breaks, -1]].tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _HalfLines:
    cuts: Array
    below: bool
    discrete: bool  # whether these are all the values seen: then the complement starts at the next one
    others: bool  # whether some pilot outputs are not numbers: then the complement holds them

    def __call__(self, index: int, inside: bool) -> Intervals:
        cut = float(self.cuts[index])
        if inside:
            return Intervals(((-math.inf, cut) if self.below else (cut, math.inf),))
        if math.isinf(cut) and (cut > 0) == self.below:  # nothing lies beyond
            return Intervals((), self.others)
        if self.discrete and index + 1 < len(self.cuts):
            edge = float(self.cuts[index + 1])
        else:
            edge = math.nextafter(cut, math.inf if self.below else -math.inf)
        return Intervals(((edge, math.inf) if self.below else (-math.inf, edge),), self.others)


@dataclass(frozen=True, slots=True)
class _Cells:
    cells: list[tuple[float, float]]
    order: npt.NDArray[np.int64]
    prefixes: tuple[int, ...]
    others: bool

    def __call__(self, index: int, inside: bool) -> Intervals:
        cut = self.prefixes[index] + 1
        chosen = self.order[:cut] if inside else self.order[cut:]
        return Intervals(
            tuple((self.cells[a][0], self.cells[b][1]) for a, b in _runs(chosen)), self.others and not inside
        )


@dataclass(frozen=True, slots=True)
class _Project:
    weights: tuple[float, ...]
    build: Callable[[int, bool], Intervals]

    def __call__(self, index: int, inside: bool) -> Projected:
        return Projected(self.weights, self.build(index, inside))


@dataclass(frozen=True, slots=True)
class _Table:
    values: list[Any]

    def __call__(self, index: int, inside: bool) -> Outcomes:
        return Outcomes(tuple(self.values[: index + 1]), others=not inside)


def _directions(x: Outputs, y: Outputs) -> Iterator[tuple[float, ...]]:
    """Weights to project vectors on: each coordinate (the first 64), and Fisher's linear discriminant of x and y."""
    width = x.shape[1]
    for i in range(min(width, 64)):
        yield tuple(1.0 if j == i else 0.0 for j in range(width))
    x, y = (side[np.isfinite(side).all(axis=1)].astype(np.float64) for side in (x, y))
    both = np.concatenate([x, y])
    if width > 1 and min(len(x), len(y)) > width:
        spread = np.cov(both, rowvar=False) + 1e-12 * np.eye(width) * max(float(both.var()), 1e-300)
        weights = np.linalg.lstsq(spread, x.mean(axis=0) - y.mean(axis=0), rcond=None)[0]
        size = float(np.abs(weights).max())
        if size > 0 and math.isfinite(size):
            yield tuple((weights / size).tolist())


def _table_families(learn_x: Outputs, learn_y: Outputs, held_x: Outputs, held_y: Outputs) -> Iterator[Family[Any]]:
    """Sets of single outcomes by their estimated likelihood ratio, from either end; none if nearly every one is new."""
    runs = len(held_x)
    if learn_x.dtype.kind == "f" and len(np.unique(learn_x[:2000], axis=0)) > 1000:
        if learn_x.ndim == 2:
            return
        # Continuous, but for values that come again and again, if there are any.
        values, counts = np.unique(np.concatenate([learn_x, learn_y]), return_counts=True)
        atoms = values[counts >= _ATOM_RUNS]
        if not 0 < len(atoms) <= _TABLE:
            return
        learn_x, learn_y, held_x, held_y = (part[np.isin(part, atoms)] for part in (learn_x, learn_y, held_x, held_y))
    names: dict[Any, Any] = {}
    tallies = []
    for part in (learn_x, learn_y, held_x, held_y):
        tally: Counter[Any] = Counter()
        for value in outcome_list(part):
            key = outcome_key(value)
            names.setdefault(key, value)
            tally[key] += 1
        tallies.append(tally)
    seen = tallies[0] + tallies[1]
    keys = [key for key, count in seen.most_common(_TABLE) if count >= 3]
    if not keys:
        return
    ratio = {key: math.log((tallies[0][key] + 0.5) / (tallies[1][key] + 0.5)) for key in keys}
    for sign in (-1, 1):
        keys.sort(key=lambda key: sign * ratio[key])
        hits_x, hits_y = (np.cumsum([float(tally[key]) for key in keys]) for tally in tallies[2:])
        yield Family(hits_x, hits_y, runs, _Table([names[key] for key in keys]))
