"""Empirical privacy auditing: does this code have the differential privacy it claims?"""

from .audit.adjacency import AddRemove, Adjacency, Local, Replace, UserLevel, Within
from .audit.bounds import epsilon_lower
from .audit.cell_counts import CellCounts
from .audit.check import check
from .audit.claims import ApproxDP, Claim, GaussianDP, PureDP
from .audit.curves import PrivacyProfile, TradeOffCurve
from .audit.domains import Answers, Domain, Graphs, Rows, Values
from .audit.errors import AuditError
from .audit.given_outputs import check_outputs
from .audit.graphs import EdgeNeighbours, NodeNeighbours
from .audit.measure import count_cells
from .audit.propositions import NFoldComposition, ProbabilityPreservation
from .audit.records import Entry, Suite, load, save
from .audit.renyi import RenyiDP, ZeroConcentratedDP
from .audit.search import WorstPair, find_worst_pair
from .audit.statements import Point, StatementResult
from .audit.verdicts import AuditResult, Verdict

__all__ = [
    "check",
    "check_outputs",
    "find_worst_pair",
    "epsilon_lower",
    "count_cells",
    "CellCounts",
    "AuditResult",
    "StatementResult",
    "Point",
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
    "ProbabilityPreservation",
    "NFoldComposition",
    "PrivacyProfile",
    "TradeOffCurve",
    "Adjacency",
    "AddRemove",
    "Replace",
    "Local",
    "UserLevel",
    "Within",
    "EdgeNeighbours",
    "NodeNeighbours",
    "Domain",
    "Answers",
    "Values",
    "Rows",
    "Graphs",
    "WorstPair",
    "AuditError",
]
