"""Entry of the catalogue of bugs: the bug, the pair that shows it, and the runs that find it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...audit.claims.claim import Claim, claim_at
from ...audit.datasets.adjacency import Adjacency
from ...audit.datasets.domains import Domain
from ...audit.errors import ClaimError
from ...audit.options import FloatingPoint
from ..cases.experiment import check_bounded, parameter_by_distributions


@dataclass(frozen=True, slots=True)
class NeighbouringPair:
    """Datasets that show a bug."""

    x: Any
    y: Any
    adjacency: Adjacency
    domain: Domain | None = None  # where a search may look for such a pair
    distance: float = 1.0  # distance of the datasets, at which the claim is made


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A bug that breaks a claim, with a mechanism that has it."""

    name: str
    family: str  # kind of mechanism
    cause: str  # what is wrong, in one line
    practice: str  # how the bug arises, in full sentences
    mechanism: Any  # mechanism with ``sample(dataset, size, rng)``, or a single run ``f(dataset, rng)``
    correct: Any  # the right mechanism, which keeps the claim on the same pair
    claim: Claim
    adjacency: Adjacency  # as in `NeighbouringPair`
    x: Any
    y: Any
    distance: float = 1.0
    domain: Domain | None = None
    # Strongest claim of this kind that is known to hold; None if no finite one holds for all datasets.
    truth: Claim | None
    # Exact privacy parameter on the pair, in the unit of the claim's and per step of the distance; infinite if
    # nothing holds, None if unknown.
    exact: float | None
    runs: int  # runs on each dataset with which an audit at alpha 1e-6 finds the bug with probability .999 or more
    floating_point: FloatingPoint = "ignore"  # "test" if only the low bits of the outputs show the bug

    @property
    def options(self) -> dict[str, Any]:
        """What an audit on the pair takes by name."""
        return {name: getattr(self, name) for name in ("claim", "adjacency", "distance", "floating_point")}


FaultMaker = Callable[..., Fault]
_OWN: Any = object()


def fault(
    family: str,
    name: str,
    mechanism: Any,
    pair: NeighbouringPair,
    *,
    correct: Any,
    claim: Claim | None = None,
    bound_on: Literal["epsilon", "delta"] | None = None,
    truth: Claim | None = _OWN,
    exact: float | None = None,
    cause: str = "",
    practice: str = "",
    runs: int = 10_000,
    floating_point: FloatingPoint = "ignore",
) -> Fault:
    """Return a fault, with defaults read from the mechanism.

    Claim and truth are by default those of the mechanism, and the truth of a right mechanism is its claim. The exact
    privacy parameter is that of its distributions where they give it, and cause and practice are in its docstring, in
    the form that `Flaw` describes. `bound_on` says which parameter of a claim with a δ the audit bounds; None leaves
    the claim as stated.

    Raises
    ------
    ClaimError
        If `bound_on` is given for a claim without δ, or the truth is not of the claim's kind. If the audit would bound
        ε where only a bound on δ says anything: ε is claimed to be 0, or no finite ε holds on the pair although a
        truth is stated.
    """
    given = _stated_claim(name, mechanism, mechanism.claim if claim is None else claim, bound_on)
    known = getattr(mechanism, "truth", mechanism.claim) if truth is _OWN else truth
    at_distance = claim_at(given, pair.distance)
    found = parameter_by_distributions(mechanism, (pair.x, pair.y), at_distance) if exact is None else exact
    _check_truth(name, mechanism, given, known, found)
    stated_cause, stated_practice = described(type(mechanism))
    return Fault(
        family=family,
        name=name,
        cause=cause or stated_cause,
        practice=practice or stated_practice,
        mechanism=mechanism,
        correct=correct,
        claim=given,
        adjacency=pair.adjacency,
        x=pair.x,
        y=pair.y,
        distance=pair.distance,
        domain=pair.domain,
        truth=known,
        exact=found,
        runs=runs,
        floating_point=floating_point,
    )


def _stated_claim(name: str, mechanism: Any, claim: Any, bound_on: Literal["epsilon", "delta"] | None) -> Any:
    """Return the claim with the stated bound; raise a `ClaimError` if it does not fit the claim."""
    if bound_on is not None:
        if not hasattr(claim, "bound_on"):
            raise ClaimError(
                f"{name}: {claim} has no delta, so bound_on={bound_on!r} does not apply; override `claim` in "
                f"{type(mechanism).__name__}, or pass claim=.",
                claim=claim,
                bound_on=bound_on,
            )
        claim = replace(claim, bound_on=bound_on)
    check_bounded(name, claim)
    return claim


def _check_truth(name: str, mechanism: Any, claim: Claim, truth: Claim | None, exact: float | None) -> None:
    """Raise a `ClaimError` if the truth is of another kind than the claim, or no finite parameter holds on the pair."""
    if truth is None:
        return
    if not isinstance(truth, type(claim)):
        raise ClaimError(
            f"{name}: the claim, {claim}, is {type(claim).__name__}, but the truth, {truth}, is "
            f"{type(truth).__name__}; override `claim` or `truth` in {type(mechanism).__name__}, or pass claim= or "
            "truth=.",
            claim=claim,
            truth=truth,
        )
    if exact is not None and math.isinf(exact):
        raise ClaimError(
            f"{name}: no finite {claim.parameter_name} holds on this pair, although the truth is {truth}; pass "
            "bound_on='delta' if the bug raises delta, or truth=None.",
            claim=claim,
            truth=truth,
        )


def described(kind: type) -> tuple[str, str]:
    """Return the first line of a flaw's docstring and the paragraph that begins "In practice,"."""
    paragraphs = [" ".join(text.split()) for text in (inspect.getdoc(kind) or "").split("\n\n")]
    practice = next((text for text in paragraphs if text.startswith("In practice, ")), "")
    return paragraphs[0].removesuffix("."), practice
