"""What a result says of an attacker who guesses membership: true positives, advantage, correct guesses, and μ.

The attacker sees one output and guesses from which of two neighbouring datasets it came, for example whether a person
is in the data. *At most* is what the claim allows, if it holds; *at least* is what the audit showed. Where neither
implies a number, the reason is stated: the event that has a large ε may be so rare that it never helps an attacker, so
a lower bound on ε alone says nothing of how often guesses are correct. The counts of the tested event do.

Proof: docs/proofs/boundaries.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from scipy.special import log_expit, ndtri_exp

from ..claims.claim import ApproxDP, Array, Claim, GaussianDP
from ..claims.privacy_profile import PrivacyProfile
from ..inference.binomial_tails import clopper_pearson
from ..printing import rounded_down, rounded_up
from .audit_result import AuditResult
from .canary_result import CanaryResult
from .verdict import steps_of

Limit: TypeAlias = float | str
"""A number, or the reason why there is none."""

FALSE_POSITIVES: Final = (0.01, 0.001)
"""Rates at which attacks are compared (Carlini et al. 2022, Membership inference attacks from first principles)."""

_NAMES: Final = (
    "μ of Gaussian DP",
    *(f"true positives at {rate:.3g}% false positives" for rate in (100 * each for each in FALSE_POSITIVES)),
    "advantage",
    "correct of 100 guesses",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackLimit:
    """Limits of one measure of an attack by one output.

    Attributes
    ----------
    name : str
        "μ of Gaussian DP", "true positives at 1% false positives", "true positives at 0.1% false positives",
        "advantage" (the largest rate of true positives minus that of false ones, which is the total variation
        distance), or "correct of 100 guesses" (the expected number, if each dataset has probability 1/2).
    at_least : float or str
        What was shown, with the confidence of the audit; or why nothing was.
    at_most : float or str
        What the claim allows; or why it allows everything, or no number is known.
    """

    name: str
    at_least: Limit
    at_most: Limit

    @property
    def shown(self) -> str:
        """`at_least` in three digits, rounded down, a rate as a percentage; or a dash with the reason."""
        return self._rounded("≥", self.at_least, rounded_down)

    @property
    def allowed(self) -> str:
        """`at_most` likewise, rounded up."""
        return self._rounded("≤", self.at_most, rounded_up)

    def _rounded(self, sign: str, limit: Limit, rounded: Callable[[float, int], float]) -> str:
        if isinstance(limit, str):
            return f"— ({limit})"
        value = rounded(float(f"{limit:.12g}"), 3)  # more digits have rounding errors
        return f"{sign} {100 * value:.3g}%" if self.name.startswith("true positives") else f"{sign} {value:.3g}"

    def __str__(self) -> str:
        return f"{self.name}: {self.shown}, {self.allowed} if the claim holds"


def attack_limits(result: AuditResult | CanaryResult) -> tuple[AttackLimit, ...]:
    """Return what the audit showed of attacks on its pair, and what the claim allows of any, in either role of x and y.

    Each number that was shown is at most the truth with probability at least 1 − alpha; those from counts hold
    together.

    Parameters
    ----------
    result : AuditResult or CanaryResult
        With any verdict. After a failed health check nothing was shown.

    Returns
    -------
    tuple of AttackLimit
        Five, in the order of `AttackLimit.name`.

    See Also
    --------
    AuditResult : The bound on the claim's own parameter.
    BinCounts.band : The whole trade-off curve of the bins, with a simultaneous band.

    Notes
    -----
    What the claim allows follows from its boundary. What was shown follows from limits of the probabilities of the
    tested events; for claims of Gaussian and Rényi type μ follows from the bound instead. So it does for any claim in
    audits that ended by a bet, and of canaries, as their counts show nothing.

    References
    ----------
    Kairouz, Oh & Viswanath (2017), The composition theorem for differential privacy; Dong, Roth & Su
    (2022), Gaussian differential privacy, Definition 2.6 and Proposition 2.4; Clopper & Pearson (1934). Proof:
    docs/proofs/boundaries.md.

    Examples
    --------
    >>> from dpaudit import check_outputs
    >>> result = check_outputs([0] * 600 + [1] * 400, [0] * 400 + [1] * 600, claim=0.1)
    >>> for each in attack_limits(result)[-2:]:
    ...     print(each)
    advantage: ≥ 0.0851, ≤ 0.05 if the claim holds
    correct of 100 guesses: ≥ 54.2, ≤ 52.5 if the claim holds
    """
    return _named(_shown(result), _allowed(result.claim))


def attack_limits_of_profile(profile: Sequence[tuple[float, float, float]]) -> tuple[AttackLimit, ...]:
    """Return the limits of attacks on a pair whose δ(ε) is known to lie between two numbers in both directions.

    Parameters
    ----------
    profile : sequence of (float, float, float)
        ε from 0 on, and both ends of δ(ε): the `curve` of an exact audit. The limits are as certain as these.
    """
    epsilons, lower, upper = zip(*profile, strict=True)
    reason = "only δ(ε) is known"
    return _named((reason, reason, reason, *_of_advantage(lower[0])), _allowed(PrivacyProfile(epsilons, upper)))


def _named(least: tuple[Limit, ...], most: tuple[Limit, ...]) -> tuple[AttackLimit, ...]:
    rows = zip(_NAMES, least, most, strict=True)
    return tuple(AttackLimit(name=name, at_least=low, at_most=high) for name, low, high in rows)


def _of_advantage(advantage: float) -> tuple[float, float]:
    """The advantage, and the correct ones of 100 guesses: half of them, and as much of the rest."""
    return advantage, 50.0 * (1.0 + advantage)


def _allowed(claim: Claim) -> tuple[Limit, ...]:
    """What attackers achieve at most if the claim holds."""
    ways = (claim,) if claim.reversed() == claim else (claim, claim.reversed())
    rates = np.max([way.max_power(FALSE_POSITIVES)[0] for way in ways], axis=0)
    return _allowed_mu(claim), *rates.tolist(), *_of_advantage(max(map(_largest_advantage, ways)))


def _allowed_mu(claim: Claim) -> Limit:
    """A μ for which the claim implies μ-GDP."""
    base, distance = steps_of(claim)
    if isinstance(base, GaussianDP):
        return distance * base.mu
    if base.log_ratio is not None:
        return float(-2.0 * ndtri_exp(log_expit(-distance * base.log_ratio)))
    return "no μ-GDP follows where δ > 0" if isinstance(base, ApproxDP) else "no closed form"


def _largest_advantage(claim: Claim) -> float:
    """max B(q) − q to twelve digits: B is concave, so the maximum lies beside the best of some points.

    It falls no faster than q rises, so that the best of points 32⁻¹⁰ apart is 1e-15 below it.
    """
    low, high, found = 0.0, 1.0, 0.0
    for _ in range(10):
        q = np.linspace(low, high, 65)
        above = claim.max_power(q)[0] - q
        best = int(np.argmax(above))
        found = max(found, float(above[best]))
        low, high = float(q[max(best - 1, 0)]), float(q[min(best + 1, 64)])
    return float(f"{found:.12g}")


def _shown(result: AuditResult | CanaryResult) -> tuple[Limit, ...]:
    """What attackers achieve at least, as the audit showed.

    Whether the counts or the bound show it depends on the kind of claim and audit alone, so that nothing is chosen by
    the runs.
    """
    if result.findings:
        return ("a health check failed",) * len(_NAMES)
    claim, _ = steps_of(result.claim)
    if isinstance(result, AuditResult) and (result.stopped is None or result.is_closed):
        mu, *others = _by_counts(result)
        if isinstance(claim, GaussianDP) or claim.divergence_slopes:
            mu = _mu_of_bound(result.claim, result.bound, "the bound is 0")
    else:
        what = "one training" if isinstance(result, CanaryResult) else "a betting test"
        reason = f"{what} bounds the claim's parameter alone"
        mu, others = _mu_of_bound(result.claim, result.bound, reason), [reason] * (len(_NAMES) - 1)
    if isinstance(result.claim, ApproxDP) and result.claim.epsilon == 0.0 and result.claim.bound_on == "delta":
        others = [*others[:2], *(_of_advantage(result.bound) if result.bound > 0.0 else ["the bound is 0"] * 2)]
    return mu, *others


def _mu_of_bound(claim: Claim, bound: float, otherwise: str) -> Limit:
    """The μ that a lower bound on the claim's parameter implies.

    What is μ-GDP keeps each member of the claim's family that Gaussian noise of this μ keeps.
    """
    if not 0.0 < bound < claim.max_parameter:
        return otherwise
    member = claim.with_parameter(bound)
    if isinstance(steps_of(member)[0], GaussianDP):
        return _allowed_mu(member)
    return otherwise if member.gaussian_mu is None else member.gaussian_mu


def _by_counts(result: AuditResult) -> tuple[Limit, ...]:
    """What the limits of the tested events show, which hold together at confidence 1 − alpha.

    The pilot fixes which events may be shown: the chosen one, or one in each direction, and the plain events in both
    directions. The former have half of alpha, the latter the rest, evenly. A single event is taken for a plain one,
    as the result does not say which it is.
    """
    sides = [(result.more_likely_on, result.counts)]
    candidates = max(1, 4 * result.net_events)
    if result.opposite is not None:
        sides.append(("y" if result.more_likely_on == "x" else "x", result.opposite.counts))
        candidates = 4 if result.net_events else 2
    mu, advantage, rates = 0.0, 0.0, np.array(FALSE_POSITIVES)
    for side, counts in sides:
        held, alpha = (counts if side == "x" else counts.swapped()), result.alpha / candidates
        (p, p_rest), _ = clopper_pearson(held.count_x, held.runs_x, alpha=alpha)
        _, (q, q_rest) = clopper_pearson(held.count_y, held.runs_y, alpha=alpha)
        if p > q:
            mu = max(mu, float(GaussianDP(0.0).parameter_of(p, q, p_rest, q_rest)))
            advantage = max(advantage, p - q)
            for power, size in ((p, q), (q_rest, p_rest)):  # the event, and outside it in the other role
                rates = np.maximum(rates, _chords(power, size))
    if advantage == 0.0:
        return ("these counts show no difference",) * len(_NAMES)
    return mu, *rates.tolist(), *_of_advantage(advantage)


def _chords(power: float, size: float) -> Array:
    """True positives at the false-positive rates of the test that makes the event's guesses less or more often."""
    rates = np.array(FALSE_POSITIVES)
    return np.where(rates < size, power / size * rates, power + (1.0 - power) * (rates - size) / (1.0 - size))
