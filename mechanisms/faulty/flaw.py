"""What mechanisms with a bug share that are no reference mechanism at a wrong parameter."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim, check_number
from ...audit.claims.pure_approx_gaussian import PureDP


class Flaw(ABC):
    """A mechanism with a bug from practice and a sampler of its own: what it claims, and what is true of it.

    A `Twin` is one that runs as another mechanism, with that one's law. Real outputs are on a grid like any reference
    mechanism's, so an audit that refutes a flaw has found its bug, not its low bits; but for those that are about bits.
    """

    __slots__ = ()
    epsilon: float

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)

    @property
    def claim(self) -> Claim:
        """What the mechanism is said to satisfy: pure epsilon-DP unless a flaw says otherwise."""
        return PureDP(self.epsilon)

    @property
    def truth(self) -> Claim | None:
        """A claim of the claimed kind that does hold, the strongest that is known; None where no finite one does."""
        return None

    @abstractmethod
    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs."""
