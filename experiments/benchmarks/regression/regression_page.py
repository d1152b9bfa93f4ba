"""Regression testing: failed sessions, planted bugs, checks of noise and baselines of rewritten code."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import PureDP
from ....audit.distribution_checks.check_noise import check_noise
from ....audit.distribution_checks.noise_laws import (
    ExponentialNoise,
    GaussianNoise,
    GeometricNoise,
    GumbelNoise,
    LaplaceNoise,
    NoiseLaw,
)
from ....audit.inference.binomial_tails import probability_limits
from ....audit.procedures.check import check
from ....audit.procedures.check_equivalence import check_same_distribution
from ....audit.procedures.count_again import recount
from ....audit.records.baseline_comparison import compare
from ....audit.records.json_codec import load
from ....audit.records.suite import Entry, Recount, Suite
from ....audit.results.audit_result import Verdict
from ....audit.results.canary_result import CanaryResult
from ....mechanisms import GeometricMechanism, LaplaceMechanism
from ....reports.pytest_plugin.session import compared_with, saved_as
from ...catalogue.entries import entries
from ...catalogue.fault import Fault
from ..core.bench_json import CERTAIN, Column, Figures, Row, Value, at_least, at_most, columns, timed
from ..core.page import Bench, Effort, Page, Task, counted, in_batches, one_row_each, seeds_of, spread
from ..inference.known_events import subjects

# Sessions of pytest: rate of failed sessions over correct mechanisms, and detection of planted bugs.

BUGS = (
    "sensitivity-understated",
    "replace-half-sensitivity",
    "scale-epsilon",
    "deviation-as-scale",
    "best-of-draws",
    "noise-one-sided",
    "redrawn-until-nonnegative",
    "seed-from-the-data",
    "ratio-squared",
    "clamped-to-the-rows",
    "variance-as-deviation",
    "domain-not-clipped",
    "rho-for-epsilon",
    "clipped-by-the-layer",
    "exponential-without-two",
    "noisy-max-without-two",
    "sparse-vector-no-query-noise",
    "truth-among-the-lies",
    "histogram-for-replaced-rows",
    "none-for-small-groups",
)
"""Faults of the catalogue from every family that audits of a hundred thousand runs can cover."""
_TWINS = 17  # bugs whose correct versions are audited
# The best events are rare, so that audits with few runs are inconclusive.
_RARE, _MORE_RUNS = {"exponential", "gaussian-0.001", "exponential-without-two", "histogram-for-replaced-rows"}, 10_000
_SLOW = {"clipped-by-the-layer"}  # vector outputs
_FIXED = ("laplace",)
Case = Callable[[Any], Any]
"""Function that makes one audit with the fixture."""


def bugs() -> dict[str, Case]:
    """Return the twenty planted bugs by name."""
    known = {fault.name: fault for fault in entries()}
    return {name: _of_fault(known[name], "mechanism") for name in BUGS}


def right() -> dict[str, Case]:
    """Return thirty audits of true claims, most with equality, that cover every way to call the fixture."""
    cases: dict[str, Case] = {}
    for subject in subjects():
        pair = subject.mechanism, subject.x, subject.y
        more = {"runs": _MORE_RUNS} if subject.name in _RARE else {}
        cases[f"{subject.name}, sequential"] = _of_pair(*pair, claim=subject.claim, bits=False, **more)
        if subject.name in _FIXED:
            cases[f"{subject.name}, fixed size"] = _of_pair(*pair, claim=subject.claim, bits=False, sequential=False)
    twins = [fault for fault in entries() if fault.name in {*BUGS} - _SLOW - _RARE and fault.correct is not None]
    for fault in twins[:_TWINS]:
        cases[f"correct twin of {fault.name}"] = _of_fault(fault, "correct")
    laplace, geometric = LaplaceMechanism(1.0), GeometricMechanism(1.0)
    cases["laplace at half of its claim"] = _of_pair(LaplaceMechanism(0.5), 0.0, 1.0, claim=laplace.claim, bits=False)
    cases["geometric at half of its claim"] = _of_pair(GeometricMechanism(0.5), 0, 1, claim=geometric.claim, bits=False)
    cases["laplace, pair searched"] = _searched(laplace, [(0.0, 1.0), (1.0, 0.0)])
    cases["geometric, pair searched"] = _searched(geometric, [(0, 1), (1, 0)])
    cases["laplace, same distribution"] = _compared(laplace)
    return cases


def _of_pair(mechanism: Any, x: Any, y: Any, **options: Any) -> Case:
    return lambda dp_audit: dp_audit(mechanism, x, y, **options)


def _of_fault(fault: Fault, which: str) -> Case:
    return _of_pair(
        getattr(fault, which),
        fault.x,
        fault.y,
        claim=fault.claim,
        adjacency=fault.adjacency,
        distance=fault.distance,
        bits=fault.bits,
    )


def _searched(mechanism: Any, pairs: list[Any]) -> Case:
    claim = mechanism.claim
    return lambda dp_audit: dp_audit(mechanism, neighbours=pairs, claim=claim, search_runs=800, bits=False)


def _compared(mechanism: Any) -> Case:
    return lambda dp_audit: dp_audit.check(check_same_distribution, mechanism, mechanism, 0, bits=False)


_SESSION_ALPHAS = (1e-5, 0.01)
"""The default of the plugin, at which hardly any session fails, and a level at which the rate is measurable."""
_SESSION_RUNS, _BUG_RUNS = 2_000, 100_000
_QUICK_SESSIONS, _QUICK_BUGS = 4, 3
_QUICK_EVERY = 8  # quick sessions make every eighth of the audits
_SESSION_BATCH = 10
_BUG_SEEDS = 20

_FILE = """
import pytest
from dpaudit.experiments.benchmarks.regression.regression_page import bugs, right

