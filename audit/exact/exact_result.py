"""The results of exact audits, kept apart because files of results are read without the engine.

Proof: docs/proofs/exact.md
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np

from ..claims.claim import ApproxDP, Claim, PureDP
from ..claims.privacy_profile import PrivacyProfile
from ..options import Budget
from ..printing import counted, rounded_up, shorten
from ..records.suite import ExactRow, ExactTable
from ..results.claim_pair_and_alpha import Pair
from ..results.result import Result
from ..results.verdict import ExactVerdict
from .uniform import LIMITS

INTERRUPTED: Final = "it was interrupted"
_DIGITS: Final = Context(prec=60)
_OF_SIDES: Final = [
    f"{side}.{name}"
    for side in ("on_x", "on_y")
    for name in ("remainder", "error", "n_executions", "n_states", "seconds")
]


class Interval(NamedTuple):
    """Limits between which a number lies with certainty; those of an exact audit are for ideal coins."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactDistribution:
    """The distribution of a mechanism's output on one dataset.

    Attributes
    ----------
    probabilities : mapping of outputs to Fraction
        Lower bounds, but for `error` in their sum; an exception is the output `Raised`.
    remainder : float
        The probability that was not explored: any output may have it.
    error : float
        Bound of the sum of the absolute errors of all probabilities; 0 if they are exact fractions.
    n_states, n_executions : int
        States of the chain, and executions of the code.
    ended_by : str
        The budget that ended the exploration; empty if the remainder is small enough.
    n_draws, seconds : float
        Expected draws of a run, and the time of the exploration.
    not_merged : mapping of str to int
        How often a state could not be read and was merged with none, by reason.
    """

    probabilities: Mapping[Any, Fraction] = field(repr=False, hash=False)
    remainder: float
    error: float
    n_states: int
    n_executions: int
    n_draws: float
    seconds: float = field(compare=False)
    ended_by: str = ""
    not_merged: Mapping[str, int] = field(default_factory=dict, repr=False, hash=False)

    @classmethod
    def unknown(cls, reason: str) -> ExactDistribution:
        """Return the distribution of code that was never executed."""
        return cls(
            probabilities={}, remainder=1.0, error=0.0, n_states=0, n_executions=0, n_draws=0.0, seconds=0.0,
            ended_by=reason,
        )  # fmt: skip

    @property
    def headline(self) -> str:
        """What is known, on one line."""
        return f"{counted(len(self.probabilities), 'output')}, remainder {rounded_up(self.remainder, 3):.3g}"

    def __str__(self) -> str:
        rows = sorted(self.probabilities.items(), key=lambda row: -row[1])
        lines = [f"{shorten(output)}  {float(p):.12g}" for output, p in rows[: LIMITS.shown]]
        more = [f"… {len(rows) - LIMITS.shown:,} more outputs"] if len(rows) > LIMITS.shown else []
        return "\n".join([*lines, *more, f"remainder  {rounded_up(self.remainder, 3):.3g}"])


