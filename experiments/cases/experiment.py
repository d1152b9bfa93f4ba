"""Experiments: a statement from the literature, its source, and the cases that test it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import ApproxDP, Claim, ClaimAtDistance, GroupClaim, PureDP, claim_at
from ...audit.datasets.adjacency import Adjacency
from ...audit.errors import ClaimError, OptionError, UnknownNameError
from ...audit.events.named_parts import printed
from ...audit.options import Progress
from ...audit.printing import did_you_mean
from ...audit.procedures.check import check
from ...audit.progress import told
from ...audit.records.json_codec import plain_data, read_data
from ...audit.results.audit_result import AuditResult
from ...audit.results.statement_result import StatementResult
from ...audit.results.verdict import Verdict
from ...audit.sampling.object_identity import versions
from ...audit.store.sqlite_store import Store
from ...mechanisms import (
    Distribution,
    FiniteDistribution,
    GroupPrivacy,
    LaplaceDistribution,
    exact_delta,
    exact_epsilon,
)
from ...mechanisms.distributions.divergences import no_closed_form

# Exact privacy parameter of a pair, from the distributions of a mechanism.

Floats = npt.NDArray[np.float64]


def check_bounded(name: str, claim: Claim | ClaimAtDistance) -> None:
    """Raise a `ClaimError` if the claim has ε = 0 and a δ, but an audit would bound ε."""
    base = claim.base if isinstance(claim, GroupClaim) else claim
    if isinstance(base, (ApproxDP, GroupPrivacy)) and base.bound_on == "epsilon" and base.epsilon == 0.0 < base.delta:
        raise ClaimError(
            f"{name}: {claim} is a claim only on delta; use {replace(base, bound_on='delta')!r}.", claim=claim
        )


def parameter_by_distributions(mechanism: Any, pair: tuple[Any, Any], claim: Claim) -> float | None:
    """Return the exact parameter on the pair, in the unit of the claim's; None without a closed form."""
    base = claim.base if isinstance(claim, GroupClaim) else claim
    if not hasattr(mechanism, "distribution") or not isinstance(base, (PureDP, ApproxDP)):
        return None
    try:
        return exact_parameter(claim, *(mechanism.distribution(dataset) for dataset in pair))
    except OptionError:
        return None


def exact_parameter(claim: Claim, distribution_x: Distribution, distribution_y: Distribution) -> float:
    """Return the smallest privacy parameter of the claim whose boundary no event crosses, in both directions.

    The privacy parameter is exact delta if the claim bounds delta, and per step for a group claim.
    Distributions without a closed form raise an `OptionError`: for claims other than (ε, δ)-DP, all but two finite
    distributions or two Laplace distributions of one scale.
    """
    match claim:
        case PureDP():
            return exact_epsilon(distribution_x, distribution_y)
        case ApproxDP(bound_on="delta"):
            return exact_delta(distribution_x, distribution_y, claim.epsilon)
        case ApproxDP():
            return exact_epsilon(distribution_x, distribution_y, claim.delta)
        case GroupClaim(base=PureDP(), distance=steps):
            return exact_epsilon(distribution_x, distribution_y) / steps
    return max(
        float(side.parameter_of(p, q, p_rest, q_rest).max())
        for side, (p, p_rest, q, q_rest) in (
            (claim, best_events(distribution_x, distribution_y)),
            (claim.reversed(), best_events(distribution_y, distribution_x)),
        )
    )


def best_events(distribution_x: Distribution, distribution_y: Distribution) -> tuple[Floats, Floats, Floats, Floats]:
    """Return (p, 1 − p, q, 1 − q) of the most powerful events of x against y (Neyman-Pearson), without the sure event.

    For finite distributions the events collect the outcomes by decreasing ratio of x to y. For Laplace distributions of
    one scale the events are 4001 half-lines that end between the locations; outside, p/q is constant. Other
    distributions raise an `OptionError`.
    """
    match distribution_x, distribution_y:
        case FiniteDistribution(), FiniteDistribution():
            with np.errstate(invalid="ignore"):  # an outcome that neither distribution allows goes last, as NaN
                loss = np.asarray(distribution_x.log_probabilities) - np.asarray(distribution_y.log_probabilities)
            order = np.argsort(-loss, kind="stable")
            p, q = distribution_x.probabilities[order], distribution_y.probabilities[order]
            (p_sum, q_sum), (p_rest, q_rest) = (
                [np.cumsum(values) for values in (p, q)],
                [np.cumsum(values[::-1])[::-1] for values in (p, q)],
            )
            return p_sum[:-1], p_rest[1:], q_sum[:-1], q_rest[1:]
        case LaplaceDistribution(), LaplaceDistribution() if distribution_x.scale == distribution_y.scale:
            ends = np.linspace(distribution_x.location, distribution_y.location, 4001)
            if distribution_x.location <= distribution_y.location:
                return (
                    distribution_x.cdf(ends),
                    distribution_x.sf(ends),
                    distribution_y.cdf(ends),
                    distribution_y.sf(ends),
                )
            return distribution_x.sf(ends), distribution_x.cdf(ends), distribution_y.sf(ends), distribution_y.cdf(ends)
    raise no_closed_form(distribution_x, distribution_y)


