"""Claims: the boundary in the plane of two probabilities that no event may cross."""

from .claim import Claim
from .mironov_propositions import NFoldComposition, ProbabilityPreservation
from .privacy_profile import PrivacyProfile, TradeOffCurve
from .pure_approx_gaussian import ApproxDP, GaussianDP, PureDP
from .renyi import RenyiDP, ZeroConcentratedDP

__all__ = [
    "Claim",
    "PureDP",
    "ApproxDP",
    "GaussianDP",
    "RenyiDP",
    "ZeroConcentratedDP",
    "ProbabilityPreservation",
    "NFoldComposition",
    "PrivacyProfile",
    "TradeOffCurve",
]