@dataclass(frozen=True, kw_only=True, repr=False)
class ExactResult(Result):
    """The exact audit of a claim on a pair of datasets, or on all pairs of a finite domain.

    Attributes
    ----------
    mechanism, claim_source : str
        Its name, and where the claim is from.
    claim : Claim
        The claim for this distance.
    pair : Pair
        The pair; of several, the one with the largest excess.
    x, y : Any
        The datasets of that pair.
    on_x, on_y : ExactDistribution
        The distributions of the output.
    excess : Interval
        By how much δ exceeds what the claim allows, in the worse direction and on the worst pair; the claim holds if it
        is at most 0.
    tolerance : float
        The excess of δ that counts as verified: of what is not explored, and of the rounding of doubles.
    n_pairs, untried : int
        Pairs that were audited, and pairs of the domain that the budget left out.
    """

    kind: ClassVar = "exact"
    _limit_fields: ClassVar = ("excess.lower", "excess.upper")
    _dict_fields: ClassVar = ("mechanism", "excess.lower", "excess.upper", "n_pairs", "untried", *_OF_SIDES)
    mechanism: str
    claim: Claim
    claim_source: str = ""
    pair: Pair
    x: Any = field(repr=False, compare=False)
    y: Any = field(repr=False, compare=False)
    on_x: ExactDistribution
    on_y: ExactDistribution
    excess: Interval
    tolerance: float
    n_pairs: int = 1
    untried: int = 0

    def with_another(self, other: ExactResult) -> ExactResult:
        """Return the result for the pairs of both: the worse pair, with the larger upper end."""
        worse = max(self, other, key=ExactResult._severity)
        upper = max(self.excess.upper, other.excess.upper)
        excess = Interval(worse.excess.lower, upper)
        return replace(worse, excess=excess, n_pairs=self.n_pairs + other.n_pairs, untried=self.untried + other.untried)

    def _severity(self) -> tuple[bool, float, float]:
        """What orders pairs: an excess that refutes, which the rounding of another may exceed; and the largest loss."""
        return self.verdict is ExactVerdict.REFUTED, self.excess.lower, max(loss for *_, loss in self.losses())

    @property
    def verdict(self) -> ExactVerdict:
        if self.excess.lower > 0.0 and not (self.tolerance and self.is_rounding):
            return ExactVerdict.REFUTED
        is_within = self.excess.upper <= self.tolerance and not self.untried
        return ExactVerdict.VERIFIED if is_within else ExactVerdict.UNDETERMINED

    @property
    def is_rounding(self) -> bool:
        """Whether the excess is certain, but no larger than the code's floating-point arithmetic can cause.

        Each probability of a draw is that of the code's doubles, which are within 2⁻⁵³ of the numbers they stand for.
        """
        most = max((epsilon for epsilon, _ in _lines(self.claim) or ()), default=0.0)
        n_draws, n_outputs = max(self.on_x.n_draws, self.on_y.n_draws, 1.0), len(self.on_x.probabilities) + 1
        rounding = 2.0**-52 * n_draws * n_outputs * (1 + math.exp(min(most, 700.0)))  # above 1 from ε = 32 on
        return 0.0 < self.excess.lower <= min(rounding, self.tolerance or Budget().tolerance)

    def delta(self, epsilon: float) -> Interval:
        """Return the limits of δ(ε) on the pair, the larger of both directions."""
        each = [_delta(a, b, epsilon) for a, b in ((self.on_x, self.on_y), (self.on_y, self.on_x))]
        return Interval(_down(max(low for low, _ in each)), rounded_outward(max(high for _, high in each)))

    def losses(self) -> list[tuple[Any, float, float, float]]:
        """Return each output with its probabilities on x and on y and its loss, the largest loss first.

        The loss is the largest |ln(p / q)| that is certain: infinite only for an output that is impossible on one side.
        """
        sides = self.on_x.probabilities, self.on_y.probabilities
        error = [Fraction(side.error) for side in (self.on_x, self.on_y)]
        rest = [Fraction(side.remainder) + each for side, each in zip((self.on_x, self.on_y), error, strict=True)]

        def loss(p: Fraction, q: Fraction) -> float:
            ways = ((p - error[0], q + rest[1]), (q - error[1], p + rest[0]))
            return max([0.0, *(math.log(low / high) if high else math.inf for low, high in ways if low > 0)])

        rows = [(output, *(side.get(output, Fraction(0)) for side in sides)) for output in {**sides[0], **sides[1]}]
        found = [(output, float(p), float(q), loss(p, q)) for output, p, q in rows]
        return sorted(found, key=lambda row: (-row[3], -row[1] - row[2]))

    @property
    def exceeded(self) -> Literal["delta", "probability"]:
        """What exceeds its limit: δ, or for a claim without (ε, δ) the probability of an event."""
        return "probability" if _lines(self.claim) is None else "delta"

    def tabulated(self) -> ExactTable:
        """Return the outputs with the largest losses, and both ends of δ(ε) up to twice the claim's ε."""
        claimed, losses = _lines(self.claim) or [], self.losses()
        most = max((epsilon for epsilon, _ in claimed), default=0.0)
        finite = [loss for *_, loss in losses if math.isfinite(loss)]
        end = min(2.0 * most or 1.1 * max(finite, default=0.0) or 1.0, 700.0)
        shown = losses[: LIMITS.shown]
        rows = tuple(ExactRow(output=shorten(output), x=p, y=q, loss=loss) for output, p, q, loss in shown)
        curve = ((end * number / 32, *self.delta(end * number / 32)) for number in range(33))
        return ExactTable(rows=rows, n_outputs=len(losses), curve=tuple(curve), at_claim=tuple(claimed))


