"""What every faulty twin shares: it runs as another mechanism than the one it claims to be."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim
from ..laws.divergences import Law
from ..laws.reference_mechanism import ReferenceMechanism
from .flaw import Flaw


class Twin(Flaw):
    """A flaw whose truth is known, as it runs as another mechanism.

    What is run, `runs_as`, is a sound implementation of the wrong thing: mostly a reference mechanism at the wrong
    parameter.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        Flaw.__post_init__(self)
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
    @abstractmethod
    def truth(self) -> Claim | None:
        """A claim of the claimed kind that does hold, the strongest that is known; None where no finite one does."""

    def law(self, dataset: Any) -> Law:
        """The output's exact law."""
        return self.runs_as.law(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs."""
        return self.runs_as.sample(dataset, size, rng)
