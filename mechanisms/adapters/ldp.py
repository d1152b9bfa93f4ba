"""Clients of local differential privacy, of pure-ldp, multi-freq-ldpy and others, with the claim of their parameters.

Such clients draw from global generators, in whose place each block has its own, so that audits with one seed repeat.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim, PureDP
from ...audit.datasets.adjacency import Adjacency, Local
from ...audit.datasets.named_adjacency import as_adjacency
from ...audit.errors import ClaimError, DatasetError, MechanismError
from ...audit.options import checked
from .global_generators import generators_of_body
from .library_calls import released

_EPSILONS = ("epsilon", "eps_1", "eps_perm")
"""Parameters of a client that state the claim of one report: of two rounds, `eps_1` is for a single report."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LDPMechanism:
    """Block sampler for a client; use `from_ldp` to create one.

    Attributes
    ----------
    client : object or callable
    release : callable
        Maps the client and a value to one report.
    """

    client: Any = field(repr=False)
    release: Callable[[Any, Any], Any] = field(repr=False)
    claim: Claim
    claim_source: str
    adjacency: Adjacency
    name: str

    def __str__(self) -> str:
        return self.name

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """`size` reports of a value; a run that raises is an output too, except for a TypeError."""
        _check_value(self.client, dataset)
        with generators_of_body(rng):
            return [released(self.release, self.client, dataset) for _ in range(size)]


def from_ldp(
    client: Any,
    *,
    claim: Claim | None = None,
    claim_source: str = "",
    adjacency: Adjacency | None = None,
    release: Callable[[Any, Any], Any] | None = None,
) -> LDPMechanism:
    """Return a client of local differential privacy with its claim, ready for `check` and `find_worst_pair`.

    Parameters
    ----------
    client : object or functools.partial
        An object with `privatise`, such as a client of pure-ldp, or a function of a value with its other parameters,
        such as ``partial(GRR_Client, k=4, epsilon=1.0)`` for multi-freq-ldpy.
    claim : Claim, optional
        Of one report. By default the object's `epsilon`, or the function's `epsilon`, `eps_1` or `eps_perm`, the first
        that is given by name.
    claim_source : str
        Source of a claim that is passed.
    adjacency : Adjacency, optional
        By default ``Local()``: any two values.
    release : callable, optional
        Maps the client and a value to one report; by default ``client.privatise(value)`` or ``client(value)``, as one
        flat tuple (`flat_report`).

    Raises
    ------
    MechanismError
        If the client is neither of these.
    ClaimError
        If the client states no epsilon.
    """
    said = client.keywords if isinstance(client, functools.partial) else vars(client) if _privatises(client) else {}
    name = _name_of(client)
    if not _privatises(client) and not callable(client):
        raise MechanismError(
            f"client={client!r:.60} has no method privatise and cannot be called; use a client of pure-ldp, or a "
            "function of a value.",
            client=client,
        )
    if claim is None:
        stated = next((each for each in _EPSILONS if said.get(each) is not None), None)
        if stated is None:
            raise ClaimError(
                f"{name} states none of {', '.join(_EPSILONS)}; pass claim=, such as PureDP(1.0).", client=name
            )
        claim, claim_source = PureDP(float(said[stated])), f"{stated} of {name}"
    return LDPMechanism(
        client=client,
        release=_release if release is None else release,
        claim=claim,
        claim_source=checked("claim_source", claim_source),
        adjacency=Local() if adjacency is None else as_adjacency(adjacency),
        name=name,
    )


def _check_value(client: Any, value: Any) -> None:
    """Raise a `DatasetError` for a whole number outside the domain that the client states as `d` or `k`."""
    said = client.keywords if isinstance(client, functools.partial) else getattr(client, "__dict__", {})
    size, index = said.get("d", said.get("k")), said.get("index_mapper", lambda each: each)
    if not isinstance(size, int) or not isinstance(value, int | np.integer) or not callable(index):
        return
    place = index(value)
    if isinstance(place, int | np.integer) and not 0 <= place < size:
        first = next((each for each in (0, 1) if index(each) == 0), None)
        known = "" if first is None else f"; its values are {first} to {first + size - 1}"
        raise DatasetError(f"value {value} is outside the domain of {_name_of(client)}{known}.", value=value)


def flat_report(report: Any) -> Any:
    """Return a report of nested lists, tuples and arrays as one tuple of its parts.

    Any other iterator is told from a list of the same parts by the name of its type, which comes first.
    """
    return tuple(_parts(report)) if isinstance(report, list | tuple | np.ndarray) or _is_iterator(report) else report


def _parts(report: Any) -> Iterator[Any]:
    if isinstance(report, np.ndarray):
        yield from report.ravel().tolist()
    elif isinstance(report, list | tuple):
        for part in report:
            yield from _parts(part)
    elif _is_iterator(report):
        yield type(report).__name__
        yield from _parts(list(report))
    else:
        yield report.item() if isinstance(report, np.generic) else report


def _is_iterator(report: Any) -> bool:
    return hasattr(report, "__next__")


def _privatises(client: Any) -> bool:
    return hasattr(client, "privatise") and not isinstance(client, type)


def _release(client: Any, value: Any) -> Any:
    return flat_report(client.privatise(value) if _privatises(client) else client(value))


def _name_of(client: Any) -> str:
    function = client.func if isinstance(client, functools.partial) else client
    return str(getattr(function, "__name__", type(function).__name__))
