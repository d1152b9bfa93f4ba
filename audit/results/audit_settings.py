"""What is known of an audit before its outputs are looked at."""

from __future__ import annotations

from dataclasses import dataclass

from ..claims.claim import Claim
from ..options import Bits
from ..sampling.provenance import Provenance
from .audit_result import Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What does not depend on where the outputs come from."""

    claim: Claim
    claim_source: str
    pair: Pair
    alpha: float
    resolution: float | None
    power: float
    name: str
    provenance: Provenance | None
    seed: int
    bits: Bits
