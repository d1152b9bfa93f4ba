"""Requirements on every mechanism, right or wrong.

The histograms are random tests: each has a false-alarm probability of at most 1e-8.
"""

import math
import pickle

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from dpaudit import mechanisms
from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import Claim
from dpaudit.audit.sampling.sampler import Mechanism, as_sampler
from dpaudit.mechanisms import faulty as f
from dpaudit.mechanisms.local.name_and_shame import HIDDEN

RUNS = 100_000
ALARM = 1e-8
SCORES = np.array([0.0, 2.0, 1.0, -1.5])
ANSWERS = (0.5, -1.0, 0.0)
BIDS = [1.0, 1.0, 3.01, 1.0]
STAR = nx.star_graph(2)
STAR.degree()  # networkx stores this view in the graph on first use, which does not change the data
THREE_PARTS = [m.GeometricMechanism(epsilon, query=len) for epsilon in (0.5, 1.0, 0.25)]
CASES = [
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
    (m.ReportNoisyMax(2.0), np.linspace(0, 5, 300)),
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
    (f.UnderstatedSensitivityLaplace(0.5), 7.0),
    (f.InvertedScaleLaplace(0.5), 7.0),
    (f.ClosedEndLaplace(0.5), 7.0),
    (f.PerRowGeometric(0.5), 7),
    (f.SquaredRatioGeometric(0.5), 7),
    (f.VarianceAsScaleGaussian(8.0, 1e-5), 1.0),
    (f.ClassicalBeyondOneGaussian(10.0, 0.1), 1.0),
    (f.OneForEpsilonGaussian(1.1, 1e-5), 1.0),
    (f.MisprintedNewtonGaussian(1.0, 1e-5), 1.0),
    (f.UnclippedLocalGaussian(1.0, 1e-5, m.Interval(-1, 3)), 12.0),
    (f.UnclippedLocalGaussian(1.0, 1e-5, m.Ball(2.0, 3)), (3.0, 4.0, 0.0)),
    (f.HalfNoiseHistogram(1.0, k=3), [0, 2, 2, 2]),
    (f.TruthAmongTheLies(1.0, k=3), 2),
    (f.BinaryOddsForManyValues(1.0), 2),
    (f.ExponentialMissingFactorTwo(1.0), SCORES),
    (f.HalfSensitivityExponential(1.0), SCORES),
    (f.PricesFromTheBids(1.0), BIDS),
    (f.NoisyMaxMissingFactorTwo(1.0), SCORES),
    (f.NoisyMaxReleasingValue(1.0, 4), SCORES),
    (f.UndercountedComposition(m.LaplaceMechanism(0.5), 3), 7.0),
    (f.OverlappingPartCounts(0.5, (0.0, 1.0, 3.0, 3.01)), BIDS),
    (f.PartCountsForReplace(0.5, (1.0, 3.0)), BIDS),
    (f.EdgeNoiseForNodes(0.5), STAR),
    (f.OneEndDegreeHistogram(0.5, max_degree=2), STAR),
    (f.SparseVectorUnscaledNoise(1.0, cutoff=2), ANSWERS),
    (f.SparseVectorWithoutQueryNoise(1.0), ANSWERS),
    (f.SparseVectorWithoutCutoff(1.0), ANSWERS),
    (f.TwiceExposed(0.05), [7, 0, 7]),
    (f.LocalSensitivityLaplace(0.5), [0, 0]),
    (f.BestOfDraws(0.5), 7.0),
    (f.DeviationAsScaleLaplace(0.5), 7.0),
    (f.RedrawnIntoRange(0.5), [0, 1, 1]),
    (f.RangeOfTheRows(0.5), [0, 1, 1]),
    (f.PowersOfTen(1.0), SCORES),
    (f.OneHotAtFullEpsilon(1.0), 2),
    (f.MixedUnaryCoins(1.0, 3), 1),
    (f.TrueBitSetTwice(1.0, 3), 1),
    (f.OnesNeverCleared(1.0, 3), 1),
    (f.HalfNoiseThreshold(1.0, 3), 1),
    (f.BinaryHashingOdds(1.0), 5),
    (f.SubsetOfWrongSize(1.0, 8, size=1), 1),
    (f.HadamardOrAnyColumn(1.0), 3),
    (f.RedrawnMemo(2.0, 1.0, 3), 1),
    (f.FirstReportForAll(1.0, 2.0, 3), 1),
]


