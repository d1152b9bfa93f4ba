"""Combinators of OpenDP: what they make of simple measurements, and interactive ones with a fixed list of queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...audit.claims.claim import Claim
from ...audit.datasets.adjacency import Within
from ...audit.datasets.domains import Answers, Rows
from ...mechanisms.adapters import from_opendp
from ...mechanisms.adapters.opendp_claims import MapClaim, claim_of
from .audited_library import Form, NotCovered, PublicCallable, Target
from .opendp_spaces import number_space, prelude
from .public_callables import required_of

_SCALE = 2.0
_SCORED = "a score and a candidate"
_ANSWERS = Answers(low=0.0, high=2.0)


def combinator_form(public: PublicCallable) -> Form:
    """Return the targets of a combinator."""
    if public.short in _REASONS:
        return NotCovered(_REASONS[public.short])
    if public.short in _INTERACTIVE:
        return (_interactive(public),)
    if public.short == "make_chain_mt":
        return (_row_target(public),)
    return _of_measurements(public)


_REASONS = {
    "make_population_amplification": "its claim is for a random sample of a population, which the caller draws",
    "make_chain_tt": "it makes a transformation, which has no claim; chains of the transformations are audited",
}


def _laplace() -> Any:
    return prelude().m.make_laplace(*number_space(float), scale=_SCALE)


def _gaussian() -> Any:
    return prelude().m.make_gaussian(*number_space(float), scale=_SCALE)


def _bases() -> dict[str, Callable[[], Any]]:
    """Return measurements with different measures, by their words."""

    def fixed() -> Any:
        return prelude().c.make_fix_delta(prelude().c.make_zCDP_to_approxDP(_gaussian()), 0.01)

    def scored() -> Any:
        dp, noisy = prelude(), _laplace()
        return dp.m.make_user_measurement(
            *number_space(float),
            dp.max_divergence(),
            lambda answer: (noisy(answer), noisy(answer)),
            lambda distance: distance,  # of two answers with noise of scale 2
            TO="(f64, ExtrinsicObject)",
        )

    return {
        "Laplace noise": _laplace,
        "Gaussian noise": _gaussian,
        "a profile of Gaussian noise": lambda: prelude().c.make_zCDP_to_approxDP(_gaussian()),
        "Gaussian noise at a fixed delta": fixed,
        _SCORED: scored,
    }


def _of_measurements(public: PublicCallable) -> Form:
    """Return the targets of a combinator of measurements, for every base that it accepts."""
    required, targets, problem = required_of(public.function), [], ""
    known: dict[str, Any] = {"delta": 0.01, "stop_probability": 0.3, "threshold": 1.0}
    for words, base in _bases().items():
        if ("stop_probability" in required) != (words == _SCORED):
            continue  # only such a selection takes scores

        def make(base: Callable[[], Any] = base) -> Any:
            prelude()
            given = {name: known[name] for name in required if name in known}
            if "measurements" in required:
                given["measurements"] = [base(), base()]
            elif "postprocess1" in required:
                double = prelude().new_function(lambda released: 2.0 * released, TO=float)
                given |= {"postprocess1": double, "measurement0": base()}
            else:
                given["measurement"] = base()
            return from_opendp(public.function(**given), d_in=1.0)

        try:
            make().sample(0.0, 1, np.random.default_rng(0))
        except Exception as error:  # of the library, which refuses a measurement in many ways
            problem = problem or " ".join(str(error).split())[:160]
            continue
        targets.append(Target(callable=public.name, point=words, make=make, domain=_ANSWERS, runs=20_000))
    return tuple(targets) or NotCovered(f"no known measurement fits ({problem})")


def _row_target(public: PublicCallable) -> Target:
    def make() -> Any:
        dp = prelude()
        rows = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0))), dp.symmetric_distance()
        total = dp.t.make_sum(*rows)
        noise = dp.m.make_laplace(total.output_domain, total.output_metric, scale=1.0)
        return from_opendp(public.function(noise, total))

    return Target(
        callable=public.name, point="sum of rows, Laplace noise", make=make, domain=Rows(low=0.0, high=1.0), runs=20_000
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """Answers of an interactive measurement to a fixed list of queries, as one output.

    Attributes
    ----------
    start : callable
        Returns the queryable for a dataset.
    queries : tuple
        Asked in this order.
    claim : Claim
    claim_source : str
    adjacency : Within or None
    """

    start: Callable[[Any], Any] = field(repr=False)
    queries: tuple[Any, ...] = field(repr=False)
    claim: Claim
    claim_source: str
    adjacency: Within | None

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        """`size` lists of answers; the library draws from its own entropy."""
        outputs = []
        for _ in range(size):
            queryable = self.start(dataset if isinstance(dataset, dict) else float(dataset))
            outputs.append([float(queryable(query)) for query in self.queries])
        return outputs


_INTERACTIVE = {
    "make_adaptive_composition",
    "make_sequential_composition",
    "make_fully_adaptive_composition",
    "make_privacy_filter",
}


def _interactive(public: PublicCallable) -> Target:
    """Return the target that asks two queries with Laplace noise, each of loss 1/2."""

    def make() -> Any:
        dp = prelude()
        space = (*number_space(float), dp.max_divergence())
        queries = (_laplace(), _laplace())
        if public.short == "make_privacy_filter":
            made = public.function(dp.c.make_fully_adaptive_composition(*space), 1.0, 1.0)
        elif public.short == "make_fully_adaptive_composition":
            made = public.function(*space)
        else:
            made = public.function(*space, d_in=1.0, d_mids=[0.5, 0.5])
        if public.short == "make_fully_adaptive_composition":
            held = made(0.0)
            for query in queries:
                held(query)
            claim = claim_of("MaxDivergence", held.privacy_loss(1.0))
            source = "privacy_loss of the odometer after the queries"
        else:
            claim, source = MapClaim(made, 1.0)(1), "measurement.map(1)"
        return Asked(start=made, queries=queries, claim=claim, claim_source=source, adjacency=Within("l1", 1.0))

    return Target(
        callable=public.name, point="two queries with Laplace noise", make=make, domain=_ANSWERS, runs=10_000, cost=3
    )


def alp_target(public: PublicCallable) -> Target:
    """Return the target that asks the queryable of counts by key for three keys."""
    before: dict[str, int] = {"a": 3, "b": 2}

    def make() -> Any:
        dp = prelude()
        counts = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
        metric = dp.l01inf_distance(dp.absolute_distance(T=int))
        made = public.function(counts, metric, scale=1.0, total_limit=16, value_limit=8)
        claim = MapClaim(made, (1, 1, 1))(1)
        source = "measurement.map((1, 1, 1))"
        return Asked(start=made, queries=("a", "b", "c"), claim=claim, claim_source=source, adjacency=None)

    pairs: tuple[Any, ...] = (({**before, "c": 1}, before), ({**before, "b": 3}, before), ({"a": 1}, {}))
    return Target(callable=public.name, point="3 keys asked", make=make, domain=pairs, runs=5_000, cost=3)
