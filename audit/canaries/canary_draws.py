"""What an audit of one training run is given, a score and a coin for each canary, and the order of the guesses.

The order and the guesses depend on the scores alone. Ties between scores are broken by coins, since any other rule
might give away which canaries are in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, bdtrc

from ..errors import OptionError
from ..inference.binomial_tails import Array

Flags: TypeAlias = npt.NDArray[np.bool_]
Coins = Literal["independent", "fixed"]

COINS_FALSE_ALARM = 1e-6
"""Probability that independent coins are refused because too many or too few canaries are in."""
REPLACED = "an add-remove claim of ε or μ implies one of 2ε or 2μ for replaced rows"
FEWEST, MOST = 8, 10**7
_COMPARED = 1_000  # runs whose coins are compared with each other
_SAME = 0.01  # probability below which two runs with the same canaries are refused
_LARGEST = np.finfo(np.float64).max / 2.0  # infinite scores become this large, so that differences are numbers


@dataclass(frozen=True, slots=True, eq=False)
class CanaryDraws:
    """Scores and coins, checked; the arrays have the shape (canaries,)."""

    scores: Array  # larger where the canary is more likely to be in; no NaN
    included: Flags
    runs: int = 1  # independent ones, of equally many canaries, one after the other


def canary_draws(scores: Any, included: Any) -> CanaryDraws:
    """Check the arrays; those of several runs, shape (runs, canaries), become one."""
    _check_index(scores, included)
    found, flags = _numbers("scores", scores), _numbers("included", included)
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
    """Refuse rows of which two have the same flags, or more or fewer in common than coins of their own give."""
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
    dependent = same[first, second] | (rare[first, second] * len(first) < COINS_FALSE_ALARM)
    if dependent.any():
        pair = int(np.argmax(dependent))
        one, other = int(first[pair]), int(second[pair])
        way_out = "draw new coins for each run, or pass one run"
        if kind == "canary":
            way_out += "; if the rows are canaries, transpose both arrays to (runs, canaries)"
        kinds, others = ("runs", "canaries") if kind == "run" else ("canaries", "runs")
        raise OptionError(
            f"{kinds} {one} and {other} agree in {int(alike[one, other]):,} of {canaries:,} {others}, but each canary "
            f"needs an independent coin in each run; {way_out}.",
            runs=runs,
        )


def _numbers(name: str, values: Any) -> Array:
    if np.ma.is_masked(values):
        raise OptionError(f"{name} has masked values; leave these canaries out before the coins.")
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


def check_coins(included: Flags, probability: float, coins: Coins | None) -> Coins:
    """Return how the canaries were chosen; an `OptionError` if that is not stated, or hardly gives as many in."""
    count, canaries = int(included.sum()), len(included)
    if count in (0, canaries):
        raise OptionError(
            f"{'all' if count else 'none'} of the {canaries:,} canaries are in; draw a coin for each canary.",
            included=count,
        )
    if coins == "fixed":
        return "fixed"
    if coins is None and abs(count - probability * canaries) < 1e-6:
        share = "half" if probability == 0.5 else f"{100 * probability:g}%"
        raise OptionError(
            f"{count:,} of the {canaries:,} canaries are in, {share} of them, as if the split was fixed; the theorems "
            'need an independent coin for each canary. Pass coins="independent" if each had one, or coins="fixed" '
            f"for a fixed split, with a claim for replaced rows ({REPLACED}).",
            included=count,
        )
    tail = min(float(bdtr(count, canaries, probability)), float(bdtrc(count - 1, canaries, probability)))
    if 2.0 * tail < COINS_FALSE_ALARM:
        raise OptionError(
            f"{count:,} of {canaries:,} canaries are in, which independent coins of probability {probability:g} give "
            f"with probability {2.0 * tail:.1g}; pass the probability with which canaries were included, or "
            'coins="fixed" for a split into fixed numbers.',
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
    """Return which guesses are correct, from the score farthest from the median on: "in" above it, "out" below it.

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


def right_of_pairs(draws: CanaryDraws, rng: np.random.Generator) -> Flags:
    """Return which guesses are correct, from the largest difference of scores on: the larger score is in."""
    order = _ranked(-np.abs(draws.scores), rng)
    larger = np.where(draws.scores == 0.0, rng.random(len(order)) < 0.5, draws.scores > 0.0)
    return np.asarray((draws.included == larger)[order], dtype=np.bool_)


def right_from_one_end(draws: CanaryDraws, rng: np.random.Generator, *, says_in: bool) -> Flags:
    """Return which guesses are correct: "in" from the highest score on, or "out" from the lowest."""
    order = _ranked(draws.scores, rng)
    return np.asarray(draws.included[order[::-1]] if says_in else ~draws.included[order], dtype=np.bool_)
