"""Select the source of pairs for a domain, an adjacency and a distance."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, count, islice, pairwise, product
from typing import Any, Final, Literal

import numpy as np

from ..datasets.adjacency import (
    AddRemove,
    Adjacency,
    EdgeNeighbours,
    Local,
    NodeNeighbours,
    Replace,
    RowAdjacency,
    SameQuery,
    UserLevel,
    Within,
    ZeroOut,
)
from ..datasets.description import as_code
from ..datasets.domains import Answers, Domain, Floats, Graphs, Rows, Values
from ..datasets.rows import as_numpy, columns_by_name, is_frame, is_graph, rows_by_name, tables_of
from ..datasets.tables import Queries, SeveralTables, Tables, as_domain
from ..errors import AdjacencyError, AuditError, DatasetError, OptionError, described
from ..events.named_parts import printed
from ..options import is_single
from ..printing import shorten
from .candidates import Candidate, Line, PairSource, chunks, show, whole_distance
from .row_pairs import RowPairs, SeveralTablePairs, Split, SplitPairs, TablePairs, UserPairs

# Pairs from the caller: a list of pairs, a function that generates pairs, listed values or a Hypothesis strategy.

_GIVEN = 200  # values drawn from a strategy, and most initial pairs of listed values (docs/decisions/0025-limits.md)


@dataclass(frozen=True, slots=True)
class CallersPairs(PairSource):
    """Pairs of the caller's own, which are simplified by their rows alone, as no domain of values is known.

    A relation that lets neighbours lack any one row lets datasets lack many. If rows are replaced, their number is
    public, and stays. Rows of which none is equal to another stay so, as a contract may want it, such as unique names.
    """

    adjacency: Adjacency | None
    distance: float
    listed: Callable[[], Iterator[Candidate]] = lambda: iter(())
    generator: Callable[[np.random.Generator], Any] | None = None
    numbers: Iterator[int] = field(default_factory=lambda: count(1), compare=False)  # of generated pairs

    def patterns(self) -> Iterator[Candidate]:
        return self.listed()

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        if self.generator is None:
            return
        for number in self.numbers:
            try:
                pair = self.generator(rng)
            except Exception as error:
                raise DatasetError(
                    f"the generator of pairs raised {described(error)} on pair {number}; pass a function that "
                    "takes a numpy.random.Generator and returns (x, y).",
                    number=number,
                ) from error
            yield _given(pair, number, "generated pair")

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        if isinstance(self.adjacency, (AddRemove, Replace)):
            yield from _simpler_rows(candidate, int(self.distance), self.adjacency)


def _simpler_rows(candidate: Candidate, steps: int, adjacency: AddRemove | Replace) -> Iterator[Candidate]:
    """Yield pairs of lists, arrays or frames with fewer or equal rows; none of datasets that their rows do not make."""
    pair = candidate.x, candidate.y
    forms: set[Any] = {{list: "list", np.ndarray: "array"}.get(type(each)) for each in pair}
    (form,) = forms if len(forms) == 1 else (None,)
    columns = tuple(pair[0].columns) if all(map(is_frame, pair)) else ()
    if form is None and not columns:
        return
    rows = [_rows(each.tolist() if form == "array" else each) or [] for each in pair]
    if columns:
        rows = [[tuple(row.values()) for row in each] for each in rows]
    (common, only_x), (_, only_y) = _divided(*rows), _divided(*reversed(rows))
    values = {printed(row): row for row in (*only_x, *only_y, *common)}
    kind: Literal["added", "replaced"] = "added" if isinstance(adjacency, AddRemove) else "replaced"
    least, most = min(map(len, rows)) if kind == "replaced" else 0, max(map(len, rows))
    try:
        domain = Rows(tuple(values.values()), most=most, least=least, form=form or "frame", columns=columns)
        are_distinct = all(len(set(map(printed, each))) == len(each) for each in rows)
        source = RowPairs(domain, steps, kind, distinct=are_distinct)
    except AuditError:  # rows of which a domain cannot be
        return
    codes = [(as_code(domain.build(each)), as_code(dataset)) for each, dataset in zip(rows, pair, strict=True)]
    if all(made is not None and made == code for made, code in codes):
        split = Split(tuple(common), tuple(only_x), tuple(only_y))
        yield from filter(source.is_allowed, source.simpler(replace(candidate, parts=split)))


def _divided(rows: list[Any], others: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the rows that have an equal one among others, and those that have none, as multisets."""
    left = Counter(map(printed, others))
    found, missed = list[Any](), list[Any]()
    for row in rows:
        (found if left[printed(row)] > 0 else missed).append(row)
        left[printed(row)] -= 1
    return found, missed


