"""Scores learned from the pilot for outputs of several columns: estimates of the log-likelihood ratio.

Most mechanisms add independent noise to each coordinate, or to each step between coordinates, so the log-likelihood
ratio is a sum over columns; otherwise small trees combine several columns. The expected bounds of the scores' events on
held-out runs decide which score is used, so nothing here can raise a false alarm.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import Columns, leave_out
from ..events.outputs import row_keys
from ..events.scores import Additive, Column, Forest, Piece, Tree
from ..floating_point_errors import in_one_thread
from .number_families import Family, of_learned, ordered_families
from .pilot_split import PilotSplit
from .quantile_cells import count_cells, fine_cells, quantile_cells
from .ratio_spline import fit_ramps

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_BINS = (2, 8)  # bins of a column: 2 preserve weak signals in many columns, 8 follow strong ones
_FEW = 12  # most different values of a column that are all distinguished
_MOST_STEPS = 512  # most parameters of a joint model
# Runs on each dataset for a joint model: 20,000 runs give the same event if the signal is strong, so more are used only
# if the steps gain less than ten times the likelihood that as many parameters gain by chance.
_TOGETHER_RUNS, _CLEAR = (20_000, 100_000), 10.0
_SINGLE_RUNS = 50_000  # most runs on each dataset for the curves of single columns
_FITTED_COLUMNS = 24  # most columns that are fitted with a curve each
_CELLS = 48  # cells of a fitted curve
_LEAST_RUNS = 1_000  # fewest runs on each dataset for a joint model
MOST_LEARNED = 200_000
"""Most runs on each dataset that a score is learned from."""
_TREES, _DEPTH, _TREE_BINS, _LEAST_TREE_RUNS, _TREE_COLUMNS = 20, 3, 64, 3_000, 64
_TREE_RUNS, _TREE_NUMBERS = 50_000, 400_000  # most runs on each dataset, and most numbers in their columns


def additive_scores(columns: Columns, x: Array, y: Array, *, together: bool = True) -> Iterator[Additive]:
    """Sums over columns, simple ones first: equal columns, columns fitted singly, and steps fitted jointly.

    Parameters
    ----------
    columns : Columns
    x, y : ndarray, shape (columns, runs)
        Columns of the pilot outputs on each dataset, at most `MOST_LEARNED` runs.
    together : bool
        Whether to fit steps jointly, which takes longest.
    """
    yield from _alike(columns, x, y)
    if len(x) <= _FITTED_COLUMNS:
        yield _each_by_itself(columns, x[:, :_SINGLE_RUNS], y[:, :_SINGLE_RUNS])
    else:
        leave_out("curves", f"no curves were fitted to {len(x):,} columns for a sum, as is done for {_FITTED_COLUMNS}")
    if together and min(x.shape[1], y.shape[1]) >= _LEAST_RUNS:
        first = zip(x[:, : _TOGETHER_RUNS[0]], y[:, : _TOGETHER_RUNS[0]], strict=True)
        sets = zip(*(_edges(np.concatenate(both)) for both in first), strict=True)
        for cuts in dict.fromkeys(sets):
            if 0 < sum(map(len, cuts)) <= _MOST_STEPS:
                yield _together(columns, x, y, cuts)
            elif cuts:
                leave_out("steps", f"no joint model of more than {_MOST_STEPS} steps was fitted to {len(x):,} columns")


def forest(columns: Columns, x: Array, y: Array) -> Forest | None:
    """A few boosted small trees, for interactions of columns; None for too few runs or too many columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # imported here because the import takes a second

    if len(x) > _TREE_COLUMNS or min(x.shape[1], y.shape[1]) < _LEAST_TREE_RUNS:
        return None
    runs = min(_TREE_RUNS, _TREE_NUMBERS // len(x))
    x, y = x[:, :runs], y[:, :runs]
    rows = np.concatenate([x, y], axis=1).T
    # A missing value lies above every threshold, as in `Forest`.
    limit = 1e30
    rows = np.clip(np.where(np.isnan(rows), limit, rows), -limit, limit)
    model = HistGradientBoostingClassifier(
        max_iter=_TREES, max_depth=_DEPTH, max_bins=_TREE_BINS, learning_rate=0.3, early_stopping=False, random_state=0
    )
    in_one_thread(model.fit)(rows, _labels(x, y))  # the library was loaded after the choice began
    return Forest(columns, tuple(_tree(predictor.nodes) for (predictor,) in model._predictors))


def _tree(nodes: npt.NDArray[np.void]) -> Tree:
    is_leaf = nodes["is_leaf"].astype(bool)
    return Tree(
        tuple(np.where(is_leaf, -1, nodes["feature_idx"]).astype(int).tolist()),
        tuple(nodes["num_threshold"].astype(float).tolist()),
        tuple(nodes["left"].astype(int).tolist()),
        tuple(nodes["right"].astype(int).tolist()),
        tuple(np.where(is_leaf, nodes["value"], 0.0).tolist()),
    )


def _labels(x: Array, y: Array) -> Integers:
    return np.repeat([1, 0], [x.shape[1], y.shape[1]])


def _each_by_itself(columns: Columns, x: Array, y: Array) -> Additive:
    """Sum of the fitted log-likelihood ratios of single columns: correct for independent columns."""
    pieces: list[Piece] = []
    missing: list[tuple[int, float]] = []
    for column, sides in enumerate(zip(x, y, strict=True)):
        numbers = [np.sort(side[~np.isnan(side)]) for side in sides]
        values = _few_values(np.concatenate(numbers))
        below = 0.0
        if values is not None:
            ratios = _log_ratios(*(count_cells([(v, v) for v in values.tolist()], part) for part in numbers))
            pieces += [(column, at, at, rise) for at, rise in zip(values[1:].tolist(), np.diff(ratios), strict=True)]
            below = float(ratios[0])
        elif (found := fine_cells(numbers[0], numbers[1], most=_CELLS)) is not None:
            below, ramps = fit_ramps(*found[1:])
            pieces += [(column, *ramp) for ramp in ramps]
        absent = [len(side) - len(part) for side, part in zip(sides, numbers, strict=True)]
        if any(absent):
            missing.append((column, float(_log_ratios(np.array(absent[0]), np.array(absent[1]))) - below))
    return Additive(columns, tuple(pieces), tuple(missing))


def _log_ratios(hits_x: Array, hits_y: Array) -> Array:
    return np.asarray(np.log((hits_x + 0.5) / (hits_y + 0.5)))


def _few_values(values: Array) -> Array | None:
    """The different values in increasing order, if there are few but some."""
    if len(values) == 0 or len(np.unique(values[:2_000])) > _FEW:
        return None
    different = np.unique(values)
    return different if len(different) <= _FEW else None


def _alike(columns: Columns, x: Array, y: Array) -> Iterator[Additive]:
    """Number of columns above their middle, and the sum of all columns: for signals too weak to show in single columns.

    The steps are used as they are, and with the sign in which each seems to lean.
    """
    steps: list[Piece] = []
    slopes: list[Piece] = []
    turned: list[Piece] = []
    for column, (on_x, on_y) in enumerate(zip(x, y, strict=True)):
        both = np.concatenate([on_x, on_y])
        both = both[np.isfinite(both)]
        low, high = (float(both.min()), float(both.max())) if len(both) else (0.0, 0.0)
        if not 0.0 < high - low < math.inf:
            continue
        middle = float(np.mean(both)) if _few_values(both) is not None else float(np.median(both))
        lean = 1.0 if np.mean(on_x >= middle) >= np.mean(on_y >= middle) else -1.0
        steps.append((column, middle, middle, 1.0))
        turned.append((column, middle, middle, lean))
        spread = float(np.std((both - low) / (high - low)))  # in units of the range: squares of tiny numbers are 0
        slopes.append((column, low, high, 1.0 / spread))
    if len(steps) > 1:
        yield Additive(columns, tuple(steps))
        yield Additive(columns, tuple(slopes))
        if len({lean for *_, lean in turned}) > 1:
            yield Additive(columns, tuple(turned))


def _edges(values: Array) -> list[tuple[float, ...]]:
    """Cuts of a column for each number of bins: at each value if there are few, otherwise at quantiles."""
    values = values[~np.isnan(values)]
    few = _few_values(values)
    if few is not None:
        return [tuple(few[1:].tolist())] * len(_BINS)
    if len(values) == 0:
        return [()] * len(_BINS)
    values = np.sort(values)
    levels = (np.linspace(0.0, 1.0, bins + 1)[1:-1] for bins in _BINS)
    return [tuple(low for low, _ in quantile_cells(values, at)[1:]) for at in levels]


def _together(columns: Columns, x: Array, y: Array, cuts: tuple[tuple[float, ...], ...]) -> Additive:
    """Steps at the cuts of all columns, fitted jointly by logistic regression; on more runs if a fit is unclear."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    # One parameter for each cell of a column except the first, and one for a missing value.
    starts = np.concatenate([[0], np.cumsum([len(cut) + 1 for cut in cuts])])
    for runs in _TOGETHER_RUNS:
        rows, labels = np.concatenate([x[:, :runs], y[:, :runs]], axis=1), _labels(x[:, :runs], y[:, :runs])
        cells, labels, times = _tallied(_cells(rows, cuts), labels)
        design = _steps(cells, starts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the score need not be optimal
            fitted = in_one_thread(LogisticRegression(max_iter=60).fit)(design, labels, sample_weight=times)
        odds = np.where(labels == 1, 1.0, -1.0) * fitted.decision_function(design)
        gain = float(times @ (math.log(2.0) - np.logaddexp(0.0, -odds)))
        if runs >= min(x.shape[1], y.shape[1]) or 2.0 * gain > _CLEAR * starts[-1]:
            break
    weights = fitted.coef_[0]
    pieces: list[Piece] = []
    missing: list[tuple[int, float]] = []
    for column, cut in enumerate(cuts):
        own = weights[starts[column] : starts[column + 1]]
        for edge, rise in zip(cut, np.diff(np.concatenate([[0.0], own[:-1]])).tolist(), strict=True):
            pieces.append((column, edge, edge, rise))
        if np.isnan(rows[column]).any():
            missing.append((column, float(own[-1])))
    return Additive(columns, tuple(pieces), tuple(missing))


def _cells(rows: Array, cuts: tuple[tuple[float, ...], ...]) -> Integers:
    """The number of the cell of each run in each column, shape (runs, columns); the last one for a missing value."""
    cells = np.empty(rows.shape[::-1], dtype=np.int64)
    for column, cut in enumerate(cuts):
        cell = np.searchsorted(np.array(cut), rows[column], side="right")
        cells[:, column] = np.where(np.isnan(rows[column]), len(cut) + 1, cell)
    return cells


def _tallied(cells: Integers, labels: Integers) -> tuple[Integers, Integers, Array]:
    """The different rows of cells and labels, and how often each occurs: few where outputs take few values."""
    _, first, times = np.unique(row_keys(np.column_stack([cells, labels])), return_index=True, return_counts=True)
    return cells[first], labels[first], times.astype(np.float64)


def _steps(cells: Integers, starts: Integers) -> Any:
    """The cells as a sparse matrix of ones, shape (rows, parameters)."""
    from scipy.sparse import csr_array

    is_set = cells > 0
    places = (starts[:-1] + cells - 1)[is_set]
    ends = np.concatenate([[0], is_set.sum(axis=1).cumsum()])
    return csr_array((np.ones(len(places)), places, ends), shape=(len(cells), int(starts[-1])))


def chosen_columns(columns: Columns, read: PilotSplit, *, single: int) -> Iterator[Family[Any]]:
    """Events by each of the first columns alone, and by sums over all of them.

    Parameters
    ----------
    columns : Columns
        Columns chosen on the learning half, the clearest first.
    read : PilotSplit
        These columns of the pilot outputs, shape (columns, runs).
    single : int
        Most columns that have events of their own.
    """
    for place in range(min(single, len(read.held_x))):
        held = PilotSplit.in_half(read.held_x[place], read.held_y[place]).ordered
        yield from ordered_families(Column(columns, place), held, fit=True)
    if len(read.held_x) > 1:
        for score in additive_scores(columns, read.learn_x, read.learn_y, together=False):
            yield from of_learned(score, score.add_up(read.held_x), score.add_up(read.held_y))
