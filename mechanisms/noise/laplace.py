"""Laplace and geometric noise on answers, histograms and statistics of graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import check_number
from ...audit.datasets.adjacency import EdgeNeighbours, NodeNeighbours
from ...audit.datasets.rows import is_graph
from ...audit.errors import DatasetError, OptionError
from ..distributions.distributions import GeometricDistribution, LaplaceDistribution, ProductDistribution
from ..distributions.divergences import ApproxMechanism, PureMechanism, RunsAs, ScalarDistribution, check_rule
from ..noise_samplers import Floats, Integers, laplace_on_grid, noise_on_grid, two_sided_geometric
from ..queries import (
    Query,
    as_numbers,
    check_choice,
    check_count,
    check_scale,
    check_value,
    check_whole_sensitivity,
    identity,
    real_answer,
    whole_answer,
)

__all__ = [
    "LaplaceMechanism", "LaplaceByInverseCDF", "inverse_laplace_cdf", "open_uniform", "GeometricMechanism",
    "HistogramMechanism", "RareLeakLaplace", "EdgeCountMechanism", "DegreeHistogramMechanism",
    "LeakyLaplaceDistribution",
]  # fmt: skip

# The Laplace mechanism.


@dataclass(frozen=True, slots=True)
class LaplaceMechanism(PureMechanism):
    """A real answer plus Laplace noise of scale sensitivity/epsilon: epsilon-DP.

    Outputs are rounded to a grid with a step of at most 2⁻²⁰ scales (`grid_step`), the same for every dataset, so their
    low bits reveal nothing about the answer. Rounding is post-processing.

    Source: Dwork, McSherry, Nissim & Smith (2006); Dwork & Roth (2014), Theorem 3.6.

    Parameters
    ----------
    epsilon : float
        In nats, positive, as for all mechanisms unless they say otherwise.
    sensitivity : float
        Largest change of the answer between neighbouring datasets, positive.
    query : callable
        Maps the dataset to the answer; by default the dataset is the answer.

    Examples
    --------
    >>> count = LaplaceMechanism(epsilon=0.5, query=len)
    >>> print(count, count.scale, count.claim)
    Laplace(epsilon=0.5, sensitivity=1) 2.0 0.5-DP
    """

    sensitivity: float = 1.0
    query: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "the noise has scale sensitivity/epsilon", closed=False)
        check_number("sensitivity", self.sensitivity, 0, math.inf, "the answer's largest change", closed=False)
        check_scale(self.scale)

    @property
    def scale(self) -> float:
        """Mean absolute noise: sensitivity/epsilon."""
        return self.sensitivity / self.epsilon

    def distribution(self, dataset: Any) -> LaplaceDistribution:
        return LaplaceDistribution(real_answer(self.query, dataset), self.scale)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return laplace_on_grid(real_answer(self.query, dataset), self.scale, size, rng)


# The geometric mechanism, also called the discrete Laplace mechanism.


@dataclass(frozen=True, slots=True)
class GeometricMechanism(PureMechanism):
    """A whole answer plus two-sided geometric noise of ratio e^{−epsilon/sensitivity}: epsilon-DP, on the integers.

    Epsilon is from 2⁻³⁰ to 700 times `sensitivity`, a whole number.

    Source: Ghosh, Roughgarden & Sundararajan (2009), the e^−ε-geometric mechanism.
    """

    sensitivity: int = 1
    query: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "the noise has ratio e^(-epsilon/sensitivity)", closed=False)
        check_whole_sensitivity(self.sensitivity, "LaplaceMechanism")
        least, most = self.sensitivity / 2**30, 700 * self.sensitivity
        too_small = f"is too small for exact integers drawn from doubles; use epsilon >= {least:.3g}."
        check_value("epsilon", self.epsilon, self.epsilon >= least, too_small)
        too_large = f"leaves so little noise that doubles cannot represent it; use epsilon <= {most:g}."
        check_value("epsilon", self.epsilon, self.epsilon <= most, too_large)

    def distribution(self, dataset: Any) -> GeometricDistribution:
        return GeometricDistribution(whole_answer(self.query, dataset), math.exp(-self.epsilon / self.sensitivity))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        outputs = two_sided_geometric(self.sensitivity / self.epsilon, size, rng)
        outputs += whole_answer(self.query, dataset)
        return outputs


# Laplace noise from a uniform number by the inverse CDF.


def inverse_laplace_cdf(xi: npt.ArrayLike, location: float = 0.0, scale: float = 1.0) -> Floats:
    """Return location − scale·sgn(ξ)·ln(1 − 2|ξ|), which is Laplace(location, scale) if ξ is uniform on (−½, ½).

    Either end gives an infinite number and raises an `OptionError`; `open_uniform` never draws an end.

    Source: Devroye (1986), Section II.2 (the inversion method).
    """
    xi = np.asarray(xi, dtype=np.float64)
    if not np.all(np.abs(xi) < 0.5):  # NaN fails
        raise OptionError(
            "xi holds a number outside (-1/2, 1/2), whose ends give infinite noise; use open_uniform(size, rng).", xi=xi
        )
    noise: Floats = np.sign(xi) * np.log1p(-2 * np.abs(xi))
    return location - scale * noise


def open_uniform(size: int, rng: np.random.Generator) -> Floats:
    """Return uniform numbers on the open interval (−½, ½), shape (size,): the 2⁵³ odd multiples of 2⁻⁵⁴ in it.

    They are the midpoints of the steps of `Generator.random`, so nothing is rounded, and ±½ and zero do not occur. The
    largest Laplace noise they give is 53 ln 2 = 36.7 scales; the probability beyond it is 2⁻⁵³.
    """
    return (rng.random(size) - 0.5) + 2.0**-54


@dataclass(frozen=True, slots=True)
class LaplaceByInverseCDF(LaplaceMechanism):
    """The Laplace mechanism with noise from one uniform number by the inverse CDF, which takes about 2⁵³ values:
    epsilon-DP.
    """

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return noise_on_grid(_fill, real_answer(self.query, dataset), self.scale, size, rng)


def _fill(out: Floats, rng: np.random.Generator) -> None:
    out[:] = inverse_laplace_cdf(open_uniform(len(out), rng))


# The histogram mechanism: noise on the count of each category.


def category_counts(dataset: Any, k: int) -> Integers:
    """Return the number of rows in each category 0 … k − 1, shape (k,); raise a `DatasetError` for other rows."""
    rows = as_numbers(dataset)
    are_rows = rows.ndim == 1 and np.all((rows >= 0) & (rows < k) & (rows == np.floor(rows)))
    why = f"is not a list of rows in range(k={k}); give each row as a whole number from 0 to {k - 1}, its category."
    check_value("dataset", dataset, are_rows, why, DatasetError)
    return np.bincount(rows.astype(np.int64), minlength=k)


@dataclass(frozen=True, slots=True)
class HistogramMechanism(PureMechanism):
    """The counts of the categories range(k) among the rows, each plus noise of scale sensitivity/epsilon: epsilon-DP.

    Source: Dwork, McSherry, Nissim & Smith (2006); Dwork & Roth (2014), Example 3.2.

    The sensitivity is the largest sum of absolute changes of the counts between neighbouring datasets: 1 for
    add/remove, 2 for replace. Outputs are real, on the grid of `LaplaceMechanism`, or whole with geometric noise.
    """

    k: int
    sensitivity: int = 1
    noise: Literal["laplace", "geometric"] = "laplace"

    def __post_init__(self) -> None:
        check_count("k", self.k, "categories")
        check_number("sensitivity", self.sensitivity, 1, math.inf, "1 for add/remove, 2 for replaced rows")
        check_choice("noise", self.noise, ("laplace", "geometric"))
        self._on_one_count  # noqa: B018  # checks the other parameters

    def distribution(self, dataset: Any) -> ProductDistribution:
        return ProductDistribution(
            tuple(self._on_one_count.distribution(count) for count in category_counts(dataset, self.k))
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats | Integers:
        columns: list[Any] = [self._on_one_count.sample(count, size, rng) for count in category_counts(dataset, self.k)]
        return np.stack(columns, axis=1)

    @property
    def _on_one_count(self) -> LaplaceMechanism | GeometricMechanism:
        kind = LaplaceMechanism if self.noise == "laplace" else GeometricMechanism
        return kind(self.epsilon, self.sensitivity)


# A Laplace mechanism that rarely publishes the answer itself, to test whether an audit of a pure claim finds it.

OFFSET: Final = 1000.0
"""Added to an answer that leaks: far outside the noise for scales below about fifty."""


@dataclass(frozen=True, slots=True)
class LeakyLaplaceDistribution(ScalarDistribution):
    """Mixture of the Laplace distribution `noise` and, with this `probability`, the single point `leak`."""

    noise: LaplaceDistribution
    leak: float
    probability: float

    def __post_init__(self) -> None:
        check_rule("probability", self.probability, 0 < self.probability < 1, "0 < probability < 1")

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-probability at the point `leak`, the log-density elsewhere."""
        is_leak = np.asarray(outputs, dtype=np.float64) == self.leak
        return np.where(
            is_leak, math.log(self.probability), math.log1p(-self.probability) + self.noise.log_density(outputs)
        )

    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        is_passed = np.asarray(outputs, dtype=np.float64) >= self.leak
        return (1 - self.probability) * self.noise.cdf(outputs) + self.probability * is_passed

    def sf(self, outputs: npt.ArrayLike) -> Floats:
        is_ahead = np.asarray(outputs, dtype=np.float64) < self.leak
        return (1 - self.probability) * self.noise.sf(outputs) + self.probability * is_ahead

    def is_comparable(self, other: Self) -> bool:
        return self.noise.is_comparable(other.noise) and self.probability == other.probability

    def delta_from(self, other: Self, epsilon: float) -> float:
        """Return the divergence of the noise, plus the probability of the leak unless both leak the same point."""
        leaked = 0.0 if self.leak == other.leak else self.probability
        return (1 - self.probability) * self.noise.delta_from(other.noise, epsilon) + leaked

    def epsilon_from(self, other: Self, delta: float) -> float:
        left = delta if self.leak == other.leak else delta - self.probability
        if left < 0:
            return math.inf
        return (
            self.noise.epsilon_from(other.noise, left / (1 - self.probability)) if left < 1 - self.probability else 0.0
        )


