"""Empirical privacy auditing: does this code have the differential privacy it claims?

Names are imported when they are first used: whoever only loads the pytest plugin does not wait for scipy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .audit.adjacency import AddRemove, Adjacency, Local, Replace, UserLevel, Within
    from .audit.bounds import epsilon_lower
    from .audit.calibration import check_noise
    from .audit.cell_counts import CellCounts
    from .audit.check import check
    from .audit.claims import Claim
    from .audit.curves import PrivacyProfile, TradeOffCurve
    from .audit.domains import Answers, Domain, Graphs, Rows, Values
    from .audit.equivalence import assert_same_distribution, check_equivalence, check_same_distribution
    from .audit.equivalence_result import Equivalence, EquivalenceResult
    from .audit.errors import AuditError
    from .audit.given_outputs import check_outputs
    from .audit.graphs import EdgeNeighbours, NodeNeighbours
    from .audit.independence import check_independence
    from .audit.measure import count_cells
    from .audit.noise_laws import (
        ExponentialNoise,
        GaussianNoise,
        GeometricNoise,
        GumbelNoise,
        LaplaceNoise,
        NoiseLaw,
    )
    from .audit.propositions import NFoldComposition, ProbabilityPreservation
    from .audit.pure_approx_gaussian import ApproxDP, GaussianDP, PureDP
    from .audit.records import load, save
    from .audit.renyi import RenyiDP, ZeroConcentratedDP
    from .audit.sampling import draw_block
    from .audit.search import WorstPair, find_worst_pair
    from .audit.slopes import check_slope
    from .audit.statements import Point, StatementResult
    from .audit.suite import Entry, Suite
    from .audit.verdicts import AuditResult, Verdict

_WHERE = {
    name: module
    for module, names in {
        "adjacency": "AddRemove Adjacency Local Replace UserLevel Within",
        "bounds": "epsilon_lower",
        "calibration": "check_noise",
        "cell_counts": "CellCounts",
        "check": "check",
        "claims": "ApproxDP Claim GaussianDP PureDP",
        "curves": "PrivacyProfile TradeOffCurve",
        "domains": "Answers Domain Graphs Rows Values",
        "equivalence": "assert_same_distribution check_equivalence check_same_distribution",
        "equivalence_result": "Equivalence EquivalenceResult",
        "errors": "AuditError",
        "given_outputs": "check_outputs",
        "graphs": "EdgeNeighbours NodeNeighbours",
        "independence": "check_independence",
        "measure": "count_cells",
        "noise_laws": "ExponentialNoise GaussianNoise GeometricNoise GumbelNoise LaplaceNoise NoiseLaw",
        "propositions": "NFoldComposition ProbabilityPreservation",
        "records": "Entry Suite load save",
        "renyi": "RenyiDP ZeroConcentratedDP",
        "sampling": "draw_block",
        "search": "WorstPair find_worst_pair",
        "slopes": "check_slope",
        "statements": "Point StatementResult",
        "verdicts": "AuditResult Verdict",
    }.items()
    for name in names.split()
}

__all__ = [
    "check",
    "check_outputs",
    "find_worst_pair",
    "draw_block",
    "epsilon_lower",
    "count_cells",
    "check_same_distribution",
    "check_equivalence",
    "assert_same_distribution",
    "check_noise",
    "check_slope",
    "check_independence",
    "NoiseLaw",
    "LaplaceNoise",
    "GaussianNoise",
    "GeometricNoise",
    "GumbelNoise",
    "ExponentialNoise",
    "CellCounts",
    "EquivalenceResult",
    "Equivalence",
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


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".audit.{_WHERE[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
