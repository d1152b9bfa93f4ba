"""Benchmarks of the health checks: dependence that is found or harmless, and false findings where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib.externals.loky import get_reusable_executor

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.events.events import Event, Intervals, Outcomes
from ....audit.health.findings import HealthCheck
from ....audit.health.run_independence import examine
from ....audit.inference.binomial_tails import probability_limits
from ....audit.procedures.check import check
from ....audit.sampling.draw import count_hits, draw_pilot, plan_blocks, shapes_of
from ....audit.sampling.pilot_size import pilot_runs
from ....audit.sampling.sampler import as_sampler
from ..core.bench_json import CERTAIN, Column, Target, Value
from ..core.effort import ALPHA, Bench, Effort, Task, batches, once, seeds_of, spread
from . import dependence_stream

_KINDS = ("fixed size", "sequential")
_P = 1.0 / (1.0 + math.exp(-1.0))
_AUDITS, _QUICK_AUDITS, _QUICK_RUNS = 100, 2, 20_000
_QUICK = ("rate-of-a-call", "noise-again", "texts", "identifiers-100000", "numbers-1000")
_LEAST_FOUND = 0.95
_STREAM_RUNS, _AUDITS_OF_A_PROCESS, _STREAM_WORKERS = 20_000, 10, 2
_CHECKS, _LEVEL = 24, 0.01  # checks of blocks and outputs: nine on each side and six on both
_CALIBRATED, _QUICK_CALIBRATED, _CALIBRATED_RUNS = 400, 10, 20_000


def _one_rate_a_call(dataset: int, size: int, rng: np.random.Generator) -> Any:
    """Randomised response of epsilon 1 whose probability varies a little from call to call."""
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
    """A mechanism with what its audits are held to.

    Attributes
    ----------
    name : str
    mechanism : callable
    runs : tuple of int
        Of its rows.
    found_from : float
        Runs from which at least 95 of 100 audits have to have a finding; infinite for none.
    is_correct : bool
        Whether none may have one.
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
    """For each seed whether a check failed that suspects the mechanism, and whether the claim was refuted otherwise."""
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


def _cells(
    name: str, runs: int, sequential: bool, found: list[tuple[bool, bool]]
) -> tuple[dict[str, Value], list[Target]]:
    findings, refuted = (sum(side) for side in zip(*found, strict=True))
    certain = probability_limits(refuted, len(found), alpha=CERTAIN)[0]
    targets = [Target(what="99.9% lower limit of refuted", value=certain, sense="<=", limit=ALPHA)]
    if name in _BY_NAME:
        case = _BY_NAME[name]
        if case.is_correct:
            targets.append(Target(what="findings", value=float(findings), sense="<=", limit=0.0))
        elif runs >= case.found_from:
            targets.append(Target(what="share found", value=findings / len(found), sense=">=", limit=_LEAST_FOUND))
    cells: dict[str, Value] = {
        "subject": name,
        "kind": _KINDS[sequential],
        "runs": runs,
        "audits": len(found),
        "refuted": refuted,
        "findings": findings,
    }
    return cells, targets


def _row(effort: Effort, name: str, runs: int, sequential: bool, seeds: range) -> tuple[dict[str, Value], list[Target]]:
    calls = [(name, runs, sequential, batch) for batch in batches(seeds, 2)]
    return _cells(name, runs, sequential, [one for some in spread(_audits, calls, effort.jobs) for one in some])


def _stream_row(seeds: range) -> tuple[dict[str, Value], list[Target]]:
    """Ten audits after each start of two worker processes, which import the module anew."""
    found = []
    for batch in batches(seeds, _AUDITS_OF_A_PROCESS):
        get_reusable_executor().shutdown()
        found += _audits(_STREAM, _STREAM_RUNS, False, batch, _STREAM_WORKERS)
    get_reusable_executor().shutdown()
    return _cells(_STREAM, _STREAM_RUNS, False, found)


