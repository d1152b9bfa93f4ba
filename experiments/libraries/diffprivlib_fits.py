"""Models of diffprivlib, each with domains that try its noise: near 0, far from it, below it, changed labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from ...audit.datasets.adjacency import AddRemove, Adjacency, Replace
from ...audit.datasets.domains import Rows
from ...mechanisms.adapters import from_diffprivlib_tool

_RANGES = (("near 0", 0.0, 1.0), ("far from 0", 9.0, 10.0), ("below 0", -10.0, -9.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A model that is fitted to the rows of a domain; `make` makes the adapter, which needs the library.

    `is_right` says whether the fit is known to keep its claim, or to break it by values; None if neither is known.
    """

    name: str
    make: Callable[[], Any] = field(repr=False)
    domain: Rows
    is_right: bool | None = None


def diffprivlib_fits() -> list[Fit]:
    """Return every fit; making one needs diffprivlib."""
    return [*_regressions(), *_classifiers(), *_without_labels(), *_trees()]


def _fit(
    model: str,
    words: str,
    domain: Rows,
    output: Callable[[Any], Any],
    *,
    known: Sequence[tuple[float, ...]] = (),
    has_labels: bool = True,
    adjacency: Adjacency | None = None,
    is_right: bool | None = None,
    **options: Any,
) -> Fit:
    """Return a fit to the rows of the domain and some known ones, with labels in the last column."""
    neighbours = Replace() if adjacency is None else adjacency

    def fitted(rows: Sequence[Any], **given: Any) -> Any:
        table = np.array([*known, *rows], dtype=float)
        estimator = getattr(import_module("diffprivlib.models"), model)(**given)
        return estimator.fit(table[:, :-1], table[:, -1]) if has_labels else estimator.fit(table)

    def make() -> Any:
        example = [domain.corners()[0], domain.corners()[-1]]
        return from_diffprivlib_tool(
            fitted, example=example, adjacency=neighbours, output=output, epsilon=1.0, **options
        )

    return Fit(name=f"{model}, {words}", make=make, domain=domain, is_right=is_right)


def _regressions() -> list[Fit]:
    def coefficient(model: Any) -> Any:
        return np.append(model.coef_, model.intercept_)

    def line(words: str, low: float, high: float, **options: Any) -> Fit:
        rows = Rows(low=(low or 0.1, 0.0), high=(high, 1.0), least=1)  # without x = 0, where the slope is unbounded
        given = {"bounds_X": (low, high), "bounds_y": (0.0, 1.0), **options}
        return _fit("LinearRegression", words, rows, coefficient, **given)

    def logistic(words: str, norm: float, **options: Any) -> Fit:
        rows = Rows(low=(-norm, 0), high=(norm, 1), integer=True, most=2)
        known = [(0.0, 0.0), (0.0, 1.0)]
        return _fit("LogisticRegression", words, rows, coefficient, known=known, data_norm=norm, **options)

    return [
        *(line(f"x {words}", low, high, fit_intercept=False, is_right=bool(low)) for words, low, high in _RANGES),
        line("x from -1 to 1, without intercept", -1.0, 1.0, fit_intercept=False, is_right=True),
        line("x from -1 to 1, with intercept", -1.0, 1.0),
        logistic("rows of norm 1, labels change", 1.0, fit_intercept=False, is_right=True),
        logistic("rows of norm 30, labels change", 30.0, fit_intercept=False, is_right=False),
        logistic("rows of norm 1, with intercept", 1.0),
    ]


def _classifiers() -> list[Fit]:
    """Return fits of GaussianNB to rows of which both the value and the label may change."""

    def moments(model: Any) -> Any:
        return np.concatenate([model.theta_.ravel(), model.var_.ravel(), model.class_count_])

    def bayes(words: str, low: float, high: float, **options: Any) -> Fit:
        rows = Rows(values=tuple((end, label) for end in (low, high) for label in (0, 1)), least=2)
        return _fit("GaussianNB", words, rows, moments, bounds=(low, high), **options)

    return [
        *(
            bayes(f"x {words}, labels change", low, high, known=[(low, 0), (high, 0), (low, 1), (high, 1)])
            for words, low, high in _RANGES
        ),
        bayes("a class may be empty", 0.0, 1.0, known=[(0.0, 0)]),
    ]


def _without_labels() -> list[Fit]:
    def variances(model: Any) -> Any:
        return np.concatenate([model.mean_, np.abs(model.components_.ravel()), model.explained_variance_])

    def scales(model: Any) -> Any:
        return np.concatenate([model.mean_, model.var_])

    def centres(model: Any) -> Any:
        return np.sort(model.cluster_centers_.ravel())

    fits = []
    for words, low, high in _RANGES:
        one, two = (Rows(low=(low,) * width, high=(high,) * width, least=2) for width in (1, 2))
        plain: dict[str, Any] = {"has_labels": False, "bounds": (low, high)}
        norm = float(np.hypot(low, high) if low else np.sqrt(2.0))
        fits += [
            _fit("PCA", f"x {words}", two, variances, n_components=1, data_norm=norm, **plain),
            _fit("StandardScaler", f"x {words}", one, scales, is_right=True, **plain),
            _fit("KMeans", f"x {words}", one, centres, known=[(low,), (high,)], n_clusters=2, **plain),
        ]
    return fits


def _trees() -> list[Fit]:
    def answers(model: Any) -> Any:
        return tuple(model.predict(np.array([[0.1], [0.5], [0.9]])).tolist())

    def trees(model: str, words: str, labels: int, **options: Any) -> Fit:
        rows = Rows(values=tuple((x, label) for x in (0.0, 0.5, 1.0) for label in range(labels)))
        given = {"bounds": (0.0, 1.0), "known": [(0.5, 0)], "max_depth": 2, **options}
        return _fit(model, words, rows, answers, **given)

    added = AddRemove()
    return [
        trees("DecisionTreeClassifier", "a row is added", 2, classes=(0, 1), adjacency=added, is_right=True),
        trees("DecisionTreeClassifier", "a class without rows", 2, classes=(0, 1, 2), adjacency=added, is_right=True),
        trees("DecisionTreeClassifier", "a row is replaced", 2, classes=(0, 1), is_right=False),
        trees("RandomForestClassifier", "a row is added", 2, classes=(0, 1), n_estimators=2, adjacency=added),
        trees("RandomForestClassifier", "a row is replaced", 2, classes=(0, 1), n_estimators=2),
    ]
