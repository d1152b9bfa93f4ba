"""Pairs of collections of rows that differ in all the rows of a user."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..datasets.domains import Rows
from ..errors import AdjacencyError, DatasetError
from ..events.outputs import outcome_key
from ..printing import shorten
from .candidates import Candidate, PairSource, varied
from .row_pairs import Row, Split, build_rows

_MOST_USERS = 1000  # of those that numbers can name


@dataclass(frozen=True, slots=True)
class UserPairs(PairSource):
    """Datasets that differ in `steps` users, added or removed with all their rows."""

    domain: Rows
    steps: int
    user: str | int

    def __post_init__(self) -> None:
        users = self._users()
        if min(len(users), self.domain.most) < self.steps:
            raise DatasetError(
                f"{_count(len(users), 'user')} and most={self.domain.most} rows make no pair that differs in "
                f"{_count(self.steps, 'user')}; name more users, or use a larger most.",
                users=len(users),
                most=self.domain.most,
            )

    @property
    def _place(self) -> Any:
        """Where a row names its user: a key or a position."""
        row, columns = self.domain.corners()[0], self.domain.columns
        by_name = isinstance(self.user, str) and not isinstance(row, dict)
        place = self.user if not by_name else columns.index(str(self.user)) if self.user in columns else None
        try:
            row[place]
        except (KeyError, IndexError, TypeError) as error:
            raise AdjacencyError(
                f"user={self.user!r} is not in rows such as {shorten(row)}; name the column or position of the user, "
                "and the columns by Rows(columns=…).",
                user=self.user,
            ) from error
        return place

    def _owner(self, row: Row) -> Hashable:
        owner: Hashable = outcome_key(row[self._place])
        return owner

    def _users(self) -> list[Any]:
        """Everyone there can be."""
        if self.domain.values:
            return list({self._owner(row): row[self._place] for row in self.domain.values}.values())
        low, high = math.ceil(self.domain.ranges[0][self._place]), math.floor(self.domain.ranges[1][self._place])
        return list(range(low, min(high + 1, low + _MOST_USERS)))

    @property
    def _largest(self) -> int:
        """Rows of a user at most."""
        return min(self.domain.rows_per_user or self.domain.most, self.domain.most)

    def _rows_of(self, user: Any) -> list[Row]:
        """Rows that this user can own, to stand for all."""
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

    def patterns(self) -> Iterator[Candidate]:
        users, k, most = self._users(), self.steps, self.domain.most
        changed, others = users[:k], users[k:]
        for size in dict.fromkeys((min(self._largest, most // k), 1)):
            for end in (1, 0):
                alone = _flat([self._end(user, end)] * size for user in changed)
                words = f"{_count(k, 'user')} of {_count(size, 'row')}, such as {shorten(alone[0])}"
                yield self._candidate(f"{words}; nobody else", Split((), alone))
                if k > 1:
                    half = size * (k // 2)
                    split = Split((), alone[:half], alone[half:])
                    yield self._candidate(f"{words}, some on each side; nobody else", split)
                room = most - len(alone)
                for other_end in (1, 0):
                    common = tuple(self._end(user, other_end) for user in others[:room])
                    if common:
                        each = f"others of one row each, such as {shorten(common[0])}"
                        yield self._candidate(f"{words}; {each}", Split(common, alone))
                if others and room:
                    common = (self._end(others[0], 0),) * min(room, self._largest)
                    yield self._candidate(f"{words}; another of {_count(len(common), 'row')}", Split(common, alone))

    def _end(self, user: Any, end: int) -> Row:
        """A row of the user at the low end, or at the high one."""
        rows = self._rows_of(user)
        return rows[min(end, len(rows) - 1)]

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            yield self._random(rng)

    def _random(self, rng: np.random.Generator) -> Candidate:
        users, room = self._users(), self.domain.most
        sides: tuple[list[Row], ...] = ([], [], [])
        for i, index in enumerate(rng.permutation(len(users))[: self.domain.most].tolist()):
            still = max(self.steps - i - 1, 0)  # users who need a row each
            if i >= self.steps and (room == 0 or rng.random() < 0.3):
                break
            size = 1 + int(rng.integers(min(self._largest, room - still)))
            room -= size
            side = sides[0] if i >= self.steps else sides[1 + int(rng.integers(2))]
            side += [self._draw(users[index], rng) for _ in range(size)]
        common, only_x, only_y = map(tuple, sides)
        return self._candidate("random", Split(common, only_x, only_y, bool(rng.random() < 0.5)))

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            how, split = self._move(candidate.parts, rng)
            yield self._candidate(varied(candidate, how), split)

    def is_allowed(self, candidate: Candidate) -> bool:
        ends = candidate.parts.ends
        largest = max(max(Counter(map(self._owner, rows)).values(), default=0) for rows in ends)
        return largest <= self._largest and max(map(len, ends)) <= self.domain.most

    def _move(self, split: Split, rng: np.random.Generator) -> tuple[str, Split]:
        side = str(rng.choice(["common", "only_x", "only_y"]))
        rows: list[Row] = list(getattr(split, side))
        words = "of both" if side == "common" else "of one alone"
        users = [row[self._place] for row in rows] if side != "common" else self._users()
        match rng.choice(["add", "drop", "change", "turn"]):
            case "add" if users:
                rows.append(self._draw(users[int(rng.integers(len(users)))], rng))
                return f"a row {words} added", split.with_rows(side, rows)
            case "drop" if rows:
                del rows[int(rng.integers(len(rows)))]
                return f"a row {words} dropped", split.with_rows(side, rows)
            case "change" if rows:
                place = int(rng.integers(len(rows)))
                rows[place] = self._draw(rows[place][self._place], rng)
                return f"a row {words} changed", split.with_rows(side, rows)
        return "in another order", replace(split, is_last=not split.is_last)

    def _candidate(self, label: str, split: Split) -> Candidate:
        return build_rows(self.domain, label, split)


def _flat(groups: Iterable[Iterable[Row]]) -> tuple[Row, ...]:
    return tuple(row for group in groups for row in group)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
