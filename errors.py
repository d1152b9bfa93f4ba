"""Every exception that dpaudit raises.

AuditError          base of all
ClaimError          a claim that is none, or is missing
AdjacencyError      datasets that are not neighbours
DatasetError        datasets that cannot be audited
MechanismError      a mechanism that cannot be run
OptionError         an option outside its range
UnknownOptionError  an option that does not exist
RefutedError        a refuted claim, in `raise_if_refuted`; an AssertionError
InconclusiveError   an audit that decides nothing, likewise
ExcessError         a replay that found too much, likewise
RecordError         a file of results that cannot be read
WriteError          a file that cannot be written
StoreError          a store that belongs to another audit, or is in use
MissingExtraError   a library that is not installed
UnknownNameError    a name that a registry does not have
Interrupted         a call that Ctrl-C ended, with what is known so far; a KeyboardInterrupt
"""

from .audit.errors import (
    AdjacencyError,
    AuditError,
    ClaimError,
    DatasetError,
    ExcessError,
    InconclusiveError,
    Interrupted,
    MechanismError,
    MissingExtraError,
    OptionError,
    RecordError,
    RefutedError,
    StoreError,
    UnknownNameError,
    UnknownOptionError,
    WriteError,
)

__all__ = [
    "AuditError",
    "ClaimError",
    "AdjacencyError",
    "DatasetError",
    "MechanismError",
    "OptionError",
    "UnknownOptionError",
    "RefutedError",
    "InconclusiveError",
    "ExcessError",
    "RecordError",
    "WriteError",
    "StoreError",
    "MissingExtraError",
    "UnknownNameError",
    "Interrupted",
]
