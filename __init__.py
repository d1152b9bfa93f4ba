"""Empirical privacy auditing: does this code have the differential privacy it claims?

Names are imported on first use, so that loading the pytest plugin does not import scipy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# By full names, because pytest imports this file of an unpacked archive as a module without a package.
from dpaudit.audit.replay.registered import register_primitives
from dpaudit.audit.results.result import show_with

if TYPE_CHECKING:
    from .audit.canaries.canary_tests import epsilon_from_guesses
    from .audit.canaries.check_canaries import check_canaries
    from .audit.canaries.plan_canaries import CanaryPlan, plan_canaries
    from .audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
    from .audit.claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
    from .audit.claims.privacy_profile import PrivacyProfile, TradeOffCurve
    from .audit.claims.renyi import RenyiDP, ZeroConcentratedDP
    from .audit.datasets.adjacency import (
        AddRemove,
        Adjacency,
        EdgeNeighbours,
        Local,
        NodeNeighbours,
        Replace,
        UserLevel,
        Within,
    )
    from .audit.datasets.domains import Answers, Domain, Graphs, Rows, Values
    from .audit.datasets.tables import CategoricalColumn, NumericColumn, Tables, table_features
    from .audit.distribution_checks.check_independence import check_independence
    from .audit.distribution_checks.check_noise import check_noise
    from .audit.distribution_checks.check_slope import check_slope
    from .audit.distribution_checks.noise_laws import (
        ExponentialNoise,
        GaussianNoise,
        GeometricNoise,
        GumbelNoise,
        LaplaceNoise,
        NoiseLaw,
    )
    from .audit.errors import AuditError
    from .audit.guesses.canary_guesses import CanaryGuesses
    from .audit.procedures.check import check
    from .audit.procedures.check_equivalence import assert_same_distribution, check_equivalence, check_same_distribution
    from .audit.procedures.check_outputs import check_outputs
    from .audit.procedures.count_cells import count_cells
    from .audit.procedures.epsilon_lower import epsilon_lower
    from .audit.records.json_codec import load, save
    from .audit.records.suite import Entry, Suite
    from .audit.replay.laws import Law
    from .audit.replay.noise_primitive import noise_primitive
    from .audit.replay.replay import replay
    from .audit.replay.replay_result import FindingKind, ReplayResult, ReplayVerdict
    from .audit.results.audit_result import AuditResult, FixedSizeResult, SequentialResult, Verdict
    from .audit.results.canary_result import CanaryResult
    from .audit.results.cell_result import CellCounts
    from .audit.results.equivalence_result import Equivalence, EquivalenceResult
    from .audit.results.statement_result import Point, StatementResult
    from .audit.results.worst_pair import WorstPair
    from .audit.sampling.draw import draw_block
    from .audit.search.find_worst_pair import find_worst_pair
    from .audit.sensitivity.check_sensitivity import check_sensitivity
    from .audit.sensitivity.sensitivity_result import SensitivityResult
    from .audit.settings import settings

_NAME = "dpaudit"
_WHERE = {
    name: module
    for module, names in {
        "canaries.check_canaries": "check_canaries",
        "canaries.canary_tests": "epsilon_from_guesses",
        "canaries.plan_canaries": "CanaryPlan plan_canaries",
        "claims.claim": "Claim ApproxDP GaussianDP PureDP",
        "claims.mironov_propositions": "NFoldComposition ProbabilityPreservation",
        "claims.privacy_profile": "PrivacyProfile TradeOffCurve",
        "claims.renyi": "RenyiDP ZeroConcentratedDP",
        "datasets.adjacency": "AddRemove Adjacency EdgeNeighbours Local NodeNeighbours Replace UserLevel Within",
        "datasets.domains": "Answers Domain Graphs Rows Values",
        "datasets.tables": "CategoricalColumn NumericColumn Tables table_features",
        "distribution_checks.check_independence": "check_independence",
        "distribution_checks.check_noise": "check_noise",
        "distribution_checks.check_slope": "check_slope",
        "distribution_checks.noise_laws": (
            "ExponentialNoise GaussianNoise GeometricNoise GumbelNoise LaplaceNoise NoiseLaw"
        ),
        "errors": "AuditError",
        "procedures.check": "check",
        "procedures.check_equivalence": "assert_same_distribution check_equivalence check_same_distribution",
        "procedures.check_outputs": "check_outputs",
        "procedures.count_cells": "count_cells",
        "procedures.epsilon_lower": "epsilon_lower",
        "records.json_codec": "load save",
        "records.suite": "Entry Suite",
        "replay.laws": "Law",
        "replay.noise_primitive": "noise_primitive",
        "replay.replay": "replay",
        "replay.replay_result": "FindingKind ReplayResult ReplayVerdict",
        "results.audit_result": "AuditResult Verdict FixedSizeResult SequentialResult",
        "guesses.canary_guesses": "CanaryGuesses",
        "results.canary_result": "CanaryResult",
        "results.cell_result": "CellCounts",
        "results.equivalence_result": "Equivalence EquivalenceResult",
        "results.statement_result": "Point StatementResult",
        "results.worst_pair": "WorstPair",
        "sampling.draw": "draw_block",
        "search.find_worst_pair": "find_worst_pair",
        "sensitivity.check_sensitivity": "check_sensitivity",
        "sensitivity.sensitivity_result": "SensitivityResult",
        "settings": "settings",
    }.items()
    for name in names.split()
}

__all__ = [
    "check", "check_outputs", "find_worst_pair", "draw_block", "epsilon_lower", "count_cells",
    "check_same_distribution", "check_equivalence", "assert_same_distribution",
    "check_noise", "check_slope", "check_independence", "check_sensitivity",
    "check_canaries", "epsilon_from_guesses", "plan_canaries", "CanaryPlan", "CanaryResult", "CanaryGuesses",
    "replay", "ReplayResult", "ReplayVerdict", "FindingKind", "noise_primitive", "Law",
    "NoiseLaw", "LaplaceNoise", "GaussianNoise", "GeometricNoise", "GumbelNoise", "ExponentialNoise",
    "CellCounts", "EquivalenceResult", "Equivalence", "AuditResult", "FixedSizeResult", "SequentialResult",
    "StatementResult", "Point", "Verdict",
    "Entry", "Suite", "save", "load",
    "Claim", "PureDP", "ApproxDP", "GaussianDP", "RenyiDP", "ZeroConcentratedDP",
    "ProbabilityPreservation", "NFoldComposition", "PrivacyProfile", "TradeOffCurve",
    "Adjacency", "AddRemove", "Replace", "Local", "UserLevel", "Within", "EdgeNeighbours", "NodeNeighbours",
    "Domain", "Answers", "Values", "Rows", "Graphs", "Tables", "CategoricalColumn", "NumericColumn", "table_features",
    "WorstPair", "SensitivityResult", "AuditError", "settings",
]  # fmt: skip


def _shown_by(module: str, name: str) -> Any:
    """Return a function of a later room that is imported when a result first needs it."""
    return lambda *arguments: getattr(import_module(module, _NAME), name)(*arguments)


show_with("to_dict", _shown_by(".audit.records.suite", "flat"))
show_with("card", _shown_by(".reports.pages.audit_facts", "card"))
show_with("plot", _shown_by(".reports.figures.plot", "plot"))
register_primitives("diffprivlib", "diffprivlib", _shown_by(".mechanisms.adapters.diffprivlib", "diffprivlib_patches"))
register_primitives("pydp", "pydp", _shown_by(".mechanisms.adapters.pydp", "pydp_patches"))
register_primitives("opendp", "opendp.core", _shown_by(".mechanisms.adapters.opendp", "opendp_patches"))


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _WHERE:
        from dpaudit.audit.printing import did_you_mean

        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{did_you_mean(name, __all__)}")
    value = globals()[name] = getattr(import_module(f".audit.{_WHERE[name]}", _NAME), name)
    return value


def _version() -> str:
    """Return the installed version; that of a source tree is not known."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dpaudit")
    except PackageNotFoundError:
        return "not installed"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
