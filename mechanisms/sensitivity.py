"""Exact sensitivity of a query or a utility over a small domain, by enumeration of all neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain, combinations_with_replacement
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ..audit.datasets.adjacency import AddRemove, Adjacency, Replace
from ..audit.errors import DatasetError, OptionError
from .noise_samplers import Floats
from .queries import EachCandidate, Query, as_numbers

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

    Parameters
    ----------
    utility : callable
        Maps a dataset (a list of rows) and a candidate to a number.
    candidates : sequence
        The range, at least one candidate.
    domain, max_rows, adjacency, min_rows
        As for `query_sensitivity`.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Section 3.4.

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
    query: Query,
    domain: Sequence[Any],
    max_rows: int,
    adjacency: Adjacency,
    *,
    norm: Norm = "l1",
    min_rows: int = 0,
) -> float:
    """Return the largest ‖query(x) − query(y)‖ over all neighbours with at most `max_rows` rows from the domain; exact.

    The function tries every multiset of rows, so the query must not depend on the order of the rows. The result holds
    for this domain and these sizes only; a larger range needs an argument from the query itself.

    Parameters
    ----------
    query : callable
        Maps a dataset (a list of rows) to a number or a vector.
    domain : sequence
        The possible rows, at least one.
    max_rows, min_rows : int
        Sizes of the datasets, 0 ≤ min_rows ≤ max_rows. Raise `min_rows` for a query that has no answer on few rows, or
        that changes less on many, such as a mean.
    adjacency : AddRemove or Replace
    norm : {"l1", "l2", "linf"}
        Norm of the difference: "l1" for Laplace noise, "l2" for Gaussian noise.

    Raises
    ------
    OptionError
        If an option is outside its range, or there are more than a million pairs.
    DatasetError
        If an answer is not finite, or its length depends on the dataset.

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
    if norm not in _ORDERS:
        raise OptionError(f'norm={norm!r} is unknown; use "l1", "l2" or "linf".', norm=norm)
    if not all(isinstance(n, (int, np.integer)) for n in (min_rows, max_rows)) or not 0 <= min_rows <= max_rows:
        raise OptionError(
            f"min_rows={min_rows!r} and max_rows={max_rows!r} are not a range of sizes; use whole numbers with "
            "0 <= min_rows <= max_rows.",
            min_rows=min_rows,
            max_rows=max_rows,
        )
    # Neighbours are a shared core with and without a row, or a core with one of two rows.
    core_sizes = range(min_rows, max_rows) if is_growth else range(max(min_rows, 1) - 1, max_rows)
    if not is_growth and len(rows) == 1:
        raise OptionError(
            "a domain of one row leaves nothing to replace the row by; give two rows or more.", domain=rows
        )
    n_pairs = _count(rows, core_sizes) * (len(rows) if is_growth else math.comb(len(rows), 2))
    if not 0 < n_pairs <= _MAX_PAIRS:
        raise OptionError(
            f"a domain of {len(rows)} and datasets of {min_rows} to {max_rows} rows make {n_pairs:,} pairs of "
            f"neighbours; use sizes that make at least one and at most {_MAX_PAIRS:,}.",
            n_pairs=n_pairs,
        )
    largest = 0.0
    for core in chain.from_iterable(combinations_with_replacement(rows, size) for size in core_sizes):
        answers = _answers(query, [[*core, row] for row in rows] + [[*core]] * is_growth)
        for start in answers[-1:] if is_growth else answers:
            largest = max(largest, float(np.linalg.norm(answers - start, _ORDERS[norm], axis=1).max()))
    return largest


def _count(rows: list[Any], sizes: range) -> int:
    """Return the number of multisets of these sizes; zero if there are no rows."""
    return sum(math.comb(len(rows) + size - 1, size) for size in sizes) if rows else 0


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
