"""One round of Flower and one filter of NVIDIA FLARE, kept apart because each library has a module of forms.

There is no network: a strategy sends its messages to clients made up here, which answer with given updates. Their mods
and the aggregation are those of the library. Both libraries draw noise from numpy's old generator, which is seeded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ...audit.datasets.adjacency import Adjacency, Local, ZeroOut
from ...audit.datasets.domains import Answers
from ...mechanisms.adapters.library_calls import released
from .audited_library import (
    LOW_BITS,
    Form,
    NotCovered,
    PublicCallable,
    Target,
    parameters_of,
    public_callables,
    required_of,
    targets_of,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """Mechanism for a round: `release` maps the update of one client to what the round releases.

    Any two updates are neighbours, as clipping bounds what a client can change. With `ZeroOut` an update becomes no
    change, and datasets are tuples of one update.
    """

    release: Callable[[Any], Any] = field(repr=False)
    claim: Claim
    claim_source: str
    adjacency: Adjacency = field(default_factory=Local)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """Return `size` outputs."""
        (update,) = dataset if isinstance(self.adjacency, ZeroOut) else (dataset,)
        with _old_generator(rng):
            return [released(self.release, update) for _ in range(size)]


@contextmanager
def _old_generator(rng: np.random.Generator) -> Iterator[None]:
    """Seed numpy's old generator and silence logs of single rounds; both are put back."""
    state, silenced = np.random.get_state(), logging.root.manager.disable  # noqa: NPY002  # the libraries draw from it
    np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
        logging.disable(silenced)


_Point = tuple[str, Callable[..., Any], Any, str]
"""The name of a configuration, its maker, its domain, and the defect that it shows, if any."""

# Flower. Noise of z clipping norms over the number of clients, on their mean, is 2/z-GDP for one client's update that
# is replaced by another, as two clipped updates are within two clipping norms, and 1/z-GDP for one that is replaced by
# no change.

_FLOWER = ("serverapp.strategy", "clientapp.mod", "server.strategy", "client.mod", "server.workflow", "serverapp")
_OTHERS = ((0.3, 0.1), (-0.2, 0.4), (0.1, -0.1))
_OTHER_SCALARS = tuple((other, 0.0) for other in _OTHERS)
_LONG = ((9.0, 0.0), (-9.0, 0.0), (0.0, 9.0))
_SPREAD = ((0.9, 0.0), (-0.9, 0.0))
_NAN = float("nan")
_OPPOSITE = (((3.0, 0.0), (-3.0, 0.0)),)
_NO_CHANGE = (1e-30, 0.0)  # zeros raise an error
_ZEROED = ((((3.0, 0.0),), (_NO_CHANGE,)),)
_WITH_NAN = (((0.3, -0.2), (0.3, _NAN)),)
_WITH_ZERO = (((0.3, -0.2), (0.0, 0.0)),)
_SCALARS = ((((0.3, 0.1), 40.0), ((0.3, 0.1), 0.0)),)
_WEIGHTS = "the noise is for equal weights"
_REPLIES = "fewer replies than sampled clients, of which the library warns"
_SCALAR = "a tensor without dimensions is not clipped"
_NOT_FINITE = "an update with NaN is not clipped"
_ZERO = "an update of zeros raises an error"
_NORM = "the noise is for the next clipping norm"
_MEDIAN = "the noise is for a mean"
_STATED = "noise_multiplier: 1/z for an update that is replaced by no change, 2/z for one that is replaced by another"


def flwr_public() -> tuple[PublicCallable, ...]:
    """Return the strategies, the mods, the workflows and the accounting of Flower, of both its programming models."""
    return public_callables("flwr", _FLOWER)


