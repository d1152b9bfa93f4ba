"""A bug of the catalogue: what is claimed, what is true, where it shows, what finds it, and why it happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...audit.claims.claim import Claim
from ...audit.claims.pure_approx_gaussian import ApproxDP, PureDP
from ...audit.datasets.adjacency import Adjacency
from ...audit.datasets.domains import Domain
from ...audit.errors import OptionError
from ...mechanisms import exact_delta, exact_epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A cause for which mechanisms break their claims, as one mechanism that does.

    Attributes
    ----------
    name : str
    family : str
        Of mechanisms: what is done to the data.
    cause : str
        What is wrong, in one line.
    practice : str
        How it comes to be.
    mechanism : Any
        With ``sample(dataset, size, rng)``, or a single run ``f(dataset, rng)``.
    correct : Any
        The same done right: it keeps the claim on the same pair.
    claim : Claim
    adjacency : Adjacency
    x, y : Any
        Datasets on which the bug shows.
    distance : float
        Of the two, at which the claim is made.
    domain : Domain or None
        Where a search may look for such a pair.
    truth : Claim or None
        The strongest claim of this kind that is known to hold; None where no finite one does for all datasets.
    exact : float or None
        The strength that the pair itself has, in the unit of the claim's; infinite where nothing holds, None where it
        is not known.
    runs : int
        On each dataset, with which an audit at alpha 1e-6 finds it with a probability of .999 at least.
    bits : bool
        Whether it is to be seen in the low bits of the outputs alone.
    """

    name: str
    family: str
    cause: str
    practice: str
    mechanism: Any
    correct: Any
    claim: Claim
    adjacency: Adjacency
    x: Any
    y: Any
    distance: float = 1.0
    domain: Domain | None = None
    truth: Claim | None
    exact: float | None
    runs: int
    bits: bool = False


FaultMaker = Callable[..., Fault]
_OWN: Any = object()


def fault(
    family: str,
    name: str,
    mechanism: Any,
    pair: tuple[Any, Any],
    adjacency: Adjacency,
    *,
    correct: Any,
    claim: Claim | None = None,
    truth: Claim | None = _OWN,
    exact: float | None = None,
    **rest: Any,
) -> Fault:
    """A fault with the mechanism's own claim and truth and, where the laws give it, the exact strength on the pair.

    A claim with a delta is bounded in its delta, in which such bugs show most.
    """
    given = mechanism.claim if claim is None else claim
    if isinstance(given, ApproxDP):
        given = replace(given, bound_on="delta")
    return Fault(
        family=family,
        name=name,
        mechanism=mechanism,
        correct=correct,
        claim=given,
        adjacency=adjacency,
        x=pair[0],
        y=pair[1],
        truth=mechanism.truth if truth is _OWN else truth,
        exact=strength_by_laws(mechanism, pair, given) if exact is None else exact,
        **rest,
    )


def strength_by_laws(mechanism: Any, pair: tuple[Any, Any], claim: Claim) -> float | None:
    """The strength that the pair has, in the unit of the claim's; None where the laws have no closed form for it."""
    if not hasattr(mechanism, "law") or not isinstance(claim, (PureDP, ApproxDP)):
        return None
    try:
        laws = [mechanism.law(dataset) for dataset in pair]
        if isinstance(claim, ApproxDP):
            return exact_delta(laws[0], laws[1], claim.epsilon)
        return exact_epsilon(laws[0], laws[1])
    except OptionError:
        return None
