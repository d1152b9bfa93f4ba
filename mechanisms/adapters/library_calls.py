"""Imports of other libraries, and single runs of their functions."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...audit.errors import MissingExtraError
from ...audit.events.outputs import Raised


def imported(module: str, extra: str, dependency: str = "") -> Any:
    """Return the module; raise a `MissingExtraError` that names the extra of dpaudit if it cannot be imported.

    The error also names a `dependency` of which the module needs a certain version.
    """
    try:
        return import_module(module)
    except ImportError as error:
        needed = f", and the version of {dependency} that it needs" if dependency else ""
        raise MissingExtraError(
            f"{module} cannot be imported ({error}); use pip install 'dpaudit[{extra}]', which installs a version "
            f"that works{needed}.",
            extra=extra,
            modules=[module],
        ) from error


def released(release: Callable[..., Any], *values: Any) -> Any:
    """Return the output, or the exception as an output; a TypeError, which means a wrong kind of dataset, is raised."""
    try:
        return release(*values)
    except TypeError:
        raise
    except Exception as error:
        return Raised(type(error).__qualname__)
