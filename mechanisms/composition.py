"""Compositions of mechanisms, and group privacy."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ..audit.claims.claim import ApproxDP, Claim, PureDP, check_number
from ..audit.errors import ClaimError, DatasetError, MechanismError, OptionError
from .distributions.distributions import ChainDistribution, FiniteDistribution, ProductDistribution
from .distributions.divergences import Distribution, DrawnByItsDistribution, DrawnWithDistribution, ScalarDistribution
from .queries import Query, check_choice, check_count, check_value, identity, whole_answer

if TYPE_CHECKING:
    from .distributions.divergences import ReferenceMechanism

__all__ = [
    "GroupTightMechanism", "GroupPrivacy", "group_delta", "SequentialComposition", "AdaptiveComposition", "composed",
    "advanced_composition", "ParallelComposition", "IntervalOf",
]  # fmt: skip


# Sequential and adaptive composition of mechanisms on one dataset, and their total claims.

Budget: TypeAlias = PureDP | ApproxDP


def budget_of(claim: Claim) -> tuple[float, float]:
    """Return (epsilon, delta) of a claim; a claim that is not pure or approximate DP raises a `ClaimError`."""
    match claim:
        case PureDP():
            return claim.epsilon, 0.0
        case ApproxDP():
            return claim.epsilon, claim.delta
    raise ClaimError(
        f"a part claims {claim}, which does not add up by epsilon and delta; use parts that claim PureDP or ApproxDP.",
        claim=claim,
    )


def budget(epsilon: float, delta: float) -> Budget:
    """Return the claim with this epsilon and delta, pure if delta is 0."""
    return ApproxDP(epsilon, delta) if delta > 0 else PureDP(epsilon)


def total_budget(claims: Iterable[Claim]) -> Budget:
    """Return the joint claim of mechanisms with these claims: the sums of epsilon and of delta, below 1."""
    epsilons, deltas = zip(*map(budget_of, claims), strict=True)
    return budget(math.fsum(epsilons), math.fsum(deltas))


def columns(outputs: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return outputs as one row of numbers per run, shape (size, n_coords); raise a `MechanismError` if not numeric."""
    numbers = np.asarray(outputs)
    if numbers.dtype.kind not in "biuf":
        raise MechanismError(
            f"a part's outputs are of type {numbers.dtype}, which cannot share a row with numbers; code them as "
            "numbers.",
            dtype=str(numbers.dtype),
        )
    return numbers if numbers.ndim == 2 else numbers[:, None]


def side_by_side(distributions: Iterable[Distribution]) -> ProductDistribution:
    """Return the distribution of independent outputs in one row; refuses vectors with dependent coordinates."""
    marginals: list[ScalarDistribution] = []
    for distribution in distributions:
        marginals += getattr(distribution, "marginals", [distribution])
    for marginal in marginals:
        if not isinstance(marginal, ScalarDistribution):
            raise OptionError(
                f"{marginal!r:.80} is a distribution of dependent coordinates, which a product cannot contain; compose "
                "mechanisms whose coordinates are independent, or use the distributions of the parts.",
                distribution=marginal,
            )
    return ProductDistribution(tuple(marginals))


def check_parts(mechanisms: Iterable[ReferenceMechanism]) -> tuple[ReferenceMechanism, ...]:
    """Return the mechanisms as a tuple of one or more; raise a `ClaimError` if they are not mechanisms."""
    is_sequence = isinstance(mechanisms, Iterable)
    check_value(
        "mechanisms", mechanisms, is_sequence, "is not a sequence of mechanisms; put the mechanism into a list."
    )
    parts = tuple(mechanisms)
    for part in parts:
        if not (hasattr(part, "claim") and hasattr(part, "sample")):
            raise ClaimError(
                f"{part!r:.60} is not a mechanism with a claim and a sample method; use, for example, "
                "LaplaceMechanism(0.5), or your own object with .claim and .sample(dataset, size, rng).",
                mechanism=part,
            )
    check_value("mechanisms", parts, parts, "composes nothing; give one or more mechanisms.")
    return parts


