"""Pairs of collections of rows: rows that both contain, and rows that only one contains, of some users in all."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np

from ..datasets.domains import Rows
from ..datasets.tables import NumericColumn, Tables
from ..errors import AdjacencyError, DatasetError
from ..events.outputs import outcome_key
from ..printing import counted, shorten
from .candidates import VARIATION, Candidate, Line, PairSource, chunks

Row = Any
_SIDES = ("only_x", "only_y", "common")


@dataclass(frozen=True, slots=True)
class Split:
    """Two datasets: common rows, and rows that only one contains, which come last (or first)."""

    common: tuple[Row, ...] = ()
    only_x: tuple[Row, ...] = ()
    only_y: tuple[Row, ...] = ()
    is_last: bool = True

    @property
    def ends(self) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        """The rows of x and of y."""
        x, y = (self.common + only if self.is_last else only + self.common for only in (self.only_x, self.only_y))
        return x, y

    def with_rows(self, side: str, rows: Iterable[Row]) -> Split:
        """Return the split with other rows in `common`, `only_x` or `only_y`."""
        changed: dict[str, Any] = {side: tuple(rows)}
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class SplitPairs(PairSource, ABC):
    """Pairs of collections of rows, each made from a `Split`."""

    domain: Rows | Tables
    steps: int

    @property
    def owner(self) -> int | None:
        """The column that holds the user, if one does; its numbers are names."""
        return None

    @abstractmethod
    def splits(self) -> Iterator[Split]:
        """Yield the splits of the patterns."""

    @abstractmethod
    def drawn(self, rng: np.random.Generator) -> Split:
        """Return a random split."""

    @abstractmethod
    def changed(self, split: Split, rng: np.random.Generator) -> Split:
        """Return a random variation of a split."""

    @abstractmethod
    def words(self, split: Split) -> str:
        """Describe a pair."""

    def patterns(self) -> Iterator[Candidate]:
        return (self._candidate(split, self.words(split)) for split in self.splits())

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            split = self.drawn(rng)
            yield self._candidate(split, f"random pair: {self.words(split)}")

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            split = self.changed(candidate.parts, rng)
            yield self._candidate(split, f"{self.words(split)}{VARIATION}")

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        for split in self._simpler(candidate.parts):
            yield self._candidate(split, self.words(split))

    def _simpler(self, split: Split) -> Iterator[Split]:
        """Yield splits with equal rows, fewer rows, a smaller difference, and simpler rows: all equal ones, or one.

        Of equal rows it does not matter which are left out, so a few trials leave out many.
        """
        common, only_x, only_y = split.common, split.only_x, split.only_y
        yield split.with_rows("common", ())
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
            fewer = [rows[:place] + rows[place + 1 :] for rows in (only_x, only_y)]
            yield split.with_rows("only_x", fewer[0])
            yield split.with_rows("only_y", fewer[1])
            yield replace(split, only_x=fewer[0], only_y=fewer[1])
        for key, row in {_key(row): row for row in (*only_x, *only_y, *common)}.items():
            for simple in self._simpler_rows(row, ()):
                changed = split
                for side in _SIDES:
                    rows = (simple if _key(each) == key else each for each in getattr(split, side))
                    changed = changed.with_rows(side, rows)
                yield changed
        for side, others in (("only_x", only_y), ("only_y", only_x), ("common", ())):
            rows = getattr(split, side)
            alike = {_key(row): place for place, row in reversed([*enumerate(rows)])}  # the first of equal rows
            for place in alike.values() if side == "common" else range(len(rows)):
                row = rows[place]
                for simple in self._simpler_rows(row, others[place : place + 1]):
                    yield split.with_rows(side, (*rows[:place], simple, *rows[place + 1 :]))

    def usual(self, row: Row) -> tuple[Row, ...]:
        """Return the usual rows to put in the place of a row."""
        return self.domain.corners()[:2]

    def _simpler_rows(self, row: Row, partner: tuple[Row, ...]) -> Iterator[Row]:
        """Yield rows that may be simpler, whole and cell by cell; the partner is the row that it replaces."""
        yield from self.usual(row)
        parts = row if isinstance(row, tuple) else (row,)
        for place, part in enumerate(parts):
            cells = [*self.cells(part, place)] if place != self.owner else []
            alike = [other[place] for other in partner if isinstance(other, tuple)] if cells else []
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
        for side in _SIDES if not self.domain.values else ():
            rows = getattr(split, side)
            for row in dict.fromkeys(rows):
                for place, (low, high) in enumerate(zip(*self.domain.ranges, strict=True)):
                    if place == self.owner:
                        continue
                    yield Line(low, high, partial(self._with_part, split, side, rows.index(row), place))

    def _with_part(self, split: Split, side: str, index: int, place: int, number: float) -> Candidate:
        """Return the pair with another number in one column of one row."""
        rows = list(getattr(split, side))
        parts = list(rows[index]) if isinstance(rows[index], tuple) else [rows[index]]
        parts[place] = number
        rows[index] = self.domain.row(parts)
        changed = split.with_rows(side, rows)
        return self._candidate(changed, f"{self.words(changed)}{VARIATION}")

    def is_allowed(self, candidate: Candidate) -> bool:
        sizes = [len(rows) for rows in candidate.parts.ends]
        return self.domain.least <= min(sizes) and max(sizes) <= self.domain.most

    def _candidate(self, split: Split, label: str) -> Candidate:
        x, y = (self.domain.build(rows) for rows in split.ends)
        alone = frozenset([len(split.only_x), len(split.only_y)])
        in_x, in_y = (tuple(map(_key, rows)) for rows in split.ends)
        return Candidate(
            label, x, y, split, (in_x, in_y), (alone, min(len(split.common), 1)), float(sum(map(len, split.ends)))
        )


@dataclass(frozen=True, slots=True)
class RowPairs(SplitPairs):
    """Datasets `steps` rows apart, by adding and removing or by replacing rows."""

    kind: Literal["added", "replaced"]

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
        if self.kind == "replaced" and len(self.domain.corners()) < 2:
            raise AdjacencyError("rows of a single value cannot be replaced by others; give a second value.")

    def splits(self) -> Iterator[Split]:
        corners = self.domain.corners()
        room, fewest = self.domain.most - self.steps, self._fewest
        bases: list[tuple[Row, ...]] = [(row,) * fewest for row in corners[:2]] if fewest else [()]
        if room:
            bases += [(row,) * room for row in corners[:2]]
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
            for n_low in range(1, size):
                for change in changes:
                    split = Split((low,) * n_low + (high,) * (size - n_low), *change)
                    yield self._candidate(split, self.words(split))

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
        replaced = (lowest,) * self.steps if self.kind == "replaced" else ()
        split = Split((lowest,) * self._fewest, (row,) * self.steps, replaced)
        return self._candidate(split, self.words(split))

    @property
    def _fewest(self) -> int:
        """Fewest common rows of a pair; if rows are added to both, some such pairs are too small."""
        return max(self.domain.least - (self.steps if self.kind == "replaced" else 0), 0)

    def _changes(self, corners: tuple[Row, ...]) -> Iterator[tuple[tuple[Row, ...], tuple[Row, ...]]]:
        """Yield the rows that only x contains, and those that only y contains."""
        k = self.steps
        if self.kind == "replaced":
            yield from (((a,) * k, (b,) * k) for a, b in combinations(corners, 2))
            return
        yield from (((row,) * k, ()) for row in corners)
        if k > 1:
            yield from (((a,) * (k // 2), (b,) * (k - k // 2)) for a, b in combinations(corners, 2))

    def words(self, split: Split) -> str:
        if self.kind == "replaced":
            difference = f"x has {_listed(split.only_x)} where y has {_listed(split.only_y)}"
        else:
            sides = (("x", split.only_x), ("y", split.only_y))
            difference = " and ".join(f"{name} has {_more(rows)}" for name, rows in sides if rows)
        return f"{difference}; {f'both contain {_listed(split.common)}' if split.common else 'no other rows'}"

    def drawn(self, rng: np.random.Generator) -> Split:
        k = self.steps
        pool = [self.domain.draw(rng) for _ in range(int(rng.integers(1, 4)))]

        def rows(count: int) -> tuple[Row, ...]:
            return tuple(
                pool[int(rng.integers(len(pool)))] if rng.random() < 0.5 else self.domain.draw(rng)
                for _ in range(count)
            )

        common = rows(int(rng.integers(min(self._fewest, self.domain.most - k), self.domain.most - k + 1)))
        in_x = k if self.kind == "replaced" else int(rng.choice([0, k // 2]))
        in_y = k if self.kind == "replaced" else k - in_x
        return Split(common, rows(in_x), rows(in_y), bool(rng.random() < 0.5))

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
        side = "only_x" if split.only_x and (not split.only_y or rng.random() < 0.5) else "only_y"
        alone = list(getattr(split, side))
        alone[int(rng.integers(len(alone)))] = row
        return split.with_rows(side, alone)


@dataclass(frozen=True, slots=True)
class DistinctRowPairs(RowPairs):
    """The same for listed rows of which a dataset has each once."""

    def usual(self, row: Row) -> tuple[Row, ...]:
        return ()

    def is_allowed(self, candidate: Candidate) -> bool:
        is_distinct = all(len({*map(_key, rows)}) == len(rows) for rows in candidate.parts.ends)
        return is_distinct and SplitPairs.is_allowed(self, candidate)


@dataclass(frozen=True, slots=True)
class TablePairs(RowPairs):
    """The same for tables: the other rows keep to the declared columns, the row that differs may break them."""

    domain: Tables

    def cells(self, part: Any, place: int) -> Iterable[Any]:
        (low, *_), (high, *_) = (row[place:] for row in self.domain.usual)
        is_number = isinstance(self.domain.columns[place][1], NumericColumn)
        return [low, high, *(type(low)(number) for number in (0, 1) if is_number and low <= number <= high)]

    def splits(self) -> Iterator[Split]:
        low, high = self.domain.usual
        room, k = self.domain.most - self.steps, self.steps
        empty = [] if self.domain.empty is None else [(self.domain.empty,) * room]
        mixed = (low,) * (room // 2) + (high,) * (room - room // 2)
        bases = [(low,) * room, *empty, mixed, (low,) * self._fewest, (high,) * room]
        corners = self.domain.corners()
        if self.kind == "replaced":
            pairs = [(low, row) for row in corners[1:]] + [(high, row) for row in corners[2:]]
            changes = [((row,) * k, (usual,) * k) for usual, row in pairs]
        else:
            changes = [((row,) * k, ()) for row in corners]
        return (Split(common, *change) for common in dict.fromkeys(bases) for change in changes)

    def staircases(self) -> Iterator[Candidate]:
        return iter(())


@dataclass(frozen=True, slots=True)
class UserPairs(SplitPairs):
    """Datasets that differ in `steps` users, added or removed with all their rows."""

    domain: Rows
    user: str | int

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
        row, columns = self.domain.corners()[0], self.domain.columns
        by_name = isinstance(self.user, str) and not isinstance(row, dict)
        place = self.user if not by_name else columns.index(str(self.user)) if self.user in columns else None
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
        return None if self.domain.values else self._place % len(self.domain.ranges[0])

    def _owner(self, row: Row) -> Hashable:
        owner: Hashable = outcome_key(row[self._place])
        return owner

    def _users(self) -> Sequence[Any]:
        """Return all possible users."""
        if self.domain.values:
            return list({self._owner(row): row[self._place] for row in self.domain.values}.values())
        low, high = math.ceil(self.domain.ranges[0][self._place]), math.floor(self.domain.ranges[1][self._place])
        return range(low, min(high + 1, low + 2**62))  # of more users, Python tells no number

    @property
    def _largest(self) -> int:
        """Maximum number of rows of a user."""
        return min(self.domain.rows_per_user or self.domain.most, self.domain.most)

    def _rows_of(self, user: Any) -> list[Row]:
        """Return representative rows that this user can own."""
        if self.domain.values:
            return [row for row in self.domain.values if self._owner(row) == outcome_key(user)]
        return [self._owned(row, user) for row in self.domain.corners()]

    def usual(self, row: Row) -> tuple[Row, ...]:
        return tuple(self._rows_of(row[self._place])[:2])

    def _owned(self, row: Row, user: Any) -> Row:
        place = self._place % len(row)
        return (*row[:place], user, *row[place + 1 :])

    def _draw(self, user: Any, rng: np.random.Generator) -> Row:
        if not self.domain.values:
            return self._owned(self.domain.draw(rng), user)
        rows = self._rows_of(user)
        return rows[int(rng.integers(len(rows)))]

    def splits(self) -> Iterator[Split]:
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
        common = tuple(
            row
            for place, user in enumerate(others[: max(most - len(alone), 0)])
            for row in self._different(user, size)[place % size :][:1]
        )
        for is_last in (False, True) if size > 1 and common else ():
            yield Split(common, alone, (), is_last)

    def _different(self, user: Any, size: int) -> list[Row]:
        """Return rows of the user, from one end of all ranges to the other, or with the first values in turn."""
        if self.domain.values:
            rows = self._rows_of(user)
            return [rows[i % len(rows)] for i in range(size)]
        low, high = self.domain.ranges
        shares = np.linspace(0.0, 1.0, size)
        return [
            self._owned(self.domain.row([a + share * (b - a) for a, b in zip(low, high, strict=True)]), user)
            for share in shares.tolist()
        ]

    def _end(self, user: Any, end: int) -> Row:
        """Return a row of the user at the low end (0) or at the high end (1)."""
        rows = self._rows_of(user)
        return rows[min(end, len(rows) - 1)]

    def words(self, split: Split) -> str:
        sides = (("x", split.only_x), ("y", split.only_y))
        difference = " and ".join(f"{name} has {self._group(rows, 'more user')}" for name, rows in sides if rows)
        common = f"both contain {self._group(split.common, 'user')}" if split.common else "no other users"
        return f"{difference}; {common}"

    def _group(self, rows: tuple[Row, ...], noun: str) -> str:
        users = len(set(map(self._owner, rows)))
        return f"{counted(users, noun)} with {counted(len(rows), 'row')}, such as {shorten(rows[0])}"

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
        return Split(common, only_x, only_y, bool(rng.random() < 0.5))

    def is_allowed(self, candidate: Candidate) -> bool:
        ends = candidate.parts.ends
        largest = max(max(Counter(map(self._owner, rows)).values(), default=0) for rows in ends)
        return largest <= self._largest and SplitPairs.is_allowed(self, candidate)

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
