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
from typing import Any

import numpy as np

from ..events.digit_scores import LowestBit, Residue
from ..events.features import learn_leaves
from ..events.outputs import Outputs
from ..events.scores import Column, Number, Score, Weighted
from .event_families import Family, score_families
from .pilot_split import PilotSplit

_MOST_COLUMNS = 8  # most coordinates of vectors that are looked at, each singly
_RESIDUES = 8  # number of grids between the finest of the outputs and their spread


def bit_families(split: PilotSplit, *, grids: int = _RESIDUES) -> Iterator[Family[Any]]:
    """Events by the lowest bits of the floating-point parts of outputs, and by their residues modulo powers of two.

    `grids` is the number of powers tried.
    """
    for score in _float_scores(split.learn_x, split.learn_y):
        yield from score_families(LowestBit(score), split, fit=False)
        for exponent in _exponents(score.values(split.learn_x), grids):
            yield from score_families(Residue(score, exponent), split, fit=False)


def _float_scores(x: Outputs, y: Outputs) -> list[Score]:
    """Scores that read the numbers in the outputs which are not whole."""
    scores: list[Score]
    if x.dtype == object:
        leaves = learn_leaves(x, y)
        scores = [Column(leaves, column) if path else Number() for column, path in enumerate(leaves.paths, start=1)]
    elif x.dtype.kind != "f":
        scores = []
    elif x.ndim == 1:
        scores = [Number()]
    else:
        width = x.shape[1]
        scores = [Weighted(tuple(float(i == j) for j in range(width))) for i in range(min(width, _MOST_COLUMNS))]
    return [score for score in scores[:_MOST_COLUMNS] if _is_fractional(score.values(x))]


def _is_fractional(values: Any) -> bool:
    values = values[np.isfinite(values)]
    return bool((values != np.rint(values)).any())


def _exponents(values: Any, grids: int) -> list[int]:
    """Exponents of the grids to try, evenly from the finest grid of the numbers to their spread."""
    values = values[np.isfinite(values)]
    finest = int(LowestBit(Number()).values(values).min())
    spread = float(np.subtract(*np.quantile(values, [0.75, 0.25])))
    coarsest = int(np.frexp(spread)[1]) - 1 if spread > 0 else finest
    return sorted({int(k) for k in np.linspace(finest, coarsest, grids + 2)[1:-1].round()})