CASES = {which}()

@pytest.mark.parametrize("name", {names})
def test_audit(name, dp_audit):
    CASES[name](dp_audit)
"""


@dataclass(frozen=True, slots=True)
class _Audited:
    """Audit in a session."""

    test: str
    verdict: Verdict
    runs: int
    seconds: float


def _session(which: str, names: str, *options: str) -> tuple[int, list[_Audited]]:
    """Run a session of pytest in this process; return its exit status and its audits."""
    import pytest

    from ....reports.pytest_plugin import plugin

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(StringIO()):
        text = _FILE.format(which=which, names=names)
        # pytest reuses a module of the same name in the next session, so the name depends on the text.
        path = Path(folder) / f"test_{hashlib.sha256(text.encode()).hexdigest()[:16]}.py"
        path.write_text(text, encoding="utf-8")
        results = Path(folder) / "audits.json"
        fixed = ["-q", "--no-header", "-p", "no:cacheprovider", "--rootdir", folder, "--import-mode=importlib"]
        with mock.patch.dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"):
            status = pytest.main(
                [*fixed, "-c", os.devnull, f"--dp-audit-report={results}", *options, str(path)],
                plugins=[plugin],
            )
        found = [
            _Audited(entry.name, entry.result.verdict, entry.result.runs, float(entry.result.environment["seconds"]))
            for entry in load(results).entries
            if not isinstance(entry.result, CanaryResult)
        ]
    return int(status), found


def _sessions(alpha: float, every: int, seeds: range) -> Counter[str]:
    """Return the counts of sessions over correct mechanisms, of failed sessions, and of audits by verdict."""
    counts: Counter[str] = Counter(sessions=len(seeds))
    for seed in seeds:
        options = (f"--dp-audit-alpha={alpha!r}", f"--dp-audit-seed={seed}", f"--dp-audit-runs={_SESSION_RUNS}")
        status, found = _session("right", f"sorted(CASES)[::{every}]", *options, "--dp-audit-budget=0.9")
        counts["red"] += status != 0
        counts["refuted"] += sum(one.verdict is Verdict.REFUTED for one in found)
        counts["unclear"] += sum(one.verdict is Verdict.INCONCLUSIVE for one in found)
        counts["audits"] += len(found)
    return counts


def _session_tasks(effort: Effort) -> Iterator[Task]:
    for place, alpha in enumerate(_SESSION_ALPHAS):
        if effort.wants(f"{alpha:g}"):
            yield Task(f"{alpha:g}", partial(_session_row, effort, place, alpha))


def _session_row(effort: Effort, place: int, alpha: float, former: Row | None) -> Iterator[Row]:
    wanted = min(effort.audits, _QUICK_SESSIONS) if effort.is_quick else effort.audits
    return counted(
        f"{alpha:g}",
        partial(_sessions, alpha, effort.either(_QUICK_EVERY, 1)),
        partial(_session_cells, alpha),
        former,
        names=("sessions", "red", "refuted", "unclear", "audits"),
        seeds=lambda used: seeds_of(15, place, used, max(0, wanted - used)),
        batch=_SESSION_BATCH,
        jobs=effort.jobs,
    )


def _session_cells(alpha: float, counts: Counter[str]) -> Figures:
    red, sessions = counts["red"], counts["sessions"]
    budget = alpha * counts["audits"] / sessions
    low, high = probability_limits(red, sessions, alpha=0.05)
    certain = probability_limits(red, sessions, alpha=CERTAIN)[0]
    return {
        "alpha": alpha,
        "budget": budget,
        "sessions": sessions,
        "red": red,
        "share": red / sessions,
        "low": low,
        "high": high,
        "audits": counts["audits"],
        "refuted": counts["refuted"],
        "unclear": counts["unclear"],
    }, [at_most("99.9% lower limit of the failure rate", certain, min(budget, 1.0))]


SESSIONS = Bench(
    name="sessions",
    title="Failed sessions over correct mechanisms",
    method=(
        "A file of thirty tests with the fixture; each audits a true claim, most with equality. The audits are "
        "sequential (one is of fixed size), on given or searched pairs; one test compares a mechanism with itself. "
        f"{_SESSION_RUNS:,} runs on each dataset, a different seed for each session. A session fails if any test "
        "fails, which includes inconclusive audits. Limit of the family-wise error: the sum of the alphas. The "
        "limits are exact."
    ),
    columns=columns(
        "alpha of an audit = alpha :g | family-wise error limit = budget :.3g | sessions :,d | "
        "failed sessions = red :,d | failure rate = share :.4f | 95% lower limit = low :.4f | "
        "95% upper limit = high :.4f | audits :,d | refuted :,d | inconclusive = unclear :,d"
    ),
    names=tuple(f"{alpha:g}" for alpha in _SESSION_ALPHAS),
    tasks=_session_tasks,
)


def _bug(name: str, seed: int) -> tuple[bool, int, float]:
    """Return whether the test of a bug fails, the runs and the seconds."""
    options = (f"--dp-audit-seed={seed}", f"--dp-audit-runs={_BUG_RUNS}")
    status, (found,) = _session("bugs", repr([name]), *options)
    return status == 1 and found.verdict is Verdict.REFUTED, found.runs, found.seconds


def _bug_cells(effort: Effort, place: int, name: str) -> Figures:
    seeds = seeds_of(16, place, 0, 2 if effort.is_quick else _BUG_SEEDS)
    found = list(spread(_bug, [(name, seed) for seed in seeds], effort.jobs))
    failed = sum(fails for fails, _, _ in found) / len(found)
    return {
        "bug": name,
        "sessions": len(found),
        "failed": failed,
        "runs": statistics.median(runs for _, runs, _ in found),
        "seconds": statistics.median(seconds for _, _, seconds in found),
    }, [at_least("detection rate", failed, 1)]


PLANTED = Bench(
    name="planted",
    title="Detection of planted bugs",
    method=(
        "Faults of the catalogue, each audited by a test with the default settings of the plugin: sequential, alpha "
        f"1e-5, at most {_BUG_RUNS:,} runs on each dataset; {_BUG_SEEDS} sessions with different seeds. Medians of the "
        "runs on each dataset and of the seconds of an audit."
    ),
    columns=columns(
        "bug | sessions :,d | detection rate = failed :.0% | median runs = runs :,.0f | median seconds = seconds :.3f"
    ),
    names=BUGS,
    tasks=one_row_each(BUGS, _bug_cells, quick=BUGS[:_QUICK_BUGS]),
)

# False alarms of baselines: comparisons of rewritten code that draws from the same law as the old code.

_REWRITE_ALPHAS = (0.05, 0.01, 1e-3, 1e-5)
_REWRITE_RUNS = 1_000
_REWRITE_REPETITIONS = 40, 2_000  # quick, full: 20,000 rewrites in all
_REWRITE_BATCH = 50
_NAME = "main"
_STREAMS = ("two streams", "one stream")
# Probabilities of the true answer. A nearly fair coin shows the effect of one stream best: nearly every hit of the old
# code is a miss of the new code.
_OF_TWO, _OF_THREE = 0.55, 0.7

RewriteDraw = Callable[[float, int, np.random.Generator], Any]
"""Function from the answer, the number of runs and a generator to an output for each run."""


def _added(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer + rng.laplace(size=size)


def _subtracted(answer: float, size: int, rng: np.random.Generator) -> Any:
    return answer - rng.laplace(size=size)


def _quantile(u: npt.NDArray[np.float64]) -> Any:
    """Return the quantile of the Laplace law."""
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
    """Return the true outcome of three or another, by the place of a uniform number among the ordered shares."""
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


_REWRITES: dict[str, tuple[RewriteDraw, RewriteDraw]] = {
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
    """Return for each seed the p-value of the plugin's comparison of new code with a baseline of the old code."""
    old, new = _REWRITES[name]
    result = check(old, 1.0, 0.0, claim=PureDP(1.0), runs=_REWRITE_RUNS, seed=0, bits=False, jobs=1, name=name)

    def again(mechanism: RewriteDraw, stream: str, seed: int) -> Recount:
        return recount(mechanism, 1.0, 0.0, result.event, stream=stream, runs=_REWRITE_RUNS, seed=seed, jobs=1)

    found = []
    for seed in seeds:
        before = again(old, saved_as(_NAME), seed)
        if is_one_stream:  # under the name of the other stream; otherwise the comparison gives no p-value
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


