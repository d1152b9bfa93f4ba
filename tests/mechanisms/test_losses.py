"""Exact losses: right mechanisms keep their claim and attain it, and faulty ones break theirs as they state."""

import functools
import itertools
import math

import networkx as nx
import numpy as np
import pytest

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import ApproxDP, GaussianDP, PureDP
from dpaudit.domains import NodeNeighbours
from dpaudit.experiments.catalogue.entries import entries
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.aggregates import ApproximateBounds, noisy_moments, noisy_tree_counts
from dpaudit.mechanisms.faulty.flaw import CountsOfClosedIntervals, squared_rows
from dpaudit.mechanisms.faulty.selection import LargestNoisyCount
from dpaudit.mechanisms.local.frequency_oracles import BitReports, unary_coins
from dpaudit.mechanisms.synthetic import exact_loss

INF, APPROX = math.inf, pytest.approx
NODES = NodeNeighbours()
ONE_UP = [1.0] + [-1.0] * 49
AGES = [3.0, 18.0, 20.0, 64.0, 65.0, 99.0]
ROWS = [0, 1, 1, 2]
COUNTS = [m.GeometricMechanism(epsilon, query=len) for epsilon in (0.1, 0.5, 0.2)]
RESPONSES = m.RandomisedResponse(1.0), lambda output: m.RandomisedResponse(0.3 if output == 0 else 0.7, k=3)
BY_AGE = m.ParallelComposition(COUNTS, m.IntervalOf((18, 65)))
EXPONENTIAL, MISSING_TWO = (m.ExponentialMechanism(1.0, monotone=is_wrong) for is_wrong in (False, True))
FAR = [40.0, 0.0], [39.0, 1.0]
HUB, LEAVES = nx.star_graph(4), nx.empty_graph(range(1, 5))
PUMPKIN, WITHOUT = m.PUMPKIN_BIDS, m.PUMPKIN_BIDS[:3]
OVERLAPPING = faulty.LaplaceOfScale(2.0, PureDP(0.5), CountsOfClosedIntervals((0, 18, 65, 120)))
NUMBERS = [0.5, -3.0, 7.0, 2.0]
NOISES_OF_COUNTS = ("laplace", "geometric")
NOISES = ("laplace", "exponential", "gumbel")
MONOTONE = m.SparseVector(1.0, monotone=True)
BOUNDS = [(1.1, 1), (3.0, 1), (1.1, 4)]
AGGREGATES = [
    functools.partial(noisy_moments, 1, -1.0, 3.0),
    functools.partial(noisy_moments, 2, -1.0, 3.0),
    functools.partial(noisy_tree_counts, -1.0, 3.0, height=3, branching=2),
]


def at_the_threshold(epsilon, contributions):
    """A dataset whose count is the last threshold, and one with a user more."""
    rows = [9.0] * math.ceil(ApproximateBounds(epsilon, contributions).thresholds[-1])
    return rows, [*rows, *[9.0] * contributions]


def folded(epsilon, n):
    return m.RandomisedResponseFold(epsilon, n)


