"""Name and shame: publish each row as it is, with a small probability. What delta may allow at worst."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.claims.pure_approx_gaussian import ApproxDP
from ...audit.errors import DatasetError
from ..laws.discrete_law import DiscreteLaw
from ..laws.product import ProductLaw
from ..noise_samplers import Integers, pieces

HIDDEN: Final = -1
"""In the place of a row that was not exposed."""


@dataclass(frozen=True, slots=True)
class NameAndShame:
    """Each row with probability delta, or else `HIDDEN`: (0, delta)-DP for replaced rows, and no pure guarantee.

    Rows are exposed independently: delta·n of n people on average, and with delta = 1/(100n) nobody in 99 runs of 100.
    So what a delta allows is harmless only if it is far below 1/n.

    Parameters
    ----------
    delta : float
        In (0, 1).

    Raises
    ------
    ClaimError
        For a delta outside this range.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, after Definition 2.4 (publishing the rows
    of a few).

    Examples
    --------
    >>> NameAndShame(delta=0.5).sample([7, 8, 9], 2, np.random.default_rng(1)).tolist()
    [[-1, -1, 9], [-1, 8, 9]]
    """

    delta: float

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0, 1, "each row's probability of being exposed", closed=False)

    def __str__(self) -> str:
        return f"NameAndShame(delta={self.delta:g})"

    @property
    def epsilon(self) -> float:
        """Zero: unless the row is exposed, the output does not depend on it."""
        return 0.0

    @property
    def claim(self) -> ApproxDP:
        """(0, delta)-DP, when one row is replaced."""
        return ApproxDP(0.0, self.delta)

    def law(self, dataset: Any) -> ProductLaw:
        """The output's exact law."""
        chances = (math.log1p(-self.delta), math.log(self.delta))
        return ProductLaw(tuple(DiscreteLaw((HIDDEN, row), chances) for row in _whole_rows(dataset).tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent outputs, shape (size, n_rows), int64: the row, or −1 where it was not exposed."""
        rows = _whole_rows(dataset)
        out = np.full((size, len(rows)), HIDDEN, dtype=np.int64)
        flat = out.reshape(-1)
        for piece in pieces(len(flat)):
            exposed = piece.start + np.flatnonzero(rng.random(piece.stop - piece.start) < self.delta)
            flat[exposed] = rows[exposed % len(rows)]
        return out


def _whole_rows(dataset: Any) -> Integers:
    """The rows as whole numbers from 0, shape (n_rows,); else a `DatasetError`."""
    try:
        rows = np.asarray(dataset, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.full(1, np.nan)
    if rows.ndim != 1 or not len(rows) or not np.all((rows >= 0) & (rows < 2.0**53) & (rows == np.floor(rows))):
        raise DatasetError(
            f"dataset={dataset!r:.60} is not a list of rows; give each person's as a whole number from 0, at least one."
        )
    return rows.astype(np.int64)