def flwr_form(public: PublicCallable) -> Form:
    """Return the targets of a strategy with noise, of the local mod and of the accountant."""
    known = set(parameters_of(public.function))
    if {"noise_multiplier", "num_sampled_clients"} <= known:
        unknown = required_of(public.function) - set(_options(public))
        return NotCovered(f"its parameters ({', '.join(sorted(unknown))}) fit no template") if unknown else _dp(public)
    if {"clipping_norm", "sensitivity", "epsilon", "delta"} <= known:
        return _local(public)
    match public.short:
        case "RdpAccountant":
            return _accounted(public)
        case "fixedclipping_mod" | "adaptiveclipping_mod":
            return NotCovered(
                "it clips and adds no noise; the strategies with client-side clipping are audited with it"
            )
        case "secagg_mod" | "secaggplus_mod" | "SecAggWorkflow" | "SecAggPlusWorkflow":
            return NotCovered("it hides single updates from the server, and claims no differential privacy")
        case "GaussianPrivacyEvent" | "PrivacyConfig" | "PrivacySpent" | "NeighboringRelation" | "SamplingMethod":
            return NotCovered("it holds parameters of the accountant, which is audited")
    return NotCovered("it claims no differential privacy")


def _dp(public: PublicCallable) -> tuple[Target, ...]:
    """Return the targets of a strategy that adds noise to an aggregate."""
    make = partial(_round, public)
    is_first = public.short.startswith("DPFedAvg")  # of the oldest classes, which set all weights to 1
    points: list[_Point] = [
        ("noise_multiplier=1, 4 clients", make, _OPPOSITE, ""),
        ("noise_multiplier=2, clipping norm 3, 2 clients", partial(make, z=2.0, clip=3.0, clients=2), _OPPOSITE, ""),
        ("weights 97, 1, 1, 1", partial(make, weights=(97, 1, 1, 1)), _OPPOSITE, "" if is_first else _WEIGHTS),
        ("a tensor without dimensions", partial(make, others=_OTHER_SCALARS), _SCALARS, "" if is_first else _SCALAR),
        ("an update with NaN", make, _WITH_NAN, _NOT_FINITE),
    ]
    if "Adaptive" in public.short:
        clipped = partial(make, others=_LONG, rate=2.0)
        points.append(("all clients are clipped", clipped, _OPPOSITE, "" if is_first else _NORM))
    else:
        points += [
            ("2 of 4 clients reply", partial(make, replies=2), _OPPOSITE, _REPLIES),
            ("an update of zeros", make, _WITH_ZERO, _ZERO),
            ("a median of 3", partial(make, others=_SPREAD, clients=3, inner="FedMedian"), _OPPOSITE, _MEDIAN),
        ]
    # Not with adaptive clipping: if an update becomes no change, the count of clipped updates moves by 1, and its noise
    # is for the 1/2 of a client that leaves (Andrew et al. 2021, bits less 1/2). 2/z for opposite updates has room.
    zeroed: list[_Point] = [
        (f"{words}, or no change", partial(made, is_zeroed=True), _ZEROED, known)
        for words, made, domain, known in points
        if domain is _OPPOSITE and "Adaptive" not in public.short
    ]
    return _targets(public, points, cost=2) + _targets(public, zeroed, cost=2, runs=5_000)


def _targets(public: PublicCallable, points: Iterable[_Point], **shared: Any) -> tuple[Target, ...]:
    """Return targets of configurations, each with the defect that it shows."""
    shared = {"runs": 2_000, "search_runs": 400, "known_bits": LOW_BITS, **shared}
    return tuple(
        target
        for words, make, domain, known in points
        for target in targets_of(public, [(words, make, domain)], known=known, **shared)
    )


def _options(
    public: PublicCallable, *, inner: Any = None, z: float = 1.0, clip: float = 1.0, clients: int = 4, rate: float = 0.2
) -> dict[str, Any]:
    """Return the options of a strategy, by the names that its class has for them."""
    named = {"strategy": inner, "noise_multiplier": z, "num_sampled_clients": clients, "clip_norm_lr": rate}
    named |= dict.fromkeys(("clipping_norm", "initial_clipping_norm", "clip_norm", "init_clip_norm"), clip)
    named |= dict.fromkeys(("clipped_count_stddev", "clip_count_stddev"), 2.0)
    known = parameters_of(public.function)
    return {name: value for name, value in named.items() if name in known}


