"""Which tests share alpha, and what an audit of so many canaries can show: decided before any score is seen."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import bdtrik

from ..claims.claim import ApproxDP, Claim, PureDP, claim_at
from ..errors import OptionError
from ..guesses.canary_guesses import FEWEST, MOST, CanaryGuesses, CanaryTest, Guess, Kind
from ..guesses.guess_bets import guess_numbers
from ..inference.binomial_tails import Array
from ..inference.event_test import check_test_alpha
from ..inference.guess_test import is_concave, is_symmetric
from ..known_options import with_known_options
from ..options import is_whole
from ..printing import confidence, rounded_down, shorten
from .canary_tests import guess_limits, has_lines, refuted_parameter, refutes

METHODS = ("auto", "betting", "counts", "steinke", "f-dp")

# Ratio of the numbers of guesses that are tested one by one or tried for bets, and the share of alpha that bets may
# lose to δ without other tests beside them: docs/decisions/0020-one-training-run.md. Twelve guesses, the least number,
# are all correct with probability .023 at ε = 1; eight are with .08, so they would hardly refute the claim.
_RATIO, _SMALL_SLIP, _FEWEST = 4, 0.05, 12
_ROUNDING = 1e-6  # of a number of guesses
_PRECISION, _LEAST = 1e-3, 1e-9  # of the excess, and of the parameter


def fixed_numbers(canaries: int) -> tuple[int, ...]:
    """Numbers of guesses for tests of a fixed number: half of all canaries, an eighth and so on; all, if they are few.

    A leak is rarely seen in more than half of the canaries.
    """
    numbers = [canaries // 2 if canaries >= 2 * _FEWEST else canaries]
    while numbers[-1] >= _RATIO * _FEWEST:
        numbers.append(round(numbers[-1] / _RATIO))
    return tuple(reversed(numbers))


def _shared(kind: Kind, numbers: tuple[int, ...], alpha: float) -> tuple[CanaryTest, ...]:
    return tuple(CanaryTest(kind, number, alpha / len(numbers)) for number in numbers)


def plan_tests(
    method: str, numbers: tuple[int, ...] | None, claim: Claim, shape: CanaryGuesses, alpha: float
) -> tuple[CanaryTest, ...]:
    """Return the tests of a method, with shares that add up to alpha.

    By default bets have all of alpha, as long as δ costs them little at the claim; if it costs them more, half of alpha
    goes to counts. Claims of curves are tested by the recursion: bets would see a curve as one line. `numbers` are for
    the tests of a fixed number; of the `shape` the number and kind of guesses count.
    """
    if not isinstance(method, str) or method not in METHODS:
        raise OptionError(f"method={shorten(method)} is unknown; use one of {', '.join(METHODS)}.", method=method)
    if method not in ("auto", "f-dp") and not has_lines(claim):
        raise OptionError(
            f"method={method!r} knows pure, approximate and Gaussian claims and privacy profiles, not {claim}; "
            'use "f-dp".',
            method=method,
        )
    if method == "steinke" and shape.probability != 0.5:
        raise OptionError('method="steinke" is for probability=0.5; use "betting", "counts" or "f-dp".', method=method)
    fixed, is_line = numbers or fixed_numbers(shape.canaries), isinstance(claim, (PureDP, ApproxDP))
    if method == "auto" and (numbers is not None or not is_line):
        method = "counts" if is_line else "f-dp"
    if method in ("counts", "steinke", "f-dp"):
        return _shared(method, fixed, alpha)  # type: ignore[arg-type]
    if method == "betting" or guess_limits(claim, shape)[0].slip(shape.canaries) <= _SMALL_SLIP * alpha:
        return (CanaryTest("betting", shape.canaries, alpha),)
    return CanaryTest("betting", shape.canaries, alpha / 2), *_shared("counts", fixed, alpha / 2)


def guess_by(guess: Guess | None, claim: Claim, probability: float) -> Guess:
    """Return what is guessed: both answers, or "in" for unequal bits and claims that depend on the direction."""
    if not (is_concave(claim) and is_concave(claim.reversed())):
        raise OptionError(
            f"the boundary of {claim} is not concave, but the mean over canaries is taken inside it; claim the "
            "smallest concave boundary above it.",
            claim=claim,
        )
    can_be_both = probability == 0.5 and is_symmetric(claim)
    if guess == "both" and not can_be_both:
        raise OptionError(
            'guess="both" needs probability=0.5 and a claim that is the same in both directions; use "in" or "out".',
            guess=guess,
        )
    return guess or ("both" if can_be_both else "in")


def best_rates(claim: Claim, guesses: CanaryGuesses, numbers: Sequence[int]) -> Array:
    """Share of correct guesses that the claim allows where so many canaries are guessed on average.

    Correct guesses have the rate F(w) where wrong ones have the rate w, and F(w) + w is the share that is guessed.
    """
    share = np.array(numbers, dtype=np.float64) / guesses.canaries
    prior = 1.0 if guesses.answer == "both" else guesses.prior
    most = 1.0 if guesses.answer == "both" else 1.0 - prior
    boundary = claim.reversed() if guesses.answer == "out" else claim
    low, high = np.zeros_like(share), np.full_like(share, most)
    for _ in range(sys.float_info.mant_dig):
        wrong = 0.5 * (low + high)
        is_less = prior * boundary.max_power(wrong / most)[0] + wrong < share
        low, high = np.where(is_less, wrong, low), np.where(is_less, high, wrong)
    return np.clip(1.0 - high / share, 0.0, 1.0)


def is_detected(excess: float, tests: Sequence[CanaryTest], claim: Claim, guesses: CanaryGuesses, power: float) -> bool:
    """Return whether an excess is refuted with probability `power`, if canaries show as much as they can.

    Each canary then tells its inclusion bit as clearly as the claim at that privacy parameter allows, independently of
    the others.
    """
    tried = [(test, number) for test in tests for number in _numbers(test, guesses)]
    numbers = [number for _, number in tried]
    rates = best_rates(claim.with_parameter(claim.parameter + min(excess, _most(claim))), guesses, numbers)
    # Fewer correct guesses than the first whole number at which the distribution function exceeds 1 − power have at
    # most that probability.
    right = np.ceil(np.maximum(bdtrik(1.0 - power, np.array(numbers, dtype=np.float64), rates), 0.0) - _ROUNDING)
    return any(
        refutes(test, claim, _guessed(guesses, number, int(some)))
        for (test, number), some in zip(tried, right, strict=True)
    )


def _most(claim: Claim) -> float:
    """Return about the largest excess that the claim's family has."""
    most = claim.max_parameter if math.isfinite(claim.max_parameter) else claim.parameter + 40.0
    return most * (1.0 - 1e-9) - claim.parameter


