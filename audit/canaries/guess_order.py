"""In which order canaries are guessed: from the most telling score to the least telling one.

The order and the guesses depend on the scores alone. Ties between scores are broken by coins, since any other rule
might give away which canaries are in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..inference.binomial_tails import Array
from .canary_draws import CanaryDraws, Flags


def _ranked(scores: Array, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the canaries from the lowest score to the highest, ties in random order."""
    mixed = rng.permutation(len(scores))
    return np.asarray(mixed[np.argsort(scores[mixed], kind="stable")], dtype=np.int64)


def right_from_both_ends(draws: CanaryDraws, rng: np.random.Generator) -> Flags:
    """Return which guesses are right, from the score farthest from the median on: "in" above it, "out" below it.

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
    """Return which guesses are right, from the largest difference of scores on: the larger score is in."""
    order = _ranked(-np.abs(draws.scores), rng)
    larger = np.where(draws.scores == 0.0, rng.random(len(order)) < 0.5, draws.scores > 0.0)
    return np.asarray((draws.included == larger)[order], dtype=np.bool_)


def right_from_one_end(draws: CanaryDraws, rng: np.random.Generator, *, says_in: bool) -> Flags:
    """Return which guesses are right: "in" from the highest score on, or "out" from the lowest."""
    order = _ranked(draws.scores, rng)
    return np.asarray(draws.included[order[::-1]] if says_in else ~draws.included[order], dtype=np.bool_)
