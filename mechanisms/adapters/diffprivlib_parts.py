"""What adapters of diffprivlib share: the library itself, claims by its two numbers, and the noise's source."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from types import ModuleType

import numpy as np

from ...audit.claims.claim import Claim
from ...audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ...audit.datasets.adjacency import Adjacency, check_adjacency
from ...audit.errors import AdjacencyError, AuditError


def library() -> ModuleType:
    """The library.

    Raises
    ------
    AuditError
        Where it cannot be imported.
    """
    try:
        return import_module("diffprivlib")
    except ImportError as error:
        raise AuditError(
            f"diffprivlib cannot be imported ({error}); use pip install 'dpaudit[diffprivlib]', which brings the "
            "scikit-learn that it needs as well."
        ) from error


def named_version() -> str:
    """The library and its version."""
    return f"diffprivlib {version('diffprivlib')}"


def claim_of(epsilon: float, delta: float) -> Claim:
    """The claim; where epsilon is 0 the number to bound is delta."""
    if delta == 0:
        return PureDP(epsilon)
    return ApproxDP(epsilon, delta, bound_on="delta" if epsilon == 0 else "epsilon")


def random_state(rng: np.random.Generator) -> np.random.RandomState:
    """A random state, as diffprivlib wants one, over the generator's own stream: nothing is seeded."""
    return np.random.RandomState(rng.bit_generator)


def needed_adjacency(adjacency: Adjacency | None, name: str, natural: str) -> Adjacency:
    """The relation, which has to be given; `natural` is proposed where it is not."""
    if adjacency is None:
        raise AdjacencyError(
            f"adjacency=None says not for which neighbours {name} keeps its claim, and diffprivlib does not know; use "
            f"adjacency={natural}.",
            adjacency=None,
        )
    return check_adjacency(adjacency)
