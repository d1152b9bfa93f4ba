"""How far apart two output laws are, as the privacy loss: the hockey-stick divergence and its inverse.

`hockey_stick` is sup_S P(S) − e^ε Q(S), the smallest delta of one direction at ε; `exact_delta` and `exact_epsilon`
take both directions, as a privacy claim does. Exact where the laws have a closed form (module `laws`).

References
----------
Balle, Barthe & Gaboardi (2018), Privacy amplification by subsampling, Section 2: (ε, δ)-DP as a
hockey-stick divergence.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ...audit.errors import OptionError

Floats: TypeAlias = npt.NDArray[np.float64]


class Law(ABC):
    """A probability law of numbers or, one in each row, vectors."""

    __slots__ = ()

    @abstractmethod
    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Natural logarithm of the density (of the probability, for a discrete law) of each output."""

    def is_comparable(self, other: Self) -> bool:
        """Whether the next two methods have a closed form for this other law of the same type."""
        return False

    def delta_from(self, other: Self, epsilon: float) -> float:
        """sup_S P(S) − e^ε Q(S), P this law and Q the other."""
        raise no_closed_form(self, other)

    def epsilon_from(self, other: Self, delta: float) -> float:
        """The smallest ε ≥ 0 with P(S) ≤ e^ε Q(S) + delta for every event S, P this law and Q the other."""
        raise no_closed_form(self, other)


class ScalarLaw(Law):
    """A probability law on the real line or the integers."""

    __slots__ = ()

    @abstractmethod
    def cdf(self, outputs: npt.ArrayLike) -> Floats:
        """Pr[output ≤ each of `outputs`], accurate in the relative sense in the lower tail."""

    @abstractmethod
    def sf(self, outputs: npt.ArrayLike) -> Floats:
        """Pr[output > each of `outputs`], accurate in the relative sense in the upper tail."""


def table_delta(log_p: Floats, log_q: Floats, epsilon: float) -> float:
    """sup_S P(S) − e^ε Q(S) of two laws on the same outcomes, as a sum of positive terms: nothing cancels.

    Parameters
    ----------
    log_p, log_q : ndarray, shape (K,)
        Natural logarithms of the outcomes' probabilities, −inf for an impossible one.
    epsilon : float
        In nats, ≥ 0.
    """
    log_p, loss = _losses(log_p, log_q)
    gains = loss > epsilon
    return float(np.sum(np.exp(log_p[gains]) * -np.expm1(epsilon - loss[gains])))


def table_epsilon(log_p: Floats, log_q: Floats, delta: float) -> float:
    """The smallest ε ≥ 0 with P(S) ≤ e^ε Q(S) + delta for every set S of outcomes; arguments as of `table_delta`.

    To the rounding of delta: one that a set of outcomes attains exactly covers it. The largest root in ε of
    P(S) − e^ε Q(S) = delta over the sets S of the largest losses (Neyman-Pearson).
    """
    log_p, loss = _losses(log_p, log_q)
    if delta == 0:
        return max(0.0, float(loss.max()))
    order = np.argsort(-loss)
    reached = np.cumsum(np.exp(log_p[order]))
    excess = reached - delta
    useful = excess > 16 * np.finfo(np.float64).eps * reached  # less is the rounding of the sum
    log_mass = np.logaddexp.accumulate((log_p - loss)[order])
    roots = np.log(excess[useful]) - log_mass[useful]
    return max(0.0, float(roots.max(initial=0.0)))


def _losses(log_p: Floats, log_q: Floats) -> tuple[Floats, Floats]:
    """Log-probability under P and privacy loss of each outcome that is possible there."""
    possible = log_p > -np.inf
    return log_p[possible], log_p[possible] - log_q[possible]


def hockey_stick(law_x: Law, law_y: Law, epsilon: float) -> float:
    """The smallest delta with Pr_x[S] ≤ e^ε Pr_y[S] + delta for every event S; exact, for this direction only.

    Raises
    ------
    OptionError
        For an epsilon that is not finite and ≥ 0, or laws of different kinds, scales or numbers of outcomes.

    Examples
    --------
    >>> from dpaudit.mechanisms import LaplaceLaw
    >>> round(hockey_stick(LaplaceLaw(0, 1), LaplaceLaw(1, 1), 0.5), 4)
    0.2212
    """
    check_rule("epsilon", epsilon, 0 <= epsilon < math.inf, "0 <= epsilon < inf")
    _check_comparable(law_x, law_y)
    return law_x.delta_from(law_y, epsilon)


def exact_delta(law_x: Law, law_y: Law, epsilon: float) -> float:
    """The smallest delta with which the two laws are (epsilon, delta)-close in both directions."""
    return max(hockey_stick(law_x, law_y, epsilon), hockey_stick(law_y, law_x, epsilon))


def exact_epsilon(law_x: Law, law_y: Law, delta: float = 0.0) -> float:
    """The smallest epsilon ≥ 0, in nats, with which the two laws are (epsilon, delta)-close in both directions.

    Infinite when no epsilon is enough.

    Raises
    ------
    OptionError
        For a delta outside [0, 1), or laws of different kinds, scales or numbers of outcomes.

    Examples
    --------
    >>> from dpaudit.mechanisms import LaplaceLaw
    >>> exact_epsilon(LaplaceLaw(0, 2), LaplaceLaw(1, 2))
    0.5
    """
    check_rule("delta", delta, 0 <= delta < 1, "0 <= delta < 1")
    _check_comparable(law_x, law_y)
    return max(law_x.epsilon_from(law_y, delta), law_y.epsilon_from(law_x, delta))


def check_rule(name: str, value: object, holds: bool, rule: str) -> None:
    """Raise an `OptionError` that names the value and the rule unless the rule holds."""
    if not holds:  # NaN fails every rule
        raise OptionError(f"{name}={value!r} is not allowed; use {rule}.", name=name, value=value)


def _check_comparable(law_x: Law, law_y: Law) -> None:
    if type(law_x) is not type(law_y) or not law_x.is_comparable(law_y):
        raise no_closed_form(law_x, law_y)


def no_closed_form(law_x: Law, law_y: Law) -> OptionError:
    """What to raise for two laws whose divergence is not known in closed form."""
    return OptionError(
        f"the laws {law_x!r:.80} and {law_y!r:.80} have no closed form for their divergence; use two laws of "
        "one kind with the same scale (ratio, or number of outcomes).",
        law_x=law_x,
        law_y=law_y,
    )