# mechanism, x, y, exact epsilon
RIGHT = [
    *(
        (mechanism(0.7, sensitivity=3), x, y, 0.7 * abs(x - y) / 3)
        for mechanism, pairs in [
            (m.LaplaceMechanism, [(0, 3.0), (10.5, 7.5), (1, 1.5), (0, 0)]),
            (m.GeometricMechanism, [(0, 3), (10, 7), (1, 2), (5, 5)]),
        ]
        for x, y in pairs
    ),
    *(
        (m.HistogramMechanism(0.8, k=4, sensitivity=s, noise=noise), ROWS, other, loss / s)
        for noise in NOISES_OF_COUNTS
        for s in (1, 2)
        for other, loss in [([*ROWS, 3], 0.8), (ROWS[:-1], 0.8), (ROWS[::-1], 0.0)]
    ),
    *((m.HistogramMechanism(0.8, k=4, sensitivity=2, noise=n), ROWS, [0, 1, 1, 3], 0.8) for n in NOISES_OF_COUNTS),
    (m.SequentialComposition([m.LaplaceMechanism(0.5, query=len), COUNTS[0]]), "ab", "abc", 0.6),
    (m.AdaptiveComposition(*RESPONSES, then_claim=PureDP(0.7)), 0, 1, 1.7),
    *((BY_AGE, AGES, [*AGES, age], loss) for age, loss in [(5.0, 0.1), (40.0, 0.5), (80.0, 0.2)]),
    (BY_AGE, [*AGES, 20.0], [*AGES, 30.0], 0.0),
    *((folded(0.2, n), 0, 1, n * 0.2) for n in (1, 2, 7, 1000)),
    (m.UpAndDown(0.5, 6), -7, 7, 3.0),
    (m.UpAndDown(0.5, 6), 6, 7, 0.0),  # above all thresholds
    *((m.RandomisedResponse(1.3, k), x, y, 1.3) for k in (2, 5) for x, y in itertools.permutations(range(k), 2)),
    *(
        (oracle, x, y, oracle.claim.epsilon if x != y else 0.0)
        for oracle in [
            m.UnaryEncoding(1.3, 5), m.UnaryEncoding(1.3, 5, is_optimised=True), m.LocalHashing(1.3, 5),
            m.LocalHashing(1.3, 5, g=2), m.SubsetSelection(1.3, 5), m.SubsetSelection(1.3, 5, size=4),
            m.HadamardResponse(1.3, 5), m.MemoisedBits(2.0, 1.3, 5), m.MemoisedBits(2.0, 1.3, 5, is_optimised=True),
            m.MemoisedResponse(2.0, 1.3, 5),
        ]
        for x in range(5)
        for y in range(5)
    ),
    *((m.UnaryEncoding(e, 3, is_best), 0, 1, APPROX(e, rel=1e-8)) for e in (1e-6, 29.9) for is_best in (False, True)),
    *((m.SubsetSelection(e, 3), 0, 1, APPROX(e, rel=1e-8)) for e in (1e-6, 29.9)),
    (EXPONENTIAL, [0.0] * 50, ONE_UP, APPROX(0.966, abs=5e-4)),
    (EXPONENTIAL, [0.0] * 100_000, [1.0] + [-1.0] * 99_999, APPROX(0.99995, abs=5e-5)),
    (m.PermuteAndFlip(1.0), *FAR, APPROX(0.98, abs=0.03)),
    *((m.ReportNoisyMax(1.0, noise=n), *FAR, APPROX(0.98, abs=0.03)) for n in NOISES),
    *((m.SparseVector(1.0, c), [0.0] * (12 + c), [1.0] * 12 + [-1.0] * c, APPROX(0.985, abs=0.015)) for c in (1, 2)),
    (MONOTONE, [0.0] * 13, [1.0] * 12 + [0.0], APPROX(0.995, abs=0.005)),
    (m.EdgeCountMechanism(0.5, NODES, max_degree=4), HUB, LEAVES, 0.5),
    (m.GroupTightMechanism(0.5, start=0.01), 0, 1, 0.5),
    *((ApproximateBounds(epsilon, c), *at_the_threshold(epsilon, c), epsilon) for epsilon, c in BOUNDS),
    *(
        (make(epsilon=0.7, partitions=p, per_partition=q), NUMBERS, [*NUMBERS, *[3.0] * (p * q)], 0.7)
        for make in AGGREGATES
        for p, q in [(1, 1), (3, 1), (1, 4), (3, 4)]
    ),
    (m.EdgeCountMechanism(0.25), nx.star_graph(1), nx.empty_graph(2), 0.25),
    *((m.UnaryEncoding(1.0, 4), x, y, 1.0) for x, y in itertools.combinations(range(4), 2)),
    (BitReports(unary_coins(0.8, False)[0], unary_coins(0.8, True)[1], 4), 0, 1, 1.2),
    (m.ExponentialMechanism(math.log(10)), [0.0, -40.0], [-1.0, -39.0], math.log(10)),
    (m.MemoisedBits(2.0, 0.7, 4, 30), 0, 1, APPROX(2.0, rel=1e-6)),
]  # fmt: skip


