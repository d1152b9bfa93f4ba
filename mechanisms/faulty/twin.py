"""What every faulty twin shares: it runs as another mechanism than the one it claims to be."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from ...audit.claims import Claim, PureDP, check_number
from ..divergences import Law


class ReferenceMechanism(Protocol):
    """A mechanism with its claim and the exact law of its output."""

    @property
    def claim(self) -> Claim: ...

    def law(self, dataset: Any) -> Law: ...

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any: ...


class Twin(ABC):
    """A mechanism with a bug from practice: what it claims, and what is true of it on the same adjacency.

    What is run, `runs_as`, is a sound implementation of the wrong thing: mostly a reference mechanism at the wrong
    parameter. Real outputs are on a grid like any reference mechanism's, so an audit that refutes a twin has found
    its bug, not its low bits.
    """

    __slots__ = ()
    epsilon: float

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, 0, math.inf, "in nats", closed=False)
        self.runs_as  # noqa: B018  # refuses the other parameters

    def __str__(self) -> str:
        shown = (
            f"{f.name}={value:g}" if isinstance(value, float) else f"{f.name}={value}"
            for f in fields(self)  # type: ignore[arg-type]  # every twin is a dataclass
            if f.init and not callable(value := getattr(self, f.name))
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    @abstractmethod
    def runs_as(self) -> ReferenceMechanism:
        """The mechanism that in truth is run."""

    @property
    def claim(self) -> Claim:
        """What the mechanism is said to satisfy: pure epsilon-DP unless a twin says otherwise."""
        return PureDP(self.epsilon)

    @property
    @abstractmethod
    def truth(self) -> Claim | None:
        """A claim of the claimed kind that does hold, the strongest that is known; None where no finite one does."""

    def law(self, dataset: Any) -> Law:
        """The output's exact law."""
        return self.runs_as.law(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs."""
        return self.runs_as.sample(dataset, size, rng)
