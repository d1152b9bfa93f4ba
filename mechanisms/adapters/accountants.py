"""Accountants of other libraries as functions of a case; what a library has no counterpart for is refused."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeAlias

from ...audit.accounting.check_accountant import GRID, OTHER_ADJACENCIES, AccountantResult, check_accountant
from ...audit.accounting.privacy_loss import Case, Gaussian, Laplace
from ...audit.claims.claim import ApproxDP, PureDP
from ...audit.errors import OptionError
from .library_calls import imported

_Makers: TypeAlias = dict[type, Callable[[Any], Any]]
_import = partial(imported, extra="accountants")
_RELATIONS: Final = {"add-remove": "ADD_OR_REMOVE_ONE", "replace": "REPLACE_ONE", "zero-out": "REPLACE_SPECIAL"}


def _made(case: Case, makers: _Makers, *, replaces: bool = False) -> tuple[list[Any], list[int]]:
    """Return the library's mechanisms of a case, and how often each is run."""
    if case.adjacency == "replace" and not replaces:
        raise OptionError("this accountant does not state what it assumes of replaced records.")
    for mechanism, _ in case.mechanisms:
        if type(mechanism) not in makers:
            raise OptionError(f"{type(mechanism).__name__} has no counterpart in this accountant.")
    return [makers[type(one)](one) for one, _ in case.mechanisms], [count for _, count in case.mechanisms]


