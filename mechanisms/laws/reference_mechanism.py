"""What every reference mechanism has: a claim, and the exact law of its output."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...audit.claims.claim import Claim
from .divergences import Law


class ReferenceMechanism(Protocol):
    """A mechanism with its claim and the exact law of its output."""

    @property
    def claim(self) -> Claim: ...

    def law(self, dataset: Any) -> Law: ...

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any: ...