def cells_of(law, outputs):
    """Return counts and probabilities of cells: outcomes and the rest, or twenty equal parts of the law's CDF.

    The outcomes are all of a law with finitely many, else the forty around the location. For vectors, the cells are
    those of each coordinate, and the quarters into which the medians of neighbouring coordinates cut the plane; for
    transcripts, each transcript is a cell.
    """
    if isinstance(law, (m.TranscriptLaw, m.RowLaw, m.SubsetLaw)):
        base, n_columns = int(outputs.max()) + 2, outputs.shape[1]
        weights = base ** np.arange(n_columns)
        rows = np.arange(base**n_columns)[:, None] // weights % base - 1  # all rows of numbers from -1 to the largest
        counts = np.bincount((outputs + 1) @ weights, minlength=base**n_columns)
        probabilities = np.exp(law.log_density(rows))
        return with_the_rest(counts[probabilities > 0], probabilities[probabilities > 0], len(outputs))
    if outputs.ndim == 2:
        return cells_of_vectors(law.marginals, outputs)
    if isinstance(law, m.FiniteLaw):
        values = np.arange(len(law.log_probabilities))
    elif isinstance(law, (m.GeometricLaw, m.DiscreteGaussianLaw, m.BinomialLaw)):
        values = np.arange(-20, 20) + law.location
    elif isinstance(law, m.DiscreteLaw):
        values = np.array(law.values)
    else:
        return np.histogram(law.cdf(outputs), bins=20, range=(0, 1))[0], np.full(20, 1 / 20)
    return with_the_rest((outputs == values[:, None]).sum(axis=1), np.exp(law.log_density(values)), len(outputs))


def with_the_rest(counts, probabilities, n):
    """Add the cell of all other outcomes."""
    return np.append(counts, n - counts.sum()), np.append(probabilities, max(0.0, 1.0 - probabilities.sum()))


def cells_of_vectors(marginals, outputs):
    cells = [cells_of(law, outputs[:, j]) for j, law in enumerate(marginals)]
    medians = np.array([getattr(law, "location", HIDDEN) for law in marginals])
    is_above = outputs > medians
    above = np.array([float(law.sf(median)) for law, median in zip(marginals, medians, strict=True)])
    for j in range(len(marginals) - 1):
        quarters = 2 * is_above[:, j] + is_above[:, j + 1]
        shares = np.multiply.outer([1 - above[j], above[j]], [1 - above[j + 1], above[j + 1]])
        cells.append((np.bincount(quarters, minlength=4), shares.ravel()))
    return tuple(np.concatenate(parts) for parts in zip(*cells, strict=True))


def is_far(law, outputs):
    """Return whether a cell's count is outside its exact binomial limits; false-alarm probability ≤ ALARM."""
    counts, probabilities = cells_of(law, outputs)
    each = ALARM / (2 * len(counts))
    low = stats.binom.ppf(each, len(outputs), probabilities)
    return bool(np.any((counts < low) | (counts > stats.binom.isf(each, len(outputs), probabilities))))


