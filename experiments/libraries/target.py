"""An object of a library, and the pair or domain of its audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import Any

from ...audit.procedures.check import check
from ...audit.results.audit_result import AuditResult
from ...audit.search.find_worst_pair import find_worst_pair

# Which of the audited libraries can be imported, and their releases.


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An object without a known violation of its claim, audited on a pair or on the worst pair of a domain.

    `make` makes the adapter, which needs the library. A search takes as many executions as the audit has runs.
    """

    name: str
    make: Callable[[], Any] = field(repr=False)
    pair: tuple[Any, Any] | None = None
    domain: Any = None
    runs: int = 100_000

    def audit(self, *, runs: int, seed: int, bits: bool, alpha: float) -> AuditResult:
        options: dict[str, Any] = {"runs": runs, "seed": seed, "bits": bits, "alpha": alpha, "jobs": 1}
        mechanism = self.make()
        if self.pair is None:
            return find_worst_pair(mechanism, self.domain, **options).audit
        return check(mechanism, *self.pair, **options)
