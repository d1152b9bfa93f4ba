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
from dpaudit.audit.claims.claim import Claim
from dpaudit.audit.sampling.sampler import Mechanism, as_sampler
from dpaudit.mechanisms import (
    AdaptiveComposition,
    Ball,
    BinomialLaw,
    BinomialMechanism,
    DegreeHistogramMechanism,
    DiscreteGaussianLaw,
    DiscreteGaussianMechanism,
    DiscreteLaw,
    EdgeCountMechanism,
    ExponentialMechanism,
    FiniteLaw,
    GaussianMechanism,
    GeometricLaw,
    GeometricMechanism,
    GroupTightMechanism,
    HadamardResponse,
    HistogramMechanism,
    Interval,
    IntervalOf,
    LaplaceByInverseCDF,
    LaplaceMechanism,
    LocalGaussianMechanism,
    LocalHashing,
    MemoisedBits,
    MemoisedResponse,
    NameAndShame,
    NoisyThreshold,
    ParallelComposition,
    PermuteAndFlip,
    PostedPriceAuction,
    RandomisedResponse,
    RandomisedResponseFold,
    RareLeakLaplace,
    ReportNoisyMax,
    RowLaw,
    ScalarLaw,
    SequentialComposition,
    SparseVector,
    SubsetLaw,
    SubsetSelection,
    ThresholdedHistogram,
    TranscriptLaw,
    UnaryEncoding,
    UpAndDown,
    VectorGaussianMechanism,
    faulty,
)
from dpaudit.mechanisms.faulty import (
    AnswerInTheBranchLaplace,
    BestOfDraws,
    BinaryHashingOdds,
    BinaryOddsForManyValues,
    ClassicalBeyondOneGaussian,
    ClosedEndLaplace,
    DeviationAsScaleLaplace,
    EdgeNoiseForNodes,
    ExponentialMissingFactorTwo,
    FirstReportForAll,
    HadamardOrAnyColumn,
    HalfNoiseHistogram,
    HalfNoiseThreshold,
    HalfSensitivityExponential,
    InvertedScaleLaplace,
    LocalSensitivityLaplace,
    MisprintedNewtonGaussian,
    MixedUnaryCoins,
    MixedUniformsLaplace,
    NoisyMaxMissingFactorTwo,
    NoisyMaxReleasingValue,
    OneEndDegreeHistogram,
    OneForEpsilonGaussian,
    OneHotAtFullEpsilon,
    OnesNeverCleared,
    OverlappingPartCounts,
    PartCountsForReplace,
    PerRowGeometric,
    PowersOfTen,
    PricesFromTheBids,
    RangeOfTheRows,
    RedrawnIntoRange,
    RedrawnMemo,
    SharedNoiseLaplace,
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
    SquaredRatioGeometric,
    SubsetOfWrongSize,
    TrueBitSetTwice,
    TruthAmongTheLies,
    TwiceExposed,
    Twin,
    UnclippedLocalGaussian,
    UndercountedComposition,
    UnderstatedSensitivityLaplace,
    VarianceAsScaleGaussian,
)
from dpaudit.mechanisms.local.name_and_shame import HIDDEN

