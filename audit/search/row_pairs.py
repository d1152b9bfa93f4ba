"""Pairs of collections of rows: rows that both contain, and rows that only one contains, of some users in all."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, cycle, islice, product, zip_longest
from typing import Any, Literal

import numpy as np

from ..datasets.domains import Rows
from ..datasets.tables import CategoricalColumn, NumericColumn, Tables
from ..errors import AdjacencyError, DatasetError
from ..events.outputs import outcome_key
from ..printing import counted, shorten
from .candidates import Candidate, Line, PairSource, chunks

Row = Any
_SIDES = ("common", "only_x", "only_y")


@dataclass(frozen=True, slots=True)
class Split:
    """Two datasets: common rows, and rows that only one contains, which come last (or first, or in the middle)."""

    common: tuple[Row, ...] = ()
    only_x: tuple[Row, ...] = ()
    only_y: tuple[Row, ...] = ()
    is_last: bool | None = True  # None in the middle

    @property
    def ends(self) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """The rows of x and of y."""
        head = len(self.common) // 2 if self.is_last is None else len(self.common) * self.is_last
        x, y = (self.common[:head] + only + self.common[head:] for only in (self.only_x, self.only_y))
        return x, y

    def with_rows(self, side: str, rows: Iterable[Row]) -> Split:
        """Return the split with other rows in `common`, `only_x` or `only_y`."""
        changed: dict[str, Any] = {side: tuple(rows)}
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class SplitPairs(PairSource):
    """Pairs of collections of rows, each made from a `Split`; described by `words`."""

    domain: Rows | Tables
    steps: int

    @property
    def owner(self) -> int | None:
        """The column that holds the user, if one does; its numbers are names."""
        return None

    def _is_null(self, row: Row) -> bool:
        """Whether a row stays as it is, as the null record."""
        return False

    @abstractmethod
    def splits(self) -> Iterator[Split]:
        """Yield the splits of the patterns."""

    @abstractmethod
    def drawn(self, rng: np.random.Generator) -> Split: ...

    @abstractmethod
    def changed(self, split: Split, rng: np.random.Generator) -> Split: ...

    @abstractmethod
    def words(self, split: Split) -> str: ...

    def patterns(self) -> Iterator[Candidate]:
        return map(self.candidate, self.splits())

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            yield self.candidate(self.drawn(rng), "random pair: ")

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            yield self.candidate(self.changed(candidate.parts, rng))

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        return map(self.candidate, self.simpler_splits(candidate.parts))

    def simpler_splits(self, split: Split) -> Iterator[Split]:
        """Yield splits with equal rows, fewer rows, a smaller difference, and simpler rows: all equal ones, or one.

        Of equal rows it does not matter which are left out, so a few trials leave out many.
        """
        common, only_x, only_y = split.common, split.only_x, split.only_y
        yield replace(split, common=())
        for row in (*self.usual(common[0]), *only_x, *only_y, common[0]) if common else ():
            yield split.with_rows("common", [row] * len(common))
        keys, left_out = [*map(_key, common)], set[tuple[Hashable, ...]]()
        spare = min(map(len, split.ends)) - self.domain.least
        for part in chunks(len(common)):
            lost = tuple(keys[part])
            if len(lost) <= spare and lost not in left_out:
                left_out.add(lost)
                yield split.with_rows("common", common[: part.start] + common[part.stop :])
        for place in range(max(len(only_x), len(only_y))):
            fewer_x, fewer_y = (rows[:place] + rows[place + 1 :] for rows in (only_x, only_y))
            yield replace(split, only_x=fewer_x)
            yield replace(split, only_y=fewer_y)
            yield replace(split, only_x=fewer_x, only_y=fewer_y)
        for key, row in {_key(row): row for row in (*only_x, *only_y, *common)}.items():
            for simple in self._simpler_rows(row, ()):
                sides = [tuple(simple if _key(each) == key else each for each in getattr(split, n)) for n in _SIDES]
                yield Split(sides[0], sides[1], sides[2], split.is_last)
        for side, others in (("only_x", only_y), ("only_y", only_x), ("common", ())):
            rows = getattr(split, side)
            alike = {_key(row): place for place, row in reversed([*enumerate(rows)])}  # the first of equal rows
            for place in alike.values() if side == "common" else range(len(rows)):
                row = rows[place]
                for simple in self._simpler_rows(row, others[place : place + 1]):
                    yield split.with_rows(side, (*rows[:place], simple, *rows[place + 1 :]))

    @abstractmethod
    def usual(self, row: Row) -> tuple[Row, ...]:
        """Return the usual rows to put in the place of a row."""

    def _simpler_rows(self, row: Row, partner: tuple[Row, ...]) -> Iterator[Row]:
        """Yield rows that may be simpler, whole and cell by cell; the partner is the row that it replaces."""
        if self._is_null(row):
            return
        yield from self.usual(row)
        parts = row if isinstance(row, tuple) else (row,)
        for place, part in enumerate(parts):
            cells = [*self.cells(part, place)] if place != self.owner else []
            others = [other for other in partner if isinstance(other, tuple) and not self._is_null(other)]
            alike = [other[place] for other in others] if cells else []
            for cell in (*alike, *cells):
                yield (*parts[:place], cell, *parts[place + 1 :]) if isinstance(row, tuple) else cell

    def cells(self, part: Any, place: int) -> Iterable[Any]:
        """Return simple cells to put in the place of a cell; none if rows are listed as they are."""
        if self.domain.values:
            return ()
        low, high = (ends[place] for ends in self.domain.ranges)
        rounded = [round(part, digits) for digits in range(3)] if math.isfinite(part) else []
        kind = int if isinstance(self.domain, Rows) and self.domain.integer else float
        return [kind(min(max(number, low), high)) for number in (0, 1, -1, low, high, *rounded)]

    def lines_near(self, candidate: Candidate) -> Iterator[Line]:
        """Yield a line for each number of each different row, those that only one dataset contains first."""
        split: Split = candidate.parts
        for side in ("only_x", "only_y", "common") if not self.domain.values else ():
            rows = getattr(split, side)
            for row in dict.fromkeys(row for row in rows if not self._is_null(row)):
                for place, (low, high) in enumerate(zip(*self.domain.ranges, strict=True)):
                    if place != self.owner:
                        yield Line(low, high, partial(self._with_part, split, side, rows.index(row), place))

    def _with_part(self, split: Split, side: str, index: int, place: int, number: float) -> Candidate:
        """Return the pair with another number in one column of one row."""
        rows = list(getattr(split, side))
        parts = list(rows[index]) if isinstance(rows[index], tuple) else [rows[index]]
        parts[place] = number
        rows[index] = self.domain.row(parts)
        return self.candidate(split.with_rows(side, rows))

    def is_allowed(self, candidate: Candidate) -> bool:
        return self.allows(candidate.parts)

    def allows(self, split: Split) -> bool:
        sizes = [len(rows) for rows in split.ends]
        return self.domain.least <= min(sizes) and max(sizes) <= self.domain.most

    def candidate(self, split: Split, kind: str = "") -> Candidate:
        x, y = (self.domain.build(rows) for rows in split.ends)
        group = frozenset([len(split.only_x), len(split.only_y)]), min(len(split.common), 1)
        ends = tuple(tuple(map(_key, rows)) for rows in split.ends)
        return Candidate(f"{kind}{self.words(split)}", x, y, split, ends, group, float(sum(map(len, split.ends))))


@dataclass(frozen=True, slots=True)
class RowPairs(SplitPairs):
    """Datasets `steps` rows apart, by adding and removing or by replacing rows."""

    kind: Literal["added", "replaced"]
    null: tuple[Row, ...] = ()  # the row that takes the place of others, if they are not replaced by any
    ordered: bool = False  # whether the order of rows is a part of the datasets
    distinct: bool = False  # whether a dataset has each row once

    def __post_init__(self) -> None:
        if self.domain.most < self.steps:
            raise DatasetError(
                f"most={self.domain.most} rows cannot differ in {self.steps}; use most >= {self.steps}.",
                most=self.domain.most,
            )
        if self.kind == "added" and self.steps % 2 and self.domain.least == self.domain.most:
            raise AdjacencyError(
                f"datasets of {self.domain.most} rows each cannot differ by an added or a removed row; use Replace(), "
                "or a least below most.",
                least=self.domain.least,
            )
        if self.kind == "replaced" and len({*map(_key, (*self.domain.corners(), *self.null))}) < 2:
            raise AdjacencyError("rows of a single value cannot be replaced by others; give a second value.")

    def patterns(self) -> Iterator[Candidate]:
        for split in self.splits():
            yield self.candidate(split)
            if self.ordered and len(split.common) > 1:
                yield self.candidate(replace(split, is_last=None))

    def splits(self) -> Iterator[Split]:
        corners = self.domain.corners()
        room, fewest = self.domain.most - self.steps, self._fewest
        bases: list[tuple[Row, ...]] = [(row,) * fewest for row in corners[:2]] if fewest else [()]
        if room:
            bases += [(row,) * room for row in (*corners[:2], *self.null)]
        if room > 1:
            bases += [(row,) for row in corners[:2]]
            if len(corners) > 1:
                bases.append((corners[0],) * (room // 2) + (corners[1],) * (room - room // 2))
            bases += [(row,) * room for row in corners[2:]]
        changes = list(self._changes(corners))
        return (Split(common, *change) for common in bases for change in changes)

    def staircases(self) -> Iterator[Candidate]:
        """Yield pairs whose common rows are low up to one of them and high from there, for every number of low ones."""
        low, high = (*self.domain.corners(), *self.domain.corners())[:2]
        most = self.domain.most - self.steps
        changes = list(self._changes(self.domain.corners()))
        for size in dict.fromkeys((most, most - 1, most - 2, self._fewest)):
            for n_low, change in product(range(1, size), changes):
                yield self.candidate(Split((low,) * n_low + (high,) * (size - n_low), *change))

    def lines(self) -> Iterator[Line]:
        if not self.domain.values:
            for place, (low, high) in enumerate(zip(*self.domain.ranges, strict=True)):
                yield Line(low, high, partial(self._with_number, place))

    def _with_number(self, place: int, number: float) -> Candidate:
        """Return the pair of a row whose other numbers are the lowest; it is added, or replaces the lowest row."""
        lowest = self.domain.corners()[0]
        parts = list(self.domain.ranges[0])
        parts[place] = number
        row = self.domain.row(parts)
        replaced = (*self.null, lowest)[:1] * self.steps if self.kind == "replaced" else ()
        return self.candidate(Split((lowest,) * self._fewest, (row,) * self.steps, replaced))

    @property
    def _fewest(self) -> int:
        """Fewest common rows of a pair; if rows are added to both, some such pairs are too small."""
        return max(self.domain.least - (self.steps if self.kind == "replaced" else 0), 0)

    def _changes(self, corners: tuple[Row, ...]) -> Iterator[tuple[tuple[Row, ...], tuple[Row, ...]]]:
        """Yield the rows that only x contains, and those that only y contains."""
        k, pairs = self.steps, combinations(corners, 2)
        if self.kind == "replaced":
            yield from (((a,) * k, (b,) * k) for a, b in (product(corners, self.null) if self.null else pairs))
            return
        yield from (((row,) * k, ()) for row in corners)
        if k > 1:
            yield from (((a,) * (k // 2), (b,) * (k - k // 2)) for a, b in pairs)

    def words(self, split: Split) -> str:
        if self.kind == "replaced":
            difference = f"x has {_listed(split.only_x)} where y has {_listed(split.only_y)}"
        else:
            sides = (("x", split.only_x), ("y", split.only_y))
            difference = " and ".join(f"{name} has {_more(rows)}" for name, rows in sides if rows)
        return f"{difference}; {f'both contain {_listed(split.common)}' if split.common else 'no other rows'}"

    def drawn(self, rng: np.random.Generator) -> Split:
        k, draw = self.steps, self._drawing(rng)
        pool = [draw() for _ in range(int(rng.integers(1, 4)))]

        def rows(count: int, among: list[Row]) -> tuple[Row, ...]:
            return tuple(among[int(rng.integers(len(among)))] if rng.random() < 0.5 else draw() for _ in range(count))

        n_common = int(rng.integers(min(self._fewest, self.domain.most - k), self.domain.most - k + 1))
        common = rows(n_common, [*pool, *self.null])
        in_x = k if self.kind == "replaced" else int(rng.choice([0, k // 2]))
        in_y = k if self.kind == "replaced" else k - in_x
        split = Split(common, rows(in_x, pool), self.null * in_y or rows(in_y, pool), bool(rng.random() < 0.5))
        return replace(split, is_last=None) if self.ordered and rng.random() < 1 / 3 else split

    def _drawing(self, rng: np.random.Generator) -> Callable[[], Row]:
        """Return what draws the rows of a pair; in half of all pairs they agree in some columns, as those of a user."""
        corner, draw = self.domain.corners()[0], partial(self.domain.draw, rng)
        is_listed = isinstance(self.domain, Rows) and self.domain.values
        if is_listed or not isinstance(corner, tuple) or len(corner) < 2 or rng.random() < 0.5:
            return draw
        first, is_shared = draw(), rng.random(len(corner)) < 0.5
        return lambda: tuple(a if one else b for a, b, one in zip(first, draw(), is_shared, strict=True))

    def _is_null(self, row: Row) -> bool:
        return _key(row) in map(_key, self.null)

    def changed(self, split: Split, rng: np.random.Generator) -> Split:
        common, row = list(split.common), self.domain.draw(rng)
        place = int(rng.integers(len(common))) if common else 0
        match rng.choice(["add", "add alone", "drop", "change", "same", "turn"]):
            case "drop" if common:
                return split.with_rows("common", common[:place] + common[place + 1 :])
            case "change" if common:
                return split.with_rows("common", [*common[:place], row, *common[place + 1 :]])
            case "same" if common:
                return split.with_rows("common", [row] * len(common))
            case "turn" if common:
                return replace(split, is_last=not split.is_last)
            case "add":
                return split.with_rows("common", [*common, row])
        side = "only_x" if split.only_x and (self.null or not split.only_y or rng.random() < 0.5) else "only_y"
        alone = list(getattr(split, side))
        if alone:  # else the rows of another table differ
            alone[int(rng.integers(len(alone)))] = row
        return split.with_rows(side, alone)

    def usual(self, row: Row) -> tuple[Row, ...]:
        return () if self.distinct else self.domain.corners()[:2]

    def allows(self, split: Split) -> bool:
        is_distinct = all(len({*map(_key, rows)}) == len(rows) for rows in split.ends)
        return (is_distinct or not self.distinct) and SplitPairs.allows(self, split)


@dataclass(frozen=True, slots=True)
class TablePairs(RowPairs):
    """The same for tables: the other rows keep to the declared columns, the row that differs may break them."""

    domain: Tables

    def cells(self, part: Any, place: int) -> Iterable[Any]:
        (low, *_), (high, *_) = (row[place:] for row in self.domain.usual)
        is_number = isinstance([*self.domain.columns.values()][place], NumericColumn)
        return [low, high, *(type(low)(number) for number in (0, 1) if is_number and low <= number <= high)]

    def splits(self) -> Iterator[Split]:
        low, high = self.domain.usual
        room, k = self.domain.most - self.steps, self.steps
        empty = [] if self.domain.empty is None else [(self.domain.empty,) * room]
        mixed = (low,) * (room // 2) + (high,) * (room - room // 2)
        nulls = [(row,) * room for row in self.null]
        bases = [(low,) * room, *empty, mixed, (low,) * self._fewest, (high,) * room, *nulls]
        corners = self.domain.corners()
        if self.kind == "replaced":
            pairs = [(low, row) for row in corners[1:]] + [(high, row) for row in corners[2:]]
            pairs = [*product(self.null, corners)] or pairs
            changes = [((row,) * k, (usual,) * k) for usual, row in pairs]
        else:
            changes = [((row,) * k, ()) for row in corners]
        return (Split(common, *change) for common in dict.fromkeys(bases) for change in changes)

    def staircases(self) -> Iterator[Candidate]:
        return iter(())


@dataclass(frozen=True, slots=True)
class UserPairs(SplitPairs):
    """Datasets that differ in `steps` users, added or removed with all their rows."""

    domain: Rows | Tables
    user: str | int
    changed_rows: Literal["any"] | int | None = None  # rows of a user that stays; else users are added and removed
    among: tuple[Any, ...] | None = None  # the users, if not all that the domain has

    has_many = True

    def __post_init__(self) -> None:
        users = self._users()
        if min(len(users), self.domain.most) < self.steps:
            raise DatasetError(
                f"datasets of {counted(len(users), 'user')} and most={self.domain.most} rows cannot differ in "
                f"{counted(self.steps, 'user')}; name more users, or use a larger most.",
                users=len(users),
                most=self.domain.most,
            )

    @property
    def _place(self) -> Any:
        """Key or position of the user in a row."""
        row = self.domain.corners()[0]
        columns, by_name = self.domain.names, isinstance(self.user, str) and not isinstance(row, dict)
        place: Any = self.user if not by_name else columns.index(str(self.user)) if self.user in columns else None
        try:
            row[place]
        except (KeyError, IndexError, TypeError) as error:
            raise AdjacencyError(
                f"user={self.user!r} is not in rows such as {shorten(row)}; pass the column or position of the user, "
                "and name the columns by Rows(columns=…).",
                user=self.user,
            ) from error
        return place

    @property
    def owner(self) -> int | None:
        return None if self._is_listed else self._place % len(self.domain.corners()[0])

    @property
    def _is_listed(self) -> bool:
        """Whether rows are listed with their users."""
        return isinstance(self.domain, Rows) and bool(self.domain.values)

    def _owner(self, row: Row) -> Hashable:
        owner: Hashable = outcome_key(row[self._place])
        return owner

    def _users(self) -> Sequence[Any]:
        """Return all possible users."""
        if self.among is not None:
            return self.among
        if self._is_listed:
            return list({self._owner(row): row[self._place] for row in self.domain.values}.values())
        ends: Any = [end[self._place] for end in self.domain.ranges] if isinstance(self.domain, Rows) else ()
        if isinstance(self.domain, Tables):
            column = [*self.domain.columns.values()][self._place]
            if isinstance(column, CategoricalColumn):
                return column.values
            ends = column.ends
        low, high = math.ceil(ends[0]), math.floor(ends[1])
        return range(low, min(high + 1, low + 2**62))  # of more users, Python tells no number

    @property
    def _largest(self) -> int:
        """Maximum number of rows of a user."""
        return min(getattr(self.domain, "rows_per_user", None) or self.domain.most, self.domain.most)

    def _rows_of(self, user: Any) -> list[Row]:
        """Return representative rows that this user can own."""
        if self._is_listed:
            return [row for row in self.domain.values if self._owner(row) == outcome_key(user)]
        return [self._owned(row, user) for row in self.domain.corners()]

    def usual(self, row: Row) -> tuple[Row, ...]:
        return tuple(self._rows_of(row[self._place])[:2])

    def _owned(self, row: Row, user: Any) -> Row:
        place = self._place % len(row)
        return (*row[:place], user, *row[place + 1 :])

    def _draw(self, user: Any, rng: np.random.Generator) -> Row:
        if not self._is_listed:
            return self._owned(self.domain.draw(rng), user)
        rows = self._rows_of(user)
        return rows[int(rng.integers(len(rows)))]

    def splits(self) -> Iterator[Split]:
        for split in self._of_users():
            yield from (split,) if self.changed_rows is None else self._changes(split)

    def _of_users(self) -> Iterator[Split]:
        """Yield the splits of users that only one dataset contains."""
        users, k, most = self._users(), self.steps, self.domain.most
        changed, others = users[:k], users[k:]
        for size in dict.fromkeys((min(self._largest, most // k), 1)):
            for end in (1, 0):
                alone = tuple(row for user in changed for row in [self._end(user, end)] * size)
                yield Split((), alone)
                if k > 1:
                    half = size * (k // 2)
                    yield Split((), alone[:half], alone[half:])
                room = most - len(alone)
                if others and room:
                    for other_end in (1, 0):
                        yield Split(tuple(self._end(user, other_end) for user in others[:room]), alone)
                    yield Split((self._end(others[0], 0),) * min(room, self._largest), alone)
        yield from self._spread(changed, others)

    def _spread(self, changed: Sequence[Any], others: Sequence[Any]) -> Iterator[Split]:
        """Yield splits whose rows have many values: what joins equal rows of several users sees all of these."""
        most, size = self.domain.most, min(self._largest, self.domain.most // self.steps)
        alone = tuple(row for user in changed for row in self._different(user, size))
        rest = others[: max(most - len(alone), 0)]
        common = tuple(self._different(user, size)[place % size] for place, user in enumerate(rest))
        for is_last in (False, True) if size > 1 and common else ():
            yield Split(common, alone, (), is_last)

    def _different(self, user: Any, size: int) -> list[Row]:
        """Return rows of the user, from one end of all ranges to the other, or with the first values in turn."""
        if self.domain.values:
            rows = self._rows_of(user)
            return [rows[i % len(rows)] for i in range(size)]
        low, high = (np.array(ends, dtype=np.float64) for ends in self.domain.ranges)
        return [self._owned(self.domain.row(parts), user) for parts in np.linspace(low, high, size).tolist()]

    def _end(self, user: Any, end: int) -> Row:
        """Return a row of the user at the low end (0) or at the high end (1)."""
        rows = self._rows_of(user)
        return rows[min(end, len(rows) - 1)]

    def words(self, split: Split) -> str:
        sides = (("x", split.only_x), ("y", split.only_y))
        more = ("more user", "row") if self.changed_rows is None else ("user", "more row")
        difference = " and ".join(f"{name} has {self._group(rows, *more)}" for name, rows in sides if rows)
        common = f"both contain {self._group(split.common)}" if split.common else "no other users"
        return f"{difference}; {common}"

    def _group(self, rows: tuple[Row, ...], users: str = "user", what: str = "row") -> str:
        n_users = len(set(map(self._owner, rows)))
        return f"{counted(n_users, users)} with {counted(len(rows), what)}, such as {shorten(rows[0])}"

    def drawn(self, rng: np.random.Generator) -> Split:
        users, room = self._users(), self.domain.most
        sides: tuple[list[Row], ...] = ([], [], [])
        for i, index in enumerate(rng.choice(len(users), min(len(users), room), replace=False).tolist()):
            still = max(self.steps - i - 1, 0)  # users who need a row each
            if i >= self.steps and (room == 0 or rng.random() < 0.3):
                break
            size = 1 + int(rng.integers(min(self._largest, room - still)))
            room -= size
            side = sides[0] if i >= self.steps else sides[1 + int(rng.integers(2))]
            side += [self._draw(users[index], rng) for _ in range(size)]
        common, only_x, only_y = map(tuple, sides)
        split = Split(common, only_x, only_y, bool(rng.random() < 0.5))
        return split if self.changed_rows is None else self.redrawn(split, rng)

    def redrawn(self, split: Split, rng: np.random.Generator) -> Split:
        """Return a split in which the users of the rows that one dataset contains alone have other rows."""
        mine, rest = self._divided((*split.only_x, *split.only_y))
        other = tuple(self._draw(row[self._place], rng) for row in mine if rng.random() < 0.8)
        stay = mine[:1] if rng.random() < 0.5 else ()
        return Split((*split.common, *rest, *stay), mine, other, split.is_last)

    def _changes(self, split: Split) -> Iterator[Split]:
        """Yield splits in which the users of the rows that one dataset contains alone have other rows, or fewer."""
        mine, rest = self._divided((*split.only_x, *split.only_y))
        common, other = (*split.common, *rest), tuple(map(self._opposite, mine))
        yield Split(common, mine, other, split.is_last)
        yield Split(common, mine, other[:1], split.is_last)
        stay = {self._owner(row): row for row in other}
        for kept in (stay.values(), ()):
            yield Split((*common, *kept), mine, (), split.is_last)

    def _opposite(self, row: Row) -> Row:
        """Return the row of the same user at the other end."""
        rows = self._rows_of(row[self._place])
        return next((each for each in rows[1::-1] if _key(each) != _key(row)), row)

    def _divided(self, rows: Iterable[Row]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """Return the first rows of each user, as many as may change, and the others."""
        most = self.changed_rows if isinstance(self.changed_rows, int) else math.inf
        count, sides = Counter[Hashable](), (list[Row](), list[Row]())
        for row in rows:
            count[self._owner(row)] += 1
            sides[count[self._owner(row)] > most].append(row)
        return tuple(sides[0]), tuple(sides[1])

    def allows(self, split: Split) -> bool:
        owned = (Counter(map(self._owner, rows)) for rows in split.ends)
        largest = max(max(rows.values(), default=0) for rows in owned)
        return largest <= self._largest and SplitPairs.allows(self, split)

    def changed(self, split: Split, rng: np.random.Generator) -> Split:
        side = str(rng.choice(["common", "only_x", "only_y"]))
        rows: list[Row] = list(getattr(split, side))
        users = [row[self._place] for row in rows] if side != "common" else self._users()
        match rng.choice(["add", "drop", "change", "turn"]):
            case "add" if users:
                rows.append(self._draw(users[int(rng.integers(len(users)))], rng))
            case "drop" if rows:
                del rows[int(rng.integers(len(rows)))]
            case "change" if rows:
                place = int(rng.integers(len(rows)))
                rows[place] = self._draw(rows[place][self._place], rng)
            case _:
                return replace(split, is_last=not split.is_last)
        return split.with_rows(side, rows)


Splits = dict[str, Split]


@dataclass(frozen=True, slots=True)
class SeveralTablePairs(PairSource):
    """Pairs of dictionaries of tables, made from a split of each table; all differences are in one table, or of users.

    Each table has its own source of pairs. The tables in `owned` share their users; without any, one table differs.
    """

    sources: dict[str, SplitPairs]
    owned: dict[str, UserPairs]

    has_many = True

    def patterns(self) -> Iterator[Candidate]:
        if not self.owned:
            by_table = zip_longest(*map(self._of_one_table, self.sources))
            yield from (self._candidate(parts) for found in by_table for parts in found if parts is not None)
        for fill in self._fills() if self.owned else ():
            for splits in zip(*(source.splits() for source in self.owned.values()), strict=False):
                parts = dict(zip(self.owned, splits, strict=True))
                yield self._candidate({**fill, **parts})
                both = {name: Split((*each.common, *each.only_x)) for name, each in parts.items()}
                yield from (self._candidate({**fill, **both, name: split}) for name, split in parts.items())

    def _of_one_table(self, name: str) -> Iterator[Splits]:
        return ({**fill, name: split} for fill in self._fills() for split in self.sources[name].splits())

    def _fills(self) -> Iterator[Splits]:
        """Yield equal tables: as many rows as they may have, at one end or at both, or as few."""
        domains = {name: source.domain for name, source in self.sources.items()}
        for size, ends in (("most", slice(1)), ("least", slice(1)), ("most", slice(1, 2)), ("most", slice(None))):
            rows = {name: cycle(domain.corners()[ends] or domain.corners()) for name, domain in domains.items()}
            yield {name: Split(tuple(islice(rows[name], getattr(each, size)))) for name, each in domains.items()}

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            parts = {name: self._equal(source.domain, rng) for name, source in self.sources.items()}
            if self.owned:
                parts |= self._of_users(rng)
            else:
                name = [*self.sources][int(rng.integers(len(self.sources)))]
                parts[name] = self.sources[name].drawn(rng)
            yield self._candidate(parts, "random pair: ")

    def _equal(self, domain: Rows | Tables, rng: np.random.Generator) -> Split:
        """Return equal tables of a few different rows."""
        pool = [domain.draw(rng) for _ in range(int(rng.integers(1, 4)))]
        count = int(rng.integers(domain.least, domain.most + 1))
        return Split(tuple(pool[int(rng.integers(len(pool)))] for _ in range(count)))

    def _of_users(self, rng: np.random.Generator) -> Splits:
        """Return the rows of random users in all tables, of which the first ones differ."""
        first = next(iter(self.owned.values()))
        users, changed = first._users(), str(rng.choice([*self.owned]))
        chosen = rng.choice(len(users), min(len(users), first.steps + int(rng.integers(3))), replace=False).tolist()
        sides = ["common" if i >= first.steps else _SIDES[1 + int(rng.integers(2))] for i in range(len(chosen))]
        parts: Splits = {}
        for name, source in self.owned.items():
            split = Split()
            for index, side in zip(chosen, sides, strict=True):
                rows = [source._draw(users[index], rng) for _ in range(int(rng.integers(source._largest + 1)))]
                split = split.with_rows(side, (*getattr(split, side), *rows))
            if first.changed_rows is not None and (name == changed or first.changed_rows == "any"):
                split = source.redrawn(split, rng)
            elif first.changed_rows is not None:
                split = Split((*split.common, *split.only_x, *split.only_y))
            parts[name] = split
        return parts

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            name = [*self.sources][int(rng.integers(len(self.sources)))]
            yield self._candidate({**candidate.parts, name: self.sources[name].changed(candidate.parts[name], rng)})

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        for name, source in self.sources.items():
            for split in source.simpler_splits(candidate.parts[name]):
                yield self._candidate({**candidate.parts, name: split})

    def lines(self) -> Iterator[Line]:
        fill = next(self._fills())
        return (self._beside(fill, name, line) for name, source in self.sources.items() for line in source.lines())

    def lines_near(self, candidate: Candidate) -> Iterator[Line]:
        parts = candidate.parts
        for name in sorted(parts, key=lambda each: not (parts[each].only_x or parts[each].only_y)):
            for line in self.sources[name].lines_near(Candidate("", None, None, parts[name])):
                yield self._beside(parts, name, line)

    def _beside(self, parts: Splits, name: str, line: Line) -> Line:
        """Return a line of one table beside the others."""
        return replace(line, at=lambda number: self._candidate({**parts, name: line.at(number).parts}))

    def is_allowed(self, candidate: Candidate) -> bool:
        return all(source.allows(candidate.parts[name]) for name, source in self.sources.items())

    def _candidate(self, parts: Splits, label: str = "") -> Candidate:
        made = {name: source.candidate(parts[name]) for name, source in self.sources.items()}
        differing = [name for name, split in parts.items() if split.only_x or split.only_y]
        words = [f"{name}: {made[name].label}" for name in differing]
        words += [f"{name}: {_listed(split.common)}" for name, split in parts.items() if name not in differing]
        return Candidate(
            label + "; ".join(words),
            {name: each.x for name, each in made.items()},
            {name: each.y for name, each in made.items()},
            parts,
            tuple(zip(*(each.ends for each in made.values() if each.ends), strict=True)),
            tuple(each.group for each in made.values()),
            sum(each.size for each in made.values()),
        )


def _key(row: Row) -> Hashable:
    """Return what is equal for equal rows; of other kinds than numbers and texts only for one and the same row."""
    return repr(row) if _is_plain(row) else id(row)


def _is_plain(row: Row) -> bool:
    if isinstance(row, (tuple, list, dict)):
        return all(map(_is_plain, row.items() if isinstance(row, dict) else row))
    return isinstance(row, (str, int, float, type(None)))


def _listed(rows: tuple[Row, ...]) -> str:
    """Describe rows: `[1.0]`, `[0.0, 1.0]` or `4 rows, all 1.0`."""
    is_repeated = len(rows) > 1 and len(set(map(shorten, rows))) == 1
    return f"{len(rows)} rows, all {shorten(rows[0])}" if is_repeated else shorten(list(rows))


def _more(rows: tuple[Row, ...]) -> str:
    """Describe additional rows: `one more row, 1.0`, or `2 more rows, [0.0, 1.0]`."""
    return f"one more row, {shorten(rows[0])}" if len(rows) == 1 else f"{len(rows)} more rows, {shorten(list(rows))}"
