"""What a published suite says of a mechanism, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...audit.claims.claim import Claim
from ...audit.datasets.adjacency import Adjacency
from ...audit.datasets.domains import Domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A mechanism of a published suite.

    Attributes
    ----------
    name : str
        Its name in the suite.
    mechanism : Any
        With ``sample(dataset, size, rng)``, and ``law(dataset)`` where the law of the output is known.
    claim : Claim
        What the suite says of it.
    is_broken : bool
        Whether the claim is false.
    adjacency : Adjacency
    domain : Domain
        Where a search may look for a pair.
    x, y : Any
        The pair of the largest loss that is known, x the likelier side.
    exact : float
        The supremum of the log-likelihood ratio on that pair, in nats; infinite where some outputs occur on x only.
    published : float or None
        The largest confident lower bound that any tester has published, in nats, at confidence .9; bounds above `exact`
        do not count. None where there is none.
    note : str
        One line: what is wrong, or what is hard.
    """

    name: str
    mechanism: Any
    claim: Claim
    is_broken: bool
    adjacency: Adjacency
    domain: Domain
    x: Any
    y: Any
    exact: float
    published: float | None = None
    note: str = ""