def _changes(name: str, is_one_stream: bool, seeds: range) -> Counter[str]:
    """Return the number of comparisons, and of changes found at each alpha."""
    p_values = _p_values(name, is_one_stream, seeds)
    changed = {f"changed at {alpha:g}": sum(p <= alpha for p in p_values) for alpha in _REWRITE_ALPHAS}
    return Counter({"repetitions": len(p_values), **changed})


def _tasks(effort: Effort) -> Iterator[Task]:
    for place, name in enumerate(_REWRITES):
        for is_one_stream in (False, True):
            if effort.wants(name):
                key = f"{name}, {_STREAMS[is_one_stream]}"
                yield Task(key, partial(_row, effort, key, place, name, is_one_stream))


def _row(effort: Effort, key: str, place: int, name: str, is_one_stream: bool, former: Row | None) -> Iterator[Row]:
    wanted = effort.either(*_REWRITE_REPETITIONS)
    return counted(
        key,
        partial(_changes, name, is_one_stream),
        partial(_rewrite_cells, name, is_one_stream),
        former,
        names=("repetitions", *(f"changed at {alpha:g}" for alpha in _REWRITE_ALPHAS)),
        seeds=lambda used: seeds_of(18, place, used, max(0, wanted - used)),
        batch=_REWRITE_BATCH,
        jobs=effort.jobs,
    )


