"""One run of a library's function, called from a block sampler that loops over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...audit.events.outputs import Raised


def released(release: Callable[..., Any], *values: Any) -> Any:
    """The output, or the exception that an adversary sees; a TypeError, of a dataset of a wrong kind, is raised."""
    try:
        return release(*values)
    except TypeError:
        raise
    except Exception as error:
        return Raised(type(error).__qualname__)
