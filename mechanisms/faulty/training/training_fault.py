"""Entry of the registry of mistakes in training: the mistake, the pair that shows it, its source and its true loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ....audit.datasets.adjacency import Adjacency
from ...noise_samplers import Floats
from ...training.canaries import Canaries
from ...training.dp_sgd import DPSGD
from .mistaken_training import MistakenTraining

Exposure = Literal["one run", "repeated runs", "step by step"]
Knowledge = Literal["exact", "at least"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFault:
    """A mistake in DP-SGD, with the right training and a pair of datasets that shows it.

    Attributes
    ----------
    name : str
    cause : str
        What is wrong, in a line.
    source : str
        Where the mistake was made or is described, and what that source says.
    right : DPSGD
        The training that keeps the claim.
    wrong : MistakenTraining
        The training that breaks it.
    x, y : array_like
        The pair, neighbours under the claim's relation.
    exposed_by : tuple of {"one run", "repeated runs", "step by step"}
        Audits that show it: one run with canaries; many runs on x and y; a comparison of the parts of a step (sum,
        noise, batches) with what the claim assumes.
    loss_on_pair : callable
        Returns the smallest ε at the claim's δ on this pair, for an observer of every noisy sum (needs dp-accounting).
    loss_is : {"exact", "at least"}
        Whether `loss_on_pair` is that ε, up to the grid of its computation, or a lower bound on it.
    is_unbounded : bool
        Whether no finite ε holds over all neighbours.
    runs : int
        Runs on each dataset with which an audit finds the mistake with seed 0.
    canaries : Canaries or None
        Canaries for a run without real records that shows it; None where one run does not.
    """

    name: str
    cause: str
    source: str
    right: DPSGD
    wrong: MistakenTraining
    x: Any
    y: Any
    exposed_by: tuple[Exposure, ...]
    loss_on_pair: Callable[[], float]
    loss_is: Knowledge = "exact"
    is_unbounded: bool = False
    runs: int = 4_000
    canaries: Canaries | None = None

    @property
    def adjacency(self) -> Adjacency:
        """Relation of the pair and the claim."""
        return self.right.adjacency

    @property
    def delta(self) -> float:
        """δ of the claim."""
        claim: Any = self.right.claim
        return float(claim.delta)

    @property
    def claimed_epsilon(self) -> float:
        """ε of the claim at its δ, in nats."""
        claim: Any = self.right.claim
        return float(claim.epsilon)

    @property
    def pair_epsilon(self) -> float:
        """Smallest ε at the claim's δ on the pair, or a lower bound on it if `loss_is` is "at least"; in nats."""
        return self.loss_on_pair()

    @property
    def true_epsilon(self) -> float:
        """Largest ε known to be needed at the claim's δ: infinite where no finite one holds, else that of the pair."""
        return float(np.inf) if self.is_unbounded else self.pair_epsilon

    @property
    def no_records(self) -> Floats:
        """A dataset without real records, for a run of canaries alone."""
        return np.empty((0, np.shape(self.x)[1]))