@dataclass(frozen=True, slots=True)
class CompositionOfParts(DrawnWithDistribution):
    """Base of compositions of one mechanism or more, whose outputs stand side by side in a row."""

    mechanisms: Sequence[ReferenceMechanism]
    epsilon = property(lambda t: t.claim.epsilon, doc="Epsilon of the claim, in nats.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanisms", check_parts(self.mechanisms))
        self.claim  # noqa: B018  # checks that every part claims epsilon and delta

    @abstractmethod
    def divided(self, dataset: Any) -> list[tuple[ReferenceMechanism, Any]]:
        """Each mechanism with the dataset on which it runs."""

    def distribution(self, dataset: Any) -> ProductDistribution:
        return side_by_side(mechanism.distribution(rows) for mechanism, rows in self.divided(dataset))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        drawn = [columns(mechanism.sample(rows, size, rng)) for mechanism, rows in self.divided(dataset)]
        return np.concatenate(drawn, axis=1)


@dataclass(frozen=True, slots=True)
class SequentialComposition(CompositionOfParts):
    """Independent outputs of several mechanisms on one dataset: the epsilons and the deltas add up, the latter below 1.

    Source: Dwork & Roth (2014), Theorem 3.16.
    """

    def __str__(self) -> str:
        return f"Sequential({len(self.mechanisms)} mechanisms, {describe(self.claim)})"

    @property
    def claim(self) -> Budget:
        return total_budget(part.claim for part in self.mechanisms)

    def divided(self, dataset: Any) -> list[tuple[ReferenceMechanism, Any]]:
        return [(mechanism, dataset) for mechanism in self.mechanisms]


def composed(mechanism: ReferenceMechanism, k: int) -> SequentialComposition:
    """Return k independent runs of one mechanism: k times its epsilon and delta."""
    check_count("k", k, "runs")
    return SequentialComposition((mechanism,) * k)


@dataclass(frozen=True, slots=True)
class AdaptiveComposition(DrawnWithDistribution):
    """A mechanism, followed by one that is chosen from its output: the epsilons and the deltas add up.

    Each distinct first output takes one call. For three or more mechanisms, `first` may be an adaptive composition
    itself.

    Source: Dwork & Roth (2014), Section 3.5; Dwork, Kenthapadi, McSherry, Mironov & Naor (2006) on adaptive choices.

    `then` maps the first output, a number (or a list of numbers for a vector), to the next mechanism, whose claim is at
    most `then_claim`; a larger one raises a `ClaimError`.
    """

    first: ReferenceMechanism
    then: Callable[[Any], ReferenceMechanism]
    then_claim: Budget
    epsilon = property(lambda t: t.claim.epsilon, doc="Epsilon of the claim, in nats.")

    def __post_init__(self) -> None:
        self.claim  # noqa: B018  # checks that both claims have epsilon and delta

    def __str__(self) -> str:
        return f"Adaptive({describe(total_budget([self.first.claim]))}, then {describe(self.then_claim)})"

    @property
    def claim(self) -> Budget:
        return total_budget([self.first.claim, self.then_claim])

    def distribution(self, dataset: Any) -> ChainDistribution:
        """The distribution of a row of outputs; an `OptionError` unless the first output has a `FiniteDistribution`."""
        first = self.first.distribution(dataset)
        if not isinstance(first, FiniteDistribution):
            raise OptionError(
                f"the first distribution {first!r:.60} does not have finitely many outcomes, so the distribution of a "
                "row is unknown; "
                "use a first mechanism such as RandomisedResponse.",
                distribution=first,
            )
        return ChainDistribution(
            first, tuple(self._second(o).distribution(dataset) for o in range(len(first.log_probabilities)))
        )

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        first = self.first.sample(dataset, size, rng)
        values, group, counts = np.unique(first, axis=0, return_inverse=True, return_counts=True)
        drawn = [
            columns(self._second(value).sample(dataset, int(count), rng))
            for value, count in zip(values.tolist(), counts, strict=True)
        ]
        ordered = np.concatenate(drawn)
        second = np.empty_like(ordered)
        second[np.argsort(group.ravel(), kind="stable")] = ordered
        return np.concatenate([columns(first), second], axis=1)

    def _second(self, output: Any) -> ReferenceMechanism:
        """Return the mechanism after this first output; raise a `ClaimError` if it claims too much."""
        mechanism = self.then(output)
        epsilon, delta = budget_of(mechanism.claim)
        most_epsilon, most_delta = budget_of(self.then_claim)
        if epsilon > most_epsilon or delta > most_delta:
            raise ClaimError(
                f"then({output!r:.40}) returned {mechanism}, which claims {mechanism.claim}, more than "
                f"then_claim={self.then_claim}; return a mechanism within then_claim, or raise then_claim.",
                claim=mechanism.claim,
                then_claim=self.then_claim,
            )
        return mechanism


