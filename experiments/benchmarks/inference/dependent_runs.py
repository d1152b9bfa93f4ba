"""Health checks on dependent runs, and their false findings on independent runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib.externals.loky import get_reusable_executor

from ....audit.claims.claim import PureDP
from ....audit.events.events import Event, Intervals, Outcomes
from ....audit.health.findings import HealthCheck
from ....audit.health.run_independence import examine
from ....audit.inference.binomial_tails import probability_limits
from ....audit.procedures.check import check
from ....audit.sampling.block_plan import pilot_runs
from ....audit.sampling.draw import count_hits, draw_pilot, plan_blocks, shapes_of
from ....audit.sampling.sampler import as_sampler
from ..core.bench_json import CERTAIN, Figures, Value, at_least, at_most, columns
from ..core.page import ALPHA, Bench, Effort, Task, batches, in_batches, once, one_row_each, seeds_of, spread
from . import dependence_stream

_KINDS = ("fixed size", "sequential")
_P = 1.0 / (1.0 + math.exp(-1.0))
_AUDITS, _QUICK_AUDITS, _QUICK_RUNS = 100, 1, 5_000
_QUICK, _QUICK_CHECKS = {("noise-again", True), ("texts", False)}, ("numbers-1000",)  # (case, is it sequential?)
_LEAST_FOUND = 0.95
_STREAM_RUNS, _AUDITS_OF_A_PROCESS, _STREAM_WORKERS = 20_000, 10, 2
_CHECKS, _LEVEL = 24, 0.01  # checks of blocks and outputs: nine on each side and six on both sides together
_CALIBRATED, _QUICK_CALIBRATED, _CALIBRATED_RUNS = 400, 10, 20_000


def _one_rate_a_call(dataset: int, size: int, rng: np.random.Generator) -> Any:
    """Randomised response with ε = 1 whose probability varies slightly from call to call."""
    return (rng.random(size) < rng.beta(4_000 * _P, 4_000 * (1.0 - _P))) ^ bool(dataset)


def _noise_again(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return dataset + rng.permutation(np.repeat(rng.laplace(size=size // 5 + 1), 5)[:size])


def _pool(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return dataset + rng.choice(rng.laplace(size=size), size)


def _module_stream(dataset: int) -> Any:
    return dataset + dependence_stream.rng.laplace()


def _texts(dataset: int, rng: np.random.Generator) -> Any:
    return f"{dataset + rng.laplace():.17g}"


def _identifiers(dataset: int, size: int, rng: np.random.Generator, *, count: int) -> Any:
    return [f"id{number}" for number in rng.integers(count, size=size)]


def _numbers(dataset: int, size: int, rng: np.random.Generator, *, count: int) -> Any:
    return rng.integers(count, size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Mechanism with the requirements on its audits.

    Attributes
    ----------
    name : str
    mechanism : callable
    runs : tuple of int
        Runs on each dataset, one number for each row.
    found_from : float
        Runs from which at least 95 of 100 audits must have a finding; infinite for none.
    is_correct : bool
        Whether no audit may have a finding.
    """

    name: str
    mechanism: Callable[..., Any]
    runs: tuple[int, ...] = (20_000,)
    found_from: float = math.inf
    is_correct: bool = False


_COUNTS = (10**3, 10**4, 10**5, 10**6)
_CASES = (
    _Case(name="rate-of-a-call", mechanism=_one_rate_a_call, runs=(20_000, 100_000, 1_000_000), found_from=1e6),
    _Case(name="noise-again", mechanism=_noise_again, found_from=0),
    _Case(name="pool-of-a-call", mechanism=_pool, found_from=0),
    _Case(name="texts", mechanism=_texts, runs=(50_000,), is_correct=True),
    *(
        _Case(name=f"{what}-{count}", mechanism=partial(draw, count=count), runs=(100_000,), is_correct=True)
        for what, draw in (("identifiers", _identifiers), ("numbers", _numbers))
        for count in _COUNTS
    ),
)
_BY_NAME = {case.name: case for case in _CASES}
_STREAM = "stream-of-a-module"


def _audits(name: str, runs: int, sequential: bool, seeds: range, jobs: int = 1) -> list[tuple[bool, bool]]:
    """Return for each seed whether a health check failed, and whether the claim was refuted without a failed check."""
    mechanism = _module_stream if name == _STREAM else _BY_NAME[name].mechanism
    found = []
    for seed in seeds:
        result = check(
            mechanism,
            0,
            1,
            claim=PureDP(1.0),
            runs=runs,
            alpha=ALPHA,
            seed=seed,
            bits=False,
            jobs=jobs,
            sequential=sequential,
            name=name,
        )
        suspects = any(finding.check is not HealthCheck.IDLE_EVENT for finding in result.findings)
        found.append((suspects, result.is_refuted and not result.findings))
    return found


def _cells(name: str, runs: int, sequential: bool, found: list[tuple[bool, bool]]) -> Figures:
    findings, refuted = (sum(side) for side in zip(*found, strict=True))
    certain = probability_limits(refuted, len(found), alpha=CERTAIN)[0]
    targets = [at_most("99.9% lower limit of the refutation rate", certain, ALPHA)]
    if name in _BY_NAME:
        case = _BY_NAME[name]
        if case.is_correct:
            targets.append(at_most("findings", findings, 0))
        elif runs >= case.found_from:
            targets.append(at_least("rate of findings", findings / len(found), _LEAST_FOUND))
    cells: dict[str, Value] = {
        "subject": name,
        "kind": _KINDS[sequential],
        "runs": runs,
        "audits": len(found),
        "refuted": refuted,
        "findings": findings,
    }
    return cells, targets


