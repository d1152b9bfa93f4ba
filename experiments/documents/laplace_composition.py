"""Laplace noise by the inverse CDF, distances between datasets, and sequential and parallel composition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from ... import mechanisms as m
from ...audit.claims.claim import Claim, PureDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, Within
from ...audit.results.statement_result import Point, StatementResult
from ...mechanisms import faulty
from ...mechanisms.faulty.flaw import CountsOfClosedIntervals
from ...mechanisms.noise_samplers import grid_step
from ..cases.experiment import Case, Experiment, fails, false_statement, holds, stated, true_statement
from ..statements.simulated import blocks, result_of

# Statement: the distance of a distribution function from the correct one.


@dataclass(frozen=True, slots=True)
class AtEveryDistance:
    """Make the claim for neighbours at every distance."""

    claim: Claim

    def __call__(self, distance: float) -> Claim:
        return self.claim


def exact_distance(distribution: m.ScalarDistribution, other: m.ScalarDistribution, low: float, high: float) -> float:
    """Return the largest distance of two distribution functions, on both sides of 10,001 points and at infinity."""
    points = np.linspace(low, high, 10_001)
    points = np.concatenate([points, np.nextafter(points, -np.inf), [np.finfo(float).max]])
    return float(np.abs(distribution.cdf(points) - other.cdf(points)).max())


def cdf_distance(
    mechanism: Any, right: m.LaplaceMechanism, dataset: Any, *, runs: int, alpha: float, seed: int
) -> StatementResult:
    """Check that the outputs have the distribution function of the mechanism `right`.

    With probability 1 − alpha the empirical distribution function is everywhere within √(ln(2/alpha)/(2 runs)) of the
    true one (Dvoretzky-Kiefer-Wolfowitz with Massart's constant). This holds for every distribution, including jumps
    and NaN, which counts as above every number. Rounding to the grid, by at most half a step, changes the function by
    at most its largest slope times half a step.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality.
    """
    distribution = right.distribution(dataset)
    outputs = np.concatenate(
        [np.asarray(part, dtype=np.float64) for part in blocks(mechanism, dataset, runs, seed=seed, stream=0)]
    )
    outputs[np.isnan(outputs)] = np.inf
    outputs.sort()
    expected = distribution.cdf(outputs)
    ranks = np.arange(runs) / runs
    observed = float(max((ranks + 1 / runs - expected).max(), (expected - ranks).max()))
    radius = math.sqrt(math.log(2 / alpha) / (2 * runs))
    lower, rounding = max(0.0, observed - radius), grid_step(right.scale) / (4 * right.scale)
    points = [Point(estimate=observed, lower=lower, upper=observed + radius, low=0.0, high=rounding)]
    statement = "The outputs have the Laplace distribution function."
    method = "Dvoretzky-Kiefer-Wolfowitz with Massart's constant"
    quantity = "largest distance of the distribution functions"
    return result_of(statement, quantity, points, method, (runs, alpha, seed), 0.02)


# The experiments.

EPSILON: Final = 0.5
_RUNS: Final = 100_000
_true, _false = partial(holds, runs=_RUNS), partial(fails, runs=_RUNS)
_ROWS: Final = AddRemove()
_NAMES: Final = ["Ann", "Bob", "Cem", "Dai", "Eva"]
_AGES: Final = [3.0, 18.0, 20.0, 64.0, 65.0, 99.0]
_BY_AGE: Final = m.IntervalOf((18, 65))
_ONE_OF_EACH: Final = (5.0, 40.0, 80.0)
"""A row for each part of `_BY_AGE`."""
_UNEQUAL: Final = (0.25, 1.0, 0.5)


def experiments() -> list[Experiment]:
    """Return experiments L1 to L6."""
    about = partial(stated, "laplace-composition")
    return [
        about("L1",
            "mu - b sgn(xi) ln(1 - 2|xi|) has the Laplace distribution with location mu and scale b, where xi is "
            "uniform on (-1/2, 1/2).",
            "Devroye (1986), Section II.2 (inversion); two misprints of the formula", (*_distribution(), *_samplers())),
        about("L2",
            "The distance between two datasets is the size of their symmetric difference; neighbours are at distance "
            "1, and a claim for neighbours is weaker at distance 2.",
            "McSherry (2009), Definition 1", _distances()),
        about("L3",
            "An epsilon-DP mechanism has Pr[A(D) in S] <= exp(epsilon |D ⊕ D'|) Pr[A(D') in S] for every event S and "
            "all datasets.",
            "McSherry (2009), Definition 1; Dwork & Roth (2014), Theorem 2.2", _groups()),
        about("L4",
            "The composition of (epsilon_i, delta_i)-DP mechanisms with independent randomness is (sum of epsilon_i, "
            "sum of delta_i)-DP.",
            "Dwork & Roth (2014), Theorem 3.16; McSherry (2009), Theorem 3", (*_sums(), *_wrong_sums())),
        about("L5", "epsilon-DP mechanisms on disjoint parts of the data are together epsilon-DP under add/remove.",
            "McSherry (2009), Theorem 4", _parallel()),
        about("L6",
            "Mechanisms with different epsilon_i on disjoint parts are together (max epsilon_i)-DP, and a row of part "
            "i loses epsilon_i.",
            "McSherry (2009), Theorem 4 with unequal parts", _unequal_parts()),
    ]  # fmt: skip


def _distribution() -> list[Case]:
    right = m.LaplaceMechanism(EPSILON)
    reach = 40 * right.scale

    def case(state: Any, name: str, mechanism: Any, answer: float, note: str, runs: int = _RUNS) -> Case:
        exact = exact_distance(
            mechanism.distribution(answer), right.distribution(answer), answer - reach, answer + reach
        )
        measure = partial(cdf_distance, mechanism, right, answer)
        claimed = f"Laplace with location {answer:g} and scale {right.scale:g}"
        return state(f"L1-{name}", claimed, measure, exact=exact, runs=runs, note=note)  # type: ignore[no-any-return]

    inverse, closed = m.LaplaceByInverseCDF(EPSILON), faulty.ClosedEndLaplace(EPSILON)
    second, mixed = faulty.AnswerInTheBranchLaplace(EPSILON), faulty.MixedUniformsLaplace(EPSILON)
    less, many = m.LaplaceMechanism(1.1 * EPSILON), 1_000_000
    rare = "xi = -1/2 included: minus infinity once in 2^53 draws, which no test that draws will find"
    return [
        case(true_statement, "inverse", inverse, 0.0, "inverse CDF, correct formula"),
        case(true_statement, "inverse-at-3", inverse, 3.0, "inverse CDF, correct formula at location 3"),
        case(true_statement, "mechanism", right, 3.0, "reference Laplace mechanism"),
        case(true_statement, "closed-end", closed, 0.0, rare),
        case(false_statement, "second-branch", second, 0.0, "mu for xi in the second branch, half the draws equal"),
        case(false_statement, "second-branch-at-3", second, 3.0,
            "mu for xi in the second branch, logarithm of a negative number"),
        case(false_statement, "mixed", mixed, 0.0, "xi for xi', half the draws NaN"),
        case(false_statement, "tenth-less-noise", less, 0.0, "Laplace noise of epsilon 1.1 times the stated", many),
    ]  # fmt: skip


def _samplers() -> list[Case]:
    pair, adjacency, note = (0.0, 1.0), Within("linf"), "misprinted inverse CDF, draws that reveal the answer"
    inverse, second, mixed = (
        kind(EPSILON) for kind in (m.LaplaceByInverseCDF, faulty.AnswerInTheBranchLaplace, faulty.MixedUniformsLaplace)
    )
    return [
        _true("L1-inverse-audit", inverse, pair, adjacency, "inverse CDF, correct formula"),
        _false("L1-second-branch-audit", second, pair, adjacency, note, exact=math.inf),
        _false("L1-mixed-audit", mixed, pair, adjacency, note, exact=math.inf),
    ]


def _distances() -> list[Case]:
    count, histogram = m.LaplaceMechanism(EPSILON, query=len), m.HistogramMechanism(EPSILON, 3)
    siblings, two_fewer = (_NAMES[:3], _NAMES[:2]), (_NAMES[:3], _NAMES[:1])
    exchanged = [0, 0, 1], [0, 2, 1]  # a row out and a row in: two steps
    group: Any = {"claim": m.GroupPrivacy(EPSILON), "distance": 2}
    same: Any = {"claim": AtEveryDistance(PureDP(EPSILON)), "distance": 2}
    return [
        _true("L2-one-removed", count, siblings, _ROWS, "count, one row removed, claim of epsilon"),
        _true("L2-two-removed", count, two_fewer, _ROWS, "count, two rows removed, claim of 2 epsilon", **group),
        _true("L2-exchanged", histogram, exchanged, _ROWS, "histogram, one row exchanged, claim of 2 epsilon", **group),
        _false("L2-two-removed-epsilon", count, two_fewer, _ROWS, "count, two rows removed, claim of epsilon", **same),
        _false("L2-exchanged-epsilon", histogram, exchanged, _ROWS, "histogram, one row exchanged, claim of epsilon",
            **same),
    ]  # fmt: skip


def _groups() -> list[Case]:
    count, group, same = (
        m.GeometricMechanism(EPSILON, query=len),
        m.GroupPrivacy(EPSILON),
        AtEveryDistance(PureDP(EPSILON)),
    )
    kinds: Any = (
        (_true, "group-", (1, 2, 3, 4), "geometric count, tight at distance", group),
        (_false, "epsilon-at-", (2, 4), "geometric count, claim for neighbours at distance", same),
    )
    return [
        audit(f"L3-{name}{k}", count, (_NAMES, _NAMES[k:]), _ROWS, f"{note} {k}", claim=claim, distance=k)
        for audit, name, distances, note, claim in kinds
        for k in distances
    ]


def then_laplace(answer: int) -> m.LaplaceMechanism:
    """Return the second mechanism of an adaptive composition, noisier after a no."""
    return m.LaplaceMechanism(EPSILON if answer == 1 else EPSILON / 2)


def then_gaussian(answer: int) -> m.LaplaceMechanism | m.GaussianMechanism:
    """Return Gaussian noise after a yes, Laplace noise after a no."""
    return m.GaussianMechanism(EPSILON, 0.05) if answer == 1 else m.LaplaceMechanism(EPSILON)


def _sums() -> list[Case]:
    different = m.SequentialComposition(
        (m.LaplaceMechanism(EPSILON, query=len), m.GeometricMechanism(EPSILON / 2, query=len))
    )
    bits = m.GroupTightMechanism(EPSILON, 0.05, start=0.05), m.GroupTightMechanism(EPSILON / 2, 0.02, start=0.1)
    both = m.SequentialComposition(bits)
    # A product distribution has a closed form at delta 0 only; a chain distribution that starts with a finite
    # distribution has one at every delta.
    distribution_x, distribution_y = (
        m.ChainDistribution(bits[0].distribution(n), (bits[1].distribution(n),) * 2) for n in (1, 2)
    )
    deltas: Any = {"exact": m.exact_epsilon(distribution_x, distribution_y, sum(bit.delta for bit in bits))}
    adaptive = m.AdaptiveComposition(m.RandomisedResponse(1.0), then_laplace, m.LaplaceMechanism(EPSILON).claim)
    gaussian = m.AdaptiveComposition(m.RandomisedResponse(1.0), then_gaussian, m.GaussianMechanism(EPSILON, 0.05).claim)
    shared = faulty.SharedNoiseLaplace(EPSILON, (len, sum))
    hidden = "two answers with shared noise, hidden by equal changes"
    return [
        _true("L4-two-counts", different, (_NAMES[:3], _NAMES[:2]), _ROWS,
            "two counts with independent noise, sum of epsilons"),
        _true("L4-two-deltas", both, (1, 2), Within("l1"),
            "two mechanisms with a delta, sums of epsilons and of deltas", **deltas),
        _true("L4-adaptive", adaptive, (0, 1), Local(), "second question dependent on the first answer"),
        _true("L4-adaptive-delta", gaussian, (0, 1), Local(), "adaptive second question, one answer with a delta"),
        _true("L4-reuse-unseen", shared, ([1, 1, 1], [1, 1]), _ROWS, hidden, exact=EPSILON),
    ]  # fmt: skip


def _wrong_sums() -> list[Case]:
    shared = faulty.SharedNoiseLaplace(EPSILON, (len, sum))
    once, root = m.composed(m.GeometricMechanism(EPSILON), 4), m.composed(m.RandomisedResponse(EPSILON), 4)
    return [
        _false("L4-reuse", shared, ([1, 1, 1], [1, 1, 1, 0]), _ROWS,
            "two answers with shared noise, cancelled in the difference", exact=math.inf),
        _false("L4-charged-once", once, (0, 1), Within("l1"), "four geometric answers, budget for one",
            claim=PureDP(EPSILON)),
        _false("L4-charged-root", root, (0, 1), Local(), "four randomised responses, budget for sqrt(4)",
            claim=PureDP(2 * EPSILON)),
    ]  # fmt: skip


def _parallel() -> list[Case]:
    disjoint = m.ParallelComposition([m.LaplaceMechanism(EPSILON, query=len)] * 3, _BY_AGE)
    overlapping = faulty.LaplaceOfScale(1 / EPSILON, disjoint.claim, CountsOfClosedIntervals((0.0, 18.0, 65.0, 120.0)))
    young, middle, old = ([*_AGES, row] for row in _ONE_OF_EACH)
    added, shared, replaced = (_AGES, middle), (_AGES, [*_AGES, 65.0]), (young, old)
    twice = PureDP(2 * EPSILON)
    return [
        _true("L5-disjoint", disjoint, added, _ROWS, "disjoint parts, row in one part"),
        _true("L5-overlapping-unseen", overlapping, added, _ROWS, "overlapping parts, row in one part"),
        _true("L5-replace-twice", disjoint, replaced, Replace(),
            "disjoint parts, row moved to another part, claim of 2 epsilon", claim=twice),
        _false("L5-overlapping", overlapping, shared, _ROWS, "overlapping parts, row 65 in two parts"),
        _false("L5-replace", disjoint, replaced, Replace(),
            "disjoint parts, row moved to another part, claim of epsilon"),
    ]  # fmt: skip


def _unequal_parts() -> list[Case]:
    parts = m.ParallelComposition([m.LaplaceMechanism(epsilon, query=len) for epsilon in _UNEQUAL], _BY_AGE)
    pairs = [(_AGES, [*_AGES, row]) for row in _ONE_OF_EACH]
    smallest, note = PureDP(min(_UNEQUAL)), "unequal parts, claim of the smallest epsilon, row of part"
    return [
        *(
            _true(f"L6-part-{i}", parts, pairs[i], _ROWS, f"unequal parts, row of part {i}, claim of epsilon_{i}",
                claim=PureDP(epsilon))
            for i, epsilon in enumerate(_UNEQUAL)
        ),
        _true("L6-largest", parts, pairs[2], _ROWS, "unequal parts, row of part 2, claim of the largest epsilon"),
        *(_false(f"L6-smallest-{i}", parts, pairs[i], _ROWS, f"{note} {i}", claim=smallest) for i in (1, 2)),
    ]  # fmt: skip
