"""Base class of flaws that run as a different mechanism from the one they claim to be."""

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
    """A flaw that runs as another mechanism, mostly a reference mechanism with a wrong parameter.

    `runs_as` is that mechanism. It gives the twin its law and sampler and refuses wrong parameters.
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
        """Mechanism that is in fact run."""

    @property
    def truth(self) -> Claim | None:
        """Strongest claim known to hold: that of `runs_as` unless the twin states another."""
        return self.runs_as.claim

    def law(self, dataset: Any) -> Law:
        """Exact law of the output."""
        return self.runs_as.law(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` independent outputs."""
        return self.runs_as.sample(dataset, size, rng)
