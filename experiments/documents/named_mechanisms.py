"""Mechanisms that the texts name in passing: sparse vector, histograms, whole-number noise, k values, k runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ...audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ...audit.claims.renyi import ZeroConcentratedDP
from ...audit.datasets.adjacency import AddRemove, Adjacency, Local, Replace, Within
from ...mechanisms import (
    BinomialMechanism,
    CategoryCounts,
    DiscreteGaussianMechanism,
    GeometricMechanism,
    HistogramMechanism,
    PermuteAndFlip,
    RandomisedResponse,
    RandomisedResponseFold,
    SequentialComposition,
    UpAndDown,
    exact_delta,
    exact_epsilon,
)
from ...mechanisms.faulty import (
    BinaryOddsForManyValues,
    HalfNoiseHistogram,
    NoisyMaxMissingFactorTwo,
    PerRowGeometric,
    SquaredRatioGeometric,
    TruthAmongTheLies,
    UndercountedComposition,
)
from ..cases.experiment import AuditCase, Experiment, false_version, true_version
from ..cases.pure_cases import pure_version
from . import named_sparse_vector
from .named_sparse_vector import EPSILON

DOCUMENT: Final = "named"
_ANSWERS: Final = Within("linf")
_ROWS: Final = AddRemove()
_RUNS: Final = 200_000


def experiments() -> list[Experiment]:
    """Rows M1 to M9."""
    return [
        *named_sparse_vector.experiments(),
        Experiment(
            id="M3",
            document=DOCUMENT,
            statement="A histogram costs epsilon once however many bins it has, twice where a row is replaced; reports "
            "on subsets that overlap cost epsilon each.",
            source="Dwork & Roth (2014), Example 3.2",
            cases=tuple(_histograms_and_subsets()),
        ),
        Experiment(
            id="M4",
            document=DOCUMENT,
            statement="A whole answer of sensitivity D with two-sided geometric noise of ratio e^(-epsilon/D) is "
            "epsilon-DP.",
            source="Ghosh, Roughgarden & Sundararajan (2009)",
            cases=tuple(_geometric()),
        ),
        Experiment(
            id="M5",
            document=DOCUMENT,
            statement="A whole answer plus the heads among fair coins is (epsilon, delta)-DP, with the delta of two "
            "answers at the full sensitivity.",
            source="Dwork, Kenthapadi, McSherry, Mironov & Naor (2006)",
            cases=tuple(_binomial()),
        ),
        Experiment(
            id="M6",
            document=DOCUMENT,
            statement="A whole answer with discrete Gaussian noise is D^2/(2 sigma^2)-zCDP, so k^2 times that at "
            "distance k, and (epsilon, delta)-DP with an exact delta.",
            source="Canonne, Kamath & Steinke (2020), Theorems 4 and 7",
            cases=tuple(_discrete_gaussian()),
        ),
        Experiment(
            id="M7",
            document=DOCUMENT,
            statement="Randomised response on k values is epsilon-DP where the truth is e^epsilon times as likely as "
            "each lie.",
            source="Kairouz, Oh & Viswanath (2014), Extremal mechanisms for local differential privacy",
            cases=tuple(_randomised_response()),
        ),
        Experiment(
            id="M8",
            document=DOCUMENT,
            statement="k runs of epsilon-DP mechanisms are k epsilon-DP, chosen ahead or by the outputs so far, and "
            "without a delta no less; at a delta they lose at most what k randomised responses lose.",
            source="Dwork & Roth (2014), Corollary 3.15; Kairouz, Oh & Viswanath (2015)",
            cases=tuple(_compositions()),
        ),
        Experiment(
            id="M9",
            document=DOCUMENT,
            statement="Permute-and-flip is epsilon-DP with coins of chance e^(epsilon (u - max u)/(2 D)), and for "
            "counts that rows only raise without the 2.",
            source="McKenna & Sheldon (2020), Algorithm 1",
            cases=tuple(_permute_and_flip()),
        ),
    ]


@dataclass(frozen=True, slots=True)
class SubsetCount:
    """The query that counts the rows in a subset of all values: it moves by 1 at most, also where a row is replaced."""

    subset: frozenset[int]

    def __call__(self, rows: Sequence[int]) -> int:
        return sum(row in self.subset for row in rows)


def _histograms_and_subsets() -> list[AuditCase]:
    rows, removed, replaced = [0, 2, 2], [0, 2], [0, 2, 1]
    one, two = (SubsetCount(frozenset(subset)) for subset in ((0, 2), (1, 2)))
    each = EPSILON / 2
    both = SequentialComposition((GeometricMechanism(each, query=one), GeometricMechanism(each, query=two)))
    return [
        pure_version(
            "M3-histogram",
            True,
            HistogramMechanism(EPSILON, 3, noise="geometric"),
            (rows, removed),
            _ROWS,
            "whole-number noise; one bin changes",
        ),
        pure_version(
            "M3-histogram-replace",
            True,
            HistogramMechanism(EPSILON, 3, sensitivity=2, noise="geometric"),
            (rows, replaced),
            Replace(),
            "twice the noise; two bins change",
        ),
        pure_version(
            "M3-histogram-half-noise",
            False,
            HalfNoiseHistogram(EPSILON, 3, "geometric"),
            (rows, replaced),
            Replace(),
            "noise for one bin where two change",
        ),
        pure_version(
            "M3-subset-replace",
            True,
            GeometricMechanism(EPSILON, query=one),
            (rows, replaced),
            Replace(),
            "the rows in a subset: one at most, in or out",
        ),
        pure_version(
            "M3-subsets", True, both, (rows, removed), _ROWS, "two subsets, and a row that is in both: the sum"
        ),
        pure_version(
            "M3-subsets-charged-once",
            False,
            both,
            (rows, removed),
            _ROWS,
            "the same, as if subsets were parts",
            claim=PureDP(each),
        ),
    ]


def _geometric() -> list[AuditCase]:
    count, wrong = (kind(EPSILON, query=len) for kind in (GeometricMechanism, SquaredRatioGeometric))
    rows, fewer = [1] * 3, [1] * 2
    return [
        pure_version("M4-count", True, count, (rows, fewer), _ROWS, "tight"),
        pure_version(
            "M4-sensitivity-3", True, GeometricMechanism(EPSILON, 3), (4, 7), Within("l1", 3.0), "answers 3 apart"
        ),
        pure_version("M4-squared-ratio", False, wrong, (rows, fewer), _ROWS, "ratio e^(-2 epsilon)"),
        pure_version(
            "M4-per-row", False, PerRowGeometric(EPSILON, 3), (4, 7), Within("l1", 3.0), "a person has three rows"
        ),
    ]


def _delta_version(
    name: str, is_true: bool, mechanism: Any, y: int, adjacency: Adjacency, note: str, claim: ApproxDP | None = None
) -> AuditCase:
    """An audit of a mechanism's delta, or the claim's, on the answers 0 and y."""
    version = true_version if is_true else false_version
    given = replace(claim or mechanism.claim, bound_on="delta")
    exact = exact_delta(mechanism.law(0), mechanism.law(y), given.epsilon)
    return version(name, mechanism, 0, y, given, adjacency, exact=exact, runs=_RUNS, note=note)


def _binomial() -> list[AuditCase]:
    one, two = (BinomialMechanism(64, EPSILON, sensitivity) for sensitivity in (1, 2))
    near, far = Within("l1"), Within("l1", 2.0)
    fewer = BinomialMechanism(16, EPSILON, 2)
    return [
        _delta_version("M5-sensitivity-1", True, BinomialMechanism(16, 0.5), 1, near, "tight"),
        _delta_version("M5-sensitivity-2", True, two, 2, far, "64 coins for answers 2 apart: tight"),
        _delta_version("M5-two-apart", False, one, 2, far, "the delta of answers 1 apart", one.claim),
        _delta_version("M5-a-quarter-of-the-coins", False, fewer, 2, far, "16 coins for 64: half the noise", two.claim),
    ]


def _discrete_gaussian() -> list[AuditCase]:
    mechanism, narrow = DiscreteGaussianMechanism(1.5, EPSILON), DiscreteGaussianMechanism(0.7**2, 0.5)
    rho = 1 / (2 * mechanism.sigma**2)
    near, far = Within("l1"), Within("l1", 2.0)
    return [
        _delta_version("M6-delta", True, mechanism, 1, near, "the exact delta"),
        _delta_version(
            "M6-variance",
            False,
            narrow,
            1,
            near,
            "sigma^2 for sigma, which is .7: too little noise",
            DiscreteGaussianMechanism(0.7, 0.5).claim,
        ),
        true_version(
            "M6-zcdp",
            mechanism,
            0,
            1,
            ZeroConcentratedDP(rho),
            near,
            exact=rho,
            runs=_RUNS,
            note="attained at every whole order",
        ),
        true_version(
            "M6-zcdp-two",
            mechanism,
            0,
            2,
            ZeroConcentratedDP(4 * rho),
            far,
            exact=4 * rho,
            runs=_RUNS,
            note="a group of two loses four times rho",
        ),
        false_version(
            "M6-zcdp-two-linear",
            mechanism,
            0,
            2,
            ZeroConcentratedDP(2 * rho),
            far,
            exact=4 * rho,
            runs=_RUNS,
            note="and not twice, as epsilon would",
        ),
    ]


def _randomised_response() -> list[AuditCase]:
    pair = (0, 5)
    return [
        pure_version("M7-six-values", True, RandomisedResponse(EPSILON, k=6), pair, Local(), "tight"),
        pure_version("M7-forty-values", True, RandomisedResponse(EPSILON, k=40), pair, Local(), "truths are rare"),
        pure_version(
            "M7-truth-among-the-lies", False, TruthAmongTheLies(EPSILON, k=6), pair, Local(), "a lie may be the truth"
        ),
        pure_version(
            "M7-binary-odds", False, BinaryOddsForManyValues(EPSILON, k=6), pair, Local(), "odds for two values"
        ),
    ]


def _compositions() -> list[AuditCase]:
    each, k, slack = 0.25, 8, 0.01
    fold, search = RandomisedResponseFold(each, k), UpAndDown(each, k)
    root = UndercountedComposition(RandomisedResponse(each), k, charged=math.sqrt(k))
    lost = exact_epsilon(fold.law(0), fold.law(1), slack)
    with_delta: dict[str, Any] = {"exact": lost, "runs": _RUNS}
    return [
        pure_version("M8-fold", True, fold, (0, 1), Local(), "eight randomised responses: tight"),
        pure_version("M8-adaptive", True, search, (-9, 9), Local(), "each question depends on the answers so far"),
        pure_version("M8-root", False, root, (0, 1), Local(), "eight runs, sqrt(8) paid for, and no delta"),
        true_version(
            "M8-fold-delta", fold, 0, 1, ApproxDP(lost, slack), Local(), note="what eight lose at .01", **with_delta
        ),
        false_version(
            "M8-fold-delta-root",
            fold,
            0,
            1,
            ApproxDP(math.sqrt(k) * each, slack),
            Local(),
            note="sqrt(8) epsilon is less than that",
            **with_delta,
        ),
    ]


def _permute_and_flip() -> list[AuditCase]:
    apart, closer = (0.0, -3.0), (-1.0, -2.0)
    flat, one_up = (0.0,) * 10, (1.0, *(-1.0,) * 9)
    monotone = PermuteAndFlip(EPSILON, monotone=True, utilities=CategoryCounts(("Ann", "Bob")))
    names = ["Bob"] * 3
    return [
        pure_version("M9-two", True, PermuteAndFlip(EPSILON), (apart, closer), _ANSWERS, "two candidates: tight"),
        pure_version("M9-ten", True, PermuteAndFlip(EPSILON), (flat, one_up), _ANSWERS, "ten: one up and nine down"),
        pure_version(
            "M9-monotone", True, monotone, (names, [*names, "Ann"]), _ROWS, "no 2 is needed for counts of rows"
        ),
        pure_version(
            "M9-monotone-replace",
            False,
            monotone,
            (names, [*names[1:], "Ann"]),
            Replace(),
            "but it is where one count rises and one falls",
        ),
        pure_version(
            "M9-missing-2",
            False,
            NoisyMaxMissingFactorTwo(EPSILON, noise="exponential"),
            (apart, closer),
            _ANSWERS,
            "the same law by exponential noise, without the 2",
        ),
    ]
