"""Imports of the libraries that the adapters need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...audit.errors import AuditError


def imported(module: str, extra: str) -> Any:
    """Return the module; raise an `AuditError` that names the extra of dpaudit if it cannot be imported."""
    try:
        return import_module(module)
    except ImportError as error:
        raise AuditError(
            f"{module} cannot be imported ({error}); use pip install 'dpaudit[{extra}]', which installs a version "
            "that works."
        ) from error