# mechanism, or one that is right for other neighbours, x, y, exact epsilon, whether it is the true guarantee
FAULTY = [
    *((faulty.BiasedCoinResponse(b), 0, 1, math.log(odds), True) for b, odds in [(0.25, 5.0), (0.75, 5.0)]),
    (faulty.BiasedCoinResponse(0.5), 0, 1, math.log(3), True),  # here the coins keep the claim
    *(
        (m.LaplaceMechanism(0.5, query=squared_rows), [0] * n, [0] * (n + 1), APPROX(0.5 + n, abs=1e-9), False)
        for n in range(5)
    ),
    (faulty.SparseVectorUnscaledNoise(1.0), [0.0, 0.0], [1.0, -1.0], APPROX(1.1648439, abs=1e-7), False),
    (faulty.SparseVectorUnscaledNoise(1.0, cutoff=2), [0.0] * 14, [1.0] * 12 + [-1.0] * 2, APPROX(3.2, abs=0.1), False),
    (faulty.SparseVectorWithoutQueryNoise(1.0), [0.0, 1.0], [1.0, 0.0], INF, False),
    (faulty.SparseVectorWithoutQueryNoise(1.0), [0.0], [1.0], 0.5, False),  # with one answer, the bug has no effect
    (MISSING_TWO, [0.0] * 50, ONE_UP, APPROX(1.8797479, abs=1e-7), False),
    (MISSING_TWO, [0.0] * 50, [1.0] + [0.0] * 49, APPROX(0.95, abs=0.05), False),  # one-way, the claim is kept
    *(
        (m.ReportNoisyMax(1.0, monotone=True, noise=n), [0.0, lead], [1.0, lead - 1.0], loss, False)
        for n in NOISES
        for lead, loss in [(3.0, APPROX(1.7, abs=0.31)), (40.0, APPROX(1.97, abs=0.031))]
    ),
    (m.ExponentialMechanism(1.0, 0.5), [0.0] * 50, [1.0] + [0.0] * 49, APPROX(0.95, abs=0.05), False),
    (m.ExponentialMechanism(1.0, 0.5), [1.0] + [-1.0] * 50, [0.0] * 51, APPROX(1.9, abs=0.1), False),
    (m.ExponentialMechanism(1.0, 0.5, monotone=True), [1.0] + [0.0] * 50, [0.0] * 51, APPROX(1.9, abs=0.1), False),
    (OVERLAPPING, AGES, [*AGES, 65.0], 1.0, False),
    *((OVERLAPPING, AGES, [*AGES, age], loss, False) for age, loss in [(40.0, 0.5), (0.0, 0.5), (121.0, 0.0)]),
    (faulty.LaplaceOfScale(2.0, PureDP(0.5)), (2.0, 0.0, 3.0), (2.0, 1.0, 4.0), 1.0, False),
    (faulty.LaplaceOfScale(2.0, PureDP(0.5), spared="last"), (2.0, 0.0, 3.0), (2.0, 0.0, 4.0), INF, False),
    (faulty.PricesFromTheBids(1.0), PUMPKIN, WITHOUT, INF, False),
    (faulty.PricesFromTheBids(1.0), [1.0, 2.0], [1.0, 2.0, 2.0], APPROX(0.5, abs=0.5), False),  # no new price
    *((faulty.RangedCount(0.5, None, is_redrawn), [0, 1], [0, 1, 0], INF, False) for is_redrawn in (True, False)),
    (faulty.OnlyYesRandomised(1.0), 0, 1, INF, False),
    (faulty.TrueBitSetTwice(1.0), 0, 1, math.log(2 + math.e), False),
    (faulty.TrueBitSetTwice(1.0, is_optimised=False), 0, 1, math.log(1 + math.exp(0.5) * (1 + math.exp(0.5))), False),
    (faulty.HashChosenByTheValue(1.0), 0, 1, INF, False),
    (faulty.SubsetInOrder(1.0), 0, 1, INF, False),
    (faulty.RedrawnMemo(2.0, 0.7, reports=5), 0, 1, APPROX(3.5, rel=1e-6), False),
]  # fmt: skip