RUNS = 100_000
ALARM = 1e-8
SCORES = np.array([0.0, 2.0, 1.0, -1.5])
ANSWERS = (0.5, -1.0, 0.0)
BIDS = [1.0, 1.0, 3.01, 1.0]
STAR = nx.star_graph(2)
STAR.degree()  # networkx stores this view in the graph on first use, which does not change the data
THREE_PARTS = [GeometricMechanism(epsilon, query=len) for epsilon in (0.5, 1.0, 0.25)]
CASES = [
    (LaplaceMechanism(0.5, sensitivity=2.0), 1.3),
    (LaplaceMechanism(1.0, query=len), (1, 2, 3)),
    (LaplaceByInverseCDF(0.5, sensitivity=2.0), 1.3),
    (GeometricMechanism(0.5, sensitivity=2), -3),
    (GaussianMechanism(1.0, 1e-5), 4.4),
    (GaussianMechanism(0.5, 0.01, calibration="classical"), 0),
    (DiscreteGaussianMechanism(1.3, 1.0, sensitivity=2), -3),
    (BinomialMechanism(50, 1.0, sensitivity=2), -3),
    (VectorGaussianMechanism(1.0, 1e-5), (1.0, -2.0, 1e6)),
    (LocalGaussianMechanism(1.0, 1e-5, Interval(-1, 3)), 12.0),
    (LocalGaussianMechanism(1.0, 1e-5, Ball(2.0, 3)), (3.0, 4.0, 0.0)),
    (HistogramMechanism(1.0, k=3), [0, 2, 2, 2]),
    (HistogramMechanism(1.0, k=3, sensitivity=2, noise="geometric"), [0, 2, 2, 2]),
    (RandomisedResponse(1.0), 1),
    (RandomisedResponse(2.0, k=6), 3),
    (ExponentialMechanism(1.0), SCORES),
    (ExponentialMechanism(1.0, monotone=True), SCORES),
    (ReportNoisyMax(1.0), SCORES),
    (ReportNoisyMax(2.0, noise="exponential"), SCORES),
    (ReportNoisyMax(2.0, noise="gumbel", monotone=True), SCORES),
    (ReportNoisyMax(2.0), np.linspace(0, 5, 300)),
    (PermuteAndFlip(1.0), SCORES),
    (PermuteAndFlip(1.0, 0.5, monotone=True), SCORES),
    (PostedPriceAuction(2.0, [1.0, 2.0, 3.01, 4.0]), BIDS),
    (EdgeCountMechanism(0.5), STAR),
    (DegreeHistogramMechanism(0.5, 2), STAR),
    (SequentialComposition((VectorGaussianMechanism(1.0, 1e-5), GeometricMechanism(0.5, query=len))), (1.0, -2.0)),
    (ParallelComposition(THREE_PARTS, IntervalOf((1.0, 3.0))), BIDS),
    (RandomisedResponseFold(0.25, 30), 1),
    (UpAndDown(0.25, 30), 3),
    (UnaryEncoding(1.0, 3), 1),
    (UnaryEncoding(1.0, 3, is_optimised=True), 1),
    (ThresholdedHistogram(1.0, 3), 1),
    (LocalHashing(1.0, 8), 5),
    (SubsetSelection(1.0, 3, size=2), 1),
    (HadamardResponse(1.0, 10), 3),
    (MemoisedBits(2.0, 1.0, 3, reports=4, is_optimised=True), 1),
    (MemoisedResponse(2.0, 1.0, 3, reports=4), 1),
    (SparseVector(1.0), ANSWERS),
    (SparseVector(2.0, 2, threshold=0.5, refresh=True), ANSWERS),
    (SparseVector(2.0, 3, monotone=True), ANSWERS),
    (NameAndShame(0.05), [7, 0, 7]),
    (RareLeakLaplace(0.5, 0.01), 1.3),
    (GroupTightMechanism(1.0, 0.01), 3),
    (GroupTightMechanism(0.5, start=0.1), 4),
    (UnderstatedSensitivityLaplace(0.5), 7.0),
    (InvertedScaleLaplace(0.5), 7.0),
    (ClosedEndLaplace(0.5), 7.0),
    (PerRowGeometric(0.5), 7),
    (SquaredRatioGeometric(0.5), 7),
    (VarianceAsScaleGaussian(8.0, 1e-5), 1.0),
    (ClassicalBeyondOneGaussian(10.0, 0.1), 1.0),
    (OneForEpsilonGaussian(1.1, 1e-5), 1.0),
    (MisprintedNewtonGaussian(1.0, 1e-5), 1.0),
    (UnclippedLocalGaussian(1.0, 1e-5, Interval(-1, 3)), 12.0),
    (UnclippedLocalGaussian(1.0, 1e-5, Ball(2.0, 3)), (3.0, 4.0, 0.0)),
    (HalfNoiseHistogram(1.0, k=3), [0, 2, 2, 2]),
    (TruthAmongTheLies(1.0, k=3), 2),
    (BinaryOddsForManyValues(1.0), 2),
    (ExponentialMissingFactorTwo(1.0), SCORES),
    (HalfSensitivityExponential(1.0), SCORES),
    (PricesFromTheBids(1.0), BIDS),
    (NoisyMaxMissingFactorTwo(1.0), SCORES),
    (NoisyMaxReleasingValue(1.0, 4), SCORES),
    (UndercountedComposition(LaplaceMechanism(0.5), 3), 7.0),
    (OverlappingPartCounts(0.5, (0.0, 1.0, 3.0, 3.01)), BIDS),
    (PartCountsForReplace(0.5, (1.0, 3.0)), BIDS),
    (EdgeNoiseForNodes(0.5), STAR),
    (OneEndDegreeHistogram(0.5, max_degree=2), STAR),
    (SparseVectorUnscaledNoise(1.0, cutoff=2), ANSWERS),
    (SparseVectorWithoutQueryNoise(1.0), ANSWERS),
    (SparseVectorWithoutCutoff(1.0), ANSWERS),
    (TwiceExposed(0.05), [7, 0, 7]),
    (LocalSensitivityLaplace(0.5), [0, 0]),
    (BestOfDraws(0.5), 7.0),
    (DeviationAsScaleLaplace(0.5), 7.0),
    (RedrawnIntoRange(0.5), [0, 1, 1]),
    (RangeOfTheRows(0.5), [0, 1, 1]),
    (PowersOfTen(1.0), SCORES),
    (OneHotAtFullEpsilon(1.0), 2),
    (MixedUnaryCoins(1.0, 3), 1),
    (TrueBitSetTwice(1.0, 3), 1),
    (OnesNeverCleared(1.0, 3), 1),
    (HalfNoiseThreshold(1.0, 3), 1),
    (BinaryHashingOdds(1.0), 5),
    (SubsetOfWrongSize(1.0, 8, size=1), 1),
    (HadamardOrAnyColumn(1.0), 3),
    (RedrawnMemo(2.0, 1.0, 3), 1),
    (FirstReportForAll(1.0, 2.0, 3), 1),
]


