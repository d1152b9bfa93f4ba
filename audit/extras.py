"""Libraries that only a part of dpaudit needs: where one is missing, the error names the extra that installs it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from .errors import MissingExtraError


def require(extra: str, who: str, *modules: str) -> None:
    """Raise a `MissingExtraError` unless all modules can be found; nothing is imported.

    Parameters
    ----------
    extra : str
        Extra of dpaudit that installs the modules.
    who : str
        Part of dpaudit that needs them, with its verb: "reports need".
    modules : str
        Top-level modules.
    """
    missing = [module for module in modules if not _is_found(module)]
    if missing:
        raise MissingExtraError(
            f"{who} {' and '.join(missing)}; pip install 'dpaudit[{extra}]'.", extra=extra, modules=missing
        )


def _is_found(module: str) -> bool:
    if module in sys.modules:
        return sys.modules[module] is not None  # None forbids its import
    try:
        return find_spec(module) is not None
    except ImportError:  # from a finder that forbids it
        return False
