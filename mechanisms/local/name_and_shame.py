"""Name and shame: publish each row with a small probability, the worst that a delta may allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...audit.claims.claim import ApproxDP, check_number
from ...audit.errors import DatasetError
from ..laws.discrete_law import DiscreteLaw
from ..laws.product import ProductLaw
from ..noise_samplers import Integers, pieces
from ..queries import as_numbers

HIDDEN: Final = -1
"""Output in place of a row that was not exposed."""


@dataclass(frozen=True, slots=True)
class NameAndShame:
    """Each row with probability delta, else `HIDDEN`: (0, delta)-DP for replaced rows, without any pure guarantee.

    Rows are exposed independently. Of n people, delta·n are exposed on average; with delta = 1/(100n), nobody is
    exposed in 99 of 100 runs. A delta is therefore harmless only if it is far below 1/n.

    Parameters
    ----------
    delta : float
        In (0, 1).

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
        """Zero: the output does not depend on a row that is not exposed."""
        return 0.0

    @property
    def claim(self) -> ApproxDP:
        """(0, delta)-DP, for one replaced row."""
        return ApproxDP(0.0, self.delta)

    def law(self, dataset: Any) -> ProductLaw:
        """The exact law of the output."""
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
    """Return the rows as whole numbers from 0, shape (n_rows,); raise a `DatasetError` for other rows."""
    rows = as_numbers(dataset)
    if rows.ndim != 1 or not len(rows) or not np.all((rows >= 0) & (rows < 2.0**53) & (rows == np.floor(rows))):
        raise DatasetError(
            f"dataset={dataset!r:.60} is not a list of rows; give one or more rows, each a whole number from 0."
        )
    return rows.astype(np.int64)
