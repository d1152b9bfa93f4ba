"""The net: plain events of every column in both directions, each tested exactly on its own part of alpha.

The net finds events that the pilot did not see. Each event has a fixed part of alpha. The parts sum to 1, so by the
union bound the exact tests together refute a claim that holds with probability at most alpha. Three tenths of the net's
alpha are spread evenly over the kinds of events and then over their places. The rest goes to the leading events of the
pilot in parts of 1, 1/2, 1/3, … by rank: once by expected bound, once by standard errors above the claim, once among
the values that recur.

Proof: docs/proofs/choices.md

References
----------
Genovese, Roeder & Wasserman (2006), False discovery control with p-value weighting, Section 3 (weighted Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..claims.claim import Claim
from ..events.events import ColumnCells, Event, Labels
from ..events.scores import Score
from ..inference.guess_test import is_symmetric
from ..inference.net_test import clearance, rough_bound
from .cells import EVEN, FINE, RANKED, RECURS, Array, Cut, Integers, event_of, runs_of_cells

_EVEN, _BY_BOUND, _BY_CLEARANCE, _RECURRING = 0.3, 0.25, 0.2, 0.25  # docs/decisions/0004-portfolio-constants.md
_TRIED = 2_000  # events that are looked at for the places of a list
_SHOWN = 3.0  # standard errors of the main runs at which the pilot's frequencies would give an expected bound


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """The events of all columns, with each one's part of the net's error probability in either direction."""

    cells: ColumnCells  # what is counted
    low: Integers  # first cell of each event among the cells of all columns, shape (events,)
    high: Integers  # the cell after its last
    column: Integers
    weights: Array  # shape (2, events)
    part: float = 1.0  # of an audit's error probability for a net, which this one needs

    @classmethod
    def of(cls, cuts: Sequence[Cut], claim: Claim, runs: int) -> Net:
        """The net for a test of `runs` main runs on each dataset.

        Two outcomes are each the complement of the other, so the events of the choice are all that there are, but for
        outcomes that the pilot did not show. These need no ranks.
        """
        places = _Places.of(cuts)
        is_binary = not any(np.count_nonzero(cut.count_x + cut.count_y) > 2 for cut in cuts)
        if is_binary:
            places = replace(places, events=places.events[:, places.events[-2:].sum(axis=0) == 0])
        column, _, _, kind, *counts = places.events
        sizes = np.bincount(kind - FINE)
        even = np.tile(1.0 / sizes[kind - FINE] / np.count_nonzero(sizes) / 2.0, 2)
        if is_binary:
            return places.net(even, _EVEN)
        count_x, count_y = (side.astype(np.float64) for side in counts)
        pilot = np.array([cut.runs for cut in cuts])[column]
        z = _SHOWN * np.sqrt(pilot / runs)
        recurs, ranked = kind == RECURS, np.flatnonzero(kind != FINE)  # the fine ones are too many
        promise, clear = [], []
        for p, q, directed in ((count_x, count_y, claim), (count_y, count_x, claim.reversed())):
            of_ranked = p[ranked], q[ranked], pilot[ranked], pilot[ranked], directed
            rough, promised, clearances = np.full((3, len(p)), -np.inf)
            rough[ranked] = rough_bound(*of_ranked, z[ranked], quickly=True)
            near = np.union1d(_largest(rough, _TRIED), np.flatnonzero(recurs))
            near = near[rough[near] > 0.0]  # a bound is at most the rough one, so the others have none
            promised[near] = rough_bound(p[near], q[near], pilot[near], pilot[near], directed, z[near])
            clearances[ranked] = clearance(*of_ranked)
            promise.append(promised)
            clear.append(clearances)
        by_bound, by_clearance = np.concatenate(promise), np.concatenate(clear)
        if is_symmetric(claim):  # the complement says the same in the other direction
            is_large = np.tile(count_x + count_y > pilot, 2)
            by_bound[is_large] = by_clearance[is_large] = -np.inf
        by_bound[by_bound <= 0.0] = -np.inf
        recurring = np.where(np.tile(recurs, 2), by_bound, -np.inf)
        lists = (
            (_EVEN, even),
            (_BY_BOUND, places.by_rank(by_bound)),
            (_BY_CLEARANCE, places.by_rank(by_clearance)),
            (_RECURRING, places.by_rank(recurring)),
        )
        share = sum(part for part, weights in lists if weights.any())
        return places.net(sum((part / share * weights for part, weights in lists), np.zeros(len(even))))

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self.low)

    def counts(self, in_cells: Labels) -> Labels:
        """Counts in each event, of counts in the cells of all columns."""
        up_to = np.concatenate([[0], np.cumsum(in_cells)])
        return np.asarray(up_to[self.high] - up_to[self.low])

    def event(self, index: int, *, outside: bool = False) -> Event:
        """One of the events, or its complement."""
        column = int(self.column[index])
        first = sum(self.cells.sizes[:column])
        inside = np.full(self.cells.sizes[column], outside)
        inside[self.low[index] - first : self.high[index] - first] = not outside
        return event_of(self.cells.scores[column], np.array(self.cells.edges[column]), inside)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where the events of both directions lie, among the cells between the edges at which an event begins or ends."""

    scores: tuple[Score, ...]
    edges: tuple[Array, ...]
    events: Integers  # column, first cell, cell after the last, kind, counts on x and on y: shape (6, events)

    @classmethod
    def of(cls, cuts: Sequence[Cut]) -> _Places:
        edges, events = zip(*map(_of_column, cuts), strict=True)
        columns = np.repeat(np.arange(len(cuts)), [each.shape[1] for each in events])
        return cls(tuple(cut.column.score for cut in cuts), edges, np.stack([columns, *np.concatenate(events, axis=1)]))

    def net(self, weights: Array, part: float = 1.0) -> Net:
        """The net of these events, with weights of shape (2·events,)."""
        cells = ColumnCells(self.scores, tuple(tuple(edges.tolist()) for edges in self.edges))
        column, low, high, *_ = self.events
        first = np.concatenate([[0], np.cumsum(cells.sizes)[:-1]])[column]
        return Net(cells, first + low, first + high, column, weights.reshape(2, -1), part)

    def by_rank(self, value: Array) -> Array:
        """Weights 1, 1/2, … in the order of the values, which sum to 1; 0 for all others.

        An event has no rank if it overlaps an earlier one of its column and direction, or has the same counts as an
        earlier one: it is the same set by another name.
        """
        weight = np.zeros(len(value))
        tried = _largest(value, _TRIED)
        way, at = np.divmod(tried, self.events.shape[1])
        column, low, high, _, count_x, count_y = self.events[:, at]
        is_able, rank = np.ones(len(tried), np.bool_), 1
        while rank <= RANKED and is_able.any():
            first = int(is_able.argmax())
            weight[tried[first]] = 1.0 / rank
            is_same = (count_x == count_x[first]) & (count_y == count_y[first])
            overlaps = (column == column[first]) & (low < high[first]) & (low[first] < high)
            is_able &= (way != way[first]) | ~(is_same | overlaps)
            rank += 1
        return weight / max(float(weight.sum()), 1e-300)


