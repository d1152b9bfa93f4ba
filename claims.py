"""Privacy claims: the boundary that no event may cross.

Claim                    base of all claims; a claim of your own derives from it
PureDP                   ε-DP
ApproxDP                 (ε, δ)-DP
GaussianDP               μ-GDP
RenyiDP                  (order, ε)-Rényi DP
ZeroConcentratedDP       ρ-zCDP
PrivacyProfile           a function δ(ε)
TradeOffCurve            a trade-off function of the two error rates
GroupClaim               a claim at a distance above 1
ProbabilityPreservation  probabilities under Rényi DP
NFoldComposition         Rényi DP after n steps
"""

from .audit.claims.claim import ApproxDP, Claim, GaussianDP, GroupClaim, PureDP
from .audit.claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
from .audit.claims.privacy_profile import PrivacyProfile, TradeOffCurve
from .audit.claims.renyi import RenyiDP, ZeroConcentratedDP

__all__ = [
    "Claim",
    "PureDP",
    "ApproxDP",
    "GaussianDP",
    "RenyiDP",
    "ZeroConcentratedDP",
    "PrivacyProfile",
    "TradeOffCurve",
    "GroupClaim",
    "ProbabilityPreservation",
    "NFoldComposition",
]
