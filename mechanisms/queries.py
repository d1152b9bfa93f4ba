"""From a dataset to the exact answer that a mechanism protects, checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..audit.errors import DatasetError

Query: TypeAlias = Callable[[Any], Any]


def identity(dataset: Any) -> Any:
    """The dataset itself: for datasets given as the query's answer."""
    return dataset


def real_answer(query: Query, dataset: Any) -> float:
    """The query's answer as a finite number; else a `DatasetError`."""
    answer = query(dataset)
    try:
        number = float(answer)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DatasetError(
            f"the query answered {answer!r:.60}, which is not a finite number; use a query (such as len) that "
            "turns the dataset into one.",
            answer=answer,
        )
    return number


def whole_answer(query: Query, dataset: Any) -> int:
    """The query's answer as an integer within ±2⁵³; else a `DatasetError`."""
    number = real_answer(query, dataset)
    if number != math.floor(number) or abs(number) > 2.0**53:
        raise DatasetError(
            f"the query answered {number!r}, which is not a whole number within ±2**53; use a counting query, or "
            "LaplaceMechanism for real answers.",
            answer=number,
        )
    return int(number)


def candidate_scores(query: Query, dataset: Any) -> npt.NDArray[np.float64]:
    """The query's answer as finite scores, one a candidate, shape (n_candidates,); else a `DatasetError`."""
    answer = query(dataset)
    try:
        scores = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        scores = np.full(1, np.nan)
    if scores.ndim != 1 or scores.size == 0 or not np.all(np.isfinite(scores)):
        raise DatasetError(
            f"the query answered {answer!r:.60}, which is not a vector of finite scores; return one number for each "
            "candidate.",
            answer=answer,
        )
    return scores
