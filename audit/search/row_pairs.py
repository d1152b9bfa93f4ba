"""Pairs of collections of rows: what both have, and what one of them has alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..datasets.domains import Rows
from ..datasets.rows import rows_of
from ..errors import AdjacencyError, DatasetError
from ..printing import shorten
from .candidates import Candidate, PairSource, varied

Row = Any


@dataclass(frozen=True, slots=True)
class Split:
    """Two datasets: the rows of both, and those of one alone, which come last (or first)."""

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
        """With other rows in `common`, `only_x` or `only_y`."""
        changed: dict[str, Any] = {side: tuple(rows)}
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class RowPairs(PairSource):
    """Datasets `steps` rows apart: added and removed, or replaced."""

    domain: Rows
    steps: int
    kind: Literal["added", "replaced"]

    def __post_init__(self) -> None:
        if self.domain.most < self.steps:
            raise DatasetError(
                f"most={self.domain.most} rows cannot differ in {self.steps}; use most >= {self.steps}.",
                most=self.domain.most,
            )
        if self.kind == "replaced" and len(self.domain.corners()) < 2:
            raise AdjacencyError("rows of a single value cannot be replaced by others; give a second value.")

    def patterns(self) -> Iterator[Candidate]:
        corners = self.domain.corners()
        room = self.domain.most - self.steps
        changes = list(self._changes(corners))
        bases: list[tuple[str, tuple[Row, ...]]] = [("nothing else", ())]
        if room:
            bases += [(f"{room} × {shorten(row)}", (row,) * room) for row in corners[:2]]
        if room > 1:
            bases += [(f"one {shorten(row)}", (row,)) for row in corners[:2]]
            if len(corners) > 1:
                half = (corners[0],) * (room // 2) + (corners[1],) * (room - room // 2)
                bases.append(("half at one end and half at the other", half))
            bases += [(f"{room} × {shorten(row)}", (row,) * room) for row in corners[2:]]
        for base, common in bases:
            for words, only_x, only_y in changes:
                is_duplicate = common and set(rows_of(only_x)) <= set(rows_of(common))
                label = f"{words}{', duplicates' if is_duplicate else ''}; in both {base}"
                yield self._candidate(label, Split(common, only_x, only_y))

    def _changes(self, corners: tuple[Row, ...]) -> Iterator[tuple[str, tuple[Row, ...], tuple[Row, ...]]]:
        """What x and y have alone, with words for it."""
        k = self.steps
        others = [(a, b) for i, a in enumerate(corners) for b in corners[i + 1 :]]
        if self.kind == "added":
            for row in corners:
                yield f"{k} × {shorten(row)} more", (row,) * k, ()
            if k > 1:
                for a, b in others:
                    half = k // 2
                    yield f"{half} × {shorten(a)} for {k - half} × {shorten(b)}", (a,) * half, (b,) * (k - half)
        else:
            for a, b in others:
                yield f"{k} × {shorten(a)} for {shorten(b)}", (a,) * k, (b,) * k

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            yield self._random(rng)

    def _random(self, rng: np.random.Generator) -> Candidate:
        k = self.steps
        pool = [self.domain.draw(rng) for _ in range(int(rng.integers(1, 4)))]

        def rows(count: int) -> tuple[Row, ...]:
            return tuple(
                pool[int(rng.integers(len(pool)))] if rng.random() < 0.5 else self.domain.draw(rng)
                for _ in range(count)
            )

        common = rows(int(rng.integers(self.domain.most - k + 1)))
        in_x = k if self.kind == "replaced" else int(rng.choice([0, k // 2]))
        in_y = k if self.kind == "replaced" else k - in_x
        return self._candidate("random", Split(common, rows(in_x), rows(in_y), bool(rng.random() < 0.5)))

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        while True:
            how, split = self._move(candidate.parts, rng)
            yield self._candidate(varied(candidate, how), split)

    def is_allowed(self, candidate: Candidate) -> bool:
        return max(map(len, candidate.parts.ends)) <= self.domain.most

    def _move(self, split: Split, rng: np.random.Generator) -> tuple[str, Split]:
        common, row = list(split.common), self.domain.draw(rng)
        place = int(rng.integers(len(common))) if common else 0
        match rng.choice(["add", "add alone", "drop", "change", "same", "turn"]):
            case "drop" if common:
                del common[place]
                return "a row of both dropped", split.with_rows("common", common)
            case "change" if common:
                common[place] = row
                return "a row of both changed", split.with_rows("common", common)
            case "same" if common:
                return "all rows of both alike", split.with_rows("common", [row] * len(common))
            case "turn" if common:
                return "in another order", replace(split, is_last=not split.is_last)
            case "add":
                return "a row added to both", split.with_rows("common", [*common, row])
        side = "only_x" if split.only_x and (not split.only_y or rng.random() < 0.5) else "only_y"
        alone = list(getattr(split, side))
        alone[int(rng.integers(len(alone)))] = row
        return "another row changed between them", split.with_rows(side, alone)

    def _candidate(self, label: str, split: Split) -> Candidate:
        return build_rows(self.domain, label, split)


def build_rows(domain: Rows, label: str, split: Split) -> Candidate:
    """The candidate of a split."""
    x, y = (domain.build(rows) for rows in split.ends)
    return Candidate(label, x, y, split, frozenset(tuple(map(repr, rows)) for rows in split.ends))
