"""Pairs from the caller: a list of pairs, a function that generates pairs, listed values or a Hypothesis strategy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, count, islice, pairwise
from typing import Any

import numpy as np

from ..datasets.adjacency import AddRemove, Adjacency, Replace, UserLevel, Within
from ..datasets.domains import Values
from ..datasets.graph_adjacency import EdgeNeighbours, NodeNeighbours
from ..datasets.rows import is_frame, is_graph
from ..errors import AuditError, DatasetError
from .candidates import Candidate, PairSource, show, whole_distance

_EXAMPLES = 200  # values drawn from a strategy
_LISTED = 200  # most initial pairs of listed values


@dataclass(frozen=True, slots=True)
class GivenPairs(PairSource):
    """Pairs from an iterable."""

    pairs: Iterable[Any]
    name: str = "pair"

    def patterns(self) -> Iterator[Candidate]:
        return (_given(pair, number, self.name) for number, pair in enumerate(self.pairs, start=1))


@dataclass(frozen=True, slots=True)
class GeneratedPairs(PairSource):
    """Pairs from a function of a random generator."""

    generator: Callable[[np.random.Generator], Any]
    numbers: Iterator[int] = field(default_factory=lambda: count(1), compare=False)

    def patterns(self) -> Iterator[Candidate]:
        return iter(())

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        return (_given(self._make(rng, number), number, "generated pair") for number in self.numbers)

    def _make(self, rng: np.random.Generator, number: int) -> Any:
        try:
            return self.generator(rng)
        except Exception as error:
            raise DatasetError(
                f"the generator of pairs raised {type(error).__name__} on pair {number}: {error}; pass a function that "
                "takes a numpy.random.Generator and returns (x, y).",
                number=number,
            ) from error


@dataclass(frozen=True, slots=True)
class ListedPairs(PairSource):
    """Pairs of listed values."""

    domain: Values

    def patterns(self) -> Iterator[Candidate]:
        """Yield the first value with the last, then up to 200 other pairs."""
        n = len(self.domain.values)
        yield self._candidate(0, n - 1)
        yield from (self._candidate(i, j) for i, j in islice(combinations(range(n), 2), _LISTED))

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            yield self._candidate(*rng.permutation(len(self.domain.values))[:2].tolist())

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            kept = candidate.parts[int(rng.integers(2))]
            yield self._candidate(kept, int(rng.integers(len(self.domain.values))))

    def _candidate(self, i: int, j: int) -> Candidate:
        x, y = self.domain.values[i], self.domain.values[j]
        return Candidate(f"values {i + 1} and {j + 1}", x, y, (i, j), (i, j))

    def is_allowed(self, candidate: Candidate) -> bool:
        i, j = candidate.parts
        return bool(i != j)


@dataclass(frozen=True, slots=True)
class StrategyPairs(PairSource):
    """Pairs drawn from a Hypothesis strategy, or neighbours made from drawn datasets."""

    strategy: Any
    adjacency: Adjacency | None
    distance: float
    seed: int

    def patterns(self) -> Iterator[Candidate]:
        drawn = examples(self.strategy, self.seed)
        if all(isinstance(value, tuple) and len(value) == 2 for value in drawn):
            yield from GivenPairs(drawn, "drawn pair").patterns()
            return
        if self.adjacency is None:
            raise DatasetError(
                "a strategy of datasets needs an adjacency to make pairs; pass adjacency=, or draw pairs (x, y)."
            )
        rng = np.random.default_rng(self.seed)
        for number, (dataset, other) in enumerate(pairwise([*drawn, drawn[0]]), start=1):
            for y in neighbours_of(dataset, other, self.adjacency, self.distance, rng):
                yield Candidate(f"drawn dataset {number} and a neighbour", dataset, y)


def _given(pair: Any, number: int, name: str) -> Candidate:
    """Return the caller's pair as a candidate."""
    try:
        x, y = pair
    except (TypeError, ValueError):
        raise DatasetError(
            f"{name} {number} is {show(pair)}, which is not a pair; pass (x, y).", number=number
        ) from None
    return Candidate(f"{name} {number}", x, y, is_promised=True)


def is_strategy(domain: Any) -> bool:
    """Whether an object is a Hypothesis strategy."""
    module = sys.modules.get("hypothesis.strategies")  # imported by everyone who has a strategy
    return module is not None and isinstance(domain, module.SearchStrategy)