def cells_of(law, outputs):
    """Return counts and probabilities of cells: outcomes and the rest, or twenty equal parts of the law's CDF.

    The outcomes are all of a law with finitely many, else the forty around the location. For vectors, the cells are
    those of each coordinate, and the quarters into which the medians of neighbouring coordinates cut the plane; for
    transcripts, each transcript is a cell.
    """
    if isinstance(law, (TranscriptLaw, RowLaw, SubsetLaw)):
        base, n_columns = int(outputs.max()) + 2, outputs.shape[1]
        weights = base ** np.arange(n_columns)
        rows = np.arange(base**n_columns)[:, None] // weights % base - 1  # all rows of numbers from -1 to the largest
        counts = np.bincount((outputs + 1) @ weights, minlength=base**n_columns)
        probabilities = np.exp(law.log_density(rows))
        return with_the_rest(counts[probabilities > 0], probabilities[probabilities > 0], len(outputs))
    if outputs.ndim == 2:
        return cells_of_vectors(law.marginals, outputs)
    if isinstance(law, FiniteLaw):
        values = np.arange(len(law.log_probabilities))
    elif isinstance(law, (GeometricLaw, DiscreteGaussianLaw, BinomialLaw)):
        values = np.arange(-20, 20) + law.location
    elif isinstance(law, DiscreteLaw):
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
        n_columns = len(law.rows[0]) if isinstance(law, RowLaw) else getattr(law, "k", 3)
        assert outputs.shape[1:] == (() if isinstance(law, ScalarLaw) else (n_columns,))
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
        assert isinstance(mechanism, Twin) == hasattr(mechanism, "truth")

    def test_outputs_follow_the_law(self, mechanism, dataset):
        assert not is_far(mechanism.law(dataset), mechanism.sample(dataset, RUNS, np.random.default_rng(11)))