def smallest_excess(tests: Sequence[CanaryTest], claim: Claim, guesses: CanaryGuesses, power: float) -> float:
    """Return the smallest excess that `is_detected`; infinite if there is none."""
    low, high = 0.0, _most(claim)
    if not is_detected(high, tests, claim, guesses, power):
        return math.inf
    while high - low > max(_PRECISION * high, _LEAST * max(claim.parameter + high, _LEAST)):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_detected(middle, tests, claim, guesses, power) else (middle, high)
    return high


def _numbers(test: CanaryTest, guesses: CanaryGuesses) -> list[int]:
    """The number of guesses of a test, or for bets some that count: all canaries, a quarter and so on."""
    if test.kind != "betting":
        return [test.guesses]
    wanted = float(test.guesses)
    found: list[int] = []
    while wanted >= _FEWEST or not found:
        found.append(min(guesses.numbers, key=lambda number: abs(number - wanted)))
        wanted /= _RATIO
    return found


def _guessed(guesses: CanaryGuesses, number: int, right: int) -> CanaryGuesses:
    """So many correct guesses among a number, as late as possible, and none after it: no other number refutes more."""
    numbers = np.array(guesses.numbers)
    late = np.clip(right - (number - numbers), 0, right)
    return replace(guesses, correct=tuple(late.tolist()))


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
    max_attainable_bound : float
        The bound if every guess is correct. A claim above it cannot be refuted.
    min_detectable_excess : float
        Smallest excess over the claim that is detected with probability `power`, if scores reveal all that the claim's
        family allows; infinite if no excess is.
    """

    canaries: int
    claim: Claim
    alpha: float
    power: float
    tests: tuple[CanaryTest, ...]
    max_attainable_bound: float
    min_detectable_excess: float

    def __str__(self) -> str:
        shown = self.claim.describe_parameter(self.max_attainable_bound)
        if math.isinf(self.min_detectable_excess):
            why = ", as delta is not below alpha" * (getattr(self.claim, "delta", 0.0) >= self.alpha)
            detected = f"no excess over the claim is detected{why}"
        else:
            detected = f"minimum detectable excess {self.min_detectable_excess:.2g}"
        return (
            f"{self.canaries:,} canaries, claim {self.claim}: {shown} if every guess is correct "
            f"({confidence(self.alpha)}); {detected} ({100 * self.power:g}% power, if scores reveal all that such a "
            "claim allows)"
        )

    def __repr__(self) -> str:
        most = rounded_down(self.max_attainable_bound)
        return f"<CanaryPlan {self.canaries:,} canaries, {self.claim}: at most {most:g}>"


@with_known_options()
def plan_canaries(
    canaries: int | None = None,
    *,
    claim: Claim,
    detect: float | None = None,
    alpha: float = 0.05,
    probability: float = 0.5,
    guess: Guess | None = None,
    method: Literal["auto", "betting", "counts", "steinke", "f-dp"] = "auto",
    power: float = 0.95,
) -> CanaryPlan:
    """Return the largest bound and the minimum detectable excess of so many canaries, or how many detect an excess.

    Parameters
    ----------
    canaries : int, optional
        Canaries, in all runs together; pairs for a fixed split.
    claim : Claim
        Claim to be audited, as in `check_canaries`.
    detect : float, optional
        Excess over the claim's privacy parameter to be detected, in place of `canaries`; the plan has about the fewest
        that detect it, to a tenth.
    alpha : float
        Allowed probability of refuting a training that keeps the claim, above 1e-9.
    probability : float
        Probability with which each inclusion bit includes its canary.
    guess : {"both", "in", "out"}, optional
        What is guessed, as in `check_canaries`.
    method : {"auto", "betting", "counts", "steinke", "f-dp"}
        Tests that share alpha, as in `check_canaries`.
    power : float
        Probability with which the minimum detectable excess is detected, in (0, 1).

    Returns
    -------
    CanaryPlan
        The largest bound, `max_attainable_bound`, and the minimum detectable excess, `min_detectable_excess`.

    Raises
    ------
    ClaimError
        For a value that is not a claim.
    OptionError
        For a number of canaries or another argument outside its range, both or neither of `canaries` and `detect`, or
        an excess that no number of canaries tried detects.

    See Also
    --------
    check_canaries : The audit.

    Notes
    -----
    The maximum attainable bound is that of correct guesses only. For m fair bits and a pure claim it is at most ln(β/(1
    − β)) with β = alpha^(1/m), in any test. The excess assumes scores that reveal all that the claim's family allows.

    References
    ----------
    Steinke, Nasr & Jagielski (2023), Privacy auditing with one (1) training run, Theorem 5.2. Proofs:
    docs/proofs/canaries.md.

    Examples
    --------
    >>> from dpaudit import ApproxDP, plan_canaries
    >>> plan = plan_canaries(3_000, claim=ApproxDP(4.0, 1e-6))
    >>> round(plan.max_attainable_bound, 1), round(plan.min_detectable_excess, 1)
    (6.9, 0.7)
    >>> plan_canaries(claim=ApproxDP(4.0, 1e-6), detect=4.0).canaries < 400
    True
    """
    alpha = check_test_alpha(alpha)
    if (canaries is None) == (detect is None):
        raise OptionError("a plan is for a number of canaries, or for an excess to detect; pass canaries or detect=.")
    claim = claim_at(claim, 1.0)
    answer = guess_by(guess, claim, probability)

    def shape(number: int) -> tuple[tuple[CanaryTest, ...], Claim, CanaryGuesses]:
        numbers = tuple(sorted({*guess_numbers(number), *fixed_numbers(number)}))
        none_right = CanaryGuesses(
            canaries=number, numbers=numbers, correct=(0,) * len(numbers), answer=answer, probability=probability
        )
        return plan_tests(method, None, claim, none_right, alpha), claim, none_right

    if detect is not None:
        if alpha <= (delta := float(getattr(claim, "delta", 0.0))):
            raise OptionError(
                f"alpha={alpha:g} is not above delta={delta:g}, so no number of canaries refutes the claim, which a "
                "training keeps that reveals everything with probability delta; use a larger alpha or a smaller delta.",
                alpha=alpha,
            )
        canaries = _fewest(detect, lambda number: is_detected(detect, *shape(number), power))
    if canaries is None or not is_whole(canaries) or not FEWEST <= canaries <= MOST:
        raise OptionError(
            f"canaries={shorten(canaries)} is not allowed; use a whole number from {FEWEST} to {MOST:,}.",
            canaries=canaries,
        )
    tests, _, none_right = shape(int(canaries))
    most = none_right.canaries if answer == "both" else round(none_right.prior * none_right.canaries)
    excess = smallest_excess(tests, claim, none_right, power)
    return CanaryPlan(
        canaries=none_right.canaries,
        claim=claim,
        alpha=alpha,
        power=power,
        tests=tests,
        max_attainable_bound=highest_bound(none_right, most, tests, claim),
        min_detectable_excess=excess if detect is None else min(excess, detect),  # which rounding may have passed
    )


def highest_bound(guesses: CanaryGuesses, most: int, tests: tuple[CanaryTest, ...], claim: Claim) -> float:
    """Return the bound that tests of so many guesses give if all are correct, of which at most `most` can be."""
    perfect = replace(guesses, correct=tuple(min(number, most) for number in guesses.numbers))
    return max(refuted_parameter(test, claim, perfect) for test in tests)


def _fewest(excess: float, suffices: Callable[[int], bool]) -> int:
    """Return about the fewest canaries that detect an excess."""
    too_few = enough = FEWEST
    while not suffices(enough):
        too_few = enough
        if 4 * too_few > MOST:
            raise OptionError(
                f"detect={excess:g} takes more than {too_few:,} canaries; use a larger excess, or a larger alpha for a "
                "claim with delta."
            )
        enough = 4 * too_few
    while enough > 1.1 * too_few + 1:
        between = round(math.sqrt(too_few * enough))
        too_few, enough = (too_few, between) if suffices(between) else (between, enough)
    return enough
