"""Imports of other libraries, and single runs of their functions."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...audit.errors import AuditError
from ...audit.events.outputs import Raised


def imported(module: str, extra: str) -> Any:
    """Return the module; raise an `AuditError` that names the extra of dpaudit if it cannot be imported."""
    try:
        return import_module(module)
    except ImportError as error:
        raise AuditError(
            f"{module} cannot be imported ({error}); use pip install 'dpaudit[{extra}]', which installs a version "
            "that works."
        ) from error


def released(release: Callable[..., Any], *values: Any) -> Any:
    """Return the output, or the exception as an output; a TypeError, which means a wrong kind of dataset, is raised."""
    try:
        return release(*values)
    except TypeError:
        raise
    except Exception as error:
        return Raised(type(error).__qualname__)
