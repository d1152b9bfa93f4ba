"""Adapters for mechanisms of other libraries and for programs in any language. Names are imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .accountants import check_library_accountant
    from .accounting import claim_from_event, pld_from_replay
    from .diffprivlib import DiffprivlibMechanism, DiffprivlibTool, from_diffprivlib, from_diffprivlib_tool
    from .opendp import OpenDPMechanism, from_opendp
    from .program import Program
    from .pydp import PyDPMechanism, from_pydp
    from .smartnoise_sql import SmartNoiseQuery, from_smartnoise_sql

_MODULES = {
    "opendp": ("from_opendp", "OpenDPMechanism"),
    "diffprivlib": ("from_diffprivlib", "DiffprivlibMechanism", "from_diffprivlib_tool", "DiffprivlibTool"),
    "pydp": ("from_pydp", "PyDPMechanism"),
    "smartnoise_sql": ("from_smartnoise_sql", "SmartNoiseQuery"),
    "accountants": ("check_library_accountant",),
    "accounting": ("claim_from_event", "pld_from_replay"),
    "program": ("Program",),
}

__all__ = [
    "from_opendp", "OpenDPMechanism", "from_diffprivlib", "from_diffprivlib_tool", "DiffprivlibMechanism",
    "DiffprivlibTool", "from_pydp", "PyDPMechanism", "from_smartnoise_sql", "SmartNoiseQuery", "claim_from_event",
    "pld_from_replay", "check_library_accountant", "Program",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
