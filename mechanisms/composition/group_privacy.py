"""Group privacy: the claim for datasets k steps apart, and a mechanism that attains it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim, PureDP, check_number
from ...audit.errors import ClaimError, DatasetError
from ..laws.laws import FiniteLaw
from ..noise_samplers import Integers, draw_indices
from ..parameter_checks import check_count
from ..queries import Query, identity, whole_answer

Form: TypeAlias = Literal["sum", "product"]
_MOST_STEPS: Final = 10_000


def group_delta(epsilon: float, delta: float, k: int, form: Form = "sum") -> float:
    """Return the delta at k·epsilon for datasets k steps apart, if neighbours are (epsilon, delta)-close.

    Parameters
    ----------
    epsilon : float
        In nats, ≥ 0.
    delta : float
        In [0, 1).
    k : int
        At least 1.
    form : {"sum", "product"}
        The sum δ(1 + e^ε + … + e^{(k−1)ε}) = δ(e^{kε} − 1)/(e^ε − 1), which `GroupTightMechanism` attains, or the
        simpler bound k e^{(k−1)ε} δ, k times the largest term.

    Returns
    -------
    float
        May exceed 1, where the bound is vacuous.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Theorem 2.2 for delta 0 and Section 2.3
    for the product; Vadhan (2017), The complexity of differential privacy, Lemma 2.2, has a slightly larger delta.

    Examples
    --------
    >>> [round(group_delta(1.0, 1e-5, 3, form), 8) for form in ("sum", "product")]
    [0.00011107, 0.00022167]
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    check_number("delta", delta, 0, 1, "delta=0 is pure DP")
    check_count("k", k, "steps")
    if form not in ("sum", "product"):
        raise ClaimError(f'form={form!r} is unknown; use "sum" or "product".', form=form)
    if delta == 0:
        return 0.0
    if form == "product":
        log_factor = math.log(k) + (k - 1) * epsilon
    elif epsilon == 0:
        log_factor = math.log(k)
    else:  # expm1 of negative numbers neither cancels nor overflows
        log_factor = (k - 1) * epsilon + math.log(math.expm1(-k * epsilon) / math.expm1(-epsilon))
    log_delta = math.log(delta) + log_factor
    return math.exp(log_delta) if log_delta < 709 else math.inf


@dataclass(frozen=True, slots=True)
class GroupPrivacy:
    """Claim as a function of the distance k: (k·epsilon, `group_delta`)-DP, or k·epsilon-DP if delta is 0.

    Pass it to `check`, which calls it: ``claim=GroupPrivacy(0.5, 1e-5), distance=k``.

    Examples
    --------
    >>> print(GroupPrivacy(0.5)(4), GroupPrivacy(1.0, 1e-5)(2))
    2-DP (2, 3.71828e-05)-DP
    """

    epsilon: float
    delta: float = 0.0
    form: Form = "sum"
    bound_on: Literal["epsilon", "delta"] = "epsilon"

    def __post_init__(self) -> None:
        group_delta(self.epsilon, self.delta, 1, self.form)  # checks the parameters
        ApproxDP(self.epsilon, self.delta, self.bound_on)

    def __call__(self, distance: float) -> Claim:
        """Return the claim at this distance, rounded up to whole steps.

        A distance that is not positive and finite, or at which delta reaches 1, raises a `ClaimError`.
        """
        if not 0 < distance < math.inf:
            raise ClaimError(f"distance={distance!r} is not the size of a group; use 1, 2, ….", distance=distance)
        k = math.ceil(distance)
        if self.delta == 0:
            return PureDP(k * self.epsilon)
        delta = group_delta(self.epsilon, self.delta, k, self.form)
        if delta >= 1:
            raise ClaimError(
                f"at distance {k} delta is {delta:.3g}, which claims nothing; use a smaller distance.", distance=k
            )
        return ApproxDP(k * self.epsilon, delta, self.bound_on)


@dataclass(frozen=True, slots=True)
class GroupTightMechanism:
    """A bit whose probability grows from step to step as fast as (epsilon, delta)-DP allows, from `start` on.

    On a dataset with the answer n, the bit is 1 with probability B(B(…B(start))), n times the boundary B of the claim.
    Neighbours are therefore (epsilon, delta)-close and no closer. With start 0, datasets with the answers 0 and n
    differ by `group_delta` at n·epsilon, until a probability exceeds (1 − delta)/(1 + e^epsilon), the corner of
    the boundary.

    Parameters
    ----------
    epsilon : float
        In nats, ≥ 0.
    delta : float
        In [0, 1).
    start : float
        Probability of a 1 on a dataset with the answer 0, in [0, 1); positive if delta is 0.
    query : callable
        Maps the dataset to a whole answer, at least 0, that changes by 1 between neighbours; by default the dataset is
        the answer.

    Examples
    --------
    >>> from dpaudit.mechanisms import exact_delta
    >>> mechanism = GroupTightMechanism(epsilon=1.0, delta=1e-5)
    >>> round(exact_delta(mechanism.law(0), mechanism.law(3), 3.0), 8)
    0.00011107
    """

    epsilon: float
    delta: float = 0.0
    start: float = 0.0
    query: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats")
        check_number("delta", self.delta, 0, 1, "delta=0 is pure DP")
        check_number("start", self.start, 0, 1, "a probability")
        if self.delta == 0 and self.start == 0:
            raise ClaimError(
                "start=0 with delta=0 gives a bit that is never 1; use a positive start or delta.", start=0
            )

    def __str__(self) -> str:
        return f"GroupTight(epsilon={self.epsilon:g}, delta={self.delta:g}, start={self.start:g})"

    @property
    def claim(self) -> PureDP | ApproxDP:
        """(epsilon, delta)-DP for neighbours, pure if delta is 0."""
        return ApproxDP(self.epsilon, self.delta) if self.delta > 0 else PureDP(self.epsilon)

    def law(self, dataset: Any) -> FiniteLaw:
        """The exact law of the output."""
        steps = whole_answer(self.query, dataset)
        if not 0 <= steps <= _MOST_STEPS:
            raise DatasetError(
                f"the query answered {steps}, which is not a number of steps; use 0 to {_MOST_STEPS}.", answer=steps
            )
        one, zero = np.array([self.start]), np.array([1.0 - self.start])
        for _ in range(steps):
            one, zero = self.claim.max_power(one, zero)
        with np.errstate(divide="ignore"):
            return FiniteLaw((float(np.log(zero[0])), float(np.log(one[0]))))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent bits, shape (size,), int64."""
        return draw_indices(self.law(dataset).probabilities, size, rng)
