"""Settings that determine the draws: an audit or a search must share them with the one that began the store."""

from __future__ import annotations

from typing import Any

from ..claims.claim import Claim
from ..errors import StoreError
from ..results.claim_pair_and_alpha import Settings
from ..sampling.block_plan import SIDES, Plan
from ..sampling.object_identity import drawn_by, identity, identity_of_mechanism
from ..sampling.output_hashes import digest
from ..sampling.sampler import Sampler


def sources(code: str, x: Any, y: Any) -> dict[str, str]:
    """Return hashes of the mechanism (`code_of`) and of the datasets; refuses parts that cannot be identified."""
    found = {}
    for side, dataset in zip(SIDES, (x, y), strict=True):
        seen = identity(dataset)
        found[side] = seen.hash
        if hidden := (*seen.opaque, *seen.failed):
            raise StoreError(
                f"{side} has parts that cannot be identified ({', '.join(hidden)}), so a store might confuse it with "
                "another dataset; pass arrays, or let the mechanism build the dataset from plain values.",
                side=side,
            )
    return {"code or parameters": code} | found


def code_of(sampler: Sampler) -> str:
    """Return a hash of the mechanism before the first run; refuses parts that cannot be identified."""
    seen = identity_of_mechanism(sampler.function)
    if seen.failed:
        raise StoreError(
            f"{sampler.name} has parts that raise an exception when inspected ({', '.join(seen.failed)}), so a store "
            "might confuse it with another mechanism; mend their __audit_identity__, or audit without a store.",
            mechanism=sampler.name,
        )
    return seen.hash


def terms(plan: Plan) -> dict[str, Any]:
    """Return what, with mechanism and datasets, determines a plan's draws; refuses state, which would repeat noise."""
    if plan.is_stateful:
        raise StoreError(
            f"{plan.sampler.name} keeps state from run to run (its own generator, counter or cache), which a store "
            "cannot restore; draw all noise from `rng`, or audit without a store.",
            mechanism=plan.sampler.name,
        )
    return {
        "mechanism": plan.sampler.name,
        "seed": plan.seed,
        "block": plan.block,
        **{f"version of {name}": version for name, version in drawn_by()},
    }


def claim_in_words(claim: Claim) -> str:
    """Return a text that identifies the claim, and that includes a short claim for messages."""
    return digest(claim) if len(str(claim)) > 60 else f"{claim} {digest(claim)}"


def arrangements(
    plan: Plan, settings: Settings, runs: int | None, bins: int, *, sequential: bool, has_final: bool
) -> dict[str, Any]:
    """Return `terms` with the settings of the audit."""
    return terms(plan) | {
        "code": "" if settings.provenance is None else str(settings.provenance),
        "claim": claim_in_words(settings.claim),
        "alpha": settings.alpha,
        "runs": "as needed" if runs is None else runs,
        "detect": settings.detect,
        "power": settings.power,
        "sequential": sequential,
        "final test": has_final,
        "bins": bins,
        "floating_point": settings.floating_point,
    }
