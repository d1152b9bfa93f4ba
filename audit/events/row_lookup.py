"""Membership of many numbers or vectors in a long list, by sorted keys behind a bitmap.

Most outputs are not in the list. A bitmap of the first bits of the keys rejects them in a few nanoseconds, and only the
rest are looked up in the sorted keys and compared with the vector that has their key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .outputs import Outputs, row_keys

_BITS = 18  # of a key; the bitmap of 256 kB fits into a cache of the processor


@dataclass(frozen=True, slots=True)
class RowLookup:
    """A list of rows of numbers, ordered by their keys.

    Attributes
    ----------
    rows : ndarray, shape (listed, n_coords)
    keys : ndarray of uint64, shape (listed,)
    bitmap : ndarray of bool
        Whether a key of the list has these first bits.
    """

    rows: Outputs
    keys: npt.NDArray[np.uint64]
    bitmap: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Outputs) -> RowLookup:
        """Return the lookup of these rows, at least one."""
        keys = row_keys(rows)
        order = np.argsort(keys)
        bitmap = np.zeros(1 << _BITS, dtype=np.bool_)
        bitmap[_first_bits(keys)] = True
        return cls(rows[order], keys[order], bitmap)

    def holds(self, outputs: Outputs) -> npt.NDArray[np.bool_]:
        """Return whether each row of a matrix equals a listed one, shape (runs,); NaN equals NaN.

        Examples
        --------
        >>> RowLookup.of(np.array([[1, 2], [3, 4]])).holds(np.array([[3, 4], [4, 3]])).tolist()
        [True, False]
        """
        keys = row_keys(outputs)
        found = self.bitmap[_first_bits(keys)]
        maybe = np.flatnonzero(found)
        place = np.minimum(np.searchsorted(self.keys, keys[maybe]), len(self.keys) - 1)
        found[maybe] = are_same_rows(outputs[maybe], self.rows[place])
        return found


def are_same_rows(rows: Outputs, wanted: Outputs) -> npt.NDArray[np.bool_]:
    """Return whether each row equals the wanted one, or the one at its place; NaN equals NaN."""
    return np.asarray(((rows == wanted) | ((rows != rows) & (wanted != wanted))).all(axis=1))


def _first_bits(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return (keys >> np.uint64(64 - _BITS)).astype(np.int64)
