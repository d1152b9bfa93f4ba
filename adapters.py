"""Adapters for mechanisms of other libraries and for programs in any language. Names are imported on first use.

from_opendp            a measurement of OpenDP
OpenDPMechanism        what it returns: blocks of runs, with the claim of the measurement's map
from_diffprivlib       a mechanism of diffprivlib
from_diffprivlib_tool  a tool or model of diffprivlib
DiffprivlibMechanism   a mechanism of diffprivlib that draws blocks of runs
DiffprivlibTool        a tool or model of diffprivlib that is run once at a time
from_pydp              an algorithm of PyDP
PyDPMechanism          what it returns: blocks of runs, with the claim of the algorithm
from_smartnoise_sql    a query of SmartNoise SQL, or several of which a search chooses
SmartNoiseQuery        what it returns: runs of the queries, with the cost that the engine states
claim_from_event       the claim of an event of dp_accounting
pld_from_replay        the privacy loss distribution of the noise that a replay saw
check_library_accountant  an accountant of another library, checked over a grid of compositions
Program                a program in any language that reads a dataset and writes outputs
"""

from typing import Any

from .mechanisms import adapters

__all__ = [*adapters.__all__]  # names of the folder, which imports no library before it is used


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(adapters, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
