"""A library as a suite sees it: its public callables, and the form by which each becomes mechanisms to audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...audit.datasets.adjacency import Adjacency


@dataclass(frozen=True, slots=True)
class PublicCallable:
    """A public function or class of a library.

    Attributes
    ----------
    name : str
        Dotted name below the package, such as ``mechanisms.Laplace``.
    function : callable
    """

    name: str
    function: Any = field(repr=False, compare=False)

    @property
    def short(self) -> str:
        """The name without its module."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An audit of one callable at one point of its parameter grid.

    Attributes
    ----------
    callable : str
        Name of the public callable.
    point : str
        Parameters and datasets, in a few words; different for each target of a callable.
    make : callable
        Makes the mechanism.
    domain : Domain or tuple of pairs
        Datasets to search, or the given pairs.
    adjacencies : tuple of (Adjacency or None)
        Neighbour relation; None for the mechanism's own. Several relations if it is not known which one the claim is
        for: the claim is then refuted only if it is refuted under each of them.
    runs : int
        Runs on each dataset, reduced for a mechanism that is too slow for its time.
    search_runs : int, optional
        Executions of the search; by default as many as `runs`.
    guide : {"replay"}, optional
        As in `find_worst_pair`.
    cost : int
        Rank of the expected time: cheaper targets are audited first.
    known, known_bits : str
        The defect of this release, or the limit that the library states, by which the target is refuted, by values or
        by low bits; empty if none is known.
    note : str
        What the form assumes beyond what the library states; empty if it states everything.
    """

    callable: str
    point: str
    make: Callable[[], Any] = field(repr=False, compare=False)
    domain: Any = field(repr=False, compare=False)
    adjacencies: tuple[Adjacency | None, ...] = (None,)
    runs: int = 20_000
    search_runs: int | None = None
    guide: Literal["replay"] | None = None
    cost: int = 1
    known: str = ""
    known_bits: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """The callable and the point."""
        return f"{self.callable}: {self.point}"


@dataclass(frozen=True, slots=True)
class NotCovered:
    """Why a public callable is not audited."""

    reason: str


@dataclass(frozen=True, slots=True)
class SameAs:
    """A public callable that only calls another one, which is audited."""

    name: str


Form: TypeAlias = tuple[Target, ...] | NotCovered | SameAs
"""What becomes of a public callable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library whose callables can be listed and turned into targets.

    Attributes
    ----------
    name : str
    release : callable
        Returns the name and the installed version.
    public : callable
        Returns the public callables, found by introspection.
    form_of : callable
        Returns the targets of a public callable, or why there are none.
    """

    name: str
    release: Callable[[], str]
    public: Callable[[], tuple[PublicCallable, ...]]
    form_of: Callable[[PublicCallable], Form]
