"""Power of audits at the detectable excess that they state, for every kind of claim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

from ....audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ....audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from ....audit.events.events import Event
from ....audit.inference.binomial_tails import probability_limits
from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult
from ....mechanisms import GaussianMechanism, LaplaceMechanism, RandomisedResponse
from ..core.bench_json import CERTAIN, Figures, Value, at_least, columns
from ..core.effort import Bench, Effort, Task, batches, in_batches, once, seeds_of, spread

_POWER = 0.95
_ALPHAS = (0.05, 1e-5)
_KINDS = ("fixed size", "sequential")
_STATING, _QUICK_STATING, _AUDITS, _QUICK_AUDITS = 20, 1, 200, 3
_MORE_AUDITS = 1_000  # in all, where fewer leave it open whether the stated power is reached
_LEAK = 50.0  # far outside standard normal noise
_START = 0.3  # probability below the interval that is likelier


@dataclass(frozen=True, slots=True)
class NormalNoise:
    """Gaussian noise of scale 1/μ, added to the answer."""

    mu: float

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        return answer + rng.normal(scale=1.0 / self.mu, size=size)


@dataclass(frozen=True, slots=True)
class RareOutcome:
    """Noise that is independent of the answer, with a rare output that is e^ε times likelier for 1 than for 0.

    Its frequency, the mean of both probabilities, is the same for every ε: excesses are stated for an event as frequent
    as the tested one.
    """

    frequency: float
    epsilon: float

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        chance = 2.0 * self.frequency * expit(self.epsilon if answer else -self.epsilon)
        return np.where(rng.random(size) < chance, _LEAK, rng.normal(size=size))


@dataclass(frozen=True, slots=True)
class LikelierPart(RareOutcome):
    """The same with a part of the noise in place of the rare output: one of five outcomes, or an interval."""

    is_interval: bool = False

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        is_in = RareOutcome.sample(self, answer, size, rng) == _LEAK
        if not self.is_interval:
            return np.where(is_in, 0, rng.integers(1, 5, size))
        inside, outside = _START + self.frequency * rng.random(size), (1.0 - self.frequency) * rng.random(size)
        return ndtri(np.where(is_in, inside, outside + self.frequency * (outside >= _START)))


@dataclass(frozen=True, slots=True)
class ThreeNumbers:
    """The answer with Laplace noise, three times, that together is ε-DP."""

    epsilon: float

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        return answer / 3.0 + rng.laplace(scale=1.0 / self.epsilon, size=(size, 3))


@dataclass(frozen=True, slots=True)
class _Subject:
    """Claim, mechanisms that attain each strength of its family on the pair 1 and 0, and runs of an audit."""

    name: str
    claim: Claim
    of_strength: Callable[[float], Any]
    runs: int
    is_meant: Callable[[Event], bool] = lambda event: True


def _is_rare_outcome(event: Event) -> bool:
    """Return whether an event separates the rare output from the noise."""
    is_in = event.contains(np.append(np.linspace(-2.05, 1.95, 9), _LEAK))
    return bool(is_in[-1]) != bool(is_in[:-1].any()) and len(set(is_in[:-1].tolist())) == 1


_SUBJECTS = {
    each.name: each
    for each in (
        _Subject("pure, Laplace", PureDP(1.0), LaplaceMechanism, 50_000),
        _Subject("pure, randomised response", PureDP(1.0), RandomisedResponse, 50_000),
        _Subject("delta 1e-3, Gaussian", ApproxDP(1.0, 1e-3), lambda s: GaussianMechanism(s, 1e-3), 50_000),
        _Subject("delta .05, Gaussian", ApproxDP(1.0, 0.05), lambda s: GaussianMechanism(s, 0.05), 50_000),
        _Subject("delta 1e-6, Laplace", ApproxDP(1.0, 1e-6), LaplaceMechanism, 50_000),
        _Subject("mu-GDP, Gaussian", GaussianDP(1.0), NormalNoise, 50_000),
        _Subject("zCDP, Gaussian", ZeroConcentratedDP(0.5), lambda s: NormalNoise(math.sqrt(2.0 * s)), 50_000),
        _Subject("Rényi DP, Gaussian", RenyiDP(4.0, 1.0), lambda s: NormalNoise(math.sqrt(s / 2.0)), 50_000),
        _Subject("pure, rare leak .01", PureDP(1.0), lambda s: RareOutcome(0.01, s), 50_000, _is_rare_outcome),
        _Subject("pure, rare leak .001", PureDP(1.0), lambda s: RareOutcome(0.001, s), 500_000, _is_rare_outcome),
        _Subject("pure, leak .05", PureDP(1.0), lambda s: RareOutcome(0.05, s), 20_000, _is_rare_outcome),
        _Subject("pure, outcome .2", PureDP(1.0), lambda s: LikelierPart(0.2, s), 20_000),
        _Subject("pure, interval .05", PureDP(1.0), lambda s: LikelierPart(0.05, s, is_interval=True), 20_000),
        _Subject("pure, three numbers", PureDP(1.0), ThreeNumbers, 20_000),
    )
}
_QUICK = ("pure, Laplace",)


def _audit(subject: _Subject, excess: float, sequential: bool, alpha: float, seed: int) -> AuditResult:
    return check(
        subject.of_strength(subject.claim.strength + excess),
        1,
        0,
        claim=subject.claim,
        runs=subject.runs,
        alpha=alpha,
        power=_POWER,
        seed=seed,
        bits=False,
        jobs=1,
        sequential=sequential,
    )


def _stated(name: str, sequential: bool, alpha: float, seeds: range) -> list[float]:
    """Return the detectable excesses that audits of the claim, held with equality, state for the intended event."""
    results = [_audit(_SUBJECTS[name], 0.0, sequential, alpha, seed) for seed in seeds]
    return [result.resolution for result in results if _SUBJECTS[name].is_meant(result.event)]


def _found(name: str, excess: float, sequential: bool, alpha: float, seeds: range) -> int:
    """Return the number of audits that refute a mechanism with the given excess."""
    return sum(_audit(_SUBJECTS[name], excess, sequential, alpha, seed).is_refuted for seed in seeds)


def _count(effort: Effort, case: tuple[str, float, bool, float], seeds: range) -> int:
    return sum(spread(_found, [(*case, batch) for batch in batches(seeds, 5)], effort.jobs))


def _least(audits: int) -> float:
    """The stated power less the standard error of its share of audits."""
    return _POWER - math.sqrt(_POWER * (1.0 - _POWER) / audits)


def _power(effort: Effort, number: int, name: str, sequential: bool, alpha: float) -> Figures:
    stating, audits = effort.either((_QUICK_STATING, _QUICK_AUDITS), (_STATING, _AUDITS))
    place = 4 * number + 2 * sequential + _ALPHAS.index(alpha)
    stated = in_batches(_stated, (name, sequential, alpha), seeds_of(6, 2 * place, 0, stating), 5, effort.jobs)
    excess = statistics.median(stated) if stated else math.inf
    found, seeds = 0, seeds_of(6, 2 * place + 1, 0, _MORE_AUDITS)
    if excess < math.inf:
        found = _count(effort, (name, excess, sequential, alpha), seeds[:audits])
        if not effort.is_quick and found / audits < _least(audits):
            found += _count(effort, (name, excess, sequential, alpha), seeds[audits:])
            audits = _MORE_AUDITS
    low, high = probability_limits(found, audits, alpha=0.05)
    certain = probability_limits(found, audits, alpha=CERTAIN)[1]
    targets = [at_least("99.9% upper limit of the power", certain, _POWER)]
    if not effort.is_quick:
        targets.append(at_least("power", found / audits, _least(audits)))
    cells: dict[str, Value] = {
        "subject": name,
        "claim": str(_SUBJECTS[name].claim),
        "kind": _KINDS[sequential],
        "alpha": alpha,
        "runs": _SUBJECTS[name].runs,
        "stated": excess,
        "stating": len(stated),
        "audits": audits,
        "found": found,
        "share": found / audits,
        "low": low,
        "high": high,
    }
    return cells, targets


def _tasks(effort: Effort) -> Iterator[Task]:
    for number, name in enumerate(_SUBJECTS):
        for sequential in (False, True):
            for alpha in _ALPHAS:
                if effort.wants(name) and (not effort.is_quick or (name in _QUICK and alpha == _ALPHAS[0])):
                    key = f"{name}, {_KINDS[sequential]}, {alpha:g}"
                    yield once(key, _power, effort, number, name, sequential, alpha)


STATED_POWER = Bench(
    name="power",
    title="Power at the stated detectable excess",
    method=(
        "Audits of mechanisms whose claims hold with equality state the excess that they detect with power "
        f"{_POWER:g}: the median of {_STATING} audits, among those of the intended event. Audits with other seeds then "
        "test mechanisms with this excess; the refuted share must reach the stated power less its standard error. "
        f"Where it does not in {_AUDITS} audits, the row has {_MORE_AUDITS:,}. A "
        "rare leak is an output of the stated probability, on average over the datasets, at every excess."
    ),
    columns=columns(
        "mechanism = subject | claim | audit = kind | alpha :g | runs :, | detectable excess = stated :.4g | "
        "audits :, | refuted = found :, | power = share :.3f | 95% lower limit = low :.3f | "
        "95% upper limit = high :.3f"
    ),
    names=tuple(_SUBJECTS),
    tasks=_tasks,
)