def _round(
    public: PublicCallable,
    *,
    clients: int = 4,
    others: Sequence[Any] = _OTHERS,
    weights: Sequence[int] = (1, 1, 1, 1),
    replies: int | None = None,
    inner: str = "FedAvg",
    z: float = 1.0,
    is_zeroed: bool = False,
    **options: Any,
) -> Round:
    """Return the mechanism of one round of a strategy around an inner one, which some clients do not answer."""
    is_new = public.name.startswith("serverapp.")
    strategies = import_module("flwr.serverapp.strategy" if is_new else "flwr.server.strategy")
    run = _message_round if is_new else _older_round

    def release(update: Any) -> tuple[float, ...]:
        held = getattr(strategies, inner)()
        strategy = public.function(**_options(public, inner=held, z=z, clients=clients, **options))
        found = run(strategy, [update, *others][:clients], weights[:clients], replies)
        norm = getattr(strategy, "clipping_norm", None) or strategy.clip_norm  # clients see an adapted one
        return (*found, norm) if "Adaptive" in public.short else found

    if is_zeroed:
        return Round(release=release, claim=GaussianDP(1 / z), claim_source=_STATED, adjacency=ZeroOut(null=_NO_CHANGE))
    return Round(release=release, claim=GaussianDP(2 / z), claim_source=_STATED)


def _accounted(public: PublicCallable) -> tuple[Target, ...]:
    """Return the targets of the accountant: rounds of a strategy that it accounts for."""

    def make(rounds: int, z: float, delta: float) -> Round:
        flower = import_module("flwr.serverapp")
        neighbours, sampling = flower.NeighboringRelation.ADD_OR_REMOVE_ONE, flower.SamplingMethod.NO_AMPLIFICATION
        config = flower.PrivacyConfig(delta, 4, neighbours, sampling)
        accountant = public.function(config)
        accountant.compose(flower.GaussianPrivacyEvent(z, 4, 4), rounds)
        wrapper, inner = flower.strategy.DifferentialPrivacyServerSideFixedClipping, flower.strategy.FedAvg

        def release(update: Any) -> tuple[float, ...]:
            found: tuple[float, ...] = ()
            for _ in range(rounds):
                strategy = wrapper(inner(), z, 1.0, 4, accountant=public.function(config))
                found += _message_round(strategy, [update, *_OTHERS])
            return found

        claim = ApproxDP(accountant.get_privacy_spent().epsilon, delta)
        zeroed = ZeroOut(null=_NO_CHANGE)
        return Round(release=release, claim=claim, claim_source="get_privacy_spent", adjacency=zeroed)

    points = [
        (f"rounds={rounds}, noise_multiplier={z:g}", partial(make, rounds, z, 0.1), _ZEROED, "")
        for rounds, z in ((1, 2.0), (2, 2.0))
    ]
    return _targets(public, points, runs=10_000)


def _local(public: PublicCallable) -> tuple[Target, ...]:
    """Return the targets of the mod that adds noise on the client.

    What its classical Gaussian noise lacks above epsilon 1 takes more runs than fit here; `check_step` computes it.
    """

    def make(epsilon: float, delta: float) -> Round:
        mod = public.function(1.0, 2.0, epsilon, delta)  # any two clipped updates are within two clipping norms
        send = _sent if public.name.startswith("clientapp.") else _older_sent
        return Round(
            release=lambda update: _flat(send(mod, update)),
            claim=ApproxDP(epsilon, delta),
            claim_source="epsilon and delta of the mod",
        )

    low = partial(make, 1.0, 0.01)
    points = [
        ("epsilon=1, delta=0.01", low, _OPPOSITE, ""),
        ("epsilon=1, delta=0.1", partial(make, 1.0, 0.1), _OPPOSITE, ""),
        ("a tensor without dimensions", low, _SCALARS, _SCALAR),
        ("an update with NaN", low, _WITH_NAN, _NOT_FINITE),
        ("an update of zeros", low, _WITH_ZERO, _ZERO),
    ]
    return _targets(public, points, runs=10_000)


def _arrays(update: Sequence[Any]) -> list[Any]:
    """Return the tensors of an update: those in a tuple of tensors, or one vector."""
    return [np.array(each, float) for each in (update if isinstance(update[0], tuple) else (update,))]


def _flat(arrays: Iterable[Any]) -> tuple[float, ...]:
    return tuple(float(value) for array in arrays for value in np.ravel(array))


# Messages: the programming model of flwr.serverapp and flwr.clientapp.


