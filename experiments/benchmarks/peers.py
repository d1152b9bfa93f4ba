"""Other auditing tools on the same work; a program, as each tool needs an environment of its own.

    python peers.py TOOL peers.json [RELEASE]                             replaces the rows of a tool
    python -m dpaudit.experiments.benchmarks.peers dpaudit peers.json     those of dpaudit
    python peers.py table peers.json                                      the table of docs/comparison.md

DP-Auditorium and dp-recorder are on no index: put their source folders on PYTHONPATH and name the release.
"""

from __future__ import annotations

import inspect
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

RUNS, CANARIES, ALPHA, DELTA = 100_000, 2_000, 0.05, 1e-5
SIGMA = 3.730632  # least noise for (1, 1e-5) at sensitivity 1: Balle & Wang (2018), theorem 8
GRADIENTS = np.random.default_rng(1).normal(size=(8, 20))
Outcome = tuple[float | None, bool]
"""Lower bound, and whether it refutes the claim."""


def delta_of(epsilon: float, mu: float) -> float:
    """δ(ε) of μ-GDP: Dong, Roth & Su (2022), corollary 2.13."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))


def epsilon_of(mu: float, delta: float) -> float:
    """ε(δ) of μ-GDP."""
    if not mu or delta_of(0, mu) <= delta:
        return 0.0
    return brentq(lambda epsilon: delta_of(epsilon, mu) - delta, 0, mu * mu + 40 * mu)


# What is audited.


def noisy_sum(noise: str, scale: float, rows: list[float], size: int, rng: np.random.Generator) -> Any:
    """A sum with noise."""
    return sum(rows) + getattr(rng, noise)(scale=scale, size=size)


def sparse_vector(scales: tuple[float, float], answers: list[float], size: int, rng: np.random.Generator) -> Any:
    """Whether answers are above 0.5; -1 after the first that is. Without noise of the answers all are compared."""
    threshold = 0.5 + rng.laplace(scale=scales[0], size=(size, 1))
    noise = rng.laplace(scale=scales[1], size=(size, len(answers))) if scales[1] else 0.0
    above = np.asarray(answers) + noise >= threshold
    return np.where((np.cumsum(above, axis=1) > above) & bool(scales[1]), -1.0, above)


def clipped_sum(gradients: Any, clip: float) -> Any:
    """The sum of gradients, each clipped to a norm."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return (gradients / np.maximum(norms / clip, 1.0)).sum(axis=0)


def canaries(mu: float, seed: int) -> tuple[Any, Any]:
    """Scores of canaries with orthogonal gradients after one step of μ-GDP, and which of them were in."""
    rng = np.random.default_rng(seed)
    included = rng.random(CANARIES) < 0.5
    return mu * included + rng.normal(size=CANARIES), included


COUNT, SUM = "Laplace count, ε = 1", "Gaussian sum, (1, 10⁻⁵)"
SPARSE, STEP = "sparse vector, ε = 1", "DP-SGD step, 1-GDP"
RUN, NOTHING = f"{CANARIES:,} canaries of one run, 1-GDP", f"{CANARIES:,} canaries whose scores say nothing, ε = 0"
PAIR, ANSWERS = ([1.0], [0.0]), ([1.0] * 4 + [0.0] * 4, [0.0] * 4 + [1.0] * 4)
WORK: dict[str, list[tuple[str, tuple[Any, ...]]]] = {
    COUNT: [(f"noise / {by:g}", (partial(noisy_sum, "laplace", 1 / by), *PAIR, 0.0)) for by in (1, 1.05, 1.1, 2)],
    SUM: [(f"noise / {by:g}", (partial(noisy_sum, "normal", SIGMA / by), *PAIR, DELTA)) for by in (1, 2)],
    SPARSE: [
        ("as proved", (partial(sparse_vector, (2.0, 4.0)), *ANSWERS, 0.0)),
        ("algorithm 4 of Lyu et al.", (partial(sparse_vector, (4.0, 4 / 3)), *ANSWERS, 0.0)),
        ("algorithm 5", (partial(sparse_vector, (2.0, 0.0)), *ANSWERS, 0.0)),
    ],
    STEP: [("noise / 1", (1.0, 1.0)), ("noise / 2", (0.5, 1.0)), ("no clipping", (1.0, np.inf))],
    RUN: [("noise / 1", (1.0, 1.0)), ("noise / 2", (2.0, 1.0))],
    NOTHING: [("", (0.0, 0.0))],
}
"""Variants of each work, and what the tools are given beside a seed; the first variant is correct."""


