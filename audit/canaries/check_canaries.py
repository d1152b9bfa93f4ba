"""`check_canaries` audits one training run: which canaries were in the training data?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.special import bdtr

from ..claims.claim import Claim, claim_at
from ..clock import now
from ..datasets.adjacency import AddRemove, Adjacency, Replace
from ..errors import OptionError
from ..guesses.canary_guesses import CanaryGuesses, Said
from ..guesses.guess_bets import guess_numbers
from ..inference.event_test import check_test_alpha
from ..known_options import with_known_options
from ..options import checked_seed, in_a_tuple, is_whole
from ..printing import shorten
from ..random_streams import Stream, seed_of_coins, sequence_of
from ..results.audit_result import Verdict, largest_excess
from ..results.canary_result import CanaryResult, best_guesses, score_sketch
from ..sampling.object_identity import versions
from .canary_draws import (
    REPLACED,
    CanaryDraws,
    Coins,
    Flags,
    canary_draws,
    check_coins,
    paired,
    right_from_both_ends,
    right_from_one_end,
    right_of_pairs,
)
from .canary_tests import refuted_parameter, tail
from .plan_canaries import (
    CanaryPlan,
    enough_canaries,
    fixed_numbers,
    highest_bound,
    plan_tests,
    said_by,
    smallest_excess,
)

_POWER = 0.95
_CHANCE = 1e-3  # probability of a note about signs where the scores show nothing


@with_known_options()
def check_canaries(
    scores: Any,
    included: Any,
    *,
    claim: Claim,
    alpha: float = 0.05,
    probability: float = 0.5,
    coins: Coins | None = None,
    adjacency: Literal["add-remove", "replace"] | Adjacency | None = None,
    say: Said | None = None,
    method: Literal["auto", "betting", "counts", "steinke", "f-dp"] = "auto",
    guesses: int | Sequence[int] | None = None,
    resolution: float | None = None,
    seed: int | None = 0,
    name: str = "training run",
    claim_source: str = "",
) -> CanaryResult:
    """Audit a claim on one training run, from the scores of canaries that coins put in or left out.

    Before training, a coin decides for each canary whether it is in the training data. Afterwards each canary gets a
    score that is large where it seems to be in: minus its loss, how far the weights moved against its gradient,
    anything computed from what the training releases and nothing else. A training that keeps the claim is refuted with
    probability at most `alpha`, however canaries influence each other.

    Parameters
    ----------
    scores : array_like, shape (canaries,) or (runs, canaries)
        Large where a canary seems to be in, so minus a loss; no NaN. Canaries are guessed from the scores farthest from
        the median on, so scores whose outliers tell most are best, such as log-odds rather than probabilities. Runs
        must be independent, with new coins for each.
    included : array_like of bool, the same shape
        Whether the canary was in the training data.
    claim : Claim
        For neighbours that differ in one canary, for any state of the others.
    alpha : float
        Above 1e-9.
    probability : float
        With which each coin included its canary. Unless it is ½, only one answer is guessed: see `say`.
    coins : {"independent", "fixed"}, optional
        "fixed" for a random split into fixed numbers of canaries in and out. Such canaries are paired at random, and
        the claim must be for replaced rows. By default independent, but not if exactly the expected number is in.
    adjacency : {"add-remove", "replace"}, AddRemove or Replace, optional
        Neighbours of the claim; by default "add-remove" with independent coins. Independent coins that choose between
        two versions of a canary make "replace".
    say : {"both", "in", "out"}, optional
        What is guessed: by default both for fair coins and claims that are the same in both directions, else "in".
    method : {"auto", "betting", "counts", "steinke", "f-dp"}
        "betting" tests all numbers of guesses together; the others test fixed numbers, with equal shares of alpha:
        "counts" by the exact distribution for (ε, δ), "steinke" by the bound of Steinke, Nasr & Jagielski (2023),
        "f-dp" by the recursion of Mahloujifar, Melis & Chaudhuri (2024), for any claim. By default betting for pure and
        approximate claims, with half of alpha for counts where δ times the number of canaries is not small; the
        recursion for claims of curves.
    guesses : int or sequence of int, optional
        Fixed numbers of guesses, chosen without a look at the scores of this run; by default half of all canaries, an
        eighth and so on.
    resolution : float, optional
        Excess that the audit has to be able to detect; if it is not, an audit that refutes nothing is inconclusive. By
        default an excess as large as the claim.
    seed : int or None
        Orders equal scores, and pairs a fixed split, together with the scores: equal scores with equal flags are
        treated alike, and every other training run meets other coins.

    Returns
    -------
    CanaryResult
        Verdict, bound on the privacy parameter, p-value, and the guesses that carry them.

    Raises
    ------
    ClaimError
        For a value that is not a claim.
    OptionError
        For arrays that do not fit, or coins that the theorems do not cover.

    See Also
    --------
    plan_canaries : What an audit with so many canaries can show.
    counts.epsilon_from_guesses : Bound from a number of correct guesses.

    Notes
    -----
    The coins are assumed to be independent, or a random split into fixed numbers. Under (ε, δ)-DP and fair coins a
    guess is correct with probability at most e^ε/(1 + e^ε), given all earlier guesses, but for an event of probability
    at most m δ/(1 + e^ε) for m canaries.

    References
    ----------
    Steinke, Nasr & Jagielski (2023), Privacy auditing with one (1) training run. Mahloujifar, Melis & Chaudhuri (2024),
    Auditing f-differential privacy in one run. Proofs: docs/proofs/canaries.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import ApproxDP, check_canaries
    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(1_000) < 0.5
    >>> scores = rng.normal(size=1_000) + 2 * included
    >>> result = check_canaries(scores, included, claim=ApproxDP(1.0, 1e-5))
    >>> result.verdict.value, result.bound > 1.0
    ('refuted', True)
    """
    started = now()
    alpha = check_test_alpha(alpha)
    if isinstance(method, str) and method == "betting" and guesses is not None:
        raise OptionError(
            f'guesses={shorten(guesses)} has no meaning for method="betting", which tests all; leave it out.'
        )
    root, claim = checked_seed(seed), claim_at(claim, 1.0)
    draws = canary_draws(scores, included)
    kind = check_coins(draws.included, probability, coins)
    relation = _adjacency(adjacency, kind)
    seen = seed_of_coins(root, draws.scores.tobytes(), draws.included.tobytes())
    rng = np.random.default_rng(sequence_of(seen, Stream.CANARIES))
    answer = said_by(say, claim, 0.5 if kind == "fixed" else probability)
    found = paired(draws, rng) if kind == "fixed" else draws
    if kind == "fixed" and answer != "both":
        raise OptionError(f"say={answer!r} has no meaning for pairs; leave it out.", say=answer)
    canaries = len(found.scores)
    wanted = _numbers(guesses, canaries)
    numbers = tuple(sorted({*guess_numbers(canaries), *(wanted or fixed_numbers(canaries))}))
    right = np.cumsum(_right(found, kind, answer, rng))
    counted = CanaryGuesses(
        canaries=canaries,
        numbers=numbers,
        right=tuple(int(right[number - 1]) for number in numbers),
        said=answer,
        probability=0.5 if kind == "fixed" else probability,
    )
    tests = plan_tests(method, wanted, claim, counted, alpha)
    pvalues = {test: min(tail(test, claim, counted) * alpha / test.alpha, 1.0) for test in tests}
    bounds = {test: refuted_parameter(test, claim, counted) for test in tests}
    within = int(found.included.sum())
    answers = {"both": canaries, "in": within, "out": canaries - within}
    carried, bound = max(tests, key=lambda test: (bounds[test], -pvalues[test])), max(bounds.values())
    ceiling = highest_bound(counted, answers[answer], tests, claim)
    excess = None if bound > claim.parameter else smallest_excess(tests, claim, counted, _POWER)
    result = CanaryResult(
        mechanism=name,
        claim=claim,
        claim_source=claim_source,
        adjacency=relation,
        coins=kind,
        canaries=len(draws.scores),
        runs=draws.runs,
        included=int(draws.included.sum()),
        guesses=counted,
        tests=tests,
        carried=carried,
        alpha=alpha,
        pvalue=min(pvalues.values()),
        bound=bound,
        resolution=excess,
        ceiling=ceiling,
        power=_POWER,
        requested_resolution=resolution,
        seed=root,
        sketch=score_sketch(
            found.scores,
            found.included,
            guessed=best_guesses(counted, carried)[0],
            said=answer,
            middle=0.0 if kind == "fixed" else None,
        ),
        notes=_notes(counted, found) if bound <= claim.parameter else (),
        versions=versions(),
    )
    if excess is not None and result.verdict is Verdict.INCONCLUSIVE and resolution is None:
        plan = CanaryPlan(
            canaries=canaries, claim=claim, alpha=alpha, power=_POWER, tests=tests, ceiling=ceiling, resolution=excess
        )
        notes = _enough(plan, "pairs" if kind == "fixed" else "canaries", counted.probability, say, method)
        result = replace(result, notes=(*result.notes, *notes))
    result.environment["seconds"] = round(now() - started, 3)
    return result


def _enough(given: CanaryPlan, of: str, probability: float, say: Said | None, method: str) -> Iterator[str]:
    """Yield a note with a number of canaries that is enough for the claim; none for claims whose plans take long."""
    if given.claim.divergence_slopes:
        return
    plan = enough_canaries(given, largest_excess(given.claim), probability=probability, say=say, method=method)
    if plan is not None:
        yield f"{plan.canaries:,} {of} would be enough: their minimum detectable excess is {plan.resolution:.2g}"


def _adjacency(adjacency: Any, coins: Coins) -> str:
    if isinstance(adjacency, Adjacency):
        adjacency = {AddRemove(): "add-remove", Replace(): "replace"}.get(adjacency, adjacency)
    if adjacency is not None and not (isinstance(adjacency, str) and adjacency in ("add-remove", "replace")):
        raise OptionError(
            f'adjacency={shorten(adjacency)} is unknown; use "add-remove" or "replace".', adjacency=adjacency
        )
    if coins == "fixed" and adjacency != "replace":
        raise OptionError(
            "in a fixed split the canaries have no independent coins, so it cannot test a claim for added or removed "
            f'rows; pass adjacency="replace" and a claim for replaced rows ({REPLACED}), or draw a coin for each '
            "canary.",
            adjacency=adjacency,
        )
    return adjacency or "add-remove"


def _numbers(guesses: int | Sequence[int] | None, canaries: int) -> tuple[int, ...] | None:
    if guesses is None:
        return None
    given = in_a_tuple(guesses)
    if not given or not all(is_whole(n) and 1 <= n <= canaries for n in given):
        raise OptionError(
            f"guesses={shorten(guesses)} are not numbers of guesses; use whole numbers from 1 to {canaries:,}.",
            guesses=guesses,
        )
    return tuple(sorted({int(n) for n in given}))


def _right(draws: CanaryDraws, coins: Coins, said: Said, rng: np.random.Generator) -> Flags:
    if coins == "fixed":
        return right_of_pairs(draws, rng)
    if said == "both":
        return right_from_both_ends(draws, rng)
    return right_from_one_end(draws, rng, says_in=said == "in")


def _notes(guesses: CanaryGuesses, draws: CanaryDraws) -> tuple[str, ...]:
    """A note on scores that are all equal, or of the wrong sign: far fewer correct guesses than by coins."""
    if draws.scores.min() == draws.scores.max():
        return ("all scores are equal, so every guess was a coin toss.",)
    numbers, right = np.array(guesses.numbers), np.array(guesses.right)
    tails = bdtr(right, numbers, guesses.prior)
    worst = int(tails.argmin())
    if tails[worst] * len(numbers) > _CHANCE:
        return ()
    return (
        f"{right[worst]:,} of {numbers[worst]:,} guesses were correct, far fewer than by chance; scores must be large "
        "where canaries seem to be in (minus the loss, not the loss). An audit of the same coins with other scores is "
        "a second look and needs its own alpha.",
    )
