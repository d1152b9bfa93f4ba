"""Claims and neighbour relations from the options of the command line."""

from __future__ import annotations

from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ...audit.claims.renyi import ZeroConcentratedDP
from ...audit.datasets.adjacency import Adjacency
from ...audit.datasets.named_adjacency import NAMED
from ...audit.errors import OptionError
from ...audit.options import Bits
from .known_names import ADJACENCIES, BITS
from .options import check_choices


def claim_or_none(epsilon: float | None, delta: float, mu: float | None, rho: float | None) -> Claim | None:
    """Return the claim of the options, or None if no option states a claim."""
    if epsilon is None and mu is None and rho is None and delta == 0:
        return None
    return claim_from_options(epsilon, delta, mu, rho)


def claim_from_options(epsilon: float | None, delta: float, mu: float | None, rho: float | None) -> Claim:
    """Return the claim of exactly one of epsilon (with delta), mu and rho."""
    given = {"--epsilon": epsilon, "--mu": mu, "--rho": rho}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise OptionError(
            f"{' and '.join(named) or 'no claim'} given; give exactly one of --epsilon (with --delta), --mu and --rho.",
            given=named,
        )
    if epsilon is None and delta != 0:
        raise OptionError(f"--delta {delta:g} belongs to --epsilon, not to {named[0]}; leave it out.", delta=delta)
    if mu is not None:
        return GaussianDP(mu)
    if rho is not None:
        return ZeroConcentratedDP(rho)
    assert epsilon is not None
    return ApproxDP(epsilon, delta) if delta != 0 else PureDP(epsilon)


def bits_from_option(name: str) -> Bits:
    """Return the setting for low bits."""
    check_choices([name], BITS, "--bits")
    known: dict[str, Bits] = {"warn": "warn", "true": True, "false": False}
    return known[name]


def adjacency_from_option(name: str | None) -> Adjacency | None:
    """Return the neighbour relation of the given name."""
    if name is None:
        return None
    check_choices([name], ADJACENCIES, "--adjacency")
    return NAMED[name]
