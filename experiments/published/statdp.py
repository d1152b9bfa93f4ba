"""The eleven mechanisms of StatDP at epsilon 0.7, with their unprocessed outputs.

References
----------
Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of differential privacy.
"""

from __future__ import annotations

from typing import Any, Final

from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import Within
from ...audit.datasets.domains import Answers
from ...mechanisms import NoisyThreshold, ReportNoisyMax, SparseVector
from ...mechanisms.faulty.selection import LargestNoisyCount
from ...mechanisms.queries import identity
from .entry import Entry, entry, loss_at
from .noisy_answers import LargestExponential, NoisyAnswers

EPSILON: Final = 0.7
CLAIM: Final = PureDP(EPSILON)
FEW: Final = 5
"""Number of answers of noisy max and the histogram."""
MANY: Final = 10
"""Number of answers of the sparse vector, whose variants stop after one answer above the threshold (N = 1)."""

_ALL_MOVE: Final = Within("linf")
_ONE_MOVES: Final = Within("l1")


def entries() -> list[Entry]:
    """Return the suite; computing `exact` from the distributions takes a second."""
    return [*_noisy_maxima(), *_histograms(), *_sparse_vectors()]


def _noisy_maxima() -> list[Entry]:
    ahead = [1.0] * FEW, [0.0] + [2.0] * (FEW - 1)
    all_up, one_up = ([0.0] * FEW, [1.0] * FEW), ([1.0] + [0.0] * (FEW - 1), [2.0] + [0.0] * (FEW - 1))
    answers, exponential_max = Answers(FEW), ReportNoisyMax(EPSILON, noise="exponential")
    largest, exponential = LargestNoisyCount(2 / EPSILON, CLAIM, identity, FEW), LargestExponential(CLAIM, 2 / EPSILON)
    tail, bound = loss_at(0.0, largest, all_up), loss_at(1.5, exponential, one_up)
    by_answer = "release of the maximum, lower tail with a loss of epsilon/2 for each answer"
    below = "release of the maximum, never below the largest answer; event with 1.9% of the runs on x"
    return [
        entry("noisy_max_v1a", ReportNoisyMax(EPSILON), ahead, _ALL_MOVE, answers),
        entry("noisy_max_v2a", exponential_max, ahead, _ALL_MOVE, answers, "tight claim"),
        entry("noisy_max_v1b", largest, all_up, _ALL_MOVE, answers, by_answer, exact=tail),
        entry("noisy_max_v2b", exponential, one_up, _ALL_MOVE, answers, below, exact=bound),
    ]


def _histograms() -> list[Entry]:
    pair, answers = ([1.0] * FEW, [2.0] + [1.0] * (FEW - 1)), Answers(FEW)
    right, inverted = NoisyAnswers(CLAIM, 1 / EPSILON), NoisyAnswers(CLAIM, EPSILON)
    return [
        entry("histogram", right, pair, _ONE_MOVES, answers, "tight claim; the suite tests the first count only"),
        entry("histogram_eps", inverted, pair, _ONE_MOVES, answers, "noise of scale epsilon instead of 1/epsilon"),
    ]


def _sparse_vectors() -> list[Entry]:
    def compare(threshold: float, query: float, **options: Any) -> NoisyThreshold:
        """Use noise of these scales in units of 1/epsilon."""
        return NoisyThreshold(CLAIM, threshold / EPSILON, query / EPSILON, threshold=1.0, **options)

    half, answers = MANY // 2, Answers(MANY)
    last_above = [1.0] * MANY, [2.0] * (MANY - 1) + [0.0]
    half_up, all_up = ([1.0] * MANY, [0.0] * half + [2.0] * half), ([0.0] * MANY, [1.0] * MANY)
    ordered = [2.0] * half + [0.0] * half, [1.0] * MANY
    values, little = compare(2, 2, cutoff=1, release_value=True), compare(4, 4 / 3, cutoff=1)
    return [
        entry("SVT", SparseVector(EPSILON, 1, threshold=0.5), last_above, _ALL_MOVE, answers),
        entry("iSVT1", compare(2, 0), ordered, _ALL_MOVE, answers,
            "no noise on the answers, order of the answers revealed"),
        entry("iSVT2", compare(2, 2), half_up, _ALL_MOVE, answers, "no cutoff, epsilon for each of many answers"),
        entry("iSVT3", little, last_above, _ALL_MOVE, answers, "too little noise on the answers, 7/4 epsilon"),
        entry("iSVT4", values, all_up, _ALL_MOVE, answers,
            "release of the noisy answer, a bound on the threshold noise"),
    ]  # fmt: skip
