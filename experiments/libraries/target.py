"""An object of a library, and the pair or domain of its audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...audit.procedures.check import check
from ...audit.results.audit_result import AuditResult
from ...audit.search.find_worst_pair import find_worst_pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An object without a known violation of its claim, audited on a pair or on the worst pair of a domain.

    Attributes
    ----------
    name : str
    make : callable
        Makes the adapter; needs the library.
    pair : tuple of (x, y), optional
    domain : Domain, optional
        Domain of the search if no pair is given; the search takes `runs` executions.
    runs : int
        Runs on each dataset.
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
