"""A draft of an entry for the OpenDP Deployments Registry, with the fields that an audit knows.

References
----------
OpenDP, Deployments Registry, schema of deployments (github.com/opendp/deployments-registry-data, July 2026).
"""

from __future__ import annotations

import math
from typing import Any, Final

from ...audit.claims.claim import ApproxDP, Claim, GroupClaim, PureDP
from ...audit.claims.renyi import ZeroConcentratedDP
from ...audit.records.suite import Entry
from ...audit.results.audit_result import AuditResult, Verdict
from ...audit.results.canary_result import CanaryResult
from ..cautions import APART, cautions
from ..plain_text import prose, visible
from .sarif_rules import family

TO_COMPLETE: Final = (
    "url_slug",
    "tier",
    "deployment/basic",
    "deployment/deployment_model",
)
"""Fields of the registry that an audit cannot know."""

_VARIANTS: Final = {
    "PureDP": "Pure DP",
    "ApproxDP": "Approximate DP",
    "ZeroConcentratedDP": "Zero-concentrated DP",
    "RenyiDP": "Renyi DP",
}
_NOT_EXAMINED: Final = "Not examined by the audit."


def registry_draft(entry: Entry) -> dict[str, Any] | None:
    """Return the fields that the audit knows, under the registry's names; None unless a claim is not refuted.

    The parameters are the claimed ones. A refuted claim is not drafted, because the entry would repeat it, and after an
    inconclusive audit the entry would name an audit that decided nothing.
    """
    result = entry.result
    if not isinstance(result, (AuditResult, CanaryResult)) or result.verdict is not Verdict.NOT_REFUTED:
        return None
    warnings = "".join(f" {prose(remark)}" for remark in result.remarks if remark.startswith("WARNING"))
    apart = [one.text for one in cautions(result) if one.kind in APART]  # the others are remarks
    warnings += "".join(f" WARNING: {prose(text)}." for text in apart)
    told = f"Claimed: {visible(str(result.claim))}. Audit: {prose(result.sentence)}.{warnings}"
    loss: dict[str, Any] = {
        "privacy_unit": _unit(result),
        "privacy_unit_details": _neighbours(result),
        "privacy_parameters_details": f"{told} An audit can refute a claim and never verify it.",
    }
    parameters = _parameters(result.claim)
    if parameters:
        loss["privacy_parameters"] = parameters
    return {
        "status": "Draft",
        "deployment": {
            "dp_variant": {
                "variant_name": _VARIANTS.get(family(result.claim), "Custom"),
                "unprotected_quantities": _NOT_EXAMINED,
            },
            "privacy_loss": loss,
            "accounting": {"post_processing": _NOT_EXAMINED, "composition": _NOT_EXAMINED},
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _NOT_EXAMINED,
                "mechanisms": _mechanism(result),
            },
        },
    }


def _unit(result: AuditResult | CanaryResult) -> str:
    if isinstance(result, CanaryResult):
        return "one canary"
    return visible(result.pair.unit) or "not stated"


def _neighbours(result: AuditResult | CanaryResult) -> str:
    if isinstance(result, CanaryResult):
        return f"{visible(result.adjacency)}, of one canary"
    return f"{visible(result.pair.adjacency)}; distance of the audited pair: {result.pair.distance:g}"


def _parameters(claim: Claim) -> dict[str, float]:
    """The parameters of the claim for neighbours for which the registry has names."""
    base = claim.base if isinstance(claim, GroupClaim) else claim
    found: dict[str, float] = {}
    if isinstance(base, PureDP):
        found = {"epsilon": base.epsilon}
    elif isinstance(base, ApproxDP):
        found = {"epsilon": base.epsilon, "delta": base.delta}
    elif isinstance(base, ZeroConcentratedDP):
        found = {"rho": base.rho}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _mechanism(result: AuditResult | CanaryResult) -> str:
    parts = [visible(result.mechanism, 300)]
    if isinstance(result, AuditResult):
        parts += [visible(str(result.provenance))] if result.provenance is not None else []
        bits = {True: "examined", "warn": "examined in the pilot for a warning", False: "not examined"}
        parts.append(f"low bits of floating-point outputs: {bits[result.bits]}")
    parts.append("timing channels, access controls and the computing platform: not examined")
    return "; ".join(parts)
