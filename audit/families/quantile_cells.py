"""Cells of numbers: closed intervals between quantiles. A value with the mass of a cell gets its own cell."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from .ratio_spline import fit_log_ratio

Array = npt.NDArray[np.float64]
Cells = list[tuple[float, float]]
"""Low and high end of each cell, in order; both ends belong to the cell."""

CELLS = 128
"""Most cells of a fitted curve, with half as many more that are dense in the tails."""
CELL_RUNS_LEAST = 8
"""Fewest runs in a cell of a fitted curve."""


def ratio_by_cell(
    all_x: Array, all_y: Array, values: Array | None = None, *, most: int = CELLS, sloped: bool = False
) -> tuple[Cells, Array, Array, Array] | None:
    """Cells that cover all numbers, with their fitted log ratio of counts and the outputs on x and on y in each.

    Takes sorted outputs, their different values if there are few, and whether the ratio is known to have a slope. None
    if there are fewer than two cells.
    """
    found = fine_cells(all_x, all_y, values, most=most, joined=sloped)
    if found is None:
        return None
    cells, at, hits_x, hits_y = found
    return cells, fit_log_ratio(at, hits_x, hits_y, sloped=sloped).round(9), hits_x, hits_y


def fine_cells(
    all_x: Array, all_y: Array, values: Array | None = None, *, most: int = CELLS, joined: bool = False
) -> tuple[Cells, Array, Array, Array] | None:
    """Cells that cover all numbers, dense in the tails, with a number and the outputs on x and on y in each.

    None if a cell is empty, unless empty cells are `joined` to their neighbours: the scores of outcomes that recur lie
    apart, but a few numbers in the tails of a small pilot are no basis for a curve.
    """
    pooled = merged(all_x, all_y)
    pooled = pooled[: np.searchsorted(pooled, math.nan)]
    if len(pooled) < 2:
        return None
    if values is None:
        wanted = int(np.clip(len(pooled) // CELL_RUNS_LEAST, 2, most))
        tails = expit(np.linspace(-1, 1, most // 2 + 1) * math.log(max(len(pooled) / CELL_RUNS_LEAST, 2.0)))
        cells = quantile_cells(pooled, np.union1d(np.linspace(0.0, 1.0, wanted + 1)[1:-1], tails))
    else:
        edges = [-math.inf, *values[1:-1].tolist(), math.inf] if len(values) > 1 else []
        cells = list(zip(edges, edges, strict=True))
        if cells:
            cells[0], cells[-1] = (-math.inf, float(values[0])), (float(values[-1]), math.inf)
    if len(cells) < 2:
        return None
    hits_x, hits_y = count_cells(cells, all_x), count_cells(cells, all_y)
    is_hit = hits_x + hits_y > 0
    if not is_hit.all() and not joined:
        return None
    if not is_hit.all():
        cells, hits_x, hits_y = _joined(cells, is_hit), hits_x[is_hit], hits_y[is_hit]
        if len(cells) < 2:
            return None
    middles = np.searchsorted(pooled, np.array([low for low, _ in cells])) + (hits_x + hits_y).astype(np.int64) // 2
    at = pooled[np.minimum(middles, len(pooled) - 1)]
    return (cells, at, hits_x, hits_y) if np.isfinite(at).all() else None


def _joined(cells: Cells, is_hit: npt.NDArray[np.bool_]) -> Cells:
    """Every cell without hits joined to the one below it, or to the first one with hits."""
    kept = [cell for cell, hit in zip(cells, is_hit.tolist(), strict=True) if hit]
    lows = [-math.inf, *(low for low, _ in kept[1:])]
    return [(low, math.nextafter(after, -math.inf)) for low, after in pairwise(lows)] + [(lows[-1], math.inf)]


def merged(a: Array, b: Array) -> Array:
    """Two sorted arrays merged, NaN last; on sorted parts a stable sort takes a sixth of the time."""
    return np.sort(np.concatenate([a, b]), kind="stable")


def distinct(ordered: Array) -> Array:
    """The different values of a sorted array; every NaN is kept."""
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def quantile_cells(pooled: Array, levels: Array) -> Cells:
    """Closed intervals that cover all numbers, cut at quantiles. A value with the mass of a cell gets its own."""
    edges, repeats = np.unique(pooled[((len(pooled) - 1) * levels).astype(np.int64)], return_counts=True)
    cells: Cells = []
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


def count_cells(cells: Cells, values: Array) -> Array:
    """Sorted values in each cell, shape (cells,)."""
    low, high = np.array(cells).T
    counts = np.searchsorted(values, high, side="right") - np.searchsorted(values, low, side="left")
    return np.asarray(counts, dtype=np.float64)
