"""Which tests share alpha, decided from the claim and the number of canaries, before any score is seen."""

from __future__ import annotations

from ..claims.claim import ApproxDP, Claim, PureDP
from ..errors import OptionError
from ..guesses.canary_guesses import CanaryGuesses, CanaryTest, Kind, Said
from ..inference.guess_test import is_concave, is_symmetric
from ..printing import shorten
from .canary_tests import ceilings, has_lines

METHODS = ("auto", "betting", "counts", "steinke", "f-dp")

_RATIO, _FEWEST = 4, 12  # of numbers of guesses that are tested one by one, and the least of them
_SMALL_SLIP = 0.05  # share of alpha that bets may lose to δ without other tests beside them


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
    goes to counts. Claims of curves are tested by the recursion: bets would see a curve as one line.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    numbers : tuple of int, optional
        Numbers of guesses for the tests of a fixed number; by default `fixed_numbers`.
    claim : Claim
    shape : CanaryGuesses
        How many canaries there are and what is said of them.
    alpha : float
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
        raise OptionError('method="steinke" is for fair coins; use "betting", "counts" or "f-dp".', method=method)
    fixed = numbers or fixed_numbers(shape.canaries)
    bets = CanaryTest("betting", shape.canaries, alpha)
    if method == "betting":
        return (bets,)
    if method in ("counts", "steinke", "f-dp"):
        return _shared(method, fixed, alpha)  # type: ignore[arg-type]
    if numbers is not None:
        return _shared("counts" if isinstance(claim, (PureDP, ApproxDP)) else "f-dp", fixed, alpha)
    if not isinstance(claim, (PureDP, ApproxDP)):
        return _shared("f-dp", fixed, alpha)
    slip = ceilings(claim, shape)[0].slip(shape.canaries)
    if slip <= _SMALL_SLIP * alpha:
        return (bets,)
    return CanaryTest("betting", shape.canaries, alpha / 2), *_shared("counts", fixed, alpha / 2)


def said_by(say: Said | None, claim: Claim, probability: float) -> Said:
    """Return what is guessed: both answers, or "in" for unequal coins and claims that depend on the direction."""
    if not (is_concave(claim) and is_concave(claim.reversed())):
        raise OptionError(
            f"the boundary of {claim} is not concave, but the mean over canaries is taken inside it; claim the "
            "smallest concave boundary above it.",
            claim=claim,
        )
    can_be_both = probability == 0.5 and is_symmetric(claim)
    if say == "both" and not can_be_both:
        raise OptionError(
            'say="both" needs fair coins and a claim that is the same in both directions; use "in" or "out".', say=say
        )
    return say or ("both" if can_be_both else "in")
