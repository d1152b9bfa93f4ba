"""Checked conversion of a query's answer on a dataset into the exact answer that a mechanism protects."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..audit.datasets.rows import rows_of
from ..audit.errors import ClaimError, DatasetError
from .noise_samplers import Floats, Integers

Query: TypeAlias = Callable[[Any], Any]


def identity(dataset: Any) -> Any:
    """Return the dataset itself, for datasets that are the query's answer."""
    return dataset


def as_numbers(value: Any) -> Floats:
    """Return the value as an array of doubles, or NaN, shape (), if it cannot be converted."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(np.nan)


def real_answer(query: Query, dataset: Any) -> float:
    """Return the query's answer as a finite number; raise a `DatasetError` if it is not one."""
    answer = query(dataset)
    try:
        number = float(answer)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DatasetError(
            f"the query answered {answer!r:.60}, which is not a finite number; use a query (such as len) that "
            "returns one for this dataset.",
            answer=answer,
        )
    return number


def whole_answer(query: Query, dataset: Any) -> int:
    """Return the query's answer as an integer within ±2⁵³; raise a `DatasetError` if it is not one."""
    number = real_answer(query, dataset)
    if number != math.floor(number) or abs(number) > 2.0**53:
        raise DatasetError(
            f"the query answered {number!r}, which is not a whole number within ±2**53; use a counting query, or "
            "LaplaceMechanism for real answers.",
            answer=number,
        )
    return int(number)


def candidate_scores(query: Query, dataset: Any) -> Floats:
    """Return the query's answer as finite scores, shape (n_candidates,); raise a `DatasetError` if it is not that."""
    answer = query(dataset)
    scores = as_numbers(answer)
    if scores.ndim != 1:
        raise DatasetError(
            f"the query answered {answer!r:.60}, which is not a vector of scores; return one number per candidate.",
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


def places_below_leader(query: Query, dataset: Any, scale: float) -> Floats:
    """Return each score minus the largest, in scales: zero for the leader, else negative; shape (n_candidates,).

    The largest score is subtracted before the division, so nothing cancels however many scales the scores span. A
    `DatasetError` is raised if a score is not finite, or the scores are too many scales apart for a double.
    """
    scores = candidate_scores(query, dataset)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        places: Floats = (scores - scores.max()) / scale
    if not np.isfinite(places).all():  # NaN if the scale underflows to zero
        raise DatasetError(
            f"the scores reach from {scores.min():g} to {scores.max():g}, which a double cannot hold in scales of "
            f"{scale:g}; bring the scores closer together, or use a larger sensitivity/epsilon.",
            scale=scale,
        )
    return places


@dataclass(frozen=True, slots=True)
class EachCandidate:
    """Query that scores each candidate on a dataset by utility(dataset, candidate), in the order of `candidates`.

    It turns a utility function over a finite range into a query for `ExponentialMechanism`, `ReportNoisyMax` and
    `PermuteAndFlip`, whose outputs are indices of the candidates. The range must not depend on the dataset.

    Parameters
    ----------
    utility : callable
        Maps a dataset and a candidate to a number.
    candidates : sequence
        Any objects, at least one.

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
                    f"the utility of candidate {place} is {score!r:.60}, which is not a number; return one number "
                    "per candidate.",
                    candidate=self.candidates[place],
                )
        return scores


@dataclass(frozen=True, slots=True)
class CategoryCounts:
    """Query that counts the rows of each category, in the order of `categories`; shape (n_categories,).

    Adding a row raises at most one count, by 1, and lowers none: the query is monotone with sensitivity 1. Replacing a
    row may also lower another count by 1. Rows outside the categories are not counted. The categories must not depend
    on the dataset.

    Parameters
    ----------
    categories : sequence
        Distinct rows, at least one.

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
                f"categories={self.categories!r:.60} names a category twice, and its rows would count twice; "
                "name each category once.",
                categories=self.categories,
            )
        object.__setattr__(self, "categories", tuple(counts))

    def __call__(self, dataset: Any) -> Integers:
        rows = rows_of(dataset)
        return np.array([rows[category] for category in self.categories], dtype=np.int64)


def _check_some(name: str, values: Sequence[Any]) -> None:
    if not values:
        raise ClaimError(f"{name}=() is an empty range; give at least one.", **{name: values})