# The tools. Each function is what a user writes.


def dpaudit_check(mechanism: Any, x: Any, y: Any, delta: float, seed: int) -> Outcome:
    """`check` of dpaudit."""
    from ...audit.claims.claim import ApproxDP
    from ...audit.datasets.adjacency import Within
    from ...audit.procedures.check import check

    result = check(mechanism, x, y, claim=ApproxDP(1.0, delta), adjacency=Within("linf"), runs=RUNS, seed=seed)
    return result.bound, result.is_refuted


def dpaudit_step(noise: float, clip: float, seed: int) -> Outcome:
    """`check_step` of dpaudit."""
    from ...audit.claims.claim import GaussianDP
    from ...audit.training.check_step import check_step

    def step(batch: Any, rng: np.random.Generator) -> Any:
        return clipped_sum(batch, clip) + rng.normal(scale=noise, size=batch.shape[1])

    result = check_step(step, GRADIENTS, claim=GaussianDP(1.0), ignore="not-finite", seed=seed)
    return epsilon_of(result.mu_lower, delta_of(1.0, 1.0)) if result.mu_lower else None, result.is_refuted


def dpaudit_canaries(mu: float, claim: float, seed: int) -> Outcome:
    """`check_canaries` of dpaudit."""
    from ...audit.canaries.check_canaries import check_canaries
    from ...audit.claims.claim import GaussianDP

    scores, included = canaries(mu, seed)
    result = check_canaries(scores, included, claim=GaussianDP(1.0), inclusion="independent")
    return epsilon_of(result.bound, DELTA), result.is_refuted if claim else result.bound > 0


def hockey_stick(mechanism: Any, x: Any, y: Any, delta: float, seed: int) -> Outcome:
    """The tester of DP-Auditorium's example, with its defaults, on a fixed pair."""
    import tensorflow as tf
    from dp_auditorium.configs.privacy_property import ApproximateDp
    from dp_auditorium.configs.privacy_test_runner_config import PostProcessing, PrivacyTestRunnerConfig, PropertyTester
    from dp_auditorium.configs.property_tester_config import HockeyStickPropertyTesterConfig
    from dp_auditorium.generators.constant_dataset_generator import ConstantDatasetGenerator
    from dp_auditorium.privacy_test_runner import PrivacyTestRunner
    from dp_auditorium.testers import hockey_stick_tester as hs

    tf.keras.utils.set_random_seed(seed)
    claim = ApproximateDp(epsilon=1.0, delta=delta)
    config = HockeyStickPropertyTesterConfig(hs.make_default_hs_training_config(), claim)
    tester = hs.HockeyStickPropertyTester(config, hs.make_default_hs_base_model())
    trial = PrivacyTestRunnerConfig(PropertyTester.HOCKEY_STICK_TESTER, 1, ALPHA, RUNS, PostProcessing.NONE)
    runner = PrivacyTestRunner(trial, ConstantDatasetGenerator((x, y)), tester)
    rng = np.random.default_rng(seed)
    result = runner.test_privacy(lambda data, size: mechanism(data, size, rng), "mechanism")
    return result.lower_bound_divergence_estimates[0], result.found_privacy_violation is not None


