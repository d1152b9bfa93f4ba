"""Arguments outside their range and datasets of other kinds: an error of the right class says what to do."""

import math

import numpy as np
import pytest

from dpaudit import mechanisms as m
from dpaudit.audit.claims.claim import PureDP
from dpaudit.audit.errors import ClaimError, DatasetError, OptionError
from dpaudit.mechanisms import faulty as f

CLAIM_ERRORS = [
    # group privacy
    (lambda: m.group_delta(-1, 0.1, 2), "epsilon=-1 is not allowed"),
    (lambda: m.group_delta(1, 1.5, 2), "delta=1.5 is not"),
    (lambda: m.group_delta(1, 0.1, 0), "k=0 is not a number of steps; use a whole number k >= 1."),
    (lambda: m.group_delta(1, 0.1, 1.5), "k=1.5 is not a number of steps"),
    (lambda: m.group_delta(1, 0.1, 2, "best"), 'form=\'best\' is unknown; use "sum" or "product".'),
    (lambda: m.GroupTightMechanism(1.0), "start=0 with delta=0 gives a bit that is never 1"),
    (lambda: m.GroupTightMechanism(-1.0, 0.1), "epsilon=-1.0 is not allowed"),
    (lambda: m.GroupTightMechanism(1.0, 0.1, start=1.0), "start=1.0 is not"),
    (lambda: f.LocalSensitivityLaplace(0.0), "epsilon=0.0 is not allowed"),
    (lambda: f.LocalSensitivityLaplace(1.0, 0), "most_rows=0 is not a number of rows"),
    # faulty noise shape
    (lambda: f.BoundedLaplace(0.5, reach=0), "reach=0 is not allowed"),
    (lambda: f.BoundedLaplace(-1), "epsilon=-1 is not allowed"),
    (lambda: f.FewValuesLaplace(0.5, bits=0), "bits=0 is not a number of random bits"),
    (lambda: f.OneSidedLaplace(math.nan), "epsilon=nan is not allowed"),
    (lambda: f.BestOfDraws(0.5, k=0), "k=0 is not a number of draws"),
    (lambda: f.RedrawnIntoRange(0.5, 0), "most=0 is not a number of rows"),
    # faulty outputs
    (lambda: f.KeyedCounts(1.0, 0.01, "some"), "threshold='some' is unknown; use one of noisy, exact, none."),
    (lambda: f.KeyedCounts(1.0, 0.6), "delta=0.6 is not allowed"),
    (lambda: f.SmallCount(0, 5), "epsilon=0 is not allowed"),
    (lambda: f.NaiveLaplace(0), "epsilon=0 is not allowed"),
    # faulty selection
    (lambda: f.PowersOfTen(0), "epsilon=0 is not allowed"),
    (lambda: f.OneNoiseForAll(-1), "epsilon=-1 is not allowed"),
    (lambda: f.TopCandidates(1.0, k=0), "k=0 is not a number of winners"),
    (lambda: f.TopCandidates(1.0, charged=0), "charged=0 is not a number of winners paid for"),
    (lambda: f.BiasedCoinResponse(1.0), "bias=1.0 is not allowed"),
    (lambda: f.OneHotAtFullEpsilon(1.0, k=1), "k=1 is not a number of values"),
    # faulty twins
    (lambda: f.InvertedScaleLaplace(0), "epsilon=0 is not allowed; use 0 < epsilon"),
    (lambda: f.SquaredRatioGeometric(math.nan), "epsilon=nan is not allowed"),
    (lambda: f.ExponentialMissingFactorTwo(1, sensitivity=-1), "sensitivity=-1 is not allowed"),
    (lambda: f.NoisyMaxMissingFactorTwo(1, noise="none"), "noise='none' is unknown"),
    (lambda: f.NoisyMaxReleasingValue(1, 0), "n_candidates=0 is not a number of counts; use a whole number"),
    (lambda: f.UnderstatedSensitivityLaplace(1, bound=0), "sensitivity=0 is not allowed"),
    (lambda: f.PerRowGeometric(1, rows_per_user=0), "sensitivity=0 is not allowed"),
    (lambda: f.TruthAmongTheLies(1, k=1), "k=1 is not a number of values"),
    (lambda: f.BinaryOddsForManyValues(1, k=1), "k=1 is not a number of values"),
    (lambda: f.ClassicalBeyondOneGaussian(0, 0.1), "epsilon=0 is not allowed"),
    (lambda: f.ClassicalBeyondOneGaussian(10, 0), "delta=0 is not allowed"),
    (lambda: f.VarianceAsScaleGaussian(-1, 0.1), "epsilon=-1 is not allowed"),
    # frequency oracles
    (lambda: m.UnaryEncoding(0.0, 3), "epsilon=0.0 is not allowed"),
    (lambda: m.UnaryEncoding(1.0, 1), "k=1 is not a number of values"),
    (lambda: m.ThresholdedHistogram(1.0, 3, math.nan), "threshold=nan is not allowed"),
    (lambda: m.LocalHashing(1.0, 3, g=1), "g=1 is not a number of hashes"),
    (lambda: m.SubsetSelection(1.0, 3, size=3), "size=3 of k=3 values says nothing"),
    (lambda: m.LocalHashing(20.0, 3), "g=485165196 with 16 hash functions is too much"),
    (lambda: m.UnaryEncoding(30.0, 3), "epsilon=30.0 is not allowed; use 0 < epsilon < 30"),
    (lambda: m.MemoisedBits(1.0, 1.0, 3), "use epsilon_first < epsilon_permanent"),
    (lambda: f.SubsetOfWrongSize(1.0, 3), "size=2 keeps the claim; use a size below the best, 1"),
    # name and shame
    (lambda: m.NameAndShame(0), "delta=0 is not allowed; use 0 < delta < 1"),
    (lambda: m.NameAndShame(1.0), "delta=1.0 is not allowed"),
    (lambda: m.NameAndShame(math.nan), "delta=nan is not allowed"),
    (lambda: f.TwiceExposed(0.5), "delta=0.5 is not allowed; use 0 < delta < 0.5"),
    # randomised response
    (lambda: m.RandomisedResponse(0), "epsilon=0 is not allowed; use 0 < epsilon < inf (the truth is"),
    (lambda: m.RandomisedResponse(math.nan), "epsilon=nan is not allowed"),
    (lambda: m.RandomisedResponse(1, k=1), "k=1 is not a number of values; use a whole number k >= 2."),
    (lambda: m.RandomisedResponse(1, k=2.5), "k=2.5 is not a number of values"),
    # repeated response
    (lambda: m.RandomisedResponseFold(0, 3), "epsilon_each=0 is not allowed; use 0 < epsilon_each"),
    (lambda: m.RandomisedResponseFold(1, 0), "n=0 is not a number of responses"),
    (lambda: m.UpAndDown(1, 2.5), "n=2.5 is not a number of responses"),
    # binomial
    (lambda: m.BinomialMechanism(0, 1.0), "n_flips=0 is not allowed; use an even number from 2 to"),
    (lambda: m.BinomialMechanism(7, 1.0), "n_flips=7 is not allowed"),
    (lambda: m.BinomialMechanism(2.0**30, 1.0), "n_flips=1073741824.0 is not allowed"),
    (lambda: m.BinomialMechanism(math.nan, 1.0), "n_flips=nan is not allowed"),
    (lambda: m.BinomialMechanism(10, -1.0), "epsilon=-1.0 is not allowed"),
    (lambda: m.BinomialMechanism(10, math.nan), "epsilon=nan is not allowed"),
    (lambda: m.BinomialMechanism(10, 1.0, sensitivity=0), "sensitivity=0 is not allowed"),
    (lambda: m.BinomialMechanism(10, 1.0, sensitivity=1.5), "sensitivity=1.5 is not a whole number"),
    (lambda: m.BinomialMechanism(10, 1.0, sensitivity=11), "n_flips=10 gives delta 1 at epsilon=1, which claims"),
    # discrete gaussian
    (lambda: m.DiscreteGaussianMechanism(0.0, 1.0), "sigma=0.0 is not allowed"),
    (lambda: m.DiscreteGaussianMechanism(math.nan, 1.0), "sigma=nan is not allowed"),
    (lambda: m.DiscreteGaussianMechanism(1e9, 1.0), "sigma=1000000000.0 is too large for a table"),
    (lambda: m.DiscreteGaussianMechanism(0.05, 1.0), "sigma=0.05 gives delta 1 at epsilon=1"),
    (lambda: m.DiscreteGaussianMechanism(1.0, -1.0), "epsilon=-1.0 is not allowed"),
    (lambda: m.DiscreteGaussianMechanism(1.0, 1.0, sensitivity=0), "sensitivity=0 is not allowed"),
    (lambda: m.DiscreteGaussianMechanism(1.0, 1.0, sensitivity=1.5), "sensitivity=1.5 is not a whole number"),
    # gaussian
    (lambda: m.GaussianMechanism(-1, 0.1), "epsilon=-1 is not allowed; use 0 <= epsilon"),
    (lambda: m.GaussianMechanism(math.nan, 0.1), "epsilon=nan is not allowed"),
    (lambda: m.GaussianMechanism(math.inf, 0.1), "epsilon=inf is not allowed"),
    (lambda: m.GaussianMechanism(1, 0), "delta=0 is not allowed; use 0 < delta < 1 (Gaussian noise has no pure"),
    (lambda: m.GaussianMechanism(1, 1.0), "delta=1.0 is not allowed"),
    (lambda: m.GaussianMechanism(1, 0.1, sensitivity=0), "sensitivity=0 is not allowed; use 0 < sensitivity"),
    (lambda: m.GaussianMechanism(1, 0.1, calibration="exact"), "calibration='exact' is unknown; use \"analytic\" or"),
    (lambda: m.GaussianMechanism(2, 0.1, calibration="classical"), "epsilon=2 is outside the classical theorem; use"),
    (lambda: m.GaussianMechanism(0, 0.1, calibration="classical"), "epsilon=0 is not allowed; use 0 < epsilon"),
    (lambda: m.analytic_gaussian_scale(1, 0), "delta=0 is not allowed; use 0 < delta < 1 (Gaussian noise has no pure"),
    (lambda: m.analytic_gaussian_scale(1, 1.5), "delta=1.5 is not allowed; use 0 < delta < 1"),
    (lambda: m.analytic_gaussian_scale(1, math.nan), "delta=nan is not allowed"),
    (lambda: m.analytic_gaussian_scale(-0.1, 0.1), "epsilon=-0.1 is not allowed; use 0 <= epsilon"),
    (lambda: m.analytic_gaussian_scale(math.nan, 0.1), "epsilon=nan is not allowed"),
    (lambda: m.analytic_gaussian_scale(1, 0.1, 0.0), "sensitivity=0.0 is not allowed; use 0 < sensitivity"),
    (lambda: m.analytic_gaussian_scale(1, 0.1, math.inf), "sensitivity=inf is not allowed"),
    (lambda: m.analytic_gaussian_scale(0, 1e-300, 1e9), "need a standard deviation beyond 1e308; use a larger"),
    (lambda: m.gaussian_loss_tail(-1, 1), "epsilon=-1 is not allowed"),
    (lambda: m.gaussian_loss_tail(1, math.nan), "scale=nan is not allowed"),
    (lambda: m.gaussian_delta(1, 0), "scale=0 is not allowed; use 0 < scale"),
    (lambda: m.gaussian_delta(-1, 1), "epsilon=-1 is not allowed; use 0 <= epsilon"),
    # gaussian vector
    (lambda: m.VectorGaussianMechanism(1, 0), "delta=0 is not allowed; use 0 < delta < 1 (Gaussian noise has no pure"),
    (lambda: m.VectorGaussianMechanism(-1, 0.1), "epsilon=-1 is not allowed"),
    (lambda: m.VectorGaussianMechanism(1, 0.1, sensitivity=0), "sensitivity=0 is not allowed"),
    (lambda: m.LocalGaussianMechanism(1, 1.0, m.Ball(1.0, 1)), "delta=1.0 is not allowed"),
    (lambda: m.LocalGaussianMechanism(1, 0.1, (0, 1)), "domain=(0, 1) is not a domain; use Interval(low, high)"),
    (lambda: f.UnclippedLocalGaussian(1, 0.1, 2.0), "domain=2.0 is not a domain"),
    (lambda: m.Interval(1, 1), "low=1 and high=1 bound no interval; use finite numbers with low < high"),
    (lambda: m.Interval(0, math.nan), "high=nan bound no interval"),
    (lambda: m.Interval(-math.inf, 0), "low=-inf and high=0 bound no interval"),
    (lambda: m.Ball(1.0, 0), "n_coords=0 is not a number of coordinates"),
    (lambda: m.Ball(0, 1), "radius=0 is not allowed; use 0 < radius"),
    (lambda: m.Ball(math.inf, 1), "radius=inf is not allowed"),
    # geometric
    (lambda: m.GeometricMechanism(0), "epsilon=0 is not allowed; use 0 < epsilon < inf"),
    (lambda: m.GeometricMechanism(math.nan), "epsilon=nan is not allowed"),
    (lambda: m.GeometricMechanism(1, sensitivity=0), "sensitivity=0 is not allowed"),
    (lambda: m.GeometricMechanism(1, sensitivity=1.5), "sensitivity=1.5 is not a whole number; use 1, 2, … or Laplace"),
    (lambda: m.GeometricMechanism(1e-10), "epsilon=1e-10 is too small for exact integers"),
    # histogram
    (lambda: m.HistogramMechanism(0, k=3), "epsilon=0 is not allowed"),
    (lambda: m.HistogramMechanism(math.nan, k=3), "epsilon=nan is not allowed"),
    (lambda: m.HistogramMechanism(1, k=0), "k=0 is not a number of categories; use a whole number"),
    (lambda: m.HistogramMechanism(1, k=2.5), "k=2.5 is not a number of categories"),
    (lambda: m.HistogramMechanism(1, k=3, sensitivity=0.5), "sensitivity=0.5 is not allowed; use 1 <= sensitivity"),
    (lambda: m.HistogramMechanism(1, k=3, sensitivity=math.inf), "sensitivity=inf is not allowed"),
    (lambda: m.HistogramMechanism(1, k=3, noise="gaussian"), "noise='gaussian' is unknown; use \"laplace\" or"),
    (lambda: f.HalfNoiseHistogram(1, k=0), "k=0 is not a number of categories"),
    # laplace
    (lambda: m.LaplaceMechanism(0), "epsilon=0 is not allowed; use 0 < epsilon < inf (the noise has scale"),
    (lambda: m.LaplaceMechanism(-1), "epsilon=-1 is not allowed"),
    (lambda: m.LaplaceMechanism(math.nan), "epsilon=nan is not allowed"),
    (lambda: m.LaplaceMechanism(math.inf), "epsilon=inf is not allowed"),
    (lambda: m.LaplaceMechanism(1, sensitivity=0), "sensitivity=0 is not allowed; use 0 < sensitivity < inf"),
    # rare leak
    (lambda: m.RareLeakLaplace(0.5, 0.0), "delta=0.0 is not allowed; use 0 < delta < 1"),
    (lambda: m.RareLeakLaplace(0.5, 1.0), "delta=1.0 is not allowed"),
    (lambda: m.RareLeakLaplace(0.0, 0.1), "epsilon=0.0 is not allowed"),
    (lambda: m.RareLeakLaplace(1.0, 0.1, sensitivity=math.inf), "sensitivity=inf is not allowed"),
    # exponential
    (lambda: m.ExponentialMechanism(0), "epsilon=0 is not allowed; use 0 < epsilon < inf"),
    (lambda: m.ExponentialMechanism(math.nan), "epsilon=nan is not allowed"),
    (lambda: m.ExponentialMechanism(1, -2.0), "sensitivity=-2.0 is not allowed; use 0 < sensitivity < inf"),
    (lambda: m.ExponentialMechanism(1, 0), "sensitivity=0 is not allowed; use 0 < sensitivity < inf (a score's "),
    (lambda: m.ExponentialMechanism(1, 0), "if none ever changes, publish the best candidate"),
    (lambda: m.EachCandidate(max, ()), "candidates=() is an empty range; give at least one"),
    # noisy max
    (lambda: m.ReportNoisyMax(0), "epsilon=0 is not allowed; use 0 < epsilon < inf"),
    (lambda: m.ReportNoisyMax(math.nan), "epsilon=nan is not allowed"),
    (lambda: m.ReportNoisyMax(1, math.inf), "sensitivity=inf is not allowed"),
    (
        lambda: m.ReportNoisyMax(1, noise="cauchy"),
        "noise='cauchy' is unknown; use one of laplace, exponential, gumbel.",
    ),
    # sparse vector
    (lambda: m.SparseVector(0.0), "epsilon=0.0 is not allowed"),
    (lambda: m.SparseVector(math.nan), "epsilon=nan"),
    (lambda: m.SparseVector(1.0, 0), "cutoff=0 is not a number of answers; use a whole number"),
    (lambda: m.SparseVector(1.0, 1.5), "cutoff=1.5 is not a number of answers"),
    (lambda: m.SparseVector(1.0, threshold=math.inf), "threshold=inf"),
    (lambda: m.SparseVector(1.0, sensitivity=-1), "sensitivity=-1 is not allowed"),
    (lambda: f.SparseVectorUnscaledNoise(1.0, cutoff=0), "cutoff=0 is not a number of answers"),
    (lambda: f.SparseVectorWithoutCutoff(-1.0), "epsilon=-1.0 is not allowed"),
    (lambda: m.NoisyThreshold(PureDP(1), 0.0, 1.0), "threshold_scale=0.0 is not allowed"),
    (lambda: m.NoisyThreshold(PureDP(1), 1.0, -1.0), "query_scale=-1.0 is not allowed"),
    (lambda: m.NoisyThreshold(PureDP(1), 1.0, 0.0, release_value=True), "would release exact answers"),
]
OTHER_ERRORS = [
    (lambda: m.GroupTightMechanism(1.0, 0.1).law(-1), DatasetError, "answered -1, which is not a number of steps"),
    (lambda: m.GroupTightMechanism(1.0, 0.1).law(10**6), DatasetError, "use 0 to 10000"),
    (lambda: m.GroupTightMechanism(1.0, 0.1).law(0.5), DatasetError, "not a whole number"),
    (lambda: f.LocalSensitivityLaplace(1.0).law([0] * 3), DatasetError, "a dataset of 3 rows has more than most_rows"),
    (lambda: f.RangeOfTheRows(0.5).law([2]), DatasetError, "a row is neither 0 nor 1"),
    (lambda: f.RedrawnIntoRange(0.5, 1).law([1, 1]), DatasetError, "2 rows are 1, more than most=1"),
    (lambda: f.OnlyYesRandomised(1.0).law(2), DatasetError, "dataset=2 is not one of the k=2 values"),
    (lambda: m.HadamardResponse(1.0, 3).law(3), DatasetError, "dataset=3 is not one of the k=3 values"),
    (lambda: m.NameAndShame(0.1).law([]), DatasetError, "dataset=[] is not a list of rows"),
    (lambda: m.NameAndShame(0.1).law(3), DatasetError, "dataset=3 is not a list of rows"),
    (lambda: m.NameAndShame(0.1).law([-1]), DatasetError, "each a whole number from 0"),
    (lambda: m.NameAndShame(0.1).law([0.5]), DatasetError, "is not a list of rows"),
    (lambda: m.NameAndShame(0.1).law([2.0**53]), DatasetError, "is not a list of rows"),
    (lambda: m.NameAndShame(0.1).sample(["Ann"], 1, np.random.default_rng()), DatasetError, "dataset=['Ann'] is not"),
    (lambda: m.RandomisedResponseFold(1, 3).law(2), DatasetError, "dataset=2 is not one of the k=2 values"),
    (lambda: m.UpAndDown(1, 3).sample(0.5, 3, None), DatasetError, "answered 0.5, which is not a whole number"),
    (lambda: m.RareLeakLaplace(1.0, 0.1).law("Ann"), DatasetError, "'Ann', which is not a finite number"),
    (lambda: m.LeakyLaplaceLaw(m.LaplaceLaw(0, 1), 1000.0, 0.0), OptionError, "probability=0.0 is not allowed"),
    (lambda: m.SparseVector(1.0).law([]), DatasetError, "the query answered an empty vector"),
    (lambda: m.SparseVector(1.0).sample([math.nan], 1, np.random.default_rng()), DatasetError, "is nan"),
    (lambda: m.SparseVector(1.0, 9).law([0.0] * 40), DatasetError, "transcripts, too many to integrate their law"),
    (lambda: m.SparseVector(1.0).law([0.0, 1e9]), DatasetError, "scales of the threshold's noise, too far"),
    (lambda: m.SparseVector(1.0).law([0.0] * 63), DatasetError, "63 answers have 64 transcripts, too many"),
    (lambda: m.TranscriptLaw((), ()), OptionError, "transcripts=()"),
    (lambda: m.TranscriptLaw(((0,), (1,)), (0.0, 0.0)), OptionError, "sum of probabilities"),
]


@pytest.mark.parametrize(
    ("call", "error", "message"), [*((call, ClaimError, message) for call, message in CLAIM_ERRORS), *OTHER_ERRORS]
)
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
