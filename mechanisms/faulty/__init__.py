"""Known bugs: mechanisms that do not satisfy what they claim, each with the guarantee it truly has."""

from .exponential import ExponentialMissingFactorTwo
from .gaussian import ClassicalBeyondOneGaussian, VarianceAsScaleGaussian
from .geometric import PerRowGeometric, SquaredRatioGeometric
from .laplace import InvertedScaleLaplace, UnderstatedSensitivityLaplace
from .noisy_max import NoisyMaxMissingFactorTwo, NoisyMaxReleasingValue
from .randomised_response import BinaryOddsForManyValues, TruthAmongTheLies
from .twin import Twin

__all__ = [
    "Twin",
    "UnderstatedSensitivityLaplace",
    "InvertedScaleLaplace",
    "PerRowGeometric",
    "SquaredRatioGeometric",
    "VarianceAsScaleGaussian",
    "ClassicalBeyondOneGaussian",
    "TruthAmongTheLies",
    "BinaryOddsForManyValues",
    "ExponentialMissingFactorTwo",
    "NoisyMaxMissingFactorTwo",
    "NoisyMaxReleasingValue",
]
