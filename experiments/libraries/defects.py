"""Defects of released code that the search finds, each with a variant that keeps its claim; see docs/findings.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Literal

import numpy as np

from ...audit.datasets.adjacency import Adjacency, Replace, Within
from ...audit.datasets.domains import Answers, Domain, Rows
from ...mechanisms import LaplaceMechanism
from ...mechanisms.adapters import from_diffprivlib, from_diffprivlib_tool, from_opendp, from_pydp
from .subjects import Subject, of_diffprivlib

_NAN = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A released mechanism that breaks its claim, and the most similar mechanism that keeps its claim.

    The library is empty for a mechanism implemented here from its definition; `by` is the part of the outputs that
    shows the defect.
    """

    name: str
    library: Literal["opendp", "diffprivlib", "pydp", ""]
    by: Literal["values", "low bits"]
    broken: Subject
    variant: Subject


def defects() -> list[Defect]:
    """Return every defect with its variant."""
    return [*_models(), *_tools(), *_thresholds(), *_low_bits(), *_parts(), _mean_of_whole_numbers()]


def _defect(
    library: Any,
    name: str,
    broken: tuple[str, Callable[[], Any], Domain],
    variant: tuple[str, Callable[[], Any], Domain],
    runs: int,
    search_runs: int,
    *,
    by: Literal["values", "low bits"] = "values",
    adjacency: Adjacency | None = None,
    variant_adjacency: Adjacency | None = None,
) -> Defect:
    """Return a defect whose two versions, each (words, make, domain), have the same numbers of runs."""
    first, second = (
        Subject(name=words, make=make, domain=domain, adjacency=given, runs=runs, search_runs=search_runs)
        for (words, make, domain), given in ((broken, adjacency), (variant, variant_adjacency or adjacency))
    )
    return Defect(name=name, library=library, by=by, broken=first, variant=second)


def _of_rows(released: Callable[..., Any] | tuple[str, str], *example: Any, **options: Any) -> Callable[[], Any]:
    """Return the maker of a function of rows, or of one of diffprivlib, at ε = 1; a row is replaced."""

    def make() -> Any:
        function = of_diffprivlib(*released) if isinstance(released, tuple) else released
        return from_diffprivlib_tool(function, example=[*example], adjacency=Replace(), epsilon=1.0, **options)

    return make


def _models() -> list[Defect]:
    rows = Rows(low=(0.1, 0.0), high=(1.0, 1.0))
    long, short = (Rows(low=(-norm, 0), high=(norm, 1), most=1) for norm in (30.0, 1.0))

    def regression(low: float) -> Callable[[], Any]:
        options: dict[str, Any] = {"bounds_X": (low, 1), "bounds_y": (0, 1), "fit_intercept": False}
        return _of_rows(("models", "LinearRegression"), (1.0, 1.0), output=lambda model: model.coef_, **options)

    def logistic(norm: float) -> Callable[[], Any]:
        def fit(rows: Sequence[Any], **options: Any) -> Any:
            x, label = np.array([(0.0, 0), (0.0, 1), *rows]).T
            model = of_diffprivlib("models", "LogisticRegression")(data_norm=norm, fit_intercept=False, **options)
            return model.fit(x[:, None], label.astype(int))

        return _of_rows(fit, (1.0, 1), output=lambda model: model.coef_[0, 0])

    from_0 = ("bounds_X from 0 to 1", regression(0), rows)
    from_minus_1 = ("bounds_X from -1 to 1", regression(-1), rows)
    of_30, of_1 = ("rows of norm 30", logistic(30.0), long), ("rows of norm 1", logistic(1.0), short)
    return [
        _defect("diffprivlib", "LinearRegression", from_0, from_minus_1, 2_000, 2_000),
        _defect("diffprivlib", "LogisticRegression", of_30, of_1, 20_000, 40_000),
    ]


def _tools() -> list[Defect]:
    def total(words: str, name: str, low: float, high: float, *other: float) -> tuple[str, Callable[[], Any], Domain]:
        return words, _of_rows(("tools", name), low, bounds=(low, high)), Rows(values=(low, high, *other))

    def missing(name: str, known: float, search_runs: int, most: int) -> Defect:
        """Return a tool on the rows and one known row, as the mean of no rows is NaN without noise."""

        def applied(rows: Sequence[float], **options: Any) -> Any:
            return of_diffprivlib("tools", name)([known, *rows], **options)

        make = _of_rows(applied, 1.0, bounds=(0.0, 1.0))
        broken = "rows of NaN, 0 and 1", make, Rows(values=(_NAN, 0.0, 1.0), most=most)
        variant = "rows of 0 and 1", make, Rows(values=(0.0, 1.0), most=most)
        return _defect("diffprivlib", name, broken, variant, 20_000, search_runs)

    narrow, from_0 = ("bounds from 9 to 10", "nansum", 9.0, 10.0), ("bounds from 0 to 1", "nansum", 0.0, 1.0)
    large, small = ("bounds 2⁵² and 2⁵² + 1", "sum", 2.0**52, 2.0**52 + 1), ("bounds 0 and 1", "sum", 0.0, 1.0)
    return [
        missing("nanmean", 0.5, 60_000, 5),
        missing("nanvar", 0.0, 40_000, 12),
        missing("nanstd", 0.0, 40_000, 12),
        _defect("diffprivlib", "nansum", total(*narrow, _NAN), total(*from_0, _NAN), 10_000, 10_000),
        _defect("diffprivlib", "sum", total(*large), total(*small), 20_000, 20_000),
    ]