def recorder_step(noise: float, clip: float, seed: int) -> Outcome:
    """Record, replay and, if that finds nothing, samples of the noise."""
    from dp_recorder.auditing.audit_primitives import Auditor, audit_spec
    from dp_recorder.auditing.metrics import dist_l2

    rng = np.random.default_rng(seed)

    @audit_spec(kind="gaussian", input_arg="value", sensitivity_arg="sensitivity", metric_fn=dist_l2)
    def with_noise(value, sensitivity):  # type: ignore[no-untyped-def]
        return value + rng.normal(scale=noise * sensitivity, size=value.shape)

    auditor = Auditor()
    with auditor:
        with_noise(clipped_sum(GRADIENTS, clip), 1.0)
    auditor.set_replay()
    with auditor:
        with_noise(clipped_sum(GRADIENTS[1:], clip), 1.0)
    try:
        auditor.validate_records()
    except AssertionError:
        return None, True
    auditor.run_distributional_audit(n_samples=20_000, alpha=ALPHA)
    auditor.compute_overall_pld()
    bound = auditor.get_overall_current_guarantee(delta_of(1.0, 1.0))
    return bound, bound > 1.0


def jax_privacy_sum(mechanism: Any, x: Any, y: Any, delta: float, seed: int) -> Outcome:
    """Outputs on the two datasets as scores of a canary that is in and out."""
    from jax_privacy.auditing import CanaryScoreAuditor

    rng = np.random.default_rng(seed)
    bound = CanaryScoreAuditor(mechanism(x, RUNS, rng), mechanism(y, RUNS, rng)).epsilon_clopper_pearson(ALPHA, delta)
    return bound, bound > 1.0


def jax_privacy_canaries(method: str, mu: float, claim: float, seed: int) -> Outcome:
    """A bound for one run, with the default thresholds."""
    from jax_privacy.auditing import CanaryScoreAuditor

    scores, included = canaries(mu, seed)
    bound = getattr(CanaryScoreAuditor(scores[included], scores[~included]), method)(ALPHA, DELTA)
    return bound, bound > epsilon_of(claim, DELTA)


def privacyguard_canaries(mu: float, claim: float, seed: int) -> Outcome:
    """A tenth of the canaries is guessed: the lowest scores out, the highest in."""
    from privacy_guard.analysis.mia.fdp_analysis_node import FDPAnalysisNode

    scores, included = canaries(mu, seed)
    order, side = np.argsort(scores), CANARIES // 20
    correct = int((~included[order[:side]]).sum() + included[order[-side:]].sum())
    bound = FDPAnalysisNode(m=CANARIES, c=correct, c_cap=2 * side, delta=DELTA).run_analysis().eps
    return bound, bound > epsilon_of(claim, DELTA)


def opake_canaries(method: str, fixed: bool, mu: float, claim: float, seed: int) -> Outcome:
    """A bound for one run, with the default threshold or one that does not depend on which canaries were in."""
    from opake.auditing import canary_scores, one_run
    from opake.auditing.types import CoinFlip

    scores, included = canaries(mu, seed)
    places = np.arange(CANARIES)
    coins = CoinFlip(CANARIES, places, included, places[included], places[~included], CANARIES)
    estimate = one_run(canary_scores(scores, canary_indices=places), coin_flip=coins)
    bound = getattr(estimate, method)().epsilon_at(delta=DELTA, threshold=float(np.median(scores)) if fixed else None)
    return bound, bound > epsilon_of(claim, DELTA)


