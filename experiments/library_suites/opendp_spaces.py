"""Spaces of OpenDP (a domain and a metric), each with datasets to search and the distance of neighbours."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from ...audit.datasets.adjacency import Adjacency, Replace
from ...audit.datasets.domains import Answers, Rows, Values
from .public_callables import parameters_of

_ROWS = 4  # of datasets whose size is public


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A domain and a metric with what an audit needs.

    Attributes
    ----------
    words : str
        Description for names of targets.
    make : callable
        Returns the domain and the metric.
    data : Domain or tuple of pairs
    kind : type
        Type of the numbers, or of the rows.
    d_in : Any
        Distance of neighbours.
    adjacency : Adjacency, optional
        Replaces the metric's own relation.
    size : int, optional
        Public number of rows.
    bounds : tuple, optional
        Bounds of the domain's numbers.
    """

    words: str
    make: Callable[[], tuple[Any, Any]] = field(repr=False)
    data: Any = field(repr=False)
    kind: type
    d_in: Any = 1
    adjacency: Adjacency | None = None
    size: int | None = None
    bounds: tuple[Any, Any] | None = None


def prelude() -> Any:
    """Return OpenDP with the features that its public constructors need.

    Without ``idealized-numerics``, because constructors that need it promise nothing for floating-point numbers. Errors
    have no Rust backtraces, which take more time than a hundred constructors.
    """
    os.environ["RUST_BACKTRACE"] = "0"
    library = import_module("opendp.prelude")
    library.enable_features("contrib", "honest-but-curious")
    return library


def _atom(kind: type, *, nan: bool = False, **options: Any) -> Any:
    """Return a domain of single values; the parameter for NaN had another name before OpenDP 0.13."""
    make = prelude().atom_domain
    if kind is float:
        options["nan" if "nan" in parameters_of(make) else "nullable"] = nan
    return make(T=kind, **options)


def number_space(kind: type) -> tuple[Any, Any]:
    """Return the domain and the metric of a single number."""
    return _atom(kind), prelude().absolute_distance(T=kind)


def _vector(kind: type, metric: str) -> tuple[Any, Any]:
    return prelude().vector_domain(_atom(kind)), getattr(prelude(), metric)(T=kind)


def _table(kind: type, metric: str) -> tuple[Any, Any]:
    counts = prelude().map_domain(prelude().atom_domain(T=str), _atom(kind))
    return counts, getattr(prelude(), metric)(prelude().absolute_distance(T=kind))


def answer_spaces() -> tuple[Space, ...]:
    """Return spaces of numbers and of vectors of three numbers."""
    found = []
    for kind in (int, float):
        high = kind(2)
        found.append(
            Space(
                words=f"a number, {kind.__name__}",
                make=partial(number_space, kind),
                data=Answers(low=kind(0), high=high, integer=kind is int),
                kind=kind,
                d_in=kind(1),
            )
        )
    for kind in (int, float):
        for metric in ("l1_distance", "l2_distance", "linf_distance"):
            found.append(
                Space(
                    words=f"3 numbers, {kind.__name__}, {metric.partition('_')[0]}",
                    make=partial(_vector, kind, metric),
                    data=Answers(n_answers=3, low=kind(0), high=kind(2), integer=kind is int),
                    kind=kind,
                    d_in=kind(1),
                )
            )
    return tuple(found)


def table_spaces() -> tuple[Space, ...]:
    """Return spaces of counts by key, in which a key appears or a count changes by 1."""
    return tuple(
        Space(
            words=f"counts by key, {kind.__name__}, {metric.partition('_')[0]}",
            make=partial(_table, kind, metric),
            data=(
                ({"a": kind(6), "b": kind(1)}, {"a": kind(6)}),
                ({"a": kind(6), "b": kind(7)}, {"a": kind(6), "b": kind(6)}),
            ),
            kind=kind,
            d_in=(1, float(1) if metric == "l02inf_distance" else kind(1), kind(1)),
        )
        for metric in ("l01inf_distance", "l02inf_distance")
        for kind in (int, float)
    )


def row_spaces() -> tuple[Space, ...]:
    """Return spaces of rows: bounded and unbounded, of public size, ordered, of text, with NaN, and truth values."""

    def rows(words: str, atom: Callable[[], Any], data: Any, kind: type, **options: Any) -> Space:
        metric, size = options.pop("metric", "symmetric_distance"), options.get("size")
        sized = {} if size is None else {"size": size}
        return Space(
            words=words,
            make=lambda: (prelude().vector_domain(atom(), **sized), getattr(prelude(), metric)()),
            data=data,
            kind=kind,
            **options,
        )

    def bounded(words: str, kind: type, low: Any, high: Any, **options: Any) -> Space:
        ends = kind(low), kind(high)
        whole, size = kind is int, options.get("size")
        data = Rows(low=ends[0], high=ends[1], integer=whole, size=size)
        return rows(words, lambda: _atom(kind, bounds=ends), data, kind, bounds=ends, **options)

    public: dict[str, Any] = {"size": _ROWS, "d_in": 2, "adjacency": Replace()}
    return (
        bounded("whole rows from 0 to 3", int, 0, 3),
        bounded("rows from 0 to 1", float, 0, 1),
        bounded("rows from 9 to 10", float, 9, 10),
        bounded("4 whole rows from 0 to 3", int, 0, 3, **public),
        bounded("4 rows from 0 to 1", float, 0, 1, **public),
        rows("whole rows", lambda: _atom(int), Rows(low=-3, high=5, integer=True), int),
        rows("rows", lambda: _atom(float), Rows(low=-1.0, high=2.0), float),
        rows(
            "rows with NaN",
            lambda: _atom(float, nan=True),
            Rows(values=(float("nan"), 0.0, 1.0)),
            float,
        ),
        rows("text", lambda: prelude().atom_domain(T=str), Rows(values=("a", "b", "c")), str),
        rows("truth values", lambda: prelude().atom_domain(T=bool), Rows(values=(False, True)), bool),
        bounded("ordered rows from 0 to 1", float, 0, 1, metric="insert_delete_distance"),
        bounded(
            "4 rows from 0 to 1, one changes",
            float,
            0,
            1,
            size=_ROWS,
            metric="change_one_distance",
        ),
    )


def response_spaces() -> tuple[Space, ...]:
    """Return spaces of a single person's value."""
    return (
        Space(
            words="8 bits, 2 of them set",
            make=lambda: (prelude().bitvector_domain(max_weight=2), prelude().discrete_distance()),
            data=Values((bytes([0b11]), bytes([0b1100]), bytes([0]))),
            kind=bytes,
        ),
    )
