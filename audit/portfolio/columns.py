"""The columns of a pilot's outputs: every number that an event may be an interval of.

An output that is a number is one column; a vector has its coordinates, and any other output its parts. Further
columns are statistics of several columns, learned log ratios, and the clearest of thousands of candidates on the first
half of the pilot: a value given a key, a product of two columns, a parity, a key, a word of a text, a remainder.

A learned column is scored crosswise: each half of the pilot by what the other half taught, so all runs count. A picked
column is counted only on the second half. The main runs are scored by what the whole pilot taught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy

from ..events.features import (
    OF_ALL,
    Columns,
    Coordinates,
    OrderStatistics,
    Released,
    Standardised,
    Statistics,
    leave_out,
)
from ..events.leaves import LEARNED, KeyedValues, Summaries, learn_leaves
from ..events.outputs import Outputs, as_vectors, vector_width
from ..events.scores import Additive, Coordinate, DifferentSizes, Number, Piece, Projection, Score
from ..events.scores import Column as ColumnScore
from ..floating_point_errors import in_one_thread
from ..options import MOST_IN_BLOCK
from .cells import FIRST, SINGLY, Array, Column, Curve, Cut, cut_columns, scored_crosswise
from .floating_point_leaks import bit_columns
from .picks import BINS, MOST, clear_cases, clear_keys, clear_pairs, clear_parities, digit_scores, have_keys
from .table import table_columns

_CURVES = 8  # coordinates or parts at most that have curves of their own (docs/decisions/0025-limits.md)
SUM_CELLS = (8, 2)
"""Cells of a column in a learned sum: few keep weak signals in many columns, more follow strong ones."""

_SHOWN = 3  # picks with columns of their own (docs/decisions/0025-limits.md)
NUMBERS = 4_000_000
"""Numbers on each dataset, at most, in a grown pilot and in columns that are compared: 32 megabytes."""


@in_one_thread
def cuts_of(x: Outputs, y: Outputs, *, bits: bool = False) -> list[Cut]:
    """The columns of equally many outputs on x and on y, cut into cells; low bits only if asked for."""
    return cut_columns([*columns_of(x, y), *(bit_columns(x, y) if bits else ())])


def columns_of(x: Outputs, y: Outputs) -> Iterator[Column]:
    """The columns of equally many outputs on x and on y, without those of low bits."""
    width = vector_width(x, y, x, y)
    if width:
        yield from _of_vectors(as_vectors(x, width), as_vectors(y, width), width)
    elif x.dtype == object:
        yield from _of_objects(x, y)
    else:
        on_x, on_y = Number().values(x), Number().values(y)
        yield Column(Number(), on_x, on_y, is_output=True, is_part=True)
        yield from _digits(Number(), on_x, on_y, x, y)
    yield from table_columns(x, y)


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """Columns of numbers as read from the outputs on each dataset, shape (columns, runs)."""

    columns: Columns
    x: Array
    y: Array

    @classmethod
    def of(cls, columns: Columns, x: Outputs, y: Outputs) -> _Read:
        return cls(columns, columns.read(x), columns.read(y))

    def __len__(self) -> int:
        return len(self.x)

    @property
    def half(self) -> int:
        """Runs in the first half."""
        return int(self.x.shape[1] // 2)

    def runs(self, start: int, end: int | None = None) -> _Read:
        """The same columns of some of the runs."""
        return _Read(self.columns, self.x[:, start:end], self.y[:, start:end])


def _of_vectors(x: Outputs, y: Outputs, width: int) -> Iterator[Column]:
    score = partial(Coordinate, width=width)
    read = _Read.of(Coordinates(width), x, y)
    yield from _singly(read, range(width), score, is_output=width == 1)
    if width <= _CURVES:
        for place in range(width):
            yield from _digits(score(place), read.x[place], read.y[place])
    if width == 1:
        return
    sizes = DifferentSizes(width)
    ties_x, ties_y = sizes.values(x), sizes.values(y)
    if min(np.nanmin(ties_x, initial=width), np.nanmin(ties_y, initial=width)) < width:
        yield Column(sizes, ties_x, ties_y)
    yield from _several(read, range(width))
    if 2 < width <= _STEPS:
        yield from _learned(_Read.of(Coordinates(width, differences=True), x, y), SUM_CELLS[:1])
    if width > SINGLY:
        yield from _projected(x, y)
    if any(np.isnan(side).any() for side in (read.x, read.y)):
        released = _Read.of(Released(width), x, y)
        yield from _singly(released, range(len(released)), is_part=False)
        yield from _learned(released, SUM_CELLS[:1])
    ranks: tuple[int, ...] = ()
    if width > SINGLY:
        ends = SINGLY // 4  # at each end; the other half lies between
        between = np.linspace(ends, width - 1 - ends, SINGLY - 2 * ends).round().astype(int).tolist()
        ranks = tuple(sorted({*range(ends), *between, *range(width - ends, width)}))
        leave_out("ranks", f"of {width:,} sorted coordinates, {len(ranks)} were read")
    ordered = _Read.of(OrderStatistics(width, ranks), x, y)
    distance = screened(ordered.x[:, : ordered.half], ordered.y[:, : ordered.half])
    yield from _picked(ordered, np.argsort(-distance, kind="stable").tolist())


def _of_objects(x: Outputs, y: Outputs) -> Iterator[Column]:
    from ..events.text_columns import learn_texts

    leaves = learn_leaves(x, y)

    def score(place: int) -> Score:
        is_whole = 1 <= place <= len(leaves.paths) and not leaves.paths[place - 1]
        return Number() if is_whole else ColumnScore(leaves, place)

    read, numbers = _Read.of(leaves, x, y), range(1, 1 + len(leaves.paths))
    yield from _singly(read, leaves.kinds, score, curve="each")
    yield from _singly(read, numbers, score, is_output=len(leaves.names) == 2 and leaves.paths == ((),))
    if len(numbers) <= _CURVES:
        for place in numbers:
            yield from _digits(score(place), read.x[place], read.y[place])
    if len(leaves.names) > 2:
        yield from _several(read, leaves.numbers)
    if len(leaves.names) > 2 and len(leaves.builds) > 1:
        totals = _Read.of(Summaries(), x, y)
        yield from _singly(totals, range(len(totals)), is_part=False)
        yield from _learned(totals, SUM_CELLS[:1])
    half = len(x) // 2
    if have_keys(x, y) and (keys := clear_keys(x[:half], y[:half])):
        yield from _picked(_Read.of(KeyedValues(tuple(keys[:MOST])), x, y))
    if (texts := learn_texts(x[:half], y[:half])) is not None:
        parts = _Read.of(texts, x, y)
        distance = screened(parts.x[:, : parts.half], parts.y[:, : parts.half])
        yield from _picked(parts, np.argsort(-distance, kind="stable").tolist())


def _singly(
    read: _Read,
    places: Sequence[int],
    score: Callable[[int], Score] | None = None,
    *,
    is_output: bool = False,
    is_part: bool = True,
    curve: Curve = "ramps",
) -> Iterator[Column]:
    """A column for each place, or for those that differ most on the first half if there are very many."""
    first, wanted = 0, list(places)
    if len(wanted) > SINGLY:
        first = read.half
        wanted = [wanted[at] for at in most_different(read.x[wanted, :first], read.y[wanted, :first], SINGLY)]
        leave_out("width", f"of {len(places):,} parts of outputs, the {SINGLY} that differ most were examined singly")
    for place in wanted:
        one = ColumnScore(read.columns, place) if score is None else score(place)
        values = read.x[place, first:], read.y[place, first:]
        own = curve if len(places) <= _CURVES else None
        yield Column(one, *values, first, is_output=is_output, is_part=is_part, curve=own)


def _several(read: _Read, numbers: Sequence[int]) -> Iterator[Column]:
    """What several columns say together: statistics, learned sums, and what is picked among pairs and sets."""
    if len(numbers) > 1:
        statistics = Statistics(read.columns, tuple(numbers))
        for place in range(len(statistics.names) if len(numbers) <= SINGLY else OF_ALL):
            x, y = (statistics.from_columns(side, place) for side in (read.x, read.y))
            yield Column(ColumnScore(statistics, place), x, y, curve="ramps" if place < OF_ALL else None)
    yield from _learned(read, SUM_CELLS)
    if not 2 <= len(read) <= SINGLY:
        leave_out("pairs", f"of {len(read):,} parts of outputs, no pairs, products and parities were examined")
        return
    first = read.runs(0, read.half)
    for pick in (clear_cases, clear_pairs, clear_parities):
        picked = pick(read.columns, first.x, first.y)
        if picked is not None:
            yield from _picked(_Read(picked, picked.of_columns(read.x), picked.of_columns(read.y)))


def _picked(read: _Read, order: Sequence[int] | None = None) -> Iterator[Column]:
    """The first columns in an order that the first half of the runs gave, and a learned sum of all, on the second."""
    half = read.half
    for place in (range(len(read)) if order is None else order)[:_SHOWN]:
        yield Column(ColumnScore(read.columns, place), read.x[place, half:], read.y[place, half:], half)
    score = additive(read.columns, read.x[:, :half], read.y[:, :half], SUM_CELLS[0]) if len(read) > 1 else None
    if score is not None:
        yield Column(score, score.add_up(read.x[:, half:]), score.add_up(read.y[:, half:]), half, is_ratio=True)


def _learned(read: _Read, bins: Sequence[int]) -> Iterator[Column]:
    """Learned sums of all columns, scored crosswise."""
    parts = read.runs(0, read.half), read.runs(read.half)
    for number in bins:
        first, second, whole = (additive(each.columns, each.x, each.y, number) for each in (*parts, read))
        if first is not None and second is not None and whole is not None:
            halves = [(part.x, part.y) for part in parts]
            yield scored_crosswise(whole, (first, second), halves, Additive.add_up)


def _digits(score: Score, x: Array, y: Array, *outputs: Outputs) -> Iterator[Column]:
    """How a number is written: the clearest remainder, decimals, zeros at the end, last digits."""
    half = len(x) // 2
    for each, on_x, on_y in digit_scores(score, x, y, half, *outputs):
        yield Column(each, on_x[half:], on_y[half:], half, curve="each")


def screened(x: Array, y: Array) -> Array:
    """Largest difference of the distribution functions of each column at 15 quantiles, each in its standard errors.

    So a value that is rare counts by how clearly it differs, however rare it is. For equal distributions the distance
    exceeds 5 with probability 2e-5 at most, as far as the errors are normal. NaN counts as infinite.
    """
    runs = max(min(x.shape[1], y.shape[1], LEARNED, NUMBERS // max(len(x), 1)), 1)
    found = np.zeros(len(x))
    levels = np.linspace(0.0, 1.0, BINS + 1)[1:-1]
    step = max(MOST_IN_BLOCK // runs, 1)
    for first in range(0, len(x), step):
        part = slice(first, first + step)
        on_x, on_y = (np.where(np.isnan(side[part, :runs]), np.inf, side[part, :runs]) for side in (x, y))
        pooled = np.sort(np.concatenate([on_x[:, :FIRST], on_y[:, :FIRST]], axis=1), axis=1)
        for cut in pooled[:, (levels * (pooled.shape[1] - 1)).astype(np.int64)].T[:, :, None]:
            for is_in in (np.less_equal, np.less):
                p, q = (is_in(side, cut).mean(axis=1) for side in (on_x, on_y))
                error = np.sqrt((p * (1.0 - p) + q * (1.0 - q)) / runs) + 1.0 / runs  # also where both are 0 or 1
                found[part] = np.maximum(found[part], np.abs(p - q) / error)
    return found


def most_different(x: Array, y: Array, most: int) -> list[int]:
    """The columns, in order, or the `most` whose distribution functions, or means in all runs, differ most."""
    if len(x) <= most or min(x.shape[1], y.shape[1]) < 2:
        return list(range(min(len(x), most)))
    with np.errstate(all="ignore"):  # infinite and missing numbers
        error = np.sqrt(x.var(axis=1) / x.shape[1] + y.var(axis=1) / y.shape[1])
        apart = np.abs(x.mean(axis=1) - y.mean(axis=1)) / error
    found = np.maximum(screened(x, y), np.where(np.isfinite(apart), apart, 0.0))
    return sorted(np.argsort(-found, kind="stable")[:most].tolist())


# Sums of all coordinates of vectors with too many of them for steps of each.
#
# The standardised coordinates, and their squares, are added up with equal weights, and with learned ones: differences
# of the means in standard errors, moved towards 0 by a threshold. Few different coordinates need a high one, many none.
# A sum's mean difference in standard errors is Σ w(d)·θ/√Σ w(d)² for true differences θ and observed ones d, and
# Σ w(d)·d − w'(d) estimates its numerator without bias. Of the cosines of the places, few differ where a block or a
# periodic pattern does. With more coordinates than runs, a sum fits the runs that taught it: it is counted on others.
#
# References
# ----------
# Stein (1981), Estimation of the mean of a multivariate normal distribution, Lemma 1. Bickel & Levina (2004), Some
# theory for Fisher's linear discriminant function, 'naive Bayes', Section 2 (no covariances where columns are many).

_Turn = Callable[[Array], Array]


def _projected(x: Outputs, y: Outputs) -> Iterator[Column]:
    """Sums of all coordinates, and of their squares, that the first half of the runs taught, on the second half."""
    half = len(x) // 2
    if half < 2:
        return
    cosines = partial(scipy.fft.dct, norm="ortho"), partial(scipy.fft.idct, norm="ortho")
    turns: tuple[tuple[_Turn, _Turn], ...] = ((np.asarray, np.asarray), cosines)
    columns = standardised(x[:half], y[:half])
    rows: list[Outputs] = [columns.read(side[:half]).T.astype(np.float32) for side in (x, y)]
    later = [columns.read(side[half:]) for side in (x, y)]
    for is_of_squares in (False, True):
        rows = [np.square(side, out=side) if is_of_squares else side for side in rows]
        learned = [(weights(turn(rows[0]), turn(rows[1])), turn_back) for turn, turn_back in turns]
        taught = [turn_back(each) for each, turn_back in learned if each is not None]
        for number, each in enumerate((np.ones(len(columns.centres)), *taught)):
            grains = np.rint(each * (np.iinfo(np.int16).max / np.abs(each).max())).astype(np.int64)
            score = Projection(columns, tuple(grains.tolist()), is_of_squares)
            on_x, on_y = map(score.add_up, later)
            yield Column(score, on_x, on_y, half, is_ratio=number > 0)


def standardised(x: Outputs, y: Outputs) -> Standardised:
    """The coordinates with the median of the first runs as centre, and the quartiles as spread, in few binary digits.

    The spread is the mean distance from the centre if the quartiles are equal.
    """
    centres, spreads = np.zeros((2, x.shape[1]))
    step = max(MOST_IN_BLOCK // (2 * FIRST), 1)
    for first in range(0, x.shape[1], step):
        part = slice(first, first + step)
        pooled = np.concatenate([side[:FIRST, part] for side in (x, y)]).astype(np.float64)
        pooled = np.sort(np.where(np.isfinite(pooled), pooled, np.nan), axis=0)
        last = np.maximum(np.count_nonzero(~np.isnan(pooled), axis=0) - 1, 0)
        low, middle, high = (np.take_along_axis(pooled, (last * share // 4)[None], 0)[0] for share in (1, 2, 3))
        away = np.nansum(np.abs(pooled - middle), axis=0) / (last + 1)
        spread = np.where(high > low, (high - low) / (2.0 * scipy.special.ndtri(0.75)), away)
        unit = np.exp2(np.floor(np.log2(np.where(spread > 0.0, spread, 1.0))) - 7)
        centres[part], spreads[part] = (np.nan_to_num(np.rint(each / unit) * unit) for each in (middle, spread))
    return Standardised(tuple(centres.tolist()), tuple(spreads.tolist()))


def weights(x: Array, y: Array) -> Array | None:
    """Weights of the columns whose sum distinguishes x from y best, from runs of shape (runs, columns).

    None if the estimate says that no sum does.
    """
    error = np.sqrt(sum(side.var(axis=0, ddof=1, dtype=np.float64) / len(side) for side in (x, y)))
    known = np.where(error > 0.0, error, np.inf)
    apart = (x.mean(axis=0, dtype=np.float64) - y.mean(axis=0, dtype=np.float64)) / known
    sizes = -np.sort(-np.abs(apart))
    threshold, count = np.append(sizes[1:], 0.0), np.arange(1.0, len(sizes) + 1.0)
    total, squares = sizes.cumsum(), np.square(sizes).cumsum()
    shown = squares - threshold * total - count
    norm = np.sqrt(np.maximum(squares - threshold * (2.0 * total - count * threshold), 0.0))
    ratio = np.divide(shown, norm, out=np.full(len(norm), -np.inf), where=norm > 1e-9 * sizes[0])
    best = int(ratio.argmax())
    if not ratio[best] > 0.0:
        return None
    found = np.sign(apart) * np.maximum(np.abs(apart) - threshold[best], 0.0) / known
    return np.asarray(found, dtype=np.float32)


# Log ratios learned from a pilot: a sum of steps over columns, fitted by logistic regression.
#
# Most mechanisms add independent noise to each coordinate, so the log-likelihood ratio is a sum over columns. The
# steps stand at quantiles of each column, and a ridge keeps the many that say nothing near 0; its size has the largest
# marginal likelihood on a grid, in the quadratic approximation about 0. The curvature there bounds that of the
# likelihood everywhere, so every step with it goes uphill.
#
# References
# ----------
# MacKay (1992), Bayesian interpolation, Section 4 (the size of a ridge by its evidence). Böhning & Lindsay (1988),
# Monotonicity of quadratic-approximation algorithms, Section 5 (logistic regression with a fixed curvature).

_SPREADS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # standard deviations of a step, in log ratios
_STEPS = 512  # parameters at most, as the time grows with their third power: docs/decisions/0012-large-data.md
_IN_DESIGN = 1 << 24  # most numbers in the design, whose counts are then exact in single precision: 64 megabytes
# Steps from the quadratic solution; the order of outputs barely changes after them. The last ones, in double precision,
# take away most of the rounding that differs between machines, and the grain nearly always the rest. Equal outputs
# have equal scores, as sums of whole grains are exact in any order.
_ASCENTS, _GRAIN = (np.float32,) * 4 + (np.float64,) * 6, 2.0**-24
_FEW = 12  # different values of a column that all have a step of their own (docs/decisions/0025-limits.md)


def additive(columns: Columns, x: Array, y: Array, bins: int) -> Additive | None:
    """A sum of steps over the columns, each in so many bins; None if no column says anything, or for over 512 steps."""
    if len(x) > _STEPS and np.count_nonzero((x != x[:, :1]).any(axis=1) | (y != x[:, :1]).any(axis=1)) > _STEPS:
        leave_out("steps", f"no sum of more than {_STEPS} steps was fitted to {len(x):,} columns")
        return None
    cuts = [_cuts(np.concatenate(sides), bins) for sides in zip(x, y, strict=True)]
    has_gaps = [bool(np.isnan(on_x).any() or np.isnan(on_y).any()) for on_x, on_y in zip(x, y, strict=True)]
    size = sum(map(len, cuts)) + sum(has_gaps)
    if not 0 < size <= _STEPS:
        if size:
            leave_out("steps", f"no sum of more than {_STEPS} steps was fitted to {len(x):,} columns")
        return None
    runs = max(min(x.shape[1], _IN_DESIGN // (2 * size)), 1)
    fitted = _fitted(*(_design(side[:, :runs], cuts, has_gaps) for side in (x, y)))
    pieces: list[Piece] = []
    missing: list[tuple[int, float]] = []
    at = 0
    for column, (cut, gap) in enumerate(zip(cuts, has_gaps, strict=True)):
        own = fitted[at : at + len(cut)].tolist()
        pieces += [(column, edge, edge, rise) for edge, rise in zip(cut.tolist(), own, strict=True) if rise]
        if gap and fitted[at + len(cut)]:
            missing.append((column, float(fitted[at + len(cut)])))
        at += len(cut) + gap
    return Additive(columns, tuple(pieces), tuple(missing)) if pieces or missing else None


def _cuts(values: Array, bins: int) -> Array:
    """Values at which a column has a step: all but the least if there are few, else quantiles."""
    values = np.sort(values)
    values = values[: np.searchsorted(values, np.nan)]
    if len(values) == 0:
        return values
    different = values[np.concatenate([[True], values[1:] > values[:-1]])]
    if len(different) <= _FEW:
        return np.asarray(different[1:])
    levels = np.rint(np.linspace(0.0, 1.0, bins + 1)[1:-1] * (len(values) - 1)).astype(np.int64)
    cuts = np.unique(values[levels])
    return np.asarray(cuts[cuts > values[0]])


def _design(values: Array, cuts: list[Array], has_gaps: list[bool]) -> Array:
    """Whether each run lies at or above each cut, or has no value, shape (steps, runs)."""
    rows = []
    for column, cut, gap in zip(values, cuts, has_gaps, strict=True):
        rows.append(column >= cut[:, None])  # NaN is not
        if gap:
            rows.append(np.isnan(column)[None])
    return np.concatenate(rows).astype(np.float32)


def _fitted(x: Array, y: Array) -> Array:
    """The steps with which a logistic regression separates x from y."""
    design, label = np.concatenate([x, y], axis=1), np.repeat([1.0, 0.0], [x.shape[1], y.shape[1]])
    on_x, on_y = (side.sum(axis=1, dtype=np.float64) for side in (x, y))
    mean = (on_x + on_y) / len(label)
    values, vectors = np.linalg.eigh(((design @ design.T).astype(np.float64) - len(label) * np.outer(mean, mean)) / 4.0)
    design -= mean.astype(np.float32)[:, None]
    values = np.maximum(values, 0.0)
    slope = vectors.T @ (0.5 * (on_x - on_y) - mean * (label - 0.5).sum())

    def evidence(spread: float) -> float:
        precision = values + spread**-2
        return float(0.5 * np.sum(slope**2 / precision) - 0.5 * np.sum(np.log1p(values * spread**2)))

    ridge = max(_SPREADS, key=evidence) ** -2
    weights, level = vectors @ (slope / (values + ridge)), 0.0
    for kind in _ASCENTS:
        gradient, total = -ridge * weights, 0.0
        size = len(label) if kind is np.float32 else max(MOST_IN_BLOCK // len(design), 1)
        for first in range(0, len(label), size):
            part = design[:, first : first + size].astype(kind, copy=False)
            share = scipy.special.expit(weights.astype(kind) @ part + kind(level))
            rest = label[first : first + size].astype(kind) - share
            gradient = gradient + part @ rest
            total += float(rest.sum(dtype=np.float64))
        weights = weights + vectors @ ((vectors.T @ gradient) / (values + ridge))
        level += 4.0 * total / len(label)
    return np.asarray(np.rint(weights / _GRAIN) * _GRAIN)
