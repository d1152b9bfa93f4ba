"""What is audited of a case: the release on the pair of the file, and its noise on a pair where the claim is tight.

The release is the output of the aggregation on the pair of the file, with the claim of the file. The audit searches for
an event. Noise that is slightly too small need not show there: a mean of one row hides most of the loss, and for small
epsilon few runs cannot tell the datasets apart.

The second audit is therefore of the noise itself:

- several users are added, and the claim is composed as often (k users lose at most k times as much);
- of means, variances and quantiles, it sees the noisy sums or counts from which they are computed;
- Gaussian noise must keep μ-GDP, μ being the sensitivity over the standard deviation that (ε, δ) needs;
- the event is known: outputs on the side of the first dataset's exact answers that is averted from the second's, and
  for Gaussian noise the half-line that has a given probability on the second dataset.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ....audit.claims.claim import Claim, GaussianDP, GroupClaim, PureDP
from ....audit.power.joint_test_power import runs_needed
from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult
from ....audit.sampling.pilot_and_batch_sizes import with_pilot
from ....mechanisms import analytic_gaussian_scale
from ....mechanisms.aggregates import ApproximateBounds, BoundedMoments, NoisyAnswers, noisy_moments, noisy_tree_counts
from .case import Case, Row
from .samplers import Counts, OnValues, Repeated, pydp_count, pydp_moment, pydp_quantiles, pydp_sum

VARIANT_SHARE: Final = 0.95
"""Share of the noise of a faulty variant."""
POWER: Final = {"laplace": 0.99, "gaussian": 0.9999}
"""Probability, as planned, with which the audit of a variant refutes it. Audits of Laplace noise have more: they draw
more
often on the dataset on which the event is rare, which the plan does not count on."""

_COUNTS_AND_SUMS = ("count", "bounded sum", "long bounded sum")
_LOSS, _LOSS_OF_MANY, _MU = 2.2, 1.1, 2.0  # losses and μ of all users for which few runs are enough
_MANY = 25  # partitions from which the rows of several users take long to count
_LIKELY: Final = 0.15  # probability of the event on y, for Gaussian noise
_SLOW_RUNS = {"PyDP BoundedMean": 20_000, "PyDP BoundedStandardDeviation": 30_000, "PyDP QuantileTree": 10_000}
_USUAL_RUNS, _REFERENCE_RUNS = 30_000, 1_000_000
_LARGE = 2.0  # (ε, δ) above which 10,000 runs of a tree could detect no excess


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audited:
    """A mechanism with its pair of rows (user, value), its claim for one user, and the runs on each dataset.

    `on` says what is audited. The datasets differ by `users` users, whom y has in addition.
    """

    on: str
    mechanism: Any
    x: list[Row]
    y: list[Row]
    users: int = 1
    claim: Claim
    runs: int

    @property
    def claim_in_words(self) -> str:
        return f"{self.claim}, {self.users} users" if self.users > 1 else str(self.claim)

    def audit(self, *, alpha: float, seed: int, runs: int | None = None) -> AuditResult:
        """Audit by values, since low bits are a question of their own."""
        return check(
            self.mechanism,
            self.x,
            self.y,
            claim=self.claim,
            distance=self.users,
            runs=self.runs if runs is None else runs,
            alpha=alpha,
            seed=seed,
            bits=False,
            jobs=1,
            name=self.on,
        )


def why_not_pydp(case: Case) -> str:
    """Return why no aggregate of PyDP releases what the case asks for; empty if one does."""
    if case.file == "approximate bounds":
        return "PyDP has no approximate bounds"
    if case.noise == "gaussian" and case.file != "quantiles":
        return "PyDP's aggregates have Laplace noise only"
    if case.file == "count" and sum(case.rows) > 10**6:
        return "PyDP counts rows one by one, and these are 9.8·10⁹"
    return ""


def release(case: Case) -> Audited:
    """Return the release of a case on the pair of the file."""
    x, y = case.pair()
    mechanism = _release(case)
    on = str(mechanism) if isinstance(mechanism, Repeated) else f"reference {case.file}"
    runs = _SLOW_RUNS.get(on, _USUAL_RUNS if isinstance(mechanism, Repeated) else _REFERENCE_RUNS)
    if on == "PyDP QuantileTree" and case.delta and case.epsilon > _LARGE:
        runs *= 2
    return Audited(on=on, mechanism=mechanism, x=x, y=y, claim=case.claim, runs=runs)


def _release(case: Case) -> Repeated | OnValues:
    match case.file:
        case "count":
            return pydp_count(case)
        case "bounded sum" | "long bounded sum":
            return pydp_sum(case)
        case "quantiles":
            return pydp_quantiles(case)
        case "approximate bounds":
            return OnValues(mechanism=ApproximateBounds(case.epsilon, case.per_partition))
    if case.noise == "laplace":
        return pydp_moment(case)
    return OnValues(mechanism=BoundedMoments(_parts_of(case, 1.0), case.lower, case.upper))


def noise(case: Case, *, alpha: float, share: float = 1.0) -> Audited:
    """Return the noise of a case, with this share of it, and the runs that find one with `VARIANT_SHARE` of it."""
    if case.file in _COUNTS_AND_SUMS:
        return _one_answer(case, share, alpha)
    return _bounds(case, share, alpha) if case.file == "approximate bounds" else _parts(case, share, alpha)


def _one_answer(case: Case, share: float, alpha: float) -> Audited:
    """Return a count or a sum: one answer with noise."""
    is_count, change = case.file == "count", 1.0 if case.file == "count" else max(abs(case.lower), abs(case.upper))
    sampler = pydp_count(case, share) if is_count else pydp_sum(case, share)
    claim, users, number, tightness = _users_of(case, case.partitions)
    x, _ = case.pair()
    y = [*x, *_of_users(len(x), users, [1.0 if is_count else case.extra[0]] * number, as_counts=is_count)]
    if is_count:
        answers = [sum(value for _, value in rows) for rows in (x, y)]
    else:
        answers = [float(sum(min(max(value, case.lower), case.upper) for _, value in rows)) for rows in (x, y)]
    up = math.copysign(1.0, answers[1] - answers[0])
    is_whole = case.file != "bounded sum"  # a rounded output that equals the exact answer favours neither
    q = None
    if isinstance(claim, GaussianDP):
        sigma = analytic_gaussian_scale(case.epsilon, case.delta) * math.sqrt(case.partitions) * change
        least = sigma * -float(ndtri(_LIKELY)) - up * (answers[1] - answers[0])
        if is_whole:
            least = math.ceil(least) - 0.5
    else:
        least = 0.5 if is_whole else 0.0
        scale = VARIANT_SHARE * case.partitions * change / case.epsilon
        q = 0.5 * math.exp(-(least + up * (answers[1] - answers[0])) / scale)
    origin, sign = answers[0], -up

    def score(outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray((outputs - origin) * sign)

    return Audited(
        on=str(sampler),
        mechanism=Counts(mechanism=sampler, score=score, least=least),
        x=x,
        y=y,
        users=users,
        claim=claim,
        runs=_planned(claim, users, tightness, alpha, q),
    )


def _parts(case: Case, share: float, alpha: float) -> Audited:
    """Return the noisy sums of a mean or a variance, or the noisy counts of a quantile tree, of no rows and of rows."""
    full, used = _parts_of(case, 1.0), _parts_of(case, share)
    claim, users, number, tightness = _users_of(case, case.partitions * case.per_partition, case.per_partition, full)
    y = _of_users(0, users, [case.upper] * number, as_counts=False)
    distributions = full.distribution([]), full.distribution([value for _, value in y])

    def score(outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(distributions[0].log_density(outputs) - distributions[1].log_density(outputs))

    if isinstance(claim, GaussianDP):
        mu, q = users * claim.parameter * tightness, None
        least = mu * -float(ndtri(_LIKELY)) - mu**2 / 2
    else:
        changed = case.tree[0] if case.file == "quantiles" else len(full.scales)
        least = users * claim.parameter * (1 - 1e-9)  # the largest loss
        q = 0.5**changed * math.exp(-users * claim.parameter / VARIANT_SHARE)
    return Audited(
        on=f"noisy {'counts' if case.file == 'quantiles' else 'sums'} of the reference {case.file}",
        mechanism=Counts(mechanism=OnValues(mechanism=used), score=score, least=least),
        x=[],
        y=y,
        users=users,
        claim=claim,
        runs=_planned(claim, users, tightness, alpha, q),
    )


def _bounds(case: Case, share: float, alpha: float) -> Audited:
    """Return approximate bounds of equal rows, as many as the least threshold; the event is a failure."""
    full, value = ApproximateBounds(case.epsilon, case.per_partition), case.extra[0]
    claim, users, number, tightness = _users_of(case, case.per_partition)
    x = [(user, value) for user in range(math.ceil(full.thresholds[-1]))]
    fails = math.exp(full.distribution([value] * len(x)).log_probabilities[-1])
    used = ApproximateBounds(case.epsilon, case.per_partition, noise_share=share)
    return Audited(
        on="reference approximate bounds",
        mechanism=Counts(mechanism=OnValues(mechanism=used), score=lambda outputs: np.isnan(outputs[:, 0]), least=1.0),
        x=x,
        y=[*x, *_of_users(len(x), users, [value] * number, as_counts=False)],
        users=users,
        claim=claim,
        runs=_planned(claim, users, tightness, alpha, fails * math.exp(-users * case.epsilon / VARIANT_SHARE)),
    )


def _users_of(
    case: Case, copies: int, per_partition: int = 1, parts: NoisyAnswers | None = None
) -> tuple[Claim, int, int, float]:
    """Return the claim of the noise for one user, a number of users, their values, and their tightness.

    The users may add `copies` values each to one partition under Laplace noise, and the root of the number of
    partitions times `per_partition` under Gaussian noise. Their tightness is the distance of the whole number of values
    as a share of the allowed distance.
    """
    if case.noise == "laplace":
        claim: Claim = PureDP(case.epsilon)
        users = max(1, round((_LOSS_OF_MANY if case.partitions >= _MANY else _LOSS) / case.epsilon))
        return claim, users, users * copies, 1.0
    claim = GaussianDP(1 / analytic_gaussian_scale(case.epsilon, case.delta)) if parts is None else parts.tight_claim
    each, about = math.sqrt(case.partitions) * per_partition, max(1, round(_MU / claim.parameter))
    near = range(max(1, about * 3 // 5), about * 8 // 5 + 1)
    users = max(near, key=lambda users: (round(_whole(users * each) / (users * each), 3), -abs(users - about)))
    number = _whole(users * each)
    return claim, users, number, number / (users * each)


def _whole(number: float) -> int:
    return math.floor(number * (1 + 1e-12))


def _of_users(first: int, users: int, values: list[float], *, as_counts: bool) -> list[Row]:
    """Return rows (user, value), the values spread over the users; or one row for each user, with their number."""
    owners = [first + place * users // len(values) for place in range(len(values))]
    if as_counts:
        return [(first + user, float(owners.count(first + user))) for user in range(users)]
    return list(zip(owners, values, strict=True))


def _planned(claim: Claim, users: int, tightness: float, alpha: float, q: float | None) -> int:
    """Return the runs with which an audit refutes the variant, if the event has probability `q` on y."""
    parameter = claim.parameter * tightness / VARIANT_SHARE
    composed = claim if users == 1 else GroupClaim(claim, users)
    power, q = POWER["gaussian" if q is None else "laplace"], _LIKELY if q is None else q
    main = runs_needed(composed, q, resolution=parameter - claim.parameter, power=power, alpha=alpha)
    return with_pilot(main, q)


def _parts_of(case: Case, share: float) -> NoisyAnswers:
    options: dict[str, Any] = {
        "epsilon": case.epsilon,
        "delta": case.delta,
        "partitions": case.partitions,
        "per_partition": case.per_partition,
        "noise_share": share,
    }
    if case.file == "quantiles":
        height, branching = case.tree
        return noisy_tree_counts(case.lower, case.upper, height=height, branching=branching, **options)
    return noisy_moments(1 if case.file == "bounded mean" else 2, case.lower, case.upper, **options)
