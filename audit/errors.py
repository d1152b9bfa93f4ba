"""Every error the library raises on purpose, as one hierarchy.

A message names the value, the rule it breaks and the way out, on one line. The numbers in it stay available in `facts`,
also after the exception crossed from a worker process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class AuditError(Exception):
    """Base of all errors raised on purpose; `facts` holds the values that the message names."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts

    def __reduce__(self) -> tuple[Callable[..., AuditError], tuple[Any, ...]]:
        return _rebuild, (type(self), self.args[0], self.facts)


def _rebuild(kind: type[AuditError], message: str, facts: dict[str, Any]) -> AuditError:
    return kind(message, **facts)


class ClaimError(AuditError, ValueError):
    """A claim, or a parameter of one, that states no privacy guarantee."""


class AdjacencyError(AuditError, ValueError):
    """A pair of datasets that is not at the stated distance, or has none under the adjacency."""


class DatasetError(AuditError, ValueError):
    """A dataset that cannot be read or used."""


class MechanismError(AuditError, RuntimeError):
    """A mechanism that cannot be run, or whose outputs are not what the protocol asks for."""


class OptionError(AuditError, ValueError):
    """A setting of the audit (runs, alpha, seed, …) outside its range."""


class RecordError(AuditError, ValueError):
    """A results file that cannot be read, or says something impossible."""


class StoreError(AuditError, RuntimeError):
    """A store of an unfinished audit that cannot be used: of another audit, in use, damaged or full."""


class UnknownNameError(AuditError, LookupError):
    """A name of an experiment, or an import path, that does not exist."""


def described(error: BaseException) -> str:
    """An exception's type and message; the type alone where its message cannot be had."""
    kind = type(error).__qualname__
    try:
        return f"{kind}: {error}"
    except Exception:  # whatever a user's __str__ raises
        return kind
