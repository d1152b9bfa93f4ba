"""Empirical privacy auditing: does this code have the differential privacy it claims?"""

from .audit.adjacency import AddRemove, Adjacency, Local, Replace, UserLevel, Within
from .audit.check import check, check_outputs, epsilon_lower
from .audit.claims import ApproxDP, Claim, GaussianDP, PureDP
from .audit.curves import PrivacyProfile, TradeOffCurve
from .audit.errors import AuditError
from .audit.records import Entry, Suite, load, save
from .audit.renyi import RenyiDP, ZeroConcentratedDP
from .audit.verdicts import AuditResult, Verdict

__all__ = [
    "check",
    "check_outputs",
    "epsilon_lower",
    "AuditResult",
    "Verdict",
    "Entry",
    "Suite",
    "save",
    "load",
    "Claim",
    "PureDP",
    "ApproxDP",
    "GaussianDP",
    "RenyiDP",
    "ZeroConcentratedDP",
    "PrivacyProfile",
    "TradeOffCurve",
    "Adjacency",
    "AddRemove",
    "Replace",
    "Local",
    "UserLevel",
    "Within",
    "AuditError",
]
