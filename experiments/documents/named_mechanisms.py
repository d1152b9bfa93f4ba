"""Mechanisms named in passing: sparse vector, histograms, integer noise, responses on k values, compositions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ... import mechanisms as m
from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.claims.renyi import ZeroConcentratedDP
from ...audit.datasets.adjacency import AddRemove, Adjacency, Local, Replace, Within
from ...mechanisms import faulty
from ..cases.experiment import Case, Experiment, fails, holds, stated
from ..statements.simulated import IsBelow

EPSILON: Final = 1.0
_ROWS: Final = AddRemove()
_ANSWERS: Final = Within("linf")


def experiments() -> list[Experiment]:
    """Return experiments M1 to M9."""
    about = partial(stated, "named")
    return [
        about("M1",
            "The sparse vector technique is epsilon-DP for any number of answers below the threshold; half the noise "
            "on the answers is sufficient if all answers move in one direction.",
            "Dwork & Roth (2014), Section 3.6; Lyu, Su & Li (2017), Algorithms 1 and 2", _sparse_vectors()),
        about("M2",
            "Four variants of the sparse vector technique are not epsilon-DP: one is (1 + 6c)/4 epsilon-DP with "
            "cutoff c, the others have no finite epsilon.",
            "Lyu, Su & Li (2017), Algorithms 3 to 6", _wrong_sparse_vectors()),
        about("M3",
            "A histogram costs epsilon for any number of bins, and twice that under replace; reports on overlapping "
            "subsets cost epsilon each.",
            "Dwork & Roth (2014), Example 3.2", _histograms_and_subsets()),
        about("M4",
            "An integer answer of sensitivity D with two-sided geometric noise of ratio e^(-epsilon/D) is epsilon-DP.",
            "Ghosh, Roughgarden & Sundararajan (2009)", _geometric()),
        about("M5",
            "An integer answer plus the number of heads of fair coins is (epsilon, delta)-DP, with the delta of two "
            "answers that differ by the sensitivity.",
            "Dwork, Kenthapadi, McSherry, Mironov & Naor (2006)", _binomial()),
        about("M6",
            "An integer answer with discrete Gaussian noise is D^2/(2 sigma^2)-zCDP, with k^2 times that rho at "
            "distance k, and (epsilon, delta)-DP with an exact delta.",
            "Canonne, Kamath & Steinke (2020), Theorems 4 and 7", _discrete_gaussian()),
        about("M7",
            "Randomised response on k values is epsilon-DP if the truth is e^epsilon times as likely as each lie.",
            "Kairouz, Oh & Viswanath (2014), Extremal mechanisms for local differential privacy",
            _randomised_response()),
        about("M8",
            "k runs of epsilon-DP mechanisms, adaptive or not, are k epsilon-DP, and no smaller epsilon holds at delta "
            "0; at a delta they lose at most the epsilon of k randomised responses.",
            "Dwork & Roth (2014), Corollary 3.15; Kairouz, Oh & Viswanath 2017", _compositions()),
        about("M9",
            "Permute-and-flip is epsilon-DP with coins of probability e^(epsilon (u - max u)/(2 D)), and without the "
            "factor 2 for monotone utilities.",
            "McKenna & Sheldon (2020), Algorithm 1", _permute_and_flip()),
    ]  # fmt: skip


def property_counts(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    """Count the rows with each property, from one or more rows of bits."""
    counts: npt.NDArray[np.int64] = np.sum(rows, axis=0, dtype=np.int64)
    return counts


def rise_and_fall(n_below: int, n_above: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the worst pair for "below …, above …": answers of 0, of which the first rise by 1 and the last fall."""
    return (0.0,) * (n_below + n_above), (1.0,) * n_below + (-1.0,) * n_above


@dataclass(frozen=True, slots=True)
class LastOutput:
    """Return the last coordinate of a mechanism's output: post-processing, which keeps every claim."""

    mechanism: Any

    def __str__(self) -> str:
        return f"last of {self.mechanism}"

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        last: npt.NDArray[Any] = self.mechanism.sample(dataset, size, rng)[:, -1]
        return last


