"""From a dataset to the exact answer that a mechanism protects, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..audit.datasets.rows import rows_of
from ..audit.errors import ClaimError, DatasetError

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
        scores = np.empty(())
    if scores.ndim != 1:
        raise DatasetError(
            f"the query answered {answer!r:.60}, which is not a vector of scores; return one number for each "
            "candidate.",
            answer=answer,
        )
    if scores.size == 0:
        raise DatasetError(
            "the query answered an empty vector, so there is nothing to choose from; return the score of at least one "
            "candidate.",
            answer=answer,
        )
    if not np.isfinite(scores).all():
        worst = int(np.argmin(np.isfinite(scores)))
        raise DatasetError(
            f"the score of candidate {worst} is {scores[worst]:g}; use finite scores, and leave out a candidate that "
            "must never win.",
            candidate=worst,
            score=float(scores[worst]),
        )
    return scores


def places_below_leader(query: Query, dataset: Any, scale: float) -> npt.NDArray[np.float64]:
    """How many scales each score is above the largest: zero for the leader, else negative, shape (n_candidates,).

    Taken from the largest before the division, so nothing cancels, however large the scores are in scales.

    Raises
    ------
    DatasetError
        For scores that are not finite, or further apart than a double can say in scales.
    """
    scores = candidate_scores(query, dataset)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        places: npt.NDArray[np.float64] = (scores - scores.max()) / scale
    if not np.isfinite(places).all():  # NaN for a scale that is rounded to zero
        raise DatasetError(
            f"the scores reach from {scores.min():g} to {scores.max():g}, which a double cannot hold in scales of "
            f"{scale:g}; bring the scores nearer to each other, or use a larger sensitivity/epsilon.",
            scale=scale,
        )
    return places


@dataclass(frozen=True, slots=True)
class EachCandidate:
    """The query that scores a dataset for each of some candidates: utility(dataset, candidate), in their order.

    It turns a utility function over any finite range into what `ExponentialMechanism`, `ReportNoisyMax` and
    `PermuteAndFlip` take; their outputs are indices of the candidates. The range must not depend on the dataset.

    Parameters
    ----------
    utility : callable
        From a dataset and a candidate to a number.
    candidates : sequence
        Any objects, at least one.

    Raises
    ------
    ClaimError
        For no candidate.

    Examples
    --------
    >>> from dpaudit.mechanisms import ExponentialMechanism
    >>> rows = ["flu", "cold", "flu"]
    >>> most_common = ExponentialMechanism(epsilon=2.0, utilities=EachCandidate(list.count, ["flu", "cold"]))
    >>> most_common.law(rows).probabilities.round(3).tolist()
    [0.731, 0.269]
    """

    utility: Callable[[Any, Any], float]
    candidates: Sequence[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", tuple(self.candidates))
        _check_some("candidates", self.candidates)

    def __call__(self, dataset: Any) -> list[float]:
        scores = [self.utility(dataset, candidate) for candidate in self.candidates]
        for place, score in enumerate(scores):
            if np.ndim(score) > 0:
                raise DatasetError(
                    f"the utility of candidate {place} is {score!r:.60}, which is no number; return one for each "
                    "candidate.",
                    candidate=self.candidates[place],
                )
        return scores


@dataclass(frozen=True, slots=True)
class CategoryCounts:
    """The query that counts the rows of each category, in the order of the categories: shape (n_categories,).

    Adding a row raises one count by 1 at most and lowers none: sensitivity 1, and monotone. Replacing one may lower
    another count by 1. Rows outside the categories, which must not depend on the dataset, count nowhere.

    Parameters
    ----------
    categories : sequence
        Different rows, at least one.

    Raises
    ------
    ClaimError
        For no category, or one named twice.

    Examples
    --------
    >>> CategoryCounts(["Ann", "Bob", "Eve"])(["Bob", "Ann", "Bob", "Zoe"]).tolist()
    [1, 2, 0]
    """

    categories: Sequence[Any]

    def __post_init__(self) -> None:
        counts = rows_of(list(self.categories))
        _check_some("categories", tuple(counts))
        if counts.total() > len(counts):
            raise ClaimError(
                f"categories={self.categories!r:.60} names one twice, so a row would count twice; name each once.",
                categories=self.categories,
            )
        object.__setattr__(self, "categories", tuple(counts))

    def __call__(self, dataset: Any) -> npt.NDArray[np.int64]:
        rows = rows_of(dataset)
        return np.array([rows[category] for category in self.categories], dtype=np.int64)


def _check_some(name: str, values: Sequence[Any]) -> None:
    if not values:
        raise ClaimError(f"{name}=() is an empty range; name at least one to choose from.", **{name: values})
