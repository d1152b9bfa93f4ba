"""Audits of pure claims on pairs with an exact ε."""

from __future__ import annotations

from typing import Any

from ...audit.claims.claim import Claim
from ...audit.datasets.adjacency import Adjacency
from ...mechanisms import exact_epsilon
from .experiment import AuditCase, false_version, true_version


def pure_version(
    name: str,
    is_true: bool,
    mechanism: Any,
    pair: tuple[Any, Any],
    adjacency: Adjacency,
    note: str,
    *,
    claim: Claim | None = None,
    runs: int = 200_000,
) -> AuditCase:
    """Return an audit of a pure claim, by default the mechanism's own, with the exact ε of the pair."""
    version = true_version if is_true else false_version
    given = mechanism.claim if claim is None else claim
    exact = round(exact_epsilon(*(mechanism.law(dataset) for dataset in pair)), 12)  # 0 may come out as 4e-16
    return version(name, mechanism, *pair, given, adjacency, exact=exact, runs=runs, note=note)