# Right mechanisms with another parameter, which are in the catalogue alone: claim, truth and the exact loss on the pair
IN_THE_CATALOGUE = {
    "sensitivity-understated": (0.5, 1.0, 1.0), "scale-epsilon": (0.5, 2.0, 2.0), "ratio-squared": (0.5, 1.0, 1.0),
    "deviation-as-scale": (0.5, math.sqrt(0.5), math.sqrt(0.5)), "user-with-many-rows": (0.5, 1.0, 1.0),
    "truth-among-the-lies": (1.0, math.log(1 + 2 * math.e), math.log(1 + 2 * math.e)),
    "odds-for-two-values": (1.0, 1 + math.log(4), 1 + math.log(4)), "ones-never-cleared": (1.0, INF, INF),
    "histogram-for-replaced-rows": (0.5, 1.0, 1.0), "parts-for-replaced-rows": (0.5, 1.0, 1.0),
    "edge-noise-for-nodes": (0.5, 1.5, 1.5), "one-end-of-an-edge": (0.5, 1.0, 1.0),
    "loop-charged-once": (0.5, 1.5, 1.5), "root-without-delta": (2.0, 8.0, 8.0),
    "best-of-draws": (0.5, 1.0, 1.0), "coins-of-two-encodings": (1.0, 1.5, 1.5),
    "powers-of-ten": (1.0, math.log(10), math.log(10 * (1 + 10**-1.5) / (1 + 10**-0.5))),
    "each-bit-at-epsilon": (1.0, 2.0, 2.0), "odds-of-binary-hashing": (1.0, 1 + math.log(3), 1 + math.log(3)),
    "subset-of-wrong-size": (1.0, 1 + math.log(12 / 7), 1 + math.log(12 / 7)),
    "hadamard-or-any-column": (1.0, math.log(1 + 2 * math.e), math.log(1 + 2 * math.e)),
    "first-report-for-all": (1.0, 2.0, APPROX(1.97, abs=0.03)), "marginals-not-split": (1.0, 2.0, APPROX(2.0)),
    "marginals-for-replaced-rows": (1.0, 2.0, APPROX(1.9, abs=0.1)),
    "threshold-on-half-the-noise": (1.0, 2.0, APPROX(1.7, abs=0.2)),
}  # fmt: skip


def loss_of(mechanism, x, y, delta=0.0):
    return m.exact_epsilon(mechanism.distribution(x), mechanism.distribution(y), delta)


def equals(found, loss):
    return found == (loss if isinstance(loss, type(APPROX(1.0))) or loss in (0.0, INF) else APPROX(loss, rel=1e-9))


def test_right_mechanisms_with_another_parameter_lose_what_the_catalogue_says():
    faults = {fault.name: fault for fault in entries()}
    for name, (claim, truth, loss) in IN_THE_CATALOGUE.items():
        fault = faults[name]
        held = INF if fault.truth is None else fault.truth.epsilon
        assert (fault.claim, held) == (PureDP(claim), APPROX(truth)), name
        assert equals(fault.exact, loss), name


def test_right_mechanisms_lose_what_is_said_and_at_most_their_claim():
    found = [(*row, loss_of(*row[:3])) for row in RIGHT]
    assert [row for row in found if not equals(row[-1], row[3]) or row[-1] > row[0].claim.epsilon * (1 + 1e-8)] == []


def test_faulty_mechanisms_lose_what_is_said_and_at_most_their_truth_and_break_their_claim_on_a_pair():
    broken = set()
    for variant, x, y, loss, is_true in FAULTY:
        found = loss_of(variant, x, y)
        assert equals(found, loss), variant
        truth = variant.truth if isinstance(variant, faulty.Flaw) else None
        assert truth is None or found <= truth.epsilon * (1 + 1e-9), variant
        assert not is_true or truth.epsilon == APPROX(found, rel=1e-9), variant
        if found > variant.claim.epsilon * (1 + 1e-9):
            broken.add(type(variant))
    assert broken == {type(variant) for variant, *_ in FAULTY}


