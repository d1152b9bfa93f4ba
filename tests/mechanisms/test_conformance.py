"""Requirements on every mechanism, right or wrong: a value with a seed, a distribution and a claim.

The histograms and the counts of events are random tests: each has a false-alarm probability of at most 5e-9.
"""

import dataclasses
import itertools
import math
import pickle

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import dpaudit.mechanisms as m
from dpaudit.audit.claims.claim import Claim, PureDP
from dpaudit.audit.errors import ClaimError
from dpaudit.audit.sampling.sampler import Mechanism, as_sampler
from dpaudit.experiments.catalogue.entries import entries
from dpaudit.mechanisms import faulty
from dpaudit.mechanisms.aggregates import noisy_moments
from dpaudit.mechanisms.faulty.calibration import GaussianOfScale
from dpaudit.mechanisms.faulty.noise import gap_at_the_median, median
from dpaudit.mechanisms.local.frequency_oracles import BitReports
from dpaudit.mechanisms.synthetic import _log_distribution

from .cells import is_far, is_off

RUNS = 100_000
SCORES = np.array([0.0, 2.0, 1.0, -1.5])
ANSWERS = (0.5, -1.0, 0.0)
BIDS = [1.0, 1.0, 3.01, 1.0]
STAR = nx.star_graph(2)
STAR.degree()  # networkx stores this view in the graph on first use, which does not change the data
THREE_PARTS = [m.GeometricMechanism(epsilon, query=len) for epsilon in (0.5, 1.0, 0.25)]

RIGHT = [
    (m.LaplaceMechanism(0.5, sensitivity=2.0), 1.3),
    (m.LaplaceMechanism(1.0, query=len), (1, 2, 3)),
    (m.LaplaceByInverseCDF(0.5, sensitivity=2.0), 1.3),
    (m.GeometricMechanism(0.5, sensitivity=2), -3),
    (m.GaussianMechanism(1.0, 1e-5), 4.4),
    (m.GaussianMechanism(0.5, 0.01, calibration="classical"), 0),
    (m.DiscreteGaussianMechanism(1.3, 1.0, sensitivity=2), -3),
    (m.BinomialMechanism(50, 1.0, sensitivity=2), -3),
    (m.VectorGaussianMechanism(1.0, 1e-5), (1.0, -2.0, 1e6)),
    (m.LocalGaussianMechanism(1.0, 1e-5, m.Interval(-1, 3)), 12.0),
    (m.LocalGaussianMechanism(1.0, 1e-5, m.Ball(2.0, 3)), (3.0, 4.0, 0.0)),
    (m.HistogramMechanism(1.0, k=3), [0, 2, 2, 2]),
    (m.HistogramMechanism(1.0, k=3, sensitivity=2, noise="geometric"), [0, 2, 2, 2]),
    (m.RandomisedResponse(1.0), 1),
    (m.RandomisedResponse(2.0, k=6), 3),
    (m.ExponentialMechanism(1.0), SCORES),
    (m.ExponentialMechanism(1.0, monotone=True), SCORES),
    (m.ReportNoisyMax(1.0), SCORES),
    (m.ReportNoisyMax(2.0, noise="exponential"), SCORES),
    (m.ReportNoisyMax(2.0, noise="gumbel", monotone=True), SCORES),
    (m.ReportNoisyMax(2.0), np.linspace(0, 5, 60)),
    (m.PermuteAndFlip(1.0), SCORES),
    (m.PermuteAndFlip(1.0, 0.5, monotone=True), SCORES),
    (m.PostedPriceAuction(2.0, [1.0, 2.0, 3.01, 4.0]), BIDS),
    (m.EdgeCountMechanism(0.5), STAR),
    (m.DegreeHistogramMechanism(0.5, 2), STAR),
    (
        m.SequentialComposition((m.VectorGaussianMechanism(1.0, 1e-5), m.GeometricMechanism(0.5, query=len))),
        (1.0, -2.0),
    ),
    (m.ParallelComposition(THREE_PARTS, m.IntervalOf((1.0, 3.0))), BIDS),
    (m.RandomisedResponseFold(0.25, 30), 1),
    (m.UpAndDown(0.25, 30), 3),
    (m.UnaryEncoding(1.0, 3), 1),
    (m.UnaryEncoding(1.0, 3, is_optimised=True), 1),
    (m.ThresholdedHistogram(1.0, 3), 1),
    (m.LocalHashing(1.0, 8), 5),
    (m.SubsetSelection(1.0, 3, size=2), 1),
    (m.HadamardResponse(1.0, 10), 3),
    (m.MemoisedBits(2.0, 1.0, 3, reports=4, is_optimised=True), 1),
    (m.MemoisedResponse(2.0, 1.0, 3, reports=4), 1),
    (m.SparseVector(1.0), ANSWERS),
    (m.SparseVector(2.0, 2, threshold=0.5, refresh=True), ANSWERS),
    (m.SparseVector(2.0, 3, monotone=True), ANSWERS),
    (m.NameAndShame(0.05), [7, 0, 7]),
    (m.RareLeakLaplace(0.5, 0.01), 1.3),
    (m.GroupTightMechanism(1.0, 0.01), 3),
    (m.GroupTightMechanism(0.5, start=0.1), 4),
    (noisy_moments(1, -1.0, 3.0, epsilon=1.0, noise_share=0.9), [0.5, -3.0, 7.0]),
    (noisy_moments(2, -1.0, 3.0, epsilon=1.0, delta=1e-3), [0.5, -3.0, 7.0]),
]

