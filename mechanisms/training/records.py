"""Records of two datasets that scikit-learn ships, scaled by constants, and the record that was zeroed out.

The constants do not depend on the records at hand, so adding or removing a record changes no other one. They are
ranges published with the data (for the digits, those of the pixels), typed in below. Values outside are clipped.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..noise_samplers import Floats

# Minimum and maximum of each feature as the dataset's description states them.
_LOWEST: Final = (
    6.981, 9.71, 43.79, 143.5, 0.053, 0.019, 0.0, 0.0, 0.106, 0.05,
    0.112, 0.36, 0.757, 6.802, 0.002, 0.002, 0.0, 0.0, 0.008, 0.001,
    7.93, 12.02, 50.41, 185.2, 0.071, 0.027, 0.0, 0.0, 0.156, 0.055,
)  # fmt: skip
_HIGHEST: Final = (
    28.11, 39.28, 188.5, 2501.0, 0.163, 0.345, 0.427, 0.201, 0.304, 0.097,
    2.873, 4.885, 21.98, 542.2, 0.031, 0.135, 0.396, 0.053, 0.079, 0.03,
    36.04, 49.54, 251.2, 4254.0, 0.223, 1.058, 1.252, 0.291, 0.664, 0.208,
)  # fmt: skip


def breast_cancer_records() -> Floats:
    """Wisconsin breast cancer records, shape (569, 32): 30 features in [−1, 1], the constant 1, the class 0 or 1."""
    from sklearn.datasets import load_breast_cancer

    features, labels = load_breast_cancer(return_X_y=True)
    return _records(_into_unit_range(features, np.array(_LOWEST), np.array(_HIGHEST)), labels)


def digits_records() -> Floats:
    """Handwritten digits, shape (1797, 66): 64 pixels in [−1, 1], the constant 1, the class 0 to 9."""
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    return _records(_into_unit_range(features, np.zeros(64), np.full(64, 16.0)), labels)


def zeroed(rows: npt.ArrayLike, index: int) -> Floats:
    """The records with one replaced by zeros: it has gradient 0, the neighbour of "replace_special"."""
    changed = np.array(rows, dtype=np.float64)
    changed[index] = 0.0
    return changed


def _into_unit_range(features: Floats, low: Floats, high: Floats) -> Floats:
    return np.clip((2 * features - low - high) / (high - low), -1.0, 1.0)


def _records(features: Floats, labels: npt.NDArray[Any]) -> Floats:
    return np.column_stack([features, np.ones(len(features)), labels.astype(np.float64)])
