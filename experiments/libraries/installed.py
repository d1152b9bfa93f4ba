"""Which of the audited libraries can be imported, and their releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import version

_DISTRIBUTIONS = {"pydp": "python-dp"}
"""Libraries whose distribution has another name."""
_MECHANISMS = ("opendp", "diffprivlib", "pydp")


def is_installed(library: str) -> bool:
    """Return whether a library can be imported."""
    try:
        import_module(library.replace("-", "_"))
    except ImportError:
        return False
    return True


def left_out(libraries: Iterable[str] = _MECHANISMS) -> Iterator[str]:
    """Yield a line for each library that cannot be imported, by default of those whose mechanisms are audited."""
    for library in libraries:
        if not is_installed(library):
            yield f"{library} cannot be imported: its rows are left out"


def release_of(library: str) -> str:
    """Return the name and the version of a library; a dash for code of this project, without a library."""
    if not library:
        return "–"
    distribution = _DISTRIBUTIONS.get(library, library)
    return f"{distribution} {version(distribution)}"
