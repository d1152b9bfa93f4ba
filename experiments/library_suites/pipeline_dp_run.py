"""Runs of PipelineDP on its local backend: rows (user, partition, value) to the released partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from ...mechanisms.adapters.library_calls import released

PUBLIC = (0, 1)
"""Public partitions."""
KNOWN = (99, "known", 0.0, 0.0)
"""A row of every dataset, of a user and a partition that no other row has, as empty collections are refused."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pipeline:
    """Block sampler for a query of PipelineDP, with the claim of its accountant.

    Attributes
    ----------
    release : callable
        Maps the engine and the rows to a lazy collection.
    read : callable
        Maps the list of what the collection holds to one output.
    epsilon, delta : float
        Budget of the accountant, and the claim; epsilon in nats.
    accountant : str
        Name of the class of the accountant.
    always : tuple
        Rows of every dataset.
    source : str
        Where the claim is stated, if not as the budget of the accountant.
    """

    release: Callable[[Any, list[Any]], Any] = field(repr=False)
    read: Callable[[list[Any]], Any] = field(repr=False)
    epsilon: float = 1.0
    delta: float = 0.0
    accountant: str = "NaiveBudgetAccountant"
    always: tuple[Any, ...] = (KNOWN,)
    source: str = ""

    @property
    def claim(self) -> Claim:
        """The whole budget of the accountant."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def claim_source(self) -> str:
        """Where the claim is stated."""
        return self.source or f"total_epsilon and total_delta of {self.accountant}"

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """`size` outputs, with PyDP's own entropy and the global generator of numpy."""
        return [released(self.run, dataset) for _ in range(size)]

    def run(self, dataset: Any) -> Any:
        """Return one output."""
        pipeline = import_module("pipeline_dp")
        accountant = getattr(pipeline, self.accountant)(self.epsilon, self.delta)
        engine = pipeline.DPEngine(accountant, pipeline.LocalBackend())
        found = self.release(engine, [*dataset, *self.always])
        accountant.compute_budgets()
        return self.read(list(found))


def extractors() -> Any:
    """Return what extracts user, partition and value from a row."""
    return import_module("pipeline_dp").DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )


def vector_extractors() -> Any:
    """Return what extracts user, partition and two values from a row."""
    return import_module("pipeline_dp").DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: (row[2], row[3]),
    )


def in_order_of_keys(found: list[Any]) -> tuple[Any, ...]:
    """Return key and metrics of the partitions, in the order of the keys, not of the list."""
    parts: list[Any] = []
    for key, metrics in sorted(found, key=lambda each: str(each[0])):
        parts.append(str(key))
        parts += [float(number) for metric in metrics if metric is not None for number in np.ravel(metric)]
    return tuple(parts)


def metrics_in_order_of_keys(found: list[Any]) -> tuple[float, ...]:
    """Return the metrics of public partitions, in the order of the keys."""
    return tuple(part for part in in_order_of_keys(found) if not isinstance(part, str))


def sums_of_variances(middle: float, found: list[Any]) -> tuple[float, ...]:
    """Return count, sum and sum of squares of each partition, from which variance, mean and count were computed."""
    parts: list[float] = []
    for _, metrics in sorted(found, key=lambda each: str(each[0])):
        size, mean = max(1.0, metrics.count), metrics.mean - middle
        parts += [metrics.count, size * mean, size * (metrics.variance + mean**2)]
    return tuple(parts)


def keys_as_returned(found: list[Any]) -> tuple[str, ...]:
    """Return the keys of the partitions in the order of the list."""
    return tuple(str(key) for key, _ in found)


def sorted_keys(found: list[Any]) -> tuple[str, ...]:
    """Return the selected keys in their own order."""
    return tuple(sorted(str(key) for key in found))


def values_as_returned(found: list[Any]) -> tuple[float, ...]:
    """Return the values of a list of (key, value), in its order."""
    return tuple(float(value) for _, value in found)
