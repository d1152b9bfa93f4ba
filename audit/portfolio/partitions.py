"""Partitions learned from pilot outputs, with cells whose likelihood ratios differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from ..claims.claim import Claim
from ..events.events import Array, Labels, NumberCells, OutcomeCells, Partition, Scored
from ..events.features import Coordinates
from ..events.outputs import Outputs, as_numbers, as_vectors, is_vector, n_different, tally
from ..events.scores import Coordinate, Number, Score
from ..inference.divergence_test import smoothed, telling_divergence
from .cells import FIRST, REPEATED, Column, Cut
from .choice import Choice, directed_shares
from .columns import SUM_CELLS, additive
from .table import FEW

_BINS, _BIN_RUNS = 64, 32  # bins for divergences at most, and the pilot runs that each needs


@dataclass(frozen=True, slots=True)
class Bins:
    """A partition for the test of Rényi divergences, with the runs from which it was learned."""

    partition: Partition
    known_x: Labels  # these runs in each bin
    known_y: Labels
    show_more: bool  # whether they show more against the claim than the event that was chosen


def learn_cells(x: Outputs, y: Outputs, n_cells: int, *, spread: bool = False) -> Partition:
    """A partition of the outputs by estimated likelihood ratio, learned from pilot outputs.

    Numbers have so many cells, even in mass, or, if they are spread, in the mean of mass and log-likelihood ratio. Up
    to 64 outcomes have a cell each.
    """
    width = _commonest_width(x)
    if width is None:
        seen = tally(x[:FIRST])[0] + tally(y[:FIRST])[0]
        is_finite = len(seen) <= max(n_cells, FEW) and 4 * len(seen) <= seen.total()
        if is_finite or not np.isfinite(as_numbers(x).astype(np.float64)).any():
            return _outcome_cells(x, y, max(n_cells, FEW))
        return _number_cells(Number(), x, y, n_cells, spread=spread)
    x, y = as_vectors(x, width), as_vectors(y, width)
    columns = Coordinates(width)
    score = additive(columns, columns.read(x), columns.read(y), SUM_CELLS[0])
    return _number_cells(score or Coordinate(0, width), x, y, n_cells, spread=spread)


def recur(x: Outputs, y: Outputs) -> bool:
    """Whether each of the first outputs on either dataset occurs twice on average, as with a discrete mechanism."""
    return all(2 * n_different(side[:FIRST]) <= len(side[:FIRST]) for side in (x, y))


def _commonest_width(outputs: Outputs) -> int | None:
    """Length of the vectors if most outputs are vectors of one length, else None."""
    if outputs.ndim == 2:
        return int(outputs.shape[1]) or None
    lengths = [len(output) for output in outputs if type(output) is tuple and output] if outputs.dtype == object else []
    width = int(np.bincount(lengths).argmax()) if lengths else 0
    return width if sum(is_vector(output, width) for output in outputs) > len(outputs) / 2 else None


def _outcome_cells(x: Outputs, y: Outputs, most: int) -> OutcomeCells:
    (on_x, names_x), (on_y, names_y) = tally(x), tally(y)
    names = names_y | names_x
    common = (on_x + on_y).most_common(most)
    kept = [key for place, (key, counts) in enumerate(common) if counts >= REPEATED or place == 0]
    kept.sort(key=lambda key: -math.log((on_x[key] + 0.5) / (on_y[key] + 0.5)))
    return OutcomeCells(tuple(names[key] for key in kept), len(on_x | on_y))


def learn_bins(x: Outputs, y: Outputs, choice: Choice, claim: Claim) -> Bins:
    """Bins for the test of a claim on Rényi divergences.

    They are cells of the outputs, or of the score by which the pilot chose its event, whichever shows more. Evenness in
    mass and log ratio at once loses less than in mass, at any order: .1% of a Gaussian's divergence of order 1, and at
    order 32 what rare outputs show.
    """
    number = number_of_bins(min(len(x), len(y)))
    event = choice.event
    partitions, found = list[Partition](), list[tuple[float, Bins]]()
    if not isinstance(event, Scored) or _commonest_width(x) is None:  # of vectors the pilot has tried a linear score
        partitions.append(learn_cells(x, y, number, spread=True))
    if isinstance(event, Scored):
        partitions.append(_number_cells(event.score, x, y, number, spread=True))
    for partition in partitions:
        on_x, on_y = partition.count(x), partition.count(y)
        p, q = smoothed(on_x), smoothed(on_y)
        _, away = telling_divergence(p, q, claim, len(x), len(y), min(len(x), len(y)))
        found.append((away, Bins(partition, on_x, on_y, bool(away > _above_claim(choice, claim, len(x))))))
    return max(found, key=itemgetter(0))[1]


def number_of_bins(runs: int) -> int:
    """The largest number of bins that so many pilot runs on each dataset make."""
    return min(max(runs // _BIN_RUNS, 2), _BINS)


def _above_claim(choice: Choice, claim: Claim, runs: int) -> float:
    """Standard errors by which the frequencies of the chosen event would exceed the claim in so many runs."""
    p, q = (min(max(side, 0.5 / runs), 1.0 - 0.5 / runs) for side in directed_shares(choice))
    error_p, error_q = (math.sqrt(side * (1.0 - side) / runs) for side in (p, q))
    at = np.array([q, min(q + error_q, 1.0)])
    allowed, beside = claim.max_power(at)[0].tolist()
    both = math.sqrt(2.0) if choice.opposite is not None else 1.0
    return float(both * (p - allowed) / math.hypot(error_p, beside - allowed))


def _number_cells(score: Score, on_x: Outputs, on_y: Outputs, n_cells: int, *, spread: bool) -> NumberCells:
    """Fine intervals, merged in the order of their fitted ratio into cells of equal mass on the more likely side.

    If they are to be spread, the mean of the mass and of the log ratio, both scaled to 1, rises evenly over the cells.
    """
    x, y = score.values(on_x), score.values(on_y)
    has_others = bool(np.isnan(x).any() or np.isnan(y).any())
    cut = Cut.of(Column(score, x, y, is_ratio=not isinstance(score, Number)))
    if cut is not None and cut.ratio is not None and len(cut.edges):
        ratio = cut.ratio[:-1]  # without the cell of outputs that are not numbers
        order = np.argsort(-ratio, kind="stable")
        counts = np.maximum(cut.count_x, cut.count_y)[:-1][order]
        position = counts.cumsum() / counts.sum()
        if spread and np.ptp(ratio) > 0.0:
            position = 0.5 * (position + (ratio.max() - ratio[order]) / np.ptp(ratio))
        rank = np.minimum((position * n_cells).astype(np.int64), n_cells - 1)
        rank = np.maximum(rank, rank[counts > 0.0][0])  # unseen cells have no bin to themselves
        different, rank = np.unique(rank, return_inverse=True)
        if len(different) > 1:
            group = np.empty(len(ratio), dtype=np.int64)
            group[order] = rank
            edges = tuple(math.nextafter(edge, -math.inf) for edge in cut.edges.tolist())
            return NumberCells(edges, tuple(group.tolist()), score, has_others)
    # An atom with most of the mass, or infinities: a single cell would be useless.
    both = np.concatenate([x, y])
    edges = _equal_mass(np.sort(both[~np.isnan(both)]), n_cells)
    return NumberCells(edges, tuple(range(len(edges) + 1)), score, has_others)


def _equal_mass(values: Array, n_cells: int) -> tuple[float, ...]:
    """Edges of intervals with equal numbers of the sorted values, as far as the values differ."""
    if len(values) == 0:
        return ()
    at = np.arange(1, n_cells) * (len(values) - 1) // n_cells
    return tuple(edge for edge in np.unique(values[at]).tolist() if edge < values[-1])