NO_CELLS = (
    *(faulty.AnswerInTheBranchLaplace, faulty.MixedUniformsLaplace),
    *(faulty.SparseVectorReleasingValue, m.NoisyThreshold, GaussianOfScale),
)
"""Their distributions have no cells here, their outputs may be NaN, or they are parts of others, whose lines are long.
"""

FAULTY = [
    (fault.mechanism, fault.x)
    for fault in entries()
    if hasattr(fault.mechanism, "distribution") and not isinstance(fault.mechanism, NO_CELLS)
    # which adds no noise here, so it has no distribution, and coins with no finite epsilon, whose claim is refused
    if fault.name not in ("median-by-local-sensitivity", "ones-never-cleared")
]

CASES = [*RIGHT, (faulty.ClosedEndLaplace(0.5), 7.0), *FAULTY]


WRONG = {
    "epsilon": (-1.0, math.nan), "epsilon_each": (0.0,), "epsilon_first": (0.0,), "delta": (-0.1, 1.0),
    "sensitivity": (0.0,), "k": (0,), "n": (0,), "cutoff": (0,), "max_degree": (0,),
    "reports": (0,), "size": (0,),
}  # fmt: skip
"""Values that no mechanism takes."""


@pytest.mark.parametrize(("mechanism", "dataset"), CASES, ids=[str(mechanism) for mechanism, _ in CASES])
class TestMechanisms:
    def test_outputs_follow_the_distribution(self, mechanism, dataset):
        """One output a run, of the kind that the distribution describes."""
        assert isinstance(mechanism, Mechanism)
        sampler, distribution = as_sampler(mechanism), mechanism.distribution(dataset)
        assert sampler.is_block
        for size in (1, RUNS):
            outputs = sampler.draw(dataset, size, np.random.default_rng(11))
            assert outputs.shape[0] == size
            assert outputs.ndim == (1 if isinstance(distribution, m.ScalarDistribution) else 2)
            assert outputs.dtype in (np.float64, np.int64)
            assert np.isfinite(outputs).all()
        densities = distribution.log_density(outputs[:10_000])
        assert densities.shape == (10_000,)
        assert isinstance(distribution, (m.ProductDistribution, m.DiscreteDistribution)) or np.isfinite(densities).all()
        assert not is_far(distribution, outputs)

    def test_it_is_a_value_that_leaves_the_dataset_unchanged_and_claims_what_it_was_asked_for(self, mechanism, dataset):
        before, copy = pickle.dumps(dataset), pickle.loads(pickle.dumps(mechanism))
        assert copy == mechanism
        pairs = [(mechanism, 1), (copy, 1), (mechanism, 2)]
        first, second, third = (each.sample(dataset, 500, np.random.default_rng(seed)) for each, seed in pairs)
        assert np.array_equal(first, second)
        assert not np.array_equal(first, third) or len(np.unique(first, axis=0)) == 1  # a bug may leave no chance
        assert pickle.dumps(dataset) == before
        assert not hasattr(mechanism, "__dict__")
        assert len(str(mechanism)) <= 72
        assert as_sampler(mechanism).name == str(mechanism)
        assert isinstance(mechanism.claim, Claim)
        assert isinstance(mechanism, faulty.Flaw) == hasattr(mechanism, "truth")
        values = {each.name: getattr(mechanism, each.name) for each in dataclasses.fields(mechanism) if each.init}
        if "claim" not in values and not isinstance(mechanism, BitReports):  # which have coins alone
            assert mechanism.epsilon == mechanism.claim.epsilon
        checked = [] if isinstance(mechanism, (faulty.Flaw, faulty.RangedCount)) else WRONG
        for name in [name for name in checked if not callable(values.get(name, callable))]:
            for value in WRONG[name]:
                with pytest.raises(ClaimError) as caught:
                    dataclasses.replace(mechanism, **{name: value})
                assert f"={value!r}" in str(caught.value)


