"""Adapters for mechanisms of other libraries and for programs in any language. Names are imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .accounting import claim_from_event
    from .diffprivlib import DiffprivlibMechanism, from_diffprivlib
    from .diffprivlib_tools import DiffprivlibTool, from_diffprivlib_tool
    from .opendp import OpenDPMechanism, from_opendp
    from .program import Program
    from .pydp import PyDPMechanism, from_pydp

_WHERE = {
    "from_opendp": "opendp",
    "OpenDPMechanism": "opendp",
    "from_diffprivlib": "diffprivlib",
    "from_diffprivlib_tool": "diffprivlib_tools",
    "DiffprivlibMechanism": "diffprivlib",
    "DiffprivlibTool": "diffprivlib_tools",
    "from_pydp": "pydp",
    "PyDPMechanism": "pydp",
    "claim_from_event": "accounting",
    "Program": "program",
}

__all__ = [
    "from_opendp",
    "OpenDPMechanism",
    "from_diffprivlib",
    "from_diffprivlib_tool",
    "DiffprivlibMechanism",
    "DiffprivlibTool",
    "from_pydp",
    "PyDPMechanism",
    "claim_from_event",
    "Program",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    return value