def _without_sampling(maker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def make(mechanism: Gaussian | Laplace) -> Any:
        if mechanism.sampling_rate != 1.0:
            raise OptionError(f"{type(mechanism).__name__} on a sample has no counterpart in this accountant.")
        return maker(mechanism)

    return make


def _dp_accounting(kind: str, case: Case) -> float:
    events, module = _import("dp_accounting"), _import(f"dp_accounting.{kind}")
    relation = events.NeighboringRelation[_RELATIONS[case.adjacency]]
    if kind == "pld" and {type(mechanism) for mechanism, _ in case.mechanisms} <= {PureDP, ApproxDP}:
        losses = _import("dp_accounting.pld.privacy_loss_distribution")  # they have no event
        parameters = _import("dp_accounting.pld.common").DifferentialPrivacyParameters
        total = losses.identity()
        for claim, count in case.mechanisms:
            of_one = parameters(getattr(claim, "epsilon", math.nan), getattr(claim, "delta", 0.0))
            total = total.compose(losses.from_privacy_parameters(of_one).self_compose(count))
        return float(total.get_epsilon_for_delta(case.delta))

    def sampled(event: Any, rate: float) -> Any:
        return event if rate == 1.0 else events.PoissonSampledDpEvent(rate, event)

    makers: _Makers = {
        Gaussian: lambda m: sampled(events.GaussianDpEvent(m.noise_multiplier), m.sampling_rate),
        Laplace: lambda m: sampled(events.LaplaceDpEvent(m.noise_multiplier), m.sampling_rate),
    }
    accountant = module.PLDAccountant(relation) if kind == "pld" else module.RdpAccountant(None, relation)
    for event, count in zip(*_made(case, makers, replaces=True), strict=True):
        accountant.compose(event, count)
    return float(accountant.get_epsilon(case.delta))


def _opacus(kind: str, case: Case) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that gdp may underestimate, which the check measures, or of its orders
        accountant = _import("opacus.accountants").create_accountant(kind)
        if kind == "gdp" and len(case.mechanisms) > 1:
            raise OptionError("several mechanisms have no counterpart in this accountant.")  # as its step says
        steps = zip(*_made(case, {Gaussian: lambda m: (m.noise_multiplier, m.sampling_rate)}), strict=True)
        accountant.history += [(*parameters, count) for parameters, count in steps]
        return float(accountant.get_epsilon(delta=case.delta))


def _prv(case: Case) -> float:
    library, losses = _import("prv_accountant"), _import("prv_accountant.privacy_random_variables")

    def gaussian(m: Gaussian) -> Any:
        if m.sampling_rate == 1.0:
            return losses.GaussianMechanism(noise_multiplier=m.noise_multiplier)
        return library.PoissonSubsampledGaussianMechanism(m.sampling_rate, m.noise_multiplier)

    makers = {
        Gaussian: gaussian,
        Laplace: _without_sampling(lambda m: losses.LaplaceMechanism(mu=1.0 / m.noise_multiplier)),
        PureDP: lambda m: losses.PureDPMechanism(m.epsilon),
        ApproxDP: lambda m: losses.ApproximateDPMechanism(m.epsilon, m.delta),
    }
    parts, counts = _made(case, makers)
    accountant = library.PRVAccountant(parts, 0.01, case.delta / 1000, max_self_compositions=counts)
    return float(accountant.compute_epsilon(case.delta, counts)[2])


def _autodp(case: Case) -> float:
    zoo, transformers = _import("autodp.mechanism_zoo"), _import("autodp.transformer_zoo")

    def sampled(made: Any, rate: float) -> Any:
        return made if rate == 1.0 else transformers.AmplificationBySampling()(made, rate, improved_bound_flag=True)

    makers = {
        Gaussian: lambda m: sampled(zoo.GaussianMechanism(sigma=m.noise_multiplier), m.sampling_rate),
        Laplace: lambda m: sampled(zoo.LaplaceMechanism(b=m.noise_multiplier), m.sampling_rate),
        PureDP: lambda m: zoo.PureDP_Mechanism(eps=m.epsilon),
    }
    return float(transformers.Composition()(*_made(case, makers)).get_approxDP(case.delta))


def _opendp(case: Case) -> float:
    opendp = _import("opendp.prelude")
    opendp.enable_features("contrib", "honest-but-curious")
    space = opendp.atom_domain(T=float, nan=False), opendp.absolute_distance(T=float)
    pure, moved = opendp.max_divergence(), 2.0 if case.adjacency == "replace" else 1.0

    def stated(measure: Any, loss: Any) -> Any:
        return opendp.m.make_user_measurement(
            *space, output_measure=measure, function=float, privacy_map=lambda distance: loss
        )

    makers = {
        Gaussian: _without_sampling(lambda m: opendp.m.make_gaussian(*space, scale=m.noise_multiplier)),
        Laplace: _without_sampling(lambda m: opendp.m.make_laplace(*space, scale=m.noise_multiplier)),
        PureDP: lambda m: stated(pure, m.epsilon),
        ApproxDP: lambda m: stated(opendp.approximate(pure), (m.epsilon, m.delta)),
    }
    parts = zip(*_made(case, makers, replaces=True), strict=True)
    composed = opendp.c.make_composition([part for part, count in parts for _ in range(count)])
    loss = composed.map(moved)
    if isinstance(loss, tuple):
        return loss[0] if loss[1] <= case.delta else math.inf
    if any(isinstance(mechanism, Gaussian) for mechanism, _ in case.mechanisms):  # ρ of zero-concentrated DP
        return float(opendp.c.make_zCDP_to_approxDP(composed).map(moved).epsilon(case.delta))
    return float(loss)


_ACCOUNTANTS: Final[dict[str, Callable[[Case], float]]] = {
    "dp-accounting-pld": partial(_dp_accounting, "pld"),
    "dp-accounting-rdp": partial(_dp_accounting, "rdp"),
    **{f"opacus-{kind}": partial(_opacus, kind) for kind in ("rdp", "prv", "gdp")},
    "prv-accountant": _prv,
    "autodp": _autodp,
    "opendp": _opendp,
}


def check_library_accountant(name: str, cases: Iterable[Case] = (*GRID, *OTHER_ADJACENCIES)) -> AccountantResult:
    """Check an accountant of an installed library; see `dpaudit.accountants.check_accountant`.

    Parameters
    ----------
    name : str
        "dp-accounting-pld", "dp-accounting-rdp", "opacus-rdp", "opacus-prv", "opacus-gdp", "prv-accountant", "autodp"
        (Rényi divergences) or "opendp" (compositions of measurements).
    cases : iterable of Case
        By default `dpaudit.accountants.GRID` and `OTHER_ADJACENCIES`.

    Returns
    -------
    AccountantResult
        A row for each case; what the library has no counterpart for is refused.

    Raises
    ------
    OptionError, MissingExtraError
        For an unknown name; if the library is not installed.

    See Also
    --------
    dpaudit.accountants.check_accountant : The check of any function.

    Examples
    --------
    >>> from dpaudit.accountants import Case
    >>> result = check_library_accountant("dp-accounting-pld", [Case.dp_sgd(1.0, 1.0, 1)])
    >>> print(result)
    VERIFIED  dp-accounting-pld: 1 claim holds, at most 0% above the truth
    """
    if name not in _ACCOUNTANTS:
        raise OptionError(f"name={name!r} is not an accountant; use one of {', '.join(_ACCOUNTANTS)}.", name=name)
    _ACCOUNTANTS[name](Case.dp_sgd(1.0, 1.0, 1))  # a missing library is an error, and not a refused case
    return check_accountant(_ACCOUNTANTS[name], cases, name=name)
