"""Checks of mechanisms' parameters, the exact answers of queries, and their sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations_with_replacement
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ..audit.claims.claim import check_number
from ..audit.datasets.adjacency import AddRemove, Adjacency, Replace, ZeroOut
from ..audit.datasets.rows import rows_of
from ..audit.errors import AuditError, ClaimError, DatasetError, OptionError
from .noise_samplers import Floats, Integers

# Checks of mechanism parameters that `audit.claims.claim.check_number` does not cover.


def check_value(name: str, value: Any, holds: object, why: str, kind: type[AuditError] = ClaimError) -> None:
    """Raise an error that names the value and why it is refused, unless the condition holds."""
    if not holds:
        raise kind(f"{name}={value!r:.60} {why}", **{name: value})


def check_count(name: str, value: Any, what: str, least: int = 1) -> None:
    """Raise a `ClaimError` unless the value is a whole number, `least` or more."""
    is_count = isinstance(value, (int, np.integer)) and value >= least
    check_value(name, value, is_count, f"is not a number of {what}; use a whole number {name} >= {least}.")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise a `ClaimError` unless the value is one of the choices."""
    known = list(choices)
    check_value(name, value, value in known, f"is unknown; use one of {', '.join(known)}.")


def check_whole_sensitivity(sensitivity: float, alternative: str) -> None:
    """Raise a `ClaimError` unless the sensitivity is whole; `alternative` names the mechanism for real answers."""
    check_number("sensitivity", sensitivity, 0, math.inf, "the answer's largest change", closed=False)
    is_whole = sensitivity == int(sensitivity)
    check_value("sensitivity", sensitivity, is_whole, f"is not a whole number; use 1, 2, … or {alternative}.")


def check_scale(scale: float) -> None:
    """Raise a `ClaimError` unless doubles can hold noise of this scale, its far tail and its grid."""
    if not 1e-290 <= scale <= 1e290:
        raise ClaimError(
            f"the noise would have scale {scale:g}, which leaves the range of doubles; use a less extreme epsilon or "
            "sensitivity.",
            scale=scale,
        )


# Checked conversion of a query's answer on a dataset into the exact answer that a mechanism protects.

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


def check_answer(answer: Any, holds: object, why: str) -> None:
    """Raise a `DatasetError` that names the query's answer and why it is refused, unless the condition holds."""
    if not holds:
        raise DatasetError(f"the query answered {answer!r:.60}, {why}", answer=answer)


def real_answer(query: Query, dataset: Any) -> float:
    """Return the query's answer as a finite number; raise a `DatasetError` if it is not one."""
    answer = query(dataset)
    try:
        number = float(answer)
    except (TypeError, ValueError):
        number = math.nan
    why = "which is not a finite number; use a query (such as len) that returns one for this dataset."
    check_answer(answer, math.isfinite(number), why)
    return number


def whole_answer(query: Query, dataset: Any) -> int:
    """Return the query's answer as an integer within ±2⁵³; raise a `DatasetError` if it is not one."""
    number = real_answer(query, dataset)
    why = "which is not a whole number within ±2**53; use a counting query, or LaplaceMechanism for real answers."
    check_answer(number, number == math.floor(number) and abs(number) <= 2.0**53, why)
    return int(number)


def candidate_scores(query: Query, dataset: Any) -> Floats:
    """Return the query's answer as finite scores, shape (n_candidates,); raise a `DatasetError` if it is not that."""
    answer = query(dataset)
    scores = as_numbers(answer)
    check_answer(answer, scores.ndim == 1, "which is not a vector of scores; return one number per candidate.")
    why = "an empty vector, so there is nothing to choose from; return the score of at least one candidate."
    check_answer(answer, scores.size > 0, why)
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
    """Return each score minus the largest, in scales, shape (n_candidates,), without cancellation."""
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

    It turns a utility function over a finite range, which must not depend on the dataset, into a query for
    `ExponentialMechanism`, `ReportNoisyMax` and `PermuteAndFlip`, whose outputs are indices of the candidates.

    Examples
    --------
    >>> from dpaudit.mechanisms import ExponentialMechanism
    >>> rows = ["flu", "cold", "flu"]
    >>> most_common = ExponentialMechanism(epsilon=2.0, utilities=EachCandidate(list.count, ["flu", "cold"]))
    >>> most_common.distribution(rows).probabilities.round(3).tolist()
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
    """Query that counts the rows of each category, in the order of `categories`, which are distinct; shape
    (n_categories,).

    Adding a row raises at most one count, by 1, and lowers none: the query is monotone with sensitivity 1. Replacing a
    row may also lower another count by 1. Rows outside the categories, which must not depend on the dataset, are not
    counted.
    """

    categories: Sequence[Any]

    def __post_init__(self) -> None:
        counts = rows_of(list(self.categories))
        _check_some("categories", tuple(counts))
        why = "names a category twice, and its rows would count twice; name each category once."
        check_value("categories", self.categories, counts.total() == len(counts), why)
        object.__setattr__(self, "categories", tuple(counts))

    def __call__(self, dataset: Any) -> Integers:
        rows = rows_of(dataset)
        return np.array([rows[category] for category in self.categories], dtype=np.int64)


def _check_some(name: str, values: Sequence[Any]) -> None:
    check_value(name, values, values, "is an empty range; give at least one.")


# Exact sensitivity of a query or a utility over a small domain, by enumeration of all neighbours.

Norm: TypeAlias = Literal["l1", "l2", "linf"]

_MAX_PAIRS: Final = 1_000_000  # takes a query in pure Python seconds to a minute
_ORDERS: Final = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


