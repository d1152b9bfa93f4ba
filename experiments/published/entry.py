"""One mechanism of a published suite: its claim, a pair, and the exact loss on this pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from ...audit.claims.claim import Claim
from ...audit.datasets.adjacency import Adjacency
from ...audit.datasets.domains import Domain
from ...mechanisms import Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A mechanism of a published suite.

    The mechanism has ``sample(dataset, size, rng)``, and ``distribution(dataset)`` where the distribution of the output
    is known. `claim` is that of the suite, `domain` that of a search. x and y are the pair with the largest known loss,
    of which x is the more likely side, and `exact` is the supremum of the log-likelihood ratio there, in nats; infinite
    if some outputs occur on x only. `published` is the largest published lower bound at confidence .9 that does not
    exceed it, and `note` states the bug or the difficulty.
    """

    name: str
    mechanism: Any
    claim: Claim
    adjacency: Adjacency
    domain: Domain
    x: Any
    y: Any
    exact: float
    published: float | None = None
    note: str = ""

    @property
    def is_broken(self) -> bool:
        """Whether the exact loss exceeds the claim."""
        return self.exact > self.claim.parameter * (1 + 1e-9)


def entry(
    name: str,
    mechanism: Any,
    pair: tuple[Any, Any],
    adjacency: Adjacency,
    domain: Domain,
    note: str = "",
    *,
    exact: float | None = None,
    claim: Claim | None = None,
    published: float | None = None,
) -> Entry:
    """Return an entry, by default with the mechanism's own claim and the exact loss according to its distributions."""
    x, y = pair
    return Entry(
        name=name,
        mechanism=mechanism,
        claim=mechanism.claim if claim is None else claim,
        adjacency=adjacency,
        domain=domain,
        x=x,
        y=y,
        exact=float(mechanism.distribution(x).epsilon_from(mechanism.distribution(y), 0.0)) if exact is None else exact,
        published=published,
        note=note,
    )


def loss_at(output: float, mechanism: Any, pair: tuple[Any, Any]) -> float:
    """Return the log-likelihood ratio of an output."""
    x, y = (mechanism.distribution(dataset) for dataset in pair)
    return float(x.log_density(output) - y.log_density(output))


@dataclass(frozen=True, slots=True)
class RewrittenDistribution(Distribution):
    """The distribution of outputs that are those of the inner one in another form; each determines the other."""

    inner: Distribution

    def is_comparable(self, other: Self) -> bool:
        return type(self.inner) is type(other.inner) and self.inner.is_comparable(other.inner)

    def delta_from(self, other: Self, epsilon: float) -> float:
        return self.inner.delta_from(other.inner, epsilon)

    def epsilon_from(self, other: Self, delta: float) -> float:
        return self.inner.epsilon_from(other.inner, delta)
