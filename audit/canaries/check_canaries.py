"""`check_canaries` audits one training run: which canaries were in the training data?

The guesses depend on the scores alone. Ties between scores are broken by coins, since any other rule might give away
which canaries are in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, bdtrc

from ..claims.claim import Claim, claim_at
from ..clock import now
from ..datasets.adjacency import AddRemove, Adjacency, Replace, ZeroOut
from ..errors import OptionError
from ..floating_point_errors import with_own_arithmetic
from ..guesses.canary_guesses import FEWEST, CanaryGuesses, Guess
from ..guesses.guess_bets import guess_numbers
from ..health.findings import ANY_FALSE_ALARM
from ..inference.binomial_tails import Array
from ..inference.event_test import check_test_alpha
from ..known_options import with_known_options
from ..options import checked_seed, in_a_tuple, is_whole
from ..printing import shorten
from ..random_streams import Stream, seed_of_coins, sequence_of
from ..results.canary_result import CanaryResult, best_guesses, score_sketch
from ..results.verdict import Verdict, required_excess
from ..sampling.object_identity import versions
from .canary_tests import refuted_parameter, tail
from .plan_canaries import (
    fixed_numbers,
    guess_by,
    highest_bound,
    plan_canaries,
    plan_tests,
    smallest_excess,
)

Flags: TypeAlias = npt.NDArray[np.bool_]
Inclusion = Literal["independent", "fixed"]

REPLACED = "an add-remove claim of ε or μ implies one of 2ε or 2μ for replaced rows"
_COMPARED = 1_000  # runs whose inclusion bits are compared with each other
_SAME = 0.01  # probability below which two runs with the same canaries are refused
_LARGEST = np.finfo(np.float64).max / 2.0  # infinite scores become this large, so that differences are numbers


@dataclass(frozen=True, slots=True, eq=False)
class CanaryDraws:
    """Scores and inclusion bits, checked; the arrays have the shape (canaries,)."""

    scores: Array  # larger where the canary is more likely to be in; no NaN
    included: Flags
    runs: int = 1  # independent ones, of equally many canaries, one after the other


def canary_draws(scores: Any, included: Any) -> CanaryDraws:
    """Check the arrays; those of several runs, shape (runs, canaries), become one."""
    _check_index(scores, included)
    found, flags = _doubles("scores", scores), _doubles("included", included)
    if found.shape != flags.shape or found.ndim not in (1, 2):
        raise OptionError(
            f"scores of shape {found.shape} and included of shape {flags.shape} do not match; use two arrays of shape "
            "(canaries,), or (runs, canaries), with a flag for each score (not the positions of those that are in).",
            scores=found.shape,
            included=flags.shape,
        )
    if np.isnan(found).any():
        raise OptionError(
            f"{int(np.isnan(found).sum()):,} of {found.size:,} scores are NaN, the first at {_place(np.isnan(found))}; "
            "give such canaries one fixed score, whether they are in or out."
        )
    is_flag = np.isin(flags, (0.0, 1.0))
    if not is_flag.all():
        raise OptionError(
            f"included={flags[~is_flag][0]:g} at {_place(~is_flag)} is neither 0 nor 1; use True where a canary was in "
            "the training data. The scores come first, then included."
        )
    if found.size < FEWEST:
        raise OptionError(f"canaries={found.size} are too few; use {FEWEST} or more.", canaries=found.size)
    runs = len(found) if found.ndim == 2 else 1
    if runs > 1:
        _check_apart(flags, "run")
        _check_apart(flags.T, "canary")  # since runs in columns would pass as canaries
    return CanaryDraws(np.clip(found.ravel(), -_LARGEST, _LARGEST), flags.ravel().astype(np.bool_), runs)


def _check_index(scores: Any, included: Any) -> None:
    """Refuse two columns of pandas whose rows are in another order, since they are read by position."""
    one: Any = getattr(scores, "index", None)
    other: Any = getattr(included, "index", None)
    if hasattr(one, "equals") and hasattr(other, "equals") and not one.equals(other):
        raise OptionError("the rows of scores and of included have different labels; bring them into the same order.")


def _place(where: Flags) -> str:
    return str(tuple(int(i) for i in np.argwhere(where)[0])) if where.ndim > 1 else str(int(np.argmax(where)))


def _check_apart(flags: Array, kind: str) -> None:
    """Refuse rows of which two have the same flags, or more or fewer in common than bits of their own give."""
    flags = flags[:_COMPARED]
    runs, canaries = flags.shape
    if canaries == 1:  # nothing can be told, and every pair of many runs would take memory
        return
    shares = flags.mean(axis=1)
    both = flags @ flags.T
    alike = canaries - flags.sum(axis=1)[:, None] - flags.sum(axis=1)[None, :] + 2.0 * both
    chance = np.clip(np.outer(shares, shares) + np.outer(1.0 - shares, 1.0 - shares), 0.0, 1.0)
    rare = 2.0 * np.minimum(bdtr(alike, canaries, chance), bdtrc(alike - 1.0, canaries, chance))
    first, second = np.triu_indices(runs, 1)
    same = (alike == canaries) & (chance**canaries * len(first) < _SAME)
    dependent = same[first, second] | (rare[first, second] * len(first) < ANY_FALSE_ALARM)
    if dependent.any():
        pair = int(np.argmax(dependent))
        one, other = int(first[pair]), int(second[pair])
        way_out = "draw new inclusion bits for each run, or pass one run"
        if kind == "canary":
            way_out += "; if the rows are canaries, transpose both arrays to (runs, canaries)"
        kinds, others = ("runs", "canaries") if kind == "run" else ("canaries", "runs")
        raise OptionError(
            f"{kinds} {one} and {other} agree in {int(alike[one, other]):,} of {canaries:,} {others}, but each canary "
            f"needs an independent inclusion bit in each run; {way_out}.",
            runs=runs,
        )


def _doubles(name: str, values: Any) -> Array:
    if np.ma.is_masked(values):
        raise OptionError(f"{name} has masked values; leave these canaries out before the inclusion bits.")
    try:
        found = np.asarray(values)
        if np.iscomplexobj(found):
            raise TypeError("complex numbers have no order")
        return np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # RuntimeError: tensors that track gradients
        raise OptionError(
            f"{name} is not an array of numbers ({error}); use an array of shape (canaries,).",
            **{name: type(values).__name__},
        ) from error


def check_inclusion(included: Flags, probability: float, inclusion: Inclusion | None) -> Inclusion:
    """Return how the canaries were chosen; an `OptionError` if that is not stated, or rarely gives as many in."""
    count, canaries = int(included.sum()), len(included)
    if count in (0, canaries):
        raise OptionError(
            f"{'all' if count else 'none'} of the {canaries:,} canaries are in; draw an inclusion bit for each canary.",
            included=count,
        )
    if inclusion == "fixed":
        return "fixed"
    if inclusion is None and abs(count - probability * canaries) < 1e-6:
        share = "half" if probability == 0.5 else f"{100 * probability:g}%"
        raise OptionError(
            f"{count:,} of the {canaries:,} canaries are in, {share} of them, as if the split was fixed; the theorems "
            'need an independent inclusion bit for each canary. Pass inclusion="independent" if each had one, or '
            f'inclusion="fixed" for a fixed split, with a claim for replaced rows ({REPLACED}).',
            included=count,
        )
    tail = min(float(bdtr(count, canaries, probability)), float(bdtrc(count - 1, canaries, probability)))
    if 2.0 * tail < ANY_FALSE_ALARM:
        raise OptionError(
            f"{count:,} of {canaries:,} canaries are in, which independent inclusion bits of probability "
            f"{probability:g} give with probability {2.0 * tail:.1g}; pass the probability with which canaries were "
            'included, or inclusion="fixed" for a split into fixed numbers.',
            included=count,
            probability=probability,
        )
    return "independent"


def paired(draws: CanaryDraws, rng: np.random.Generator) -> CanaryDraws:
    """Pair canaries that are in with canaries that are out, at random, and put a coin on the order of each pair.

    A pair's coin replaces one canary by another, so the theorems hold for claims for replaced rows. Pairs are of one
    run: to exchange canaries of two runs would change how many each of them includes.
    """
    differences: list[Array] = []
    for scores, included in zip(
        draws.scores.reshape(draws.runs, -1), draws.included.reshape(draws.runs, -1), strict=True
    ):
        within, without = (rng.permutation(np.flatnonzero(included == flag)) for flag in (True, False))
        pairs = min(len(within), len(without))
        differences.append(scores[within[:pairs]] - scores[without[:pairs]])
    difference = np.concatenate(differences)
    if not len(difference):
        raise OptionError(
            "no run has both canaries that are in and canaries that are out, so no pairs can be formed; in each run, "
            "put some canaries in and leave others out.",
            runs=draws.runs,
        )
    first_is_in = rng.random(len(difference)) < 0.5
    return CanaryDraws(np.where(first_is_in, difference, -difference), first_is_in)


def _ranked(scores: Array, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the canaries from the lowest score to the highest, ties in random order."""
    mixed = rng.permutation(len(scores))
    return np.asarray(mixed[np.argsort(scores[mixed], kind="stable")], dtype=np.int64)


