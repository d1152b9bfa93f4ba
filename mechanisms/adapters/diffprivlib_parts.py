"""Shared parts of the diffprivlib adapters: the library, the claim for its epsilon and delta, and the noise source."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from ...audit.datasets.adjacency import Adjacency
from ...audit.datasets.named_adjacency import as_adjacency
from ...audit.errors import AdjacencyError
from .library_calls import imported


def library() -> Any:
    """Return the library; raise an `AuditError` if it cannot be imported."""
    return imported("diffprivlib", "diffprivlib", "scikit-learn")


def named_version() -> str:
    """Return the name of the library and its version."""
    return f"diffprivlib {version('diffprivlib')}"


def claim_of(epsilon: float, delta: float) -> Claim:
    """Return the claim; if epsilon is 0, the audit bounds delta."""
    if delta == 0:
        return PureDP(epsilon)
    return ApproxDP(epsilon, delta, bound_on="delta" if epsilon == 0 else "epsilon")


def random_state(rng: np.random.Generator) -> np.random.RandomState:
    """Return a random state, the generator that diffprivlib expects, on the stream of `rng`, without a new seed."""
    return np.random.RandomState(rng.bit_generator)


def needed_adjacency(adjacency: Adjacency | None, name: str, natural: str) -> Adjacency:
    """Return the adjacency; if it is None, raise an `AdjacencyError` that proposes `natural`."""
    if adjacency is None:
        raise AdjacencyError(
            f"adjacency=None does not say which neighbours the claim of {name} covers, and diffprivlib does not state "
            f"it; use adjacency={natural}.",
            adjacency=None,
        )
    return as_adjacency(adjacency)
