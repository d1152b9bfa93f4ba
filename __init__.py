"""Empirical privacy auditing: does this code have the differential privacy it claims?

Names are imported on first use, so that loading the pytest plugin does not import scipy.
"""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

# By full names, because pytest imports this file of an unpacked archive as a module without a package.
from dpaudit.audit.replay.registered import register_primitives
from dpaudit.audit.results.result import show_with

if TYPE_CHECKING:
    from . import accountants as accountants
    from . import adapters as adapters
    from . import claims as claims
    from . import counts as counts
    from . import domains as domains
    from . import errors as errors
    from . import exact as exact
    from . import noise as noise
    from . import results as results
    from . import training as training
    from .audit.canaries.check_canaries import check_canaries
    from .audit.canaries.plan_canaries import plan_canaries
    from .audit.claims.claim import ApproxDP, GaussianDP, PureDP
    from .audit.claims.privacy_profile import PrivacyProfile, TradeOffCurve
    from .audit.claims.renyi import RenyiDP, ZeroConcentratedDP
    from .audit.datasets.adjacency import AddRemove, Local, Replace, UserLevel, ZeroOut
    from .audit.datasets.domains import Answers, Rows, Values
    from .audit.datasets.tables import Tables
    from .audit.distribution_checks.check_noise import check_noise
    from .audit.errors import AuditError, RefutedError
    from .audit.procedures.check import check
    from .audit.procedures.check_equivalence import check_equivalence
    from .audit.procedures.check_outputs import check_outputs
    from .audit.procedures.epsilon_lower import epsilon_lower
    from .audit.records.json_codec import load, save
    from .audit.replay.noise_primitive import noise_primitive, public
    from .audit.replay.replay import replay
    from .audit.results.verdict import Verdict
    from .audit.search.find_worst_pair import find_worst_pair
    from .audit.sensitivity.check_sensitivity import check_sensitivity
    from .audit.settings import settings

_NAME = "dpaudit"
_MODULES = ("accountants", "adapters", "claims", "counts", "domains", "errors", "exact", "noise", "results", "training")
_WHERE = {
    name: module
    for module, names in {
        "canaries.check_canaries": "check_canaries",
        "canaries.plan_canaries": "plan_canaries",
        "claims.claim": "ApproxDP GaussianDP PureDP",
        "claims.privacy_profile": "PrivacyProfile TradeOffCurve",
        "claims.renyi": "RenyiDP ZeroConcentratedDP",
        "datasets.adjacency": "AddRemove Local Replace UserLevel ZeroOut",
        "datasets.domains": "Answers Rows Values",
        "datasets.tables": "Tables",
        "distribution_checks.check_noise": "check_noise",
        "errors": "AuditError RefutedError",
        "procedures.check": "check",
        "procedures.check_equivalence": "check_equivalence",
        "procedures.check_outputs": "check_outputs",
        "procedures.epsilon_lower": "epsilon_lower",
        "records.json_codec": "load save",
        "replay.noise_primitive": "noise_primitive public",
        "replay.replay": "replay",
        "results.audit_result": "Verdict",
        "search.find_worst_pair": "find_worst_pair",
        "sensitivity.check_sensitivity": "check_sensitivity",
        "settings": "settings",
    }.items()
    for name in names.split()
}

__all__ = [
    "check", "check_outputs", "find_worst_pair", "check_equivalence", "check_noise", "check_sensitivity",
    "check_canaries", "plan_canaries", "replay", "noise_primitive", "public", "epsilon_lower", "save", "load",
    "settings",
    "PureDP", "ApproxDP", "GaussianDP", "RenyiDP", "ZeroConcentratedDP", "PrivacyProfile", "TradeOffCurve",
    "AddRemove", "Replace", "ZeroOut", "Local", "UserLevel", "Rows", "Values", "Answers", "Tables",
    "Verdict", "AuditError", "RefutedError",
]  # fmt: skip


def _shown_by(module: str, name: str) -> Any:
    """Return a function of a later subpackage that is imported when a result first needs it."""
    return lambda *arguments: getattr(import_module(module, _NAME), name)(*arguments)


show_with("words", _shown_by(".audit.sentences", "in_words"))
show_with("detectable", _shown_by(".audit.sentences", "detectable_in_words"))
show_with("to_dict", _shown_by(".audit.records.suite", "flat"))
show_with("card", _shown_by(".reports.pages.audit_facts", "card"))
show_with("plot", _shown_by(".reports.figures.plot", "plot"))
register_primitives("diffprivlib", "diffprivlib", _shown_by(".mechanisms.adapters.diffprivlib", "diffprivlib_patches"))
register_primitives("pydp", "pydp", _shown_by(".mechanisms.adapters.pydp", "pydp_patches"))
register_primitives(
    "torch",
    "torch",
    _shown_by(".mechanisms.adapters.torch", "torch_patches"),
    _shown_by(".mechanisms.adapters.torch", "torch_states"),
)
register_primitives("opendp", "opendp.core", _shown_by(".mechanisms.adapters.opendp", "opendp_patches"))


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from dpaudit.audit.extras import installed

        return installed(_NAME) or "not installed"  # the version of a source tree is not known
    if name in _MODULES:
        return import_module(f".{name}", _NAME)
    if name not in _WHERE:
        from dpaudit.audit.printing import did_you_mean

        homes = [each for each in _MODULES if name in import_module(f".{each}", _NAME).__all__]
        meant = f"; it is {_NAME}.{homes[0]}.{name}" if homes else did_you_mean(name, [*__all__, *_MODULES])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")
    collects = gc.isenabled()
    gc.disable()  # what is imported stays, so to look for garbage meanwhile is an eighth of the time for nothing
    try:
        value = globals()[name] = getattr(import_module(f".audit.{_WHERE[name]}", _NAME), name)
    finally:
        if collects:
            gc.enable()
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
