"""The net: plain events of every column in both directions, each tested exactly on its own part of alpha.

An event that the pilot did not see costs its part of alpha, not the audit: by the union bound at least one of the exact
tests refutes a claim that holds with probability at most alpha, for any parts that sum to 1 and were fixed before the
main runs. Three tenths of the net's alpha are spread evenly over the widths of events and then over their places; the
rest goes to the leading events of the pilot by rank, as 1, 1/2, 1/3, …, once by expected bound, once by standard errors
above the claim, once among the values that recur.

Proof: docs/proofs/choices.md

References
----------
Genovese, Roeder & Wasserman (2006), False discovery control with p-value weighting, Section 3 (weighted Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..claims.claim import Claim
from ..events.events import ColumnCells, Event, Labels
from ..inference.guess_test import is_symmetric
from ..inference.net_test import clearance, rough_bound
from .cells import RECURS, Array, Cut, Integers, event_of

_EVEN, _BY_BOUND, _BY_CLEARANCE, _RECURRING = 0.3, 0.25, 0.2, 0.25
_RANKED, _TRIED = 32, 2_000  # places of a list, and events that are looked at for them
_SHOWN = 3.0  # standard errors of the main runs at which the pilot's frequencies would give an expected bound


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """The events of all columns, with each one's part of the net's error probability in either direction.

    Attributes
    ----------
    cells : ColumnCells
        What is counted.
    low, high : ndarray of int, shape (events,)
        The first cell of each event, and the cell after its last, among the cells of all columns.
    column : ndarray of int, shape (events,)
        The column of each event.
    weights : ndarray, shape (2, events)
    """

    cells: ColumnCells
    low: Integers
    high: Integers
    column: Integers
    weights: Array

    @classmethod
    def of(cls, cuts: Sequence[Cut], claim: Claim, runs: int) -> Net | None:
        """The net for a test of `runs` main runs on each dataset; None if no column has more than two cells with hits.

        Of two outcomes each is the complement of the other, so the events of the choice are all that there are.
        """
        if not any(np.count_nonzero(cut.hits_x + cut.hits_y) > 2 for cut in cuts):
            return None
        width = np.concatenate([cut.width for cut in cuts])
        groups, group, sizes = np.unique(width, return_inverse=True, return_counts=True)
        even = 1.0 / sizes[group] / len(groups) / 2.0
        places = _Places.of(cuts)
        hits_x, hits_y, pilot = places.hits_x, places.hits_y, np.array([cut.runs for cut in cuts])[places.column]
        promise, clear = [], []
        for p, q, directed in ((hits_x, hits_y, claim), (hits_y, hits_x, claim.reversed())):
            z, promised = _SHOWN * np.sqrt(pilot / runs), np.full(len(p), -np.inf)
            most = rough_bound(p, q, pilot, pilot, directed, z, quickly=True)
            near = np.argsort(-most, kind="stable")[:_TRIED]
            promised[near] = rough_bound(p[near], q[near], pilot[near], pilot[near], directed, z[near])
            promise.append(promised)
            clear.append(clearance(p, q, pilot, pilot, directed))
        by_bound, by_clearance = np.concatenate(promise), np.concatenate(clear)
        if is_symmetric(claim):  # the complement says the same in the other direction
            is_large = np.tile(hits_x + hits_y > pilot, 2)
            by_bound[is_large] = by_clearance[is_large] = -np.inf
        by_bound[by_bound <= 0.0] = -np.inf
        recurring = np.where(np.tile(width, 2) == RECURS, by_bound, -np.inf)
        lists = (
            (_EVEN, np.tile(even, 2)),
            (_BY_BOUND, places.by_rank(by_bound)),
            (_BY_CLEARANCE, places.by_rank(by_clearance)),
            (_RECURRING, places.by_rank(recurring)),
        )
        share = sum(part for part, weights in lists if weights.any())
        weights = sum((part / share * each for part, each in lists), np.zeros(2 * len(width)))
        cells = ColumnCells(
            tuple(cut.column.score for cut in cuts), tuple(tuple(edges.tolist()) for edges in places.edges)
        )
        first = np.concatenate([[0], np.cumsum(cells.sizes)[:-1]])[places.column]
        return cls(cells, first + places.low, first + places.high, places.column, weights.reshape(2, -1))

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self.low)

    def hits(self, in_cells: Labels) -> Labels:
        """Hits in each event, of hits in the cells of all columns."""
        up_to = np.concatenate([[0], np.cumsum(in_cells)])
        return np.asarray(up_to[self.high] - up_to[self.low])

    def event(self, index: int) -> Event:
        """One of the events."""
        column = int(self.column[index])
        first = sum(self.cells.sizes[:column])
        inside = np.zeros(self.cells.sizes[column], np.bool_)
        inside[self.low[index] - first : self.high[index] - first] = True
        return event_of(self.cells.scores[column], np.array(self.cells.edges[column]), inside)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where the events of both directions lie: number of the column, first cell, cell after the last, hits.

    The cells are those between the edges at which an event begins or ends.
    """

    edges: tuple[Array, ...]
    column: Integers
    low: Integers
    high: Integers
    hits_x: Array
    hits_y: Array

    @classmethod
    def of(cls, cuts: Sequence[Cut]) -> _Places:
        column = np.concatenate([np.full(len(cut.low), number) for number, cut in enumerate(cuts)])
        ends = [np.unique(np.concatenate([cut.low, cut.high])) for cut in cuts]
        edges = tuple(
            cut.edges[each[(each > 0) & (each <= len(cut.edges))] - 1] for cut, each in zip(cuts, ends, strict=True)
        )
        low, high = (
            np.concatenate([np.searchsorted(each, places) for each, places in zip(ends, sides, strict=True)])
            for sides in ([cut.low for cut in cuts], [cut.high for cut in cuts])
        )
        hits_x = np.concatenate([cut.in_events(cut.hits_x) for cut in cuts])
        hits_y = np.concatenate([cut.in_events(cut.hits_y) for cut in cuts])
        return cls(edges, column, low, high, hits_x, hits_y)

    def by_rank(self, value: Array) -> Array:
        """Weights 1, 1/2, … in the order of the values, which sum to 1; 0 for all others.

        An event has no rank if it overlaps an earlier one of its column and direction, or has the same hits as an
        earlier one: it is the same set by another name.
        """
        weight, count = np.zeros(len(value)), len(self.low)
        kept: list[tuple[int, int, int, int]] = []
        seen: set[tuple[int, float, float]] = set()
        for place in np.argsort(-value, kind="stable")[:_TRIED].tolist():
            if value[place] == -np.inf or len(kept) == _RANKED:
                break
            way, at = divmod(place, count)
            own = int(self.column[at]), way
            low, high = int(self.low[at]), int(self.high[at])
            name = way, float(self.hits_x[at]), float(self.hits_y[at])
            if name in seen or any((c, w) == own and a < high and low < b for c, w, a, b in kept):
                continue
            seen.add(name)
            kept.append((*own, low, high))
            weight[place] = 1.0 / len(kept)
        return weight / max(float(weight.sum()), 1e-300)