def examples(strategy: Any, seed: int) -> list[Any]:
    """Draw at most 200 values from a strategy, with a fixed seed; raise a `DatasetError` if it draws none."""
    import hypothesis

    drawn: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=_EXAMPLES,
        phases=[hypothesis.Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def draw(value: Any) -> None:
        drawn.append(value)

    try:
        draw()
    except hypothesis.errors.Unsatisfiable as error:
        raise DatasetError(f"{strategy!r:.80} draws no values: {error}; use another strategy.") from error
    return drawn


def neighbours_of(
    dataset: Any, other: Any, adjacency: Adjacency, distance: float, rng: np.random.Generator
) -> Iterator[Any]:
    """Yield datasets at the stated distance, if possible, from a drawn dataset, made from it and another one."""
    match adjacency:
        case AddRemove():
            yield from _without_rows(dataset, whole_distance(distance, "rows"), rng)
        case Replace():
            yield from _with_rows_of(dataset, other, whole_distance(distance, "rows"), rng)
        case UserLevel(user):
            yield from _without_users(dataset, user, whole_distance(distance, "users"), rng)
        case Within():
            yield from _towards(dataset, other, adjacency, distance)
        case EdgeNeighbours():
            yield from _smaller_graph(dataset, "edges", whole_distance(distance, "edges"), rng)
        case NodeNeighbours():
            yield from _smaller_graph(dataset, "nodes", whole_distance(distance, "nodes"), rng)
    yield other  # any adjacency may allow the next drawn dataset


def _rows(dataset: Any) -> list[Any] | None:
    """Return the rows in order, or None if the dataset does not consist of rows."""
    if is_frame(dataset):
        return list(dataset.to_dict("records"))
    if isinstance(dataset, (list, tuple)) or (isinstance(dataset, np.ndarray) and dataset.ndim > 0):
        return list(dataset)
    return None


def _taking(dataset: Any, places: list[int]) -> Any:
    """Return the dataset with only the rows at these places."""
    if is_frame(dataset):
        return dataset.iloc[places]
    if isinstance(dataset, np.ndarray):
        return dataset[places]
    return type(dataset)(dataset[place] for place in places)


def _without_rows(dataset: Any, count: int, rng: np.random.Generator) -> Iterator[Any]:
    rows = _rows(dataset)
    if rows is not None and len(rows) >= count:
        yield _taking(dataset, sorted(rng.permutation(len(rows))[count:].tolist()))


def _with_rows_of(dataset: Any, other: Any, count: int, rng: np.random.Generator) -> Iterator[Any]:
    rows, others = _rows(dataset), _rows(other)
    if rows is None or others is None or min(len(rows), len(others)) < count or is_frame(dataset):
        return
    changed = list(rows)
    places, new = (rng.permutation(len(part))[:count].tolist() for part in (rows, others))
    for place, row in zip(places, new, strict=True):
        changed[place] = others[row]
    yield np.array(changed) if isinstance(dataset, np.ndarray) else type(dataset)(changed)


def _without_users(dataset: Any, user: str | int, count: int, rng: np.random.Generator) -> Iterator[Any]:
    rows = _rows(dataset)
    if rows is None:
        return
    owners = [row[user] for row in rows]
    users = list(dict.fromkeys(owners))
    if len(users) >= count:
        gone = {users[i] for i in rng.permutation(len(users))[:count].tolist()}
        yield _taking(dataset, [place for place, owner in enumerate(owners) if owner not in gone])


def _smaller_graph(dataset: Any, parts: str, count: int, rng: np.random.Generator) -> Iterator[Any]:
    if is_graph(dataset):
        known = list(getattr(dataset, parts))
        if len(known) >= count:
            smaller = dataset.copy()
            getattr(smaller, f"remove_{parts}_from")([known[i] for i in rng.permutation(len(known))[:count].tolist()])
            yield smaller


def _towards(dataset: Any, other: Any, adjacency: Within, distance: float) -> Iterator[Any]:
    """Move the dataset towards another one, as far as neighbours may be apart."""
    try:
        apart = adjacency.distance(dataset, other)
    except AuditError:
        return
    if 0 < apart < np.inf:
        x, y = np.asarray(dataset, dtype=np.float64), np.asarray(other, dtype=np.float64)
        moved = x + min(1.0, distance / apart) * (y - x)
        yield moved if isinstance(dataset, np.ndarray) else moved.tolist()