def _dependence_tasks(effort: Effort) -> Iterator[Task]:
    audits = effort.either(_QUICK_AUDITS, _AUDITS)
    for number, case in enumerate(_CASES):
        for place, runs in enumerate(effort.either((_QUICK_RUNS,), case.runs)):
            for sequential in (False, True):
                if effort.wants(case.name) and (not effort.is_quick or case.name in _QUICK):
                    seeds = seeds_of(6, 10 * number + 2 * place + sequential, 0, audits)
                    key = f"{case.name}, {runs}, {_KINDS[sequential]}"
                    yield once(key, _row, effort, case.name, runs, sequential, seeds)
    if effort.wants(_STREAM):
        yield once(_STREAM, _stream_row, seeds_of(6, 10 * len(_CASES), 0, audits))


DEPENDENCE = Bench(
    name="dependence",
    title="Runs that are not independent",
    method=(
        f"Audits of the claim epsilon 1 at alpha {ALPHA:g}. The first mechanisms keep the claim in each run, but the "
        "runs of a call or of the workers share randomness: an audit should find that, or be wrong no more often than "
        "it may be. At 20,000 runs no test can find the shared rate, and it does no harm. The others are correct, with "
        "outputs of which few come again: no check may suspect them. Findings: audits in which a health check failed, "
        "but for events in which all runs lie, or none."
    ),
    columns=(
        Column("mechanism", "subject"),
        Column("audit", "kind"),
        Column("runs", "runs", ","),
        Column("audits", "audits"),
        Column("refuted without a finding", "refuted"),
        Column("findings", "findings"),
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
    """How many of these pilots and main phases fail a check at the level."""
    mechanism, event = _CALIBRATION[name]
    sampler, size, alarms = as_sampler(mechanism, name), pilot_runs(runs), 0
    for seed in seeds:
        plan = plan_blocks(sampler, 0, 1, seed, 1, runs=runs)
        pilot = draw_pilot(plan.for_pilot(size), size)
        main = count_hits(plan, event, shapes_of(plan, *pilot), runs - size)
        alarms += bool(examine(pilot, main, frozenset(), alpha=_LEVEL))
    return alarms


def _calibration(effort: Effort, name: str, seeds: range) -> tuple[dict[str, Value], list[Target]]:
    calls = [(name, _CALIBRATED_RUNS, batch) for batch in batches(seeds, 10)]
    findings = sum(spread(_false_findings, calls, effort.jobs))
    certain = probability_limits(findings, len(seeds), alpha=CERTAIN)[0]
    limit = _CHECKS * _LEVEL
    cells: dict[str, Value] = {
        "subject": name,
        "runs": _CALIBRATED_RUNS,
        "audits": len(seeds),
        "findings": findings,
        "share": findings / len(seeds),
    }
    return cells, [Target(what="99.9% lower limit of the share", value=certain, sense="<=", limit=limit)]


def _calibration_tasks(effort: Effort) -> Iterator[Task]:
    for number, name in enumerate(_CALIBRATION):
        if effort.wants(name) and (not effort.is_quick or name in _QUICK):
            seeds = seeds_of(7, number, 0, effort.either(_QUICK_CALIBRATED, _CALIBRATED))
            yield once(name, _calibration, effort, name, seeds)


CHECKS = Bench(
    name="checks",
    title="False findings of the health checks at a level that can be seen",
    method=(
        f"Pilots and main phases of correct mechanisms, examined by the {_CHECKS} checks of outputs and blocks at "
        f"level {_LEVEL:g} each, where audits take 1e-8: together they may fail in {_CHECKS * _LEVEL:g} at most. The "
        "number in a name is that of different outputs."
    ),
    columns=(
        Column("outputs", "subject"),
        Column("runs", "runs", ","),
        Column("examined", "audits"),
        Column("with a finding", "findings"),
        Column("share", "share", ".4f"),
    ),
    names=tuple(_CALIBRATION),
    tasks=_calibration_tasks,
)