def right_from_both_ends(draws: CanaryDraws, rng: np.random.Generator) -> Flags:
    """Return which guesses are correct, the score farthest from the median first: "in" above it, "out" below it.

    Scores equal to the median get the answer that fewer of the other scores have, since coins are fair.
    """
    order = _ranked(draws.scores, rng)
    scores = draws.scores[order]
    half = len(order) // 2
    middle = 0.5 * scores[(len(order) - 1) // 2] + 0.5 * scores[half]
    says_in = np.arange(len(order)) >= half
    above, below = int((scores > middle).sum()), int((scores < middle).sum())
    if above != below:
        says_in = np.where(scores == middle, above < below, says_in)
    right = draws.included[order] == says_in
    return np.asarray(right[_ranked(-np.abs(scores - middle), rng)], dtype=np.bool_)


_POWER = 0.95  # of the printed smallest detectable excess, as in every audit
_CHANCE = 1e-3  # probability of a note about signs where the scores show nothing


@with_known_options()
def check_canaries(
    scores: Any,
    included: Any,
    *,
    claim: Claim,
    alpha: float = 0.05,
    probability: float = 0.5,
    inclusion: Inclusion | None = None,
    adjacency: Literal["add-remove", "replace", "zero-out"] | Adjacency | None = None,
    guess: Guess | None = None,
    method: Literal["auto", "betting", "counts", "steinke", "f-dp"] = "auto",
    guesses: int | Sequence[int] | None = None,
    detect: float | None = None,
    seed: int | None = 0,
    name: str = "training run",
    claim_source: str = "",
) -> CanaryResult:
    """Audit a claim on one training run, from the scores of canaries that inclusion bits put in or left out.

    Before training, an inclusion bit decides for each canary whether it is in the training data. Afterwards each canary
    gets a score that is large if it seems to be in: minus its loss, how far the weights moved against its gradient,
    anything computed from what the training releases and nothing else. A training that keeps the claim is refuted with
    probability at most `alpha`, however canaries influence each other.

    Parameters
    ----------
    scores : array_like, shape (canaries,) or (runs, canaries)
        Large where a canary seems to be in, so minus a loss; no NaN. Canaries are guessed from the scores farthest from
        the median on, so scores whose outliers tell most are best, such as log-odds rather than probabilities. Runs
        must be independent, with new inclusion bits for each.
    included : array_like of bool, the same shape
        Whether the canary was in the training data.
    claim : Claim
        For neighbours that differ in one canary, for any state of the others.
    alpha : float
        Above 1e-9.
    probability : float
        With which each inclusion bit included its canary. Unless it is ½, only one answer is guessed: see `guess`.
    inclusion : {"independent", "fixed"}, optional
        "fixed" for a random split into fixed numbers of canaries in and out. Such canaries are paired at random, and
        the claim must be for replaced rows. By default independent, but not if exactly the expected number is in.
    adjacency : {"add-remove", "replace", "zero-out"}, AddRemove, Replace or ZeroOut, optional
        Neighbours of the claim; by default "add-remove" with independent inclusion bits. Independent inclusion bits
        that choose between two versions of a canary make "replace", between it and a null record "zero-out".
    guess : {"both", "in", "out"}, optional
        What is guessed: by default both for a `probability` of 0.5 and claims that are the same in both directions,
        else "in".
    method : {"auto", "betting", "counts", "steinke", "f-dp"}
        "betting" tests all numbers of guesses together; the others test fixed numbers, with equal shares of alpha:
        "counts" by the exact distribution for (ε, δ), "steinke" by the bound of Steinke, Nasr & Jagielski (2023),
        "f-dp" by the recursion of Mahloujifar, Melis & Chaudhuri (2024), for any claim. By default betting for pure and
        approximate claims, with half of alpha for counts where δ times the number of canaries is not small; the
        recursion for claims of curves.
    guesses : int or sequence of int, optional
        Fixed numbers of guesses, chosen without a look at the scores of this run; by default half of all canaries, an
        eighth and so on.
    detect : float, optional
        Excess that the audit has to be able to detect; if it is not, an audit that refutes nothing is inconclusive. By
        default an excess as large as the claim.
    seed : int or None
        Orders equal scores, and pairs a fixed split, together with the scores: equal scores with equal flags are
        treated alike, and every other training run gets other random numbers.
    name, claim_source : str
        Name of the training in the result, and where the claim is from.

    Returns
    -------
    CanaryResult
        Verdict, bound on the privacy parameter, p-value, and the guesses that carry them.

    Raises
    ------
    ClaimError
        For a value that is not a claim.
    OptionError
        For arrays that do not fit, or inclusion bits that the theorems do not cover.

    See Also
    --------
    plan_canaries : What an audit with so many canaries can show.
    counts.epsilon_from_guesses : Bound from a number of correct guesses.

    Notes
    -----
    The inclusion bits are assumed to be independent, or a random split into fixed numbers. Under (ε, δ)-DP and a
    probability of inclusion of 1/2, a guess is correct with probability at most e^ε/(1 + e^ε), given all earlier
    guesses, except for an event of probability at most m δ/(1 + e^ε) for m canaries.

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
    kind = check_inclusion(draws.included, probability, inclusion)
    relation = _adjacency(adjacency, kind)
    seen = seed_of_coins(root, draws.scores.tobytes(), draws.included.tobytes())
    rng = np.random.default_rng(sequence_of(seen, Stream.CANARIES))
    answer = guess_by(guess, claim, 0.5 if kind == "fixed" else probability)
    found = paired(draws, rng) if kind == "fixed" else draws
    if kind == "fixed" and answer != "both":
        raise OptionError(f"guess={answer!r} has no meaning for pairs; leave it out.", guess=answer)
    canaries = len(found.scores)
    wanted = _numbers(guesses, canaries)
    numbers = tuple(sorted({*guess_numbers(canaries), *(wanted or fixed_numbers(canaries))}))
    right = np.cumsum(_right(found, kind, answer, rng))
    counted = CanaryGuesses(
        canaries=canaries,
        numbers=numbers,
        correct=tuple(int(right[number - 1]) for number in numbers),
        answer=answer,
        probability=0.5 if kind == "fixed" else probability,
    )
    tests = plan_tests(method, wanted, claim, counted, alpha)
    pvalues = {test: min(tail(test, claim, counted) * alpha / test.alpha, 1.0) for test in tests}
    bounds = {test: refuted_parameter(test, claim, counted) for test in tests}
    within = int(found.included.sum())
    answers = {"both": canaries, "in": within, "out": canaries - within}
    deciding_test, bound = max(tests, key=lambda test: (bounds[test], -pvalues[test])), max(bounds.values())
    max_attainable_bound = highest_bound(counted, answers[answer], tests, claim)
    excess: Any = with_own_arithmetic(partial(smallest_excess, tests, claim, counted, _POWER))  # on demand
    result = CanaryResult(
        mechanism=name,
        claim=claim,
        claim_source=claim_source,
        adjacency=relation,
        inclusion=kind,
        canaries=len(draws.scores),
        runs=draws.runs,
        included=int(draws.included.sum()),
        guesses=counted,
        tests=tests,
        deciding_test=deciding_test,
        alpha=alpha,
        pvalue=min(pvalues.values()),
        bound=bound,
        min_detectable_excess=excess,
        max_attainable_bound=max_attainable_bound,
        power=_POWER,
        detect=detect,
        seed=root,
        sketch=score_sketch(
            found.scores,
            found.included,
            guessed=best_guesses(counted, deciding_test)[0],
            said=answer,
            middle=0.0 if kind == "fixed" else None,
        ),
        notes=_notes(counted, found, bound) if bound <= claim.parameter else (),
        versions=versions(),
    )
    if result.verdict is Verdict.INCONCLUSIVE:
        options: Any = {"alpha": alpha, "probability": counted.probability, "guess": guess, "method": method}
        result = replace(result, needed=_needed(claim, required_excess(claim, detect), **options))
    result.environment["seconds"] = round(now() - started, 3)
    return result


def _needed(claim: Claim, excess: float, **options: Any) -> int | None:
    """Return a number of canaries that detects the excess; None if none does."""
    try:
        return plan_canaries(claim=claim, detect=excess, power=_POWER, **options).canaries
    except OptionError:  # no number of canaries is enough
        return None


def _adjacency(adjacency: Any, inclusion: Inclusion) -> str:
    named = {AddRemove: "add-remove", Replace: "replace", ZeroOut: "zero-out"}
    adjacency = named.get(type(adjacency), adjacency)
    if adjacency is not None and not (isinstance(adjacency, str) and adjacency in named.values()):
        raise OptionError(
            f'adjacency={shorten(adjacency)} is unknown; use "add-remove", "replace" or "zero-out".',
            adjacency=adjacency,
        )
    if inclusion == "fixed" and adjacency != "replace":
        raise OptionError(
            "in a fixed split the canaries have no independent inclusion bits, so it cannot test a claim for added or "
            f'removed rows; pass adjacency="replace" and a claim for replaced rows ({REPLACED}), or draw an inclusion '
            "bit for each canary.",
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


def _right(draws: CanaryDraws, inclusion: Inclusion, said: Guess, rng: np.random.Generator) -> Flags:
    """Return which guesses are correct, in the order in which they are made."""
    if inclusion == "fixed":  # the larger score is in, from the largest difference on
        order = _ranked(-np.abs(draws.scores), rng)
        larger = np.where(draws.scores == 0.0, rng.random(len(order)) < 0.5, draws.scores > 0.0)
        return np.asarray((draws.included == larger)[order], dtype=np.bool_)
    if said == "both":
        return right_from_both_ends(draws, rng)
    order = _ranked(draws.scores, rng)
    return np.asarray(draws.included[order[::-1]] if said == "in" else ~draws.included[order], dtype=np.bool_)


def _notes(guesses: CanaryGuesses, draws: CanaryDraws, bound: float) -> tuple[str, ...]:
    """A note on scores that show nothing, or of the wrong sign: far fewer correct guesses than by coins."""
    if draws.scores.min() == draws.scores.max():
        return ("all scores are equal, so every guess was a coin toss.",)
    numbers, right = np.array(guesses.numbers), np.array(guesses.correct)
    tails = bdtr(right, numbers, guesses.prior)
    worst = int(tails.argmin())
    if tails[worst] * len(numbers) > _CHANCE:
        if bound > 0.0:
            return ()
        return (
            "no number of guesses was correct more often than by chance; are these the scores of this training, in the "
            "order of the inclusion bits?",
        )
    return (
        f"{right[worst]:,} of {numbers[worst]:,} guesses were correct, far fewer than by chance. Pass scores that are "
        "large for canaries that seem to be in, such as minus the loss. An audit of the same inclusion bits with other "
        "scores is a second test and needs its own alpha.",
    )
