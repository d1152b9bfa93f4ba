"""Base class of mechanisms with a known bug."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim, PureDP, check_number
from ...audit.errors import ClaimError


class Flaw(ABC):
    """A mechanism with a known bug, the claim that it breaks and the strongest claim known to hold.

    A `Twin` is a flaw that runs as another mechanism and has the law of that mechanism; any other flaw has its own
    sampler. Real outputs lie on a grid, as those of reference mechanisms do, so an audit that refutes a flaw has found
    the bug and not the low bits, unless the bug is in the low bits.

    The docstring of a flaw describes the bug for the catalogue too: the first line states the cause and the true
    guarantee, and a paragraph that begins "In practice," says how the bug arises.
    """

    __slots__ = ()
    epsilon: float

    def __post_init__(self) -> None:
        self.claim  # noqa: B018  # refuses the parameters of the claim

    @property
    def claim(self) -> Claim:
        """Claim that the mechanism breaks: ε-DP with ε > 0 unless the flaw states another."""
        if not hasattr(self, "epsilon"):
            kind = type(self).__name__
            raise ClaimError(f"{kind} has no epsilon, so it does not claim PureDP(epsilon); override claim.", flaw=kind)
        return PureDP(check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False))

    @property
    def truth(self) -> Claim | None:
        """Strongest claim of the same kind that is known to hold; None where no finite one holds."""
        return None

    @abstractmethod
    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs."""


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise a `ClaimError` unless the value is one of the choices."""
    if value not in choices:
        raise ClaimError(f"{name}={value!r} is unknown; use one of {', '.join(choices)}.", **{name: value})