@pytest.mark.parametrize(("mechanism", "dataset"), CASES, ids=[str(mechanism) for mechanism, _ in CASES])
class MechanismConformance:
    @pytest.mark.parametrize("size", [1, 2, 1000, 20_000])
    def test_one_output_a_run(self, mechanism, dataset, size):
        assert isinstance(mechanism, Mechanism)
        sampler = as_sampler(mechanism)
        assert sampler.is_block
        outputs = sampler.draw(dataset, size, np.random.default_rng(1))
        assert outputs.shape[0] == size
        law = mechanism.law(dataset)
        n_columns = len(law.rows[0]) if isinstance(law, m.RowLaw) else getattr(law, "k", 3)
        assert outputs.shape[1:] == (() if isinstance(law, m.ScalarLaw) else (n_columns,))
        assert outputs.dtype in (np.float64, np.int64)
        assert np.isfinite(outputs).all()

    def test_a_seed_fixes_the_outputs(self, mechanism, dataset):
        first, second, third = (mechanism.sample(dataset, 500, np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert np.array_equal(first, second)
        assert not np.array_equal(first, third)

    def test_another_bit_generator_serves(self, mechanism, dataset):
        assert len(mechanism.sample(dataset, 100, np.random.Generator(np.random.MT19937(1)))) == 100

    def test_the_dataset_is_left_alone(self, mechanism, dataset):
        before = pickle.dumps(dataset)
        mechanism.sample(dataset, 10, np.random.default_rng(1))
        mechanism.law(dataset)
        assert pickle.dumps(dataset) == before

    def test_it_survives_pickling(self, mechanism, dataset):
        copy = pickle.loads(pickle.dumps(mechanism))
        assert copy == mechanism
        assert np.array_equal(
            copy.sample(dataset, 50, np.random.default_rng(1)), mechanism.sample(dataset, 50, np.random.default_rng(1))
        )

    def test_it_reads_as_one_short_line(self, mechanism, dataset):
        assert len(str(mechanism)) <= 72
        assert "\n" not in str(mechanism)
        assert as_sampler(mechanism).name == str(mechanism)

    def test_it_cannot_be_changed(self, mechanism, dataset):
        with pytest.raises((AttributeError, TypeError)):
            mechanism.epsilon = 3.0
        assert not hasattr(mechanism, "__dict__")

    def test_it_claims_what_it_was_asked_for(self, mechanism, dataset):
        assert isinstance(mechanism.claim, Claim)
        assert mechanism.claim.epsilon == getattr(mechanism, "epsilon", 0.0)  # no parameter: a claim in delta alone
        assert isinstance(mechanism, f.Twin) == hasattr(mechanism, "truth")

    def test_outputs_follow_the_law(self, mechanism, dataset):
        assert not is_far(mechanism.law(dataset), mechanism.sample(dataset, RUNS, np.random.default_rng(11)))


class TestMechanisms(MechanismConformance):
    pass


def test_every_mechanism_with_a_law_is_here():
    """Except those whose laws have no cells here, or whose outputs may be NaN."""
    held = (getattr(mechanisms, name) for name in mechanisms.__all__)
    right = {found for found in held if hasattr(found, "sample") and hasattr(found, "law")}
    twins = {found for name in m.faulty.__all__ if issubclass(found := getattr(m.faulty, name), f.Twin)} - {f.Twin}
    assert (right | twins) - {type(mechanism) for mechanism, _ in CASES} == {
        m.AdaptiveComposition, m.NoisyThreshold, f.AnswerInTheBranchLaplace, f.MixedUniformsLaplace,
        f.SharedNoiseLaplace,
        f.SparseVectorReleasingValue,
    }  # fmt: skip


def test_the_histogram_tells_the_wrong_law():
    for right, wrong, dataset in [
        (m.LaplaceMechanism(0.5), m.LaplaceMechanism(0.55), 1.0),
        (m.GeometricMechanism(0.5), f.SquaredRatioGeometric(0.5), 1),
        (m.GaussianMechanism(8.0, 1e-5), f.VarianceAsScaleGaussian(8.0, 1e-5), 1.0),
        (m.DiscreteGaussianMechanism(2.0, 1.0), m.DiscreteGaussianMechanism(2.1, 1.0), 1),
        (m.BinomialMechanism(100, 1.0), m.BinomialMechanism(116, 1.0), 1),
        (m.VectorGaussianMechanism(1.0, 1e-5), m.VectorGaussianMechanism(1.05, 1e-5), (1.0, -2.0, 0.0)),
        (m.HistogramMechanism(0.5, k=3, sensitivity=2), f.HalfNoiseHistogram(0.5, k=3), [0, 2]),
        (m.ExponentialMechanism(1.0), f.ExponentialMissingFactorTwo(1.0), SCORES),
        (m.ReportNoisyMax(1.0), m.ReportNoisyMax(1.0, noise="gumbel"), SCORES),
        (m.ExponentialMechanism(1.0), m.PermuteAndFlip(1.0), SCORES),
        (m.PostedPriceAuction(1.0, [1.0, 3.01]), m.PostedPriceAuction(1.0, [1.0, 3.01], monotone=True), BIDS),
        (m.SparseVector(2.0, 2), m.SparseVector(2.0, 2, refresh=True), ANSWERS),
        (m.NameAndShame(0.05), f.TwiceExposed(0.05), [7, 0, 7]),
        (m.RareLeakLaplace(0.5, 0.01), m.LaplaceMechanism(0.5), 1.3),
        (m.RandomisedResponse(5.0, k=50), m.RandomisedResponse(5.0, k=60), 45),
        (m.UnaryEncoding(1.0, 3), m.UnaryEncoding(1.0, 3, is_optimised=True), 1),
        (m.SubsetSelection(1.0, 3, size=2), m.SubsetSelection(1.1, 3, size=2), 1),
        (m.MemoisedBits(2.0, 1.0, 3, reports=4), f.RedrawnMemo(2.0, 1.0, 3), 1),
    ]:
        assert is_far(right.law(dataset), wrong.sample(dataset, RUNS, np.random.default_rng(12)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_histogram_tells_dependent_coordinates(sign):
    law = m.VectorGaussianMechanism(1.0, 1e-5).law((0.0, 0.0))
    noise = m.GaussianMechanism(1.0, 1e-5).sample(0.0, RUNS, np.random.default_rng(12))
    assert not is_far(law.marginals[0], noise)
    assert is_far(law, np.stack([noise, sign * noise], axis=1))


def test_false_alarms_of_the_suite_stay_within_what_is_declared():
    """One histogram per case at 1e-8, and ten tests of noise samplers at 1e-7: together less than 2e-6."""
    assert len(CASES) * ALARM + 10 * 1e-7 < 2e-6
    assert math.isclose(ALARM, 1e-8)