def _sparse_vectors() -> list[Case]:
    nobody, all_but_the_last = (0,) * 6, (1,) * 5 + (0,)
    of_rows = m.SparseVector(EPSILON, threshold=1.0, monotone=True, queries=property_counts)
    added = [nobody], [nobody, all_but_the_last]
    refreshed, monotone = m.SparseVector(EPSILON, 2, refresh=True), m.SparseVector(EPSILON, monotone=True)
    both_ways = "monotone sparse vector, answers moving both ways: nearly 1.5 epsilon"
    return [
        holds("M1-one-above", m.SparseVector(EPSILON), rise_and_fall(5, 1), _ANSWERS,
            "sparse vector, cutoff 1, six answers, nearly tight"),
        holds("M1-two-above", m.SparseVector(EPSILON, 2), rise_and_fall(6, 2), _ANSWERS, "sparse vector, cutoff 2"),
        holds("M1-refreshed", refreshed, rise_and_fall(6, 2), _ANSWERS,
            "sparse vector, new noisy threshold after each answer above"),
        holds("M1-monotone", of_rows, added, AddRemove(),
            "monotone sparse vector, counts of six properties, added row with five"),
        fails("M1-monotone-both-ways", monotone, rise_and_fall(5, 1), _ANSWERS, both_ways),
    ]  # fmt: skip


def _wrong_sparse_vectors() -> list[Case]:
    unscaled, endless = faulty.SparseVectorUnscaledNoise(EPSILON), faulty.SparseVectorWithoutCutoff(EPSILON)
    silent, more = faulty.SparseVectorWithoutQueryNoise(EPSILON), faulty.SparseVectorUnscaledNoise(EPSILON, cutoff=3)
    two, four, six = rise_and_fall(1, 1), rise_and_fall(3, 1), rise_and_fall(3, 3)
    crossed = (0.0, 1.0), (1.0, 0.0)
    truth, true_claim = "Algorithm 4, true claim of (1 + 6c)/4 epsilon", unscaled.truth
    return [
        _value_released(n_below=3),
        fails("M2-unscaled-noise", unscaled, four, _ANSWERS, "Algorithm 4, cutoff 1"),
        fails("M2-unscaled-noise-three", more, six, _ANSWERS, "Algorithm 4, cutoff 3"),
        holds("M2-unscaled-noise-truth", unscaled, four, _ANSWERS, truth, claim=true_claim),
        fails("M2-no-query-noise", silent, crossed, _ANSWERS, "Algorithm 5, one answer below, the next above"),
        holds("M2-no-query-noise-one", silent, rise_and_fall(1, 0), _ANSWERS, "Algorithm 5, bug hidden by one answer"),
        fails("M2-no-cutoff", endless, six, _ANSWERS, "Algorithm 6, three answers up and three down"),
        holds("M2-no-cutoff-two", endless, two, _ANSWERS, "Algorithm 6, bug hidden by two answers"),
    ]


def _value_released(n_below: int) -> Case:
    """Audit one bit of Algorithm 3, an event that a pilot may miss, with the largest loss of all outputs.

    Every answer is higher by 1 on y, so that the noise of each must be lower by 1 there for the same threshold noise.
    """
    released = faulty.SparseVectorReleasingValue(EPSILON)
    bit, note = IsBelow(LastOutput(released), 0.0), "Algorithm 3, three answers below, then a value of at most 0"
    pair, exact = ((0.0,) * (n_below + 1), (1.0,) * (n_below + 1)), (n_below + 1) / released.runs_as.query_scale
    return fails("M2-value-released", bit, pair, _ANSWERS, note, claim=released.claim, exact=exact, runs=500_000)


@dataclass(frozen=True, slots=True)
class SubsetCount:
    """Count the rows in a subset of all values, a query of sensitivity 1 also under replace."""

    subset: frozenset[int]

    def __call__(self, rows: Sequence[int]) -> int:
        return sum(row in self.subset for row in rows)


