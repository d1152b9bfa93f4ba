"""`epsilon_from_guesses` bounds ε from bare counts of right guesses."""

from __future__ import annotations

from ..claims.claim import ApproxDP
from ..errors import OptionError
from ..guesses.canary_guesses import CanaryGuesses, CanaryTest
from ..inference.boundary_test import check_test_alpha
from ..known_options import with_known_options
from ..options import is_whole
from ..printing import shorten
from .canary_draws import MOST
from .canary_tests import refuted_strength


@with_known_options()
def epsilon_from_guesses(
    correct: int, guesses: int, canaries: int | None = None, *, delta: float = 0.0, alpha: float = 0.05
) -> float:
    """Lower bound on ε at `delta`, with confidence 1 − alpha, from guesses of which canaries are in.

    An independent fair coin put each canary in or left it out. The number of guesses was fixed before the scores were
    seen; which canaries are guessed, and whether "in" or "out", may depend on everything but the coins. The bound is
    exact: it cannot be larger if nothing but these numbers is known.

    Parameters
    ----------
    correct, guesses, canaries : int
        correct <= guesses <= canaries. `canaries` can be left out where `delta` is 0; else those that were not guessed
        count too, as each may be the one on which δ is spent.
    delta : float
        In [0, 1).
    alpha : float
        Above 1e-9.

    Returns
    -------
    float
        In nats; 0 if nothing is refuted.

    Raises
    ------
    OptionError
        For numbers that do not fit.

    References
    ----------
    docs/proofs/canaries.md, theorem 2. Steinke, Nasr & Jagielski (2023), Theorem 5.2, give a smaller bound.

    Examples
    --------
    >>> from dpaudit import epsilon_from_guesses
    >>> round(epsilon_from_guesses(100, 100, 100_000, delta=1e-5), 3)
    3.423
    """
    check_test_alpha(alpha)
    claim = ApproxDP(0.0, delta)
    if canaries is None and delta > 0.0:
        raise OptionError(
            f"with delta={delta!r} the bound depends on the number of all canaries, guessed or not; pass canaries "
            "(canaries=guesses if all were guessed).",
            delta=delta,
        )
    total = guesses if canaries is None else canaries
    if not all(map(is_whole, (correct, guesses, total))) or not 0 <= correct <= guesses <= total <= MOST or guesses < 1:
        raise OptionError(
            f"correct={shorten(correct)}, guesses={shorten(guesses)} and canaries={shorten(total)} do not fit; use "
            f"whole numbers with 0 <= correct <= guesses <= canaries <= {MOST:,}, and at least one guess.",
            correct=correct,
            guesses=guesses,
            canaries=total,
        )
    counted = CanaryGuesses(canaries=int(total), numbers=(int(guesses),), right=(int(correct),))
    return refuted_strength(CanaryTest("counts", int(guesses), alpha), claim, counted)
