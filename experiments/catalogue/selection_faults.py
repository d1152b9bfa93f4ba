"""The catalogue of bugs in selections: exponential mechanism, noisy max and sparse vector."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import AddRemove, Replace, Within
from ...audit.datasets.domains import Answers, Domain, Rows
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
from .fault import Fault, FaultMaker, NeighbouringPair, fault

_EXPONENTIAL: Final[FaultMaker] = partial(fault, "exponential mechanism")
_NOISY_MAX: Final[FaultMaker] = partial(fault, "noisy max")
_SPARSE: Final[FaultMaker] = partial(fault, "sparse vector")


def _answers(x: tuple[float, ...], y: tuple[float, ...], domain: Domain | None = None) -> NeighbouringPair:
    """Answers that each move by 1 at most."""
    return NeighbouringPair(x, y, Within("linf"), Answers(len(x)) if domain is None else domain)


_FLAT: Final = (0.0,) * 50
_APART: Final = _answers((0.0, -3.0), (-1.0, -2.0), Answers(2, -3.0, 0.0))


def selection_faults() -> list[Fault]:
    """All bugs of this module."""
    return [*_weights(), *_winners(), *_thresholds()]


def _weights() -> list[Fault]:
    right, empty = ExponentialMechanism(1.0), [(0.0, 0.0)]
    one_up = _answers(_FLAT, (1.0,) + (-1.0,) * 49)
    bids = NeighbouringPair([1.0, 3.0], [1.0, 2.0], Replace(), Rows(values=(1.0, 2.0, 3.0)))
    far_below = _answers((-1490.0, -1490.0), (-1491.0, -1490.0), Answers(2, -1492.0, -1488.0, integer=True))
    first_falls = _answers((0.0, 0.0), (-1.0, 0.0))
    auction = PostedPriceAuction(1.0, [1.0, 2.0, 3.0])
    return [
        _EXPONENTIAL("exponential-without-two", ExponentialMissingFactorTwo(1.0), one_up, correct=right, runs=20_000),
        _EXPONENTIAL("utility-sensitivity-halved", HalfSensitivityExponential(1.0), _APART, correct=right, runs=50_000),
        _EXPONENTIAL("range-from-the-data", PricesFromTheBids(1.0), bids, correct=auction),
        _EXPONENTIAL("powers-of-ten", PowersOfTen(1.0), _APART, correct=right, runs=50_000),
        _EXPONENTIAL(
            "utilities-not-bounded",
            ExponentialMechanism(1.0, utilities=column_totals),
            NeighbouringPair(empty, [*empty, (8.0, 0.0)], AddRemove(), Rows(low=(0.0, 0.0), high=(8.0, 8.0))),
            correct=ExponentialMechanism(1.0, utilities=ClippedColumnTotals()),
            truth=None,
            cause="Utilities that are sums of unclipped values, with sensitivity 1",
            practice="The values are ratings from 0 to 1 until somebody sends an 8.",
        ),
        _EXPONENTIAL(
            "utilities-standardised",
            ExponentialMechanism(1.0, utilities=standardised),
            _answers(_FLAT, (1.0,) + (0.0,) * 49),
            correct=right,
            truth=None,
            cause="Utilities divided by their standard deviation, with sensitivity 1",
            practice="Scores are brought to a common scale before a softmax, but the scale depends on the data.",
        ),
        _EXPONENTIAL("weights-underflow", UnderflowingExponential(1.0), far_below, correct=right),
        _EXPONENTIAL("flip-without-permuting", FlipWithoutPermuting(1.0), first_falls, correct=PermuteAndFlip(1.0)),
    ]


def _winners() -> list[Fault]:
    right, both = ReportNoisyMax(1.0), WinnerWithNoisyCount(1.0, parts=2)
    counts = Answers(2, 0.0, 3.0)
    swapped = _answers((1.0, 0.5), (0.5, 1.0), counts)
    tied, apart = _answers((1.0, 1.0), (0.0, 1.0), counts), _answers((0.0, 0.0), (1.0, -1.0), counts)
    top_two = _answers((0.0,) * 4, (1.0, 1.0, -1.0, -1.0))
    value, beside, top = NoisyMaxReleasingValue(0.5, 5), WinnerWithNoisyCount(1.0), TopCandidates(1.0)
    return [
        _NOISY_MAX("noisy-max-without-two", NoisyMaxMissingFactorTwo(1.0), _APART, correct=right, runs=50_000),
        _NOISY_MAX(
            "noisy-max-value",
            value,
            _answers((0.0,) * 5, (1.0,) * 5),
            correct=NoisyMaxReleasingValue(0.1, 5),
            exact=value.truth.epsilon,
        ),
        _NOISY_MAX("one-noise-for-all", OneNoiseForAll(1.0), swapped, correct=right),
        _NOISY_MAX("winner-with-exact-count", WinnerWithExactCount(1.0), tied, correct=both, exact=math.inf),
        _NOISY_MAX(
            "budget-spent-twice",
            beside,
            apart,
            correct=both,
            exact=1.0 + abs(float(beside.winners((1.0, -1.0)).log_probabilities[1]) - math.log(0.5)),
            runs=50_000,
        ),
        _NOISY_MAX(
            "top-two-for-one",
            top,
            top_two,
            correct=TopCandidates(1.0, charged=2),
            exact=_largest_loss(top.log_probabilities(top_two.x), top.log_probabilities(top_two.y)),
            runs=50_000,
            cause="The two best candidates in order, with Gumbel noise for the best: 2ε instead of ε",
        ),
    ]


def _largest_loss(log_p: dict[Any, float], log_q: dict[Any, float]) -> float:
    return max(abs(log_p[outcome] - log_q[outcome]) for outcome in log_p)


def _thresholds() -> list[Fault]:
    right, released = SparseVector(1.0), SparseVectorReleasingValue(1.0)
    half_rise, most_rise = (_answers(*rise_and_fall(n, 6 - n)) for n in (3, 5))
    unscaled, endless = SparseVectorUnscaledNoise(1.0, cutoff=3), SparseVectorWithoutCutoff(1.0)
    swapped = _answers((0.0, 1.0), (1.0, 0.0))
    return [
        _SPARSE(
            "sparse-vector-value",
            released,
            _answers((0.0,) * 10, (1.0,) * 10),
            correct=right,
            exact=10 / released.runs_as.query_scale,
            runs=500_000,
        ),
        _SPARSE("sparse-vector-unscaled", unscaled, half_rise, correct=SparseVector(1.0, 3), runs=100_000),
        _SPARSE(
            "sparse-vector-no-query-noise", SparseVectorWithoutQueryNoise(1.0), swapped, correct=SparseVector(1.0, 2)
        ),
        _SPARSE("sparse-vector-no-cutoff", endless, half_rise, correct=SparseVector(1.0, 6), runs=100_000),
        _SPARSE(
            "sparse-vector-epsilon-twice",
            NoisyThreshold(PureDP(1.0), 1.0, 2.0, cutoff=1),
            most_rise,
            correct=right,
            truth=PureDP(2.0),
            cause="Threshold and answers with noise for ε each instead of ε/2",
            practice="The split of the budget is written twice, or not written.",
            runs=100_000,
        ),
        _SPARSE(
            "sparse-vector-monotone",
            SparseVector(1.0, monotone=True),
            most_rise,
            correct=right,
            truth=PureDP(1.5),
            cause="Half the noise on the answers, although some rise and some fall",
            practice="The saving for counts under add/remove is kept when a row is replaced.",
            runs=200_000,
        ),
    ]
