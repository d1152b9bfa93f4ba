"""Candidates for columns, kept apart because they are chosen on half of a pilot, before any column is.

No single column shows a leak of one key among hundreds, signs of two columns that agree more often on x, a parity of
five columns, or the remainder of a number that rarely recurs, and there are too many of these to test. So each kind of
candidate is compared on the first half of the pilot. The clearest become columns, counted on the other half.

A candidate is clear if it differs by 1.5 standard errors more than √(2 ln k): the largest of k differences that are
noise rarely exceeds that.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import REACH, Columns, Conditional, Parities, Products, leave_out
from ..events.leaves import LEARNED, Name, named_values, same_name
from ..events.named_parts import EXACT
from ..events.outputs import Outputs, outcome_list
from ..events.scores import (
    MOST_DIGITS,
    Decimals,
    LastDigits,
    OfScore,
    Remainder,
    Score,
    TrailingZeros,
    Units,
)
from .cells import ATOMS, FIRST, SINGLY, Array

Bits = npt.NDArray[np.bool_]
_Moments = tuple[Array, Array]

# Standard errors beyond the largest of k differences that are noise: docs/decisions/0005-learned-scores.md.
_CLEARLY = 1.5
MOST = 24
"""Clear candidates of a kind, at most."""

_LEAST_COUNTS = 8  # on both datasets together, for a difference in standard errors


def beyond_chance(candidates: int) -> float:
    """Standard errors that the largest of so many differences that are noise rarely exceeds."""
    return _CLEARLY + math.sqrt(2.0 * math.log(max(candidates, 2)))


# A column given the value of another.

_MOST_KEYS = 1_000  # values of a column that are examined singly; this bounds the time
_PER_KEY = 4  # runs for each value, on average, of a column that repeats
BINS = 16
"""Bins in which two distributions are compared."""


def clear_cases(columns: Columns, x: Array, y: Array) -> Conditional | None:
    """Columns where another one has a value, for the cases that clearly differ, the clearest first."""
    found: dict[tuple[int, float], tuple[float, tuple[int, float, int]]] = {}
    compared = 0
    cells = [_binned(*both) for both in zip(x, y, strict=True)]
    for key, both in enumerate(zip(x, y, strict=True)):
        first = both[0][:FIRST]
        if not 1 < len(np.unique(first)) <= len(first) / _PER_KEY:
            continue
        known = np.unique(np.concatenate(both))
        known = known[~np.isnan(known)][: _MOST_KEYS + 1]
        if len(known) > _MOST_KEYS:
            name = columns.names[key]
            leave_out("values of keys", f"{name} has more than {_MOST_KEYS:,} values, which were not examined singly")
        if not 2 <= len(known) <= _MOST_KEYS:
            continue
        places = [np.minimum(np.searchsorted(known, side), len(known) - 1) for side in both]
        is_key = [~np.isnan(side) for side in both]
        for column in range(len(x)):
            if column == key:
                continue
            counts = [
                np.bincount(place[ok] * BINS + cell[ok], minlength=len(known) * BINS).reshape(-1, BINS)
                for place, cell, ok in zip(places, cells[column], is_key, strict=True)
            ]
            for value, distance in zip(known.tolist(), _largest(*counts).tolist(), strict=True):
                if distance > found.get((key, value), (0.0, None))[0]:
                    found[key, value] = distance, (key, value, column)
            compared += len(known)
    least = beyond_chance(compared)
    cases = tuple(case for distance, case in sorted(found.values(), reverse=True)[:MOST] if distance >= least)
    return Conditional(columns, cases) if cases else None


def _binned(x: Array, y: Array) -> list[npt.NDArray[np.int64]]:
    """The bin of each number among pooled quantiles; NaN is in the last bin."""
    pooled = np.sort(np.concatenate([x[:FIRST], y[:FIRST]]))
    pooled = pooled[~np.isnan(pooled)]
    if len(pooled) == 0:
        return [np.zeros(len(side), dtype=np.int64) for side in (x, y)]
    edges = np.unique(pooled[(np.linspace(0.0, 1.0, BINS)[1:-1] * (len(pooled) - 1)).astype(np.int64)])
    return [np.searchsorted(edges, side, side="right") for side in (x, y)]


def _largest(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> Array:
    """Largest difference of the counts up to a bin, or beyond it, in standard errors, for each row of counts."""
    largest = np.zeros(len(x))
    for step in (1, -1):
        on_x, on_y = (side[:, ::step].cumsum(axis=1)[:, :-1] for side in (x, y))
        counts = on_x + on_y
        distance = np.where(counts >= _LEAST_COUNTS, np.abs(on_x - on_y) / np.sqrt(np.maximum(counts, 1)), 0.0)
        largest = np.maximum(largest, distance.max(axis=1))
    return largest


# Products of two columns.

_RUNS = 50_000  # most runs on each dataset, which bound the time (docs/decisions/0025-limits.md)


def clear_pairs(columns: Columns, x: Array, y: Array) -> Products | None:
    """Products of two columns for the pairs whose mean product clearly differs, the clearest first."""
    x, y = x[:, :_RUNS], y[:, :_RUNS]
    centres, spreads = np.zeros(len(x)), np.ones(len(x))
    for place, both in enumerate(zip(x, y, strict=True)):
        pooled = np.concatenate(both)
        pooled = pooled[np.isfinite(pooled)]
        if len(pooled):
            centres[place] = np.median(pooled)
            spreads[place] = np.mean(np.abs(pooled - centres[place])) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = [(side - centres[:, None]) / spreads[:, None] for side in (x, y)]
    scaled = [np.clip(np.where(np.isnan(side), 0.0, side), -REACH, REACH) for side in scaled]
    distance = np.maximum(_pair_distances(*scaled), _pair_distances(*map(np.sign, scaled)))
    least = beyond_chance(len(x) * (len(x) - 1))
    order = np.argsort(-distance, axis=None, kind="stable")[:MOST]
    pairs = [divmod(int(place), len(x)) for place in order if distance.flat[place] >= least]
    factors = tuple((a, float(centres[a]), b, float(centres[b])) for a, b in pairs)
    return Products(columns, factors) if factors else None


def _pair_distances(x: Array, y: Array) -> Array:
    """Difference of the mean products of each pair of columns, beyond what the columns' own means explain.

    In standard errors, shape (columns, columns); 0 on the diagonal and below.
    """
    parts = [_products(side) for side in (x, y)]
    error = np.sqrt(sum(variance for _, variance in parts))
    apart = np.abs(parts[0][0] - parts[1][0])
    return np.triu(np.where(error > 0.0, apart / np.where(error > 0.0, error, 1.0), 0.0), 1)


def _products(values: Array) -> tuple[Array, Array]:
    """Covariance of each pair of columns, and its variance, each of shape (columns, columns)."""
    runs = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    squares = centred**2
    covariance = centred @ centred.T / runs
    return covariance, np.maximum(squares @ squares.T / runs - covariance**2, 0.0) / runs


# Parities of three or more columns.

_ALL_SETS = 18  # most columns of which all sets are compared: 2¹⁸ counts take two megabytes
_OPERATIONS = 1e9  # most products of triples, which bound the time (docs/decisions/0025-limits.md)
_SEARCHED = 1_000  # most clear sets, of which those of one or two columns are left out (docs/decisions/0025-limits.md)


def clear_parities(columns: Columns, x: Array, y: Array) -> Parities | None:
    """Parities of three or more columns, for the sets that clearly differ, the clearest first."""
    if len(x) < 3 or x.size == 0:
        return None
    centres = np.array([_centre(np.concatenate(both)) for both in zip(x, y, strict=True)])
    with np.errstate(invalid="ignore"):
        sets = _clear_sets(*(side[:, :_RUNS] >= centres[:, None] for side in (x, y)))
    members = tuple(tuple((place, float(centres[place])) for place in places) for places in sets)
    return Parities(columns, members) if members else None


def _centre(values: Array) -> float:
    """The roundest number that may be the median, or the mean if no value is smaller; NaN if all values are equal."""
    values = np.sort(values[np.isfinite(values)])
    if len(values) == 0 or values[0] == values[-1]:
        return math.nan
    half, error = len(values) / 2, math.sqrt(len(values)) / 2  # of the number of values below the median
    low, high = (float(values[int(half + side * error)]) for side in (-1, 1))
    centre = 0.0 if low <= 0.0 <= high else low / 2 + high / 2
    for digits in range(1, 17):
        rounder = float(f"{centre:.{digits}g}")
        if low <= rounder <= high:
            centre = rounder
            break
    return centre if values[0] < centre else float(np.mean(values / 2) * 2)


def _clear_sets(x: Bits, y: Bits) -> list[tuple[int, ...]]:
    """Sets of three or more columns with a clear difference between x and y, the clearest first."""
    width = len(x)
    if width <= _ALL_SETS:
        distance, count = _set_distances(_of_all_sets(x), _of_all_sets(y), x.shape[1], y.shape[1]), 2**width
    else:
        leave_out("parities", f"of {width} columns, parities of three and of all were examined, but no others")
        runs = min(x.shape[1], y.shape[1], int(_OPERATIONS / width**3))
        triples = _set_distances(_of_triples(x[:, :runs]), _of_triples(y[:, :runs]), runs, runs)
        whole = _set_distances(_of_whole(x), _of_whole(y), x.shape[1], y.shape[1])
        distance, count = np.append(triples.ravel(), whole), math.comb(width, 3) + 1
    order = np.argsort(-distance, kind="stable")[:_SEARCHED]
    clear = order[distance[order] >= beyond_chance(count)].tolist()
    found = (members for place in clear if len(members := _members(place, width)) >= 3)
    return list(itertools.islice(found, MOST))


def _members(place: int, width: int) -> tuple[int, ...]:
    """The columns of the set at this place of the distances."""
    if width <= _ALL_SETS:
        return tuple(column for column in range(width) if place >> column & 1)
    if place == width**3:
        return tuple(range(width))
    return place // width**2, place // width % width, place % width


def _set_distances(x: _Moments, y: _Moments, runs_x: int, runs_y: int) -> Array:
    """Difference of the means, in standard errors, for means and mean squares of any shape."""
    (mean_x, square_x), (mean_y, square_y) = x, y
    variance = (square_x - mean_x**2) / runs_x + (square_y - mean_y**2) / runs_y
    return np.abs(mean_x - mean_y) / np.sqrt(np.maximum(variance, 1.0 / (runs_x * runs_y)))


def _of_all_sets(bits: Bits) -> _Moments:
    """Mean and mean square of ∏ (±1 − mean) over the columns of each set, shape (2^columns,); bit i is column i.

    Less the mean, so that a set shows only what smaller ones do not.
    """
    width, runs = bits.shape
    patterns = (bits * (1 << np.arange(width))[:, None]).sum(axis=0)
    shares = np.bincount(patterns, minlength=1 << width) / runs
    means = 2.0 * bits.mean(axis=1) - 1.0
    moments = []
    for power in (1, 2):
        table = shares.copy()
        for column, mean in enumerate(means.tolist()):
            low, high = np.moveaxis(table.reshape(-1, 2, 1 << column), 1, 0)
            table = np.stack([low + high, (-1.0 - mean) ** power * low + (1.0 - mean) ** power * high], axis=1).ravel()
        moments.append(table)
    return moments[0], moments[1]


def _of_triples(bits: Bits) -> _Moments:
    """The same for each set of three columns a < b < c, shape (columns, columns, columns); 0 elsewhere."""
    width, runs = bits.shape
    moments = []
    for values in (signs := _signs(bits), signs**2):
        table = np.zeros((width,) * 3)
        for a in range(width - 2):
            pairs = values[a] * values[a + 1 :]
            table[a, a + 1 :] = pairs @ values.T / runs
        first, second, third = np.indices(table.shape, sparse=True)
        moments.append(np.where((first < second) & (second < third), table, 0.0))
    return moments[0], moments[1]


def _of_whole(bits: Bits) -> _Moments:
    """The same for the set of all columns."""
    product = _signs(bits).prod(axis=0, dtype=np.float64)
    return np.array([product.mean()]), np.array([(product**2).mean()])


def _signs(bits: Bits) -> npt.NDArray[np.float32]:
    """±1 less its mean, shape (columns, runs)."""
    signs = np.where(bits, np.float32(1.0), np.float32(-1.0))
    signs -= signs.mean(axis=1, keepdims=True)
    return signs


# Keys of histograms and tables.

_MOST_NUMBERS = 200_000  # in the outputs on which keys are compared
# Outputs on each dataset that show whether there are keys, and how many: docs/decisions/0025-limits.md.
_SHOWN, _SAMPLED = 200, 20
_MOST_OF_ONE = 2_500  # numbers of an output: reading them takes milliseconds
_MOST_NAMES = 4_000  # keys that are compared, the commonest (docs/decisions/0025-limits.md)


def have_keys(x: Outputs, y: Outputs) -> bool:
    """Whether outputs name keys, or more numbers than have columns of their own."""
    names: set[Any] = set()
    for output in outcome_list(x[:_SHOWN]) + outcome_list(y[:_SHOWN]):
        for name, _ in named_values(output):
            names.add(same_name(name))
            if name[0] or len(names) > SINGLY:
                return True
    return False


def clear_keys(x: Outputs, y: Outputs) -> list[Name]:
    """The keys whose values or counts clearly differ between equally many outputs, the clearest first."""
    numbers: dict[Any, int] = {}
    named: list[Name] = []
    numbered, values, ends = array("q"), array("d"), []
    runs = _affordable(x, y)
    for side in (x[:runs], y[:runs]):
        for output in outcome_list(side):
            for name, value in named_values(output):
                number = numbers.setdefault(same_name(name), len(named))
                if number == len(named):
                    named.append(name)
                numbered.append(number)
                values.append(value)
        ends.append(len(numbered))
    if not named:
        return []
    names, is_on_x = np.array(numbered, dtype=np.int64), np.arange(len(numbered)) < ends[0]
    if len(named) > _MOST_NAMES:
        leave_out("keys", f"of {len(named):,} keys in outputs, the {_MOST_NAMES:,} commonest were examined singly")
    commonest = np.argsort(-np.bincount(names, minlength=len(named)), kind="stable")[:_MOST_NAMES]
    place_of = np.full(len(named), -1)
    place_of[commonest] = np.arange(len(commonest))
    distance = _key_distances(place_of[names], np.array(values), is_on_x, len(commonest))
    order, least = np.argsort(-distance, kind="stable"), beyond_chance(len(commonest))
    return [named[commonest[place]] for place in order.tolist() if distance[place] >= least][:MOST]


def _affordable(x: Outputs, y: Outputs) -> int:
    """Outputs on each dataset that are compared, by the numbers in the first few; none if these have too many."""
    few = outcome_list(x[:_SAMPLED]) + outcome_list(y[:_SAMPLED])
    numbers = max(1.0, sum(sum(1 for _ in named_values(output)) for output in few) / max(len(few), 1))
    if numbers > _MOST_OF_ONE:
        leave_out("keys", f"outputs have more than {_MOST_OF_ONE:,} numbers, so these were not examined by their keys")
        return 0
    return min(len(x), len(y), LEARNED, int(_MOST_NUMBERS / numbers))


def _key_distances(
    names: npt.NDArray[np.int64], values: npt.NDArray[np.float64], is_on_x: npt.NDArray[np.bool_], count: int
) -> npt.NDArray[np.float64]:
    """Largest difference of the counts of values up to a value, or beyond it, in standard errors, for each name.

    The names are 0, …, count − 1; −1 stands for names that are not compared.
    """
    order = np.lexsort((values, names))
    order = order[np.searchsorted(names[order], 0) :]
    names, values, signs = names[order], values[order], np.where(is_on_x[order], 1, -1)
    if len(names) == 0:
        return np.zeros(count)
    starts = np.searchsorted(names, np.arange(count))
    sizes = np.diff(np.append(starts, len(names)))
    totals = np.add.reduceat(signs, starts)
    up_to = np.cumsum(signs)
    up_to -= np.repeat(up_to[starts] - signs[starts], sizes)
    counts = np.arange(len(names)) - np.repeat(starts, sizes) + 1
    # Equal values are on the same side of every cut.
    is_cut = np.append((names[1:] != names[:-1]) | (values[1:] != values[:-1]), True)
    distance = np.zeros(len(names))
    for ahead, runs in ((up_to, counts), (np.repeat(totals, sizes) - up_to, np.repeat(sizes, sizes) - counts)):
        is_counted = is_cut & (runs >= _LEAST_COUNTS)
        distance = np.maximum(distance, np.where(is_counted, np.abs(ahead) / np.sqrt(np.maximum(runs, 1)), 0.0))
    return np.maximum.reduceat(distance, starts)


# How a number is written.

_DIVISORS = (2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16)
_FRACTIONS = 20  # cells for fractional parts (docs/decisions/0025-limits.md)
_FOR_DECIMALS = 5_000  # first numbers on each dataset whose decimals are counted, as text
_FEW_ON_GRID = 3  # numbers with fewer decimals among the first from which it is looked at
_HARDLY_RECUR = 0.9  # share of different fractional parts in the first runs of noise without a grid


def digit_scores(
    score: Score, x: Array, y: Array, half: int, *outputs: Outputs
) -> Iterator[tuple[Score, Array, Array]]:
    """Scores by how a number is written that clearly differ on the first half of the runs, with their values.

    The outputs themselves are given for digits that doubles do not hold; none for parts of outputs.
    """
    integers = [side for side in outputs if side.dtype.kind in "iu" and len(side)]
    if any(max(-int(side.min()), int(side.max())) > EXACT for side in integers):
        last = LastDigits(None)
        on_x, on_y = (np.asarray(last.values(side), dtype=np.float64) for side in outputs)
        yield last, on_x, on_y
        yield from digit_scores(last, on_x, on_y, half)
    known_x, known_y = (side[:half][np.isfinite(side[:half])] for side in (x, y))
    if min(len(known_x), len(known_y)) == 0:
        return
    for each, read in _candidates(score, known_x, known_y):
        yield each, each.of_values(read(x)), each.of_values(read(y))


def _candidates(score: Score, x: Array, y: Array) -> Iterator[tuple[OfScore, Any]]:
    """The clear scores, and what turns values of the number into those that they read."""
    decimals = Decimals(score)
    on_grid = [np.count_nonzero(decimals.of_values(side[:_FOR_DECIMALS]) < MOST_DIGITS) for side in (x, y)]
    if max(on_grid) >= _FEW_ON_GRID and _differ(decimals.of_values(x), decimals.of_values(y), MOST_DIGITS + 1):
        yield decimals, np.asarray
    first = x[:FIRST]
    if len(np.unique(first)) <= min(ATOMS, len(first) // 2):
        return
    if all((side == np.rint(side)).all() for side in (first, y[:FIRST])):
        if max(np.abs(x).max(), np.abs(y).max()) > EXACT:
            return
        zeros = TrailingZeros(score)
        if _differ(zeros.of_values(x), zeros.of_values(y), MOST_DIGITS + 1):
            yield zeros, np.asarray
        yield from _remainder(score, x, y, _DIVISORS)
    elif len(np.unique(np.mod(first, 1.0))) > _HARDLY_RECUR * len(first):
        yield from _remainder(score, x, y, (1,))
    elif (most := int(decimals.of_values(first).max())) < MOST_DIGITS:
        units = Units(score, most)
        for each, _ in _remainder(units, units.of_values(x), units.of_values(y), _DIVISORS):
            yield each, units.of_values
    # What is left is noise on a binary grid, which the look at low bits sees.


def _remainder(score: Score, x: Array, y: Array, divisors: tuple[int, ...]) -> Iterator[tuple[OfScore, Any]]:
    """The remainder in which the values differ most, if clearly."""
    distance, divisor = max((_remainder_distance(x, y, divisor), divisor) for divisor in divisors)
    if distance >= beyond_chance(sum(divisors)):
        yield Remainder(score, divisor), np.asarray


def _differ(x: Array, y: Array, cells: int) -> bool:
    on_x, on_y = (np.nan_to_num(side, nan=0.0).astype(np.int64) for side in (x, y))
    return _difference(on_x, on_y, cells) >= beyond_chance(cells)


def _remainder_distance(x: Array, y: Array, divisor: int) -> float:
    """Largest difference of the counts of a remainder, in standard errors."""
    cells = _FRACTIONS if divisor == 1 else divisor
    on_x, on_y = ((np.mod(side, divisor) * (cells / divisor)).astype(np.int64) % cells for side in (x, y))
    return _difference(on_x, on_y, cells)


def _difference(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64], cells: int) -> float:
    """Largest difference of the shares in a cell, in standard errors."""
    count_x, count_y = (np.bincount(side, minlength=cells) / len(side) for side in (x, y))
    error = np.sqrt(count_x * (1.0 - count_x) / len(x) + count_y * (1.0 - count_y) / len(y) + 1.0 / (len(x) * len(y)))
    return float((np.abs(count_x - count_y) / error).max())
