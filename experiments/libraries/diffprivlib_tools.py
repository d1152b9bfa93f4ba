"""Tools of diffprivlib with their options, each with the neighbours for which it is private."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from ...audit.datasets.adjacency import AddRemove, Adjacency, Replace
from ...audit.datasets.domains import Rows
from ...mechanisms.adapters import from_diffprivlib_tool
from .target import Subject

_UNIT: dict[str, Any] = {"bounds": (0.0, 1.0)}


def diffprivlib_tools() -> list[Subject]:
    """Return subjects with domains; making one needs diffprivlib."""
    line = Rows(low=0.0, high=1.0, least=1)
    plane = Rows(low=(0.0, 0.0), high=(1.0, 1.0), least=1)
    whole = Rows(low=0, high=3, integer=True, least=1)
    replaced = [
        _subject("mean", line, **_UNIT),
        _subject("mean", line, "bounds that clip the rows", bounds=(0.25, 0.5)),
        _subject("mean", plane, "axis 0", axis=0, **_UNIT),
        _subject("mean", whole, "dtype float", dtype=float, bounds=(0, 3)),
        _subject("var", line, **_UNIT),
        _subject("var", plane, "axis 0", axis=0, **_UNIT),
        _subject("std", line, **_UNIT),
        _subject("sum", line, **_UNIT),
        _subject("sum", whole, "dtype int", dtype=int, bounds=(0, 3)),
        _subject("sum", plane, "axis 0, keepdims", axis=0, keepdims=True, **_UNIT),
        _subject("nanmean", line, "without NaN", **_UNIT),
        _subject("nansum", line, "without NaN", **_UNIT),
        _subject("nanvar", line, "without NaN", **_UNIT),
        _subject("count_nonzero", whole),
    ]
    added = AddRemove()
    return [
        *replaced,
        _subject("histogram", line, "4 bins", adjacency=added, output=_counts, bins=4, range=(0.0, 1.0)),
        _subject("histogram", line, "density", adjacency=added, output=_counts, bins=4, range=(0.0, 1.0), density=True),
        _subject("histogramdd", plane, "3 by 3 bins", adjacency=added, output=_counts, bins=3, range=[(0.0, 1.0)] * 2),
        _subject("median", line, adjacency=added, **_UNIT),
        _subject("quantile", line, "of .25", adjacency=added, quant=0.25, **_UNIT),
        _subject("quantile", line, "of two", adjacency=added, quant=[0.25, 0.75], **_UNIT),
        _subject("percentile", line, "of 90", adjacency=added, percent=90, **_UNIT),
    ]


def _counts(found: Any) -> Any:
    return found[0]


def _subject(
    name: str,
    domain: Rows,
    words: str = "",
    *,
    adjacency: Adjacency | None = None,
    output: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Subject:
    def applied(rows: Any, **given: Any) -> Any:
        return getattr(import_module("diffprivlib.tools"), name)(np.asarray(rows), **given)

    def make() -> Any:
        return from_diffprivlib_tool(
            applied,
            example=[domain.corners()[0], domain.corners()[-1]],
            adjacency=Replace() if adjacency is None else adjacency,
            output=output,
            epsilon=1.0,
            **options,
        )

    return Subject(name=f"{name}, {words}" if words else name, make=make, domain=domain)