def _message_round(
    strategy: Any, updates: Sequence[Any], weights: Sequence[int] = (1, 1, 1, 1), replies: int | None = None
) -> tuple[float, ...]:
    """Return the model after one round of a strategy; before, it is zero."""
    _with_task_identity()
    mod = _mod_of("flwr.clientapp.mod", strategy)
    grid = SimpleNamespace(get_node_ids=lambda: range(1, len(updates) + 1))
    before = _record([np.zeros_like(each) for each in _arrays(updates[0])])
    messages = strategy.configure_train(1, before, import_module("flwr.app").ConfigRecord(), grid)
    answers = [_answer(mod, each.content, *held) for each, *held in zip(messages, updates, weights, strict=True)]
    found, _ = strategy.aggregate_train(1, answers[:replies])
    return _flat(found.to_numpy_ndarrays())


def _with_task_identity() -> None:
    """Give this process the identity that messages carry, which a running app has."""
    identity = import_module("flwr.supercore.task_identity").TaskIdentity
    identity.run_id = identity.node_id = identity.task_id = 1


def _mod_of(module: str, strategy: Any) -> Any:
    """Return the mod of the client that a strategy expects; None if the server clips."""
    name = type(strategy).__name__
    if "ClientSide" not in name:
        return None
    return getattr(import_module(module), "adaptiveclipping_mod" if "Adaptive" in name else "fixedclipping_mod")


def _record(arrays: Iterable[Any]) -> Any:
    app = import_module("flwr.app")
    return app.ArrayRecord({f"tensor {place}": app.Array(array) for place, array in enumerate(arrays)})


def _answer(mod: Any, content: Any, update: Any, weight: int) -> Any:
    """Return the answer of a client to a message, through its mod."""
    app = import_module("flwr.app")
    metrics = app.MetricRecord({"num-examples": weight})
    return _through(mod, content, app.RecordDict({"arrays": _record(_arrays(update)), "metrics": metrics}))


def _through(mod: Any, asked: Any, answered: Any) -> Any:
    """Return the message that leaves a client, which a mod may have changed."""
    app = import_module("flwr.app")
    _with_task_identity()
    message = app.Message(asked, dst_node_id=1, message_type="train")

    def client(held: Any, _: Any) -> Any:
        return app.Message(answered, reply_to=held)

    return mod(message, None, client) if mod else client(message, None)


def _sent(mod: Any, update: Any) -> Any:
    """Return the tensors that leave a client with a mod."""
    before = _record([np.zeros_like(each) for each in _arrays(update)])
    answer = _answer(mod, import_module("flwr.app").RecordDict({"arrays": before}), update, 1)
    return next(iter(answer.content.array_records.values())).to_numpy_ndarrays()


# The older programming model, of flwr.server and flwr.client.


def _older_round(strategy: Any, updates: Sequence[Any], weights: Sequence[int], replies: int | None) -> Any:
    """Return the aggregate of one round of a strategy."""
    common, before = import_module("flwr.common"), [np.zeros_like(each) for each in _arrays(updates[0])]
    proxies = [SimpleNamespace(cid=str(place)) for place, _ in enumerate(updates)]
    manager = SimpleNamespace(num_available=lambda: len(updates), sample=lambda **_: proxies)
    asked = strategy.configure_fit(1, common.ndarrays_to_parameters(before), manager)
    answers = [
        (proxy, _older_answer(strategy, instruction, update, weight))
        for (proxy, instruction), update, weight in zip(asked, updates, weights, strict=True)
    ]
    found, _ = strategy.aggregate_fit(1, answers[:replies], [])
    return _flat(common.parameters_to_ndarrays(found))


def _older_answer(strategy: Any, instruction: Any, update: Any, weight: int) -> Any:
    """Return the answer of a client to an instruction, through its mod or its wrapper."""
    metrics: dict[str, Any] = {}
    arrays = _arrays(update)
    if type(strategy).__name__.startswith("DPFedAvg"):
        wrapper = import_module("flwr.compat.client.dpfedavg_numpy_client").DPFedAvgNumPyClient
        client = SimpleNamespace(fit=lambda parameters, config: (arrays, weight, {}))
        before = [np.zeros_like(each) for each in arrays]
        arrays, _, metrics = wrapper(client).fit(before, instruction.config)
    return _older_through(_mod_of("flwr.client.mod", strategy), instruction, arrays, weight, metrics)


