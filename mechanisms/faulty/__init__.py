"""Known bugs: mechanisms that break their claims, each with the strongest guarantee known to hold."""

from .composition.faulty_composition import SharedNoiseLaplace, UndercountedComposition
from .composition.faulty_group import LocalSensitivityLaplace
from .composition.faulty_outputs import BesideExact, CheckedCount, GroupMeans, JsonReport, KeyedCounts, SmallCount
from .composition.faulty_parallel import OverlappingPartCounts, PartCountsForReplace
from .composition.faulty_subsampling import SampledTotal
from .flaw import Flaw
from .local.faulty_local_gaussian import UnclippedLocalGaussian
from .local.faulty_memoised_reports import FirstReportForAll, RedrawnMemo
from .local.faulty_name_and_shame import TwiceExposed
from .local.faulty_oracles import (
    BinaryHashingOdds,
    HadamardOrAnyColumn,
    HalfNoiseThreshold,
    HashChosenByTheValue,
    MixedUnaryCoins,
    OnesNeverCleared,
    SubsetInOrder,
    SubsetOfWrongSize,
    TrueBitSetTwice,
)
from .local.faulty_randomised_response import BinaryOddsForManyValues, TruthAmongTheLies
from .local.faulty_responses import BiasedCoinResponse, OneHotAtFullEpsilon, OnlyYesRandomised, RememberedResponse
from .noise.clipping import ClippedAfterNoise
from .noise.data_scale import FlooredScaleMean, ScaleFromTheData, SignificantDigitsLaplace
from .noise.faulty_gaussian import (
    ClassicalBeyondOneGaussian,
    MisprintedNewtonGaussian,
    OneForEpsilonGaussian,
    VarianceAsScaleGaussian,
)
from .noise.faulty_geometric import MisprintedTableGeometric, PerRowGeometric, SquaredRatioGeometric
from .noise.faulty_graph_statistics import EdgeNoiseForNodes, OneEndDegreeHistogram
from .noise.faulty_histogram import HalfNoiseHistogram
from .noise.faulty_inverse_cdf import AnswerInTheBranchLaplace, ClosedEndLaplace, MixedUniformsLaplace
from .noise.faulty_laplace import InvertedScaleLaplace, UnderstatedSensitivityLaplace
from .noise.faulty_vectors import ConsistentWithTheTotal, LaplaceOfScale
from .noise.floating_point import NaiveGaussian, NaiveLaplace, SinglePrecisionNoise
from .noise.noise_shape import (
    BestOfDraws,
    BoundedLaplace,
    DeviationAsScaleLaplace,
    FewValuesLaplace,
    OneSidedLaplace,
    RedrawnUntilNonnegative,
    SeededByTheData,
    TowardsZeroLaplace,
)
from .noise.ranged_counts import RangedCount, RangeOfTheRows, RedrawnIntoRange
from .selection.faulty_auction import PricesFromTheBids
from .selection.faulty_exponential import ExponentialMissingFactorTwo, HalfSensitivityExponential
from .selection.faulty_noisy_max import NoisyMaxMissingFactorTwo, NoisyMaxReleasingValue
from .selection.faulty_selection import (
    FlipWithoutPermuting,
    OneNoiseForAll,
    PowersOfTen,
    TopCandidates,
    UnderflowingExponential,
    WinnerWithExactCount,
    WinnerWithNoisyCount,
)
from .selection.faulty_sparse_vector import (
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
)
from .synthetic.faulty_tables import (
    LeakedRow,
    LearnedCategories,
    LearnedRange,
    MarginalsForReplace,
    MarginalsNotSplit,
    RowsOfTheData,
    SharesOfPresentRows,
)
from .twin import Twin

__all__ = [
    "Twin",
    "UnderstatedSensitivityLaplace",
    "InvertedScaleLaplace",
    "AnswerInTheBranchLaplace",
    "MixedUniformsLaplace",
    "ClosedEndLaplace",
    "PerRowGeometric",
    "SquaredRatioGeometric",
    "MisprintedTableGeometric",
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
    "MixedUnaryCoins",
    "TrueBitSetTwice",
    "OnesNeverCleared",
    "HalfNoiseThreshold",
    "BinaryHashingOdds",
    "HashChosenByTheValue",
    "SubsetOfWrongSize",
    "SubsetInOrder",
    "HadamardOrAnyColumn",
    "RedrawnMemo",
    "FirstReportForAll",
    "SampledTotal",
    "BesideExact",
    "JsonReport",
    "KeyedCounts",
    "SmallCount",
    "GroupMeans",
    "CheckedCount",
    "MarginalsForReplace",
    "MarginalsNotSplit",
    "LearnedCategories",
    "LearnedRange",
    "RowsOfTheData",
    "LeakedRow",
    "SharesOfPresentRows",
    "NaiveLaplace",
    "NaiveGaussian",
    "SinglePrecisionNoise",
]
