"""A training that states the claim of another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....audit.claims.claim import Claim
from ....audit.datasets.adjacency import Adjacency
from ...noise_samplers import Floats
from ...training.dp_sgd import DPSGD
from ...training.observers import Observer
from ...training.train import Recipe, train
from ..flaw import Flaw


@dataclass(frozen=True, slots=True, kw_only=True)
class MistakenTraining(Flaw):
    """A training with another recipe than the one that its claim is for.

    Parameters
    ----------
    claimed : DPSGD
        The right training for the claim, which is its own.
    recipe : Recipe
        The training that is in fact run.
    label : str
        Short name of the mistake.
    adapt : callable, optional
        ``adapt(recipe, rows)`` changes the recipe by the private records.
    seen : Observer, optional
        What is seen of a run; by default what is seen of the right training.
    """

    claimed: DPSGD
    recipe: Recipe
    label: str
    adapt: Callable[[Recipe, Any], Recipe] | None = None
    seen: Observer | None = None

    def __post_init__(self) -> None:
        return None  # the parameters of the claim are checked by the right training

    def __str__(self) -> str:
        return f"DPSGD: {self.label}"

    @property
    def claim(self) -> Claim:
        """The claim of the right training."""
        return self.claimed.claim

    @property
    def adjacency(self) -> Adjacency:
        """The relation of the claim."""
        return self.claimed.adjacency

    @property
    def clip(self) -> float:
        """The clipping norm that the claim assumes."""
        return self.claimed.clip

    @property
    def noise_multiplier(self) -> float:
        """The noise multiplier that the claim assumes."""
        return self.claimed.noise_multiplier

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """What the observer sees of `size` independent trainings, shape (size,) or (size, k)."""
        recipe = self.recipe if self.adapt is None else self.adapt(self.recipe, dataset)
        return train(recipe, dataset, self.seen or self.claimed.observer, size, rng)


def mistaken(claimed: DPSGD, label: str, **changes: Any) -> MistakenTraining:
    """Return the wrong twin of a right training: its recipe with these changes."""
    return MistakenTraining(claimed=claimed, label=label, recipe=replace(claimed.recipe, **changes))
