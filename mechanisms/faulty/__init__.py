"""Known bugs: mechanisms that do not satisfy what they claim, each with the guarantee it truly has."""

from .composition import SharedNoiseLaplace, UndercountedComposition
from .exponential import ExponentialMissingFactorTwo, HalfSensitivityExponential
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
from .noisy_max import NoisyMaxMissingFactorTwo, NoisyMaxReleasingValue
from .parallel import OverlappingPartCounts, PartCountsForReplace
from .pumpkins import PricesFromTheBids
from .randomised_response import BinaryOddsForManyValues, TruthAmongTheLies
from .sparse_vector import (
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
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
]