def describe(claim: Budget) -> str:
    """Return epsilon and delta as short text for a mechanism's name."""
    epsilon, delta = budget_of(claim)
    return f"epsilon={epsilon:g}" + (f", delta={delta:g}" if delta > 0 else "")


def advanced_composition(epsilon: float, delta: float, k: int, slack: float) -> tuple[float, float]:
    """Return (ε', kδ + slack), which k-fold adaptive composition of (epsilon, delta)-DP mechanisms satisfies.

    ε' = ε √(2k ln(1/slack)) + kε(e^ε − 1), where `slack` in (0, 1) is an additional delta. For large k and small ε this
    is below the kε of `SequentialComposition`; for few mechanisms it is above.

    Source: Dwork & Roth (2014), Theorem 3.20; Dwork, Rothblum & Vadhan (2010), Boosting and differential privacy.
    """
    epsilon = check_number("epsilon", epsilon, 0, math.inf, "of each mechanism")
    delta = check_number("delta", delta, 0, 1, "of each mechanism")
    slack = check_number("slack", slack, 0, 1, "it is added to k delta", closed=False)
    check_count("k", k, "mechanisms")
    with np.errstate(over="ignore"):
        growth = float(np.expm1(epsilon))
    return epsilon * math.sqrt(2 * k * -math.log(slack)) + k * epsilon * growth, k * delta + slack


# Parallel composition: disjoint parts of the rows, with one mechanism per part.


@dataclass(frozen=True, slots=True)
class IntervalOf:
    """Index of the interval (−∞, e₀), [e₀, e₁), …, [e_last, ∞) that contains a number, for ascending edges."""

    edges: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", check_edges(self.edges))

    def __call__(self, row: float) -> int:
        return int(np.searchsorted(self.edges, row, side="right"))


def check_edges(edges: Sequence[float]) -> tuple[float, ...]:
    """Return the edges as floats; raise a `ClaimError` unless they are in ascending order."""
    found = tuple(float(edge) for edge in edges)
    is_ascending = np.all(np.diff(found) > 0) and not np.isnan(found).any()
    check_value("edges", edges, is_ascending, "do not define intervals; use numbers in ascending order.")
    return found