@dataclass(frozen=True, slots=True)
class ListedPairs(PairSource):
    """Pairs of listed values."""

    domain: Values

    def patterns(self) -> Iterator[Candidate]:
        """Yield the first value with the last, then up to 200 other pairs."""
        n = len(self.domain.values)
        yield self._candidate(0, n - 1)
        yield from (self._candidate(i, j) for i, j in islice(combinations(range(n), 2), _GIVEN))

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


def _of_strategy(strategy: Any, adjacency: Adjacency | None, distance: float, seed: int) -> Iterator[Candidate]:
    """Yield pairs drawn from a Hypothesis strategy, or neighbours made from drawn datasets."""
    drawn = examples(strategy, seed)
    if all(isinstance(value, tuple) and len(value) == 2 for value in drawn):
        yield from _of_iterable(drawn, "drawn pair")
        return
    if adjacency is None:
        raise DatasetError(
            "a strategy of datasets needs an adjacency to make pairs; pass adjacency=, or draw pairs (x, y)."
        )
    rng = np.random.default_rng(seed)
    for number, (dataset, other) in enumerate(pairwise([*drawn, drawn[0]]), start=1):
        for y in neighbours_of(dataset, other, adjacency, distance, rng):
            yield Candidate(f"drawn dataset {number} and a neighbour", dataset, y)


def _of_iterable(pairs: Iterable[Any], name: str = "pair") -> Iterator[Candidate]:
    return (_given(pair, number, name) for number, pair in enumerate(pairs, start=1))


def _given(pair: Any, number: int, name: str) -> Candidate:
    """Return the caller's pair as a candidate."""
    try:
        x, y = pair
    except (TypeError, ValueError):
        raise DatasetError(
            f"{name} {number} is {show(pair)}, which is not a pair; pass (x, y).", number=number
        ) from None
    return Candidate(f"{name} {number}", x, y, is_promised=True)


def examples(strategy: Any, seed: int) -> list[Any]:
    """Draw at most 200 values from a strategy, with a fixed seed; raise a `DatasetError` if it draws none."""
    import hypothesis

    drawn: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=_GIVEN,
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
    tables = tables_of(dataset, other, adjacency.tables) if isinstance(adjacency, (AddRemove, Replace)) else None
    if tables and None not in tables:
        name = [*tables][int(rng.integers(len(tables)))]
        yield from ({**dataset, name: made} for made in neighbours_of(*tables[name], adjacency, distance, rng))
        return
    match adjacency:
        case AddRemove():
            yield from _without(dataset, None, whole_distance(distance, "rows"), rng)
        case Replace():
            nulls = list(map(adjacency.row_like, _rows(dataset) or [])) if isinstance(adjacency, ZeroOut) else None
            yield from _with_rows_of(dataset, other if nulls is None else nulls, whole_distance(distance, "rows"), rng)
        case UserLevel(user=str() | int() as user, changed_rows=None):
            yield from _without(dataset, user, whole_distance(distance, "users"), rng)
        case Within():
            yield from _towards(dataset, other, adjacency, distance)
        case EdgeNeighbours() | NodeNeighbours():
            parts = "edges" if isinstance(adjacency, EdgeNeighbours) else "nodes"
            yield from _smaller_graph(dataset, parts, whole_distance(distance, parts), rng)
    yield other  # any adjacency may allow the next drawn dataset


def _rows(dataset: Any) -> list[Any] | None:
    """Return the rows in order, or None if the dataset does not consist of rows."""
    if is_frame(dataset):
        return list(dataset.to_dict("records"))
    if isinstance(dataset, (dict, tuple)) and (by_name := rows_by_name(dataset)) is not None:
        return by_name
    if isinstance(dataset, (list, tuple)) or (isinstance(dataset, np.ndarray) and dataset.ndim > 0):
        return list(dataset)
    return None


def _without(dataset: Any, user: str | int | None, count: int, rng: np.random.Generator) -> Iterator[Any]:
    """Remove some users with their rows, or some rows."""
    owners = [place if user is None else row[user] for place, row in enumerate(_rows(dataset) or ())]
    users = list(dict.fromkeys(owners))
    if len(users) >= count:
        gone = {users[i] for i in rng.permutation(len(users))[:count].tolist()}
        yield _at(dataset, [place for place, owner in enumerate(owners) if owner not in gone])


def _at(dataset: Any, places: list[int]) -> Any:
    """Return the dataset with the rows at these places."""
    if hasattr(dataset, "iloc"):
        return dataset.iloc[places]
    if (columns := columns_by_name(dataset)) is not None:
        kept = [_at(column, places) for column in columns.values()]
        return tuple(kept) if isinstance(dataset, tuple) else dict(zip(columns, kept, strict=True))
    rows = as_numpy(dataset)
    return rows[places] if isinstance(rows, np.ndarray) else type(rows)(rows[place] for place in places)


