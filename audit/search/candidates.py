"""Pairs of datasets as candidates for the worst one, and where they come from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..datasets.adjacency import Adjacency
from ..datasets.description import edges_of
from ..datasets.rows import is_frame, is_graph
from ..errors import AuditError, OptionError
from ..printing import shorten


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pair that may be the worst.

    Attributes
    ----------
    label : str
        The pattern, in words.
    x, y : Any
        The datasets.
    parts : Any
        What the pair was built from, for its source to vary.
    key : Hashable
        Equal for pairs that are the same, in either order; None where nobody knows.
    is_promised : bool
        Whether the caller says that it is a pair of neighbours.
    is_pattern : bool
        Whether it is one to begin with, and no variation.
    """

    label: str
    x: Any = field(repr=False, compare=False)
    y: Any = field(repr=False, compare=False)
    parts: Any = field(default=None, repr=False, compare=False)
    key: Hashable = None
    is_promised: bool = False
    is_pattern: bool = False

    @property
    def summary(self) -> str:
        """The pair itself, on one line."""
        return f"x = {show(self.x)}, y = {show(self.y)}"


class PairSource(ABC):
    """Where candidates come from. What it gives need not be a pair of neighbours: whoever takes one checks it."""

    @abstractmethod
    def patterns(self) -> Iterator[Candidate]:
        """The pairs to begin with, those first that most often show a fault; perhaps without end."""

    def random(self, rng: np.random.Generator) -> Iterator[Candidate]:
        """Pairs at random, without end or none."""
        return iter(())

    def moves(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate]:
        """Pairs that are like this one, in random order, without end or none."""
        return iter(())

    def is_allowed(self, candidate: Candidate) -> bool:
        """Whether both datasets are in the domain."""
        return True


def reason_against(candidate: Candidate, adjacency: Adjacency | None, distance: float) -> str | None:
    """Why a candidate is no pair at this distance; None where it is one."""
    if adjacency is None:
        return None
    try:
        adjacency.check(candidate.x, candidate.y, distance)
    except AuditError as error:
        return str(error)
    return None


def varied(candidate: Candidate, how: str) -> str:
    """The label of a pair made from another: where it came from, and the last change."""
    return f"{candidate.label.split(' (varied: ')[0]} (varied: {how})"


def whole_distance(distance: float, what: str) -> int:
    """The distance as a number of steps; an `OptionError` where it is none."""
    if distance != math.floor(distance):
        raise OptionError(f"distance={distance!r} is no number of {what}; use a whole one.", distance=distance)
    return int(distance)


def show(dataset: Any) -> str:
    """A dataset's contents on one short line: for datasets that a search made up, which are no secret."""
    if is_graph(dataset):
        edges = sorted("-".join(map(str, sorted(ends, key=str))) for ends, _ in edges_of(dataset))
        text = f"{dataset.number_of_nodes()} nodes, {' '.join(edges) or 'no edge'}"
        return text if len(text) <= 80 else text[:79] + "…"
    if isinstance(dataset, np.ndarray):
        return shorten(dataset.tolist())
    if is_frame(dataset):
        return shorten([tuple(row) for row in dataset.itertuples(index=False, name=None)])
    return shorten(dataset)