def _histograms_and_subsets() -> list[Case]:
    rows = [0, 2, 2]
    fewer, replaced = (rows, [0, 2]), (rows, [0, 2, 1])
    histogram = m.HistogramMechanism(EPSILON, 3, noise="geometric")
    doubled = m.HistogramMechanism(EPSILON, 3, sensitivity=2, noise="geometric")
    one, two = (SubsetCount(frozenset(subset)) for subset in ((0, 2), (1, 2)))
    each, subset = EPSILON / 2, m.GeometricMechanism(EPSILON, query=one)
    both = m.SequentialComposition((m.GeometricMechanism(each, query=one), m.GeometricMechanism(each, query=two)))
    overlap = "counts of overlapping subsets, epsilon paid once"
    return [
        holds("M3-histogram", histogram, fewer, _ROWS, "geometric histogram under add/remove, one changed bin"),
        holds("M3-histogram-replace", doubled, replaced, Replace(),
            "geometric histogram under replace, twice the noise"),
        fails("M3-histogram-half-noise", histogram, replaced, Replace(),
            "geometric histogram under replace, noise for one changed bin"),
        holds("M3-subset-replace", subset, replaced, Replace(), "count of a subset under replace, sensitivity 1"),
        holds("M3-subsets", both, fewer, _ROWS, "counts of overlapping subsets, sum of epsilons"),
        fails("M3-subsets-charged-once", both, fewer, _ROWS, overlap, claim=PureDP(each)),
    ]  # fmt: skip


def _geometric() -> list[Case]:
    count, wrong = (m.GeometricMechanism(epsilon, query=len) for epsilon in (EPSILON, 2 * EPSILON))
    rows, apart, three = ([1] * 3, [1] * 2), (4, 7), Within("l1", 3.0)
    return [
        holds("M4-count", count, rows, _ROWS, "geometric count, tight claim"),
        holds("M4-sensitivity-3", m.GeometricMechanism(EPSILON, 3), apart, three,
            "geometric noise of sensitivity 3, answers 3 apart"),
        fails("M4-squared-ratio", wrong, rows, _ROWS, "geometric count with squared ratio e^(-2 epsilon)",
            claim=count.claim),
        fails("M4-per-row", m.GeometricMechanism(EPSILON), apart, three,
            "geometric noise for one row, person with three rows"),
    ]  # fmt: skip


def _delta_version(
    audit: Any, name: str, mechanism: Any, y: int, adjacency: Adjacency, note: str, claim: ApproxDP | None = None
) -> Case:
    """Audit the delta of the claim, by default the mechanism's own, on the answers 0 and y."""
    given = replace(claim or mechanism.claim, bound_on="delta")
    return audit(name, mechanism, (0, y), adjacency, note, claim=given)  # type: ignore[no-any-return]


def _binomial() -> list[Case]:
    one, two = (m.BinomialMechanism(64, EPSILON, sensitivity) for sensitivity in (1, 2))
    near, far, fewer = Within("l1"), Within("l1", 2.0), m.BinomialMechanism(16, EPSILON, 2)
    return [
        _delta_version(holds, "M5-sensitivity-1", m.BinomialMechanism(16, 0.5), 1, near,
            "16 coins, tight delta at sensitivity 1"),
        _delta_version(holds, "M5-sensitivity-2", two, 2, far, "64 coins, tight delta at sensitivity 2"),
        _delta_version(fails, "M5-two-apart", one, 2, far, "64 coins, delta for answers 1 apart at distance 2",
            one.claim),
        _delta_version(fails, "M5-a-quarter-of-the-coins", fewer, 2, far, "16 coins instead of 64, half the noise",
            two.claim),
    ]  # fmt: skip