Use = tuple[str, Callable[..., Outcome], int, tuple[str, ...]]
TOOLS: dict[str, tuple[str, list[Use]]] = {
    "dpaudit": ("dpaudit", [
        ("`check`", dpaudit_check, 200, (COUNT, SUM)),
        ("`check`", dpaudit_check, 30, (SPARSE,)),
        ("`check_step`", dpaudit_step, 50, (STEP,)),
        ("`check_canaries`", dpaudit_canaries, 200, (RUN, NOTHING)),
    ]),
    "DP-Auditorium": ("", [("hockey-stick tester", hockey_stick, 15, (COUNT, SUM, SPARSE))]),
    "dp-recorder": ("", [("replay, then 20,000 samples", recorder_step, 30, (STEP,))]),
    "JAX Privacy": ("jax_privacy", [
        ("`epsilon_clopper_pearson`", jax_privacy_sum, 200, (COUNT, SUM)),
        ("`epsilon_one_run`", partial(jax_privacy_canaries, "epsilon_one_run"), 200, (RUN, NOTHING)),
        ("`epsilon_one_run_fdp`", partial(jax_privacy_canaries, "epsilon_one_run_fdp"), 200, (RUN, NOTHING)),
    ]),
    "PrivacyGuard": ("privacyguard-platform", [("`FDPAnalysisNode`", privacyguard_canaries, 20, (RUN,))]),
    "opake": ("opake-auditing", [
        ("`gdp()`, threshold: median", partial(opake_canaries, "gdp", True), 5, (RUN,)),
        ("`eps_delta()`", partial(opake_canaries, "eps_delta", False), 200, (RUN, NOTHING)),
        ("`eps_delta()`, threshold: median", partial(opake_canaries, "eps_delta", True), 200, (RUN, NOTHING)),
    ]),
}  # fmt: skip
"""The distribution of each tool; how it is used, the audits of a variant, and the work for which that is made."""


def measured(tool: str, release: str) -> list[dict[str, Any]]:
    """A row for each use and variant; seconds of one audit are the median processor time of this process."""
    rows = []
    for use, audit, audits, works in TOOLS[tool][1]:
        source = inspect.getsource(audit.func if isinstance(audit, partial) else audit)
        lines = sum(bool(line.strip()) for line in source.splitlines()) - 2  # its head and docstring
        for work in works:
            for variant, given in WORK[work]:
                outcomes, seconds = [], []
                for seed in range(audits):
                    start = time.process_time()
                    outcomes.append(audit(*given, seed=seed))
                    seconds.append(time.process_time() - start)
                bounds = [float(bound) for bound, _ in outcomes if bound is not None]
                rows.append({
                    "tool": tool, "release": release, "use": use, "work": work, "variant": variant,
                    "audits": audits, "refuted": sum(bool(refuted) for _, refuted in outcomes),
                    "bound": round(statistics.median(bounds), 4) if bounds else None,
                    "seconds": float(f"{statistics.median(seconds):.2g}"), "lines": lines,
                })  # fmt: skip
                print(rows[-1], file=sys.stderr, flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: a line for each work and use."""
    lines = [
        "| work | tool | refuted if correct | refuted if faulty | bound if correct | CPU s | lines |",
        "|" + "---|" * 7,
    ]
    for work in WORK:
        for tool, use in dict.fromkeys((row["tool"], row["use"]) for row in rows if row["work"] == work):
            own = [row for row in rows if (row["work"], row["tool"], row["use"]) == (work, tool, use)]
            faulty = "; ".join(f"{row['variant']}: {row['refuted']} of {row['audits']}" for row in own[1:]) or "-"
            bound = f"{'δ' if tool == 'DP-Auditorium' else 'ε'} ≥ {max(own[0]['bound'], 0):.3g}"
            seconds = max(row["seconds"] for row in own)
            correct = f"{own[0]['refuted']} of {own[0]['audits']}"
            lines.append(
                f"| {work} | {tool}, {use} | {correct} | {faulty} | {bound} | {seconds:g} | {own[0]['lines']} |"
            )
    return "\n".join(lines)


def main(tool: str, file: str, release: str = "") -> None:
    """Measure a tool, or print the table."""
    if not __package__:
        sys.path.pop(0)  # this folder: its google.py hides the package of that name
    path = Path(file)
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    if tool == "table":
        print(table(rows))
        return
    rows = [row for row in rows if row["tool"] != tool] + measured(tool, release or metadata.version(TOOLS[tool][0]))
    rows.sort(key=lambda row: list(TOOLS).index(row["tool"]))
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