def _thresholds() -> list[Defect]:
    """Return the defect of noisy word counts, for ≥ a threshold where the library computes delta for >."""
    words = Rows(values=("a", "b", "c"))

    def counts(threshold: int, claimed: int) -> Callable[[], Any]:
        def measurement(threshold: int) -> Any:
            dp = import_module("opendp.prelude")
            dp.enable_features("contrib")
            space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
            return space >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=threshold)

        return lambda: replace(from_opendp(measurement(threshold)), claim=from_opendp(measurement(claimed)).claim)

    broken = "counts from 3 on", counts(3, 3), words
    variant = "counts from 4 on, with the claim of 3", counts(4, 3), words
    return [_defect("opendp", "make_laplace_threshold", broken, variant, 20_000, 80_000)]


def _low_bits() -> list[Defect]:
    answers = Answers(low=0.0, high=2.0)

    def continuous() -> Any:
        made = of_diffprivlib("mechanisms", "Laplace")(epsilon=1.0, sensitivity=1.0)
        return from_diffprivlib(made, adjacency=Within("l1", 1.0))

    def noise(name: str, *arguments: float) -> Callable[[], Any]:
        found = "pydp.algorithms.numerical_mechanisms"
        return lambda: from_pydp(lambda: getattr(import_module(found), name)(*arguments))

    on_grid = "the reference Laplace, on a grid", lambda: LaplaceMechanism(1.0), answers
    gaussian = "(1, 1e-5)-DP", noise("GaussianMechanism", 1.0, 1e-5, 1.0), answers
    laplace, released = noise("LaplaceMechanism", 1.0, 1.0), ("unmodified release", continuous, answers)
    one = Within("l1", 1.0)
    return [
        _defect("diffprivlib", "Laplace", released, on_grid, 20_000, 20_000, by="low bits", variant_adjacency=one),
        _defect(
            "pydp", "GaussianMechanism", gaussian, ("LaplaceMechanism", laplace, answers), 50_000, 50_000, by="low bits"
        ),
    ]


def _parts() -> list[Defect]:
    """Return models of which each class or cluster is a part: its sum, and whether it has rows."""
    corners = [(x, label) for label in (0, 1) for x in (99.0, 100.0)]
    unit = [(x, y) for y in (0, 1) for x in (0.0, 1.0)]

    def bayes(known: Sequence[tuple[float, int]], low: float) -> Callable[[], Any]:
        def fit(rows: Sequence[Any], **options: Any) -> Any:
            table = np.array([*known, *rows])
            model = of_diffprivlib("models", "GaussianNB")(bounds=(low, low + 1.0), **options)
            return model.fit(table[:, :1], table[:, 1])

        return _of_rows(fit, (low, 0), (low, 1), output=lambda model: np.append(model.theta_, model.class_count_))

    def clusters(*known: float) -> Callable[[], Any]:
        def fit(rows: Sequence[float], **options: Any) -> Any:
            model = of_diffprivlib("models", "KMeans")(n_clusters=2, bounds=(0.0, 1.0), **options)
            return model.fit(np.array([[*known, *rows]]).T)

        return _of_rows(fit, 0.0, 1.0, output=lambda model: np.sort(model.cluster_centers_.ravel()))

    far, near = bayes(corners, 99.0), bayes(unit, 0.0)
    change, stay = (Rows(values=tuple(corners[:number]), least=1) for number in (4, 2))
    few, same = (Rows(values=tuple(unit[:number]), least=1) for number in (4, 2))
    four = Rows(values=(0.0, 1.0), size=4)
    sums = ("bounds 99 and 100, labels change", far, change), ("labels stay", far, stay)
    classes = ("a class may have no rows", bayes(unit[:1], 0.0), few), ("every class has rows, labels stay", near, same)
    empty = ("a cluster may have no rows", clusters(), four), ("a known row at each bound", clusters(0.0, 1.0), four)
    return [
        _defect("diffprivlib", "GaussianNB, sum of a class", *sums, 1_500, 1_000),
        _defect("diffprivlib", "GaussianNB, classes of the labels", *classes, 1_500, 1_000),
        _defect("diffprivlib", "KMeans, cluster without rows", *empty, 1_500, 1_000),
    ]


def _mean_of_whole_numbers() -> Defect:
    """Return a mean that is cut to a whole number before the noise, which is for the mean."""
    bits = Rows(values=(0, 1), least=1, most=8)
    mean = partial(_of_rows, ("tools", "mean"), 0, 1, bounds=(0, 1))
    whole, plain = ("dtype=int", mean(dtype=int), bits), ("without dtype", mean(), bits)
    return _defect("diffprivlib", "mean, dtype int", whole, plain, 5_000, 4_000)
