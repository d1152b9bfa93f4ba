"""`plan_canaries` says what an audit of so many canaries can show, before the training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from ..claims.claim import Claim, claim_at
from ..errors import OptionError
from ..guesses.canary_guesses import CanaryGuesses, CanaryTest, Said
from ..guesses.guess_bets import guess_numbers
from ..inference.boundary_test import check_test_alpha
from ..known_options import with_known_options
from ..options import is_whole
from ..printing import confidence, rounded_down, shorten
from .canary_draws import FEWEST, MOST
from .canary_tests import refuted_strength
from .plan import fixed_numbers, plan_tests, said_by
from .smallest_excess import all_right, smallest_excess


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryPlan:
    """What `check_canaries` can show with so many canaries.

    Attributes
    ----------
    canaries : int
    claim : Claim
    alpha, power : float
    tests : tuple of CanaryTest
        The tests that share alpha.
    ceiling : float
        The bound if every guess is right. A claim above it cannot be refuted.
    resolution : float
        Smallest excess over the claim that is detected with probability `power`, if scores reveal all that the claim's
        family allows; infinite if no excess is.
    """

    canaries: int
    claim: Claim
    alpha: float
    power: float
    tests: tuple[CanaryTest, ...]
    ceiling: float
    resolution: float

    def __str__(self) -> str:
        shown = self.claim.describe_strength(self.ceiling)
        if math.isinf(self.resolution):
            detected = "no excess over the claim is detected"
        else:
            detected = f"smallest detectable excess {self.resolution:.2g}"
        return (
            f"{self.canaries:,} canaries, claim {self.claim}: {shown} if every guess is right "
            f"({confidence(self.alpha)}); {detected} ({100 * self.power:g}% power, if scores reveal all that such a "
            "claim allows)"
        )

    def __repr__(self) -> str:
        return f"<CanaryPlan {self.canaries:,} canaries, {self.claim}: ceiling {rounded_down(self.ceiling):g}>"


@with_known_options()
def plan_canaries(
    canaries: int,
    *,
    claim: Claim,
    alpha: float = 0.05,
    probability: float = 0.5,
    say: Said | None = None,
    method: Literal["auto", "betting", "counts", "steinke", "f-dp"] = "auto",
    power: float = 0.95,
) -> CanaryPlan:
    """Return the largest bound and the smallest detectable excess of an audit with so many canaries.

    Parameters
    ----------
    canaries : int
        Canaries, in all runs together; pairs for a fixed split.
    claim, alpha, probability, say, method
        As in `check_canaries`.
    power : float
        In (0, 1).

    Returns
    -------
    CanaryPlan

    Examples
    --------
    >>> from dpaudit import ApproxDP, plan_canaries
    >>> plan = plan_canaries(3_000, claim=ApproxDP(4.0, 1e-6))
    >>> round(plan.ceiling, 1), round(plan.resolution, 1)
    (6.9, 0.7)
    """
    alpha = check_test_alpha(alpha)
    if not is_whole(canaries) or not FEWEST <= canaries <= MOST:
        raise OptionError(
            f"canaries={shorten(canaries)} is not allowed; use a whole number from {FEWEST} to {MOST:,}.",
            canaries=canaries,
        )
    claim = claim_at(claim, 1.0)
    m, answer = int(canaries), said_by(say, claim, probability)
    numbers = tuple(sorted({*guess_numbers(m), *fixed_numbers(m)}))
    none_right = CanaryGuesses(
        canaries=m, numbers=numbers, right=(0,) * len(numbers), said=answer, probability=probability
    )
    tests = plan_tests(method, None, claim, none_right, alpha)
    most = m if answer == "both" else round(none_right.prior * m)
    perfect = all_right(none_right, most)
    return CanaryPlan(
        canaries=m,
        claim=claim,
        alpha=alpha,
        power=power,
        tests=tests,
        ceiling=max(refuted_strength(test, claim, perfect) for test in tests),
        resolution=smallest_excess(tests, claim, none_right, power),
    )


_GROWTH, _MOST_STEPS = (2.0, 16.0), 6
"""Least and largest factor between two numbers of canaries that are tried, and how many are: a second or so each."""


def enough_canaries(plan: CanaryPlan, excess: float, **options: Any) -> CanaryPlan | None:
    """Return a plan of more canaries that detects an excess; None if none of those that are tried does.

    The smallest detectable excess shrinks about with the square root of the number, so that the next number follows
    from the last one; not if delta times the number explains more and more right guesses.
    """
    if float(plan.claim.max_power(1.0 / MOST)[1]) == 0.0:  # the claim allows guesses that are never wrong
        return None
    for _ in range(_MOST_STEPS):
        before = plan.resolution
        factor = _GROWTH[1] if math.isinf(before) else min(max((before / excess) ** 2, _GROWTH[0]), _GROWTH[1])
        number = round(float(f"{plan.canaries * factor:.1g}"))
        if number > MOST:
            return None
        plan = plan_canaries(number, claim=plan.claim, alpha=plan.alpha, power=plan.power, **options)
        if plan.resolution <= excess:
            return plan
        if plan.resolution > before:
            return None
    return None
