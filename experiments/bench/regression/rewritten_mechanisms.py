"""Baselines measured: code that was rewritten and draws from the same law must hardly ever be called changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ....audit.claims.pure_approx_gaussian import PureDP
from ....audit.inference.binomial_tails import probability_limits
from ....audit.procedures.check import check
from ....audit.procedures.count_again import recount
from ....audit.records.baseline_comparison import compare
from ....audit.records.suite import Entry, Suite
from ....audit.results.recount import Recount
from ....reports.pytest_plugin.session import compared_with, saved_as
from ..core.bench_json import CERTAIN, Column, Row, Target, Value
from ..core.effort import Bench, Effort, Task, batches, finished, seeds_of, spread

_ALPHAS = (0.05, 0.01, 1e-3, 1e-5)
_RUNS = 1_000
_REPETITIONS = 200, 2_000  # quick, full: 20,000 rewrites in all
_BATCH, _WRITTEN_AFTER = 50, 10
_NAME = "main"
_STREAMS = ("two streams", "one stream")
# Of the true answer. A coin that is nearly fair shows best what one stream does: nearly every hit of the old code is a
# miss of the new code.
_OF_TWO, _OF_THREE = 0.55, 0.7

Draw = Callable[[float, int, np.random.Generator], Any]
"""An output for each run, from the answer, the number of runs and random numbers."""


def _added(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.laplace(size=size)


def _subtracted(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer - rng.laplace(size=size)


def _quantile(u: npt.NDArray[np.float64]) -> Any:
    """Of the Laplace law."""
    return np.where(u < 0.5, 1.0, -1.0) * np.log(2.0 * np.minimum(u, 1.0 - u) + 2.0**-60)


def _inverse(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + _quantile(rng.random(size))


def _inverse_of_the_rest(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + _quantile(1.0 - rng.random(size))


def _signed(answer: float, size: int, rng: np.random.Generator) -> Any:
    sign, magnitude = rng.random((2, size))
    return answer + np.where(sign < 0.5, -1.0, 1.0) * -np.log1p(-magnitude)


def _signed_from_swapped(answer: float, size: int, rng: np.random.Generator) -> Any:
    magnitude, sign = rng.random((2, size))
    return answer + np.where(sign < 0.5, -1.0, 1.0) * -np.log1p(-magnitude)


def _heads_below(answer: float, size: int, rng: np.random.Generator) -> Any:
    tells = rng.random(size) < _OF_TWO
    return np.where(tells, answer, 1.0 - answer)


def _heads_above(answer: float, size: int, rng: np.random.Generator) -> Any:
    tells = rng.random(size) >= 1.0 - _OF_TWO
    return np.where(tells, answer, 1.0 - answer)


def _of_three(order: tuple[int, int, int], answer: float, size: int, rng: np.random.Generator) -> Any:
    """The true one of three outcomes or another, by where a uniform number lies among the shares in this order."""
    shares = np.array([_OF_THREE, (1.0 - _OF_THREE) / 2, (1.0 - _OF_THREE) / 2])
    place = np.searchsorted(np.cumsum(shares[list(order)])[:2], rng.random(size), side="right")
    return (answer + np.array(order)[place]) % 3.0


def _rounded_down(answer: float, size: int, rng: np.random.Generator) -> Any:
    return np.floor(answer + rng.laplace(size=size) + 0.5)


def _rounded_up(answer: float, size: int, rng: np.random.Generator) -> Any:
    return np.ceil(answer - rng.laplace(size=size) - 0.5)


def _noisy_max(answer: float, size: int, rng: np.random.Generator, *, step: int = 1) -> Any:
    noise = rng.laplace(scale=2.0, size=(3, size))[::step]
    return np.argmax(np.array([[answer], [0.5], [0.5]]) + noise, axis=0).astype(float)


def _cosine(answer: float, size: int, rng: np.random.Generator) -> Any:
    radius, angle = rng.random((2, size))
    return answer + np.sqrt(-2.0 * np.log1p(-radius)) * np.cos(2.0 * np.pi * angle)


def _sine(answer: float, size: int, rng: np.random.Generator) -> Any:
    radius, angle = rng.random((2, size))
    return answer + np.sqrt(-2.0 * np.log1p(-radius)) * np.sin(2.0 * np.pi * angle)


_REWRITES: dict[str, tuple[Draw, Draw]] = {
    "Laplace, noise subtracted": (_added, _subtracted),
    "Laplace, by inverse distribution": (_added, _inverse),
    "Laplace, inverse distribution of 1 - u": (_inverse, _inverse_of_the_rest),
    "Laplace, signed exponential": (_added, _signed),
    "Laplace, draws swapped": (_signed, _signed_from_swapped),
    "Laplace, rounded": (_rounded_down, _rounded_up),
    "Gaussian, sine for cosine": (_cosine, _sine),
    "coin, r >= 1 - p": (_heads_below, _heads_above),
    "three outcomes, permuted": (partial(_of_three, (0, 1, 2)), partial(_of_three, (2, 1, 0))),
    "noisy maximum, order reversed": (_noisy_max, partial(_noisy_max, step=-1)),
}
"""Old and new code of the same law."""


def _p_values(name: str, is_one_stream: bool, seeds: range) -> list[float]:
    """Of the comparison of new code with a baseline of the old, for each seed, as the pytest plugin makes it."""
    old, new = _REWRITES[name]
    result = check(old, 1.0, 0.0, claim=PureDP(1.0), runs=_RUNS, seed=0, bits=False, jobs=1, name=name)

    def again(mechanism: Draw, stream: str, seed: int) -> Recount:
        return recount(mechanism, 1.0, 0.0, result.event, stream=stream, runs=_RUNS, seed=seed, jobs=1)

    found = []
    for seed in seeds:
        before = again(old, saved_as(_NAME), seed)
        if is_one_stream:  # under the other's name, or no p-value would be given
            after = replace(again(new, saved_as(_NAME), seed), stream=compared_with(_NAME))
        else:
            after = again(new, compared_with(_NAME), seed)
        sides = (
            Suite(title="", entries=(Entry(name=name, result=result, recounts=(one,)),)) for one in (before, after)
        )
        (comparison,) = compare(*sides)
        if comparison.p_value is None:
            raise ValueError(f"{name}, seed {seed}: nothing was compared ({comparison.changes}, {comparison.notes})")
        found.append(comparison.p_value)
    return found


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(_REWRITES):
        for is_one_stream in (False, True):
            if effort.wants(name):
                key = f"{name}, {_STREAMS[is_one_stream]}"
                yield Task(key, partial(_measured, effort, key, place, name, is_one_stream))


def _measured(
    effort: Effort, key: str, place: int, name: str, is_one_stream: bool, former: Row | None
) -> Iterator[Row]:
    """The row of one rewrite, again and again as comparisons are finished; a former one is added to."""
    done, refuted, started = 0, [0] * len(_ALPHAS), time.perf_counter()
    if former is not None:
        done = int(str(former.cells["repetitions"]))
        refuted = [int(str(former.cells[f"changed at {alpha:g}"])) for alpha in _ALPHAS]
        started -= former.seconds
        yield former
    pending = batches(seeds_of(18, place, done, max(0, effort.either(*_REPETITIONS) - done)), _BATCH)
    calls = [(name, is_one_stream, seeds) for seeds in pending]
    for count, p_values in enumerate(spread(_p_values, calls, effort.jobs), start=1):
        done += len(p_values)
        refuted = [sum(p <= alpha for p in p_values) + so_far for alpha, so_far in zip(_ALPHAS, refuted, strict=True)]
        if count % _WRITTEN_AFTER == 0 or count == len(calls):
            cells, targets = _cells(name, is_one_stream, done, refuted)
            yield finished(key, cells, targets, time.perf_counter() - started)


def _cells(name: str, is_one_stream: bool, done: int, refuted: list[int]) -> tuple[dict[str, Value], list[Target]]:
    cells: dict[str, Value] = {"rewrite": name, "streams": _STREAMS[is_one_stream], "repetitions": done}
    above = []
    for alpha, times in zip(_ALPHAS, refuted, strict=True):
        low, high = probability_limits(times, done, alpha=0.05)
        cells[f"changed at {alpha:g}"] = times
        cells[f"share at {alpha:g}"] = f"{times / done:.4f} ({low:.4f} to {high:.4f})"
        above.append(probability_limits(times, done, alpha=CERTAIN)[0] / alpha)
    if is_one_stream:
        return cells, []
    return cells, [Target(what="99.9% lower limit over alpha, at most", value=max(above), sense="<=", limit=1.0)]


BASELINES = Bench(
    name="baselines",
    title="Baselines of code that was rewritten",
    method=(
        "Old code is saved as a baseline, and new code with the same law is compared with it, as by `--dp-audit-save` "
        f"and `--dp-audit-compare` with one seed; {_RUNS:,} runs on each dataset. Shares of the repetitions, each with "
        "another seed, that are called changed at an alpha, with exact 95% intervals. Two streams: as the plugin "
        "counts, the new code with other random numbers than the baseline. One stream: the same random numbers for "
        "both, with which the test is not valid and `compare` gives no p-value; no targets."
    ),
    columns=(
        Column("rewritten", "rewrite"),
        Column("random numbers", "streams"),
        Column("repetitions", "repetitions", ",d"),
        *(Column(f"changed at {alpha:g}", f"share at {alpha:g}") for alpha in _ALPHAS),
    ),
    names=tuple(_REWRITES),
    tasks=_tasks,
)