# Gaussian and other mechanisms with a delta: mechanism, x, y, epsilon, delta there
CORNERS = [(1.5, 2.0, 0.0), (-1.5, -2.0, 0.0)]  # 5 apart
DELTAS = [
    *(
        (m.VectorGaussianMechanism(e, 1e-5, 5.0), x, y, e, 1e-5)
        for e in (0.1, 1.0, 3.0)
        for x, y in (CORNERS, [(0.0,), (5.0,)], [(0.0,) * 25, (1.0,) * 25])
    ),
    *((m.GaussianMechanism(0.8, 1e-6, sensitivity=2.5), x, y, 0.8, 1e-6) for x, y in [(0, 2.5), (10.0, 7.5)]),
    (m.LocalGaussianMechanism(1.0, 1e-5, m.Interval(-1, 3)), -1e9, 40.0, 1.0, 1e-5),
    (m.LocalGaussianMechanism(1.0, 1e-5, m.Ball(2.0, 3)), (1e200, 1e200, 0.0), (-5.0, -5.0, 0.0), 1.0, 1e-5),
    (faulty.ClassicalBeyondOneGaussian(10.0, 0.1), 0.0, 1.0, 10.0, 0.405601575864),  # mpmath, 50 digits
    (faulty.VarianceAsScaleGaussian(8.0, 1e-5), 0.0, 1.0, 8.0, 0.0384082852106),
    (faulty.VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1), 0.0, 0.1, 1.0, 0.0422645050787),
    (m.RareLeakLaplace(0.5, 0.01, sensitivity=2.0), 0.0, 2.0, 0.5, 0.01),
    *((m.NameAndShame(d), [7, 0, 7], [7, 0, 8], e, d) for d in (1e-9, 0.01, 0.3) for e in (0.0, 1.0, 50.0)),
    *(
        (m.GroupTightMechanism(e, d), n, n + 1, e, d)
        for e, d in [(1.0, 1e-5), (0.3, 0.01), (0.0, 0.02)]
        for n in range(8)
    ),
    (m.DiscreteGaussianMechanism(3.0, 0.5, 2, len), "abcd", "ab", 0.5, m.DiscreteGaussianMechanism(3.0, 0.5, 2).delta),
    (m.BinomialMechanism(100, 0.5, 2, len), "abcd", "ab", 0.5, m.BinomialMechanism(100, 0.5, 2).delta),
]  # fmt: skip


def test_deltas_are_those_of_the_claim_or_of_the_truth():
    for mechanism, x, y, epsilon, delta in DELTAS:
        distribution, other = mechanism.distribution(x), mechanism.distribution(y)
        assert m.exact_delta(distribution, other, epsilon) == APPROX(delta, rel=1e-8), mechanism
        within = epsilon * (1 + 1e-7) + 1e-9
        assert delta == 1.0 or m.exact_epsilon(distribution, other, delta * (1 + 1e-9)) <= within, mechanism
        stated = mechanism.truth if isinstance(mechanism, faulty.Flaw) else mechanism.claim
        assert stated is None or stated.epsilon != epsilon or stated.delta == APPROX(delta, rel=1e-8), mechanism


def test_a_larger_change_than_the_sensitivity_and_a_value_outside_the_domain_lose_more():
    far = m.VectorGaussianMechanism(1.0, 1e-5, sensitivity=5.0)
    assert m.exact_delta(far.distribution((0.0,) * 25), far.distribution((5.0,) * 25), 1.0) > 100 * 1e-5
    unclipped = m.GaussianMechanism(1.0, 1e-5, m.Interval(-1, 3).diameter)
    assert m.exact_delta(unclipped.distribution(-1e9), unclipped.distribution(40.0), 1.0) > 0.5


def test_no_pure_claim_holds_where_there_is_a_delta():
    """An outcome of one side only, or noise of unbounded loss, leaves no finite epsilon at a smaller delta."""
    for mechanism, x, y, delta in [
        (m.RareLeakLaplace(0.5, 0.01, sensitivity=2.0), 0.0, 2.0, 0.01),
        (m.NameAndShame(0.3), [7, 0, 7], [7, 0, 8], 0.3),
        (m.BinomialMechanism(100, 0.5), 0, 1, 2.0**-100),
        (
            faulty.PricesFromTheBids(1.0),
            PUMPKIN,
            WITHOUT,
            faulty.PricesFromTheBids(1.0).distribution(PUMPKIN).probabilities[1],
        ),
    ]:
        assert loss_of(mechanism, x, y) == loss_of(mechanism, x, y, 0.99 * delta) == INF
        assert loss_of(mechanism, x, y, delta * (1 + 1e-9)) < 50
        assert loss_of(mechanism, x, x) == 0.0
    assert loss_of(m.DiscreteGaussianMechanism(3.0, 0.5), 0, 1) == loss_of(m.GaussianMechanism(1, 0.1), 0, 1) == INF