def _row(effort: Effort, name: str, runs: int, sequential: bool, seeds: range) -> Figures:
    return _cells(name, runs, sequential, in_batches(_audits, (name, runs, sequential), seeds, 2, effort.jobs))


def _stream_row(runs: int, seeds: range) -> Figures:
    """Return the figures of audits of which every ten start two new worker processes, which import the module again."""
    found = []
    for batch in batches(seeds, _AUDITS_OF_A_PROCESS):
        get_reusable_executor().shutdown()
        found += _audits(_STREAM, runs, False, batch, _STREAM_WORKERS)
    get_reusable_executor().shutdown()
    return _cells(_STREAM, runs, False, found)


def _dependence_tasks(effort: Effort) -> Iterator[Task]:
    audits = effort.either(_QUICK_AUDITS, _AUDITS)
    for number, case in enumerate(_CASES):
        for place, runs in enumerate(effort.either((_QUICK_RUNS,), case.runs)):
            for sequential in (False, True):
                if effort.wants(case.name) and (not effort.is_quick or (case.name, sequential) in _QUICK):
                    seeds = seeds_of(6, 10 * number + 2 * place + sequential, 0, audits)
                    key = f"{case.name}, {runs}, {_KINDS[sequential]}"
                    yield once(key, _row, effort, case.name, runs, sequential, seeds)
    if effort.wants(_STREAM):
        runs = effort.either(_QUICK_RUNS, _STREAM_RUNS)
        yield once(_STREAM, _stream_row, runs, seeds_of(6, 10 * len(_CASES), 0, audits))


DEPENDENCE = Bench(
    name="dependence",
    title="Dependent runs",
    method=(
        f"Audits of the claim ε = 1 at alpha {ALPHA:g}. The mechanisms of the first rows keep the claim in each run, "
        "but the runs of a call or of the workers share randomness; an audit must report the dependence, or must not "
        "refute more often than alpha. At 20,000 runs no test can detect the shared rate, and the rate does no harm. "
        "The other mechanisms are correct and seldom repeat an output; no check may suspect them. Findings: audits in "
        "which a health check failed, except for the check of events that hold all runs or none."
    ),
    columns=columns(
        "mechanism = subject | audit = kind | runs :, | audits | refuted without a finding = refuted | findings"
    ),
    names=(*_BY_NAME, _STREAM),
    tasks=_dependence_tasks,
)


_CALIBRATION: dict[str, tuple[Callable[..., Any], Event]] = {
    **{f"numbers-{count}": (partial(_numbers, count=count), Intervals(((0.0, 0.3 * count),))) for count in _COUNTS},
    **{
        f"identifiers-{count}": (partial(_identifiers, count=count), Outcomes(tuple(f"id{i}" for i in range(300))))
        for count in _COUNTS
    },
}


def _false_findings(name: str, runs: int, seeds: range) -> int:
    """Return the number of audits whose pilot and main phase fail a check at the level."""
    mechanism, event = _CALIBRATION[name]
    sampler, size, alarms = as_sampler(mechanism, name), pilot_runs(runs), 0
    for seed in seeds:
        plan = plan_blocks(sampler, 0, 1, seed, 1, runs=runs)
        pilot = draw_pilot(plan.for_pilot(size), size)
        main = count_hits(plan, event, shapes_of(plan, *pilot), runs - size)
        alarms += bool(examine(pilot, main, frozenset(), alpha=_LEVEL))
    return alarms


def _calibration(effort: Effort, place: int, name: str) -> Figures:
    seeds = seeds_of(7, place, 0, effort.either(_QUICK_CALIBRATED, _CALIBRATED))
    calls = [(name, _CALIBRATED_RUNS, batch) for batch in batches(seeds, 10)]
    findings = sum(spread(_false_findings, calls, effort.jobs))
    certain = probability_limits(findings, len(seeds), alpha=CERTAIN)[0]
    cells: dict[str, Value] = {
        "subject": name,
        "runs": _CALIBRATED_RUNS,
        "audits": len(seeds),
        "findings": findings,
        "share": findings / len(seeds),
    }
    return cells, [at_most("99.9% lower limit of the rate of findings", certain, _CHECKS * _LEVEL)]


CHECKS = Bench(
    name="checks",
    title="False findings of the health checks at a measurable level",
    method=(
        f"The {_CHECKS} checks of outputs and blocks examine pilots and main phases of correct mechanisms, each at "
        f"level {_LEVEL:g}; audits use level 1e-8. Together the checks may fail in a share of at most "
        f"{_CHECKS * _LEVEL:g} of the audits. Names end with the number of different outputs."
    ),
    columns=columns(
        "outputs = subject | runs :, | audits | audits with a finding = findings | rate of findings = share :.4f"
    ),
    names=tuple(_CALIBRATION),
    tasks=one_row_each(_CALIBRATION, _calibration, quick=_QUICK_CHECKS),
)
