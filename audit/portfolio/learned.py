"""Log ratios learned from a pilot: a sum of steps over columns, fitted by logistic regression.

Most mechanisms add independent noise to each coordinate, so the log-likelihood ratio is a sum over columns. The steps
stand at quantiles of each column, and a ridge keeps the many that say nothing near 0; its size has the largest marginal
likelihood on a grid, in the quadratic approximation about 0.

References
----------
MacKay (1992), Bayesian interpolation, Section 4 (the size of a ridge by its evidence).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ..events.features import Columns, leave_out
from ..events.scores import Additive, Piece
from .cells import Array

_SPREADS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # standard deviations of a step, in log ratios
_STEPS = 512  # parameters at most
_NUMBERS = 20_000_000  # in the design at most: 80 megabytes
_NEWTON = 3  # steps from the quadratic solution; the order of outputs hardly changes after them
_FEW = 12  # different values of a column that all have a step of their own


def additive(columns: Columns, x: Array, y: Array, bins: int) -> Additive | None:
    """A sum of steps over the columns; None if no column varies, or there are more than 512 steps.

    Parameters
    ----------
    columns : Columns
    x, y : ndarray, shape (columns, runs)
    bins : int
        Cells of a column that takes more than a few values.
    """
    cuts = [_cuts(np.concatenate(sides), bins) for sides in zip(x, y, strict=True)]
    has_gaps = [bool(np.isnan(on_x).any() or np.isnan(on_y).any()) for on_x, on_y in zip(x, y, strict=True)]
    size = sum(map(len, cuts)) + sum(has_gaps)
    if not 0 < size <= _STEPS:
        if size:
            leave_out("steps", f"no sum of more than {_STEPS} steps was fitted to {len(x):,} columns")
        return None
    runs = max(min(x.shape[1], _NUMBERS // (2 * size)), 1)
    weights = _fitted(*(_design(side[:, :runs], cuts, has_gaps) for side in (x, y)))
    pieces: list[Piece] = []
    missing: list[tuple[int, float]] = []
    at = 0
    for column, (cut, gap) in enumerate(zip(cuts, has_gaps, strict=True)):
        own = weights[at : at + len(cut)].tolist()
        pieces += [(column, edge, edge, rise) for edge, rise in zip(cut.tolist(), own, strict=True)]
        if gap:
            missing.append((column, float(weights[at + len(cut)])))
        at += len(cut) + gap
    return Additive(columns, tuple(pieces), tuple(missing))


def _cuts(values: Array, bins: int) -> Array:
    """Values at which a column has a step: all but the least if there are few, else quantiles."""
    values = values[~np.isnan(values)]
    if len(values) == 0:
        return values
    if len(np.unique(values[:2_000])) <= _FEW and len(different := np.unique(values)) <= _FEW:
        return np.asarray(different[1:])
    levels = np.rint(np.linspace(0.0, 1.0, bins + 1)[1:-1] * (len(values) - 1)).astype(np.int64)
    cuts = np.unique(np.partition(values, levels)[levels])
    return np.asarray(cuts[cuts > values.min()])


def _design(values: Array, cuts: list[Array], has_gaps: list[bool]) -> Array:
    """Whether each run lies at or above each cut, or has no value, shape (steps, runs)."""
    rows = []
    for column, cut, gap in zip(values, cuts, has_gaps, strict=True):
        rows.append(column >= cut[:, None])  # NaN is not
        if gap:
            rows.append(np.isnan(column)[None])
    return np.concatenate(rows).astype(np.float32)


def _fitted(x: Array, y: Array) -> Array:
    design = np.concatenate([x, y], axis=1)
    design -= design.mean(axis=1, keepdims=True)
    label = np.repeat(np.array([1.0, 0.0], np.float32), [x.shape[1], y.shape[1]])
    values, vectors = np.linalg.eigh((design @ design.T).astype(np.float64) / 4.0)
    values = np.maximum(values, 0.0)
    slope = vectors.T @ (design @ (label - 0.5)).astype(np.float64)

    def evidence(spread: float) -> float:
        precision = values + spread**-2
        return float(0.5 * np.sum(slope**2 / precision) - 0.5 * np.sum(np.log1p(values * spread**2)))

    ridge = max(_SPREADS, key=evidence) ** -2
    weights, level = vectors @ (slope / (values + ridge)), 0.0
    for _ in range(_NEWTON):
        share = expit(weights.astype(np.float32) @ design + level)
        precision = share * (1.0 - share)
        information = ((design * precision) @ design.T).astype(np.float64) + ridge * np.eye(len(weights))
        weights = weights + np.linalg.solve(
            information, (design @ (label - share)).astype(np.float64) - ridge * weights
        )
        level += float((label - share).sum() / precision.sum())
    return np.asarray(weights)
