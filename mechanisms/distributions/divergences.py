"""Exact privacy loss between two distributions, and what a mechanism with a distribution is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from ...audit.errors import OptionError
from ..noise_samplers import Floats, Integers, draw_indices

__all__ = [
    "Distribution", "ScalarDistribution", "hockey_stick", "exact_delta", "exact_epsilon",
]  # fmt: skip

# Exact privacy loss between two output distributions: the hockey-stick divergence and its inverse.
#
# `hockey_stick` is sup_S P(S) − e^ε Q(S), the smallest delta at ε in one direction. `exact_delta` and `exact_epsilon`
# cover both directions, as a privacy claim does. Results are exact for the distributions with a closed form (module
# `distributions`).
#
# Source: Balle, Barthe & Gaboardi (2018), Section 2: (ε, δ)-DP as a hockey-stick divergence.


class Distribution(ABC):
    """Probability distribution of numbers, or of vectors given as rows."""

    __slots__ = ()
    alike: ClassVar[tuple[str, ...]] = ()
    """Fields in which two distributions agree whose divergence has a closed form; none where `is_comparable` is
    overridden.
    """

    @abstractmethod
    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the natural logarithm of the density of each output or row (of the probability, if discrete)."""

    def is_comparable(self, other: Self) -> bool:
        """Return whether `delta_from` and `epsilon_from` have a closed form for another distribution of this type."""
        return self.alike != () and all(getattr(self, name) == getattr(other, name) for name in self.alike)

    def delta_from(self, other: Self, epsilon: float) -> float:
        """Return sup_S P(S) − e^ε Q(S), where P is this distribution and Q the other."""
        one, two = self.reduced(other)
        return one.delta_from(two, epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        """Return the smallest ε ≥ 0 with P(S) ≤ e^ε Q(S) + delta for every event S; P is this one and Q the other."""
        one, two = self.reduced(other)
        return one.epsilon_from(two, delta)

    def reduced(self, other: Self) -> tuple[Distribution, Distribution]:
        """Return the distributions of a sufficient statistic of both, whose divergence has a closed form."""
        raise no_closed_form(self, other)


class ScalarDistribution(Distribution):
    """Probability distribution on the real line or the integers."""

    __slots__ = ()

    @abstractmethod
    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        """Return Pr[output ≤ each of `outputs`], with small relative error in the lower tail."""

    @abstractmethod
    def sf(self, outputs: npt.ArrayLike) -> Floats:
        """Return Pr[output > each of `outputs`], with small relative error in the upper tail."""


def table_delta(log_p: Floats, log_q: Floats, epsilon: float) -> float:
    """Return sup_S P(S) − e^ε Q(S) of two distributions on the same outcomes, by positive terms: nothing cancels.

    The natural log-probabilities, shape (K,), are −inf for an impossible outcome.
    """
    log_p, loss = _losses(log_p, log_q)
    gains = loss > epsilon
    return float(np.sum(np.exp(log_p[gains]) * -np.expm1(epsilon - loss[gains])))


def table_epsilon(log_p: Floats, log_q: Floats, delta: float) -> float:
    """Return the smallest ε ≥ 0 with P(S) ≤ e^ε Q(S) + delta for every set S of outcomes, given as for `table_delta`.

    A set of outcomes that attains delta exactly counts as covered, up to the rounding of delta. The result is the
    largest root in ε of P(S) − e^ε Q(S) = delta over the sets S of the largest losses (Neyman-Pearson).
    """
    log_p, loss = _losses(log_p, log_q)
    if delta == 0:
        return max(0.0, float(loss.max()))
    order = np.argsort(-loss)
    reached = np.cumsum(np.exp(log_p[order]))
    excess = reached - delta
    useful = excess > 16 * np.finfo(np.float64).eps * reached  # below this, the excess may be rounding error
    log_mass = np.logaddexp.accumulate((log_p - loss)[order])
    roots = np.log(excess[useful]) - log_mass[useful]
    return max(0.0, float(roots.max(initial=0.0)))


def _losses(log_p: Floats, log_q: Floats) -> tuple[Floats, Floats]:
    """Return the log-probability under P and the privacy loss of each outcome that P allows."""
    possible = log_p > -np.inf
    return log_p[possible], log_p[possible] - log_q[possible]


def hockey_stick(distribution_x: Distribution, distribution_y: Distribution, epsilon: float) -> float:
    """Return the smallest delta with Pr_x[S] ≤ e^ε Pr_y[S] + delta for every event S; exact, in this direction only.

    Distributions that differ in kind, scale or number of outcomes raise an `OptionError`.

    Examples
    --------
    >>> from dpaudit.mechanisms import LaplaceDistribution
    >>> round(hockey_stick(LaplaceDistribution(0, 1), LaplaceDistribution(1, 1), 0.5), 4)
    0.2212
    """
    check_rule("epsilon", epsilon, 0 <= epsilon < math.inf, "0 <= epsilon < inf")
    check_comparable(distribution_x, distribution_y)
    return distribution_x.delta_from(distribution_y, epsilon)


def exact_delta(distribution_x: Distribution, distribution_y: Distribution, epsilon: float) -> float:
    """Return the smallest delta for which the two distributions are (epsilon, delta)-close in both directions."""
    return max(
        hockey_stick(distribution_x, distribution_y, epsilon), hockey_stick(distribution_y, distribution_x, epsilon)
    )


def exact_epsilon(distribution_x: Distribution, distribution_y: Distribution, delta: float = 0.0) -> float:
    """Return the smallest epsilon ≥ 0, in nats, for which they are (epsilon, delta)-close in both directions.

    The result is infinite if no finite epsilon is enough. Distributions that `hockey_stick` refuses raise an
    `OptionError`.

    Examples
    --------
    >>> from dpaudit.mechanisms import LaplaceDistribution
    >>> exact_epsilon(LaplaceDistribution(0, 2), LaplaceDistribution(1, 2))
    0.5
    """
    check_rule("delta", delta, 0 <= delta < 1, "0 <= delta < 1")
    check_comparable(distribution_x, distribution_y)
    return max(distribution_x.epsilon_from(distribution_y, delta), distribution_y.epsilon_from(distribution_x, delta))


def check_rule(name: str, value: object, holds: bool, rule: str) -> None:
    """Raise an `OptionError` that names the value and the rule, unless the rule holds."""
    if not holds:  # NaN fails every rule
        raise OptionError(f"{name}={value!r} is not allowed; use {rule}.", name=name, value=value)


def are_comparable(distribution_x: Distribution, distribution_y: Distribution) -> bool:
    """Return whether the divergence of the two distributions has a closed form."""
    return type(distribution_x) is type(distribution_y) and distribution_x.is_comparable(distribution_y)


def check_comparable(distribution_x: Distribution, distribution_y: Distribution) -> None:
    """Raise an `OptionError` unless the divergence of the two distributions has a closed form."""
    if not are_comparable(distribution_x, distribution_y):
        raise no_closed_form(distribution_x, distribution_y)


def no_closed_form(distribution_x: Distribution, distribution_y: Distribution) -> OptionError:
    """Return the error for two distributions whose divergence has no known closed form."""
    return OptionError(
        f"the distributions {distribution_x!r:.80} and {distribution_y!r:.80} have no closed form for their "
        "divergence; use two distributions of "
        "one kind with the same scale (or ratio, or number of outcomes).",
        distribution_x=distribution_x,
        distribution_y=distribution_y,
    )


# Reference mechanisms: their protocol, and base classes by their text, their claim, and how they are drawn.


class ReferenceMechanism(Protocol):
    """Mechanism with its claim and the exact distribution of its output."""

    @property
    def claim(self) -> Claim: ...

    def distribution(self, dataset: Any) -> Distribution: ...

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any: ...


class NamedByParameters:
    """Base of dataclasses shown by name and parameters, without callables: `Laplace(epsilon=1, sensitivity=1)`."""

    __slots__ = ()

    def __str__(self) -> str:
        shown = (
            f"{f.name}={value:g}" if isinstance(value, float) else f"{f.name}={value}"
            for f in fields(self)  # type: ignore[arg-type]  # a dataclass
            if f.init and not callable(value := getattr(self, f.name))
        )
        return f"{type(self).__name__.removesuffix('Mechanism')}({', '.join(shown)})"


class RunsAs:
    """Base of mechanisms that run as another mechanism, `runs_as`, and so have its distribution."""

    __slots__ = ()
    runs_as: Any

    def distribution(self, dataset: Any) -> Any:
        """The distribution of the output: that of `runs_as`."""
        return self.runs_as.distribution(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs of `runs_as`."""
        return self.runs_as.sample(dataset, size, rng)


class DrawnByItsDistribution:
    """Base of mechanisms whose output is an index, drawn by its distribution, which has finitely many outcomes."""

    __slots__ = ()

    @abstractmethod
    def distribution(self, dataset: Any) -> Any:
        """The exact distribution of the index, a `FiniteDistribution`."""

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent indices of outcomes, shape (size,), int64."""
        return draw_indices(self.distribution(dataset).probabilities, size, rng)


class Drawn(NamedByParameters):
    """Base of mechanisms that are drawn in blocks."""

    __slots__ = ()

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """Claim for the documented neighbours and sensitivity."""

    @abstractmethod
    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs: shape (size,) for numbers, (size, k) for rows of k numbers; int64 if whole."""


class DrawnWithDistribution(Drawn):
    """Base of mechanisms that are drawn in blocks and have a distribution."""

    __slots__ = ()

    @abstractmethod
    def distribution(self, dataset: Any) -> Any:
        """The distribution of the output: exact for whole numbers, and before rounding to the grid for real ones."""


@dataclass(frozen=True, slots=True)
class PureClaim(Drawn):
    """Base of mechanisms that claim pure DP; the mechanism checks epsilon."""

    epsilon: float

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)


@dataclass(frozen=True, slots=True)
class PureMechanism(DrawnWithDistribution, PureClaim):
    """Base of mechanisms with a distribution that claim pure DP."""


@dataclass(frozen=True, slots=True)
class ApproxMechanism(DrawnWithDistribution):
    """Base of mechanisms that claim approximate DP; the mechanism checks epsilon and delta."""

    epsilon: float
    delta: float

    @property
    def claim(self) -> ApproxDP:
        return ApproxDP(self.epsilon, self.delta)