def _discrete_gaussian() -> list[Case]:
    mechanism, narrow = m.DiscreteGaussianMechanism(1.5, EPSILON), m.DiscreteGaussianMechanism(0.7**2, 0.5)
    rho = 1 / (2 * mechanism.sigma**2)
    near, far, calibrated = Within("l1"), Within("l1", 2.0), m.DiscreteGaussianMechanism(0.7, 0.5).claim
    variance = "discrete Gaussian noise, variance for the standard deviation 0.7"
    one, two, four = (ZeroConcentratedDP(factor * rho) for factor in (1, 2, 4))
    pair, linear = (0, 2), "discrete Gaussian noise, group of two, zCDP claim at half the true rho"
    return [
        _delta_version(holds, "M6-delta", mechanism, 1, near, "discrete Gaussian noise, exact delta"),
        _delta_version(fails, "M6-variance", narrow, 1, near, variance, calibrated),
        holds("M6-zcdp", mechanism, (0, 1), near, "discrete Gaussian noise, zCDP claim at the true rho", claim=one,
            exact=rho),
        holds("M6-zcdp-two", mechanism, pair, far, "discrete Gaussian noise, group of two at four times rho",
            claim=four, exact=4 * rho),
        fails("M6-zcdp-two-linear", mechanism, pair, far, linear, claim=two, exact=4 * rho),
    ]  # fmt: skip


def _randomised_response() -> list[Case]:
    pair, local, claim = (0, 5), Local(), PureDP(EPSILON)
    # One time in six, a random value is the true one; the odds of two values are e^epsilon against all five lies.
    lie = m.RandomisedResponse(math.log1p(6 / 5 * math.exp(EPSILON)), k=6)
    odds = m.RandomisedResponse(EPSILON + math.log(5), k=6)
    return [
        holds("M7-six-values", m.RandomisedResponse(EPSILON, k=6), pair, local,
            "randomised response on six values, tight claim"),
        holds("M7-forty-values", m.RandomisedResponse(EPSILON, k=40), pair, local,
            "randomised response on forty values, rare truths"),
        fails("M7-truth-among-the-lies", lie, pair, local, "randomised response with lies that may be the truth",
            claim=claim),
        fails("M7-binary-odds", odds, pair, local, "randomised response on six values with the odds for two",
            claim=claim),
    ]  # fmt: skip


def _compositions() -> list[Case]:
    each, k, slack = 0.25, 8, 0.01
    fold, search = m.RandomisedResponseFold(each, k), m.UpAndDown(each, k)
    root = m.composed(m.RandomisedResponse(each), k)
    pair, local = (0, 1), Local()
    exact = ApproxDP(m.exact_epsilon(fold.distribution(0), fold.distribution(1), slack), slack)
    short = ApproxDP(math.sqrt(k) * each, slack)
    return [
        holds("M8-fold", fold, pair, local, "eight randomised responses, tight claim"),
        holds("M8-adaptive", search, (-9, 9), local, "eight adaptive questions, tight claim"),
        fails("M8-root", root, pair, local, "eight randomised responses, budget for sqrt(8)",
            claim=PureDP(math.sqrt(k) * each)),
        holds("M8-fold-delta", fold, pair, local, "eight randomised responses, exact epsilon at delta .01",
            claim=exact),
        fails("M8-fold-delta-root", fold, pair, local, "eight randomised responses, sqrt(8) epsilon at delta .01",
            claim=short),
    ]  # fmt: skip


def _permute_and_flip() -> list[Case]:
    flip, answers = m.PermuteAndFlip(EPSILON), Within("linf")
    missing = m.ReportNoisyMax(EPSILON, monotone=True, noise="exponential")
    two, ten = ((0.0, -3.0), (-1.0, -2.0)), ((0.0,) * 10, (1.0, *(-1.0,) * 9))
    monotone = m.PermuteAndFlip(EPSILON, monotone=True, utilities=m.CategoryCounts(("Ann", "Bob")))
    more, replaced = (["Bob"] * 3, [*["Bob"] * 3, "Ann"]), (["Bob"] * 3, [*["Bob"] * 2, "Ann"])
    return [
        holds("M9-two", flip, two, answers, "permute-and-flip, two candidates, tight claim"),
        holds("M9-ten", flip, ten, answers, "permute-and-flip, ten candidates, one up and nine down"),
        holds("M9-monotone", monotone, more, _ROWS, "monotone permute-and-flip, counts under add/remove"),
        fails("M9-monotone-replace", monotone, replaced, Replace(), "monotone permute-and-flip, counts under replace"),
        fails("M9-missing-2", missing, two, answers, "noisy max with exponential noise, missing factor 2"),
    ]
