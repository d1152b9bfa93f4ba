"""An object of a library, and where it is audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...audit.procedures.check import check
from ...audit.results.audit_result import AuditResult
from ...audit.search.find_worst_pair import find_worst_pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An object that keeps its claim, as far as anybody knows, on a pair or on the worst of a domain.

    Attributes
    ----------
    name : str
    make : callable
        Makes the adapter; called where the library is there.
    pair : tuple of (x, y), optional
    domain : Domain, optional
        Where a search looks for a pair, if none is given; it takes as many executions as `runs`.
    runs : int
        On each dataset.
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
