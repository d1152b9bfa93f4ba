"""Runs until audits refute a claim, by how far the truth exceeds it, for several kinds of mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import ApproxDP, Claim, PureDP
from ....audit.procedures.check import check
from ....audit.results.audit_result import FINAL_SHARE
from ....mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism, RandomisedResponse, ScalarLaw
from ...published.noisy_answers import NoisyAnswers
from ..core.bench_json import Figures, Value, at_least, at_most, columns
from ..core.effort import ALPHA, Bench, Effort, Task, in_batches, once_beside, seeds_of
from .known_events import best_pairs, known_bound, known_share, runs_of_best_bet, runs_of_known_events

_CLAIMED = 1.0
_TRUTHS = (2.0, 1.5, 1.1, 1.05, 1.01)
_CAP = 1_000_000
_FIXED_TRUTH, _FIXED_SIZE, _LEAST_FOUND = 1.01, 500_000, 0.95
_FLAT = (0.0,) * 10
_AUDITS, _BATCH = 200, 5
_SIMULATED = (3, 400)  # simulated audits, in the quick form and in the full one
_KNOWN = ("known_found", "known_laws", "known_events")


@dataclass(frozen=True, slots=True)
class Kind:
    """A mechanism whose true epsilon is given, with its pair and claim."""

    name: str

    @property
    def claim(self) -> Claim:
        delta = {"gaussian .05": 0.05, "gaussian .001": 0.001}.get(self.name)
        return PureDP(_CLAIMED) if delta is None else ApproxDP(_CLAIMED, delta)

    @property
    def pair(self) -> tuple[Any, Any]:
        if self.name == "vector of 10":
            return _FLAT, (1.0, *_FLAT[1:])
        return (0, 1) if self.name in ("geometric", "randomised response") else (0.0, 1.0)

    def mechanism(self, truth: float) -> Any:
        match self.name:
            case "laplace":
                return LaplaceMechanism(truth)
            case "gaussian .05":
                return GaussianMechanism(truth, 0.05)
            case "gaussian .001":
                return GaussianMechanism(truth, 0.001)
            case "geometric":
                return GeometricMechanism(truth)
            case "randomised response":
                return RandomisedResponse(truth)
        return NoisyAnswers(PureDP(truth), scale=1.0 / truth)

    def laws(self, truth: float) -> tuple[ScalarLaw, ScalarLaw]:
        """Laws of the part of the output that differs between the datasets."""
        if self.name == "vector of 10":
            return Kind("laplace").laws(truth)
        mechanism, (x, y) = self.mechanism(truth), self.pair
        return mechanism.law(x), mechanism.law(y)


KINDS = ("laplace", "gaussian .05", "gaussian .001", "randomised response", "geometric", "vector of 10")
_AUDIT_KINDS = ("default", "all of alpha")
_MOST_MEDIAN = {
    "default": dict(zip(_TRUTHS, (100.0, 250.0, 5_000.0, 17_500.0, 375_000.0), strict=True)),
    "all of alpha": dict(zip(_TRUTHS, (90.0, 230.0, 4_300.0, 14_500.0, 340_000.0), strict=True)),
}


def _taken(name: str, truth: float, runs: int, kind: str, seeds: range) -> list[float]:
    """Return the runs on each dataset at which each audit refuted the claim; infinite without a refutation."""
    subject = Kind(name)
    results = (
        check(
            subject.mechanism(truth),
            *subject.pair,
            claim=subject.claim,
            runs=runs,
            alpha=ALPHA,
            seed=seed,
            bits=False,
            jobs=1,
            sequential=kind != "fixed",
            seconds=math.inf if kind == "all of alpha" else None,
        )
        for seed in seeds
    )
    return [float(result.runs) if result.is_refuted else math.inf for result in results]


def _quantile(taken: list[float] | npt.NDArray[np.float64], share: float) -> float:
    """The order statistic, so that audits without a refutation can count as infinite."""
    return float(np.quantile(taken, share, method="inverted_cdf"))


def _cells(effort: Effort, name: str, truth: float, kind: str, seeds: range) -> Figures:
    runs = _FIXED_SIZE if kind == "fixed" else _CAP
    taken = in_batches(_taken, (name, truth, runs, kind), seeds, _BATCH, effort.jobs)
    found = sum(map(math.isfinite, taken)) / len(taken)
    median, most = _quantile(taken, 0.5), _quantile(taken, 0.9)
    targets = []
    if name == "laplace" and not effort.is_quick:
        if kind == "fixed":
            targets = [at_least("refuted share", found, _LEAST_FOUND)]
        else:
            targets = [at_most("median runs", median, _MOST_MEDIAN[kind][truth])]
    return {
        "name": name,
        "truth": truth,
        "kind": kind,
        "audits": len(taken),
        "runs": runs,
        "found": found,
        "median": None if kind == "fixed" else median,
        "most": None if kind == "fixed" else most,
    }, targets


def _known(effort: Effort, name: str, truth: float, kind: str, seeds: range) -> dict[str, Value]:
    """Figures of simulated audits that know the laws, or the two best events."""
    subject, audits = Kind(name), effort.either(*_SIMULATED)
    pairs, claim = best_pairs(*subject.laws(truth)), subject.claim
    if kind == "fixed":
        pair = known_bound(pairs, claim, _FIXED_SIZE, alpha=ALPHA)[1]
        share = known_share(pair, claim, _FIXED_SIZE, alpha=ALPHA, audits=audits, seed=seeds[0])
        return {"known_found": share, "known_laws": None, "known_events": None}
    final = FINAL_SHARE * ALPHA if kind == "default" else 0.0
    errors = {"alpha": ALPHA - final, "final_alpha": final}
    laws, events = (
        simulated(pairs, claim, _CAP, **errors, audits=audits, seed=seeds[0])
        for simulated in (runs_of_best_bet, runs_of_known_events)
    )
    return {"known_found": None, "known_laws": _quantile(laws, 0.5), "known_events": _quantile(events, 0.5)}


def _tasks(effort: Effort) -> Iterator[Task]:
    audits = effort.either(3, _AUDITS)
    for row, name in enumerate(KINDS):
        if not effort.wants(name) or (effort.is_quick and name != "laplace"):
            continue
        for place, truth in enumerate(effort.either(_TRUTHS[:1], _TRUTHS)):
            for number, kind in enumerate(_AUDIT_KINDS):
                seeds = seeds_of(4, row, 10_000 * (2 * place + number), audits)
                yield _row(effort, name, truth, kind, seeds)
        if not effort.is_quick:
            seeds = seeds_of(4, row, 10_000 * 20, audits)
            yield _row(effort, name, _FIXED_TRUTH, "fixed", seeds)


def _row(effort: Effort, name: str, truth: float, kind: str, seeds: range) -> Task:
    return once_beside(f"{name}, {truth:g}, {kind}", _cells, _known, _KNOWN, effort, name, truth, kind, seeds)


REFUTATION = Bench(
    name="refutation",
    title="Runs to a refutation",
    method=(
        f"Mechanisms of the true ε stated, audited against the claim ε = {_CLAIMED:g} (δ as stated) at alpha "
        f"{ALPHA:g}. Default: `check(..., sequential=True)`, which bets with half of alpha and ends with a final test "
        f'after {_CAP:,} runs. All of alpha: `seconds=float("inf")`, without a final test. Fixed: a fixed number of '
        "runs. Runs on each dataset until the refutation include those from which events are learned. Infinite: no "
        f"refutation within the runs. Known events: {_SIMULATED[1]} simulated audits with the same bets, looks and "
        "final test, which know from the first run the two events on which bets win most. Known laws: the same with a "
        "single bet of the best size, on runs of a dataset drawn by coin, and with a look after each hundredth of the "
        "runs. Fixed with known events: a test of all runs of both best events, with all of alpha."
    ),
    columns=columns(
        "mechanism = name | true ε = truth :g | audit = kind | audits | maximum runs = runs :, | "
        "refuted share = found :.3f | median runs = median :,.0f | 90% quantile of runs = most :,.0f | "
        "refuted share, known events = known_found :.3f | median runs, known events = known_events :,.0f | "
        "median runs, known laws = known_laws :,.0f"
    ),
    names=KINDS,
    tasks=_tasks,
)