def _with_rows_of(dataset: Any, other: Any, count: int, rng: np.random.Generator) -> Iterator[Any]:
    rows, others = _rows(dataset) or [], _rows(other) or []
    if min(len(rows), len(others)) < count or is_frame(dataset) or columns_by_name(dataset) is not None:
        return
    places, new = (rng.permutation(len(part))[:count].tolist() for part in (rows, others))
    for place, row in zip(places, new, strict=True):
        rows[place] = others[row]
    yield np.array(rows) if isinstance(dataset, np.ndarray) else type(dataset)(rows)


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


# Pairs of query answers: a base, and a step as long as neighbours may be apart.

_N_PLACES: Final = 6  # most positions of a base that `_places` returns (docs/decisions/0025-limits.md)


@dataclass(frozen=True, slots=True)
class AnswerPairs(PairSource):
    """Vectors at distance `reach` in a norm; a pattern has signs, for rising and falling answers, and a base.

    References
    ----------
    Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of differential privacy, Section 5.2: the patterns in
    which one answer, half of the answers or all answers move, and the symmetric pattern.
    """

    domain: Answers
    norm: Literal["l1", "l2", "linf"]
    reach: float

    def __post_init__(self) -> None:
        if not self._step(np.eye(1, self._n)[0]).any():
            raise AdjacencyError(
                f"neighbours at distance {self.reach:g} in {self.norm} cannot be two different integers; use a radius "
                "of at least 1, or integer=False.",
                radius=self.reach,
            )

    @property
    def _n(self) -> int:
        return 1 if self.domain.n_answers is None else self.domain.n_answers

    def patterns(self) -> Iterator[Candidate]:
        for number in self.domain.numbers:
            odd = np.full(self._n, number)
            usual = {f"answers of {end:g}": np.full(self._n, float(end)) for end in (self.domain.low, self.domain.high)}
            if math.isfinite(number):  # negative zero, which has neighbours within any distance
                usual["a step from it"] = np.clip(
                    odd + self._step(np.eye(1, self._n)[0]), self.domain.low, self.domain.high
                )
            for words, end in usual.items():
                x, y = (self.domain.build(each) for each in (odd, end))
                yield Candidate(f"{number}, and {words}", x, y, None, (odd.tobytes(), end.tobytes()), "special numbers")
        # Every sign with every position, ordered so that the first few patterns cover all signs and all positions.
        for turn in range(_N_PLACES):
            for number, (name, sign) in enumerate(self._signs().items()):
                places = list(self._places(sign).items())
                place, levels = places[(number + turn) % _N_PLACES % len(places)]
                yield self._candidate(f"{name}, {place}", levels, sign)

    def _places(self, sign: Floats) -> dict[str, Floats]:
        """Return the positions of the base for answers that move with these signs."""
        middle, low, high = self._levels()
        places = {
            "base at the middle": np.full(self._n, middle),
            "base at the bottom": np.full(self._n, low),
            "base at the top": np.full(self._n, high),
        }
        if self._n == 1 and not self.domain.integer:  # its last bits show where noise has fewer
            places["base a third of a step above the bottom"] = low + np.abs(self._step(sign)) / 3.0
        if self._n > 1:
            places["x and y symmetric about the middle"] = np.full(self._n, middle) - self._step(sign) / 2
        if len(np.unique(sign)) > 1:
            places["rising answers at the bottom, the others at the top"] = np.where(sign > 0, low, high)
            places["rising answers at the top, the others at the bottom"] = np.where(sign > 0, high, low)
        return places

    def _signs(self) -> dict[str, Floats]:
        if self._n == 1:
            return {"the answer rises": np.ones(1), "the answer falls": -np.ones(1)}
        one, every = np.eye(1, self._n)[0], np.ones(self._n)
        half = np.where(np.arange(self._n) < self._n // 2, -1.0, 1.0)
        return {
            "the first answer rises": one,
            "the first answer falls": -one,
            "the first half rises, the second falls": -half,
            "the first half falls, the second rises": half,
            "all answers rise": every,
            "all answers fall": -every,
            "the first answer rises, the others fall": 2 * one - every,
            "the first answer falls, the others rise": every - 2 * one,
            "the last answer rises": one[::-1],
            "the last answer falls": -one[::-1],
            "the first half rises": (1 - half) / 2,
            **self._staircases(),
        }

    def _staircases(self) -> dict[str, Floats]:
        """Signs that up to a quarter of the answers, the first or the last ones, do not share with all others."""
        found: dict[str, Floats] = {}
        for few in range(1, self._n // 4 + 1):
            step = np.where(np.arange(self._n) < self._n - few, 1.0, -1.0)
            ends = {f"the last {few}": step, f"the first {few}": step[::-1]} if few > 1 else {"the last answer": step}
            for end, rising in ends.items():  # the first answer against the others is among the signs already
                found |= {f"all answers rise but {end}": rising, f"all answers fall but {end}": -rising}
        return found

    def lines(self) -> Iterator[Line]:
        signs = self._signs()
        for name in ("the answer rises",) if self._n == 1 else ("the first answer rises", "all answers rise"):
            yield Line(self.domain.low, self.domain.high, partial(self._at_level, name, signs[name]))

    def lines_near(self, candidate: Candidate) -> Iterator[Line]:
        if candidate.parts is None:  # a special number, which has no neighbours to vary
            return
        base, step = candidate.parts
        for place in range(self._n):
            at = partial(self._with_level, candidate.label, base, step, place)
            yield Line(self.domain.low, self.domain.high, at)

    def _with_level(self, label: str, base: Floats, step: Floats, place: int, level: float) -> Candidate:
        levels = base.copy()
        levels[place] = level
        return self._candidate(label, levels, step)

    def _at_level(self, name: str, sign: Floats, level: float) -> Candidate:
        return self._candidate(f"{name}, base at {level:g}", np.full(self._n, level), sign)

    def _levels(self) -> tuple[float, float, float]:
        low, high = float(self.domain.low), float(self.domain.high)
        middle = math.floor((low + high) / 2) if self.domain.integer else (low + high) / 2
        return middle, low, high

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        low, high = self.domain.low, self.domain.high
        while True:
            levels = np.where(
                rng.random(self._n) < 0.5, rng.choice(self._levels(), self._n), rng.uniform(low, high, self._n)
            )
            if rng.random() < 0.5:
                levels[:] = levels[0]
            sign = rng.choice([-1.0, 1.0], self._n) * (rng.random(self._n) < rng.choice([0.3, 1.0]))
            if not sign.any():
                sign[rng.integers(self._n)] = 1.0
            weights = rng.exponential(size=self._n) if rng.random() < 0.25 else np.ones(self._n)
            yield self._candidate("random pair", levels, sign * weights)

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        if candidate.parts is None:
            return
        base, step = candidate.parts
        while True:
            yield self._candidate(candidate.label, *self._move(base.copy(), step.copy(), rng))

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        if candidate.parts is None:
            return
        base, step = candidate.parts
        moved = np.flatnonzero(step)
        for part in chunks(len(moved)):
            if len(kept := np.delete(moved, part)):
                yield self._candidate(candidate.label, base, np.where(np.isin(np.arange(self._n), kept), step, 0.0))
        levels = [np.full(self._n, level) for level in (0.0, self.domain.low, self.domain.high, np.median(base))]
        levels += [np.where(step == 0.0, self.domain.low, base), np.rint(base), np.round(base, 1)]
        for simple in levels:
            yield self._candidate(candidate.label, simple, step)
        for place in range(self._n):
            for number in (0.0, self.domain.low, self.domain.high, np.rint(base[place]), np.round(base[place], 1)):
                yield self._with_level(candidate.label, base, step, place, number)

    def _move(self, base: Floats, step: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the base and the direction of the step of a variation, made in place."""
        j, size, factor = int(rng.integers(self._n)), float(np.abs(step).max()), rng.choice([-1.0, -0.5, 0.5, 1.0])
        match rng.choice(["level", "far", "scale", "shift", "place", "flip", "drop", "cross", "turn"]):
            case "flip":
                step[j] *= -1
            case "drop" if not step[j] or np.count_nonzero(step) > 1:
                step[j] = 0.0 if step[j] else rng.choice([-size, size])
            case "place":
                base[j] = rng.choice(self._levels())
            case "level":
                base[(step > 0) == (rng.random() < 0.5)] += factor * size
            case "far":
                low, high = rng.uniform(self.domain.low, self.domain.high, 2)
                base = np.where(step > 0, low, high)
            case "scale":
                base = base.mean() + rng.choice([0.25, 0.5, 0.75, 1.5]) * (base - base.mean())
            case "cross":
                base = (base + step / 2).mean() - step / 2
            case "turn":
                base, step = base[::-1], step[::-1]
            case _:
                base += factor * (size if rng.random() < 0.5 else self.domain.width / 4)
        return base, step

    def _candidate(self, label: str, levels: Floats, direction: Floats) -> Candidate:
        """Return the pair with a base as close to these levels as the range allows."""
        step, low, high = self._step(direction), self.domain.low, self.domain.high
        base = np.clip(levels, low + np.maximum(-step, 0.0), high - np.maximum(step, 0.0))
        if self.domain.integer:
            base = np.rint(base)
        ends = base, np.clip(base + step, low, high)
        x, y = (self.domain.build(end) for end in ends)
        moved = frozenset([int(np.count_nonzero(step > 0)), int(np.count_nonzero(step < 0))])
        size = float(np.abs(ends).sum())
        return Candidate(label, x, y, (base, step), (ends[0].tobytes(), ends[1].tobytes()), moved, size)

    def _step(self, direction: Floats) -> Floats:
        """Return the step in this direction, as long as neighbours may be apart and at most as long as the range."""
        order = {"l1": 1.0, "l2": 2.0, "linf": math.inf}[self.norm]
        step: Floats = direction * (self.reach / float(np.linalg.norm(direction, ord=order)))
        if self.domain.integer:
            whole: Floats = np.trunc(step + 1e-9 * np.sign(step))
            if not whole.any():  # move as many answers by 1 as the norm allows
                most = 0.0 if self.norm == "linf" else self.reach**order
                moved = np.flatnonzero(direction)[: math.floor(min(most + 1e-9, self._n))]
                whole[moved] = np.sign(direction[moved])
            step = whole
        return np.clip(step, -self.domain.width, self.domain.width)


# Pairs of graphs that differ in edges, or in nodes with all their edges.

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plain:
    """A graph as a set of nodes and a set of edges."""

    nodes: frozenset[int]
    edges: frozenset[Edge]

    def without(self, nodes: Iterable[int]) -> Plain:
        gone = frozenset(nodes)
        return Plain(self.nodes - gone, frozenset(edge for edge in self.edges if not gone & set(edge)))

    def named(self, names: dict[int, int]) -> Plain:
        """The part of the graph that consists of these nodes, with new names."""
        edges = ((names[start], names[end]) for start, end in self.edges if {start, end} <= names.keys())
        return Plain(frozenset(names[node] for node in self.nodes & names.keys()), frozenset(edges))

    def toggled(self, edges: Iterable[Edge]) -> Plain:
        return Plain(self.nodes, self.edges ^ frozenset(edges))

    @property
    def degrees(self) -> Counter[int]:
        return Counter(node for edge in self.edges for node in edge)


@dataclass(frozen=True, slots=True)
class GraphPairs(PairSource):
    """Graphs `steps` apart: y is x with some edges toggled or some nodes removed."""

    domain: Graphs
    steps: int
    kind: Literal["edges", "nodes"]

    def __post_init__(self) -> None:
        n = self.domain.most
        largest = n * self.domain.degree // 2 if self.kind == "edges" else n
        if largest < self.steps:
            raise DatasetError(
                f"{self.domain} cannot differ in {self.steps} {self.kind}; use a larger most.", most=n, steps=self.steps
            )

    def patterns(self) -> Iterator[Candidate]:
        for name, graph in self._named():
            others = self._with_other_edges(graph) if self.kind == "edges" else self._with_fewer_nodes(graph)
            yield from (self._candidate(f"x is {name}; {words}", graph, other) for words, other in others)

    def _named(self) -> Iterator[tuple[str, Plain]]:
        """Yield representative graphs, none with a larger degree than allowed."""
        n, degree = self.domain.most, self.domain.degree
        every = range(n)
        rings = [(min(i, (i + j) % n), max(i, (i + j) % n)) for j in range(1, n) for i in every]
        hub = [(0, i) for i in range(1, degree + 1)]
        shapes = {
            f"a graph of {n} nodes without edges": [],
            f"a star with {degree} rays": hub,
            f"a graph with all edges that degree {degree} allows": rings,
            "a path": [(i, i + 1) for i in range(n - 1)],
            "a set of disjoint edges": [(i, i + 1) for i in range(0, n - 1, 2)],
            "a pair of stars": [(i % 2, i) for i in range(2, n)],
            "a bipartite graph": [(i, j) for i in range(n // 2) for j in range(n // 2, n)],
            "a single edge": [(0, 1)],
        }
        for name, edges in shapes.items():
            yield name, Plain(frozenset(every), self._allowed(edges))
        if n > 2:
            yield "a graph of 2 nodes without edges", Plain(frozenset(range(2)), frozenset())

    def _allowed(self, edges: Iterable[Edge]) -> frozenset[Edge]:
        """Add the edges in order, skipping each that would exceed the allowed degree."""
        kept: set[Edge] = set()
        degrees: Counter[int] = Counter()
        for edge in edges:
            if edge[0] != edge[1] and edge not in kept and max(degrees[end] for end in edge) < self.domain.degree:
                kept.add(edge)
                degrees.update(edge)
        return frozenset(kept)

    def _with_other_edges(self, graph: Plain) -> Iterator[tuple[str, Plain]]:
        """Yield graphs with edges toggled, one per kind of first edge: by presence and by the degrees of its ends."""
        degrees = graph.degrees
        kinds = {
            (edge in graph.edges, *sorted(degrees[end] for end in edge)): edge
            for edge in reversed(list(combinations(sorted(graph.nodes), 2)))
        }
        for (is_there, low, high), first in kinds.items():
            words = f"y {'lacks an' if is_there else 'has one more'} edge between nodes of degrees {low} and {high}"
            if self.steps == 1:
                yield words, graph.toggled([first])
            else:
                words = f"{words} and differs in {self.steps} edges"
                yield words, graph.toggled(self._more_edges(graph, first, at_one_node=False))
                yield f"{words} at one node", graph.toggled(self._more_edges(graph, first, at_one_node=True))

    def _more_edges(self, graph: Plain, first: Edge, *, at_one_node: bool) -> list[Edge]:
        """Return `steps` edges: the first, then preferably edges present or absent like it, at its node or disjoint."""
        is_there = first in graph.edges

        def rank(edge: Edge) -> tuple[bool, bool]:
            is_unlike = first[0] not in edge if at_one_node else not set(edge).isdisjoint(first)
            return (edge in graph.edges) != is_there, is_unlike

        others = [edge for edge in combinations(sorted(graph.nodes), 2) if edge != first]
        return [first, *sorted(others, key=rank)[: self.steps - 1]]

    def _with_fewer_nodes(self, graph: Plain) -> Iterator[tuple[str, Plain]]:
        """Yield graphs with nodes removed, one for each degree of the first node."""
        degrees, nodes = graph.degrees, "a node" if self.steps == 1 else f"{self.steps} nodes"
        for degree in sorted({degrees[node] for node in graph.nodes}, reverse=True):
            chosen = sorted(graph.nodes, key=lambda node: (abs(degrees[node] - degree), node))[: self.steps]
            yield f"y lacks {nodes} of degree {degree}", graph.without(chosen)

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        least = 2 if self.kind == "edges" else self.steps
        while True:
            nodes = range(int(rng.integers(min(least, self.domain.most), self.domain.most + 1)))
            density = rng.choice([0.1, 0.3, 0.5, 0.8])
            edges = [edge for edge in combinations(nodes, 2) if rng.random() < density]
            graph = Plain(frozenset(nodes), self._allowed([edges[i] for i in rng.permutation(len(edges)).tolist()]))
            yield self._candidate("random pair", graph, self._changed(graph, rng))

    def _changed(self, graph: Plain, rng: np.random.Generator) -> Plain:
        if self.kind == "nodes":
            return graph.without(rng.permutation(sorted(graph.nodes))[: self.steps].tolist())
        edges = list(combinations(sorted(graph.nodes), 2))
        return graph.toggled([edges[i] for i in rng.permutation(len(edges))[: self.steps].tolist()])

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        x, y = candidate.parts
        while True:
            i, j = sorted(rng.permutation(self.domain.most)[:2].tolist())
            match rng.choice(["edge", "edge", "change", "node"]):
                case "edge" if {i, j} <= x.nodes:
                    # In both graphs, unless y lacks one of the nodes.
                    new = x.toggled([(i, j)]), y.toggled([(i, j)]) if {i, j} <= y.nodes else y
                case "change":
                    new = x, self._changed(x, rng)
                case "node" if i in x.nodes and i in y.nodes:
                    new = x.without([i]), y.without([i])
                case "node" if i not in x.nodes:
                    new = Plain(x.nodes | {i}, x.edges), Plain(y.nodes | {i}, y.edges)
                case _:
                    continue
            yield self._candidate(candidate.label, *new)

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield pairs without some of the nodes or edges of both graphs, or of one, with nodes named from 0."""
        x, y = candidate.parts
        nodes, edges = (sorted(parts) for parts in (x.nodes | y.nodes, x.edges | y.edges))
        for part in chunks(len(nodes)):
            names = {node: number for number, node in enumerate(nodes[: part.start] + nodes[part.stop :])}
            yield self._candidate(candidate.label, x.named(names), y.named(names))
        for part in chunks(len(edges)):
            fewer = [graph.toggled(graph.edges & {*edges[part]}) for graph in (x, y)]
            yield self._candidate(candidate.label, *fewer)

    def is_allowed(self, candidate: Candidate) -> bool:
        return all(max(graph.degrees.values(), default=0) <= self.domain.degree for graph in candidate.parts)

    def _candidate(self, label: str, x: Plain, y: Plain) -> Candidate:
        first, second = (self.domain.build(sorted(graph.nodes), sorted(graph.edges)) for graph in (x, y))
        return Candidate(label, first, second, (x, y), (x, y))


@dataclass(frozen=True, slots=True)
class QueryPairs(PairSource):
    """Pairs of data, each with one of the queries."""

    queries: tuple[Any, ...]
    data: PairSource

    has_many = True

    def patterns(self) -> Iterator[Candidate]:
        """Yield the first pattern of the data with every query, then the second, and so on."""
        for pair in self.data.patterns():
            yield from (self._asked(place, pair) for place in range(len(self.queries)))

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        return (self._asked(self._drawn(rng), pair) for pair in self.data.random(rng))

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        """Yield variations of the data, and after each the same data with any query."""
        place, pair = candidate.parts
        for moved in self.data.moves(pair, rng):
            yield self._asked(place, moved)
            yield self._asked(self._drawn(rng), pair)

    def lines(self) -> Iterator[Line]:
        """Yield the first line of the data with every query, then the second, and so on."""
        return (self._line(place, line) for line in self.data.lines() for place in range(len(self.queries)))

    def lines_near(self, candidate: Candidate) -> Iterator[Line]:
        place, pair = candidate.parts
        return (self._line(place, line) for line in self.data.lines_near(pair))

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        place, pair = candidate.parts
        return (self._asked(place, simpler) for simpler in self.data.simpler(pair))

    def is_allowed(self, candidate: Candidate) -> bool:
        return self.data.is_allowed(candidate.parts[1])

    def _line(self, place: int, line: Line) -> Line:
        return replace(line, at=lambda number: self._asked(place, line.at(number)))

    def _drawn(self, rng: np.random.Generator) -> int:
        return int(rng.integers(len(self.queries)))

    def _asked(self, place: int, pair: Candidate) -> Candidate:
        """Return a pair of data with a query, whose place among the queries is part of what makes pairs equal."""
        query = self.queries[place]
        return replace(
            pair,
            label=f"query {place + 1} on {pair.label}",
            x=(query, pair.x),
            y=(query, pair.y),
            parts=(place, pair),
            ends=None if pair.ends is None else ((place, pair.ends[0]), (place, pair.ends[1])),
            group=None if pair.group is None else (place, pair.group),
        )


_NEIGHBOURS: dict[type[Domain], str] = {
    Answers: '"l1", "l2", "linf" or Within(…), or "local" for any two',
    Rows: '"add-remove", "replace", "zero-out" or UserLevel(…)',
    Graphs: '"edge" or "node"',
    Tables: '"add-remove", "replace", "zero-out" or UserLevel(…)',
    SeveralTables: '"add-remove", "replace", "zero-out" or UserLevel(…)',
    Queries: "SameQuery(…), with a relation of their data",
}


def pairs_of(domain: Any, adjacency: Adjacency | None, distance: float, seed: int) -> PairSource:
    """Return the source of pairs for a search.

    Raises
    ------
    AdjacencyError, DatasetError
        If the domain has no such neighbours; the message names adjacencies that it has.
    OptionError
        If `domain` is not a domain, or the distance is not a number of steps.
    """
    domain = as_domain(domain)
    if isinstance(domain, Domain):
        return _of_domain(domain, adjacency, distance)
    hypothesis = sys.modules.get("hypothesis.strategies")  # imported by everyone who has a strategy
    if hypothesis is not None and isinstance(domain, hypothesis.SearchStrategy):
        return CallersPairs(adjacency, distance, partial(_of_strategy, domain, adjacency, distance, seed))
    if callable(domain) and not isinstance(domain, type):
        return CallersPairs(adjacency, distance, generator=domain)
    if isinstance(domain, Iterable) and not isinstance(domain, (str, bytes, dict)) and not is_single(domain):
        return CallersPairs(adjacency, distance, partial(_of_iterable, domain))
    raise OptionError(
        f"domain={shorten(domain)} describes no datasets; use Answers, Values, Rows, Tables or Graphs, a function of a "
        "random generator that makes a pair, an iterable of pairs, or a Hypothesis strategy.",
        domain=domain,
    )


def _of_domain(domain: Domain, adjacency: Adjacency | None, distance: float) -> PairSource:
    if adjacency is None:
        way_out = _NEIGHBOURS.get(type(domain), '"local"')
        raise AdjacencyError(f"adjacency=None does not define neighbours; pass adjacency={way_out}.", adjacency=None)
    match domain, adjacency:
        case Answers(), Within(norm=norm, radius=radius):
            return AnswerPairs(domain, norm, radius * distance)
        case Answers(), Local():
            return AnswerPairs(domain, "linf", domain.width)
        case Values(), _:
            return ListedPairs(domain)
        case Rows() | Tables(), AddRemove() | Replace():
            return _of_rows(domain, adjacency, whole_distance(distance, "rows"))
        case SeveralTables(tables=tables), AddRemove() | Replace() | UserLevel():
            return _of_tables(tables, adjacency, distance)
        case Rows() | Tables(), UserLevel(user=str() | int() as user, changed_rows=changed):
            return UserPairs(domain, whole_distance(distance, "users"), user, changed)
        case Queries(queries=queries, data=data), SameQuery(of=of):
            return QueryPairs(queries, _of_domain(data, of, distance))
        case Graphs(), EdgeNeighbours():
            return GraphPairs(domain, whole_distance(distance, "edges"), "edges")
        case Graphs(), NodeNeighbours():
            return GraphPairs(domain, whole_distance(distance, "nodes"), "nodes")
    if type(domain) in _NEIGHBOURS:
        known = "; ".join(f"{kind.__name__}: {names}" for kind, names in _NEIGHBOURS.items())
        raise AdjacencyError(
            f"{type(domain).__name__} have no neighbours by {adjacency}; use a matching adjacency "
            f"({known}; Values: any), or a function that makes pairs.",
            adjacency=adjacency,
        )
    raise DatasetError(
        f"domain={shorten(domain)} is of an unknown kind; use Answers, Values, Rows, Tables or Graphs, or a function "
        "of a random generator that makes a pair.",
        domain=domain,
    )


def _of_rows(domain: Rows | Tables, adjacency: AddRemove | Replace, steps: int) -> RowPairs:
    kind: Literal["added", "replaced"] = "added" if isinstance(adjacency, AddRemove) else "replaced"
    null = (adjacency.row_like(domain.corners()[0]),) if isinstance(adjacency, ZeroOut) else ()
    if null and isinstance(null[0], dict) and domain.columns:  # rows are dictionaries when they are built
        null = (tuple(null[0].get(name) for name in domain.names),)
    source: type[RowPairs] = TablePairs if isinstance(domain, Tables) else RowPairs
    return source(domain, steps, kind, null, adjacency.ordered)


def _of_tables(domains: dict[str, Rows | Tables], adjacency: Adjacency, distance: float) -> SeveralTablePairs:
    """Return the pairs of dictionaries of tables, of which one differs, or one user's rows in all of them."""
    columns = adjacency.columns_in(domains) if isinstance(adjacency, UserLevel) else {}
    known = [UserPairs(domains[name], 1, column)._users() for name, column in columns.items()]
    common = (user for user in min(known, key=len, default=()) if all(user in other for other in known))
    among = tuple(islice(common, _GIVEN))
    steps, changed = whole_distance(distance, "users" if columns else "rows"), getattr(adjacency, "changed_rows", None)
    owned = {name: UserPairs(domains[name], steps, column, changed, among) for name, column in columns.items()}
    sources: dict[str, SplitPairs] = {**owned}
    for name, table in domains.items():
        try:
            if name not in owned and isinstance(adjacency, (AddRemove, Replace)):
                sources[name] = _of_rows(table, adjacency, steps)
        except (AdjacencyError, DatasetError):  # the table cannot differ so, or not at all; others can
            pass
        sources.setdefault(name, RowPairs(table, 0, "added"))
    return SeveralTablePairs(sources, owned)


def relation_in(domain: Any, adjacency: Adjacency | None) -> Adjacency | None:
    """Return the relation; of a domain of several tables, one that reads every dictionary as such."""
    if isinstance(domain, Queries) and isinstance(adjacency, SameQuery):
        return SameQuery(relation_in(domain.data, adjacency.of) or adjacency.of)
    if isinstance(domain, SeveralTables) and isinstance(adjacency, RowAdjacency) and adjacency.tables is None:
        return replace(adjacency, tables=True)
    return adjacency


def every_pair(domain: Any, adjacency: Adjacency | None, distance: float) -> Iterator[tuple[Any, Any]]:
    """Yield all pairs of neighbours of a finite domain; a dataset that is in several pairs is one object.

    Raises
    ------
    DatasetError
        For a domain that cannot be listed.
    """
    source = pairs_of(domain, adjacency, distance, 0)
    if isinstance(source, CallersPairs) and isinstance(domain, Iterable):
        yield from ((pair.x, pair.y) for pair in source.patterns())
        return
    assert adjacency is None or isinstance(adjacency, Adjacency)
    match domain:
        case Values(values=datasets):
            pass
        case Rows(values=values, rows_per_user=None) if values:
            values += (adjacency.row_like(values[0]),) if isinstance(adjacency, ZeroOut) else ()
            sizes = range(domain.least, domain.most + 1)
            datasets = tuple(domain.build(rows) for size in sizes for rows in product(values, repeat=size))
        case Answers(integer=True):
            numbers = range(math.ceil(domain.low), math.floor(domain.high) + 1)
            vectors = product(numbers, repeat=domain.n_answers or 1)
            datasets = tuple(domain.build(np.array(vector, dtype=np.float64)) for vector in vectors)
        case _:
            raise DatasetError(
                f"domain={shorten(domain)} cannot be listed, and an exact audit takes all pairs; use Values, Rows with "
                "values=, Answers with integer=True, or an iterable of pairs."
            )
    for x, y in combinations(datasets, 2):
        if adjacency is None or adjacency.holds(adjacency.distance(x, y), distance):
            yield x, y