def _older_through(mod: Any, instruction: Any, arrays: Any, weight: int, metrics: dict[str, Any]) -> Any:
    common, records = import_module("flwr.common"), import_module("flwr.compat.common.recorddict_compat")
    parameters = common.ndarrays_to_parameters(arrays)
    answer = common.FitRes(common.Status(common.Code.OK, ""), parameters, weight, metrics)
    if not mod:
        return answer
    asked, answered = records.fitins_to_recorddict(instruction, True), records.fitres_to_recorddict(answer, True)
    return records.recorddict_to_fitres(_through(mod, asked, answered).content, True)


def _older_sent(mod: Any, update: Any) -> Any:
    """Return the tensors that leave a client with a mod."""
    common, arrays = import_module("flwr.common"), _arrays(update)
    asked = common.FitIns(common.ndarrays_to_parameters([np.zeros_like(each) for each in arrays]), {})
    return common.parameters_to_ndarrays(_older_through(mod, asked, arrays, 1, {}).parameters)


# NVIDIA FLARE. A filter changes what leaves a client. It clips every number, so any two updates are neighbours, and
# records what it spends.

_FLARE = (
    "app_common.filters",
    *(f"app_common.filters.{name}" for name in ("convert_weights", "dxo_blocker", "statistics_privacy_filter")),
    *(f"app_common.statistics.{name}_cleanser" for name in ("histogram_bins", "min_count", "min_max")),
)
_NEVER_CHOSEN = "a number that is NaN is never chosen"
_PASSED = "a tensor without dimensions passes, as the record of the filter says"
_NO_NOISE = "it changes or withholds values, and claims no differential privacy"


def nvflare_public() -> tuple[PublicCallable, ...]:
    """Return the filters and the cleansers of statistics of NVIDIA FLARE."""
    return public_callables("nvflare", _FLARE)


def nvflare_form(public: PublicCallable) -> Form:
    """Return the targets of a filter with a budget."""
    known = set(parameters_of(public.function))
    if not {"epsilon", "fraction", "gamma", "tau"} <= known:
        return NotCovered(_NO_NOISE if "epsilon" not in known else "its parameters fit no template")
    make = partial(_filter, public, epsilon=1.0, epsilon_release=1.0)
    whole = Answers(n_answers=4, low=-2.0, high=2.0, finite=True)
    points: list[_Point] = [
        ("fraction=0.25", partial(make, fraction=0.25), whole, ""),
        ("fraction=0.5", partial(make, fraction=0.5), whole, ""),
        ("fraction=1", partial(make, fraction=1.0), whole, ""),
        ("fraction=0.5, without replacement", partial(make, fraction=0.5, replace=False), whole, ""),
        ("an update with NaN", partial(make, fraction=0.25), (((1.0, 0.0, 0.0), (_NAN, 0.0, 0.0)),), _NEVER_CHOSEN),
        ("a tensor without dimensions", partial(make, _SCALARS[0][0], fraction=0.3), _SCALARS, _PASSED),
    ]
    return _targets(public, points, runs=20_000, search_runs=5_000)


def _filter(public: PublicCallable, tensors: Any = (1.0,) * 4, **options: Any) -> Round:
    """Return the mechanism of a filter with the budget that it records for updates of such tensors."""
    dxo, context = import_module("nvflare.apis.dxo"), import_module("nvflare.apis.fl_context").FLContext()

    def send(held: Any, update: Any) -> tuple[float, ...]:
        arrays = {f"tensor {place}": array for place, array in enumerate(_arrays(update))}
        given = dxo.DXO(dxo.DataKind.WEIGHT_DIFF, data=arrays).to_shareable()
        return _flat(dxo.from_shareable(held.process(given, context)).data.values())

    once = public.function(gamma=1.0, tau=0.5, **options)
    with _old_generator(np.random.default_rng(0)):
        send(once, tensors)
    return Round(
        release=lambda update: send(public.function(gamma=1.0, tau=0.5, **options), update),
        claim=PureDP(once.get_privacy_spent()),
        claim_source="get_privacy_spent after one update",
    )
