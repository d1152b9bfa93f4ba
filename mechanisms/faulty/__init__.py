"""Known bugs: mechanisms that do not satisfy what they claim, each with the guarantee it truly has."""

from .clipping import ClippedAfterNoise
from .composition import SharedNoiseLaplace, UndercountedComposition
from .data_scale import FlooredScaleMean, ScaleFromTheData, SignificantDigitsLaplace
from .exponential import ExponentialMissingFactorTwo, HalfSensitivityExponential
from .flaw import Flaw
from .floating_point import NaiveGaussian, NaiveLaplace, SinglePrecisionNoise
from .gaussian import (
    ClassicalBeyondOneGaussian,
    MisprintedNewtonGaussian,
    OneForEpsilonGaussian,
    VarianceAsScaleGaussian,
)
from .geometric import PerRowGeometric, SquaredRatioGeometric
from .graphs import EdgeNoiseForNodes, OneEndDegreeHistogram
from .group import LocalSensitivityLaplace
from .histogram import HalfNoiseHistogram
from .inverse_cdf import AnswerInTheBranchLaplace, ClosedEndLaplace, MixedUniformsLaplace
from .laplace import InvertedScaleLaplace, UnderstatedSensitivityLaplace
from .local_gaussian import UnclippedLocalGaussian
from .name_and_shame import TwiceExposed
from .noise_shape import (
    BestOfDraws,
    BoundedLaplace,
    DeviationAsScaleLaplace,
    FewValuesLaplace,
    OneSidedLaplace,
    RedrawnUntilNonnegative,
    SeededByTheData,
    TowardsZeroLaplace,
)
from .noisy_max import NoisyMaxMissingFactorTwo, NoisyMaxReleasingValue
from .outputs import BesideExact, CheckedCount, GroupMeans, JsonReport, KeyedCounts, SmallCount
from .parallel import OverlappingPartCounts, PartCountsForReplace
from .pumpkins import PricesFromTheBids
from .randomised_response import BinaryOddsForManyValues, TruthAmongTheLies
from .ranged_counts import RangedCount, RangeOfTheRows, RedrawnIntoRange
from .responses import BiasedCoinResponse, OneHotAtFullEpsilon, OnlyYesRandomised, RememberedResponse
from .selection import (
    FlipWithoutPermuting,
    OneNoiseForAll,
    PowersOfTen,
    TopCandidates,
    UnderflowingExponential,
    WinnerWithExactCount,
    WinnerWithNoisyCount,
)
from .sparse_vector import (
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
)
from .subsampling import SampledTotal
from .twin import Twin
from .vectors import ConsistentWithTheTotal, LaplaceOfScale

__all__ = [
    "Twin",
    "UnderstatedSensitivityLaplace",
    "InvertedScaleLaplace",
    "AnswerInTheBranchLaplace",
    "MixedUniformsLaplace",
    "ClosedEndLaplace",
    "PerRowGeometric",
    "SquaredRatioGeometric",
    "VarianceAsScaleGaussian",
    "ClassicalBeyondOneGaussian",
    "OneForEpsilonGaussian",
    "MisprintedNewtonGaussian",
    "UnclippedLocalGaussian",
    "HalfNoiseHistogram",
    "TruthAmongTheLies",
    "BinaryOddsForManyValues",
    "ExponentialMissingFactorTwo",
    "HalfSensitivityExponential",
    "PricesFromTheBids",
    "NoisyMaxMissingFactorTwo",
    "NoisyMaxReleasingValue",
    "SparseVectorReleasingValue",
    "SparseVectorUnscaledNoise",
    "SparseVectorWithoutQueryNoise",
    "SparseVectorWithoutCutoff",
    "TwiceExposed",
    "LocalSensitivityLaplace",
    "SharedNoiseLaplace",
    "UndercountedComposition",
    "OverlappingPartCounts",
    "PartCountsForReplace",
    "EdgeNoiseForNodes",
    "OneEndDegreeHistogram",
    "Flaw",
    "BoundedLaplace",
    "OneSidedLaplace",
    "FewValuesLaplace",
    "RedrawnUntilNonnegative",
    "TowardsZeroLaplace",
    "SeededByTheData",
    "BestOfDraws",
    "DeviationAsScaleLaplace",
    "RangedCount",
    "RedrawnIntoRange",
    "RangeOfTheRows",
    "ScaleFromTheData",
    "FlooredScaleMean",
    "SignificantDigitsLaplace",
    "ClippedAfterNoise",
    "LaplaceOfScale",
    "ConsistentWithTheTotal",
    "PowersOfTen",
    "UnderflowingExponential",
    "FlipWithoutPermuting",
    "OneNoiseForAll",
    "WinnerWithExactCount",
    "WinnerWithNoisyCount",
    "TopCandidates",
    "BiasedCoinResponse",
    "OnlyYesRandomised",
    "RememberedResponse",
    "OneHotAtFullEpsilon",
    "SampledTotal",
    "BesideExact",
    "JsonReport",
    "KeyedCounts",
    "SmallCount",
    "GroupMeans",
    "CheckedCount",
    "NaiveLaplace",
    "NaiveGaussian",
    "SinglePrecisionNoise",
]