def utility_sensitivity(
    utility: Callable[[Any, Any], float],
    candidates: Sequence[Any],
    domain: Sequence[Any],
    max_rows: int,
    adjacency: Adjacency,
    *,
    min_rows: int = 0,
) -> float:
    """Return Δu = max_r max_{x~y} |u(x, r) − u(y, r)| over all neighbours with at most `max_rows` rows; exact.

    The utility maps a dataset, a list of rows, and a candidate to a number. The other parameters are those of
    `query_sensitivity`.

    Source: Dwork & Roth (2014), Section 3.4.

    Examples
    --------
    >>> from dpaudit import AddRemove
    >>> def revenue(bids, price):
    ...     return price * sum(bid >= price for bid in bids)
    >>> utility_sensitivity(revenue, candidates=[1, 2, 3], domain=[0, 1, 2, 3, 4], max_rows=3, adjacency=AddRemove())
    3.0
    """
    query = EachCandidate(utility, candidates)
    return query_sensitivity(query, domain, max_rows, adjacency, norm="linf", min_rows=min_rows)


def query_sensitivity(
    query: Query, domain: Sequence[Any], max_rows: int, adjacency: Adjacency, *, norm: Norm = "l1", min_rows: int = 0
) -> float:
    """Return the largest ‖query(x) − query(y)‖ over all neighbours with at most `max_rows` rows from the domain; exact.

    The function tries every multiset of rows, so the query must not depend on the order of the rows. The result holds
    for this domain and these sizes only; a larger range needs an argument from the query itself. More than a million
    pairs raise an `OptionError`; an answer that is not finite, or whose length depends on the dataset, a
    `DatasetError`.

    Parameters
    ----------
    query : callable
        Maps a dataset (a list of rows) to a number or a vector.
    domain : sequence
        The possible rows, at least one.
    max_rows, min_rows : int
        Sizes of the datasets, 0 ≤ min_rows ≤ max_rows. Raise `min_rows` for a query that has no answer on few rows, or
        that changes less on many, such as a mean.
    adjacency : AddRemove, Replace or ZeroOut
    norm : {"l1", "l2", "linf"}
        Norm of the difference: "l1" for Laplace noise, "l2" for Gaussian noise, "linf" for the utilities of a
        selection (`utility_sensitivity`).

    Examples
    --------
    >>> from dpaudit import AddRemove, Replace
    >>> from dpaudit.mechanisms import CategoryCounts
    >>> histogram = CategoryCounts("abc")
    >>> [query_sensitivity(histogram, "abc", 4, adjacency) for adjacency in (AddRemove(), Replace())]
    [1.0, 2.0]
    """
    rows, is_growth = list(domain), isinstance(adjacency, AddRemove)
    if not is_growth and not isinstance(adjacency, Replace):
        raise OptionError(
            f"the neighbours of adjacency={adjacency!r} cannot be enumerated; use AddRemove() or Replace().",
            adjacency=adjacency,
        )
    check_value("norm", norm, norm in _ORDERS, 'is unknown; use "l1", "l2" or "linf".', OptionError)
    are_sizes = all(isinstance(n, (int, np.integer)) for n in (min_rows, max_rows)) and 0 <= min_rows <= max_rows
    why = f"and min_rows={min_rows!r} are not a range of sizes; use whole numbers with 0 <= min_rows <= max_rows."
    check_value("max_rows", max_rows, are_sizes, why, OptionError)
    nulls = [adjacency.row_like(rows[0])] if isinstance(adjacency, ZeroOut) else []
    if not (is_growth or nulls) and len(rows) == 1:
        raise OptionError(
            "a domain of one row leaves nothing to replace the row by; give two rows or more.", domain=rows
        )
    # Neighbours are a shared core with and without a row, or a core with one of two rows.
    core_sizes = range(min_rows, max_rows) if is_growth else range(max(min_rows, 1) - 1, max_rows)
    n_cores = sum(math.comb(len(rows) + size - 1, size) for size in core_sizes) if rows else 0
    n_pairs = n_cores * (len(rows) if is_growth or nulls else math.comb(len(rows), 2))
    if not 0 < n_pairs <= _MAX_PAIRS:
        raise OptionError(
            f"a domain of {len(rows)} and datasets of {min_rows} to {max_rows} rows make {n_pairs:,} pairs of "
            f"neighbours; use sizes that make at least one and at most {_MAX_PAIRS:,}.",
            n_pairs=n_pairs,
        )
    largest = 0.0
    for core in chain.from_iterable(combinations_with_replacement(rows, size) for size in core_sizes):
        other = [[*core]] * is_growth + [[*core, null] for null in nulls]
        answers = _answers(query, [[*core, row] for row in rows] + other)
        for start in answers[-1:] if other else answers:
            largest = max(largest, float(np.linalg.norm(answers - start, _ORDERS[norm], axis=1).max()))
    return largest


def _answers(query: Query, datasets: list[list[Any]]) -> Floats:
    """Return the query's answers on neighbours as vectors of one length, shape (n_datasets, n_coords)."""
    vectors = [_vector(query, dataset) for dataset in datasets]
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1:
        raise DatasetError(
            f"the query answers {max(lengths)} numbers on one dataset and {min(lengths)} on a neighbour; use a query "
            "whose answers all have the same length.",
            lengths=lengths,
        )
    return np.array(vectors)


def _vector(query: Query, dataset: list[Any]) -> Floats:
    answer = query(dataset)
    vector = as_numbers(answer).ravel()
    if not np.isfinite(vector).all():
        raise DatasetError(
            f"the query answered {answer!r:.60} on a dataset of length {len(dataset)}, which is not a finite number "
            "or vector; use a query that answers every dataset, or a larger min_rows.",
            n_rows=len(dataset),
        )
    return vector