def random_pairs(mechanism, number=50):
    """Scores and neighbours of them, which rise by at most the sensitivity, or also fall unless they are monotone."""
    rng = np.random.default_rng(1)
    for _ in range(number):
        scores = rng.normal(0, 5, 5)
        yield scores, scores + rng.uniform(0 if mechanism.monotone else -2, 2, 5)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("noise", [None, "flips", *NOISES])
def test_selections_keep_their_claim_on_random_neighbours(noise, monotone):
    if noise is None:
        mechanism = m.ExponentialMechanism(0.8, 2.0, monotone=monotone)
    elif noise == "flips":
        mechanism = m.PermuteAndFlip(0.8, 2.0, monotone=monotone)
    else:
        mechanism = m.ReportNoisyMax(0.8, 2.0, monotone=monotone, noise=noise)
    assert mechanism.claim == PureDP(0.8)
    assert max(loss_of(mechanism, x, y) for x, y in random_pairs(mechanism)) <= 0.8 + 1e-12


GRID = list(itertools.product((-1.0, 0.0, 1.0), repeat=3))
WITHIN_ONE = [(x, y) for x, y in itertools.combinations(GRID, 2) if max(abs(np.subtract(x, y))) <= 1]
ONE_WAY = [(x, y) for x, y in WITHIN_ONE if len({*np.sign(np.subtract(x, y))} - {0.0}) == 1]


@pytest.mark.parametrize(
    ("mechanism", "pairs"),
    [
        *((m.SparseVector(1.2, c, threshold=0.5, refresh=r), WITHIN_ONE) for c in (1, 2, 3) for r in (False, True)),
        *((m.SparseVector(1.2, 2, threshold=0.5, monotone=True, refresh=r), ONE_WAY) for r in (False, True)),
        *((faulty.SparseVectorUnscaledNoise(0.8, cutoff=c), WITHIN_ONE) for c in (1, 2, 3)),
    ],
    ids=str,
)
def test_sparse_vectors_on_all_pairs_of_a_grid(mechanism, pairs):
    distributions = {answers: mechanism.distribution(answers) for answers in GRID}
    stated = mechanism.truth if isinstance(mechanism, faulty.Flaw) else mechanism.claim
    assert 0.2 < max(m.exact_epsilon(distributions[x], distributions[y]) for x, y in pairs) <= stated.epsilon


@pytest.mark.parametrize("monotone", [False, True])
def test_auctions_keep_their_claim_whether_a_bid_is_added_or_replaced(monotone):
    auction, bids = m.PostedPriceAuction(0.7, (1.0, 2.0, 3.0), monotone), (0.0, 1.0, 1.5, 2.0, 3.0, 7.0)
    largest = 0.0
    for size in range(3):
        for others in itertools.combinations_with_replacement(bids, size):
            distributions = [auction.distribution([*others, bid]) for bid in bids] + [auction.distribution(others)]
            largest = max(largest, *(m.exact_epsilon(p, q) for p, q in itertools.combinations(distributions, 2)))
    assert 0.25 < largest <= 0.7


@pytest.mark.parametrize("most", [1, 4])
def test_redrawing_into_a_range_loses_more_and_clamping_does_not(most):
    variant, clamped = (faulty.RangedCount(0.5, most, is_redrawn) for is_redrawn in (True, False))
    losses = [loss_of(variant, [1] * n, [1] * (n + 1)) for n in range(most)]
    # The losses of two neighbours differ by the ratio of the probabilities of being inside, largest at the ends.
    inside = [sum(math.exp(-0.5 * abs(k - n)) for k in range(most + 1)) for n in range(2)]
    assert [losses[0], max(losses)] == APPROX([0.5 + math.log(inside[1] / inside[0])] * 2, rel=1e-12)
    assert max(loss_of(clamped, [1] * n, [1] * (n + 1)) for n in range(most)) == APPROX(0.5, rel=1e-12)
    assert (losses[0] > 0.5) == (most > 1)  # one step apart in {0, 1} the two normalisers are the same
    assert losses[0] < 1.0


