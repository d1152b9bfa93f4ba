"""Empirical privacy auditing: does this code have the differential privacy it claims?

Names are imported when they are first used: whoever only loads the pytest plugin does not wait for scipy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .audit.claims import (
        ApproxDP,
        Claim,
        GaussianDP,
        NFoldComposition,
        PrivacyProfile,
        ProbabilityPreservation,
        PureDP,
        RenyiDP,
        TradeOffCurve,
        ZeroConcentratedDP,
    )
    from .audit.datasets import (
        AddRemove,
        Adjacency,
        Answers,
        Domain,
        EdgeNeighbours,
        Graphs,
        Local,
        NodeNeighbours,
        Replace,
        Rows,
        UserLevel,
        Values,
        Within,
    )
    from .audit.distribution_checks import (
        ExponentialNoise,
        GaussianNoise,
        GeometricNoise,
        GumbelNoise,
        LaplaceNoise,
        NoiseLaw,
    )
    from .audit.distribution_checks.check_independence import check_independence
    from .audit.distribution_checks.check_noise import check_noise
    from .audit.distribution_checks.check_slope import check_slope
    from .audit.errors import AuditError
    from .audit.procedures import assert_same_distribution, check_same_distribution
    from .audit.procedures.check import check
    from .audit.procedures.check_equivalence import check_equivalence
    from .audit.procedures.check_outputs import check_outputs
    from .audit.procedures.count_cells import count_cells
    from .audit.procedures.epsilon_lower import epsilon_lower
    from .audit.records import Entry, Suite, load, save
    from .audit.results import AuditResult, CellCounts, Equivalence, EquivalenceResult, Point, StatementResult, Verdict
    from .audit.sampling import draw_block
    from .audit.search import WorstPair
    from .audit.search.find_worst_pair import find_worst_pair

_WHERE = {
    name: module
    for module, names in {
        "claims": (
            "ApproxDP Claim GaussianDP NFoldComposition PrivacyProfile ProbabilityPreservation PureDP RenyiDP "
            "TradeOffCurve ZeroConcentratedDP"
        ),
        "datasets": (
            "AddRemove Adjacency Answers Domain EdgeNeighbours Graphs Local NodeNeighbours Replace Rows UserLevel "
            "Values Within"
        ),
        "distribution_checks": ("ExponentialNoise GaussianNoise GeometricNoise GumbelNoise LaplaceNoise NoiseLaw"),
        "distribution_checks.check_independence": "check_independence",
        "distribution_checks.check_noise": "check_noise",
        "distribution_checks.check_slope": "check_slope",
        "errors": "AuditError",
        "procedures": "assert_same_distribution check_same_distribution",
        "procedures.check": "check",
        "procedures.check_equivalence": "check_equivalence",
        "procedures.check_outputs": "check_outputs",
        "procedures.count_cells": "count_cells",
        "procedures.epsilon_lower": "epsilon_lower",
        "records": "Entry Suite load save",
        "results": "AuditResult CellCounts Equivalence EquivalenceResult Point StatementResult Verdict",
        "sampling": "draw_block",
        "search": "WorstPair",
        "search.find_worst_pair": "find_worst_pair",
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
