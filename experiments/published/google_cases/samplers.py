"""Block samplers of PyDP's objects and of likelihood ratios, on rows (user, value)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ....audit.datasets.adjacency import UserLevel
from .case import Case, ClosenessCase, Row

ONE_USER: Final = UserLevel(0)
"""Neighbours: all rows of one user, the first entry of a row."""
Values = list[float]
Prepare = Callable[[Values], Callable[[], Any]]
"""Maps the values of a dataset to a function that returns one output."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeated:
    """Outputs of a function that is called once for each run; it draws from entropy of its own."""

    name: str
    prepare: Prepare = field(repr=False)
    adjacency: UserLevel = ONE_USER

    def __str__(self) -> str:
        return self.name

    def sample(self, dataset: list[Row], size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        draw = self.prepare([value for _, value in dataset])
        return np.array([draw() for _ in range(size)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnValues:
    """A reference mechanism, applied to the values of rows (user, value)."""

    mechanism: Any
    adjacency: UserLevel = ONE_USER

    def __str__(self) -> str:
        return str(self.mechanism)

    def sample(self, dataset: list[Row], size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self.mechanism.sample([value for _, value in dataset], size, rng)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """Whether each output of a mechanism belongs to an event that is known beforehand, shape (size,).

    The event is the outputs whose score, shape (size,), is at least `least`.
    """

    mechanism: Repeated | OnValues
    score: Callable[[Any], npt.NDArray[Any]] = field(repr=False)
    least: float
    adjacency: UserLevel = ONE_USER

    def __str__(self) -> str:
        return str(self.mechanism)

    def sample(self, dataset: list[Row], size: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        return np.asarray(self.score(self.mechanism.sample(dataset, size, rng)) >= self.least)


def pydp_noise(case: Case | ClosenessCase, change: float, share: float = 1.0) -> Any:
    """Return PyDP's Laplace or Gaussian mechanism for answers that change by `change` in each partition.

    A share of the noise below 1 comes from a larger epsilon, or from a smaller sensitivity.
    """
    library = import_module("pydp.algorithms.numerical_mechanisms")
    if case.noise == "laplace":
        return library.LaplaceMechanism(case.epsilon / share, case.partitions * change)
    return library.GaussianMechanism(case.epsilon, case.delta, share * math.sqrt(case.partitions) * change)


def pydp_count(case: Case, share: float = 1.0) -> Repeated:
    """Return PyDP's count; where it cannot count so many values or has no such noise, its noise on the exact count."""
    if case.noise == "gaussian" or sum(case.rows) > 10**6:
        noise = pydp_noise(case, 1.0, share)

        def noisy(values: Values) -> Callable[[], Any]:
            count = int(sum(values))
            return lambda: noise.add_noise(count)

        return Repeated(name=f"PyDP {type(noise).__name__} on the count", prepare=noisy)
    count = _aggregate("Count", case, share)

    def counted(values: Values) -> Callable[[], Any]:
        ones = [1] * int(sum(values))
        return lambda: count.quick_result(ones)

    return Repeated(name="PyDP Count", prepare=counted)


def pydp_sum(case: Case, share: float = 1.0) -> Repeated:
    """Return PyDP's bounded sum; for Gaussian noise, PyDP's mechanism on the exact sum of clipped values."""
    whole = case.file.startswith("long")
    if case.noise == "laplace":
        total = _aggregate("BoundedSum", case, share, **_bounds(case, whole))
        return Repeated(name="PyDP BoundedSum", prepare=_quick(total, int if whole else float))
    noise = pydp_noise(case, max(abs(case.lower), abs(case.upper)), share)

    def noisy(values: Values) -> Callable[[], Any]:
        exact = float(np.clip(values, case.lower, case.upper).sum()) if values else 0.0
        answer = int(exact) if whole else exact
        return lambda: noise.add_noise(answer)

    return Repeated(name="PyDP GaussianMechanism on the sum", prepare=noisy)


def pydp_moment(case: Case) -> Repeated:
    """Return PyDP's bounded mean or standard deviation, with Laplace noise."""
    name = "BoundedMean" if case.file == "bounded mean" else "BoundedStandardDeviation"
    options = {"linf_sensitivity": case.per_partition, **_bounds(case, False)}
    return Repeated(name=f"PyDP {name}", prepare=_quick(_aggregate(name, case, 1.0, **options), float))


def pydp_quantiles(case: Case) -> Repeated:
    """Return the quantiles of PyDP's tree at the ranks of the case."""
    library, ranks = import_module("pydp.algorithms.quantile_tree"), list(case.ranks)

    def prepared(values: Values) -> Callable[[], Any]:
        tree = library.QuantileTree(case.lower, case.upper, *case.tree)
        for value in values:
            tree.add_entry(min(max(value, case.lower), case.upper))
        given = (case.epsilon, case.delta, case.partitions, case.per_partition, ranks, case.noise)
        return lambda: tree.compute_quantiles(*given)

    return Repeated(name="PyDP QuantileTree", prepare=prepared)


def _aggregate(name: str, case: Case, share: float, **options: Any) -> Any:
    library = import_module("pydp.algorithms.laplacian")
    return getattr(library, name)(epsilon=case.epsilon / share, l0_sensitivity=case.partitions, **options)


def _bounds(case: Case, whole: bool) -> dict[str, Any]:
    kind = int if whole else float
    return {"lower_bound": kind(case.lower), "upper_bound": kind(case.upper), "dtype": "int" if whole else "float"}


def _quick(aggregate: Any, kind: type) -> Prepare:
    def prepared(values: Values) -> Callable[[], Any]:
        rows = [kind(value) for value in values]
        return lambda: aggregate.quick_result(rows)

    return prepared
