"""Partitions learned from pilot outputs, with cells whose likelihood ratios differ."""

from __future__ import annotations

import math

import numpy as np

from ..events.outputs import Outputs, as_numbers, as_vectors, is_vector, tally
from ..events.partitions import Array, NumberCells, OutcomeCells, Partition
from ..events.scores import Weighted
from ..families.event_families import TABLE, fisher_direction
from ..families.quantile_cells import ratio_by_cell

_FEW = 64  # outcomes with their own cell; the rarer ones share a cell
_LOOKED_AT = 2_000  # outputs of which half or more have to repeat
_TWO = 2  # outcomes, each of which is the complement of the other
_LEAST_HITS = 3  # pilot runs that an outcome needs for its own cell


def learn_cells(x: Outputs, y: Outputs, n_cells: int) -> Partition:
    """A partition of the outputs by estimated likelihood ratio.

    Parameters
    ----------
    x, y : ndarray
        Pilot outputs on each dataset, which are not counted in the cells.
    n_cells : int
        Number of cells for numbers. Up to 64 outcomes have a cell each, regardless of this number.
    """
    width = _commonest_width(x)
    if width is None:
        seen = tally(x[:2000])[0] + tally(y[:2000])[0]
        is_finite = len(seen) <= max(n_cells, _FEW) and 4 * len(seen) <= seen.total()
        if is_finite or not np.isfinite(as_numbers(x).astype(np.float64)).any():
            return _outcome_cells(x, y, max(n_cells, _FEW))
        return _number_cells(as_numbers(x).astype(np.float64), as_numbers(y).astype(np.float64), n_cells, None)
    x, y = as_vectors(x, width), as_vectors(y, width)
    weights = fisher_direction(x, y) or (1.0,) + (0.0,) * (width - 1)
    score = Weighted(weights)
    return _number_cells(score.values(x), score.values(y), n_cells, weights)


def single_outcomes(x: Outputs, y: Outputs, most: int) -> OutcomeCells | None:
    """A cell for each of the commonest outcomes; None for outputs that hardly repeat, and for two outcomes at most.

    Parameters
    ----------
    x, y : ndarray
        Pilot outputs on each dataset, which are not counted in the cells.
    most : int
        Number of cells at most, with the one for all other outcomes.
    """
    if not recur(x, y):
        return None
    (on_x, names_x), (on_y, names_y) = tally(x), tally(y)
    names, seen = names_y | names_x, on_x + on_y
    if min(len(seen), most) <= _TWO:
        return None
    return OutcomeCells(tuple(names[key] for key, _ in seen.most_common(min(TABLE, most) - 1)), len(seen))


def recur(x: Outputs, y: Outputs) -> bool:
    """Whether each of the first outputs on either dataset occurs twice on average, as with a discrete mechanism."""
    return all(2 * len(tally(side[:_LOOKED_AT])[0]) <= len(side[:_LOOKED_AT]) for side in (x, y))


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
    kept = [key for place, (key, hits) in enumerate(common) if hits >= _LEAST_HITS or place == 0]
    kept.sort(key=lambda key: -math.log((on_x[key] + 0.5) / (on_y[key] + 0.5)))
    return OutcomeCells(tuple(names[key] for key in kept), len(on_x | on_y))


def _number_cells(x: Array, y: Array, n_cells: int, weights: tuple[float, ...] | None) -> NumberCells:
    """Fine intervals, merged in the order of their fitted ratio into cells of equal mass on the likelier side."""
    has_others = bool(np.isnan(x).any() or np.isnan(y).any())
    known_x, known_y = np.sort(x[~np.isnan(x)]), np.sort(y[~np.isnan(y)])
    found = ratio_by_cell(known_x, known_y)
    if found is not None:
        cells, ratio, hits_x, hits_y = found
        order = np.argsort(-ratio, kind="stable")
        position = np.maximum(hits_x / len(x), hits_y / len(y))[order].cumsum()
        rank = np.minimum((position / position[-1] * n_cells).astype(np.int64), n_cells - 1)
        different, rank = np.unique(rank, return_inverse=True)
        if len(different) > 1:
            group = np.empty(len(cells), dtype=np.int64)
            group[order] = rank
            return NumberCells(tuple(high for _, high in cells[:-1]), tuple(group.tolist()), weights, has_others)
    # An atom with most of the mass, or infinities: a single cell would be useless.
    edges = _equal_mass(np.sort(np.concatenate([known_x, known_y])), n_cells)
    return NumberCells(edges, tuple(range(len(edges) + 1)), weights, has_others)


def _equal_mass(values: Array, n_cells: int) -> tuple[float, ...]:
    """Edges of intervals with equal numbers of the sorted values, as far as the values differ."""
    if len(values) == 0:
        return ()
    at = np.arange(1, n_cells) * (len(values) - 1) // n_cells
    return tuple(edge for edge in np.unique(values[at]).tolist() if edge < values[-1])
