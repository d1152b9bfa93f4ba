"""Installed libraries. Where one is missing that a part of dpaudit needs, the error names the extra that adds it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from .errors import MissingExtraError


def require(extra: str, who: str, *modules: str) -> None:
    """Raise a `MissingExtraError` unless all modules can be found; nothing is imported.

    `who` is the part of dpaudit that needs them, with its verb: "reports need".
    """
    missing = [module for module in modules if not _is_found(module)]
    if missing:
        raise MissingExtraError(
            f"{who} {' and '.join(missing)}; pip install 'dpaudit[{extra}]'.", extra=extra, modules=missing
        )


def installed(distribution: str) -> str | None:
    """Return the version of a distribution; None if it is not installed, or the name is not one of a distribution."""
    from importlib.metadata import PackageNotFoundError, version  # takes longer than most of the library

    try:
        return version(distribution)
    except (PackageNotFoundError, ValueError):
        return None


def _is_found(module: str) -> bool:
    if module in sys.modules:
        return sys.modules[module] is not None  # None forbids its import
    try:
        return find_spec(module) is not None
    except ImportError:  # from a finder that forbids it
        return False