def _rewrite_cells(name: str, is_one_stream: bool, counts: Counter[str]) -> Figures:
    done = counts["repetitions"]
    cells: dict[str, Value] = {"rewrite": name, "streams": _STREAMS[is_one_stream], "repetitions": done}
    above = []
    for alpha in _REWRITE_ALPHAS:
        times = counts[f"changed at {alpha:g}"]
        low, high = probability_limits(times, done, alpha=0.05)
        cells[f"changed at {alpha:g}"] = times
        cells[f"share at {alpha:g}"] = f"{times / done:.4f} ({low:.4f} to {high:.4f})"
        above.append(probability_limits(times, done, alpha=CERTAIN)[0] / alpha)
    return cells, [] if is_one_stream else [at_most("largest 99.9% lower limit over alpha", max(above), 1)]


BASELINES = Bench(
    name="baselines",
    title="Baselines of rewritten code",
    method=(
        "Old code is saved as a baseline and compared with new code of the same law, as by `--dp-audit-save` and "
        f"`--dp-audit-compare` with the same seed; {_REWRITE_RUNS:,} runs on each dataset. False-alarm rates over "
        "repetitions with different seeds, with exact 95% intervals. Two streams: the new code has other random "
        "numbers than the baseline, as in the plugin. One stream: both have the same random numbers; the test is "
        "then not valid, `compare` gives no p-value, and there are no targets."
    ),
    columns=(
        *columns("rewritten code = rewrite | random numbers = streams | repetitions :,d"),
        *(Column(f"false-alarm rate at {alpha:g}", f"share at {alpha:g}") for alpha in _REWRITE_ALPHAS),
    ),
    names=tuple(_REWRITES),
    tasks=_tasks,
)

# Power of the check of noise against wrong scales and shapes, and its false alarms on correct noise.

ALPHA = 0.01
_SCALE, _OFF = 2.0, 0.02
_TIMING_RUNS, _RIGHT_RUNS = 100_000, 2_000
_TIMING_REPETITIONS, _RIGHT_REPETITIONS = (20, 100), (100, 2_000)  # quick, full
_LEAST_FOUND, _CERTAIN = 0.9, 1e-4
_TIMING_BATCH = 20

TimingDraw = Callable[[np.random.Generator, float, int], Any]


def _geometric(rng: np.random.Generator, scale: float, size: int) -> Any:
    success = -math.expm1(-1 / scale)
    return rng.geometric(success, size) - rng.geometric(success, size)