@dataclass(frozen=True, slots=True)
class ParallelComposition(CompositionOfParts):
    """Mechanism i on the rows of part i: under add/remove, the largest epsilon and delta of the mechanisms.

    Each row is in one part, so adding or removing it changes the input of one mechanism and costs that mechanism's
    epsilon. The claim does not cover a replaced row, which may leave one part and enter another: the two epsilons add
    up. `part` maps a row to its part in range(len(mechanisms)), independently of the other rows.

    Source: McSherry (2009), Theorem 4.
    """

    part: Callable[[Any], int]

    def __str__(self) -> str:
        return f"Parallel({len(self.mechanisms)} parts, {describe(self.claim)})"

    @property
    def claim(self) -> Budget:
        epsilons, deltas = zip(*(budget_of(mechanism.claim) for mechanism in self.mechanisms), strict=True)
        return budget(max(epsilons), max(deltas))

    def divided(self, dataset: Any) -> list[tuple[ReferenceMechanism, Any]]:
        parts: list[list[Any]] = [[] for _ in self.mechanisms]
        for row in dataset:
            place = self.part(row)
            if not 0 <= place < len(parts):
                raise DatasetError(
                    f"part({row!r:.40})={place!r} is not one of the {len(parts)} parts; return a part in "
                    f"range({len(parts)}).",
                    part=place,
                )
            parts[place].append(row)
        return list(zip(self.mechanisms, parts, strict=True))


# Group privacy: the claim for datasets k steps apart, and a mechanism that attains it.

Form: TypeAlias = Literal["sum", "product"]
_MOST_STEPS: Final = 10_000


def group_delta(epsilon: float, delta: float, k: int, form: Form = "sum") -> float:
    """Return the delta at k·epsilon for datasets k steps apart, if neighbours are (epsilon, delta)-close.

    A result above 1 is a vacuous bound. The form "sum" is δ(1 + e^ε + … + e^{(k−1)ε}), which `GroupTightMechanism`
    attains; "product" is the simpler bound k e^{(k−1)ε} δ, k times the largest term.

    Source: Dwork & Roth (2014), Theorem 2.2 for delta 0 and Section 2.3 for the product; Vadhan (2017), Lemma 2.2, has
    a slightly larger delta.
    """
    check_number("epsilon", epsilon, 0, math.inf, "in nats")
    check_number("delta", delta, 0, 1, "delta=0 is pure DP")
    check_count("k", k, "steps")
    check_choice("form", form, get_args(Form))
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
        """Return the claim at this distance, rounded up to whole steps; refuses one at which delta reaches 1."""
        check_value("distance", distance, 0 < distance < math.inf, "is not the size of a group; use 1, 2, ….")
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
class GroupTightMechanism(DrawnByItsDistribution, DrawnWithDistribution):
    """A bit whose probability grows from step to step as fast as (epsilon, delta)-DP allows, from `start` on.

    On a dataset with the whole answer n ≥ 0, which changes by 1 between neighbours, the bit is 1 with probability
    B(B(…B(start))), n times the boundary B of the claim. Neighbours are therefore (epsilon, delta)-close and no closer.
    With start 0, datasets with the answers 0 and n differ by `group_delta` at n·epsilon, until a probability exceeds (1
    − delta)/(1 + e^epsilon), the corner of the boundary. With delta 0, `start` must be positive.
    """

    epsilon: float
    delta: float = 0.0
    start: float = 0.0
    query: Query = identity

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats")
        check_number("delta", self.delta, 0, 1, "delta=0 is pure DP")
        check_number("start", self.start, 0, 1, "a probability")
        why = "with delta=0 gives a bit that is never 1; use a positive start or delta."
        check_value("start", self.start, self.delta > 0 or self.start > 0, why)

    @property
    def claim(self) -> Budget:
        return budget(self.epsilon, self.delta)

    def distribution(self, dataset: Any) -> FiniteDistribution:
        steps = whole_answer(self.query, dataset)
        if not 0 <= steps <= _MOST_STEPS:
            raise DatasetError(
                f"the query answered {steps}, which is not a number of steps; use 0 to {_MOST_STEPS}.", answer=steps
            )
        one, zero = np.array([self.start]), np.array([1.0 - self.start])
        for _ in range(steps):
            one, zero = self.claim.max_power(one, zero)
        with np.errstate(divide="ignore"):
            return FiniteDistribution((float(np.log(zero[0])), float(np.log(one[0]))))