def _of_column(cut: Cut) -> tuple[Array, Integers]:
    """The edges of a column, and its events but for the number of the column, those of fine cells last."""
    bounds = np.flatnonzero(np.bincount(np.concatenate([cut.low, cut.high])))
    edges = np.union1d(cut.edges[bounds[(bounds > 0) & (bounds <= len(cut.edges))] - 1], cut.fine)
    place = np.concatenate([[0], 1 + np.searchsorted(edges, cut.edges), [len(edges) + 1, len(edges) + 2]])
    fine = 1 + np.searchsorted(edges, cut.fine)
    first, after, width = runs_of_cells(len(fine) + 1)
    is_narrow = (width > 0) & (width * EVEN <= len(fine))  # no wider than an even cell, as others are
    first, after = first[is_narrow] - 1, after[is_narrow] - 1
    counts = (
        np.append(cut.in_events(counts), below[after] - below[first]).astype(np.int64)
        for counts, below in zip((cut.count_x, cut.count_y), cut.below_fine, strict=True)
    )
    low, high = np.append(place[cut.low], fine[first]), np.append(place[cut.high], fine[after])
    return edges, np.stack([low, high, np.append(cut.kind, np.full(len(first), FINE)), *counts])


def _largest(values: Array, count: int) -> Integers:
    """The places of the largest values but −∞, in order, of equal ones the first."""
    able = np.flatnonzero(values > -np.inf)
    if len(able) > count:
        able = able[values[able] >= np.partition(values[able], len(able) - count)[len(able) - count]]
    return np.asarray(able[np.argsort(-values[able], kind="stable")[:count]])