def _exp(epsilon: float) -> tuple[Fraction, Fraction]:
    """Return fractions around e^ε, 10⁻⁵⁸ apart."""
    value = Fraction(Decimal(min(epsilon, 1e6)).exp(_DIGITS))  # a double or a count of draws is never below e^-10⁶
    return value * (1 - Fraction(1, 10**58)), value * (1 + Fraction(1, 10**58))


def _delta(x: ExactDistribution, y: ExactDistribution, epsilon: float) -> tuple[Fraction, Fraction]:
    """Return fractions around max over S of Pr[M(x) ∈ S] − e^ε Pr[M(y) ∈ S]."""
    least, most = _exp(epsilon)
    lower = upper = Fraction(0)
    for output, p in x.probabilities.items():
        q = y.probabilities.get(output, Fraction(0))
        lower += max(Fraction(0), p - most * q)
        upper += max(Fraction(0), p - least * q)
    unknown = Fraction(x.error) + most * Fraction(y.error)
    rest_x, rest_y = Fraction(x.remainder), Fraction(y.remainder)
    return max(Fraction(0), lower - most * rest_y - unknown), min(Fraction(1), upper + rest_x + unknown)


def rounded_outward(value: Fraction) -> float:
    """Return a double that is at least as large."""
    found = float(value)
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def _down(value: Fraction) -> float:
    found = float(value)
    return found if Fraction(found) <= value else math.nextafter(found, -math.inf)


def _lines(claim: Claim) -> list[tuple[float, float]] | None:
    """Return the (ε, δ) that a claim consists of; None for another boundary."""
    if isinstance(claim, PureDP):
        return [(claim.epsilon, 0.0)]
    if isinstance(claim, ApproxDP):
        return [(claim.epsilon, claim.delta)]
    if isinstance(claim, PrivacyProfile):
        return [(e, d + claim.excess) for e, d in zip(claim.epsilons, claim.deltas, strict=True)]
    return None


def excess_of(claim: Claim, x: ExactDistribution, y: ExactDistribution) -> Interval:
    """Return limits of the largest excess of Pr[M(x) ∈ S] over what the claim allows, over events and directions."""
    found = []
    for a, b, directed in ((x, y, claim), (y, x, claim.reversed())):
        lines = _lines(directed)
        if lines is None:
            found.append(_above_boundary(directed, a, b))
            continue
        for epsilon, delta in lines:
            low, high = _delta(a, b, epsilon)
            found.append((_down(low - Fraction(delta)), rounded_outward(high - Fraction(delta))))
    # A claim about divergences may be broken though no event crosses its boundary.
    upper = math.inf if claim.divergence_slopes else max(high for _, high in found)
    return Interval(max(low for low, _ in found), upper)


def _above_boundary(claim: Claim, x: ExactDistribution, y: ExactDistribution) -> tuple[float, float]:
    """Compare the boundary at the corners of the test curve; it is concave, so no other event exceeds it by more."""
    rounding = 1e-12  # of the boundary, whose relative error is below 1e-13, and of the conversions to doubles
    rows = [(p, y.probabilities.get(output, Fraction(0))) for output, p in x.probabilities.items()]
    rows.sort(key=lambda row: row[0] / row[1] if row[1] else math.inf, reverse=True)
    p, q = (
        np.array([float(each) for each in itertools.accumulate(side, initial=Fraction(0))])
        for side in ([p for p, _ in rows], [q for _, q in rows])
    )
    far = np.minimum(q + y.remainder + y.error + rounding, 1.0)
    lower = float((p - x.error - rounding - claim.max_power(far)[0]).max())
    near = np.maximum(q - y.error - rounding, 0.0)
    upper = np.minimum(p + x.remainder + x.error + rounding, 1.0) - np.where(near > 0, claim.max_power(near)[0], 0.0)
    kink = np.interp(y.error, q, p) + x.remainder + x.error + rounding  # below it, the boundary is taken as 0
    return lower, max(float(upper.max()), min(float(kink), 1.0))
