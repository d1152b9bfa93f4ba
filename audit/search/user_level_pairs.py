"""Pairs of collections of rows that differ in all the rows of some users."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..datasets.domains import Rows
from ..errors import AdjacencyError, DatasetError
from ..events.outputs import outcome_key
from ..printing import shorten
from .candidates import Candidate
from .row_pairs import Row, Split, SplitPairs


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
                f"datasets of {_count(len(users), 'user')} and most={self.domain.most} rows cannot differ in "
                f"{_count(self.steps, 'user')}; name more users, or use a larger most.",
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
        return f"{_count(users, noun)} with {_count(len(rows), 'row')}, such as {shorten(rows[0])}"

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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