_LAWS: dict[str, tuple[NoiseLaw, TimingDraw]] = {
    "Laplace": (LaplaceNoise(_SCALE), lambda rng, scale, size: rng.laplace(scale=scale, size=size)),
    "Gaussian": (GaussianNoise(_SCALE), lambda rng, scale, size: rng.normal(scale=scale, size=size)),
    "exponential": (ExponentialNoise(_SCALE), lambda rng, scale, size: rng.exponential(scale, size)),
    "Gumbel": (GumbelNoise(_SCALE), lambda rng, scale, size: rng.gumbel(scale=scale, size=size)),
    "geometric": (GeometricNoise(_SCALE), _geometric),
}
# Laws of the same variance (for the exponential law: of the same mean), which the scale alone hardly distinguishes.
_SHAPES: dict[str, tuple[str, TimingDraw]] = {
    "Laplace": ("Gaussian", lambda rng, scale, size: rng.normal(scale=math.sqrt(2) * scale, size=size)),
    "Gaussian": ("Laplace", lambda rng, scale, size: rng.laplace(scale=scale / math.sqrt(2), size=size)),
    "exponential": (
        "half-normal",
        lambda rng, scale, size: np.abs(rng.normal(scale=scale * math.sqrt(math.pi / 2), size=size)),
    ),
    "Gumbel": (
        "Gaussian",
        lambda rng, scale, size: rng.normal(np.euler_gamma * scale, scale * math.pi / math.sqrt(6), size),
    ),
    "geometric": ("rounded Laplace", lambda rng, scale, size: np.rint(rng.laplace(scale=scale, size=size))),
}


@dataclass(frozen=True, slots=True)
class _Case:
    law: str
    fault: str  # empty for correct noise

    @property
    def name(self) -> str:
        return f"{self.law}, {self.fault or 'correct'}"

    def mechanism(self) -> Callable[..., Any]:
        draw, scale = _LAWS[self.law][1], _SCALE
        if self.fault == "2% less":
            scale *= 1 - _OFF
        elif self.fault == "2% more":
            scale *= 1 + _OFF
        elif self.fault:
            draw = _SHAPES[self.law][1]
        return lambda answer, size, rng: answer + draw(rng, scale, size)


_CASES = {
    case.name: case
    for law in _LAWS
    for fault in ("2% less", "2% more", f"{_SHAPES[law][0]} shape", "")
    for case in (_Case(law, fault),)
}


def _timing_cells(effort: Effort, place: int, name: str) -> Figures:
    from scipy.stats import binom  # takes long to import

    case = _CASES[name]
    runs, repetitions = (_TIMING_RUNS, _TIMING_REPETITIONS) if case.fault else (_RIGHT_RUNS, _RIGHT_REPETITIONS)
    wanted = effort.either(*repetitions)
    found, seconds = timed(
        in_batches, _checked, (name, runs), seeds_of(17, place, 0, wanted), _TIMING_BATCH, effort.jobs
    )
    refuted = sum(is_refuted for is_refuted, _ in found)
    target = (
        at_least("detection rate", refuted / wanted, _LEAST_FOUND)
        if case.fault
        else at_most("false alarms", refuted, binom.isf(_CERTAIN, wanted, ALPHA))
    )
    return {
        "noise": case.law,
        "wrong": case.fault or "–",
        "runs": runs,
        "repetitions": wanted,
        "refuted": refuted / wanted,
        "scale": sum(by_scale for _, by_scale in found) / wanted,
        "seconds": seconds / wanted,
    }, [target]


def _checked(name: str, runs: int, seeds: range) -> list[tuple[bool, bool]]:
    """Return for each seed whether the check refutes the noise, and whether the scale alone refutes it."""
    case = _CASES[name]
    law, mechanism = _LAWS[case.law][0], case.mechanism()
    found = []
    for seed in seeds:
        result = check_noise(mechanism, 5, noise=law, answer=5, runs=runs, alpha=ALPHA, seed=seed, jobs=1)
        found.append((result.is_refuted, result.points[0].is_outside))
    return found


NOISE = Bench(
    name="calibration",
    title="Power and false alarms of the check of noise",
    method=(
        f"`check_noise` at alpha {ALPHA:g} for noise of scale {_SCALE:g}. Faulty noise has a scale that is 2% off, or "
        "another shape with the same variance (for the exponential law: the same mean). False alarms on correct noise "
        "are limited by the binomial quantile that chance exceeds with probability 1e-4. Refuted by scale: share in "
        "which the interval of the scale alone refutes. Seconds of one check, with several processes at work."
    ),
    columns=columns(
        "noise | fault = wrong | runs :,d | repetitions :,d | refuted share = refuted :.2% | "
        "refuted by scale = scale :.2% | seconds :.3f"
    ),
    names=tuple(_CASES),
    tasks=one_row_each(_CASES, _timing_cells),
)

REGRESSION = Page("regression", "Benchmarks of regression testing", (SESSIONS, PLANTED, NOISE, BASELINES), audits=1_000)