def test_every_mechanism_with_a_distribution_is_here():
    """Except those whose distributions have no cells here, or whose outputs may be NaN."""
    held = (getattr(m, name) for name in m.__all__)
    right = {found for found in held if hasattr(found, "sample") and hasattr(found, "distribution")}
    wrong = {
        found
        for name in faulty.__all__
        if hasattr(found := getattr(faulty, name), "distribution") and issubclass(found, faulty.Flaw)
    }
    assert (right | wrong) - {faulty.Variant} - {type(mechanism) for mechanism, _ in CASES} == {
        m.AdaptiveComposition,
        *NO_CELLS,
    } - {GaussianOfScale}


def test_names_show_the_parameters():
    for mechanism, name in {
        m.GaussianMechanism(1, 1e-5): "Gaussian(epsilon=1, delta=1e-05, sensitivity=1)",
        m.GaussianMechanism(1, 0.5, calibration="classical"): "ClassicalGaussian(epsilon=1, delta=0.5, sensitivity=1)",
        m.GeometricMechanism(1, query=len): "Geometric(epsilon=1, sensitivity=1)",
        m.VectorGaussianMechanism(1, 1e-5): "VectorGaussian(epsilon=1, delta=1e-05, sensitivity=1)",
    }.items():
        assert str(mechanism) == name
    assert m.VectorGaussianMechanism(1, 1e-5).sample([1.0, 2.0, 3.0], 5, np.random.default_rng(0)).shape == (5, 3)


