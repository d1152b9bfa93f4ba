"""One run of a library's function, for block samplers that loop over runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...audit.events.outputs import Raised


def released(release: Callable[..., Any], *values: Any) -> Any:
    """Return the output, or the exception as an output; a TypeError, which means a wrong kind of dataset, is raised."""
    try:
        return release(*values)
    except TypeError:
        raise
    except Exception as error:
        return Raised(type(error).__qualname__)