_LONGEST = 2_000  # characters of a dataset in a report


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCase:
    """An audit of a mechanism on a pair of datasets, with the expected verdict.

    The `claim` is that at distance 1, or a function from the distance to a claim; `distance` is that of the pair. True
    versions are not refuted, false ones are. `exact` is the exact privacy parameter on this pair, from the mechanism's
    distribution, and infinite if no finite claim holds. The `runs` on each dataset are enough for the expected
    verdict at alpha 1e-5 with every seed. `detect` is the excess that the audit need not detect, if that of any number
    of runs is larger than the claim. `note` says in a noun phrase what the case shows, `bins` how many bins a
    figure needs.
    """

    name: str
    mechanism: Any
    x: Any
    y: Any
    claim: Claim | ClaimAtDistance
    adjacency: Adjacency
    distance: float = 1
    expected: Verdict
    exact: float | None = None
    runs: int = 1_000_000
    detect: float | None = None
    note: str = ""
    bins: int = 0

    @property
    def claimed(self) -> str:
        """The claim at the pair's distance, as text."""
        claim = str(claim_at(self.claim, self.distance))
        return claim if self.distance == 1 else f"{claim} at distance {self.distance:g}"

    def run(self, *, store: Store | None = None, **options: Any) -> AuditResult:
        """Audit with the options `runs`, `alpha`, `seed`, `jobs` and `progress` of `check`."""
        result: AuditResult = check(
            self.mechanism,
            self.x,
            self.y,
            claim=self.claim,
            adjacency=self.adjacency,
            distance=self.distance,
            detect=self.detect,
            bins=self.bins,
            keep_datasets=_are_short(self.x, self.y),
            store=None if store is None else store.part(self.name),
            **options,
        )
        return result