def test_the_histogram_tells_the_wrong_distribution():
    for right, wrong, dataset in [
        (m.GeometricMechanism(0.5), m.GeometricMechanism(1.0), 1),
        (m.BinomialMechanism(100, 1.0), m.BinomialMechanism(116, 1.0), 1),
        (m.ReportNoisyMax(1.0), m.ReportNoisyMax(1.0, noise="gumbel"), SCORES),
        (m.PostedPriceAuction(1.0, [1.0, 3.01]), m.PostedPriceAuction(1.0, [1.0, 3.01], monotone=True), BIDS),
        (m.SparseVector(2.0, 2), m.SparseVector(2.0, 2, refresh=True), ANSWERS),
        (m.NameAndShame(0.05), m.NameAndShame(0.1), [7, 0, 7]),
        (m.SubsetSelection(1.0, 3, size=2), m.SubsetSelection(1.1, 3, size=2), 1),
        (m.MemoisedBits(2.0, 1.0, 3, reports=4), faulty.RedrawnMemo(2.0, 1.0, 3), 1),
    ]:
        assert is_far(right.distribution(dataset), wrong.sample(dataset, RUNS, np.random.default_rng(12)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_histogram_tells_dependent_coordinates(sign):
    distribution = m.VectorGaussianMechanism(1.0, 1e-5).distribution((0.0, 0.0))
    noise = m.GaussianMechanism(1.0, 1e-5).sample(0.0, RUNS, np.random.default_rng(12))
    assert not is_far(distribution.marginals[0], noise)
    assert is_far(distribution, np.stack([noise, sign * noise], axis=1))


# Mechanisms whose distributions have no cells, or no code: the frequencies of events whose probabilities are known.

LAPLACE, NORMAL = stats.laplace, stats.norm
ZERO, BESIDE = -math.expm1(-0.5), -math.expm1(-0.5) * math.exp(-0.5) / 2


SAMPLINGS = ("poisson", "none", "first", "fixed", "replacement")


def totals(sampling, rows, rate=0.5):
    """Distribution of the sum of the sample, by enumeration of all samples: {sum: probability}."""
    n, batch = len(rows), math.floor(rate * len(rows))
    samples = {
        "none": [(rows, 1.0)],
        "first": [(rows[:batch], 1.0)],
        "poisson": [
            (list(itertools.compress(rows, mask)), rate ** sum(mask) * (1 - rate) ** (n - sum(mask)))
            for mask in itertools.product((0, 1), repeat=n)
        ],
        "fixed": [(sample, 1 / math.comb(n, batch)) for sample in itertools.combinations(rows, batch)],
        "replacement": [(sample, n**-batch) for sample in itertools.product(rows, repeat=batch)],
    }[sampling]
    found = {}
    for sample, probability in samples:
        found[sum(sample)] = found.get(sum(sample), 0.0) + probability
    return found


def up_to(z):
    return lambda outputs: np.asarray(outputs) <= z


def above(z):
    return lambda outputs: np.asarray(outputs) > z


def is_value(value):
    return lambda outputs: outputs == value


def is_row(row):
    return lambda outputs: (outputs == row).all(axis=1)


def in_column(place, event):
    return lambda outputs: event(outputs[:, place])


def are_none(outputs):
    return np.array([output is None for output in outputs])


def silent_and_then_small(outputs):
    return np.isnan(outputs[:, :-1]).all(axis=1) & (outputs[:, -1] <= 0.0)


def misprinted(epsilon, factor, place):
    """The table's frequencies of nine outcomes, about an answer of 5."""
    k = np.arange(-400, 401)
    weights = np.where(k == place, factor, 1.0) * np.exp(m.GeometricMechanism(epsilon).distribution(0).log_density(k))
    around = range(place - 4, place + 5)
    events = [(is_value(5 + noise), weights[noise + 400] / weights.sum()) for noise in around]
    return faulty.MisprintedTableGeometric(epsilon, factor, place, query=len), [1] * 5, events


def noisy_count_of_winner(parts):
    mechanism, y = faulty.WinnerWithNoisyCount(1.0, parts), (1.0, -1.0)
    first, second = mechanism.winners(y).probabilities
    is_small = lambda outputs: (outputs[:, 0] == 1) & (outputs[:, 1] > -1.0 + parts * math.log(2))  # noqa: E731
    return mechanism, y, [(in_column(0, is_value(0)), first), (is_small, second / 4)]


def top_two(charged):
    mechanism, scores = faulty.TopCandidates(1.0, charged=charged), [0.0, 1.0, 3.0]
    events = [(is_row(order), math.exp(log)) for order, log in mechanism.log_probabilities(scores).items()]
    return mechanism, scores, events


def sampled(sampling):
    rows = [0.25, -1.0, 1.0, 0.5]
    shares = totals(sampling, rows).items()
    events = [(up_to(z), sum(p * LAPLACE.cdf(z - a) for a, p in shares)) for z in (-1.0, 0.3, 1.2)]
    return faulty.SampledTotal(1.0, 0.5, sampling), rows, events


def released_after(below, answer):
    """All below, then a value ≤ 0: a double integral of exponentials, less by e^{−(below + 1)/2} for answers 1."""
    exact = math.exp(-answer * (below + 1) / 2) / (4 * 2**below * (below + 1) * (below + 2))
    several = lambda outputs: (~np.isnan(outputs)).sum(axis=1) > 1  # noqa: E731
    events = [(silent_and_then_small, exact), (several, 0.0)]
    return faulty.SparseVectorReleasingValue(1.0), [answer] * (below + 1), events


NAIVE = faulty.NaiveGaussian(1.0, 0.01)
MARGINALS = m.NoisyMarginals(1.0, (2,), rows=3)
REDRAWN = [(m.LaplaceDistribution(count, 2.0), count) for count in (0, 2)]
BEYOND = (math.exp(-1) - math.exp(-3)) / (1 - math.exp(-3)) / 2
FAR = {"threshold": -1e6, "cutoff": 2}
# mechanism, dataset, events with their probabilities
EVENTS = [
    (faulty.BoundedLaplace(0.5, reach=3.0), 10.0, [(above(12.0), BEYOND), (up_to(8.0), BEYOND), (above(16.0), 0.0)]),
    (faulty.OneSidedLaplace(0.5), 10.0, [(above(12.0), math.exp(-1)), (above(9.99), 1.0)]),
    *(
        (
            faulty.RedrawnUntilNonnegative(0.5),
            n,
            [(up_to(1.0), (distribution.cdf(1) - distribution.cdf(0)) / distribution.sf(0)), (above(-1), 1)],
        )
        for distribution, n in REDRAWN
    ),
    (faulty.TowardsZeroLaplace(0.5), 7, [(is_value(7), ZERO), *((is_value(k), BESIDE) for k in (6, 8))]),
    (faulty.ScaleFromTheData(0.5, median, gap_at_the_median), [0, 0, 5, 6, 6], [(above(15.0), math.exp(-1) / 2)]),
    (faulty.FlooredScaleMean(1.0), [0.0], [(is_value(0.0), math.exp(-0.5) / 2)]),  # of a negative noisy count
    (faulty.FlooredScaleMean(1.0), [0.0, 1.0], [(is_value(0.0), 0.0)]),
    (
        faulty.ClippedAfterNoise(1.0, 8.0),
        [1.0, 6.0],
        [(is_value(8.0), math.exp(-1) / 2), (is_value(0.0), math.exp(-7) / 2), (above(8.0), 0.0), (above(-0.1), 1.0)],
    ),
    misprinted(0.5, 1.2, 2),
    misprinted(0.1, 1.0, -7),
    *(noisy_count_of_winner(parts) for parts in (1, 2)),
    *(top_two(charged) for charged in (1, 2)),
    *(sampled(sampling) for sampling in SAMPLINGS),
    (
        faulty.KeyedCounts(1.0, 0.01),
        ["b"] * 6 + ["a"] * 5 + ["c"],
        [
            (
                lambda o: np.array(["a" in dict(pairs) for pairs in o]),
                float(m.GeometricDistribution(5, math.exp(-1)).sf(5)),
            ),
            (lambda o: np.array([all(count >= 6 for _, count in pairs) for pairs in o]), 1.0),
        ],
    ),
    (faulty.SmallCount(1.0, 5, is_noisy=True), [1] * 4, [(are_none, 1 - math.exp(-1) / 2)]),
    (faulty.SmallCount(1.0, 5), [1] * 4, [(are_none, 1.0)]),
    (
        faulty.GroupMeans(1.0, ("a", "b")),
        [("a", 1.0), ("a", 0.0), ("a", 9.0)],
        [(in_column(0, above(2 / 3)), 0.5), (in_column(1, np.isnan), 1.0)],
    ),
    (
        faulty.ConsistentWithTheTotal(1.0),
        (2.0, 1.0, 0.0),
        [(in_column(0, above(2.0)), 0.5), (lambda o: o.sum(axis=1) == 3.0, 1.0)],
    ),
    (faulty.WinnerWithExactCount(1.0), (1.0, 1.5), [(lambda o: is_row((0.0, 1.0))(o) | is_row((1.0, 1.5))(o), 1.0)]),
    (faulty.NaiveLaplace(1.0), 3.0, [(above(4.0), LAPLACE.sf(1.0))]),
    (NAIVE, 3.0, [(above(4.0), NORMAL.sf(1.0 / NAIVE.on_grid.scale))]),
    (faulty.SinglePrecisionNoise(1.0), 3.1, [(above(4.1), LAPLACE.sf(1.0))]),
    *(released_after(below, answer) for below, answer in ((0, 0.0), (1, 0.0), (3, 1.0))),
    (
        faulty.SparseVectorReleasingValue(1.0, **FAR),
        [0.5, 100.5, 7.0],
        # The threshold is far below, so each value is its answer plus Laplace noise of scale 2c/ε.
        [(in_column(1, up_to(98.0)), LAPLACE(100.5, 4.0).cdf(98.0)), (in_column(2, np.isnan), 1.0)],
    ),
    (
        m.NoisyThreshold(PureDP(1.0), 2.0, 3.0, release_value=True, value_scale=1.5, **FAR),
        [0.5, 100.5, 7.0],
        [(in_column(1, up_to(99.0)), LAPLACE(100.5, 1.5).cdf(99.0)), (in_column(2, np.isnan), 1.0)],
    ),
    (
        m.SparseVector(500.0, 3, threshold=1.5, queries=lambda rows: [rows.count(name) for name in ("Ann", "Bob")]),
        ["Bob", "Bob", "Bob", "Ann"],
        [(is_row([0, 1]), 1.0)],
    ),
    (
        MARGINALS,
        [(0,), (0,), (1,)],
        [
            (lambda o, k=k: o["column 0: 1"] == k, math.exp(log))
            for k, log in enumerate(_log_distribution(np.array([2, 1]), MARGINALS))
        ],
    ),
]


@pytest.mark.parametrize(("mechanism", "dataset", "events"), EVENTS, ids=lambda case: type(case).__name__)
def test_events_are_as_frequent_as_their_probabilities_say(mechanism, dataset, events):
    runs = 20_000
    outputs = mechanism.sample(dataset, runs, np.random.default_rng(3))
    counts = np.array([np.count_nonzero(event(outputs)) for event, _ in events])
    assert not is_off(counts, np.array([probability for _, probability in events]), runs)


def largest_loss(distribution_x, distribution_y, epsilon=1.0):
    """Largest loss between two mixtures of Laplace distributions of scale 1/ε, on a grid beyond all locations."""
    z = np.linspace(-8, 8, 1601)
    log_x, log_y = (
        np.log(sum(p * np.exp(-epsilon * np.abs(z - a)) for a, p in distribution.items()))
        for distribution in (distribution_x, distribution_y)
    )
    return np.abs(log_x - log_y).max()


@pytest.mark.parametrize(
    ("sampling", "x", "y", "loss"),
    [
        ("none", [0.0] * 2, [0.0] * 2 + [1.0], 1.0),
        ("first", [0.0] * 2, [1.0] + [0.0] * 2, 1.0),
        ("fixed", [-1.0] * 2, [-1.0] * 2 + [1.0], math.log(2 / 3 + math.exp(2) / 3)),
        ("replacement", [0.0] * 3, [0.0] * 3 + [1.0], 2 * math.log(0.75 + 0.25 * math.e)),
        ("poisson", [0.0] * 2, [0.0] * 2 + [1.0], math.log(0.5 + 0.5 * math.e)),
    ],
)
def test_losses(sampling, x, y, loss):
    mechanism = faulty.SampledTotal(1.0, 0.5, sampling)
    found = largest_loss(totals(sampling, x), totals(sampling, y))
    assert found == pytest.approx(loss, rel=1e-9)
    assert (found > mechanism.claim.epsilon + 1e-9) == (sampling != "poisson")
    assert mechanism.truth is None or found <= mechanism.truth.epsilon + 1e-9


def test_poisson_sampling_keeps_the_claim_on_small_datasets():
    claim = faulty.SampledTotal(1.0, 0.5).claim
    assert claim == PureDP(math.log(0.5 + 0.5 * math.e))
    for size in range(3):
        for rows in itertools.product((-1.0, 0.5, 1.0), repeat=size):
            for added in (-1.0, 1.0):
                distribution_x, distribution_y = totals("poisson", rows), totals("poisson", (*rows, added))
                assert largest_loss(distribution_x, distribution_y) <= claim.epsilon + 1e-9
