"""What an audit or a search has to have in common with the one that began a store: all that decides what is drawn."""

from __future__ import annotations

from typing import Any

from ..claims.claim import Claim
from ..errors import StoreError
from ..results.audit_settings import Settings
from ..sampling.block_plan import SIDES, Plan
from ..sampling.object_identity import identity, identity_of_mechanism
from ..sampling.output_hashes import digest
from ..sampling.provenance import drawn_by
from ..sampling.sampler import Sampler


def sources(code: str, x: Any, y: Any) -> dict[str, str]:
    """The mechanism, by its `code_of`, and the datasets as they are before anything is run, by hashes of contents.

    Raises
    ------
    StoreError
        For a dataset that cannot be told from another.
    """
    found = {}
    for side, dataset in zip(SIDES, (x, y), strict=True):
        seen = identity(dataset)
        found[side] = seen.hash
        if hidden := (*seen.opaque, *seen.failed):
            raise StoreError(
                f"{side} has parts that cannot be told from others ({', '.join(hidden)}), so a store might mix it with "
                "another dataset; give it as arrays, or let the mechanism make it from something plain.",
                side=side,
            )
    return {"code or parameters": code} | found


def code_of(sampler: Sampler) -> str:
    """The mechanism before anything is run, by a hash of its contents.

    Raises
    ------
    StoreError
        For a mechanism that cannot be told from another.
    """
    seen = identity_of_mechanism(sampler.function)
    if seen.failed:
        raise StoreError(
            f"{sampler.name} has parts that raise an exception when they are looked into ({', '.join(seen.failed)}), "
            "so a store might mix it with another mechanism; mend their __audit_identity__, or audit it without a "
            "store.",
            mechanism=sampler.name,
        )
    return seen.hash


def terms(plan: Plan) -> dict[str, Any]:
    """What decides which numbers a plan draws, besides the mechanism and the datasets.

    Raises
    ------
    StoreError
        For a mechanism with state, which would begin anew with noise that was used before.
    """
    if plan.is_stateful:
        raise StoreError(
            f"{plan.sampler.name} keeps state from run to run (a generator, a counter or a cache of its own), which a "
            "store cannot bring back; draw all noise from `rng`, or audit it without a store.",
            mechanism=plan.sampler.name,
        )
    return {
        "mechanism": plan.sampler.name,
        "seed": plan.seed,
        "block": plan.block,
        **{f"version of {name}": version for name, version in drawn_by()},
    }


def claim_in_words(claim: Claim) -> str:
    """A claim, so that another one is told from it and, where it is short, seen in a message."""
    return digest(claim) if len(str(claim)) > 60 else f"{claim} {digest(claim)}"


def arrangements(plan: Plan, settings: Settings, runs: int | None, cells: int, *, sequential: bool) -> dict[str, Any]:
    """All that an audit has in common besides, in text.

    Raises
    ------
    StoreError
        As of `terms`.
    """
    return terms(plan) | {
        "code": "" if settings.provenance is None else str(settings.provenance),
        "claim": claim_in_words(settings.claim),
        "alpha": settings.alpha,
        "runs": "as needed" if runs is None else runs,
        "resolution": settings.resolution,
        "power": settings.power,
        "sequential": sequential,
        "cells": cells,
        "bits": settings.bits,
    }
