"""Claims from dp-accounting's events, and privacy losses from replayed noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from ...audit.claims.claim import check_number
from ...audit.claims.privacy_profile import PrivacyProfile
from ...audit.errors import ClaimError
from ...audit.replay.distributions import moved
from ...audit.replay.replay_result import ReplayedCall, ReplayResult, check_replay_result
from ..queries import check_value
from .library_calls import imported

# Claims from `dp_accounting`: an event or a composition of events, as the privacy profile of its privacy loss.


def claim_from_event(
    event: Any,
    *,
    neighbours: Literal["add_or_remove_one", "replace_one", "replace_special"] = "add_or_remove_one",
    accountant: Literal["pld", "rdp"] = "pld",
    discretization: float = 1e-4,
    points: int = 401,
    max_epsilon: float = 50.0,
) -> PrivacyProfile:
    """Return the claim that `dp_accounting` derives for an event, never stronger: all rounding enlarges the deltas.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Such as ``GaussianDpEvent(noise_multiplier=2.0)``, or a composition of events.
    neighbours : {"add_or_remove_one", "replace_one", "replace_special"}
        The relation that the accountant assumes, by its name in `dp_accounting`. It matters for subsampling. The
        adjacency of the audit must be the same: `AddRemove`, `Replace` or `ZeroOut`.
    accountant : {"pld", "rdp"}
        The accountant: by privacy loss distributions, or by Rényi divergences, which knows other events and has larger
        deltas.
    discretization : float
        Grid width of the privacy losses, for "pld".
    points : int
        Number of epsilons, as for `PrivacyProfile.from_pld`.
    max_epsilon : float
        The largest of them, in nats.

    Returns
    -------
    PrivacyProfile
        The claim.

    Raises
    ------
    ClaimError, AuditError
        If the accountant does not support the event, the event is not private, or the relation is unknown; if
        dp-accounting is not installed.

    See Also
    --------
    pld_from_replay : The loss of the noise that a replay saw.
    dpaudit.PrivacyProfile : The class of the claim.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent
    >>> claim = claim_from_event(SelfComposedDpEvent(LaplaceDpEvent(noise_multiplier=4.0), 4))
    >>> round(claim.deltas[0], 3), round(min(claim.deltas), 9)
    (0.184, 0.0)
    """
    modules = ("dp_accounting", "dp_accounting.pld", "dp_accounting.rdp")
    dp_accounting, pld, rdp = (imported(module, "accounting") for module in modules)
    relations = {relation.name.lower(): relation for relation in dp_accounting.NeighboringRelation}
    relation = relations.get(neighbours.lower() if isinstance(neighbours, str) else "")
    why = f"is not a relation of dp_accounting; use one of {', '.join(relations)}."
    check_value("neighbours", neighbours, relation is not None, why)
    why = "is not an event of dp_accounting; use one such as GaussianDpEvent(noise_multiplier=2.0)."
    check_value("event", event, isinstance(event, dp_accounting.DpEvent), why)
    width = check_number("discretization", discretization, 0, 1, "1e-4 is usual", closed=False)
    check_value("accountant", accountant, accountant in ("pld", "rdp"), 'is unknown; use "pld" or "rdp".')
    renyi = rdp.RdpAccountant(neighboring_relation=relation)
    made = pld.PLDAccountant(relation, value_discretization_interval=width) if accountant == "pld" else renyi
    try:
        made.compose(event)
    except (dp_accounting.UnsupportedEventError, NotImplementedError) as error:
        kind = "privacy loss distribution" if accountant == "pld" else "Rényi divergence"
        other = 'accountant="rdp"' if accountant == "pld" and renyi.supports(event) else "another relation"
        raise ClaimError(
            f"the event {type(event).__name__} has no {kind} in dp_accounting for neighbours by "
            f"{neighbours} ({' '.join(str(error).split())}); use {other}, or write a PrivacyProfile yourself.",
            event=event,
        ) from error
    deltas = SimpleNamespace(get_delta_for_epsilon=made.get_delta)
    claim = PrivacyProfile.from_pld(deltas, points=points, max_epsilon=max_epsilon)
    if min(claim.deltas) == 1.0:
        raise ClaimError(
            f"the event {type(event).__name__} has delta 1 at every epsilon; leave it out of the claim.", event=event
        )
    return claim


# The budget of a replayed pipeline: the losses of its calls, composed by `dp_accounting`.

_MOST = 200  # draws of one call that are composed one by one


def pld_from_replay(result: ReplayResult, *, discretization: float = 1e-4, partial: bool = False) -> Any:
    """Return dp_accounting's privacy loss distribution of all recorded calls together, on the path of a replay.

    Its ``get_epsilon_for_delta(delta)`` is the budget that these calls spend on this pair and path: at most, as all
    rounding enlarges it. For Laplace, geometric and Gaussian noise the whole loss is composed, for other calls the
    worst case.

    Parameters
    ----------
    result : ReplayResult
        The replay of a pair.
    discretization : float
        Grid width of the losses.
    partial : bool
        Whether to compose the calls of a result that is open: the budget only of these calls, and not that of the
        output.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Of all calls together.

    Raises
    ------
    ClaimError, MissingExtraError
        If the result has `open_reasons` and `partial` is false; if the loss of a call is unknown or infinite, also
        because its noise is added to something that the replay does not know; if dp-accounting is not installed.

    See Also
    --------
    dpaudit.replay : The replay.
    claim_from_event : The claim of an accountant.

    Examples
    --------
    >>> from dpaudit import replay
    >>> def noisy(rows, rng):
    ...     return [rng.laplace(len(rows), 10.0) for _ in range(100)]
    >>> budget = pld_from_replay(replay(noisy, [1, 1], [1], claim=10.0))
    >>> round(budget.get_epsilon_for_delta(1e-6), 2)  # of 100 calls of epsilon .1, whose sum is 10
    4.69
    """
    check_replay_result(result)
    losses = imported("dp_accounting.pld.privacy_loss_distribution", "accounting")
    width = check_number("discretization", discretization, 0, 1, "1e-4 is usual", closed=False)
    _refuse_unknown_sums(result)
    if result.open_reasons and not partial:
        raise ClaimError(
            f"the replay is open ({result.open_reasons[0]}), so the output may cost more than its recorded calls; "
            "partial=True composes only these."
        )
    parts = [loss for call in result.calls for loss in _losses(call, losses, width)]
    return reduce(lambda one, other: one.compose(other), parts, losses.identity(width))


def _refuse_unknown_sums(result: ReplayResult) -> None:
    """Raise for noise about 0 whose sum the outputs do not show: the same call on x and y, but not without a loss."""
    for call in result.calls if result.open_reasons else ():
        if call.is_bare and call.is_bare_noise:
            raise ClaimError(
                f"what the noise of {call.primitive} at {call.place} is added to is not known, so its loss is unknown; "
                "put noise_primitive on the function that adds it.",
                call=call,
            )


def _losses(call: ReplayedCall, losses: Any, width: float) -> Iterator[Any]:
    """Yield the privacy loss distributions of a call, none for one that is the same on x and y."""
    options = {"value_discretization_interval": width}
    mu, worst = call.mu, call.worst_loss
    if mu == 0.0 or worst == 0.0:
        return
    if mu is not None and math.isfinite(mu):
        yield losses.from_gaussian_mechanism(1.0 / mu, **options)
        return
    if worst is None or not math.isfinite(worst):
        raise ClaimError(
            f"the loss of {call.primitive} at {call.place} is {'unknown' if worst is None else 'infinite'}, so the "
            "calls compose to no budget; see the findings of the replay.",
            call=call,
        )
    distance, scale = moved(call.distribution_on_x, call.distribution_on_y), call.distribution_on_x.scale
    if distance is not None and scale is not None and distance.size <= _MOST:
        both = zip(np.ravel(distance).tolist(), np.ravel(scale).tolist(), strict=True)
        pairs = [(far, of) for far, of in both if far]
        if call.distribution_on_x.name == "laplace":
            yield from (losses.from_laplace_mechanism(of, sensitivity=far, **options) for far, of in pairs)
            return
        if call.distribution_on_x.name == "two-sided geometric" and all(far.is_integer() for far, _ in pairs):
            yield from (losses.from_discrete_laplace_mechanism(1.0 / of, int(far), **options) for far, of in pairs)
            return
    parameters = imported("dp_accounting.pld.common", "accounting").DifferentialPrivacyParameters(worst, 0.0)
    yield losses.from_privacy_parameters(parameters, **options)
