"""What adapters share: imports, what a mechanism of another library states, single runs, and recorded calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

from ...audit.claims.claim import Claim
from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import MissingExtraError
from ...audit.events.outputs import Raised


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Adapted:
    """A mechanism of another library.

    Attributes
    ----------
    claim, claim_source, adjacency
        Its claim, what the claim was read from with the version of the library, and its neighbours.
    name : str
        Name of its class or function.
    """

    library: ClassVar[str]
    claim: Claim
    claim_source: str
    adjacency: Adjacency
    name: str

    def __str__(self) -> str:
        return f"{self.library} {self.name}"


def imported(module: str, extra: str, dependency: str = "") -> Any:
    """Return the module; raise a `MissingExtraError` that names the extra, and the `dependency`, that it needs."""
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