@dataclass(frozen=True, slots=True)
class RareLeakLaplace(ApproxMechanism):
    """A real answer plus Laplace noise, or with probability delta the answer plus 1000: (epsilon, delta)-DP.

    A pure guarantee covers every event, however rare, so this mechanism has none.
    """

    sensitivity: float = 1.0
    query: Query = identity

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0, 1, "the answer leaks with this probability", closed=False)
        self._noisy  # noqa: B018  # checks the other parameters

    def distribution(self, dataset: Any) -> LeakyLaplaceDistribution:
        return LeakyLaplaceDistribution(
            self._noisy.distribution(dataset), OFFSET + real_answer(self.query, dataset), self.delta
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        out = self._noisy.sample(dataset, size, rng)
        out[rng.random(size) < self.delta] = OFFSET + real_answer(self.query, dataset)
        return out

    @property
    def _noisy(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.epsilon, self.sensitivity, self.query)


# Private statistics of graphs, for edge or node neighbours.


def degrees_of(dataset: Any, bound: int | None = None) -> Integers:
    """Return the degrees of a graph's nodes, shape (n_nodes,), in plus out; as in networkx, a loop adds two."""
    if not is_graph(dataset):
        raise DatasetError(
            f"a dataset of type {type(dataset).__name__} is not a graph; use a networkx.Graph.",
            type=type(dataset).__name__,
        )
    degrees = np.fromiter((degree for _, degree in dataset.degree()), dtype=np.int64, count=dataset.number_of_nodes())
    if bound is not None and degrees.max(initial=0) > bound:
        raise DatasetError(
            f"a node has {degrees.max()} edges, but the noise hides only max_degree={bound}; use a larger max_degree.",
            degree=int(degrees.max()),
            max_degree=bound,
        )
    return degrees


@dataclass(frozen=True, slots=True)
class EdgeCountMechanism(RunsAs, PureMechanism):
    """The number of edges plus geometric noise: epsilon-DP for edges, or for nodes of bounded degree.

    An edge changes the count by 1, a node by its degree. Noise for edges hides the k edges of one person with k·epsilon
    in total (`PureDP.group`). Noise for nodes hides all `max_degree` edges.

    For nodes, graphs of a degree above `max_degree` are rejected; for simple graphs with at most n nodes, n − 1 is
    enough.

    Source: Kasiviswanathan, Nissim, Raskhodnikova & Smith (2013).
    """

    adjacency: EdgeNeighbours | NodeNeighbours = field(default_factory=EdgeNeighbours)
    max_degree: int | None = None

    def __post_init__(self) -> None:
        if _is_for_nodes(self.adjacency):
            check_count("max_degree", self.max_degree, "edges")
        else:
            why = "does not apply to a claim for edges; omit it, or hide nodes of that degree by NodeNeighbours()."
            check_value("max_degree", self.max_degree, self.max_degree is None, why)
        self.runs_as  # noqa: B018  # checks the other parameters

    def __str__(self) -> str:
        return f"EdgeCount(epsilon={self.epsilon:g}, {_for_what(self.adjacency, self.max_degree)})"

    @property
    def sensitivity(self) -> int:
        """Largest change of the count between neighbours."""
        return self._bound or 1

    @property
    def runs_as(self) -> GeometricMechanism:
        """The same count with geometric noise for this sensitivity."""
        return GeometricMechanism(self.epsilon, self.sensitivity, self._count)

    def _count(self, dataset: Any) -> int:
        return int(degrees_of(dataset, self._bound).sum()) // 2

    @property
    def _bound(self) -> int | None:
        return self.max_degree if _is_for_nodes(self.adjacency) else None


@dataclass(frozen=True, slots=True)
class DegreeHistogramMechanism(PureMechanism):
    """The number of nodes of each degree, 0 … max_degree, plus geometric noise: epsilon-DP for edges or nodes.

    An edge moves each of its two nodes by one place, so four counts change by 1: sensitivity 4. A node of degree D adds
    itself to one count and moves D others: sensitivity 2D + 1. For edges, nodes of larger degree are counted in the
    last place; for nodes, graphs with such nodes are rejected.

    Source: Hay, Li, Miklau & Jensen (2009), Accurate estimation of the degree distribution of private networks;
    Kasiviswanathan, Nissim, Raskhodnikova & Smith (2013).
    """

    max_degree: int
    adjacency: EdgeNeighbours | NodeNeighbours = field(default_factory=EdgeNeighbours)

    def __post_init__(self) -> None:
        check_count("max_degree", self.max_degree, "edges")
        self._on_degrees  # noqa: B018  # checks the other parameters

    def __str__(self) -> str:
        return f"DegreeHistogram(epsilon={self.epsilon:g}, {_for_what(self.adjacency, self.max_degree)})"

    @property
    def sensitivity(self) -> int:
        """Largest sum of absolute changes of the counts between neighbours."""
        return 2 * self.max_degree + 1 if _is_for_nodes(self.adjacency) else 4

    def distribution(self, dataset: Any) -> ProductDistribution:
        return self._on_degrees.distribution(self._degrees(dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        return self._on_degrees.sample(self._degrees(dataset), size, rng)

    def _degrees(self, dataset: Any) -> Integers:
        bound = self.max_degree if _is_for_nodes(self.adjacency) else None
        return np.minimum(degrees_of(dataset, bound), self.max_degree)

    @property
    def _on_degrees(self) -> HistogramMechanism:
        return HistogramMechanism(self.epsilon, self.max_degree + 1, self.sensitivity, noise="geometric")


def _is_for_nodes(adjacency: Any) -> bool:
    is_of_graphs = isinstance(adjacency, (EdgeNeighbours, NodeNeighbours))
    why = "is not a relation of graphs; use EdgeNeighbours() or NodeNeighbours()."
    check_value("adjacency", adjacency, is_of_graphs, why)
    return isinstance(adjacency, NodeNeighbours)


def _for_what(adjacency: EdgeNeighbours | NodeNeighbours, max_degree: int | None) -> str:
    return f"for nodes of degree {max_degree}" if _is_for_nodes(adjacency) else "for edges"
