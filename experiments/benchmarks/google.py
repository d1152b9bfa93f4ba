"""Google's statistical test cases: verdicts, variants with too little noise, and runs and time beside their tests."""

from __future__ import annotations

import math
import time
from typing import Any, Final

import numpy as np

from ...audit.distribution_checks.check_noise import check_noise
from ...audit.distribution_checks.noise_distributions import GaussianNoise, LaplaceNoise
from ...audit.results.statement_result import StatementResult
from ..libraries.subjects import release_of
from ..published.google_cases.audited import (
    VARIANT_SHARE,
    Repeated,
    least_noise_that_passes,
    noise,
    passes,
    pydp_noise,
    release,
    why_not_pydp,
)
from ..published.google_cases.cases import VOTES, Case, ClosenessCase, closeness_cases, dp_cases
from .measure import Effort, Figures, Seeds, Table, Target, at_least, at_most, by_name

SUITE_ALPHA: Final = 1e-5
"""Probability with which any right mechanism of the whole suite is refuted."""
_CASES: Final = {case.key: case for case in dp_cases()}
_CLOSENESS: Final = {case.key: case for case in closeness_cases()}
ALPHA: Final = SUITE_ALPHA / (2 * len(_CASES) + len(_CLOSENESS))
"""Alpha of each audit: two of each case of an aggregation, and one of each distribution of noise."""
_NOISE_RUNS, _QUICK_RUNS = 40_000, 2_000
_TIMED = 5_000  # draws whose time is measured
_SIMULATED = ("count", "bounded sum", "long bounded sum")


def _cells(effort: Effort, seeds: Seeds, key: str) -> Figures:
    return (_google_cells if key in _CASES else _closeness_cells)(effort, seeds(4), key)


def _targets(effort: Effort, n_refuted: int, is_variant_refuted: bool) -> list[Target]:
    refuted = at_most("refuted", n_refuted, 0)
    return [refuted] if effort.is_quick else [refuted, at_least("refuted variants", is_variant_refuted, 1)]


def needs_pydp(case: Case) -> bool:
    """Return whether an audit of the case draws from PyDP."""
    return case.file in (*_SIMULATED, "quantiles") or (case.noise == "laplace" and case.file != "approximate bounds")


def _google_cells(effort: Effort, seeds: range, key: str) -> Figures:
    case = _CASES[key]
    audits = (release(case), noise(case, alpha=ALPHA), noise(case, alpha=ALPHA, share=VARIANT_SHARE))
    found, seconds = [], []
    for audited, seed in zip(audits, seeds, strict=False):
        runs = _QUICK_RUNS if effort.is_quick else audited.runs
        started = time.process_time()
        found.append(audited.audit(alpha=ALPHA, seed=seed, runs=runs))
        seconds.append(time.process_time() - started)
    released, right, variant = found
    is_simulated = case.file in _SIMULATED and not effort.is_quick
    return {
        "file": case.file,
        "case": case.name,
        "claim": str(case.claim),
        "on": audits[0].on,
        "release": release_of("pydp") if isinstance(audits[0].mechanism, Repeated) else "–",
        "why": why_not_pydp(case) or None,
        "note": case.note or None,
        "runs": released.runs,
        "verdict": released.verdict.value,
        "bound": released.bound,
        "min_detectable_excess": released.min_detectable_excess,
        "noise_on": audits[1].on,
        "noise_claim": audits[1].claim_in_words,
        "noise_runs": right.runs,
        "right": right.verdict.value,
        "right_bound": right.bound,
        "variant": variant.verdict.value,
        "variant_bound": variant.bound,
        "seconds": seconds[0] + seconds[1],
        "variant_seconds": seconds[2],
        "their_samples": VOTES * case.samples,
        "their_seconds": 2 * VOTES * case.samples * _seconds_of_a_draw(audits[0].mechanism, audits[0].x, audits[0].y),
        "they_pass_variant": ("no", "yes")[passes(case, VARIANT_SHARE, seed=seeds[3])] if is_simulated else None,
        "they_pass": least_noise_that_passes(case, seed=seeds[3]) if is_simulated else None,
    }, _targets(effort, released.is_refuted + right.is_refuted, variant.is_refuted)


def _closeness_cells(effort: Effort, seeds: range, key: str) -> Figures:
    case = _CLOSENESS[key]
    runs = _QUICK_RUNS if effort.is_quick else _NOISE_RUNS
    found, seconds = [], []
    for share, seed in zip((1.0, VARIANT_SHARE), seeds, strict=False):
        started = time.process_time()
        found.append(closeness_check(case, share, runs=runs, seed=seed))
        seconds.append(time.process_time() - started)
    right, variant = found
    name, scale = str(_closeness_sampler(case, 1.0)), "scale" if case.noise == "laplace" else "standard deviation"
    return {
        "file": case.file,
        "case": case.name,
        "claim": f"{case.noise.capitalize()} noise, {scale} {_scale(case):.5g}",
        "on": name,
        "release": release_of("pydp"),
        "noise_on": name,
        "noise_claim": "distribution of the noise",
        "noise_runs": runs,
        "right": right.verdict.value,
        "right_bound": right.points[0].estimate / _scale(case),
        "variant": variant.verdict.value,
        "variant_bound": variant.points[0].estimate / _scale(case),
        "seconds": seconds[0],
        "variant_seconds": seconds[1],
        "their_samples": VOTES * case.samples,
        "their_seconds": VOTES * case.samples * _seconds_of_a_draw(_closeness_sampler(case, 1.0), []),
    }, _targets(effort, right.is_refuted, variant.is_refuted)


def closeness_check(case: ClosenessCase, share: float, *, runs: int, seed: int) -> StatementResult:
    """Check the distribution of PyDP's noise for a case, or of noise with a smaller scale."""
    mechanism = _closeness_sampler(case, share)
    distribution = LaplaceNoise(_scale(case)) if case.noise == "laplace" else GaussianNoise(_scale(case))
    return check_noise(mechanism, [], noise=distribution, answer=case.answer, runs=runs, alpha=ALPHA, seed=seed, jobs=1)


def _closeness_sampler(case: ClosenessCase, share: float) -> Repeated:
    made, answer = pydp_noise(case, case.change, share), case.answer
    return Repeated(name=f"PyDP {type(made).__name__}", prepare=lambda values: lambda: made.add_noise(answer))


def _seconds_of_a_draw(mechanism: Any, *datasets: Any) -> float:
    """Return the core-seconds of one output, the mean over the datasets."""
    rng, started = np.random.default_rng(0), time.process_time()
    for dataset in datasets:
        mechanism.sample(dataset, _TIMED, rng)
    return (time.process_time() - started) / (_TIMED * len(datasets))


def _scale(case: ClosenessCase) -> float:
    return math.sqrt(case.variance / 2) if case.noise == "laplace" else math.sqrt(case.variance)


_QUICK = (
    "count: Laplace noise, empty count, large epsilon",
    "bounded mean: Gaussian noise, empty mean, default parameters",
    "approximate bounds: basic (bounding failure)",
    "Laplace closeness: Default parameters",
)


def _library_of(key: str) -> str:
    return "pydp" if key in _CLOSENESS or needs_pydp(_CASES[key]) else ""


TABLES = (Table("google", 46, by_name((*_CASES, *_CLOSENESS)), _cells, quick=_QUICK, library=_library_of),)
