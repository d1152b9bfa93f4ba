"""Events by the low bits of floating-point outputs, which a textbook proof over the real numbers ignores.

Noise from a floating-point generator lies on a grid, and adding an answer moves or coarsens that grid. So nearly every
mechanism with floating-point noise leaves traces of its dataset in the lowest bits. The verdict keeps this question
apart from that of the values: by default the pilot only looks at the bits and warns.

References
----------
Mironov (2012), On significance of the least significant bits for differential privacy.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np

from ..events.leaves import learn_leaves
from ..events.scores import Column, LowestBit, NegativeZero, Number, Residue, Score, Weighted
from .number_families import Family, value_families
from .pilot_split import PilotSplit

_MOST_COLUMNS = 64  # most coordinates of vectors that are looked at, each singly
_RESIDUES = 8  # number of grids between the finest of the outputs and their spread


def bit_families(split: PilotSplit, *, grids: int = _RESIDUES) -> Iterator[Family[Any]]:
    """Events by the low bits of the floating-point parts of outputs: lowest bit, residues, sign of zero.

    `grids` is the number of powers tried.
    """
    for score, values in _floats(split):  # parts of nested outputs are read alike if they are equal, so not there
        zeros = values.map(NegativeZero(score).of_values)
        if np.any(zeros.learn_x == 1.0) or np.any(zeros.learn_y == 1.0):
            yield from value_families(NegativeZero(score), zeros, fit=False)
    for score, values in _float_scores(split):
        yield from value_families(LowestBit(score), values.map(LowestBit(score).of_values), fit=False)
        for exponent in _exponents(values.learn_x, grids):
            residue = Residue(score, exponent)
            yield from value_families(residue, values.map(residue.of_values), fit=False)


def _float_scores(split: PilotSplit) -> Iterator[tuple[Score, PilotSplit]]:
    """Scores that read the numbers in the outputs which are not whole, and these numbers."""
    if split.learn_x.dtype == object:
        yield from _float_leaves(split)
    else:
        yield from ((score, values) for score, values in _floats(split) if _is_fractional(values.learn_x))


def _floats(split: PilotSplit) -> Iterator[tuple[Score, PilotSplit]]:
    """Scores that read the numbers of floating-point arrays, and these numbers."""
    x = split.learn_x
    if x.dtype.kind != "f":
        return
    width = min(x.shape[1], _MOST_COLUMNS) if x.ndim == 2 else 0
    for place in range(width or 1):
        score = Weighted(tuple(float(place == other) for other in range(x.shape[1]))) if width else Number()
        yield score, split.map(score.values)


def _float_leaves(split: PilotSplit) -> Iterator[tuple[Score, PilotSplit]]:
    """The same for objects, whose leaves are read once, because that takes longest."""
    leaves = learn_leaves(split.learn_x, split.learn_y)
    if not leaves.paths:
        return
    first, read = leaves.read(split.learn_x), None
    for column, path in enumerate(leaves.paths[:_MOST_COLUMNS], start=1):
        if not path and _is_fractional(Number().values(split.learn_x)):
            yield Number(), split.map(Number().values)
        elif path and _is_fractional(first[column]):
            if read is None:
                read = PilotSplit(first, *map(leaves.read, (split.learn_y, split.held_x, split.held_y)))
            yield Column(leaves, column), read.map(itemgetter(column))


def _is_fractional(values: Any) -> bool:
    values = values[np.isfinite(values)]
    return bool((values != np.rint(values)).any())


def _exponents(values: Any, grids: int) -> list[int]:
    """Exponents of the grids to try, evenly from the finest grid of the numbers to their spread."""
    values = values[np.isfinite(values)]
    finest = int(LowestBit(Number()).of_values(values).min())
    spread = float(np.subtract(*np.quantile(values, [0.75, 0.25])))
    coarsest = int(np.frexp(spread)[1]) - 1 if spread > 0 else finest
    return sorted({int(k) for k in np.linspace(finest, coarsest, grids + 2)[1:-1].round()})
