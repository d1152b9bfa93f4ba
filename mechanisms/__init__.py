"""Reference mechanisms, one family a file, each with its claim and its exact law."""

from .binomial import BinomialLaw, BinomialMechanism
from .chain_law import ChainLaw
from .composition import AdaptiveComposition, SequentialComposition, advanced_composition, composed
from .discrete_gaussian import DiscreteGaussianLaw, DiscreteGaussianMechanism
from .discrete_law import DiscreteLaw
from .exponential import ExponentialMechanism
from .gaussian import (
    GaussianMechanism,
    analytic_gaussian_scale,
    classical_gaussian_scale,
    gaussian_delta,
    gaussian_loss_tail,
)
from .gaussian_vector import GaussianVectorLaw, VectorGaussianMechanism
from .geometric import GeometricMechanism
from .graphs import DegreeHistogramMechanism, EdgeCountMechanism
from .group import GroupPrivacy, GroupTightMechanism, group_delta
from .histogram import HistogramMechanism
from .inverse_cdf import LaplaceByInverseCDF, inverse_laplace_cdf, open_uniform
from .laplace import LaplaceMechanism
from .laws import (
    FiniteLaw,
    GaussianLaw,
    GeometricLaw,
    LaplaceLaw,
    Law,
    ScalarLaw,
    exact_delta,
    exact_epsilon,
    hockey_stick,
)
from .local_gaussian import Ball, Interval, LocalGaussianMechanism
from .name_and_shame import NameAndShame
from .noisy_max import ReportNoisyMax
from .parallel import IntervalOf, ParallelComposition
from .permute_and_flip import PermuteAndFlip
from .product import ProductLaw
from .pumpkins import PUMPKIN_BIDS, PostedPriceAuction, Revenue
from .queries import CategoryCounts, EachCandidate
from .randomised_response import RandomisedResponse
from .rare_leak import LeakyLaplaceLaw, RareLeakLaplace
from .released_values import ComparedValuesLaw, FreshValuesLaw
from .renyi import exact_renyi
from .response_fold import RandomisedResponseFold, UpAndDown
from .sensitivity import query_sensitivity, utility_sensitivity
from .sparse_vector import NoisyThreshold, SparseVector
from .transcripts import TranscriptLaw

__all__ = [
    "LaplaceMechanism",
    "LaplaceByInverseCDF",
    "inverse_laplace_cdf",
    "open_uniform",
    "GeometricMechanism",
    "GaussianMechanism",
    "VectorGaussianMechanism",
    "LocalGaussianMechanism",
    "Interval",
    "Ball",
    "DiscreteGaussianMechanism",
    "BinomialMechanism",
    "HistogramMechanism",
    "analytic_gaussian_scale",
    "classical_gaussian_scale",
    "gaussian_delta",
    "gaussian_loss_tail",
    "RandomisedResponse",
    "ExponentialMechanism",
    "ReportNoisyMax",
    "PermuteAndFlip",
    "PostedPriceAuction",
    "PUMPKIN_BIDS",
    "Revenue",
    "EachCandidate",
    "CategoryCounts",
    "utility_sensitivity",
    "query_sensitivity",
    "SparseVector",
    "NoisyThreshold",
    "NameAndShame",
    "RareLeakLaplace",
    "GroupTightMechanism",
    "GroupPrivacy",
    "group_delta",
    "EdgeCountMechanism",
    "DegreeHistogramMechanism",
    "SequentialComposition",
    "AdaptiveComposition",
    "composed",
    "advanced_composition",
    "ParallelComposition",
    "IntervalOf",
    "RandomisedResponseFold",
    "UpAndDown",
    "Law",
    "ScalarLaw",
    "LaplaceLaw",
    "GaussianLaw",
    "GaussianVectorLaw",
    "GeometricLaw",
    "DiscreteGaussianLaw",
    "FiniteLaw",
    "DiscreteLaw",
    "BinomialLaw",
    "ProductLaw",
    "ChainLaw",
    "TranscriptLaw",
    "ComparedValuesLaw",
    "FreshValuesLaw",
    "LeakyLaplaceLaw",
    "hockey_stick",
    "exact_delta",
    "exact_epsilon",
    "exact_renyi",
]
