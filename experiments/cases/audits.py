"""Experiments, and audits whose exact strength on the pair follows from the mechanism's laws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...audit.claims.claim import PureDP, claim_at
from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import OptionError
from .exact_strength import check_bounded, exact_strength
from .experiment import AuditCase, Case, Experiment, false_version, true_version

RUNS = 200_000


def stated(document: str, id: str, statement: str, source: str, cases: Iterable[Case], **options: Any) -> Experiment:
    """Return the experiment of one statement of a document."""
    return Experiment(id=id, document=document, statement=statement, source=source, cases=tuple(cases), **options)


def holds(
    name: str, mechanism: Any, pair: tuple[Any, Any], adjacency: Adjacency, note: str, **options: Any
) -> AuditCase:
    """Return an audit that must not refute the claim.

    Options are `claim` (by default the mechanism's own), `distance`, `runs` and `exact`, which is computed from the
    laws unless given.

    Raises
    ------
    ClaimError
        If ε is claimed to be 0 and the audit would bound it instead of δ.
    OptionError
        If the laws do not give the exact strength, or the mechanism has none, and `exact` is not given.
    """
    return true_version(
        name, mechanism, *pair, adjacency=adjacency, note=note, **_completed(name, mechanism, pair, options)
    )


def fails(
    name: str, mechanism: Any, pair: tuple[Any, Any], adjacency: Adjacency, note: str, **options: Any
) -> AuditCase:
    """Return an audit that must refute the claim, with the options of `holds`."""
    return false_version(
        name, mechanism, *pair, adjacency=adjacency, note=note, **_completed(name, mechanism, pair, options)
    )


def _completed(name: str, mechanism: Any, pair: tuple[Any, Any], options: dict[str, Any]) -> dict[str, Any]:
    completed = {"runs": RUNS, "claim": options.get("claim") or mechanism.claim} | options
    check_bounded(name, completed["claim"])
    if "exact" not in options:
        claim = claim_at(completed["claim"], options.get("distance", 1))
        try:
            if not hasattr(mechanism, "law"):
                raise OptionError("it has no law")
            found = exact_strength(claim, *(mechanism.law(dataset) for dataset in pair))
        except OptionError as error:
            raise OptionError(
                f"the laws of {mechanism} do not give the exact strength of {claim} ({error}); pass it as exact=, or "
                "exact=None if it is unknown.",
                claim=claim,
            ) from error
        completed["exact"] = round(found, 12) if isinstance(claim, PureDP) else found  # 4e-16 is 0, rounded
    return completed