@pytest.mark.parametrize("half", [1, 2, 3, 4])
def test_without_a_cutoff_the_loss_grows_with_the_answers(half):
    """Lyu, Su & Li's transcript loses at least half·epsilon/2, so no epsilon holds for all lengths."""
    variant = faulty.SparseVectorWithoutCutoff(1.0)
    x, y = [0.0] * (2 * half), [1.0] * half + [-1.0] * half
    transcript = [0] * half + [1] * half
    ratio = variant.distribution(x).log_density(transcript) - variant.distribution(y).log_density(transcript)
    assert half / 2 <= ratio <= loss_of(variant, x, y) + 1e-9
    assert variant.truth is None
    assert (loss_of(variant, x, y) > variant.claim.epsilon) == (half > 1)


@pytest.mark.parametrize("sensitivity", [1, 2])
def test_noisy_marginals_lose_at_most_epsilon_and_nearly_reach_it(sensitivity):
    mechanism, rows = m.NoisyMarginals(2.0, (2, 2), 10, sensitivity), [(0, 0), (1, 1), (None, 0)]
    losses = [
        exact_loss(mechanism, [*other, row], other if change is None else [*other, change])
        for other in ([], [(0, 0)])
        for row in rows
        for change in ([None] if sensitivity == 1 else rows)
    ]
    assert 1.6 < max(losses) <= 2.0 + 1e-9
    assert exact_loss(m.NoisyMarginals(2.0, (2, 2), 50), [(0, 0), (1, 1)], [(0, 0)]) == APPROX(2.0)


@pytest.mark.parametrize("make", [m.MemoisedBits, m.MemoisedResponse])
def test_repeated_reports_lose_more_and_more_up_to_the_permanent_loss(make):
    losses = [loss_of(make(2.0, 1.0, 3, reports), 0, 1) for reports in (1, 2, 4, 12)]
    assert losses == sorted(losses)
    assert losses[0] == APPROX(1.0)
    assert 1.99 < losses[-1] <= 2.0 * (1 + 1e-12)
    assert [make(2.0, 1.0, 3, reports).claim for reports in (1, 2)] == [PureDP(1.0), PureDP(2.0)]


@pytest.mark.parametrize("make", AGGREGATES)
@pytest.mark.parametrize(("partitions", "per_partition"), [(1, 1), (9, 1), (4, 5)])
def test_gaussian_aggregates_lose_mu_if_the_rows_are_as_far_as_the_l2_sensitivity(make, partitions, per_partition):
    noisy = make(epsilon=0.7, delta=1e-5, partitions=partitions, per_partition=per_partition)
    distributions = [
        noisy.distribution([*NUMBERS, *[3.0] * rows]).marginals for rows in (0, math.isqrt(partitions) * per_partition)
    ]
    shift = math.hypot(*((a.location - b.location) / a.scale for a, b in zip(*distributions, strict=True)))
    assert isinstance(noisy.tight_claim, GaussianDP)
    assert noisy.tight_claim.mu == APPROX(shift, rel=1e-12)
    assert noisy.claim == ApproxDP(0.7, 1e-5)


def test_a_tree_uses_all_of_epsilon_and_delta_and_sums_share_them():
    moments, tree = (make(epsilon=1.0, delta=1e-5).tight_claim.mu for make in AGGREGATES[1:])
    assert tree == APPROX(1 / m.analytic_gaussian_scale(1.0, 1e-5))
    assert moments == APPROX(math.sqrt(3) / m.analytic_gaussian_scale(1.0 / 3, 1e-5 / 3))
    variant = noisy_moments(2, -1.0, 3.0, epsilon=0.7, noise_share=0.5)
    assert (variant.claim, variant.tight_claim) == (PureDP(0.7), variant.tight_claim)


@pytest.mark.parametrize("n_candidates", [1, 3, 10])
def test_the_released_maximum_loses_epsilon_for_every_candidate(n_candidates):
    variant, epsilon = LargestNoisyCount(2.0, PureDP(0.5)), 0.5 * n_candidates
    distribution_x, distribution_y = (
        variant.distribution([0.0] * n_candidates),
        variant.distribution([1.0] * n_candidates),
    )
    # The event "below both" attains the loss …
    assert math.log(distribution_x.cdf(0.0) / distribution_y.cdf(0.0)) == APPROX(epsilon, rel=1e-12)
    # … and no density ratio exceeds it.
    z = np.linspace(-60, 60, 4801)
    assert np.abs(distribution_x.log_density(z) - distribution_y.log_density(z)).max() == APPROX(epsilon, rel=1e-9)
