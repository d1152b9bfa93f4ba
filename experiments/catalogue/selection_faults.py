"""The catalogue of bugs in selections: exponential mechanism, noisy max and sparse vector."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.datasets.adjacency import AddRemove, Replace, Within
from ...audit.datasets.domains import Answers, Rows
from ...mechanisms import (
    ExponentialMechanism,
    NoisyThreshold,
    PermuteAndFlip,
    PostedPriceAuction,
    ReportNoisyMax,
    SparseVector,
)
from ...mechanisms.faulty import (
    ExponentialMissingFactorTwo,
    FlipWithoutPermuting,
    HalfSensitivityExponential,
    NoisyMaxMissingFactorTwo,
    NoisyMaxReleasingValue,
    OneNoiseForAll,
    PowersOfTen,
    PricesFromTheBids,
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
    TopCandidates,
    UnderflowingExponential,
    WinnerWithExactCount,
    WinnerWithNoisyCount,
)
from ...mechanisms.faulty.answers import ClippedColumnTotals, column_totals, standardised
from ..documents.named_sparse_vector import rise_and_fall
from .fault import Fault, FaultMaker, fault

_EXPONENTIAL: Final[FaultMaker] = partial(fault, "exponential mechanism")
_NOISY_MAX: Final[FaultMaker] = partial(fault, "noisy max")
_SPARSE: Final[FaultMaker] = partial(fault, "sparse vector")
_ANSWERS: Final = Within("linf")
_TIED, _APART = (0.0, -3.0), (-1.0, -2.0)
_FLAT, _ONE_UP = (0.0,) * 50, (1.0,) + (-1.0,) * 49


def selection_faults() -> list[Fault]:
    """All of them."""
    return [*_weights(), *_winners(), *_thresholds()]


def _weights() -> list[Fault]:
    right, two = ExponentialMechanism(1.0), Answers(2, -3.0, 0.0)
    empty = [(0.0, 0.0)]
    return [
        _EXPONENTIAL(
            "exponential-without-two",
            ExponentialMissingFactorTwo(1.0),
            (_FLAT, _ONE_UP),
            _ANSWERS,
            correct=right,
            domain=Answers(50),
            cause="exp(epsilon u) for exp(epsilon u/2) where utilities move both ways",
            practice="the 2 is left out, or the saving for monotone utilities is taken (McSherry & Talwar 2007)",
            runs=20_000,
        ),
        _EXPONENTIAL(
            "utility-sensitivity-halved",
            HalfSensitivityExponential(1.0),
            (_TIED, _APART),
            _ANSWERS,
            correct=right,
            domain=two,
            cause="half of the utilities' sensitivity",
            practice="the sensitivity is read off one candidate, or one kind of neighbour",
            runs=50_000,
        ),
        _EXPONENTIAL(
            "range-from-the-data",
            PricesFromTheBids(1.0),
            ([1.0, 3.0], [1.0, 2.0]),
            Replace(),
            correct=PostedPriceAuction(1.0, [1.0, 2.0, 3.0]),
            domain=Rows(values=(1.0, 2.0, 3.0)),
            cause="the candidates are the values that occur",
            practice="no other can be best; an outcome that only one row makes possible gives it away",
            runs=10_000,
        ),
        _EXPONENTIAL(
            "powers-of-ten",
            PowersOfTen(1.0),
            (_TIED, _APART),
            _ANSWERS,
            correct=right,
            domain=two,
            cause="powers of 10 for powers of e",
            practice="utilities are in decimal logarithms, as decibels are",
            runs=50_000,
        ),
        _EXPONENTIAL(
            "utilities-not-bounded",
            ExponentialMechanism(1.0, utilities=column_totals),
            (empty, [*empty, (8.0, 0.0)]),
            AddRemove(),
            correct=ExponentialMechanism(1.0, utilities=ClippedColumnTotals()),
            truth=None,
            domain=Rows(low=(0.0, 0.0), high=(8.0, 8.0)),
            cause="utilities are sums of values that are not clipped, with a sensitivity of 1",
            practice="the values are ratings from 0 to 1 until somebody sends an 8",
            runs=10_000,
        ),
        _EXPONENTIAL(
            "utilities-standardised",
            ExponentialMechanism(1.0, utilities=standardised),
            (_FLAT, (1.0,) + (0.0,) * 49),
            _ANSWERS,
            correct=right,
            truth=None,
            domain=Answers(50),
            cause="utilities are divided by their own standard deviation, with a sensitivity of 1",
            practice="scores are brought to a common scale before a softmax; the scale is the data's",
            runs=10_000,
        ),
        _EXPONENTIAL(
            "weights-underflow",
            UnderflowingExponential(1.0),
            ((-1490.0, -1490.0), (-1491.0, -1490.0)),
            _ANSWERS,
            correct=right,
            domain=Answers(2, -1492.0, -1488.0, integer=True),
            cause="weights e^-745 and below are rounded to zero",
            practice="utilities are log-likelihoods, and their largest is not taken off before the exponential",
            runs=10_000,
        ),
        _EXPONENTIAL(
            "flip-without-permuting",
            FlipWithoutPermuting(1.0),
            ((0.0, 0.0), (-1.0, 0.0)),
            _ANSWERS,
            correct=PermuteAndFlip(1.0),
            domain=Answers(2),
            cause="permute-and-flip tries the candidates in their order",
            practice="the shuffle looks like a matter of fairness (McKenna & Sheldon 2020, Algorithm 1)",
            runs=10_000,
        ),
    ]


def _winners() -> list[Fault]:
    right = ReportNoisyMax(1.0)
    counts = Answers(2, 0.0, 3.0)
    value, top = NoisyMaxReleasingValue(0.5, 5), TopCandidates(1.0)
    beside = WinnerWithNoisyCount(1.0)
    scores = ((0.0, 0.0, 0.0, 0.0), (1.0, 1.0, -1.0, -1.0))
    pair = ((1.0, 1.0), (0.0, 1.0))
    return [
        _NOISY_MAX(
            "noisy-max-without-two",
            NoisyMaxMissingFactorTwo(1.0),
            (_TIED, _APART),
            _ANSWERS,
            correct=right,
            domain=Answers(2, -3.0, 0.0),
            cause="noise of scale 1/epsilon for counts that move both ways",
            practice="the saving for counting queries is taken under replace (Dwork & Roth 2014, Claim 3.9)",
            runs=50_000,
        ),
        _NOISY_MAX(
            "noisy-max-value",
            value,
            ((0.0,) * 5, (1.0,) * 5),
            _ANSWERS,
            correct=NoisyMaxReleasingValue(0.1, 5),
            domain=Answers(5),
            exact=value.truth.epsilon,
            cause="the largest noisy count is released, with noise that is enough for its index",
            practice="the maximum comes for free with its index (Ding, Wang, Wang, Zhang & Kifer 2018, Section 4)",
            runs=10_000,
        ),
        _NOISY_MAX(
            "one-noise-for-all",
            OneNoiseForAll(1.0),
            ((1.0, 0.5), (0.5, 1.0)),
            _ANSWERS,
            correct=right,
            domain=counts,
            cause="one draw of noise is added to all counts",
            practice="rng.laplace(scale) without a size is a single number, which numpy adds to each",
            runs=10_000,
        ),
        _NOISY_MAX(
            "winner-with-exact-count",
            WinnerWithExactCount(1.0),
            pair,
            _ANSWERS,
            correct=WinnerWithNoisyCount(1.0, parts=2),
            domain=counts,
            exact=math.inf,
            cause="the winner's exact count is released beside it",
            practice="the winner is private, so its row of the table is looked up",
            runs=10_000,
        ),
        _NOISY_MAX(
            "budget-spent-twice",
            beside,
            ((0.0, 0.0), (1.0, -1.0)),
            _ANSWERS,
            correct=WinnerWithNoisyCount(1.0, parts=2),
            domain=counts,
            exact=1.0 + abs(float(beside.winners((1.0, -1.0)).log_probabilities[1]) - math.log(0.5)),
            cause="the selection and the count of the winner spend epsilon each",
            practice="epsilon is a parameter of the program, and each step uses it",
            runs=50_000,
        ),
        _NOISY_MAX(
            "top-two-for-one",
            top,
            scores,
            _ANSWERS,
            correct=TopCandidates(1.0, charged=2),
            domain=Answers(4),
            exact=_largest_loss(top.log_probabilities(scores[0]), top.log_probabilities(scores[1])),
            cause="the two best are released with noise for the best",
            practice="argsort gives k winners as easily as one (Durfee & Rogers 2019)",
            runs=50_000,
        ),
    ]


def _largest_loss(log_p: dict[Any, float], log_q: dict[Any, float]) -> float:
    return max(abs(log_p[outcome] - log_q[outcome]) for outcome in log_p)


def _thresholds() -> list[Fault]:
    right = SparseVector(1.0)
    twice = NoisyThreshold(PureDP(1.0), 1.0, 2.0, cutoff=1)
    monotone = SparseVector(1.0, monotone=True)
    released = SparseVectorReleasingValue(1.0)
    return [
        _SPARSE(
            "sparse-vector-value",
            released,
            ((0.0,) * 10, (1.0,) * 10),
            _ANSWERS,
            correct=right,
            domain=Answers(10),
            exact=10 / released.runs_as.query_scale,
            cause="the noisy answer that was found above is released",
            practice="it lies at hand, and is noisy already (Lyu, Su & Li 2017, Algorithm 3)",
            runs=500_000,
        ),
        _SPARSE(
            "sparse-vector-unscaled",
            SparseVectorUnscaledNoise(1.0, cutoff=3),
            rise_and_fall(3, 3),
            _ANSWERS,
            correct=SparseVector(1.0, 3),
            domain=Answers(6),
            cause="the noise on the answers does not grow with the number of answers above",
            practice="one answer is compared at a time (Lyu, Su & Li 2017, Algorithm 4)",
            runs=100_000,
        ),
        _SPARSE(
            "sparse-vector-no-query-noise",
            SparseVectorWithoutQueryNoise(1.0),
            ((0.0, 1.0), (1.0, 0.0)),
            _ANSWERS,
            correct=SparseVector(1.0, 2),
            domain=Answers(2),
            cause="noise on the threshold alone",
            practice="a noisy threshold hides where it lies (Lyu, Su & Li 2017, Algorithm 5)",
            runs=10_000,
        ),
        _SPARSE(
            "sparse-vector-no-cutoff",
            SparseVectorWithoutCutoff(1.0),
            rise_and_fall(3, 3),
            _ANSWERS,
            correct=SparseVector(1.0, 6),
            domain=Answers(6),
            cause="noise for one answer above, and no end",
            practice="a bit for each answer looks cheap (Lyu, Su & Li 2017, Algorithm 6)",
            runs=100_000,
        ),
        _SPARSE(
            "sparse-vector-epsilon-twice",
            twice,
            rise_and_fall(5, 1),
            _ANSWERS,
            correct=right,
            truth=PureDP(2.0),
            domain=Answers(6),
            cause="threshold and answers get noise for epsilon each instead of half of it",
            practice="the split of the budget is written twice, or not at all",
            runs=100_000,
        ),
        _SPARSE(
            "sparse-vector-monotone",
            monotone,
            rise_and_fall(5, 1),
            _ANSWERS,
            correct=right,
            truth=PureDP(1.5),
            domain=Answers(6),
            cause="half the noise on the answers, where some rise and some fall",
            practice="the saving for counts under add/remove is kept when a row is replaced",
            runs=200_000,
        ),
    ]
