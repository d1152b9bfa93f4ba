"""The eleven mechanisms of StatDP at epsilon 0.7, their outputs as they are: nothing is counted or cut out by hand.

References
----------
Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of differential privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.datasets.adjacency import Adjacency, Within
from ...audit.datasets.domains import Answers
from ...mechanisms import NoisyThreshold, ReportNoisyMax, SparseVector
from ...mechanisms.faulty.selection.faulty_noisy_max import LargestNoisyCount
from ...mechanisms.queries import identity
from .entry import Entry
from .largest_exponential import LargestExponential
from .noisy_answers import NoisyAnswers

EPSILON: Final = 0.7
CLAIM: Final = PureDP(EPSILON)
FEW: Final = 5
"""Answers of noisy max and the histogram."""
MANY: Final = 10
"""Answers of the sparse vector, whose variants look for one above their threshold (N = 1)."""

_ALL_MOVE: Final = Within("linf")
_ONE_MOVES: Final = Within("l1")
_AHEAD: Final = [1.0] * FEW, [0.0] + [2.0] * (FEW - 1)
_LAST_ABOVE: Final = [1.0] * MANY, [2.0] * (MANY - 1) + [0.0]
_HALF_UP: Final = [1.0] * MANY, [0.0] * (MANY // 2) + [2.0] * (MANY // 2)
_ALL_UP: Final = [0.0] * MANY, [1.0] * MANY


def entries() -> list[Entry]:
    """The suite; `exact` is worked out from the laws, which takes a second."""
    return [*_noisy_maxima(), *_histograms(), *_sparse_vectors()]


def _noisy_maxima() -> list[Entry]:
    zeros, ones = [0.0] * FEW, [1.0] * FEW
    largest = LargestNoisyCount(2 / EPSILON, CLAIM, identity, FEW)
    with_exponential = LargestExponential(CLAIM, 2 / EPSILON)
    one, two = [1.0] + [0.0] * (FEW - 1), [2.0] + [0.0] * (FEW - 1)
    return [
        _entry("noisy_max_v1a", ReportNoisyMax(EPSILON), _AHEAD),
        _entry("noisy_max_v2a", ReportNoisyMax(EPSILON, noise="exponential"), _AHEAD, note="tight"),
        _entry(
            "noisy_max_v1b",
            largest,
            (zeros, ones),
            exact=_loss_at(0.0, largest, zeros, ones),
            note="releases the maximum itself: the lower tail loses epsilon/2 for each answer",
        ),
        _entry(
            "noisy_max_v2b",
            with_exponential,
            (one, two),
            exact=_loss_at(1.5, with_exponential, one, two),
            note="releases the maximum itself, which is never below the largest answer: 1.9% of the runs on x are",
        ),
    ]


def _histograms() -> list[Entry]:
    pair = [1.0] * FEW, [2.0] + [1.0] * (FEW - 1)
    right, inverted = NoisyAnswers(CLAIM, 1 / EPSILON), NoisyAnswers(CLAIM, EPSILON)
    return [
        _entry("histogram", right, pair, adjacency=_ONE_MOVES, note="tight; the suite looks at the first count only"),
        _entry("histogram_eps", inverted, pair, adjacency=_ONE_MOVES, note="noise of scale epsilon, not 1/epsilon"),
    ]


def _sparse_vectors() -> list[Entry]:
    def compare(threshold: float, query: float, **options: Any) -> NoisyThreshold:
        """With noise of these scales, in units of 1/epsilon."""
        return NoisyThreshold(CLAIM, threshold / EPSILON, query / EPSILON, threshold=1.0, **options)

    values = compare(2, 2, cutoff=1, release_value=True)
    noisier = [2.0] * (MANY // 2) + [0.0] * (MANY // 2), [1.0] * MANY
    return [
        _entry("SVT", SparseVector(EPSILON, 1, threshold=0.5), _LAST_ABOVE),
        _entry("iSVT1", compare(2, 0), noisier, note="no noise on the answers: their order shows"),
        _entry("iSVT2", compare(2, 2), _HALF_UP, note="no end, so each of many answers costs epsilon"),
        _entry("iSVT3", compare(4, 4 / 3, cutoff=1), _LAST_ABOVE, note="7/4 epsilon: too little noise on answers"),
        _entry("iSVT4", values, _ALL_UP, note="releases the noisy answer, which bounds the threshold's noise"),
    ]


def _entry(
    name: str,
    mechanism: Any,
    pair: tuple[Sequence[float], Sequence[float]],
    *,
    adjacency: Adjacency = _ALL_MOVE,
    exact: float | None = None,
    note: str = "",
) -> Entry:
    x, y = pair
    if exact is None:
        exact = mechanism.law(x).epsilon_from(mechanism.law(y), 0.0)
    return Entry(
        name=name,
        mechanism=mechanism,
        claim=CLAIM,
        is_broken=exact > EPSILON * (1 + 1e-9),
        adjacency=adjacency,
        domain=Answers(len(x)),
        x=x,
        y=y,
        exact=exact,
        note=note,
    )


def _loss_at(output: float, mechanism: Any, x: Any, y: Any) -> float:
    """The log-likelihood ratio of an output, one at which it is largest."""
    return float(mechanism.law(x).log_density(output) - mechanism.law(y).log_density(output))