class TestMechanisms(MechanismConformance):
    pass


def test_every_mechanism_with_a_law_is_here():
    """Except those whose laws have no cells here, or whose outputs may be NaN."""
    held = (getattr(mechanisms, name) for name in mechanisms.__all__)
    right = {found for found in held if hasattr(found, "sample") and hasattr(found, "law")}
    twins = {found for name in faulty.__all__ if issubclass(found := getattr(faulty, name), Twin)} - {Twin}
    assert (right | twins) - {type(mechanism) for mechanism, _ in CASES} == {
        AdaptiveComposition,
        NoisyThreshold,
        AnswerInTheBranchLaplace,
        MixedUniformsLaplace,
        SharedNoiseLaplace,
        SparseVectorReleasingValue,
    }


def test_the_histogram_tells_the_wrong_law():
    for right, wrong, dataset in [
        (LaplaceMechanism(0.5), LaplaceMechanism(0.55), 1.0),
        (GeometricMechanism(0.5), SquaredRatioGeometric(0.5), 1),
        (GaussianMechanism(8.0, 1e-5), VarianceAsScaleGaussian(8.0, 1e-5), 1.0),
        (DiscreteGaussianMechanism(2.0, 1.0), DiscreteGaussianMechanism(2.1, 1.0), 1),
        (BinomialMechanism(100, 1.0), BinomialMechanism(116, 1.0), 1),
        (VectorGaussianMechanism(1.0, 1e-5), VectorGaussianMechanism(1.05, 1e-5), (1.0, -2.0, 0.0)),
        (HistogramMechanism(0.5, k=3, sensitivity=2), HalfNoiseHistogram(0.5, k=3), [0, 2]),
        (ExponentialMechanism(1.0), ExponentialMissingFactorTwo(1.0), SCORES),
        (ReportNoisyMax(1.0), ReportNoisyMax(1.0, noise="gumbel"), SCORES),
        (ExponentialMechanism(1.0), PermuteAndFlip(1.0), SCORES),
        (PostedPriceAuction(1.0, [1.0, 3.01]), PostedPriceAuction(1.0, [1.0, 3.01], monotone=True), BIDS),
        (SparseVector(2.0, 2), SparseVector(2.0, 2, refresh=True), ANSWERS),
        (NameAndShame(0.05), TwiceExposed(0.05), [7, 0, 7]),
        (RareLeakLaplace(0.5, 0.01), LaplaceMechanism(0.5), 1.3),
        (RandomisedResponse(5.0, k=50), RandomisedResponse(5.0, k=60), 45),
        (UnaryEncoding(1.0, 3), UnaryEncoding(1.0, 3, is_optimised=True), 1),
        (SubsetSelection(1.0, 3, size=2), SubsetSelection(1.1, 3, size=2), 1),
        (MemoisedBits(2.0, 1.0, 3, reports=4), RedrawnMemo(2.0, 1.0, 3), 1),
    ]:
        assert is_far(right.law(dataset), wrong.sample(dataset, RUNS, np.random.default_rng(12)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_histogram_tells_dependent_coordinates(sign):
    law = VectorGaussianMechanism(1.0, 1e-5).law((0.0, 0.0))
    noise = GaussianMechanism(1.0, 1e-5).sample(0.0, RUNS, np.random.default_rng(12))
    assert not is_far(law.marginals[0], noise)
    assert is_far(law, np.stack([noise, sign * noise], axis=1))


def test_false_alarms_of_the_suite_stay_within_what_is_declared():
    """One histogram per case at 1e-8, and ten tests of noise samplers at 1e-7: together less than 2e-6."""
    assert len(CASES) * ALARM + 10 * 1e-7 < 2e-6
    assert math.isclose(ALARM, 1e-8)