def _are_short(*datasets: Any) -> bool:
    """Whether the datasets, which are synthetic, fit a report as text, and the text is the same in every process."""
    texts = [printed(dataset) for dataset in datasets]
    return all(len(text) <= _LONGEST and " at 0x" not in text for text in texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementCase:
    """A check of a statement about estimated numbers, with the expected verdict.

    `claimed` is the statement in short, ``measure(runs=, alpha=, seed=)`` the function that simulates and returns a
    `StatementResult`, `exact` the true value of the estimated number, where known. The rest is as in an `AuditCase`.
    """

    name: str
    claimed: str
    measure: Callable[..., StatementResult]
    expected: Verdict
    exact: float | None = None
    runs: int = 1_000_000
    note: str = ""

    def run(
        self,
        *,
        runs: int,
        alpha: float,
        seed: int,
        jobs: int | None = None,
        progress: Progress = None,
        store: Store | None = None,
    ) -> StatementResult:
        """Check the statement in this process, with the options of an audit."""
        started = time.perf_counter()
        settings = {"claim": self.claimed, "runs": runs, "alpha": alpha, "seed": seed, **dict(versions())}
        section = None if store is None else store.section(self.name, settings)
        kept = None if section is None else section.recall("result")
        if kept is None:
            with told(progress, self.name) as meter, meter.drawing():
                meter.expect(2 * runs)
                result = self.measure(runs=runs, alpha=alpha, seed=seed)
                meter(2 * runs)
            if section is not None:
                section.keep("result", json.dumps(plain_data(result)))
        else:
            result = read_data(json.loads(kept))
        result.environment["seconds"] = round(time.perf_counter() - started, 3)
        return result


Case: TypeAlias = AuditCase | StatementCase


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A statement of a document and the cases that test it: true versions must not be refuted, false ones must.

    `source` is the theorem, definition or example in the document.
    """

    id: str
    document: str
    statement: str
    source: str
    cases: tuple[Case, ...]


def true_statement(name: str, claimed: str, measure: Callable[..., StatementResult], **rest: Any) -> StatementCase:
    """Return a check that must not refute its statement."""
    return StatementCase(name=name, claimed=claimed, measure=measure, expected=Verdict.NOT_REFUTED, **rest)


def false_statement(name: str, claimed: str, measure: Callable[..., StatementResult], **rest: Any) -> StatementCase:
    """Return a check that must refute its statement."""
    return StatementCase(name=name, claimed=claimed, measure=measure, expected=Verdict.REFUTED, **rest)


def select(experiments: Sequence[Experiment], names: Sequence[str]) -> list[Experiment]:
    """Return the experiments with these ids, and the cases of these names; refuses names of none."""
    known = {case.name for experiment in experiments for case in experiment.cases}
    ids = {experiment.id.lower() for experiment in experiments}
    for name in names:
        if name not in known and name.lower() not in ids and name != "all":
            hint = did_you_mean(name, [*known, *(experiment.id for experiment in experiments)]) or ";"
            if ":" in name or name.endswith(".py"):
                hint = f"; a mechanism is audited by `dpaudit audit {name} --x … --y …`, and"
            raise UnknownNameError(
                f"{name!r} is not an experiment or a case{hint} `dpaudit list all` shows the names.", name=name
            )
    wanted = {name.lower() for name in names}
    chosen = []
    for experiment in experiments:
        if "all" in names or experiment.id.lower() in wanted:
            chosen.append(experiment)
        elif cases := tuple(case for case in experiment.cases if case.name in names):
            chosen.append(replace(experiment, cases=cases))
    return chosen


# Experiments, and audits whose exact privacy parameter on the pair follows from the mechanism's distributions.

RUNS = 200_000


def stated(document: str, id: str, statement: str, source: str, cases: Iterable[Case], **options: Any) -> Experiment:
    """Return the experiment of one statement of a document."""
    return Experiment(id=id, document=document, statement=statement, source=source, cases=tuple(cases), **options)


def holds(
    name: str, mechanism: Any, pair: tuple[Any, Any], adjacency: Adjacency, note: str = "", **options: Any
) -> AuditCase:
    """Return an audit that must not refute the claim.

    Options are `claim` (by default the mechanism's own), `distance`, `runs`, `detect`, `bins`, and `exact`, which
    is computed from the distributions unless given; if they do not give it, an `OptionError` says so. A claim of ε = 0
    that would be bounded in ε instead of δ raises a `ClaimError`.
    """
    return _audit(Verdict.NOT_REFUTED, name, mechanism, pair, adjacency, note, options)


def fails(
    name: str, mechanism: Any, pair: tuple[Any, Any], adjacency: Adjacency, note: str = "", **options: Any
) -> AuditCase:
    """Return an audit that must refute the claim, with the options of `holds`."""
    return _audit(Verdict.REFUTED, name, mechanism, pair, adjacency, note, options)


def _audit(
    expected: Verdict,
    name: str,
    mechanism: Any,
    pair: tuple[Any, Any],
    adjacency: Adjacency,
    note: str,
    options: dict[str, Any],
) -> AuditCase:
    completed = {"runs": RUNS, "claim": options.get("claim") or mechanism.claim} | options
    check_bounded(name, completed["claim"])
    if "exact" not in options:
        claim = claim_at(completed["claim"], options.get("distance", 1))
        try:
            if not hasattr(mechanism, "distribution"):
                raise OptionError("it has no distribution")
            found = exact_parameter(claim, *(mechanism.distribution(dataset) for dataset in pair))
        except OptionError as error:
            raise OptionError(
                f"the distributions of {mechanism} do not give the exact privacy parameter of {claim} ({error}); pass "
                "it as exact=, or "
                "exact=None if it is unknown.",
                claim=claim,
            ) from error
        completed["exact"] = round(found, 12) if isinstance(claim, PureDP) else found  # 4e-16 is 0, rounded
    x, y = pair
    return AuditCase(
        name=name, mechanism=mechanism, x=x, y=y, adjacency=adjacency, expected=expected, note=note, **completed
    )
